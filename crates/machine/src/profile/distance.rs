//! Node distances from measured times, after the nMART source:
//! `distance(i, j) = 10 · time(i, j) / min_j time(i, j)` for memory of node i used from node j.

/// Treatment of a quotient's fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Cut off, as in the source's four-node table.
    Truncate,
    /// To the nearest whole number, halves up, as in its eight-node table and its generator.
    Nearest,
}

/// One row's distances on a scale where the row's smallest time is `local` (10 in the firmware's
/// scale; whole numbers lose order, so nothing is rounded). Empty for an empty row.
#[must_use]
pub fn scaled(times: &[f64], local: f64) -> Vec<f64> {
    let smallest = times.iter().copied().fold(f64::INFINITY, f64::min);
    times.iter().map(|time| local * time / smallest).collect()
}

/// One row's distances in the firmware's scale.
#[must_use]
pub fn whole(times: &[f64], rounding: Rounding) -> Vec<u32> {
    scaled(times, 10.0)
        .into_iter()
        .map(|quotient| match rounding {
            Rounding::Truncate => quotient.floor() as u32,
            Rounding::Nearest => quotient.round() as u32,
        })
        .collect()
}

/// The nodes in the order in which memory is requested when the ones before are full: `node` first,
/// then by distance or time in `row`. Equal ones keep the order of their numbers.
#[must_use]
pub fn fallback_order(node: usize, row: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| {
        (a != node)
            .cmp(&(b != node))
            .then(row[a].total_cmp(&row[b]))
            .then(a.cmp(&b))
    });
    order
}
