//! Runs the corpus and a few fresh inputs in every ordinary test run. The long search is
//! `./x test --deep`.

use hearth_fuzz::{programs, texts};
use hearth_testing::toolchain::{SANITIZERS, Toolchain};
use std::path::Path;

/// Any number: a fixed one makes the tests the same each time.
const SEED: u64 = 7;

fn corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["tests", "examples", "crates/lang/prelude", "fuzz/corpus"];
    texts::corpus(&folders.map(|folder| root.join(folder)))
}

/// The targets recurse into deep trees; the command has this much stack too.
fn with_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(test);
    let joined = thread.expect("a thread starts").join();
    if let Err(panic) = joined {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn every_text_of_the_corpus_passes_every_target() {
    with_stack(|| {
        let texts = corpus();
        assert!(texts.len() > 100, "only {} texts", texts.len());
        for text in texts {
            texts::try_text(&text, None)
                .unwrap_or_else(|(target, message)| panic!("{target}: {message}\n{text}"));
        }
    });
}

#[test]
fn some_broken_texts_pass_every_target() {
    with_stack(|| {
        let corpus = corpus();
        for seed in SEED..SEED + 150 {
            let text = texts::text_of(seed, &corpus);
            texts::try_text(&text, None)
                .unwrap_or_else(|(target, message)| panic!("seed {seed}: {target}: {message}"));
        }
    });
}

fn run_some(flags: &[&str], count: u64) {
    let toolchain = Toolchain::of_this_profile(flags).expect("a toolchain");
    for seed in SEED..SEED + count {
        if let Some((case, fault)) = programs::examine_seed(seed, &toolchain) {
            panic!("seed {seed}: {}\n{}", fault.describe(), case.text);
        }
    }
}

#[test]
fn random_programs_print_what_the_oracle_says() {
    run_some(&["-O1"], 4);
}

#[test]
fn random_programs_are_clean_under_sanitizers() {
    let flags: Vec<&str> = ["-O1"].into_iter().chain(SANITIZERS).collect();
    run_some(&flags, 2);
}

#[test]
fn a_wrong_answer_is_seen() {
    // A canary: the comparison must fail when the expected output is wrong.
    let toolchain = Toolchain::of_this_profile(&["-O0"]).expect("a toolchain");
    let mut case = hearth_testing::generate::case(SEED);
    case.expected.stdout.push_str("more\n");
    let fault = programs::examine(&case, &toolchain);
    assert!(matches!(fault, Some(programs::Fault::Differs { .. })));
}

#[test]
fn a_leak_is_seen() {
    // Another: the leak sanitizer must be active.
    let workshop = hearth_testing::toolchain::Workshop::new("leak").expect("a folder");
    let flags: Vec<&str> = ["-O0"].into_iter().chain(SANITIZERS).collect();
    let toolchain = Toolchain::of_this_profile(&flags).expect("a toolchain");
    let c = "#include <stdlib.h>\nint main(void) { return malloc(7) == NULL; }\n";
    let program = toolchain.build(c, workshop.path()).expect("it compiles");
    let limit = std::time::Duration::from_secs(20);
    let mut command = std::process::Command::new(program);
    let ran = hearth_testing::toolchain::run(&mut command, limit).expect("it runs");
    assert!(ran.stderr.contains("LeakSanitizer"), "{}", ran.stderr);
}
