//! Clusters of samples in the order of time: does a figure have one level, or does it go to and fro
//! between several?
//!
//! Single samples cannot tell. They differ for reasons of their own, by factors and with long
//! tails, and several kinds of them may be mixed all the time. A level lasts: so [`BLOCK`]
//! neighbours in time are folded into one location, in which kinds average out and outliers are
//! trimmed, and the locations are clustered.
//!
//! The locations' logarithms are cut where the sum of absolute distances to the clusters' medians
//! is least, into [`CUT_INTO`] clusters. Neighbours are then merged, the nearest first, until each
//! two that are left pass four tests:
//!
//! - *distance*: their medians differ by the factor [`RATIO_MIN`] or more;
//! - *width*: they differ by [`SPREADS_MIN`] standard deviations of the wider cluster;
//! - *weight*: each has [`SHARE_MIN`] of the time, as the mean over stretches of its part in the
//!   time that the stretch's samples took;
//! - *hollow*: of two zones of equal width, one around the lesser cluster's median and one half-way
//!   to the other's, the half-way one is emptier than chance explains ([`CHANCE_MAX`]). As long as
//!   the density falls from a single peak to its tail, a location of the two zones is in the
//!   half-way one with a probability of ½ or more, however heavy the tail: so this is a sign test
//!   against one peak. Neighbours in time are alike, since disturbances last, too: a run of them
//!   counts once for every [`RUN`] blocks that it has begun.
//!
//! A block between two others in time and in length does not count, since the level changes in it.
//!
//! A level that changes within some [`BLOCK`] samples is not seen, nor one that holds for too
//! short a part of the time.

use std::ops::Range;

use crate::{median, quantile_of_sorted};

/// Samples folded into one location.
pub const BLOCK: usize = 16;
/// Least ratio of neighbouring levels. Clock rates, neighbours in a shared cache and drift change
/// a figure by less; two threads on one core or on two differ by more.
pub const RATIO_MIN: f64 = 1.5;
/// Least distance of neighbouring levels in standard deviations of the wider one.
pub const SPREADS_MIN: f64 = 4.0;
/// Least share of time in a cluster.
pub const SHARE_MIN: f64 = 0.025;
/// Greatest chance of a hollow between two clusters if there were one peak: six runs against none.
pub const CHANCE_MAX: f64 = 0.02;
/// Blocks that a run may have and count once. Each takes half a millisecond or less where two
/// threads pass a line, and disturbances last for a few.
pub const RUN: usize = 4;
/// Clusters before any are merged: twice as many as were ever seen, and one for a tail.
pub const CUT_INTO: usize = 5;

/// Share of a block's samples that is trimmed at each end.
const TRIMMED: f64 = 0.125;
/// Standard deviation of normal values by the median of their absolute deviations.
const NORMAL: f64 = 1.4826;
/// Least part of the way from one level to the other for a block to be between them.
const BETWEEN: f64 = 0.15;
/// Width of the bins in which locations are cut: far below [`RATIO_MIN`].
const BIN: f64 = 0.01;
/// Most bins; beyond, they are wider.
const BINS_MAX: usize = 512;

/// Samples of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Samples by stretch, as ranges of positions in ascending order.
    pub ranges: Vec<Vec<Range<usize>>>,
}

impl Cluster {
    /// Its samples of a stretch, in the order of time.
    pub fn samples<'a>(
        &'a self,
        stretch: usize,
        samples: &'a [f64],
    ) -> impl Iterator<Item = f64> + 'a {
        let ranges = self.ranges[stretch].iter();
        ranges.flat_map(|range| samples[range.clone()].iter().copied())
    }
}

/// Tells levels apart in stretches of positive samples, each in the order of time. The clusters
/// come in ascending order; there are none if there is one level, or nothing can be told.
///
/// ```
/// use hearth_stats::clusters::clusters;
///
/// let (near, far) = (vec![26.0; 1000], vec![124.0; 1000]);
/// assert_eq!(clusters(&[&near, &far]).len(), 2);
/// assert!(clusters(&[&near]).is_empty());
/// ```
#[must_use]
pub fn clusters(stretches: &[&[f64]]) -> Vec<Cluster> {
    let blocks = without_changes(blocks(stretches));
    let Some(medians) = levels(&blocks) else {
        return Vec::new();
    };
    let empty = Cluster {
        ranges: vec![Vec::new(); stretches.len()],
    };
    let mut clusters = vec![empty; medians.len()];
    for block in &blocks {
        if let Some(level) = level_of(&medians, block.ln) {
            clusters[level].ranges[block.stretch].push(block.range.clone());
        }
    }
    clusters
}

/// Neighbouring samples of a stretch.
struct Block {
    stretch: usize,
    range: Range<usize>,
    /// The logarithm of its location.
    ln: f64,
    /// Its part in the time of its stretch.
    part: f64,
}

/// Whole blocks of all stretches; what is left at a stretch's end belongs to none.
fn blocks(stretches: &[&[f64]]) -> Vec<Block> {
    let of = |(stretch, samples): (usize, &&[f64])| -> Vec<Block> {
        let chunks = samples.chunks_exact(BLOCK).enumerate();
        let block = |(at, samples): (usize, &[f64])| Block {
            stretch,
            range: at * BLOCK..(at + 1) * BLOCK,
            ln: trimmed_mean_ln(samples),
            part: 0.0,
        };
        let mut blocks: Vec<Block> = chunks.map(block).collect();
        let whole: f64 = blocks.iter().map(|block| block.ln.exp()).sum();
        for block in &mut blocks {
            block.part = block.ln.exp() / whole;
        }
        blocks
    };
    stretches.iter().enumerate().flat_map(of).collect()
}

/// Leaves out blocks in which the level changes: those before and after differ as levels do, and
/// the block's location is between theirs.
fn without_changes(blocks: Vec<Block>) -> Vec<Block> {
    let is_change = |at: usize| {
        let (Some(before), Some(after)) = (at.checked_sub(1), blocks.get(at + 1)) else {
            return false;
        };
        let (before, block) = (&blocks[before], &blocks[at]);
        let far = after.ln - before.ln;
        let way = (block.ln - before.ln) / far;
        let is_within = before.stretch == after.stretch;
        is_within && far.abs() >= RATIO_MIN.ln() && (BETWEEN..=1.0 - BETWEEN).contains(&way)
    };
    let changes: Vec<bool> = (0..blocks.len()).map(is_change).collect();
    let all = blocks.into_iter().zip(changes);
    all.filter_map(|(block, is_change)| (!is_change).then_some(block))
        .collect()
}

/// The mean of the logarithms without the least and greatest. A median would jump between two
/// kinds of samples that are mixed in nearly equal parts.
fn trimmed_mean_ln(samples: &[f64]) -> f64 {
    let mut logarithms: Vec<f64> = samples
        .iter()
        .map(|sample| sample.max(f64::MIN_POSITIVE).ln())
        .collect();
    logarithms.sort_unstable_by(f64::total_cmp);
    let trimmed = (samples.len() as f64 * TRIMMED) as usize;
    let kept = &logarithms[trimmed..logarithms.len() - trimmed];
    kept.iter().sum::<f64>() / kept.len() as f64
}

/// The position of the level that a location belongs to; none for the middle third of the way from
/// one to the next.
fn level_of(medians: &[f64], ln: f64) -> Option<usize> {
    let above = medians.partition_point(|median| *median < ln);
    if above == 0 || above == medians.len() {
        return Some(above.saturating_sub(1));
    }
    let (low, high) = (medians[above - 1], medians[above]);
    match (ln - low) / (high - low) {
        part if part < 1.0 / 3.0 => Some(above - 1),
        part if part > 2.0 / 3.0 => Some(above),
        _ => None,
    }
}

/// The medians of at least two clusters, ascending. None if there is one level.
fn levels(blocks: &[Block]) -> Option<Vec<f64>> {
    let mut ascending: Vec<&Block> = blocks.iter().collect();
    ascending.sort_by(|a, b| a.ln.total_cmp(&b.ln));
    let sorted: Vec<f64> = ascending.iter().map(|block| block.ln).collect();
    let parts: Vec<f64> = ascending.iter().map(|block| block.part).collect();
    if sorted.is_empty() {
        return None;
    }
    let mut groups: Vec<Range<usize>> = cut(&sorted);
    let whole: f64 = parts.iter().sum();
    let has_weight = |group: &Range<usize>| {
        let part: f64 = parts[group.clone()].iter().sum();
        part >= SHARE_MIN * whole
    };
    let are_levels = |low: &Range<usize>, high: &Range<usize>| {
        has_weight(low) && has_weight(high) && are_apart(blocks, &sorted, low, high)
    };
    // Merges those that fail, the nearest first.
    loop {
        let far = |pair: &[Range<usize>]| {
            middle(&sorted[pair[1].clone()]) - middle(&sorted[pair[0].clone()])
        };
        let failing = groups
            .windows(2)
            .enumerate()
            .filter(|(_, pair)| !are_levels(&pair[0], &pair[1]))
            .min_by(|(_, a), (_, b)| far(a).total_cmp(&far(b)));
        let Some((at, _)) = failing else { break };
        groups[at].end = groups[at + 1].end;
        groups.remove(at + 1);
    }
    let medians = groups.iter().map(|group| middle(&sorted[group.clone()]));
    (groups.len() > 1).then(|| medians.collect())
}

fn middle(sorted: &[f64]) -> f64 {
    quantile_of_sorted(sorted, 0.5).expect("groups have members")
}

/// The tests of distance, width and hollow of two neighbouring groups of the sorted locations.
fn are_apart(blocks: &[Block], sorted: &[f64], low: &Range<usize>, high: &Range<usize>) -> bool {
    let (below, above) = (&sorted[low.clone()], &sorted[high.clone()]);
    let (from, to) = (middle(below), middle(above));
    to - from >= RATIO_MIN.ln()
        && to - from >= SPREADS_MIN * spread(below).max(spread(above))
        && is_hollow(blocks, from, to, below.len() < above.len())
}

fn spread(sorted: &[f64]) -> f64 {
    let centre = middle(sorted);
    let deviations: Vec<f64> = sorted.iter().map(|ln| (ln - centre).abs()).collect();
    NORMAL * median(&deviations).expect("groups have members")
}

/// The sign test of the zone around the lesser level against the zone half-way.
fn is_hollow(blocks: &[Block], below: f64, above: f64, is_low_lesser: bool) -> bool {
    let far = above - below;
    let lesser = if is_low_lesser { below } else { above };
    let is_near = |ln: f64, centre: f64| (ln - centre).abs() <= far / 6.0;
    let half_way = (below + above) / 2.0;
    let peak = runs(blocks, |at| is_near(blocks[at].ln, lesser));
    let valley = runs(blocks, |at| is_near(blocks[at].ln, half_way));
    sign_test(valley, peak) <= CHANCE_MAX
}

/// Number of runs of blocks in a zone, a run counting once for every [`RUN`] blocks begun.
fn runs(blocks: &[Block], is_inside: impl Fn(usize) -> bool) -> usize {
    let (mut count, mut length) = (0, 0);
    for at in 0..blocks.len() {
        let is_new = at == 0 || blocks[at].stretch != blocks[at - 1].stretch;
        length = if is_new { 0 } else { length };
        if is_inside(at) {
            count += usize::from(length % RUN == 0);
            length += 1;
        } else {
            length = 0;
        }
    }
    count
}

/// The chance that of all `fewer + more` fair coins at most `fewer` show heads.
fn sign_test(fewer: usize, more: usize) -> f64 {
    let count = fewer + more;
    if fewer >= more {
        return 1.0;
    }
    // By logarithms: ½ to the power of thousands is no number.
    let mut term = -(count as f64) * std::f64::consts::LN_2;
    let mut sum = term.exp();
    for heads in 1..=fewer {
        term += ((count - heads + 1) as f64 / heads as f64).ln();
        sum += term.exp();
    }
    sum.min(1.0)
}

/// The cut of sorted locations into at most [`CUT_INTO`] groups with the least sum of absolute
/// distances to the groups' medians, exact but for the width of the bins.
fn cut(sorted: &[f64]) -> Vec<Range<usize>> {
    let ends = bin_ends(sorted);
    let before: Vec<f64> = std::iter::once(0.0)
        .chain(sorted.iter().scan(0.0, |sum, ln| {
            *sum += ln;
            Some(*sum)
        }))
        .collect();
    let cost = |from: usize, to: usize| {
        let half = from.midpoint(to);
        let centre = sorted[half];
        let lower = centre * (half - from) as f64 - (before[half] - before[from]);
        lower + (before[to] - before[half]) - centre * (to - half) as f64
    };
    // By the number of groups: the least cost up to each end, and the end before it.
    let first: Vec<(f64, usize)> = ends.iter().map(|&end| (cost(0, end), 0)).collect();
    let mut tables = vec![first];
    for _ in 1..CUT_INTO.min(ends.len()) {
        let last = &tables[tables.len() - 1];
        let best = |(at, &end): (usize, &usize)| {
            let options = (0..at).map(|split| (last[split].0 + cost(ends[split], end), split));
            let least = options.min_by(|a, b| a.0.total_cmp(&b.0));
            least.unwrap_or((f64::INFINITY, 0))
        };
        let next = ends.iter().enumerate().map(best).collect();
        tables.push(next);
    }
    let mut groups = Vec::new();
    let mut at = ends.len() - 1;
    for table in tables.iter().skip(1).rev() {
        let split = table[at].1;
        groups.push(ends[split]..ends[at]);
        at = split;
    }
    groups.push(0..ends[at]);
    groups.reverse();
    groups
}

/// Positions behind the last location of each bin.
fn bin_ends(sorted: &[f64]) -> Vec<usize> {
    let width = BIN.max((sorted[sorted.len() - 1] - sorted[0]) / BINS_MAX as f64);
    let mut ends = Vec::new();
    let mut from = 0;
    while from < sorted.len() {
        let bin = sorted[from..].partition_point(|ln| *ln <= sorted[from] + width);
        from += bin;
        ends.push(from);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::{cut, sign_test};

    #[test]
    fn chances_of_coins() {
        assert_eq!(sign_test(3, 3), 1.0);
        assert!((sign_test(0, 10) - 0.5f64.powi(10)).abs() < 1e-15);
        assert!((sign_test(1, 9) - 11.0 * 0.5f64.powi(10)).abs() < 1e-12);
        assert_eq!(sign_test(0, 5000), 0.0);
    }

    #[test]
    fn cuts_are_at_the_gaps() {
        let mut numbers = Vec::new();
        for centre in [0.0, 10.0, 20.0, 40.0, 80.0] {
            numbers.extend((0..7).map(|at| centre + f64::from(at) / 7.0));
        }
        let groups = cut(&numbers);
        assert_eq!(groups, [0..7, 7..14, 14..21, 21..28, 28..35]);
        assert_eq!(cut(&[1.0; 9]).as_slice(), std::slice::from_ref(&(0..9)));
    }
}
