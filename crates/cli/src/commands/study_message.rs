//! `hearth study run message-passing`.

use std::path::Path;

use hearth_machine::profile::Profile;
use hearth_studies::cache_impact::Outcome;
use hearth_studies::insense_multicore::verdict::word;
use hearth_studies::message_passing::evidence::measured;
use hearth_studies::message_passing::options::set_defect;
use hearth_studies::message_passing::results::PAGE;
use hearth_studies::message_passing::{self, Experiment, Folder, Options, Results, page};
use hearth_sys::Linux;

use crate::arguments::study::RunStudy;
use crate::failure::Failure;
use crate::interruption::Interruption;
use crate::output;
use crate::progress::Bar;

use super::study::{failure, interrupted};

pub(super) fn run(
    arguments: &RunStudy,
    profile: Option<&Profile>,
    path: &Path,
) -> Result<(), Failure> {
    let options = options(arguments)?;
    let interruption = Interruption::watch();
    let mut bar = Bar::start();
    let found = message_passing::run(
        &Linux,
        profile,
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

fn options(arguments: &RunStudy) -> Result<Options, Failure> {
    let experiments = arguments.experiments.iter();
    let experiments: Result<_, _> = experiments.map(|text| Experiment::parse(text)).collect();
    let mut options = Options {
        quick: arguments.quick,
        repeats: arguments.repeats,
        seconds: arguments.seconds,
        experiments: experiments.map_err(failure)?,
        threads: arguments.threads.iter().map(|n| *n as usize).collect(),
        seed: arguments.seed.unwrap_or(1),
        ..Options::default()
    };
    for name in &arguments.defects {
        set_defect(&mut options.defects, name).map_err(failure)?;
    }
    Ok(options)
}

fn summary(results: &Results, page: &Path) -> String {
    let mut text = format!(
        "Locality by message passing, {} of {}\n",
        results.cores.len(),
        results.machine.processor
    );
    for verdict in measured(results).verdicts() {
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
