//! The story of each code shows the mistake it tells of, and a program without it.

mod support;

use hearth_lang::codes;
use support::{check, fences, prose};

#[test]
fn stories_of_the_checker_tell_the_truth() {
    for entry in codes::semantic::ENTRIES {
        let code = entry.code.0;
        let blocks = fences(entry.story);
        let wrong: Vec<_> = blocks
            .iter()
            .filter(|b| b.0.starts_with("insense,"))
            .collect();
        let right: Vec<_> = blocks.iter().filter(|b| b.0 == "insense").collect();
        assert!(!wrong.is_empty() && !right.is_empty(), "{code}");
        for (_, text) in wrong {
            let checked = check(text);
            let codes: Vec<_> = checked.diagnostics.iter().map(|d| d.code.0).collect();
            assert_eq!(codes, [code], "{text}\n{:#?}", checked.diagnostics);
        }
        for (_, text) in right {
            let checked = check(text);
            let said: Vec<_> = checked.diagnostics.iter().map(prose).collect();
            assert!(said.is_empty(), "{code}: {text}\n{said:#?}");
        }
    }
}

#[test]
fn stories_are_of_readable_length() {
    for entry in codes::semantic::ENTRIES {
        let lines = entry.story.lines().count();
        assert!((8..=50).contains(&lines), "{}: {lines} lines", entry.code.0);
    }
}
