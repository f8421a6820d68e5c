//! Threads that have connections of their own, and what passes between them: new connections, and such as move.
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | `inbox` | who accepts, who gives a connection away, who orders: under its lock, then rings | the thread, under its lock, when it was rung |
//! | `held` | who puts a connection: up, before it is there; the thread: down, when it closes one or has begun to give it away | who accepts, who orders: roughly |
//! | `core` | the thread, now and then | the others: roughly |
//! | `waits_by` | the thread, before it waits for the first time | the others |
//! | `spin_ns` | who starts the thread, and who governs | the thread |
//! | `left` | threads that end, under its lock | who stops the server, when they have ended |

use std::hint::spin_loop;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hearth_sys::descriptor::is_readable;
use socket2::Socket;

use super::Threads;
use crate::connection::Connection;
use crate::poller::Wake;
use crate::server::locked;
use crate::service::{Peer, Service};

/// A thread is to give connections away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// To which thread of the crew.
    pub(crate) to: usize,
    /// How many; all that there are if there are fewer. Of [`Which::Mixed`], about as much work as for so many.
    pub(crate) count: usize,
    pub(crate) which: Which,
}

/// Which connections are given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Such that work is divided as numbers would divide it if all asked for as much.
    Mixed,
    /// Those that have asked for least.
    Lightest,
}

/// What is waiting for a thread.
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

/// What others see of a thread.
pub(super) struct Desk<P, T> {
    pub(super) poller: P,
    inbox: Mutex<Inbox<T>>,
    held: AtomicUsize,
    /// Where the thread was when it looked last; `usize::MAX` before.
    core: AtomicUsize,
    /// The descriptor by which one sees that something waits for the thread; -1 if there is none.
    waits_by: AtomicI32,
    /// Before the thread sleeps it looks for so long, in nanoseconds.
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

    /// The thread will wait by this descriptor.
    pub(super) fn waits_by(&self, descriptor: RawFd) {
        self.waits_by.store(descriptor, Ordering::Relaxed);
    }

    /// Looks again and again for as long as the thread is to before it sleeps. What was found, if something was.
    pub(super) fn spin<R>(&self, mut look: impl FnMut() -> Option<R>) -> Option<R> {
        let time = match self.spin_ns.load(Ordering::Relaxed) {
            0 => return None,
            ns => Duration::from_nanos(ns),
        };
        let begun = Instant::now();
        while begun.elapsed() < time {
            let found = look();
            if found.is_some() {
                return found;
            }
            spin_loop();
        }
        None
    }

    /// The thread is on this core.
    pub(super) fn is_on(&self, core: usize) {
        self.core.store(core, Ordering::Relaxed);
    }

    /// What has come.
    pub(super) fn take(&self) -> Inbox<T> {
        std::mem::take(&mut *locked(&self.inbox))
    }

    /// The thread has one connection less.
    pub(super) fn let_go(&self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A desk, whatever its thread waits by.
pub(crate) trait Post<T>: Send + Sync {
    /// Connections for the thread, which is woken.
    fn put(&self, connections: Vec<Connection<T>>);

    /// What the thread is to do besides; it is woken.
    fn order(&self, order: Order);

    /// How many connections the thread has, those included that are on their way.
    fn held(&self) -> usize;

    fn ring(&self);

    /// From now on the thread looks for so long before it sleeps.
    fn set_spin(&self, time: Duration);

    /// On this core there is something for the thread to do that it has not begun, as far as one can see: a system call if it is
    /// on this core at all.
    fn is_kept_waiting(&self, core: usize) -> bool;

    /// What the thread has not taken any more.
    fn take_arrivals(&self) -> Vec<Connection<T>>;
}

impl<P: Wake, T: Send + 'static> Post<T> for Desk<P, T> {
    fn put(&self, connections: Vec<Connection<T>>) {
        self.held.fetch_add(connections.len(), Ordering::Relaxed);
        locked(&self.inbox).arrivals.extend(connections);
        self.poller.ring();
    }

    fn order(&self, order: Order) {
        locked(&self.inbox).orders.push(order);
        self.poller.ring();
    }

    fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn ring(&self) {
        self.poller.ring();
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

/// Which of those that are there, each with the work for it and its key, are to be given away.
pub(super) fn choose(mut there: Vec<(u64, usize)>, order: Order) -> Vec<usize> {
    there.sort_unstable();
    let all = there.len();
    let count = order.count.min(all);
    if order.which == Which::Lightest || count == all {
        return there[..count].iter().map(|(_, key)| *key).collect();
    }
    // From the heaviest on, each to the side that is still short of more. Those that have asked for nothing count, too.
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
    /// What was left when the threads ended.
    left: Mutex<Vec<Connection<T>>>,
}

impl<T: Send + 'static> Crew<T> {
    pub(super) fn new(posts: Vec<Arc<dyn Post<T>>>) -> Arc<Crew<T>> {
        Arc::new(Crew {
            posts,
            left: Mutex::new(Vec::new()),
        })
    }

    /// A thread ends.
    pub(super) fn leave(&self, connections: impl IntoIterator<Item = Connection<T>>) {
        locked(&self.left).extend(connections);
    }

    pub(super) fn ring_all(&self) {
        for post in &self.posts {
            post.ring();
        }
    }

    /// All connections, when all threads have ended.
    pub(super) fn take_all(&self) -> Vec<Connection<T>> {
        let mut all = std::mem::take(&mut *locked(&self.left));
        for post in &self.posts {
            all.extend(post.take_arrivals());
        }
        all
    }
}

/// Each thread keeps the connections that it was given.
pub(crate) struct Sharded<T> {
    crew: Arc<Crew<T>>,
    /// Whose turn it is to get a connection.
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
        self.crew.ring_all();
    }

    fn wake(&self) {
        self.crew.ring_all();
    }

    fn take_all(&self) -> Vec<Connection<S::Session>> {
        self.crew.take_all()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use hearth_sys::bell::Bell;

    use super::*;

    #[test]
    fn a_thread_is_kept_waiting_on_the_core_where_it_is_readable_to_do() {
        let bell = Bell::new().expect("there are descriptors");
        let number = bell.as_fd().as_raw_fd();
        let desk: Arc<Desk<Bell, ()>> = Desk::new(bell);
        desk.ring();
        assert!(!desk.is_kept_waiting(1), "nobody knows where it is");
        desk.is_on(1);
        assert!(!desk.is_kept_waiting(1), "it does not wait yet");
        desk.waits_by(number);
        assert!(desk.is_kept_waiting(1));
        assert!(!desk.is_kept_waiting(0));
        desk.poller.hear();
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
        // Who asks for most stays, or goes, alone.
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
