//! `select`: the set is ours, and is copied into the kernel and back at each call.
//!
//! | field | writer | reader |
//! |---|---|---|
//! | `readable`, `writable` | who changes a descriptor; waiter: clears reported bits | the waiter |
//! | `keys` | a thread that adds, before the bit | the waiter, after the bit |
//! | `words` | a thread that adds: grows only | the waiter |
//! | `waits` | waiter: true before copying, false after the call | who sets a bit: wakes if true |
//!
//! Bits and `waits` are sequentially consistent: a thread that sets a bit too late for the copy
//! sees that another waits, and wakes it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hearth_sys::eventfd::EventFd;
use hearth_sys::select::{WORD_BITS, place, select};

use super::{Poller, WAKEUP, Waiters, Wake};
use crate::choices::Mechanism;
use crate::connection::{Flags, Waits};

/// Descriptors from here on are refused: looking through more at each call is too slow.
const DESCRIPTORS_MAX: usize = 1 << 16;

pub(crate) struct Select {
    readable: Vec<AtomicU64>,
    writable: Vec<AtomicU64>,
    keys: Vec<AtomicU64>,
    /// Number of words in use.
    words: AtomicUsize,
    waits: AtomicBool,
    /// The descriptor after the last one reported, so that low numbers do not always come first.
    next: AtomicUsize,
    wakeup: EventFd,
    is_shared: bool,
}

pub(crate) struct Sets {
    most: usize,
    readable: Vec<u64>,
    writable: Vec<u64>,
}

impl Select {
    fn set(&self, of: BorrowedFd<'_>, waits: Waits) {
        let (word, bit) = place(of.as_raw_fd());
        match waits {
            Waits::ToRead => self.readable[word].fetch_or(bit, Ordering::SeqCst),
            Waits::ToWrite => self.writable[word].fetch_or(bit, Ordering::SeqCst),
            Waits::ForTurn | Waits::ForEver => return,
        };
        if self.waits.load(Ordering::SeqCst) {
            self.wakeup.notify();
        }
    }

    fn unset(&self, of: BorrowedFd<'_>) {
        let (word, bit) = place(of.as_raw_fd());
        self.readable[word].fetch_and(!bit, Ordering::SeqCst);
        self.writable[word].fetch_and(!bit, Ordering::SeqCst);
    }
}

impl Poller for Select {
    type Reports = Sets;

    fn new(_: Mechanism, waiters: Waiters) -> io::Result<Select> {
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        let select = Select {
            readable: zeros(DESCRIPTORS_MAX / WORD_BITS),
            writable: zeros(DESCRIPTORS_MAX / WORD_BITS),
            keys: zeros(DESCRIPTORS_MAX),
            words: AtomicUsize::new(0),
            waits: AtomicBool::new(false),
            next: AtomicUsize::new(0),
            wakeup: EventFd::new()?,
            is_shared: waiters != Waiters::Owner,
        };
        select.add(select.wakeup.as_fd(), WAKEUP)?;
        Ok(select)
    }

    fn reports(&self, most: usize) -> Sets {
        Sets {
            most,
            readable: Vec::new(),
            writable: Vec::new(),
        }
    }

    fn add(&self, of: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        let number = of.as_raw_fd() as usize;
        if number >= DESCRIPTORS_MAX {
            return Err(io::Error::other("select is for 65,536 descriptors"));
        }
        self.keys[number].store(key, Ordering::SeqCst);
        self.words
            .fetch_max(number / WORD_BITS + 1, Ordering::SeqCst);
        self.set(of, Waits::ToRead);
        Ok(())
    }

    fn settle(&self, of: BorrowedFd<'_>, _: u64, before: Waits, now: Waits) -> io::Result<bool> {
        if !self.is_shared && before == now {
            return Ok(false);
        }
        if before != now {
            self.unset(of);
        }
        self.set(of, now);
        Ok(true)
    }

    fn tells_meanwhile(&self) -> bool {
        false
    }

    fn remove(&self, of: BorrowedFd<'_>) {
        self.unset(of);
    }

    fn wait(
        &self,
        sets: &mut Sets,
        time: Option<Duration>,
        mut each: impl FnMut(u64, Flags),
    ) -> bool {
        self.waits.store(true, Ordering::SeqCst);
        let words = self.words.load(Ordering::SeqCst);
        let copy = |from: &[AtomicU64], to: &mut Vec<u64>| {
            to.clear();
            to.extend(from[..words].iter().map(|word| word.load(Ordering::SeqCst)));
        };
        copy(&self.readable, &mut sets.readable);
        copy(&self.writable, &mut sets.writable);
        // A descriptor closed since its bit was copied is an error: the next copy is without it.
        let result = select(&mut sets.readable, &mut sets.writable, time);
        self.waits.store(false, Ordering::SeqCst);
        if result.unwrap_or(0) == 0 {
            return false;
        }
        let mut is_woken = false;
        let mut told = 0;
        let begin = self.next.load(Ordering::Relaxed);
        let from_begin = !0 << (begin % WORD_BITS);
        // All words in a circle, with the first one's lower half at the end.
        for i in 0..=words {
            if told == sets.most {
                break;
            }
            let word = (begin / WORD_BITS + i) % words;
            let mut bits = sets.readable[word] | sets.writable[word];
            match i {
                0 => bits &= from_begin,
                _ if i == words => bits &= !from_begin,
                _ => {}
            }
            while bits != 0 && told < sets.most {
                let lowest = bits & bits.wrapping_neg();
                bits &= !lowest;
                let key = self.keys[word * WORD_BITS + lowest.trailing_zeros() as usize]
                    .load(Ordering::SeqCst);
                if key == WAKEUP {
                    is_woken = self.wakeup.take();
                    continue;
                }
                if self.is_shared {
                    self.readable[word].fetch_and(!lowest, Ordering::SeqCst);
                    self.writable[word].fetch_and(!lowest, Ordering::SeqCst);
                }
                told += 1;
                let number = word * WORD_BITS + lowest.trailing_zeros() as usize;
                self.next
                    .store((number + 1) % (words * WORD_BITS), Ordering::Relaxed);
                let can_read = sets.readable[word] & lowest != 0;
                let can_write = sets.writable[word] & lowest != 0;
                each(
                    key,
                    Flags {
                        can_read,
                        can_write,
                        is_ended: false,
                    },
                );
            }
        }
        is_woken
    }
}

impl Wake for Select {
    fn wake(&self) {
        self.wakeup.notify();
    }
}
