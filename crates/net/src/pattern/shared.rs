//! Connections for any thread: the common part of Half-Sync/Half-Async and Leader/Followers.

use std::io;

use socket2::Socket;

use super::slots::ConnectionSlots;
use crate::common::Common;
use crate::connection::{Connection, Flags, Station, Waits};
use crate::counters::{Operation, add};
use crate::poller::{Poller, Waiters};
use crate::service::{Peer, Service};
use hearth_sys::threading::lock_std;

/// Times in a row that a connection is worked on because of new events, before others have their
/// turn.
const ROUNDS: usize = 16;

/// More than the descriptors of a process: no slots are made for a limit that is none.
const CONNECTIONS_MAX: usize = 1 << 24;

pub(super) struct Shared<P, T> {
    pub(super) poller: P,
    slots: ConnectionSlots<T>,
}

/// The next action after work on a connection.
#[derive(PartialEq, Eq)]
pub(super) enum After {
    /// Nothing: it is waited for, or closed.
    Settled,
    /// It wants another turn; the caller still has it.
    Turn,
}

impl<P: Poller, T: Send + 'static> Shared<P, T> {
    pub(super) fn new<S: Service<Session = T>>(common: &Common<S>) -> io::Result<Shared<P, T>> {
        Ok(Shared {
            poller: P::new(
                common.options.mechanism_or_edge(),
                Waiters::of(common.options.pattern),
            )?,
            // Connections being closed have a slot but are no longer counted.
            slots: ConnectionSlots::new(common.options.connections_max.min(CONNECTIONS_MAX) + 256),
        })
    }

    /// Records an event. True if the caller must work on the connection.
    pub(super) fn tell(&self, key: u64, flags: Flags) -> bool {
        self.slots.get(key as usize).tell(flags)
    }

    /// Works on a connection that the caller has.
    pub(super) fn work<S: Service<Session = T>>(
        &self,
        common: &Common<S>,
        station: &mut Station<'_, S>,
        key: u64,
    ) -> After {
        let slot = self.slots.get(key as usize);
        let mut place = lock_std(&slot.connection);
        for round in 1.. {
            let told = slot.take_told();
            let Some(connection) = place.as_mut() else {
                slot.reset();
                return After::Settled;
            };
            let waits = connection.drive(station, told);
            match waits {
                Waits::ForTurn => return After::Turn,
                Waits::ForEver => break,
                Waits::ToRead | Waits::ToWrite => {}
            }
            let before = std::mem::replace(&mut connection.armed, waits);
            if self.poller.tells_meanwhile() {
                if slot.leave() {
                    return After::Settled;
                }
                if round == ROUNDS {
                    return After::Turn;
                }
                continue;
            }
            // It is silent: there can have been no event. Once armed, it is another thread's.
            slot.reset();
            let begun = station.meter.begin();
            match self.poller.settle(connection.fd(), key, before, waits) {
                Ok(true) => {
                    station.meter.end(Operation::Reactivate, begun);
                    add(&station.meter.counts().rearmed, 1);
                    return After::Settled;
                }
                Ok(false) => return After::Settled,
                Err(_) => break,
            }
        }
        if let Some(connection) = place.take() {
            self.poller.remove(connection.fd());
            station.close(connection);
            slot.reset();
            drop(place);
            self.slots.give_back(key as usize);
            common.gone();
        }
        After::Settled
    }

    pub(super) fn adopt(&self, socket: Socket, peer: Peer, second: u32) -> io::Result<()> {
        let Some(key) = self.slots.take() else {
            return Err(io::Error::other("there is no slot left"));
        };
        let slot = self.slots.get(key);
        // A thread told of it waits for the lock until it is there.
        let mut place = lock_std(&slot.connection);
        let connection = place.insert(Connection::new(socket, peer, second));
        self.poller
            .add(connection.fd(), key as u64)
            .inspect_err(|_| {
                *place = None;
                self.slots.give_back(key);
            })
    }

    /// Shuts down connections that have been silent for too long; the next thread to work on them
    /// closes them.
    pub(super) fn sweep<S: Service<Session = T>>(&self, common: &Common<S>) {
        let Some(idle) = common.idle_seconds() else {
            return;
        };
        let second = common.second();
        for slot in self.slots.all() {
            // A connection at work, or waiting for that, is not silent.
            let Ok(place) = slot.connection.try_lock() else {
                continue;
            };
            let silent = place.as_ref().filter(|connection| {
                second.saturating_sub(connection.active) > idle
                    && !slot.is_busy()
                    && !connection.is_kept_waiting()
            });
            if let Some(connection) = silent {
                add(&common.acceptors_desk().counts.idled, 1);
                // At worst it is gone already.
                let _ = connection.socket.shutdown(std::net::Shutdown::Both);
            }
        }
    }

    pub(super) fn take_all(&self) -> Vec<Connection<T>> {
        self.slots
            .all()
            .filter_map(|slot| lock_std(&slot.connection).take())
            .collect()
    }
}
