//! The end of a component's heap of which nobody else has a block: it goes as a whole.
//!
//! Blocks that the leaving owner frees and that fit no cache are *piled up*: each is linked to the
//! one before by its first word. If what is piled up and what is in the caches are all the bytes in
//! use, all blocks are home, and the pages go back without a look at any of them. Otherwise the
//! blocks go back to their regions one by one.
//!
//! Marks of other threads that have not been taken back count as bytes in use; so nothing is on the
//! way to a heap whose blocks are all home.

use crate::ground::faults::Checked;
use crate::ground::geometry::RegionId;
use crate::ground::{harden, meter};
use crate::heap::pieces::{HEADER_BYTES, page_of};
use crate::heap::state::Heap;

impl Heap {
    /// Piles up blocks that fit no cache, from now on. Not where every block is checked.
    pub(crate) fn pile_up(&self) {
        self.pile.is_open.set(!harden::is_checking());
    }

    /// Adds a block to the pile, if it is open.
    pub(crate) fn pile(&self, block: usize, bytes: usize) -> bool {
        let pile = &self.pile;
        if !pile.is_open.get() {
            return false;
        }
        let link: *mut usize = core::ptr::with_exposed_provenance_mut(block);
        // SAFETY: a free block of this heap is the heap's to write to, and has 16 bytes or more.
        unsafe { link.write(pile.top.replace(block)) };
        pile.count.set(pile.count.get() + 1);
        pile.bytes.set(pile.bytes.get() + bytes);
        true
    }

    /// Gives back all but the heap itself, if all its blocks are home. The heap has no caches from
    /// then on.
    pub(crate) fn give_back_if_home(&self) -> bool {
        let home = HEADER_BYTES + self.pile.bytes.get() + self.caches_bytes();
        if harden::is_checking() || self.used.get() != home {
            return false;
        }
        self.is_ending.set(true);
        self.caches.forget();
        let roots = self.roots();
        self.each_root(roots, |root| {
            self.clear(root);
            self.give_root(root);
        });
        let own = page_of(self);
        for root in self.pages.iter().map(|root| RegionId(root.get())) {
            if !root.is_none() && root != own {
                self.clear(root);
                self.give_pages(root);
            }
        }
        self.clear(own);
        self.used.set(HEADER_BYTES);
        true
    }

    /// Takes the piled blocks back to their regions.
    pub(crate) fn take_pile_apart(&self) -> Checked {
        let pile = &self.pile;
        pile.is_open.set(false);
        // As many as there were: a block that was freed twice is linked in a ring.
        for _ in 0..pile.count.take() {
            meter::step();
            let block = pile.top.get();
            let link: *const usize = core::ptr::with_exposed_provenance(block);
            // SAFETY: a piled block; the heap has it.
            pile.top.set(unsafe { link.read() });
            self.restore_any(block)?;
        }
        pile.bytes.set(0);
        Ok(())
    }
}
