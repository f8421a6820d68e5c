//! Shared parts of the heaps' tests: memory, random numbers, and an oracle that knows every block.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;

use hearth_allocators::heap::ALIGN;

/// Memory for a pool, aligned, never moved.
pub(crate) struct Memory(Vec<u128>);

impl Memory {
    pub(crate) fn new(bytes: usize) -> Memory {
        Memory(vec![0; bytes / size_of::<u128>()])
    }

    pub(crate) fn pool(&mut self) -> hearth_allocators::heap::Pool {
        // SAFETY: tests keep the memory as long as the heap, and touch it through blocks only.
        unsafe {
            hearth_allocators::heap::Pool::over(
                self.0.as_mut_ptr().cast(),
                size_of_val(&self.0[..]),
            )
        }
    }
}

/// Random numbers by Marsaglia's xorshift64*; a failing test prints the seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Mostly small, sometimes large, as programs ask.
    pub(crate) fn size(&mut self, largest: usize) -> usize {
        match self.below(100) {
            0..=2 => self.below(largest + 1),
            3..=14 => self.below(4096.min(largest) + 1),
            _ => self.below(256.min(largest) + 1),
        }
    }
}

/// Tracks the owner of every byte, and checks that blocks still hold what was written there.
#[derive(Default)]
pub(crate) struct Oracle {
    blocks: BTreeMap<usize, (usize, u8)>,
    stamp: u8,
}

impl Oracle {
    /// Notes a block and fills it.
    pub(crate) fn got(&mut self, block: *mut u8, bytes: usize, align: usize) {
        assert!(!block.is_null());
        let start = block.addr();
        assert!(
            start.is_multiple_of(align.max(ALIGN)),
            "{block:p} for {align}"
        );
        let before = self.blocks.range(..=start).next_back();
        if let Some((at, (size, _))) = before {
            assert!(
                at + (*size).max(1) <= start,
                "{block:p} lies in {at:#x} + {size}"
            );
        }
        if let Some((at, _)) = self.blocks.range(start..).next() {
            assert!(
                start + bytes.max(1) <= *at,
                "{block:p} + {bytes} reaches into {at:#x}"
            );
        }
        self.stamp = self.stamp.wrapping_add(1);
        // SAFETY: the block was just handed out, with that many bytes.
        unsafe { block.write_bytes(self.stamp, bytes) };
        self.blocks.insert(start, (bytes, self.stamp));
    }

    /// Checks a block's contents, and forgets it.
    pub(crate) fn gave_back(&mut self, block: *mut u8) {
        let (bytes, stamp) = self
            .blocks
            .remove(&block.addr())
            .expect("it was handed out");
        check(block, bytes, stamp);
    }

    /// Looks at the part that a block kept when it got another size.
    pub(crate) fn resized(&mut self, block: *mut u8, from: *mut u8, bytes: usize) {
        let (had, stamp) = self.blocks.remove(&from.addr()).expect("it was handed out");
        check(block, had.min(bytes), stamp);
        self.got(block, bytes, ALIGN);
    }
}

fn check(block: *mut u8, bytes: usize, stamp: u8) {
    for at in 0..bytes {
        // SAFETY: the block is handed out, with that many bytes.
        let found = unsafe { block.add(at).read() };
        assert_eq!(found, stamp, "byte {at} of {bytes} at {block:p}");
    }
}
