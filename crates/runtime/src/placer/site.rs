//! The machine as placement takes it, and the observed program as a graph.

use std::collections::BTreeMap;

use hearth_machine::profile::{Carrier, Profile};
use hearth_machine::synthetic;
use hearth_machine::topology::OsThread;
use hearth_model::fitted::{Model, Tuning};
use hearth_place::graph::{Component, ComponentId, Connection, Graph, Number, Round};
use hearth_place::slots::{CpuSlot, Machine, Message};

use super::statistics::Statistics;
use crate::exchange::carrier;
use crate::exchange::carrier::traffic::NO_WORKER;
use crate::ground::options::{self, Carrying};

/// Knowledge of the whole machine, usable cores or not.
pub(super) struct Survey {
    profile: Profile,
    model: Model,
}

impl Survey {
    /// Loads the given profile, or the one in the file that `HEARTH_MACHINE` names, or else assumes
    /// cores that are all alike. A file without a valid profile counts as none: the command that
    /// starts the program has checked it.
    pub(super) fn load(allowed: &[usize]) -> Option<Survey> {
        let options = options::get();
        let in_file = || std::fs::read_to_string(options.machine_file.as_ref()?).ok();
        let text = options.machine.clone().or_else(in_file);
        let read = text.and_then(|text| Profile::from_json(&text).ok());
        let has_all = |profile: &Profile| {
            let known: Vec<u32> = profile
                .topology
                .all_threads()
                .map(|thread| profile.topology.os_thread(thread).0)
                .collect();
            allowed.iter().all(|&core| known.contains(&(core as u32)))
        };
        let profile = read.filter(has_all).or_else(|| alike(allowed))?;
        // A model fitted to another profile is useless here.
        let is_files = options.machine.is_none();
        let known = is_files.then(|| tuned(&profile)).flatten();
        let model = known.or_else(|| Model::fitted(&profile).ok())?;
        Some(Survey { profile, model })
    }

    /// Returns the usable part.
    pub(super) fn site(&self, allowed: &[usize]) -> Option<Site> {
        let cpus = |cores: &[usize]| -> Vec<OsThread> {
            cores.iter().map(|&core| OsThread(core as u32)).collect()
        };
        let by_threads = options::get().carrying == Carrying::Threads;
        if by_threads {
            let machine = Machine::new(&self.profile, &self.model, &cpus(allowed)).ok()?;
            return Some(Site {
                machine,
                carrier: Carrier::Threads,
                workers: Vec::new(),
                slots: BTreeMap::new(),
            });
        }
        // Only slots with a worker and a usable core.
        let stations: Vec<(usize, u16)> = carrier::stations()
            .into_iter()
            .filter_map(|station| Some((station.core?, station.index)))
            .filter(|(core, _)| allowed.binary_search(core).is_ok())
            .collect();
        let usable: Vec<usize> = stations.iter().map(|&(core, _)| core).collect();
        if usable.is_empty() {
            return None;
        }
        let machine = Machine::new(&self.profile, &self.model, &cpus(&usable)).ok()?;
        let mut workers = vec![0; machine.slots().len()];
        let mut slots = BTreeMap::new();
        for (core, index) in stations {
            let slot = machine.slot_of(OsThread(core as u32))?;
            workers[slot.index()] = index;
            slots.insert(index, slot);
        }
        Some(Site {
            machine,
            carrier: Carrier::Worker,
            workers,
            slots,
        })
    }
}

/// Reads the model fitted to the profile earlier, if `HEARTH_TUNING` names the result.
fn tuned(profile: &Profile) -> Option<Model> {
    let named = options::get().tuning_file.as_ref()?;
    let tuning = Tuning::from_json(&std::fs::read_to_string(named).ok()?).ok()?;
    Some(Model::new(profile).ok()?.with_tuning(tuning))
}

#[cfg(test)]
impl Site {
    /// A described machine, with a worker on each of its hardware threads or with threads.
    pub(super) fn described(machine: &str, carrier: Carrier) -> Site {
        let profile = Profile::assumed(synthetic::parse(machine).expect("a description"));
        let model = Model::fitted(&profile).expect("a model");
        let cpus: Vec<OsThread> = profile
            .topology
            .all_threads()
            .map(|thread| profile.topology.os_thread(thread))
            .collect();
        let machine = Machine::new(&profile, &model, &cpus).expect("a machine");
        let slots = 0..machine.slots().len() as u16;
        let (workers, slots) = match carrier {
            Carrier::Worker => (
                slots.clone().collect(),
                slots.map(|slot| (slot, CpuSlot(u32::from(slot)))).collect(),
            ),
            _ => (Vec::new(), BTreeMap::new()),
        };
        Site {
            machine,
            carrier,
            workers,
            slots,
        }
    }
}

/// A profile of alike cores in one package, with their real numbers.
fn alike(allowed: &[usize]) -> Option<Profile> {
    let count = 1 + allowed.iter().copied().max()?;
    let machine = synthetic::parse(&format!("1 package, {count} cores")).ok()?;
    Some(Profile::assumed(machine))
}

/// The places for components.
pub(super) struct Site {
    pub(super) machine: Machine,
    pub(super) carrier: Carrier,
    /// Workers by slot; empty with a thread for each component.
    workers: Vec<u16>,
    slots: BTreeMap<u16, CpuSlot>,
}

impl Site {
    /// Tells whether a component has more than one place to go.
    pub(super) fn is_choice(&self) -> bool {
        self.machine.slots().len() > 1
    }

    /// Returns the slot of a worker, if usable.
    fn slot_of(&self, worker: u16) -> Option<CpuSlot> {
        self.slots.get(&worker).copied()
    }

    /// Returns the worker of a slot; none with a thread for each component.
    pub(super) fn worker_of(&self, slot: CpuSlot) -> Option<u16> {
        self.workers.get(slot.index()).copied()
    }

    /// Returns the core of a slot.
    pub(super) fn core_of(&self, slot: CpuSlot) -> usize {
        self.machine.os(slot).0 as usize
    }
}

/// The program as observed lately.
pub(super) struct Scene {
    pub(super) graph: Graph,
    /// The components' numbers, ascending.
    pub(super) ids: Vec<u64>,
    /// Slot of each; none if its core is not usable, or it was never placed.
    pub(super) at: Vec<Option<CpuSlot>>,
}

impl Scene {
    /// Builds the scene from the statistics. `threads` has the slots of threads.
    pub(super) fn new(
        statistics: &Statistics,
        site: &Site,
        threads: &BTreeMap<u64, CpuSlot>,
    ) -> Scene {
        let known = statistics.components();
        let ids: Vec<u64> = known
            .iter()
            .map(|(component, _)| component.who.id)
            .collect();
        let at: Vec<Option<CpuSlot>> = known
            .iter()
            .map(|(component, _)| match component.home {
                NO_WORKER => threads.get(&component.who.id).copied(),
                home => site.slot_of(home),
            })
            .collect();
        let mut graph = Graph {
            round: Round::Second,
            ..Graph::default()
        };
        for ((component, share), &slot) in known.iter().zip(&at) {
            let name = component.who.id.to_string();
            let mut placed = Component::new(name).work_ns(Number::seen(share * 1e9));
            if component.stays {
                placed = match slot {
                    Some(slot) => placed.pinned(site.machine.os(slot)),
                    None => placed.stays(),
                };
            }
            graph.add(placed);
        }
        let index = |id: &u64| ids.binary_search(id).ok();
        for flow in statistics.connections() {
            let (Some(from), Some(to)) = (index(&flow.from), index(&flow.to)) else {
                continue;
            };
            let connection = Connection::new(ComponentId(from as u32), ComponentId(to as u32))
                .messages(Number::seen(flow.messages))
                .bytes(Number::seen(flow.bytes))
                .carrier(site.carrier);
            graph.connect(match flow.is_shared {
                true => connection.shared(),
                false => connection,
            });
        }
        let mut scene = Scene { graph, ids, at };
        scene.take_messages_off(site);
        scene
    }

    /// Subtracts the messages' cost, at their current places, from running times: a component's
    /// computing time has no messages in it.
    fn take_messages_off(&mut self, site: &Site) {
        for connection in &self.graph.connections {
            let (from, to) = (connection.from.index(), connection.to.index());
            let (Some(a), Some(b)) = (self.at[from], self.at[to]) else {
                continue;
            };
            let message = Message {
                bytes: connection.bytes.value,
                carrier: site.carrier,
                kind: connection.kind,
            };
            let class = site.machine.messages().class(a, b);
            let share = site
                .machine
                .messages()
                .share_of(class, &message, connection.is_shared);
            for (component, ns) in [(from, share.send_ns), (to, share.receive_ns)] {
                let work = &mut self.graph.components[component].work_ns.value;
                *work = (*work - ns * connection.messages.value).max(0.0);
            }
        }
    }
}
