//! `io_uring` as a poller: multishot polls, reported as edges.
//!
//! | field | writer | reader |
//! |---|---|---|
//! | `changes` | who adds or removes, under its lock | the waiter, likewise, before each wait |
//! | `waits` | waiter: true before reading `changes`, false after | who changes: wakes if true |
//! | `waiting` | the waiter, under its lock, which no other thread wants | the same |
//!
//! Only the waiter makes requests, as the kernel does the work for a request in the thread that
//! made it. `waits` is sequentially consistent with the lock of `changes`: either the waiter sees
//! the change, or the thread that made it sees that another waits.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hearth_sys::eventfd::EventFd;
use hearth_sys::threading::lock_std;
use hearth_sys::uring;
use socket2::SockRef;

use super::{Poller, Waiters, Wake};
use crate::choices::Mechanism;
use crate::connection::{Flags, Waits};

/// Key of the wake-up descriptor; not the ring's own.
const WAKEUP: u64 = u64::MAX - 1;
/// Pause of a thread whose ring the kernel refuses for a moment.
const REFUSED_WAIT: Duration = Duration::from_millis(1);

pub(crate) struct Ring {
    changes: Mutex<Vec<Change>>,
    waits: AtomicBool,
    waiting: Mutex<Waiting>,
    wakeup: EventFd,
}

enum Change {
    Add { of: RawFd, key: u64 },
    Remove { key: u64 },
}

/// State of the waiter.
struct Waiting {
    polls: uring::Polls,
    /// Polled descriptors, by key.
    polled: Vec<Option<RawFd>>,
    changes: Vec<Change>,
}

impl Waiting {
    fn change(&mut self, change: &Change) {
        let (key, of) = match *change {
            Change::Add { of, key } => {
                self.polls.add(of, key);
                (key as usize, Some(of))
            }
            Change::Remove { key } => {
                self.polls.remove(key);
                (key as usize, None)
            }
        };
        if self.polled.len() <= key {
            self.polled.resize(key + 1, None);
        }
        self.polled[key] = of;
    }
}

impl Ring {
    fn tell(&self, change: Change) {
        lock_std(&self.changes).push(change);
        if self.waits.load(Ordering::SeqCst) {
            self.wakeup.notify();
        }
    }
}

impl Poller for Ring {
    /// Most events of a wait.
    type Reports = usize;

    fn new(_: Mechanism, waiters: Waiters) -> io::Result<Ring> {
        let mut polls = uring::Polls::new(match waiters {
            Waiters::Owner | Waiters::One => uring::Waiters::One,
            Waiters::Turns => uring::Waiters::Turns,
        })?;
        let wakeup = EventFd::new()?;
        polls.add(wakeup.as_fd().as_raw_fd(), WAKEUP);
        Ok(Ring {
            changes: Mutex::new(Vec::new()),
            waits: AtomicBool::new(false),
            waiting: Mutex::new(Waiting {
                polls,
                polled: Vec::new(),
                changes: Vec::new(),
            }),
            wakeup,
        })
    }

    fn reports(&self, most: usize) -> usize {
        most
    }

    fn add(&self, of: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        let of = of.as_raw_fd();
        self.tell(Change::Add { of, key });
        Ok(())
    }

    fn settle(&self, _: BorrowedFd<'_>, _: u64, _: Waits, _: Waits) -> io::Result<bool> {
        Ok(false)
    }

    fn tells_meanwhile(&self) -> bool {
        true
    }

    fn remove(&self, of: BorrowedFd<'_>, key: u64) {
        // The poll keeps the file open until the waiter removes it: let the other side see the end
        // now.
        let _ = SockRef::from(&of).shutdown(Shutdown::Write);
        self.tell(Change::Remove { key });
    }

    fn wait(
        &self,
        most: &mut usize,
        time: Option<Duration>,
        mut each: impl FnMut(u64, Flags),
    ) -> bool {
        let mut waiting = lock_std(&self.waiting);
        let waiting = &mut *waiting;
        self.waits.store(true, Ordering::SeqCst);
        let mut changes = std::mem::take(&mut waiting.changes);
        std::mem::swap(&mut changes, &mut *lock_std(&self.changes));
        changes.drain(..).for_each(|change| waiting.change(&change));
        waiting.changes = changes;
        let mut is_woken = false;
        let mut over = Vec::new();
        let result = waiting.polls.wait(time, *most, |event| {
            let key = event.ready.key;
            if !event.goes_on {
                over.push(key);
            }
            match key {
                WAKEUP => is_woken = self.wakeup.take(),
                key => each(key, event.ready.into()),
            }
        });
        self.waits.store(false, Ordering::SeqCst);
        // The kernel ended these polls by itself, mostly for lack of memory.
        for key in over {
            let of = match key {
                WAKEUP => Some(self.wakeup.as_fd().as_raw_fd()),
                key => waiting.polled.get(key as usize).copied().flatten(),
            };
            if let Some(of) = of {
                waiting.polls.add(of, key);
            }
        }
        if result.is_err() {
            thread::sleep(REFUSED_WAIT);
        }
        is_woken
    }

    fn end(&self) {
        lock_std(&self.waiting).polls.remove_all();
    }
}

impl Wake for Ring {
    fn wake(&self) {
        self.wakeup.notify();
    }
}
