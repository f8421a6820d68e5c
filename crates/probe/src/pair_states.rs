//! States of a pair of hardware threads, such as siblings of one core now and two cores later.
//!
//! A hypervisor moves its virtual processors, and with them a pair's latency goes to and fro
//! between levels: a median over all samples is that of whichever state held longer, and differs
//! from probe to probe. [`hearth_stats::clusters`] tells the levels apart in the samples' order of
//! time. Each state then has its own rounds, and so an interval that says what it says elsewhere.
//!
//! A state's share of time is the mean over visits, which come at moments independent of the state,
//! of its part in the visit's time. Slow samples take longer, so that part is by time and not by
//! number. Its interval is from drawing visits anew, wider if neighbouring visits are alike.

use hearth_stats::clusters::{BLOCK, Cluster, clusters};
use hearth_stats::{interval, median_rank};

use crate::disturbance::Batch;
use crate::statistics::{Measured, Round, across_rounds};

/// One state of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairState {
    /// Nanoseconds one way, while the state holds.
    pub one_way_ns: Measured,
    /// The share of time in which it holds, above 0 and below 1; its samples are visits.
    pub time_share: Measured,
}

/// Blocks of a visit from which it is a round of the state: as many samples as a visit must have.
const BLOCKS_OF_ROUND: usize = 4;

/// The states that samples show, the fastest first; empty if there is one. Samples come by visit,
/// each visit's in the order of time, in nanoseconds for one of a chunk's `operations`.
pub fn states(visits: &[Vec<f64>], operations: usize) -> Vec<PairState> {
    let slices: Vec<&[f64]> = visits.iter().map(Vec::as_slice).collect();
    let clusters = clusters(&slices);
    let shares = shares(&clusters, visits);
    let state = |(cluster, shares): (&Cluster, Vec<f64>)| {
        Some(PairState {
            one_way_ns: across_rounds(&rounds(cluster, visits, operations))?,
            time_share: time_share(&shares)?,
        })
    };
    let states: Option<Vec<PairState>> = clusters.iter().zip(shares).map(state).collect();
    states.unwrap_or_default()
}

/// The figure of a pair with several states: the mean over time, and an interval that holds each
/// state's.
pub fn over_time(states: &[PairState]) -> Option<Measured> {
    let (first, last) = (states.first()?, states.last()?);
    let sum = |of: fn(&Measured) -> u32| {
        let counts = states.iter().map(|state| of(&state.one_way_ns));
        counts.fold(0, u32::saturating_add)
    };
    Some(Measured {
        value: states
            .iter()
            .map(|state| state.time_share.value * state.one_way_ns.value)
            .sum(),
        low: first.one_way_ns.low,
        high: last.one_way_ns.high,
        samples: sum(|measured| measured.samples),
        discarded: sum(|measured| measured.discarded),
    })
}

/// A round for each visit that saw enough of the state, or for each that saw it at all.
fn rounds(cluster: &Cluster, visits: &[Vec<f64>], operations: usize) -> Vec<Round> {
    let round = |stretch: usize| {
        let mut batch = Batch::of_chunks(operations);
        for ns in cluster.samples(stretch, &visits[stretch]) {
            batch.add_plain(ns * operations as f64);
        }
        Some(batch.finish()?.round)
    };
    let seen = |least: usize| {
        let ranges = cluster.ranges.iter().enumerate();
        let enough = ranges.filter(move |(_, ranges)| ranges.len() >= least);
        enough.filter_map(|(stretch, _)| round(stretch)).collect()
    };
    let whole: Vec<Round> = seen(BLOCKS_OF_ROUND);
    if whole.is_empty() { seen(1) } else { whole }
}

/// For each cluster, its part in the time of each visit. Visits that show no state are left out.
fn shares(clusters: &[Cluster], visits: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut shares = vec![Vec::new(); clusters.len()];
    for (stretch, samples) in visits.iter().enumerate() {
        let time = |cluster: &Cluster| -> f64 {
            let blocks = cluster.ranges[stretch].iter();
            // A gap in one sample must not count as a state that lasts.
            let block = |range: &std::ops::Range<usize>| {
                crate::statistics::median(&samples[range.clone()]).unwrap_or(0.0)
            };
            blocks.map(block).sum::<f64>() * BLOCK as f64
        };
        let times: Vec<f64> = clusters.iter().map(time).collect();
        let whole: f64 = times.iter().sum();
        if whole > 0.0 {
            for (shares, time) in shares.iter_mut().zip(times) {
                shares.push(time / whole);
            }
        }
    }
    shares
}

/// The mean of shares by visit, with its interval; with too few visits for any, from 0 to 1.
fn time_share(shares: &[f64]) -> Option<Measured> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let value = mean(shares);
    let wider = wider(shares);
    let (low, high) = match median_rank(shares.len()) {
        None => (0.0, 1.0),
        Some(_) => {
            let drawn = interval(&[shares], |drawn| Some(mean(&drawn[0])))?;
            let end = |end: f64| (value + (end - value) * wider).clamp(0.0, 1.0);
            (end(drawn.low), end(drawn.high))
        }
    };
    Some(Measured {
        value,
        low,
        high,
        samples: shares.len() as u32,
        discarded: 0,
    })
}

/// Factor by which an interval must be wider because neighbours in time are alike.
fn wider(values: &[f64]) -> f64 {
    /// Above this there is hardly more than one independent value left.
    const ALIKE_MAX: f64 = 0.9;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products = values
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean));
    let alike = match squares > 0.0 {
        // Of independent values, this estimate has the mean −1/n.
        true => (products.sum::<f64>() / squares + 1.0 / values.len() as f64).clamp(0.0, ALIKE_MAX),
        false => 0.0,
    };
    ((1.0 + alike) / (1.0 - alike)).sqrt()
}
