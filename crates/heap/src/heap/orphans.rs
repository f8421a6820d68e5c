//! The end of a component's heap: at once, or as an orphan with its last block.

use crate::ground::harden;
use crate::heap::custody::Tended;
use crate::heap::pieces::{self, HEADER_BYTES, LEVEL_OF_PAGE, page_of};
use crate::heap::state::Heap;
use crate::heap::table::{TABLE, entry};
use crate::store::space::SPACE;
use core::ptr;

/// Ends a heap that has shed all it can; if others still have blocks of it, it becomes an orphan.
pub(crate) fn end_or_orphan(heap: &Heap) {
    let number = heap.number.get();
    if take_back(heap) == Tended::Lives {
        let entry = entry(number);
        let look = || entry.has_work(&SPACE);
        entry.custody.leave(look, || tend(number));
    }
}

/// Tends an orphan: takes back what has come home, and ends the heap if that is all.
pub(crate) fn tend(number: u32) -> Tended {
    // SAFETY: the heap lives until it is ended, and the caller has it for the moment.
    take_back(unsafe { &*entry(number).heap() })
}

fn take_back(heap: &Heap) -> Tended {
    let entry = heap.entry();
    loop {
        while entry.queue.has_some(&SPACE) {
            let _ = heap.adopt();
        }
        // A thread that is yet to give notice must find the heap under its number.
        if entry.awaited.is_waiting() {
            return Tended::Lives;
        }
        if !entry.awaited.is_over() {
            break;
        }
        // Some of what was awaited may have been taken back before.
        entry.awaited.end();
        if heap.used.get() > HEADER_BYTES {
            heap.discard();
        }
    }
    if heap.used.get() > HEADER_BYTES {
        return Tended::Lives;
    }
    end(heap);
    Tended::Ended
}

/// Ends the heap: all it has left is the page in which it lies.
fn end(heap: &Heap) {
    let number = heap.number.get();
    let region = page_of(heap);
    let words = heap.region(region);
    words.starts.set(0);
    words.free.set(0);
    // Nothing of the heap is used from here on.
    harden::wipe(ptr::from_ref(heap).addr(), HEADER_BYTES);
    pieces::give(region, LEVEL_OF_PAGE);
    TABLE.end(number);
}
