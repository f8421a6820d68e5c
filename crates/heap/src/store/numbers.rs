//! Numbers that are given out, come back and are given out again: of heaps, for example.
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | `next` | who takes a number that was never given out: by exchange, after its place is open | the same |
//! | `open` | who has opened places; it only grows | who takes a number |
//! | a stack's `top` | who puts a number on, who takes one: by exchange | the same |
//! | a number's link | who puts the number on a stack, before it is on top | who takes from that stack |

use crate::ground::atomics::{AtomicU32, AtomicU64, Ordering};

/// So often a number is tried for on a stack.
const TRIES: usize = if cfg!(loom) { 2 } else { 8 };

/// Where the numbers lead to.
pub(crate) trait Places {
    /// The link of a number whose place is open.
    fn link(&self, number: u32) -> &AtomicU32;
    /// Opens so many places from the first one on. False if the system refuses. Two threads may open the same
    /// ones.
    fn open(&self, first: u32, count: u32) -> bool;
    /// Numbers are less than this.
    fn most(&self) -> u32;
}

/// Which numbers are in use. 0 is never given out.
pub(crate) struct Numbers {
    next: AtomicU32,
    open: AtomicU32,
    ended: Stack,
}

impl Numbers {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Numbers {
        Numbers {
            next: AtomicU32::new(1),
            open: AtomicU32::new(0),
            ended: Stack::new(),
        }
    }

    /// Where the first number is that was never given out.
    #[cfg(not(loom))]
    pub(crate) fn next(&self) -> &AtomicU32 {
        &self.next
    }

    /// A number that nobody has. None if all are in use, or the system refuses the place of the next one.
    ///
    /// A number that is taken is never taken back: its place is opened before. So a refusal changes nothing,
    /// whatever other threads take meanwhile.
    pub(crate) fn take(&self, places: &impl Places, opened: u32) -> Option<u32> {
        if let Some(number) = self.ended.pop(places) {
            return Some(number);
        }
        let mut number = self.next.load(Ordering::Relaxed);
        // Again only when another thread has taken a number meanwhile.
        loop {
            if number >= places.most() || !self.open(places, number, opened) {
                return None;
            }
            // Relaxed: the number leads to nothing that another thread has made but the place, and the look
            // at `open` acquires that.
            let taken = self.next.compare_exchange(
                number,
                number + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match taken {
                Ok(_) => return Some(number),
                Err(now) => number = now,
            }
        }
    }

    /// Opens the place of a number, with those before it, in multiples of `opened`.
    pub(crate) fn open(&self, places: &impl Places, number: u32, opened: u32) -> bool {
        // Acquires that they are open; partner of the exchange below.
        let open = self.open.load(Ordering::Acquire);
        if number < open {
            return true;
        }
        let more = (number + 1 - open).next_multiple_of(opened);
        let done = places.open(open, more);
        if done {
            // Releases that; partner of the load above.
            self.open.fetch_max(open + more, Ordering::Release);
        }
        done
    }

    /// Gives a number back.
    pub(crate) fn give(&self, places: &impl Places, number: u32) {
        self.ended.push(places, number);
    }
}

/// Numbers that somebody may take, the last one first.
pub(crate) struct Stack {
    /// The number on top, 0 if there is none; above it a count of changes, which tells a number that was taken
    /// and put back meanwhile from one that stayed.
    top: AtomicU64,
}

impl Stack {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Stack {
        Stack {
            top: AtomicU64::new(0),
        }
    }

    /// Puts a number on. It is tried again while others do the same, so that none is lost.
    pub(crate) fn push(&self, places: &impl Places, number: u32) {
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            places.link(number).store(top as u32, Ordering::Relaxed);
            let changed = ((top >> 32) + 1) << 32 | u64::from(number);
            // Releases what was done with what the number leads to, and the link; partner of both loads of
            // `top` in `pop`.
            match self
                .top
                .compare_exchange_weak(top, changed, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Takes a number. None if there is none, or others were always first.
    pub(crate) fn pop(&self, places: &impl Places) -> Option<u32> {
        for _ in 0..TRIES {
            // Acquires the link; partner of the exchange in `push`.
            let top = self.top.load(Ordering::Acquire);
            let number = top as u32;
            if number == 0 {
                return None;
            }
            // May be another stack's by now; then the exchange fails, as the count has changed.
            let next = places.link(number).load(Ordering::Relaxed);
            let changed = ((top >> 32) + 1) << 32 | u64::from(next);
            // Acquires what was done with what the number leads to; partner of the exchange in `push`.
            if self
                .top
                .compare_exchange(top, changed, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! Threads take numbers and give them back, and the system refuses to open places. What a number leads to
    //! is a cell that the model watches: two who have one number fail, and so does one who gets a number
    //! without what its last holder did. At the end each number is in use once, on a stack, or was
    //! never given out.
    //!
    //! Faults that were planted by hand, and found: a number that is taken before its place is opened, and
    //! taken back by `fetch_sub` if that is refused, which is how it was; a push that does not release; a pop
    //! that does not acquire; a count that does not change.
    //!
    //! What it cannot see: the count of changes comes round after 2^32.

    use std::vec::Vec;

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    const MOST: u32 = 4;

    struct Ground {
        links: Vec<AtomicU32>,
        contents: Vec<UnsafeCell<u32>>,
        /// So many calls to open places are refused.
        refusals: AtomicU32,
    }

    impl Places for Ground {
        fn link(&self, number: u32) -> &AtomicU32 {
            &self.links[number as usize]
        }

        fn open(&self, _: u32, _: u32) -> bool {
            let left = self.refusals.load(Ordering::Relaxed);
            // Another thread may be refused meanwhile, instead.
            left == 0
                || self
                    .refusals
                    .compare_exchange(left, left - 1, Ordering::Relaxed, Ordering::Relaxed)
                    .is_err()
        }

        fn most(&self) -> u32 {
            MOST
        }
    }

    struct World {
        numbers: Numbers,
        parked: Stack,
        ground: Ground,
    }

    impl World {
        fn new(refusals: u32) -> World {
            let stack = || Stack {
                top: AtomicU64::new(0),
            };
            World {
                numbers: Numbers {
                    next: AtomicU32::new(1),
                    open: AtomicU32::new(0),
                    ended: stack(),
                },
                parked: stack(),
                ground: Ground {
                    links: (0..MOST).map(|_| AtomicU32::new(0)).collect(),
                    contents: (0..MOST).map(|_| UnsafeCell::new(0)).collect(),
                    refusals: AtomicU32::new(refusals),
                },
            }
        }

        fn use_number(&self, number: u32) {
            // SAFETY: a pointer to a cell that lives; the model fails if somebody else is there.
            self.ground.contents[number as usize].with_mut(|place| unsafe { *place += 1 });
        }

        /// As a heap begins: a parked one, or a new number.
        fn take(&self) -> Option<u32> {
            let parked = self.parked.pop(&self.ground);
            let number = parked.or_else(|| self.numbers.take(&self.ground, 1))?;
            self.use_number(number);
            Some(number)
        }
    }

    fn model(preemptions: usize, refusals: u32, work: fn(&World) -> Option<u32>) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
        builder.check(move || {
            let world = Arc::new(World::new(refusals));
            let other = {
                let world = world.clone();
                thread::spawn(move || work(&world))
            };
            let own = work(&world);
            let other = other.join().expect("it does not panic");
            let mut seen: Vec<u32> = own.into_iter().chain(other).collect();
            for stack in [&world.numbers.ended, &world.parked] {
                while let Some(number) = stack.pop(&world.ground) {
                    seen.push(number);
                }
            }
            seen.extend(world.numbers.next.load(Ordering::Relaxed)..MOST);
            seen.sort_unstable();
            assert_eq!(seen, [1, 2, 3], "each number once, and none lost");
        });
    }

    #[test]
    fn loom_numbers_are_given_out_once_whatever_is_refused() {
        for refusals in 0..=2 {
            model(3, refusals, |world| {
                // Who is refused asks again, as who allocates does.
                world.take().or_else(|| world.take())
            });
        }
    }

    #[test]
    fn loom_numbers_come_back() {
        model(3, 0, |world| {
            let first = world.take()?;
            world.use_number(first);
            world.numbers.give(&world.ground, first);
            world.take()
        });
    }

    #[test]
    fn loom_a_number_that_came_back_is_told_from_one_that_stayed() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(3));
        builder.check(|| {
            let world = Arc::new(World::new(0));
            for number in [3, 2, 1] {
                world.parked.push(&world.ground, number);
            }
            let other = {
                let world = world.clone();
                thread::spawn(move || world.parked.pop(&world.ground))
            };
            // Between the other one's look at the top and its exchange, the top goes, the next one goes, and
            // the top comes back.
            let first = world.parked.pop(&world.ground);
            let second = world.parked.pop(&world.ground);
            if let Some(first) = first {
                world.parked.push(&world.ground, first);
            }
            let mut seen: Vec<u32> = other
                .join()
                .expect("it does not panic")
                .into_iter()
                .chain(second)
                .collect();
            while let Some(number) = world.parked.pop(&world.ground) {
                seen.push(number);
                assert!(seen.len() <= 3, "{seen:?}");
            }
            seen.sort_unstable();
            assert_eq!(seen, [1, 2, 3], "each number once, and none lost");
        });
    }

    #[test]
    fn loom_numbers_change_stacks() {
        model(2, 0, |world| {
            let first = world.take()?;
            world.use_number(first);
            world.parked.push(&world.ground, first);
            let second = world.take()?;
            world.numbers.give(&world.ground, second);
            world.take()
        });
    }
}
