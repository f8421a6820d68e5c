//! The study as the engine runs it: the conditions, what is measured once, and the runs of a case.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hearth_machine::profile::Profile;
use hearth_published::source::Type;
use hearth_stats::median;
use hearth_sys::System;
use hearth_sys::clock::Clock;

use super::conditions::{Priority, fitting, notes};
use super::exchange::{Arena, Exchanger, Run};
use super::options::{CacheImpactOptions, Defect, Experiment};
use super::plan::{Case, rounds};
use super::record::{self, Kind, Sweep};
use super::results::{self, FAULTS_PUBLISHED, Results, Site};
use super::ring::{self, Ring};
use super::site::{self, Places};
use super::sweep::{self, Sweeper, Unit};
use super::{compare, page, timers};
use crate::StudyError;
use crate::judging::JudgedClaim;
use crate::results::File;
use crate::study::{Ended, Round, Study};

/// Exchanges of nothing of a type in a row before as many of the next.
const BLOCK: u32 = 50;

/// The study. With a profile of the machine our own model's predictions stand beside the source's.
#[derive(Debug, Default)]
pub struct CacheImpact {
    profile: Option<Profile>,
    bench: Option<Bench>,
    /// A curve that is to be kept.
    ring: Option<Ring>,
}

/// The memory, the clock and the threads of all runs.
#[derive(Debug)]
struct Bench {
    clock: Clock,
    sizes: Vec<u64>,
    arena: Arena,
    exchanger: Exchanger,
    _priority: Priority,
}

impl CacheImpact {
    /// Creates the study with the machine's profile, if there is one.
    #[must_use]
    pub fn new(profile: Option<Profile>) -> CacheImpact {
        CacheImpact {
            profile,
            ..CacheImpact::default()
        }
    }

    fn bench(&mut self) -> Result<&mut Bench, StudyError> {
        let missing = || StudyError::machine("the study has not begun");
        self.bench.as_mut().ok_or_else(missing)
    }
}

impl Study for CacheImpact {
    const NAME: &'static str = "cache-impact";
    const FORMAT: u32 = 2;
    const COLUMNS: &'static str = "";
    type Case = Case;
    type Options = CacheImpactOptions;
    type Site = Site;

    fn site(
        &mut self,
        system: &dyn System,
        options: &CacheImpactOptions,
    ) -> Result<Site, StudyError> {
        Ok(Site::new(site::Site::read(system, options)?))
    }

    fn differs(was: &Site, is: &Site) -> Option<&'static str> {
        (was.place != is.place).then_some("the machine")
    }

    fn begin(
        &mut self,
        system: &dyn System,
        _folder: &Path,
        results: &mut Results,
    ) -> Result<(), StudyError> {
        let clock = Clock::calibrate(system, 40);
        let priority = Priority::highest();
        results.site.unit = Unit::of(&clock);
        results.site.ns_per_unit = clock.ns_per_tick();
        results.site.nice = priority.now;
        notes(&priority, results.site.unit, &mut results.about);
        let (options, most) = (&results.options, fitting(system));
        let mut sizes = options.bytes();
        if sizes.last().is_some_and(|&bytes| bytes > most) {
            results.about.note(format!(
                "sizes above {most} bytes are left out: there is too little free memory"
            ));
            sizes.retain(|&bytes| bytes <= most);
        }
        let largest = sizes.last().copied().unwrap_or(0);
        self.bench = Some(Bench {
            clock,
            sizes,
            arena: Arena::new(largest, options.is_aligned)?,
            exchanger: Exchanger::new(options),
            _priority: priority,
        });
        Ok(())
    }

    fn rounds(&mut self, results: &mut Results) -> Result<Vec<Round<Case>>, StudyError> {
        let bench = self.bench()?;
        bench.once(results)?;
        let rounds = rounds(results, &bench.sizes);
        let allowed = bench.warm_up(&results.site.place)?;
        // Rows that are there already were judged by what held then.
        let mut cells = results.cells.iter();
        if !cells.any(|cell| matches!(cell.case, Case::Row { .. }) && cell.count() > 0) {
            results.site.faults_allowed = allowed;
        }
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
        let (options, place) = (&results.options, &results.site.place);
        let core = place.allowed.first().copied().unwrap_or(0);
        let bench = self.bench()?;
        let runs = match *case {
            Case::Ring(kind) => {
                let walked = ring::walk(system, core, kind, options.quick, options.seed, cancel)?;
                let Some(ring) = walked else {
                    return Ok(Ended::Cancelled);
                };
                let points = ring.points.len() as f64;
                self.ring = Some(ring);
                return Ok(Ended::Well(vec![("points".to_owned(), points)]));
            }
            Case::Zero(kind) => {
                let count = BLOCK.min(options.zero_repeats() - run);
                bench.exchanges(kind, 0, count, place, cancel)?
            }
            Case::Row { sweep, bytes, .. } => {
                let count = options.repeats() + 1;
                let mut runs = match sweep {
                    Sweep::Latency => {
                        let _pinned = system.pin(core)?;
                        let mut sweeper = Sweeper::new(bench.clock, options);
                        let arena = &mut bench.arena;
                        repeat(count, cancel, || sweeper.run(arena, bytes))?
                    }
                    Sweep::Exchange(kind) => bench.exchanges(kind, bytes, count, place, cancel)?,
                    Sweep::Ready(kind) => {
                        let places = places(place, kind)?;
                        let Bench {
                            arena, exchanger, ..
                        } = bench;
                        Some(exchanger.run_ready(arena, bytes, places, count)?)
                    }
                };
                // The first one is the warm-up.
                if let Some(runs) = &mut runs {
                    runs.remove(0);
                }
                runs
            }
        };
        Ok(runs.map_or(Ended::Cancelled, |runs| {
            Ended::Well(runs.iter().flat_map(record::figures).collect())
        }))
    }

    fn keep(&mut self, results: &mut Results) {
        results.site.rings.extend(self.ring.take());
    }

    /// Notes, for the source's core numbers, the cores on which the receivers ran that could not be
    /// pinned.
    fn end(&mut self, results: &mut Results) {
        if !results.options.has(Defect::Pinning) {
            return;
        }
        for kind in Type::ALL {
            let rows = results.rows_of(Sweep::Exchange(kind.into()));
            let runs: Vec<Run> = rows.flat_map(|row| row.runs).collect();
            let together = runs.iter().filter(|run| run.sender == run.receiver).count();
            let places = results.site.place.places(kind);
            let Some(places) = places.filter(|_| !runs.is_empty()) else {
                continue;
            };
            results.about.note(format!(
                "with the defect `pinning`, experiment {} sends from core {} to core {}: in {together} of {} runs \
                 both threads ran on one core",
                kind.experiment(),
                places.sender,
                places.receiver,
                runs.len()
            ));
        }
    }

    fn title(results: &Results) -> String {
        format!("Cache impact on {}", results.site.place.cpu)
    }

    fn verdicts(results: &Results) -> Vec<JudgedClaim> {
        let questions = compare::evidence(results, Sweep::Exchange).verdicts();
        questions.into_iter().map(|one| one.claim()).collect()
    }

    fn tables(results: &Results) -> Vec<File> {
        results::tables(results)
    }

    fn page(&self, results: &Results) -> String {
        page::page(results, self.profile.as_ref())
    }
}

impl Bench {
    /// Measures what takes a moment and is not there yet.
    fn once(&self, results: &mut Results) -> Result<(), StudyError> {
        let (options, site) = (&results.options, &mut results.site);
        let clock = &self.clock;
        if options.wants(Experiment::Timers) && site.timers.is_none() {
            site.timers = Some(timers::timers(clock));
        }
        if options.wants(Experiment::Opening) && site.opening.is_none() {
            site.opening = Some(timers::opening());
        }
        if options.wants(Experiment::Events) && site.events.is_none() {
            site.events = Some(timers::events(clock)?);
        }
        if options.wants(Experiment::Register) && site.register.is_none() {
            site.register = Some(sweep::register(clock));
        }
        Ok(())
    }

    /// Makes some untimed exchanges of each type, and returns how many faults an exchange of
    /// nothing has here: those are the bookkeeping's and the threads' own. The source found two.
    fn warm_up(&mut self, place: &site::Site) -> Result<u64, StudyError> {
        const RUNS: u32 = 21;
        let never = AtomicBool::new(false);
        let mut allowed = FAULTS_PUBLISHED;
        for kind in Type::ALL {
            if place.places(kind).is_none() {
                continue;
            }
            let runs = self.exchanges(kind.into(), 0, RUNS, place, &never)?;
            let runs = runs.unwrap_or_default();
            let faults = runs.iter().map(|run| run.events.faults_minor as f64);
            let faults = median(&faults.collect::<Vec<_>>());
            allowed = allowed.max(faults.unwrap_or(0.0).ceil() as u64);
        }
        Ok(allowed)
    }

    /// Exchanges of a size; `None` if the caller raised the flag.
    fn exchanges(
        &mut self,
        kind: Kind,
        bytes: u64,
        count: u32,
        place: &site::Site,
        cancel: &AtomicBool,
    ) -> Result<Option<Vec<Run>>, StudyError> {
        let places = places(place, kind)?;
        let experiment = Type::from(kind).experiment();
        let (arena, exchanger) = (&mut self.arena, &mut self.exchanger);
        repeat(count, cancel, || {
            exchanger.run(experiment, arena, bytes, places)
        })
    }
}

fn places(place: &site::Site, kind: Kind) -> Result<Places, StudyError> {
    let kind = Type::from(kind);
    let found = place.places(kind);
    found.ok_or_else(|| StudyError::machine(place.why_not(kind)))
}

/// Runs in a row; `None` if the caller raised the flag.
fn repeat(
    count: u32,
    cancel: &AtomicBool,
    mut run: impl FnMut() -> Result<Run, StudyError>,
) -> Result<Option<Vec<Run>>, StudyError> {
    let mut runs = Vec::new();
    for _ in 0..count {
        // Relaxed: says only that it is to stop.
        if cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        runs.push(run()?);
    }
    Ok(Some(runs))
}
