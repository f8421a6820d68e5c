//! Input not consumed.

use std::mem;

/// Bytes of which the first are consumed little by little. Empty, it holds no memory.
#[derive(Debug, Default)]
pub struct Left {
    bytes: Vec<u8>,
    /// Number of consumed bytes.
    from: usize,
}

impl Left {
    /// True if all is consumed.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Number of bytes not consumed.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.from
    }

    /// The bytes not consumed.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..]
    }

    /// Adds bytes at the end.
    pub fn append(&mut self, bytes: &[u8]) {
        self.make_room();
        self.bytes.extend_from_slice(bytes);
    }

    /// Consumes bytes.
    pub fn consume(&mut self, count: usize) {
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
