//! The conductor: one process of all that have joined divides the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hearth_claim::{Constraints, Core, Site, choose, this_site};
use hearth_sys::clock::steady_ns;

use crate::conducted::{Around, Conducted};
use crate::error::GangError;
use crate::mend;
use crate::plan::{Rota, SetId, Turn};
use crate::registry::{Baton, Registry, STALLED_NS};
use crate::tree::Births;

/// Time between two looks at the registry while no set has to wait for another.
const CALM: Duration = Duration::from_millis(50);
/// Time between two signs of life in longer turns.
const BEAT_EVERY: Duration = Duration::from_millis(STALLED_NS / 4_000_000);

/// Sets and their turns. Dropped, it lets all members go, and another process may conduct.
pub(crate) struct Conductor {
    registry: Registry,
    baton: Baton,
    site: Site,
    around: Around,
    sets: BTreeMap<SetId, Conducted>,
    rota: Rota,
    turn: Turn,
    turned_ns: u64,
    /// The last sign of life.
    beaten_ns: u64,
    slice: Duration,
}

impl Conductor {
    /// Takes the baton. None if somebody else has it.
    pub(crate) fn begin(registry: &Registry) -> Result<Option<Conductor>, GangError> {
        let Some(baton) = registry.take_baton()? else {
            return Ok(None);
        };
        let site = this_site().map_err(|_| GangError::NoMachine)?;
        Ok(Some(Conductor {
            registry: registry.clone(),
            baton,
            site,
            around: Around {
                outsiders: BTreeSet::new(),
                births: Births::open(),
            },
            sets: BTreeMap::new(),
            rota: Rota::default(),
            turn: Turn::default(),
            turned_ns: steady_ns(),
            beaten_ns: steady_ns(),
            // The first turn begins at once.
            slice: Duration::ZERO,
        }))
    }

    /// Ends the turn, if it is over, and begins the next. Time until the next call.
    pub(crate) fn step(&mut self) -> Result<Duration, GangError> {
        let now = steady_ns();
        let silent = now.saturating_sub(self.beaten_ns);
        self.beaten_ns = now;
        self.baton.beat();
        if silent > STALLED_NS / 2 {
            // We were stopped, and sets have let their members go meanwhile. Begin anew.
            for set in self.sets.values_mut() {
                set.release();
            }
            self.slice = Duration::ZERO;
        }
        let gone = Duration::from_nanos(now.saturating_sub(self.turned_ns));
        let left = match self.slice.saturating_sub(gone) {
            Duration::ZERO => self.turn()?,
            left => left,
        };
        Ok(left.min(BEAT_EVERY))
    }

    /// Ends the turn and begins the next. Time until that one is to end.
    fn turn(&mut self) -> Result<Duration, GangError> {
        self.update()?;
        // Before the switch, after which each microsecond of work here is one in which the set that
        // has its turn is not whole.
        for set in self.sets.values_mut().filter(|set| set.is_on) {
            set.account(self.slice, &self.around);
        }
        let asks: Vec<_> = self.sets.values().map(Conducted::ask).collect();
        let cores = self.site.cores().to_vec();
        let site = &self.site;
        let near = |free: &[Core], count: usize| {
            let most = count as u32;
            choose(site, &[], free, &Constraints::cores(1..=most))
        };
        let turn = self.rota.next(&asks, &cores, &near);
        let placed: BTreeMap<SetId, &Vec<Core>> = turn
            .places
            .iter()
            .map(|place| (place.id, &place.cores))
            .collect();
        for (id, set) in &mut self.sets {
            match placed.get(id) {
                Some(cores) => {
                    let cpus: Vec<Vec<usize>> =
                        cores.iter().map(|core| site.cpus(&[*core])).collect();
                    set.place(&cpus);
                }
                None if set.is_on => set.prepare_to_hold(),
                None => {}
            }
        }
        // From here to the end of the switch each microsecond is one in which neither side is
        // whole.
        let begin = steady_ns();
        let mut ended = Vec::new();
        let mut began = Vec::new();
        for (id, set) in &mut self.sets {
            if set.is_on && !placed.contains_key(id) {
                set.hold();
                set.end(begin);
                ended.push(*id);
            }
        }
        for (id, set) in &mut self.sets {
            if !set.is_on && placed.contains_key(id) {
                set.go();
                began.push(*id);
            }
        }
        let end = steady_ns();
        let slices = self.sets.values().map(|set| set.entry.description.slice);
        let slice = slices.min().unwrap_or(CALM);
        for (id, set) in &mut self.sets {
            if began.contains(id) {
                set.begin(end);
                set.entry.table.add_switch(end - begin);
            } else if set.is_on || ended.contains(id) {
                set.catch_up(slice, &self.around);
            }
        }
        let elapsed = begin.saturating_sub(self.turned_ns);
        let idle = u64::from(self.turn.left_over) * elapsed;
        self.baton.count(cores.len() as u64 * elapsed, idle);
        let is_calm = self.sets.values().all(|set| set.is_on);
        drop(placed);
        self.turn = turn;
        self.turned_ns = begin;
        self.slice = if is_calm { slice.max(CALM) } else { slice };
        let gone = Duration::from_nanos(steady_ns() - begin);
        Ok(self.slice.saturating_sub(gone))
    }

    /// Learns which sets there are, and which processes belong to none: those that made sets.
    fn update(&mut self) -> Result<(), GangError> {
        let ids: BTreeSet<SetId> = self.registry.ids()?.into_iter().collect();
        let gone: Vec<SetId> = self
            .sets
            .iter()
            .filter(|(id, set)| {
                !ids.contains(id) || !set.entry.is_alive() || set.entry.table.is_suspended()
            })
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            if let Some(mut set) = self.sets.remove(&id) {
                set.release();
                if !set.entry.is_alive() {
                    mend::end(&set.entry.description, &set.entry.table);
                    self.registry.remove(id);
                }
            }
        }
        let keepers = self.sets.values().map(|set| set.entry.table.keeper());
        let owners = ids.iter().map(|id| id.process);
        self.around.outsiders = owners.chain(keepers).collect();
        if ids.iter().any(|id| !self.sets.contains_key(id)) {
            for entry in self.registry.entries()? {
                let id = entry.description.id;
                self.around.outsiders.insert(entry.table.keeper());
                if !self.sets.contains_key(&id) && !entry.table.is_suspended() {
                    let set = Conducted::new(entry, &self.around);
                    self.sets.insert(id, set);
                }
            }
        }
        Ok(())
    }
}

impl Drop for Conductor {
    fn drop(&mut self) {
        for set in self.sets.values_mut() {
            set.release();
        }
    }
}
