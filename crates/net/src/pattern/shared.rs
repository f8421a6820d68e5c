//! Connections for which any thread may work: what Half-Sync/Half-Async and Leader/Followers have in common.

use std::io;

use socket2::Socket;

use super::slots::Slots;
use crate::connection::{Connection, Flags, Station, Waits};
use crate::counters::{Operation, add};
use crate::poller::{Poller, Waiters};
use crate::server::{Common, locked};
use crate::service::{Peer, Service};

/// How often one is worked on in a row because something was told meanwhile, before others have their turn.
const ROUNDS: usize = 16;

/// More than descriptors of a process: slots are not made for a limit that means none.
const CONNECTIONS_MAX: usize = 1 << 24;

pub(super) struct Shared<P, T> {
    pub(super) poller: P,
    slots: Slots<T>,
}

/// What is to be done with a connection that was worked on.
#[derive(PartialEq, Eq)]
pub(super) enum After {
    /// Nothing: it is waited for, or gone.
    Settled,
    /// It has had its turn and wants another; the caller has it still.
    Turn,
}

impl<P: Poller, T: Send + 'static> Shared<P, T> {
    pub(super) fn new<S: Service<Session = T>>(common: &Common<S>) -> io::Result<Shared<P, T>> {
        Ok(Shared {
            poller: P::new(
                common.options.mechanism_or_edge(),
                Waiters::of(common.options.pattern),
            )?,
            // Those that are being closed have a slot and are counted no more.
            slots: Slots::new(common.options.connections_max.min(CONNECTIONS_MAX) + 256),
        })
    }

    /// An event: true if the caller has to see to the connection.
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
        let mut place = locked(&slot.connection);
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
            // It is silent: nothing can have been told. Once it is armed, it is somebody else's.
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
            self.poller.remove(connection.fd(), key);
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
        // Whoever is told of it waits for the lock until it is there.
        let mut place = locked(&slot.connection);
        let connection = place.insert(Connection::new(socket, peer, second));
        self.poller
            .add(connection.fd(), key as u64)
            .inspect_err(|_| {
                *place = None;
                self.slots.give_back(key);
            })
    }

    /// Ends the connections that have been silent for too long; whoever works for them then closes them.
    pub(super) fn sweep<S: Service<Session = T>>(&self, common: &Common<S>) {
        let Some(idle) = common.idle_seconds() else {
            return;
        };
        let second = common.second();
        for slot in self.slots.all() {
            // One that is worked on, or waits for that, is not silent.
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
            .filter_map(|slot| locked(&slot.connection).take())
            .collect()
    }
}
