//! Numbers and texts of payloads: integers of variable length, seven bits a byte, the low ones
//! first.

/// Appends a number.
#[inline(always)]
pub(super) fn put(out: &mut Vec<u8>, value: u64) {
    match value {
        0..0x80 => out.push(value as u8),
        0x80..0x4000 => out.extend_from_slice(&[value as u8 | 0x80, (value >> 7) as u8]),
        _ => put_long(out, value),
    }
}

fn put_long(out: &mut Vec<u8>, mut value: u64) {
    let (mut bytes, mut used) = ([0; 10], 0);
    while value >= 0x80 {
        bytes[used] = value as u8 | 0x80;
        value >>= 7;
        used += 1;
    }
    bytes[used] = value as u8;
    out.extend_from_slice(&bytes[..=used]);
}

/// Appends a text behind its length.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// A step with its sign in the lowest bit, so that small ones are short in both directions.
pub(super) fn signed(step: u64) -> u64 {
    step << 1 ^ ((step as i64) >> 63) as u64
}

/// The step that [`signed`] made small.
pub(super) fn unsigned(step: u64) -> u64 {
    step >> 1 ^ (step & 1).wrapping_neg()
}

/// Bytes that are not read yet.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl Bytes<'_> {
    /// Takes a number. None if none is left.
    pub(super) fn number(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            if shift > 63 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
            shift += 7;
        }
    }

    /// Takes a text.
    pub(super) fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}
