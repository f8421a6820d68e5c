//! Heaps of threads: one for each node that a thread has run on, handed on when the thread ends.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::ground::geometry::CHUNK_SHIFT;
use crate::ground::os::{self, Patience};
use crate::heap::cache::CACHES_ZEROED;
use crate::heap::state::{Heap, WithCaches};
use crate::heap::table::{TABLE, enlist, entry, heap_of};
use crate::heap::upkeep::in_turn;
use crate::heap::{deferred, thread};
use crate::store::nodes;
use crate::store::numbers::Stack;
use crate::store::pool::{NODES_MAX, POOLS};
use crate::store::space::SPACE;

/// Whether threads ask for their node at every slow step: there are several nodes, and threads do
/// not notice that they move. The machine decides it for the whole process.
pub(crate) static ASKS: AtomicBool = AtomicBool::new(false);

/// Heaps of ended threads, by node, for the next thread there.
static PARKED: [Stack; NODES_MAX] = [const { Stack::new() }; NODES_MAX];

/// Runs an operation on this thread's heap for its node, made if there is none. None if there is no
/// memory.
pub(crate) fn with_heap<T>(operation: impl FnOnce(&'static Heap) -> T) -> Option<T> {
    if thread::heap() == thread::ENDED {
        return with_parked(operation);
    }
    match own_heap() {
        Some(heap) if heap.handshake.begin() => Some(in_turn(heap, operation)),
        _ => with_parked(operation),
    }
}

/// The same with no other heap than this thread's, waiting for it if need be: for inspection, not
/// for signal handlers.
pub(crate) fn with_own_heap<T>(operation: impl FnOnce(&'static Heap) -> T) -> Option<T> {
    if thread::heap() == thread::ENDED {
        return None;
    }
    let heap = own_heap()?;
    let mut patience = Patience::new();
    while !heap.handshake.begin() {
        patience.wait();
    }
    Some(in_turn(heap, operation))
}

/// This thread's heap for its node, made if there is none. None without memory, or if the thread
/// cannot have one.
#[inline]
fn own_heap() -> Option<&'static Heap> {
    let heap = thread::heap();
    if heap.is_null() {
        return begin_thread();
    }
    // SAFETY: the thread's pointer leads to its heap, whose memory stays.
    let heap = unsafe { &*heap };
    let is_elsewhere = thread::cpu() != heap.cpu.get();
    if is_elsewhere || ASKS.load(Ordering::Relaxed) {
        return Some(follow_thread(heap));
    }
    Some(heap)
}

/// Runs an operation on a parked heap: for a thread that has ended, and could not be told to give a
/// heap back; for a signal handler that has interrupted a turn; and during a visit of the helper.
#[cold]
pub(crate) fn with_parked<T>(operation: impl FnOnce(&'static Heap) -> T) -> Option<T> {
    let node = current_node();
    let heap = begin_parked(node).or_else(|| make_heap(node, true))?;
    begin_family(heap);
    let result = operation(heap);
    heap.flush_marks();
    heap.handshake.end();
    heap.entry().family.store(0, Ordering::Relaxed);
    park(heap);
    Some(result)
}

/// A parked heap with a turn begun. Does not wait for a visit of the helper.
fn begin_parked(node: usize) -> Option<&'static Heap> {
    let heap = adopt_parked(node)?;
    if heap.handshake.begin() {
        return Some(heap);
    }
    // The helper visits one heap at a time.
    let other = adopt_parked(node);
    park(heap);
    other.filter(|other| {
        other.handshake.begin() || {
            park(other);
            false
        }
    })
}

/// Makes a heap its thread's only one. The family takes the heap's number: one thread has it at a
/// time, and it is parked only when no heap is of its family. A counter of threads would repeat
/// after 2^32.
fn begin_family(heap: &Heap) {
    let number = heap.number.get();
    heap.entry().family.store(number, Ordering::Relaxed);
    heap.sibling.set(number);
}

/// The node that this thread runs on.
pub(crate) fn current_node() -> usize {
    if nodes::count() == 1 {
        return 0;
    }
    let cpu = if ASKS.load(Ordering::Relaxed) {
        thread::ask_cpu()
    } else {
        thread::cpu()
    };
    nodes::of_cpu(cpu)
}

#[cold]
fn begin_thread() -> Option<&'static Heap> {
    let node = current_node();
    let heap = adopt_parked(node).or_else(|| make_heap(node, false))?;
    begin_family(heap);
    enter(heap);
    if !watch_end(heap) {
        // Nobody would announce the thread's end. So it gets no heap, and asks again next time.
        thread::set_heap(ptr::null());
        leave(heap);
        return None;
    }
    Some(heap)
}

/// Makes this the thread's current heap.
fn enter(heap: &'static Heap) {
    heap.cpu.set(thread::cpu());
    thread::set_heap(heap);
}

/// Follows a thread that has moved, perhaps to another node, to its heap there. Without memory for
/// one it stays with the old.
#[cold]
fn follow_thread(heap: &'static Heap) -> &'static Heap {
    let node = current_node();
    if node != heap.node.get() as usize {
        // A signal handler leaves an interrupted turn alone.
        if !heap.handshake.has_begun() {
            heap.flush_marks();
        }
        if let Some(own) = sibling_on(heap, node) {
            enter(own);
            return own;
        }
    }
    heap.cpu.set(thread::cpu());
    heap
}

/// The same thread's heap on another node, made if there is none.
fn sibling_on(heap: &'static Heap, node: usize) -> Option<&'static Heap> {
    let mut own = heap_of(heap.sibling.get());
    while own.node.get() as usize != node {
        if ptr::eq(own, heap) {
            let new = adopt_parked(node).or_else(|| make_heap(node, false))?;
            let family = heap.entry().family.load(Ordering::Relaxed);
            new.entry().family.store(family, Ordering::Relaxed);
            new.sibling.set(heap.sibling.replace(new.number.get()));
            return Some(new);
        }
        own = heap_of(own.sibling.get());
    }
    Some(own)
}

/// Runs an operation on this thread's heap for a given node, wherever the thread runs; if there is
/// none and none can be made, on the one it has.
pub(crate) fn with_heap_on<T>(
    node: usize,
    operation: impl FnOnce(&'static Heap) -> T,
) -> Option<T> {
    with_heap(|heap| {
        if heap.node.get() as usize == node {
            return operation(heap);
        }
        match sibling_on(heap, node) {
            Some(own) if own.handshake.begin() => in_turn(own, operation),
            _ => operation(heap),
        }
    })
}

/// Makes a heap on a node with its caches, in a chunk of their own. `begun`: with a turn begun, as
/// the helper may visit once it is listed.
fn make_heap(node: usize, begun: bool) -> Option<&'static Heap> {
    let taken = POOLS.take(&SPACE, node, 1)?;
    let Some(number) = TABLE.number() else {
        POOLS.give(&SPACE, taken.chunk, 1, taken.is_zero());
        return None;
    };
    let address = SPACE.data() + (taken.chunk << CHUNK_SHIFT);
    let place: *mut WithCaches = ptr::with_exposed_provenance_mut(address);
    if !taken.is_zero() {
        let zeroed = size_of::<Heap>() + CACHES_ZEROED;
        // SAFETY: the chunk has just been taken.
        unsafe { place.cast::<u8>().write_bytes(0, zeroed) };
    }
    // SAFETY: zeroed memory of its size, of which nobody else knows; all its fields may be zero.
    let heap: &'static Heap = unsafe { &(*place).heap };
    let entry = entry(number);
    heap.make(number, node);
    // SAFETY: they lie behind the heap, in the same chunk.
    unsafe { heap.caches.set_full(&raw const (*place).caches) };
    heap.defers.set(deferred::is_wanted());
    entry.custody.begin(false);
    entry.set_heap(address);
    let has_begun = !begun || heap.handshake.begin();
    debug_assert!(has_begun, "nobody knows of it");
    enlist(heap);
    Some(heap)
}

/// Takes over the heap of an ended thread, with all that is in it.
fn adopt_parked(node: usize) -> Option<&'static Heap> {
    PARKED[node].pop(&TABLE).map(heap_of)
}

/// Hands this thread's heap on.
fn leave(heap: &Heap) {
    heap.flush_marks();
    // Before it is parked, which releases this.
    heap.entry().family.store(0, Ordering::Relaxed);
    park(heap);
}

/// Leaves a heap to the next thread on its node. No allocation waits for it.
fn park(heap: &Heap) {
    PARKED[heap.node.get() as usize].push(&TABLE, heap.number.get());
}

/// Hands this thread's heaps on, at its end.
fn end_thread() {
    let heap = thread::heap();
    if heap.is_null() || heap == thread::ENDED {
        return;
    }
    thread::set_heap(thread::ENDED);
    // SAFETY: as in `with_heap`.
    let last = unsafe { &*heap };
    // First for all of them: the next thread of a parked one may give its family the same number.
    each_sibling(last, |heap| heap.entry().family.store(0, Ordering::Relaxed));
    each_sibling(last, leave);
}

/// One more than the key whose destructor runs at a thread's end, one for all threads; 0 if there
/// is none.
static KEY: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn at_end(heap: *mut libc::c_void) {
    if !heap.is_null() {
        end_thread();
    }
}

/// Makes the key, unless there is one, and returns one more than the key; 0 if the C library
/// refuses. Early, as the C library stores the first 32 without allocating.
pub(crate) fn make_key() -> u32 {
    let before = KEY.load(Ordering::Acquire);
    if before != 0 {
        return before;
    }
    let mut key = 0;
    // SAFETY: the key is written, and the destructor is a function of this crate.
    let result = os::quietly(|| unsafe { libc::pthread_key_create(&mut key, Some(at_end)) });
    if result != 0 {
        return 0;
    }
    let made = KEY.compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Acquire);
    let Err(other) = made else { return key + 1 };
    // SAFETY: another thread was first, and nobody has seen this one.
    unsafe { libc::pthread_key_delete(key) };
    other
}

/// Has the heap parked when this thread ends. False if the C library refuses: the heap would stay
/// unused, with its blocks.
#[must_use]
fn watch_end(heap: *const Heap) -> bool {
    let key = make_key();
    key != 0 && {
        // SAFETY: the key was made. The call may allocate.
        os::quietly(|| unsafe { libc::pthread_setspecific(key - 1, heap.cast()) }) == 0
    }
}

/// Calls `each` for the thread's heaps, `last` at the end; each may be gone after its call.
fn each_sibling(last: &'static Heap, mut each: impl FnMut(&Heap)) {
    let mut heap = heap_of(last.sibling.get());
    loop {
        let next = heap.sibling.get();
        each(heap);
        if ptr::eq(heap, last) {
            return;
        }
        heap = heap_of(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No two live heaps share a family, however many threads there were before.
    #[test]
    fn a_family_has_the_number_of_its_first_heap() {
        for _ in 0..3 {
            let begins = || {
                with_own_heap(|heap| {
                    let family = heap.entry().family.load(Ordering::Relaxed);
                    assert_eq!(family, heap.sibling.get());
                    assert_eq!(family, heap.number.get());
                })
            };
            let thread = std::thread::spawn(begins);
            assert!(thread.join().expect("it does not panic").is_some());
        }
    }
}
