//! Buffers to receive into, and the ring that gives them to the kernel.

use std::alloc::{Layout, alloc_zeroed};
use std::io;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// The group of the ring's buffers.
pub(super) const GROUP: u16 = 0;
/// Number of buffers that the kernel begins with.
const AT_FIRST: u16 = 32;

/// Buffers of one length; the kernel fills them in the order in which they were given.
pub(super) struct Buffers {
    /// Memory of all buffers, from the heap. A reference to all of it would claim what the kernel
    /// is about to write to.
    memory: *mut [u8],
    bytes_each: usize,
    entries: *mut BufRingEntry,
    count: u16,
    /// Number of buffers that the kernel has had; the memory of the others was never touched.
    in_use: u16,
    tail: u16,
}

// SAFETY: entries and memory are of nobody else but the kernel, which does not care about threads.
unsafe impl Send for Buffers {}

impl Buffers {
    /// `count` buffers, a power of two, of `bytes_each` bytes.
    pub(super) fn new(count: u16, bytes_each: usize) -> io::Result<Buffers> {
        let bytes = usize::from(count)
            .checked_mul(bytes_each)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = zeroed(bytes)?;
        // SAFETY: fresh pages, at no address in particular.
        let entries = unsafe {
            libc::mmap(
                ptr::null_mut(),
                usize::from(count) * size_of::<BufRingEntry>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if entries == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut buffers = Buffers {
            memory: Box::into_raw(memory),
            bytes_each,
            entries: entries.cast(),
            count,
            in_use: 0,
            tail: 0,
        };
        buffers.use_more(AT_FIRST);
        Ok(buffers)
    }

    /// Registers them with the kernel. They live until after the ring is closed, or forever: see
    /// [`Buffers::leak`].
    pub(super) fn register(&self, ring: &IoUring) -> io::Result<()> {
        // SAFETY: the entries are zeroed pages of the length said, and stay as long as was said
        // above.
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(self.entries as u64, self.count, GROUP, 0)
        }
    }

    /// The contents of a buffer that the kernel has filled and that was not given back.
    pub(super) fn filled(&self, number: u16, count: usize) -> &[u8] {
        assert!(
            count <= self.bytes_each,
            "{count} of {} bytes",
            self.bytes_each
        );
        // SAFETY: the length was just looked at; the kernel is done with this buffer until it is
        // given back, which takes a unique reference.
        unsafe { slice::from_raw_parts(self.buffer(number), count) }
    }

    /// Beginning of a buffer, which has room for `bytes_each`.
    fn buffer(&self, number: u16) -> *mut u8 {
        assert!(number < self.count, "{number} of {} buffers", self.count);
        // SAFETY: the memory has room for `count` buffers.
        unsafe {
            self.memory
                .cast::<u8>()
                .add(usize::from(number) * self.bytes_each)
        }
    }

    /// Gives the kernel twice as many buffers, if there are, after it had too few.
    pub(super) fn grow(&mut self) {
        self.use_more(self.in_use);
    }

    fn use_more(&mut self, count: u16) {
        let from = self.in_use;
        self.in_use = from.saturating_add(count).min(self.count);
        (from..self.in_use).for_each(|number| self.give(number));
    }

    /// Gives a buffer back to the kernel.
    pub(super) fn give(&mut self, number: u16) {
        let address = self.buffer(number);
        // SAFETY: the ring has as many entries as there are buffers, so this one is free.
        let entry = unsafe { &mut *self.entries.add(usize::from(self.tail & (self.count - 1))) };
        entry.set_addr(address as u64);
        entry.set_len(self.bytes_each as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is in the first entry, where only we write and the kernel reads;
        // aligned, and shared as an atomic from here on.
        let tail = unsafe {
            let tail = BufRingEntry::tail(self.entries);
            AtomicU16::from_ptr(tail.cast_mut())
        };
        // Release: the kernel, which acquires it, sees the entry.
        tail.store(self.tail, Ordering::Release);
    }

    /// Leaks the memory, as the kernel may write there forever.
    pub(super) fn leak(&mut self) {
        self.entries = ptr::null_mut();
    }
}

/// Zeroed bytes whose pages no thread has touched. A vector would panic or end the process without
/// memory.
fn zeroed(bytes: usize) -> io::Result<Box<[u8]>> {
    let layout = Layout::array::<u8>(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    if bytes == 0 {
        return Ok(Box::default());
    }
    // SAFETY: the layout has bytes.
    let first = unsafe { alloc_zeroed(layout) };
    if first.is_null() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    // SAFETY: a fresh block of this layout, from the allocator that boxes have.
    Ok(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(first, bytes)) })
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if !self.entries.is_null() {
            // SAFETY: mapped in `new` with this length, and the kernel is done with it.
            unsafe {
                libc::munmap(
                    self.entries.cast(),
                    usize::from(self.count) * size_of::<BufRingEntry>(),
                )
            };
            // SAFETY: a box's in `new`, and the kernel is done with it.
            drop(unsafe { Box::from_raw(self.memory) });
        }
    }
}
