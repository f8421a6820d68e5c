//! The study as the engine runs it: notes on the machine, and a run.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use hearth_machine::capture::Capture;
use hearth_sys::System;

use super::launch::{self, Bench};
use super::options::{Experiment, MonitoringOptions};
use super::peers::{self, Peers};
use super::places::{Place, places};
use super::plan::{Case, cases};
use super::results::Results;
use super::site::Site;
use super::ways::Monitor;
use super::{page, verdict};
use crate::files::Files;
use crate::judging::JudgedClaim;
use crate::results::File;
use crate::study::{Ended, Round, Study};
use crate::{StudyError, surroundings};

/// The study.
#[derive(Debug)]
pub struct Monitoring {
    bench: Bench,
}

impl Monitoring {
    /// Creates the study with the program whose tool `monitored` is monitored, and with the other
    /// monitors that are installed beside it.
    #[must_use]
    pub fn new(program: PathBuf) -> Monitoring {
        let peers = Peers::beside(&program);
        Monitoring::beside(program, peers)
    }

    /// Creates the study with other monitors.
    #[must_use]
    pub fn beside(program: PathBuf, peers: Peers) -> Monitoring {
        let folder = PathBuf::new();
        Monitoring {
            bench: Bench {
                program,
                peers,
                folder,
            },
        }
    }
}

impl Study for Monitoring {
    const NAME: &'static str = "monitoring";
    const FORMAT: u32 = 1;
    const COLUMNS: &'static str = "monitor,row,way,law,method_ns,depth";
    type Case = Case;
    type Options = MonitoringOptions;
    type Site = Site;

    fn site(
        &mut self,
        system: &dyn System,
        _options: &MonitoringOptions,
    ) -> Result<Site, StudyError> {
        let allowed = system.allowed().map_err(StudyError::machine)?;
        let reading = Capture::gather(&mut Files(system)).read();
        let topology = reading.map_err(StudyError::machine)?.topology;
        Ok(Site {
            places: places(&topology, &allowed),
            cores: surroundings::cores(system)?.len(),
            monitors: self.bench.peers.monitors(),
        })
    }

    fn differs(was: &Site, is: &Site) -> Option<&'static str> {
        if was.monitors != is.monitors {
            return Some("the monitors that are installed");
        }
        (was != is).then_some("the machine")
    }

    fn begin(
        &mut self,
        _system: &dyn System,
        folder: &Path,
        results: &mut Results,
    ) -> Result<(), StudyError> {
        folder.clone_into(&mut self.bench.folder);
        let site = &results.site;
        let mut notes: Vec<String> = site
            .lacking()
            .into_iter()
            .map(|row| {
                format!(
                    "{} ({}) is not measured: it takes {}, which the system does not show here",
                    row.id(),
                    row.words(),
                    row.need()
                )
            })
            .collect();
        for monitor in Monitor::ALL {
            if !site.monitors.contains(&monitor) {
                let name = monitor.words();
                notes.push(format!("{name} is not here; {}", peers::HINT));
            }
        }
        if results.about.machine.hypervisor.is_some() {
            notes.push(
                "which threads share a core and which cores share a cache is what the virtual machine is told"
                    .to_owned(),
            );
        }
        notes.into_iter().for_each(|note| results.about.note(note));
        Ok(())
    }

    fn rounds(&mut self, results: &mut Results) -> Result<Vec<Round<Case>>, StudyError> {
        let options = &results.options;
        let wanted = Experiment::ALL.into_iter().filter(|&e| options.wants(e));
        let round = |experiment| Round {
            cases: cases(experiment, options, &results.site),
            repeats: options.repeats(),
        };
        Ok(wanted.map(round).collect())
    }

    fn run(
        &mut self,
        system: &dyn System,
        case: &Case,
        _run: u32,
        results: &Results,
        cancel: &AtomicBool,
    ) -> Result<Ended, StudyError> {
        let of_row = |place: &&Place| place.row == case.row;
        let Some(place) = results.site.places.iter().find(of_row) else {
            let need = case.row.need();
            return Ok(Ended::Failed(format!("this machine lacks {need}")));
        };
        launch::run(&self.bench, system, case, place, &results.options, cancel)
    }

    fn title(results: &Results) -> String {
        let names = results.site.monitors.iter().map(|monitor| monitor.words());
        format!(
            "Monitoring, by {} on {}",
            names.collect::<Vec<_>>().join(", "),
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

    fn tables(results: &Results) -> Vec<File> {
        page::tables(results)
    }
}
