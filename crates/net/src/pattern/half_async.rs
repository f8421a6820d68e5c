//! Half-Sync/Half-Async: one thread waits for all connections and queues the ready ones; the others
//! work.

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use socket2::Socket;

use super::shared::{After, Shared};
use super::threads::{Starting, Threads, spawn};
use crate::common::Common;
use crate::connection::{Connection, Station};
use crate::counters::{Operation, add};
use crate::poller::Poller;
use crate::service::{Peer, Service};
use hearth_sys::threading::lock_std;

/// Most events of one wait.
const EVENTS: usize = 128;

/// Keys of connections with work. One lock, as in the source.
struct Queue {
    keys: Mutex<VecDeque<u64>>,
    filled: Condvar,
}

impl Queue {
    fn push(&self, key: u64) {
        lock_std(&self.keys).push_back(key);
        self.filled.notify_one();
    }

    /// Waits for a key. None if the server stops.
    fn pop<S: Service>(&self, common: &Common<S>, station: &Station<'_, S>) -> Option<u64> {
        let mut begun = station.meter.begin();
        let mut keys = lock_std(&self.keys);
        loop {
            if common.is_stopping() {
                return None;
            }
            if let Some(key) = keys.pop_front() {
                station.meter.end(Operation::Dequeue, begun);
                return Some(key);
            }
            keys = self
                .filled
                .wait(keys)
                .unwrap_or_else(PoisonError::into_inner);
            begun = station.meter.begin();
        }
    }
}

pub(crate) struct HalfAsync<P, S: Service> {
    shared: Arc<Shared<P, S::Session>>,
    queue: Arc<Queue>,
    common: Arc<Common<S>>,
    _service: PhantomData<S>,
}

impl<P: Poller, S: Service> HalfAsync<P, S> {
    pub(crate) fn start(
        common: &Arc<Common<S>>,
        starting: &mut Starting,
    ) -> io::Result<HalfAsync<P, S>> {
        let shared = Arc::new(Shared::<P, S::Session>::new(common)?);
        let queue = Arc::new(Queue {
            keys: Mutex::new(VecDeque::new()),
            filled: Condvar::new(),
        });
        let (for_waiter, keys) = (shared.clone(), queue.clone());
        starting.add(spawn(common, 0, move |common, station| {
            wait(common, station, &for_waiter, &keys);
        }));
        for number in 1..common.options.threads {
            let (shared, queue) = (shared.clone(), queue.clone());
            starting.add(spawn(common, number, move |common, station| {
                while let Some(key) = queue.pop(common, station) {
                    if shared.work(common, station, key) == After::Turn {
                        queue.push(key);
                    }
                }
            }));
        }
        Ok(HalfAsync {
            shared,
            queue,
            common: common.clone(),
            _service: PhantomData,
        })
    }
}

/// Runs the thread that waits.
fn wait<P: Poller, S: Service>(
    common: &Common<S>,
    station: &mut Station<'_, S>,
    shared: &Shared<P, S::Session>,
    queue: &Queue,
) {
    let mut reports = shared.poller.reports(EVENTS);
    let mut events = Vec::with_capacity(EVENTS);
    while !common.is_stopping() {
        let begun = station.meter.begin();
        let is_woken = shared
            .poller
            .wait(&mut reports, None, |key, flags| events.push((key, flags)));
        station.meter.end(Operation::Obtain, begun);
        let counts = station.meter.counts();
        add(&counts.waits, 1);
        add(&counts.rung, u64::from(is_woken));
        add(&counts.events, events.len() as u64);
        for (key, flags) in events.drain(..) {
            if shared.tell(key, flags) {
                let begun = station.meter.begin();
                queue.push(key);
                station.meter.end(Operation::Enqueue, begun);
            }
        }
    }
}

impl<P: Poller, S: Service> Threads<S> for HalfAsync<P, S> {
    fn adopt(&self, socket: Socket, peer: Peer, second: u32) -> io::Result<()> {
        self.shared.adopt(socket, peer, second)
    }

    fn sweep(&self) {
        self.shared.sweep(&self.common);
    }

    fn wake(&self) {
        // Under the lock: a thread that has just looked at the flag waits by now.
        drop(lock_std(&self.queue.keys));
        self.queue.filled.notify_all();
        self.shared.poller.wake();
    }

    fn take_all(&self) -> Vec<Connection<S::Session>> {
        self.shared.take_all()
    }
}
