//! A heap for each thread: nMART as a process's allocator.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::Process;
use crate::nmart::Nmart;
use crate::nmart::tcb::Tcb;
use crate::system::{Machine, ThreadWord, make_key};

/// nMART, and how a thread finds its heap.
#[derive(Debug)]
pub struct PerThread {
    nmart: Nmart<Machine>,
    word: ThreadWord,
    /// The key whose destructor gives a thread's heap back, plus 1; 0 before there is one.
    key: AtomicU32,
}

/// The process's heap for handlers of forks and ends of threads, which take no such argument.
static PROCESS: AtomicPtr<PerThread> = AtomicPtr::new(ptr::null_mut());

fn process() -> Option<&'static PerThread> {
    // Acquire: pairs with the release in `prepare`.
    // SAFETY: `prepare` keeps the object's one static there.
    unsafe { PROCESS.load(Ordering::Acquire).as_ref() }
}

unsafe extern "C" fn thread_ends(heap: *mut libc::c_void) {
    let Some(process) = process() else { return };
    // A later destructor of this thread may allocate again: it gets a heap again, and this one here
    // is called once more for it.
    process.word.set(ptr::null_mut());
    // SAFETY: the heap was this thread's until here.
    unsafe { process.nmart.detach(heap.cast()) };
}

unsafe extern "C" fn before_fork() {
    if let Some(process) = process() {
        process.nmart.before_fork();
    }
}

unsafe extern "C" fn after_fork() {
    if let Some(process) = process() {
        process.nmart.after_fork();
    }
}

impl PerThread {
    /// Without any heap yet.
    #[must_use]
    pub const fn new() -> PerThread {
        PerThread {
            nmart: Nmart::new(Machine::new()),
            word: ThreadWord::new(),
            key: AtomicU32::new(0),
        }
    }

    #[inline(always)]
    fn tcb(&self) -> *mut Tcb {
        let tcb: *mut Tcb = self.word.get().cast();
        if tcb.is_null() { self.tcb_slow() } else { tcb }
    }

    #[cold]
    fn tcb_slow(&self) -> *mut Tcb {
        let tcb = self.nmart.attach();
        self.word.set(tcb.cast());
        let key = self.key.load(Ordering::Acquire);
        // Before the key is made there is only the thread that loads the program. It never ends
        // before the process does.
        if key > 0 && !tcb.is_null() {
            // SAFETY: the key is this process's. It is among the first, whose values are not
            // allocated; if it is not, the word is set already.
            unsafe { libc::pthread_setspecific(key - 1, tcb.cast::<libc::c_void>()) };
        }
        tcb
    }
}

impl Default for PerThread {
    fn default() -> Self {
        PerThread::new()
    }
}

// SAFETY: each thread uses its own heap, and nMART brings blocks of others home.
unsafe impl Process for PerThread {
    const OVERHEAD: usize = crate::nmart::block::OVERHEAD;

    fn prepare(&'static self) {
        // Release: pairs with the acquire in `process`.
        PROCESS.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
        if let Some(key) = make_key(Some(thread_ends)) {
            self.key.store(key + 1, Ordering::Release);
        }
        // SAFETY: the handlers are sound at any time.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
    }

    #[inline]
    fn allocate(&self, bytes: usize) -> *mut u8 {
        let tcb = self.tcb();
        if tcb.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: the heap is this thread's.
        unsafe { self.nmart.allocate(tcb, bytes) }
    }

    fn allocate_aligned(&self, align: usize, bytes: usize) -> *mut u8 {
        let tcb = self.tcb();
        if tcb.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: the heap is this thread's.
        unsafe { self.nmart.allocate_aligned(tcb, align, bytes) }
    }

    #[inline]
    unsafe fn release(&self, block: *mut u8) {
        let tcb = self.tcb();
        if tcb.is_null() {
            return;
        }
        // The system's calls in it change the error number, which `free` must not.
        // SAFETY: the caller's promise; the number is this thread's.
        unsafe {
            let before = *libc::__errno_location();
            self.nmart.free(tcb, block);
            *libc::__errno_location() = before;
        }
    }

    unsafe fn usable(&self, block: *mut u8) -> usize {
        // SAFETY: the caller's promise.
        unsafe { Nmart::<Machine>::usable(block) }
    }

    unsafe fn resize(&self, block: *mut u8, bytes: usize) -> bool {
        let tcb = self.tcb();
        // SAFETY: the caller's promise.
        !tcb.is_null() && unsafe { self.nmart.resize(tcb, block, bytes) }
    }
}

const _: () = assert!(size_of::<Tcb>() < 1 << 14);
