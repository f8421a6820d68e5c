//! The command `hearth`: arguments, wiring, printing. It may print and exit.
//!
//! What a program means is the business of `hearth-lang`; what it does when it runs is the
//! business of the runtime it is linked with. This crate must know neither: it reads files, shows
//! diagnostics, calls the C compiler, and hands the process over to what came out.
//!
//! Reading order: `arguments` (the one definition behind help, completions, man pages and the
//! reference page), `commands` (one module each), `input` and `render` (what comes in, what is
//! shown), `toolchain` and `cache` (how a text becomes an executable),
//! `without_effect` (options that are of no use beside others), `shrink` (how a failing schedule
//! becomes a plain one). For machines: `surroundings` (this machine, read), `profiles` (which profile
//! counts), `summary` and `portrait` (a profile as text and as a page). For heaps of running programs:
//! `heaps` (what was read of them), `heap_map` (the same as a picture). For what happened in a run:
//! `watching` (a program is run, and its recording read), `run_report` (the page of it). Output, progress
//! and the ways to end badly are in `hearth-terminal`, which `hearth-study` uses, too.
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "this crate is the one that prints")]

mod arguments;
mod commands;

mod input;
mod render;
mod report;

mod columns;
mod corrections;
mod heap_map;
mod heaps;
mod placing;
mod plans;
mod portrait;
mod profiles;
mod summary;
mod surroundings;

mod expected;
mod run_report;
mod watching;

mod cache;
mod program;
mod shrink;
mod toolchain;
mod without_effect;

mod machine_here;
mod near;
#[cfg(test)]
mod reference;

use std::process::ExitCode;

use clap::Parser;
use hearth_terminal::{crash, failure, interruption, output, progress};

fn main() -> ExitCode {
    crash::install();
    let arguments = arguments::Arguments::parse_from(arguments::as_options(std::env::args_os()));
    match commands::dispatch(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
