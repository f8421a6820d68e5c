//! A whole study: every program with every allocator, in turns.
//!
//! A *cell* is a workload; its runs go round the allocators, beginning with another one each time,
//! so that what slows the machine down for a while slows all of them. A cell is kept when all its
//! runs are there.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use hearth_allocators::meter::format::{MeterWord, Mode, Readings};
use hearth_sys::clock::Clock;
use hearth_sys::policy::{self, Policy};
use hearth_sys::{System, procfs};

use super::allocators::{self, Allocator, Found};
use super::characterise::characterise;
use super::distances::{self, Effort};
use super::floor::Floor;
use super::launch::{Bench, Ended, Launch, Ran, launch};
use super::monitor;
use super::options::{Experiment, NmartOptions};
use super::programs::{Program, programs};
use super::results::{Cell, Folder, Results};
use crate::StudyError;
use crate::ending::{End, Outcome};
use crate::progress::{Progress, Watched};
use crate::surroundings::machine;

/// Runs of a program whose floor is taken: as many as take a machine's interruptions out.
const FLOOR_RUNS: u32 = 7;

/// Runs the study and keeps everything in `folder`.
///
/// `progress` is called before each run. When `cancel` becomes true the run under way is ended;
/// with `resume` the study continues with the cell that it was in.
///
/// # Errors
/// Options that make no sense, a folder that is in use, a machine that does not say what it is.
pub fn run(
    system: &dyn System,
    options: &NmartOptions,
    folder: &Path,
    resume: bool,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Results, Outcome), StudyError> {
    options.check()?;
    let found = allocators::find(options.objects.as_deref(), &options.allocators)?;
    let empty = Results::new(machine(system)?, options.clone());
    let (folder, mut results) = Folder::open(folder, empty, resume)?;
    for note in &found.notes {
        results.about.note(note.clone());
    }
    for allocator in &found.allocators {
        if !results.allocators.contains(allocator) {
            results.allocators.push(allocator.clone());
        }
    }
    conditions(system, &mut results);
    let inputs = folder.path().join("inputs");
    let (mut programs, missing) = programs(&inputs)?;
    let known = programs.iter().map(|program| program.id.clone()).collect();
    programs.retain(|program| options.wants_workload(&program.id));
    missing
        .into_iter()
        .for_each(|note| results.about.note(note));
    let inputs = inputs.canonicalize().map_err(|error| StudyError::File {
        action: "find",
        file: inputs.clone(),
        error,
    })?;
    let file = inputs.join("meter");
    let mut session = Session {
        system,
        options,
        folder: &folder,
        found: &found,
        programs: &programs,
        known,
        bench: found.meter.as_deref().map(|meter| Bench {
            folder: &inputs,
            meter,
            file: &file,
            cancel,
        }),
        watched: Watched::new(cancel, progress),
    };
    folder.fill(system, results, |results| session.all(results))
}

fn conditions(system: &dyn System, results: &mut Results) {
    let clock = Clock::calibrate(system, 20);
    results.ns_per_unit = if cfg!(target_arch = "x86_64") {
        clock.ns_per_tick()
    } else {
        1.0
    };
    if results.options.quick {
        results
            .about
            .note("a quick run, with small loads and few runs: a look, not a result");
    }
    if results.about.is_debug_build {
        results
            .about
            .note("built without optimisation: no figure here is to be kept");
    }
    if let Some(hypervisor) = results.about.machine.hypervisor.clone() {
        results.about.note(format!(
            "a virtual machine ({hypervisor}): the longest time of a run is nearly always the \
             machine's, and the floors are the allocators'"
        ));
    }
    if results.about.machine.nodes.len() < 2 {
        results.about.note(
            "one node: remote memory, distances between nodes and what their order is worth cannot \
             be measured here",
        );
    }
    if let Some(quota) = procfs::quota(system) {
        results.about.note(format!(
            "this process may use {quota:.1} cores' worth of time"
        ));
    }
}

struct Session<'a> {
    system: &'a dyn System,
    options: &'a NmartOptions,
    folder: &'a Folder,
    found: &'a Found,
    programs: &'a [Program],
    /// All programs that are there, wanted or not.
    known: Vec<String>,
    /// The bench of the runs; `None` without a meter.
    bench: Option<Bench<'a>>,
    watched: Watched<'a>,
}

/// A workload to be run with each allocator.
#[derive(Clone)]
struct WorkloadPlan<'a> {
    experiment: Experiment,
    workload: String,
    stands_for: Option<String>,
    command: &'a Path,
    arguments: Vec<String>,
    /// The node that it runs on and those that it takes memory from.
    placed: Option<(usize, Vec<usize>)>,
}

impl WorkloadPlan<'_> {
    /// True if it has threads, whose calls come in another order each time.
    fn has_threads(&self) -> bool {
        self.stands_for
            .as_deref()
            .is_none_or(|name| !name.ends_with(|c: char| c.is_ascii_digit()))
    }
}

impl<'a> Session<'a> {
    fn all(&mut self, results: &mut Results) -> Result<(), End> {
        let plans = self.plans(results)?;
        let allocators = self.found.allocators.len() as u32;
        let runs = plans.iter();
        let runs = runs.map(|plan| self.runs(plan.experiment) * allocators);
        let mut runs = runs.sum();
        if self.options.wants(Experiment::Workloads) {
            runs += self.programs.len() as u32;
        }
        if self.options.wants(Experiment::Distances) {
            runs += 1;
        }
        self.watched.plan(runs);
        if self.options.wants(Experiment::Distances) {
            self.distances(results)?;
        }
        if self.bench.is_none() && !plans.is_empty() {
            results
                .about
                .note("without the meter nothing can be measured: see above");
            return Ok(());
        }
        if self.options.wants(Experiment::Workloads) {
            self.workloads(results)?;
        }
        for plan in &plans {
            self.cell(results, plan)?;
            self.folder.save(results)?;
        }
        Ok(())
    }

    fn runs(&self, experiment: Experiment) -> u32 {
        let repeats = self.options.repeats(experiment);
        match experiment {
            // At least as many as the floor needs, except in a quick look.
            Experiment::Times if !self.options.quick => repeats.max(FLOOR_RUNS),
            _ => repeats,
        }
    }

    fn plans(&self, results: &mut Results) -> Result<Vec<WorkloadPlan<'a>>, StudyError> {
        let mut plans = Vec::new();
        let singles = [Experiment::Fragments, Experiment::Memory, Experiment::Times];
        for experiment in singles.into_iter().filter(|&e| self.options.wants(e)) {
            for program in self.programs {
                plans.push(WorkloadPlan {
                    experiment,
                    workload: program.id.clone(),
                    stands_for: Some(program.stands_for.clone()),
                    command: &program.command,
                    arguments: program.arguments.clone(),
                    placed: None,
                });
            }
            if experiment == Experiment::Memory {
                plans.extend(self.threaded(Experiment::Memory));
            }
        }
        for experiment in [Experiment::Sharing, Experiment::Larson, Experiment::Shbench] {
            if self.options.wants(experiment) {
                plans.extend(self.threaded(experiment));
            }
        }
        for experiment in [Experiment::Mean, Experiment::Cdf] {
            if self.options.wants(experiment) {
                plans.extend(self.synthetic(experiment, results));
            }
        }
        let mut known = self.known.clone();
        known.extend(plans.iter().map(|plan| plan.workload.clone()));
        known.sort();
        known.dedup();
        let mut wanted = self.options.workloads.iter();
        if let Some(given) = wanted.find(|name| !known.contains(name)) {
            return Err(StudyError::NotThere {
                what: "workload",
                given: given.clone(),
                known,
            });
        }
        plans.retain(|plan| self.options.wants_workload(&plan.workload));
        Ok(plans)
    }

    /// The programs with threads, as far as they belong to an experiment.
    fn threaded(&self, experiment: Experiment) -> Vec<WorkloadPlan<'a>> {
        let Some(command) = &self.found.workload else {
            return Vec::new();
        };
        let sizes = self.options.sizes();
        let (seconds, threads) = sizes.larson;
        let all = [
            (
                Experiment::Sharing,
                "cache-scratch",
                format!("cache-scratch {}", sizes.sharing),
            ),
            (
                Experiment::Sharing,
                "cache-thrash",
                format!("cache-thrash {}", sizes.sharing),
            ),
            (
                Experiment::Larson,
                "larson",
                format!("larson {seconds} 32 32768 1000 1000 927 {threads}"),
            ),
            (
                Experiment::Shbench,
                "shbench",
                format!("shbench {} 1", sizes.shbench),
            ),
        ];
        let wanted = all
            .into_iter()
            .filter(|(of, ..)| *of == experiment || experiment == Experiment::Memory);
        wanted
            .map(|(_, name, arguments)| WorkloadPlan {
                experiment,
                workload: name.to_owned(),
                stands_for: Some(name.to_owned()),
                command,
                arguments: arguments.split(' ').map(str::to_owned).collect(),
                placed: None,
            })
            .collect()
    }

    /// The synthetic load: on one node with its own memory, and with that of all others.
    fn synthetic(&self, experiment: Experiment, results: &mut Results) -> Vec<WorkloadPlan<'a>> {
        let Some(command) = &self.found.workload else {
            return Vec::new();
        };
        let sizes = self.options.sizes();
        let nodes = results.about.machine.nodes.clone();
        // The source's nodes, where there are as many.
        let node = match experiment {
            Experiment::Mean => nodes.get(1),
            _ => nodes.get(3),
        };
        let node = node.or(nodes.first()).copied().unwrap_or(0);
        let others: Vec<usize> = nodes
            .iter()
            .copied()
            .filter(|&other| other != node)
            .collect();
        let mut sides = vec![("local", vec![node])];
        if others.is_empty() {
            results.about.note(format!(
                "{}: remote is left out, as there is no other node",
                experiment.id()
            ));
        } else {
            sides.push(("remote", others));
        }
        let mut plans = Vec::new();
        for &threads in sizes.threads {
            for (side, memory) in &sides {
                let workload = format!("{}/{threads}/{side}", experiment.id());
                let arguments = format!(
                    "{} {threads} {} as-published {} {} {} {} virtual all 1",
                    experiment.id(),
                    sizes.requests,
                    sizes.large_mb.0,
                    sizes.large_mb.1,
                    sizes.passes.0,
                    sizes.passes.1,
                );
                plans.push(WorkloadPlan {
                    experiment,
                    stands_for: Some(workload.clone()),
                    workload,
                    command,
                    arguments: arguments.split(' ').map(str::to_owned).collect(),
                    placed: (nodes.len() > 1).then(|| (node, memory.clone())),
                });
            }
        }
        plans
    }

    /// Makes all runs of a workload with each allocator that it was not run with already.
    fn cell(&mut self, results: &mut Results, plan: &WorkloadPlan) -> Result<(), End> {
        let runs = self.runs(plan.experiment);
        let allocators = self.found.allocators.iter();
        let left: Vec<&Allocator> = allocators
            .filter(|one| {
                results
                    .cell(plan.experiment, &plan.workload, &one.id)
                    .is_none()
            })
            .collect();
        self.watched
            .skip(runs * (self.found.allocators.len() - left.len()) as u32);
        let mut cells: Vec<(Cell, Floor)> = left
            .iter()
            .map(|one| (plan.empty(&one.id), Floor::default()))
            .collect();
        for run in 0..runs {
            for turn in 0..left.len() {
                let at = (turn + run as usize) % left.len();
                self.watched
                    .tell(|| words(plan.experiment, &plan.workload, &left[at].id))?;
                let (cell, floor) = &mut cells[at];
                if cell.failed.is_some() {
                    continue;
                }
                match self.launch(plan, left[at])? {
                    Ended::Well(ran) => {
                        plan.note(cell, &ran);
                        if let Some(readings) = &ran.readings
                            && plan.experiment == Experiment::Times
                            && floor.runs() < FLOOR_RUNS
                        {
                            floor.add(readings.times());
                        }
                    }
                    Ended::Failed(why) => cell.failed = Some(why),
                    Ended::Cancelled => return Err(End::Cancelled),
                }
            }
        }
        for (mut cell, floor) in cells {
            if let Some(why) = &cell.failed {
                results
                    .about
                    .note(format!("{} with {}: {why}", cell.workload, cell.allocator));
            } else if plan.experiment == Experiment::Times && floor.runs() > 1 {
                match floor.least() {
                    Some(least) => cell.set_floor(&least),
                    None => results.about.note(format!(
                        "{} with {} made other calls in each run: it has no floor",
                        cell.workload, cell.allocator
                    )),
                }
            }
            results.cells.push(cell);
        }
        Ok(())
    }

    fn launch(&self, plan: &WorkloadPlan, allocator: &Allocator) -> Result<Ended, End> {
        let Some(bench) = &self.bench else {
            return Ok(Ended::Failed("there is no meter".into()));
        };
        let mode = match plan.experiment {
            Experiment::Times => Some(Mode::Time),
            Experiment::Fragments | Experiment::Memory => Some(Mode::Count),
            // Nothing stands before the allocator where all of a program's time is taken.
            _ => None,
        };
        let what = Launch {
            command: plan.command,
            arguments: &plan.arguments,
            allocator,
            mode,
            is_shown: false,
            watch: (plan.experiment == Experiment::Memory).then_some(monitor::INTERVAL),
        };
        // A program of one thread stays on one core; what it inherits is put back when it started.
        let _pinned = match plan.has_threads() {
            true => None,
            false => self.last_core().and_then(|core| self.system.pin(core).ok()),
        };
        let Some((node, memory)) = &plan.placed else {
            return Ok(launch(bench, &what)?);
        };
        let _placed = Placed::on(self.system, *node, memory)?;
        Ok(launch(bench, &what)?)
    }

    fn last_core(&self) -> Option<usize> {
        self.system.allowed().ok()?.last().copied()
    }

    /// Measures each program's requests with First-fit, as in the source.
    fn workloads(&mut self, results: &mut Results) -> Result<(), End> {
        let first_fit = self
            .found
            .allocators
            .iter()
            .find(|one| one.id == "first-fit");
        let (Some(bench), Some(first_fit)) = (self.bench.clone(), first_fit) else {
            results
                .about
                .note("without First-fit and the meter the programs are not characterised");
            return Ok(());
        };
        let ticks_per_us = 1000.0 / results.ns_per_unit;
        for program in self.programs {
            if results.characters.contains_key(&program.id) {
                continue;
            }
            self.watched
                .tell(|| words(Experiment::Workloads, &program.id, &first_fit.id))?;
            let mut cell = Cell {
                experiment: Experiment::Workloads,
                workload: program.id.clone(),
                stands_for: Some(program.stands_for.clone()),
                allocator: first_fit.id.clone(),
                figures: Default::default(),
                failed: None,
            };
            for mode in [Mode::Count, Mode::Trace] {
                let what = Launch {
                    command: &program.command,
                    arguments: &program.arguments,
                    allocator: first_fit,
                    mode: Some(mode),
                    is_shown: false,
                    watch: None,
                };
                match launch(&bench, &what)? {
                    Ended::Well(ran) => {
                        let Some(readings) = &ran.readings else {
                            continue;
                        };
                        if mode == Mode::Count {
                            asked(&mut cell, readings);
                            continue;
                        }
                        if !readings.is_whole() {
                            results
                                .about
                                .note(format!("{}: its trace is cut off", program.id));
                        }
                        let end = readings.get(MeterWord::End);
                        let character = characterise(readings.events(), end, ticks_per_us);
                        results.characters.insert(program.id.clone(), character);
                    }
                    Ended::Failed(why) => results.about.note(format!("{}: {why}", program.id)),
                    Ended::Cancelled => return Err(End::Cancelled),
                }
            }
            results.cells.push(cell);
            self.folder.save(results)?;
        }
        Ok(())
    }

    /// The source's tool, its files, its table and its header.
    fn distances(&mut self, results: &mut Results) -> Result<(), End> {
        if results.distances.is_some() {
            return Ok(());
        }
        let nodes = results.about.machine.nodes.clone();
        self.watched
            .tell(|| format!("{} nodes", Experiment::Distances.id()))?;
        let sizes = self.options.sizes();
        let effort = Effort {
            bytes: sizes.distance_bytes,
            repeats: sizes.distance_repeats,
        };
        let mode = distances::Mode::Bound;
        let measured = distances::measure(self.system, mode, &nodes, effort, self.watched.cancel)?;
        let Some(measured) = measured else {
            return Err(End::Cancelled);
        };
        for file in &measured {
            self.folder
                .replace(&format!("node{}.txt", file.of), file.lines.as_bytes())?;
        }
        let files: Vec<String> = measured.into_iter().map(|file| file.lines).collect();
        let owners = owners(self.system, &nodes);
        let means = distances::means(&files, nodes.len(), |processor| {
            owners.iter().position(|own| own.contains(&processor))
        });
        let table = distances::table(&distances::transpose(&means), distances::Whole::Rounded);
        let header = distances::header(&table);
        self.folder
            .replace("numa_distance_table.h", header.as_bytes())?;
        results.distances = Some(means);
        self.folder.save(results)?;
        Ok(())
    }
}

/// The processors of each node. A kernel that does not say has one node, with all of them.
fn owners(system: &dyn System, nodes: &[usize]) -> Vec<Vec<usize>> {
    let of = |node: &usize| {
        let text = system.read(&format!("/sys/devices/system/node/node{node}/cpulist"));
        match text {
            Ok(text) => procfs::parse_list(&text),
            Err(_) => system.allowed().unwrap_or_default(),
        }
    };
    nodes.iter().map(of).collect()
}

/// Records a program's requests.
fn asked(cell: &mut Cell, readings: &Readings) {
    let figures = [
        ("mallocs", readings.allocations()),
        ("frees", readings.releases()),
        ("bytes", readings.get(MeterWord::Requested)),
        ("largest", readings.get(MeterWord::Largest)),
    ];
    for (name, value) in figures {
        cell.push(name, value as f64);
    }
}

impl WorkloadPlan<'_> {
    fn empty(&self, allocator: &str) -> Cell {
        Cell {
            experiment: self.experiment,
            workload: self.workload.clone(),
            stands_for: self.stands_for.clone(),
            allocator: allocator.to_owned(),
            figures: Default::default(),
            failed: None,
        }
    }

    /// Notes a run's figures.
    fn note(&self, cell: &mut Cell, ran: &Ran) {
        if let Some(readings) = &ran.readings {
            match self.experiment {
                Experiment::Times => {
                    let figures = [
                        ("allocate_max", MeterWord::AllocateMax),
                        ("free_max", MeterWord::FreeMax),
                        ("allocate_sum", MeterWord::AllocateSum),
                        ("free_sum", MeterWord::FreeSum),
                        ("realloc_max", MeterWord::ReallocMax),
                        ("empty", MeterWord::Empty),
                    ];
                    for (name, slot) in figures {
                        cell.push(name, readings.get(slot) as f64);
                    }
                    cell.push("calls", readings.get(MeterWord::Records) as f64);
                }
                Experiment::Fragments => wasted(cell, readings),
                _ => {}
            }
        }
        if let Some(peaks) = &ran.peaks {
            cell.push("peak_kb", peaks.peak_kb as f64);
            cell.push("data_kb", peaks.data_kb as f64);
            cell.push("resident_kb", peaks.resident_peak_kb as f64);
        }
        if self.experiment != Experiment::Times && self.experiment != Experiment::Fragments {
            let said = |name: &str| -> Option<f64> {
                let line = ran.said.lines().find_map(|line| line.strip_prefix(name));
                line?.trim().parse().ok()
            };
            cell.push("seconds", said("seconds").unwrap_or(ran.seconds));
            if let Some(allocations) = said("allocations") {
                cell.push("allocations", allocations);
            }
        }
    }
}

/// The source's metric, without and with what the allocator adds to each block.
fn wasted(cell: &mut Cell, readings: &Readings) {
    let (asked, given) = (
        readings.get(MeterWord::Requested) as f64,
        readings.get(MeterWord::Provided) as f64,
    );
    let overhead = readings.get(MeterWord::Overhead) * readings.allocations();
    cell.push("requested", asked);
    cell.push("provided", given);
    cell.push(
        "payload_waste_percent",
        100.0 * (1.0 - asked / given.max(1.0)),
    );
    if overhead > 0 {
        let whole = given + overhead as f64;
        cell.push("waste_percent", 100.0 * (1.0 - asked / whole));
    }
}

/// The calling thread on a node's processors, with memory of some nodes only, until it is dropped:
/// what it starts meanwhile inherits both.
struct Placed {
    processors: Vec<usize>,
}

impl Placed {
    fn on(system: &dyn System, node: usize, memory: &[usize]) -> Result<Placed, StudyError> {
        let refused = |error: std::io::Error| StudyError::Machine {
            why: error.to_string(),
        };
        let processors = system.allowed().map_err(refused)?;
        let owners = owners(system, &[node]);
        let is_own = |processor: &usize| owners.iter().any(|own| own.contains(processor));
        let own: Vec<usize> = processors.iter().copied().filter(is_own).collect();
        hearth_sys::affinity::allow_current(&own).map_err(refused)?;
        let placed = Placed { processors };
        policy::set_thread(&Policy::Bind(memory.to_vec()))?;
        Ok(placed)
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        // Going back needs no right.
        let _ = policy::set_thread(&Policy::Default);
        let _ = hearth_sys::affinity::allow_current(&self.processors);
    }
}

/// Names the step that is being measured, in words.
fn words(experiment: Experiment, workload: &str, allocator: &str) -> String {
    format!("{} {workload} {allocator}", experiment.id())
}
