//! Predicted beside measured: the source's model with parameters measured here, and ours from a
//! profile.

use hearth_machine::profile::{Carrier, Profile};
use hearth_machine::topology::OsThread;
use hearth_model::fitted::{Between, Model, Question};
use hearth_published::source::{BeyondLastLevel, Latency, Level, Parameters, Type, ZeroData};
use hearth_stats::agreement::{kendall, spearman};
use hearth_stats::median;

use super::record::{Kind, Row, Sweep};
use super::results::Results;
use super::ring::Ring;
use super::site::index;
use super::verdict::{Evidence, Point};

/// The curve that levels come from: random order, a line a step.
#[must_use]
pub fn level_curve(results: &Results) -> Option<&Ring> {
    let line = results.site.place.line_bytes as usize;
    let random = || results.site.rings.iter().filter(|ring| ring.is_random);
    random()
        .find(|ring| ring.stride == line)
        .or(random().next())
}

/// Capacities for marks and for the questions: as the curve shows them, with names; as claimed
/// where there is no curve.
#[must_use]
pub fn capacities(results: &Results) -> Vec<(String, u64)> {
    let shown: Vec<u64> = level_curve(results)
        .iter()
        .flat_map(|ring| &ring.levels)
        .filter_map(|level| Some(level.capacity_bytes? as u64))
        .collect();
    let claimed = || {
        results
            .site
            .place
            .caches
            .iter()
            .map(|cache| cache.bytes)
            .collect()
    };
    let bytes: Vec<u64> = if shown.is_empty() { claimed() } else { shown };
    let named = bytes.iter().enumerate();
    named
        .map(|(at, &bytes)| (format!("level {}", at + 1), bytes))
        .collect()
}

/// The source's model with parameters measured here. `None` without a latency curve or without
/// exchanges of nothing.
#[must_use]
pub fn parameters(results: &Results) -> Option<Parameters> {
    let found = &level_curve(results)?.levels;
    let mut levels = Vec::new();
    let mut memory = None;
    for level in found {
        match level.capacity_bytes {
            Some(bytes) => levels.push(Level {
                capacity_bytes: bytes as u64,
                latency: Latency::equal(level.latency_ns),
            }),
            None => memory = Some(level.latency_ns),
        }
    }
    let last = levels.last()?.capacity_bytes;
    let mut zero_data = ZeroData {
        control_ns: [0.0; 3],
        deviation_ns: [0.0; 3],
    };
    // A type that the machine lacks takes the nearest one's; it is not asked for.
    let mut known = None;
    for kind in Type::ALL {
        known = results.zero(kind).and_then(|zero| zero.mean()).or(known);
        let (mean, deviation) = known?;
        zero_data.control_ns[index(kind)] = mean;
        zero_data.deviation_ns[index(kind)] = deviation;
    }
    let memory = Latency::equal(memory.unwrap_or(levels.last()?.latency.read_ns));
    Some(Parameters {
        name: results.site.place.cpu.clone(),
        word_bytes: 8.0,
        line_bytes: f64::from(results.site.place.line_bytes.max(1)),
        levels,
        memory,
        zero_data,
        beyond: beyond(results, last),
        printed: None,
    })
}

/// The system's part beyond the last level, as the source takes it: rates from the runs of
/// experiments 2 to 4, durations from the tests that include reading `/proc`.
fn beyond(results: &Results, last: u64) -> Option<BeyondLastLevel> {
    let events = results.site.events.as_ref()?;
    let mean = |values: &[f64]| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let (mut bytes, mut faults, mut interrupts) = (0u64, 0u64, 0u64);
    for kind in Type::ALL {
        for row in results.rows_of(Sweep::Exchange(kind.into())) {
            for run in row.runs.iter().filter(|_| row.bytes > last) {
                bytes += row.bytes;
                faults += run.events.faults_minor;
                interrupts += run.events.interrupts;
            }
        }
    }
    let each = |count: u64| match count {
        0 => f64::INFINITY,
        _ => bytes as f64 / count as f64,
    };
    (bytes > 0).then(|| BeyondLastLevel {
        fault_ns: mean(&events.fault_published_ns)
            .or(events.fault_ns)
            .unwrap_or(0.0),
        bytes_per_fault: each(faults),
        interrupt_ns: mean(&events.interrupt_published_ns)
            .or(mean(&events.gaps_ns))
            .unwrap_or(0.0),
        bytes_per_interrupt: each(interrupts),
        faults_in_base: results.site.faults_allowed as f64,
        rounded_slope_ns_per_byte: None,
    })
}

/// The measured points of a sweep in nanoseconds, by size: medians of the clean runs, or of all
/// where none is clean.
#[must_use]
pub fn points(results: &Results, sweep: Sweep) -> Vec<Point> {
    let allowed = results.site.faults_allowed;
    let point = |row: &Row| {
        let typical = row.typical(allowed)?;
        Some(Point {
            bytes: row.bytes,
            ns: typical.time,
            quarters: Some((typical.low, typical.high)),
        })
    };
    results.joined(sweep).iter().filter_map(point).collect()
}

/// The evidence that the questions are answered from: experiments 2 to 4, or the same with ready
/// threads.
#[must_use]
pub fn evidence(results: &Results, sweep: fn(Kind) -> Sweep) -> Evidence {
    let mut limits = Vec::new();
    if let Some(hypervisor) = &results.site.place.hypervisor {
        limits.push(format!(
            "this is a virtual machine ({hypervisor}): which physical cores and caches its threads \
             use is not known"
        ));
    }
    Evidence {
        machine: results.site.place.cpu.clone(),
        capacities: capacities(results),
        measured: Type::ALL.map(|kind| points(results, sweep(kind.into()))),
        model: parameters(results),
        limits,
    }
}

/// Errors of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Errors {
    /// The region of sizes, for people.
    pub region: String,
    /// The number of sizes.
    pub sizes: usize,
    /// The median of `|predicted − measured| / measured`, percent.
    pub median_percent: f64,
    /// The mean of the same, percent.
    pub mean_percent: f64,
    /// The median of `predicted / measured`: above 1 is pessimistic.
    pub ratio: f64,
    /// Spearman's rank correlation; none for fewer than two different sizes.
    pub spearman: Option<f64>,
    /// Kendall's.
    pub kendall: Option<f64>,
}

/// Errors over all sizes and by region between capacities. Triples are size, predicted, measured.
#[must_use]
pub fn errors(triples: &[(u64, f64, f64)], capacities: &[(String, u64)]) -> Vec<Errors> {
    let mut regions = vec![("all sizes".to_owned(), 0, u64::MAX)];
    let mut from = 0;
    let mut before = String::new();
    for (name, bytes) in capacities {
        let title = match before.as_str() {
            "" => format!("up to {name}"),
            before => format!("{before} to {name}"),
        };
        regions.push((title, from, *bytes));
        (from, before) = (bytes + 1, name.clone());
    }
    if !before.is_empty() {
        regions.push((format!("beyond {before}"), from, u64::MAX));
    }
    let within = regions.into_iter().filter_map(|(region, from, to)| {
        let pairs: Vec<(f64, f64)> = triples
            .iter()
            .filter(|(bytes, _, measured)| (from..=to).contains(bytes) && *measured > 0.0)
            .map(|&(_, predicted, measured)| (predicted, measured))
            .collect();
        let percent: Vec<f64> = pairs
            .iter()
            .map(|(p, m)| 100.0 * (p / m - 1.0).abs())
            .collect();
        let ratios: Vec<f64> = pairs.iter().map(|(p, m)| p / m).collect();
        Some(Errors {
            region,
            sizes: pairs.len(),
            median_percent: median(&percent)?,
            mean_percent: percent.iter().sum::<f64>() / percent.len() as f64,
            ratio: median(&ratios)?,
            spearman: spearman(&pairs),
            kendall: kendall(&pairs),
        })
    });
    within.collect()
}

/// Our model's prediction for the sizes of a sweep: size, predicted, measured, ns.
///
/// It predicts an exchange between threads that exist. For experiments 2 to 4 the measured time of
/// exchanging nothing takes the place of the model's own hand-over. Why it has no answer is
/// explained in a sentence.
///
/// # Errors
/// The profile is of another machine, or cannot be used.
pub fn ours(
    results: &Results,
    profile: &Profile,
    kind: Type,
    sweep: Sweep,
) -> Result<Vec<(u64, f64, f64)>, String> {
    let model = Model::new(profile).map_err(|error| error.to_string())?;
    let places = results
        .site
        .place
        .places(kind)
        .ok_or("there is no such pair here")?;
    let thread = |core: i64| {
        let core = u32::try_from(core).ok()?;
        profile.topology.thread_of(OsThread(core))
    };
    let (Some(a), Some(b)) = (thread(places.sender), thread(places.receiver)) else {
        return Err("the profile is of another machine: run `hearth probe` here".to_owned());
    };
    let predict = |bytes: u64| {
        let question = Question::new(bytes, Between::Pair(a, b), Carrier::Threads);
        let prediction = model.predict(&question);
        prediction.map(|p| p.ns).map_err(|error| error.to_string())
    };
    let shift = match sweep {
        Sweep::Exchange(_) => {
            let zero = results.zero(kind).and_then(|zero| zero.median());
            zero.ok_or("exchanges of nothing were not measured")? - predict(0)?
        }
        Sweep::Ready(_) | Sweep::Latency => 0.0,
    };
    let mut triples = Vec::new();
    for point in points(results, sweep)
        .iter()
        .filter(|point| point.bytes > 0)
    {
        triples.push((point.bytes, predict(point.bytes)? + shift, point.ns));
    }
    Ok(triples)
}

/// Sizes that a moving average covers. The source does not give its own.
pub const MOVING: usize = 9;

/// The mean of each value and its neighbours, [`MOVING`] in all; fewer at the ends.
#[must_use]
pub fn moving_average(values: &[f64]) -> Vec<f64> {
    let half = MOVING / 2;
    let average = |at: usize| {
        let window = &values[at.saturating_sub(half)..(at + half + 1).min(values.len())];
        window.iter().sum::<f64>() / window.len() as f64
    };
    (0..values.len()).map(average).collect()
}
