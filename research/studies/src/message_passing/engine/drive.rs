//! Runs the loops, and counts.

use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hearth_sync::{Drain, NoProprietor, Owned, Statistics};
use hearth_sys::clock::Clock;
use hearth_sys::usage::{self, Whose};
use hearth_sys::{Refused, affinity};

use super::config::{Config, ConfigError};
use super::measured::{Measured, Summary};
use super::pool::{Parts, Pool};
use super::walk::{Lines, Random, WriteWalk};

/// Time limit for calibrating the time stamp counter.
const CALIBRATION_MS: u64 = 20;
/// The words of a message that the server reads, and the client writes: one a line.
const WORDS_A_LINE: usize = 8;

/// Reason why a run could not be made.
#[derive(Debug)]
pub enum RunError {
    /// The configuration asks for what cannot be.
    Config(ConfigError),
    /// The system gives no memory, or no core.
    Refused(Refused),
    /// The system gives no thread for the server.
    NoProprietor(NoProprietor),
    /// The system gives no thread for a loop.
    Thread(std::io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Config(error) => error.fmt(f),
            RunError::Refused(error) => error.fmt(f),
            RunError::NoProprietor(error) => error.fmt(f),
            RunError::Thread(error) => {
                write!(
                    f,
                    "cannot start a thread: {error}; ask for fewer, or raise `ulimit -u`"
                )
            }
        }
    }
}

impl std::error::Error for RunError {}

impl From<ConfigError> for RunError {
    fn from(error: ConfigError) -> RunError {
        RunError::Config(error)
    }
}

/// Data that the section protects, beside the lines.
struct Section {
    walk: WriteWalk,
    passes: u64,
}

/// A loop's iterations, on lines of their own.
#[repr(align(128))]
struct Count(AtomicU64);

/// Data given to all loops.
struct Common<'a> {
    section: &'a Owned<Section>,
    lines: Lines<'a>,
    is_over: AtomicBool,
    failed: AtomicBool,
}

/// The counts at one moment.
struct Reading {
    at: Instant,
    iterations: Vec<u64>,
    cpu_us: u64,
    statistics: Statistics,
}

/// Runs it as often as the configuration says, each time shuffled anew.
///
/// # Errors
/// As [`run`].
pub fn repeat(config: &Config) -> Result<Summary, RunError> {
    let repetitions = (0..config.repetitions).map(|repetition| run(config, repetition));
    let repetitions: Vec<Measured> = repetitions.collect::<Result<_, _>>()?;
    Summary::of(repetitions)
        .ok_or_else(|| ConfigError::Value("repetitions is 0; ask for 1 at least".into()).into())
}

/// Runs one repetition: warms up, measures, and counts what was modified.
///
/// # Errors
/// The configuration asks for what cannot be, or the system refuses memory, a thread or a core.
pub fn run(config: &Config, repetition: u32) -> Result<Measured, RunError> {
    config.check()?;
    let clock = Clock::calibrate(&hearth_sys::Linux, CALIBRATION_MS);
    let mut pool = Pool::new(config).map_err(RunError::Refused)?;
    let pages = pool.pages;
    let Parts { section, local } = pool.parts(config);
    let mut random = Random(config.seed.wrapping_add(u64::from(repetition) << 32));
    let lines = Lines::shuffled(section, &mut random);
    let local: Vec<Lines> = local
        .into_iter()
        .map(|words| Lines::shuffled(words, &mut random))
        .collect();
    let owned = section_of(config)?;
    let common = Common {
        section: &owned,
        lines,
        is_over: AtomicBool::new(false),
        failed: AtomicBool::new(false),
    };
    let counts: Vec<Count> = local.iter().map(|_| Count(AtomicU64::new(0))).collect();
    let (begin, end) = measure(config, &common, &local, &counts)?;
    let explained = owned.explain();
    let Ok(Section { passes, .. }) = owned.into_inner() else {
        unreachable!("every loop has ended and none kept a handle");
    };
    Ok(Measured {
        modified_per_pass: lines.modifications() as f64 / passes.max(1) as f64,
        lines_modified: lines.modified(),
        pages,
        explained,
        ..between(&begin, &end, &clock)
    })
}

fn section_of(config: &Config) -> Result<Owned<Section>, RunError> {
    let mut builder = Owned::builder()
        .mode(config.mode)
        .lock(config.lock)
        .queue(config.queue)
        .drain(if config.drain_all {
            Drain::All
        } else {
            Drain::One
        })
        .wait(config.wait.wait())
        .proprietor_wait(config.server_wait.wait())
        .clients(config.loops())
        .name("section");
    if let (true, Some(&core)) = (config.pin, affinity::allowed().first()) {
        builder = builder.proprietor_core(core);
    }
    let walk = WriteWalk::new(config.section_lines, config.modified_lines, config.defects);
    builder
        .build(Section { walk, passes: 0 })
        .map_err(RunError::NoProprietor)
}

/// Starts the loops, lets them warm up, and reads the counts twice.
fn measure(
    config: &Config,
    common: &Common<'_>,
    local: &[Lines<'_>],
    counts: &[Count],
) -> Result<(Reading, Reading), RunError> {
    let cores = affinity::allowed();
    thread::scope(|scope| {
        for (index, (&lines, count)) in local.iter().zip(counts).enumerate() {
            // The server is on the first; loops begin with the one after it.
            let core = config.pin.then(|| cores[(index + 1) % cores.len()]);
            let body = move || {
                if core.is_some_and(|core| affinity::pin_current(core).is_err()) {
                    common.failed.store(true, Ordering::Relaxed);
                }
                looped(config.message_bytes, common, lines, &count.0);
            };
            let started = thread::Builder::new().spawn_scoped(scope, body);
            if let Err(error) = started {
                common.is_over.store(true, Ordering::Relaxed);
                return Err(RunError::Thread(error));
            }
        }
        thread::sleep(Duration::from_secs_f64(config.warm_up_seconds));
        let begin = read(common, counts);
        thread::sleep(Duration::from_secs_f64(config.seconds));
        let end = read(common, counts);
        common.is_over.store(true, Ordering::Relaxed);
        if common.failed.load(Ordering::Relaxed) {
            let what = "the system does not keep threads on cores here; set pin to false";
            return Err(ConfigError::Value(what.into()).into());
        }
        Ok((begin, end))
    })
}

fn read(common: &Common<'_>, counts: &[Count]) -> Reading {
    let usage = usage::read(Whose::Process);
    Reading {
        at: Instant::now(),
        iterations: counts
            .iter()
            .map(|count| count.0.load(Ordering::Relaxed))
            .collect(),
        cpu_us: usage.user_us + usage.system_us,
        statistics: common.section.statistics(),
    }
}

/// The figures between two readings; the caller fills in what depends on the data.
fn between(begin: &Reading, end: &Reading, clock: &Clock) -> Measured {
    let each: Vec<u64> = end
        .iterations
        .iter()
        .zip(&begin.iterations)
        .map(|(end, begin)| end - begin)
        .collect();
    let iterations = each.iter().sum::<u64>() as f64;
    let seconds = (end.at - begin.at).as_secs_f64();
    let cpu_ns = (end.cpu_us - begin.cpu_us) as f64 * 1e3;
    let served = end.statistics.delegated - begin.statistics.delegated;
    let rests = (end.statistics.rests - begin.statistics.rests).min(served);
    let most = each.iter().max().map_or(1, |&most| most.max(1));
    Measured {
        iterations_per_second: iterations / seconds,
        cycles_per_iteration: cpu_ns / clock.ns_per_tick() / iterations.max(1.0),
        server_busy_percent: (served > 0).then(|| 100.0 * (1.0 - rests as f64 / served as f64)),
        modified_per_pass: 0.0,
        lines_modified: 0,
        fairness: each
            .iter()
            .min()
            .map_or(1.0, |&least| least as f64 / most as f64),
        seconds,
        pages: super::pool::Pages::Small,
        explained: String::new(),
    }
}

/// A loop with messages of the given size, each of which is a type of its own.
fn looped(message_bytes: usize, common: &Common<'_>, local: Lines<'_>, count: &AtomicU64) {
    let of_words = match message_bytes {
        0 => looped_of::<0>,
        8 => looped_of::<1>,
        16 => looped_of::<2>,
        32 => looped_of::<4>,
        64 => looped_of::<8>,
        128 => looped_of::<16>,
        256 => looped_of::<32>,
        512 => looped_of::<64>,
        1024 => looped_of::<128>,
        2048 => looped_of::<256>,
        4096 => looped_of::<512>,
        8192 => looped_of::<1024>,
        16384 => looped_of::<2048>,
        other => unreachable!("{other} bytes passed the check"),
    };
    of_words(common, local, count);
}

/// The source's core loop: data of its own, then the section; the message is written by the client
/// and read by the thread that runs the section, a word of each line.
fn looped_of<const WORDS: usize>(common: &Common<'_>, local: Lines<'_>, count: &AtomicU64) {
    let mut iterations = 0u64;
    let lines = common.lines;
    // At least once: a run is over before a loop has a core where all are busy, and what a pass
    // modifies is to be reported.
    loop {
        let moves = black_box(local).read();
        let mut message = [0u64; WORDS];
        for word in message.iter_mut().step_by(WORDS_A_LINE) {
            *word = moves;
        }
        let answer = common.section.call(move |section: &mut Section| {
            let message = black_box(&message);
            let read: u64 = message.iter().step_by(WORDS_A_LINE).sum();
            section.passes += 1;
            section.walk.pass(lines).wrapping_add(read)
        });
        black_box(answer);
        iterations += 1;
        count.store(iterations, Ordering::Relaxed);
        if common.is_over.load(Ordering::Relaxed) {
            return;
        }
    }
}
