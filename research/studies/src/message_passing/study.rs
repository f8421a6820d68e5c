//! The study as the engine runs it: the caches' capacities, notes on the machine, and a
//! run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hearth_machine::capture::Capture;
use hearth_machine::profile::Profile;
use hearth_machine::topology::Thread;
use hearth_sync::Mode;
use hearth_sys::{System, affinity};

use super::costs::Costs;
use super::engine::config::LINE_BYTES;
use super::engine::run as run_once;
use super::options::{Experiment, MessagePassingOptions, defects_of};
use super::plan::{Case, DISPLACEMENT_THREADS, Fit, rounds};
use super::results::{Cell, HUGE, Results, Site, figures};
use super::{distances, evidence, page};
use crate::files::Files;
use crate::judging::JudgedClaim;
use crate::pages::counted;
use crate::results::File;
use crate::study::{Case as _, Ended, Round, Study};
use crate::{StudyError, surroundings};

/// Lines of the first cache if neither a measurement nor the system gives its size: as large as
/// many are.
const CACHE_LINES: usize = 512;

/// The study. The profile says how large caches are and what transfers cost; without one the
/// system's word is taken for the sizes, and nothing is predicted.
#[derive(Debug, Default)]
pub struct MessagePassing {
    profile: Option<Profile>,
    explained: BTreeMap<String, String>,
}

impl MessagePassing {
    /// Creates the study with the machine's profile, if there is one.
    #[must_use]
    pub fn new(profile: Option<Profile>) -> MessagePassing {
        MessagePassing {
            profile,
            explained: BTreeMap::new(),
        }
    }
}

impl Study for MessagePassing {
    const NAME: &'static str = "message-passing";
    const FORMAT: u32 = 1;
    const COLUMNS: &'static str =
        "sizes,mode,threads,loops,local_lines,section_lines,modified_lines,message_bytes,defect";
    type Case = Case;
    type Options = MessagePassingOptions;
    type Site = Site;

    fn site(
        &mut self,
        system: &dyn System,
        _options: &MessagePassingOptions,
    ) -> Result<Site, StudyError> {
        let (cache_lines, second_cache_lines) = caches(system, self.profile.as_ref())?;
        Ok(Site {
            cores: surroundings::cores(system)?,
            cache_lines,
            second_cache_lines,
            costs: self.profile.as_ref().and_then(Costs::of),
            ..Site::default()
        })
    }

    fn differs(was: &Site, is: &Site) -> Option<&'static str> {
        if was.cores != is.cores {
            return Some("the machine");
        }
        (was.cache_lines != is.cache_lines).then_some("the size of the first cache")
    }

    fn begin(
        &mut self,
        _system: &dyn System,
        _folder: &Path,
        results: &mut Results,
    ) -> Result<(), StudyError> {
        // Measured since an earlier part, perhaps.
        if let Some(costs) = self.profile.as_ref().and_then(Costs::of) {
            results.site.costs = Some(costs);
        }
        conditions(results);
        let system = self.profile.as_ref().map(|profile| &profile.system);
        if let Some(cost) = system.and_then(|system| system.futex_wake_other_core_ns.as_ref()) {
            hearth_sync::set_wake_cost(Duration::from_nanos(cost.value.max(0.0) as u64));
        }
        // Threads that are started inherit it.
        affinity::allow_current(&results.site.cores).map_err(StudyError::machine)
    }

    fn rounds(&mut self, results: &mut Results) -> Result<Vec<Round<Case>>, StudyError> {
        let (cores, lines) = (results.site.cores.len(), results.site.cache_lines);
        let options = results.options.clone();
        if options.wants(Experiment::Distances) {
            // With the number of threads of the source's first named curve: more say the same of
            // more.
            let mut levels = vec![lines];
            levels.extend(results.site.second_cache_lines);
            let sizes = results.sizes(Fit::Machine);
            results.site.traced = distances::traced(sizes, &levels, 2, options.seed)?;
        }
        let wanted = Experiment::ALL.into_iter().filter(|&e| options.wants(e));
        Ok(wanted
            .flat_map(|e| rounds(e, &options, cores, lines))
            .collect())
    }

    fn run(
        &mut self,
        _system: &dyn System,
        case: &Case,
        run: u32,
        _results: &Results,
        _cancel: &AtomicBool,
    ) -> Result<Ended, StudyError> {
        Ok(match run_once(&case.config, run) {
            Ok(measured) => {
                let figures = figures(&measured);
                if case.config.mode == Mode::Auto {
                    self.explained.insert(case.words(), measured.explained);
                }
                Ended::Well(figures)
            }
            Err(error) => Ended::Failed(error.to_string()),
        })
    }

    fn end(&mut self, results: &mut Results) {
        results.site.explained.append(&mut self.explained);
        let is_small = |cell: &&Cell| cell.runs(HUGE).last().is_some_and(|huge| *huge == 0.0);
        let small = results.cells.iter().filter(is_small).count();
        if small > 0 {
            results.about.note(format!(
                "in {small} of {} cells the system did not give huge pages for all data, so that misses of the \
                 address cache are in the figures",
                results.cells.len()
            ));
        }
    }

    fn title(results: &Results) -> String {
        format!(
            "Locality by message passing, {} of {}",
            results.site.cores.len(),
            results.about.machine.processor
        )
    }

    fn verdicts(results: &Results) -> Vec<JudgedClaim> {
        evidence::measured(results).verdicts()
    }

    fn page(&self, results: &Results) -> String {
        page::page(results)
    }

    fn charts(results: &Results) -> Vec<File> {
        page::charts(results)
    }
}

/// Lines of the first two data caches: as measured, or as the system has it.
fn caches(
    system: &dyn System,
    profile: Option<&Profile>,
) -> Result<(usize, Option<usize>), StudyError> {
    let lines = |bytes: f64| (bytes / LINE_BYTES as f64).round() as usize;
    let measured = profile.map(|profile| profile.caches.as_slice());
    let measured = measured.unwrap_or_default().iter();
    let mut sizes: Vec<usize> = measured
        // A measured size within a tenth of the claimed one is the claimed one.
        .filter_map(|cache| {
            let found = cache.capacity_bytes()?;
            let claimed = cache.claimed_bytes.map(|bytes| bytes as f64);
            let is_near = |claimed: &f64| (found / claimed - 1.0).abs() < 0.1;
            Some(lines(claimed.filter(is_near).unwrap_or(found)))
        })
        .collect();
    if sizes.is_empty() {
        let capture = Capture::gather(&mut Files(system));
        let reading = capture.read().map_err(StudyError::machine)?;
        let caches = reading.topology.data_caches(Thread(0));
        sizes = caches.map(|cache| lines(cache.size.0 as f64)).collect();
    }
    let first = sizes.first().copied().filter(|lines| *lines >= 16);
    Ok((first.unwrap_or(CACHE_LINES), sizes.get(1).copied()))
}

fn conditions(results: &mut Results) {
    let used = results.site.cores.len();
    if used < DISPLACEMENT_THREADS {
        results.about.note(format!(
            "{}, where the source had 24 and put ten threads or more on as many: what takes more threads than cores \
             is not run unless asked for",
            counted(used, "core")
        ));
    }
    if results.site.costs.is_none() {
        results.about.note(
            "caches and transfers were not measured, so that nothing is predicted; `hearth probe` measures them",
        );
    }
    if let Some(more) = results.options.threads.iter().find(|n| **n > used) {
        results.about.note(format!(
            "{more} threads were asked for on {used} cores: there threads share cores, which the source's did not"
        ));
    }
    let on = defects_of(results.options.defects);
    if !on.is_empty() {
        results
            .about
            .note(format!("with defects of the listing: {}", on.join(", ")));
    }
    results.about.note(
        "the source ran inside a kernel of its own; here threads are pinned and look for their answers before \
         they sleep, and interrupts and the system's scheduler remain",
    );
}
