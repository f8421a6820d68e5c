//! Growth of caches that prove too small, and their shrinking when the heap shrinks.

use crate::ground::faults::Checked;
use crate::ground::geometry::{CLASSES, Class};
use crate::ground::harden;
use crate::heap::state::Heap;
use crate::store::region::Kind;

use super::{ROOM, ROOM_GROWN, filled_at_once, limit_max};

/// Growth of the limit, above the first.
const STEP: u32 = 64;
/// Bytes of blocks that a thread's caches may hold beyond their first limits: this, a few thousand
/// small blocks, plus a fraction of the bytes in use, which counts little in what is resident.
const GROWN_MIN: usize = 1 << 20;
const GROWN_OF_USED: usize = 32;
/// The same for a component's heap.
const GROWN_MIN_PRIVATE: usize = 16 << 10;
const GROWN_OF_USED_PRIVATE: usize = 8;

/// Blocks that leave a cache at once.
const fn drained_at_once(level: usize) -> u32 {
    match level {
        0 | 1 => 8,
        2 => 4,
        _ => 1,
    }
}

/// Classes searched for a cache with blocks.
const SHRINK_LOOKS: usize = 8;

impl Heap {
    /// Whether this block was freed last in its class.
    pub(crate) fn is_top(&self, class: Class, block: usize) -> bool {
        self.caches.of(Kind::pure(class)).is_top(block)
    }

    /// Makes a cache on first use, so that few pages are touched. True if it was new.
    pub(crate) fn make_cache(&self, class: Class) -> bool {
        let cache = self.caches.of(Kind::pure(class));
        // Where every operation is checked, no cache has room.
        if cache.limit.get() != 0 || harden::is_checking() {
            return false;
        }
        let Some((array, limit)) = self.caches.first(class) else {
            return false;
        };
        cache.below.set(array);
        cache.limit.set(limit);
        true
    }

    /// Raises the limit of a full cache, if its blocks are small and all caches together do not
    /// hold much.
    fn grow_cache(&self, class: Class) -> bool {
        let cache = self.caches.of(Kind::pure(class));
        let limit = cache.limit.get();
        let grown = match limit {
            0 => return false,
            1..ROOM_GROWN => ROOM_GROWN,
            ROOM_GROWN..STEP if limit < ROOM as u32 => ROOM as u32,
            _ => limit + STEP,
        };
        let grown = grown.min(limit_max(class.level()));
        if grown <= limit {
            return false;
        }
        let bytes = self.caches.grown.get() + (grown - limit) as usize * class.bytes();
        let (min, of_used) = if self.is_private.get() {
            (GROWN_MIN_PRIVATE, GROWN_OF_USED_PRIVATE)
        } else {
            (GROWN_MIN, GROWN_OF_USED)
        };
        if bytes > min + self.used.get() / of_used {
            return false;
        }
        if grown > self.cache_room(class) && !self.lengthen(class, grown) {
            return false;
        }
        self.caches.grown.set(bytes);
        cache.limit.set(grown);
        true
    }

    /// The length of a cache's array.
    fn cache_room(&self, class: Class) -> u32 {
        let array = self.caches.of(Kind::pure(class)).below.get();
        if self.caches.is_first(class, array) {
            return self.caches.limit_first(class);
        }
        let bytes = self.class_of(array).map_or(0, Class::bytes);
        (bytes / size_of::<usize>()).saturating_sub(1) as u32
    }

    /// Moves a cache to a longer array, a block of this heap.
    fn lengthen(&self, class: Class, wanted: u32) -> bool {
        let cache = self.caches.of(Kind::pure(class));
        let room = match wanted {
            0..=ROOM_GROWN => ROOM_GROWN as usize,
            _ if wanted as usize <= ROOM => ROOM,
            _ => limit_max(class.level()) as usize,
        };
        let of_array = Class::for_size((room + 1) * size_of::<usize>());
        let mut array = self.caches.of(Kind::pure(of_array)).pop();
        if array == 0 {
            array = self.carve_quietly(of_array);
        }
        if array == 0 {
            return false;
        }
        let before = cache.below.replace(array);
        let place: *mut usize = core::ptr::with_exposed_provenance_mut(array);
        let from: *const usize = core::ptr::with_exposed_provenance(before);
        // An empty cache still needs its first cell, which is 0.
        let count = (cache.count.get() as usize).max(1);
        // SAFETY: both have this length, and do not overlap.
        unsafe { place.copy_from_nonoverlapping(from, count) };
        if !self.caches.is_first(class, before) {
            // It is a block in use, so it goes back to its region.
            let _ = self.restore_any(before);
        }
        true
    }

    /// Grows a cache that ran empty again, to hold as many blocks as are cut at once.
    pub(crate) fn grow_if_small(&self, class: Class) {
        let limit = self.caches.of(Kind::pure(class)).limit.get();
        if limit != 0 && limit < filled_at_once(class.level()) - 1 {
            self.grow_cache(class);
        }
    }

    /// Takes back a block whose cache is full: the cache grows, or the block is deferred, and
    /// others with it, so that the next blocks find room.
    #[inline(never)]
    pub(crate) fn take_back_full(&self, class: Class, block: usize) -> Checked {
        if self.pile(block, class.bytes()) {
            return Ok(());
        }
        let cache = self.caches.of(Kind::pure(class));
        if (self.make_cache(class) || self.grow_cache(class)) && cache.push(block) {
            return Ok(());
        }
        let more = (drained_at_once(class.level()) - 1).min(cache.limit.get() / 2);
        self.defer(class, block, more)?;
        self.coalesce_some();
        self.shrink_caches()
    }

    /// Moves some blocks from a cache to their regions.
    fn drain(&self, class: Class) -> Checked {
        match self.caches.of(Kind::pure(class)).pop() {
            0 => Ok(()),
            block => self.defer(class, block, drained_at_once(class.level()) - 1),
        }
    }

    /// Drains one cache of a shrinking heap: each block in it may be the last of its chunk. Every
    /// return of chunks allows a few such turns.
    #[inline]
    pub(crate) fn shrink_caches(&self) -> Checked {
        if self.shrink.get() == 0 {
            return Ok(());
        }
        self.shrink.set(self.shrink.get() - 1);
        let mut class = Class::from_number(self.shrinking.get());
        for _ in 0..SHRINK_LOOKS {
            if !self.caches.of(Kind::pure(class)).is_empty() {
                break;
            }
            class = Class::from_number((class.number() + 1) % CLASSES);
        }
        self.shrinking.set((class.number() + 1) % CLASSES);
        let cache = self.caches.of(Kind::pure(class));
        let (limit, first) = (cache.limit.get(), self.caches.limit_first(class));
        if limit > first {
            let less = limit.saturating_sub(STEP).max(first);
            let bytes = (limit - less) as usize * class.bytes();
            self.caches.grown.set(self.caches.grown.get() - bytes);
            cache.limit.set(less);
        }
        self.drain(class)
    }

    /// Bytes of all cached blocks of a component's heap, and of the arrays of grown caches.
    pub(crate) fn caches_bytes(&self) -> usize {
        let (mut bytes, mut made) = (0, self.caches.made.get());
        while made != 0 {
            let class = Class::from_number(made.trailing_zeros() as usize);
            made &= made - 1;
            let cache = self.caches.of(Kind::pure(class));
            bytes += cache.count.get() as usize * class.bytes();
            let array = cache.below.get();
            if !self.caches.is_first(class, array) {
                bytes += self.class_of(array).map_or(0, Class::bytes);
            }
        }
        bytes
    }

    /// Moves all cached blocks of a component's heap to their regions, and then the arrays of grown
    /// caches.
    pub(crate) fn shed_caches(&self) -> Checked {
        let mut made = self.caches.made.get();
        while made != 0 {
            let class = Class::from_number(made.trailing_zeros() as usize);
            made &= made - 1;
            let cache = self.caches.of(Kind::pure(class));
            while !cache.is_empty() {
                self.drain(class)?;
            }
            let array = cache.below.get();
            if array != 0 && !self.caches.is_first(class, array) {
                cache.limit.set(0);
                cache.below.set(0);
                self.restore_any(array)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::PrivateHeap;

    /// A component's heap has no cache for blocks of this size. Miri reports two threads that write
    /// to the stand-in.
    #[test]
    fn what_stands_for_no_front_is_not_written_to() {
        let threads = [(); 2].map(|()| {
            std::thread::spawn(|| {
                let own = PrivateHeap::new().expect("there is memory");
                let block = own.allocate(5000);
                assert!(!block.is_null());
                // SAFETY: allocated above, and not used any more.
                unsafe { own.free(block) };
            })
        });
        for thread in threads {
            thread.join().expect("it does not panic");
        }
    }
}
