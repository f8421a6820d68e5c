//! `--place talk` while things change: the cores that a program may use, and who is there. It goes
//! on, its threads stay where they may be, and nothing of those that ended is kept.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hearth_sys::affinity;
use support::{PATIENCE, empty_folder, hearth, outcome, root};

/// Two components at a time, which talk a little and end.
const SHORT: &str = "
type IOne is interface(out integer question; in integer answer; out bool over)
type IOther is interface(in integer question; out integer answer)

component One presents IOne {
    mine = 0
    data = new integer[50] of 1

    constructor(integer n) { mine := n }

    behaviour {
        for i = 1 .. 3 do {
            send mine on question
            receive reply from answer
            mine := reply
        }
        send true on over
        stop
    }
}

component Other presents IOther {
    constructor() { }

    behaviour {
        for i = 1 .. 3 do {
            receive one from question
            send one + 1 on answer
        }
        stop
    }
}

count = parseInt(getString())
over = new in bool
for i = 1 .. count do {
    one = new One(i)
    other = new Other()
    connect one.question to other.question
    connect other.answer to one.answer
    connect one.over to over
    receive now from over
}
printString(\"over\\n\")
";

fn built(name: &str, text: &Path) -> PathBuf {
    let program = empty_folder(&format!("placing-{name}")).join("program");
    let mut build = hearth();
    build.arg("build").arg(text).arg("-o").arg(&program);
    let found = outcome(&mut build, None).expect("it ends");
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    program
}

#[test]
fn thousands_that_come_and_go_leave_nothing() {
    let text = empty_folder("placing-short-text").join("short.isf");
    fs::write(&text, SHORT).expect("a scratch file can be written");
    let program = built("short", &text);
    // Either way what each of them leaves would be beyond the limit, were it a page. Threads'
    // stacks, of 8 MiB, count as data.
    for (carrier, pairs, limit_kib) in [("workers", 50_000, 100_000), ("threads", 10_000, 600_000)]
    {
        let log = program.with_extension(carrier);
        let mut limited = Command::new("sh");
        limited
            .arg("-c")
            .arg(format!("ulimit -d {limit_kib} && exec \"$0\""))
            .arg(&program)
            .env("HEARTH_PLACE", "talk")
            .env("HEARTH_PLACE_LOG", &log)
            .env("HEARTH_CARRIER", carrier);
        let found = outcome(&mut limited, Some(format!("{pairs}\n").as_bytes())).expect("it ends");
        assert_eq!(
            (found.code(), found.stdout.as_str(), found.stderr.as_str()),
            (Some(0), "over\n", ""),
            "{carrier}"
        );
        assert!(log.exists(), "the log is begun with the first component");
    }
}

/// Pairs that talk until they are told to end.
struct Pairs {
    child: Child,
    told: Option<ChildStdin>,
    log: PathBuf,
}

impl Pairs {
    fn start(program: &Path, carrier: &str) -> Pairs {
        let log = program.with_extension(carrier);
        let mut child = Command::new(program)
            .env("HEARTH_PLACE", "talk")
            .env("HEARTH_PLACE_LOG", &log)
            .env("HEARTH_CARRIER", carrier)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut told = child.stdin.take().expect("it is piped");
        told.write_all(b"3\n").expect("it reads");
        Pairs {
            child,
            told: Some(told),
            log,
        }
    }

    /// It goes on until something is so.
    fn run_until(&self, what: &str, is_so: impl Fn(&Pairs) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            assert!(start.elapsed() < PATIENCE, "{what}:\n{}", self.said());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// It runs on: it takes cores' time, which components that wait for each other in vain would
    /// not.
    fn go_on(&self, what: &str) {
        let before = self.ticks();
        self.run_until(what, |pairs| pairs.ticks() > before + 20);
    }

    /// The time that it has taken of cores, in the system's ticks.
    fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it runs");
        let (_, behind) = stat.rsplit_once(") ").expect("its name is in brackets");
        let fields = behind.split(' ').skip(11).take(2);
        fields
            .map(|ticks| ticks.parse::<u64>().expect("a number"))
            .sum()
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The numbers of its threads, with the CPUs that each may use.
    fn threads(&self) -> Vec<(u32, String)> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        let allowed = |task: std::io::Result<fs::DirEntry>| {
            let task = task.ok()?;
            let number = task.file_name().to_str()?.parse().ok()?;
            // Threads of some moments may be gone.
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            Some((number, line.trim().to_owned()))
        };
        tasks.filter_map(allowed).collect()
    }

    /// Restricts all threads as `taskset --all-tasks --pid` does, repeatedly: a thread created
    /// meanwhile inherits its creator's mask.
    fn restrict(&self, cores: &[usize]) {
        let mut seen = BTreeSet::new();
        while let Some((thread, _)) = self
            .threads()
            .into_iter()
            .find(|(thread, _)| seen.insert(*thread))
        {
            // One that has ended needs none.
            let _ = affinity::allow_thread(thread, cores);
        }
    }

    /// Each of its threads may use this core alone.
    fn is_on(&self, core: usize) -> bool {
        let core = core.to_string();
        self.threads().iter().all(|(_, allowed)| *allowed == core)
    }

    fn end(mut self) {
        let told = self.told.take();
        told.expect("it is asked once")
            .write_all(b"over\n")
            .expect("it reads");
        let mut said = String::new();
        let mut output = self.child.stdout.take().expect("it is piped");
        output.read_to_string(&mut said).expect("it is text");
        let status = self.child.wait().expect("it ends");
        // Each print is whole, and those of the three may come between each other: in all it is
        // thrice the word, nought and the end of a line.
        let numbers: String = said.split("wrong: ").collect();
        assert_eq!(
            (
                status.code(),
                said.matches("wrong: ").count(),
                numbers.matches('\n').count(),
                numbers.replace('\n', "").as_str(),
            ),
            (Some(0), 3, 3, "000"),
            "{said}"
        );
    }
}

/// A test that fails leaves none behind that would run for ever.
impl Drop for Pairs {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn cores_that_are_taken_away_and_given_back_while_it_runs() {
    let ours = affinity::allowed();
    let [first, second, ..] = ours[..] else {
        // There is one core for tests, and none to take away.
        return;
    };
    let program = built(
        "pairs",
        &root().join("crates/cli/tests/placing_changes/pairs.isf"),
    );
    for carrier in ["workers", "threads"] {
        let pairs = Pairs::start(&program, carrier);
        // It looked at the cores before it began its log.
        pairs.run_until("it begins", |pairs| pairs.log.exists());
        for (few, lost) in [(first, second), (second, first)] {
            pairs.restrict(&[few]);
            let told = |pairs: &Pairs| {
                pairs.said().lines().any(|line| {
                    line.split_once("may not be used any more: ")
                        .is_some_and(|(_, cores)| cores.split(", ").any(|c| c == lost.to_string()))
                })
            };
            pairs.run_until("the log tells of it", told);
            // What was decided before may have come to be after the core was taken away.
            pairs.run_until("nobody is on it", |pairs| pairs.is_on(few));
            pairs.go_on("with one core less");
            for (thread, allowed) in pairs.threads() {
                assert_eq!(allowed, few.to_string(), "thread {thread}, {carrier}");
            }
            pairs.restrict(&ours);
            pairs.run_until("the log tells that it is back", |pairs| {
                let said = pairs.said();
                let last = said.lines().rfind(|line| line.contains(": cores that "));
                last.is_some_and(|line| line.contains(&format!(" may be used: {lost}")))
            });
            pairs.go_on("with all cores");
        }
        pairs.end();
    }
}

/// A component placed by name or by a policy stays there, however long it computes: three that
/// never wait take three threads in turn, and all of those are kept on the core.
#[test]
fn whoever_computes_for_long_stays_where_it_is_placed() {
    const COMPUTING: &str = "
type IWorker is interface(out integer result)
component Worker presents IWorker {
    values = new integer[1000] of 1
    constructor() { PLACE }
    behaviour {
        for r = 1 .. 1000000 do {
            for i = 0 .. values.length - 1 do { values[i] := values[i] / 2 + r / 4 }
        }
    }
}
for i = 1 .. 3 do { worker = new Worker() }
";
    let ours = affinity::allowed();
    for (name, policy, place) in [
        ("computing-single", "single", String::new()),
        ("computing-named", "os", format!("setCore(${})", ours[0])),
    ] {
        let text = empty_folder(&format!("placing-{name}-text")).join("computing.isf");
        fs::write(&text, COMPUTING.replace("PLACE", &place))
            .expect("a scratch file can be written");
        let child = Command::new(built(name, &text))
            .env("HEARTH_PLACE", policy)
            .spawn()
            .expect("the program starts");
        let computing = Pairs {
            child,
            told: None,
            log: PathBuf::new(),
        };
        computing.run_until("three threads are kept on the core", |computing| {
            let threads = computing.threads();
            let core = ours[0].to_string();
            threads
                .iter()
                .filter(|(_, allowed)| *allowed == core)
                .count()
                >= 3
        });
    }
}
