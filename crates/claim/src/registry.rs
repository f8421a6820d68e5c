//! The registry: changes of its state by one process, whatever happens to others meanwhile.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::chain::{Chain, Newest, Published};
use crate::constraints::Core;
use crate::error::ClaimError;
use crate::member::{self, Held, Member, Members};
use crate::processes::{self, Processes};
use crate::state::{Holder, OLD, ProcessId, State};

/// Attempts to publish while others do.
const ATTEMPTS: usize = 10_000;
/// Attempts to read a member's file that is being written, and the pause between them.
const LOOKS: usize = 20;
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// A process's part in a registry.
#[derive(Debug)]
pub(crate) struct Registry {
    chain: Chain,
    own: ProcessId,
    /// The process that acts for it; usually itself.
    actor: u32,
    name: String,
    member: Member,
    processes: Processes,
    operation: u64,
    /// The number of the last operation in the registry of a process that this one acts for. Another
    /// there is that process's own.
    in_registry: Option<u64>,
    /// The process's cores. It knows them better than the registry.
    cores: Vec<Core>,
    wish: (u32, u32),
    /// A state was lost and made anew, since the last question.
    was_rebuilt: bool,
}

/// A change that a process wishes to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Its cores afterwards: some of its own, and some that are free.
    pub(crate) cores: Vec<Core>,
    pub(crate) wish: (u32, u32),
    /// Numbers of cores that others are asked to give back.
    pub(crate) ask_back: BTreeMap<ProcessId, u32>,
}

impl Registry {
    /// Takes part in the registry in a folder.
    pub(crate) fn join(folder: &Path, name: &str) -> Result<Registry, ClaimError> {
        let own = processes::own().map_err(|error| ClaimError::file(folder, error))?;
        let mut registry = Registry::prepare(folder, name, own, |folder| {
            let mut member = Member::join(folder, own)?;
            member.write(&Held::default(), own)?;
            Ok(member)
        })?;
        registry.change(&mut |_, plan| plan)?;
        Ok(registry)
    }

    /// Acts for a process that takes part already and has left that to this one, with the cores
    /// that it has.
    pub(crate) fn act_for(folder: &Path, own: ProcessId) -> Result<Registry, ClaimError> {
        let join = |folder: &Path| Member::take_over(folder, own);
        let mut registry = Registry::prepare(folder, "", own, join)?;
        let (_, state) = registry.current()?;
        let Some(holder) = state.holders.get(&own) else {
            return Err(ClaimError::Ended(own.number));
        };
        registry.name.clone_from(&holder.name);
        registry.in_registry = Some(holder.operation);
        registry.cores = match registry.member.read() {
            Some(held) => held.cores,
            None => holder.cores.clone(),
        };
        registry.wish = holder.wish;
        Ok(registry)
    }

    fn prepare(
        folder: &Path,
        name: &str,
        own: ProcessId,
        member: impl FnOnce(&Path) -> io::Result<Member>,
    ) -> Result<Registry, ClaimError> {
        let in_folder = |error| ClaimError::file(folder, error);
        let folder = &folder.canonicalize().map_err(in_folder)?;
        let chain = Chain::in_folder(folder);
        chain.tidy_up(|process| !Path::new(&format!("/proc/{process}")).exists());
        Ok(Registry {
            chain,
            own,
            actor: std::process::id(),
            name: name.to_owned(),
            member: member(folder).map_err(in_folder)?,
            processes: Processes::default(),
            // Not that of who acted for the process before.
            operation: u64::from(fastrand::u32(1..)),
            in_registry: None,
            cores: Vec::new(),
            wish: (0, 0),
            was_rebuilt: false,
        })
    }

    /// The cores of this process.
    pub(crate) fn cores(&self) -> &[Core] {
        &self.cores
    }

    pub(crate) fn own(&self) -> ProcessId {
        self.own
    }

    /// Whether the process has not ended.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.processes.is_alive(self.own)
    }

    /// Descriptors that become readable when a process of the last state ends.
    pub(crate) fn ends(&self) -> Vec<OwnedFd> {
        self.processes.descriptors()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.chain.folder()
    }

    /// Whether a damaged state was noticed and made anew since the last call.
    pub(crate) fn was_rebuilt(&mut self) -> bool {
        std::mem::take(&mut self.was_rebuilt)
    }

    /// The state as it is now, without those who have ended.
    pub(crate) fn state(&mut self) -> Result<State, ClaimError> {
        Ok(self.current()?.1)
    }

    /// Changes the state. `plan` gets it, and the plan that changes nothing, and may be called
    /// several times.
    pub(crate) fn change(
        &mut self,
        plan: &mut dyn FnMut(&State, Plan) -> Plan,
    ) -> Result<(), ClaimError> {
        if std::process::id() != self.actor {
            return Err(ClaimError::Forked);
        }
        let mut avoided: Vec<Core> = Vec::new();
        for _ in 0..ATTEMPTS {
            let (from, mut state) = self.current()?;
            state.disputed.extend(&avoided);
            let as_it_is = Plan {
                cores: self.cores.clone(),
                wish: self.wish,
                ask_back: BTreeMap::new(),
            };
            let mut plan = plan(&state, as_it_is);
            plan.cores.sort();
            let free = state.free(&plan.cores);
            plan.cores
                .retain(|core| self.cores.contains(core) || free.contains(core));
            let is_new = |core: &&Core| !self.cores.contains(core);
            let wants: Vec<Core> = plan.cores.iter().filter(is_new).copied().collect();
            if !wants.is_empty() {
                let (cores, wants) = (self.cores.clone(), wants.clone());
                self.write(&Held { cores, wants })?;
            }
            self.operation += 1;
            self.apply(&plan, &mut state);
            if let Some(operation) = self.published_as(&from, &state) {
                return self.adopt(plan, operation);
            }
            let published = self.chain.publish(&from, &state.text());
            let published = published.map_err(|error| ClaimError::file(self.chain.folder(), error));
            let has_effect = match published? {
                Published::Yes => true,
                Published::TooLate => false,
                Published::Lost => self.took_effect()?,
            };
            if !has_effect {
                continue;
            }
            if state.age < OLD {
                let contested = self.contested(&wants)?;
                if !contested.is_empty() {
                    avoided.extend(contested);
                    continue;
                }
            }
            return self.adopt(plan, self.operation);
        }
        Err(ClaimError::Crowded)
    }

    /// Whether the last operation is in the newest state: a process that was stopped just after it
    /// had published comes too late to see its own state.
    fn took_effect(&self) -> Result<bool, ClaimError> {
        let newest = self.chain.newest();
        let newest = newest.map_err(|error| ClaimError::file(self.chain.folder(), error))?;
        let state = published(&newest);
        let own = state
            .as_ref()
            .and_then(|state| state.holders.get(&self.own));
        Ok(own.is_some_and(|own| own.operation == self.operation))
    }

    /// Takes over a plan that is in the registry.
    fn adopt(&mut self, plan: Plan, operation: u64) -> Result<(), ClaimError> {
        if let Some(in_registry) = &mut self.in_registry {
            *in_registry = operation;
        }
        (self.cores, self.wish) = (plan.cores, plan.wish);
        let cores = self.cores.clone();
        self.write(&Held {
            cores,
            wants: Vec::new(),
        })
    }

    /// Those of some new cores that others name in their files. Soon after a first state some may
    /// have cores that it does not know of. Both sides write before they read, so one sees it.
    fn contested(&mut self, cores: &[Core]) -> Result<Vec<Core>, ClaimError> {
        let mut contested = Vec::new();
        for look in 1..=LOOKS {
            let own = self.own;
            let living = self.living(member::members)?;
            let others = || living.iter().filter(|(process, _)| *process != own);
            let is_named = |core: &&Core| others().any(|(_, held)| held.names(**core));
            contested = cores.iter().filter(is_named).copied().collect();
            // What others only want, they may drop at once.
            let is_had = |core: &Core| others().any(|(_, held)| held.cores.contains(core));
            if contested.iter().all(is_had) || look == LOOKS {
                break;
            }
            thread::sleep(LOOK_PAUSE);
        }
        Ok(contested)
    }

    fn write(&mut self, held: &Held) -> Result<(), ClaimError> {
        let written = self.member.write(held, self.own);
        written.map_err(|error| ClaimError::file(self.chain.folder(), error))
    }

    /// If a state says nothing that the newest one does not, the operation of that: who waits for
    /// cores asks often.
    fn published_as(&self, newest: &Newest, state: &State) -> Option<u64> {
        let mut before = published(newest)?;
        let own = before.holders.get_mut(&self.own)?;
        let operation = std::mem::replace(&mut own.operation, self.operation);
        let is_same = before.holders == state.holders && before.disputed == state.disputed;
        is_same.then_some(operation)
    }

    /// The state with a plan.
    fn apply(&self, plan: &Plan, state: &mut State) {
        for (process, cores) in &plan.ask_back {
            if let Some(holder) = state.holders.get_mut(process) {
                holder.asked_back = *cores;
            }
        }
        let before = state.holders.get(&self.own);
        let given = self.cores.len().saturating_sub(plan.cores.len()) as u32;
        let asked_back = before.map_or(0, |holder| holder.asked_back.saturating_sub(given));
        let holder = Holder {
            operation: self.operation,
            wish: plan.wish,
            asked_back,
            cores: plan.cores.clone(),
            name: self.name.clone(),
        };
        state.disputed.retain(|core| !plan.cores.contains(core));
        state.holders.insert(self.own, holder);
    }

    /// The newest state as it was published, and the next one, which is like it: without those who
    /// have ended, and with what this process knows of itself.
    fn current(&mut self) -> Result<(Newest, State), ClaimError> {
        let in_folder = |error| ClaimError::file(self.chain.folder(), error);
        let newest = self.chain.newest().map_err(in_folder)?;
        let mut state = match published(&newest) {
            Some(before) => State {
                from: before.id,
                age: (before.age + 1).min(OLD),
                ..before
            },
            None => {
                // The first state of all is made in the same way.
                self.was_rebuilt |= newest.number > 0;
                self.rebuilt()?
            }
        };
        self.check_actor(&state)?;
        state.id = fastrand::u64(1..);
        let ended: Vec<ProcessId> = state
            .holders
            .keys()
            .copied()
            .filter(|process| *process != self.own && !self.processes.is_alive(*process))
            .collect();
        for process in ended {
            state.holders.remove(&process);
            member::bury(self.chain.folder(), process);
        }
        self.processes
            .keep(|process| state.holders.contains_key(process));
        if !state.disputed.is_empty() {
            let living = self.living(member::members)?;
            // Until those who name a core in their files have it in the state, or name it no more.
            let is_disputed = |core: &Core| {
                living.iter().any(|(process, held)| {
                    let holder = state.holders.get(process);
                    held.names(*core) && !holder.is_some_and(|holder| holder.cores.contains(core))
                })
            };
            state.disputed = state.disputed.iter().copied().filter(is_disputed).collect();
        }
        if let Some(own) = state.holders.get_mut(&self.own) {
            own.cores.clone_from(&self.cores);
        }
        Ok((newest, state))
    }

    /// A process that another acts for may have taken its claim into its own hands.
    fn check_actor(&self, state: &State) -> Result<(), ClaimError> {
        let own = state.holders.get(&self.own);
        match (self.in_registry, own.map(|own| own.operation)) {
            // A state that was made anew knows of no operation.
            (Some(last), Some(now)) if now != last && now != 0 => {
                Err(ClaimError::TakenOver(self.own.number))
            }
            _ => Ok(()),
        }
    }

    /// A state from what living members tell. Cores of two members, one of whom may have been about
    /// to give or take them, are nobody's for now.
    fn rebuilt(&mut self) -> Result<State, ClaimError> {
        let mut state = State::default();
        let mut told: BTreeMap<Core, u32> = BTreeMap::new();
        for (process, held) in self.living(member::all_members)? {
            let cores: Vec<Core> = [held.cores, held.wants].concat();
            for core in &cores {
                *told.entry(*core).or_default() += 1;
            }
            let holder = Holder {
                cores,
                wish: (1, 1),
                ..Holder::default()
            };
            state.holders.insert(process, holder);
        }
        let is_disputed = |core: &Core| told.get(core).is_some_and(|members| *members > 1);
        for holder in state.holders.values_mut() {
            holder.cores.retain(|core| !is_disputed(core));
            holder.cores.sort();
        }
        state.disputed = told.keys().copied().filter(is_disputed).collect();
        Ok(state)
    }

    /// Living members and what they have.
    fn living(
        &mut self,
        members: fn(&Path) -> io::Result<Members>,
    ) -> Result<Vec<(ProcessId, Held)>, ClaimError> {
        for look in 1..=LOOKS {
            let members = members(self.chain.folder());
            let members = members.map_err(|error| ClaimError::file(self.chain.folder(), error))?;
            let mut living = Vec::new();
            let mut is_complete = true;
            for (process, held) in members {
                if process != self.own && !self.processes.is_alive(process) {
                    member::bury(self.chain.folder(), process);
                    continue;
                }
                is_complete &= held.is_some();
                living.push((process, held.unwrap_or_default()));
            }
            if is_complete {
                return Ok(living);
            }
            if look < LOOKS {
                thread::sleep(LOOK_PAUSE);
            }
        }
        Err(ClaimError::Damaged(self.chain.folder().to_owned()))
    }

    /// Gives everything back. A process that another acts for keeps what it has while it lives.
    pub(crate) fn leave(&mut self) {
        if std::process::id() != self.actor || self.in_registry.is_some() && self.is_alive() {
            return;
        }
        let own = self.own;
        self.cores.clear();
        for _ in 0..ATTEMPTS {
            let Ok((from, mut state)) = self.current() else {
                break;
            };
            state.holders.remove(&own);
            match self.chain.publish(&from, &state.text()) {
                Ok(Published::TooLate | Published::Lost) => {}
                _ => break,
            }
        }
        self.member.leave();
    }
}

/// The newest state, if it is whole and follows the one before.
fn published(newest: &Newest) -> Option<State> {
    let state = State::of(&newest.text)?;
    let follows = || State::of(&newest.before).is_some_and(|before| before.id == state.from);
    (state.from == 0 || follows()).then_some(state)
}

/// The newest state in a folder, without those who have ended. None if there is none. Nothing is
/// changed.
pub(crate) fn look(folder: &Path) -> Result<Option<State>, ClaimError> {
    let newest = Chain::in_folder(folder).newest();
    let newest = newest.map_err(|error| ClaimError::file(folder, error))?;
    let mut state = published(&newest);
    if let Some(state) = &mut state {
        let mut processes = Processes::default();
        state
            .holders
            .retain(|process, _| processes.is_alive(*process));
    }
    Ok(state)
}
