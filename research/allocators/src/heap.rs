//! The interface of a heap with one free-block structure, and of the source of its memory.

/// Alignment of every payload, as the C ABI promises on 64 bits. The source rounds to 4 bytes,
/// with which no program of today works.
pub const ALIGN: usize = 16;

/// Requests above this are refused: no size computation below can overflow.
pub const REQUEST_MAX: usize = 1 << 46;

/// `bytes` rounded up to a multiple of `to`, a power of two.
#[must_use]
pub const fn round_up(bytes: usize, to: usize) -> usize {
    (bytes + to - 1) & !(to - 1)
}

/// Source of a heap's memory.
///
/// # Safety
/// [`Grow::grow`] returns that many bytes; they begin at a multiple of [`ALIGN`], and belong
/// to the caller until the source is dropped.
pub unsafe trait Grow {
    /// `bytes` more bytes, a multiple of [`ALIGN`]; null if there are none. Bytes that
    /// directly follow those of the previous call extend them.
    fn grow(&mut self, bytes: usize) -> *mut u8;
}

/// A heap that one party at a time uses.
///
/// # Safety
/// Blocks are as long as asked for, begin at a multiple of [`ALIGN`], and overlap neither each
/// other nor the heap's own records until they are released.
pub unsafe trait Heap {
    /// Bytes that the heap adds to each block.
    const OVERHEAD: usize;

    /// A block; null if there is no memory. A request of no bytes gets a block of its own, too.
    fn allocate(&mut self, bytes: usize) -> *mut u8;

    /// A block that begins at a multiple of `align`, a power of two.
    fn allocate_aligned(&mut self, align: usize, bytes: usize) -> *mut u8;

    /// Takes a block back.
    ///
    /// # Safety
    /// The block is of this heap, and not released yet. Nobody uses it any more.
    unsafe fn release(&mut self, block: *mut u8);

    /// Usable bytes of the block: as many as were asked for, or more.
    ///
    /// # Safety
    /// The block is of this heap, and not released yet.
    unsafe fn usable(&self, block: *mut u8) -> usize;

    /// List and bitmap steps so far, if the heap counts them: see [`Steps`].
    fn steps(&self) -> u64;

    /// Bytes taken from the source.
    fn bytes_held(&self) -> usize;

    /// Walks the whole heap and reports inconsistencies.
    ///
    /// # Errors
    /// The first fault, in a sentence.
    fn check(&self) -> Result<(), String>;
}

/// Steps, counted by heaps made for tests: each look at a list's element, each link changed, each
/// bitmap word searched is one. Costs nothing where it is off.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steps<const COUNTED: bool>(u64);

impl<const COUNTED: bool> Steps<COUNTED> {
    /// No steps yet.
    #[must_use]
    pub const fn new() -> Self {
        Steps(0)
    }

    /// Counts one step.
    #[inline(always)]
    pub fn step(&mut self) {
        if COUNTED {
            self.0 += 1;
        }
    }

    /// The number counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.0
    }
}

/// A fixed piece of memory, given out from front to back.
#[derive(Debug)]
pub struct Pool {
    next: *mut u8,
    left: usize,
}

// SAFETY: it owns its piece of memory; nothing of it is bound to a thread.
unsafe impl Send for Pool {}

impl Pool {
    /// A pool over `bytes` bytes at `start`, less the alignment.
    ///
    /// # Safety
    /// The memory is the pool's, and of the heap over it, as long as either lives.
    #[must_use]
    pub unsafe fn over(start: *mut u8, bytes: usize) -> Pool {
        let skipped = start.align_offset(ALIGN).min(bytes);
        Pool {
            next: start.wrapping_add(skipped),
            left: bytes - skipped,
        }
    }
}

// SAFETY: the memory is the pool's own, and each byte is given out once.
unsafe impl Grow for Pool {
    fn grow(&mut self, bytes: usize) -> *mut u8 {
        if bytes > self.left {
            return std::ptr::null_mut();
        }
        let given = self.next;
        self.next = given.wrapping_add(bytes);
        self.left -= bytes;
        given
    }
}
