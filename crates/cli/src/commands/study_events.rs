//! `hearth study run event-patterns`, and the server that it measures: `hearth study tool events`.

use std::io;
use std::path::Path;
use std::time::Duration;

use hearth_studies::cache_impact::Outcome;
use hearth_studies::event_patterns::results::PAGE;
use hearth_studies::event_patterns::server::{Serving, serve};
use hearth_studies::event_patterns::verdict::Evidence;
use hearth_studies::event_patterns::{self, Experiment, Folder, Options, Results, page};
use hearth_sys::Linux;

use crate::arguments::study::{EventServer, RunStudy};
use crate::failure::Failure;
use crate::interruption::Interruption;
use crate::output;
use crate::progress::Bar;

use super::study::{failure, interrupted};

pub(super) fn run(arguments: &RunStudy, path: &Path) -> Result<(), Failure> {
    let experiments = arguments.experiments.iter();
    let experiments: Result<_, _> = experiments.map(|text| Experiment::parse(text)).collect();
    let options = Options {
        quick: arguments.quick,
        repeats: arguments.repeats,
        measure_ms: arguments.milliseconds,
        experiments: experiments.map_err(failure)?,
    };
    let hearth = std::env::current_exe()
        .map_err(|error| Failure::environment(format!("cannot find itself: {error}")))?;
    let interruption = Interruption::watch();
    let mut bar = Bar::start();
    let found = event_patterns::run(
        &Linux,
        &hearth,
        &options,
        path,
        arguments.resume,
        &interruption.flag,
        &mut |progress| bar.show(progress.fraction, &progress.what),
    );
    drop(bar);
    let (results, outcome) = found.map_err(failure)?;
    let folder = Folder::at(path);
    let html = page::page(&results);
    let page = folder.replace(PAGE, html.as_bytes()).map_err(failure)?;
    for (name, picture) in page::charts(&results) {
        folder.replace(&name, picture.as_bytes()).map_err(failure)?;
    }
    if outcome == Outcome::Cancelled {
        return Err(interrupted(&interruption, path));
    }
    output::write(summary(&results, &page))
}

fn summary(results: &Results, page: &Path) -> String {
    let mut text = format!(
        "Event servers, {} of {} for the server\n",
        results.server_cores.len(),
        results.machine.processor
    );
    for verdict in Evidence::measured(results).verdicts() {
        text += &format!("\n{}\n", verdict.claim);
        if let Some(published) = verdict.published {
            text += &format!("     published  {published}\n");
        }
        text += &format!("     here       {}: {}\n", verdict.word(), verdict.because);
        for line in &verdict.explained {
            text += &format!("                {line}\n");
        }
    }
    text += "\n";
    for note in &results.notes {
        text += &format!("note: {note}\n");
    }
    text += &format!("\nThe tables are beside the page, {}.\n", page.display());
    text
}

pub(super) fn server(arguments: &EventServer) -> Result<(), Failure> {
    let unknown = |error: event_patterns::server::UnknownName| Failure::input(error.to_string());
    let serving = Serving {
        pattern: arguments.pattern.parse().map_err(unknown)?,
        mechanism: arguments.mechanism.parse().map_err(unknown)?,
        threads: arguments.threads,
        work: Duration::from_micros(arguments.work.into()),
        cores: arguments.cores.clone(),
        is_timed: arguments.timed,
    };
    serve(&serving, io::stdin().lock(), io::stdout().lock()).map_err(failure)
}
