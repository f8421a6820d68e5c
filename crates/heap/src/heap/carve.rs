//! Blocks cut from regions and taken back to them: the slow half of allocating and freeing.

use crate::ground::faults::{Checked, Fault};
use crate::ground::geometry::{Class, RegionId, granule_shift};
use crate::ground::words;
use crate::heap::cache::filled_at_once;
use crate::heap::state::{Heap, is_claimed};
use crate::store::region::Kind;

/// Up to this level a class keeps the region it cuts from. Above, regions are large, and all
/// classes of the level share them.
const CURRENT_LEVEL_MAX: usize = 2;

/// Regions coalesced when a class finds no room, before it looks further. With four, `batches` took
/// a twentieth more instructions, and no program had less memory.
const COALESCED: u32 = 1;

impl Heap {
    /// Returns a block of a class from the regions, and puts a few more into its cache, which is
    /// empty; 0 if there is no memory.
    pub(crate) fn carve(&self, class: Class) -> usize {
        let block = self.carve_quietly(class);
        self.balance(class.level());
        block
    }

    /// The same, without looking for idle pages.
    pub(crate) fn carve_quietly(&self, class: Class) -> usize {
        let block = self.take_deferred(class);
        if block != 0 {
            return block;
        }
        let current = self.caches.current(class);
        if let Some(current) = current {
            let region = RegionId(current.get());
            if !region.is_none() {
                let block = self.fill(region, class);
                if block != 0 {
                    return block;
                }
                current.set(0);
                self.put_back(region);
            }
        }
        let adopted = self.adopt();
        let block = self.take_deferred(class);
        if block != 0 {
            return block;
        }
        let region = self
            .region_for(class, adopted)
            .or_else(|| self.last_region_for(class));
        let Some(region) = region else {
            return 0;
        };
        let block = self.fill(region, class);
        match current {
            Some(current) if class.level() <= CURRENT_LEVEL_MAX => current.set(region.0),
            _ => self.put_back(region),
        }
        block
    }

    /// Cuts a few blocks off a region that is in no list: returns the lowest, the others go to the
    /// cache. 0 if no run is long enough.
    fn fill(&self, region: RegionId, class: Class) -> usize {
        // Makes all that depends on the level constant.
        match class.level() {
            0 => self.fill_on(0, region, class),
            1 => self.fill_on(1, region, class),
            2 => self.fill_on(2, region, class),
            level => self.fill_on(level, region, class),
        }
    }

    #[inline(always)]
    fn fill_on(&self, level: usize, region: RegionId, class: Class) -> usize {
        let granules = class.granules();
        let free = self.region(region).free.get();
        let runs = words::runs(free, granules);
        if runs == 0 {
            return 0;
        }
        self.make_cache(class);
        let cache = self.caches.of(Kind::pure(class));
        // The block handed out now may come back to the cache, too.
        let at_once = filled_at_once(level).min(cache.room().max(1));
        let begins = words::lowest_runs(free, runs, granules, at_once);
        self.cut(region, level, begins, granules);
        let start = self.data.get() + region.offset_on(level);
        let (mut rest, mut refill) = (begins, cache.refill());
        while rest != 0 {
            // The highest first, so that the lowest ends on top.
            let first = 63 - rest.leading_zeros();
            rest ^= 1 << first;
            refill.add(start + ((first as usize) << granule_shift(level)));
        }
        let cut = (refill.count() * granules) as usize;
        self.used
            .set(self.used.get() + (cut << granule_shift(level)));
        refill.end()
    }

    /// Takes a block of a class back to its region.
    pub(crate) fn restore_one(&self, class: Class, block: usize) -> Checked {
        let level = class.level();
        let offset = block - self.data.get();
        let region = RegionId::at(level, offset);
        let first = (offset - region.offset_on(level)) >> granule_shift(level);
        self.restore(region, level, 1 << first, class.granules())
    }

    /// Takes back a block by its address alone.
    pub(crate) fn restore_any(&self, block: usize) -> Checked {
        match self.class_of(block) {
            Some(class) => self.restore_one(class, block),
            None => Err((block, Fault::NotABlock)),
        }
    }

    /// Moves all that is kept back to the regions: cached blocks and spares. The heap keeps nothing
    /// back from then on.
    pub(crate) fn shed(&self) -> Checked {
        self.is_ending.set(true);
        self.defers.set(false);
        self.coalesce_any(u32::MAX);
        self.shed_caches()?;
        for spare in &self.spare {
            let region = RegionId(spare.replace(0));
            if !region.is_none() {
                self.release(region);
            }
        }
        Ok(())
    }

    /// A region with room for a block of a class, taken off its list: one with fresh remote frees,
    /// the tightest, or a new one.
    fn region_for(&self, class: Class, adopted: Option<RegionId>) -> Option<RegionId> {
        let (level, granules) = (class.level(), class.granules());
        let fits = |region: &RegionId| {
            region.level() == level && {
                let grade = self.grade(*region).get();
                !is_claimed(grade) && u32::from(grade) >= granules
            }
        };
        let region = adopted
            .filter(fits)
            .or_else(|| self.find(level, granules))
            .or_else(|| {
                self.coalesce_level(level, COALESCED);
                self.find(level, granules)
            });
        let Some(region) = region else {
            return self.new_region(level);
        };
        self.take(region);
        Some(region)
    }

    /// The same when there is no memory: coalesces all deferred blocks first.
    #[cold]
    fn last_region_for(&self, class: Class) -> Option<RegionId> {
        if self.coalesce_any(u32::MAX) == 0 {
            return None;
        }
        self.region_for(class, None)
    }
}
