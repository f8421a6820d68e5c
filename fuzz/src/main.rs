//! `hearth-fuzz texts|programs|sanitize|heap|sessions|file …`: see `fuzz/README.md`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command speaks to its user"
)]

use hearth_fuzz::{heap, programs, sessions, texts};
use hearth_testing::toolchain::{SANITIZERS, Toolchain};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

const USAGE: &str = "\
usage: fuzz/run texts    [--seconds N] [--seed S] [--target parse|check|format|compile]
       fuzz/run programs [--seconds N | --count N] [--seed S]
       fuzz/run sanitize [--seconds N | --count N] [--seed S]
       fuzz/run heap     [--seconds N] [--seed S] [--canary NAME]
       fuzz/run sessions [--seconds N] [--seed S]
       fuzz/run file FILE";

struct Arguments(Vec<String>);

impl Arguments {
    fn text(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|arg| arg == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }
}

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if args.is_empty() {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let command = args.remove(0);
    let args = Arguments(args);
    match command.as_str() {
        "texts" => watch_texts(&args),
        "texts-child" => child(&args),
        "programs" => try_programs(&args, &["-O1"]),
        "sanitize" => {
            let flags: Vec<&str> = ["-O1"].into_iter().chain(SANITIZERS).collect();
            try_programs(&args, &flags)
        }
        "heap" => try_heaps(&args),
        "sessions" => try_sessions(&args),
        "file" => file(&args),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// A seed unlike the last one, unless the user names one.
fn seed(args: &Arguments) -> u64 {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let fresh = clock.map_or(1, |since| since.as_millis() as u64 % 1_000_000_000);
    args.number("--seed").unwrap_or(fresh)
}

fn findings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("findings")
}

fn keep(name: &str, text: &str) {
    let path = findings().join(name);
    let kept = fs::create_dir_all(findings()).and_then(|()| fs::write(&path, text));
    match kept {
        Ok(()) => println!("kept as {}", path.display()),
        Err(error) => println!("could not be kept as {}: {error}", path.display()),
    }
}

/// Starts the child that searches, and takes over the text it dies of.
fn watch_texts(args: &Arguments) -> ExitCode {
    let seed = seed(args);
    let seconds = args.number("--seconds").unwrap_or(60);
    println!("fuzzing texts for {seconds} s from seed {seed}");
    let in_flight = std::env::temp_dir().join(format!("hearth-fuzz-{}.isf", std::process::id()));
    let mut command = Command::new(std::env::current_exe().expect("it has a path"));
    command
        .args(["texts-child", "--seed", &seed.to_string()])
        .args(["--seconds", &seconds.to_string()])
        .arg("--in-flight")
        .arg(&in_flight);
    if let Some(target) = args.text("--target") {
        command.args(["--target", target]);
    }
    let status = patiently(&mut command, Duration::from_secs(seconds), &in_flight);
    let text = fs::read_to_string(&in_flight).unwrap_or_default();
    // It lies in the temporary directory; leaving it does no harm.
    let _ = fs::remove_file(&in_flight);
    match status {
        Some(status) if status.success() => ExitCode::SUCCESS,
        Some(status) if status.code() == Some(1) => ExitCode::from(1),
        Some(status) => {
            println!("died: {status}");
            keep(&format!("crash-{seed}.isf"), &text);
            ExitCode::from(1)
        }
        None => {
            println!("a target hangs");
            keep(&format!("hang-{seed}.isf"), &text);
            ExitCode::from(1)
        }
    }
}

/// Waits for the child; None if one text occupied it too long, and it was killed.
fn patiently(command: &mut Command, time: Duration, in_flight: &Path) -> Option<ExitStatus> {
    let mut child = command.spawn().expect("it can start itself");
    let start = Instant::now();
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        let age = fs::metadata(in_flight)
            .and_then(|facts| facts.modified())
            .ok()
            .and_then(|changed| changed.elapsed().ok());
        // Shrinking writes no file and takes up to a minute. This limit is for programs that never
        // return, and counts elapsed time: a busy machine has been seen thirty times slower.
        let overdue = age.is_some_and(|age| age > texts::PATIENCE * 60);
        if overdue && start.elapsed() > time.min(Duration::from_secs(30)) {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn child(args: &Arguments) -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["tests", "examples", "crates/lang/prelude", "fuzz/corpus"];
    let corpus = texts::corpus(&folders.map(|folder| root.join(folder)));
    let time = Duration::from_secs(args.number("--seconds").unwrap_or(60));
    let in_flight = PathBuf::from(args.text("--in-flight").unwrap_or("in-flight.isf"));
    let seed = args.number("--seed").unwrap_or(1);
    // Panics are findings here and reported below.
    std::panic::set_hook(Box::new(|_| {}));
    let only = args.text("--target").map(str::to_string);
    // The command's own threads have this much.
    let searching = std::thread::Builder::new()
        .stack_size(8 << 20)
        .spawn(move || texts::search(seed, time, &corpus, only.as_deref(), &in_flight))
        .expect("a thread starts");
    match searching.join().expect("findings are caught") {
        Ok(tried) => {
            println!("{tried} texts, nothing found");
            ExitCode::SUCCESS
        }
        Err(finding) => {
            println!(
                "seed {}: {} fails: {}",
                finding.seed, finding.target, finding.message
            );
            keep(
                &format!("{}-{}.isf", finding.target, finding.seed),
                &finding.text,
            );
            println!("{}", finding.text);
            ExitCode::from(1)
        }
    }
}

fn try_programs(args: &Arguments, flags: &[&str]) -> ExitCode {
    // To ignore a known warning: --cflags -Wno-…
    let extra = args.text("--cflags").unwrap_or_default().split(' ');
    let flags: Vec<&str> = flags
        .iter()
        .copied()
        .chain(extra)
        .filter(|f| !f.is_empty())
        .collect();
    let toolchain = match Toolchain::of_this_profile(&flags) {
        Ok(toolchain) => toolchain,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
    };
    let first = seed(args);
    let count = args
        .number("--count")
        .unwrap_or(match args.number("--seconds") {
            Some(_) => u64::MAX / 2,
            None => 20,
        });
    let time = Duration::from_secs(args.number("--seconds").unwrap_or(u64::from(u32::MAX)));
    println!("random programs from seed {first}");
    let start = Instant::now();
    let (mut tried, mut bad) = (0, 0);
    for seed in first..first + count {
        if start.elapsed() > time {
            break;
        }
        tried += 1;
        if let Some((case, fault)) = programs::examine_seed(seed, &toolchain) {
            bad += 1;
            println!("seed {seed}: {}", fault.describe());
            keep(&format!("program-{seed}.isf"), &case.text);
            let time = Duration::from_secs(args.number("--shrink").unwrap_or(60));
            let smaller = programs::smaller(&case, &fault, &toolchain, time);
            keep(&format!("program-{seed}.small.isf"), &smaller.text);
            keep(&format!("program-{seed}.stdout"), &smaller.expected.stdout);
        }
    }
    println!("{tried} programs, {bad} faults");
    ExitCode::from(u8::from(bad > 0))
}

/// Tries random sequences of operations on heaps; with a planted fault, if one is named.
fn try_heaps(args: &Arguments) -> ExitCode {
    let this = std::env::current_exe().expect("it has a path");
    let target = this.ancestors().nth(2).expect("it is in a target folder");
    let canary = args.text("--canary");
    let folder = match canary {
        Some(_) => target.join("canary"),
        None => target.to_owned(),
    };
    let program = match heap::build(&folder, canary) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
    };
    let seed = seed(args);
    let time = Duration::from_secs(args.number("--seconds").unwrap_or(60));
    println!(
        "sequences on heaps for {} s from seed {seed}",
        time.as_secs()
    );
    match heap::search(&program, seed, time) {
        Ok(tried) => {
            println!("{tried} sequences, nothing found");
            ExitCode::SUCCESS
        }
        Err(finding) => {
            println!(
                "seed {} fails after {} operations: {}\nagain: {} {} {}",
                finding.seed,
                finding.operations,
                finding.message,
                program.display(),
                finding.seed,
                finding.operations
            );
            ExitCode::from(1)
        }
    }
}

/// Tries random sessions with cachet's protocol.
fn try_sessions(args: &Arguments) -> ExitCode {
    let seed = seed(args);
    let time = Duration::from_secs(args.number("--seconds").unwrap_or(60));
    println!("sessions for {} s from seed {seed}", time.as_secs());
    match sessions::search(seed, time) {
        Ok(tried) => {
            println!("{tried} sessions, nothing found");
            ExitCode::SUCCESS
        }
        Err(finding) => {
            println!("seed {} fails: {}", finding.seed, finding.message);
            ExitCode::from(1)
        }
    }
}

/// Tries a stored text again, with the messages of its panics.
fn file(args: &Arguments) -> ExitCode {
    let Some(path) = args.0.first() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => {
            eprintln!("cannot read {path}: {error}");
            return ExitCode::from(2);
        }
    };
    match texts::try_text(&text, None) {
        Ok(()) => ExitCode::SUCCESS,
        Err((target, message)) => {
            println!("{target} fails: {message}");
            ExitCode::from(1)
        }
    }
}
