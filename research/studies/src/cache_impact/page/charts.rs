//! The study's charts.

use hearth_draw::Picture;
use hearth_draw::line::{Axis, LineChart, Look, Mark, Point, Series};
use hearth_draw::scale::{Scale, Unit};
use hearth_published::cache_impact::{CURVE_XEON_5130, CURVE_XEON_E5};
use hearth_published::source::{Parameters, Slope, Type};

use super::super::compare::moving_average;
use super::super::record::{Row, Sweep};
use super::super::results::Results;
use super::super::sweep::Unit as Ticks;
use super::super::verdict::Evidence;

/// Sizes of a plot of experiment 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// All.
    Full,
    /// The range of the source's second plot: 8 to 400064 bytes.
    Zoom,
}

const ZOOM_BYTES: (f64, f64) = (8.0, 400_064.0);

pub(super) fn name(kind: Type) -> &'static str {
    match kind {
        Type::One => "type 1, one core",
        Type::Two => "type 2, one chip",
        Type::Three => "type 3, two chips",
    }
}

fn colour(kind: Type) -> usize {
    kind.number() as usize - 1
}

fn chart(title: &str, y: Axis, capacities: &[(String, u64)]) -> LineChart {
    LineChart {
        x: Axis::new("bytes", Scale::Log2, Unit::Bytes),
        y,
        marks: capacities
            .iter()
            .map(|(name, bytes)| Mark {
                at: *bytes as f64,
                label: name.clone(),
            })
            .collect(),
        ..LineChart::new(title)
    }
}

fn time_axis() -> Axis {
    Axis::new("time", Scale::Log10, Unit::Nanoseconds)
}

fn throughput_axis() -> Axis {
    Axis::new("throughput", Scale::Linear, Unit::BytesPerNanosecond)
}

/// The look of measured points: few as dots, many as a line.
const MANY: usize = 60;

fn look(points: usize) -> Look {
    if points > MANY {
        Look::Dots
    } else {
        Look::Line
    }
}

pub(super) fn throughput(title: &str, evidence: &Evidence) -> Picture {
    let series = evidence.kinds().into_iter().map(|kind| {
        let points = evidence.of(kind).iter().filter(|p| p.bytes > 0);
        let points: Vec<Point> = points
            .map(|p| {
                let bytes = p.bytes as f64;
                let point = Point::new(bytes, bytes / p.ns);
                p.quarters.map_or(point, |(low, high)| {
                    point.within(bytes / high.max(1.0), bytes / low.max(1.0))
                })
            })
            .collect();
        Series::new(name(kind), points, Look::Line).coloured(colour(kind))
    });
    LineChart {
        series: series.collect(),
        ..chart(title, throughput_axis(), &evidence.capacities)
    }
    .draw()
}

pub(super) fn times(title: &str, evidence: &Evidence) -> Picture {
    LineChart {
        series: measured(evidence),
        ..chart(title, time_axis(), &evidence.capacities)
    }
    .draw()
}

fn measured(evidence: &Evidence) -> Vec<Series> {
    let series = evidence.kinds().into_iter().map(|kind| {
        let points = evidence.of(kind).iter().filter(|p| p.bytes > 0);
        let points: Vec<Point> = points
            .map(|p| {
                let point = Point::new(p.bytes as f64, p.ns);
                p.quarters
                    .map_or(point, |(low, high)| point.within(low, high))
            })
            .collect();
        Series::new(name(kind), points, Look::Line).coloured(colour(kind))
    });
    series.collect()
}

/// Sizes for a model's line: sixteen an octave.
fn fine(evidence: &Evidence) -> Vec<u64> {
    let last = evidence.measured.iter().flatten().map(|p| p.bytes).max();
    let last = last.unwrap_or(128 << 20) as f64;
    let steps = (0u32..).map(|step| 8.0 * (f64::from(step) / 16.0).exp2());
    steps
        .take_while(|&bytes| bytes <= last)
        .map(|bytes| bytes as u64)
        .collect()
}

fn modelled(
    evidence: &Evidence,
    model: &Parameters,
    value: fn(&Parameters, Type, u64) -> f64,
) -> Vec<Series> {
    let series = evidence.kinds().into_iter().map(|kind| {
        let points = fine(evidence)
            .into_iter()
            .map(|bytes| Point::new(bytes as f64, value(model, kind, bytes)));
        Series::dashed(&format!("{}, predicted", name(kind)), points.collect())
            .coloured(colour(kind))
    });
    series.collect()
}

pub(super) fn predicted_throughput(title: &str, evidence: &Evidence) -> Picture {
    let series = evidence.model.as_ref().map_or(Vec::new(), |model| {
        modelled(evidence, model, |model, kind, bytes| {
            model.throughput_bytes_per_ns(kind, bytes, Slope::Derived)
        })
    });
    LineChart {
        series,
        ..chart(title, throughput_axis(), &evidence.capacities)
    }
    .draw()
}

/// Predicted and measured time in one chart.
pub(super) fn against(title: &str, evidence: &Evidence) -> Picture {
    let mut series = measured(evidence);
    if let Some(model) = &evidence.model {
        series.extend(modelled(evidence, model, |model, kind, bytes| {
            model.communication_ns(kind, bytes, Slope::Derived)
        }));
    }
    LineChart {
        series,
        ..chart(title, time_axis(), &evidence.capacities)
    }
    .draw()
}

/// Predicted and measured time from triples of size, predicted, measured, by type.
pub(super) fn triples(
    title: &str,
    triples: &[Vec<(u64, f64, f64)>; 3],
    capacities: &[(String, u64)],
) -> Picture {
    let mut series = Vec::new();
    for kind in Type::ALL {
        let of = &triples[colour(kind)];
        if of.is_empty() {
            continue;
        }
        let points = |value: fn(&(u64, f64, f64)) -> f64| -> Vec<Point> {
            of.iter()
                .map(|t| Point::new(t.0 as f64, value(t)))
                .collect()
        };
        let measured = Series::new(name(kind), points(|t| t.2), look(of.len()));
        series.push(measured.coloured(colour(kind)));
        let predicted = Series::dashed(&format!("{}, predicted", name(kind)), points(|t| t.1));
        series.push(predicted.coloured(colour(kind)));
    }
    LineChart {
        series,
        ..chart(title, time_axis(), capacities)
    }
    .draw()
}

/// Time that types 2 and 3 add to type 1, in microseconds, with the moving average.
pub(super) fn difference(title: &str, evidence: &Evidence) -> Picture {
    let mut series = Vec::new();
    for kind in [Type::Two, Type::Three] {
        let differences = evidence.differences(kind);
        let differences = differences.iter().filter(|d| d.bytes > 0);
        let (sizes, added): (Vec<f64>, Vec<f64>) = differences
            .map(|d| (d.bytes as f64, d.impact.difference_ns / 1000.0))
            .unzip();
        if sizes.is_empty() {
            continue;
        }
        let points = |values: &[f64]| -> Vec<Point> {
            let pairs = sizes.iter().zip(values);
            pairs.map(|(&x, &y)| Point::new(x, y)).collect()
        };
        let name = name(kind);
        series.push(Series::dots(name, points(&added)).coloured(colour(kind)));
        let smooth = points(&moving_average(&added));
        let smooth = Series::dashed(&format!("{name}, moving average"), smooth);
        series.push(smooth.coloured(colour(kind)));
    }
    LineChart {
        series,
        levels: vec![Mark {
            at: 0.0,
            label: "type 1".into(),
        }],
        ..chart(
            title,
            Axis::new("µs more than type 1", Scale::Linear, Unit::Number),
            &evidence.capacities,
        )
    }
    .draw()
}

/// The share of a size's runs that nothing disturbed.
pub(super) fn clean_share(results: &Results, capacities: &[(String, u64)]) -> Picture {
    let series = Type::ALL.into_iter().filter_map(|kind| {
        let rows = results.joined(Sweep::Exchange(kind.into()));
        let rows = rows
            .iter()
            .filter(|row| row.bytes > 0 && !row.runs.is_empty());
        let points: Vec<Point> = rows
            .map(|row| {
                let share =
                    row.clean_runs(results.site.faults_allowed) as f64 / row.runs.len() as f64;
                Point::new(row.bytes as f64, 100.0 * share)
            })
            .collect();
        (!points.is_empty()).then(|| Series::dots(name(kind), points).coloured(colour(kind)))
    });
    LineChart {
        series: series.collect(),
        ..chart(
            "Runs that nothing disturbed",
            Axis {
                range: Some((0.0, 100.0)),
                ..Axis::new("clean runs", Scale::Linear, Unit::Percent)
            },
            capacities,
        )
    }
    .draw()
}

/// The latency curves of one order.
pub(super) fn rings(results: &Results, is_random: bool, capacities: &[(String, u64)]) -> Picture {
    let kept = results
        .site
        .rings
        .iter()
        .filter(|ring| ring.is_random == is_random);
    let series = kept.map(|ring| {
        let points = ring
            .points
            .iter()
            .map(|&(bytes, ns, low, high)| Point::new(bytes as f64, ns).within(low, high));
        Series::line(&format!("stride {} B", ring.stride), points.collect())
    });
    let order = if is_random {
        "in random order"
    } else {
        "in order of addresses"
    };
    LineChart {
        series: series.collect(),
        ..chart(
            &format!("Latency of a load, ring of pointers {order}"),
            Axis::new("a load", Scale::Log10, Unit::Nanoseconds),
            capacities,
        )
    }
    .draw()
}

/// The latency curve that lmbench gave on a machine of the source.
pub(super) fn published_curve(machine: usize) -> Picture {
    let evidence = Evidence::published(machine);
    let curve = [CURVE_XEON_5130, CURVE_XEON_E5][machine.min(1)];
    let points = curve
        .iter()
        .map(|&(bytes, ns)| Point::new(bytes as f64, ns));
    LineChart {
        series: vec![Series::line("lmbench", points.collect())],
        ..chart(
            &format!("Latency of a load, {}", evidence.machine),
            Axis::new("a load", Scale::Log10, Unit::Nanoseconds),
            &evidence.capacities,
        )
    }
    .draw()
}

fn ticks(unit: Ticks) -> Unit {
    match unit {
        Ticks::Cycles => Unit::Number,
        Ticks::Nanoseconds => Unit::Nanoseconds,
    }
}

/// Experiment 1 as published: total cycles, means of clean or of all runs.
pub(super) fn sweep(results: &Results, clean: bool, range: Range) -> Picture {
    let allowed = clean.then_some(results.site.faults_allowed);
    let rows = results.joined(Sweep::Latency);
    let mean = |row: &Row| {
        let point = Point::new(row.bytes as f64, row.mean(allowed) as f64);
        // A time of 0 says that no run was clean.
        (row.bytes > 0 && point.y > 0.0).then_some(point)
    };
    let what = if clean { "clean runs" } else { "all runs" };
    let whole = match range {
        Range::Full => "",
        Range::Zoom => ", 8 to 400064 bytes",
    };
    LineChart {
        x: Axis {
            range: (range == Range::Zoom).then_some(ZOOM_BYTES),
            ..Axis::new(
                "bytes",
                match range {
                    Range::Full => Scale::Log2,
                    Range::Zoom => Scale::Linear,
                },
                Unit::Bytes,
            )
        },
        series: vec![Series::line(
            what,
            rows.iter()
                .filter_map(mean)
                .filter(|p| range == Range::Full || p.x <= ZOOM_BYTES.1)
                .collect(),
        )],
        ..chart(
            &format!("Experiment 1, {what}{whole}"),
            Axis::new(
                results.site.unit.name(),
                match range {
                    Range::Full => Scale::Log10,
                    Range::Zoom => Scale::Linear,
                },
                ticks(results.site.unit),
            ),
            &[],
        )
    }
    .draw()
}

/// Experiment 1 by word.
pub(super) fn sweep_each(results: &Results, capacities: &[(String, u64)]) -> Picture {
    let rows = results.joined(Sweep::Latency);
    let points = rows
        .iter()
        .filter(|row| row.bytes >= 1024)
        .filter_map(|row| {
            let words = row.bytes as f64 / 8.0;
            let typical = row.typical(results.site.faults_allowed)?;
            let point = Point::new(row.bytes as f64, typical.time / words);
            Some(point.within(typical.low / words, typical.high / words))
        });
    LineChart {
        series: vec![Series::line("a write and a read", points.collect())],
        ..chart(
            &format!("Experiment 1, {} a word", results.site.unit.name()),
            Axis::new(
                results.site.unit.name(),
                Scale::Linear,
                ticks(results.site.unit),
            ),
            capacities,
        )
    }
    .draw()
}
