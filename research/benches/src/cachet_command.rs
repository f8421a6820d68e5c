//! Compares memcached and cachet: requests for a second on a core, and latencies.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cachet_load::memcaslap::{self, Memcaslap};
use cachet_load::server::{Program, Server, Start};
use cachet_load::{Generator, LoadPlan, Sizes};
use hearth_benches::measure::{Kept, in_order, noticing};
use hearth_benches::peers::beside;
use hearth_benches::runtime::Effort;
use hearth_stats::{Summary, ratio};
use hearth_sys::affinity::{allow_current, allowed};
use hearth_sys::clock::process_ns;

/// Shares of reads: the source's mixes.
const MIXES: [f64; 3] = [0.70, 0.75, 0.80];
const CONNECTIONS: usize = 16;
const KEYS: u64 = 100_000;
const KEY_SIZE: usize = 64;
const VALUE_SIZE: usize = 1024;
/// All values fit, so that both do the same work.
const MEMORY_MIB: usize = 512;
/// The goal: at least as many requests for a second on a core as memcached.
const GOAL: f64 = 1.0;
/// Keys of each of memcaslap's connections, in units of 1,024.
const WINDOW_K: usize = 10;

/// The load generator.
#[derive(Clone, Copy, PartialEq)]
enum Load {
    Ours,
    /// The generator among libmemcached's tools.
    Memcaslap,
}

/// Figures that one run reports.
#[derive(Clone, Copy)]
struct Said {
    rate: f64,
    /// Requests for each second of the server's time on a core.
    per_core: f64,
    /// Nanoseconds; memcaslap reports none.
    latencies: Option<[f64; 3]>,
    /// The generator's time on a core for a request, in nanoseconds.
    own_ns: Option<f64>,
}

/// Measures, prints and returns rows of the record.
pub(crate) fn cachet(effort: Effort) -> Result<String, String> {
    println!("cachet: requests for a second of a server's core, beside memcached's");
    println!(
        "  {CONNECTIONS} connections, one request each, {KEYS} keys of {KEY_SIZE} bytes, values of {VALUE_SIZE}, \
         all in memory; servers run all the time and are asked in shuffled turns"
    );
    println!(
        "  with one server thread it has the first core and the generator the second; with two they share"
    );
    let programs = programs()?;
    let cores = allowed();
    let result = measure_all(&programs, &cores, effort);
    // Other benchmarks choose their own.
    allow_current(&cores).map_err(|error| format!("cannot allow all cores again: {error}"))?;
    result
}

fn measure_all(programs: &[Program], cores: &[usize], effort: Effort) -> Result<String, String> {
    let mut rows = Vec::new();
    for threads in [1, 2] {
        let (server_cores, load_cores) = match (threads, cores) {
            (1, [first, second, ..]) => (vec![*first], vec![*second]),
            _ => (cores.to_vec(), cores.to_vec()),
        };
        allow(&server_cores)?;
        let servers: Vec<Server> = programs
            .iter()
            .map(|program| {
                let start = Start {
                    threads,
                    memory_mib: MEMORY_MIB,
                };
                program.start(start).map_err(said)
            })
            .collect::<Result<_, _>>()?;
        allow(&load_cores)?;
        for server in &servers {
            plan(server, 0.7, effort)
                .and_then(|plan| Generator::new(plan).map_err(said))
                .and_then(|generator| generator.fill().map_err(said))?;
        }
        for mix in MIXES {
            for load in loads() {
                rows.extend(cell(&servers, threads, mix, load, effort)?);
            }
        }
    }
    Ok(rows.join("\n"))
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn allow(cores: &[usize]) -> Result<(), String> {
    allow_current(cores).map_err(|error| format!("cannot use only cores {cores:?}: {error}"))
}

fn loads() -> Vec<Load> {
    if memcaslap::found().is_some() {
        vec![Load::Ours, Load::Memcaslap]
    } else {
        println!("  memcaslap: skipped: it is not there; benches/install-peers --system memcached");
        vec![Load::Ours]
    }
}

/// Memcached first: the others are compared with it.
fn programs() -> Result<Vec<Program>, String> {
    let memcached = Program::new("memcached", Path::new("memcached"));
    let Some(version) = memcached.version() else {
        return Err("there is no memcached; benches/install-peers --system memcached".into());
    };
    let mut programs = vec![memcached];
    println!("  {version}");
    match beside("cachet", "it is built by benches/run") {
        Err(error) => println!("  cachet: skipped: {error}"),
        Ok(path) => programs.extend(modes(&path).into_iter().map(|mode| Program {
            name: format!("cachet-{mode}"),
            path: path.clone(),
            options: vec!["--allocation".into(), mode],
        })),
    }
    Ok(programs)
}

/// The ways in which the program can run its allocation section, as its help tells.
fn modes(path: &Path) -> Vec<String> {
    let help = Command::new(path).arg("--help").output();
    let help = help.map_or_else(
        |_| String::new(),
        |said| String::from_utf8_lossy(&said.stdout).into_owned(),
    );
    let known = ["lock", "message", "auto"];
    match help.contains("--allocation") {
        true => known.map(str::to_owned).to_vec(),
        false => Vec::new(),
    }
}

fn seconds(effort: Effort) -> f64 {
    match effort.brief {
        true => 0.5,
        false => 3.0,
    }
}

fn plan(server: &Server, reads: f64, effort: Effort) -> Result<LoadPlan, String> {
    Ok(LoadPlan::new(server.target())
        .connections(CONNECTIONS)
        .keys(KEYS)
        .key_sizes(Sizes::Fixed(KEY_SIZE))
        .value_sizes(Sizes::Fixed(VALUE_SIZE))
        .gets(reads)
        .warm_up(Duration::from_millis(200))
        .measure(Duration::from_secs_f64(seconds(effort)))
        .watched(Some(server.id())))
}

fn ours(server: &Server, reads: f64, effort: Effort) -> Result<Said, String> {
    let generator = Generator::new(plan(server, reads, effort)?).map_err(said)?;
    let run = generator.run().map_err(said)?;
    let replies = run.tally.replies;
    if replies.misses + replies.errors + run.tally.unanswered > 0 || !run.tally.broken.is_empty() {
        return Err(format!(
            "{}: not every request was served: {replies:?}",
            server.name()
        ));
    }
    let latency = run.tally.latency();
    let at = |percent: f64| latency.percentile(percent) as f64;
    let server_ns = run.server_ns_per_request().ok_or("the server is gone")?;
    Ok(Said {
        rate: run.rate(),
        per_core: 1e9 / server_ns,
        latencies: Some([at(50.0), at(99.0), at(99.9)]),
        own_ns: Some(run.own_ns_per_request()),
    })
}

/// It uses keys of its own and writes them before it counts.
fn memcaslap(server: &Server, reads: f64, effort: Effort) -> Result<Said, String> {
    let wanted = Memcaslap {
        threads: 1,
        connections: CONNECTIONS,
        window_k: WINDOW_K,
        gets: reads,
        key_size: KEY_SIZE,
        value_size: VALUE_SIZE,
        verify: 0.0,
        time: Duration::from_secs_f64(seconds(effort)),
    };
    let used = || process_ns(server.id()).ok_or("the server is gone");
    let before = used()?;
    let told = wanted
        .run(&server.address(), &std::env::temp_dir())
        .map_err(said)?;
    let server_ns = (used()? - before) as f64;
    Ok(Said {
        rate: told.rate,
        per_core: told.requests as f64 * 1e9 / server_ns,
        latencies: None,
        own_ns: None,
    })
}

/// All servers in turn under one load: prints a table, gives rows.
fn cell(
    servers: &[Server],
    threads: usize,
    reads: f64,
    load: Load,
    effort: Effort,
) -> Result<Vec<String>, String> {
    let name = match load {
        Load::Ours => "cachet-load",
        Load::Memcaslap => "memcaslap",
    };
    println!(
        "\n  {threads} server threads, {:.0} % reads, {name}, {} runs each",
        reads * 100.0,
        effort.repeats
    );
    let mut turn = 0;
    let arrange = |order: &mut [usize]| {
        turn += 1;
        let middle = turn % order.len();
        order.rotate_left(middle);
    };
    let kept: Vec<Kept<Said>> = in_order(servers.len(), effort.repeats, arrange, |side| {
        let server = &servers[side];
        let (run, disturbed) = noticing(|| match load {
            Load::Ours => ours(server, reads, effort),
            Load::Memcaslap => memcaslap(server, reads, effort),
        });
        Ok((run?, disturbed))
    })?;
    let discarded: usize = kept.iter().map(|one| one.discarded).sum();
    if discarded > 0 {
        println!(
            "  {discarded} runs did not count: other guests of the host had the cores meanwhile"
        );
    }
    println!(
        "  {:<16}{:>12}{:>28}{:>10}{:>10}{:>10}{:>12}",
        "", "requests/s", "a core, quartiles", "p50 µs", "p99 µs", "p99.9 µs", "own ns"
    );
    let mut rows = Vec::new();
    for (server, kept) in servers.iter().zip(&kept) {
        println!("{}", line(server.name(), &kept.values)?);
    }
    let peer = per_core(&kept[0]);
    for (server, kept_own) in servers.iter().zip(&kept).skip(1) {
        let own = per_core(kept_own);
        let found = ratio(&own, &peer).ok_or("no measurements")?;
        let verdict = if found.value >= GOAL {
            "reached"
        } else {
            "MISSED"
        };
        println!(
            "  {} over memcached, a core: {:.3} [{:.3}, {:.3}], goal {GOAL} {verdict}",
            server.name(),
            found.value,
            found.low,
            found.high
        );
        if let Some(found) = ratio(&p99s(kept_own), &p99s(&kept[0])) {
            let (value, low, high) = (found.value, found.low, found.high);
            println!("    its p99 over memcached's: {value:.3} [{low:.3}, {high:.3}]");
        }
        let (own, peer) = (middle(&own)?.median, middle(&peer)?.median);
        rows.push(format!(
            "{}-{threads}-{:.0}-{name},{},{own},{peer},{},{},{}",
            server.name(),
            reads * 100.0,
            effort.repeats,
            found.value,
            found.low,
            found.high
        ));
    }
    Ok(rows)
}

fn per_core(kept: &Kept<Said>) -> Vec<f64> {
    kept.values.iter().map(|said| said.per_core).collect()
}

fn p99s(kept: &Kept<Said>) -> Vec<f64> {
    let of = |said: &Said| said.latencies.map(|[_, p99, _]| p99);
    kept.values.iter().filter_map(of).collect()
}

fn middle(values: &[f64]) -> Result<Summary, String> {
    Summary::of(values).ok_or("no measurements".into())
}

/// A server's line of the table.
fn line(name: &str, all: &[Said]) -> Result<String, String> {
    let of = |what: &dyn Fn(&Said) -> f64| middle(&all.iter().map(what).collect::<Vec<_>>());
    let (rate, core) = (of(&|said| said.rate)?, of(&|said| said.per_core)?);
    let mut text = format!(
        "  {name:<16}{:>12.0}{:>10.0}{:>18}",
        rate.median,
        core.median,
        format!("{:.0} to {:.0}", core.lower, core.upper)
    );
    for place in 0..3 {
        let times: Vec<f64> = all
            .iter()
            .filter_map(|said| Some(said.latencies?[place] / 1e3))
            .collect();
        let _ = match Summary::of(&times) {
            Some(time) => write!(text, "{:>10.0}", time.median),
            None => write!(text, "{:>10}", "-"),
        };
    }
    let own: Vec<f64> = all.iter().filter_map(|said| said.own_ns).collect();
    let _ = match Summary::of(&own) {
        Some(own) => write!(text, "{:>12.0}", own.median),
        None => write!(text, "{:>12}", "-"),
    };
    Ok(text)
}
