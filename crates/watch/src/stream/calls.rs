//! Records of calls, packed: the end of the innermost call is a step of time alone.

use super::layout::{GAP, TICKS};
use super::numbers::{Bytes, put, signed, unsigned};

/// Two low bits of a packed record.
mod packed {
    pub(super) const BEGINS: u64 = 0;
    /// It ends the call that the chunk's innermost open one began.
    pub(super) const ENDS: u64 = 1;
    /// It ends a call that began before the chunk.
    pub(super) const ENDS_EARLIER: u64 = 2;
    pub(super) const GAP: u64 = 3;
}
const ENDS_TYPE: u64 = 1;

/// Appends records, and gives their number. Time steps have a sign, since gaps may come with an
/// older time.
pub(super) fn pack(records: impl Iterator<Item = [u64; 2]>, out: &mut Vec<u8>) -> u32 {
    let (mut last, mut open, mut count) = (0_u64, Vec::new(), 0);
    for [first, second] in records {
        count += 1;
        let ticks = first & TICKS;
        let step = signed(ticks.wrapping_sub(last)) << 2;
        last = ticks;
        match first >> 56 {
            0 => {
                put(out, step | packed::BEGINS);
                put(out, second);
                open.push(second);
            }
            ENDS_TYPE if open.last() == Some(&second) => {
                open.pop();
                put(out, step | packed::ENDS);
            }
            ENDS_TYPE => {
                put(out, step | packed::ENDS_EARLIER);
                put(out, second);
            }
            _ => {
                put(out, step | packed::GAP);
                put(out, second);
                open.clear();
            }
        }
    }
    count
}

/// The records that [`pack`] wrote. None if they are damaged.
pub(super) fn unpack(mut bytes: Bytes<'_>, count: usize) -> Option<Vec<[u64; 2]>> {
    let (mut last, mut open) = (0_u64, Vec::new());
    let mut records = Vec::with_capacity(count.min(1 << 16));
    for _ in 0..count {
        let word = bytes.number()?;
        let ticks = last.wrapping_add(unsigned(word >> 2)) & TICKS;
        last = ticks;
        records.push(match word & 3 {
            packed::BEGINS => {
                let second = bytes.number()?;
                open.push(second);
                [ticks, second]
            }
            packed::ENDS => [ENDS_TYPE << 56 | ticks, open.pop()?],
            packed::ENDS_EARLIER => [ENDS_TYPE << 56 | ticks, bytes.number()?],
            _ => {
                open.clear();
                [GAP | ticks, bytes.number()?]
            }
        });
    }
    Some(records)
}
