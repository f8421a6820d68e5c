//! The command that finds what may run beside what.

use std::path::PathBuf;

use clap::Args;

use super::Compilation;

/// Find calls and loops whose parts share nothing, and say why others do.
///
/// Looks at each call and each counted loop that has some work to do. What is found is proved from
/// the text: a call may run beside what follows it until its result is needed, the rounds of a loop
/// beside each other, and nobody could see a difference. What is refused comes with the reason. The
/// word `beside` before a call or a `for` lets it, and so does `hearth run --futures`.
#[derive(Args, Debug)]
#[command(
    after_help = "\
Examples:
  hearth futures sort.isf
  hearth futures --found sort.isf         without what was refused
  hearth futures --sarif sort.isf > sort.sarif    for editors
  hearth futures sort.isf --patch | git apply     puts the word `beside` into it
  hearth run --futures sort.isf           runs it as if it were there",
    after_long_help = "\
Examples:
  hearth futures sort.isf
  hearth futures --found sort.isf         without what was refused
  hearth futures --sarif sort.isf > sort.sarif    for editors
  hearth futures sort.isf --patch | git apply     puts the word `beside` into it
  hearth run --futures sort.isf           runs it as if it were there

With --json standard output is one object:
  file     the name of the program as given; `<stdin>` for standard input
  found    a list of {pattern, callee, span, beside, waits, notes, marked}: the pattern is
           consecutive-calls, call-beside-statements, recursion, disjoint-parts, rounds, reduction
           or extracted-procedure; callee is null for a loop, and the new name of an extracted
           procedure; beside is the span that may run meanwhile; waits is {at, span}, with at use,
           conflict or end, and the span null at the end; marked is true if the text says `beside`
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

    /// Write a patch that puts the word `beside` before what was found, and makes procedures of
    /// statements; into OUT, or to standard output
    #[arg(
        long,
        value_name = "OUT",
        num_args = 0..=1,
        conflicts_with_all = ["json", "sarif", "found"]
    )]
    pub(crate) patch: Option<Option<PathBuf>>,

    #[command(flatten)]
    pub(crate) compilation: Compilation,
}
