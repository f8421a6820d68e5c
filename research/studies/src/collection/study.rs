//! The study as the engine runs it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use hearth_sys::System;

use super::options::{CollectionOptions, Experiment};
use super::plan::{Case, rounds};
use super::results::{Results, Site};
use super::{launch, page, verdict};
use crate::judging::JudgedClaim;
use crate::study::{Ended, Round, Study};
use crate::{StudyError, surroundings};

/// The study.
#[derive(Clone, Copy, Debug, Default)]
pub struct Collection;

impl Study for Collection {
    const NAME: &'static str = "collection";
    const FORMAT: u32 = 1;
    const COLUMNS: &'static str = "shape,size,processors,way";
    type Case = Case;
    type Options = CollectionOptions;
    type Site = Site;

    fn site(
        &mut self,
        system: &dyn System,
        _options: &CollectionOptions,
    ) -> Result<Site, StudyError> {
        // The last one: systems put their own work on the first.
        let cores = surroundings::cores(system)?;
        Ok(Site {
            core: cores.last().copied().unwrap_or(0),
        })
    }

    fn differs(was: &Site, is: &Site) -> Option<&'static str> {
        (was != is).then_some("the machine")
    }

    fn begin(
        &mut self,
        _system: &dyn System,
        _folder: &Path,
        _results: &mut Results,
    ) -> Result<(), StudyError> {
        Ok(())
    }

    fn rounds(&mut self, results: &mut Results) -> Result<Vec<Round<Case>>, StudyError> {
        let options = &results.options;
        let wanted = Experiment::ALL.into_iter().filter(|&e| options.wants(e));
        Ok(wanted.flat_map(|e| rounds(e, options)).collect())
    }

    fn run(
        &mut self,
        system: &dyn System,
        case: &Case,
        run: u32,
        results: &Results,
        cancel: &AtomicBool,
    ) -> Result<Ended, StudyError> {
        // A system that does not pin measures all the same.
        let _pinned = system.pin(results.site.core).ok();
        Ok(launch::run(system, case, run, cancel))
    }

    fn title(results: &Results) -> String {
        format!(
            "Processors and their collection, one core of {}",
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
