//! Caches inferred from a latency curve.
//!
//! The curve is cut into pieces of constant log-latency by optimal partitioning with a penalty for
//! each cut. Pieces that are long enough on the axis of log size are *plateaus*; between two of
//! them lies a *ramp*, since a buffer outgrows a cache gradually: pages share sets, and replacement
//! is not perfect. A capacity is where the curve crosses the geometric middle of two plateaus; its
//! interval is from the first to the third quarter of the rise.

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Size of the buffer, in bytes.
    pub bytes: u64,
    /// Nanoseconds a load.
    pub ns: f64,
}

/// A level of the memory system, as the curve shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Nanoseconds a load, the median of the plateau.
    pub latency_ns: f64,
    /// Size at which the level is outgrown; None for the last one that the curve reaches.
    pub capacity: Option<Capacity>,
    /// False for a last level whose latency still rises where the curve ends: then `latency_ns`
    /// is a lower bound.
    pub is_settled: bool,
}

/// The size of a level with its interval, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Size at which the rise to the next level is half done, on the log axis.
    pub bytes: f64,
    /// Size at which a quarter of it is done.
    pub low: f64,
    /// Size at which three quarters are done.
    pub high: f64,
}

/// Verdict on a claim about a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CacheVerdict {
    /// A level ends at the claimed size.
    Confirmed {
        /// Measured over claimed size.
        size_ratio: f64,
    },
    /// No level ends there.
    Contradicted {
        /// The nearest level's measured size over the claimed one.
        size_ratio: f64,
        /// Factor by which a load is slower at half the claimed size than in the level that should
        /// hold it; 1 for a claim that is too small rather than too large.
        slowdown: f64,
    },
    /// The curve does not reach twice the claimed size.
    Undecided,
}

/// Octaves of size below which a piece is part of a ramp.
const PLATEAU_OCTAVES: f64 = 0.75;
const PLATEAU_POINTS: usize = 3;
/// Least factor in latency between two levels.
const LEVEL_FACTOR: f64 = 1.3;
/// Least noise assumed, as a standard deviation of log latency: no curve is smoother.
const NOISE_MIN: f64 = 0.03;
/// Largest noise assumed, so that steps do not pass for it.
const NOISE_MAX: f64 = 0.15;
/// Factor by which a size must be off the measured interval to contradict a claim.
const CLAIM_FACTOR: f64 = 1.6;

/// The levels that a curve shows, fastest first. Points in any order; those without a size or
/// latency are left out. Fewer than three points show nothing.
pub fn levels(points: &[CurvePoint]) -> Vec<Level> {
    let mut points: Vec<CurvePoint> = points
        .iter()
        .copied()
        .filter(|p| p.bytes > 0 && p.ns.is_finite() && p.ns > 0.0)
        .collect();
    points.sort_by_key(|point| point.bytes);
    if points.len() < PLATEAU_POINTS {
        return Vec::new();
    }
    let logs: Vec<f64> = points.iter().map(|point| point.ns.ln()).collect();
    let sizes: Vec<f64> = points.iter().map(|p| (p.bytes as f64).log2()).collect();
    let smooth = rising(&logs);
    let mut plateaus = plateaus(&sizes, &smooth);
    let Some(last) = smooth.last().copied() else {
        return Vec::new();
    };
    // The curve's end is a level even if the curve still rises there.
    let ends_higher = plateaus
        .last()
        .is_none_or(|plateau| last - plateau.log > LEVEL_FACTOR.ln());
    if ends_higher {
        let end = points.len();
        plateaus.push(Plateau {
            first: end - 1,
            end,
            log: last,
            is_settled: false,
        });
    }
    (0..plateaus.len())
        .map(|index| Level {
            latency_ns: plateaus[index].log.exp(),
            capacity: plateaus
                .get(index + 1)
                .map(|next| crossing(&sizes, &smooth, &plateaus[index], next)),
            is_settled: plateaus[index].is_settled,
        })
        .collect()
}

struct Plateau {
    first: usize,
    end: usize,
    log: f64,
    is_settled: bool,
}

/// The nearest curve that never falls (pool adjacent violators): latency does not fall with size,
/// so falls are noise.
fn rising(values: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for &value in values {
        let mut block = (value, 1usize);
        while let Some(&(sum, count)) = blocks.last() {
            if sum / count as f64 <= block.0 / block.1 as f64 {
                break;
            }
            block = (block.0 + sum, block.1 + count);
            blocks.pop();
        }
        blocks.push(block);
    }
    blocks
        .iter()
        .flat_map(|&(sum, count)| std::iter::repeat_n(sum / count as f64, count))
        .collect()
}

/// The spread of second differences, to which a slope does not add: for white noise their median
/// absolute value is 0.6745·√6 standard deviations.
fn noise(values: &[f64]) -> f64 {
    let seconds: Vec<f64> = values
        .windows(3)
        .map(|w| (w[0] - 2.0 * w[1] + w[2]).abs())
        .collect();
    let spread = crate::statistics::median(&seconds).unwrap_or(0.0) / (0.6745 * 6f64.sqrt());
    spread.clamp(NOISE_MIN, NOISE_MAX)
}

/// Cuts into pieces of constant value: minimises Σ (value − mean of its piece)² / noise² plus a
/// penalty a piece. Quadratic in the number of points, some dozens.
fn pieces(values: &[f64]) -> Vec<(usize, usize)> {
    let count = values.len();
    let variance = noise(values).powi(2);
    // A cut must explain more than the best of `count` places explains by chance.
    let penalty = 3.0 * (count as f64).ln();
    let mut sums = vec![(0.0, 0.0)];
    for value in values {
        let (sum, squares) = sums[sums.len() - 1];
        sums.push((sum + value, squares + value * value));
    }
    let cost = |first: usize, end: usize| {
        let sum = sums[end].0 - sums[first].0;
        let squares = sums[end].1 - sums[first].1;
        (squares - sum * sum / (end - first) as f64).max(0.0) / variance
    };
    let mut best = vec![0.0f64; count + 1];
    let mut cut = vec![0usize; count + 1];
    for end in 1..=count {
        (best[end], cut[end]) = (0..end)
            .map(|first| (best[first] + cost(first, end) + penalty, first))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((0.0, 0));
    }
    let mut found = Vec::new();
    let mut end = count;
    while end > 0 {
        found.push((cut[end], end));
        end = cut[end];
    }
    found.reverse();
    found
}

fn plateaus(sizes: &[f64], smooth: &[f64]) -> Vec<Plateau> {
    let mut plateaus: Vec<Plateau> = Vec::new();
    for (first, end) in pieces(smooth) {
        let octaves = sizes[end - 1] - sizes[first];
        if octaves < PLATEAU_OCTAVES || end - first < PLATEAU_POINTS {
            continue;
        }
        let log = crate::statistics::median(&smooth[first..end]).unwrap_or(0.0);
        match plateaus.last_mut() {
            Some(before) if log - before.log < LEVEL_FACTOR.ln() => before.end = end,
            _ => plateaus.push(Plateau {
                first,
                end,
                log,
                is_settled: true,
            }),
        }
    }
    plateaus
}

/// Sizes where the curve between two plateaus crosses the quarters of the rise.
fn crossing(sizes: &[f64], smooth: &[f64], lower: &Plateau, upper: &Plateau) -> Capacity {
    let from = lower.first;
    let to = upper.end.min(smooth.len());
    let at = |share: f64| {
        let target = lower.log + share * (upper.log - lower.log);
        let above = (from..to).find(|&i| smooth[i] > target).unwrap_or(to - 1);
        if above == from {
            return sizes[from].exp2();
        }
        let (low, high) = (smooth[above - 1], smooth[above]);
        let share = if high > low {
            ((target - low) / (high - low)).clamp(0.0, 1.0)
        } else {
            0.5
        };
        (sizes[above - 1] + share * (sizes[above] - sizes[above - 1])).exp2()
    };
    Capacity {
        bytes: at(0.5),
        low: at(0.25),
        high: at(0.75),
    }
}

/// Whether some level ends at a claimed size. `claimed` is in bytes; `points` are the curve that
/// `levels` came from.
pub fn check_claim(claimed: u64, levels: &[Level], points: &[CurvePoint]) -> CacheVerdict {
    let claim = claimed as f64;
    let largest = points.iter().map(|p| p.bytes).max().unwrap_or(0) as f64;
    let nearest = levels
        .iter()
        .filter_map(|level| level.capacity.map(|capacity| (level, capacity)))
        .min_by(|(_, a), (_, b)| {
            let off = |c: &Capacity| (c.bytes / claim).ln().abs();
            off(a).total_cmp(&off(b))
        });
    if let Some((level, capacity)) = nearest {
        let size_ratio = capacity.bytes / claim;
        if claim >= capacity.low / CLAIM_FACTOR && claim <= capacity.high * CLAIM_FACTOR {
            return CacheVerdict::Confirmed { size_ratio };
        }
        // Half of a cache must be as fast as the level that holds it. If the curve reaches there
        // and a level ends below, the claim is wrong regardless of the rest.
        let reached = points
            .iter()
            .filter(|p| (p.bytes as f64) <= claim / 2.0)
            .max_by_key(|p| p.bytes);
        let reaches_half = largest >= claim / 2.0;
        if let (Some(half), true) = (reached, reaches_half) {
            let slowdown = if capacity.bytes < claim {
                half.ns / level.latency_ns
            } else {
                1.0
            };
            if largest >= 2.0 * claim || slowdown >= LEVEL_FACTOR {
                return CacheVerdict::Contradicted {
                    size_ratio,
                    slowdown,
                };
            }
        }
        return CacheVerdict::Undecided;
    }
    CacheVerdict::Undecided
}
