//! `hearth locality`: reuse distances of a trace.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use hearth_draw::line::{Axis, LineChart, Mark, Point, Series};
use hearth_draw::scale::{Scale, Unit};
use hearth_driver::{input, profiles};
use hearth_machine::topology::{Thread, Topology};
use hearth_model::locality::trace::Reader;
use hearth_model::locality::{
    Access, Analysis, AnalysisOptions, Estimate, Histogram, Level, Report,
};
use hearth_terminal::progress::Progress;
use hearth_terminal::{Failure, output};
use hearth_text::cause;
use hearth_text::columns::{Columns, Side};
use serde_json::{Value, json};

use super::thrashing::thrashing;
use crate::arguments::locality::Locality;

/// The size of a cache line where no machine tells: that of nearly all.
const LINE_BYTES: u64 = 64;
/// The longest line of a trace; a file that is not a trace may have no ends of lines.
const TRACE_LINE_BYTES_MAX: u64 = 64 * 1024;
/// The signs of the longest bar.
const BAR: f64 = 40.0;
/// Points of a curve from one power of two to the next.
const POINTS_PER_DOUBLING: u32 = 4;

pub(crate) fn locality(arguments: &Locality) -> Result<(), Failure> {
    match (&arguments.throughput, &arguments.trace) {
        (Some(runs), _) => thrashing(runs, arguments.json),
        (None, Some(trace)) => distances(arguments, trace),
        (None, None) => Err(Failure::input("a trace or --throughput is needed")),
    }
}

fn distances(arguments: &Locality, trace: &Path) -> Result<(), Failure> {
    if let Some(path) = &arguments.svg {
        output::try_out(path)?;
    }
    let chosen = profiles::choose(&arguments.basis.clone().into())?;
    let (line_bytes, levels) = levels(&chosen.profile.topology, arguments.line);
    let mut options = AnalysisOptions::new();
    for level in levels {
        options = options.level(level);
    }
    if let Some(lines) = arguments.sample {
        options = options.sample(lines as usize);
    }
    let report = {
        let _progress = Progress::start("reading the trace");
        read(trace, line_bytes, options)?
    };
    if let Some(path) = &arguments.svg {
        output::replace(path, chart(&report, line_bytes).draw().file().as_bytes())?;
    }
    if arguments.json {
        return output::write_json(&document(&report, line_bytes));
    }
    output::write(text(&report, line_bytes))
}

/// The bytes of a line, and the caches that the first hardware thread's data passes through.
fn levels(machine: &Topology, line_bytes: Option<u64>) -> (u64, Vec<Level>) {
    let caches: Vec<_> = machine.data_caches(Thread(0)).collect();
    let of_machine = caches.iter().find_map(|cache| cache.line).map(u64::from);
    let bytes = line_bytes.or(of_machine).unwrap_or(LINE_BYTES);
    let core = machine.threads().first().map(|thread| thread.core);
    let levels = caches.iter().map(|cache| {
        let is_of_one_core = cache
            .threads
            .iter()
            .all(|thread| machine.threads().get(thread.0 as usize).map(|t| t.core) == core);
        let data = if cache.level == 1 { "d" } else { "" };
        Level {
            name: format!("L{}{data}", cache.level),
            lines: cache.size.0 / bytes,
            shared: !is_of_one_core,
        }
    });
    (bytes, levels.collect())
}

/// Reads a trace as it comes.
fn read(path: &Path, line_bytes: u64, options: AnalysisOptions) -> Result<Report, Failure> {
    let name = input::name_of(path);
    let unreadable =
        |error: &std::io::Error| Failure::input(format!("cannot read {name}: {}", cause(error)));
    let mut from: Box<dyn BufRead> = if input::is_standard_input(path) {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(BufReader::new(
            File::open(path).map_err(|e| unreadable(&e))?,
        ))
    };
    let mut analysis = Analysis::new(options);
    let mut reader = Reader::new();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let mut limited = (&mut from).take(TRACE_LINE_BYTES_MAX);
        let bytes = limited.read_until(b'\n', &mut line);
        if bytes.map_err(|e| unreadable(&e))? == 0 {
            break;
        }
        let wrong = |what: &str| Failure::input(format!("{name}:{number}: {what}"));
        if line.len() as u64 == TRACE_LINE_BYTES_MAX {
            return Err(wrong("no line of a trace is so long; is this a trace?"));
        }
        let text = std::str::from_utf8(&line)
            .map_err(|_| wrong("this is not text; a trace is lines of text"))?;
        let reference = reader.line(text).map_err(|e| wrong(&e.to_string()))?;
        if let Some(reference) = reference {
            let component = analysis.component(reader.component());
            for line in reference.lines(line_bytes) {
                analysis.add(Access {
                    line,
                    thread: reference.thread,
                    component,
                    write: reference.write,
                });
            }
        }
    }
    if analysis.references() == 0 {
        return Err(Failure::input(format!(
            "{name} has no references; `valgrind --tool=lackey --trace-mem=yes PROGRAM` writes some"
        )));
    }
    Ok(analysis.report())
}

fn text(report: &Report, line_bytes: u64) -> String {
    let mut text = format!(
        "{} references to {:.0} lines of {line_bytes} bytes ({}), {}\n",
        report.references,
        report.lines,
        Unit::Bytes.show(report.lines * line_bytes as f64),
        match report.threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        }
    );
    if report.rate < 1.0 {
        let _ = writeln!(
            text,
            "{:.3} % of the lines were followed; intervals hold in about 95 of 100 cases",
            100.0 * report.rate
        );
    }
    let _ = writeln!(text, "\nreuse distances, in lines, within each thread:");
    text.push_str(&bars(&report.own).lines(2));
    if !report.levels.is_empty() {
        let _ = writeln!(text, "\nmisses, each level as if it stood alone:");
        let mut columns = Columns::new(&[Side::Left, Side::Right, Side::Left, Side::Left]);
        for level in &report.levels {
            columns.row([
                level.level.name.clone(),
                Unit::Bytes.show((level.level.lines * line_bytes) as f64),
                if level.level.shared {
                    "shared"
                } else {
                    "each its own"
                }
                .to_owned(),
                level.misses.to_string(),
            ]);
        }
        text.push_str(&columns.lines(2));
    }
    if report.components.len() > 1 {
        let _ = writeln!(text, "\ncomponents:");
        let mut columns = Columns::new(&[Side::Left, Side::Right, Side::Right, Side::Right]);
        columns.row(["", "references", "executions", "lines each"]);
        for component in &report.components {
            columns.row([
                component.name.clone(),
                format!("{:.0}", component.references),
                component.executions.to_string(),
                format!("{:.0}", component.lines_mean),
            ]);
        }
        text.push_str(&columns.lines(2));
    }
    let _ = writeln!(text);
    for words in findings(report) {
        let _ = writeln!(text, "{words}");
    }
    text
}

/// The detectors' words; that there is nothing, too.
fn findings(report: &Report) -> Vec<String> {
    let displaced = report.displacements.iter().map(ToString::to_string);
    let invalidated = report.invalidations.iter().map(ToString::to_string);
    let mut words: Vec<String> = displaced.chain(invalidated).collect();
    if words.is_empty() {
        words.push(match (report.components.len(), report.threads) {
            (1, 1) => "one component in one thread: its data are neither displaced nor invalidated; `c` and `t` \
                       lines name others"
                .to_owned(),
            _ => "no component displaces or invalidates another's data".to_owned(),
        });
    }
    words
}

fn bars(histogram: &Histogram) -> Columns {
    let octaves = histogram.octaves();
    let first_uses = histogram.first_uses();
    let highest = octaves
        .iter()
        .map(|octave| octave.2)
        .fold(first_uses, f64::max);
    let mut columns = Columns::new(&[Side::Right, Side::Right, Side::Left]);
    let mut row = |label: String, count: f64| {
        let share = 100.0 * count / histogram.references();
        let bar = "#".repeat((BAR * count / highest).ceil() as usize);
        columns.row([label, format!("{share:.2} %"), bar]);
    };
    for (from, beyond, count) in octaves {
        match beyond - from {
            1 => row(from.to_string(), count),
            _ => row(format!("{from} to {}", beyond - 1), count),
        }
    }
    row("first use".to_owned(), first_uses);
    columns
}

fn estimate(estimate: Estimate) -> Value {
    json!({"share": estimate.share, "low": estimate.low, "high": estimate.high})
}

fn document(report: &Report, line_bytes: u64) -> Value {
    let octaves = |histogram: &Histogram| -> Vec<Value> {
        let octaves = histogram.octaves().into_iter();
        octaves
            .map(
                |(from, beyond, count)| json!({"from": from, "below": beyond, "references": count}),
            )
            .collect()
    };
    json!({
        "references": report.references,
        "threads": report.threads,
        "lines": report.lines,
        "line_bytes": line_bytes,
        "followed_share": report.rate,
        "first_uses": report.own.first_uses(),
        "distances": octaves(&report.own),
        "distances_shared": octaves(&report.shared),
        "levels": report.levels.iter().map(|level| json!({
            "name": level.level.name,
            "lines": level.level.lines,
            "shared": level.level.shared,
            "misses": estimate(level.misses),
        })).collect::<Vec<_>>(),
        "components": report.components.iter().map(|component| json!({
            "name": component.name,
            "references": component.references,
            "executions": component.executions,
            "lines_mean": component.lines_mean,
            "lines_highest": component.lines_highest,
            "distances": octaves(&component.histogram),
        })).collect::<Vec<_>>(),
        "displacements": report.displacements.iter().map(|found| json!({
            "component": found.component,
            "lines": found.lines,
            "beside": found.beside.iter()
                .map(|(name, lines)| json!({"component": name, "lines": lines}))
                .collect::<Vec<_>>(),
            "level": found.level.name,
            "share": found.share,
        })).collect::<Vec<_>>(),
        "invalidations": report.invalidations.iter().map(|found| json!({
            "component": found.component,
            "writer": found.writer,
            "share": found.share,
            "share_would_hit": found.share_would_hit,
        })).collect::<Vec<_>>(),
        "words": findings(report),
    })
}

fn chart(report: &Report, line_bytes: u64) -> LineChart {
    let of_levels = report.levels.iter().map(|level| level.level.lines);
    let most = of_levels.fold(report.lines.max(16.0) as u64, u64::max) * 2;
    let steps = (most.ilog2() + 1) * POINTS_PER_DOUBLING;
    let series = |name: &str, shared: bool| {
        let points = (0..=steps).map(|step| {
            let lines = (f64::from(step) / f64::from(POINTS_PER_DOUBLING))
                .exp2()
                .round();
            let misses = report.misses(lines as u64, shared);
            let point = Point::new(lines * line_bytes as f64, 100.0 * misses.share);
            match misses.is_exact() {
                true => point,
                false => point.within(100.0 * misses.low, 100.0 * misses.high),
            }
        });
        Series::line(name, points.collect())
    };
    let mut all = vec![series("each thread its own cache", false)];
    if report.threads > 1 {
        all.push(series("one cache for all threads", true));
    }
    let marks = report.levels.iter().map(|level| Mark {
        at: (level.level.lines * line_bytes) as f64,
        label: level.level.name.clone(),
    });
    LineChart {
        x: Axis::new("cache", Scale::Log2, Unit::Bytes),
        y: Axis::new("references that miss", Scale::Linear, Unit::Percent),
        series: all,
        marks: marks.collect(),
        ..LineChart::new("Misses by size of the cache")
    }
}
