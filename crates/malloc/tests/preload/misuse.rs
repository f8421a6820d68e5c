//! Misuse that the library finds, and misuse that it does not. The table of
//! `docs/internals/heap-misuse.md` must agree.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use hearth_testing::toolchain::{End, Ran};

use crate::support::{Profile, command, finish};

/// The outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The process ends: not a block of this allocator.
    Foreign,
    /// The process ends: not a block in use.
    NotABlock,
    /// It continues, and two parts of the program may share memory.
    Unseen,
    /// It continues, and the allocator is intact.
    Harmless,
}

pub(crate) const CASES: &[(&str, Found)] = &[
    ("small-twice", Found::NotABlock),
    ("small-twice-later", Found::NotABlock),
    ("small-twice-elsewhere", Found::NotABlock),
    ("small-here-and-elsewhere", Found::Unseen),
    ("medium-twice", Found::NotABlock),
    ("large-twice", Found::NotABlock),
    ("mapped-twice", Found::Foreign),
    ("small-middle", Found::NotABlock),
    ("small-odd", Found::NotABlock),
    ("small-middle-elsewhere", Found::Unseen),
    ("small-odd-elsewhere", Found::NotABlock),
    ("medium-odd", Found::Unseen),
    ("large-middle", Found::NotABlock),
    ("large-odd", Found::NotABlock),
    ("mapped-middle", Found::Foreign),
    ("stack", Found::Foreign),
    ("static", Found::Foreign),
    ("mapping", Found::Foreign),
    ("number", Found::Foreign),
    ("never-given-out", Found::NotABlock),
    ("small-realloc-after-free", Found::NotABlock),
    ("medium-realloc-after-free", Found::NotABlock),
    ("large-realloc-after-free", Found::NotABlock),
    ("large-size-after-free", Found::NotABlock),
    ("write-after-free", Found::Harmless),
    ("overflow", Found::Harmless),
];

const FOREIGN: &str = "hearth: free: 0x# was not allocated here\n";
pub(crate) const NOT_A_BLOCK: &str =
    "hearth: free: 0x# is not the start of a block in use: freed twice, or overwritten\n";
pub(crate) const NOT_A_BLOCK_OF: &str =
    "hearth: free: 0x# is not the start of a block in use: freed twice, or overwritten; heap #\n";

/// A message with `#` for its numbers.
pub(crate) fn shape(message: &str) -> String {
    let mut shape = String::new();
    for word in message.split_inclusive([' ', '\n']) {
        let plain = word.trim_end();
        let end = &word[plain.len()..];
        let is_hexadecimal = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
        match plain.strip_prefix("0x") {
            Some(digits) if digits.len() == 16 && is_hexadecimal(digits) => {
                shape.push_str("0x#");
            }
            None if plain.len() == 4 && is_hexadecimal(plain) => shape.push('#'),
            _ => shape.push_str(plain),
        }
        shape.push_str(end);
    }
    shape
}

fn outcome(case: &str) -> Found {
    outcome_of(&finish(&mut command(
        "misuse.c",
        case,
        Some(Profile::Release),
    )))
}

pub(crate) fn outcome_of(ran: &Ran) -> Found {
    let message = shape(&ran.stderr);
    match (ran.end, message.as_str()) {
        (End::Signal(SIGABRT), FOREIGN) => Found::Foreign,
        (End::Signal(SIGABRT), NOT_A_BLOCK | NOT_A_BLOCK_OF) => Found::NotABlock,
        (End::Exit(0), "") if ran.stdout == "passed\n" => Found::Unseen,
        _ => panic!("{ran:?}"),
    }
}

pub(crate) const SIGABRT: i32 = 6;

#[test]
fn misuse_is_found_as_listed() {
    let mut complaints = Vec::new();
    for &(case, expected) in CASES {
        let found = outcome(case);
        let is_as_expected =
            found == expected || (found, expected) == (Found::Unseen, Found::Harmless);
        if !is_as_expected {
            complaints.push(format!("{case}: {found:?} instead of {expected:?}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn the_page_agrees() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/heap-misuse.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let (always, _) = page
        .split_once("## With hardening")
        .expect("misuse found by hardening has a section of its own");
    let rows: BTreeSet<(String, String)> = always
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|rest| rest.split_once("` | "))
        .filter_map(|(case, rest)| {
            let verdict = rest.rsplit("| ").next()?.trim_end_matches('|').trim();
            Some((case.to_owned(), verdict.to_owned()))
        })
        .collect();
    let expected: BTreeSet<(String, String)> = CASES
        .iter()
        .map(|(case, found)| {
            let verdict = match found {
                Found::Foreign => "found: foreign",
                Found::NotABlock => "found: no block",
                Found::Unseen => "**not found**",
                Found::Harmless => "no harm to the heap",
            };
            ((*case).to_owned(), verdict.to_owned())
        })
        .collect();
    assert_eq!(rows, expected);
}
