//! Sets as their users make them.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hearth_sys::affinity;

use crate::conductor::Conductor;
use crate::description::{BackEnd, Description};
use crate::error::GangError;
use crate::folder;
use crate::member::Member;
use crate::mend;
use crate::plan::SetId;
use crate::registry::Registry;
use crate::table::{Account, Held, Table};

/// Length of a turn if no set wishes for another.
pub const SLICE: Duration = Duration::from_millis(20);
/// Time between two looks whether somebody conducts.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Number of sets that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A coscheduled set to be: so many cores, on which its members run at the same time or not at all.
#[derive(Clone, Debug)]
pub struct Set {
    pub(crate) name: String,
    pub(crate) has_own_name: bool,
    pub(crate) cores: u32,
    pub(crate) fills: bool,
    pub(crate) within: Option<String>,
    pub(crate) slice: Duration,
    pub(crate) back_end: Option<BackEnd>,
}

impl Set {
    /// A set of so many cores, at least one. A machine that has fewer gives it all.
    #[must_use]
    pub fn of(cores: u32) -> Set {
        Set {
            name: String::new(),
            has_own_name: false,
            cores: cores.max(1),
            fills: true,
            within: None,
            slice: SLICE,
            back_end: None,
        }
    }

    /// Names it, so that others can be inside of it. No other set has that name.
    #[must_use]
    pub fn named(self, name: &str) -> Set {
        Set {
            name: name.to_owned(),
            has_own_name: true,
            ..self
        }
    }

    /// Keeps its cores for itself in its turns, also those that it does not use. Otherwise other
    /// sets run there.
    #[must_use]
    pub fn isolated(self) -> Set {
        let fills = false;
        Set { fills, ..self }
    }

    /// Puts it inside the oldest set of that name: it has its turns and cores out of that one's.
    #[must_use]
    pub fn within(self, name: &str) -> Set {
        let within = Some(name.to_owned());
        Set { within, ..self }
    }

    /// Length of a turn, 20 ms by default, 1 ms at least; of all sets' wishes the shortest counts.
    #[must_use]
    pub fn slice(self, slice: Duration) -> Set {
        let slice = slice.max(Duration::from_millis(1));
        Set { slice, ..self }
    }

    /// Holds its members so, and not as probing suggests.
    #[must_use]
    pub fn back_end(self, back_end: BackEnd) -> Set {
        let back_end = Some(back_end);
        Set { back_end, ..self }
    }

    /// Makes threads of this process a set: those that pass its gate. Somebody must divide the
    /// time: if no other process does, a thread of this one will.
    ///
    /// # Errors
    /// The registry cannot be used, or there is no such set to be inside of.
    pub fn join(&self) -> Result<Joined, GangError> {
        let folder = folder::find()?;
        let registry = Registry::in_folder(&folder);
        let joining = self.describe(&registry, BackEnd::Gate)?;
        let description = Description {
            is_inside: true,
            ..joining
        };
        let (_, table) = registry.prepare(description.id)?;
        let file = registry.announce(&description)?;
        let member = Member::of(&registry, description.id)
            .ok_or_else(|| GangError::file(&folder, std::io::ErrorKind::NotFound.into()))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let stays = Arc::clone(&is_over);
        let place = registry.clone();
        let helper = thread::Builder::new()
            .name("hearth-gang".into())
            .spawn(move || conduct_if_need_be(&place, &stays))
            .map_err(|error| GangError::file(&folder, error))?;
        Ok(Joined {
            registry,
            description,
            table,
            member,
            _file: file,
            is_over,
            helper: Mutex::new(Some(helper)),
        })
    }

    pub(crate) fn describe(
        &self,
        registry: &Registry,
        back_end: BackEnd,
    ) -> Result<Description, GangError> {
        let others = registry.entries()?;
        let named = |name: &str| others.iter().find(|one| one.description.name == name);
        if self.has_own_name && named(&self.name).is_some() {
            return Err(GangError::Taken(self.name.clone()));
        }
        let within = match &self.within {
            None => None,
            Some(name) => match named(name) {
                Some(found) => Some(found.description.id),
                None => return Err(GangError::NoSuchSet(name.clone())),
            },
        };
        Ok(Description {
            id: SetId {
                process: std::process::id(),
                nth: MADE.fetch_add(1, Ordering::Relaxed),
            },
            name: self.name.clone(),
            cores: self.cores,
            fills: self.fills,
            within,
            back_end,
            slice: self.slice,
            cpus: affinity::allowed(),
            group: None,
            is_inside: false,
        })
    }
}

/// A set of threads of this process. Dropped, it is none any more, and its threads run freely.
#[derive(Debug)]
pub struct Joined {
    registry: Registry,
    description: Description,
    table: Table,
    member: Member,
    /// Locked as long as the set lives.
    _file: File,
    is_over: Arc<AtomicBool>,
    helper: Mutex<Option<JoinHandle<()>>>,
}

impl Joined {
    /// The gate, for a thread of the set.
    #[must_use]
    pub fn member(&self) -> Member {
        self.member.clone()
    }

    /// Times of the set so far.
    #[must_use]
    pub fn account(&self) -> Account {
        self.table.account()
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.registry.remove(self.description.id);
        let mut helper = self.helper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(helper) = helper.take() {
            helper.thread().unpark();
            let _ = helper.join();
        }
        // Nobody closes the gate any more once the helper and the conductor have seen the end.
        mend::release(&self.description, &self.table);
    }
}

/// Conducts while nobody else does.
fn conduct_if_need_be(registry: &Registry, is_over: &AtomicBool) {
    let mut conductor = None;
    while !is_over.load(Ordering::Relaxed) {
        let pause = step(registry, &mut conductor);
        let end = Instant::now() + pause;
        while !is_over.load(Ordering::Relaxed) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::park_timeout(left);
        }
    }
}

/// A step if this process conducts; otherwise a look whether it has to. Time until the next step.
pub(crate) fn step(registry: &Registry, conductor: &mut Option<Conductor>) -> Duration {
    if conductor.is_none() {
        *conductor = Conductor::begin(registry).ok().flatten();
    }
    let Some(at_work) = conductor else {
        return LOOK_EVERY;
    };
    match at_work.step() {
        Ok(pause) => pause,
        // The registry is gone or damaged: nobody is held.
        Err(_) => {
            *conductor = None;
            LOOK_EVERY
        }
    }
}

/// Lets the set's members go if nobody has divided the time for long, as when the conductor is
/// stopped.
pub(crate) fn release_if_stalled(registry: &Registry, description: &Description, table: &Table) {
    if table.held() != Held::No && !registry.is_conducted() {
        mend::release(description, table);
    }
}
