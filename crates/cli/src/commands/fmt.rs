//! `hearth fmt`: the standard layout.

use std::path::Path;

use hearth_driver::input::{self, Source};
use hearth_lang::format::format;
use hearth_lang::source::Sources;
use hearth_terminal::{DiagnosticPrinter, Failure, output};

use crate::arguments::Fmt;

pub(crate) fn fmt(arguments: &Fmt) -> Result<(), Failure> {
    let mut report = DiagnosticPrinter::for_terminal();
    let mut worst = Ok(());
    for file in &arguments.files {
        if let Err(failure) = one(file, arguments.check, &mut report) {
            // The other files are formatted all the same.
            if let Err(earlier) = std::mem::replace(&mut worst, Err(failure)) {
                earlier.report();
            }
        }
    }
    match (report.finish(), worst) {
        (verdict, Ok(())) => verdict,
        (_, worst) => worst,
    }
}

fn one(file: &Path, check: bool, report: &mut DiagnosticPrinter) -> Result<(), Failure> {
    let source = input::read(file)?;
    let formatted = match format(&source.text) {
        Ok(formatted) => formatted,
        Err(diagnostics) => {
            report.add(Sources::new(&source.name, &source.text), &diagnostics);
            return Ok(());
        }
    };
    if check {
        return refuse_if_changed(&source, &formatted);
    }
    if input::is_standard_input(file) {
        return output::write(formatted);
    }
    if formatted != source.text {
        output::replace(file, formatted.as_bytes())?;
    }
    Ok(())
}

fn refuse_if_changed(source: &Source, formatted: &str) -> Result<(), Failure> {
    let lines = source.text.split('\n').zip(formatted.split('\n'));
    let same = lines.take_while(|(old, new)| old == new).count();
    if source.text == formatted {
        return Ok(());
    }
    output::write(format!(
        "{}:{}: not in the standard layout\n",
        source.name,
        same + 1
    ))?;
    Err(Failure::Negative)
}
