//! Threads with connections of their own, and what passes between them: new and moving connections.
//!
//! | field | writer | reader |
//! |---|---|---|
//! | `inbox` | acceptor, giver, governor: under its lock, then wakes | the thread, when woken |
//! | `held` | giver: up, before; thread: down, closing, giving | acceptor, governor: roughly |
//! | `core` | the thread, now and then | the others: roughly |
//! | `waits_by` | the thread, before its first wait | the others |
//! | `spin_ns` | the thread's starter, and the governor | the thread |
//! | `left` | threads that end, under its lock | the stopping thread, when they have ended |

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hearth_sys::descriptor::is_readable;
use hearth_sys::spin::Spin;
use hearth_sys::threading::lock_std;
use socket2::Socket;

use super::threads::Threads;
use crate::connection::Connection;
use crate::poller::Wake;
use crate::service::{Peer, Service};

/// An order to give connections away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// Receiving thread, by its number in the crew.
    pub(crate) to: usize,
    /// Number of connections; all if there are fewer. With [`Which::Mixed`], about as much work as
    /// that number has on average.
    pub(crate) count: usize,
    pub(crate) which: Which,
}

/// Choice of the connections to give away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// A choice that divides the work as evenly as the number.
    Mixed,
    /// Those with the least work.
    Lightest,
}

/// Items waiting for a thread.
pub(super) struct Inbox<T> {
    pub(super) arrivals: Vec<Connection<T>>,
    pub(super) orders: Vec<Order>,
}

impl<T> Default for Inbox<T> {
    fn default() -> Inbox<T> {
        Inbox {
            arrivals: Vec::new(),
            orders: Vec::new(),
        }
    }
}

/// The part of a thread that others see.
pub(super) struct Desk<P, T> {
    pub(super) poller: P,
    inbox: Mutex<Inbox<T>>,
    held: AtomicUsize,
    /// Core of the thread at its last look; `usize::MAX` before.
    core: AtomicUsize,
    /// Descriptor that is readable when something waits for the thread; -1 if there is none.
    waits_by: AtomicI32,
    /// Spinning time before the thread sleeps, in nanoseconds.
    spin_ns: AtomicU64,
}

impl<P: Wake, T> Desk<P, T> {
    pub(super) fn new(poller: P) -> Arc<Desk<P, T>> {
        Arc::new(Desk {
            poller,
            inbox: Mutex::new(Inbox::default()),
            held: AtomicUsize::new(0),
            core: AtomicUsize::new(usize::MAX),
            waits_by: AtomicI32::new(-1),
            spin_ns: AtomicU64::new(0),
        })
    }

    /// Sets the descriptor by which the thread waits.
    pub(super) fn waits_by(&self, descriptor: RawFd) {
        self.waits_by.store(descriptor, Ordering::Relaxed);
    }

    /// Spins as long as the thread should before it sleeps. Returns what was found.
    pub(super) fn spin<R>(&self, look: impl FnMut() -> Option<R>) -> Option<R> {
        Spin::lasting(Duration::from_nanos(self.spin_ns.load(Ordering::Relaxed))).find(look)
    }

    /// Records the thread's core.
    pub(super) fn is_on(&self, core: usize) {
        self.core.store(core, Ordering::Relaxed);
    }

    /// Takes everything from the inbox.
    pub(super) fn take(&self) -> Inbox<T> {
        std::mem::take(&mut *lock_std(&self.inbox))
    }

    /// Counts one connection less.
    pub(super) fn let_go(&self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A desk, whatever its thread waits by.
pub(crate) trait Post<T>: Send + Sync {
    /// Gives connections to the thread and wakes it.
    fn put(&self, connections: Vec<Connection<T>>);

    /// Gives the thread an order and wakes it.
    fn order(&self, order: Order);

    /// Number of the thread's connections, including those on their way.
    fn held(&self) -> usize;

    fn wake(&self);

    /// Sets the thread's spinning time.
    fn set_spin(&self, time: Duration);

    /// True if the thread is on this core and has work that it has not begun, as far as can be
    /// seen: a system call if it is on this core.
    fn is_kept_waiting(&self, core: usize) -> bool;

    /// Takes the connections that the thread will not take any more.
    fn take_arrivals(&self) -> Vec<Connection<T>>;
}

impl<P: Wake, T: Send + 'static> Post<T> for Desk<P, T> {
    fn put(&self, connections: Vec<Connection<T>>) {
        self.held.fetch_add(connections.len(), Ordering::Relaxed);
        lock_std(&self.inbox).arrivals.extend(connections);
        self.poller.wake();
    }

    fn order(&self, order: Order) {
        lock_std(&self.inbox).orders.push(order);
        self.poller.wake();
    }

    fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn wake(&self) {
        self.poller.wake();
    }

    fn set_spin(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.spin_ns.store(ns, Ordering::Relaxed);
    }

    fn is_kept_waiting(&self, core: usize) -> bool {
        let waits_by = self.waits_by.load(Ordering::Relaxed);
        self.core.load(Ordering::Relaxed) == core && waits_by >= 0 && is_readable(waits_by)
    }

    fn take_arrivals(&self) -> Vec<Connection<T>> {
        self.take().arrivals
    }
}

/// Chooses, among entries of work and key, the keys to give away.
pub(super) fn choose(mut there: Vec<(u64, usize)>, order: Order) -> Vec<usize> {
    there.sort_unstable();
    let all = there.len();
    let count = order.count.min(all);
    if order.which == Which::Lightest || count == all {
        return there[..count].iter().map(|(_, key)| *key).collect();
    }
    // From the heaviest on, each goes to the side that lacks more. Idle connections count, too.
    let sum: u64 = there.iter().map(|(worked, _)| *worked).sum();
    let least = sum / all.max(1) as u64 / 8 + 1;
    let share = count as f64 / all as f64;
    let whole = (sum + least * all as u64) as f64;
    let (mut going, mut staying) = (share * whole, (1.0 - share) * whole);
    let mut chosen = Vec::with_capacity(count);
    for (worked, key) in there.into_iter().rev() {
        let weight = (worked + least) as f64;
        if going > staying {
            going -= weight;
            chosen.push(key);
        } else {
            staying -= weight;
        }
    }
    chosen
}

/// All threads that have connections.
pub(crate) struct Crew<T> {
    pub(super) posts: Vec<Arc<dyn Post<T>>>,
    /// Connections left when the threads ended.
    left: Mutex<Vec<Connection<T>>>,
}

impl<T: Send + 'static> Crew<T> {
    pub(super) fn new(posts: Vec<Arc<dyn Post<T>>>) -> Arc<Crew<T>> {
        Arc::new(Crew {
            posts,
            left: Mutex::new(Vec::new()),
        })
    }

    /// Ends a thread, leaving its connections.
    pub(super) fn leave(&self, connections: impl IntoIterator<Item = Connection<T>>) {
        lock_std(&self.left).extend(connections);
    }

    pub(super) fn wake_all(&self) {
        for post in &self.posts {
            post.wake();
        }
    }

    /// All connections, after all threads have ended.
    pub(super) fn take_all(&self) -> Vec<Connection<T>> {
        let mut all = std::mem::take(&mut *lock_std(&self.left));
        for post in &self.posts {
            all.extend(post.take_arrivals());
        }
        all
    }
}

/// The pattern in which each thread keeps the connections given to it.
pub(crate) struct Sharded<T> {
    crew: Arc<Crew<T>>,
    /// Next thread to get a connection.
    turn: AtomicUsize,
}

impl<T: Send + 'static> Sharded<T> {
    pub(super) fn new(crew: Arc<Crew<T>>) -> Sharded<T> {
        Sharded {
            crew,
            turn: AtomicUsize::new(0),
        }
    }
}

impl<S: Service> Threads<S> for Sharded<S::Session> {
    fn adopt(&self, socket: Socket, peer: Peer, second: u32) -> io::Result<()> {
        let posts = &self.crew.posts;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % posts.len();
        posts[turn].put(vec![Connection::new(socket, peer, second)]);
        Ok(())
    }

    fn sweep(&self) {
        self.crew.wake_all();
    }

    fn wake(&self) {
        self.crew.wake_all();
    }

    fn take_all(&self) -> Vec<Connection<S::Session>> {
        self.crew.take_all()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use hearth_sys::eventfd::EventFd;

    use super::*;

    #[test]
    fn a_thread_is_kept_waiting_on_the_core_where_it_is_readable_to_do() {
        let wakeup = EventFd::new().expect("there are descriptors");
        let number = wakeup.as_fd().as_raw_fd();
        let desk: Arc<Desk<EventFd, ()>> = Desk::new(wakeup);
        desk.wake();
        assert!(!desk.is_kept_waiting(1), "nobody knows where it is");
        desk.is_on(1);
        assert!(!desk.is_kept_waiting(1), "it does not wait yet");
        desk.waits_by(number);
        assert!(desk.is_kept_waiting(1));
        assert!(!desk.is_kept_waiting(0));
        desk.poller.take();
        assert!(!desk.is_kept_waiting(1), "there is nothing to do");
    }

    #[test]
    fn work_is_divided_and_not_numbers() {
        let choose = |there: &[u64], count, which| {
            let order = Order {
                to: 1,
                count,
                which,
            };
            let there = there.iter().copied().zip(0..).collect();
            let mut chosen = choose(there, order);
            chosen.sort_unstable();
            chosen
        };
        // The heaviest stays, or goes, alone.
        assert_eq!(
            choose(&[9000, 10, 20, 30, 25], 2, Which::Mixed),
            [1, 2, 3, 4]
        );
        assert_eq!(choose(&[5; 8], 4, Which::Mixed).len(), 4);
        assert_eq!(choose(&[0; 8], 2, Which::Mixed).len(), 2);
        assert_eq!(choose(&[7, 1, 5], 3, Which::Mixed), [0, 1, 2]);
        assert_eq!(choose(&[7, 1, 5], 9, Which::Mixed), [0, 1, 2]);
        assert_eq!(choose(&[7, 1, 5], 2, Which::Lightest), [1, 2]);
        assert!(choose(&[7, 1, 5], 0, Which::Mixed).is_empty());
        assert!(choose(&[], 3, Which::Mixed).is_empty());
    }
}
