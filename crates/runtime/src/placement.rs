//! Which core a component is kept on.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use hearth_sys::affinity;

use crate::abi::{self, Component, ComponentType};
use crate::carrier;
#[cfg(not(loom))]
use crate::embed;
use crate::options::{self, Carrying, Policy};
use crate::seat::{Identity, Seat};
use crate::{registry, simulator};

/// The cores this process may use, as they were at the start.
fn cores() -> &'static [usize] {
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    CORES.get_or_init(affinity::allowed)
}

/// Where a new component goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) core: usize,
    pub(crate) by: By,
}

/// Who says where a component goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The program: it is there, whatever others say.
    Name,
    /// A policy, or a plan that is followed: nobody moves it elsewhere unasked.
    Policy,
    /// A plan that is where it begins.
    Plan,
}

/// The core for a new component: the one asked for, else what the policy says. The main sequence
/// and services stay with the operating system.
pub(crate) fn choose(
    request: i32,
    of: *const ComponentType,
    identity: &Identity,
) -> Option<Choice> {
    // The first call comes before any thread is pinned.
    let cores = cores();
    // Also of who goes elsewhere, and is there all the same.
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
    static PLACED: AtomicUsize = AtomicUsize::new(0);
    let place = PLACED.fetch_add(1, Ordering::Relaxed);
    let one_of = |number: usize| match options::get().workers {
        // More workers than cores are bound to none of them: their own numbers stand for them.
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

/// The core that the plan has for a component. It knows components by their type and their number among
/// those of that type. That there is such a one is noted.
fn planned(of: *const ComponentType, identity: &Identity) -> Option<usize> {
    let plan = options::get().plan.as_ref()?;
    // SAFETY: component types are static, and their names literals.
    let name = unsafe { abi::literal((*of).name) };
    let core = plan.core_of(&name, identity.number)?;
    #[cfg(not(loom))]
    embed::note_planned(&name, identity.number);
    Some(core)
}

/// Where components are to be made: a line for each of `type`, `number` and `core`, with tabs
/// between them. `hearth run` writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    cores: HashMap<String, HashMap<u32, usize>>,
}

impl Plan {
    /// Reads one. The error says which line is not understood.
    pub(crate) fn read(text: &str) -> Result<Plan, String> {
        let mut plan = Plan::default();
        for (index, line) in text.lines().enumerate() {
            let fields: Vec<&str> = line.split('\t').collect();
            let entry = match fields[..] {
                [name, number, core] => number
                    .parse()
                    .ok()
                    .zip(core.parse().ok())
                    .map(|at| (name, at)),
                _ => None,
            };
            let Some((name, (number, core))) = entry else {
                let line = index + 1;
                return Err(format!(
                    "line {line} is no type, number and core with tabs between them"
                ));
            };
            plan.put(name, number, core);
        }
        Ok(plan)
    }

    /// Puts a component, by its type's name and its number among those of that type, from 1, on a core.
    pub(crate) fn put(&mut self, name: &str, number: u32, core: usize) {
        let of_type = self.cores.entry(name.to_owned()).or_default();
        of_type.insert(number, core);
    }

    /// All components with their cores, in the order of their names.
    #[cfg(not(loom))]
    pub(crate) fn entries(&self) -> Vec<(String, u32)> {
        let mut entries: Vec<_> = self
            .cores
            .iter()
            .flat_map(|(name, of_type)| {
                of_type
                    .iter()
                    .map(move |(number, core)| (format!("{name}#{number}"), *core as u32))
            })
            .collect();
        entries.sort();
        entries
    }

    /// The core for the component of this type with this number, from 1.
    pub(crate) fn core_of(&self, name: &str, number: u32) -> Option<usize> {
        self.cores.get(name)?.get(&number).copied()
    }
}

fn random(place: usize) -> usize {
    static SEED: OnceLock<u64> = OnceLock::new();
    let seed = *SEED.get_or_init(|| {
        options::get().seed.unwrap_or_else(|| {
            use std::hash::{BuildHasher, RandomState};
            RandomState::new().hash_one(0)
        })
    });
    crate::choices::scramble(seed ^ crate::choices::scramble(place as u64)) as usize
}

/// Is there such a core? The process may be kept from using it all the same.
fn exists(core: usize) -> bool {
    if simulator::is_on() {
        return true;
    }
    let last = cores().iter().copied().max().unwrap_or(0);
    core <= last
}

/// The core that a component with a thread of its own starts on, if it matters: its `destination`, as
/// it has no worker to move to.
pub(crate) fn core_for(seat: &Seat) -> Option<usize> {
    // SAFETY: the component is about to run on the calling thread.
    let destination = unsafe { (*seat.component()).destination };
    destination.checked_sub(1).map(usize::from)
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
