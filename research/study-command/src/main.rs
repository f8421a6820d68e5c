//! `hearth-study`: runs the studies. People type `hearth study …`, and `hearth` hands over.
//!
//! Reading order: `study` (the commands), `course` (the common course of all studies: a bar,
//! Ctrl-C, a page, the answers in a few lines), `cache_impact` (a study with words of its own for
//! its answers), `tool` (the tools of studies, one at a time).
#![forbid(unsafe_code)]

mod cache_impact;
mod course;
mod study;
mod tool;

use std::process::ExitCode;

use clap::Parser;
use hearth_study_arguments::Study;

/// Messages call the program as people do.
#[derive(Parser, Debug)]
#[command(
    name = "hearth-study",
    bin_name = "hearth study",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(flatten)]
    study: Study,
}

fn main() -> ExitCode {
    hearth_terminal::crash::install();
    match study::study(&Arguments::parse().study.action) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
