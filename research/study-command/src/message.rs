//! `hearth study run message-passing`.

use std::path::Path;

use hearth_machine::profile::Profile;
use hearth_studies::message_passing::evidence::measured;
use hearth_studies::message_passing::options::set_defect;
use hearth_studies::message_passing::results::PAGE;
use hearth_studies::message_passing::{Experiment, Options, Results, page, run as run_study};
use hearth_sys::Linux;

use hearth_study_arguments::RunStudy;
use hearth_terminal::failure::Failure;

use crate::course::{Shown, conduct};
use crate::study::failure;

const SHOWN: Shown<Results> = Shown {
    page: (PAGE, page::page),
    charts: page::charts,
    title: |results| {
        format!(
            "Locality by message passing, {} of {}",
            results.cores.len(),
            results.about.machine.processor
        )
    },
    claims: |results| measured(results).verdicts(),
};

pub(crate) fn run(
    arguments: &RunStudy,
    profile: Option<&Profile>,
    path: &Path,
) -> Result<(), Failure> {
    let options = options(arguments)?;
    let resume = arguments.resume;
    conduct(path, &SHOWN, |cancel, progress| {
        run_study(&Linux, profile, &options, path, resume, cancel, progress)
    })
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
