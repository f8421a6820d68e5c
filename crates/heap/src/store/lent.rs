//! A ring of idle pages that heaps have lent: any thread writes to it, and one thread at a time
//! [gives back](crate::store::stage) what it reads.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `pieces` | heaps, into a place they have claimed; the reader, zero | the reader |
//! | `claimed` | heaps | heaps, the reader |
//! | `taken` | the reader | heaps |

use hearth_atomics::{AtomicU32, AtomicU64, Ordering};

/// Pieces that can be lent at once: what a process with shifting sizes lends in a few ticks.
#[cfg(not(loom))]
const RING: usize = 8192;
#[cfg(loom)]
const RING: usize = 2;
/// Attempts to claim a place in the ring.
const TRIES: usize = 4;

pub(crate) struct Lent {
    pieces: [AtomicU64; RING],
    claimed: AtomicU32,
    taken: AtomicU32,
}

impl Lent {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Lent {
        Lent {
            pieces: [const { AtomicU64::new(0) }; RING],
            claimed: AtomicU32::new(0),
            taken: AtomicU32::new(0),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Lent {
        Lent {
            pieces: [0; RING].map(AtomicU64::new),
            claimed: AtomicU32::new(0),
            taken: AtomicU32::new(0),
        }
    }

    /// Lends a block of idle pages: its offset in the data, and its length in bytes, multiples of a
    /// page. False if the ring is full.
    pub(crate) fn lend(&self, offset: usize, bytes: usize) -> bool {
        for _ in 0..TRIES {
            let place = self.claimed.load(Ordering::Relaxed);
            // Acquires the emptied place. `taken` may be ahead of `place`, if other threads have
            // claimed it meanwhile.
            let used = place.wrapping_sub(self.taken.load(Ordering::Acquire));
            if used as usize >= RING {
                return false;
            }
            let next = place.wrapping_add(1);
            let claimed =
                self.claimed
                    .compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
            if claimed.is_ok() {
                // The offset is a multiple of a page, so its low bits can hold the number of pages.
                let piece = offset as u64 | (bytes >> 12) as u64;
                // Releases what the owner did with the block.
                self.pieces[place as usize % RING].store(piece, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Takes the next piece: its offset and its bytes. For one thread at a time.
    pub(crate) fn next(&self) -> Option<(usize, usize)> {
        let place = self.taken.load(Ordering::Relaxed);
        let slot = &self.pieces[place as usize % RING];
        // Acquires what the owner did with the block.
        let piece = slot.load(Ordering::Acquire) as usize;
        if piece == 0 {
            return None;
        }
        slot.store(0, Ordering::Relaxed);
        // Releases the emptied place: it may be claimed again.
        self.taken.store(place.wrapping_add(1), Ordering::Release);
        Some((piece & !0xfff, (piece & 0xfff) << 12))
    }

    /// Closes the gaps of places that threads of the parent had claimed; in a child of a fork.
    #[cfg(not(loom))]
    pub(crate) fn forked(&self) {
        let (taken, claimed) = (
            self.taken.load(Ordering::Relaxed),
            self.claimed.load(Ordering::Relaxed),
        );
        let mut end = taken;
        for place in (0..claimed.wrapping_sub(taken)).map(|nth| taken.wrapping_add(nth)) {
            let piece = self.pieces[place as usize % RING].swap(0, Ordering::Relaxed);
            if piece != 0 {
                self.pieces[end as usize % RING].store(piece, Ordering::Relaxed);
                end = end.wrapping_add(1);
            }
        }
        self.claimed.store(end, Ordering::Relaxed);
    }

    /// Whether the ring is empty. For any thread; the answer may be stale.
    pub(crate) fn is_empty(&self) -> bool {
        self.claimed.load(Ordering::Relaxed) == self.taken.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! Two heaps lend more than the ring holds while a reader takes some: each piece comes once,
    //! whole, and in the order of its heap.

    use std::vec::Vec;

    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    #[test]
    fn loom_each_piece_comes_once() {
        loom::model(|| {
            let lent = Arc::new(Lent::new());
            let heaps = [1usize, 2].map(|heap| {
                let lent = lent.clone();
                thread::spawn(move || {
                    let offset = |piece: usize| (heap << 20) + (piece << 12);
                    (0..3 - heap)
                        .filter(|piece| lent.lend(offset(*piece), heap << 12))
                        .map(offset)
                        .collect::<Vec<_>>()
                })
            });
            let mut taken: Vec<_> = lent.next().into_iter().collect();
            let given: Vec<usize> = heaps
                .into_iter()
                .flat_map(|heap| heap.join().expect("it does not panic"))
                .collect();
            while let Some(piece) = lent.next() {
                taken.push(piece);
            }
            assert!(lent.is_empty());
            for heap in [1, 2] {
                let of = |offset: &usize| offset >> 20 == heap;
                let came: Vec<usize> = taken.iter().map(|piece| piece.0).filter(of).collect();
                let went: Vec<usize> = given.iter().copied().filter(of).collect();
                assert_eq!(came, went);
            }
            assert!(
                taken
                    .iter()
                    .all(|(offset, bytes)| offset >> 20 == bytes >> 12)
            );
        });
    }
}
