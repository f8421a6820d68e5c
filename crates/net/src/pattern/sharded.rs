//! Sharded: each thread waits for connections of its own. The threads share only the inbox through
//! which connections come.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::crew::{Crew, Desk, Order, Post, Sharded, choose};
use super::threads::{Starting, spawn};
use super::yielding::Yielding;
use crate::choices::Mechanism;
use crate::common::Common;
use crate::connection::{Connection, Flags, Station, Waits};
use crate::counters::{Operation, add};
use crate::poller::{Poller, Waiters};
use crate::service::Service;

/// Most events of one wait.
const EVENTS: usize = 128;

/// A thread to be started, which waits for readiness.
pub(super) type ByPoller<P, T> = Arc<Desk<P, T>>;

pub(super) fn desk<P: Poller, T>(mechanism: Mechanism) -> io::Result<ByPoller<P, T>> {
    Ok(Desk::new(P::new(mechanism, Waiters::Owner)?))
}

/// Starts the thread with this number in the crew.
pub(super) fn start<P: Poller, S: Service>(
    common: &Arc<Common<S>>,
    number: usize,
    desk: ByPoller<P, S::Session>,
    crew: &Arc<Crew<S::Session>>,
) -> io::Result<JoinHandle<()>> {
    let crew = crew.clone();
    spawn(common, number, move |common, station| {
        if let Some(descriptor) = desk.poller.descriptor() {
            desk.waits_by(descriptor);
        }
        let mut shard = Shard {
            desk: &desk,
            yielding: Yielding::new(&crew, number),
            crew: &crew,
            connections: Vec::new(),
            free: Vec::new(),
            turns: Vec::new(),
            swept: station.second(),
        };
        shard.run(common, station);
        crew.leave(shard.connections.into_iter().flatten());
    })
}

impl<T: Send + 'static> Sharded<T> {
    pub(crate) fn start<P: Poller, S: Service<Session = T>>(
        common: &Arc<Common<S>>,
        starting: &mut Starting,
    ) -> io::Result<Sharded<T>> {
        let desks: Vec<ByPoller<P, T>> = (0..common.options.threads)
            .map(|_| desk(common.options.mechanism_or_edge()))
            .collect::<io::Result<_>>()?;
        let posts = desks.iter().map(|desk| desk.clone() as Arc<dyn Post<T>>);
        let crew = Crew::new(posts.collect());
        for (number, desk) in desks.into_iter().enumerate() {
            desk.set_spin(common.options.spin);
            starting.add(start(common, number, desk, &crew));
        }
        Ok(Sharded::new(crew))
    }
}

/// A thread's own state.
struct Shard<'a, P, T> {
    desk: &'a Desk<P, T>,
    yielding: Yielding<T>,
    crew: &'a Crew<T>,
    connections: Vec<Option<Connection<T>>>,
    free: Vec<usize>,
    /// Connections that wait for their next turn.
    turns: Vec<usize>,
    /// Second of the last look for silent connections.
    swept: u32,
}

impl<P: Poller, T: Send + 'static> Shard<'_, P, T> {
    fn run<S: Service<Session = T>>(&mut self, common: &Common<S>, station: &mut Station<'_, S>) {
        let desk = self.desk;
        let mut reports = desk.poller.reports(EVENTS);
        let mut events = Vec::with_capacity(EVENTS);
        let mut turns = Vec::new();
        loop {
            self.yielding.look(desk);
            let begun = station.meter.begin_wait();
            let is_woken = self.wait(&mut reports, &mut events);
            station.meter.end_wait(begun);
            let counts = station.meter.counts();
            add(&counts.waits, 1);
            add(&counts.events, events.len() as u64);
            std::mem::swap(&mut turns, &mut self.turns);
            for (key, flags) in events.drain(..) {
                self.hear(common, station, key, flags);
            }
            for key in turns.drain(..) {
                self.take_turn(common, station, key);
            }
            if is_woken {
                add(&counts.rung, 1);
                if common.is_stopping() {
                    return;
                }
                let inbox = desk.take();
                self.adopt(common, station, inbox.arrivals);
                for order in inbox.orders {
                    self.give(station, order);
                }
                self.sweep(common, station);
            }
        }
    }

    /// Waits, unless a connection waits for its turn. True if the thread was woken.
    fn wait(&self, reports: &mut P::Reports, events: &mut Vec<(usize, Flags)>) -> bool {
        let mut look = |time| {
            let each = |key, flags| events.push((key as usize, flags));
            let is_woken = self.desk.poller.wait(reports, time, each);
            (is_woken, is_woken || !events.is_empty())
        };
        if !self.turns.is_empty() {
            return look(Some(Duration::ZERO)).0;
        }
        let found = self.desk.spin(|| match look(Some(Duration::ZERO)) {
            (is_woken, true) => Some(is_woken),
            (_, false) => None,
        });
        found.unwrap_or_else(|| look(None).0)
    }

    /// Handles an event. A connection queued for a turn has it then, not now: one that always has
    /// more to say would otherwise have ever more turns.
    fn hear<S: Service<Session = T>>(
        &mut self,
        common: &Common<S>,
        station: &mut Station<'_, S>,
        key: usize,
        flags: Flags,
    ) {
        match self.connections[key].as_mut() {
            Some(connection) if connection.has_turn => connection.hear(flags),
            _ => self.drive(common, station, key, flags),
        }
    }

    fn take_turn<S: Service<Session = T>>(
        &mut self,
        common: &Common<S>,
        station: &mut Station<'_, S>,
        key: usize,
    ) {
        // Another connection may have its place.
        let Some(connection) = self.connections[key].as_mut().filter(|one| one.has_turn) else {
            return;
        };
        connection.has_turn = false;
        self.drive(common, station, key, Flags::default());
    }

    fn drive<S: Service<Session = T>>(
        &mut self,
        common: &Common<S>,
        station: &mut Station<'_, S>,
        key: usize,
        flags: Flags,
    ) {
        // It closed meanwhile; if another has its place, that one looks in vain.
        let Some(connection) = self.connections[key].as_mut() else {
            return;
        };
        let begun = station.meter.share();
        let mut waits = connection.drive(station, flags);
        connection.worked += station.meter.share().saturating_sub(begun);
        if waits == Waits::ForTurn {
            connection.has_turn = true;
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
            self.desk.poller.remove(connection.fd());
            station.close(connection);
            self.free.push(key);
            self.desk.let_go();
            common.gone();
        }
    }

    fn adopt<S: Service<Session = T>>(
        &mut self,
        common: &Common<S>,
        station: &mut Station<'_, S>,
        arrivals: Vec<Connection<T>>,
    ) {
        for connection in arrivals {
            let key = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let added = self.desk.poller.add(connection.fd(), key as u64);
            // The first request is often there already. Input from before a move is reported by the
            // wait.
            let flags = match connection.is_new() {
                true => Flags::READ,
                false => Flags::default(),
            };
            let is_due = connection.is_new() || connection.has_more_to_do();
            self.connections[key] = Some(connection);
            match added {
                Ok(()) if is_due => self.drive(common, station, key, flags),
                Ok(()) => {}
                Err(_) => self.close(common, station, key),
            }
        }
    }

    /// Gives connections away, in whatever state they are: no other thread uses them.
    fn give<S: Service<Session = T>>(&mut self, station: &Station<'_, S>, order: Order) {
        let mut there = Vec::new();
        for (key, place) in self.connections.iter_mut().enumerate() {
            if let Some(connection) = place {
                // Old work counts for less.
                connection.worked /= 2;
                there.push((connection.worked, key));
            }
        }
        let mut moving = Vec::new();
        for key in choose(there, order) {
            if let Some(mut connection) = self.connections[key].take() {
                self.desk.poller.remove(connection.fd());
                self.free.push(key);
                self.desk.let_go();
                connection.travel();
                moving.push(connection);
            }
        }
        add(&station.meter.counts().moved, moving.len() as u64);
        if !moving.is_empty() {
            self.crew.posts[order.to].put(moving);
        }
    }

    /// Closes connections that have been silent for too long.
    fn sweep<S: Service<Session = T>>(&mut self, common: &Common<S>, station: &mut Station<'_, S>) {
        let second = station.second();
        let Some(idle) = common.idle_seconds() else {
            return;
        };
        if std::mem::replace(&mut self.swept, second) == second {
            return;
        }
        for key in 0..self.connections.len() {
            let is_silent = self.connections[key].as_ref().is_some_and(|connection| {
                second.saturating_sub(connection.active) > idle && !connection.is_kept_waiting()
            });
            if is_silent {
                add(&station.meter.counts().idled, 1);
                self.close(common, station, key);
            }
        }
    }
}
