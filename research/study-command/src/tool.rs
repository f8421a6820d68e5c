//! `hearth study tool`: the tools of studies, one at a time.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{fs, io};

use hearth_machine::profile::Carrier;
use hearth_published::source::{Access, Parameters, Slope, Type, printed};
use hearth_studies::StudyError;
use hearth_studies::coscheduling::instance::{self as gangs, Way as GangWay, Work as GangWork};
use hearth_studies::event_patterns::server::{Serving, UnknownName, serve};
use hearth_studies::monitoring::monitored::{self, monitored};
use hearth_studies::monitoring::ways::Way;
use hearth_studies::nmart::allocators::{Allocator, find};
use hearth_studies::nmart::characterise::{Character, QUANTITIES, characterise};
use hearth_studies::nmart::distances::{self, Effort, Mode, Whole};
use hearth_studies::nmart::launch::{self, Bench, Ended, Launch, Metered, Ran};
use hearth_studies::nmart::monitor::COLUMNS;
use hearth_studies::nmart::requests::requests;
use hearth_studies::nmart::zones::fallback;
use hearth_studies::oversubscription::instance::{self, serve as multiply};
use hearth_studies::transactions::launch::{self as one_run, Asked};
use hearth_sys::clock::Clock;
use hearth_sys::{Linux, policy, procfs};

use crate::course::{failure, read_profile};
use hearth_study_arguments::{
    self as arguments, CoscheduledProgram, EventServer, MonitoredProgram, OfProgram,
    OversubscribedProgram, Tool, TransactionsRun,
};
use hearth_terminal::failure::Failure;
use hearth_terminal::interruption::Interruption;
use hearth_terminal::output;
use hearth_text::cause;

pub(crate) fn tool(tool: &Tool) -> Result<(), Failure> {
    match tool {
        Tool::Count(program) => count(program),
        Tool::Characterise(program) => characterised(program),
        Tool::Monitor { interval, program } => monitor(program, Duration::from_micros(*interval)),
        Tool::Latency {
            first_touch,
            megabytes,
            repeats,
        } => {
            let mode = if *first_touch {
                Mode::FirstTouch
            } else {
                Mode::Bound
            };
            latency(mode, *megabytes, *repeats)
        }
        Tool::Distances {
            nodes,
            truncate,
            files,
        } => {
            let whole = if *truncate {
                Whole::Truncated
            } else {
                Whole::Rounded
            };
            table(nodes, whole, files)
        }
        Tool::Zones { table } => zones(table),
        Tool::Requests {
            model,
            corrected,
            count,
            seed,
        } => output::write(requests(model, *corrected, *count, *seed)),
        Tool::Equations {
            printed,
            carrier,
            profile,
            sizes,
        } => equations(*printed, *carrier, profile, sizes),
        Tool::Events(asked) => server(asked),
        Tool::Monitored(asked) => monitored_program(asked),
        Tool::Transactions(asked) => transactions(asked),
        Tool::Oversubscribed(asked) => oversubscribed(asked),
        Tool::Coscheduled(asked) => coscheduled(asked),
    }
}

/// One of the programs of the study `coscheduling`, or the process of its gang.
fn coscheduled(asked: &CoscheduledProgram) -> Result<(), Failure> {
    if let Some(folder) = &asked.keeper {
        return gangs::keep(folder).map_err(Failure::environment);
    }
    let asked = gangs::Asked {
        // The parser takes their names only.
        way: GangWay::named(&asked.way).unwrap_or(GangWay::Free),
        work: GangWork::named(&asked.work).unwrap_or(GangWork::Barrier),
        is_isolated: asked.isolate,
        threads: asked.threads.clamp(1, 4096),
        milliseconds: asked.milliseconds,
    };
    let input = io::BufReader::new(io::stdin());
    gangs::serve(&asked, input, io::stdout()).map_err(Failure::environment)
}

/// One of the programs of the study `oversubscription`.
fn oversubscribed(asked: &OversubscribedProgram) -> Result<(), Failure> {
    let asked = instance::Asked {
        way: asked.way.clone(),
        threads: asked.threads.clamp(1, 4096),
        foreign: asked.foreign,
        rows: asked.rows.clamp(1, 4096),
        milliseconds: asked.milliseconds,
    };
    let input = io::BufReader::new(io::stdin());
    multiply(&asked, input, io::stdout().lock()).map_err(Failure::input)
}

/// Makes one run of the study `transactions`.
fn transactions(asked: &TransactionsRun) -> Result<(), Failure> {
    let figures = one_run::figures(&Asked {
        tracing: asked.tracing.clone(),
        program: asked.program.clone(),
        threads: asked.threads.clamp(1, 1024),
        seed: asked.seed,
        milliseconds: asked.milliseconds,
        is_small: asked.small,
        folder: asked.folder.clone(),
    });
    output::write_json(&serde_json::json!(figures.map_err(Failure::input)?))
}

/// Runs a program with the meter, with our input and output.
fn run(
    of: &OfProgram,
    usual: &str,
    mode: Metered,
    watch: Option<Duration>,
) -> Result<Ran, Failure> {
    let wanted = [of.allocator.clone().unwrap_or_else(|| usual.to_owned())];
    let found = find(of.objects.as_deref(), &wanted).map_err(failure)?;
    let Some(meter) = &found.meter else {
        return Err(Failure::environment(found.notes.join("; ")));
    };
    // The wanted allocator has been found.
    let [allocator] = &found.allocators[..] else {
        return Err(Failure::environment(found.notes.join("; ")));
    };
    let interruption = Interruption::watch();
    let file = std::env::temp_dir().join(format!("hearth-meter-{}", std::process::id()));
    let bench = Bench {
        folder: Path::new("."),
        meter,
        file: &file,
        cancel: &interruption.flag,
    };
    let ended = go(&bench, of, allocator, mode, watch);
    // Gone already if it was read.
    let _ = fs::remove_file(&file);
    match ended.map_err(failure)? {
        Ended::Well(ran) => Ok(*ran),
        Ended::Failed(why) => Err(Failure::environment(format!("{}: {why}", of.program[0]))),
        Ended::Cancelled => {
            let signal = interruption.signal.load(Ordering::Relaxed);
            Err(Failure::Interrupted(
                signal,
                format!("{} was interrupted", of.program[0]),
            ))
        }
    }
}

fn go(
    bench: &Bench,
    of: &OfProgram,
    allocator: &Allocator,
    mode: Metered,
    watch: Option<Duration>,
) -> Result<Ended, StudyError> {
    let launch = Launch {
        command: Path::new(&of.program[0]),
        arguments: &of.program[1..],
        allocator,
        mode: Some(mode),
        is_shown: true,
        watch,
    };
    launch::launch(bench, &launch)
}

fn nothing() -> Failure {
    Failure::environment(
        "nothing was metered: the program is static, or has more rights than who starts it",
    )
}

fn count(of: &OfProgram) -> Result<(), Failure> {
    let ran = run(of, "system", Metered::Count, None)?;
    let counts = ran.counts().ok_or_else(nothing)?;
    let mut text = String::new();
    for (name, value) in counts {
        text += &format!("{name:<12}{value}\n");
    }
    output::write(text)
}

fn characterised(of: &OfProgram) -> Result<(), Failure> {
    let ran = run(of, "first-fit", Metered::Trace, None)?;
    let readings = ran.readings.as_ref().ok_or_else(nothing)?;
    let ticks_per_us = 1000.0 / Clock::calibrate(&Linux, 20).ns_per_tick();
    let character = characterise(readings.events(), ran.end(), ticks_per_us);
    let mut text = described(&character);
    if !readings.is_whole() {
        text += "note: the program made more calls than are recorded\n";
    }
    output::write(text)
}

fn described(character: &Character) -> String {
    let mut text = String::new();
    for (name, quantity) in QUANTITIES.iter().zip(&character.quantities) {
        text += &format!(
            "{name}: {} samples, mean {:.2}, standard deviation {:.2}\n",
            quantity.count, quantity.mean, quantity.deviation
        );
        for ((edge, count), (_, share)) in quantity.bins.iter().zip(quantity.cumulative()) {
            text += &format!("  up to {edge:>10}  {count:>10}  {share:>6.2} %\n");
        }
    }
    text += &format!("{} blocks at a time\n", character.blocks_max);
    text
}

fn monitor(of: &OfProgram, interval: Duration) -> Result<(), Failure> {
    let ran = run(of, "system", Metered::Count, Some(interval))?;
    let peaks = ran.peaks.ok_or_else(nothing)?;
    output::write(format!("{COLUMNS}\n{}\n", peaks.line()))
}

fn latency(mode: Mode, megabytes: u32, repeats: u32) -> Result<(), Failure> {
    let nodes = policy::nodes_allowed().unwrap_or_else(|_| vec![0]);
    let effort = Effort {
        bytes: (megabytes.max(1) as usize) << 20,
        repeats: repeats.max(1),
    };
    let interruption = Interruption::watch();
    let found = distances::measure(&Linux, mode, &nodes, effort, &interruption.flag);
    let Some(files) = found.map_err(failure)? else {
        let signal = interruption.signal.load(Ordering::Relaxed);
        return Err(Failure::Interrupted(signal, "interrupted".into()));
    };
    let what = match mode {
        Mode::Bound => "memory of node",
        Mode::FirstTouch => "touched by processor",
    };
    let mut text = String::new();
    for file in files {
        text += &format!("# {what} {}\n{}", file.of, file.lines);
    }
    output::write(text)
}

fn table(nodes: &str, whole: Whole, files: &[std::path::PathBuf]) -> Result<(), Failure> {
    let owners: Vec<Vec<usize>> = nodes.split('/').map(procfs::parse_list).collect();
    let mut texts = Vec::new();
    for file in files {
        let text = fs::read_to_string(file);
        let text = text.map_err(|error| {
            Failure::input(format!("cannot read {}: {}", file.display(), cause(&error)))
        })?;
        texts.push(text);
    }
    if texts.len() != owners.len() {
        return Err(Failure::input(format!(
            "{} files and {} nodes; give a file for each memory node, in order",
            texts.len(),
            owners.len()
        )));
    }
    let means = distances::means(&texts, owners.len(), |processor| {
        owners.iter().position(|own| own.contains(&processor))
    });
    if means.iter().flatten().any(|mean| !mean.is_finite()) {
        return Err(Failure::input(
            "a node has no lines of its processors; measure all nodes, or look at --nodes",
        ));
    }
    // The kernel asks from the processor's node.
    let table = distances::table(&distances::transpose(&means), whole);
    let mut text = distances::header(&table);
    for (node, order) in distances::orders(&means).iter().enumerate() {
        let order: Vec<String> = order.iter().map(usize::to_string).collect();
        text += &format!(
            "/* from node {node}, by the means: {} */\n",
            order.join(" ")
        );
    }
    output::write(text)
}

fn zones(table: &str) -> Result<(), Failure> {
    let row = |row: &str| {
        row.split_whitespace()
            .map(str::parse)
            .collect::<Result<Vec<u16>, _>>()
    };
    let rows: Result<Vec<Vec<u16>>, _> = table.split('/').map(row).collect();
    let rows = rows.map_err(|_| Failure::input("distances are whole numbers: '10 20/20 10'"))?;
    if rows.iter().any(|row| row.len() != rows.len()) {
        return Err(Failure::input(format!(
            "a table of {} rows needs as many distances in each: '10 20/20 10'",
            rows.len()
        )));
    }
    let mut text = String::new();
    for (node, order) in fallback(&rows).iter().enumerate() {
        let order: Vec<String> = order.iter().map(usize::to_string).collect();
        text += &format!("node {node}: {}\n", order.join(" "));
    }
    output::write(text)
}

/// The source's parts of an exchange of each size: write, hand over, read.
fn equations(
    is_printed: bool,
    carrier: arguments::Carrier,
    profile: &Path,
    sizes: &[u64],
) -> Result<(), Failure> {
    let carrier = match carrier {
        arguments::Carrier::Threads => Carrier::Threads,
        arguments::Carrier::Spin => Carrier::Spin,
        arguments::Carrier::Worker => Carrier::Worker,
    };
    let machine = Parameters::from_profile(&read_profile(profile)?, carrier);
    let mut text = String::from("bytes,type,write_ns,hand_over_ns,read_ns\n");
    for &bytes in sizes {
        let (write, read) = if is_printed {
            (
                printed::write_3_2_ns(&machine, bytes),
                printed::read_3_5_ns(&machine, bytes),
            )
        } else {
            (
                machine.side_ns(Access::Write, bytes),
                machine.side_ns(Access::Read, bytes),
            )
        };
        for kind in Type::ALL {
            let control = machine.control_ns(kind, bytes, Slope::Derived);
            text += &format!("{bytes},{},{write},{control},{read}\n", kind.number());
        }
    }
    output::write(text)
}

/// The server of event-patterns.
fn server(asked: &EventServer) -> Result<(), Failure> {
    let unknown = |error: UnknownName| Failure::input(error.to_string());
    let serving = Serving {
        pattern: asked.pattern.parse().map_err(unknown)?,
        mechanism: asked.mechanism.parse().map_err(unknown)?,
        threads: asked.threads,
        work: Duration::from_micros(asked.work.into()),
        cores: asked.cores.clone(),
        is_timed: asked.timed,
    };
    serve(&serving, io::stdin().lock(), io::stdout().lock()).map_err(failure)
}

/// The program of monitoring.
fn monitored_program(asked: &MonitoredProgram) -> Result<(), Failure> {
    let asked = monitored::Asked {
        // The parser takes its names only.
        way: Way::named(&asked.way).unwrap_or(Way::Plain),
        is_synchronous: asked.synchronous,
        law: asked.law.parse().map_err(Failure::input)?,
        buffer: asked.buffer,
        calls: asked.calls,
        warm_up: asked.warm_up,
        method_ns: asked.method,
        depth: asked.depth,
        application_core: asked.application_core,
        writer_core: asked.writer_core,
        file: asked.file.clone(),
    };
    output::write(monitored(&asked).map_err(failure)?)
}
