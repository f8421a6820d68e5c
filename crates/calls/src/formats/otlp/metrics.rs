//! Figures of probes and threads.

use std::collections::BTreeMap;
use std::io;

use hdrhistogram::Histogram as Hdr;
use prost::Message;

use super::resource::{resource, scope, text, thread};
use super::schema::{
    Buckets, CUMULATIVE, Data, Histogram, KeyValue, Lengths, Metric, Metrics, Number,
    ResourceMetrics, ScopeMetrics, Sum,
};
use crate::formats::Unwritten;
use crate::recorded::{Account, Recorded};
use crate::tree::Tree;

/// Buckets of a histogram at most: as many as OpenTelemetry's own libraries have.
const BUCKETS_MAX: i32 = 160;
/// The finest scale, whose buckets are 0.14 % wide: a tree's histograms have three digits.
const SCALE_MAX: i32 = 9;
/// The coarsest scale that is needed: two buckets have all 64 bits.
const SCALE_MIN: i32 = -6;

/// Hands over the figures in bodies of requests with at most `at_once` probes or threads:
///
/// | metric | of | type |
/// |---|---|---|
/// | `hearth.call.duration` | each probe, calls of known length | exponential histogram, ns |
/// | `hearth.calls` | each probe, all calls | sum |
/// | `hearth.records.stored` | each thread | sum |
/// | `hearth.records.lost` | each thread | sum |
///
/// A probe is the attribute `hearth.probe`; calls without a name have `?`.
///
/// # Errors
/// `send` fails.
pub fn metrics(
    recorded: &Recorded,
    tree: &Tree,
    at_once: usize,
    send: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), Unwritten> {
    let at_once = at_once.max(1);
    let mut put = |metrics: Vec<Metric>| {
        let request = Metrics {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(resource(recorded)),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(scope()),
                    metrics,
                }],
            }],
        };
        send(&request.encode_to_vec())
    };
    let probes = probes(tree);
    let probes: Vec<(Option<u32>, Probe)> = probes.into_iter().collect();
    for probes in probes.chunks(at_once) {
        put(of_probes(recorded, tree, probes))?;
    }
    for accounts in recorded.accounts().chunks(at_once) {
        put(of_threads(recorded, accounts))?;
    }
    Ok(())
}

#[derive(Clone, Copy, Default)]
struct Probe {
    calls: u64,
    /// Nanoseconds in calls of known length.
    total: u64,
}

fn probes(tree: &Tree) -> BTreeMap<Option<u32>, Probe> {
    let mut probes: BTreeMap<Option<u32>, Probe> = BTreeMap::new();
    for node in tree.nodes.iter().filter(|node| node.calls > 0) {
        let probe = probes.entry(node.name).or_default();
        probe.calls += node.calls;
        probe.total += node.total;
    }
    probes
}

fn of_probes(recorded: &Recorded, tree: &Tree, probes: &[(Option<u32>, Probe)]) -> Vec<Metric> {
    let attributes = |name: Option<u32>| {
        let name = name.map_or("?", |name| recorded.name(name));
        vec![text("hearth.probe", name)]
    };
    let calls = probes
        .iter()
        .map(|&(name, probe)| point(recorded, attributes(name), probe.calls));
    let mut metrics = vec![sum("hearth.calls", "Calls", "{call}", calls.collect())];
    let lengths = probes.iter().filter_map(|&(name, probe)| {
        let histogram = tree.lengths(name?)?;
        let (start, time) = times(recorded);
        Some(Lengths {
            attributes: attributes(name),
            start_time_unix_nano: start,
            time_unix_nano: time,
            sum: Some(probe.total as f64),
            ..buckets(histogram)
        })
    });
    let data_points: Vec<Lengths> = lengths.collect();
    if !data_points.is_empty() {
        metrics.push(Metric {
            name: "hearth.call.duration".to_owned(),
            description: "Lengths of calls whose beginning and end are known".to_owned(),
            unit: "ns".to_owned(),
            data: Some(Data::Histogram(Histogram {
                data_points,
                aggregation_temporality: CUMULATIVE,
            })),
        });
    }
    metrics
}

fn of_threads(recorded: &Recorded, accounts: &[Account]) -> Vec<Metric> {
    let points = |value: fn(&Account) -> u64| {
        let points = accounts.iter().map(|account| {
            let attributes = thread(account.id, &account.name);
            point(recorded, attributes, value(account))
        });
        points.collect()
    };
    let stored = points(|account| account.stored);
    let lost = points(Account::lost);
    vec![
        sum("hearth.records.stored", "Records here", "{record}", stored),
        sum("hearth.records.lost", "Records lost", "{record}", lost),
    ]
}

/// Times of the beginning and of the end, in nanoseconds since 1970.
fn times(recorded: &Recorded) -> (u64, u64) {
    let began = recorded.began_at();
    (began, began + recorded.ends_at())
}

fn point(recorded: &Recorded, attributes: Vec<KeyValue>, value: u64) -> Number {
    let (start, time) = times(recorded);
    Number {
        start_time_unix_nano: start,
        time_unix_nano: time,
        as_int: i64::try_from(value).ok(),
        attributes,
    }
}

fn sum(name: &str, description: &str, unit: &str, data_points: Vec<Number>) -> Metric {
    Metric {
        name: name.to_owned(),
        description: description.to_owned(),
        unit: unit.to_owned(),
        data: Some(Data::Sum(Sum {
            data_points,
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        })),
    }
}

/// The bucket of a length at a scale: bucket *i* has lengths above 2^(i/2^scale), up to
/// 2^((i+1)/2^scale).
fn bucket(length: u64, scale: i32) -> i32 {
    // The number at scale 0 is exact, as are the coarser ones from it.
    let exact = match length.saturating_sub(1) {
        0 => -1,
        below => below.ilog2() as i32,
    };
    match scale {
        ..=0 => exact >> -scale,
        _ if length.is_power_of_two() => ((exact + 1) << scale) - 1,
        _ => ((length as f64).log2() * f64::from(1 << scale)).ceil() as i32 - 1,
    }
}

/// The buckets of a histogram, as fine as fits.
fn buckets(lengths: &Hdr<u64>) -> Lengths {
    let counts = || {
        let recorded = lengths.iter_recorded();
        recorded.map(|step| (step.value_iterated_to(), step.count_at_value()))
    };
    let mut zero_count = 0;
    let (mut least, mut most) = (u64::MAX, 1);
    for (length, count) in counts() {
        match length {
            0 => zero_count += count,
            length => (least, most) = (least.min(length), most.max(length)),
        }
    }
    let least = least.min(most);
    let fits = |scale: &i32| bucket(most, *scale) - bucket(least, *scale) < BUCKETS_MAX;
    let scale = (SCALE_MIN..=SCALE_MAX).rev().find(fits);
    let scale = scale.unwrap_or(SCALE_MIN);
    let offset = bucket(least, scale);
    let mut bucket_counts = vec![0; (bucket(most, scale) - offset + 1) as usize];
    for (length, count) in counts().filter(|&(length, _)| length > 0) {
        bucket_counts[(bucket(length, scale) - offset) as usize] += count;
    }
    Lengths {
        count: lengths.len(),
        scale,
        zero_count,
        positive: Some(Buckets {
            offset,
            bucket_counts,
        }),
        min: Some(lengths.min() as f64),
        max: Some(lengths.max() as f64),
        ..Lengths::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_their_bounds() {
        for scale in SCALE_MIN..=SCALE_MAX {
            for length in (1..2000).chain([1 << 20, (1 << 20) + 1, 3 << 30, 1 << 41]) {
                let number = f64::from(bucket(length, scale));
                let bound = |number: f64| (number / f64::from(scale).exp2()).exp2();
                let (above, up_to) = (bound(number), bound(number + 1.0));
                let length = length as f64;
                let slack = length * 1e-12;
                assert!(
                    above <= length + slack && length <= up_to + slack,
                    "{length} is not in {above}..{up_to}, at {scale}"
                );
                // A bound belongs to the bucket below.
                assert!(length > above - slack);
            }
        }
        assert_eq!(bucket(1, 0), -1);
        assert_eq!(bucket(2, 0), 0);
        assert_eq!(bucket(3, 0), 1);
        assert_eq!(bucket(4, 3), 15);
        assert_eq!(bucket(1, 5), -1);
    }

    #[test]
    fn all_lengths_are_in_buckets() {
        let mut lengths = Hdr::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds");
        for length in [0, 1, 2, 1000, 1001, 123_456_789, 3_600_000_000_000] {
            lengths.saturating_record(length);
        }
        let point = buckets(&lengths);
        let positive = point.positive.expect("buckets");
        assert!(positive.bucket_counts.len() <= BUCKETS_MAX as usize);
        assert_eq!(positive.bucket_counts.iter().sum::<u64>(), 6);
        assert_eq!((point.count, point.zero_count), (7, 1));
    }
}
