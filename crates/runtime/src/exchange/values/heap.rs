//! The heap of a component: its own, made on first use, and ended with the component.
//!
//! A heap is touched by the code that runs its component, or by the party that completes a
//! rendezvous with it while it is parked. A moved value stays in place, and returns to the heap
//! that it came from when its new owner frees it. The components themselves, which any thread may
//! free, are in the heaps of the threads that make them.
//!
//! `HEARTH_HEAPS=shared` has one heap for everything, under a lock, and `HEARTH_HEAPS=system`
//! leaves it to the system's allocator: for comparison. Under the model checker it is the latter.

#[cfg(not(loom))]
pub(crate) mod log;
#[cfg(not(loom))]
mod told;

use std::ffi::c_void;

#[cfg(loom)]
use hearth_sys::memory;

use crate::abi::Component;
use crate::ground::exits;
use crate::seats::{registry, seat};

#[cfg(not(loom))]
use ways::{in_common, in_own};

/// Allocates a block without zeroing it. Ends the program when memory runs out.
#[inline]
pub(crate) fn alloc(component: *mut Component, size: usize) -> *mut c_void {
    #[cfg(not(loom))]
    let block = in_own(component, size, false);
    #[cfg(loom)]
    let block = memory::allocate(size);
    if block.is_null() {
        refused(component, size);
    }
    block
}

/// Allocates a zeroed block.
#[inline]
pub(crate) fn alloc_zeroed(component: *mut Component, size: usize) -> *mut c_void {
    #[cfg(not(loom))]
    let block = in_own(component, size, true);
    #[cfg(loom)]
    let block = memory::allocate_zeroed(size);
    if block.is_null() {
        refused(component, size);
    }
    block
}

/// Frees a block of any component's heap. The component runs this, or is parked for it; or it is
/// null.
///
/// # Safety
/// `block` came from the heap of some component and is not used any more.
#[inline]
pub(crate) unsafe fn free(component: *mut Component, block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe {
        #[cfg(not(loom))]
        ways::free(component, block);
        #[cfg(loom)]
        {
            let _ = component;
            memory::release(block);
        }
    }
}

/// Allocates a zeroed block outside the components' heaps, such as a component itself; `creator`
/// asks for it, or is null. The block begins a cache line, since a component may run on another
/// core than its neighbour in memory.
pub(crate) fn common_zeroed(creator: *mut Component, size: usize) -> *mut c_void {
    #[cfg(not(loom))]
    let block = in_common(size);
    #[cfg(loom)]
    let block = memory::allocate_zeroed(size);
    if block.is_null() {
        refused(creator, size);
    }
    block
}

/// Frees such a block.
///
/// # Safety
/// `block` came from [`common_zeroed`] and is not used any more.
pub(crate) unsafe fn free_common(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe {
        #[cfg(not(loom))]
        ways::free_common(block);
        #[cfg(loom)]
        memory::release(block);
    }
}

/// Called when a component frees all it still has, before [`leave`].
///
/// # Safety
/// The component runs this.
pub(crate) unsafe fn wind_up(component: *mut Component) {
    #[cfg(not(loom))]
    // SAFETY: as the caller promises.
    unsafe {
        ways::wind_up(component);
    }
    #[cfg(loom)]
    let _ = component;
}

/// Ends the heap of a component that has ended, except blocks that others hold.
///
/// # Safety
/// The component allocates and frees no more, or begins a new heap.
pub(crate) unsafe fn leave(component: *mut Component) {
    #[cfg(not(loom))]
    // SAFETY: as the caller promises.
    unsafe {
        ways::leave(component);
    }
    #[cfg(loom)]
    let _ = component;
}

/// Called when a component has moved to a core: it allocates near that core from now on. Its
/// present data migrates as far as `HEARTH_HEAPS_MOVE` says, which is nothing unless set. Copying a
/// page costs as much as fetching a few dozen of its lines from another node; so it pays if the
/// component goes over its data once or twice again, which the program knows and the runtime does
/// not. The copy happens here, while the worker that sends the component off has it: that worker's
/// other components wait for as long as it takes to copy that many bytes.
///
/// # Safety
/// The caller owns the component for the moment.
pub(crate) unsafe fn follow(component: *mut Component, core: Option<usize>) {
    #[cfg(not(loom))]
    // SAFETY: as the caller promises.
    unsafe {
        ways::follow(component, core);
    }
    #[cfg(loom)]
    let _ = (component, core);
}

/// Bytes of blocks in a component's own heap, and of the heap itself; None if it has none.
///
/// # Safety
/// The component runs this, or is parked for it.
#[cfg(not(loom))]
pub(crate) unsafe fn used(component: *mut Component) -> Option<u64> {
    // SAFETY: as the caller promises.
    unsafe { ways::used(component) }
}

/// Nothing to report under the model checker.
///
/// # Safety
/// None is needed.
#[cfg(loom)]
pub(crate) unsafe fn used(_component: *mut Component) -> Option<u64> {
    None
}

#[cfg(not(loom))]
pub(crate) use told::tell_all;

/// Nothing to report under the model checker.
#[cfg(loom)]
pub(crate) fn tell_all(_recorder: &hearth_watch::Recorder) {}

/// Bytes that heaps of this process have from the system, used or not.
pub(crate) fn held() -> usize {
    #[cfg(not(loom))]
    {
        let totals = hearth_heap::totals();
        totals.held + totals.mapped
    }
    #[cfg(loom)]
    0
}

/// Publishes the thread's frees of other heaps' blocks: it is about to wait.
pub(crate) fn flush() {
    #[cfg(not(loom))]
    hearth_heap::flush();
}

/// Called when the program has begun a second thread: heaps have their helper from now on.
pub(crate) fn has_threads() {
    #[cfg(not(loom))]
    hearth_heap::keep_helper();
}

#[cfg(not(loom))]
mod ways {
    //! The three heaps that the options choose from.

    use std::ffi::c_void;
    use std::mem::ManuallyDrop;
    use std::ptr;
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::sync::{Mutex, Once, OnceLock};

    use hearth_heap::{PrivateHeap, Room};
    use hearth_sys::mapping::LINE_BYTES;
    use hearth_sys::memory;

    use super::log;
    use crate::abi::Component;
    use crate::exchange::carrier;
    use crate::ground::options::{self, Heaps};
    use crate::ground::sync::lock_std as lock;

    /// The chosen way, cached on first use: read with every allocation. Process-wide, since only a
    /// compiled program chooses another way than the first.
    static WAY: AtomicU8 = AtomicU8::new(UNKNOWN);
    const UNKNOWN: u8 = 0;
    const PRIVATE: u8 = 1;
    const SHARED: u8 = 2;
    const SYSTEM: u8 = 3;
    /// Private heaps with a log of all operations.
    const LOGGED: u8 = 4;

    #[inline]
    fn way() -> u8 {
        match WAY.load(Ordering::Relaxed) {
            UNKNOWN => learn(),
            way => way,
        }
    }

    #[cold]
    fn learn() -> u8 {
        let options = options::get();
        let mut way = match options.heaps {
            Heaps::Private => PRIVATE,
            Heaps::Shared => SHARED,
            Heaps::System => SYSTEM,
        };
        if let Some(name) = &options.heap_log {
            way |= LOGGED;
            static OPEN: Once = Once::new();
            OPEN.call_once(|| log::begin(name));
        }
        WAY.store(way, Ordering::Relaxed);
        way
    }

    /// The common heap, if components share one.
    fn shared() -> &'static Mutex<Option<PrivateHeap>> {
        static SHARED: OnceLock<Mutex<Option<PrivateHeap>>> = OnceLock::new();
        SHARED.get_or_init(|| Mutex::new(PrivateHeap::new()))
    }

    /// The heap of a component, made on first use.
    ///
    /// # Safety
    /// The component runs this, or is parked for it.
    #[inline]
    unsafe fn heap_of(component: *mut Component) -> Option<ManuallyDrop<PrivateHeap>> {
        // SAFETY: alive, and the caller's; the number is that of its heap, which lives as long.
        unsafe {
            match PrivateHeap::from_number((*component).heap) {
                Some(heap) => Some(heap),
                None => make_heap(component),
            }
        }
    }

    /// # Safety
    /// As for `heap_of`.
    #[cold]
    pub(super) unsafe fn make_heap(component: *mut Component) -> Option<ManuallyDrop<PrivateHeap>> {
        // SAFETY: as for `heap_of`.
        unsafe {
            let core = carrier::core_of((*component).home.cast());
            let heap = PrivateHeap::with_room(core.map(|core| core as u32), room_of(component))?;
            (*component).heap = heap.into_number();
            PrivateHeap::from_number((*component).heap)
        }
    }

    /// The compiler's bound on the heap of a component.
    ///
    /// # Safety
    /// As for `heap_of`.
    unsafe fn room_of(component: *mut Component) -> Room {
        // SAFETY: as the caller promises; component types are static.
        let of = unsafe { &*(*component).r#type };
        Room {
            bytes: of.heap_bytes as usize,
            largest: of.heap_largest as usize,
        }
    }

    #[inline]
    pub(super) fn in_own(component: *mut Component, size: usize, zeroed: bool) -> *mut c_void {
        if way() == PRIVATE && !component.is_null() {
            // SAFETY: the component runs this, or is parked for it.
            return match unsafe { heap_of(component) } {
                Some(heap) if zeroed => heap.allocate_zeroed(size).cast(),
                Some(heap) => heap.allocate(size).cast(),
                None => ptr::null_mut(),
            };
        }
        elsewhere(component, size, zeroed)
    }

    #[cold]
    fn elsewhere(component: *mut Component, size: usize, zeroed: bool) -> *mut c_void {
        let way = way();
        let block: *mut c_void = match (way & !LOGGED, zeroed) {
            (SHARED, _) => in_shared(size, zeroed),
            (SYSTEM, true) => memory::allocate_zeroed(size),
            (SYSTEM, false) => memory::allocate(size),
            (_, true) if component.is_null() => hearth_heap::allocate_zeroed(size).cast(),
            (_, false) if component.is_null() => hearth_heap::allocate(size).cast(),
            // SAFETY: as above.
            _ => match unsafe { heap_of(component) } {
                Some(heap) if zeroed => heap.allocate_zeroed(size).cast(),
                Some(heap) => heap.allocate(size).cast(),
                None => ptr::null_mut(),
            },
        };
        if way & LOGGED != 0 {
            log::allocated(component, block, size);
        }
        block
    }

    fn in_shared(size: usize, zeroed: bool) -> *mut c_void {
        match &*lock(shared()) {
            Some(heap) if zeroed => heap.allocate_zeroed(size).cast(),
            Some(heap) => heap.allocate(size).cast(),
            None => ptr::null_mut(),
        }
    }

    /// # Safety
    /// As for [`super::free`].
    #[inline]
    pub(super) unsafe fn free(component: *mut Component, block: *mut c_void) {
        // SAFETY: as the caller promises.
        unsafe {
            if way() == PRIVATE
                && !component.is_null()
                && let Some(heap) = PrivateHeap::from_number((*component).heap)
            {
                heap.free(block.cast());
                return;
            }
            free_elsewhere(component, block);
        }
    }

    #[cold]
    unsafe fn free_elsewhere(component: *mut Component, block: *mut c_void) {
        let way = way();
        if way & LOGGED != 0 {
            log::freed(component, block);
        }
        // SAFETY: as the caller promises.
        unsafe {
            match way & !LOGGED {
                SHARED => free_shared(block),
                SYSTEM => memory::release(block),
                _ => hearth_heap::free(block.cast()),
            }
        }
    }

    unsafe fn free_shared(block: *mut c_void) {
        // It exists, since there is a block of it.
        if let Some(heap) = &*lock(shared()) {
            // SAFETY: as the caller promises.
            unsafe { heap.free(block.cast()) };
        }
    }

    pub(super) fn in_common(size: usize) -> *mut c_void {
        match way() & !LOGGED {
            SHARED => in_shared(size, true),
            SYSTEM => memory::allocate_zeroed(size),
            _ => in_lines(size),
        }
    }

    /// Allocates a zeroed block that begins a cache line.
    fn in_lines(size: usize) -> *mut c_void {
        let block = hearth_heap::allocate_aligned(size, LINE_BYTES);
        if !block.is_null() {
            // SAFETY: a block of that size.
            unsafe { block.write_bytes(0, size) };
        }
        block.cast()
    }

    /// # Safety
    /// As for [`super::free_common`].
    pub(super) unsafe fn free_common(block: *mut c_void) {
        // SAFETY: as the caller promises.
        unsafe {
            match way() & !LOGGED {
                SHARED => free_shared(block),
                SYSTEM => memory::release(block),
                _ => hearth_heap::free(block.cast()),
            }
        }
    }

    /// # Safety
    /// As for [`super::wind_up`].
    pub(super) unsafe fn wind_up(component: *mut Component) {
        // SAFETY: as the caller promises.
        if let Some(heap) = unsafe { PrivateHeap::from_number((*component).heap) } {
            heap.wind_up();
        }
    }

    /// # Safety
    /// As for [`super::leave`].
    pub(super) unsafe fn leave(component: *mut Component) {
        // SAFETY: as the caller promises.
        unsafe {
            let number = std::mem::take(&mut (*component).heap);
            drop(PrivateHeap::from_number(number).map(ManuallyDrop::into_inner));
        }
    }

    /// # Safety
    /// As for [`super::used`].
    pub(super) unsafe fn used(component: *mut Component) -> Option<u64> {
        // SAFETY: as the caller promises.
        let heap = unsafe { PrivateHeap::from_number((*component).heap) }?;
        Some(heap.figures().used as u64)
    }

    /// [`used`] for the common heap; None if there is none, or another thread has it locked.
    pub(super) fn shared_used() -> Option<u64> {
        if way() & !LOGGED != SHARED {
            return None;
        }
        let heap = shared().try_lock().ok()?;
        Some(heap.as_ref()?.figures().used as u64)
    }

    /// # Safety
    /// As for [`super::follow`].
    pub(super) unsafe fn follow(component: *mut Component, core: Option<usize>) {
        // SAFETY: as the caller promises.
        unsafe {
            if let (Some(heap), Some(core)) = (PrivateHeap::from_number((*component).heap), core) {
                heap.move_near_cpu(core as u32);
                // Only where the option asks for it. On a machine of one node it is a comparison.
                let bytes_max = options::get().heaps_move;
                if bytes_max > 0 {
                    heap.bring(bytes_max);
                }
            }
        }
    }
}

/// Reports that memory has run out.
#[cold]
pub(crate) fn refused(component: *mut Component, size: usize) -> ! {
    if component.is_null() {
        exits::out_of_memory("the program", size);
    }
    // SAFETY: components that allocate are alive.
    exits::out_of_memory(
        &registry::described(unsafe { seat::seat_of(component) }),
        size,
    )
}

/// Allocates a block of a component's heap, not zeroed.
///
/// # Safety
/// `self` is alive, and runs this or is parked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_alloc(this: *mut Component, size: usize) -> *mut c_void {
    alloc(this, size)
}

/// Allocates a zeroed block.
///
/// # Safety
/// As for `hearth_alloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_alloc_zeroed(this: *mut Component, size: usize) -> *mut c_void {
    alloc_zeroed(this, size)
}

/// Frees a block.
///
/// # Safety
/// As for `hearth_alloc`; the block came from the heap of some component.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_free(this: *mut Component, block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { free(this, block) };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::abi::{ComponentType, Site, Step};

    /// The compiler's bound is reserved from the beginning.
    #[test]
    fn a_heap_is_made_with_the_room_that_is_told() {
        unsafe extern "C" fn never(_: *mut Component) -> Step {
            unreachable!("nobody runs it")
        }
        const PAGE: usize = 4096;
        for (heap_bytes, heap_largest, owned) in [
            (0, 0, PAGE),
            (100, 100, PAGE),
            (3000, 1000, 5 * PAGE),
            (100_000, 100, PAGE),
        ] {
            let of = ComponentType {
                name: c"Component".as_ptr(),
                size: size_of::<Component>(),
                resume: never,
                destroy: None,
                trace: None,
                port_count: 0,
                ports: std::ptr::null(),
                service: false,
                declared: Site {
                    file: c"".as_ptr(),
                    line: 0,
                    column: 0,
                    text: c"".as_ptr(),
                },
                heap_bytes,
                heap_largest,
            };
            // SAFETY: all other fields may be zero; no other thread has the component.
            unsafe {
                let mut component: Component = std::mem::zeroed();
                component.r#type = &raw const of;
                let component = &raw mut component;
                let heap = ways::make_heap(component).expect("there is memory");
                assert_eq!(heap.figures().owned, owned, "{heap_bytes}");
                leave(component);
            }
        }
    }

    /// A worker may have no core: the heap then stays in place.
    #[test]
    fn a_heap_outlives_a_move_to_a_worker_without_a_core() {
        // SAFETY: all fields may be zero; no other thread has the component or its blocks.
        unsafe {
            let mut component: Component = std::mem::zeroed();
            let component = &raw mut component;
            (*component).heap = hearth_heap::PrivateHeap::new()
                .expect("there is memory")
                .into_number();
            let number = (*component).heap;
            for core in [None, Some(0), None] {
                follow(component, core);
                let other = hearth_heap::PrivateHeap::new().expect("there is memory");
                assert_ne!(other.number(), number, "the number is in use");
            }
            leave(component);
            assert_eq!((*component).heap, 0);
        }
    }
}
