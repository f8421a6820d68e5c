//! The checker's messages about the wrong program of each story, as prose.
//!
//! `HEARTH_BLESS=1` writes the golden file anew; read the difference before keeping it.

mod support;

use hearth_lang::codes;
use std::path::Path;
use support::{check, fences, prose};

#[test]
fn messages_are_as_blessed() {
    let mut said = String::new();
    for entry in codes::semantic::ENTRIES {
        for (info, text) in fences(entry.story) {
            if !info.starts_with("insense,") {
                continue;
            }
            for diagnostic in &check(&text).diagnostics {
                let span = diagnostic.primary.span;
                let at = &text[span.start as usize..span.end as usize];
                said.push_str(&format!("at `{}`\n{}\n\n", at.trim(), prose(diagnostic)));
            }
        }
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check_messages.txt");
    if std::env::var_os("HEARTH_BLESS").is_some() {
        std::fs::write(&golden, &said).expect("the golden file can be written");
    }
    let blessed = std::fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(said, blessed, "HEARTH_BLESS=1 accepts these messages");
}
