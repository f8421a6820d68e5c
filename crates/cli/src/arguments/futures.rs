//! The command that finds what may run beside what.

use std::path::PathBuf;

use clap::Args;

use super::Compilation;

/// Find calls and loops whose parts share nothing, and say why others do.
///
/// Looks at each call and each counted loop that has some work to do. What is found is proved from
/// the text: a call may run beside what follows it until its result is needed, the rounds of a loop
/// beside each other, and nobody could see a difference. What is refused comes with the reason. The
/// program is not changed, and nothing runs in parallel yet.
#[derive(Args, Debug)]
#[command(
    after_help = "\
Examples:
  hearth futures sort.isf
  hearth futures --found sort.isf         without what was refused
  hearth futures --sarif sort.isf > sort.sarif    for editors",
    after_long_help = "\
Examples:
  hearth futures sort.isf
  hearth futures --found sort.isf         without what was refused
  hearth futures --sarif sort.isf > sort.sarif    for editors

With --json standard output is one object:
  file     the name of the program as given; `<stdin>` for standard input
  found    a list of {pattern, callee, span, beside, waits, notes}: the pattern is
           consecutive-calls, call-beside-statements, recursion, disjoint-parts, rounds or
           reduction; callee is null for a loop; beside is the span that may run meanwhile; waits
           is {at, span}, with at use, conflict or end, and the span null at the end
  refused  a list of {reason, title, span, labels, notes}; labels are {text, span}
Spans are those of `hearth check --json`.

With --sarif it is a log in the form SARIF 2.1.0."
)]
pub(crate) struct FuturesArguments {
    /// The program; `-` reads it from standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Show only what was found
    #[arg(long)]
    pub(crate) found: bool,

    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a log for editors, in the form SARIF
    #[arg(long, conflicts_with = "json")]
    pub(crate) sarif: bool,

    #[command(flatten)]
    pub(crate) compilation: Compilation,
}
