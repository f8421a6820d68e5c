//! The places of components' data: each gives the same answers, memory is returned, and the log has
//! every block.

mod support;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use support::{Outcome, empty_folder, hearth, outcome, root};

/// Two components: one makes arrays and sends each away for good, the other reads and drops them.
/// How many is the first line of input.
const MOVED: &str = "
type IMaker is interface(out integer[] arrays)
type ITaker is interface(in integer[] arrays)

component Maker presents IMaker {
    left = 0

    constructor(integer count) { left := count }

    behaviour {
        array = new integer[100] of left
        left := left - 1
        send array on arrays
        if left == 0 then { stop }
    }
}

component Taker presents ITaker {
    left = 0
    sum = 0

    constructor(integer count) { left := count }

    behaviour {
        receive array from arrays
        sum := sum + array[99]
        left := left - 1
        if left == 0 then {
            printInt(sum)
            stop
        }
    }
}

count = parseInt(getString())
maker = new Maker(count)
taker = new Taker(count)
connect maker.arrays to taker.arrays
";

/// Components that end at once, each after it has made something.
const SHORT: &str = "
type IOne is interface(out integer number)

component One presents IOne {
    mine = new integer[50] of 1

    constructor(integer n) { mine[0] := n }

    behaviour {
        send mine[0] on number
        stop
    }
}

count = parseInt(getString())
numbers = new in integer
sum = 0
for i = 1 .. count do {
    one = new One(i % 10)
    connect one.number to numbers
    receive number from numbers
    sum := sum + number
}
printInt(sum)
";

fn written(name: &str, text: &str) -> PathBuf {
    let path = empty_folder(&format!("heaps-{name}")).join("program.isf");
    fs::write(&path, text).expect("a scratch file can be written");
    path
}

fn run(program: &PathBuf, options: &[&str], input: &str) -> Outcome {
    let mut command = hearth();
    command.arg("run").args(options).arg(program);
    outcome(&mut command, Some(input.as_bytes())).expect("it ends")
}

#[test]
fn the_ways_give_the_same_answers() {
    let moved = written("same", MOVED);
    for heaps in ["private", "shared", "system"] {
        for carrier in ["workers", "threads"] {
            for place in ["os", "spread"] {
                let options = ["--heaps", heaps, "--carrier", carrier, "--place", place];
                let ran = run(&moved, &options, "2000\n");
                assert_eq!(
                    (ran.code(), ran.stdout.as_str(), ran.stderr.as_str()),
                    (Some(0), "2001000", ""),
                    "{options:?}"
                );
            }
        }
    }
}

/// Runs a program that may have so many KiB of data, with these variables.
fn under_limit(
    program: &PathBuf,
    input: &str,
    limit_kib: u32,
    variables: &[(&str, &str)],
) -> Outcome {
    let built = program.with_extension("built");
    let mut build = hearth();
    build.arg("build").arg(program).arg("-o").arg(&built);
    let outcome_of_build = outcome(&mut build, None).expect("it ends");
    assert_eq!(
        outcome_of_build.code(),
        Some(0),
        "{}",
        outcome_of_build.stderr
    );
    let mut limited = std::process::Command::new("sh");
    limited
        .arg("-c")
        .arg(format!("ulimit -d {limit_kib} && exec \"$0\""))
        .arg(&built)
        .envs(variables.iter().copied());
    outcome(&mut limited, Some(input.as_bytes())).expect("it ends")
}

#[test]
fn memory_comes_back() {
    // 200,000 arrays of 416 bytes are 80 MB, and as many heaps of a page 800 MB.
    for (name, text, sum) in [("moved", MOVED, "20000100000"), ("short", SHORT, "900000")] {
        let program = written(name, text);
        let ran = under_limit(&program, "200000\n", 60_000, &[("HEARTH_WORKERS", "1")]);
        let sum = sum.parse::<i64>().expect("a number") as i32;
        assert_eq!(
            (ran.code(), ran.stdout, ran.stderr.as_str()),
            (Some(0), sum.to_string(), ""),
            "{name}"
        );
    }
}

/// A server makes a component for each client and forgets it: 5 KiB each. With
/// `HEARTH_TEST_DEEP=1`, ten million.
#[test]
fn a_server_that_forgets_its_clients_stays_small() {
    const CLIENTS: &str = "clients = 5000\n";
    let example = root().join("examples/09-forgotten-clients.isf");
    let text = fs::read_to_string(example).expect("the example is there");
    assert!(text.contains(CLIENTS), "{text}");
    let serving = |name, clients: u32| {
        let line = format!("clients = {clients}\n");
        written(name, &text.replace(CLIENTS, &line))
    };
    let many = match env::var_os("HEARTH_TEST_DEEP") {
        Some(_) => 10_000_000,
        None => 100_000,
    };
    for workers in ["1", "2"] {
        let program = serving("forgotten", many);
        let ran = under_limit(&program, "", 200_000, &[("HEARTH_WORKERS", workers)]);
        let sum: u32 = (1..=many).map(|client| client % 7).sum();
        assert_eq!(
            (ran.code(), ran.stdout, ran.stderr.as_str()),
            (Some(0), format!("{sum}\n"), ""),
            "{workers} workers"
        );
    }
    let program = serving("remembered", 100_000);
    let ran = under_limit(&program, "", 200_000, &[("HEARTH_COLLECT", "off")]);
    assert_ne!(ran.code(), Some(0), "the limit is no limit");
}

/// The value of a field of a line of the log.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, behind) = line.split_once(&format!("\"{name}\":"))?;
    let end = behind.find([',', '}'])?;
    Some(behind[..end].trim_matches('"'))
}

#[test]
fn the_log_tells_of_every_block() {
    let program = written("log", MOVED);
    let log = program.with_extension("log");
    let name = log.to_str().expect("a path of ours is text");
    for heaps in ["private", "shared", "system"] {
        let ran = run(&program, &["--heaps", heaps, "--heap-log", name], "20\n");
        assert_eq!(
            (ran.code(), ran.stdout.as_str()),
            (Some(0), "210"),
            "{heaps}"
        );
        let text = fs::read_to_string(&log).expect("the log is written");
        let mut alive = BTreeMap::new();
        let mut moved = 0;
        for line in text.lines() {
            let of = |name| field(line, name).unwrap_or_else(|| panic!("no {name} in {line}"));
            let (component, block) = (of("component"), of("block"));
            match of("event") {
                "allocate" => {
                    assert!(of("bytes").parse::<usize>().is_ok_and(|bytes| bytes > 0));
                    let before = alive.insert(block.to_owned(), component.to_owned());
                    assert_eq!(before, None, "{line}");
                }
                "free" => {
                    let maker = alive.remove(block);
                    assert!(maker.is_some(), "{line}");
                    moved += usize::from(maker.as_deref() != Some(component));
                }
                event => panic!("{event}"),
            }
        }
        assert_eq!(moved, 20, "{heaps}: arrays are moved, not copied");
    }
}

#[test]
fn bad_settings_are_told() {
    let program = written("bad", "printInt(1)\n");
    let mut command = hearth();
    command.env("HEARTH_HEAPS", "many").arg("run").arg(&program);
    let ran = outcome(&mut command, None).expect("it ends");
    assert_eq!(ran.code(), Some(2));
    assert_eq!(
        ran.stderr,
        "hearth: HEARTH_HEAPS=\"many\" is not understood; it takes private, shared or system\n"
    );
    let nowhere = run(
        &written("nowhere", MOVED),
        &["--heap-log", "/nonexistent/log"],
        "1\n",
    );
    assert_eq!(nowhere.code(), Some(3));
    assert_eq!(
        nowhere.stderr,
        "hearth: cannot write /nonexistent/log: there is no directory /nonexistent\n"
    );
}
