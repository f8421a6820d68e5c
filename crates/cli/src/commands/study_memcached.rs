//! `hearth study run memcached`.

use std::path::Path;

use hearth_studies::Outcome;
use hearth_studies::cache_server::results::PAGE;
use hearth_studies::cache_server::verdict::{Evidence, word};
use hearth_studies::cache_server::{self, Experiment, Folder, Options, Results, page};
use hearth_sys::Linux;

use crate::arguments::study::RunStudy;
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
        experiments: experiments.map_err(failure)?,
        threads: arguments.threads.clone(),
        cachet: arguments.cachet.clone(),
    };
    let interruption = Interruption::watch();
    let mut bar = Bar::start();
    let found = cache_server::run(
        &Linux,
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
        "memcached, synchronous or asynchronous, {} cores of {}\n",
        results.cores.len(),
        results.machine.processor
    );
    for verdict in Evidence::measured(results).verdicts() {
        text += &format!(
            "\n{}\n     published  {}\n     here       {}: {}\n",
            verdict.claim,
            verdict.published,
            word(verdict.answer),
            verdict.because
        );
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
