//! Records of few types, packed by the column.
//!
//! ```text
//! bytes of types │ types, two a byte │ first words │ second words
//! ```
//!
//! A word is stored as its step from an earlier one that is probably near: a time from the last
//! time, an address from the last address, a second word from the last one of the same type. A
//! type that half a byte cannot name stands before the record's first word.

use super::layout::{PLACED, TICKS};
use super::numbers::{Bytes, put, signed, unsigned};

/// Half a byte for a type that has none of its own.
const OTHER: u8 = 15;

/// Bytes that a column of a usual block does not exceed.
const COLUMN: usize = 1 << 14;

/// Words that steps are taken from.
#[derive(Default)]
struct Last {
    time: u64,
    address: u64,
    second: [u64; 16],
}

impl Last {
    /// The word that a record's first word is a step from.
    fn first(&mut self, kind: u8) -> &mut u64 {
        match kind >= PLACED {
            true => &mut self.address,
            false => &mut self.time,
        }
    }
}

/// Half of a byte for a type.
fn half_of(kind: u8) -> u8 {
    kind.min(OTHER)
}

/// Words of memory have addresses that end with three zeros; they go to the top, where all numbers
/// of 56 bits have zeros.
fn turned(kind: u8, value: u64) -> u64 {
    match kind >= PLACED {
        true => value.rotate_right(3),
        false => value,
    }
}

fn turned_back(kind: u8, value: u64) -> u64 {
    match kind >= PLACED {
        true => value.rotate_left(3),
        false => value,
    }
}

/// Appends records, and gives their number.
pub(super) fn pack(records: impl Iterator<Item = [u64; 2]>, out: &mut Vec<u8>) -> u32 {
    let column = || Vec::with_capacity(COLUMN);
    let (mut kinds, mut firsts, mut seconds) = (column(), column(), column());
    let (mut last, mut count) = (Last::default(), 0_u32);
    for [first, second] in records {
        let kind = (first >> 56) as u8;
        let half = half_of(kind);
        match count % 2 {
            0 => kinds.push(half),
            _ => kinds[count as usize / 2] |= half << 4,
        }
        count += 1;
        if half == OTHER {
            firsts.push(kind);
        }
        let value = turned(kind, first & TICKS);
        let earlier = std::mem::replace(last.first(kind), value);
        put(&mut firsts, signed(value.wrapping_sub(earlier)));
        let earlier = std::mem::replace(&mut last.second[usize::from(half)], second);
        put(&mut seconds, signed(second.wrapping_sub(earlier)));
    }
    put(out, kinds.len() as u64);
    out.extend(kinds);
    out.extend(firsts);
    out.extend(seconds);
    count
}

/// The records that [`pack`] wrote. None if they are damaged.
pub(super) fn unpack(mut bytes: Bytes<'_>, count: usize) -> Option<Vec<[u64; 2]>> {
    let halves = usize::try_from(bytes.number()?).ok()?;
    let (kinds, rest) = bytes.0.split_at_checked(halves)?;
    if kinds.len() != count.div_ceil(2) {
        return None;
    }
    bytes = Bytes(rest);
    let half = |nth: usize| kinds[nth / 2] >> (nth % 2 * 4) & 15;
    let mut last = Last::default();
    let mut records = Vec::with_capacity(count);
    for nth in 0..count {
        let mut kind = half(nth);
        if kind == OTHER {
            let (&named, rest) = bytes.0.split_first()?;
            (kind, bytes.0) = (named, rest);
        }
        let value = last.first(kind).wrapping_add(unsigned(bytes.number()?));
        *last.first(kind) = value;
        let value = turned_back(kind, value);
        if value > TICKS {
            return None;
        }
        records.push([u64::from(kind) << 56 | value, 0]);
    }
    for (nth, record) in records.iter_mut().enumerate() {
        let earlier = &mut last.second[usize::from(half(nth))];
        *earlier = earlier.wrapping_add(unsigned(bytes.number()?));
        record[1] = *earlier;
    }
    bytes.0.is_empty().then_some(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::GAP;

    fn come_back(records: &[[u64; 2]]) -> usize {
        let mut packed = Vec::new();
        let count = pack(records.iter().copied(), &mut packed);
        assert_eq!(count as usize, records.len());
        let read = unpack(Bytes(&packed), records.len());
        assert_eq!(read.expect("whole"), records);
        assert_eq!(unpack(Bytes(&packed), records.len() + 2), None);
        packed.len()
    }

    #[test]
    fn any_records_come_back() {
        come_back(&[]);
        let mut random = 0x1234_5678_9abc_def1_u64;
        let mut next = |bits: u32| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random >> (64 - bits)
        };
        for length in 0..200 {
            let any = |_| [next(64) >> (next(6)), next(64) >> next(6)];
            come_back(&(0..length).map(any).collect::<Vec<_>>());
        }
        come_back(&[
            [TICKS, u64::MAX],
            [GAP | TICKS, 0],
            [0, u64::MAX],
            [0xfe << 56 | 9, 3],
            [14 << 56 | 7, 1 << 63],
            [14 << 56 | TICKS, 0],
        ]);
    }

    /// Transfers of a bank, as a full trace has them.
    #[test]
    fn a_record_takes_less_than_five_bytes() {
        let (mut records, mut ticks, mut counter) = (Vec::new(), 1 << 40, 1 << 20);
        let mut random = 1_u64;
        for _ in 0..500 {
            let mut account = || {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                0x7f12_3456_7000 + (random >> 54) * 8
            };
            let (from, to) = (account(), account());
            let read = u64::from(PLACED) << 56;
            let write = read + (1 << 56);
            records.extend([
                [ticks, counter],
                [read | from, 1],
                [write | from, 990],
                [read | to, 1],
                [write | to, 1010],
                [1 << 56 | (ticks + 90), counter + 8],
            ]);
            ticks += 140;
            counter += 16;
        }
        let bytes = come_back(&records) as f64 / records.len() as f64;
        assert!(bytes < 3.5, "{bytes} bytes a record");
    }

    #[test]
    fn damage_is_no_panic() {
        let records: Vec<[u64; 2]> = (0..20).map(|nth| [nth << 56 | nth, nth]).collect();
        let mut packed = Vec::new();
        pack(records.iter().copied(), &mut packed);
        for cut in 0..packed.len() {
            assert_eq!(unpack(Bytes(&packed[..cut]), 20), None);
        }
        for at in 0..packed.len() {
            for bit in 0..8 {
                packed[at] ^= 1 << bit;
                let _ = unpack(Bytes(&packed), 20);
                packed[at] ^= 1 << bit;
            }
        }
    }
}
