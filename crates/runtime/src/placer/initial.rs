//! Chooses the core that a component is kept on.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use hearth_sys::affinity;

use crate::abi::{self, Component, ComponentType};
use crate::exchange::carrier;
use crate::ground::options::{self, Carrying, Policy};
use crate::ground::runtime::Part;
use crate::hooks::{By, Choice, simulation};
use crate::seats::registry;
use crate::seats::seat::Identity;

/// The cores this process may use, as of the start.
fn cores() -> &'static [usize] {
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    CORES.get_or_init(affinity::allowed)
}

/// Chooses the core for a new component: the one asked for, else the policy's. The main sequence
/// and services stay with the operating system.
pub(crate) fn choose(
    request: i32,
    of: *const ComponentType,
    identity: &Identity,
) -> Option<Choice> {
    // The first call comes before any thread is pinned.
    let cores = cores();
    // Looked up even for a component that goes elsewhere: it counts as present.
    let planned = planned(of, identity);
    let requested = usize::try_from(request).ok().filter(|&core| exists(core));
    if let Some(core) = requested {
        return Some(Choice { core, by: By::Name });
    }
    let policy = options::get().policy;
    let is_left = matches!(policy, Policy::Os | Policy::Steal);
    if is_left || identity.service || registry::is_mains(identity.id) {
        return None;
    }
    static PLACED: Part<AtomicUsize> = Part::new(AtomicUsize::default);
    let place = PLACED.fetch_add(1, Ordering::Relaxed);
    let one_of = |number: usize| match options::get().workers {
        // More workers than cores are bound to none: workers go by their own numbers.
        Some(workers) if workers > cores.len() && options::get().carrying == Carrying::Workers => {
            number % workers
        }
        _ => cores[number % cores.len()],
    };
    let core = match policy {
        Policy::Os | Policy::Steal => return None,
        Policy::Spread => one_of(place),
        Policy::Single => cores[0],
        Policy::Random => one_of(random(place)),
        Policy::Talk => {
            let core = planned?;
            return Some(Choice { core, by: By::Plan });
        }
        Policy::Plan => planned?,
    };
    Some(Choice {
        core,
        by: By::Policy,
    })
}

/// Returns the plan's core for a component, and notes that the component exists. The plan knows
/// components by their type and their number within that type.
pub(crate) fn planned(of: *const ComponentType, identity: &Identity) -> Option<usize> {
    let plan = options::get().plan.as_ref()?;
    // SAFETY: component types are static, and their names literals.
    let name = unsafe { abi::literal((*of).name) };
    plan.core_of(&name, identity.number)
}

fn random(place: usize) -> usize {
    static SEED: Part<OnceLock<u64>> = Part::new(OnceLock::new);
    let seed = *SEED.get_or_init(|| {
        options::get().seed.unwrap_or_else(|| {
            use std::hash::{BuildHasher, RandomState};
            RandomState::new().hash_one(0)
        })
    });
    crate::ground::choices::scramble(seed ^ crate::ground::choices::scramble(place as u64)) as usize
}

/// Tells whether the machine has this core; the process may still be barred from it.
fn exists(core: usize) -> bool {
    if simulation::is_on() {
        return true;
    }
    let last = cores().iter().copied().max().unwrap_or(0);
    core <= last
}

/// `setCore`: keeps the calling component on a core, whatever the policy says. A core beyond the
/// last one is ignored.
///
/// # Safety
/// `self` runs this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_set_core(this: *mut Component, core: u32) {
    if exists(core as usize) {
        // SAFETY: as the caller promises.
        unsafe { carrier::set_core(this, core as usize) };
    }
}
