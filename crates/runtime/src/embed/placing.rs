//! Where components go, and where they are.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, OnceLock};

use hearth_machine::profile::Profile;
use hearth_sys::affinity;

use super::{Settings, StartRefused};
use crate::abi::{ComponentType, literal};
use crate::exchange::carrier;
use crate::ground::options::{Carrying, Plan, Policy};
use crate::ground::sync::lock_std as lock;
use crate::placer::initial;
use crate::seats::registry;
use crate::seats::seat::Identity;

pub use crate::placer::{Event, Happened, Move, Why, listen};

/// Where components go that have no say of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// To the worker of the component that makes them, the first worker if none does; with threads,
    /// wherever the operating system puts them.
    #[default]
    Os,
    /// In turn over the CPUs.
    Spread,
    /// All on the first CPU.
    Single,
    /// Anywhere, by the seed if there is one.
    Random,
    /// As with [`Placement::Os`], until a worker that sleeps gets some from one that is busy: those that
    /// compute, and not those that talk. With threads as with [`Placement::Os`].
    Steal,
    /// As with [`Placement::Os`] or where a plan says, and then near whom they talk with: samples of
    /// messages and of how long components run show who talks with whom and who computes, and components
    /// move when that pays.
    Talk,
}

/// CPUs for components, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    plan: Plan,
    /// In the order in which they were put: name, CPU.
    entries: Vec<(String, u32)>,
}

impl Places {
    /// Puts the component of this name on a CPU: `Worker` is the first of that name, as `Worker#1` is, and
    /// `Worker#3` the third. The last word about one counts.
    pub fn put(&mut self, component: &str, cpu: u32) {
        let core = cpu as usize;
        if let Some((name, number)) = numbered(component) {
            self.plan.put(name, number, core);
        }
        // One whose very name ends in a number is meant, too.
        self.plan.put(component, 1, core);
        self.entries.retain(|(there, _)| there != component);
        self.entries.push((component.to_owned(), cpu));
    }

    /// All, in the order in which they were put.
    pub fn entries(&self) -> &[(String, u32)] {
        &self.entries
    }
}

/// `Worker#3` is the third `Worker`.
fn numbered(component: &str) -> Option<(&str, u32)> {
    let (name, number) = component.rsplit_once('#')?;
    let number = number.parse().ok().filter(|&number| number > 0)?;
    Some((name, number))
}

/// Why components cannot be placed as the settings say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceRefused {
    /// The policy places all components itself.
    Policy(Placement),
    /// The plan names a CPU that this process may not use.
    Cpu {
        /// For this component.
        component: String,
        /// That one.
        cpu: u32,
        /// Those that it may use.
        allowed: Vec<usize>,
    },
    /// The plan names a CPU that has no worker.
    Worker {
        /// For this component.
        component: String,
        /// That one.
        cpu: u32,
        /// Those that have one.
        with_worker: Vec<usize>,
    },
    /// There are more workers than CPUs, so none is bound to a CPU.
    Unbound {
        /// So many.
        workers: usize,
        /// So many.
        cpus: usize,
    },
    /// What the machine's profile cannot be used for.
    Profile(String),
}

impl fmt::Display for PlaceRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceRefused::Policy(policy) => write!(
                f,
                "Placement::{policy:?} places every component itself; a plan goes with \
                 Placement::Os or Placement::Talk"
            ),
            PlaceRefused::Cpu {
                component,
                cpu,
                allowed,
            } => write!(
                f,
                "the plan puts {component} on CPU {cpu}, which this process may not use; it may \
                 use {}: make the plan for those, or allow the CPU with `taskset`",
                list(allowed)
            ),
            PlaceRefused::Worker {
                component,
                cpu,
                with_worker,
            } => write!(
                f,
                "the plan puts {component} on CPU {cpu}, which has no worker, as there are \
                 workers on {} only: ask for more, or make the plan for those",
                list(with_worker)
            ),
            PlaceRefused::Unbound { workers, cpus } => write!(
                f,
                "{workers} workers on {cpus} CPUs are bound to none of them, so no plan can be \
                 followed; ask for {cpus} workers at most"
            ),
            PlaceRefused::Profile(reason) => {
                write!(f, "the machine's profile cannot be used: {reason}")
            }
        }
    }
}

fn list(cores: &[usize]) -> String {
    let numbers: Vec<String> = cores.iter().map(usize::to_string).collect();
    numbers.join(", ")
}

/// The policy that the settings ask for.
pub(super) fn policy(settings: &Settings) -> Policy {
    match (settings.placement, &settings.plan) {
        (Placement::Talk, _) => Policy::Talk,
        (Placement::Os, Some(_)) => Policy::Plan,
        (Placement::Os, None) => Policy::Os,
        (Placement::Spread, _) => Policy::Spread,
        (Placement::Single, _) => Policy::Single,
        (Placement::Random, _) => Policy::Random,
        (Placement::Steal, _) => Policy::Steal,
    }
}

/// The plan as the runtime takes it.
pub(super) fn plan(settings: &Settings) -> Option<Plan> {
    settings.plan.as_ref().map(|places| places.plan.clone())
}

/// Can components be placed so?
pub(super) fn check(settings: &Settings) -> Result<(), StartRefused> {
    if let Some(text) = &settings.machine {
        Profile::from_json(text)
            .map_err(|error| StartRefused::Place(PlaceRefused::Profile(error.to_string())))?;
    }
    match &settings.plan {
        Some(plan) => check_plan(plan, settings).map_err(StartRefused::Place),
        None => Ok(()),
    }
}

fn check_plan(plan: &Places, settings: &Settings) -> Result<(), PlaceRefused> {
    if !matches!(settings.placement, Placement::Os | Placement::Talk) {
        return Err(PlaceRefused::Policy(settings.placement));
    }
    let allowed = affinity::allowed();
    let workers = carrier::worker_count(settings.workers, allowed.len());
    if !settings.threads && workers > allowed.len() {
        return Err(PlaceRefused::Unbound {
            workers,
            cpus: allowed.len(),
        });
    }
    for (component, cpu) in plan.entries() {
        let place = allowed.iter().position(|&core| core == *cpu as usize);
        match place {
            None => {
                return Err(PlaceRefused::Cpu {
                    component: component.clone(),
                    cpu: *cpu,
                    allowed,
                });
            }
            Some(place) if !settings.threads && place >= workers => {
                return Err(PlaceRefused::Worker {
                    component: component.clone(),
                    cpu: *cpu,
                    with_worker: allowed[..workers].to_vec(),
                });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The plan's names, in its order, once the runtime has started with one.
static PLANNED: OnceLock<Vec<String>> = OnceLock::new();

/// Names and numbers in the plan that a component has had.
static MADE: Mutex<Option<HashSet<(String, u32)>>> = Mutex::new(None);

/// The runtime starts with these settings.
pub(super) fn keep_names(settings: &Settings) {
    if let Some(places) = &settings.plan {
        let names = places.entries().iter().map(|(name, _)| name.clone());
        // One that started before has the same.
        let _ = PLANNED.set(names.collect());
    }
}

/// A component is made: maybe its name and number are in the plan.
pub(super) fn note_planned(of: *const ComponentType, identity: &Identity) {
    if initial::planned(of, identity).is_some() {
        // SAFETY: component types are static, and their names literals.
        let name = unsafe { literal((*of).name) }.into_owned();
        let made = &mut *lock(&MADE);
        made.get_or_insert_default().insert((name, identity.number));
    }
}

/// The plan's names that no component has had yet, in the plan's order.
pub fn missing() -> Vec<String> {
    let names = PLANNED.get().map_or(&[][..], Vec::as_slice);
    let made = lock(&MADE);
    let is_made = |name: &str, number| {
        let made = made.as_ref();
        made.is_some_and(|made| made.contains(&(name.to_owned(), number)))
    };
    let is_missing = |name: &&String| {
        let of_kind = numbered(name).is_some_and(|(kind, number)| is_made(kind, number));
        !of_kind && !is_made(name, 1)
    };
    names.iter().filter(is_missing).cloned().collect()
}

/// The settings for what carries components.
pub(super) fn carrying(settings: &Settings) -> Carrying {
    match settings.threads {
        true => Carrying::Threads,
        false => Carrying::Workers,
    }
}

/// Where a component is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its name, as in reports.
    pub component: String,
    /// The CPU that it is kept on; none if it is kept on none.
    pub cpu: Option<usize>,
    /// The number of its worker, from 0; none if it has a thread of its own.
    pub worker: Option<usize>,
    /// How often it moved from one worker to another, or, with a thread of its own, was put on another
    /// CPU by [`Placement::Talk`].
    pub moves: u32,
    /// It serves others.
    pub is_service: bool,
}

/// Where all components are now that have not ended, in the order in which they were made.
pub fn stations() -> Vec<Station> {
    let mut found = Vec::new();
    registry::for_each(|seat| {
        let component = seat.component();
        // SAFETY: enrolled, so alive; types are static.
        let of = unsafe { (*component).r#type };
        found.push((seat.id, of, seat.identity(), carrier::whereabouts(seat)));
    });
    // Names are made under the registry's lock, so not under this one.
    let mut stations: Vec<(u64, Station)> = found
        .into_iter()
        .map(|(id, of, identity, (worker, cpu))| {
            let station = Station {
                component: registry::name(of, identity.number),
                cpu,
                worker,
                moves: 0,
                is_service: identity.service,
            };
            (id, station)
        })
        .collect();
    if let Some(moves) = lock(&MOVES).as_ref() {
        for (id, station) in &mut stations {
            station.moves = moves.get(id).copied().unwrap_or(0);
        }
    }
    stations.into_iter().map(|(_, station)| station).collect()
}

/// How often components moved that did, by number.
static MOVES: Mutex<Option<HashMap<u64, u32>>> = Mutex::new(None);

/// A component moves.
pub(super) fn note_move(id: u64) {
    *lock(&MOVES).get_or_insert_default().entry(id).or_default() += 1;
}

/// A component has ended.
pub(super) fn forget_moves(id: u64) {
    if let Some(moves) = lock(&MOVES).as_mut() {
        moves.remove(&id);
    }
}
