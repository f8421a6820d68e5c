//! Peak memory that a function holds, including all functions that it calls.
//!
//! A walk along the statements keeps the set of counted slots that may hold a reference. What each
//! of them can lead to is known ([`Measures`]); a new reference adds its measure, a release or a
//! move takes it off. Branches are joined, a loop begins with whatever its body may have left
//! behind, and a handler with whatever its body may hold. Objects that several slots share are
//! counted for each.

use std::collections::{BTreeMap, HashMap};

use super::families::{Counted, Measure, Measures, Weight};
use super::flow::Flow;
use super::{Reason, targets_of};
use crate::core::Lowered;
use crate::core::ir::*;
use crate::core::passes::{blocks_of, statement_target};
use crate::layout::Layouts;
use crate::tree::{ComponentId, MemberId, ProcId};
use crate::types::TypeId;

/// The state that all walks of one question share: the objects counted, and where.
pub(super) struct Peaks<'n, 'a> {
    input: &'a Lowered<'a>,
    layouts: &'a Layouts,
    flow: &'n Flow<'a>,
    measures: Measures<'n, 'a>,
    /// Only the objects of some families are counted: so no frames.
    is_part: bool,
    /// By function; the inner None while it is being found.
    known: HashMap<usize, Option<Measure>>,
}

impl<'n, 'a> Peaks<'n, 'a> {
    pub(super) fn new(
        input: &'a Lowered<'a>,
        layouts: &'a Layouts,
        flow: &'n Flow<'a>,
        counted: Counted<'n>,
    ) -> Peaks<'n, 'a> {
        Peaks {
            input,
            layouts,
            flow,
            measures: Measures::new(&flow.families, counted),
            is_part: counted.is_some(),
            known: HashMap::new(),
        }
    }

    /// The most that one component of a kind holds, members included; or the main sequence.
    pub(super) fn of_component(&mut self, component: Option<ComponentId>) -> Measure {
        let Some(id) = component else {
            return self.of_role(Role::Main);
        };
        let mut members = Weight::default();
        for family in &self.flow.members[id.index()] {
            members = members.plus(self.measures.of(*family)?);
        }
        let mut initialisers = self.of_role(Role::Members(id))?;
        if !self.fills_members(Role::Members(id)) {
            initialisers = initialisers.plus(members);
        }
        // Arguments are there before the members are; then the constructor has them.
        let mut most = initialisers.max(members.plus(self.of_role(Role::Behaviour(id))?));
        for k in 0..self.input.program.components[id.index()].constructors.len() {
            let role = Role::Constructor(id, k);
            let waiting = initialisers.plus(self.params(role)?);
            most = most.max(waiting).max(members.plus(self.of_role(role)?));
        }
        Ok(most)
    }

    /// Do initialisers alone fill the members, one by one? Then these are counted as they are
    /// filled, and an object is not there twice: in the variable where it is made, and in the
    /// member.
    fn fills_members(&self, role: Role) -> bool {
        let index = self.position(role);
        matches!(role, Role::Members(_))
            && index.is_some_and(|index| self.flow.facts[index].calls.is_empty())
    }

    fn params(&mut self, role: Role) -> Measure {
        let mut sum = Weight::default();
        if let Some(index) = self.position(role) {
            for param in &self.input.module.functions[index].params {
                let family = self.flow.facts[index].slots[param.index()];
                sum = sum.plus(self.measures.of(family)?);
            }
        }
        Ok(sum)
    }

    fn position(&self, role: Role) -> Option<usize> {
        let mut functions = self.input.module.functions.iter();
        functions.position(|function| function.role == role)
    }

    fn of_role(&mut self, role: Role) -> Measure {
        match self.position(role) {
            Some(index) => self.of_function(index),
            None => Ok(Weight::default()),
        }
    }

    fn of_function(&mut self, index: usize) -> Measure {
        match self.known.get(&index) {
            Some(Some(known)) => return known.clone(),
            // It calls itself, and holds nothing meanwhile: see below.
            Some(None) => return Ok(Weight::default()),
            None => self.known.insert(index, None),
        };
        let measure = self.walk(index);
        self.known.insert(index, Some(measure.clone()));
        measure
    }

    fn walk(&mut self, index: usize) -> Measure {
        let input = self.input;
        let function = &input.module.functions[index];
        self.refuse_recursion(index, function)?;
        let fills_members = self.fills_members(function.role);
        let mut walk = Walk {
            peaks: self,
            function,
            index,
            fills_members,
            peak: Weight::default(),
        };
        let mut held = Held::default();
        for &param in &function.params {
            walk.hold(&mut held, Root::Slot(param))?;
        }
        walk.block(&function.body, &mut held)?;
        Ok(walk.peak)
    }

    /// A procedure that may call itself must hold nothing, or it may hold any number of it.
    fn refuse_recursion(&mut self, index: usize, function: &Function) -> Result<(), Reason> {
        let Role::Proc(proc) = function.role else {
            return Ok(());
        };
        if !self.input.effects.recursive[proc.index()] {
            return Ok(());
        }
        let result = self.measures.of(self.flow.facts[index].result);
        let mut holds = function.blocks && !self.is_part || result != Ok(Weight::default());
        for (slot, family) in function.slots.iter().zip(&self.flow.facts[index].slots) {
            holds |= slot.counted && self.measures.of(*family) != Ok(Weight::default());
        }
        if !holds {
            return Ok(());
        }
        let program = self.input.program;
        let name = program.names.name(program.procs[proc.index()].name);
        let text = format!("`{name}` may call itself any number of times");
        Err(Reason::new(text, program.procs[proc.index()].span))
    }

    /// A procedure that is called by its value, and may wait, has its frame in the heap.
    fn frame(&self, proc: ProcId) -> Weight {
        let role = Role::Proc(proc);
        let layout = self.layouts.by_role.get(&role);
        match layout {
            Some(layout) if !self.is_part && self.input.effects.of_proc(proc).blocks => {
                Weight::block(layout.extent.bytes)
            }
            _ => Weight::default(),
        }
    }
}

/// A holder of references besides members and objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Root {
    Slot(SlotId),
    /// A member of a component being initialised; later all members count, whatever happens.
    Member(MemberId),
    /// The function's result.
    Result,
    /// A received value that is in no variable yet.
    Received,
}

/// The roots that may hold something, with their measures.
#[derive(Clone, Default)]
struct Held(BTreeMap<Root, Weight>);

impl Held {
    fn total(&self) -> Weight {
        let each = self.0.values();
        each.fold(Weight::default(), |a, b| a.plus(*b))
    }

    /// Either of two ways came here.
    fn join(&mut self, other: &Held) {
        for (root, weight) in &other.0 {
            let mine = self.0.entry(*root).or_default();
            *mine = mine.max(*weight);
        }
    }

    fn covers(&self, other: &Held) -> bool {
        other.0.keys().all(|root| self.0.contains_key(root))
    }

    fn forget(&mut self, slot: SlotId) {
        self.0.remove(&Root::Slot(slot));
    }
}

/// The way through one function.
struct Walk<'w, 'n, 'a> {
    peaks: &'w mut Peaks<'n, 'a>,
    function: &'a Function,
    index: usize,
    fills_members: bool,
    peak: Weight,
}

impl Walk<'_, '_, '_> {
    /// From here on a root may hold something.
    fn hold(&mut self, held: &mut Held, root: Root) -> Result<(), Reason> {
        self.hold_of(held, root, None)
    }

    /// The same, of what has come with a payload type.
    fn hold_of(
        &mut self,
        held: &mut Held,
        root: Root,
        payload: Option<TypeId>,
    ) -> Result<(), Reason> {
        let flow = self.peaks.flow;
        let facts = &flow.facts[self.index];
        let family = match root {
            Root::Slot(slot) if !self.function.slots[slot.index()].counted => None,
            Root::Slot(slot) => facts.slots[slot.index()],
            Root::Member(member) => {
                let owner = flow.owner(self.function.role);
                owner.and_then(|owner| flow.members[owner.index()][member.index()])
            }
            Root::Result => facts.result,
            Root::Received => payload.and_then(|ty| flow.known_payload(ty)),
        };
        let weight = self.peaks.measures.of(family)?;
        if weight != Weight::default() {
            held.0.insert(root, weight);
            self.note(held, Weight::default());
        }
        Ok(())
    }

    /// Raises the peak to the amount held plus `more`, which is held for a moment.
    fn note(&mut self, held: &Held, more: Weight) {
        self.peak = self.peak.max(held.total().plus(more));
    }

    fn block(&mut self, block: &Block, held: &mut Held) -> Result<(), Reason> {
        for stmt in block {
            self.statement(&stmt.kind, held)?;
        }
        Ok(())
    }

    fn statement(&mut self, stmt: &StmtKind, held: &mut Held) -> Result<(), Reason> {
        match stmt {
            StmtKind::Set {
                place, value, mode, ..
            } => return self.set(place, value, *mode, held),
            StmtKind::Release(slot) => held.forget(*slot),
            StmtKind::Call { callee, .. } => self.call(callee, held)?,
            StmtKind::NewStruct { fields, .. } => {
                for (value, mode) in fields {
                    self.take(value, *mode, held);
                }
            }
            // While it is on its way it counts as the variable that it came from.
            StmtKind::Send {
                moved: Some(slot), ..
            }
            | StmtKind::PortAssign { value: slot, .. } => held.forget(*slot),
            StmtKind::Receive { channel, .. } => self.receive(channel, held)?,
            StmtKind::Return | StmtKind::Raise { .. } | StmtKind::StopSelf => held.0.clear(),
            StmtKind::Loop(l) => return self.repeat(l, held),
            StmtKind::Try {
                body,
                slots,
                handlers,
            } => return self.protected(body, slots, handlers, held),
            StmtKind::Select { arms, default } => {
                return self.select(arms, default.as_ref(), held);
            }
            StmtKind::If {
                then, otherwise, ..
            } => {
                let mut other = held.clone();
                self.block(then, held)?;
                self.block(otherwise, &mut other)?;
                held.join(&other);
            }
            StmtKind::Versioned { fast, slow, .. } => {
                let mut other = held.clone();
                self.repeat(fast, held)?;
                self.repeat(slow, &mut other)?;
                held.join(&other);
            }
            StmtKind::Promoted { body, .. } => return self.block(body, held),
            _ => {}
        }
        match statement_target(stmt) {
            Some(target) => self.hold(held, Root::Slot(target)),
            None => Ok(()),
        }
    }

    /// The reference of a value goes elsewhere.
    fn take(&self, value: &Value, mode: Mode, held: &mut Held) {
        match (value, mode) {
            (Value::Slot(slot), Mode::Move) => held.forget(*slot),
            (Value::Received(_), _) => {
                held.0.remove(&Root::Received);
            }
            _ => {}
        }
    }

    fn set(
        &mut self,
        place: &Place,
        value: &Value,
        mode: Mode,
        held: &mut Held,
    ) -> Result<(), Reason> {
        self.take(value, mode, held);
        match place {
            Place::Slot(slot) => self.hold(held, Root::Slot(*slot)),
            Place::Result => self.hold(held, Root::Result),
            Place::Member(member) if self.fills_members => self.hold(held, Root::Member(*member)),
            // Counted with the member or the object, whatever it holds.
            Place::Member(_) | Place::Global(_) | Place::Element(..) | Place::Field(..) => Ok(()),
        }
    }

    fn call(&mut self, callee: &Callee, held: &Held) -> Result<(), Reason> {
        let flow = self.peaks.flow;
        let mut most = Weight::default();
        match callee {
            Callee::Proc(proc) => {
                if let Some(function) = flow.of_proc[proc.index()] {
                    most = self.peaks.of_function(function)?;
                }
            }
            Callee::Value(_, ty) => {
                for proc in flow.valued(*ty) {
                    if let Some(function) = flow.of_proc[proc.index()] {
                        let callee = self.peaks.of_function(function)?;
                        most = most.max(callee.plus(self.peaks.frame(proc)));
                    }
                }
            }
        }
        self.note(held, most);
        Ok(())
    }

    fn receive(&mut self, channel: &Value, held: &mut Held) -> Result<(), Reason> {
        match self.peaks.flow.payload_of(self.function, channel) {
            Some(payload) => self.hold_of(held, Root::Received, Some(payload)),
            None => {
                let text = "the type of what is received here is not known";
                Err(Reason::new(text, self.function.span))
            }
        }
    }

    fn select(
        &mut self,
        arms: &[Arm],
        default: Option<&Block>,
        held: &mut Held,
    ) -> Result<(), Reason> {
        let before = held.clone();
        if let Some(default) = default {
            self.block(default, held)?;
        }
        for arm in arms {
            let mut here = before.clone();
            self.receive(&arm.channel, &mut here)?;
            self.block(&arm.body, &mut here)?;
            held.join(&here);
        }
        Ok(())
    }

    /// A round begins with what was held before, and with what an earlier round may have left in
    /// variables that are not its own.
    fn repeat(&mut self, l: &Loop, held: &mut Held) -> Result<(), Reason> {
        let mut targets = Vec::new();
        targets_of(&l.prepare, &mut targets);
        targets_of(&l.body, &mut targets);
        targets.retain(|slot| !l.fresh.contains(&slot.0));
        for target in targets {
            self.hold(held, Root::Slot(target))?;
        }
        loop {
            let before = held.clone();
            self.block(&l.prepare, held)?;
            self.block(&l.body, held)?;
            let is_all = before.covers(held);
            held.join(&before);
            if is_all {
                return Ok(());
            }
        }
    }

    /// A handler finds whatever was held when the body was left. What the body made itself has been
    /// released by then.
    fn protected(
        &mut self,
        body: &Block,
        slots: &std::ops::Range<u32>,
        handlers: &[Handler],
        held: &mut Held,
    ) -> Result<(), Reason> {
        let mut caught = held.clone();
        let mut targets = Vec::new();
        targets_of(body, &mut targets);
        targets.retain(|slot| !slots.contains(&slot.0));
        for target in targets {
            self.hold(&mut caught, Root::Slot(target))?;
        }
        if sets_result(body) {
            self.hold(&mut caught, Root::Result)?;
        }
        self.block(body, held)?;
        for handler in handlers {
            let mut here = caught.clone();
            self.block(&handler.body, &mut here)?;
            held.join(&here);
        }
        Ok(())
    }
}

fn sets_result(block: &Block) -> bool {
    block.iter().any(|stmt| {
        let here = matches!(
            &stmt.kind,
            StmtKind::Set {
                place: Place::Result,
                ..
            }
        );
        here || blocks_of(&stmt.kind).into_iter().any(sets_result)
    })
}
