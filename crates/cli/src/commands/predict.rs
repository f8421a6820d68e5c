//! `hearth predict`: what a message costs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hearth_draw::line::{Axis, LineChart, Point, Series};
use hearth_draw::scale::{Scale, Unit};
use hearth_driver::profiles;
use hearth_machine::profile::{Carrier, Profile};
use hearth_machine::relation::{Closeness, Relation, SourceType};
use hearth_machine::topology::{Bytes, OsThread, Thread, Topology};
use hearth_model::fitted::{
    Between, Buffer, Flow, InState, Model, Parts, Placement, PredictError, Prediction,
};
use hearth_terminal::{Failure, output};
use hearth_text::columns::{Columns, Side};
use hearth_text::prose::capitalised;
use serde_json::{Value, json};

use super::study;
use crate::arguments::machine::{Equations, Mode, Passed, Passing, Predict};

/// Sizes of a plot from one power of two to the next.
const PLOT_POINTS_PER_DOUBLING: u32 = 2;
/// The sizes of a plot without a table: the range that the model is judged on.
const PLOT_BYTES: (u64, u64) = (64, 64 << 20);

pub(crate) fn predict(arguments: &Predict) -> Result<(), Failure> {
    let chosen = profiles::choose(&arguments.basis.clone().into())?;
    let places = places(arguments, &chosen.profile.topology)?;
    let sizes = match &arguments.table {
        Some(sizes) => sizes.0.clone(),
        None => arguments.bytes.into_iter().collect(),
    };
    let oracle = Oracle::new(arguments, &chosen.profile, &sizes)?;
    let mut rows = Vec::new();
    for &bytes in &sizes {
        for place in &places {
            // Nobody can spin for someone on the same hardware thread: of all relations that one
            // is left out; a pair that was asked for is refused.
            match oracle.answer(bytes.0, place) {
                Ok(answer) => rows.push((bytes, place, answer)),
                Err(PredictError::SpinOnOneThread) if arguments.from.is_none() => {}
                Err(error) => return Err(Failure::input(error.to_string())),
            }
        }
    }
    if rows.is_empty() {
        return Err(Failure::input(PredictError::SpinOnOneThread.to_string()));
    }
    if let Some(path) = &arguments.plot {
        let picture = plot(arguments, &oracle, &places, &sizes).draw();
        output::replace(path, picture.file().as_bytes())?;
    }
    if let Some(warning) = chosen.warning_beside_text() {
        output::tell(warning);
    }
    if arguments.json {
        return output::write_json(&document(arguments, &chosen, &rows));
    }
    let mut text = match (rows.as_slice(), arguments.from) {
        ([(bytes, place, answer)], Some(_)) => one(arguments, *bytes, place, answer),
        _ => table(arguments, &rows),
    };
    let _ = writeln!(text, "\n{}", chosen.modelled());
    if arguments.model != Equations::Hearth {
        let _ = writeln!(
            text,
            "The source's equations have no uncertainty of their own."
        );
    }
    output::write(text)
}

/// Two hardware threads, for themselves or for all that are so related.
struct ThreadPair {
    between: Between,
    cpus: (OsThread, OsThread),
    relation: Relation,
}

/// A prediction.
struct Answer {
    ns: f64,
    /// The 95 % interval, if the equations know one.
    interval: Option<(f64, f64)>,
    parts: Parts,
    /// The same in each state of the pair, if it has several that matter.
    states: Vec<InState>,
}

/// The hardware thread of a named CPU.
pub(crate) fn thread(machine: &Topology, cpu: OsThread) -> Result<Thread, Failure> {
    machine.thread_of(cpu).ok_or_else(|| {
        let all = machine.threads().iter().map(|thread| thread.os.0);
        let all = hearth_machine::topology::format_list(all);
        let offline = if machine.offline().contains(&cpu) {
            "is offline"
        } else {
            "is not one of the machine's"
        };
        Failure::input(format!("{cpu} {offline}; its CPUs are {all}"))
    })
}

/// The way in which messages are passed, in the model's terms.
pub(crate) fn placement(bytes: Bytes, passing: &Passing) -> Placement {
    Placement {
        bytes: bytes.0,
        carrier: passing.carrier.into(),
        flow: match passing.mode {
            Mode::Alternating => Flow::Alternating,
            Mode::Streaming => Flow::Streaming {
                depth: passing.depth,
            },
        },
        buffer: if passing.fresh {
            Buffer::Fresh
        } else {
            Buffer::Reused
        },
    }
}

fn places(arguments: &Predict, machine: &Topology) -> Result<Vec<ThreadPair>, Failure> {
    let place = |between, pair: (Thread, Thread)| ThreadPair {
        between,
        cpus: (machine.os_thread(pair.0), machine.os_thread(pair.1)),
        relation: machine.relation(pair.0, pair.1),
    };
    if let (Some(from), Some(to)) = (arguments.from, arguments.to) {
        let pair = (thread(machine, from)?, thread(machine, to)?);
        return Ok(vec![place(Between::Pair(pair.0, pair.1), pair)]);
    }
    let all = machine.representatives().into_iter();
    Ok(all
        .map(|(relation, pair)| place(Between::Relation(relation), pair))
        .collect())
}

/// The source of predictions.
enum Oracle {
    Hearth(Box<Model>, Placement),
    /// The source's equations, evaluated by `hearth-study` for all sizes at once.
    Source {
        carrier: Carrier,
        parts: BTreeMap<(u64, u32), Parts>,
    },
}

impl Oracle {
    fn new(arguments: &Predict, profile: &Profile, sizes: &[Bytes]) -> Result<Oracle, Failure> {
        let passing = &arguments.passing;
        if arguments.model == Equations::Hearth {
            let model = Model::fitted(profile);
            let model = model.map_err(|error| Failure::input(error.to_string()))?;
            let placement = placement(arguments.bytes.unwrap_or_default(), passing);
            return Ok(Oracle::Hearth(Box::new(model), placement));
        }
        if passing.mode != Mode::Alternating || passing.fresh {
            return Err(Failure::input(
                "the source's equations know one exchange after the other in a reused buffer \
                 only; leave out --mode and --fresh, or use --model hearth",
            ));
        }
        let mut asked: Vec<u64> = sizes.iter().map(|size| size.0).collect();
        if arguments.plot.is_some() {
            asked.extend(plotted(arguments, sizes));
        }
        Ok(Oracle::Source {
            carrier: passing.carrier.into(),
            parts: by_the_source(arguments, profile, &asked)?,
        })
    }

    fn answer(&self, bytes: u64, place: &ThreadPair) -> Result<Answer, PredictError> {
        match self {
            Oracle::Hearth(model, placement) => {
                let question = Placement {
                    bytes,
                    ..*placement
                }
                .between(place.between);
                let prediction = model.predict(&question)?;
                Ok(Answer {
                    ns: prediction.ns,
                    interval: Some((prediction.low_ns, prediction.high_ns)),
                    parts: prediction.parts,
                    states: model.predict_by_state(&question)?,
                })
            }
            Oracle::Source { carrier, parts } => {
                let same = place.relation.closeness == Closeness::Same;
                if same && *carrier == Carrier::Spin {
                    return Err(PredictError::SpinOnOneThread);
                }
                let kind = match place.relation.source_type() {
                    SourceType::SameCore => 1,
                    SourceType::SameChip => 2,
                    SourceType::OtherChip => 3,
                };
                let parts = parts[&(bytes, kind)];
                Ok(Answer {
                    ns: parts.total_ns(),
                    interval: None,
                    parts,
                    states: Vec::new(),
                })
            }
        }
    }
}

/// The source's parts of an exchange, by size and by the number of its type.
fn by_the_source(
    arguments: &Predict,
    profile: &Profile,
    sizes: &[u64],
) -> Result<BTreeMap<(u64, u32), Parts>, Failure> {
    let carrier = match arguments.passing.carrier {
        Passed::Threads => "threads",
        Passed::Spin => "spin",
        Passed::Worker => "worker",
    };
    let mut words = ["tool", "equations", "--carrier", carrier]
        .map(str::to_owned)
        .to_vec();
    if arguments.model == Equations::SourcePrinted {
        words.push("--printed".to_owned());
    }
    words.push("-".to_owned());
    words.extend(sizes.iter().map(u64::to_string));
    let profile = profile
        .to_json()
        .map_err(|error| Failure::input(error.to_string()))?;
    let answer = study::answer(&words, &profile)?;
    let row = |line: &str| {
        let mut cells = line.split(',');
        let key = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
        let mut ns = || cells.next()?.parse().ok();
        let (write_ns, hand_over_ns, read_ns) = (ns()?, ns()?, ns()?);
        Some((
            key,
            Parts {
                write_ns,
                hand_over_ns,
                read_ns,
                ..Parts::default()
            },
        ))
    };
    let rows: Option<BTreeMap<_, _>> = answer.lines().skip(1).map(row).collect();
    let other = "hearth-study is of another version than hearth; install both together";
    let is_whole = |rows: &BTreeMap<(u64, u32), Parts>| {
        sizes
            .iter()
            .all(|&size| (1..=3).all(|kind| rows.contains_key(&(size, kind))))
    };
    rows.filter(is_whole)
        .ok_or_else(|| Failure::environment(other))
}

fn time(ns: f64) -> String {
    Unit::Nanoseconds.show(ns)
}

fn interval(answer: &Answer) -> String {
    match answer.interval {
        Some((low, high)) => format!("{} to {}", time(low), time(high)),
        None => "not known".to_owned(),
    }
}

/// The share of time in which a state holds, and its latency.
pub(crate) fn in_state(one: &InState) -> String {
    let share = Unit::Percent.show((100.0 * one.state.time_share).round());
    let line = time(one.state.one_way_ns);
    format!("{share} of the time, a line {line}")
}

/// The interval of a state's prediction.
pub(crate) fn range(prediction: &Prediction) -> String {
    format!(
        "{} to {}",
        time(prediction.low_ns),
        time(prediction.high_ns)
    )
}

/// A prediction by state, for programs.
pub(crate) fn states_document(states: &[InState]) -> Vec<Value> {
    let one = |one: &InState| {
        json!({
            "one_way_ns": one.state.one_way_ns,
            "time_share": one.state.time_share,
            "time_ns": one.prediction.ns,
            "low_ns": one.prediction.low_ns,
            "high_ns": one.prediction.high_ns,
        })
    };
    states.iter().map(one).collect()
}

/// Bytes a second; a message of nothing has none.
fn throughput(bytes: Bytes, ns: f64) -> String {
    if bytes.0 == 0 {
        return "–".to_owned();
    }
    Unit::BytesPerNanosecond.show(bytes.0 as f64 / ns)
}

/// Describes how messages are passed, for people.
pub(crate) fn manner(passing: &Passing) -> String {
    let carrier = match passing.carrier {
        Passed::Threads => "kernel threads that sleep",
        Passed::Spin => "threads that spin",
        Passed::Worker => "workers",
    };
    let mode = match passing.mode {
        Mode::Alternating => "one exchange after the other".to_owned(),
        Mode::Streaming => format!("streaming through {} buffers", passing.depth),
    };
    let fresh = if passing.fresh {
        ", in new memory each"
    } else {
        ""
    };
    format!("{carrier}, {mode}{fresh}")
}

fn one(arguments: &Predict, bytes: Bytes, place: &ThreadPair, answer: &Answer) -> String {
    let (from, to) = place.cpus;
    let mut text = format!(
        "{bytes} from {from} to {to} ({}): {}\n\n",
        place.relation,
        manner(&arguments.passing)
    );
    let mut columns = Columns::new(&[Side::Left, Side::Right]);
    let parts = &answer.parts;
    columns.row([
        "time".to_owned(),
        time(answer.ns),
        format!("95 %: {}", interval(answer)),
    ]);
    for one in &answer.states {
        columns.row([
            "  at times".to_owned(),
            time(one.prediction.ns),
            format!("95 %: {}; {}", range(&one.prediction), in_state(one)),
        ]);
    }
    columns.row(["throughput".to_owned(), throughput(bytes, answer.ns)]);
    columns.row(["writing".to_owned(), time(parts.write_ns)]);
    if parts.faults_ns > 0.0 {
        columns.row(["page faults".to_owned(), time(parts.faults_ns)]);
    }
    columns.row(["handing over".to_owned(), time(parts.hand_over_ns)]);
    columns.row(["reading".to_owned(), time(parts.read_ns)]);
    if parts.hidden_ns > 0.0 {
        columns.row(["of which at once".to_owned(), time(parts.hidden_ns)]);
    }
    text.push_str(&columns.lines(2));
    text
}

fn table(arguments: &Predict, rows: &[(Bytes, &ThreadPair, Answer)]) -> String {
    let mut text = format!("{}\n\n", capitalised(&manner(&arguments.passing)));
    let mut sides = vec![Side::Right, Side::Left];
    sides.extend([Side::Right; 9]);
    let mut columns = Columns::new(&sides);
    let has_faults = rows
        .iter()
        .any(|(_, _, answer)| answer.parts.faults_ns > 0.0);
    let has_hidden = rows
        .iter()
        .any(|(_, _, answer)| answer.parts.hidden_ns > 0.0);
    let mut head = vec!["bytes", "between", "time", "95 %", "throughput", "write"];
    head.extend(has_faults.then_some("faults"));
    head.extend(["hand over", "read"]);
    head.extend(has_hidden.then_some("at once"));
    columns.row(head);
    for (bytes, place, answer) in rows {
        let (from, to) = place.cpus;
        let parts = &answer.parts;
        let between = match place.between {
            Between::Relation(relation) => format!("{relation} ({from}, {to})"),
            Between::Pair(..) => format!("{from} to {to}"),
        };
        let mut cells = vec![
            bytes.to_string(),
            between,
            time(answer.ns),
            interval(answer),
            throughput(*bytes, answer.ns),
            time(parts.write_ns),
        ];
        cells.extend(has_faults.then(|| time(parts.faults_ns)));
        cells.extend([time(parts.hand_over_ns), time(parts.read_ns)]);
        cells.extend(has_hidden.then(|| format!("−{}", time(parts.hidden_ns))));
        columns.row(cells);
        for one in &answer.states {
            let prediction = &one.prediction;
            columns.row([
                String::new(),
                format!("  {}", in_state(one)),
                time(prediction.ns),
                range(prediction),
                throughput(*bytes, prediction.ns),
            ]);
        }
    }
    text.push_str(&columns.lines(0));
    text
}

fn document(
    arguments: &Predict,
    chosen: &profiles::Chosen,
    rows: &[(Bytes, &ThreadPair, Answer)],
) -> Value {
    let row = |(bytes, place, answer): &(Bytes, &ThreadPair, Answer)| {
        let parts = &answer.parts;
        let mut row = json!({
            "bytes": bytes.0,
            "from": place.cpus.0.0,
            "to": place.cpus.1.0,
            "relation": place.relation.to_string(),
            "stands_for_relation": matches!(place.between, Between::Relation(_)),
            "time_ns": answer.ns,
            "low_ns": answer.interval.map(|(low, _)| low),
            "high_ns": answer.interval.map(|(_, high)| high),
            "bytes_per_ns": bytes.0 as f64 / answer.ns,
            "write_ns": parts.write_ns,
            "faults_ns": parts.faults_ns,
            "hand_over_ns": parts.hand_over_ns,
            "read_ns": parts.read_ns,
            "hidden_ns": parts.hidden_ns,
        });
        if !answer.states.is_empty() {
            row["states"] = states_document(&answer.states).into();
        }
        row
    };
    json!({
        "modelled_from": chosen.origin,
        "warning": chosen.warning,
        "model": match arguments.model {
            Equations::Hearth => "hearth",
            Equations::Source => "source",
            Equations::SourcePrinted => "source-printed",
        },
        "passing": passing_document(&arguments.passing),
        "predictions": rows.iter().map(row).collect::<Vec<_>>(),
    })
}

pub(crate) fn passing_document(passing: &Passing) -> Value {
    json!({
        "carrier": match passing.carrier {
            Passed::Threads => "threads",
            Passed::Spin => "spin",
            Passed::Worker => "worker",
        },
        "mode": match passing.mode {
            Mode::Alternating => "alternating",
            Mode::Streaming => "streaming",
        },
        "depth": (passing.mode == Mode::Streaming).then_some(passing.depth),
        "fresh": passing.fresh,
    })
}

/// The sizes of a plot.
fn plotted(arguments: &Predict, sizes: &[Bytes]) -> Vec<u64> {
    if arguments.table.is_some() {
        let sizes = sizes.iter().map(|size| size.0);
        return sizes.filter(|&size| size > 0).collect();
    }
    let (first, last) = PLOT_BYTES;
    let doublings = (last / first).ilog2() * PLOT_POINTS_PER_DOUBLING;
    let step = |i: u32| f64::from(i) / f64::from(PLOT_POINTS_PER_DOUBLING);
    (0..=doublings)
        .map(|i| (first as f64 * step(i).exp2()).round() as u64)
        .collect()
}

fn plot(arguments: &Predict, oracle: &Oracle, places: &[ThreadPair], sizes: &[Bytes]) -> LineChart {
    let sizes = plotted(arguments, sizes);
    let series = places.iter().map(|place| {
        let points = sizes.iter().filter_map(|&bytes| {
            let answer = oracle.answer(bytes, place).ok()?;
            let point = Point::new(bytes as f64, answer.ns);
            Some(match answer.interval {
                Some((low, high)) => point.within(low, high),
                None => point,
            })
        });
        let (from, to) = place.cpus;
        let name = match place.between {
            Between::Relation(relation) => relation.to_string(),
            Between::Pair(..) => format!("{from} to {to}, {}", place.relation),
        };
        Series::dashed(&name, points.collect())
    });
    LineChart {
        x: Axis::new("message", Scale::Log2, Unit::Bytes),
        y: Axis::new(
            "predicted time of one exchange",
            Scale::Log10,
            Unit::Nanoseconds,
        ),
        series: series.filter(|series| !series.points.is_empty()).collect(),
        ..LineChart::new(&format!("Modelled: {}", manner(&arguments.passing)))
    }
}
