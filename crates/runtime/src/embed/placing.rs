//! Places components, and reports their places.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, OnceLock};

use hearth_machine::profile::Profile;
use hearth_sys::affinity;

use super::error::{PlacementError, StartError};
use super::life::with_current;
use super::placement::Placement;
use super::{Carrier, Runtime, Settings};
use crate::abi::{ComponentType, literal};
use crate::c;
use crate::exchange::carrier;
use crate::ground::options::{Carrying, CorePlan, Policy};
use crate::ground::runtime::{Part, enter};
use crate::ground::sync::lock_std as lock;
use crate::placer::initial;
use crate::seats::registry;
use crate::seats::seat::Identity;

pub use crate::placer::{
    Event as PlacementEvent, Happened as PlacementChange, Move, Why as MoveReason,
};

/// Parses `Worker#3` as the third `Worker`.
fn numbered(component: &str) -> Option<(&str, u32)> {
    let (name, number) = component.rsplit_once('#')?;
    let number = number.parse().ok().filter(|&number| number > 0)?;
    Some((name, number))
}

/// Returns the placement for the environment's policy.
pub(super) fn placement(policy: Policy) -> Placement {
    match policy {
        Policy::Os | Policy::Plan => Placement::WithCreator,
        Policy::Spread => Placement::Spread,
        Policy::Single => Placement::Single,
        Policy::Random => Placement::Random,
        Policy::Steal => Placement::Steal,
        Policy::Talk => Placement::Talk,
    }
}

/// Returns the policy for the settings.
pub(super) fn policy(settings: &Settings) -> Policy {
    match (settings.placement, &settings.plan) {
        (Placement::Talk, _) => Policy::Talk,
        (Placement::WithCreator, Some(_)) => Policy::Plan,
        (Placement::WithCreator, None) => Policy::Os,
        (Placement::Spread, _) => Policy::Spread,
        (Placement::Single, _) => Policy::Single,
        (Placement::Random, _) => Policy::Random,
        (Placement::Steal, _) => Policy::Steal,
    }
}

/// Returns the plan in the runtime's form.
pub(super) fn plan(settings: &Settings) -> Option<CorePlan> {
    let mut plan = CorePlan::default();
    for (component, cpu) in settings.plan.as_ref()? {
        let core = *cpu as usize;
        if let Some((name, number)) = numbered(component) {
            plan.put(name, number, core);
        }
        // A name that itself ends in a number is meant, too.
        plan.put(component, 1, core);
    }
    Some(plan)
}

/// Checks that components can be placed by these settings.
pub(super) fn check(settings: &Settings) -> Result<(), StartError> {
    if let Some(text) = &settings.machine {
        Profile::from_json(text)
            .map_err(|error| StartError::Placement(PlacementError::Profile(error.to_string())))?;
    }
    match &settings.plan {
        Some(plan) => check_plan(plan, settings).map_err(StartError::Placement),
        None => Ok(()),
    }
}

fn check_plan(plan: &[(String, u32)], settings: &Settings) -> Result<(), PlacementError> {
    if !matches!(settings.placement, Placement::WithCreator | Placement::Talk) {
        return Err(PlacementError::Policy(settings.placement));
    }
    let allowed = affinity::allowed();
    let workers = carrier::worker_count(settings.workers, allowed.len());
    if settings.carrier == Carrier::Workers && workers > allowed.len() {
        return Err(PlacementError::Unbound {
            workers,
            cpus: allowed.len(),
        });
    }
    for (component, cpu) in plan {
        let place = allowed.iter().position(|&core| core == *cpu as usize);
        match place {
            None => {
                return Err(PlacementError::Cpu {
                    component: component.clone(),
                    cpu: *cpu,
                    allowed,
                });
            }
            Some(place) if settings.carrier == Carrier::Workers && place >= workers => {
                return Err(PlacementError::Worker {
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
static PLANNED: Part<OnceLock<Vec<String>>> = Part::new(OnceLock::new);

/// Names and numbers in the plan that have had a component.
static MADE: Part<Mutex<HashSet<(String, u32)>>> = Part::new(Mutex::default);

/// Keeps the plan's names as the runtime starts with these settings.
pub(super) fn keep_names(settings: &Settings) {
    if let Some(plan) = &settings.plan {
        let names = plan.iter().map(|(name, _)| name.clone());
        let _ = PLANNED.set(names.collect());
    }
}

/// Notes that a component is made: its name and number may be in the plan.
pub(super) fn note_planned(of: *const ComponentType, identity: &Identity) {
    if initial::planned(of, identity).is_some() {
        // SAFETY: component types are static, and their names literals.
        let name = unsafe { literal((*of).name) }.into_owned();
        lock(&MADE).insert((name, identity.number));
    }
}

/// Registers a listener for the placer's later decisions.
pub fn listen(runtime: &Runtime, listener: Box<dyn FnMut(&PlacementEvent) + Send>) {
    let _inside = enter(runtime.inner());
    crate::placer::listen(listener);
}

/// Returns the plan's names without a component so far, in the plan's order.
pub fn missing(runtime: &Runtime) -> Vec<String> {
    let _inside = enter(runtime.inner());
    let names = PLANNED.get().map_or(&[][..], Vec::as_slice);
    let made = lock(&MADE);
    let is_made = |name: &str, number| made.contains(&(name.to_owned(), number));
    let is_missing = |name: &&String| {
        let of_kind = numbered(name).is_some_and(|(kind, number)| is_made(kind, number));
        !of_kind && !is_made(name, 1)
    };
    names.iter().filter(is_missing).cloned().collect()
}

/// Returns the settings for carriers.
pub(super) fn carrying(settings: &Settings) -> Carrying {
    match settings.carrier {
        Carrier::Threads => Carrying::Threads,
        Carrier::Workers => Carrying::Workers,
    }
}

/// A component's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentPlacement {
    /// The component's name, as in reports.
    pub component: String,
    /// The CPU that the component is kept on, if any.
    pub cpu: Option<usize>,
    /// The number of its worker, from 0; none if it has a thread of its own.
    pub worker: Option<usize>,
    /// The number of times it moved from one worker to another or, with a thread of its own, was
    /// put on another CPU by [`Placement::Talk`].
    pub moves: u32,
    /// True for a service.
    pub is_service: bool,
}

/// Returns the places of all components that have not ended, in order of creation.
pub fn placements(runtime: &Runtime) -> Vec<ComponentPlacement> {
    let _inside = enter(runtime.inner());
    let mut found = Vec::new();
    registry::for_each(|seat| {
        let component = seat.component();
        // SAFETY: registered, so alive; types are static.
        let of = unsafe { (*component).r#type };
        found.push((seat.id, of, seat.identity(), carrier::whereabouts(seat)));
    });
    // Naming takes the registry's lock, so not under this one.
    let mut placements: Vec<(u64, ComponentPlacement)> = found
        .into_iter()
        .map(|(id, of, identity, (worker, cpu))| {
            let placement = ComponentPlacement {
                component: registry::name(of, identity.number),
                cpu,
                worker,
                moves: 0,
                is_service: identity.service,
            };
            (id, placement)
        })
        .collect();
    if let Some(moves) = lock(&MOVES).as_ref() {
        for (id, placement) in &mut placements {
            placement.moves = moves.get(id).copied().unwrap_or(0);
        }
    }
    placements
        .into_iter()
        .map(|(_, placement)| placement)
        .collect()
}

/// Number of moves of each moved component, by its number.
static MOVES: Part<Mutex<Option<HashMap<u64, u32>>>> = Part::new(Mutex::default);

/// Counts a component's move.
pub(super) fn note_move(id: u64) {
    *lock(&MOVES).get_or_insert_default().entry(id).or_default() += 1;
}

/// Forgets an ended component.
pub(super) fn forget_moves(id: u64) {
    if let Some(moves) = lock(&MOVES).as_mut() {
        moves.remove(&id);
    }
}

/// Keeps the component that runs the calling code on a core, from its next wait on. False outside
/// components.
pub fn set_core(core: u32) -> bool {
    with_current(|life| {
        let Some(life) = life else { return false };
        // SAFETY: the component runs the calling code.
        unsafe { c::hearth_set_core(life.component, core) };
        true
    })
}
