//! Random well-typed programs through the whole compiler, run, and compared with the oracle.

use hearth_lang::compile::{CompileOptions, compile};
use hearth_testing::generate::{self, Case};
use hearth_testing::toolchain::{End, Ran, Toolchain, Workshop, run};
use hearth_testing::tree::Program;
use hearth_testing::{oracle, prune, text};
use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit. Generated programs take milliseconds; a sanitizer may slow them down many times.
const LIMIT: Duration = Duration::from_secs(20);

/// A fault found with a program.
#[derive(Debug)]
pub enum Fault {
    /// The compiler refuses a correct program.
    Refused(String),
    /// The C compiler refuses or warns.
    BadC(String),
    Differs {
        expected: String,
        ran: Ran,
    },
    /// The environment failed.
    Unfit(String),
}

/// Compiles and runs one program; None if it behaves correctly.
pub fn examine(case: &Case, toolchain: &Toolchain) -> Option<Fault> {
    let compiled = compile(&case.text, "random.isf", &CompileOptions::default());
    let Some(c) = compiled.c else {
        let mut told = String::new();
        for diagnostic in compiled.diagnostics.iter().filter(|d| d.is_error()).take(5) {
            let start = diagnostic.primary.span.start as usize;
            let line = case.text[..start.min(case.text.len())].lines().count();
            let _ = writeln!(
                told,
                "line {line}: {} {}: {}",
                diagnostic.code.0, diagnostic.title, diagnostic.primary.text
            );
        }
        return Some(Fault::Refused(told));
    };
    let workshop = match Workshop::new("random") {
        Ok(workshop) => workshop,
        Err(error) => return Some(Fault::Unfit(error)),
    };
    let program = match toolchain.build(&c, workshop.path()) {
        Ok(program) => program,
        Err(complaint) => return Some(Fault::BadC(complaint)),
    };
    let mut command = Command::new(program);
    command
        .env("ASAN_OPTIONS", "detect_leaks=1:exitcode=77")
        .env("UBSAN_OPTIONS", "print_stacktrace=1");
    if toolchain.is_sanitized() {
        // A sanitizer knows only the blocks of its own allocator, and what they refer to.
        command.env("HEARTH_HEAPS", "system");
    }
    let ran = match run(&mut command, LIMIT) {
        Ok(ran) => ran,
        Err(error) => return Some(Fault::Unfit(error)),
    };
    let right = ran.stdout == case.expected.stdout && ran.end == End::Exit(case.expected.exit_code);
    (!right).then(|| Fault::Differs {
        expected: case.expected.stdout.clone(),
        ran,
    })
}

/// Examines the program of a seed.
pub fn examine_seed(seed: u64, toolchain: &Toolchain) -> Option<(Case, Fault)> {
    let case = generate::case(seed);
    let fault = examine(&case, toolchain)?;
    Some((case, fault))
}

/// A smaller program with a fault of the same kind, found within `time`.
pub fn smaller(case: &Case, fault: &Fault, toolchain: &Toolchain, time: Duration) -> Case {
    let limit = Instant::now() + time;
    let (seed, shape) = case.draw;
    let kind = std::mem::discriminant(fault);
    let fails = |program: &Program| {
        let text = text::print(program, seed);
        // The oracle relies on correct programs.
        compile(&text, "random.isf", &CompileOptions::default())
            .c
            .as_ref()?;
        let expected = oracle::expect(program).ok()?;
        let candidate = Case {
            text,
            expected,
            ..*case
        };
        let fault = examine(&candidate, toolchain)?;
        (std::mem::discriminant(&fault) == kind).then_some(candidate)
    };
    let mut program = generate::program(seed, shape);
    let mut smallest = Case {
        text: case.text.clone(),
        expected: case.expected.clone(),
        ..*case
    };
    let mut run = prune::parts(&program) / 2;
    while run > 0 {
        let mut at = 0;
        while at < prune::parts(&program) && Instant::now() < limit {
            let candidate = prune::without(&program, at, at + run);
            match fails(&candidate) {
                Some(case) => {
                    program = candidate;
                    smallest = case;
                }
                None => at += run,
            }
        }
        run /= 2;
    }
    smallest
}

impl Fault {
    /// A description for people.
    pub fn describe(&self) -> String {
        match self {
            Fault::Refused(told) => format!("the compiler refuses a correct program:\n{told}"),
            Fault::BadC(complaint) => {
                let lines: Vec<&str> = complaint.lines().take(12).collect();
                format!("the C compiler complains:\n{}", lines.join("\n"))
            }
            Fault::Unfit(error) => format!("could not try: {error}"),
            Fault::Differs { expected, ran } => {
                let (mut wanted, mut got) = (expected.lines(), ran.stdout.lines());
                let mut line = 0;
                let (wanted, got) = loop {
                    line += 1;
                    match (wanted.next(), got.next()) {
                        (None, None) => break ("(end)", "(end)"),
                        (a, b) if a == b => {}
                        (a, b) => break (a.unwrap_or("(end)"), b.unwrap_or("(end)")),
                    }
                };
                let errors: Vec<&str> = ran.stderr.lines().take(30).collect();
                format!(
                    "ended by {:?}; output differs at line {line}\nexpected: {wanted}\nactual:   \
                     {got}\nstandard error:\n{}",
                    ran.end,
                    errors.join("\n")
                )
            }
        }
    }
}
