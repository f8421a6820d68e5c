//! Misuse that only `HEARTH_HARDEN` finds. The second table of `docs/internals/heap-misuse.md` must
//! agree. Correct programs run unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use hearth_testing::toolchain::{End, Ran};

use crate::life::limited;
use crate::misuse::{CASES, Found, NOT_A_BLOCK, NOT_A_BLOCK_OF, SIGABRT, outcome_of, shape};
use crate::support::{Profile, command, finish, passes};

const SIGSEGV: i32 = 11;

/// The modes of the table; the first is none.
const MODES: [&str; 5] = ["", "guard", "check", "zero", "junk"];

/// The outcome of a case in a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// It continues, or faults without a message.
    Nothing,
    /// The process ends: not a block in use.
    NotABlock,
    /// It faults, with a message about the guarded block.
    Guard,
    /// The process ends: a free block was written to.
    Written,
}

use Seen::{Guard, NotABlock, Nothing, Written};

/// The outcomes by mode.
const SEEN: &[(&str, [Seen; 5])] = &[
    ("small-twice-later", [NotABlock; 5]),
    ("small-here-and-elsewhere", CHECKED),
    ("small-middle-elsewhere", CHECKED),
    ("medium-odd", CHECKED),
    ("write-after-free", FILLED),
    ("small-reused", FILLED),
    ("medium-reused", FILLED),
    ("overflow", FILLED),
    ("over-large", GUARDED),
    ("over-odd", GUARDED),
    ("under-large", GUARDED),
    ("over-mapped", GUARDED),
    ("under-mapped", GUARDED),
    ("large-after-free", GUARDED),
];
const CHECKED: [Seen; 5] = [Nothing, Nothing, NotABlock, NotABlock, NotABlock];
const FILLED: [Seen; 5] = [Nothing, Nothing, Nothing, Written, Written];
const GUARDED: [Seen; 5] = [Nothing, Guard, Nothing, Nothing, Nothing];

const WRITTEN: &str = "hearth: malloc: 0x# was written to while it was free: byte ";
const USED: &str = "hearth: guard: 0x# was accessed, ";

fn hardened(case: &str, mode: &str) -> Command {
    let mut command = command("misuse.c", case, Some(Profile::Release));
    command.env("HEARTH_HARDEN", mode);
    command
}

fn seen(ran: &Ran) -> Seen {
    let message = shape(&ran.stderr);
    match (ran.end, message.as_str()) {
        (End::Exit(0), "") if ran.stdout == "passed\n" => Nothing,
        (End::Signal(SIGSEGV), "") => Nothing,
        (End::Signal(SIGABRT), NOT_A_BLOCK | NOT_A_BLOCK_OF) => NotABlock,
        (End::Signal(SIGABRT), said) if said.starts_with(WRITTEN) => Written,
        (End::Signal(SIGSEGV), said) if said.starts_with(USED) => Guard,
        _ => panic!("{ran:?}"),
    }
}

#[test]
fn modes_find_the_listed_misuse() {
    let mut complaints = Vec::new();
    for (case, expected) in SEEN {
        for (mode, expected) in MODES.iter().zip(expected) {
            let found = seen(&finish(&mut hardened(case, mode)));
            if found != *expected {
                complaints.push(format!("{case}, {mode}: {found:?} instead of {expected:?}"));
            }
        }
        let any = seen(&finish(&mut hardened(case, "all")));
        if any == Nothing {
            complaints.push(format!("{case}, all: nothing"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn misuse_found_by_default_is_found_in_all_modes() {
    let always = |found: Found| matches!(found, Found::Foreign | Found::NotABlock);
    for &(case, expected) in CASES.iter().filter(|(_, found)| always(*found)) {
        for mode in ["guard", "guard=50", "check", "zero", "junk", "all"] {
            let found = outcome_of(&finish(&mut hardened(case, mode)));
            assert_eq!(found, expected, "{case}, {mode}");
        }
    }
}

/// The message, with `#` for addresses.
fn said(case: &str, mode: &str) -> String {
    shape(&finish(&mut hardened(case, mode)).stderr)
}

#[test]
fn reports_describe_the_block() {
    assert_eq!(said("small-twice-later", "check"), NOT_A_BLOCK_OF);
    let written = |at: usize, of: usize| format!("{WRITTEN}{at} of {of} has changed; heap #\n");
    assert_eq!(said("small-reused", "zero"), written(20, 48));
    assert_eq!(said("medium-reused", "junk"), written(10_000, 20_480));
    let used = |what: &str| format!("{USED}{what} at 0x#\n");
    assert_eq!(
        said("over-large", "guard"),
        used("0 bytes behind the end of a block of 1048576 bytes")
    );
    // Padding of up to 15 bytes lies between the end and the guard.
    assert_eq!(
        said("over-odd", "guard"),
        used("9 bytes behind the end of a block of 1048583 bytes")
    );
    assert_eq!(
        said("under-large", "guard"),
        used("1 bytes before a block of 1052672 bytes")
    );
    assert_eq!(
        said("over-mapped", "guard"),
        used("0 bytes behind the end of a block of 629145600 bytes")
    );
    assert_eq!(
        said("large-after-free", "guard"),
        used("# bytes from the start of a freed block of 1048576 bytes")
    );
}

#[test]
fn sampled_blocks_are_guarded() {
    assert_eq!(
        said("over-small", "guard=100"),
        format!("{USED}0 bytes behind the end of a block of 48 bytes at 0x#\n")
    );
    assert_eq!(
        said("small-after-free", "guard=100"),
        format!("{USED}8 bytes from the start of a freed block of 40 bytes at 0x#\n")
    );
}

#[test]
fn freed_blocks_are_wiped() {
    for mode in ["zero", "junk"] {
        passes(&mut hardened("left-behind", mode));
    }
    let ran = finish(&mut hardened("left-behind", ""));
    assert_eq!(ran.end, End::Exit(1), "{ran:?}");
}

#[test]
fn signals_that_are_not_faults_pass_through() {
    let ran = finish(&mut hardened("signal-sent", "guard"));
    assert_eq!((ran.end, ran.stderr.as_str()), (End::Signal(SIGSEGV), ""));
    passes(&mut hardened("handled", "guard"));
}

#[test]
fn unknown_modes_are_reported() {
    let ran = finish(&mut hardened("small-odd", "guard,chekc"));
    assert_eq!(ran.end, End::Signal(SIGABRT));
    assert_eq!(
        ran.stderr,
        "hearth: HEARTH_HARDEN: chekc is not a mode; give a list of guard, guard=N, check, zero and junk, \
         or all, such as HEARTH_HARDEN=guard,check\n"
    );
}

#[test]
fn real_time_mode_refuses_guard_pages() {
    let ran = finish(hardened("small-odd", "all").env("HEARTH_REAL_TIME", "32M"));
    assert_eq!(ran.end, End::Signal(SIGABRT));
    assert!(ran.stderr.ends_with(
        "hearth: HEARTH_HARDEN: guard pages need system calls, which real-time mode does not make; \
         leave out guard or HEARTH_REAL_TIME\n"
    ));
    let ran = finish(hardened("small-odd", "check,zero").env("HEARTH_REAL_TIME", "32M"));
    assert!(ran.end == End::Signal(SIGABRT), "{ran:?}");
    assert!(shape(&ran.stderr).ends_with(NOT_A_BLOCK_OF), "{ran:?}");
}

/// Guards cost a limited program no block, and samples cost few. That some blocks have none is said
/// once.
#[test]
fn guards_leave_a_limit_to_the_program() {
    const LIMITED: &str = "hearth: guard: this process's memory is limited";
    let run = |kind: &str, size: usize, mode: &str| {
        let mut command = limited("limited-count", kind, 64);
        command.env("SIZE", size.to_string());
        let ran = finish(command.env("HEARTH_HARDEN", mode));
        let count = ran.stdout.strip_suffix("\npassed\n");
        let count: Option<usize> = count.and_then(|count| count.parse().ok());
        (count.unwrap_or_else(|| panic!("{ran:?}")), ran.stderr)
    };
    for kind in ["v", "d"] {
        for size in [64, 1000, 100_000, 1 << 20, 2 << 20, 4 << 20] {
            let (without, _) = run(kind, size, "");
            for mode in ["guard", "guard=10"] {
                let (with, said) = run(kind, size, mode);
                let of = format!("{with} of {without} in blocks of {size}, {mode}, -{kind}");
                // Samples take a sixty-fourth, and less than that is lost with them.
                let least = if size > 256 << 10 { 100 } else { 95 };
                assert!(with * 100 >= without * least, "{of}");
                let lines = said.lines().count();
                assert!(lines <= 1, "{of}: {said}");
                assert!(lines == 0 || said.starts_with(LIMITED), "{of}: {said}");
                // All of these sizes fill their chunks, or are sampled.
                let is_without = size >= 1 << 20 || mode == "guard=10";
                assert_eq!(lines == 1, is_without, "{of}");
            }
        }
    }
}

/// Checks that a correct program passes in all modes.
fn harmless(source: &str, case: &str) {
    for mode in ["guard", "guard=10", "check", "zero", "junk", "all,guard=50"] {
        let mut command = command(source, case, Some(Profile::Release));
        passes(command.env("HEARTH_HARDEN", mode));
    }
    let mut command = command(source, case, Some(Profile::Development));
    passes(command.env("HEARTH_HARDEN", "all,guard=20"));
}

macro_rules! harmless {
    ($($source:literal: $($name:ident = $case:literal)*;)*) => { $($(
        #[test]
        fn $name() {
            harmless($source, $case);
        }
    )*)* };
}

harmless! {
    "conformance.c":
    alignment = "alignment"
    nothing = "nothing"
    zeroes = "zeroes"
    resizing = "resize"
    growing = "grow"
    shrinking = "shrink"
    alignments = "aligned"
    pages = "pages"
    error_numbers = "error-number"
    trimming = "trim"
    random_life = "random-life";
    "life.c":
    forks = "fork-during-churn"
    threads = "thread-churn"
    destructors = "thread-ends"
    producers = "handed-over"
    handlers = "signal-in-malloc"
    locked_memory = "locked";
    "operators.cc":
    operators = "blocks"
    the_cpp_standard_library = "library";
}

#[test]
fn the_page_agrees() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/heap-misuse.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let (_, section) = page
        .split_once("## With hardening")
        .expect("it has the table");
    let rows: BTreeMap<String, Vec<String>> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|rest| rest.split_once("` | "))
        .map(|(case, rest)| {
            let cells = rest.trim_end_matches('|').split(" | ").skip(1);
            let cells = cells.map(|cell| cell.trim().to_owned()).collect();
            (case.to_owned(), cells)
        })
        .collect();
    let word = |seen: &Seen| match seen {
        Nothing => "–",
        NotABlock => "no block",
        Guard => "guard",
        Written => "written",
    };
    let expected: BTreeMap<String, Vec<String>> = SEEN
        .iter()
        .map(|(case, seen)| {
            let cells = seen.iter().map(|seen| word(seen).to_owned()).collect();
            ((*case).to_owned(), cells)
        })
        .collect();
    assert_eq!(rows, expected);
}
