//! Sharded, with a ring for each thread: one multishot receive for all that a connection will ever
//! send, and replies submitted by the call that waits. One system call serves as many requests as
//! have come.
//!
//! A connection's place is kept until the kernel has completed everything requested for it:
//!
//! ```text
//!             receive                     cancel
//!    idle ──────────────► receives ─────────────────► is_cancelling
//!     ▲                      │ it ends, fails, finds no buffer │
//!     └──────────────────────┴─────────────────────────────────┘
//!
//!    idle ── send ──► sends ── sent ──► idle        is_ending and both idle: closed
//!                                                   goes_to and both idle: given away
//! ```

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hearth_sys::eventfd::EventFd;
use hearth_sys::uring::{Done, Prepared, Requests, Uring};

use super::crew::{Crew, Desk, Order, Post, Sharded, choose};
use super::threads::{Starting, spawn};
use super::yielding::Yielding;
use crate::common::Common;
use crate::connection::pushed::Step;
use crate::connection::{Connection, Station};
use crate::counters::add;
use crate::service::Service;

/// Key of the wake-up descriptor: keys have 62 bits.
const WAKEUP: u64 = (1 << 62) - 1;
/// Requests submitted at once.
const REQUESTS: u32 = 256;
/// Length of a receive buffer: small requests fit. The odd line keeps the beginnings of buffers,
/// which hold small requests, out of the same set of the cache.
const BUFFER_BYTES: usize = 4096 + 64;
/// Most buffers of a thread, which begins with fewer.
const BUFFERS: u16 = 512;
/// Unserved input of a connection beyond which it is not received from.
const BACKLOG_BYTES: usize = 64 << 10;
/// Longest time that a reply waits for other requests to be served before it is submitted.
const HAND_IN_WAIT: Duration = Duration::from_micros(50);
/// Time that the kernel gets to end everything.
const END_WAIT: Duration = Duration::from_secs(1);
/// Pause of a thread whose ring the kernel refuses for a moment.
const REFUSED_WAIT: Duration = Duration::from_millis(1);

/// A thread to be started, which waits by a ring.
pub(super) struct ByRing<T> {
    pub(super) desk: Arc<Desk<EventFd, T>>,
    prepared: Prepared,
}

pub(super) fn desk<S: Service>(common: &Common<S>) -> io::Result<ByRing<S::Session>> {
    let bytes = BUFFER_BYTES.min(common.options.input_bytes_max);
    Ok(ByRing {
        desk: Desk::new(EventFd::new()?),
        prepared: Prepared::new(REQUESTS, BUFFERS, bytes)?,
    })
}

/// Starts the thread with this number in the crew.
pub(super) fn start<S: Service>(
    common: &Arc<Common<S>>,
    number: usize,
    ByRing { desk, prepared }: ByRing<S::Session>,
    crew: &Arc<Crew<S::Session>>,
) -> io::Result<JoinHandle<()>> {
    let crew = crew.clone();
    spawn(common, number, move |common, station| {
        // It is prepared, so this fails only with a filter set in between.
        let Ok(ring) = prepared.begin() else { return };
        desk.waits_by(ring.as_raw_fd());
        let yielding = Yielding::new(&crew, number);
        let shard = Shard::new(&desk, &crew, yielding, station.second());
        crew.leave(shard.run(common, station, ring));
    })
}

impl<T: Send + 'static> Sharded<T> {
    /// Starts the pattern as [`Sharded::start`] does, with rings.
    pub(crate) fn start_rings<S: Service<Session = T>>(
        common: &Arc<Common<S>>,
        starting: &mut Starting,
    ) -> io::Result<Sharded<T>> {
        let desks: Vec<ByRing<T>> = (0..common.options.threads)
            .map(|_| desk(common))
            .collect::<io::Result<_>>()?;
        let posts = desks
            .iter()
            .map(|by_ring| by_ring.desk.clone() as Arc<dyn Post<T>>);
        let crew = Crew::new(posts.collect());
        for (number, desk) in desks.into_iter().enumerate() {
            desk.desk.set_spin(common.options.spin);
            starting.add(start(common, number, desk, &crew));
        }
        Ok(Sharded::new(crew))
    }
}

/// A connection and its open requests in the kernel.
struct RingConnection<T> {
    connection: Connection<T>,
    receives: bool,
    is_cancelling: bool,
    sends: bool,
    /// Its last send did not go at once.
    is_slow: bool,
    /// It is queued for its next turn.
    has_turn: bool,
    is_ending: bool,
    /// Thread to give it to when the kernel is done with it.
    goes_to: Option<usize>,
}

/// A thread's own state.
struct Shard<'a, T> {
    desk: &'a Desk<EventFd, T>,
    yielding: Yielding<T>,
    crew: &'a Crew<T>,
    places: Vec<Option<RingConnection<T>>>,
    free: Vec<usize>,
    turns: Vec<usize>,
    /// Connections that go to other threads at the end of the round.
    leaving: Vec<(usize, Connection<T>)>,
    /// Second of the last look for silent connections.
    swept: u32,
    /// Time of the last submission.
    handed_in: Instant,
    is_woken: bool,
    /// A connection continues as soon as a send is over, which alone ends no wait.
    is_pressed: bool,
}

/// A thread's tools for handling an event.
struct Tools<'a, 'b, S: Service> {
    common: &'a Common<S>,
    station: &'a mut Station<'b, S>,
    requests: &'a mut Requests,
}

impl<'a, T: Send + 'static> Shard<'a, T> {
    fn new(
        desk: &'a Desk<EventFd, T>,
        crew: &'a Crew<T>,
        yielding: Yielding<T>,
        second: u32,
    ) -> Shard<'a, T> {
        Shard {
            desk,
            yielding,
            crew,
            places: Vec::new(),
            free: Vec::new(),
            turns: Vec::new(),
            leaving: Vec::new(),
            swept: second,
            handed_in: Instant::now(),
            is_woken: false,
            is_pressed: false,
        }
    }

    /// Serves until the server stops. Returns the connections that are left.
    fn run<S: Service<Session = T>>(
        mut self,
        common: &Common<S>,
        station: &mut Station<'_, S>,
        mut ring: Uring,
    ) -> Vec<Connection<T>> {
        ring.requests().poll(self.desk.poller.as_fd(), WAKEUP);
        let counts = station.meter.counts();
        let mut turns = Vec::new();
        loop {
            self.yielding.look(self.desk);
            let goes_on = std::mem::take(&mut self.is_pressed) || !self.turns.is_empty();
            let begun = station.meter.begin_wait();
            match self.look(&mut ring, goes_on) {
                Ok(events) => add(&counts.events, events as u64),
                Err(_) => thread::sleep(REFUSED_WAIT),
            }
            station.meter.end_wait(begun);
            add(&counts.waits, 1);
            self.handed_in = Instant::now();
            std::mem::swap(&mut turns, &mut self.turns);
            ring.tell(|requests, done| {
                let mut tools = Tools {
                    common,
                    station,
                    requests,
                };
                self.hear(&mut tools, done);
            });
            let mut tools = Tools {
                common,
                station,
                requests: ring.requests(),
            };
            for key in turns.drain(..) {
                self.take_turn(&mut tools, key);
            }
            self.send_off();
            if std::mem::take(&mut self.is_woken) {
                add(&counts.rung, 1);
                if common.is_stopping() {
                    return self.end_all(common, station, ring);
                }
                let inbox = self.desk.take();
                self.adopt(&mut tools, inbox.arrivals);
                for order in inbox.orders {
                    self.give(&mut tools, order);
                }
                self.sweep(&mut tools);
                self.send_off();
            }
        }
    }

    /// Submits, and waits if there is nothing else to do. Returns how much there is to report.
    fn look(&self, ring: &mut Uring, goes_on: bool) -> io::Result<usize> {
        if goes_on {
            return ring.look(Some(Duration::ZERO));
        }
        let found = self.desk.spin(|| match ring.look(Some(Duration::ZERO)) {
            Ok(0) => None,
            found => Some(found),
        });
        found.unwrap_or_else(|| ring.look(None))
    }

    fn hear<S: Service<Session = T>>(&mut self, tools: &mut Tools<'_, '_, S>, done: Done<'_>) {
        match done {
            Done::Readable { goes_on, .. } => {
                self.is_woken |= self.desk.poller.take();
                if !goes_on {
                    tools.requests.poll(self.desk.poller.as_fd(), WAKEUP);
                }
            }
            Done::Received {
                key,
                bytes,
                goes_on,
            } => {
                let key = key as usize;
                let Some(place) = self.places[key].as_mut() else {
                    return;
                };
                place.receives &= goes_on;
                place.is_cancelling &= goes_on;
                if place.goes_to.is_some() && !place.is_ending && !bytes.is_empty() {
                    // For the other thread.
                    add(&tools.station.meter.counts().read_bytes, bytes.len() as u64);
                    place.connection.keep(bytes);
                    return self.hand_over(tools, key);
                }
                let begun = tools.station.meter.share();
                let step = match place.is_ending {
                    true => Step::End,
                    false => place.connection.bring(tools.station, bytes),
                };
                place.connection.worked += tools.station.meter.share().saturating_sub(begun);
                self.settle(tools, key, step);
            }
            Done::Ended { key, error } => {
                let key = key as usize;
                let Some(place) = self.places[key].as_mut() else {
                    return;
                };
                place.receives = false;
                place.is_cancelling = false;
                let step = match error.raw_os_error() {
                    Some(CANCELED | NO_BUFFERS) if !place.is_ending => place.connection.step(),
                    _ => Step::End,
                };
                self.settle(tools, key, step);
            }
            Done::Sent { key, bytes, result } => self.sent(tools, key as usize, bytes, result),
        }
    }

    fn sent<S: Service<Session = T>>(
        &mut self,
        tools: &mut Tools<'_, '_, S>,
        key: usize,
        bytes: Vec<u8>,
        result: io::Result<usize>,
    ) {
        let Some(place) = self.places[key].as_mut() else {
            return;
        };
        place.sends = false;
        let station = &mut *tools.station;
        let put_back = place.connection.put_back(station, bytes, result);
        place.is_slow = matches!(put_back, Ok(None));
        let step = match put_back {
            _ if place.is_ending => Step::End,
            Ok(Some(spare)) => {
                station.spare(spare);
                place.connection.go_on(station)
            }
            Ok(None) => place.connection.step(),
            Err(_) => Step::End,
        };
        self.settle(tools, key, step);
    }

    fn take_turn<S: Service<Session = T>>(&mut self, tools: &mut Tools<'_, '_, S>, key: usize) {
        // Another connection may have its place.
        let Some(place) = self.places[key].as_mut().filter(|place| place.has_turn) else {
            return;
        };
        place.has_turn = false;
        let step = match place.is_ending {
            true => Step::End,
            false => place.connection.go_on(tools.station),
        };
        self.settle(tools, key, step);
    }

    /// Submits the ring requests that a connection needs next.
    fn settle<S: Service<Session = T>>(
        &mut self,
        tools: &mut Tools<'_, '_, S>,
        key: usize,
        step: Step,
    ) {
        let Some(place) = self.places[key].as_mut() else {
            return;
        };
        match step {
            Step::End => return self.end(tools, key),
            _ if place.goes_to.is_some() => return self.hand_over(tools, key),
            Step::Fetch => {
                let (bytes, from) = place.connection.lend();
                place.sends = true;
                let (to, requests) = (place.connection.fd(), &mut *tools.requests);
                match place.is_slow {
                    true => requests.send_later(to, key as u64, bytes, from),
                    false => requests.send(to, key as u64, bytes, from),
                }
                if self.handed_in.elapsed() > HAND_IN_WAIT {
                    tools.requests.hand_in();
                    self.handed_in = Instant::now();
                }
            }
            Step::Turn if !place.has_turn => {
                place.has_turn = true;
                self.turns.push(key);
            }
            Step::Turn | Step::Sent | Step::Input => {}
        }
        self.is_pressed |=
            place.sends && !place.is_slow && place.connection.goes_on_after_sending();
        place.receive_or_not(tools.requests, key as u64, step == Step::Input);
    }

    /// Closes a connection as soon as the kernel is done with it.
    fn end<S: Service<Session = T>>(&mut self, tools: &mut Tools<'_, '_, S>, key: usize) {
        let Some(place) = self.places[key].as_mut() else {
            return;
        };
        if !place.is_ending {
            place.is_ending = true;
            if place.sends {
                self.is_pressed = true;
                // It may wait for a client that never reads.
                let _ = place.connection.socket.shutdown(std::net::Shutdown::Both);
            }
            if place.receives && !place.is_cancelling {
                tools.requests.cancel_receive(key as u64);
            }
        }
        if place.receives || place.sends {
            return;
        }
        if let Some(place) = self.places[key].take() {
            if place.goes_to.is_none() {
                self.desk.let_go();
            }
            tools.station.close(place.connection);
            self.free.push(key);
            tools.common.gone();
        }
    }

    /// Gives connections away as soon as the kernel is done with them.
    fn give<S: Service<Session = T>>(&mut self, tools: &mut Tools<'_, '_, S>, order: Order) {
        let mut there = Vec::new();
        for (key, place) in self.places.iter_mut().enumerate() {
            let staying = place.as_mut();
            if let Some(place) = staying.filter(|place| !place.is_ending && place.goes_to.is_none())
            {
                // Old work counts for less.
                place.connection.worked /= 2;
                there.push((place.connection.worked, key));
            }
        }
        for key in choose(there, order) {
            if let Some(place) = self.places[key].as_mut() {
                place.goes_to = Some(order.to);
                self.desk.let_go();
                if place.receives && !place.is_cancelling {
                    place.is_cancelling = true;
                    tools.requests.cancel_receive(key as u64);
                }
                self.hand_over(tools, key);
            }
        }
    }

    /// Moves a connection on its way out, if the kernel is done with it.
    fn hand_over<S: Service<Session = T>>(&mut self, tools: &mut Tools<'_, '_, S>, key: usize) {
        // A send that goes at once ends no wait.
        self.is_pressed |= self.places[key].as_ref().is_some_and(|place| place.sends);
        let place = self.places[key].take_if(|place| !place.receives && !place.sends);
        let Some(mut place) = place else { return };
        self.free.push(key);
        place.connection.travel();
        add(&tools.station.meter.counts().moved, 1);
        let to = place.goes_to.unwrap_or_default();
        self.leaving.push((to, place.connection));
    }

    /// Sends off the leaving connections, together to each thread.
    fn send_off(&mut self) {
        while let Some(&(to, _)) = self.leaving.first() {
            let (going, others) = std::mem::take(&mut self.leaving)
                .into_iter()
                .partition::<Vec<_>, _>(|(other, _)| *other == to);
            self.leaving = others;
            let going = going.into_iter().map(|(_, connection)| connection);
            self.crew.posts[to].put(going.collect());
        }
    }

    fn adopt<S: Service<Session = T>>(
        &mut self,
        tools: &mut Tools<'_, '_, S>,
        arrivals: Vec<Connection<T>>,
    ) {
        for connection in arrivals {
            let key = self.free.pop().unwrap_or_else(|| {
                self.places.push(None);
                self.places.len() - 1
            });
            // A connection from another thread may have work.
            let step = connection.step();
            self.places[key] = Some(RingConnection {
                connection,
                receives: false,
                is_cancelling: false,
                sends: false,
                is_slow: false,
                has_turn: false,
                is_ending: false,
                goes_to: None,
            });
            self.settle(tools, key, step);
        }
    }

    /// Closes connections that have been silent for too long.
    fn sweep<S: Service<Session = T>>(&mut self, tools: &mut Tools<'_, '_, S>) {
        let second = tools.station.second();
        let Some(idle) = tools.common.idle_seconds() else {
            return;
        };
        if std::mem::replace(&mut self.swept, second) == second {
            return;
        }
        for key in 0..self.places.len() {
            let is_silent = self.places[key].as_ref().is_some_and(|place| {
                !place.is_ending
                    && second.saturating_sub(place.connection.active) > idle
                    && (place.sends || !place.connection.is_kept_waiting())
            });
            if is_silent {
                add(&tools.station.meter.counts().idled, 1);
                self.end(tools, key);
            }
        }
    }

    /// Cancels everything in the kernel.
    fn end_all<S: Service<Session = T>>(
        mut self,
        common: &Common<S>,
        station: &mut Station<'_, S>,
        mut ring: Uring,
    ) -> Vec<Connection<T>> {
        ring.cancel_all(END_WAIT, |_, done| match done {
            Done::Received { key, bytes, .. } => {
                if let Some(Some(place)) = self.places.get_mut(key as usize) {
                    add(&station.meter.counts().read_bytes, bytes.len() as u64);
                    place.connection.keep(bytes);
                }
            }
            Done::Sent { key, bytes, result } => {
                if let Some(Some(place)) = self.places.get_mut(key as usize) {
                    // A broken connection shows at its next send.
                    let _ = place.connection.put_back(station, bytes, result);
                }
            }
            Done::Ended { .. } | Done::Readable { .. } => {}
        });
        let (ending, left): (Vec<_>, Vec<_>) = self
            .places
            .into_iter()
            .flatten()
            .partition(|place| place.is_ending);
        for place in ending {
            station.close(place.connection);
            common.gone();
        }
        left.into_iter().map(|place| place.connection).collect()
    }
}

/// Linux's `ECANCELED` and `ENOBUFS`: a receive that may be requested again.
const CANCELED: i32 = 125;
const NO_BUFFERS: i32 = 105;

impl<T> RingConnection<T> {
    /// Receives from a connection, unless much of its input waits to be served.
    fn receive_or_not(&mut self, requests: &mut Requests, key: u64, is_waiting: bool) {
        let waits = if is_waiting {
            0
        } else {
            self.connection.left_bytes()
        };
        if self.receives {
            if waits >= BACKLOG_BYTES && !self.is_cancelling {
                self.is_cancelling = true;
                requests.cancel_receive(key);
            }
        } else if waits < BACKLOG_BYTES / 4 && !self.connection.is_ended() {
            self.receives = true;
            requests.receive(self.connection.fd(), key);
        }
    }
}
