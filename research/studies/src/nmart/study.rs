//! The study as the engine runs it: what is there to be run, and a run of a workload with an
//! allocator, of a program to be characterised, or of the distances' tool.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use hearth_allocators::meter::format::{MeterWord, Mode, Readings};
use hearth_sys::System;
use hearth_sys::clock::Clock;

use super::allocators::{Found, find};
use super::characterise::{Character, characterise};
use super::distances::{self, Effort};
use super::floor::Floor;
use super::launch::{Bench, Launch, launch};
use super::measured::figures;
use super::options::{Experiment, FLOOR_RUNS, NmartOptions};
use super::placed::{Placed, owners};
use super::plan::{Case, Load, loads};
use super::programs::{Program, programs};
use super::results::{self, Results, Site};
use super::verdict::Evidence;
use super::{monitor, page};
use crate::judging::JudgedClaim;
use crate::results::File;
use crate::study::{Ended, Round, Study};
use crate::{StudyError, kept};

/// The allocator that programs are characterised with, as in the source.
const FIRST_FIT: &str = "first-fit";

/// The study.
#[derive(Debug, Default)]
pub struct Nmart {
    found: Found,
    programs: Vec<Program>,
    loads: Vec<Load>,
    folder: PathBuf,
    /// Folder of the programs' inputs.
    inputs: PathBuf,
    /// Floors of the round's workload, by allocator.
    floors: BTreeMap<String, Floor>,
    /// Characters and notes to be added to the results.
    characters: BTreeMap<String, Character>,
    notes: Vec<String>,
}

impl Study for Nmart {
    const NAME: &'static str = "nmart";
    const FORMAT: u32 = 2;
    const COLUMNS: &'static str = results::COLUMNS;
    type Case = Case;
    type Options = NmartOptions;
    type Site = Site;

    fn site(&mut self, _system: &dyn System, options: &NmartOptions) -> Result<Site, StudyError> {
        self.found = find(options.objects.as_deref(), &options.allocators)?;
        Ok(Site::default())
    }

    /// More allocators may be there later.
    fn differs(_was: &Site, _is: &Site) -> Option<&'static str> {
        None
    }

    fn begin(
        &mut self,
        system: &dyn System,
        folder: &Path,
        results: &mut Results,
    ) -> Result<(), StudyError> {
        let clock = Clock::calibrate(system, 20);
        let is_ticks = cfg!(target_arch = "x86_64");
        results.site.ns_per_unit = if is_ticks { clock.ns_per_tick() } else { 1.0 };
        for allocator in &self.found.allocators {
            if !results.site.allocators.contains(allocator) {
                results.site.allocators.push(allocator.clone());
            }
        }
        self.inputs = folder.join("inputs");
        let (programs, missing) = programs(&self.inputs)?;
        self.programs = programs;
        let inputs = self.inputs.canonicalize();
        self.inputs = inputs.map_err(|error| kept::file("find", &self.inputs, error))?;
        folder.clone_into(&mut self.folder);
        for note in self.found.notes.iter().chain(&missing) {
            results.about.note(note.clone());
        }
        if results.about.machine.hypervisor.is_some() {
            results.about.note(
                "on a virtual machine the longest time of a run is nearly always the machine's, and the floors are \
                 the allocators'",
            );
        }
        if results.about.machine.nodes.len() < 2 {
            results.about.note(
                "one node: remote memory, distances between nodes and what their order is worth cannot be measured \
                 here",
            );
        }
        Ok(())
    }

    fn rounds(&mut self, results: &mut Results) -> Result<Vec<Round<Case>>, StudyError> {
        let options = results.options.clone();
        self.loads = self.loads(results)?;
        let mut rounds = Vec::new();
        if options.wants(Experiment::Distances) {
            rounds.push(Round {
                cases: vec![Case::distances()],
                repeats: options.repeats(Experiment::Distances),
            });
        }
        if self.loads.is_empty() {
            return Ok(rounds);
        }
        if self.found.meter.is_none() {
            let note = "without the meter nothing can be measured: see above";
            results.about.note(note);
            return Ok(rounds);
        }
        let allocators = || self.found.allocators.iter().map(|one| one.id.as_str());
        if options.wants(Experiment::Workloads) && allocators().all(|id| id != FIRST_FIT) {
            let note = "without First-fit the programs are not characterised";
            results.about.note(note);
        }
        rounds.extend(self.loads.iter().map(|load| {
            let is_any = load.experiment != Experiment::Workloads;
            let ids = allocators().filter(|id| is_any || *id == FIRST_FIT);
            Round {
                cases: ids.map(|id| load.with(id)).collect(),
                repeats: options.repeats(load.experiment),
            }
        }));
        Ok(rounds)
    }

    fn run(
        &mut self,
        system: &dyn System,
        case: &Case,
        run: u32,
        results: &Results,
        cancel: &AtomicBool,
    ) -> Result<Ended, StudyError> {
        if case.experiment == Experiment::Distances {
            return self.distances(system, results, cancel);
        }
        let load = self.loads.iter().find(|load| load.is_of(case));
        let allocators = &self.found.allocators;
        let allocator = allocators.iter().find(|one| one.id == case.allocator);
        let (Some(load), Some(allocator), Some(meter)) = (load, allocator, &self.found.meter)
        else {
            return Ok(Ended::Failed("it is not there any more".to_owned()));
        };
        let bench = Bench {
            folder: &self.inputs,
            meter,
            file: &self.inputs.join("meter"),
            cancel,
        };
        let mut what = Launch {
            command: &load.command,
            arguments: &load.arguments,
            allocator,
            mode: match case.experiment {
                Experiment::Times => Some(Mode::Time),
                Experiment::Fragments | Experiment::Memory | Experiment::Workloads => {
                    Some(Mode::Count)
                }
                // Nothing stands before the allocator where all of a program's time is taken.
                _ => None,
            },
            is_shown: false,
            watch: (case.experiment == Experiment::Memory).then_some(monitor::INTERVAL),
        };
        // A program of one thread stays on one core: it inherits this thread's, which has its own
        // cores back when the run is over.
        let core = system
            .allowed()
            .ok()
            .and_then(|cores| cores.last().copied());
        let core = core.filter(|_| load.is_pinned);
        let _pinned = core.and_then(|core| system.pin(core).ok());
        let placed = load.placed.as_ref();
        let _placed = placed
            .map(|(node, memory)| Placed::on(system, *node, memory))
            .transpose()?;
        let ran = match launch(&bench, &what)?.well() {
            Ok(ran) => ran,
            Err(ended) => return Ok(ended),
        };
        let mut figures = figures(case.experiment, &ran);
        match (case.experiment, &ran.readings) {
            (Experiment::Times, Some(readings)) => {
                let is_last = run + 1 == results.options.repeats(case.experiment);
                figures.extend(self.floor(case, readings, is_last));
            }
            (Experiment::Workloads, _) => {
                what.mode = Some(Mode::Trace);
                let traced = match launch(&bench, &what)?.well() {
                    Ok(traced) => traced,
                    Err(ended) => return Ok(ended),
                };
                if let Some(trace) = &traced.readings {
                    self.character(case, trace, 1000.0 / results.site.ns_per_unit);
                }
            }
            _ => {}
        }
        Ok(Ended::Well(figures))
    }

    fn keep(&mut self, results: &mut Results) {
        results.site.characters.append(&mut self.characters);
        for note in self.notes.drain(..) {
            results.about.note(note);
        }
    }

    fn close(&mut self) {
        self.floors.clear();
    }

    fn title(results: &Results) -> String {
        let processor = &results.about.machine.processor;
        format!("Allocators in bounded time on {processor}")
    }

    fn verdicts(results: &Results) -> Vec<JudgedClaim> {
        Evidence::measured(results).verdicts()
    }

    fn tables(results: &Results) -> Vec<File> {
        results::tables(results)
    }

    fn page(&self, results: &Results) -> String {
        page::page(results)
    }
}

impl Nmart {
    /// The workloads that are wanted.
    fn loads(&self, results: &mut Results) -> Result<Vec<Load>, StudyError> {
        let (options, nodes) = (&results.options, &results.about.machine.nodes);
        let mut loads = loads(
            options,
            &self.programs,
            self.found.workload.as_deref(),
            nodes,
        );
        let mut known: Vec<String> = loads.iter().map(|load| load.workload.clone()).collect();
        known.extend(self.programs.iter().map(|program| program.id.clone()));
        known.sort();
        known.dedup();
        let mut wanted = options.workloads.iter();
        if let Some(given) = wanted.find(|name| !known.contains(name)) {
            return Err(StudyError::NotThere {
                what: "workload",
                given: given.clone(),
                known,
            });
        }
        let is_one_node = nodes.len() < 2;
        for experiment in [Experiment::Mean, Experiment::Cdf] {
            if is_one_node && loads.iter().any(|load| load.experiment == experiment) {
                let id = experiment.id();
                let note = format!("{id}: remote is left out, as there is no other node");
                results.about.note(note);
            }
        }
        loads.retain(|load| results.options.wants_workload(&load.workload));
        Ok(loads)
    }

    /// Takes a run's calls in, and returns the floors after the last one.
    fn floor(&mut self, case: &Case, readings: &Readings, is_last: bool) -> Vec<(String, f64)> {
        let floor = self.floors.entry(case.allocator.clone()).or_default();
        if floor.runs() < FLOOR_RUNS {
            floor.add(readings.times());
        }
        if !is_last || floor.runs() < 2 {
            return Vec::new();
        }
        let least = floor.least().map(|least| least.figures());
        least.unwrap_or_else(|| {
            self.notes.push(format!(
                "{} with {} made other calls in each run: it has no floor",
                case.workload, case.allocator
            ));
            Vec::new()
        })
    }

    /// Keeps what a program's trace says of it.
    fn character(&mut self, case: &Case, trace: &Readings, ticks_per_us: f64) {
        if !trace.is_whole() {
            let note = format!("{}: its trace is cut off", case.workload);
            self.notes.push(note);
        }
        let end = trace.get(MeterWord::End);
        let character = characterise(trace.events(), end, ticks_per_us);
        self.characters.insert(case.workload.clone(), character);
    }

    /// The source's tool, its files, its table and its header.
    fn distances(
        &self,
        system: &dyn System,
        results: &Results,
        cancel: &AtomicBool,
    ) -> Result<Ended, StudyError> {
        let nodes = &results.about.machine.nodes;
        let sizes = results.options.sizes();
        let effort = Effort {
            bytes: sizes.distance_bytes,
            repeats: sizes.distance_repeats,
        };
        let mode = distances::Mode::Bound;
        let Some(measured) = distances::measure(system, mode, nodes, effort, cancel)? else {
            return Ok(Ended::Cancelled);
        };
        for file in &measured {
            let name = format!("node{}.txt", file.of);
            kept::replace(&self.folder, &name, file.lines.as_bytes())?;
        }
        let files: Vec<String> = measured.into_iter().map(|file| file.lines).collect();
        let owners = owners(system, nodes);
        let means = distances::means(&files, nodes.len(), |processor| {
            owners.iter().position(|own| own.contains(&processor))
        });
        let table = distances::table(&distances::transpose(&means), distances::Whole::Rounded);
        let header = distances::header(&table);
        kept::replace(&self.folder, "numa_distance_table.h", header.as_bytes())?;
        Ok(Ended::Well(results::distances(&means)))
    }
}
