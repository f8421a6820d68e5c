//! The flow of references: places that share a [family](super::families), and the components that
//! create, receive and hand over objects of each family.
//!
//! Nothing depends on order: every statement of every function is looked at once.

use std::collections::{BTreeMap, BTreeSet};

use super::Reason;
use super::families::{Families, FamilyId};
use crate::core::Lowered;
use crate::core::ir::*;
use crate::core::passes::blocks_of;
use crate::source::Span;
use crate::tree::{ComponentId, ProcCode, ProcId};
use crate::types::{Type, TypeId};

/// Facts about one function.
#[derive(Default)]
pub(super) struct Facts {
    /// By slot.
    pub(super) slots: Vec<Option<FamilyId>>,
    pub(super) result: Option<FamilyId>,
    /// Families of objects created here, in the heap of the component that runs it.
    makes: Vec<FamilyId>,
    /// And of all that can be reached from these.
    copies: Vec<FamilyId>,
    /// Received families: copies, or objects created by another component.
    receives: Vec<FamilyId>,
    /// Families handed over, and where: the objects may move to another component.
    hands_on: Vec<(FamilyId, Span)>,
    /// Functions that it may call.
    pub(super) calls: Vec<usize>,
}

/// The whole program's.
pub(super) struct Flow<'a> {
    input: &'a Lowered<'a>,
    pub(super) families: Families<'a>,
    /// By function.
    pub(super) facts: Vec<Facts>,
    /// By component and member.
    pub(super) members: Vec<Vec<Option<FamilyId>>>,
    /// Families received on channels, by payload type.
    channels: BTreeMap<TypeId, Option<FamilyId>>,
    /// By procedure: its function, unless it is native or not used.
    pub(super) of_proc: Vec<Option<usize>>,
}

impl<'a> Flow<'a> {
    pub(super) fn new(input: &'a Lowered<'a>) -> Flow<'a> {
        let program = input.program;
        let mut flow = Flow {
            input,
            families: Families::new(input),
            facts: Vec::new(),
            members: Vec::new(),
            channels: BTreeMap::new(),
            of_proc: vec![None; program.procs.len()],
        };
        for component in &program.components {
            let members = component.members.iter();
            let families = members.map(|m| flow.families.of_type(m.ty)).collect();
            flow.members.push(families);
        }
        for (index, function) in input.module.functions.iter().enumerate() {
            flow.add_places(index, function);
        }
        for (index, function) in input.module.functions.iter().enumerate() {
            flow.block(index, function, &function.body);
        }
        flow
    }

    fn add_places(&mut self, index: usize, function: &Function) {
        if let Role::Proc(proc) = function.role {
            self.of_proc[proc.index()] = Some(index);
        }
        let slots = function.slots.iter().map(|slot| match slot.ty {
            SlotType::Of(ty) => self.families.of_type(ty),
            SlotType::Double | SlotType::Held => None,
        });
        let facts = Facts {
            slots: slots.collect(),
            result: self.families.of_type(function.result),
            ..Facts::default()
        };
        self.facts.push(facts);
    }

    // ---- who has what ---------------------------------------------------------------------------

    /// The functions that run in a component, or in the main sequence.
    pub(super) fn functions_of(&self, component: Option<ComponentId>) -> BTreeSet<usize> {
        let belongs = |role: Role| match role {
            Role::Main => component.is_none(),
            Role::Members(c) | Role::Constructor(c, _) | Role::Behaviour(c) => Some(c) == component,
            Role::Proc(_) => false,
        };
        let functions = self.input.module.functions.iter().enumerate();
        let mut left: Vec<usize> = functions
            .filter(|(_, function)| belongs(function.role))
            .map(|(index, _)| index)
            .collect();
        let mut found = BTreeSet::new();
        while let Some(index) = left.pop() {
            if found.insert(index) {
                left.extend(&self.facts[index].calls);
            }
        }
        found
    }

    /// The families whose objects a component creates in its heap and may hand over to others, and
    /// the first place where it does.
    pub(super) fn handed_on(
        &self,
        component: Option<ComponentId>,
    ) -> (BTreeSet<FamilyId>, Option<Span>) {
        let (mut made, mut sent) = (BTreeSet::new(), BTreeSet::new());
        let mut first: Option<Span> = None;
        for index in self.functions_of(component) {
            let facts = &self.facts[index];
            made.extend(facts.makes.iter().map(|&family| self.families.root(family)));
            for &family in facts.copies.iter().chain(&facts.receives) {
                self.families.add_tree(family, &mut made);
            }
            for &(family, span) in &facts.hands_on {
                self.families.add_tree(family, &mut sent);
                first.get_or_insert(span);
            }
            // Whoever makes a component copies its arguments into its heap.
            let function = &self.input.module.functions[index];
            if let Role::Constructor(..) = function.role {
                for param in &function.params {
                    if let Some(family) = facts.slots[param.index()] {
                        self.families.add_tree(family, &mut made);
                    }
                }
            }
        }
        let both = made.intersection(&sent).copied().collect();
        (both, first)
    }

    /// The families of which a component may get objects that others have made.
    pub(super) fn received(&self, component: Option<ComponentId>) -> BTreeSet<FamilyId> {
        let mut found = BTreeSet::new();
        for index in self.functions_of(component) {
            for &family in &self.facts[index].receives {
                self.families.add_tree(family, &mut found);
            }
        }
        found
    }

    /// The family received on channels of a payload type.
    pub(super) fn payload(&mut self, ty: TypeId) -> Option<FamilyId> {
        if let Some(family) = self.channels.get(&ty) {
            return *family;
        }
        let family = self.families.of_type(ty);
        self.channels.insert(ty, family);
        family
    }

    /// The same, when the whole program has been looked at.
    pub(super) fn known_payload(&self, ty: TypeId) -> Option<FamilyId> {
        self.channels.get(&ty).copied().flatten()
    }

    /// The family of a channel's values.
    pub(super) fn payload_of(&self, function: &Function, channel: &Value) -> Option<TypeId> {
        let program = self.input.program;
        let ty = match channel {
            Value::Port(port) => {
                let component = self.owner(function.role)?;
                let channels = &program.components[component.index()].channels;
                return Some(channels[port.index()].payload);
            }
            Value::Slot(slot) => match function.slots[slot.index()].ty {
                SlotType::Of(ty) => ty,
                SlotType::Double | SlotType::Held => return None,
            },
            Value::Member(member) => {
                let component = self.owner(function.role)?;
                program.components[component.index()].members[member.index()].ty
            }
            Value::Element(_, _, ty) | Value::Unboxed(_, ty) | Value::Received(ty) => *ty,
            Value::Field(_, ty, field) => match program.types.get(*ty) {
                Type::Struct(fields) => fields.get(*field as usize)?.1,
                _ => return None,
            },
            _ => return None,
        };
        match program.types.get(ty) {
            Type::Channel(_, payload) => Some(*payload),
            _ => None,
        }
    }

    pub(super) fn owner(&self, role: Role) -> Option<ComponentId> {
        match role {
            Role::Proc(proc) => self.input.program.procs[proc.index()].owner,
            Role::Constructor(c, _) | Role::Members(c) | Role::Behaviour(c) => Some(c),
            Role::Main => None,
        }
    }

    /// The procedures that a value of a procedure type may be.
    pub(super) fn valued(&self, ty: TypeId) -> impl Iterator<Item = ProcId> {
        let (program, module) = (self.input.program, self.input.module);
        let valued = module.valued.iter().copied();
        valued.filter(move |proc| program.procs[proc.index()].ty == ty)
    }

    // ---- values ---------------------------------------------------------------------------------

    fn family(&mut self, at: usize, value: &Value, span: Span) -> Option<FamilyId> {
        match value {
            Value::Slot(slot) => self.facts[at].slots[slot.index()],
            Value::Member(member) => {
                let component = self.owner(self.input.module.functions[at].role)?;
                self.members[component.index()][member.index()]
            }
            Value::Element(array, _, _) => self.part_of(at, array, 0, span),
            Value::Field(object, _, field) => self.part_of(at, object, *field as usize, span),
            Value::Unboxed(_, ty) => self.families.content(*ty, span),
            Value::Received(ty) => self.payload(*ty),
            // Literals, channels and components take nothing of a heap, scalars neither.
            _ => None,
        }
    }

    /// A part of what a value refers to: of an array any element, of a struct a field.
    fn part_of(&mut self, at: usize, of: &Value, part: usize, span: Span) -> Option<FamilyId> {
        let of = self.family(at, of, span)?;
        self.families.part(of, part)
    }

    fn place(&mut self, at: usize, place: &StorePlace, span: Span) -> Option<FamilyId> {
        match place {
            StorePlace::Slot(slot) => self.family(at, &Value::Slot(*slot), span),
            StorePlace::Member(member) => self.family(at, &Value::Member(*member), span),
            StorePlace::Element(array, _, _) => self.part_of(at, array, 0, span),
            StorePlace::Field(object, _, field) => self.part_of(at, object, *field as usize, span),
            StorePlace::Result => self.facts[at].result,
            // The prelude's components.
            StorePlace::Global(_) => None,
        }
    }

    // ---- statements -----------------------------------------------------------------------------

    fn block(&mut self, at: usize, function: &Function, block: &Block) {
        for stmt in block {
            self.statement(at, function, stmt);
            for inner in blocks_of(&stmt.kind) {
                self.block(at, function, inner);
            }
        }
    }

    fn statement(&mut self, at: usize, function: &Function, stmt: &Stmt) {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Set { place, value, .. } => {
                let (to, from) = (self.place(at, place, span), self.family(at, value, span));
                self.families.join(to, from);
            }
            StmtKind::NewArray {
                target,
                lengths,
                init,
                ..
            } => self.new_array(at, *target, lengths, init, span),
            StmtKind::NewStruct { target, fields, .. } => {
                let made = self.makes(at, *target);
                for (index, (value, _)) in fields.iter().enumerate() {
                    let part = made.and_then(|made| self.families.part(made, index));
                    let value = self.family(at, value, span);
                    self.families.join(part, value);
                }
            }
            StmtKind::NewBox { target, ty, value } => {
                let value = self.family(at, value, span);
                let content = self.families.content(*ty, span);
                self.families.join(content, value);
                self.makes(at, *target);
                self.facts[at].copies.extend(content);
            }
            StmtKind::NewProcedure { target, .. } => {
                self.makes(at, *target);
            }
            StmtKind::Copy { target, value, .. } => {
                let (to, from) = (
                    self.facts[at].slots[target.index()],
                    self.family(at, value, span),
                );
                self.families.join(to, from);
                self.facts[at].copies.extend(to);
            }
            StmtKind::NewComponent {
                component,
                constructor,
                args,
                ..
            } => {
                let role = Role::Constructor(*component, *constructor);
                let mut functions = self.input.module.functions.iter();
                if let Some(callee) = functions.position(|f| f.role == role) {
                    self.pass(at, args, callee, span);
                }
            }
            StmtKind::Call {
                target,
                callee,
                args,
                ..
            } => self.call(at, *target, callee, args, span),
            StmtKind::Send {
                value, ty, moved, ..
            } => {
                let (on_channel, value) = (self.payload(*ty), self.family(at, value, span));
                self.families.join(on_channel, value);
                if moved.is_some() {
                    let handed = on_channel.map(|family| (family, span));
                    self.facts[at].hands_on.extend(handed);
                }
            }
            StmtKind::Receive { channel, .. } => self.receive(at, function, channel),
            StmtKind::Select { arms, .. } => {
                for arm in arms {
                    self.receive(at, function, &arm.channel);
                }
            }
            StmtKind::Publish { channel, .. } => self.expose(function, channel, span),
            StmtKind::Connect(End::Local(channel), End::Remote(..))
            | StmtKind::Connect(End::Remote(..), End::Local(channel)) => {
                self.expose(function, channel, span);
            }
            _ => {}
        }
    }

    /// Marks a slot's family as created here.
    fn makes(&mut self, at: usize, target: SlotId) -> Option<FamilyId> {
        let family = self.facts[at].slots[target.index()]?;
        self.families.make(family);
        self.facts[at].makes.push(family);
        Some(family)
    }

    /// Copies the initial value into each element of the innermost dimension.
    fn new_array(&mut self, at: usize, target: SlotId, lengths: &[u32], init: &Value, span: Span) {
        let init = self.family(at, init, span);
        let mut family = self.facts[at].slots[target.index()];
        for &length in lengths {
            let Some(array) = family else { return };
            self.families.make_array(array, u64::from(length));
            self.facts[at].makes.push(array);
            family = self.families.part(array, 0);
        }
        self.families.join(family, init);
        self.facts[at].copies.extend(family);
    }

    /// Arguments become parameters.
    fn pass(&mut self, at: usize, args: &[Argument], callee: usize, span: Span) {
        let input = self.input;
        let params = &input.module.functions[callee].params;
        for (argument, param) in args.iter().zip(params) {
            let value = self.family(at, &argument.value, span);
            let param = self.facts[callee].slots[param.index()];
            self.families.join(param, value);
        }
    }

    fn call(
        &mut self,
        at: usize,
        target: Option<SlotId>,
        callee: &Callee,
        args: &[Argument],
        span: Span,
    ) {
        let procs: Vec<ProcId> = match callee {
            Callee::Proc(proc) => vec![*proc],
            Callee::Value(_, ty) => self.valued(*ty).collect(),
        };
        let target = target.and_then(|slot| self.facts[at].slots[slot.index()]);
        for proc in procs {
            match self.of_proc[proc.index()] {
                Some(function) => {
                    self.facts[at].calls.push(function);
                    self.pass(at, args, function, span);
                    self.families.join(target, self.facts[function].result);
                }
                None => self.call_native(at, target, proc, span),
            }
        }
    }

    /// Natives keep nothing, and what they make may be of any size.
    fn call_native(&mut self, at: usize, target: Option<FamilyId>, proc: ProcId, span: Span) {
        let program = self.input.program;
        let data = &program.procs[proc.index()];
        debug_assert!(matches!(data.code, ProcCode::Native { .. }));
        if let Some(target) = target {
            let name = program.names.name(data.name);
            let text = format!("the result of `{name}` can be of any size");
            self.families.open(target, &Reason::new(text, span));
            self.facts[at].copies.push(target);
        }
    }

    /// Sends a value, which is copied into the receiver's heap or moved.
    fn receive(&mut self, at: usize, function: &Function, channel: &Value) {
        if let Some(ty) = self.payload_of(function, channel) {
            let family = self.payload(ty);
            self.facts[at].receives.extend(family);
        }
    }

    /// Other nodes may send and receive there.
    fn expose(&mut self, function: &Function, channel: &Value, span: Span) {
        let Some(ty) = self.payload_of(function, channel) else {
            return;
        };
        if let Some(family) = self.payload(ty) {
            let text = "messages between programs can be of any size and number";
            self.families.open(family, &Reason::new(text, span));
        }
    }
}
