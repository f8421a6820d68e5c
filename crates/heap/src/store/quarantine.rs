//! Quarantine of freed blocks: a ring of numbers in which each newcomer displaces the one that came
//! a round before.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | a place | any thread, by exchange; whoever takes a number out owns it | the same |
//! | `next` | any thread, by exchange | the same |

use hearth_atomics::{AtomicU32, Ordering};

/// Each place holds a number plus one, or 0.
pub(crate) struct Quarantine<const N: usize> {
    places: [AtomicU32; N],
    /// The next place to fill.
    next: AtomicU32,
}

impl<const N: usize> Quarantine<N> {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Quarantine<N> {
        assert!(
            N.is_power_of_two(),
            "the count of places comes round with the ring"
        );
        Quarantine {
            places: [const { AtomicU32::new(0) }; N],
            next: AtomicU32::new(0),
        }
    }

    fn swap(place: &AtomicU32, now: u32) -> Option<u32> {
        // Releases what the newcomer leads to, and acquires what the displaced one leads to.
        place.swap(now, Ordering::AcqRel).checked_sub(1)
    }

    /// Puts the caller's number in. Returns the number that it displaces, which belongs to the
    /// caller from then on.
    #[must_use = "nobody else has it"]
    pub(crate) fn keep(&self, number: u32) -> Option<u32> {
        let next = self.next.fetch_add(1, Ordering::Relaxed) as usize % N;
        Quarantine::<N>::swap(&self.places[next], number + 1)
    }

    /// Adds a number if there is room. False if there is none: it stays the caller's.
    #[must_use = "it may be the caller's yet"]
    pub(crate) fn keep_if_room(&self, number: u32) -> bool {
        // Releases as above; an empty place leads to nothing.
        let is_kept = |place: &AtomicU32| {
            place
                .compare_exchange(0, number + 1, Ordering::Release, Ordering::Relaxed)
                .is_ok()
        };
        self.places.iter().any(is_kept)
    }

    /// Takes all numbers out, one after the other: each is the caller's.
    pub(crate) fn take_all(&self, mut each: impl FnMut(u32)) {
        for place in &self.places {
            if let Some(number) = Quarantine::<N>::swap(place, 0) {
                each(number);
            }
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! Threads add numbers and take all out, in a ring of two. Each number leads to a cell that the
    //! model watches: two holders of one number fail, and so does a holder that does not see what
    //! the last one did. At the end each number is in the ring once, or was taken out once.
    //!
    //! Planted faults that it found: a number taken out by a load and a store; one added without
    //! release, by either way; one taken out without acquire.

    use std::vec::Vec;

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    const NUMBERS: usize = 4;

    struct World {
        kept: Quarantine<2>,
        contents: [UnsafeCell<u32>; NUMBERS],
    }

    impl World {
        fn use_number(&self, number: u32) {
            // SAFETY: a pointer to a live cell; the model fails if another thread is there.
            self.contents[number as usize].with_mut(|place| unsafe { *place += 1 });
        }

        /// Runs a thread; returns the numbers that it holds at the end.
        fn run(&self, own: [u32; 2]) -> Vec<u32> {
            let mut had = Vec::new();
            self.use_number(own[0]);
            if let Some(number) = self.kept.keep(own[0]) {
                self.use_number(number);
                had.push(number);
            }
            self.kept.take_all(|number| {
                self.use_number(number);
                had.push(number);
            });
            self.use_number(own[1]);
            if !self.kept.keep_if_room(own[1]) {
                had.push(own[1]);
            }
            had
        }
    }

    #[test]
    fn loom_what_is_kept_is_had_once() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(3));
        builder.check(|| {
            let world = Arc::new(World {
                kept: Quarantine {
                    places: [AtomicU32::new(0), AtomicU32::new(0)],
                    next: AtomicU32::new(0),
                },
                contents: core::array::from_fn(|_| UnsafeCell::new(0)),
            });
            let other = {
                let world = world.clone();
                thread::spawn(move || world.run([0, 1]))
            };
            let mut seen = world.run([2, 3]);
            seen.extend(other.join().expect("it does not panic"));
            world.kept.take_all(|number| {
                world.use_number(number);
                seen.push(number);
            });
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2, 3], "each number once, and none lost");
        });
    }
}
