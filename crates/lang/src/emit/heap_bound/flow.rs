//! Where references go: which places share a [node](super::nodes), and who makes, receives and hands on
//! objects of which nodes.
//!
//! Nothing depends on order: every statement of every function is looked at once.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Input;
use super::nodes::{NodeId, Nodes};
use super::{Reason, blocks_of};
use crate::core::ir::*;
use crate::source::Span;
use crate::tree::{ComponentId, ProcCode, ProcId};
use crate::types::{Type, TypeId};

/// What is known of one function.
#[derive(Default)]
pub(super) struct Facts {
    /// By slot.
    pub(super) slots: Vec<Option<NodeId>>,
    pub(super) result: Option<NodeId>,
    /// Objects of these nodes are made here, in the heap of whoever runs it.
    makes: Vec<NodeId>,
    /// And of all that can be reached from these.
    copies: Vec<NodeId>,
    /// What comes by channels: as copies, or made by another component.
    receives: Vec<NodeId>,
    /// What is sent for good, and where: it may go to another component as it is.
    hands_on: Vec<(NodeId, Span)>,
    /// Functions that it may call.
    pub(super) calls: Vec<usize>,
}

/// The whole program's.
pub(super) struct Flow<'a> {
    input: &'a Input<'a>,
    pub(super) nodes: Nodes<'a>,
    /// By function.
    pub(super) facts: Vec<Facts>,
    /// By component and member.
    pub(super) members: Vec<Vec<Option<NodeId>>>,
    /// What comes on channels, by payload type.
    channels: BTreeMap<TypeId, Option<NodeId>>,
    /// By procedure: its function, unless it is native or not used.
    pub(super) of_proc: Vec<Option<usize>>,
}

impl<'a> Flow<'a> {
    pub(super) fn new(input: &'a Input<'a>) -> Flow<'a> {
        let program = input.program;
        let mut flow = Flow {
            input,
            nodes: Nodes::new(input),
            facts: Vec::new(),
            members: Vec::new(),
            channels: BTreeMap::new(),
            of_proc: vec![None; program.procs.len()],
        };
        for component in &program.components {
            let members = component.members.iter();
            let nodes = members.map(|m| flow.nodes.of_type(m.ty)).collect();
            flow.members.push(nodes);
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
            SlotType::Of(ty) => self.nodes.of_type(ty),
            SlotType::Double | SlotType::Held => None,
        });
        let facts = Facts {
            slots: slots.collect(),
            result: self.nodes.of_type(function.result),
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

    /// The nodes whose objects a component makes in its heap and may hand on to others, and the first
    /// place where it does.
    pub(super) fn handed_on(
        &self,
        component: Option<ComponentId>,
    ) -> (BTreeSet<NodeId>, Option<Span>) {
        let (mut made, mut sent) = (BTreeSet::new(), BTreeSet::new());
        let mut first: Option<Span> = None;
        for index in self.functions_of(component) {
            let facts = &self.facts[index];
            made.extend(facts.makes.iter().map(|&node| self.nodes.root(node)));
            for &node in facts.copies.iter().chain(&facts.receives) {
                self.nodes.add_tree(node, &mut made);
            }
            for &(node, span) in &facts.hands_on {
                self.nodes.add_tree(node, &mut sent);
                first.get_or_insert(span);
            }
            // Whoever makes a component copies its arguments into its heap.
            let function = &self.input.module.functions[index];
            if let Role::Constructor(..) = function.role {
                for param in &function.params {
                    if let Some(node) = facts.slots[param.index()] {
                        self.nodes.add_tree(node, &mut made);
                    }
                }
            }
        }
        let both = made.intersection(&sent).copied().collect();
        (both, first)
    }

    /// The nodes of which a component may get objects that others have made.
    pub(super) fn received(&self, component: Option<ComponentId>) -> BTreeSet<NodeId> {
        let mut found = BTreeSet::new();
        for index in self.functions_of(component) {
            for &node in &self.facts[index].receives {
                self.nodes.add_tree(node, &mut found);
            }
        }
        found
    }

    /// What comes on channels of a payload type.
    pub(super) fn payload(&mut self, ty: TypeId) -> Option<NodeId> {
        if let Some(node) = self.channels.get(&ty) {
            return *node;
        }
        let node = self.nodes.of_type(ty);
        self.channels.insert(ty, node);
        node
    }

    /// The same, when the whole program has been looked at.
    pub(super) fn known_payload(&self, ty: TypeId) -> Option<NodeId> {
        self.channels.get(&ty).copied().flatten()
    }

    /// What a channel's values are.
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

    fn node(&mut self, at: usize, value: &Value, span: Span) -> Option<NodeId> {
        match value {
            Value::Slot(slot) => self.facts[at].slots[slot.index()],
            Value::Member(member) => {
                let component = self.owner(self.input.module.functions[at].role)?;
                self.members[component.index()][member.index()]
            }
            Value::Element(array, _, _) => {
                let array = self.node(at, array, span)?;
                self.nodes.part(array, 0)
            }
            Value::Field(object, _, field) => {
                let object = self.node(at, object, span)?;
                self.nodes.part(object, *field as usize)
            }
            Value::Unboxed(_, ty) => self.nodes.content(*ty, span),
            Value::Received(ty) => self.payload(*ty),
            // Literals, channels and components take nothing of a heap, scalars neither.
            _ => None,
        }
    }

    fn place(&mut self, at: usize, place: &Place, span: Span) -> Option<NodeId> {
        match place {
            Place::Slot(slot) => self.node(at, &Value::Slot(*slot), span),
            Place::Member(member) => self.node(at, &Value::Member(*member), span),
            Place::Element(array, _, _) => {
                let array = self.node(at, array, span)?;
                self.nodes.part(array, 0)
            }
            Place::Field(object, _, field) => {
                let object = self.node(at, object, span)?;
                self.nodes.part(object, *field as usize)
            }
            Place::Result => self.facts[at].result,
            // The prelude's components.
            Place::Global(_) => None,
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
                let (to, from) = (self.place(at, place, span), self.node(at, value, span));
                self.nodes.join(to, from);
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
                    let part = made.and_then(|made| self.nodes.part(made, index));
                    let value = self.node(at, value, span);
                    self.nodes.join(part, value);
                }
            }
            StmtKind::NewBox { target, ty, value } => {
                let value = self.node(at, value, span);
                let content = self.nodes.content(*ty, span);
                self.nodes.join(content, value);
                self.makes(at, *target);
                self.facts[at].copies.extend(content);
            }
            StmtKind::NewProcedure { target, .. } => {
                self.makes(at, *target);
            }
            StmtKind::Copy { target, value, .. } => {
                let (to, from) = (
                    self.facts[at].slots[target.index()],
                    self.node(at, value, span),
                );
                self.nodes.join(to, from);
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
            } => self.call(at, *target, callee, args, span),
            StmtKind::Send {
                value, ty, moved, ..
            } => {
                let (on_channel, value) = (self.payload(*ty), self.node(at, value, span));
                self.nodes.join(on_channel, value);
                if moved.is_some() {
                    let handed = on_channel.map(|node| (node, span));
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

    /// Objects of a slot's node are made here.
    fn makes(&mut self, at: usize, target: SlotId) -> Option<NodeId> {
        let node = self.facts[at].slots[target.index()]?;
        self.nodes.make(node);
        self.facts[at].makes.push(node);
        Some(node)
    }

    /// What stands in the elements of the innermost dimension is copied, once for each.
    fn new_array(&mut self, at: usize, target: SlotId, lengths: &[u32], init: &Value, span: Span) {
        let init = self.node(at, init, span);
        let mut node = self.facts[at].slots[target.index()];
        for &length in lengths {
            let Some(array) = node else { return };
            self.nodes.make_array(array, u64::from(length));
            self.facts[at].makes.push(array);
            node = self.nodes.part(array, 0);
        }
        self.nodes.join(node, init);
        self.facts[at].copies.extend(node);
    }

    /// Arguments become parameters.
    fn pass(&mut self, at: usize, args: &[Argument], callee: usize, span: Span) {
        let input = self.input;
        let params = &input.module.functions[callee].params;
        for (argument, param) in args.iter().zip(params) {
            let value = self.node(at, &argument.value, span);
            let param = self.facts[callee].slots[param.index()];
            self.nodes.join(param, value);
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
                    self.nodes.join(target, self.facts[function].result);
                }
                None => self.call_native(at, target, proc, span),
            }
        }
    }

    /// Natives keep nothing, and what they make may be of any size.
    fn call_native(&mut self, at: usize, target: Option<NodeId>, proc: ProcId, span: Span) {
        let program = self.input.program;
        let data = &program.procs[proc.index()];
        debug_assert!(matches!(data.code, ProcCode::Native { .. }));
        if let Some(target) = target {
            let name = program.names.name(data.name);
            let text = format!("what `{name}` gives can be of any size");
            self.nodes.open(target, &Reason::new(text, span));
            self.facts[at].copies.push(target);
        }
    }

    /// What is sent is copied into the heap of who receives it, or comes as it is.
    fn receive(&mut self, at: usize, function: &Function, channel: &Value) {
        if let Some(ty) = self.payload_of(function, channel) {
            let node = self.payload(ty);
            self.facts[at].receives.extend(node);
        }
    }

    /// Other nodes may send and receive there.
    fn expose(&mut self, function: &Function, channel: &Value, span: Span) {
        let Some(ty) = self.payload_of(function, channel) else {
            return;
        };
        if let Some(node) = self.payload(ty) {
            let text = "what passes here between programs can be of any size, and in any number";
            self.nodes.open(node, &Reason::new(text, span));
        }
    }
}
