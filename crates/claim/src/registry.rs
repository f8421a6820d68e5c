//! The registry: changes of its state by one process, whatever happens to others meanwhile.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use crate::chain::{self, Newest, Published};
use crate::constraints::Core;
use crate::error::ClaimError;
use crate::kernel::Kernel;
use crate::member::{self, Held, Member, Members};
use crate::outside::{Fault, Outside};
use crate::state::{self, Holder, ProcessId, State};

/// Attempts to publish while others do.
const ATTEMPTS: usize = 10_000;

/// A process's part in a registry.
#[derive(Debug)]
pub(crate) struct Registry<O: Outside = Kernel> {
    outside: O,
    own: ProcessId,
    /// The process that acts for it; usually itself.
    actor: u32,
    name: String,
    member: Member,
    operation: u64,
    /// The number of the last operation in the registry of a process that this one acts for.
    /// Another there is that process's own.
    in_registry: Option<u64>,
    /// The process's cores. It knows them better than the registry.
    cores: Vec<Core>,
    wish: (u32, u32),
    /// The newest state that it has seen. It need not be read again while it is the newest.
    known: Known,
    /// Number of the last state that it removed.
    removed: u64,
    /// A state was lost and made anew, since the last question.
    was_rebuilt: bool,
}

/// A state as it was published, and its content. No content: it is damaged, or there is none.
#[derive(Clone, Debug, Default)]
struct Known {
    newest: Newest,
    content: Option<State>,
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
        Registry::begin(Registry::outside(folder)?, name)
    }

    /// Acts for a process that takes part already and has left that to this one.
    pub(crate) fn act_for(folder: &Path, process: ProcessId) -> Result<Registry, ClaimError> {
        Registry::go_on(Registry::outside(folder)?, process)
    }

    fn outside(folder: &Path) -> Result<Kernel, ClaimError> {
        let whole = folder.canonicalize();
        let whole = whole.map_err(|error| ClaimError::file(folder, error))?;
        let outside = Kernel::in_folder(&whole);
        outside.tidy_up(|process| !Path::new(&format!("/proc/{process}")).exists());
        Ok(outside)
    }

    /// Descriptors that become readable when a process of the last state ends.
    pub(crate) fn ends(&self) -> Vec<OwnedFd> {
        self.outside.ends()
    }
}

impl<O: Outside> Registry<O> {
    /// Takes part.
    pub(crate) fn begin(mut outside: O, name: &str) -> Result<Registry<O>, ClaimError> {
        let folder = outside.folder().to_owned();
        let in_folder = |error| ClaimError::file(&folder, error);
        let own = outside.own().ok_or(ClaimError::NoProcess)?;
        let member = Member::join(&mut outside, own).map_err(in_folder)?;
        let mut registry = Registry::with(outside, own, member);
        registry.name = state::fit_name(name);
        registry.change(&mut |_, plan| plan)?;
        Ok(registry)
    }

    /// Goes on for a process with what it has.
    fn go_on(outside: O, own: ProcessId) -> Result<Registry<O>, ClaimError> {
        let taken = Member::take_over(&outside, own);
        let taken = taken.map_err(|error| ClaimError::file(outside.folder(), error))?;
        let (member, held) = taken.ok_or(ClaimError::Ended(own.number))?;
        let mut registry = Registry::with(outside, own, member);
        registry.cores = held.cores;
        let state = registry.current()?;
        let holder = state
            .holders
            .get(&own)
            .ok_or(ClaimError::Ended(own.number))?;
        registry.name.clone_from(&holder.name);
        registry.wish = holder.wish;
        registry.in_registry = Some(holder.operation);
        Ok(registry)
    }

    fn with(outside: O, own: ProcessId, member: Member) -> Registry<O> {
        Registry {
            actor: outside.process(),
            // Not that of who acted for the process before.
            operation: outside.random() >> 32,
            in_registry: None,
            outside,
            own,
            name: String::new(),
            member,
            cores: Vec::new(),
            wish: (0, 0),
            known: Known::default(),
            removed: 0,
            was_rebuilt: false,
        }
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
        self.outside.is_alive(self.own)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.outside.folder()
    }

    /// Whether a damaged state was noticed and made anew since the last call.
    pub(crate) fn was_rebuilt(&mut self) -> bool {
        std::mem::take(&mut self.was_rebuilt)
    }

    /// The state as it is now, without those who have ended.
    pub(crate) fn state(&mut self) -> Result<State, ClaimError> {
        self.current()
    }

    /// Changes the state. `plan` gets it, and the plan that changes nothing, and may be called
    /// several times.
    pub(crate) fn change(
        &mut self,
        plan: &mut dyn FnMut(&State, Plan) -> Plan,
    ) -> Result<(), ClaimError> {
        if self.outside.process() != self.actor {
            return Err(ClaimError::Forked);
        }
        let mut avoided: Vec<Core> = Vec::new();
        for _ in 0..ATTEMPTS {
            self.outside
                .begins_again(format_args!("change {self:?} {avoided:?}"));
            let mut state = self.current()?;
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
            if !wants.is_empty() && !self.outside.has(Fault::PublishesFirst) {
                let (cores, wants) = (self.cores.clone(), wants.clone());
                self.write(&Held { cores, wants })?;
            }
            self.operation += 1;
            self.apply(&plan, &mut state);
            if let Some(operation) = self.published_as(&state) {
                return self.adopt(plan, operation);
            }
            let has_effect = match self.publish(state)? {
                Published::Yes => true,
                Published::TooLate => false,
                Published::Lost => self.took_effect()?,
            };
            if !has_effect {
                continue;
            }
            let contested = self.contested(&wants)?;
            if contested.is_empty() {
                return self.adopt(plan, self.operation);
            }
            avoided.extend(contested);
        }
        Err(ClaimError::Crowded)
    }

    /// Publishes a state that was made from the newest that is known.
    fn publish(&mut self, state: State) -> Result<Published, ClaimError> {
        let text = state.text();
        let from = &self.known.newest;
        let published = chain::publish(&self.outside, from, &text, &mut self.removed);
        let published = published.map_err(|error| self.in_folder(error))?;
        // What others may have changed is read again.
        self.known = match published {
            Published::Yes => Known {
                newest: Newest {
                    number: from.number + 1,
                    text,
                    before: String::new(),
                },
                content: Some(state),
            },
            Published::TooLate | Published::Lost => Known::default(),
        };
        Ok(published)
    }

    /// Whether the last operation is in the newest state: a process that was stopped just after it
    /// had published comes too late to see its own state.
    fn took_effect(&self) -> Result<bool, ClaimError> {
        let newest = chain::newest(&self.outside);
        let newest = newest.map_err(|error| self.in_folder(error))?;
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

    /// Those of some new cores that others name in their files: if states were removed, some may
    /// have cores that the newest does not know of. Both sides write before they read, so one of
    /// them sees it.
    fn contested(&mut self, cores: &[Core]) -> Result<Vec<Core>, ClaimError> {
        let mut contested = Vec::new();
        let looks = self.outside.limits().looks;
        if cores.is_empty() || self.outside.has(Fault::NeverLooks) {
            return Ok(contested);
        }
        for look in 1..=looks {
            let own = self.own;
            let others = self.living(&|outside| member::others(outside, own))?;
            let is_named = |core: &&Core| others.iter().any(|(_, held)| held.names(**core));
            contested = cores.iter().filter(is_named).copied().collect();
            // What others only want, they may drop at once.
            let is_had = |core: &Core| others.iter().any(|(_, held)| held.cores.contains(core));
            if contested.iter().all(is_had) || look == looks {
                break;
            }
            self.outside.pause();
        }
        Ok(contested)
    }

    fn write(&mut self, held: &Held) -> Result<(), ClaimError> {
        let written = self.member.write(&mut self.outside, held);
        written.map_err(|error| self.in_folder(error))
    }

    fn in_folder(&self, error: io::Error) -> ClaimError {
        ClaimError::file(self.outside.folder(), error)
    }

    /// If a state says nothing that the newest one does not, the operation of that: who waits for
    /// cores asks often.
    fn published_as(&self, state: &State) -> Option<u64> {
        let before = self.known.content.as_ref()?;
        let operation = before.holders.get(&self.own)?.operation;
        let is_alike = |(one, holder): (&ProcessId, &Holder)| {
            let other = state.holders.get(one);
            other.is_some_and(|other| match *one == self.own {
                true => {
                    Holder {
                        operation,
                        ..other.clone()
                    } == *holder
                }
                false => other == holder,
            })
        };
        let is_same = before.holders.len() == state.holders.len()
            && before.holders.iter().all(is_alike)
            && before.disputed == state.disputed;
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

    /// The state after the newest: like it, but without those who have ended, and with what this
    /// process knows of itself.
    fn current(&mut self) -> Result<State, ClaimError> {
        let is_known = chain::is_newest(&self.outside, &self.known.newest);
        if !is_known.map_err(|error| self.in_folder(error))? {
            let newest = chain::newest(&self.outside);
            let newest = newest.map_err(|error| self.in_folder(error))?;
            let content = published(&newest);
            self.known = Known { newest, content };
        }
        let mut state = match &self.known.content {
            Some(before) => State {
                from: before.id,
                ..before.clone()
            },
            None => {
                // The first state of all is made in the same way.
                self.was_rebuilt |= self.known.newest.number > 0;
                self.rebuilt()?
            }
        };
        self.check_actor(&state)?;
        state.id = self.outside.random().max(1);
        let others = state.holders.keys().copied();
        let others: Vec<ProcessId> = others.filter(|process| *process != self.own).collect();
        for process in self.ended(&others) {
            state.holders.remove(&process);
            member::bury(&self.outside, process);
        }
        self.outside
            .keep(&|process| state.holders.contains_key(process));
        if !state.disputed.is_empty() {
            let living = self.living(&member::all_listed)?;
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
        Ok(state)
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
        for (process, held) in self.living(&member::all)? {
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
        members: &dyn Fn(&O) -> io::Result<Members>,
    ) -> Result<Vec<(ProcessId, Held)>, ClaimError> {
        let looks = self.outside.limits().looks;
        for look in 1..=looks {
            let members = members(&self.outside).map_err(|error| self.in_folder(error))?;
            let others = members.keys().copied();
            let others: Vec<ProcessId> = others.filter(|process| *process != self.own).collect();
            let ended = self.ended(&others);
            for process in &ended {
                member::bury(&self.outside, *process);
            }
            let living = members.into_iter();
            let living = living.filter(|(process, _)| !ended.contains(process));
            let living: Vec<(ProcessId, Option<Held>)> = living.collect();
            let is_complete = living.iter().all(|(_, held)| held.is_some());
            if is_complete {
                let living = living.into_iter();
                let held = living.filter_map(|(process, held)| Some((process, held?)));
                return Ok(held.collect());
            }
            if look < looks {
                self.outside.pause();
            }
        }
        Err(ClaimError::Damaged(self.outside.folder().to_owned()))
    }

    /// Those of some processes that have ended.
    fn ended(&mut self, processes: &[ProcessId]) -> Vec<ProcessId> {
        match self.outside.has(Fault::IgnoresEnds) {
            true => Vec::new(),
            false => self.outside.ended(processes),
        }
    }

    /// Gives everything back. A process that another acts for keeps what it has while it lives.
    pub(crate) fn leave(&mut self) {
        if self.outside.process() != self.actor || self.in_registry.is_some() && self.is_alive() {
            return;
        }
        let own = self.own;
        self.cores.clear();
        for _ in 0..ATTEMPTS {
            let Ok(mut state) = self.current() else {
                break;
            };
            state.holders.remove(&own);
            match self.publish(state) {
                Ok(Published::TooLate | Published::Lost) => {}
                _ => break,
            }
        }
        self.member.leave(&self.outside);
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
    let mut outside = Kernel::in_folder(folder);
    let newest = chain::newest(&outside).map_err(|error| ClaimError::file(folder, error))?;
    let mut state = published(&newest);
    if let Some(state) = &mut state {
        state
            .holders
            .retain(|process, _| outside.is_alive(*process));
    }
    Ok(state)
}
