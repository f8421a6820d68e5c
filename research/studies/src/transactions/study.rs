//! The study as the engine runs it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use hearth_sys::System;

use super::options::{Experiment, TransactionsOptions};
use super::plan::{Case, rounds, threads};
use super::results::{Results, Site};
use super::{launch, page, verdict};
use crate::judging::JudgedClaim;
use crate::pages::counted;
use crate::results::File;
use crate::study::{Ended, Round, Study};
use crate::{StudyError, surroundings};

/// The study.
#[derive(Debug)]
pub struct Transactions {
    /// The program whose tool `transactions` makes the runs.
    program: PathBuf,
    folder: PathBuf,
}

impl Transactions {
    /// Creates the study with the program whose tool `transactions` makes the runs.
    #[must_use]
    pub fn new(program: PathBuf) -> Transactions {
        Transactions {
            program,
            folder: PathBuf::new(),
        }
    }
}

impl Study for Transactions {
    const NAME: &'static str = "transactions";
    const FORMAT: u32 = 1;
    const COLUMNS: &'static str = "program,tracing,threads";
    type Case = Case;
    type Options = TransactionsOptions;
    type Site = Site;

    fn site(
        &mut self,
        system: &dyn System,
        _options: &TransactionsOptions,
    ) -> Result<Site, StudyError> {
        Ok(Site {
            cores: surroundings::cores(system)?,
        })
    }

    fn differs(was: &Site, is: &Site) -> Option<&'static str> {
        (was != is).then_some("the machine")
    }

    fn begin(
        &mut self,
        _system: &dyn System,
        folder: &Path,
        results: &mut Results,
    ) -> Result<(), StudyError> {
        folder.clone_into(&mut self.folder);
        let cores = results.site.cores.len();
        if cores < 32 {
            results.about.note(format!(
                "{} for {} of the bank and their compressors, where the source had 24 hardware threads for 8: \
                 compressors and writers take their time from the threads that they serve",
                counted(cores, "core"),
                counted(threads(cores), "thread"),
            ));
        }
        Ok(())
    }

    fn rounds(&mut self, results: &mut Results) -> Result<Vec<Round<Case>>, StudyError> {
        let (options, cores) = (&results.options, results.site.cores.len());
        let wanted = Experiment::ALL.into_iter().filter(|&e| options.wants(e));
        Ok(wanted.flat_map(|e| rounds(e, options, cores)).collect())
    }

    fn run(
        &mut self,
        _system: &dyn System,
        case: &Case,
        run: u32,
        results: &Results,
        cancel: &AtomicBool,
    ) -> Result<Ended, StudyError> {
        let ended = launch::run(&self.program, case, run, &results.options, &self.folder);
        // Relaxed: says only that it is to stop. An interrupted process has no figures.
        match cancel.load(Ordering::Relaxed) {
            true => Ok(Ended::Cancelled),
            false => ended,
        }
    }

    fn title(results: &Results) -> String {
        format!(
            "Traces of transactions, {} of {}",
            counted(results.site.cores.len(), "core"),
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
