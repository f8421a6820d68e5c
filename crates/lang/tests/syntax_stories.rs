//! The story of each code of the lexer and parser shows the mistake it tells of, and a program
//! without it.

mod support;

use hearth_lang::codes;
use support::{check, fences, prose};

/// Mistakes too large to print: four gigabytes of text, 251 levels of nesting.
const WITHOUT_EXAMPLE: &[&str] = &["E0110", "E0230"];

#[test]
fn stories_of_the_syntax_tell_the_truth() {
    let mut lies = String::new();
    for entry in codes::syntax::ENTRIES {
        let code = entry.code.0;
        let blocks = fences(entry.story);
        let wrong: Vec<_> = blocks
            .iter()
            .filter(|b| b.0.starts_with("insense,"))
            .collect();
        let right: Vec<_> = blocks.iter().filter(|b| b.0 == "insense").collect();
        assert!(!right.is_empty(), "{code}");
        assert_eq!(wrong.is_empty(), WITHOUT_EXAMPLE.contains(&code), "{code}");
        for (_, text) in wrong {
            let checked = check(text);
            let codes: Vec<_> = checked.diagnostics.iter().map(|d| d.code.0).collect();
            if codes != [code] {
                let said: Vec<_> = checked.diagnostics.iter().map(prose).collect();
                lies += &format!("{code}:\n{text}{said:#?}\n");
            }
        }
        for (_, text) in right {
            let said: Vec<_> = check(text).diagnostics.iter().map(prose).collect();
            if !said.is_empty() {
                lies += &format!("{code}:\n{text}{said:#?}\n");
            }
        }
    }
    assert!(lies.is_empty(), "{lies}");
}

#[test]
fn stories_are_of_readable_length() {
    for entry in codes::syntax::ENTRIES {
        let lines = entry.story.lines().count();
        assert!((8..=30).contains(&lines), "{}: {lines} lines", entry.code.0);
    }
}
