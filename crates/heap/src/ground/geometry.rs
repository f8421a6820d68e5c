//! Sizes, classes and addresses: pure arithmetic.
//!
//! Memory is a tree of words. A *region* is 64 *granules*, one bit of a word each; on the lowest
//! level a granule has 16 bytes, and on each higher one four times as many:
//!
//! ```text
//! level  granule   region   blocks of 1 to 16 granules
//!   0      16 B     1 KiB     1 B to 256 B
//!   1      64 B     4 KiB         to   1 KiB
//!   2     256 B    16 KiB         to   4 KiB
//!   3     1 KiB    64 KiB         to  16 KiB      a region is one chunk
//!   4     4 KiB   256 KiB         to  64 KiB      four chunks
//!   5    16 KiB     1 MiB         to 256 KiB      sixteen chunks
//! ```
//!
//! A region has the size of the largest block of the next level, and is cut as one unless it comes
//! from the pool. Blocks larger than 256 KiB are made of whole chunks; 64 chunks are an arena.

/// The smallest block and the least alignment, in bytes.
pub const GRANULE_MIN: usize = 16;
/// The number of levels.
pub const LEVELS: usize = 6;
/// The number of levels with regions no larger than a chunk.
pub const FINE_LEVELS: usize = 4;
/// log2 of the bytes in a chunk, which has one owner and one block of metadata.
pub const CHUNK_SHIFT: u32 = 16;
/// Bytes in a chunk.
pub const CHUNK_BYTES: usize = 1 << CHUNK_SHIFT;
/// log2 of the bytes in an arena, the pool's unit of 64 chunks.
pub const ARENA_SHIFT: u32 = CHUNK_SHIFT + 6;
/// Bytes in an arena.
pub const ARENA_BYTES: usize = 1 << ARENA_SHIFT;
/// The most granules of a block.
pub const GRANULES_MAX: usize = 16;
/// The largest block made of granules, in bytes.
pub const MEDIUM_MAX: usize = granule_bytes(LEVELS - 1) * GRANULES_MAX;

/// log2 of the bytes in a granule of a level.
#[inline]
pub const fn granule_shift(level: usize) -> u32 {
    4 + 2 * level as u32
}

/// log2 of the bytes in a region of a level.
#[inline]
pub const fn region_shift(level: usize) -> u32 {
    granule_shift(level) + 6
}

/// Bytes in a granule of a level.
#[inline]
pub const fn granule_bytes(level: usize) -> usize {
    1 << granule_shift(level)
}

/// A size class: a level and a number of granules, 1 to 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Class(u8);

/// The number of classes; not all are in use.
pub const CLASSES: usize = LEVELS * GRANULES_MAX;

/// The largest size whose class needs no search for the highest bit.
pub const SMALL_MAX: usize = 1024;

/// An empty instruction sequence that the compiler cannot see through, so that it computes nothing
/// beside it in advance: keeps a branch that goes one way most of the time from becoming a
/// selection of both results.
#[inline(always)]
fn keep_branch() {
    #[cfg(not(miri))]
    // SAFETY: no instruction.
    unsafe {
        core::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

impl Class {
    /// The class of a level and a number of granules.
    #[inline]
    pub const fn of(level: usize, granules: usize) -> Class {
        Class((level * GRANULES_MAX + granules - 1) as u8)
    }

    /// The class from its number, below [`CLASSES`].
    #[inline]
    pub const fn from_number(number: usize) -> Class {
        Class(number as u8)
    }

    /// The smallest class for a size in bytes, at most [`SMALL_MAX`].
    #[inline]
    pub fn for_small(size: usize) -> Class {
        Class::for_last(size.saturating_sub(1))
    }

    /// The smallest class with this byte, counted from 0: less than [`SMALL_MAX`].
    #[inline]
    pub fn for_last(last: usize) -> Class {
        if last < 256 {
            Class((last >> granule_shift(0)) as u8)
        } else {
            keep_branch();
            Class(GRANULES_MAX as u8 + (last >> granule_shift(1)) as u8)
        }
    }

    /// The smallest class for a size in bytes, at most [`MEDIUM_MAX`].
    #[inline]
    pub const fn for_size(size: usize) -> Class {
        let last = size.saturating_sub(1);
        let bits = usize::BITS - (last | 0xff).leading_zeros();
        let level = (bits as usize - 7) / 2;
        Class::of(level, (last >> granule_shift(level)) + 1)
    }

    /// The smallest class for a size whose blocks are aligned to a power of two, if there is one.
    pub fn for_aligned(size: usize, align: usize) -> Option<Class> {
        if size > MEDIUM_MAX || align > granule_bytes(LEVELS - 1) {
            return None;
        }
        let class = Class::for_size(size);
        if granule_bytes(class.level()) >= align {
            return Some(class);
        }
        let level = (align.trailing_zeros() as usize - 3) / 2;
        let granules = size.max(1).div_ceil(granule_bytes(level));
        Some(Class::of(level, granules))
    }

    /// The number, below [`CLASSES`].
    #[inline]
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    /// The level.
    #[inline]
    pub const fn level(self) -> usize {
        self.0 as usize / GRANULES_MAX
    }

    /// The number of granules, 1 to 16.
    #[inline]
    pub const fn granules(self) -> u32 {
        self.0 as u32 % GRANULES_MAX as u32 + 1
    }

    /// The size of a block in bytes.
    #[inline]
    pub const fn bytes(self) -> usize {
        (self.granules() as usize) << granule_shift(self.level())
    }
}

/// The number of slots: places for the metadata of a chunk's regions. Slot 0 has no region; then
/// come 64 of level 0, 16 of level 1, 4 of level 2, and one of each level above. Those of levels 4
/// and 5 are used in the first chunk of such a region only.
pub const SLOTS: usize = 88;

/// The first slot of a level.
pub const FIRST_SLOT: [usize; LEVELS] = [1, 65, 81, 85, 86, 87];

static LEVEL_OF_SLOT: [u8; SLOTS] = {
    let mut table = [0; SLOTS];
    let mut slot = 1;
    while slot < SLOTS {
        let mut level = 0;
        while level + 1 < LEVELS && slot >= FIRST_SLOT[level + 1] {
            level += 1;
        }
        table[slot] = level as u8;
        slot += 1;
    }
    table
};

/// A region, by its chunk, counted from the start of the space, and its slot there. 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct RegionId(pub u32);

/// The most chunks that ids can name: 2 TiB.
pub const CHUNKS_MAX: usize = 1 << 25;

impl RegionId {
    /// No region.
    pub const NONE: RegionId = RegionId(0);

    /// The region of a level that contains a byte, by the byte's offset in the space.
    #[inline]
    pub const fn at(level: usize, offset: usize) -> RegionId {
        let start = offset >> region_shift(level) << region_shift(level);
        let inside = (start & (CHUNK_BYTES - 1)) >> region_shift(level);
        RegionId(((start >> CHUNK_SHIFT) as u32) << 7 | (FIRST_SLOT[level] + inside) as u32)
    }

    /// The chunk that holds its metadata.
    #[inline]
    pub const fn chunk(self) -> usize {
        (self.0 >> 7) as usize
    }

    /// The slot there.
    #[inline]
    pub const fn slot(self) -> usize {
        (self.0 & 127) as usize
    }

    /// The level.
    #[inline]
    pub fn level(self) -> usize {
        LEVEL_OF_SLOT[self.slot()] as usize
    }

    /// The offset in the space.
    #[inline]
    pub fn offset(self) -> usize {
        self.offset_on(self.level())
    }

    /// The offset in the space, for a known level.
    #[inline]
    pub const fn offset_on(self, level: usize) -> usize {
        (self.chunk() << CHUNK_SHIFT) + ((self.slot() - FIRST_SLOT[level]) << region_shift(level))
    }

    /// Whether it is none.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_sizes_and_waste_little() {
        for size in 0..=MEDIUM_MAX {
            let class = Class::for_size(size);
            assert!(class.bytes() >= size, "{size}");
            assert!(size > SMALL_MAX || class == Class::for_small(size));
            assert!(class.number() < CLASSES);
            let waste = class.bytes() - size;
            let granule = granule_bytes(class.level());
            assert!(waste < granule || size == 0, "{size}: {waste}");
            // Above the lowest level a block has more than four granules, so at most a fifth is
            // waste.
            assert!(class.level() == 0 || class.granules() > 4, "{size}");
        }
    }

    #[test]
    fn aligned_classes_are_aligned() {
        for shift in 0..=14 {
            let align = 1 << shift;
            for size in (1..MEDIUM_MAX).step_by(61) {
                let class = Class::for_aligned(size, align).expect("there is one");
                assert!(class.bytes() >= size);
                assert!(granule_bytes(class.level()) >= align);
                assert!(class.granules() as usize <= GRANULES_MAX);
            }
        }
        assert_eq!(Class::for_aligned(1, 1 << 15), None);
        assert_eq!(Class::for_aligned(MEDIUM_MAX + 1, 1), None);
    }

    #[test]
    fn regions_know_where_they_are() {
        for level in 0..LEVELS {
            for index in 0..200 {
                let start = index << region_shift(level);
                let id = RegionId::at(level, start + 5);
                assert!(!id.is_none());
                assert_eq!(id.level(), level);
                assert_eq!(id.offset(), start);
                assert_eq!(
                    id,
                    RegionId::at(level, start + (1 << region_shift(level)) - 1)
                );
            }
        }
    }
}
