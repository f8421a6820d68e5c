//! The study as the engine runs it: which programs there are, the servers of a round, and a run.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hearth_sys::System;
use hearth_sys::clock::Clock;

use super::kinds::MEMCACHED;
use super::measure::{Bench, Setup};
use super::options::{Experiment, MemcachedOptions};
use super::plan::{Case, MEMCASLAP, data, rounds};
use super::results::{Results, Site};
use super::servers::{CACHET, Memcached, There};
use super::{page, verdict};
use crate::StudyError;
use crate::judging::JudgedClaim;
use crate::pages::counted;
use crate::results::File;
use crate::study::{Ended, Round, Study};

impl Study for Memcached {
    const NAME: &'static str = "memcached";
    const FORMAT: u32 = 1;
    const COLUMNS: &'static str = "reads,load,threads,server,bound";
    type Case = Case;
    type Options = MemcachedOptions;
    type Site = Site;

    fn site(
        &mut self,
        system: &dyn System,
        options: &MemcachedOptions,
    ) -> Result<Site, StudyError> {
        self.there = Some(There::look(options.cachet.as_deref())?);
        let cores = system.allowed().map_err(StudyError::machine)?;
        Ok(Site::new(cores))
    }

    fn differs(was: &Site, is: &Site) -> Option<&'static str> {
        (was.cores != is.cores).then_some("the machine")
    }

    fn begin(
        &mut self,
        system: &dyn System,
        _folder: &Path,
        results: &mut Results,
    ) -> Result<(), StudyError> {
        results.site.ns_per_tick = Clock::calibrate(system, 20).ns_per_tick();
        results.about.note(format!(
            "{}, where the source had 64: servers and generators share them all, so that rates are those of both \
             together; the server's time for a request is its own",
            counted(results.site.cores.len(), "core")
        ));
        let there = self.there.as_ref();
        let cachet = there.and_then(|there| there.cachet.as_ref());
        for (name, version, without) in [
            (
                MEMCACHED,
                there.and_then(|there| there.memcached.as_deref()),
                "install it, for example: apt-get install memcached",
            ),
            (
                CACHET,
                cachet.map(|(_, version)| version.as_str()),
                "build it, cargo build --release -p cachet, or give --cachet FILE",
            ),
            (
                MEMCASLAP,
                there.and_then(|there| there.memcaslap),
                "install it, for example: apt-get install libmemcached-tools",
            ),
        ] {
            match version {
                Some(version) => {
                    let versions = &mut results.site.versions;
                    versions.insert(name.to_owned(), version.to_owned());
                }
                None => results
                    .about
                    .note(format!("there is no {name}: left out; {without}")),
            }
        }
        Ok(())
    }

    fn rounds(&mut self, results: &mut Results) -> Result<Vec<Round<Case>>, StudyError> {
        let (options, cores) = (&results.options, results.site.cores.len());
        let wanted = Experiment::ALL.into_iter().filter(|&e| options.wants(e));
        let mut plan: Vec<_> = wanted.flat_map(|e| rounds(e, options, cores)).collect();
        for round in &mut plan {
            round.cases.retain(|case| self.has(case));
        }
        Ok(plan)
    }

    /// The servers of a round run at the same time, and one of them is asked at a time.
    fn open(&mut self, cases: &[Case], results: &Results) {
        let cachet = self.there.as_ref().and_then(|there| there.cachet.as_ref());
        let bench = |case: &Case| {
            let (memory_mib, keys) = data(case.experiment, &results.options);
            let setup = Setup {
                cachet: cachet.map_or(Path::new(CACHET), |(path, _)| path),
                cores: &results.site.cores,
                memory_mib,
                keys,
                run: Duration::from_millis(results.options.run_ms(case.experiment)),
                ns_per_tick: results.site.ns_per_tick,
            };
            (case.clone(), Bench::new(case, &setup))
        };
        self.benches = cases.iter().map(bench).collect();
    }

    fn run(
        &mut self,
        _system: &dyn System,
        case: &Case,
        _run: u32,
        _results: &Results,
        _cancel: &AtomicBool,
    ) -> Result<Ended, StudyError> {
        let found = self.benches.iter().find(|(of, _)| of == case);
        let bench = found.map_or(Err("it has no server".to_owned()), |(_, bench)| {
            bench.as_ref().map_err(Clone::clone)
        });
        Ok(match bench.and_then(Bench::run) {
            Ok(figures) => Ended::Well(
                figures
                    .into_iter()
                    .map(|(figure, value)| (figure.to_owned(), value))
                    .collect(),
            ),
            Err(why) => Ended::Failed(why),
        })
    }

    fn close(&mut self) {
        self.benches.clear();
    }

    fn title(results: &Results) -> String {
        format!(
            "memcached, synchronous or asynchronous, {} cores of {}",
            results.site.cores.len(),
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
