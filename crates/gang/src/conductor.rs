//! The conductor: one process of all that have joined divides the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hearth_claim::{Constraints, Core, Site, choose, this_site};
use hearth_sys::clock::steady_ns;

use crate::conducted::Conducted;
use crate::error::GangError;
use crate::mend;
use crate::plan::{Rota, SetId, Turn};
use crate::registry::{Baton, Registry, STALLED_NS};

/// Time between two looks at the registry while no set has to wait for another.
const CALM: Duration = Duration::from_millis(50);

/// Sets and their turns. Dropped, it lets all members go, and another process may conduct.
pub(crate) struct Conductor {
    registry: Registry,
    baton: Baton,
    site: Site,
    sets: BTreeMap<SetId, Conducted>,
    rota: Rota,
    turn: Turn,
    turned_ns: u64,
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
            sets: BTreeMap::new(),
            rota: Rota::default(),
            turn: Turn::default(),
            turned_ns: steady_ns(),
            slice: CALM,
        }))
    }

    /// Ends the turn and begins the next. Time until that one is to end.
    pub(crate) fn turn(&mut self) -> Result<Duration, GangError> {
        let late = steady_ns().saturating_sub(self.turned_ns);
        if late > STALLED_NS / 2 {
            // We were stopped, and sets have let their members go meanwhile. Begin anew.
            for set in self.sets.values_mut() {
                set.release();
            }
        }
        self.baton.beat();
        let outsiders = self.update()?;
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
                set.settle(begin, slice, &outsiders);
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

    /// Learns which sets there are. Returns processes that belong to no set: those that made sets.
    fn update(&mut self) -> Result<BTreeSet<u32>, GangError> {
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
        let mut outsiders = BTreeSet::new();
        for id in &ids {
            outsiders.insert(id.process);
        }
        outsiders.extend(self.sets.values().map(|set| set.entry.table.keeper()));
        if ids.iter().any(|id| !self.sets.contains_key(id)) {
            for entry in self.registry.entries()? {
                let id = entry.description.id;
                outsiders.insert(entry.table.keeper());
                if !self.sets.contains_key(&id) && !entry.table.is_suspended() {
                    self.sets.insert(id, Conducted::new(entry, &outsiders));
                }
            }
        }
        Ok(outsiders)
    }
}

impl Drop for Conductor {
    fn drop(&mut self) {
        for set in self.sets.values_mut() {
            set.release();
        }
    }
}
