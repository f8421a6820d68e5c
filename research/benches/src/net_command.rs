//! Compares event servers in every static cell with the adaptive one: replies for a second, and how
//! soon it has settled.
//!
//! A cell is a pattern, a way to wait and a number of threads. All cells are looked at once at each
//! point of load; the best of them then take turns with the adaptive server, each run with a new
//! process and new connections, so that each has to settle anew within the warm-up. For each turn
//! the best cell is the one that was best in all other turns: chosen by the run it is compared in,
//! it would have chance on its side.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cachet_load::{Generator, LoadPlan, Protocol};
use hearth_benches::measure::noticing;
use hearth_benches::runtime::Effort;
use hearth_net::{Mechanism, Pattern};
use hearth_stats::Summary;
use hearth_sys::affinity;

use crate::net_server::{ANY, REQUEST, rounds_per_us};

/// Connections, each with one request under way.
const CONNECTIONS: [usize; 4] = [1, 8, 64, 512];
/// Work for a request, in microseconds.
const WORKS: [u32; 3] = [0, 10, 100];
const THREADS: [usize; 3] = [1, 2, 4];
/// Least rate of the adaptive server over that of the best static cell.
const GOAL: f64 = 0.95;
/// Seconds within which it must settle.
const SETTLED_WITHIN: f64 = 2.0;
/// Number of the best cells that are run again.
const FINALISTS: usize = 3;
/// Share of the later rate that a settled server reaches for good.
const SETTLED: f64 = 0.9;
/// Number of samples over which that rate is taken.
const SETTLED_SAMPLES: usize = 10;

/// Warm-up and what counts after it, in seconds: to look, and to compare. The warm-up is shorter
/// than the time in which the adaptive server is to settle.
const LOOK: (f64, f64) = (0.15, 0.2);
const COMPARE: (f64, f64) = (1.4, 0.6);

/// Name of all these benchmarks together.
pub(crate) const GROUP: &str = "net";

/// Names of the benchmarks, one for each number of connections.
pub(crate) fn names() -> impl Iterator<Item = String> {
    CONNECTIONS
        .iter()
        .map(|connections| format!("{GROUP}-{connections}"))
}

#[derive(Clone, Debug, PartialEq)]
struct Cell {
    pattern: String,
    mechanism: String,
    threads: usize,
}

impl Cell {
    fn name(&self) -> String {
        format!("{} {} {}", self.pattern, self.mechanism, self.threads)
    }

    fn all() -> Vec<Cell> {
        let mut cells = Vec::new();
        let fixed = Pattern::all().into_iter();
        for pattern in fixed.filter(|pattern| pattern.to_string() != ADAPTIVE) {
            for mechanism in Mechanism::all() {
                for threads in THREADS {
                    // A thread that waits with none that works does not make a server; a system
                    // may forbid a mechanism.
                    let may_be = pattern != Pattern::HalfAsync || threads > 1;
                    if may_be && mechanism.check().is_ok() {
                        cells.push(Cell {
                            pattern: pattern.to_string(),
                            mechanism: mechanism.to_string(),
                            threads,
                        });
                    }
                }
            }
        }
        cells
    }

    /// The adaptive server, if there is one.
    fn adaptive() -> Option<Cell> {
        ADAPTIVE.parse::<Pattern>().ok().map(|_| Cell {
            pattern: ADAPTIVE.into(),
            mechanism: ANY.into(),
            threads: THREADS.into_iter().max().unwrap_or(1),
        })
    }
}

const ADAPTIVE: &str = "adaptive";

/// A server that runs, as a process.
struct Server {
    process: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Server {
    fn start(cell: &Cell, rounds: u64) -> Result<Server, String> {
        let this = std::env::current_exe().map_err(said)?;
        let mut process = Command::new(this)
            .args(["serve", &cell.pattern, &cell.mechanism])
            .args([cell.threads.to_string(), rounds.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(said)?;
        let mut line = String::new();
        let output = process.stdout.as_mut().ok_or("it has no output")?;
        // A byte at a time, so that nothing of what follows is taken.
        BufReader::with_capacity(1, output)
            .read_line(&mut line)
            .map_err(said)?;
        let mut server = Server { process, port: 0 };
        server.port = line
            .trim()
            .parse()
            .map_err(|_| format!("{} does not start", cell.name()))?;
        Ok(server)
    }

    /// Ends it: milliseconds since the first reply, and replies until then.
    fn end(mut self) -> Result<Vec<(f64, f64)>, String> {
        drop(self.process.stdin.take());
        let mut text = String::new();
        let output = self.process.stdout.as_mut().ok_or("it has no output")?;
        output.read_to_string(&mut text).map_err(said)?;
        let number = |word: &str| word.parse::<f64>().map_err(said);
        text.lines()
            .map(|line| {
                let (ms, replies) = line.split_once(' ').ok_or("it says nothing of samples")?;
                Ok((number(ms)?, number(replies)?))
            })
            .collect()
    }
}

/// Figures that one run reports.
#[derive(Clone, Debug)]
struct Found {
    /// Replies for a second.
    rate: f64,
    /// Seconds from the first reply until the rate was for good near its later value.
    settled: f64,
    /// Cores that the server used.
    cores: f64,
    /// Other guests had our cores meanwhile.
    disturbed: bool,
}

#[derive(Clone, Copy)]
struct Point {
    connections: usize,
    work_us: u32,
    rounds: u64,
}

impl Point {
    fn run(&self, cell: &Cell, (warm_up, measure): (f64, f64)) -> Result<Found, String> {
        let server = Server::start(cell, self.rounds)?;
        let target = format!("127.0.0.1:{}", server.port).parse()?;
        let plan = LoadPlan::new(target)
            .protocol(Protocol::Echo {
                request: REQUEST,
                reply: REQUEST,
            })
            .connections(self.connections)
            .warm_up(Duration::from_secs_f64(warm_up))
            .measure(Duration::from_secs_f64(measure))
            .watched(Some(server.process.id()));
        let generator = Generator::new(plan).map_err(said)?;
        let (run, disturbed) = noticing(|| generator.run().map_err(said));
        let run = run?;
        if run.tally.replies.errors + run.tally.unanswered > 0 || !run.tally.broken.is_empty() {
            return Err(format!(
                "{}: not every request was served: {:?} {:?}",
                cell.name(),
                run.tally.replies,
                run.tally.broken
            ));
        }
        let samples = server.end()?;
        Ok(Found {
            rate: run.rate(),
            settled: settled(&samples, warm_up),
            cores: run.server_cores().unwrap_or(f64::NAN),
            disturbed,
        })
    }
}

/// Time in seconds at which the rate over some samples was last far below the rate after the
/// warm-up.
fn settled(samples: &[(f64, f64)], warm_up: f64) -> f64 {
    let rates: Vec<(f64, f64)> = samples
        .windows(SETTLED_SAMPLES + 1)
        .filter_map(|some| {
            let (from, to) = (some.first()?, some.last()?);
            Some((to.0 / 1e3, (to.1 - from.1) / (to.0 - from.0)))
        })
        .collect();
    let last = rates.last().map_or(0.0, |last| last.0);
    // The last of them reach beyond the end of the load.
    let rates: Vec<_> = rates
        .into_iter()
        .filter(|(at, _)| *at < last - 0.2)
        .collect();
    let later: Vec<f64> = rates
        .iter()
        .filter(|(at, _)| *at > warm_up)
        .map(|(_, rate)| *rate)
        .collect();
    let Some(later) = Summary::of(&later) else {
        return f64::NAN;
    };
    let slow = |rate: &f64| *rate < SETTLED * later.median;
    let before = rates.iter().take_while(|(at, _)| *at <= warm_up);
    before
        .filter(|(_, rate)| slow(rate))
        .last()
        .map_or(0.0, |(at, _)| *at)
}

/// Measures one of [`names`], prints, and returns rows of the record.
pub(crate) fn net(name: &str, effort: Effort) -> Result<String, String> {
    let connections = CONNECTIONS
        .into_iter()
        .find(|connections| name == format!("{GROUP}-{connections}"))
        .ok_or("there is no such number of connections")?;
    let repeats = if effort.brief {
        effort.repeats.min(3)
    } else {
        effort.repeats.clamp(5, 7)
    };
    println!("{name}: how near does the adaptive event server come to the best static cell?");
    println!(
        "  {connections} connections, one request of {REQUEST} bytes each, replies as long; {} cores for the server and \
         the one thread of the generator, which is another process: what one has, the other has not",
        affinity::allowed().len()
    );
    println!(
        "  every static cell is looked at for {} s; the best {FINALISTS} and the adaptive one are run {repeats} times in \
         turn, each time a new process, {} s after {} s of warm-up",
        LOOK.1, COMPARE.1, COMPARE.0
    );
    let per_us = rounds_per_us();
    let works = WORKS.iter().filter(|work| !effort.brief || **work != 10);
    let mut rows = Vec::new();
    for &work_us in works {
        let rounds = (f64::from(work_us) * per_us) as u64;
        let point = Point {
            connections,
            work_us,
            rounds,
        };
        rows.push(compare(point, repeats, effort.brief)?);
    }
    Ok(rows.join("\n"))
}

fn look(point: Point, brief: bool) -> Result<Vec<(Cell, f64)>, String> {
    let mut looked = Vec::new();
    for cell in Cell::all() {
        // Mechanisms that are never best are left out of a brief run.
        if brief && (cell.mechanism == "select" || cell.mechanism == "level") {
            continue;
        }
        let found = point.run(&cell, LOOK)?;
        looked.push((cell, found.rate));
    }
    looked.sort_by(|a, b| b.1.total_cmp(&a.1));
    println!("\n  {} µs of work; replies/s of all cells:", point.work_us);
    for line in looked.chunks(3) {
        let mut text = String::new();
        for (cell, rate) in line {
            let _ = write!(text, "{:>24}{rate:>10.0}", cell.name());
        }
        println!("  {text}");
    }
    Ok(looked)
}

fn compare(point: Point, repeats: usize, brief: bool) -> Result<String, String> {
    let looked = look(point, brief)?;
    let mut cells: Vec<Cell> = looked
        .into_iter()
        .take(FINALISTS)
        .map(|(cell, _)| cell)
        .collect();
    cells.extend(Cell::adaptive());
    let mut found: Vec<Vec<Found>> = vec![Vec::new(); cells.len()];
    let mut order: Vec<usize> = (0..cells.len()).collect();
    for _ in 0..repeats {
        for &side in &order {
            found[side].push(point.run(&cells[side], COMPARE)?);
        }
        order.rotate_left(1);
    }
    let disturbed = found.iter().flatten().filter(|found| found.disturbed);
    let disturbed = disturbed.count();
    println!(
        "  {:<24}{:>10}{:>22}{:>9}{:>22}",
        "", "replies/s", "quartiles", "cores", "settled after s"
    );
    let of = |side: usize, what: &dyn Fn(&Found) -> f64| -> Result<Summary, String> {
        let values: Vec<f64> = found[side].iter().map(what).collect();
        Summary::of(&values).ok_or("no measurements".into())
    };
    for (side, cell) in cells.iter().enumerate() {
        let (rate, cores) = (of(side, &|one| one.rate)?, of(side, &|one| one.cores)?);
        let settled = of(side, &|one| one.settled)?;
        let most = found[side]
            .iter()
            .map(|one| one.settled)
            .fold(0.0, f64::max);
        println!(
            "  {:<24}{:>10.0}{:>22}{:>9.2}{:>22}",
            cell.name(),
            rate.median,
            format!("{:.0} to {:.0}", rate.lower, rate.upper),
            cores.median,
            format!("{:.2}, at most {most:.2}", settled.median)
        );
    }
    if disturbed > 0 {
        println!(
            "  {disturbed} runs were disturbed: other guests of the host had the cores meanwhile"
        );
    }
    let medians: Vec<f64> = (0..cells.len())
        .map(|side| of(side, &|one| one.rate).map(|rate| rate.median))
        .collect::<Result<_, _>>()?;
    let fixed = cells.iter().position(|cell| cell.pattern == ADAPTIVE);
    let fixed = fixed.unwrap_or(cells.len());
    let best = (0..fixed)
        .max_by(|&a, &b| medians[a].total_cmp(&medians[b]))
        .ok_or("there are no cells")?;
    let name = format!("net-{}-{}us", point.connections, point.work_us);
    if fixed == cells.len() {
        return Ok(format!("{name},{repeats},,{},,,", medians[best]));
    }
    let rates: Vec<Vec<f64>> = found
        .iter()
        .map(|runs| runs.iter().map(|run| run.rate).collect())
        .collect();
    let ratios = over_best(&rates[fixed], &rates[..fixed]).ok_or("no measurements")?;
    let ratio = Summary::of(&ratios).ok_or("no measurements")?;
    let most = found[fixed]
        .iter()
        .map(|one| one.settled)
        .fold(0.0, f64::max);
    let reached = match ratio.median >= GOAL && most <= SETTLED_WITHIN {
        true => "reached",
        false => "MISSED",
    };
    println!(
        "  adaptive over the best of the other turns, mostly {}: {:.3}, quartiles {:.3} to {:.3}; goal {GOAL} within {SETTLED_WITHIN} s {reached}",
        cells[best].name(),
        ratio.median,
        ratio.lower,
        ratio.upper
    );
    Ok(format!(
        "{name},{repeats},{},{},{},{},{}",
        medians[fixed], medians[best], ratio.median, ratio.lower, ratio.upper
    ))
}

/// Each turn's rate over that of the cell which was best in all other turns.
fn over_best(own: &[f64], cells: &[Vec<f64>]) -> Option<Vec<f64>> {
    let elsewhere = |cell: &Vec<f64>, turn: usize| {
        let (before, after) = (cell.iter().take(turn), cell.iter().skip(turn + 1));
        let others: Vec<f64> = before.chain(after).copied().collect();
        Summary::of(&others).map(|others| others.median)
    };
    own.iter()
        .enumerate()
        .map(|(turn, rate)| {
            let best = cells.iter().max_by(|a, b| {
                let (a, b) = (elsewhere(a, turn), elsewhere(b, turn));
                a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal)
            })?;
            Some(rate / best[turn])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_a_turn_is_told_by_the_others() {
        let cells = [vec![9.0, 10.0, 40.0], vec![10.0, 20.0, 20.0]];
        // The first is best by its median where the third turn counts, and not for that turn
        // itself.
        let ratios = over_best(&[10.0, 20.0, 20.0], &cells);
        assert_eq!(ratios, Some(vec![10.0 / 9.0, 2.0, 1.0]));
    }

    #[test]
    fn a_server_has_settled_when_it_is_slow_no_more() {
        let mut replies = 0.0;
        let samples: Vec<(f64, f64)> = (0..200)
            .map(|at| {
                replies += if at < 50 { 10.0 } else { 20.0 };
                (f64::from(at) * 10.0, replies)
            })
            .collect();
        let found = settled(&samples, 1.4);
        assert!((0.5..0.6).contains(&found), "{found}");
        assert_eq!(settled(&samples[60..], 1.4), 0.0);
    }
}
