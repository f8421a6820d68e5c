//! Ring of blocks between a worker and its compressors.
//!
//! There are one more blocks than compressors: the worker fills one while each compressor has one.
//! A block goes round: free → filled by the worker → full → packed by a compressor → free.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use hearth_sys::affinity;

/// Blocks of one worker.
pub(crate) struct Ring {
    state: Mutex<State>,
    freed: Condvar,
    filled: Condvar,
}

/// A block for a compressor.
pub(crate) struct Full {
    pub(crate) number: u32,
    pub(crate) block: Vec<u8>,
    /// The CPU on which the worker filled it, if the system says.
    pub(crate) cpu: Option<usize>,
}

#[derive(Default)]
struct State {
    free: Vec<Vec<u8>>,
    full: VecDeque<Full>,
    /// Number of blocks handed over.
    handed: u32,
    is_closed: bool,
}

impl Ring {
    /// A ring with this many free blocks.
    pub(crate) fn new(blocks: usize, bytes: usize) -> Ring {
        let state = State {
            free: (0..blocks).map(|_| Vec::with_capacity(bytes)).collect(),
            ..State::default()
        };
        Ring {
            state: Mutex::new(state),
            freed: Condvar::new(),
            filled: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over a full block under the next number.
    pub(crate) fn hand_over(&self, block: Vec<u8>) {
        let cpu = affinity::current();
        let mut state = self.lock();
        let number = state.handed;
        state.handed += 1;
        state.full.push_back(Full { number, block, cpu });
        drop(state);
        self.filled.notify_one();
    }

    /// Takes an empty block; waits for one.
    pub(crate) fn take_free(&self) -> Vec<u8> {
        let mut state = self.lock();
        loop {
            if let Some(block) = state.free.pop() {
                return block;
            }
            state = self
                .freed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the oldest full block; waits for one. None at the end.
    pub(crate) fn take_full(&self) -> Option<Full> {
        let mut state = self.lock();
        loop {
            if let Some(full) = state.full.pop_front() {
                return Some(full);
            }
            if state.is_closed {
                return None;
            }
            state = self
                .filled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives a block back.
    pub(crate) fn give_back(&self, mut block: Vec<u8>) {
        block.clear();
        self.lock().free.push(block);
        self.freed.notify_one();
    }

    /// The worker hands over no more.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
    }
}
