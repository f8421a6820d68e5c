//! Statements.

use super::paths::{Spot, Way};
use super::{Flow, Walk};
use crate::analysis::graph::known::Known;
use crate::analysis::graph::weights;
use crate::analysis::graph::world::{Fill, HalfChannel, Object, ObjectId};
use crate::analysis::graph::{UnknownKind, bytes};
use crate::core::ir::*;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::Direction;
use crate::types::{Type, TypeId};
use std::collections::BTreeMap;
use std::iter::once;

impl<'a> Walk<'a> {
    pub(super) fn block(&mut self, block: &Block) -> Flow {
        for stmt in block {
            if self.steps_left == 0 {
                return self.out_of_steps(stmt.span);
            }
            self.steps_left -= 1;
            let flow = self.statement(stmt);
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    #[cold]
    fn out_of_steps(&mut self, span: Span) -> Flow {
        let reason = "the program is too long to follow beyond this point";
        self.unknown(UnknownKind::Work, reason, span);
        Flow::Stop
    }

    fn statement(&mut self, stmt: &Stmt) -> Flow {
        match &stmt.kind {
            StmtKind::Set { place, value, .. } => {
                let value = self.value(value);
                self.name_after(place, value);
                self.store(place, value);
            }
            StmtKind::Release(_) | StmtKind::TakeHeld(_) => {}
            StmtKind::CheckIndex { array, index, .. } => {
                let array = self.value(array);
                let index = self.value(index);
                self.work(self.pace.check);
                if let (Known::Int(length), Known::Int(index)) = (self.length(array), index)
                    && !(0..length).contains(&index)
                {
                    return Flow::Raise(Known::Unknown);
                }
            }
            StmtKind::CheckZero { value, .. } => {
                let value = self.value(value);
                self.work(self.pace.check);
                if value == Known::Int(0) {
                    return Flow::Raise(Known::Unknown);
                }
            }
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => return self.condition(condition, then, otherwise),
            StmtKind::Loop(l) => return self.repeat(l),
            StmtKind::Versioned { slow, .. } => return self.repeat(slow),
            StmtKind::Promoted { body, .. } => return self.block(body),
            StmtKind::Call {
                target,
                callee,
                args,
                ..
            } => return self.call(*target, callee, args, stmt.span),
            StmtKind::Connect(a, b) => self.connect(a, b, stmt.span),
            StmtKind::Disconnect(end) => self.disconnect(end, stmt.span),
            StmtKind::Publish { channel, .. } => {
                self.value(channel);
                let reason = "programs on other nodes may connect to a published channel";
                self.unknown(UnknownKind::Connection, reason, stmt.span);
            }
            StmtKind::StopOther(component) => {
                self.value(component);
            }
            StmtKind::StopSelf => return Flow::Stop,
            StmtKind::Raise { label } => return Flow::Raise(self.value(label)),
            StmtKind::Return => return Flow::Return,
            StmtKind::Try { body, handlers, .. } => return self.protected(body, handlers),
            StmtKind::Send {
                channel,
                value,
                ty,
                moved,
                text,
            } => self.send(channel, (value, *ty), moved.is_some(), *text),
            StmtKind::Receive { channel, text, .. } => self.receive(channel, *text),
            StmtKind::Select { arms, default } => return self.select(arms, default.as_ref()),
            StmtKind::PortAssign {
                component,
                name,
                value,
            } => {
                let component = match component {
                    Some(component) => self.value(component),
                    None => Known::Component(self.frame.instance),
                };
                let value = self.stack[self.frame.base + value.index()];
                self.assign_port(component, *name, value, stmt.span);
            }
            _ => self.make(stmt),
        }
        Flow::Next
    }

    /// Statements that make something and have a target.
    fn make(&mut self, stmt: &Stmt) {
        let Some(target) = crate::core::passes::statement_target(&stmt.kind) else {
            return;
        };
        let made = match &stmt.kind {
            StmtKind::NewArray {
                ty,
                lengths,
                init,
                on_stack,
                ..
            } => {
                let init = self.value(init);
                let block = if *on_stack { 0.0 } else { weights::BLOCK };
                self.new_array(*ty, lengths, init, block)
            }
            StmtKind::NewStruct {
                fields, on_stack, ..
            } => {
                let fields = fields.iter().map(|(value, _)| self.value(value)).collect();
                self.work(if *on_stack { 0.0 } else { weights::BLOCK });
                self.world.object(Object::Struct { fields })
            }
            StmtKind::NewBox { ty, value, .. } => {
                let content = self.value(value);
                let content = self.world.copied(content);
                self.work(weights::BLOCK);
                self.world.object(Object::Box { ty: *ty, content })
            }
            StmtKind::Copy { value, ty, .. } => {
                let value = self.value(value);
                let size = bytes::of(self, value, *ty).bytes;
                self.work(weights::BLOCK + size * weights::BYTE);
                self.world.copied(value)
            }
            StmtKind::NewChannel {
                direction, payload, ..
            } => self.new_channel(*direction, *payload, stmt.span),
            StmtKind::NewComponent {
                component,
                constructor,
                args,
                ..
            } => {
                let args: Vec<Known> = args.iter().map(|a| self.value(&a.value)).collect();
                self.new_component(*component, *constructor, &args, stmt.span)
            }
            StmtKind::NewProcedure { proc, .. } => Known::Proc(*proc, self.frame.instance),
            StmtKind::PortOf {
                component, name, ..
            } => {
                let component = self.value(component);
                self.port_of(component, *name)
            }
            _ => Known::Unknown,
        };
        let place = StorePlace::Slot(target);
        self.name_after(&place, made);
        self.put(Spot::Slot(self.frame.base + target.index()), made);
    }

    /// `block_ns`: what the memory of one costs, beside filling it.
    fn new_array(&mut self, ty: TypeId, lengths: &[u32], init: Known, block_ns: f64) -> Known {
        let mut types = Vec::with_capacity(lengths.len());
        let mut element = ty;
        for _ in lengths {
            if let Type::Array(inner) = self.program.types.get(element) {
                element = *inner;
            }
            types.push(element);
        }
        let mut fill = match init {
            Known::Object(id) if !matches!(self.world.get(id), Object::Box { .. }) => {
                match self.world.copy(id) {
                    Known::Object(template) => Fill::CopyOf(template),
                    other => Fill::Value(other),
                }
            }
            value => Fill::Value(value),
        };
        let mut array = Known::Unknown;
        for (depth, (&length, &element)) in lengths.iter().zip(&types).enumerate().rev() {
            let copies = lengths[..depth].iter().map(|&n| f64::from(n)).product();
            array = self.world.object(Object::Array {
                length: Some(length),
                fill,
                stored: BTreeMap::new(),
                is_blurred: false,
                element,
                copies,
            });
            if let Known::Object(id) = array {
                fill = Fill::CopyOf(id);
            }
            let size = f64::from(length) * bytes::of_slot(self.program, element);
            self.work(copies * (block_ns + size * weights::BYTE));
        }
        array
    }

    fn new_channel(&mut self, direction: Direction, payload: TypeId, span: Span) -> Known {
        self.work(weights::BLOCK);
        let channel = HalfChannel {
            owner: self.frame.instance,
            name: None,
            direction,
            payload,
            span,
        };
        match self.doubt() {
            None => self.world.channel(channel),
            Some(_) => self.world.passing_channel(channel),
        }
    }

    /// Components and channels are called what the first variable is called that they are stored
    /// in.
    fn name_after(&mut self, place: &StorePlace, value: Known) {
        match value {
            Known::Component(id) if self.world.instances[id.index()].name.is_none() => {
                let name = self.name_of(place);
                self.world.instances[id.index()].name = name;
            }
            Known::Channel(id) if self.world.channels[id.index()].name.is_none() => {
                let name = self.name_of(place);
                self.world.channels[id.index()].name = name;
            }
            Known::Object(id) if self.holds_references(id) => {
                if let Some((symbol, _)) = self.name_of(place) {
                    self.world.names.entry(id).or_insert(symbol);
                }
            }
            _ => {}
        }
    }

    fn holds_references(&self, array: ObjectId) -> bool {
        match self.world.get(array) {
            Object::Array { element, .. } => matches!(
                self.program.types.get(*element),
                Type::Component(_) | Type::Channel(..)
            ),
            _ => false,
        }
    }

    fn name_of(&mut self, place: &StorePlace) -> Option<(Symbol, Option<u32>)> {
        match place {
            StorePlace::Slot(slot) => {
                let name = self.function().slots[slot.index()].name?;
                Some((name, None))
            }
            StorePlace::Member(member) => {
                let component = self.world.instances[self.frame.instance.index()].component?;
                let members = &self.program.components[component.index()].members;
                Some((members[member.index()].name, None))
            }
            StorePlace::Global(global) => Some((self.program.globals[global.index()].name, None)),
            StorePlace::Element(array, index, _) => {
                let name = match self.value(array) {
                    Known::Object(id) => self.world.names.get(&id).copied(),
                    _ => None,
                }?;
                match self.value(index) {
                    Known::Int(index) => Some((name, u32::try_from(index).ok())),
                    _ => Some((name, None)),
                }
            }
            StorePlace::Field(..) | StorePlace::Result => None,
        }
    }

    /// A body and what catches its exceptions. Handlers run once in a while at most.
    fn protected(&mut self, body: &Block, handlers: &[Handler]) -> Flow {
        match self.block(body) {
            Flow::Raise(label) => self.handle(label, handlers),
            Flow::Next => {
                const DOUBT: &str = "this runs only if an exception is raised";
                let bodies = handlers
                    .iter()
                    .map(|handler| Way::of(0.0, Some(&handler.body)));
                let ways: Vec<Way<'_>> = once(Way::of(1.0, None)).chain(bodies).collect();
                self.fork(DOUBT, &ways)
            }
            flow => flow,
        }
    }

    fn handle(&mut self, raised: Known, handlers: &[Handler]) -> Flow {
        for handler in handlers {
            let label = handler.label.as_ref().map(|label| self.value(label));
            match (label, raised) {
                (None, _) => return self.block(&handler.body),
                (Some(Known::Int(a)), Known::Int(b)) if a == b => {
                    return self.block(&handler.body);
                }
                // The exception is unknown: the first handler is as good as another.
                (Some(_), Known::Unknown) => return self.block(&handler.body),
                _ => {}
            }
        }
        Flow::Raise(raised)
    }

    /// The object behind a value, if it is one.
    pub(super) fn object_of(value: Known) -> Option<ObjectId> {
        match value {
            Known::Object(id) => Some(id),
            _ => None,
        }
    }
}
