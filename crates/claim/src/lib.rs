//! Cores that belong to a program: it *invades* some, uses them alone, and *retreats* from them.
//!
//! All programs of a user, or of a machine, share a registry of who has which cores. There is no
//! daemon: the registry is a folder in memory whose states follow each other, and each program that
//! takes part publishes the next one. A program that ends, however it ends, has no cores any more.
//! A program that is stopped keeps its cores and stops nobody. See `docs/internals/claims.md`.
//!
//! ```no_run
//! use hearth_claim::{Claim, Constraints};
//!
//! let mut claim = Claim::begin("render")?;
//! let grant = claim.invade(Constraints::cores(2..=8).scatter())?;
//! if grant.is_enough() {
//!     claim.pin_threads();
//!     // … a thread on each of claim.cpus() …
//! }
//! claim.retreat(1)?;
//! # Ok::<(), hearth_claim::ClaimError>(())
//! ```
#![forbid(unsafe_code)]

mod chain;
mod constraints;
mod error;
mod folder;
mod jobserver;
mod kernel;
mod member;
mod memory;
#[cfg(test)]
mod model;
mod outside;
mod processes;
mod registry;
mod remade;
mod state;
mod steward;
#[cfg(test)]
mod testing;
mod threads;

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hearth_sys::affinity;

pub use constraints::{Constraints, Core, Site, Spread, choose, give_back};
pub use error::ClaimError;
pub use folder::VARIABLE;
pub use jobserver::{Form, Jobserver};
pub use memory::MemoryMover;
use registry::{Plan, Registry};
pub use remade::Remade;
pub use state::{Holder, ProcessId, State};
pub use steward::{Team, Tended};
pub use threads::{move_own_threads, move_threads};

/// Pause between two looks while cores are waited for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Result of asking for cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// All cores of the claim now, ascending.
    pub cores: Vec<Core>,
    /// The CPUs of these, ascending.
    pub cpus: Vec<usize>,
    /// Cores that are missing to the least number wished for. The claim is as it was, and others
    /// were asked to give some back.
    pub missing: u32,
}

impl Grant {
    /// Whether the least number was granted.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.missing == 0
    }
}

/// A process's claim. Dropped, it gives its cores back. The child of a fork has none.
#[derive(Debug)]
pub struct Claim {
    registry: Registry,
    site: Site,
    wish: Constraints,
}

impl Claim {
    /// Begins without cores, on this machine and in the usual registry: that of the machine, if an
    /// administrator has made one, or the user's. `HEARTH_CLAIMS` names another folder.
    ///
    /// # Errors
    /// The registry cannot be used, or the machine does not describe itself.
    pub fn begin(name: &str) -> Result<Claim, ClaimError> {
        Claim::within(&folder::find()?, this_site()?, name)
    }

    /// Goes on with the claim of a process that has one and does nothing with it any more itself:
    /// it was replaced by a program that knows nothing of claims. The claim is as it is, and ends
    /// with that process or when it is dropped here.
    ///
    /// # Errors
    /// The process has no claim, or as for [`Claim::begin`].
    pub fn of_process(process: u32, wish: Constraints) -> Result<Claim, ClaimError> {
        Claim::for_process(&folder::find()?, this_site()?, process, wish)
    }

    /// The same in a folder, with a described machine, for tests.
    ///
    /// # Errors
    /// The process has no claim, or the folder cannot be used.
    #[doc(hidden)]
    pub fn for_process(
        folder: &Path,
        site: Site,
        process: u32,
        wish: Constraints,
    ) -> Result<Claim, ClaimError> {
        let process = processes::of(process).ok_or(ClaimError::Ended(process))?;
        let registry = Registry::act_for(folder, process)?;
        Ok(Claim {
            registry,
            site,
            wish,
        })
    }

    /// [`Claim::begin`] in a folder, with a described machine, for tests.
    ///
    /// # Errors
    /// The folder cannot be used.
    #[doc(hidden)]
    pub fn within(folder: &Path, site: Site, name: &str) -> Result<Claim, ClaimError> {
        Ok(Claim {
            registry: Registry::join(folder, name)?,
            site,
            wish: Constraints::cores(1..=1).at_most(0),
        })
    }

    /// Asks for cores, in addition to those of the claim, up to the most of the constraints. If
    /// the least cannot be had, nothing changes, and those who have more than their least are
    /// asked to give some back; those with stewards then leave what becomes free to this claim,
    /// until it asks for less or retreats.
    ///
    /// # Errors
    /// The registry cannot be used.
    pub fn invade(&mut self, wish: Constraints) -> Result<Grant, ClaimError> {
        let quantity = wish.quantity();
        let site = &self.site;
        let own = self.registry.own();
        let mut missing = 0;
        let mut plan = |state: &State, mut plan: Plan| {
            plan.wish = quantity;
            let free = state.free(site.cores());
            let more = choose(site, &plan.cores, &free, &wish);
            let got = (plan.cores.len() + more.len()) as u32;
            missing = quantity.0.saturating_sub(got);
            match missing {
                0 => plan.cores.extend(more),
                _ => plan.ask_back = ask_back(state, own, missing),
            }
            plan
        };
        self.registry.change(&mut plan)?;
        self.wish = wish;
        Ok(Grant {
            cores: self.registry.cores().to_vec(),
            cpus: self.cpus(),
            missing,
        })
    }

    /// The same, for some time: others may give cores back, or end. Afterwards the claim waits for
    /// nothing any more.
    ///
    /// # Errors
    /// The registry cannot be used.
    pub fn invade_within(
        &mut self,
        wish: Constraints,
        time: Duration,
    ) -> Result<Grant, ClaimError> {
        let begin = Instant::now();
        loop {
            let grant = self.invade(wish.clone())?;
            if grant.is_enough() {
                return Ok(grant);
            }
            if begin.elapsed() >= time {
                self.wait_no_more()?;
                return Ok(grant);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Gives cores back until so many are left; which, the last constraints decide.
    ///
    /// # Errors
    /// The registry cannot be used.
    pub fn retreat(&mut self, left: usize) -> Result<(), ClaimError> {
        let given = self.to_give_back(left);
        let wish = self.wish.at_most(u32::try_from(left).unwrap_or(u32::MAX));
        let quantity = wish.quantity();
        self.registry.change(&mut |_, mut plan| {
            plan.cores.retain(|core| !given.contains(core));
            plan.wish = quantity;
            plan
        })?;
        self.wish = wish;
        Ok(())
    }

    /// The cores without which the claim has so many.
    fn to_give_back(&self, left: usize) -> Vec<Core> {
        let held = self.registry.cores();
        let count = held.len().saturating_sub(left);
        give_back(&self.site, held, count, &self.wish)
    }

    /// Gives these cores back.
    ///
    /// # Errors
    /// The registry cannot be used.
    pub fn retreat_from(&mut self, cores: &[Core]) -> Result<(), ClaimError> {
        let mut plan = |_: &State, mut plan: Plan| {
            plan.cores.retain(|core| !cores.contains(core));
            plan
        };
        self.registry.change(&mut plan)
    }

    /// The cores of the claim, ascending.
    #[must_use]
    pub fn cores(&self) -> &[Core] {
        self.registry.cores()
    }

    /// The CPUs of its cores, ascending.
    #[must_use]
    pub fn cpus(&self) -> Vec<usize> {
        self.site.cpus(self.registry.cores())
    }

    /// Its CPUs if it gave some cores back.
    fn cpus_without(&self, given: &[Core]) -> Vec<usize> {
        let held = self.registry.cores().iter().copied();
        let left: Vec<Core> = held.filter(|core| !given.contains(core)).collect();
        self.site.cpus(&left)
    }

    /// The claim's process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.registry.own().number
    }

    /// Whether its process has not ended.
    fn is_alive(&mut self) -> bool {
        self.registry.is_alive()
    }

    /// Readable descriptors of processes with claims that have ended.
    fn ends(&self) -> Vec<OwnedFd> {
        self.registry.ends()
    }

    /// The registry seen by the claim's steward, without those who have ended.
    fn outlook(&mut self) -> Result<Outlook, ClaimError> {
        let own = self.registry.own();
        let mut state = State::default();
        self.registry.change(&mut |seen, plan| {
            state.clone_from(seen);
            plan
        })?;
        let held = self.registry.cores();
        let asked_back = state.holders.get(&own).map_or(0, |own| own.asked_back);
        let spare = (held.len() as u32).saturating_sub(self.wish.least);
        let can_grow = choose(&self.site, held, &state.free(self.site.cores()), &self.wish);
        Ok(Outlook {
            asked_back: asked_back.min(spare),
            can_grow: (can_grow.len() as u32).saturating_sub(awaited(&state, own)),
        })
    }

    /// Takes up to so many cores that are free.
    fn grow(&mut self, cores: u32) -> Result<(), ClaimError> {
        let most = self.registry.cores().len() as u32 + cores;
        let bounded = self.wish.at_most(most);
        let site = &self.site;
        let quantity = self.wish.quantity();
        let own = self.registry.own();
        self.registry.change(&mut |state, mut plan| {
            let free = state.free(site.cores());
            let mut more = choose(site, &plan.cores, &free, &bounded);
            more.truncate(free.len().saturating_sub(awaited(state, own) as usize));
            plan.cores.extend(more);
            plan.wish = quantity;
            plan
        })
    }

    /// Wishes for no more cores than it has.
    fn wait_no_more(&mut self) -> Result<(), ClaimError> {
        self.wish_at_most(self.registry.cores().len())
    }

    /// Wishes for no more than so many cores from now on.
    fn wish_at_most(&mut self, cores: usize) -> Result<(), ClaimError> {
        let most = u32::try_from(cores).unwrap_or(u32::MAX);
        self.wish = self.wish.at_most(most);
        let quantity = self.wish.quantity();
        self.registry.change(&mut |_, mut plan| {
            plan.wish = quantity;
            plan
        })
    }

    /// Number of cores that others ask the claim to give back.
    ///
    /// # Errors
    /// The registry cannot be used.
    pub fn asked_back(&mut self) -> Result<u32, ClaimError> {
        let own = self.registry.own();
        let state = self.registry.state()?;
        Ok(state.holders.get(&own).map_or(0, |own| own.asked_back))
    }

    /// All claims as they are now.
    ///
    /// # Errors
    /// The registry cannot be used.
    pub fn state(&mut self) -> Result<State, ClaimError> {
        self.registry.state()
    }

    /// Whether the registry was found damaged since the last call, and made anew from what living
    /// programs have.
    pub fn was_rebuilt(&mut self) -> bool {
        self.registry.was_rebuilt()
    }

    /// The registry's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.registry.folder()
    }

    /// Lets all threads of the process run on the claim's CPUs only. Number of threads that were
    /// moved; threads that begin later are where their makers are.
    pub fn pin_threads(&self) -> usize {
        let cpus = self.cpus();
        if cpus.is_empty() {
            return 0;
        }
        let threads = fs::read_dir(format!("/proc/{}/task", self.process()));
        let threads = threads.into_iter().flatten().flatten();
        let numbers = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
        numbers
            .filter(|thread| affinity::allow_thread(*thread, &cpus).is_ok())
            .count()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.registry.leave();
    }
}

/// Prospects of a claim.
struct Outlook {
    /// Cores beyond its least that others ask for.
    asked_back: u32,
    /// Free cores that it may have.
    can_grow: u32,
}

/// Number of cores that others wait for. What becomes free is theirs.
fn awaited(state: &State, own: ProcessId) -> u32 {
    let others = state.holders.iter().filter(|(process, _)| **process != own);
    let missing = others.map(|(_, one)| one.wish.0.saturating_sub(one.cores.len() as u32));
    missing.fold(0, u32::saturating_add)
}

/// Numbers of cores that others are to give back: each what it has beyond its least, in turns.
fn ask_back(state: &State, own: ProcessId, mut missing: u32) -> BTreeMap<ProcessId, u32> {
    let mut asked = BTreeMap::new();
    let others = state.holders.iter().filter(|(process, _)| **process != own);
    let mut spare: Vec<(ProcessId, u32)> = others
        .map(|(process, holder)| {
            let least = holder.wish.0.max(1);
            (*process, (holder.cores.len() as u32).saturating_sub(least))
        })
        .collect();
    while missing > 0 && spare.iter().any(|(_, spare)| *spare > 0) {
        for (process, spare) in &mut spare {
            if missing > 0 && *spare > 0 {
                *asked.entry(*process).or_insert(0) += 1;
                *spare -= 1;
                missing -= 1;
            }
        }
    }
    asked
}

/// The cores of this machine that the process may use.
///
/// # Errors
/// The machine does not describe itself.
pub fn this_site() -> Result<Site, ClaimError> {
    let (profile, machine) = hearth_beside::this_machine().ok_or(ClaimError::NoMachine)?;
    Ok(Site::new(&profile, machine))
}

/// Claims in the usual registry, seen by somebody who has none. None if there is no registry.
///
/// # Errors
/// The registry cannot be used.
pub fn look() -> Result<Option<(PathBuf, State)>, ClaimError> {
    let Some(folder) = folder::existing()? else {
        return Ok(None);
    };
    let state = registry::look(&folder)?;
    Ok(state.map(|state| (folder, state)))
}
