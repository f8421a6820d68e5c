//! `hearth study run event-patterns`, and the server that it measures: `hearth study tool events`.

use std::io;
use std::path::Path;
use std::time::Duration;

use hearth_studies::event_patterns::results::PAGE;
use hearth_studies::event_patterns::server::{Serving, UnknownName, serve};
use hearth_studies::event_patterns::verdict::Evidence;
use hearth_studies::event_patterns::{Experiment, Options, Results, page, run as run_study};
use hearth_sys::Linux;

use hearth_study_arguments::{EventServer, RunStudy};
use hearth_terminal::failure::Failure;

use crate::course::{Shown, conduct, this_program};
use crate::study::failure;

const SHOWN: Shown<Results> = Shown {
    page: (PAGE, page::page),
    charts: page::charts,
    title: |results| {
        format!(
            "Event servers, {} of {} for the server",
            results.server_cores.len(),
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
        measure_ms: arguments.milliseconds,
        experiments: experiments.map_err(failure)?,
    };
    let (program, resume) = (this_program()?, arguments.resume);
    conduct(path, &SHOWN, |cancel, progress| {
        run_study(&Linux, &program, &options, path, resume, cancel, progress)
    })
}

pub(crate) fn server(arguments: &EventServer) -> Result<(), Failure> {
    let unknown = |error: UnknownName| Failure::input(error.to_string());
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
