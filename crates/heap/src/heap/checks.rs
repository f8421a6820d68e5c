//! A walk over a whole heap that asserts all of its invariants: those at the head of
//! [`regions`](crate::heap::regions), and that every count is the sum of what it counts. For tests
//! and fuzzers, by the heap's owner, between operations.

use core::sync::atomic::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::ground::geometry::{
    ARENA_SHIFT, CHUNK_SHIFT, CLASSES, Class, LEVELS, RegionId, granule_shift, region_shift,
};
use crate::ground::words;
use crate::heap::state::{DEFERRED, GRADES, Heap, TAKEN, WithSlimCaches, is_claimed};
use crate::heap::table::entry;
use crate::store::pool::POOLS;
use crate::store::region::{Kind, PAGE_LEVEL};
use crate::store::space::{ChunkTag, SPACE};

/// The contents of a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Blocks in use or lent to upkeep, with their lengths in bytes.
    pub used: BTreeMap<usize, usize>,
    /// The number of cached blocks.
    pub kept: usize,
    /// The number of blocks freed by others and not taken back.
    pub marked: usize,
    /// Regions by level.
    pub regions: [usize; LEVELS],
}

struct Walk<'a> {
    heap: &'a Heap,
    /// All blocks with their classes.
    blocks: BTreeMap<usize, Class>,
    /// Live regions.
    alive: BTreeSet<u32>,
    /// Blocks with marks.
    marked: BTreeSet<usize>,
    /// Deferred blocks.
    deferred: BTreeSet<usize>,
}

impl Heap {
    /// Asserts all invariants, and returns the contents.
    pub(crate) fn check(&self) -> Census {
        let mut walk = Walk {
            heap: self,
            blocks: BTreeMap::new(),
            alive: BTreeSet::new(),
            marked: BTreeSet::new(),
            deferred: BTreeSet::new(),
        };
        let chunks = walk.chunks();
        assert_eq!(chunks, self.chunks.get(), "chunks are counted");
        walk.lists();
        walk.ring();
        let kept = walk.caches();
        walk.counts();
        // The heap itself owns the arrays of its caches, its header, and a thread's nursery.
        let mut arrays = BTreeSet::from_iter(self.caches.grown_arrays());
        let header = core::ptr::from_ref(self).addr();
        let blocks = size_of::<WithSlimCaches>().div_ceil(1024);
        arrays.extend((0..blocks).map(|nth| header + nth * 1024));
        arrays.insert(self.nursery.get().addr());
        let mut regions = [0; LEVELS];
        for region in &walk.alive {
            regions[RegionId(*region).level()] += 1;
        }
        Census {
            used: walk
                .blocks
                .iter()
                .filter(|(block, _)| !kept.contains(block) && !walk.marked.contains(block))
                .filter(|(block, _)| !walk.deferred.contains(block))
                .filter(|(block, _)| !arrays.contains(block))
                .map(|(block, class)| (*block, class.bytes()))
                .collect(),
            kept: kept.len(),
            marked: walk.marked.len(),
            regions,
        }
    }

    /// Takes back all remote frees that are visible.
    pub(crate) fn settle(&self) {
        while self.entry().queue.has_some(&SPACE) {
            let _ = self.adopt();
        }
    }
}

impl Walk<'_> {
    /// Walks over all chunks of the heap; returns how many.
    fn chunks(&mut self) -> usize {
        let heap = self.heap;
        let own = heap.own.get();
        for root in heap.pages.iter().map(|root| RegionId(root.get())) {
            if !root.is_none() {
                self.region(root);
            }
        }
        let mut chunks = 0;
        let all = POOLS.arenas_in_use(&SPACE);
        let mut chunk = 0;
        let mut ends = 0;
        for arena in all {
            chunk = chunk.max(arena << (ARENA_SHIFT - CHUNK_SHIFT));
            let end = (arena + 1) << (ARENA_SHIFT - CHUNK_SHIFT);
            while chunk < end {
                if SPACE.tag(chunk).load(Ordering::Relaxed) != own {
                    assert!(chunk >= ends, "chunk {chunk} is in the middle of a region");
                    chunk += 1;
                    continue;
                }
                let root = (PAGE_LEVEL..LEVELS)
                    .map(|level| RegionId::at(level, chunk << CHUNK_SHIFT))
                    .find(|root| root.chunk() == chunk && heap.page_state(*root).is_root.get())
                    .unwrap_or_else(|| panic!("chunk {chunk} belongs to no region"));
                let length = 1 << (region_shift(root.level()) - CHUNK_SHIFT);
                self.region(root);
                chunks += length;
                chunk += length;
                ends = chunk;
            }
        }
        chunks
    }

    /// Whether a block that could be a region is one. Others have neither starts nor free granules.
    fn is_region(&self, region: RegionId) -> bool {
        let words = self.heap.region(region);
        words.free.get() != 0 || words.starts.get() != 0
    }

    /// Whether a nursery has lent this region to a component's heap.
    fn is_lent(&self, region: RegionId) -> bool {
        let tag = ChunkTag(self.heap.own.get());
        if tag.kind() != ChunkTag::SHARED || region.level() >= PAGE_LEVEL {
            return false;
        }
        let owner = SPACE.owner(region.offset()).load(Ordering::Relaxed);
        if owner == 0 {
            return false;
        }
        // SAFETY: the page's owner is alive, and between operations, as all heaps are while a
        // nursery is checked.
        let owner = unsafe { &*entry(owner).heap() };
        owner.pages.iter().any(|root| root.get() == region.0)
    }

    fn region(&mut self, region: RegionId) {
        let (level, heap) = (region.level(), self.heap);
        let words = heap.region(region);
        let (free, starts) = (words.free.get(), words.starts.get());
        let name = || std::format!("region {region:?} of level {level}: {free:#x} {starts:#x}");
        assert!(self.alive.insert(region.0), "{} is there twice", name());
        let grade = heap.grade(region).get();
        let has_deferred = is_claimed(grade) && grade != TAKEN;
        assert_eq!(
            free & starts != 0,
            has_deferred,
            "{}: a start is free",
            name()
        );
        let marks = SPACE.remote(region).marks.load(Ordering::Relaxed);
        let blocks = starts & !free;
        assert_eq!(marks & !blocks, 0, "{}: marks {marks:#x}", name());
        self.grade(region, free);
        let mut place = 0;
        while place < 64 {
            if (free & !starts) >> place & 1 == 1 {
                place += 1;
                continue;
            }
            let is_block = starts >> place & 1 == 1;
            assert!(is_block, "{}: granule {place} is in no block", name());
            let length = words::length(free, starts, place);
            assert!(length <= 16, "{}: {length} granules at {place}", name());
            let offset = region.offset() + ((place as usize) << granule_shift(level));
            let inner = (level > 0 && length == 16 && place.is_multiple_of(16))
                .then(|| RegionId::at(level - 1, offset))
                .filter(|inner| self.is_region(*inner) && !self.is_lent(*inner));
            match inner {
                Some(inner) => {
                    assert_eq!(marks >> place & 1, 0, "{}: a region is marked", name());
                    self.region(inner);
                }
                None => self.block(region, place, length, marks >> place & 1 == 1),
            }
            if free >> place & 1 == 1 {
                let class = DEFERRED + Class::of(level, length as usize).number() as u8;
                assert_eq!(grade, class, "{}: {place} is deferred", name());
                self.deferred.insert(heap.address(region, place));
            }
            place += length;
        }
    }

    fn block(&mut self, region: RegionId, place: u32, length: u32, is_marked: bool) {
        let (level, heap) = (region.level(), self.heap);
        let class = Class::of(level, length as usize);
        let address = heap.address(region, place);
        let offset = address - heap.data.get();
        let kind = Kind(heap.kind(offset).load(Ordering::Relaxed));
        let is_mixed = level < PAGE_LEVEL && kind == Kind::mixed(level);
        // The borrower of a page writes its own kinds.
        let of_nursery = ChunkTag(heap.own.get()).kind() == ChunkTag::SHARED;
        let is_lent = of_nursery && SPACE.owner(offset).load(Ordering::Relaxed) != 0;
        assert!(
            kind == Kind::pure(class) || is_mixed || is_lent,
            "{address:#x} of {class:?} is said to be {kind:?}"
        );
        // Other threads would get the same answer.
        let words = heap.region(region);
        let is_deferred = (words.free.get() & words.starts.get()) >> place & 1 == 1;
        if !is_lent && !is_deferred {
            assert_eq!(SPACE.class_at(offset), Some(class), "{address:#x}");
        }
        self.blocks.insert(address, class);
        if is_marked {
            self.marked.insert(address);
        }
    }

    /// Asserts that the grade tells what the region can give, or that it is taken.
    fn grade(&self, region: RegionId, free: u64) {
        let (level, heap) = (region.level(), self.heap);
        let (grade, real) = (heap.grade(region).get(), words::grade(free));
        if is_claimed(grade) && grade != TAKEN {
            return;
        }
        if grade == TAKEN {
            let is_current = (0..CLASSES).map(Class::from_number).any(|class| {
                let current = heap.caches.current(class);
                current.is_some_and(|current| current.get() == region.0) && class.level() == level
            });
            let is_spare = heap.spare[level].get() == region.0 && free == u64::MAX;
            assert!(
                is_current != is_spare,
                "{region:?} of level {level} is taken by nobody, or by two: {free:#x}"
            );
            return;
        }
        assert_ne!(free, u64::MAX, "{region:?} of level {level} is all free");
        assert!(grade <= real, "{region:?}: {grade} is more than {real}");
        let is_late = real >= 2 * grade && real != 0 || real == words::ROOM && grade != real;
        assert!(!is_late, "{region:?}: {grade} is not half of {real}");
    }

    /// Asserts that lists hold what their grade says, and that no region is missing.
    fn lists(&self) {
        let heap = self.heap;
        let mut listed = BTreeSet::new();
        for level in 0..LEVELS {
            for grade in 0..GRADES {
                let mut region = RegionId(heap.lists[level][grade].get());
                let is_filled = heap.filled[level].get() >> grade & 1 == 1;
                assert_eq!(is_filled, !region.is_none(), "list {level} {grade}");
                let mut previous = 0;
                while !region.is_none() {
                    assert!(self.alive.contains(&region.0), "{region:?} is gone");
                    assert_eq!(region.level(), level);
                    assert_eq!(usize::from(heap.grade(region).get()), grade);
                    assert_eq!(heap.region(region).previous.get(), previous);
                    assert!(listed.insert(region.0), "{region:?} is listed twice");
                    previous = region.0;
                    region = RegionId(heap.region(region).next.get());
                }
            }
        }
        for number in 0..CLASSES {
            let class = Class::from_number(number);
            let cache = heap.caches.of(Kind::pure(class));
            let mut region = RegionId(cache.newest.get());
            let is_noted = number < 64 && heap.deferred.get() >> number & 1 == 1;
            assert_eq!(is_noted, !region.is_none(), "deferred blocks of {number}");
            let mut previous = RegionId::NONE;
            while !region.is_none() {
                assert!(self.alive.contains(&region.0), "{region:?} is gone");
                assert_eq!(heap.grade(region).get(), DEFERRED + number as u8);
                assert_eq!(heap.region(region).previous.get(), previous.0);
                assert!(listed.insert(region.0), "{region:?} is listed twice");
                previous = region;
                region = RegionId(heap.region(region).next.get());
            }
            assert_eq!(cache.oldest.get(), previous.0, "the oldest of {number}");
        }
        for region in &self.alive {
            let grade = heap.grade(RegionId(*region)).get();
            let must = grade != words::FULL && grade != TAKEN;
            assert_eq!(listed.contains(region), must, "{region} of grade {grade}");
        }
        for class in 0..CLASSES {
            let current = heap.caches.current(Class::from_number(class));
            let current = current.map_or(0, |current| current.get());
            assert!(
                current == 0 || self.alive.contains(&current),
                "the current region of class {class} is gone"
            );
        }
        for (level, spare) in heap.spare.iter().enumerate() {
            let spare = RegionId(spare.get());
            let is_right = spare.is_none()
                || self.alive.contains(&spare.0)
                    && spare.level() == level
                    && heap.region(spare).free.get() == u64::MAX;
            assert!(is_right, "the spare {spare:?} of level {level}");
        }
    }

    /// Asserts that the ring has all regions of whole pages, once each, both ways.
    fn ring(&self) {
        let heap = self.heap;
        let mut ring = BTreeSet::new();
        let first = RegionId(heap.ring.get());
        let mut region = first;
        while !region.is_none() && ring.insert(region.0) {
            let behind = RegionId(heap.page_state(region).behind.get());
            assert_eq!(heap.page_state(behind).before.get(), region.0, "{region:?}");
            region = behind;
        }
        assert_eq!(region, first, "the ring is closed");
        let whole: BTreeSet<u32> = self
            .alive
            .iter()
            .copied()
            .filter(|region| RegionId(*region).level() >= PAGE_LEVEL)
            .collect();
        assert_eq!(ring, whole, "the ring has all regions of whole pages");
    }

    /// Asserts that cached blocks are blocks of the right class, and cached once.
    fn caches(&self) -> BTreeSet<usize> {
        let mut kept = BTreeSet::new();
        for number in 0..CLASSES {
            for block in self.heap.caches.check(Class::from_number(number)) {
                let class = self.blocks.get(&block);
                assert_eq!(
                    class.map(|class| class.number()),
                    Some(number),
                    "{block:#x} in cache {number}"
                );
                assert!(!self.marked.contains(&block), "{block:#x} is marked");
                assert!(!self.deferred.contains(&block), "{block:#x} is deferred");
                assert!(kept.insert(block), "{block:#x} is in cache twice");
            }
        }
        kept
    }

    /// Asserts the bytes of blocks and of touched pages.
    fn counts(&self) {
        let heap = self.heap;
        let is_used = |block: &usize| !self.deferred.contains(block);
        let used: usize = self
            .blocks
            .iter()
            .filter(|(block, _)| is_used(block))
            .map(|(_, class)| class.bytes())
            .sum();
        assert_eq!(heap.used.get(), used, "bytes of blocks are counted");
        let (mut touched, mut counted_above) = (0, 0);
        for region in self.alive.iter().map(|region| RegionId(*region)) {
            let level = region.level();
            if level < PAGE_LEVEL {
                continue;
            }
            let unit = granule_shift(level).max(12);
            let bytes = |units: u64| (units.count_ones() as usize) << unit;
            let whole = heap.page_state(region);
            touched += bytes(whole.touched.get());
            if !whole.is_root.get() {
                // The region around it counts it as a whole.
                counted_above += 1 << region_shift(level);
            }
        }
        let touched = touched - counted_above;
        assert_eq!(heap.touched.get(), touched, "touched pages are counted");
    }
}

#[cfg(test)]
mod tests {
    //! Random operations of one owner and of others, with a walk now and then.

    use std::sync::mpsc;
    use std::thread;
    use std::vec;
    use std::vec::Vec;

    use hearth_testing::random::Random;

    use crate::store::space::SPACE;
    use crate::{allocate, allocate_aligned, check_this_thread, free, reallocate};

    fn give(block: usize) {
        // SAFETY: the block is alive and not used any more.
        unsafe { free(core::ptr::with_exposed_provenance_mut(block)) };
    }

    fn take(random: &mut Random, bits: usize) -> usize {
        let range = 1 << random.below(bits);
        let size = random.below(range);
        let block = match random.below(8) {
            0 => allocate_aligned(size, 1 << random.below(14)),
            _ => allocate(size),
        };
        assert!(!block.is_null());
        block.expose_provenance()
    }

    /// Asserts that the walk finds every live block in use.
    fn walk(live: &[usize]) {
        let census = check_this_thread();
        let data = SPACE.data();
        let bytes = SPACE.bytes();
        for block in live {
            let chunks = block.wrapping_sub(data) < bytes && *block & 0xffff == 0;
            assert!(chunks || census.used.contains_key(block), "{block:#x}");
        }
    }

    /// Runs phases of several sizes, so that regions come and go on all levels.
    fn life(seed: u64, operations: usize, other: Option<&mpsc::Sender<usize>>) {
        let mut random = Random::new(seed);
        let mut live = vec![];
        let (mut bits, mut most) = (10, 1000);
        for i in 0..operations {
            if i % 4000 == 0 {
                bits = 5 + random.below(14);
                most = 1 << (3 + random.below(10));
            }
            if i % 997 == 0 {
                walk(&live);
            }
            let is_many = live.len() > most;
            if is_many || (!live.is_empty() && random.below(5) < 2) {
                let block = live.swap_remove(random.below(live.len()));
                match other {
                    Some(other) if random.below(3) == 0 => {
                        other.send(block).expect("the other is there");
                    }
                    _ => give(block),
                }
            } else if !live.is_empty() && random.below(20) == 0 {
                let at = random.below(live.len());
                let block = core::ptr::with_exposed_provenance_mut(live[at]);
                // SAFETY: the block is alive, and its old place is forgotten.
                live[at] = unsafe { reallocate(block, 1 << bits) }.expose_provenance();
            } else {
                live.push(take(&mut random, bits));
            }
        }
        for block in live.drain(..) {
            give(block);
        }
        walk(&live);
    }

    /// Miri takes a thousand times as long.
    const LESS: usize = if cfg!(miri) { 200 } else { 1 };

    #[test]
    fn a_heap_is_whole_after_whatever_its_owner_does() {
        for seed in 0..6_usize.div_ceil(LESS) as u64 {
            thread::spawn(move || life(seed, 30_000 / LESS, None))
                .join()
                .expect("it does not panic");
        }
    }

    #[test]
    fn a_heap_is_whole_after_whatever_others_free() {
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn(move || {
            for block in receiver {
                give(block);
            }
        });
        let own: Vec<_> = (0..2)
            .map(|seed| {
                let sender = sender.clone();
                thread::spawn(move || life(100 + seed, 60_000 / LESS, Some(&sender)))
            })
            .collect();
        drop(sender);
        for thread in own {
            thread.join().expect("it does not panic");
        }
        other.join().expect("it does not panic");
    }
}
