//! Peak memory that a function holds, including all functions that it calls.
//!
//! A walk along the statements keeps the set of counted slots that may hold a reference. What each
//! of them can lead to is known ([`Measures`]); a new reference adds its measure, a release or a
//! move takes it off. Branches are joined, a loop begins with whatever its body may have left
//! behind, and a handler with whatever its body may hold. Objects that several slots share are
//! counted for each.

use std::collections::{BTreeMap, BTreeSet, HashMap};

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
///
/// Ways that part and meet again are walked one after the other. Each is undone after it, so that a
/// branch costs what it changes, however much is held around it.
#[derive(Default)]
struct Held {
    roots: BTreeMap<Root, Weight>,
    /// The sum of theirs. It is exact, so that what was added can be taken off again.
    bytes: u128,
    /// The changed roots in order, with the measures that they had before.
    journal: Vec<(Root, Option<Weight>)>,
}

/// Roots that one way changed, with their measures at its end; None where nothing is held.
type Way = BTreeMap<Root, Option<Weight>>;

impl Held {
    fn bytes(&self) -> u64 {
        u64::try_from(self.bytes).unwrap_or(u64::MAX)
    }

    fn get(&self, root: Root) -> Option<Weight> {
        self.roots.get(&root).copied()
    }

    /// Sets a root, and returns the measure that it had.
    fn put(&mut self, root: Root, weight: Option<Weight>) -> Option<Weight> {
        let old = match weight {
            Some(weight) => self.roots.insert(root, weight),
            None => self.roots.remove(&root),
        };
        let bytes = |weight: Option<Weight>| weight.map_or(0, |w| u128::from(w.bytes));
        self.bytes = self.bytes + bytes(weight) - bytes(old);
        old
    }

    fn set(&mut self, root: Root, weight: Option<Weight>) {
        let old = self.put(root, weight);
        if old != weight {
            self.journal.push((root, old));
        }
    }

    fn forget(&mut self, root: Root) {
        self.set(root, None);
    }

    fn clear(&mut self) {
        let roots: Vec<Root> = self.roots.keys().copied().collect();
        roots.into_iter().for_each(|root| self.forget(root));
    }

    /// The roots changed since `mark`, a length of the journal, with what they held then.
    fn before(&self, mark: usize) -> Way {
        // The first change of a root counts.
        self.journal[mark..].iter().rev().copied().collect()
    }

    /// Undoes all changes since `mark`.
    fn undo(&mut self, mark: usize) -> Way {
        let mut way = self.before(mark);
        for (root, weight) in &mut way {
            *weight = self.get(*root);
        }
        for (root, old) in self.journal.split_off(mark).into_iter().rev() {
            self.put(root, old);
        }
        way
    }

    /// Any of several ways from here was taken.
    fn join(&mut self, ways: &[Way]) {
        let changed: BTreeSet<Root> = ways.iter().flat_map(|way| way.keys().copied()).collect();
        for root in changed {
            let here = self.get(root);
            let ends = ways.iter().map(|way| *way.get(&root).unwrap_or(&here));
            let most = ends.flatten().reduce(Weight::max);
            self.set(root, most);
        }
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
            held.set(root, Some(weight));
            // The largest block of each root is noted when the root comes to hold it.
            self.note(held, Weight { bytes: 0, ..weight });
        }
        Ok(())
    }

    /// Raises the peak to the amount held plus `more`, which is held for a moment.
    fn note(&mut self, held: &Held, more: Weight) {
        let bytes = held.bytes().saturating_add(more.bytes);
        self.peak = self.peak.max(Weight { bytes, ..more });
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
            StmtKind::Release(slot) => held.forget(Root::Slot(*slot)),
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
            | StmtKind::PortAssign { value: slot, .. } => held.forget(Root::Slot(*slot)),
            StmtKind::Receive { channel, .. } => self.receive(channel, held)?,
            StmtKind::Return | StmtKind::Raise { .. } | StmtKind::StopSelf => held.clear(),
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
                let branches = [then, otherwise];
                self.either(2, held, |this, way, held| this.block(branches[way], held))?;
            }
            StmtKind::Versioned { fast, slow, .. } => {
                let versions = [fast, slow];
                self.either(2, held, |this, way, held| this.repeat(versions[way], held))?;
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
            (Value::Slot(slot), Mode::Move) => held.forget(Root::Slot(*slot)),
            (Value::Received(_), _) => held.forget(Root::Received),
            _ => {}
        }
    }

    fn set(
        &mut self,
        place: &StorePlace,
        value: &Value,
        mode: Mode,
        held: &mut Held,
    ) -> Result<(), Reason> {
        self.take(value, mode, held);
        match place {
            StorePlace::Slot(slot) => self.hold(held, Root::Slot(*slot)),
            StorePlace::Result => self.hold(held, Root::Result),
            StorePlace::Member(member) if self.fills_members => {
                self.hold(held, Root::Member(*member))
            }
            // Counted with the member or the object, whatever it holds.
            StorePlace::Member(_)
            | StorePlace::Global(_)
            | StorePlace::Element(..)
            | StorePlace::Field(..) => Ok(()),
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
        // Without a default nothing happens there.
        self.either(arms.len() + 1, held, |this, way, held| {
            let Some(arm) = way.checked_sub(1).map(|way| &arms[way]) else {
                return default.map_or(Ok(()), |default| this.block(default, held));
            };
            this.receive(&arm.channel, held)?;
            this.block(&arm.body, held)
        })
    }

    /// Walks one of several ways, whichever it is.
    fn either(
        &mut self,
        count: usize,
        held: &mut Held,
        mut walk: impl FnMut(&mut Self, usize, &mut Held) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        let mark = held.journal.len();
        let mut ways = Vec::with_capacity(count);
        for way in 0..count {
            walk(self, way, held)?;
            ways.push(held.undo(mark));
        }
        held.join(&ways);
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
            let mark = held.journal.len();
            self.block(&l.prepare, held)?;
            self.block(&l.body, held)?;
            let before = held.before(mark);
            let is_all = before
                .iter()
                .all(|(root, before)| before.is_some() || held.get(*root).is_none());
            held.join(&[Way::new(), before]);
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
        let mut targets = Vec::new();
        targets_of(body, &mut targets);
        targets.retain(|slot| !slots.contains(&slot.0));
        let mut caught: Vec<Root> = targets.into_iter().map(Root::Slot).collect();
        caught.extend(sets_result(body).then_some(Root::Result));
        self.either(handlers.len() + 1, held, |this, way, held| {
            let Some(handler) = way.checked_sub(1).map(|way| &handlers[way]) else {
                return this.block(body, held);
            };
            for &root in &caught {
                this.hold(held, root)?;
            }
            this.block(&handler.body, held)
        })
    }
}

fn sets_result(block: &Block) -> bool {
    block.iter().any(|stmt| {
        let here = matches!(
            &stmt.kind,
            StmtKind::Set {
                place: StorePlace::Result,
                ..
            }
        );
        here || blocks_of(&stmt.kind).into_iter().any(sets_result)
    })
}
