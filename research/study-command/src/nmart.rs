//! `hearth study run nmart`.

use std::path::Path;

use hearth_studies::nmart;
use hearth_study_arguments::RunStudy;
use hearth_sys::Linux;
use hearth_terminal::failure::Failure;

use crate::course::{Shown, failure, show};

const SHOWN: Shown<nmart::Results> = Shown {
    page: ("nmart", nmart::page::page),
    charts: |_| Vec::new(),
    title: |results| {
        format!(
            "Allocators in bounded time on {}",
            results.about.machine.processor
        )
    },
    claims: |results| nmart::verdict::Evidence::measured(results).verdicts(),
};

pub(crate) fn run(arguments: &RunStudy, path: &Path) -> Result<(), Failure> {
    let experiments = arguments.experiments.iter();
    let experiments: Result<_, _> = experiments
        .map(|text| nmart::Experiment::parse(text))
        .collect();
    let options = nmart::NmartOptions {
        quick: arguments.quick,
        repeats: arguments.repeats,
        experiments: experiments.map_err(failure)?,
        allocators: arguments.allocators.clone(),
        workloads: arguments.workloads.clone(),
        objects: arguments.objects.clone(),
    };
    show(path, &SHOWN, |cancel, progress| {
        nmart::run(&Linux, &options, path, arguments.resume, cancel, progress)
    })
}
