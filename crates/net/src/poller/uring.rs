//! `io_uring` as a poller: polls that go on, told as edges.
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | `changes` | who adds or removes, under its lock | who waits, under its lock, before each wait |
//! | `waits` | who waits: true before it looks at `changes`, false after the wait | who adds or removes, afterwards: rings if true |
//! | `waiting` | who waits, under its lock, which nobody else wants | the same |
//!
//! Only who waits makes requests, since the kernel does the work for a request in the thread that made it. `waits` is
//! sequentially consistent with the lock of `changes`: either who waits sees the change, or who made it sees that somebody waits.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hearth_sys::bell::Bell;
use hearth_sys::uring;
use socket2::SockRef;

use super::{Poller, Waiters, Wake};
use crate::connection::{Flags, Waits};
use crate::options::Mechanism;
use crate::server::locked;

/// The bell's own key; not the ring's own.
const BELL: u64 = u64::MAX - 1;
/// How long a thread rests whose ring the kernel refuses for a moment.
const REFUSED_WAIT: Duration = Duration::from_millis(1);

pub(crate) struct Ring {
    changes: Mutex<Vec<Change>>,
    waits: AtomicBool,
    waiting: Mutex<Waiting>,
    bell: Bell,
}

enum Change {
    Add { of: RawFd, key: u64 },
    Remove { key: u64 },
}

/// What is of who waits.
struct Waiting {
    polls: uring::Polls,
    /// By key: what is polled.
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
        locked(&self.changes).push(change);
        if self.waits.load(Ordering::SeqCst) {
            self.bell.ring();
        }
    }
}

impl Poller for Ring {
    /// How many events a wait tells.
    type Reports = usize;

    fn new(_: Mechanism, waiters: Waiters) -> io::Result<Ring> {
        let mut polls = uring::Polls::new(match waiters {
            Waiters::Owner | Waiters::One => uring::Waiters::One,
            Waiters::Turns => uring::Waiters::Turns,
        })?;
        let bell = Bell::new()?;
        polls.add(bell.as_fd().as_raw_fd(), BELL);
        Ok(Ring {
            changes: Mutex::new(Vec::new()),
            waits: AtomicBool::new(false),
            waiting: Mutex::new(Waiting {
                polls,
                polled: Vec::new(),
                changes: Vec::new(),
            }),
            bell,
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
        // The poll keeps the file open until it is taken back, which who waits does: the other side is to see the end now.
        let _ = SockRef::from(&of).shutdown(Shutdown::Write);
        self.tell(Change::Remove { key });
    }

    fn wait(
        &self,
        most: &mut usize,
        time: Option<Duration>,
        mut each: impl FnMut(u64, Flags),
    ) -> bool {
        let mut waiting = locked(&self.waiting);
        let waiting = &mut *waiting;
        self.waits.store(true, Ordering::SeqCst);
        let mut changes = std::mem::take(&mut waiting.changes);
        std::mem::swap(&mut changes, &mut *locked(&self.changes));
        changes.drain(..).for_each(|change| waiting.change(&change));
        waiting.changes = changes;
        let mut is_rung = false;
        let mut over = Vec::new();
        let result = waiting.polls.wait(time, *most, |event| {
            let key = event.ready.key;
            if !event.goes_on {
                over.push(key);
            }
            match key {
                BELL => is_rung = self.bell.hear(),
                key => each(key, event.ready.into()),
            }
        });
        self.waits.store(false, Ordering::SeqCst);
        // The kernel gave up though nobody asked it to: for want of memory, mostly.
        for key in over {
            let of = match key {
                BELL => Some(self.bell.as_fd().as_raw_fd()),
                key => waiting.polled.get(key as usize).copied().flatten(),
            };
            if let Some(of) = of {
                waiting.polls.add(of, key);
            }
        }
        if result.is_err() {
            thread::sleep(REFUSED_WAIT);
        }
        is_rung
    }

    fn end(&self) {
        locked(&self.waiting).polls.remove_all();
    }
}

impl Wake for Ring {
    fn ring(&self) {
        self.bell.ring();
    }
}
