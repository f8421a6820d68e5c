//! The study as the engine runs it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use hearth_sys::System;

use super::matrix::Partition;
use super::options::{Experiment, OversubscriptionOptions};
use super::plan::{Case, PINNED, SOURCE, rounds};
use super::results::{Results, Site};
use super::{launch, page, simulated, verdict};
use crate::StudyError;
use crate::judging::JudgedClaim;
use crate::pages::counted;
use crate::results::File;
use crate::study::{Ended, Round, Study};

/// The study.
#[derive(Debug)]
pub struct Oversubscription {
    /// The program whose tool `oversubscribed` is A and B.
    program: PathBuf,
}

impl Oversubscription {
    /// Creates the study with the program whose tool `oversubscribed` is A and B.
    #[must_use]
    pub fn new(program: PathBuf) -> Oversubscription {
        Oversubscription { program }
    }
}

impl Study for Oversubscription {
    const NAME: &'static str = "oversubscription";
    const FORMAT: u32 = 1;
    const COLUMNS: &'static str = "way,threads,foreign";
    type Case = Case;
    type Options = OversubscriptionOptions;
    type Site = Site;

    fn site(
        &mut self,
        system: &dyn System,
        _options: &OversubscriptionOptions,
    ) -> Result<Site, StudyError> {
        let allowed = system.allowed();
        let cpus = allowed.map_err(|error| StudyError::Machine {
            why: error.to_string(),
        })?;
        Ok(Site { cpus })
    }

    fn differs(was: &Site, is: &Site) -> Option<&'static str> {
        (was != is).then_some("the machine")
    }

    fn begin(
        &mut self,
        system: &dyn System,
        _folder: &Path,
        results: &mut Results,
    ) -> Result<(), StudyError> {
        let cpus = results.cpus();
        if cpus < SOURCE.0 {
            results.about.note(format!(
                "{} and {} of B, where the source had 8 and 4",
                counted(cpus, "CPU"),
                counted(super::plan::foreign(cpus), "thread"),
            ));
        }
        let groups = system.read("/proc/sys/kernel/sched_autogroup_enabled");
        if groups.is_ok_and(|text| text.trim() == "1") {
            results.about.note(
                "the kernel groups sessions; both programs are in one, in which each thread counts alike",
            );
        }
        Ok(())
    }

    fn rounds(&mut self, results: &mut Results) -> Result<Vec<Round<Case>>, StudyError> {
        let (options, cpus) = (&results.options, results.cpus());
        let wanted = Experiment::ALL.into_iter().filter(|&e| options.wants(e));
        Ok(wanted.flat_map(|e| rounds(e, options, cpus)).collect())
    }

    fn run(
        &mut self,
        system: &dyn System,
        case: &Case,
        _run: u32,
        results: &Results,
        cancel: &AtomicBool,
    ) -> Result<Ended, StudyError> {
        if case.experiment == Experiment::Simulated {
            return Ok(Ended::Well(simulated(case)));
        }
        let ended = launch::run(&self.program, system, case, &results.options);
        // Relaxed: says only that it is to stop. An interrupted process has no figures.
        match cancel.load(Ordering::Relaxed) {
            true => Ok(Ended::Cancelled),
            false => ended,
        }
    }

    fn title(results: &Results) -> String {
        format!(
            "Oversubscription, {} of {}",
            counted(results.cpus(), "CPU"),
            results.about.machine.processor
        )
    }

    fn verdicts(results: &Results) -> Vec<JudgedClaim> {
        verdict::measured(results).verdicts()
    }

    fn page(&self, results: &Results) -> String {
        page::page(results)
    }

    fn charts(results: &Results) -> Vec<File> {
        page::charts(results)
    }
}

/// The figures of a simulated run.
#[must_use]
pub(super) fn simulated(case: &Case) -> Vec<(String, f64)> {
    let outcome = simulated::run(simulated::Scene {
        cores: SOURCE.0,
        foreign: case.foreign,
        threads: case.threads,
        is_stolen: case.way == Partition::Stealing.id(),
        moves: case.way != PINNED,
    });
    vec![
        ("time".to_owned(), outcome.time),
        ("others".to_owned(), outcome.others),
    ]
}
