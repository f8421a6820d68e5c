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
mod member;
mod processes;
mod registry;
mod state;
#[cfg(test)]
mod testing;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hearth_sys::affinity;

pub use constraints::{Constraints, Core, Site, Spread, choose, give_back};
pub use error::ClaimError;
pub use folder::VARIABLE;
use registry::{Plan, Registry};
pub use state::{Holder, ProcessId, State};

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

    /// The same in a folder, with a described machine, for tests.
    ///
    /// # Errors
    /// The folder cannot be used.
    #[doc(hidden)]
    pub fn within(folder: &Path, site: Site, name: &str) -> Result<Claim, ClaimError> {
        Ok(Claim {
            registry: Registry::join(folder, name)?,
            site,
            wish: Constraints::cores(1..=1),
        })
    }

    /// Asks for cores, in addition to those of the claim, up to the most of the constraints. If the
    /// least cannot be had, nothing changes, and those who have more than their least are asked to
    /// give some back.
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

    /// The same, for some time: others may give cores back, or end.
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
            if grant.is_enough() || begin.elapsed() >= time {
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
        let held = self.registry.cores();
        let given = give_back(
            &self.site,
            held,
            held.len().saturating_sub(left),
            &self.wish,
        );
        self.retreat_from(&given)
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
        let threads = fs::read_dir("/proc/self/task")
            .into_iter()
            .flatten()
            .flatten();
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
