//! Programs written in C against the header, linked with the static library and run.

mod hand;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hand::{Outcome, build, command, finish, outcome_of};

/// Returns the program with many cases, built once.
fn cases() -> &'static PathBuf {
    static CASES: OnceLock<PathBuf> = OnceLock::new();
    CASES.get_or_init(|| build("cases"))
}

fn run(case: &str) -> Outcome {
    outcome_of(&finish(command(cases(), &[case]).spawn().unwrap()))
}

fn check(case: &str, code: i32, stdout: &str, stderr: &str) {
    let (found_code, found_stdout, found_stderr) = run(case);
    let found = (found_code, found_stdout, without_lines(&found_stderr));
    assert_eq!(
        found,
        (Some(code), stdout.to_owned(), stderr.to_owned()),
        "{case}"
    );
}

/// Strips line numbers, as in `hand.isf:12:1`, so that the test programs can be edited.
fn without_lines(text: &str) -> String {
    let mut parts = text.split("hand.isf:");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result.push_str("hand.isf");
        result.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':'));
    }
    result
}

const DEADLOCK: &str =
    "hearth: deadlock: every component is blocked, and nothing outside can wake one\n";

/// Lets two components play, with these options, on the calling thread's cores.
fn play(options: &[(&str, &str)]) {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| build("ping_pong"));
    let mut command = command(program, &[]);
    let output = finish(command.envs(options.iter().copied()).spawn().unwrap());
    let expected = (Some(0), "500500\n".to_owned(), String::new());
    assert_eq!(outcome_of(&output), expected, "{options:?}");
}

/// Plays with each carrier setting that has to do with cores.
fn play_all() {
    let spread = ("HEARTH_PLACE", "spread");
    play(&[]);
    play(&[spread]);
    play(&[("HEARTH_WORKERS", "2"), spread]);
    play(&[("HEARTH_WORKERS", "3"), ("HEARTH_PLACE", "random")]);
    play(&[("HEARTH_WORKERS", "2"), spread, ("HEARTH_SLICE", "20")]);
    play(&[("HEARTH_CARRIER", "threads"), spread]);
    play(&[
        ("HEARTH_CARRIER", "threads"),
        ("HEARTH_WORKERS", "64"),
        spread,
    ]);
}

#[test]
fn ping_pong() {
    play_all();
}

#[test]
fn more_workers_than_cores_share_them() {
    for place in ["os", "spread", "single", "random"] {
        play(&[("HEARTH_WORKERS", "64"), ("HEARTH_PLACE", place)]);
    }
    play(&[("HEARTH_WORKERS", "4096"), ("HEARTH_PLACE", "spread")]);
}

#[test]
fn one_core_is_enough() {
    let played = std::thread::spawn(|| {
        // Children of this thread may use no other core either.
        let last = *hearth_sys::affinity::allowed().last().unwrap();
        hearth_sys::affinity::pin_current(last).unwrap();
        play_all();
    });
    played.join().unwrap();
}

/// Forbids the calling thread and its children to set affinity. False if the system has no such
/// filters for this machine.
fn forbid_affinity() -> bool {
    #[repr(C)]
    struct Instruction(u16, u8, u8, u32);
    #[repr(C)]
    struct Filter(u16, *const Instruction);
    unsafe extern "C" {
        fn prctl(option: i32, ...) -> i32;
    }
    const SET_SECCOMP: i32 = 22;
    const SET_NO_NEW_PRIVILEGES: i32 = 38;
    const LOAD: u16 = 0x20;
    const SKIP_UNLESS_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7FFF_0000;
    const REFUSE: u32 = 0x0005_0000;
    const NOT_PERMITTED: u32 = 1;
    let set_affinity = match std::env::consts::ARCH {
        "x86_64" => 203,
        "aarch64" | "riscv64" => 122,
        _ => return false,
    };
    let program = [
        // The number of the system call.
        Instruction(LOAD, 0, 0, 0),
        Instruction(SKIP_UNLESS_EQUAL, 0, 1, set_affinity),
        Instruction(RETURN, 0, 0, REFUSE | NOT_PERMITTED),
        Instruction(RETURN, 0, 0, ALLOW),
    ];
    let filter = Filter(program.len() as u16, program.as_ptr());
    // SAFETY: the first call takes numbers; the second reads a filter and its program, which live
    // through the call.
    unsafe {
        prctl(SET_NO_NEW_PRIVILEGES, 1usize, 0usize, 0usize, 0usize) == 0
            && prctl(SET_SECCOMP, 2usize, &raw const filter) == 0
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that was skipped says so")]
fn cores_need_not_be_chosen() {
    let played = std::thread::spawn(|| {
        if !forbid_affinity() {
            eprintln!("skipped: the system has no filters for system calls");
            return;
        }
        let core = hearth_sys::affinity::allowed()[0];
        assert!(hearth_sys::affinity::pin_current(core).is_err());
        play_all();
    });
    played.join().unwrap();
}

#[test]
fn a_deadlock_is_reported_with_its_cycle() {
    let report = "  Left at hand.isf send on out, connected to Right.in (Right is at: send on out at hand.isf)
  Right at hand.isf send on out, connected to Left.in (Left is at: send on out at hand.isf)
  cycle: Left waits for Right waits for Left
";
    check("cycle", 1, "", &format!("{DEADLOCK}{report}"));
}

#[test]
fn instances_are_told_apart() {
    let report = "  Lonely#1 at hand.isf receive from in, connected to nothing
  Lonely#2 at hand.isf receive from in, connected to nothing
";
    check("lonely", 1, "", &format!("{DEADLOCK}{report}"));
}

#[test]
fn a_blocked_select_names_its_arms() {
    let report = "  Chooser at hand.isf select over first, second, first connected to nothing; second connected to Lonely.out (Lonely is at: receive from in at hand.isf)
  Lonely at hand.isf receive from in, connected to nothing
";
    check("choosing", 1, "", &format!("{DEADLOCK}{report}"));
}

#[test]
fn a_held_sender_names_its_holder() {
    let report = "  Keeper at hand.isf receive from in2, connected to nothing
  Left at hand.isf send on out, received and held until Keeper ends its acknowledge (receive from in2 at hand.isf)
";
    check("kept", 1, "", &format!("{DEADLOCK}{report}"));
}

#[test]
fn a_timer_nobody_waits_for_hides_no_deadlock() {
    let report = "  Deaf at hand.isf receive from in, connected to nothing\n";
    check("deaf", 1, "", &format!("{DEADLOCK}{report}"));
}

#[test]
fn uncaught_exceptions_are_told() {
    let line =
        "hearth: component Faulty ended by an uncaught DivisionByZeroException at hand.isf\n";
    check("uncaught", 1, "before\n", line);
    let line = "hearth: component Careless ended by an uncaught OperationFailedException at hand.isf index 7 is outside 0..4\n";
    check("careless", 1, "", line);
    let line = "hearth: the main sequence ended by an uncaught OperationFailedException at hand.isf there is no such case\n";
    check("nonesuch", 1, "", line);
}

#[test]
fn blocked_components_are_stopped() {
    check("stopping", 0, &"killed\n".repeat(100), "");
}

#[test]
fn an_acknowledge_releases_or_refuses() {
    let (code, stdout, stderr) = run("acknowledging");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(
        ["refused\n6\ntaken\n"].contains(&stdout.as_str()),
        "{stdout}"
    );
}

#[test]
fn select_takes_everything_and_has_a_default() {
    check("selecting", 0, "1000\ndefault\n", "");
}

#[test]
fn timers_tick() {
    check("ticking", 0, "tick\ntick\ntick\ndone\n", "");
}

#[test]
fn values_are_copied_deeply_and_moved_when_unique() {
    check("copying", 0, "copied\n", "");
    check("giving", 0, "gift\n3\n", "");
}

#[test]
fn pending_sends_survive_disconnection() {
    check("rewiring", 0, "3\n", "");
}

#[test]
fn passes_are_counted() {
    let child = command(cases(), &["passing"])
        .env("HEARTH_PASSES", "3")
        .spawn()
        .unwrap();
    assert_eq!(
        outcome_of(&finish(child)),
        (Some(0), "1\n2\n3\n".to_owned(), String::new())
    );
}

#[test]
fn every_placement_runs() {
    for place in ["os", "spread", "single", "random", "steal", "talk"] {
        let mut command = command(cases(), &["selecting"]);
        let child = command
            .env("HEARTH_PLACE", place)
            .env("HEARTH_SEED", "3")
            .spawn()
            .unwrap();
        let expected = (Some(0), "1000\ndefault\n".to_owned(), String::new());
        assert_eq!(outcome_of(&finish(child)), expected, "{place}");
    }
}

#[test]
fn arguments_reach_the_program() {
    let output = finish(command(cases(), &["arguments", "", "a b"]).spawn().unwrap());
    assert_eq!(
        outcome_of(&output),
        (Some(0), "arguments\n\na b\n".to_owned(), String::new())
    );
}

#[test]
fn bad_options_are_refused() {
    let child = command(cases(), &["passing"])
        .env("HEARTH_PASSES", "0")
        .spawn()
        .unwrap();
    let line =
        "hearth: HEARTH_PASSES=\"0\" is not understood; it takes a number of passes from 1 up\n";
    assert_eq!(
        outcome_of(&finish(child)),
        (Some(2), String::new(), line.to_owned())
    );
}

#[test]
fn input_at_its_end_wakes_nobody() {
    let report = "  Input at hand.isf wait for input, which nothing can end\n";
    let mut child = command(cases(), &["reading"]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"Ada\n").unwrap();
    let (code, stdout, stderr) = outcome_of(&finish(child));
    let found = (code, stdout.as_str(), without_lines(&stderr));
    assert_eq!(
        found,
        (Some(1), "name?\nAda\n", format!("{DEADLOCK}{report}"))
    );
}

/// Starts a case that never ends, waits for its first line, and sends it signals.
fn interrupt(signals: &[&str]) -> std::process::ExitStatus {
    let mut child = command(cases(), &["signalled"]).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    for &signal in signals {
        let status = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(status.unwrap().success());
    }
    let output = finish(child);
    let expected = "buffered\n";
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        expected,
        "written at the end"
    );
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    output.status
}

#[test]
fn signals_stop_everything() {
    assert_eq!(interrupt(&["-INT"]).code(), Some(130));
    assert_eq!(interrupt(&["-TERM"]).code(), Some(143));
}

#[test]
fn a_reader_that_leaves_ends_the_program_quietly() {
    let mut child = command(cases(), &["printing"]).spawn().unwrap();
    drop(child.stdout.take());
    let (code, _, stderr) = outcome_of(&finish(child));
    assert_eq!((code, stderr.as_str()), (Some(141), ""));
}

#[test]
fn a_full_disk_is_told() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let child = command(cases(), &["printing"])
        .stdout(full)
        .spawn()
        .unwrap();
    let (code, _, stderr) = outcome_of(&finish(child));
    assert_eq!(code, Some(3));
    assert_eq!(
        stderr,
        "hearth: could not write the program's output (No space left on device (os error 28)); \
         make room or write it elsewhere, then run again\n"
    );
}

/// Runs a case with little address space, and a thread for each component.
fn run_cramped(case: &str) -> (Option<i32>, String) {
    let script = format!(
        "ulimit -v 2000000; HEARTH_CARRIER=threads exec {} {case}",
        cases().display()
    );
    let output = finish(command(Path::new("sh"), &["-c", &script]).spawn().unwrap());
    let (code, _, stderr) = outcome_of(&output);
    (code, stderr)
}

#[test]
fn memory_and_threads_that_run_out_are_told() {
    let (code, line) = run_cramped("huge");
    assert_eq!(code, Some(3));
    assert_eq!(
        line,
        "hearth: out of memory: the main sequence asked for 16000000016 bytes; use smaller arrays \
         or fewer components, or raise the limit (ulimit -v)\n"
    );
    let (code, line) = run_cramped("crowd");
    assert_eq!(code, Some(3), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(
        line.contains("could not start a thread") || line.contains("out of memory"),
        "{line}"
    );
}
