//! Tallies: the number of a probe's calls, and a histogram of their lengths.
//!
//! The histogram is log-linear. Lengths below 64 ticks have a place each, and every doubling above
//! has 64 places, so a place is at most 1/64 of its lengths wide.

use std::collections::BTreeMap;

use super::layout::{root, table, tallies};
use super::numbers::{Bytes, put};

/// Bits of a length that choose its place within a doubling.
const BITS: u32 = 6;
const PLACES: usize = 1 << BITS;

/// Calls of a probe, added up. Times are in ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of calls whose length is not known, as they have not ended.
    pub unknown: u64,
    /// Length of the others together.
    pub total: u64,
    /// The same without the calls directly within them.
    pub own: u64,
    /// Length of the longest call.
    pub longest: u64,
    /// Numbers of calls by the place of their length.
    lengths: BTreeMap<u32, u64>,
}

/// The place of a length; very long ones have the last one together.
#[inline]
pub(super) fn place(ticks: u64) -> usize {
    let place = match ticks.checked_ilog2() {
        None | Some(0..BITS) => ticks as usize,
        Some(double) => {
            let within = (ticks >> (double - BITS)) as usize & (PLACES - 1);
            ((double - BITS + 1) as usize) << BITS | within
        }
    };
    place.min(table::LENGTHS_MAX - 1)
}

/// The lengths of a place: the least and the greatest.
fn lengths_of(place: usize) -> (u64, u64) {
    match (place >> BITS) as u32 {
        0 => (place as u64, place as u64),
        double => {
            let within = (place & (PLACES - 1)) as u64;
            let least = (PLACES as u64 + within) << (double - 1);
            (least, least + (1 << (double - 1)) - 1)
        }
    }
}

impl Tally {
    /// Number of calls, those that have not ended included.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.unknown + self.lengths.values().sum::<u64>()
    }

    /// Numbers of calls by their length: the least and the greatest of each place that has calls,
    /// in ticks, and their number.
    pub fn lengths(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.lengths.iter().map(|(&place, &calls)| {
            let (least, greatest) = lengths_of(place as usize);
            (least, greatest, calls)
        })
    }

    /// Appends what a chunk has of it.
    pub(super) fn put(&self, name: Option<u32>, out: &mut Vec<u8>) {
        put(out, name.map_or(0, |name| u64::from(name) + 1));
        for value in [self.unknown, self.total, self.own, self.longest] {
            put(out, value);
        }
        let mut last = 0;
        for (&place, &calls) in &self.lengths {
            put(out, u64::from(place - last));
            put(out, calls);
            last = place;
        }
    }

    /// The name and the tally of a chunk. None if it is damaged.
    pub(super) fn take(bytes: &mut Bytes<'_>) -> Option<(Option<u32>, Tally)> {
        let name = bytes.number()?.checked_sub(1).map(|name| name as u32);
        let mut tally = Tally {
            unknown: bytes.number()?,
            total: bytes.number()?,
            own: bytes.number()?,
            longest: bytes.number()?,
            lengths: BTreeMap::new(),
        };
        let mut place = 0_u32;
        while !bytes.0.is_empty() {
            place = place.checked_add(u32::try_from(bytes.number()?).ok()?)?;
            if place as usize >= table::LENGTHS_MAX {
                return None;
            }
            tally.lengths.insert(place, bytes.number()?);
        }
        Some((name, tally))
    }
}

/// Tallies by the probes' names; without a name those of calls nested too deeply to keep it.
pub(super) type Tallies = BTreeMap<Option<u32>, Tally>;

/// Adds up the tallies of a journal's blocks, and their open calls. `word` gives a word of a block.
pub(super) fn tallies_of(blocks: usize, word: &dyn Fn(usize, usize) -> u64) -> Tallies {
    let mut found = Tallies::new();
    for block in 0..blocks {
        match word(block, super::layout::block::STATE) {
            tallies::TABLE => {
                let name = word(block, table::NAME) as u32;
                let tally = found.entry(Some(name)).or_default();
                tally.unknown += word(block, table::UNKNOWN);
                tally.total += word(block, table::TOTAL);
                tally.own += word(block, table::OWN);
                tally.longest = tally.longest.max(word(block, table::LONGEST));
                for place in 0..table::LENGTHS_MAX {
                    let calls = word(block, table::LENGTHS + place);
                    if calls > 0 {
                        *tally.lengths.entry(place as u32).or_default() += calls;
                    }
                }
            }
            tallies::ROOT => {
                let depth = word(block, root::DEPTH) as usize;
                for open in 0..depth.min(root::OPEN_MAX) {
                    let name = word(block, root::OPEN + open * root::OPEN_WORDS);
                    found.entry(Some(name as u32)).or_default().unknown += 1;
                }
                if depth > root::OPEN_MAX {
                    found.entry(None).or_default().unknown += (depth - root::OPEN_MAX) as u64;
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_each_other_and_are_narrow() {
        let mut next = 0;
        for place in 0..table::LENGTHS_MAX {
            let (least, greatest) = lengths_of(place);
            assert_eq!(least, next);
            assert!((greatest - least) * PLACES as u64 <= least, "{place}");
            for ticks in [least, greatest] {
                assert_eq!(super::place(ticks), place, "{ticks}");
            }
            next = greatest + 1;
        }
        assert!(next > 1 << 52);
        assert_eq!(super::place(u64::MAX), table::LENGTHS_MAX - 1);
    }

    #[test]
    fn tallies_come_back() {
        let tally = Tally {
            unknown: 1,
            total: 1 << 50,
            own: 3,
            longest: 1 << 40,
            lengths: [(0, 7), (63, 1), (3_000, 1 << 60)].into(),
        };
        for name in [None, Some(0), Some(70_000)] {
            let mut bytes = Vec::new();
            tally.put(name, &mut bytes);
            let read = Tally::take(&mut Bytes(&bytes));
            assert_eq!(read, Some((name, tally.clone())));
            // Damage is no panic.
            for at in 0..bytes.len() {
                let _ = Tally::take(&mut Bytes(&bytes[..at]));
                bytes[at] ^= 0x80;
                let _ = Tally::take(&mut Bytes(&bytes));
                bytes[at] ^= 0x80;
            }
        }
        assert_eq!(tally.calls(), 9 + (1 << 60));
    }
}
