//! `hearth study run memcached`.

use std::path::Path;

use hearth_studies::cache_server::results::PAGE;
use hearth_studies::cache_server::verdict::Evidence;
use hearth_studies::cache_server::{Experiment, Options, Results, page, run as run_study};
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
            "memcached, synchronous or asynchronous, {} cores of {}",
            results.cores.len(),
            results.about.machine.processor
        )
    },
    claims: |results| Evidence::measured(results).verdicts(),
};

pub(crate) fn run(arguments: &RunStudy, path: &Path) -> Result<(), Failure> {
    let experiments = arguments.experiments.iter();
    let experiments: Result<_, _> = experiments.map(|text| Experiment::parse(text)).collect();
    let options = Options {
        quick: arguments.quick,
        repeats: arguments.repeats,
        experiments: experiments.map_err(failure)?,
        threads: arguments.threads.clone(),
        cachet: arguments.cachet.clone(),
    };
    conduct(path, &SHOWN, |cancel, progress| {
        run_study(&Linux, &options, path, arguments.resume, cancel, progress)
    })
}
