//! Each thread waits for connections of its own: nothing is shared but the inbox, by which new ones come.

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::Socket;

use super::{Threads, spawn};
use crate::connection::{Connection, Flags, Station, Waits};
use crate::counters::{Operation, add};
use crate::poller::{Poller, Waiters, Wake};
use crate::server::{Common, locked};
use crate::service::{Peer, Service};

/// How many events one wait gives.
const EVENTS: usize = 128;

/// What others see of a thread.
pub(super) struct Desk<P> {
    pub(super) poller: P,
    inbox: Mutex<Vec<(Socket, Peer)>>,
}

impl<P: Wake> Desk<P> {
    pub(super) fn new(poller: P) -> Arc<Desk<P>> {
        Arc::new(Desk {
            poller,
            inbox: Mutex::new(Vec::new()),
        })
    }

    /// Connections that are new.
    pub(super) fn take_new(&self) -> Vec<(Socket, Peer)> {
        std::mem::take(&mut *locked(&self.inbox))
    }
}

/// Where threads that end leave their connections.
pub(super) type Leavings<T> = Arc<Mutex<Vec<Connection<T>>>>;

pub(crate) struct Sharded<P, S: Service> {
    desks: Vec<Arc<Desk<P>>>,
    /// Whose turn it is to get a connection.
    turn: AtomicUsize,
    /// What was left when the threads ended.
    left: Leavings<S::Session>,
    _service: PhantomData<S>,
}

impl<P: Wake, S: Service> Sharded<P, S> {
    pub(super) fn new(desks: Vec<Arc<Desk<P>>>, left: Leavings<S::Session>) -> Sharded<P, S> {
        Sharded {
            desks,
            turn: AtomicUsize::new(0),
            left,
            _service: PhantomData,
        }
    }
}

impl<P: Poller, S: Service> Sharded<P, S> {
    pub(crate) fn start(
        common: &Arc<Common<S>>,
        threads: &mut Vec<JoinHandle<()>>,
    ) -> io::Result<Sharded<P, S>> {
        let left = Leavings::default();
        let mut desks = Vec::new();
        for number in 0..common.options.threads {
            let desk = Desk::new(P::new(common.options.mechanism, Waiters::Owner)?);
            desks.push(desk.clone());
            let left = left.clone();
            threads.push(spawn(common, number, move |common, station| {
                let mut shard = Shard {
                    desk: &desk,
                    connections: Vec::new(),
                    free: Vec::new(),
                    turns: Vec::new(),
                    swept: station.second(),
                };
                shard.run(common, station);
                let connections = shard.connections.into_iter().flatten();
                locked(&left).extend(connections);
            })?);
        }
        Ok(Sharded::new(desks, left))
    }
}

impl<P: Wake, S: Service> Threads<S> for Sharded<P, S> {
    fn adopt(&self, socket: Socket, peer: Peer) -> io::Result<()> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.desks.len();
        let desk = &self.desks[turn];
        locked(&desk.inbox).push((socket, peer));
        desk.poller.ring();
        Ok(())
    }

    fn sweep(&self) {
        self.wake();
    }

    fn wake(&self) {
        for desk in &self.desks {
            desk.poller.ring();
        }
    }

    fn take_all(&self) -> Vec<Connection<S::Session>> {
        let mut all = std::mem::take(&mut *locked(&self.left));
        for desk in &self.desks {
            all.extend(
                desk.take_new()
                    .into_iter()
                    .map(|(socket, peer)| Connection::new(socket, peer, 0)),
            );
        }
        all
    }
}

/// What a thread has to itself.
struct Shard<'a, P, T> {
    desk: &'a Desk<P>,
    connections: Vec<Option<Connection<T>>>,
    free: Vec<usize>,
    /// Those that wait for their next turn.
    turns: Vec<usize>,
    /// The second in which silent ones were looked for.
    swept: u32,
}

impl<P: Poller, T: Send + 'static> Shard<'_, P, T> {
    fn run<S: Service<Session = T>>(&mut self, common: &Common<S>, station: &mut Station<'_, S>) {
        let desk = self.desk;
        let mut reports = desk.poller.reports(EVENTS);
        let mut events = Vec::with_capacity(EVENTS);
        let mut turns = Vec::new();
        loop {
            let time = (!self.turns.is_empty()).then_some(Duration::ZERO);
            let begun = station.meter.begin();
            let is_rung = desk.poller.wait(&mut reports, time, |key, flags| {
                events.push((key as usize, flags))
            });
            station.meter.end(Operation::Obtain, begun);
            let counts = station.meter.counts();
            add(&counts.waits, 1);
            add(&counts.events, events.len() as u64);
            for (key, flags) in events.drain(..) {
                self.drive(common, station, key, flags);
            }
            std::mem::swap(&mut turns, &mut self.turns);
            for key in turns.drain(..) {
                self.drive(common, station, key, Flags::default());
            }
            if is_rung {
                add(&counts.rung, 1);
                if common.is_stopping() {
                    return;
                }
                self.adopt(common, station);
                self.sweep(common, station);
            }
        }
    }

    fn drive<S: Service<Session = T>>(
        &mut self,
        common: &Common<S>,
        station: &mut Station<'_, S>,
        key: usize,
        flags: Flags,
    ) {
        // One that went meanwhile; if another has its place, that one looks in vain.
        let Some(connection) = self.connections[key].as_mut() else {
            return;
        };
        let mut waits = connection.drive(station, flags);
        if waits == Waits::ForTurn {
            self.turns.push(key);
            return;
        }
        if waits != Waits::ForEver {
            let begun = station.meter.begin();
            let before = std::mem::replace(&mut connection.armed, waits);
            let poller = &self.desk.poller;
            match poller.settle(connection.fd(), key as u64, before, waits) {
                Ok(true) => {
                    station.meter.end(Operation::Reactivate, begun);
                    add(&station.meter.counts().rearmed, 1);
                }
                Ok(false) => {}
                Err(_) => waits = Waits::ForEver,
            }
        }
        if waits == Waits::ForEver {
            self.close(common, station, key);
        }
    }

    fn close<S: Service<Session = T>>(
        &mut self,
        common: &Common<S>,
        station: &mut Station<'_, S>,
        key: usize,
    ) {
        if let Some(connection) = self.connections[key].take() {
            self.desk.poller.remove(connection.fd(), key as u64);
            station.close(connection);
            self.free.push(key);
            common.gone();
        }
    }

    fn adopt<S: Service<Session = T>>(&mut self, common: &Common<S>, station: &mut Station<'_, S>) {
        for (socket, peer) in self.desk.take_new() {
            let connection = Connection::new(socket, peer, station.second());
            let key = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let added = self.desk.poller.add(connection.fd(), key as u64);
            self.connections[key] = Some(connection);
            match added {
                // Its first request is often there already.
                Ok(()) => self.drive(common, station, key, Flags::READ),
                Err(_) => self.close(common, station, key),
            }
        }
    }

    /// Closes those that have been silent for too long.
    fn sweep<S: Service<Session = T>>(&mut self, common: &Common<S>, station: &mut Station<'_, S>) {
        let second = station.second();
        let Some(idle) = common.idle_seconds() else {
            return;
        };
        if std::mem::replace(&mut self.swept, second) == second {
            return;
        }
        for key in 0..self.connections.len() {
            let is_silent = self.connections[key]
                .as_ref()
                .is_some_and(|connection| second.saturating_sub(connection.active) > idle);
            if is_silent {
                add(&station.meter.counts().idled, 1);
                self.close(common, station, key);
            }
        }
    }
}
