//! A hash table of the blocks that are mappings of their own.
//!
//! Its segments of places each have four times as many as the one before, and are made when those
//! before have no room for a block. A block has a few possible places in each segment, by a hash of
//! its address, so a lookup does not depend on the number of blocks. A place's word tells who has
//! it:
//!
//! ```text
//!          claim                publish
//!   EMPTY ------> ENTERED -------------------> block
//!     ^              |  ^                        |
//!     +--------------+  +------------------------+
//!         release                 claim
//! ```
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `block` | any thread, by exchange; the claimant, by store | any thread |
//! | the others | the claimant, before it publishes | the owner; the claimant; others, stale |
//! | a segment | its maker, by exchange, once | any thread |

use hearth_atomics::{AtomicU64, Ordering};

/// No block.
const EMPTY: u64 = 0;
/// Stands for a block while a thread changes the place.
const ENTERED: u64 = 1;

/// log2 of the least distance between two blocks: a page.
const PAGE_SHIFT: u32 = 12;
/// log2 of the places in the first segment, and of the growth from one to the next.
const FIRST_SHIFT: u32 = if cfg!(loom) { 0 } else { 8 };
const GROWTH_SHIFT: u32 = 2;
/// All segments together have 1,398,016 places.
pub(crate) const SEGMENTS: usize = if cfg!(loom) { 2 } else { 7 };
/// Possible places of a block in one segment. At three quarters full, one block in a hundred goes
/// to the next segment.
const PROBES: usize = if cfg!(loom) { 2 } else { 16 };

/// The places in a segment.
pub(crate) const fn places_of(segment: usize) -> usize {
    1 << (FIRST_SHIFT + GROWTH_SHIFT * segment as u32)
}

/// A block and its mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) block: usize,
    /// Start of the mapping.
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    /// End of the block: that of the mapping, or a guard page.
    pub(crate) end: usize,
}

/// A place of the table.
#[repr(C)]
pub(crate) struct Mapping {
    pub(crate) block: AtomicU64,
    start: AtomicU64,
    pub(crate) bytes: AtomicU64,
    end: AtomicU64,
}

impl Mapping {
    #[cfg(not(loom))]
    pub(crate) const fn empty() -> Mapping {
        Mapping {
            block: AtomicU64::new(EMPTY),
            start: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            end: AtomicU64::new(0),
        }
    }

    fn exchange(&self, from: u64, to: u64) -> bool {
        // Acquires what the previous claimant did with the place; partner of `publish` and
        // `release`.
        self.block
            .compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Claims an empty place. False if it is not empty.
    #[must_use]
    pub(crate) fn claim_empty(&self) -> bool {
        self.exchange(EMPTY, ENTERED)
    }

    /// Claims the place of a block. False if the block has gone, or another thread has claimed it.
    #[must_use]
    pub(crate) fn claim(&self, block: usize) -> bool {
        self.exchange(block as u64, ENTERED)
    }

    /// The contents of a claimed place, without the block.
    pub(crate) fn extent(&self) -> Extent {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed) as usize;
        Extent {
            block: 0,
            start: read(&self.start),
            bytes: read(&self.bytes),
            end: read(&self.end),
        }
    }

    /// Stores a block in a claimed place.
    pub(crate) fn publish(&self, extent: Extent) {
        self.start.store(extent.start as u64, Ordering::Relaxed);
        self.bytes.store(extent.bytes as u64, Ordering::Relaxed);
        self.end.store(extent.end as u64, Ordering::Relaxed);
        // Releases the extent; partner of `exchange` and `look`.
        self.block.store(extent.block as u64, Ordering::Release);
    }

    /// Empties a claimed place.
    pub(crate) fn release(&self) {
        // Releases the reads of its contents; partner of `exchange`.
        self.block.store(EMPTY, Ordering::Release);
    }

    /// The contents at the moment, if there is a block. Unless the caller owns the block, it may be
    /// gone by now, or another one.
    pub(crate) fn look(&self) -> Option<Extent> {
        // Acquires the extent; partner of `publish`.
        let block = self.block.load(Ordering::Acquire);
        (block > ENTERED).then(|| Extent {
            block: block as usize,
            ..self.extent()
        })
    }
}

/// The storage of the segments.
pub(crate) trait Segments {
    /// The [`places_of`] a segment; None if it has not been made.
    fn places(&self, segment: usize) -> Option<&[Mapping]>;
    /// Makes a segment, unless it exists. False if there is no memory.
    fn make(&self, segment: usize) -> bool;
    /// Places searched for every address: for blocks that found no other.
    fn spares(&self) -> &[Mapping];
}

/// The possible places of a block in a segment.
fn probes(segment: usize, block: usize) -> impl Iterator<Item = usize> {
    // Each bit of the address affects all bits: two rounds of multiplication by Knuth's constant,
    // 2^64 over the golden ratio, with the upper half folded down.
    let mut hash = block as u64 >> PAGE_SHIFT;
    for _ in 0..2 {
        hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
    }
    let mask = places_of(segment) - 1;
    let first = hash as usize;
    // Odd, so that it visits each place once.
    let step = (hash >> 32) as usize | 1;
    (0..PROBES).map(move |nth| first.wrapping_add(nth.wrapping_mul(step)) & mask)
}

/// Enters a block. False if there is neither a place nor memory for more.
#[must_use]
pub(crate) fn enter(segments: &impl Segments, extent: Extent) -> bool {
    for segment in 0..SEGMENTS {
        if segments.places(segment).is_none() && !segments.make(segment) {
            return false;
        }
        let Some(places) = segments.places(segment) else {
            return false;
        };
        for at in probes(segment, extent.block) {
            if places[at].claim_empty() {
                places[at].publish(extent);
                return true;
            }
        }
    }
    false
}

/// The place of a block, if it has one.
pub(crate) fn find(segments: &impl Segments, block: usize) -> Option<&Mapping> {
    if block as u64 <= ENTERED {
        return None;
    }
    // The block's owner has seen it published.
    let is_it = |place: &&Mapping| place.block.load(Ordering::Relaxed) == block as u64;
    (0..SEGMENTS)
        .map_while(|segment| Some((segment, segments.places(segment)?)))
        .find_map(|(segment, places)| {
            probes(segment, block)
                .map(|at| &places[at])
                .find(|place| is_it(place))
        })
        .or_else(|| segments.spares().iter().find(is_it))
}

/// Changes the extent of a block of the caller's, perhaps moving it. Returns the block's new
/// address; None if there is no such block, or if `change` refuses and the block is as it was.
pub(crate) fn change(
    segments: &impl Segments,
    block: usize,
    change: impl FnOnce(Extent) -> Option<Extent>,
) -> Option<usize> {
    // A block that has moved needs a place, and there may be no memory for more of them. So a spare
    // one is claimed beforehand.
    let spare = segments.spares().iter().find(|place| place.claim_empty())?;
    let changed = change_with(segments, spare, block, change);
    if changed.is_none_or(|(_, is_spare_used)| !is_spare_used) {
        spare.release();
    }
    changed.map(|(block, _)| block)
}

/// Returns the block's new address, and whether it uses the spare place.
fn change_with(
    segments: &impl Segments,
    spare: &Mapping,
    block: usize,
    change: impl FnOnce(Extent) -> Option<Extent>,
) -> Option<(usize, bool)> {
    let place = find(segments, block).filter(|place| place.claim(block))?;
    let before = Extent {
        block,
        ..place.extent()
    };
    // As soon as it has moved, another block may take its old address; so its place stays claimed
    // meanwhile.
    let Some(after) = change(before) else {
        place.publish(before);
        return None;
    };
    if after.block == block {
        place.publish(after);
        return Some((block, false));
    }
    let is_entered = enter(segments, after);
    if !is_entered {
        spare.publish(after);
    }
    place.release();
    Some((after.block, !is_entered))
}

/// All places of all segments.
pub(crate) fn all(segments: &impl Segments) -> impl Iterator<Item = &Mapping> {
    (0..SEGMENTS)
        .map_while(|segment| segments.places(segment))
        .flatten()
        .chain(segments.spares())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::OnceCell;
    use std::vec::Vec;

    use super::*;

    struct Ground([OnceCell<Vec<Mapping>>; SEGMENTS], Vec<Mapping>);

    impl Segments for Ground {
        fn places(&self, segment: usize) -> Option<&[Mapping]> {
            self.0[segment].get().map(Vec::as_slice)
        }

        fn make(&self, segment: usize) -> bool {
            let places = (0..places_of(segment)).map(|_| Mapping::empty());
            self.0[segment].set(places.collect()).is_ok()
        }

        fn spares(&self) -> &[Mapping] {
            &self.1
        }
    }

    /// Segments fill well before the next one is made, whatever the distance between blocks.
    #[test]
    #[cfg_attr(miri, ignore = "it takes too long, and nothing is unsafe")]
    fn places_are_used_well() {
        for distance in [
            1usize << 12,
            1 << 18,
            8 << 20,
            (8 << 20) + (1 << 16),
            1 << 30,
        ] {
            let ground = Ground([const { OnceCell::new() }; SEGMENTS], Vec::new());
            let block = |nth: usize| 0x7f00_0000_0000 - nth * distance;
            let blocks = 50_000;
            for nth in 0..blocks {
                let extent = Extent {
                    block: block(nth),
                    start: nth,
                    ..Extent::default()
                };
                assert!(enter(&ground, extent));
            }
            // Up to the fifth segment there are 87,296; a few of the rest may find no place even
            // there.
            let in_last = ground.places(5).map_or(0, |last| {
                last.iter().filter(|place| place.look().is_some()).count()
            });
            assert!(
                ground.places(6).is_none() && in_last <= 5,
                "{distance}: {in_last}"
            );
            for nth in 0..blocks {
                let place = find(&ground, block(nth)).expect("it was entered");
                assert!(place.claim(block(nth)));
                assert_eq!(place.extent().start, nth);
                place.release();
                assert!(find(&ground, block(nth)).is_none());
            }
            assert!(all(&ground).all(|place| place.look().is_none()));
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! Two threads map, enter, find, and take out blocks. The model's kernel hands an address out
    //! again as soon as it has come back. All blocks share the same few places. A thread that finds
    //! its block finds what it entered; and a third, which has no block, never claims a place that
    //! mixes two blocks.
    //!
    //! Planted faults that it found: a place published or emptied without release; one claimed
    //! without acquire, or by a load and a store; fields read before the place is claimed, by a
    //! thread that does not have the block; a moving block whose place is not claimed meanwhile; a
    //! spare place released although the block is in it.
    //!
    //! It cannot see hashes of more than two bits.

    use std::vec::Vec;

    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    struct Ground {
        segments: Vec<Vec<Mapping>>,
        made: AtomicU64,
        spares: Vec<Mapping>,
        /// The kernel's free addresses, one bit each.
        addresses: AtomicU64,
        /// Whether there is memory for more segments.
        grows: bool,
    }

    fn places(count: usize) -> Vec<Mapping> {
        let word = || AtomicU64::new(0);
        (0..count)
            .map(|_| Mapping {
                block: word(),
                start: word(),
                bytes: word(),
                end: word(),
            })
            .collect()
    }

    /// Enough for one block to move while the other is there.
    const ADDRESSES: u64 = 0b1110;

    impl Segments for Ground {
        fn places(&self, segment: usize) -> Option<&[Mapping]> {
            let is_ready = self.made.load(Ordering::Acquire) as usize > segment;
            is_ready.then(|| self.segments[segment].as_slice())
        }

        fn make(&self, segment: usize) -> bool {
            if !self.grows {
                return false;
            }
            let made = segment as u64;
            let _ = self
                .made
                .compare_exchange(made, made + 1, Ordering::AcqRel, Ordering::Relaxed);
            true
        }

        fn spares(&self) -> &[Mapping] {
            &self.spares
        }
    }

    impl Ground {
        fn new(grows: bool) -> Ground {
            Ground {
                segments: (0..SEGMENTS).map(|nth| places(places_of(nth))).collect(),
                made: AtomicU64::new(1),
                spares: places(1),
                addresses: AtomicU64::new(ADDRESSES),
                grows,
            }
        }

        fn map(&self) -> Option<usize> {
            let free = self.addresses.load(Ordering::Relaxed);
            if free == 0 {
                return None;
            }
            let bit = 1 << free.trailing_zeros();
            let before = self.addresses.fetch_and(!bit, Ordering::AcqRel);
            (before & bit != 0).then_some((bit.trailing_zeros() as usize) << PAGE_SHIFT)
        }

        fn unmap(&self, block: usize) {
            let bit = 1 << (block >> PAGE_SHIFT);
            let before = self.addresses.fetch_or(bit, Ordering::AcqRel);
            assert_eq!(before & bit, 0, "nobody else had it");
        }

        fn come_and_go(&self, own: usize) {
            let Some(block) = self.map() else { return };
            let extent = Extent {
                block,
                start: own,
                bytes: own,
                end: own,
            };
            if !enter(self, extent) {
                return self.unmap(block);
            }
            self.go(extent);
        }

        /// Moves a mapping as the kernel does: it has the new address before it gives up the old
        /// one.
        fn come_move_and_go(&self, own: usize) {
            let Some(block) = self.map() else { return };
            let extent = Extent {
                block,
                start: own,
                bytes: own,
                end: own,
            };
            if !enter(self, extent) {
                return self.unmap(block);
            }
            let moved = change(self, block, |before| {
                assert_eq!(before, extent, "it is this one's own");
                let block = self.map()?;
                self.unmap(before.block);
                Some(Extent { block, ..before })
            });
            self.go(Extent {
                block: moved.unwrap_or(block),
                ..extent
            });
        }

        /// Takes out a block of the caller's.
        fn go(&self, extent: Extent) {
            let block = extent.block;
            let place = find(self, block).expect("it was entered");
            assert_eq!(place.look(), Some(extent), "it is this one's own");
            assert!(place.claim(block), "nobody else claims it");
            assert_eq!(place.extent(), Extent { block: 0, ..extent });
            place.release();
            self.unmap(block);
        }
    }

    fn model(work: fn(&Ground, usize)) {
        model_of(true, work);
    }

    fn model_of(grows: bool, work: fn(&Ground, usize)) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(3));
        builder.check(move || {
            let ground = Arc::new(Ground::new(grows));
            let other = {
                let ground = ground.clone();
                thread::spawn(move || work(&ground, 5))
            };
            work(&ground, 3);
            other.join().expect("it does not panic");
            assert!(all(&*ground).all(|place| place.look().is_none()));
            assert_eq!(ground.addresses.load(Ordering::Relaxed), ADDRESSES);
        });
    }

    #[test]
    fn loom_mappings_come_and_go() {
        model(|ground, own| ground.come_and_go(own));
    }

    #[test]
    fn loom_mappings_come_again() {
        model(|ground, own| {
            ground.come_and_go(own);
            ground.come_and_go(own + 1);
        });
    }

    #[test]
    fn loom_mappings_move() {
        model(|ground, own| ground.come_move_and_go(own));
        // The block's own place is the only one besides the spare.
        model_of(false, |ground, own| ground.come_move_and_go(own));
        model(|ground, own| {
            if own == 3 {
                ground.come_move_and_go(own);
            } else {
                ground.come_and_go(own);
                ground.come_and_go(own + 1);
            }
        });
    }

    /// Takes a mapping whose unmapping failed, as any later caller does.
    #[test]
    fn loom_who_claims_a_place_sees_all_of_it() {
        const BLOCK: usize = 2 << PAGE_SHIFT;
        model(|ground, own| {
            let place = &ground.spares()[0];
            if own == 3 {
                // One block goes, and another comes to its address.
                for start in [3, 4] {
                    if place.claim_empty() {
                        place.publish(Extent {
                            block: BLOCK,
                            start,
                            bytes: start,
                            end: start,
                        });
                    }
                    if start == 3 && place.claim(BLOCK) {
                        place.release();
                    }
                }
            }
            for _ in 0..2 {
                if let Some(seen) = place.look()
                    && place.claim(seen.block)
                {
                    let Extent {
                        start, bytes, end, ..
                    } = place.extent();
                    assert!(start == bytes && bytes == end && (3..5).contains(&start));
                    place.release();
                }
            }
            if own == 3 {
                // At the end, whatever is left is taken.
                while let Some(seen) = place.look() {
                    if place.claim(seen.block) {
                        place.release();
                    }
                    loom::thread::yield_now();
                }
            }
        });
    }
}
