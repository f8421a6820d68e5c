//! A claim with a steward grows and shrinks by itself, and tells its program in time.

mod support;

use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, mem, thread};

use hearth_claim::{Claim, Constraints};
use support::site;

const FOLDER: &str = "HEARTH_TEST_FOLDER";
/// Set for a process that does nothing with its claim any more.
const FORGETS: &str = "HEARTH_TEST_FORGETS";
const PATIENCE: Duration = Duration::from_secs(60);

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = env::temp_dir().join(format!("hearth-steward-{name}-{}", std::process::id()));
        fs::create_dir(&path).expect("it is new");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process whose claim has a steward; it writes a line each time that its team is resized.
struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    fn start(folder: &Path, most: u32) -> Process {
        Process::start_with(folder, most, &[])
    }

    fn start_with(folder: &Path, most: u32, variables: &[(&str, &str)]) -> Process {
        let mut command = Command::new(env::current_exe().expect("this test"));
        command.args(["--exact", "is_a_process", "--ignored", "--nocapture"]);
        command
            .env(FOLDER, folder)
            .env("HEARTH_TEST_MOST", most.to_string());
        command.envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        Process { child, lines }
    }

    /// The next size that its team is told.
    fn next_size(&mut self) -> usize {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.lines.read_line(&mut line).expect("it is read");
            assert!(read > 0, "the process has ended");
            if let Some(size) = line.strip_prefix("size ") {
                return size.trim().parse().expect("a number");
            }
        }
    }

    fn await_size(&mut self, size: usize) {
        while self.next_size() != size {}
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "a process that other tests start"]
fn is_a_process() {
    let Some(folder) = env::var_os(FOLDER) else {
        return;
    };
    let most = env::var("HEARTH_TEST_MOST").expect("a number");
    let most = most.parse().expect("a number");
    let mut claim = Claim::within(Path::new(&folder), site(), "tended").expect("it begins");
    claim.invade(Constraints::cores(1..=most)).expect("it asks");
    let team = |cpus: &[usize]| {
        let _ = writeln!(stdout(), "size {}", cpus.len());
    };
    if env::var_os(FORGETS).is_some() {
        team(&claim.cpus());
        mem::forget(claim);
        loop {
            thread::park();
        }
    }
    let _tended = claim.tend(team).expect("it is tended");
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}

/// Contents of the newest state.
fn newest(folder: &Path) -> String {
    let states = fs::read_dir(folder).expect("a folder").flatten();
    let mut states: Vec<(u64, PathBuf)> = states
        .filter_map(|entry| {
            let path = entry.path();
            let name = path.file_name()?.to_str()?.to_owned();
            let digits: String = name.chars().filter(char::is_ascii_digit).collect();
            let is_state = fs::read_to_string(&path).ok()?.contains("\nstate ");
            is_state
                .then(|| digits.parse().ok())?
                .map(|number| (number, path))
        })
        .collect();
    states.sort();
    let (_, path) = states.pop().expect("a state");
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn cores_come_and_go_with_others_needs() {
    let folder = Folder::new("needs");
    let mut greedy = Process::start(&folder.0, 8);
    greedy.await_size(8);
    let mut own = Claim::within(&folder.0, site(), "own").expect("it begins");
    let wish = Constraints::cores(3..=3);
    let grant = own.invade_within(wish, PATIENCE).expect("it asks");
    assert!(grant.is_enough());
    assert_eq!(greedy.next_size(), 5, "told before the cores were given");
    own.retreat(1).expect("it works");
    assert_eq!(greedy.next_size(), 7);
    drop(own);
    assert_eq!(greedy.next_size(), 8);
}

#[test]
fn ends_are_noticed_by_those_who_ask_nothing() {
    let folder = Folder::new("ends");
    let mut first = Process::start(&folder.0, 4);
    first.await_size(4);
    let mut second = Process::start(&folder.0, 8);
    second.await_size(4);
    let number = second.child.id();
    assert!(newest(&folder.0).contains(&format!("holder {number} ")));
    let mut shortest = Duration::MAX;
    for _ in 0..5 {
        let mut victim = Process::start(&folder.0, 1);
        // All cores are taken, but both may be asked for one.
        thread::sleep(Duration::from_millis(200));
        let number = victim.child.id();
        let is_there = || newest(&folder.0).contains(&format!("holder {number} "));
        let begin = Instant::now();
        while !is_there() {
            assert!(begin.elapsed() < PATIENCE, "it does not join");
            thread::sleep(Duration::from_millis(1));
        }
        victim.child.kill().expect("it is ours");
        let begin = Instant::now();
        while is_there() {
            assert!(begin.elapsed() < PATIENCE, "its end is not noticed");
            thread::sleep(Duration::from_millis(1));
        }
        shortest = shortest.min(begin.elapsed());
    }
    // On a busy machine most take longer.
    assert!(shortest < Duration::from_millis(100), "{shortest:?}");
    let _ = second.child.kill();
    let _ = second.child.wait();
    let mut claim = Claim::within(&folder.0, site(), "own").expect("it begins");
    let grant = claim.invade(Constraints::cores(4..=4)).expect("it asks");
    assert!(grant.is_enough());
}

#[test]
fn somebody_acts_for_a_process_that_does_not() {
    let folder = Folder::new("acts");
    let mut acted_for = Process::start_with(&folder.0, 2, &[(FORGETS, "1")]);
    acted_for.await_size(2);
    let number = acted_for.child.id();
    let wish = Constraints::cores(1..=5);
    let acting = Claim::for_process(&folder.0, site(), number, wish).expect("it has a claim");
    assert_eq!((acting.process(), acting.cores().len()), (number, 2));
    let (say, sizes) = std::sync::mpsc::channel();
    let tended = acting.tend(move |cpus: &[usize]| say.send(cpus.len()).expect("it is heard"));
    let tended = tended.expect("it is tended");
    let mut of_others: Vec<usize> = (0..2)
        .filter_map(|_| sizes.recv_timeout(PATIENCE).ok())
        .collect();
    assert_eq!(of_others, [2, 5]);
    let text = newest(&folder.0);
    assert!(
        text.contains(&format!("holder {number} ")) && text.contains("max=5"),
        "{text}"
    );
    acted_for.child.kill().expect("it is ours");
    acted_for.child.wait().expect("it ends");
    tended.wait();
    of_others.extend(sizes.try_iter());
    assert_eq!(of_others, [2, 5]);
    assert!(!newest(&folder.0).contains(&format!("holder {number} ")));
    assert!(Claim::for_process(&folder.0, site(), number, Constraints::cores(1..=1)).is_err());
}

/// A program that waits for signals itself has blocked them in its own threads only.
#[test]
fn the_steward_leaves_signals_to_the_program() {
    let folder = Folder::new("signals");
    let claim = Claim::within(&folder.0, site(), "signals").expect("it begins");
    let _tended = claim.tend(|_: &[usize]| {}).expect("it is tended");
    let status_of_steward = || {
        let threads = fs::read_dir("/proc/self/task").expect("threads").flatten();
        // A thread of another test may end meanwhile.
        let mut all =
            threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
        all.find(|status| status.starts_with("Name:\thearth-claim\n"))
    };
    let begin = Instant::now();
    // A thread names itself.
    let status = loop {
        match status_of_steward() {
            Some(status) => break status,
            None => assert!(begin.elapsed() < PATIENCE, "there is no steward"),
        }
        thread::sleep(Duration::from_millis(1));
    };
    let mut lines = status.lines();
    let blocked = lines.find_map(|line| line.strip_prefix("SigBlk:\t"));
    let blocked = u64::from_str_radix(blocked.expect("its signals"), 16).expect("a mask");
    let terminate = 1 << (hearth_sys::signal::TERMINATE - 1);
    assert!(blocked & terminate != 0, "{blocked:x}");
}

#[test]
fn a_process_may_take_its_claim_into_its_own_hands() {
    let folder = Folder::new("hands");
    let mut acted_for = Process::start(&folder.0, 2);
    acted_for.await_size(2);
    let number = acted_for.child.id();
    let wish = Constraints::cores(1..=5);
    let acting = Claim::for_process(&folder.0, site(), number, wish).expect("it has a claim");
    // It has a steward of its own, which insists on what it knows.
    acting.tend(|_: &[usize]| {}).expect("it is tended").wait();
    let text = newest(&folder.0);
    assert!(
        text.contains("max=2 back=0 cores=0,1 name=tended"),
        "{text}"
    );
}
