//! The cost of hardening: the table of `docs/malloc.md`.
//!
//! ```text
//! cargo build --release -p hearth-malloc
//! cargo run --release -p hearth-malloc --example hardening -- target/release/libhearth_malloc.so
//! ```
//!
//! Question: how many times as long does the same work take in each mode as without any? Each run
//! is a process of its own with the library preloaded; all modes take turns, once a round, and a
//! round's ratio is to its own run without. The result is the median and the middle half of all
//! rounds. Every run sums up the contents of its blocks, and all sums must agree. The seed is
//! fixed.
//!
//! Fairness: small and medium blocks only come and go, which is the worst case; `words` is more
//! like a program. One thread each.
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

const MODES: [&str; 8] = [
    "",
    "guard",
    "check",
    "zero",
    "junk",
    "guard=1000",
    "guard,check,zero",
    "all",
];
const WORKS: [&str; 4] = ["small", "medium", "large", "words"];
const ROUNDS: usize = 15;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end
    }
}

/// Replaces blocks of random sizes in random order, and writes some bytes of each. Returns a sum of
/// some.
fn exchange(live: usize, rounds: usize, sizes: [usize; 2], stride: usize) -> u64 {
    let mut random = Random(0x5eed);
    let mut blocks: Vec<Vec<u8>> = (0..live).map(|_| Vec::new()).collect();
    let mut sum = 0;
    for round in 0..rounds {
        let size = sizes[0] + random.below(sizes[1] - sizes[0]);
        let mut block = Vec::with_capacity(size);
        let room: &mut [std::mem::MaybeUninit<u8>] = block.spare_capacity_mut();
        for place in room.iter_mut().step_by(stride) {
            place.write(round as u8);
        }
        // SAFETY: the first byte is written.
        unsafe { block.set_len(1) };
        let at = random.below(live);
        sum += u64::from(blocks[at].first().copied().unwrap_or(0));
        blocks[at] = block;
    }
    sum
}

/// Counts and sorts words.
fn words() -> u64 {
    let mut random = Random(0x5eed);
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for i in 0..100_000 {
        let word = format!("word {}", random.below(20_000));
        all.entry(word).or_default().push(i.to_string());
    }
    let mut lists: Vec<_> = all.into_iter().collect();
    lists.sort_by_key(|(word, list)| (list.len(), word.clone()));
    let weigh = |(i, (word, list)): (usize, &(String, Vec<String>))| {
        (i * word.len() + list.iter().map(String::len).sum::<usize>()) as u64
    };
    lists.iter().enumerate().map(weigh).sum()
}

fn work(name: &str) -> u64 {
    match name {
        "small" => exchange(10_000, 1_000_000, [1, 256], 64),
        "medium" => exchange(200, 30_000, [4 << 10, 64 << 10], 1024),
        "large" => exchange(8, 300, [300 << 10, 2 << 20], 4096),
        "words" => words(),
        _ => panic!("no such work: {name}"),
    }
}

/// The nanoseconds of a task in a mode, and its sum.
fn run(library: &str, name: &str, mode: &str) -> (f64, String) {
    let this = std::env::current_exe().expect("it has a path");
    let output = Command::new(this)
        .args(["work", name])
        .env("LD_PRELOAD", library)
        .env("HEARTH_HARDEN", mode)
        .output()
        .expect("it can be started");
    assert!(output.status.success(), "{name} {mode}: {output:?}");
    let said = String::from_utf8(output.stdout).expect("numbers");
    let (ns, sum) = said.trim().split_once(' ').expect("two numbers");
    (ns.parse().expect("a number"), sum.to_owned())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name] = &arguments[..]
        && first == "work"
    {
        let start = Instant::now();
        let sum = work(name);
        println!("{} {sum}", start.elapsed().as_nanos());
        return;
    }
    let library = arguments.first().expect("the library's path");
    for name in WORKS {
        let mut ratios = vec![Vec::new(); MODES.len()];
        for _ in 0..ROUNDS {
            let (without, expected) = run(library, name, "");
            for (mode, ratios) in MODES.iter().zip(&mut ratios) {
                let (ns, sum) = run(library, name, mode);
                assert_eq!(sum, expected, "{name} {mode}");
                ratios.push(ns / without);
            }
        }
        for (mode, ratios) in MODES.iter().zip(&mut ratios) {
            ratios.sort_by(f64::total_cmp);
            let at = |part: usize| ratios[ROUNDS * part / 4];
            println!(
                "{name:8} {mode:18} {:5.2} ({:.2} to {:.2})",
                at(2),
                at(1),
                at(3)
            );
        }
    }
}
