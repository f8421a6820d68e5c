//! Leader/Followers: all threads are alike; the leader waits for one event and lets the next lead
//! before it works.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use socket2::Socket;

use super::shared::{After, Shared};
use super::threads::{Starting, Threads, spawn};
use crate::common::Common;
use crate::connection::{Connection, Station};
use crate::counters::{Operation, add};
use crate::poller::Poller;
use crate::service::{Peer, Service};
use hearth_sys::threading::lock_std;

/// Keys of connections that want another turn, taken by any thread without other work.
#[derive(Default)]
struct Turns {
    keys: Mutex<VecDeque<u64>>,
    /// Number of keys. A thread that leads after one was queued sees it, by the leader's lock.
    count: AtomicUsize,
}

impl Turns {
    fn are_there(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    fn push(&self, key: u64) {
        lock_std(&self.keys).push_back(key);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn pop(&self) -> Option<u64> {
        if !self.are_there() {
            return None;
        }
        let key = lock_std(&self.keys).pop_front()?;
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(key)
    }
}

pub(crate) struct Leader<P, S: Service> {
    shared: Arc<Shared<P, S::Session>>,
    common: Arc<Common<S>>,
}

impl<P: Poller, S: Service> Leader<P, S> {
    pub(crate) fn start(
        common: &Arc<Common<S>>,
        starting: &mut Starting,
    ) -> io::Result<Leader<P, S>> {
        let shared = Arc::new(Shared::<P, S::Session>::new(common)?);
        let lead = Arc::new((Mutex::new(()), Turns::default()));
        for number in 0..common.options.threads {
            let (shared, lead) = (shared.clone(), lead.clone());
            starting.add(spawn(common, number, move |common, station| {
                serve(common, station, &shared, &lead.0, &lead.1);
            }));
        }
        Ok(Leader {
            shared,
            common: common.clone(),
        })
    }
}

/// Runs a thread, which leads, then works.
///
/// A thread that has queued a connection for another turn takes one afterwards, unless another
/// thread comes first. Before that it leads if nobody else does, so that connections which always
/// have more to ask hold up neither the others nor the server's end. A leader that leads while a
/// turn waits only looks, and takes that turn.
fn serve<P: Poller, S: Service>(
    common: &Common<S>,
    station: &mut Station<'_, S>,
    shared: &Shared<P, S::Session>,
    lead: &Mutex<()>,
    turns: &Turns,
) {
    let mut reports = shared.poller.reports(1);
    loop {
        let leads = match turns.are_there() {
            true => try_locked(lead),
            false => Some(lock_std(lead)),
        };
        let time = turns.are_there().then_some(Duration::ZERO);
        if common.is_stopping() {
            return;
        }
        if let Some(leads) = leads {
            let event = look(station, shared, &mut reports, time);
            drop(leads);
            if let Some(key) = event {
                add(&station.meter.counts().events, 1);
                take_turn(common, station, shared, turns, key);
            }
        }
        if let Some(key) = turns.pop() {
            take_turn(common, station, shared, turns, key);
        }
    }
}

/// Waits once. Returns the connection that the caller must work on, if any.
fn look<P: Poller, S: Service>(
    station: &Station<'_, S>,
    shared: &Shared<P, S::Session>,
    reports: &mut P::Reports,
    time: Option<Duration>,
) -> Option<u64> {
    let begun = station.meter.begin();
    let mut ready = None;
    let is_woken = shared
        .poller
        .wait(reports, time, |key, flags| ready = Some((key, flags)));
    // A thread at work on it hears of it.
    let ready = ready.filter(|(key, flags)| shared.tell(*key, *flags));
    station.meter.end(Operation::Obtain, begun);
    let counts = station.meter.counts();
    add(&counts.waits, 1);
    add(&counts.rung, u64::from(is_woken));
    ready.map(|(key, _)| key)
}

fn take_turn<P: Poller, S: Service>(
    common: &Common<S>,
    station: &mut Station<'_, S>,
    shared: &Shared<P, S::Session>,
    turns: &Turns,
    key: u64,
) {
    if shared.work(common, station, key) == After::Turn {
        turns.push(key);
    }
}

fn try_locked(lead: &Mutex<()>) -> Option<MutexGuard<'_, ()>> {
    match lead.try_lock() {
        Ok(leads) => Some(leads),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl<P: Poller, S: Service> Threads<S> for Leader<P, S> {
    fn adopt(&self, socket: Socket, peer: Peer, second: u32) -> io::Result<()> {
        self.shared.adopt(socket, peer, second)
    }

    fn sweep(&self) {
        self.shared.sweep(&self.common);
    }

    fn wake(&self) {
        self.shared.poller.wake();
    }

    fn take_all(&self) -> Vec<Connection<S::Session>> {
        self.shared.take_all()
    }
}
