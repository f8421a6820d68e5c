//! Reusable numbers, for example of heaps.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `next` | a thread that takes a fresh number: by exchange, after its place is open | the same |
//! | `open` | a thread that has opened places; it only grows | a thread that takes a number |
//! | a stack's `top` | a thread that pushes or pops: by exchange | the same |
//! | a number's link | the thread that pushes it, before it is on top | a thread that pops |

use hearth_atomics::{AtomicU32, AtomicU64, Ordering};

/// Attempts to pop a number from a stack.
const TRIES: usize = if cfg!(loom) { 2 } else { 8 };

/// The places that numbers lead to.
pub(crate) trait Places {
    /// The link of a number whose place is open.
    fn link(&self, number: u32) -> &AtomicU32;
    /// Opens `count` places. False if the system refuses. Two threads may open the same places.
    fn open(&self, first: u32, count: u32) -> bool;
    /// The upper bound of numbers, exclusive.
    fn most(&self) -> u32;
}

/// The numbers in use. 0 is never given out.
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

    /// The cell of the first number that was never given out.
    #[cfg(not(loom))]
    pub(crate) fn next(&self) -> &AtomicU32 {
        &self.next
    }

    /// Takes a number that nobody has. None if all are in use, or the system refuses the next
    /// place.
    ///
    /// The place is opened before the number is taken, so a refusal undoes nothing, whatever other
    /// threads take meanwhile.
    pub(crate) fn take(&self, places: &impl Places, opened: u32) -> Option<u32> {
        if let Some(number) = self.ended.pop(places) {
            return Some(number);
        }
        let mut number = self.next.load(Ordering::Relaxed);
        // Repeats only when another thread has taken a number meanwhile.
        loop {
            if number >= places.most() || !self.open(places, number, opened) {
                return None;
            }
            // Relaxed: the number leads only to the place, which the look at `open` acquires.
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

    /// Opens the place of a number and those before it, in multiples of `opened`.
    pub(crate) fn open(&self, places: &impl Places, number: u32, opened: u32) -> bool {
        // Acquires the opened places; partner of the exchange below.
        let open = self.open.load(Ordering::Acquire);
        if number < open {
            return true;
        }
        let more = (number + 1 - open).next_multiple_of(opened);
        let done = places.open(open, more);
        if done {
            // Releases the opened places; partner of the load above.
            self.open.fetch_max(open + more, Ordering::Release);
        }
        done
    }

    /// Returns a number for reuse.
    pub(crate) fn give(&self, places: &impl Places, number: u32) {
        self.ended.push(places, number);
    }
}

/// A stack of numbers that any thread may take.
pub(crate) struct Stack {
    /// The number on top, 0 if none; above it a count of changes, so that a number that was popped
    /// and pushed again is not mistaken for one that stayed.
    top: AtomicU64,
}

impl Stack {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Stack {
        Stack {
            top: AtomicU64::new(0),
        }
    }

    /// Pushes a number. Retries while others push, so that none is lost.
    pub(crate) fn push(&self, places: &impl Places, number: u32) {
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            places.link(number).store(top as u32, Ordering::Relaxed);
            let changed = ((top >> 32) + 1) << 32 | u64::from(number);
            // Releases what the number leads to, and the link; partner of both loads of `top` in
            // `pop`.
            match self
                .top
                .compare_exchange_weak(top, changed, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Pops a number. None if there is none, or other threads won every attempt.
    pub(crate) fn pop(&self, places: &impl Places) -> Option<u32> {
        for _ in 0..TRIES {
            // Acquires the link; partner of the exchange in `push`.
            let top = self.top.load(Ordering::Acquire);
            let number = top as u32;
            if number == 0 {
                return None;
            }
            // The number may be on another stack by now; then the exchange fails, as the count has
            // changed.
            let next = places.link(number).load(Ordering::Relaxed);
            let changed = ((top >> 32) + 1) << 32 | u64::from(next);
            // Acquires what the number leads to; partner of the exchange in `push`.
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
    //! Threads take numbers and give them back while the system refuses to open places. Each number
    //! leads to a cell that the model watches: two holders of one number fail, and so does a holder
    //! that does not see what the last one did. At the end each number is in use once, on a stack,
    //! or was never given out.
    //!
    //! Planted faults that it found: a number taken before its place is opened, and taken back by
    //! `fetch_sub` on refusal, as it once was; a push that does not release; a pop that does not
    //! acquire; a count that does not change.
    //!
    //! It cannot see the count of changes wrap around after 2^32.

    use std::vec::Vec;

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    const MOST: u32 = 4;

    struct Ground {
        links: Vec<AtomicU32>,
        contents: Vec<UnsafeCell<u32>>,
        /// Calls to open places that are still to be refused.
        refusals: AtomicU32,
    }

    impl Places for Ground {
        fn link(&self, number: u32) -> &AtomicU32 {
            &self.links[number as usize]
        }

        fn open(&self, _: u32, _: u32) -> bool {
            let left = self.refusals.load(Ordering::Relaxed);
            // Another thread may have been refused instead.
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
            // SAFETY: a pointer to a live cell; the model fails if another thread is there.
            self.ground.contents[number as usize].with_mut(|place| unsafe { *place += 1 });
        }

        /// Takes a number as a new heap does: a parked one, or a fresh one.
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
                // A refused caller asks again, as an allocation does.
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
            // Between the other thread's look at the top and its exchange, the top goes, the next
            // one goes, and the top comes back.
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
