//! A whole study: every experiment in turn, results kept as they come.
//!
//! Sweeps that are compared with each other go through the sizes together: all runs of a size with
//! both threads on one core, then all with two cores, then two chips. So a machine that grows
//! slower over an hour does so for all alike. The source runs one experiment after the other. The
//! runs of one kind stay together, with an untimed one before, as a run finds the caches as the
//! last one left them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hearth_published::source::Type;
use hearth_stats::median;
use hearth_sys::System;
use hearth_sys::clock::Clock;

use super::conditions::{Priority, Steal, fitting, notes};
use super::exchange::{Arena, Exchanger};
use super::options::{CacheImpactOptions, Defect, Experiment};
use super::record::{Kind, Row, Sweep};
use super::results::{Folder, Results, Tables, ZeroData};
use super::site::{Places, Site};
use super::sweep::{self, Sweeper, Unit};
use super::{ring, timers};
use crate::StudyError;
use crate::ending::{self, End, Outcome};

/// Progress of a study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The part that is done, 0 to 1, by an estimate of the time it takes.
    pub fraction: f64,
    /// The experiment that is being measured.
    pub experiment: Experiment,
    /// The size that is being measured, for sweeps.
    pub bytes: Option<u64>,
}

/// Runs the study and keeps everything in `folder`.
///
/// `progress` is called before each step. When `cancel` becomes true the study ends after the run
/// that is under way, some tenths of a second at most; with `resume` it continues from there.
///
/// # Errors
/// Options that make no sense, a folder that is in use, a machine that does not say what it is, no
/// memory, no threads.
pub fn run(
    system: &dyn System,
    options: &CacheImpactOptions,
    folder: &Path,
    resume: bool,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Results, Outcome), StudyError> {
    options.check()?;
    let site = Site::read(system, options)?;
    let (fitting, note) = fitting(system, options);
    let (folder, mut results) = Folder::open(folder, site, &fitting, resume)?;
    if let Some(note) = note {
        results.note(note);
    }
    let clock = Clock::calibrate(system, 40);
    results.unit = Unit::of(&clock);
    results.ns_per_unit = clock.ns_per_tick();
    let priority = Priority::highest();
    results.nice = priority.now;
    notes(system, &priority, &mut results);
    let mut session = Session {
        system,
        options: fitting,
        folder: &folder,
        cancel,
        progress,
        clock,
        done_s: 0.0,
        planned_s: 0.0,
    };
    let steal = Steal::begin(system);
    let begin = Instant::now();
    let outcome = session.all(&mut results);
    let seconds = begin.elapsed().as_secs_f64();
    results.steal_share = steal.join(results.steal_share, results.seconds, seconds);
    results.seconds += seconds;
    let outcome = ending::outcome(outcome);
    results.is_complete = matches!(outcome, Ok(Outcome::Complete));
    folder.save(&results)?;
    Ok((results, outcome?))
}

struct Session<'a> {
    system: &'a dyn System,
    options: CacheImpactOptions,
    folder: &'a Folder,
    cancel: &'a AtomicBool,
    progress: &'a mut dyn FnMut(Progress),
    clock: Clock,
    done_s: f64,
    planned_s: f64,
}

/// Estimates for the progress bar, in seconds; they decide nothing.
mod estimate {
    pub(super) const SMALL: f64 = 0.5;
    pub(super) const EVENTS: f64 = 2.5;
    pub(super) const RING: f64 = 5.0;
    pub(super) const EXCHANGE: f64 = 4e-4;
    pub(super) const BYTE: f64 = 1.2e-9;

    pub(super) fn row(bytes: u64, runs: u32) -> f64 {
        f64::from(runs) * (EXCHANGE + bytes as f64 * BYTE)
    }
}

impl Session<'_> {
    fn all(&mut self, results: &mut Results) -> Result<(), End> {
        let sweeps = self.sweeps(results);
        self.planned_s = self.plan(&sweeps);
        self.small(results)?;
        self.rings(results)?;
        let bytes = self.options.bytes();
        let largest = bytes.last().copied().unwrap_or(0);
        let mut arena = Arena::new(largest, self.options.is_aligned)?;
        let mut exchanger = Exchanger::new(&self.options);
        self.warm_up(results, &mut arena, &mut exchanger)?;
        self.zero(results, &mut arena, &mut exchanger)?;
        for number in 1..=self.options.sweeps {
            let mut growing = Vec::new();
            for &sweep in &sweeps {
                let tables = self.folder.tables(results, sweep, number)?;
                growing.push((sweep, tables));
            }
            for &bytes in &bytes {
                for (sweep, tables) in &mut growing {
                    let exchanger = &mut exchanger;
                    self.row(
                        results,
                        (*sweep, number),
                        bytes,
                        &mut arena,
                        exchanger,
                        tables,
                    )?;
                }
            }
        }
        self.say_where_receivers_ran(results);
        Ok(())
    }

    /// The sweeps that are wanted and that the machine can show; says which it cannot.
    fn sweeps(&self, results: &mut Results) -> Vec<Sweep> {
        let mut sweeps = Vec::new();
        if self.options.wants(Experiment::Sweep) {
            sweeps.push(Sweep::Latency);
        }
        let experiments = [
            (Experiment::SameCore, Type::One),
            (Experiment::SameChip, Type::Two),
            (Experiment::OtherChip, Type::Three),
        ];
        for (experiment, kind) in experiments {
            if !self.options.wants(experiment) {
                continue;
            }
            if results.site.places(kind).is_some() {
                sweeps.push(Sweep::Exchange(kind.into()));
            } else {
                let why = results.site.why_not(kind);
                results.note(why);
            }
        }
        // Ready threads stay on the cores that they are given; the source's numbers may not exist.
        let is_sound = !self.options.has(Defect::Pinning);
        if self.options.wants(Experiment::Ready) && is_sound {
            let kinds = Type::ALL.into_iter();
            let kinds = kinds.filter(|&kind| results.site.places(kind).is_some());
            sweeps.extend(kinds.map(|kind| Sweep::Ready(kind.into())));
        }
        sweeps
    }

    fn plan(&self, sweeps: &[Sweep]) -> f64 {
        let wants = |experiment| f64::from(u8::from(self.options.wants(experiment)));
        let rows: f64 = self
            .options
            .bytes()
            .iter()
            .map(|&bytes| estimate::row(bytes, self.options.repeats() + 1))
            .sum();
        let rings = ring::kinds(self.options.quick).len() as f64;
        wants(Experiment::Timers) * estimate::SMALL
            + wants(Experiment::Opening) * estimate::SMALL
            + wants(Experiment::Register) * estimate::SMALL
            + wants(Experiment::Events) * estimate::EVENTS
            + wants(Experiment::Ring) * estimate::RING * rings
            + wants(Experiment::Zero) * estimate::row(0, self.options.zero_repeats()) * 3.0
            + rows * sweeps.len() as f64 * f64::from(self.options.sweeps)
    }

    /// Tells where it stands, and ends if that is wished. `seconds` is the estimate of the step
    /// that now begins.
    fn step(
        &mut self,
        experiment: Experiment,
        bytes: Option<u64>,
        seconds: f64,
    ) -> Result<(), End> {
        self.check()?;
        let fraction = (self.done_s / self.planned_s.max(1e-9)).min(1.0);
        (self.progress)(Progress {
            fraction,
            experiment,
            bytes,
        });
        self.done_s += seconds;
        Ok(())
    }

    fn check(&self) -> Result<(), End> {
        // Relaxed: the flag says nothing about other memory.
        if self.cancel.load(Ordering::Relaxed) {
            return Err(End::Cancelled);
        }
        Ok(())
    }

    /// Experiments of a moment.
    fn small(&mut self, results: &mut Results) -> Result<(), End> {
        if self.options.wants(Experiment::Timers) && results.timers.is_none() {
            self.step(Experiment::Timers, None, estimate::SMALL)?;
            results.timers = Some(timers::timers(&self.clock));
        }
        if self.options.wants(Experiment::Opening) && results.opening.is_none() {
            self.step(Experiment::Opening, None, estimate::SMALL)?;
            results.opening = Some(timers::opening());
        }
        if self.options.wants(Experiment::Events) && results.events.is_none() {
            self.step(Experiment::Events, None, estimate::EVENTS)?;
            results.events = Some(timers::events(&self.clock)?);
        }
        if self.options.wants(Experiment::Register) && results.register.is_none() {
            self.step(Experiment::Register, None, estimate::SMALL)?;
            results.register = Some(sweep::register(&self.clock));
        }
        self.folder.save(results)?;
        Ok(())
    }

    fn rings(&mut self, results: &mut Results) -> Result<(), End> {
        if !self.options.wants(Experiment::Ring) {
            return Ok(());
        }
        let Some(&core) = results.site.allowed.first() else {
            return Ok(());
        };
        for kind in ring::kinds(self.options.quick) {
            let is_there = results
                .rings
                .iter()
                .any(|ring| (ring.stride, ring.is_random) == (kind.stride, kind.is_random));
            self.step(Experiment::Ring, None, estimate::RING)?;
            if is_there {
                continue;
            }
            let (quick, seed) = (self.options.quick, self.options.seed);
            let ring = ring::walk(self.system, core, kind, quick, seed, self.cancel)?;
            results.rings.push(ring.ok_or(End::Cancelled)?);
            self.folder.save(results)?;
        }
        Ok(())
    }

    /// Makes one untimed exchange of each type, and counts how many faults an exchange of nothing
    /// has here: those are the bookkeeping's and the threads' own. The source found two.
    fn warm_up(
        &mut self,
        results: &mut Results,
        arena: &mut Arena,
        exchanger: &mut Exchanger,
    ) -> Result<(), End> {
        const RUNS: usize = 21;
        const PUBLISHED: u64 = 2;
        let mut allowed = PUBLISHED;
        for kind in Type::ALL {
            let Some(places) = results.site.places(kind) else {
                continue;
            };
            let mut faults = Vec::new();
            for _ in 0..RUNS {
                self.check()?;
                let run = exchanger.run(kind.experiment(), arena, 0, places)?;
                faults.push(run.events.faults_minor as f64);
            }
            allowed = allowed.max(median(&faults).unwrap_or(0.0).ceil() as u64);
        }
        // Rows that are there already were judged by what held then.
        if results.sweeps.values().all(Vec::is_empty) {
            results.faults_allowed = allowed;
        }
        Ok(())
    }

    fn zero(
        &mut self,
        results: &mut Results,
        arena: &mut Arena,
        exchanger: &mut Exchanger,
    ) -> Result<(), End> {
        if !self.options.wants(Experiment::Zero) {
            return Ok(());
        }
        /// Runs of a type in a row before as many of the next.
        const BLOCK: usize = 50;
        let wanted = self.options.zero_repeats() as usize;
        for begin in (0..wanted).step_by(BLOCK) {
            for kind in Type::ALL {
                let Some(places) = results.site.places(kind) else {
                    continue;
                };
                let block = BLOCK.min(wanted - begin);
                let seconds = estimate::row(0, u32::try_from(block).unwrap_or(u32::MAX));
                self.step(Experiment::Zero, Some(0), seconds)?;
                self.zero_block(results, (kind, places), begin + block, arena, exchanger)?;
            }
        }
        self.folder.save(results)?;
        Ok(())
    }

    /// Exchanges of nothing until there are `enough` of the type.
    fn zero_block(
        &self,
        results: &mut Results,
        (kind, places): (Type, Places),
        enough: usize,
        arena: &mut Arena,
        exchanger: &mut Exchanger,
    ) -> Result<(), End> {
        let stored = Kind::from(kind);
        if results.zero(stored).is_none() {
            results.zero.push(ZeroData {
                kind: stored,
                times_ns: Vec::new(),
            });
        }
        let Some(at) = results.zero.iter().position(|zero| zero.kind == stored) else {
            return Ok(());
        };
        while results.zero[at].times_ns.len() < enough {
            self.check()?;
            let run = exchanger.run(kind.experiment(), arena, 0, places)?;
            results.zero[at].times_ns.extend(run.time);
        }
        Ok(())
    }

    /// Measures a row, unless it is there already.
    fn row(
        &mut self,
        results: &mut Results,
        (sweep, number): (Sweep, u32),
        bytes: u64,
        arena: &mut Arena,
        exchanger: &mut Exchanger,
        tables: &mut Tables,
    ) -> Result<(), End> {
        let repeats = self.options.repeats();
        self.step(
            experiment(sweep),
            Some(bytes),
            estimate::row(bytes, repeats + 1),
        )?;
        let rows = results.sweeps.entry((sweep, number)).or_default();
        if rows.iter().any(|row| row.bytes == bytes) {
            return Ok(());
        }
        let mut runs = Vec::new();
        match sweep {
            Sweep::Latency => {
                let core = results.site.allowed.first().copied().unwrap_or(0);
                let _pinned = self.system.pin(core)?;
                let mut sweeper = Sweeper::new(self.clock, &self.options);
                for _ in 0..=repeats {
                    self.check()?;
                    runs.push(sweeper.run(arena, bytes)?);
                }
            }
            Sweep::Exchange(kind) => {
                let Some(places) = results.site.places(of(kind)) else {
                    return Ok(());
                };
                for _ in 0..=repeats {
                    self.check()?;
                    runs.push(exchanger.run(of(kind).experiment(), arena, bytes, places)?);
                }
            }
            Sweep::Ready(kind) => {
                let Some(places) = results.site.places(of(kind)) else {
                    return Ok(());
                };
                runs = exchanger.run_ready(arena, bytes, places, repeats + 1)?;
            }
        }
        // The first one was the warm-up.
        runs.remove(0);
        let row = Row { bytes, runs };
        tables.add(&row)?;
        rows.push(row);
        Ok(())
    }

    /// Notes, for the source's core numbers, the cores on which the receivers ran that could not be
    /// pinned.
    fn say_where_receivers_ran(&self, results: &mut Results) {
        if !self.options.has(Defect::Pinning) {
            return;
        }
        for kind in Type::ALL {
            let sweep = Sweep::Exchange(kind.into());
            let runs = || results.rows(sweep).flat_map(|row| &row.runs);
            let all = runs().count();
            let together = runs().filter(|run| run.sender == run.receiver).count();
            let Some(places) = results.site.places(kind).filter(|_| all > 0) else {
                continue;
            };
            let text = format!(
                "with the defect `pinning`, experiment {} sends from core {} to core {}: in \
                 {together} of {all} runs both threads ran on one core",
                kind.experiment(),
                places.sender,
                places.receiver
            );
            results.note(text);
        }
    }
}

fn of(kind: Kind) -> Type {
    match kind {
        Kind::SameCore => Type::One,
        Kind::SameChip => Type::Two,
        Kind::OtherChip => Type::Three,
    }
}

fn experiment(sweep: Sweep) -> Experiment {
    match sweep {
        Sweep::Latency => Experiment::Sweep,
        Sweep::Exchange(Kind::SameCore) => Experiment::SameCore,
        Sweep::Exchange(Kind::SameChip) => Experiment::SameChip,
        Sweep::Exchange(Kind::OtherChip) => Experiment::OtherChip,
        Sweep::Ready(_) => Experiment::Ready,
    }
}
