//! Memory mapped from the system, as aligned words.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::refused::{Reason, Refused};

/// Assumed size of a cache line, where it must be known at build time.
pub const LINE_BYTES: usize = 64;
/// Words of eight bytes in a line.
pub const LINE_WORDS: usize = LINE_BYTES / 8;

/// Whether to use large pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// The system's own choice.
    Default,
    /// Wanted. The system may still give small ones.
    Wanted,
    /// Not wanted.
    Refused,
}

/// Options of a mapping.
#[derive(Clone, Copy, Debug)]
pub struct MapOptions {
    /// Size; rounded up to whole pages.
    pub bytes: usize,
    /// Alignment of the address: a power of two, at least a page.
    pub align: usize,
    /// Whether to use large pages.
    pub huge: HugePages,
    /// Whether to touch it at once, so that later accesses do not fault.
    pub prefault: bool,
}

impl MapOptions {
    /// Small pages, prefaulted.
    pub fn small(bytes: usize) -> MapOptions {
        MapOptions {
            bytes,
            align: 4096,
            huge: HugePages::Refused,
            prefault: true,
        }
    }

    /// Large pages of 2 MiB and their alignment, prefaulted.
    pub fn huge(bytes: usize) -> MapOptions {
        MapOptions {
            bytes,
            align: 2 << 20,
            huge: HugePages::Wanted,
            prefault: true,
        }
    }
}

/// Zeroed private memory, unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    /// The whole mapping, to be unmapped.
    base: *mut u8,
    whole: usize,
    /// The aligned part inside, `bytes` long.
    start: *mut u64,
    bytes: usize,
    huge_refused: Option<Refused>,
}

// SAFETY: the memory belongs to the mapping alone and is lent as a Vec's would be: to read from a
// shared reference, to write from a unique one.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Size of the smallest page in bytes.
pub fn page_bytes() -> usize {
    // SAFETY: the call only reads.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

impl Mapping {
    /// Maps memory.
    ///
    /// # Errors
    /// The system has too little memory or address space, or the alignment is not a power of two.
    pub fn new(options: MapOptions) -> Result<Mapping, Refused> {
        let page = page_bytes();
        let object = || format!("{} bytes of memory", options.bytes);
        let next = "ask for less, or free memory";
        let align = options.align.max(page);
        let bytes = options.bytes.max(1).checked_next_multiple_of(page);
        // To align beyond a page, map more and use the middle.
        let extra = if align > page { align } else { 0 };
        let whole = bytes.and_then(|bytes| bytes.checked_add(extra));
        let (Some(bytes), Some(whole), true) = (bytes, whole, align.is_power_of_two()) else {
            return Err(Refused::because("map", object(), Reason::Invalid, next));
        };
        // Miri has no such flag.
        let no_reserve = if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };
        // SAFETY: a new private mapping at an address of the system's choice disturbs nobody.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                whole,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | no_reserve,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Refused::last("map", object(), next));
        }
        let base = base.cast::<u8>();
        let offset = base.addr().next_multiple_of(align) - base.addr();
        // SAFETY: the offset is below `extra`, or 0, so that `bytes` from there are in the mapping.
        let start = unsafe { base.add(offset) }.cast::<u64>();
        let mut mapping = Mapping {
            base,
            whole,
            start,
            bytes,
            huge_refused: None,
        };
        mapping.advise(options.huge);
        if options.prefault {
            mapping.prefault();
        }
        Ok(mapping)
    }

    fn advise(&mut self, huge: HugePages) {
        let advice = match huge {
            HugePages::Default => return,
            HugePages::Wanted => libc::MADV_HUGEPAGE,
            HugePages::Refused => libc::MADV_NOHUGEPAGE,
        };
        // SAFETY: the range is this mapping's; the advice does not change its contents.
        let result = unsafe { libc::madvise(self.start.cast(), self.bytes, advice) };
        if result != 0 && huge == HugePages::Wanted {
            self.huge_refused = Some(Refused::last(
                "use huge pages for",
                format!("{} bytes of memory", self.bytes),
                "set /sys/kernel/mm/transparent_hugepage/enabled to madvise",
            ));
        }
    }

    /// Writes to every small page, so that each has memory behind it.
    pub fn prefault(&mut self) {
        for word in self.atomics().iter().step_by(page_bytes() / 8) {
            // An atomic store is not optimised away, even of zero over zero.
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Gives the memory back to the system but keeps the addresses; the next access faults and
    /// reads zeroes.
    pub fn forget_contents(&mut self) {
        // SAFETY: the range is this mapping's, private and anonymous, and no reference into it
        // is alive, as `self` is borrowed uniquely.
        unsafe { libc::madvise(self.start.cast(), self.bytes, libc::MADV_DONTNEED) };
    }

    /// Size in bytes, whole pages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The system's reason for not giving large pages, if it gave one.
    pub fn huge_refused(&self) -> Option<&Refused> {
        self.huge_refused.as_ref()
    }

    /// The memory as words.
    pub fn words(&self) -> &[u64] {
        // SAFETY: mapped, readable, aligned to a page, zeroed by the system. The writer holds
        // a borrow from `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes / 8) }
    }

    /// The memory as words to write.
    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as for `words`, and `self` is borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes / 8) }
    }

    /// The memory as words that several threads may read and write.
    pub fn atomics(&mut self) -> &[AtomicU64] {
        // SAFETY: as for `words`; an AtomicU64 has the layout of a u64, and for as long as this
        // borrow lives, unique as it began, there is no other kind of access.
        unsafe { std::slice::from_raw_parts(self.start.cast::<AtomicU64>(), self.bytes / 8) }
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        self.start.addr()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is what the system gave, and nothing borrows it any more.
        unsafe { libc::munmap(self.base.cast(), self.whole) };
    }
}

/// Flushes a word's line from every cache, writing changed contents to memory first. True if done;
/// false where this processor has no such instruction for programs.
#[inline]
pub fn flush(word: &AtomicU64) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 has the instruction; it changes no contents.
        unsafe { std::arch::x86_64::_mm_clflush(word.as_ptr().cast::<u8>()) };
        true
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = word;
        false
    }
}

/// Waits until flushed lines have left and every earlier load and store has ended.
#[inline]
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence takes nothing.
    unsafe {
        std::arch::x86_64::_mm_mfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(Ordering::SeqCst);
}
