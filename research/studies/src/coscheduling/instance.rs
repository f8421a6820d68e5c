//! One of the programs: threads that spin for each other at a barrier, or of which half compute;
//! and the gang around one.
//!
//! A program says `ready` once it has started and begins with a line of its input. It prints a
//! [`Record`] as JSON. The process of a gang prints a [`Spent`] after its program has ended.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use hearth_gang::witness::Notes;
use hearth_gang::{BackEnd, Member, Set};
use hearth_sys::clock::{process_ns, steady_ns};
use serde::{Deserialize, Serialize};

use crate::program;

/// Pause that counts as one in which a thread did not run, in ns: ten times a context switch.
const GAP_NS: u64 = 20_000;
/// Time that a moving piece of work stays with a thread, in ns.
const STAY_NS: u64 = 1_000_000;
/// Time after which a thread without work looks whether the run is over.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A way to share the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// As the system does.
    Free,
    /// As gangs that are held by signals.
    Stop,
    /// As gangs that wait at a gate.
    Gate,
    /// As gangs in frozen control groups.
    Freezer,
}

impl Way {
    /// All, in the order of tables.
    pub const ALL: [Way; 4] = [Way::Free, Way::Stop, Way::Gate, Way::Freezer];

    /// Its name in tables and on the command line.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Way::Free => "free",
            Way::Stop => "stop",
            Way::Gate => "gate",
            Way::Freezer => "freezer",
        }
    }

    /// The way of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Way> {
        Way::ALL.into_iter().find(|way| way.id() == name)
    }

    fn back_end(self) -> Option<BackEnd> {
        match self {
            Way::Free => None,
            Way::Stop => Some(BackEnd::Stop),
            Way::Gate => Some(BackEnd::Gate),
            Way::Freezer => Some(BackEnd::Freezer),
        }
    }
}

/// Work of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Some microseconds, then a barrier at which threads spin.
    Barrier,
    /// Half of the threads compute, the others sleep.
    Half,
    /// So much work as for half of the threads, which goes from thread to thread.
    Moving,
}

impl Work {
    /// All.
    pub const ALL: [Work; 3] = [Work::Barrier, Work::Half, Work::Moving];

    /// Its name in tables and on the command line.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Work::Barrier => "barrier",
            Work::Half => "half",
            Work::Moving => "moving",
        }
    }

    /// The work of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Work> {
        Work::ALL.into_iter().find(|work| work.id() == name)
    }
}

/// A run, as it is asked of the tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// How the program shares the machine.
    pub way: Way,
    /// Whether its gang keeps cores that it does not use.
    pub is_isolated: bool,
    /// Its work.
    pub work: Work,
    /// Its threads, and the cores of its gang.
    pub threads: usize,
    /// Length of the run.
    pub milliseconds: u32,
}

/// Account of a program's run. Moments are nanoseconds of a clock that all programs share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Barriers passed, or pieces of work done.
    pub rounds: u64,
    /// Length of the run.
    pub seconds: f64,
    /// CPU time of all its threads.
    pub cpu_seconds: f64,
    /// For each thread at the barrier, when it ran: begins and ends.
    pub ran: Vec<Vec<(u64, u64)>>,
}

/// Account of a gang's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Its CPU time since it began, seconds.
    pub spent_seconds: f64,
}

/// Makes a gang of this program with the same arguments but the way, and waits for its end.
///
/// # Errors
/// No gang can be made, the program failed, or the output is closed. In words.
pub fn gang(asked: &Asked, back_end: BackEnd, mut output: impl Write) -> Result<(), String> {
    let mut set = Set::of(asked.threads as u32).back_end(back_end);
    if asked.is_isolated {
        set = set.isolated();
    }
    let mut command = this_program()?;
    command.args(arguments(&Asked {
        way: Way::Free,
        ..asked.clone()
    }));
    let program = this_program()?.get_program().to_owned();
    let keeper = |folder: &Path| {
        let mut keeper = Command::new(&program);
        keeper.args(["tool", "coscheduled", "--keeper"]).arg(folder);
        keeper
    };
    let ended = set.run(&mut command, keeper);
    let ended = ended.map_err(|error| error.to_string())?;
    if !ended.success() {
        return Err(format!("the program ended: {ended}"));
    }
    let spent = Spent {
        spent_seconds: cpu_seconds(),
    };
    let text = serde_json::to_string(&spent).map_err(|error| error.to_string())?;
    writeln!(output, "{text}").map_err(|error| error.to_string())
}

/// Arguments of the tool for a run.
#[must_use]
pub fn arguments(asked: &Asked) -> Vec<String> {
    let mut words: Vec<String> = ["tool", "coscheduled", asked.way.id()]
        .map(str::to_owned)
        .to_vec();
    words.extend(["--work".to_owned(), asked.work.id().to_owned()]);
    words.extend(["--threads".to_owned(), asked.threads.to_string()]);
    words.extend(["--milliseconds".to_owned(), asked.milliseconds.to_string()]);
    if asked.is_isolated {
        words.push("--isolate".to_owned());
    }
    words
}

/// Lets a gang's members go should its process be killed.
///
/// # Errors
/// The registry of gangs cannot be used. In words.
pub fn keep(folder: &Path) -> Result<(), String> {
    let kept = hearth_gang::keep(folder, std::io::stdin(), std::io::stdout());
    kept.map_err(|error| error.to_string())
}

fn this_program() -> Result<Command, String> {
    let path = std::env::current_exe();
    Ok(Command::new(path.map_err(|error| error.to_string())?))
}

/// Runs as asked: as a gang, or the program itself from `input` to `output`.
///
/// # Errors
/// No gang can be made; the system gives no threads; the input ended or the output closed. In
/// words.
pub fn serve(
    asked: &Asked,
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> Result<(), String> {
    if let Some(back_end) = asked.way.back_end() {
        return gang(asked, back_end, output);
    }
    let member = Member::from_environment();
    let _orders = program::ready(input, &mut output)?;
    let used = cpu_seconds();
    let begin = steady_ns();
    let end = begin + u64::from(asked.milliseconds) * 1_000_000;
    let threads = asked.threads.max(1);
    let (rounds, ran) = match asked.work {
        Work::Barrier => at_barrier(member.as_ref(), threads, end),
        Work::Half => (in_half(threads, end), Vec::new()),
        Work::Moving => (on_the_move(threads, end), Vec::new()),
    };
    let record = Record {
        rounds,
        seconds: (steady_ns() - begin) as f64 / 1e9,
        cpu_seconds: cpu_seconds() - used,
        ran,
    };
    let text = serde_json::to_string(&record).map_err(|error| error.to_string())?;
    writeln!(output, "{text}").map_err(|error| error.to_string())
}

fn cpu_seconds() -> f64 {
    1e-9 * process_ns(std::process::id()).unwrap_or(0) as f64
}

/// A piece of work: some microseconds.
fn compute() {
    for at in 0..1000u32 {
        std::hint::black_box(at);
    }
}

/// Barrier at which threads spin, without giving way.
struct Barrier {
    threads: u32,
    arrived: AtomicU32,
    phase: AtomicU32,
    rounds: AtomicU64,
}

impl Barrier {
    fn meet(&self, is_over: &mut impl FnMut() -> bool) {
        // AcqRel and Acquire: what each thread did before the barrier is seen by all behind it.
        let phase = self.phase.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.rounds.fetch_add(1, Ordering::Relaxed);
            self.phase.store(phase.wrapping_add(1), Ordering::Release);
            return;
        }
        while self.phase.load(Ordering::Acquire) == phase && !is_over() {
            std::hint::spin_loop();
        }
    }
}

type Ran = Vec<Vec<(u64, u64)>>;

/// Threads that compute and meet until the end. The number of barriers, and when each thread ran.
fn at_barrier(member: Option<&Member>, threads: usize, end: u64) -> (u64, Ran) {
    let barrier = Barrier {
        threads: threads as u32,
        arrived: AtomicU32::new(0),
        phase: AtomicU32::new(0),
        rounds: AtomicU64::new(0),
    };
    let is_over = AtomicBool::new(false);
    let work = || {
        let mut notes = Notes::begin(steady_ns(), GAP_NS);
        let mut see = || {
            if let Some(member) = member {
                member.pass();
            }
            let now = steady_ns();
            notes.see(now);
            // Relaxed: says only that it is to stop.
            if now >= end {
                is_over.store(true, Ordering::Relaxed);
            }
            is_over.load(Ordering::Relaxed)
        };
        while !see() {
            compute();
            barrier.meet(&mut see);
        }
        let ran = notes.ran().iter().map(|ran| (ran.begin, ran.end));
        ran.collect::<Vec<_>>()
    };
    let ran = thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = all.into_iter().map(|one| one.join().unwrap_or_default());
        ended.collect()
    });
    (barrier.rounds.load(Ordering::Relaxed), ran)
}

/// Half of the threads compute until the end; the others sleep. The number of pieces.
fn in_half(threads: usize, end: u64) -> u64 {
    let rounds = AtomicU64::new(0);
    thread::scope(|scope| {
        for at in 0..threads {
            let is_idle = at >= threads.div_ceil(2);
            let rounds = &rounds;
            scope.spawn(move || {
                while is_idle && steady_ns() < end {
                    thread::sleep(Duration::from_nanos(end.saturating_sub(steady_ns())));
                }
                pieces_until(end, rounds);
            });
        }
    });
    rounds.load(Ordering::Relaxed)
}

fn pieces_until(end: u64, rounds: &AtomicU64) {
    let mut count = 0;
    while steady_ns() < end {
        compute();
        count += 1;
    }
    rounds.fetch_add(count, Ordering::Relaxed);
}

/// As much work as for half of the threads, each part of which goes to the thread half a round
/// further after a while. The number of pieces.
fn on_the_move(threads: usize, end: u64) -> u64 {
    let rounds = AtomicU64::new(0);
    let ways: Vec<_> = (0..threads).map(|_| mpsc::channel::<()>()).collect();
    let half = threads.div_ceil(2);
    for (way, _) in &ways[..half] {
        // The other end is there.
        let _ = way.send(());
    }
    let (to, from): (Vec<_>, Vec<_>) = ways.into_iter().unzip();
    thread::scope(|scope| {
        for (at, mine) in from.into_iter().enumerate() {
            let next = to[(at + half) % threads].clone();
            let rounds = &rounds;
            scope.spawn(move || {
                while steady_ns() < end {
                    match mine.recv_timeout(LOOK_EVERY) {
                        Ok(()) => {
                            pieces_until(end.min(steady_ns() + STAY_NS), rounds);
                            // It has ended already, as this thread will.
                            let _ = next.send(());
                        }
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(RecvTimeoutError::Disconnected) => break,
                    }
                }
            });
        }
    });
    rounds.load(Ordering::Relaxed)
}
