//! The heaps of threads: one for each node that a thread has run on, handed on when it ends.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::ground::geometry::CHUNK_SHIFT;
use crate::ground::os::{self, Patience};
use crate::heap::cache::CACHES_ZEROED;
use crate::heap::deferred;
use crate::heap::state::{Heap, WithCaches};
use crate::heap::table::{TABLE, enlist, entry, heap_of};
use crate::heap::thread;
use crate::heap::upkeep::in_turn;
use crate::store::nodes;
use crate::store::numbers::Stack;
use crate::store::pool::{NODES_MAX, POOLS};
use crate::store::space::SPACE;

/// There are several nodes, and threads do not see that they move: they ask at every slow step.
pub(crate) static ASKS: AtomicBool = AtomicBool::new(false);

/// Heaps of threads that have ended, by node.
static PARKED: [Stack; NODES_MAX] = [const { Stack::new() }; NODES_MAX];

/// Does something with the heap of this thread for the node that it runs on, made if there is none. None if
/// there is no memory.
pub(crate) fn with_heap<T>(operation: impl FnOnce(&'static Heap) -> T) -> Option<T> {
    if thread::heap() == thread::ENDED {
        return with_parked(operation);
    }
    match own_heap() {
        Some(heap) if heap.handshake.begin() => Some(in_turn(heap, operation)),
        _ => with_parked(operation),
    }
}

/// The same with no other heap than this thread's, for which it may have to wait: to look at it. Not for
/// handlers of signals.
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

/// The heap of this thread for the node that it runs on, made if there is none. It has not ended. None without
/// memory for one, or if the thread cannot have one.
#[inline]
fn own_heap() -> Option<&'static Heap> {
    let heap = thread::heap();
    if heap.is_null() {
        return begin_thread();
    }
    // SAFETY: what is in the thread's pointer is its heap, whose memory stays.
    let heap = unsafe { &*heap };
    let is_elsewhere = thread::cpu() != heap.cpu.get();
    if is_elsewhere || ASKS.load(Ordering::Relaxed) {
        return Some(follow_thread(heap));
    }
    Some(heap)
}

/// Does something with a parked heap: for a thread that has ended, as nobody would be told that it needs a
/// heap no longer; for the handler of a signal that has interrupted the thread's own heap; and while the
/// helper looks after that.
#[cold]
pub(crate) fn with_parked<T>(operation: impl FnOnce(&'static Heap) -> T) -> Option<T> {
    let node = current_node();
    let heap = begin_parked(node).or_else(|| make_heap_in_turn(node))?;
    begin_family(heap);
    let result = operation(heap);
    heap.flush_marks();
    heap.handshake.end();
    heap.entry().family.store(0, Ordering::Relaxed);
    park(heap);
    Some(result)
}

/// A parked heap whose turn has begun. Where the helper is, nobody waits.
fn begin_parked(node: usize) -> Option<&'static Heap> {
    let heap = adopt_parked(node)?;
    if heap.handshake.begin() {
        return Some(heap);
    }
    let other = adopt_parked(node);
    park(heap);
    let other = other?;
    // The helper is at one heap at a time.
    if other.handshake.begin() {
        return Some(other);
    }
    park(other);
    None
}

/// A heap is alone with its thread. Their family has its number: it is one thread's at a time, and is parked when
/// no heap is of the family any more. Threads that were counted would have numbers of others after 2^32.
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
    let heap = adopt_parked(node).or_else(|| make_heap(node))?;
    begin_family(heap);
    enter(heap);
    if !watch_end(heap) {
        // Nobody would be told of the thread's end. So it has no heap, and asks again next time.
        thread::set_heap(ptr::null());
        leave(heap);
        return None;
    }
    Some(heap)
}

/// From now on the thread uses this heap of its own.
fn enter(heap: &'static Heap) {
    heap.cpu.set(thread::cpu());
    thread::set_heap(heap);
}

/// The thread has moved, perhaps to another node: then to its heap there. Without memory for one it stays
/// with the old.
#[cold]
fn follow_thread(heap: &'static Heap) -> &'static Heap {
    let node = current_node();
    if node != heap.node.get() as usize {
        // The handler of a signal leaves what it has interrupted alone.
        if !heap.handshake.has_begun() {
            heap.flush_marks();
        }
        if let Some(own) = relative(heap, node) {
            enter(own);
            return own;
        }
    }
    heap.cpu.set(thread::cpu());
    heap
}

/// The heap of the same thread on another node, made if there is none.
fn relative(heap: &'static Heap, node: usize) -> Option<&'static Heap> {
    let mut own = heap_of(heap.sibling.get());
    while own.node.get() as usize != node {
        if ptr::eq(own, heap) {
            let new = adopt_parked(node).or_else(|| make_heap(node))?;
            let family = heap.entry().family.load(Ordering::Relaxed);
            new.entry().family.store(family, Ordering::Relaxed);
            new.sibling.set(heap.sibling.replace(new.number.get()));
            return Some(new);
        }
        own = heap_of(own.sibling.get());
    }
    Some(own)
}

/// Does something with this thread's heap on a node, wherever the thread runs; if that cannot be made, with
/// the one that there is.
pub(crate) fn with_heap_on<T>(
    node: usize,
    operation: impl FnOnce(&'static Heap) -> T,
) -> Option<T> {
    with_heap(|heap| {
        if heap.node.get() as usize == node {
            return operation(heap);
        }
        match relative(heap, node) {
            Some(own) if own.handshake.begin() => in_turn(own, operation),
            _ => operation(heap),
        }
    })
}

/// A new heap on a node.
fn make_heap(node: usize) -> Option<&'static Heap> {
    let heap = make_unlisted(node)?;
    enlist(heap);
    Some(heap)
}

/// The same in a turn that has begun: once it is listed, the helper may be there.
fn make_heap_in_turn(node: usize) -> Option<&'static Heap> {
    let heap = make_unlisted(node)?;
    let has_begun = heap.handshake.begin();
    debug_assert!(has_begun, "nobody knows of it");
    enlist(heap);
    Some(heap)
}

/// A heap, and its caches, in a chunk of their own.
fn make_unlisted(node: usize) -> Option<&'static Heap> {
    let taken = POOLS.take(&SPACE, node, 1)?;
    let Some(number) = TABLE.number() else {
        POOLS.give(&SPACE, taken.chunk, 1, taken.is_zero);
        return None;
    };
    let address = SPACE.data() + (taken.chunk << CHUNK_SHIFT);
    let place: *mut WithCaches = ptr::with_exposed_provenance_mut(address);
    if !taken.is_zero {
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
    Some(heap)
}

/// A heap whose thread has ended: all of it, with whatever is in it.
fn adopt_parked(node: usize) -> Option<&'static Heap> {
    PARKED[node].pop(&TABLE).map(heap_of)
}

/// A heap of this thread is this thread's no longer.
fn leave(heap: &Heap) {
    heap.flush_marks();
    // Before it is parked, which releases it.
    heap.entry().family.store(0, Ordering::Relaxed);
    park(heap);
}

/// Leaves a heap to the next thread on its node. No allocation waits for it.
fn park(heap: &Heap) {
    PARKED[heap.node.get() as usize].push(&TABLE, heap.number.get());
}

/// This thread ends, or says so: its heaps go to the next ones on their nodes.
fn ends() {
    let heap = thread::heap();
    if heap.is_null() || heap == thread::ENDED {
        return;
    }
    thread::set_heap(thread::ENDED);
    // SAFETY: as in `with_heap`.
    let last = unsafe { &*heap };
    // All of them before one is parked, whose next thread may give its family the same number.
    each_sibling(last, |heap| heap.entry().family.store(0, Ordering::Relaxed));
    each_sibling(last, leave);
}

/// One more than the key whose destructor runs at a thread's end; 0 if there is none.
static KEY: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn at_end(heap: *mut libc::c_void) {
    if !heap.is_null() {
        ends();
    }
}

/// Makes the key, unless there is one. Early, as the C library keeps the first 32 without allocating. One more
/// than the key; 0 if it is refused.
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

/// Sees to it that the heap is parked when this thread ends. False if the C library refuses: it would stay with
/// its blocks, unused.
#[must_use]
fn watch_end(heap: *const Heap) -> bool {
    let key = make_key();
    key != 0 && {
        // SAFETY: the key was made. It may allocate.
        os::quietly(|| unsafe { libc::pthread_setspecific(key - 1, heap.cast()) }) == 0
    }
}

/// Does something with the heaps of a thread, which may be gone then: one of them at last.
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

    /// However many threads there were before, no two that are alive have one family.
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
