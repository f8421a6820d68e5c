//! Coscheduled sets in user space, without rights: a set's members, threads or processes, run at
//! the same time or not at all.
//!
//! Programs whose threads wait for each other while they spin, and programs that want caches or
//! memory bandwidth for themselves, lose when the system runs one half of them beside one half of
//! another. A [`Set`] has a number of cores; sets that do not fit side by side take turns. There is
//! no daemon: the processes that made sets meet in a folder, and one of them divides the time. See
//! `docs/internals/gangs.md`.
//!
//! Reading order: [`plan`] (which sets run next, and where; pure), `conductor`, `conducted` (a set
//! as the conductor has it), `run` and `set` (as users make them), `member` (the gate), `registry`,
//! `table` (what sets share), `mend` and `keeper` (when somebody is killed), [`witness`] (how well
//! it works).
//!
//! ```no_run
//! use hearth_gang::Set;
//!
//! let set = Set::of(4).named("simulate").join()?;
//! let workers: Vec<_> = (0..4)
//!     .map(|_| {
//!         let member = set.member();
//!         std::thread::spawn(move || {
//!             for _ in 0..1_000_000 {
//!                 member.pass();
//!                 // … a piece of work …
//!             }
//!         })
//!     })
//!     .collect();
//! # for worker in workers { worker.join().unwrap(); }
//! # Ok::<(), hearth_gang::GangError>(())
//! ```
#![forbid(unsafe_code)]

mod conducted;
mod conductor;
mod description;
mod error;
mod folder;
mod group;
mod keeper;
mod member;
mod mend;
pub mod plan;
mod probe;
mod registry;
mod run;
mod set;
mod table;
mod tree;
pub mod witness;

use std::path::{Path, PathBuf};

pub use description::{BackEnd, Description};
pub use error::GangError;
pub use folder::VARIABLE as FOLDER_VARIABLE;
pub use keeper::keep;
pub use member::{Member, VARIABLE as MEMBER_VARIABLE};
pub use probe::{Tried, probe};
pub use set::{Joined, SLICE, Set};
pub use table::Account;

use registry::Registry;
use table::Held;

/// A set as others see it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its description.
    pub description: Description,
    /// Its times so far.
    pub account: Account,
    /// Whether its members run now.
    pub is_on: bool,
    /// Cores that its members used in its last turns.
    pub demand: u32,
    /// Time within which 99 % of the switches to it were signalled, in ns, rounded up to 10 µs:
    /// from the first signal to the last. None without switches, or if it took more than 640 µs.
    pub switch_ns: Option<u64>,
}

/// All sets as they are now.
#[derive(Clone, Debug)]
pub struct Gangs {
    /// The registry's folder.
    pub folder: PathBuf,
    /// The process that divides the time.
    pub conductor: Option<u32>,
    /// Core time that it has divided, in ns.
    pub cores_ns: u64,
    /// Part of that for which no set was found that fits: fragmentation.
    pub idle_ns: u64,
    /// The sets, oldest first.
    pub sets: Vec<Seen>,
}

/// Sets in the usual registry, seen from outside. None if there is no registry.
///
/// # Errors
/// The registry cannot be used.
pub fn look() -> Result<Option<Gangs>, GangError> {
    folder::existing()?
        .map(|folder| look_in(&folder))
        .transpose()
}

/// Sets in the registry of a folder, for tests.
///
/// # Errors
/// The registry cannot be used.
#[doc(hidden)]
pub fn look_in(folder: &Path) -> Result<Gangs, GangError> {
    let registry = Registry::in_folder(folder);
    let beat = registry.beat()?;
    let sets = registry.entries()?.into_iter().map(|entry| Seen {
        account: entry.table.account(),
        is_on: entry.table.held() == Held::No,
        demand: entry.table.demand(),
        switch_ns: entry.table.switch_ns(0.99),
        description: entry.description,
    });
    Ok(Gangs {
        folder: folder.to_owned(),
        conductor: beat.map(|beat| beat.process),
        cores_ns: beat.map_or(0, |beat| beat.all_ns),
        idle_ns: beat.map_or(0, |beat| beat.idle_ns),
        sets: sets.collect(),
    })
}
