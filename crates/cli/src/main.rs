//! The command `hearth`: arguments, wiring, printing.
//!
//! Reading order: `arguments` (the one definition behind help, completions, man pages and the
//! reference page), `commands` (one module each), `watching` (a run that is recorded),
//! `without_effect` (options that do nothing beside others), `shrink` (a failing schedule becomes a
//! plain one).
//!
//! The work is done elsewhere: `hearth-driver` builds and plans, `hearth-report` makes texts and
//! pages, `hearth-terminal` shows them and knows the ways to end badly. This crate must know
//! neither what a program means (`hearth-lang`'s business) nor what it does when it runs (the
//! runtime's).
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "this crate is one that prints")]

mod arguments;
mod commands;

mod shrink;
mod watching;
mod without_effect;

#[cfg(test)]
mod reference;

use std::process::ExitCode;

use clap::Parser;
use hearth_terminal::crash;

fn main() -> ExitCode {
    crash::install();
    let arguments = arguments::Arguments::parse_from(arguments::as_options(std::env::args_os()));
    match commands::dispatch(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
