//! The study as the engine runs it: notes on the machine, and a run.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use hearth_sys::System;

use super::launch::{self, Cores};
use super::options::{EventPatternsOptions, Experiment};
use super::plan::{APART, Case, cases};
use super::results::{Results, Site};
use super::{page, verdict};
use crate::judging::JudgedClaim;
use crate::pages::counted;
use crate::results::File;
use crate::study::{Ended, Round, Study};
use crate::{StudyError, surroundings};

/// The study.
#[derive(Debug)]
pub struct EventPatterns {
    /// The program whose tool is the server.
    program: PathBuf,
}

impl EventPatterns {
    /// Creates the study with the program whose tool `events` is the server.
    #[must_use]
    pub fn new(program: PathBuf) -> EventPatterns {
        EventPatterns { program }
    }
}

impl Study for EventPatterns {
    const NAME: &'static str = "event-patterns";
    const FORMAT: u32 = 1;
    const COLUMNS: &'static str = "pattern,mechanism,layout,threads,work_us,timed";
    type Case = Case;
    type Options = EventPatternsOptions;
    type Site = Site;

    fn site(
        &mut self,
        system: &dyn System,
        _options: &EventPatternsOptions,
    ) -> Result<Site, StudyError> {
        Ok(Site::new(&surroundings::cores(system)?))
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
        let Site {
            server_cores,
            client_cores,
        } = &results.site;
        let (server, clients) = (server_cores.len(), client_cores.len());
        if server_cores == client_cores {
            results.about.note(
                "one core: server and clients share it, and nothing is told of threads side by side",
            );
        } else if server < 16 {
            results.about.note(format!(
                "{} for the server and {clients} for the clients, where the source had 16 each: more than {} \
                 share cores, and what threads do to each other side by side is not seen",
                counted(server, "core"),
                counted(server, "thread")
            ));
        }
        Ok(())
    }

    fn rounds(&mut self, results: &mut Results) -> Result<Vec<Round<Case>>, StudyError> {
        let options = &results.options;
        let wanted = Experiment::ALL.into_iter().filter(|&e| options.wants(e));
        let round = |experiment| Round {
            cases: cases(experiment, options),
            repeats: options.repeats(),
        };
        Ok(wanted.map(round).collect())
    }

    fn run(
        &mut self,
        _system: &dyn System,
        case: &Case,
        _run: u32,
        results: &Results,
        cancel: &AtomicBool,
    ) -> Result<Ended, StudyError> {
        let cores = cores_of(&results.site, &case.layout);
        launch::run(&self.program, case, &cores, &results.options, cancel)
    }

    fn title(results: &Results) -> String {
        format!(
            "Event servers, {} of {} for the server",
            results.site.server_cores.len(),
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

fn cores_of(site: &Site, layout: &str) -> Cores {
    let (server, clients) = (&site.server_cores, &site.client_cores);
    if layout == APART {
        return Cores {
            server: server.clone(),
            clients: clients.clone(),
        };
    }
    let mut all: Vec<usize> = server.iter().chain(clients).copied().collect();
    all.sort_unstable();
    all.dedup();
    Cores {
        server: all.clone(),
        clients: all,
    }
}
