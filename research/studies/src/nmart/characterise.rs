//! Characteristics of a program's requests: sizes, times between requests, holding times, by mean
//! and standard deviation and as histograms, as in the source's appendix C.
//!
//! Sizes and holding times have a sample each request; times between requests one less. A block
//! that is never released is held until the program's end. A sample belongs to the first bin whose
//! upper edge is not below it, as in a spreadsheet; edges are powers of two from 8 on.

use std::collections::HashMap;

use hearth_allocators::meter::format::Event;
use serde::{Deserialize, Serialize};

/// The three quantities, in the order of the source's tables.
pub const QUANTITIES: [&str; 3] = [
    "size, bytes",
    "time between requests, cycles",
    "holding time, µs",
];

/// A quantity's samples, summed up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The number of samples.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// Counts of the bins, by their upper edges.
    pub bins: Vec<(u64, u64)>,
}

/// The first bin's upper edge.
const FIRST_EDGE: u64 = 8;

/// The upper edge of a sample's bin.
#[must_use]
pub fn edge_of(sample: f64) -> u64 {
    let mut edge = FIRST_EDGE;
    while (edge as f64) < sample && edge < 1 << 62 {
        edge *= 2;
    }
    edge
}

impl Distribution {
    /// Computes the distribution of `samples`.
    #[must_use]
    pub fn of(samples: &[f64]) -> Distribution {
        let count = samples.len() as f64;
        if samples.is_empty() {
            return Distribution::default();
        }
        let mean = samples.iter().sum::<f64>() / count;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let mut by_edge: HashMap<u64, u64> = HashMap::new();
        for &sample in samples {
            *by_edge.entry(edge_of(sample)).or_default() += 1;
        }
        let last = by_edge.keys().copied().max().unwrap_or(FIRST_EDGE);
        let edges = std::iter::successors(Some(FIRST_EDGE), |edge| Some(edge * 2));
        Distribution {
            count: samples.len() as u64,
            mean,
            deviation: (squares / (count - 1.0).max(1.0)).sqrt(),
            bins: edges
                .take_while(|edge| *edge <= last)
                .map(|edge| (edge, by_edge.get(&edge).copied().unwrap_or(0)))
                .collect(),
        }
    }

    /// The bins with the share of all that lies up to their edges, percent.
    #[must_use]
    pub fn cumulative(&self) -> Vec<(u64, f64)> {
        cumulative(&self.bins)
    }
}

/// Bins with the share of all that lies up to their edges, percent.
#[must_use]
pub fn cumulative(bins: &[(u64, u64)]) -> Vec<(u64, f64)> {
    let all: u64 = bins.iter().map(|(_, count)| count).sum();
    let sums = bins.iter().scan(0, |sum, &(edge, count)| {
        *sum += count;
        Some((edge, *sum))
    });
    sums.map(|(edge, sum)| (edge, 100.0 * sum as f64 / all.max(1) as f64))
        .collect()
}

/// Characteristics of a program's requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Character {
    /// The distributions of [`QUANTITIES`].
    pub quantities: [Distribution; 3],
    /// The most blocks at a time.
    pub blocks_max: u64,
    /// Waste of nMART's own classes, 4 bytes apart and 64 a row: `(h − a) / h`, percent.
    pub class_waste_percent: f64,
}

/// Size of the smallest class of the source's that holds `bytes`.
#[must_use]
pub fn class_bytes(bytes: u64) -> u64 {
    let bytes = bytes.max(1) as usize;
    hearth_allocators::nmart::mapping::search_map(bytes).1 as u64
}

/// Characterises a program from a trace of a single thread. `end` is the stamp of the program's
/// end, 0 if it is not known; `ticks_per_us` is the number of ticks in a microsecond.
#[must_use]
pub fn characterise(events: impl Iterator<Item = Event>, end: u64, ticks_per_us: f64) -> Character {
    let (mut sizes, mut between, mut holding) = (Vec::new(), Vec::new(), Vec::new());
    let mut live: HashMap<u64, u64> = HashMap::new();
    let (mut before, mut last, mut most) = (None, 0, 0);
    let (mut asked, mut given) = (0u64, 0u64);
    for event in events {
        last = last.max(event.stamp);
        match event.bytes {
            Some(bytes) => {
                sizes.push(bytes as f64);
                asked += bytes;
                given += class_bytes(bytes);
                if let Some(before) = before.replace(event.stamp) {
                    between.push(event.stamp.saturating_sub(before) as f64);
                }
                live.insert(event.block, event.stamp);
                most = most.max(live.len());
            }
            None => {
                if let Some(begin) = live.remove(&event.block) {
                    holding.push(event.stamp.saturating_sub(begin) as f64 / ticks_per_us);
                }
            }
        }
    }
    let end = if end == 0 { last } else { end };
    let kept = live
        .values()
        .map(|begin| end.saturating_sub(*begin) as f64 / ticks_per_us);
    holding.extend(kept);
    Character {
        quantities: [sizes, between, holding].map(|samples| Distribution::of(&samples)),
        blocks_max: most as u64,
        class_waste_percent: 100.0 * (given - asked) as f64 / given.max(1) as f64,
    }
}
