//! One heap for all threads, with one lock around it: as the source does with every allocator
//! that has a single heap.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::Process;
use crate::heap::Heap;
use crate::system::Guarded;

/// The heap and its lock.
#[derive(Debug)]
pub struct OneHeap<H>(Guarded<H>);

/// The heap for the fork handlers, which take no argument.
static FORKING: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

impl<H: Heap + Send + 'static> OneHeap<H> {
    /// Around a heap.
    pub const fn new(heap: H) -> Self {
        OneHeap(Guarded::new(heap))
    }

    fn forking() -> Option<&'static Self> {
        // Acquire: pairs with the release in `prepare`.
        let this: *mut Self = FORKING.load(Ordering::Acquire).cast();
        // SAFETY: `prepare` keeps a static of this type there, the only one of its object.
        unsafe { this.as_ref() }
    }

    unsafe extern "C" fn before_fork() {
        if let Some(this) = Self::forking() {
            this.0.lock();
        }
    }

    unsafe extern "C" fn after_fork() {
        if let Some(this) = Self::forking() {
            this.0.unlock();
        }
    }
}

// SAFETY: the heap is used by one thread at a time, and keeps what `Heap` promises.
unsafe impl<H: Heap + Send + 'static> Process for OneHeap<H> {
    const OVERHEAD: usize = H::OVERHEAD;

    fn prepare(&'static self) {
        // Release: pairs with the acquire in `forking`.
        FORKING.store(ptr::from_ref(self).cast_mut().cast(), Ordering::Release);
        // SAFETY: the handlers are sound at any time. Registering them may allocate, which no lock
        // keeps from working here.
        unsafe {
            libc::pthread_atfork(
                Some(Self::before_fork),
                Some(Self::after_fork),
                Some(Self::after_fork),
            );
        }
    }

    #[inline]
    fn allocate(&self, bytes: usize) -> *mut u8 {
        self.0.with(|heap| heap.allocate(bytes))
    }

    fn allocate_aligned(&self, align: usize, bytes: usize) -> *mut u8 {
        self.0.with(|heap| heap.allocate_aligned(align, bytes))
    }

    #[inline]
    unsafe fn release(&self, block: *mut u8) {
        // SAFETY: the caller's promise.
        self.0.with(|heap| unsafe { heap.release(block) });
    }

    unsafe fn usable(&self, block: *mut u8) -> usize {
        // SAFETY: the caller's promise.
        self.0.with(|heap| unsafe { heap.usable(block) })
    }

    unsafe fn resize(&self, block: *mut u8, bytes: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.usable(block) >= bytes }
    }
}
