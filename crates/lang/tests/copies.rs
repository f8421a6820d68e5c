//! Futures in the C: a program in which none is found has the same C with them and without.

use std::fs;
use std::path::{Path, PathBuf};

use hearth_lang::compile::{CompileOptions, compile};

fn programs_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            programs_below(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "isf") {
            found.push(path);
        }
    }
}

#[test]
fn without_marks_the_c_is_the_same_to_the_byte() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut programs = Vec::new();
    for folder in ["tests/insense", "tests/workloads", "examples"] {
        programs_below(&root.join(folder), &mut programs);
    }
    let (mut same, mut marked) = (0, 0);
    for program in programs {
        let text = fs::read_to_string(&program).expect("the program can be read");
        let c_with = |futures| {
            let options = CompileOptions {
                futures,
                ..CompileOptions::default()
            };
            compile(&text, "program.isf", &options).c
        };
        let (Some(without), Some(with)) = (c_with(false), c_with(true)) else {
            continue;
        };
        for word in ["hearth_piece_", "hearth_divided_", "hearth_grain_"] {
            assert!(!without.contains(word), "{}", program.display());
        }
        if with.contains("hearth_piece_") || with.contains("hearth_grain_") {
            marked += 1;
        } else {
            assert_eq!(with, without, "{}", program.display());
            same += 1;
        }
    }
    assert!(same > 200 && marked > 0, "{same} and {marked}");
}
