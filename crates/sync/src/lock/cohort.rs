//! Cohort lock: stays within a group of near cores for a while before it moves to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use hearth_sys::procfs::parse_list;
use hearth_sys::{Linux, System, affinity};

use super::mcs::{GRANTED, grant};
use super::{Lock, LockPlace, Mcs, Ticket};
use crate::waiting::Wait;
use hearth_atomics::{AtomicU32, Ordering};

/// Grant of a group's queue together with the lock of all groups.
const GRANTED_WHOLE: u32 = GRANTED + 1;
/// Number of hand-overs within a group while others wait. After Dice, Marathe and Shavit (2012),
/// who found that more gains little.
const HAND_OVERS_MAX: u32 = if cfg!(loom) { 1 } else { 64 };
const FOLDER: &str = "/sys/devices/system/node";

/// Groups of near cores: the group of each core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    of_core: Vec<u32>,
    count: u32,
}

impl Groups {
    /// Groups from a table: the group of each core, from core 0. A cohort may so follow
    /// measurements, such as the caches that cores share, instead of the firmware's nodes. Any
    /// numbers will do: they only say which cores belong together.
    pub fn by_core(mut of_core: Vec<u32>) -> Groups {
        let known: BTreeSet<u32> = of_core.iter().copied().collect();
        // Each group has a queue, so they are numbered from 0 without gaps.
        let index: BTreeMap<u32, u32> = known.into_iter().zip(0..).collect();
        for group in &mut of_core {
            *group = index[group];
        }
        Groups {
            of_core,
            count: index.len().max(1) as u32,
        }
    }

    /// The nodes of this machine, asked once. One group where the system names none.
    pub fn nodes() -> &'static Groups {
        static NODES: OnceLock<Groups> = OnceLock::new();
        NODES.get_or_init(|| Groups::nodes_of(&Linux))
    }

    /// The nodes of a machine.
    pub fn nodes_of(system: &dyn System) -> Groups {
        let mut of_core = Vec::new();
        let mut count = 0;
        let online = system.read(&format!("{FOLDER}/online"));
        for node in parse_list(&online.unwrap_or_default()) {
            let list = system.read(&format!("{FOLDER}/node{node}/cpulist"));
            let cores = parse_list(&list.unwrap_or_default());
            let Some(top) = cores.iter().max() else {
                // Memory without cores.
                continue;
            };
            of_core.resize(of_core.len().max(top + 1), 0);
            for core in cores {
                of_core[core] = count;
            }
            count += 1;
        }
        Groups {
            of_core,
            count: count.max(1),
        }
    }

    /// Number of groups.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// The calling thread's group now: it may move, which costs only speed.
    #[cfg(not(loom))]
    fn here(&self) -> u32 {
        if self.count == 1 {
            return 0;
        }
        affinity::current()
            .and_then(|core| self.of_core.get(core).copied())
            .unwrap_or(0)
    }
}

#[cfg(loom)]
impl Groups {
    /// The model's threads are in the groups in turn, by their numbers.
    fn here(&self) -> u32 {
        let _ = affinity::current;
        crate::thread::number().unwrap_or(0) % self.count
    }
}

/// First come, first served within a group; after a number of hand-overs also between groups.
///
/// | field | writer | reader |
/// |---|---|---|
/// | `whole` | the first of a group; the holder that leaves it to another group | the same |
/// | `queue` of a group | its threads | its threads |
/// | `hand_overs` of a group | its holder | its holder |
///
/// A thread holds the lock if it is the first of its group's queue and `whole` is its group's.
pub struct Cohort {
    groups: Groups,
    whole: Ticket,
    parts: Box<[Part]>,
}

/// On lines of its own.
#[repr(align(128))]
struct Part {
    queue: Mcs,
    hand_overs: AtomicU32,
}

impl Cohort {
    /// A lock over these groups.
    pub fn new(groups: Groups) -> Cohort {
        let part = |_| Part {
            queue: Mcs::new(),
            hand_overs: AtomicU32::new(0),
        };
        Cohort {
            parts: (0..groups.count).map(part).collect(),
            groups,
            whole: Ticket::new(),
        }
    }

    fn part(&self, place: &LockPlace) -> &Part {
        &self.parts[place.group.load(Ordering::Relaxed) as usize]
    }
}

impl Default for Cohort {
    fn default() -> Cohort {
        Cohort::new(Groups::nodes().clone())
    }
}

// SAFETY: of a group only the first of its queue takes `whole`, or is handed it; the rest is the
// other locks' promise.
unsafe impl Lock for Cohort {
    unsafe fn acquire(&self, place: &LockPlace, wait: Wait) -> bool {
        place.group.store(self.groups.here(), Ordering::Relaxed);
        let part = self.part(place);
        // SAFETY: as the caller promises.
        let granted = unsafe { part.queue.enter(place, wait) };
        if granted == Some(GRANTED_WHOLE) {
            return true;
        }
        // SAFETY: only the first of a group comes here, and a ticket lock does not use the place.
        let has_waited = unsafe { self.whole.acquire(place, wait) };
        part.hand_overs.store(0, Ordering::Relaxed);
        has_waited || granted.is_some()
    }

    unsafe fn try_acquire(&self, place: &LockPlace) -> bool {
        place.group.store(self.groups.here(), Ordering::Relaxed);
        let part = self.part(place);
        if !part.queue.try_enter(place) {
            return false;
        }
        // SAFETY: as in `acquire`.
        if unsafe { self.whole.try_acquire(place) } {
            part.hand_overs.store(0, Ordering::Relaxed);
            return true;
        }
        // SAFETY: the group's queue was just taken with this place.
        unsafe { part.queue.release(place) };
        false
    }

    unsafe fn release(&self, place: &LockPlace) {
        let part = self.part(place);
        let so_far = part.hand_overs.load(Ordering::Relaxed);
        // SAFETY: the caller holds both; who comes next waits for this grant.
        unsafe {
            if so_far >= HAND_OVERS_MAX {
                self.whole.release(place);
                part.queue.release(place);
            } else if part.queue.has_successor(place) {
                part.hand_overs.store(so_far + 1, Ordering::Relaxed);
                if let Some(next) = part.queue.successor(place) {
                    grant(next, GRANTED_WHOLE);
                }
            } else {
                // A thread that comes to the group meanwhile queues for the whole behind those that
                // wait.
                self.whole.release(place);
                part.queue.release(place);
            }
        }
    }

    fn is_awaited(&self, place: &LockPlace) -> bool {
        self.part(place).queue.has_successor(place) || self.whole.is_awaited(place)
    }

    fn is_held(&self) -> bool {
        self.whole.is_held()
    }
}
