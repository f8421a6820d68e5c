//! Input not consumed.

use std::mem;

/// Bytes of which the first are consumed little by little. Empty, it holds no memory.
#[derive(Default)]
pub(super) struct Left {
    bytes: Vec<u8>,
    /// Number of consumed bytes.
    from: usize,
}

impl Left {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.from
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..]
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.make_room();
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.from += count;
        if self.from == self.bytes.len() {
            *self = Left::default();
        }
    }

    /// Moves what is left to the front if that is less than what was consumed: so moving costs less
    /// than consuming did.
    fn make_room(&mut self) {
        if self.from > self.len() {
            self.bytes.drain(..mem::take(&mut self.from));
        }
    }
}
