//! The study as the engine runs it: which placements there are, how a case is started, and a run.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use hearth_sys::{System, affinity};

use super::build::Workshop;
use super::launch::{self, Launch};
use super::layouts::CORES;
use super::options::{Experiment, InsenseMulticoreOptions};
use super::placements::{How, PLACEMENTS, Placement};
use super::plan::{C, Case, rounds};
use super::results::{Results, Site};
use super::ways::Way;
use super::workloads::Load;
use super::{misses, page, verdict};
use crate::judging::JudgedClaim;
use crate::pages::counted;
use crate::results::File;
use crate::study::{Ended, Round, Study};
use crate::{StudyError, kept, surroundings};

/// The study.
#[derive(Debug)]
pub struct InsenseMulticore {
    hearth: PathBuf,
    workshop: Option<Workshop>,
    valgrind: Option<PathBuf>,
    /// The loads of cases, by experiment and name.
    loads: Vec<(Experiment, Load)>,
}

impl InsenseMulticore {
    /// Creates the study with the `hearth` that compiles programs.
    #[must_use]
    pub fn new(hearth: PathBuf) -> InsenseMulticore {
        InsenseMulticore {
            hearth,
            workshop: None,
            valgrind: misses::valgrind(),
            loads: Vec::new(),
        }
    }

    fn workshop(&mut self) -> Result<&mut Workshop, StudyError> {
        let missing = || StudyError::machine("the study has not begun");
        self.workshop.as_mut().ok_or_else(missing)
    }
}

impl Study for InsenseMulticore {
    const NAME: &'static str = "insense-multicore";
    const FORMAT: u32 = 1;
    const COLUMNS: &'static str = "load,carrier,heaps,placement";
    type Case = Case;
    type Options = InsenseMulticoreOptions;
    type Site = Site;

    /// Picks one hardware thread of each core, of as many cores as the source's machine had.
    fn site(
        &mut self,
        system: &dyn System,
        _options: &InsenseMulticoreOptions,
    ) -> Result<Site, StudyError> {
        let mut cores = surroundings::cores(system)?;
        cores.truncate(CORES);
        Ok(Site {
            cores,
            loads: Vec::new(),
        })
    }

    fn differs(was: &Site, is: &Site) -> Option<&'static str> {
        (was.cores != is.cores).then_some("the machine")
    }

    fn begin(
        &mut self,
        _system: &dyn System,
        folder: &Path,
        results: &mut Results,
    ) -> Result<(), StudyError> {
        let used = results.site.cores.len();
        if used < CORES {
            results.about.note(format!(
                "{}, where the source had four: what it put on single cores shares them here, and nothing can be \
                 more than {used} times as fast as on one",
                counted(used, "core")
            ));
        } else if results.about.machine.threads > used {
            results.about.note(format!(
                "of {} hardware threads four are used, as the source had: {:?}",
                results.about.machine.threads, results.site.cores
            ));
        }
        // What is started inherits it.
        affinity::allow_current(&results.site.cores).map_err(StudyError::machine)?;
        self.workshop = Some(Workshop::new(&folder.join("programs"), &self.hearth)?);
        Ok(())
    }

    fn rounds(&mut self, results: &mut Results) -> Result<Vec<Round<Case>>, StudyError> {
        let there = self.placements(results)?;
        let mut all = Vec::new();
        for experiment in Experiment::ALL {
            if !results.options.wants(experiment) {
                continue;
            }
            if experiment == Experiment::Misses && self.valgrind.is_none() {
                results.about.note(
                    "cache misses are not counted, as there is no valgrind; install it, for example: apt-get \
                     install valgrind",
                );
                continue;
            }
            for (load, mut round) in rounds(experiment, &results.options) {
                let named = (experiment, load.id(), load.words());
                if !results.site.loads.contains(&named) {
                    results.site.loads.push(named);
                }
                self.loads.push((experiment, load));
                let is_there = |case: &Case| there.contains(&case.placement.as_str());
                round.cases.retain(is_there);
                all.push(round);
            }
        }
        Ok(all)
    }

    fn run(
        &mut self,
        _system: &dyn System,
        case: &Case,
        run: u32,
        results: &Results,
        cancel: &AtomicBool,
    ) -> Result<Ended, StudyError> {
        let found = self
            .loads
            .iter()
            .find(|(of, load)| *of == case.experiment && load.id() == case.load);
        let Some((_, load)) = found.cloned() else {
            return Ok(Ended::Failed(format!("there is no load {}", case.load)));
        };
        let mut launch = self.launch(case, &load, run, results)?;
        let figures = |found: &[(&str, f64)]| {
            let named = found
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value));
            Ended::Well(named.collect())
        };
        let ended = match case.experiment {
            Experiment::Memory => {
                let figures = |memory: launch::Memory| {
                    figures(&[("peak_kb", memory.peak_kb), ("growth_kb", memory.growth_kb)])
                };
                launch::memory(&launch, cancel)?.map(figures)
            }
            Experiment::Misses => {
                let out = self.workshop()?.folder().join("cachegrind.out");
                let before = misses::arguments(&out, &launch.program);
                launch
                    .arguments
                    .splice(0..0, before.into_iter().map(OsString::from));
                launch.program = self.valgrind.clone().unwrap_or("valgrind".into());
                let counted = |_| {
                    let text = fs::read_to_string(&out).unwrap_or_default();
                    match misses::figures(&text) {
                        Some(counts) => figures(&counts),
                        None => Ended::Failed("Cachegrind wrote no counts".into()),
                    }
                };
                launch::time(&launch, cancel)?.map(counted)
            }
            _ => {
                let times = |ran: launch::Ran| {
                    figures(&[
                        ("real", ran.real),
                        ("user", ran.user),
                        ("system", ran.system),
                    ])
                };
                launch::time(&launch, cancel)?.map(times)
            }
        };
        Ok(ended)
    }

    fn title(results: &Results) -> String {
        format!(
            "Insense on several cores, {} of {}",
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

impl InsenseMulticore {
    /// The placements that this Hearth has.
    fn placements(&mut self, results: &mut Results) -> Result<Vec<&'static str>, StudyError> {
        let mut there = Vec::new();
        for placement in &PLACEMENTS {
            let is_there = match placement.how {
                How::Plan(name) => self.has(name)?,
                How::Policy(_) | How::Hand(_) => true,
            };
            if is_there {
                there.push(placement.id);
            } else {
                results.about.note(format!(
                    "this Hearth has no --place {}: left out",
                    placement.id
                ));
            }
        }
        Ok(there)
    }

    fn has(&mut self, place: &str) -> Result<bool, StudyError> {
        let workshop = self.workshop()?;
        let text = workshop.folder().join("empty.isf");
        fs::write(&text, "printString(\"\\n\")\n")
            .map_err(|error| kept::file("write", &text, error))?;
        let mut command = Command::new(workshop.hearth());
        command.args(["run", "--place", place]).arg(&text);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(command.status().is_ok_and(|status| status.success()))
    }

    /// Starts a case.
    fn launch(
        &mut self,
        case: &Case,
        load: &Load,
        run: u32,
        results: &Results,
    ) -> Result<Launch, StudyError> {
        let workshop = self.workshop()?;
        let absent = |what, given: &str| StudyError::NotThere {
            what,
            given: given.to_owned(),
            known: Vec::new(),
        };
        let placement = Placement::named(&case.placement)
            .ok_or_else(|| absent("placement", &case.placement))?;
        let way = Way::named(&case.heaps).ok_or_else(|| absent("heap", &case.heaps))?;
        let mut launch = Launch {
            prints: load.prints(),
            ..Launch::default()
        };
        if case.carrier == C {
            launch.program = workshop.c(load.workload, load.rows)?;
            let places = places_in_c(placement, load, &results.site.cores);
            launch.arguments = load
                .arguments(places.as_deref())
                .into_iter()
                .map(OsString::from)
                .collect();
        } else {
            let (text, program) = workshop.insense(load, placement.hand(), &results.site.cores)?;
            launch.program = program;
            let seed = (results.options.seed + u64::from(run)).to_string();
            launch.environment = vec![
                ("HEARTH_CARRIER", case.carrier.clone().into()),
                ("HEARTH_HEAPS", way.heaps.into()),
                ("HEARTH_SEED", seed.into()),
            ];
            match placement.how {
                How::Policy(name) => launch.environment.push(("HEARTH_PLACE", name.into())),
                How::Hand(_) => launch.environment.push(("HEARTH_PLACE", "os".into())),
                How::Plan(name) => {
                    launch.program = workshop.hearth().to_owned();
                    let words = [
                        "run",
                        "--place",
                        name,
                        "--carrier",
                        &case.carrier,
                        "--heaps",
                        way.heaps,
                    ];
                    launch.arguments = words.map(OsString::from).to_vec();
                    launch.arguments.push(text.into());
                }
            }
        }
        if let Some((of, flags)) = way.preload {
            let object = workshop.preload(of, flags)?;
            launch.environment.push(("LD_PRELOAD", object.into()));
        }
        if let Some(tunables) = way.tunables {
            launch.environment.push(("GLIBC_TUNABLES", tunables.into()));
        }
        Ok(launch)
    }
}

/// The cores of a C program's threads; none if they are the system's to choose.
fn places_in_c(placement: &Placement, load: &Load, all: &[usize]) -> Option<Vec<usize>> {
    let parts = load.parts().len();
    match (placement.hand(), placement.id) {
        (Some(hand), _) => Some(hand.cores(load, all)),
        (None, "spread") => Some((0..parts).map(|k| all[k % all.len()]).collect()),
        (None, "single") => Some(vec![all[0]; parts]),
        _ => None,
    }
}
