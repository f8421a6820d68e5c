//! Opening the arenas of a space whose addresses are not reserved: no more than are needed.

use crate::ground::atomics::Ordering;

use super::{Arenas, Node, Opened, Pools};

/// So often a thread looks whether another one has opened an arena, with a pause each time: 20 ms.
const OPENING_LOOKS: usize = if cfg!(loom) { 3 } else { 400 };

impl Pools {
    /// Opens a node's arenas up to the `end`th, one after the other. False if the system refuses.
    ///
    /// Something may be mapped where the next arena would be: by another thread that opens it at this moment, by
    /// one that a fork has cut off in the middle of that, or by the program. A thread waits for the first, a
    /// short while; it cannot tell the others apart, and skips the arena.
    pub(super) fn open_sparse(&self, space: &impl Arenas, node: usize, end: usize) -> bool {
        let own = &self.nodes[node];
        own.opening.fetch_add(1, Ordering::SeqCst);
        let done = loop {
            // Acquires what was opened, as who begins arenas does.
            let open = own.open.load(Ordering::SeqCst);
            if open as usize >= end {
                break true;
            }
            let is_settled = match space.open_sparse(space.arenas_of_node() * node + open as usize)
            {
                Opened::Done => true,
                Opened::Already => own.is_opened_by_another(space, open) || own.skip(open),
                Opened::Refused => false,
            };
            if !is_settled {
                break false;
            }
            own.open.fetch_max(open + 1, Ordering::SeqCst);
        };
        own.opening.fetch_sub(1, Ordering::SeqCst);
        done
    }
}

impl Node {
    /// Waits while another thread may be opening the arena behind the first `open`. True if it has.
    fn is_opened_by_another(&self, space: &impl Arenas, open: u32) -> bool {
        for _ in 0..OPENING_LOOKS {
            // Who has mapped it has counted itself before, and says that it is open before it takes that back. So
            // this reads the count first.
            let is_another_at_it = self.opening.load(Ordering::SeqCst) > 1;
            if self.open.load(Ordering::SeqCst) > open {
                return true;
            }
            if !is_another_at_it {
                return false;
            }
            space.pause();
        }
        false
    }

    /// Skips the arena behind the first `open`: it is begun, and nobody's for good. False if one before it is not
    /// begun yet.
    ///
    /// `open` is moved beyond the arena only by who has mapped it, or after this. So whoever finds it open and
    /// begins it knows that it was mapped for an arena. If it was, by a thread that is slow, its addresses
    /// are lost, but not that thread's next arena.
    fn skip(&self, open: u32) -> bool {
        let skipped =
            self.begun
                .compare_exchange(open, open + 1, Ordering::Relaxed, Ordering::Relaxed);
        skipped.map_or_else(|begun| begun > open, |_| true)
    }
}
