//! The blocks that are mappings of their own, by their addresses.
//!
//! Segments of places, each four times as large as the one before, made when those before have no room for a block.
//! A block has a few places in each, by a hash of its address, so it is found by a number of looks that does not
//! depend on how many there are. Who has a place is told by its word:
//!
//! ```text
//!          claim                publish
//!   EMPTY ------> ENTERED -------------------> block
//!     ^              |  ^                        |
//!     +--------------+  +------------------------+
//!         release                 claim
//! ```
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | `block` | everyone, by exchange from empty or from a block; a store only by who has claimed the place | everyone |
//! | the others | who has claimed the place, before it publishes | who has the block, or has claimed the place; others get what may be late |
//! | a segment | who makes it, by exchange, once | everyone |

use crate::ground::atomics::{AtomicU64, Ordering};

/// No block.
const EMPTY: u64 = 0;
/// Instead of a block: the place is somebody's who changes it.
const ENTERED: u64 = 1;

/// log2 of the bytes between the addresses of two blocks at least: a page.
const PAGE_SHIFT: u32 = 12;
/// log2 of the places in the first segment; and of how many times as many each further one has.
const FIRST_SHIFT: u32 = if cfg!(loom) { 0 } else { 8 };
const GROWTH_SHIFT: u32 = 2;
/// All of them together have 1,398,016 places.
pub(crate) const SEGMENTS: usize = if cfg!(loom) { 2 } else { 7 };
/// So many places of a segment a block may have. At three quarters full, one block in a hundred goes to the next
/// segment.
const PROBES: usize = if cfg!(loom) { 2 } else { 16 };

/// The places in a segment.
pub(crate) const fn places_of(segment: usize) -> usize {
    1 << (FIRST_SHIFT + GROWTH_SHIFT * segment as u32)
}

/// Where a block is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) block: usize,
    /// Of the mapping.
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    /// Where the block ends: with the mapping, or at a guard page.
    pub(crate) end: usize,
}

/// A place for a block.
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
        // Acquires what the one before has done with the place; partner of `publish` and `release`.
        self.block
            .compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Claims an empty place. False if it is not.
    #[must_use]
    pub(crate) fn claim_empty(&self) -> bool {
        self.exchange(EMPTY, ENTERED)
    }

    /// Claims the place of a block. False if it has gone, or another is at it.
    #[must_use]
    pub(crate) fn claim(&self, block: usize) -> bool {
        self.exchange(block as u64, ENTERED)
    }

    /// What is in a place that is claimed, but for the block.
    pub(crate) fn extent(&self) -> Extent {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed) as usize;
        Extent {
            block: 0,
            start: read(&self.start),
            bytes: read(&self.bytes),
            end: read(&self.end),
        }
    }

    /// Enters a block into a place that is claimed.
    pub(crate) fn publish(&self, extent: Extent) {
        self.start.store(extent.start as u64, Ordering::Relaxed);
        self.bytes.store(extent.bytes as u64, Ordering::Relaxed);
        self.end.store(extent.end as u64, Ordering::Relaxed);
        // Releases them; partner of `exchange`, and of the look in `look`.
        self.block.store(extent.block as u64, Ordering::Release);
    }

    /// Empties a place that is claimed.
    pub(crate) fn release(&self) {
        // Releases the look at what was in it; partner of `exchange`.
        self.block.store(EMPTY, Ordering::Release);
    }

    /// What is there at the moment; None if nothing is. If it is not the caller's, it may have gone by now, or be
    /// another.
    pub(crate) fn look(&self) -> Option<Extent> {
        // Acquires what was published; partner of `publish`.
        let block = self.block.load(Ordering::Acquire);
        (block > ENTERED).then(|| Extent {
            block: block as usize,
            ..self.extent()
        })
    }
}

/// Where the segments are.
pub(crate) trait Segments {
    /// The places of a segment, [`places_of`] it. None if it is not made.
    fn places(&self, segment: usize) -> Option<&[Mapping]>;
    /// Makes it, unless it is made. False if there is no memory.
    fn make(&self, segment: usize) -> bool;
    /// Places that are looked at whatever the address is: for blocks for which there was no other.
    fn spares(&self) -> &[Mapping];
}

/// The places of a segment where a block may be.
fn probes(segment: usize, block: usize) -> impl Iterator<Item = usize> {
    // Each bit of the address has its part in all bits: two rounds of a product with Knuth's number, 2^64 by the
    // golden ratio, whose upper half goes below.
    let mut hash = block as u64 >> PAGE_SHIFT;
    for _ in 0..2 {
        hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
    }
    let mask = places_of(segment) - 1;
    let first = hash as usize;
    // Odd, so that it leads to each place once.
    let step = (hash >> 32) as usize | 1;
    (0..PROBES).map(move |nth| first.wrapping_add(nth.wrapping_mul(step)) & mask)
}

/// Enters a block. False if there is no place for it, and no memory for more.
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

/// The place of a block. None if it has none.
pub(crate) fn find(segments: &impl Segments, block: usize) -> Option<&Mapping> {
    if block as u64 <= ENTERED {
        return None;
    }
    // Who has the block has seen it published.
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

/// Gives a block that is the caller's another extent, perhaps elsewhere, by `change`, which tells what it is then.
/// Where the block is; None if it is none, or if that is refused, and the block is as it was.
pub(crate) fn change(
    segments: &impl Segments,
    block: usize,
    change: impl FnOnce(Extent) -> Option<Extent>,
) -> Option<usize> {
    // What has moved must have a place, and there may be no memory for more of them. So one is claimed before.
    let spare = segments.spares().iter().find(|place| place.claim_empty())?;
    let changed = change_with(segments, spare, block, change);
    if changed.is_none_or(|(_, is_spare_used)| !is_spare_used) {
        spare.release();
    }
    changed.map(|(block, _)| block)
}

/// Where the block is then, and whether the spare place is its.
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
    // As soon as it has moved, another's block may be where it was; so its place is claimed meanwhile.
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

/// All places that there are.
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

    /// However addresses follow each other, segments are well filled before the next one is made.
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
            // Up to the fifth segment they are 87,296; and one block of the rest may find no place in that.
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
    //! Two threads map, enter, find, and take out. Addresses are the kernel's, which gives one again as soon as it
    //! has come back. All blocks have the same few places. Who finds a block finds what it has entered; and a
    //! third, who has no block, sees no place that is half of one and half of another if it claims it.
    //!
    //! Faults that were planted by hand, and found: a place that is published, or emptied, without release; one
    //! that is claimed without acquire, or by a look and a store; fields that are read before the place is
    //! claimed, by one who does not have the block; a block that moves whose place is not claimed meanwhile; a
    //! spare place that is released though the block is there.
    //!
    //! What it cannot see: hashes of more than two bits.

    use std::vec::Vec;

    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    struct Ground {
        segments: Vec<Vec<Mapping>>,
        made: AtomicU64,
        spares: Vec<Mapping>,
        /// The kernel's: a bit for each address that nobody has.
        addresses: AtomicU64,
        /// There is memory for more segments.
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

    /// So many that one block can move while the other is there.
    const ADDRESSES: u64 = 0b1110;

    impl Segments for Ground {
        fn places(&self, segment: usize) -> Option<&[Mapping]> {
            let is_made = self.made.load(Ordering::Acquire) as usize > segment;
            is_made.then(|| self.segments[segment].as_slice())
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

        /// As the system moves a mapping: what is had of the new address is had before the old one is given up.
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

        /// A block goes that is the caller's.
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
        // Its own place is the only one but the spare.
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

    /// As the one that takes a mapping that could not be unmapped.
    #[test]
    fn loom_who_claims_a_place_sees_all_of_it() {
        const BLOCK: usize = 2 << PAGE_SHIFT;
        model(|ground, own| {
            let place = &ground.spares()[0];
            if own == 3 {
                // One block goes, and another one comes at its address.
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
                // What nobody has taken is taken at the end.
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
