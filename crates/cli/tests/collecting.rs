//! Collections in simulations: random programs whose components are made, handed on, connected,
//! used and forgotten end the same, whenever components are collected meanwhile; and they show the
//! faults planted in the collection.
//!
//! `HEARTH_TEST_DEEP=1` runs a million rounds of theirs, each by a schedule of its own;
//! `HEARTH_COLLECTING` is the number of the only program to run.

mod support;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use support::{Outcome, empty_folder, hearth, outcome, root};

/// Has the simulator decide between steps whether to collect. The time means nothing to it.
const OFTEN: (&str, &str) = ("HEARTH_COLLECT", "20");

/// A cell counts its uses and tells the number to who asks. A relay passes the question on.
const CELLS: &str = "\
type ICell is interface(in out integer ask)
type IRelay is interface(in out integer ask ; out out integer further)
component Cell presents ICell {
    count = 0
    constructor() { }
    behaviour {
        receive reply from ask
        count := count + 1
        send count on reply
    }
}
component Relay presents IRelay {
    constructor() { }
    behaviour {
        receive reply from ask
        send reply on further
    }
}
proc ring() {
    a = new Relay()
    b = new Relay()
    connect a.further to b.ask
    connect b.further to a.ask
}
proc alone() { a = new Cell() }
";

/// Cells and half-channels that a driver keeps.
const SLOTS: usize = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((word ^ (word >> 31)) % end as u64) as usize
    }
}

/// Hand-over of one driver to the next, in each round.
#[derive(Clone, Copy)]
enum Gift {
    Cell,
    Ask,
}

/// Writes a program. Two or three drivers do the same, random, in each round: they make cells, take
/// their half-channels, forget either, ask through one of them, put relays before them, hand them
/// to the next driver, and leave garbage. In the end each driver sends the sum of all answers.
///
/// The sum of all sums does not depend on the schedule: each cell counts from one, whoever asks. A
/// cell that is stopped while somebody can ask it leaves that one waiting. After the last
/// collections no cell must be left, or the program ends in a deadlock. One collection would not
/// do: it may fall into another, and each takes the other for somebody alive.
fn program(number: u64, rounds: usize) -> String {
    let mut random = Random(number);
    let random = &mut random;
    let mut text = format!("// Random program {number}.\n{CELLS}");
    let drivers = 2 + random.below(2);
    let gifts: Vec<Vec<Gift>> = (0..drivers)
        .map(|driver| {
            let count = if driver + 1 < drivers {
                1 + random.below(3)
            } else {
                0
            };
            let kinds = [Gift::Cell, Gift::Ask];
            (0..count).map(|_| kinds[random.below(2)]).collect()
        })
        .collect();
    let _ = writeln!(
        text,
        "type IDriver is interface(in ICell cells ; in in out integer asks ; out ICell give ; out in \
         out integer giveAsk ; out integer sum)"
    );
    for driver in 0..drivers {
        let taken = if driver > 0 {
            &gifts[driver - 1][..]
        } else {
            &[]
        };
        write_driver(&mut text, driver, taken, &gifts[driver], rounds, random);
    }
    for driver in 0..drivers {
        let _ = writeln!(text, "d{driver} = new Driver{driver}()");
        let _ = writeln!(text, "s{driver} = new in integer");
        let _ = writeln!(text, "connect d{driver}.sum to s{driver}");
    }
    for driver in 1..drivers {
        let before = driver - 1;
        let _ = writeln!(text, "connect d{before}.give to d{driver}.cells");
        let _ = writeln!(text, "connect d{before}.giveAsk to d{driver}.asks");
    }
    let _ = writeln!(text, "all = new integer[1] of 0");
    for driver in 0..drivers {
        let _ = writeln!(text, "receive n{driver} from s{driver}");
        let _ = writeln!(text, "all[0] := all[0] + n{driver}");
    }
    text.push_str(
        "printInt(all[0])\nprintString(\"\\n\")\ntick = new in bool\nfor i = 1 .. 20 do {\n    \
         setTimer(tick, 0.05, false)\n    receive one from tick\n    all[0] := collectComponents()\n}\n",
    );
    text
}

fn write_driver(
    text: &mut String,
    driver: usize,
    taken: &[Gift],
    given: &[Gift],
    rounds: usize,
    random: &mut Random,
) {
    let _ = writeln!(text, "component Driver{driver} presents IDriver {{");
    for slot in 0..SLOTS {
        let _ = writeln!(text, "    c{slot} = new Cell()\n    h{slot} = c{slot}.ask");
    }
    text.push_str(
        "    question = new out out integer\n    mine = new out integer\n    answer = new in integer\n    \
         total = 0\n    round = 0\n    constructor() { connect mine to answer }\n    behaviour {\n",
    );
    let (mut taken, mut given) = (taken.iter(), given.iter());
    let mut next = 0;
    loop {
        let own = if random.below(4) > 0 || next < 3 {
            random.below(9)
        } else {
            9
        };
        // Gifts come in between, and the rest at the end.
        let is_over = own == 9 && next > 8;
        let hand = random.below(4);
        if (hand == 0 || is_over)
            && let Some(gift) = taken.next()
        {
            take(text, *gift, next, random);
        } else if (hand == 1 || is_over)
            && let Some(gift) = given.next()
        {
            give(text, *gift, random);
        } else if is_over {
            break;
        } else {
            act(text, own, next, random);
        }
        next += 1;
    }
    let _ = writeln!(
        text,
        "        round := round + 1\n        if round == {rounds} then {{\n            send total on \
         sum\n            stop\n        }}\n    }}\n}}"
    );
}

fn take(text: &mut String, gift: Gift, number: usize, random: &mut Random) {
    let slot = random.below(SLOTS);
    let (place, port) = match gift {
        Gift::Cell => ("c", "cells"),
        Gift::Ask => ("h", "asks"),
    };
    let _ = writeln!(text, "        receive g{number} from {port}");
    let _ = writeln!(text, "        {place}{slot} := g{number}");
}

fn give(text: &mut String, gift: Gift, random: &mut Random) {
    let slot = random.below(SLOTS);
    let (place, port) = match gift {
        Gift::Cell => ("c", "give"),
        Gift::Ask => ("h", "giveAsk"),
    };
    let _ = writeln!(text, "        send {place}{slot} on {port}");
    if random.below(2) == 0 {
        forget(text, place, slot);
    }
}

fn forget(text: &mut String, place: &str, slot: usize) {
    let _ = match place {
        "c" => writeln!(text, "        c{slot} := new Cell()"),
        // Its own cell's, which it keeps.
        _ => writeln!(text, "        h{slot} := c{slot}.ask"),
    };
}

fn act(text: &mut String, action: usize, number: usize, random: &mut Random) {
    let (slot, other) = (random.below(SLOTS), random.below(SLOTS));
    let _ = match action {
        0 | 1 => ask(text, &format!("c{slot}.ask"), number),
        2 => ask(text, &format!("h{slot}"), number),
        3 => ask_and_forget(text, slot, other, number),
        4 => {
            // Only its half-channel stays.
            let _ = writeln!(text, "        h{slot} := c{other}.ask");
            writeln!(text, "        c{other} := new Cell()")
        }
        5 => {
            let before = match random.below(2) {
                0 => format!("c{other}.ask"),
                _ => format!("h{other}"),
            };
            let _ = writeln!(text, "        r{number} = new Relay()");
            let _ = writeln!(text, "        connect r{number}.further to {before}");
            writeln!(text, "        h{slot} := r{number}.ask")
        }
        6 => writeln!(text, "        ring()"),
        7 => writeln!(text, "        alone()\n        c{slot} := new Cell()"),
        _ => writeln!(text, "        total := total + 0 * collectComponents()"),
    };
}

fn ask(text: &mut String, at: &str, number: usize) -> std::fmt::Result {
    writeln!(
        text,
        "        connect question to {at}\n        send mine on question\n        receive n{number} \
         from answer\n        total := total + n{number}\n        disconnect question"
    )
}

/// Lets go of the half-channel before the answer is there: nobody may be able to ask any more, but
/// the cell has been asked.
fn ask_and_forget(text: &mut String, slot: usize, other: usize, number: usize) -> std::fmt::Result {
    writeln!(
        text,
        "        connect question to h{slot}\n        send mine on question\n        disconnect \
         question\n        h{slot} := c{other}.ask\n        receive n{number} from answer\n        \
         total := total + n{number}"
    )
}

// ---- runs -------------------------------------------------------------------------------------

fn run(file: &Path, simulate: &str, settings: &[(&str, &str)]) -> Outcome {
    let mut command = hearth();
    command
        .arg("run")
        .arg(format!("--simulate={simulate}"))
        .arg(file)
        .envs(settings.iter().copied());
    outcome(&mut command, None).expect("it ends")
}

fn written(folder: &Path, number: u64, rounds: usize) -> PathBuf {
    let file = folder.join(format!("random-{number}.isf"));
    std::fs::write(&file, program(number, rounds)).expect("a scratch folder can be written");
    file
}

fn is_deep() -> bool {
    std::env::var_os("HEARTH_TEST_DEEP").is_some()
}

#[test]
fn random_programs_end_the_same_with_collections_at_any_time() {
    let folder = empty_folder("collecting");
    let (programs, seeds, rounds) = if is_deep() {
        (100, 100, 100)
    } else {
        (6, 5, 10)
    };
    let only = std::env::var("HEARTH_COLLECTING").map(|text| text.parse().expect("a number"));
    for number in only.map_or(0..programs, |only| only..only + 1) {
        let file = written(&folder, number, rounds);
        let told = |found: &Outcome| {
            format!(
                "program {number}, kept at {}: {}",
                file.display(),
                found.stderr
            )
        };
        let wanted = run(&file, "0", &[]);
        assert_eq!(wanted.code(), Some(0), "{}", told(&wanted));
        for seed in ["1", "2"] {
            let found = run(&file, seed, &[OFTEN]);
            assert_eq!(found.code(), Some(0), "{}", told(&found));
            assert_eq!(found.stdout, wanted.stdout, "{}", told(&found));
        }
        // A cell too few leaves somebody waiting: a deadlock.
        let found = run(&file, &format!("3..{}", seeds + 2), &[OFTEN]);
        assert_eq!(found.code(), Some(0), "{}", told(&found));
    }
}

/// The corpus's programs about collection, by many schedules.
#[test]
fn programs_about_collection_end_the_same_by_any_schedule() {
    let cases = root().join("tests/insense");
    let mut count = 0;
    for entry in std::fs::read_dir(cases).expect("the corpus is there") {
        let folder = entry.expect("it can be read").path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with("collect-") {
            continue;
        }
        count += 1;
        let file = folder.join("program.isf");
        let wanted = std::fs::read_to_string(folder.join("stdout")).expect("it prints something");
        for seed in ["1", "2", "3"] {
            let found = run(&file, seed, &[]);
            assert_eq!(
                (found.code(), &found.stdout),
                (Some(0), &wanted),
                "{name}, seed {seed}"
            );
        }
        let seeds = if is_deep() { 1000 } else { 20 };
        let found = run(&file, &format!("4..{seeds}"), &[]);
        assert_eq!(found.code(), Some(0), "{name}: {}", found.stderr);
    }
    assert!(count >= 4, "{count} programs");
}

/// Each planted fault is found by one of the first programs, and the same seed without the fault
/// finds nothing.
#[test]
fn planted_faults_are_found() {
    if !cfg!(debug_assertions) {
        // Releases have no canaries.
        return;
    }
    let folder = empty_folder("collecting-canaries");
    let files: Vec<PathBuf> = (0..6).map(|number| written(&folder, number, 10)).collect();
    for canary in [
        "components-not-looked-at",
        "half-channels-not-looked-at",
        "half-channels-first",
        "no-last-look",
    ] {
        let settings = [OFTEN, ("HEARTH_CANARY", canary)];
        // One seed at a time: of a range, the failing one would be made plain.
        let runs = files
            .iter()
            .flat_map(|file| (1..=20).map(move |seed| (file, seed.to_string())));
        let found = runs
            .map(|(file, seed)| (run(file, &seed, &settings), file, seed))
            .find(|(found, ..)| found.code() != Some(0));
        let (found, file, seed) = found.unwrap_or_else(|| panic!("{canary} is not found"));
        let told = format!(
            "{canary}, seed {seed} of {}: {}",
            file.display(),
            found.stderr
        );
        assert!(found.stderr.contains("deadlock"), "{told}");
        let healthy = run(file, &seed, &[OFTEN]);
        assert_eq!(
            healthy.code(),
            Some(0),
            "without {told}\n{}",
            healthy.stderr
        );
    }
}
