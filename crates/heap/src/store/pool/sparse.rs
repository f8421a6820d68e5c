//! Opens the arenas of a space without reserved addresses, no more than needed.

use hearth_atomics::Ordering;

use super::{Arenas, Node, Opened, Pools};

/// Looks for another thread's progress in opening an arena, with a pause after each: 20 ms in all.
const OPENING_LOOKS: usize = if cfg!(loom) { 3 } else { 400 };

impl Pools {
    /// Opens a node's arenas up to the `end`th, one after the other. False if the system refuses.
    ///
    /// Something may be mapped at the next arena's place: by another thread that is opening it, by
    /// a thread that a fork has cut off in the middle of that, or by the program. The caller waits
    /// a short while for the first; it cannot tell the others apart, and skips the arena.
    pub(super) fn open_sparse(&self, space: &impl Arenas, node: usize, end: usize) -> bool {
        let own = &self.nodes[node];
        own.opening.fetch_add(1, Ordering::SeqCst);
        let done = loop {
            // Acquires the opened arenas, as whoever begins one does.
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
            // A thread counts itself before it maps an arena, and announces the arena before it
            // uncounts itself. So the count is read first.
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

    /// Skips the arena behind the first `open`: marks it as begun, and nobody's for good. False if
    /// an earlier arena is not begun yet.
    ///
    /// `open` passes an arena only by the thread that mapped it, or after this. So whoever finds an
    /// arena open and begins it knows that it was mapped as one. If a slow thread did map it, its
    /// addresses are lost, but not that thread's next arena.
    fn skip(&self, open: u32) -> bool {
        let skipped =
            self.begun
                .compare_exchange(open, open + 1, Ordering::Relaxed, Ordering::Relaxed);
        skipped.map_or_else(|begun| begun > open, |_| true)
    }
}
