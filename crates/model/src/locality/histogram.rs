//! Histogram of distances.

/// Buckets per octave: distances below twice this are counted one by one. Caches have 2ᵏ, 3·2ᵏ,
/// 5·2ᵏ … lines, so their edges are edges of buckets.
const PER_OCTAVE: u64 = 256;

/// Reuse distances, counted in buckets that are at most 1/256 of their distance wide.
///
/// Counts are real numbers, since a reference of a sampled line stands for several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    counts: Vec<f64>,
    cold: f64,
    sum: f64,
}

impl Histogram {
    /// Counts a reference with `weight`; first uses of a line have no distance.
    pub fn add(&mut self, distance: Option<u64>, weight: f64) {
        self.sum += weight;
        let Some(distance) = distance else {
            self.cold += weight;
            return;
        };
        let bucket = bucket(distance);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0.0);
        }
        self.counts[bucket] += weight;
    }

    /// References, including first uses.
    #[must_use]
    pub fn references(&self) -> f64 {
        self.sum
    }

    /// First uses.
    #[must_use]
    pub fn first_uses(&self) -> f64 {
        self.cold
    }

    /// References that a cache of this many lines misses, including first uses. Exact at the edge
    /// of a bucket; in between as if the distances in a bucket were spread evenly.
    #[must_use]
    pub fn misses(&self, lines: u64) -> f64 {
        let at = bucket(lines);
        let farther: f64 = self.counts.iter().skip(at + 1).sum();
        let (low, high) = edges(at);
        let here = self.counts.get(at).copied().unwrap_or_default();
        let share = (high - lines) as f64 / (high - low) as f64;
        self.cold + farther + here * share
    }

    /// Share of references that a cache of this many lines misses, 0 to 1; 0 for no references.
    #[must_use]
    pub fn miss_ratio(&self, lines: u64) -> f64 {
        if self.sum > 0.0 {
            self.misses(lines) / self.sum
        } else {
            0.0
        }
    }

    /// `(lowest, beyond the highest, references)` of each power of two that occurred, from near to
    /// far; the first is distance 0 alone.
    #[must_use]
    pub fn octaves(&self) -> Vec<(u64, u64, f64)> {
        let mut octaves: Vec<(u64, u64, f64)> = Vec::new();
        for (at, &count) in self.counts.iter().enumerate() {
            let low = edges(at).0;
            let from = if low == 0 { 0 } else { 1 << low.ilog2() };
            match octaves.last_mut() {
                Some(last) if last.0 == from => last.2 += count,
                _ => octaves.push((from, from.saturating_mul(2).max(1), count)),
            }
        }
        octaves
    }
}

fn bucket(distance: u64) -> usize {
    if distance < 2 * PER_OCTAVE {
        return distance as usize;
    }
    let shift = distance.ilog2() - PER_OCTAVE.ilog2();
    (u64::from(shift) * PER_OCTAVE + (distance >> shift)) as usize
}

/// The lowest distance of a bucket, and the lowest beyond it.
fn edges(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    if bucket < 2 * PER_OCTAVE {
        return (bucket, bucket + 1);
    }
    let shift = bucket / PER_OCTAVE - 1;
    let low = (bucket % PER_OCTAVE + PER_OCTAVE) << shift;
    (low, low.saturating_add(1 << shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_join_without_gap_or_overlap() {
        for at in 0..10_000 {
            let (low, high) = edges(at);
            assert_eq!((bucket(low), bucket(high - 1)), (at, at));
            assert_eq!(bucket(high), at + 1);
        }
        assert_eq!(edges(bucket(u64::MAX)).1, u64::MAX);
    }

    #[test]
    fn edges_of_caches_are_exact() {
        let mut histogram = Histogram::default();
        for distance in 0..40_000 {
            histogram.add(Some(distance), 1.0);
        }
        for lines in [0_u64, 1, 500, 512, 768, 1024, 1536, 20 * 1024, 32_768] {
            assert!((histogram.misses(lines) - (40_000 - lines) as f64).abs() < 1e-9);
        }
        assert!(histogram.misses(50_000) < 1e-9);
    }

    #[test]
    fn octaves_hold_every_reference_with_a_distance() {
        let mut histogram = Histogram::default();
        histogram.add(None, 1.0);
        for distance in [0, 1, 2, 3, 4, 1000, 1_000_000] {
            histogram.add(Some(distance), 1.0);
        }
        let octaves = histogram.octaves();
        assert_eq!(octaves[..3], [(0, 1, 1.0), (1, 2, 1.0), (2, 4, 2.0)]);
        assert!((octaves.iter().map(|octave| octave.2).sum::<f64>() - 7.0).abs() < 1e-9);
        assert!((histogram.first_uses() - 1.0).abs() < 1e-9);
    }
}
