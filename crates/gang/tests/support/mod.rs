//! Programs that tests and the example start as processes of their own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use hearth_gang::witness::{Notes, Ran, parse};
use hearth_gang::{BackEnd, FOLDER_VARIABLE, Member, Set};
use hearth_sys::clock::{process_ns, steady_ns};

/// Pause that counts as one in which a thread did not run, in ns: ten times a context switch, and
/// a tenth of the skew to be shown.
const GAP_NS: u64 = 20_000;

/// Plays a part, if the arguments name one.
pub(crate) fn part(words: &[String]) -> Option<ExitCode> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Some(match words[..] {
        ["spin", kind, threads, seconds, file] => {
            let threads = threads.parse().expect("a number of threads");
            let seconds = seconds.parse().expect("a number of seconds");
            let member = Member::from_environment();
            spin(member, kind == "barrier", threads, seconds, Path::new(file));
            ExitCode::SUCCESS
        }
        ["gang", options, ref command @ ..] => gang(options, command),
        ["join", options, seconds, file] => {
            let joined = set(options).join().expect("a registry");
            let seconds = seconds.parse().expect("a number of seconds");
            spin(Some(joined.member()), false, 2, seconds, Path::new(file));
            ExitCode::SUCCESS
        }
        ["keep", folder] => {
            // Without a registry there is nobody else to be let go.
            let (input, words) = (std::io::stdin(), std::io::stdout());
            let _ = hearth_gang::keep(Path::new(folder), input, words);
            ExitCode::SUCCESS
        }
        _ => return None,
    })
}

/// Options of a set as `cores=2,name=a,within=b,isolate,slice=10,back_end=stop`.
pub(crate) fn set(options: &str) -> Set {
    let parts = options
        .split(',')
        .map(|one| one.split_once('=').unwrap_or((one, "")));
    let parts: BTreeMap<&str, &str> = parts.collect();
    let mut set = Set::of(parts["cores"].parse().expect("a number of cores"));
    if let Some(name) = parts.get("name") {
        set = set.named(name);
    }
    if let Some(name) = parts.get("within") {
        set = set.within(name);
    }
    if parts.contains_key("isolate") {
        set = set.isolated();
    }
    if let Some(ms) = parts.get("slice") {
        set = set.slice(Duration::from_millis(ms.parse().expect("milliseconds")));
    }
    if let Some(name) = parts.get("back_end").filter(|name| **name != "auto") {
        let found = BackEnd::ALL.into_iter().find(|one| one.name() == *name);
        set = set.back_end(found.expect("a back end"));
    }
    set
}

fn gang(options: &str, command: &[&str]) -> ExitCode {
    let (program, rest) = command.split_first().expect("a command");
    let mut command = Command::new(program);
    command.args(rest);
    let keeper = |folder: &Path| {
        let mut keeper = this_program();
        keeper.arg("keep").arg(folder);
        keeper
    };
    let ended = set(options).run(&mut command, keeper);
    if let Some(file) = std::env::var_os("GANG_COST") {
        let own = format!("{}-{}", PathBuf::from(file).display(), std::process::id());
        let ns = process_ns(std::process::id()).unwrap_or(0);
        fs::write(own, ns.to_string()).expect("a file");
    }
    match ended {
        Ok(status) => ExitCode::from(code(status)),
        Err(error) => {
            fs::write("/dev/stderr", format!("{error}\n")).expect("an output");
            ExitCode::from(3)
        }
    }
}

fn code(status: ExitStatus) -> u8 {
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    let code = status.code().unwrap_or(128 + signal.unwrap_or(0));
    code as u8
}

/// This program, to play another part.
pub(crate) fn this_program() -> Command {
    Command::new(std::env::current_exe().expect("this program"))
}

/// A command in a registry of its own.
pub(crate) fn in_folder(folder: &Path, words: &[&str]) -> Command {
    let mut command = this_program();
    command.args(words).env(FOLDER_VARIABLE, folder);
    command
}

/// Barrier at which threads spin, without giving way.
struct Barrier {
    threads: u32,
    arrived: AtomicU32,
    phase: AtomicU32,
    rounds: AtomicU64,
}

/// Threads that compute some microseconds and meet at the barrier, or do not meet at all, and note
/// when they ran.
fn spin(member: Option<Member>, is_at_barrier: bool, threads: u32, seconds: f64, file: &Path) {
    let barrier = Barrier {
        threads,
        arrived: AtomicU32::new(0),
        phase: AtomicU32::new(0),
        rounds: AtomicU64::new(0),
    };
    let is_over = AtomicBool::new(false);
    let end = steady_ns() + (seconds * 1e9) as u64;
    let notes: Vec<Notes> = std::thread::scope(|scope| {
        let work = || {
            let mut notes = Notes::begin(steady_ns(), GAP_NS);
            let mut see = || {
                if let Some(member) = &member {
                    member.pass();
                }
                let now = steady_ns();
                notes.see(now);
                if now >= end {
                    is_over.store(true, Ordering::Relaxed);
                }
                is_over.load(Ordering::Relaxed)
            };
            while !see() {
                for at in 0..1000u32 {
                    std::hint::black_box(at);
                }
                if is_at_barrier {
                    barrier.meet(&mut see);
                } else {
                    barrier.rounds.fetch_add(1, Ordering::Relaxed);
                }
            }
            notes
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let done = threads.into_iter().map(|thread| thread.join());
        done.map(|notes| notes.expect("it ends")).collect()
    });
    let mut text = format!("rounds {}\n", barrier.rounds.load(Ordering::Relaxed));
    for notes in &notes {
        text += "thread\n";
        text += &notes.text();
    }
    fs::write(file, text).expect("a file");
}

impl Barrier {
    fn meet(&self, is_over: &mut impl FnMut() -> bool) {
        // AcqRel and Acquire: what each thread did before the barrier is seen by all behind it.
        let phase = self.phase.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.rounds.fetch_add(1, Ordering::Relaxed);
            self.phase.store(phase + 1, Ordering::Release);
            return;
        }
        while self.phase.load(Ordering::Acquire) == phase && !is_over() {
            std::hint::spin_loop();
        }
    }
}

/// Rounds and notes of a program that span.
pub(crate) struct Spun {
    pub(crate) rounds: u64,
    pub(crate) threads: Vec<Vec<Ran>>,
}

pub(crate) fn read(file: &Path) -> Spun {
    let text = fs::read_to_string(file).expect("what it noted");
    let (first, rest) = text.split_once('\n').expect("lines");
    let rounds = first.strip_prefix("rounds ").expect("the rounds");
    Spun {
        rounds: rounds.parse().expect("a number"),
        threads: rest.split("thread\n").skip(1).map(parse).collect(),
    }
}
