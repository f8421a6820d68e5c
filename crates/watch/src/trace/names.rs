//! Names by numbers: each is written once, at its first use.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::schema::{EventName, InternedData, STATE_CLEARED, Trace};

/// Numbers of names, from 1.
#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<String, u64>,
    /// Names numbered since the last packet.
    new: Vec<EventName>,
}

impl Names {
    /// The number of a name.
    pub(super) fn number(&mut self, name: &str) -> u64 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = 1 + self.numbers.len() as u64;
        self.numbers.insert(name.to_owned(), number);
        self.new.push(EventName {
            iid: Some(number),
            name: Some(name.to_owned()),
        });
        number
    }

    /// Takes the names that the next packet must define.
    pub(super) fn take_new(&mut self) -> Vec<EventName> {
        std::mem::take(&mut self.new)
    }
}

/// Replaces a trace's numbers by names. A number without a name stays.
pub(super) fn resolve(trace: &mut Trace) {
    // Each sequence has its own numbers.
    let mut known: HashMap<u32, [HashMap<u64, String>; 2]> = HashMap::new();
    for packet in &mut trace.packet {
        let [categories, names] = known
            .entry(packet.trusted_packet_sequence_id())
            .or_default();
        if packet.sequence_flags() & STATE_CLEARED != 0 {
            categories.clear();
            names.clear();
        }
        if let Some(told) = &packet.interned_data {
            let InternedData {
                event_categories,
                event_names,
            } = told;
            let pair = |one: &EventName| (one.iid(), one.name().to_owned());
            categories.extend(event_categories.iter().map(pair));
            names.extend(event_names.iter().map(pair));
        }
        let Some(event) = &mut packet.track_event else {
            continue;
        };
        if let Some(name) = event.name_iid.and_then(|number| names.get(&number)) {
            event.name = Some(name.clone());
            event.name_iid = None;
        }
        let (told, unknown): (Vec<u64>, Vec<u64>) = event
            .category_iids
            .iter()
            .partition(|number| categories.contains_key(number));
        event.category_iids = unknown;
        let told = told.iter().map(|number| categories[number].clone());
        event.categories.extend(told);
    }
}

/// A map by numbers of components, which are consecutive.
pub(super) type ByNumber<V> = HashMap<u64, V, BuildHasherDefault<Spread>>;

/// Hashes numbers that nobody chooses to collide: several times as fast as the default, which
/// matters for millions of events.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 by the golden ratio, odd: Knuth's multiplicative hashing. Tables take the highest
        // bits, and the lowest.
        let product = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}
