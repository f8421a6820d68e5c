//! Records of calls by components, which go from thread to thread within their calls.
//!
//! ```text
//! first word    depth, 5 bits │ type, 3 bits │ time, 56 bits
//! second word   1 + name, 20 bits │ number of the record, 16 bits │ component, 28 bits
//! ```
//!
//! A component numbers its records, so a reader notices missing ones whichever threads lost them.
//! From the depth, the number of calls around the one that begins or ends, it knows which calls are
//! still open then.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::layout::{GAP, TICKS, is_gap};
use super::numbers::{Bytes, put, signed, unsigned};

/// Type of a record at the beginning of a call.
pub const BEGINS: u8 = 2;
/// Type of a record at the end of the component's innermost call.
pub const ENDS: u8 = 3;
/// Type of a component's first record, whose name is that of the component's kind.
pub const KIND: u8 = 4;
/// Type of the record behind that: its second word has the component's number within its kind in
/// place of the name and the number of the record.
pub const NTH: u8 = 5;

const COMPONENT_BITS: u32 = 28;
const NUMBER_BITS: u32 = 16;
const TYPE_BITS: u32 = 3;

/// Depths are stored modulo this.
pub const DEPTHS: u32 = 1 << (8 - TYPE_BITS);

/// First word of a record of a type, at a depth.
#[inline]
#[must_use]
pub fn first(kind: u8, depth: u32, ticks: u64) -> u64 {
    u64::from(depth % DEPTHS) << (56 + TYPE_BITS) | u64::from(kind) << 56 | ticks
}

/// Type of a record that is no gap, and its depth modulo [`DEPTHS`].
#[must_use]
pub fn kind_and_depth(first: u64) -> (u8, u32) {
    let byte = (first >> 56) as u8;
    (byte & ((1 << TYPE_BITS) - 1), u32::from(byte >> TYPE_BITS))
}

/// Second word of a record of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// The name's number. None at the end of a call whose probe was switched off meanwhile.
    pub name: Option<u32>,
    /// Number of records that the component emitted before, modulo 2¹⁶.
    pub number: u16,
    /// The component's number, modulo 2²⁸.
    pub component: u32,
}

impl Word {
    /// As it is stored.
    #[inline]
    #[must_use]
    pub fn pack(self) -> u64 {
        let component = u64::from(self.component) & ((1 << COMPONENT_BITS) - 1);
        let name = self.name.map_or(0, |name| 1 + u64::from(name));
        name << (COMPONENT_BITS + NUMBER_BITS)
            | u64::from(self.number) << COMPONENT_BITS
            | component
    }

    /// Reads a stored word.
    #[must_use]
    pub fn of(word: u64) -> Word {
        Word {
            name: ((word >> (COMPONENT_BITS + NUMBER_BITS)) as u32).checked_sub(1),
            number: (word >> COMPONENT_BITS) as u16,
            component: word as u32 & ((1 << COMPONENT_BITS) - 1),
        }
    }

    /// The second word of a record of type [`NTH`].
    #[must_use]
    pub fn nth(component: u32, nth: u32) -> u64 {
        u64::from(nth) << COMPONENT_BITS | Word::of(u64::from(component)).pack()
    }

    /// The component and its number within its kind, of a word that [`nth`](Word::nth) made.
    #[must_use]
    pub fn of_nth(word: u64) -> (u32, u32) {
        (Word::of(word).component, (word >> COMPONENT_BITS) as u32)
    }
}

/// Low bits of a packed record.
mod packed {
    pub(super) const BEGINS: u64 = 0;
    /// It ends the call that the chunk's innermost open one of the component began.
    pub(super) const ENDS: u64 = 1;
    /// It ends a call that began before the chunk.
    pub(super) const ENDS_EARLIER: u64 = 2;
    pub(super) const GAP: u64 = 3;
    pub(super) const KIND: u64 = 4;
    pub(super) const NTH: u64 = 5;
    /// Any other record, whose words follow.
    pub(super) const OTHER: u64 = 6;
    /// The number of the record and the depth follow: they do not follow from the component's last
    /// record.
    pub(super) const PLACED: u64 = 8;
    pub(super) const BITS: u32 = 4;
}

/// A component, as far as a chunk tells.
#[derive(Default)]
struct Known {
    next: u16,
    /// Number of open calls, modulo [`DEPTHS`].
    deep: u32,
    open: Vec<Option<u32>>,
}

impl Known {
    fn clear(&mut self) {
        (self.next, self.deep) = (0, 0);
        self.open.clear();
    }

    /// Number and depth of the next record, if none is missing.
    fn expected(&self, kind: u8) -> (u16, u32) {
        let depth = match kind {
            ENDS => self.deep.wrapping_sub(1) % DEPTHS,
            _ => self.deep,
        };
        (self.next, depth)
    }

    fn pass(&mut self, kind: u8, (number, depth): (u16, u32)) {
        self.next = number.wrapping_add(1);
        self.deep = match kind {
            BEGINS => (depth + 1) % DEPTHS,
            _ => depth,
        };
    }
}

/// State that packing and unpacking share, of one chunk. Another chunk may use its memory.
#[derive(Default)]
pub(super) struct Before {
    ticks: u64,
    /// The component of the last record, and its place in `known`.
    component: u32,
    place: usize,
    /// Places in `known`, of which the first `used` are in use.
    places: HashMap<u32, usize, BuildHasherDefault<Mixed>>,
    known: Vec<Known>,
    used: usize,
}

/// Hash of a component's number: nobody chooses these to collide.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        let mixed = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed.rotate_left(26);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

impl Before {
    fn clear(&mut self) {
        self.places.clear();
        (self.ticks, self.component, self.used) = (0, 0, 0);
    }

    /// Makes a component the last one, and gives what is known of it. Its records come in runs.
    #[inline]
    fn known(&mut self, component: u32) -> &mut Known {
        if self.used == 0 || component != self.component {
            self.place = *self.places.entry(component).or_insert(self.used);
            self.component = component;
        }
        if self.place == self.used {
            self.used += 1;
            match self.known.get_mut(self.place) {
                Some(former) => former.clear(),
                None => self.known.push(Known::default()),
            }
        }
        &mut self.known[self.place]
    }
}

/// Appends records, and gives their number.
pub(super) fn pack(
    records: impl Iterator<Item = [u64; 2]>,
    before: &mut Before,
    out: &mut Vec<u8>,
) -> u32 {
    before.clear();
    let mut count = 0;
    for [first, second] in records {
        count += 1;
        let ticks = first & TICKS;
        let step = signed(ticks.wrapping_sub(before.ticks)) << packed::BITS;
        before.ticks = ticks;
        let (kind, depth) = kind_and_depth(first);
        match kind {
            _ if is_gap(first) => {
                put(out, step | packed::GAP);
                put(out, second);
            }
            BEGINS | ENDS | KIND => {
                let word = Word::of(second);
                let last = before.component;
                let known = before.known(word.component);
                let code = match kind {
                    BEGINS => packed::BEGINS,
                    KIND => packed::KIND,
                    _ if known.open.last() == Some(&word.name) => packed::ENDS,
                    _ => packed::ENDS_EARLIER,
                };
                let place = (word.number, depth);
                let is_expected = known.expected(kind) == place;
                known.pass(kind, place);
                match code {
                    packed::BEGINS => known.open.push(word.name),
                    packed::ENDS => drop(known.open.pop()),
                    _ => {}
                }
                put(
                    out,
                    step | code | if is_expected { 0 } else { packed::PLACED },
                );
                put_component(out, last, word.component);
                if !is_expected {
                    put(out, u64::from(word.number));
                    put(out, u64::from(depth));
                }
                if code != packed::ENDS {
                    put(out, word.name.map_or(0, |name| 1 + u64::from(name)));
                }
            }
            NTH if depth == 0 => {
                let (component, nth) = Word::of_nth(second);
                put(out, step | packed::NTH);
                put_component(out, before.component, component);
                before.known(component);
                put(out, u64::from(nth));
            }
            _ => {
                put(out, step | packed::OTHER);
                put(out, first >> 56);
                put(out, second);
            }
        }
    }
    count
}

fn put_component(out: &mut Vec<u8>, last: u32, component: u32) {
    put(
        out,
        signed(u64::from(component).wrapping_sub(u64::from(last))),
    );
}

/// The records that [`pack`] wrote. None if they are damaged.
pub(super) fn unpack(mut bytes: Bytes<'_>, count: usize) -> Option<Vec<[u64; 2]>> {
    let mut before = Before::default();
    let mut records = Vec::with_capacity(count.min(1 << 16));
    for _ in 0..count {
        let word = bytes.number()?;
        before.ticks = before.ticks.wrapping_add(unsigned(word >> packed::BITS)) & TICKS;
        let code = word & (packed::PLACED - 1);
        records.push(match code {
            packed::GAP => [GAP | before.ticks, bytes.number()?],
            packed::NTH => {
                let component = component(&mut bytes, before.component)?;
                before.known(component);
                let nth = u32::try_from(bytes.number()?).ok()?;
                [first(NTH, 0, before.ticks), Word::nth(component, nth)]
            }
            packed::OTHER => {
                let byte = u8::try_from(bytes.number()?).ok()?;
                [u64::from(byte) << 56 | before.ticks, bytes.number()?]
            }
            packed::BEGINS | packed::ENDS | packed::ENDS_EARLIER | packed::KIND => {
                let kind = match code {
                    packed::BEGINS => BEGINS,
                    packed::KIND => KIND,
                    _ => ENDS,
                };
                let component = component(&mut bytes, before.component)?;
                let ticks = before.ticks;
                let known = before.known(component);
                let (number, depth) = match word & packed::PLACED {
                    0 => known.expected(kind),
                    _ => {
                        let number = u16::try_from(bytes.number()?).ok()?;
                        (number, u32::try_from(bytes.number()?).ok()?)
                    }
                };
                let name = match code {
                    packed::ENDS => known.open.pop()?,
                    _ => u32::try_from(bytes.number()?).ok()?.checked_sub(1),
                };
                known.pass(kind, (number, depth));
                if code == packed::BEGINS {
                    known.open.push(name);
                }
                let word = Word {
                    name,
                    number,
                    component,
                };
                [first(kind, depth, ticks), word.pack()]
            }
            _ => return None,
        });
    }
    bytes.0.is_empty().then_some(records)
}

fn component(bytes: &mut Bytes<'_>, last: u32) -> Option<u32> {
    let component = u64::from(last).wrapping_add(unsigned(bytes.number()?));
    u32::try_from(component).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(
        kind: u8,
        depth: u32,
        ticks: u64,
        (name, number): (u32, u16),
        component: u32,
    ) -> [u64; 2] {
        let word = Word {
            name: name.checked_sub(1),
            number,
            component,
        };
        [first(kind, depth, ticks), word.pack()]
    }

    #[test]
    fn records_come_back() {
        let last = (1 << COMPONENT_BITS) - 1;
        let records = vec![
            record(KIND, 0, 5, (9, 0), 1),
            [first(NTH, 0, 6), Word::nth(1, 77)],
            record(BEGINS, 0, 7, (12, 1), 1),
            record(BEGINS, 31, 9, (13, 65_535), last),
            record(ENDS, 31, 10, (13, 0), last),
            record(ENDS, 0, 12, (12, 2), 1),
            record(ENDS, 31, 13, (400_000, 3), 1),
            record(ENDS, 7, 13, (0, 4), 1),
            [GAP | 14, 1234],
            [first(NTH, 0, TICKS), Word::nth(last, u32::MAX)],
            [1 << 56 | 3, u64::MAX],
            [first(NTH, 3, 3), 5],
            record(BEGINS, 3, 20, (12, 9), 1),
        ];
        // One that another chunk has used.
        let mut before = Before::default();
        pack(records.iter().rev().copied(), &mut before, &mut Vec::new());
        let mut bytes = Vec::new();
        assert_eq!(pack(records.iter().copied(), &mut before, &mut bytes), 13);
        assert_eq!(unpack(Bytes(&bytes), records.len()), Some(records.clone()));
        for end in 0..bytes.len() {
            assert_eq!(unpack(Bytes(&bytes[..end]), records.len()), None);
        }
    }

    #[test]
    fn calls_of_one_component_take_few_bytes() {
        let records = (0..1000_u16).map(|nth| {
            let kind = if nth % 2 == 0 { BEGINS } else { ENDS };
            record(kind, 0, 60 * u64::from(nth), (12, nth), 3)
        });
        let mut bytes = Vec::new();
        pack(records, &mut Before::default(), &mut bytes);
        assert!(bytes.len() <= 4000, "{}", bytes.len());
    }
}
