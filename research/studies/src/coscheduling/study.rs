//! The study as the engine runs it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use hearth_sys::System;

use super::options::{CoschedulingOptions, Experiment};
use super::plan::{Case, rounds};
use super::results::{Results, Site};
use super::{launch, page, published, verdict};
use crate::StudyError;
use crate::judging::JudgedClaim;
use crate::pages::counted;
use crate::study::{Ended, Round, Study};

/// The study.
#[derive(Debug)]
pub struct Coscheduling {
    /// The program whose tool `coscheduled` is the programs and their gangs.
    program: PathBuf,
}

impl Coscheduling {
    /// Creates the study with the program whose tool `coscheduled` is the programs and their gangs.
    #[must_use]
    pub fn new(program: PathBuf) -> Coscheduling {
        Coscheduling { program }
    }
}

impl Study for Coscheduling {
    const NAME: &'static str = "coscheduling";
    const FORMAT: u32 = 1;
    const COLUMNS: &'static str = "way,work,programs,threads";
    type Case = Case;
    type Options = CoschedulingOptions;
    type Site = Site;

    fn site(
        &mut self,
        system: &dyn System,
        _options: &CoschedulingOptions,
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
        _system: &dyn System,
        _folder: &Path,
        results: &mut Results,
    ) -> Result<(), StudyError> {
        let cpus = results.cpus();
        if cpus < published::CORES {
            results.about.note(format!(
                "{}, where the source had {}",
                counted(cpus, "CPU"),
                published::CORES
            ));
        }
        for tried in hearth_gang::probe() {
            if let Some(why) = tried.obstacle {
                let name = tried.back_end.name();
                results
                    .about
                    .note(format!("gangs cannot be made by {name}: {why}"));
            }
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
        let ended = launch::run(&self.program, system, case, &results.options);
        // Relaxed: says only that it is to stop. An interrupted process has no figures.
        match cancel.load(Ordering::Relaxed) {
            true => Ok(Ended::Cancelled),
            false => ended,
        }
    }

    fn title(results: &Results) -> String {
        format!(
            "Coscheduling, {} of {}",
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
}
