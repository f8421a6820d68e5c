//! Values and places.

use super::paths::Spot;
use super::{Phase, Walk};
use crate::analysis::graph::known::{self, Known};
use crate::analysis::graph::world::{Object, ObjectId};
use crate::core::ir::*;
use crate::tree::BinaryOp;
use crate::types::TypeId;

impl Walk<'_> {
    /// Counts computing in nanoseconds, each time the walked code runs.
    pub(super) fn work(&mut self, nanoseconds: f64) {
        self.tally.work_ns += self.weight * nanoseconds;
        for (_, since) in &mut self.pending {
            *since += self.rounds * nanoseconds;
        }
    }

    pub(super) fn value(&mut self, value: &Value) -> Known {
        match value {
            Value::Int(n, _) => Known::Int(*n),
            Value::Real(x) => Known::Real(*x),
            Value::Bool(b) => Known::Bool(*b),
            Value::String(number) => Known::Text(*number),
            Value::Null => Known::Null,
            Value::Slot(slot) => self.stack[self.frame.base + slot.index()],
            Value::Member(member) => {
                self.work(self.pace.member);
                let members = &self.world.instances[self.frame.instance.index()].members;
                members
                    .get(member.index())
                    .copied()
                    .unwrap_or(Known::Unknown)
            }
            Value::Port(port) => {
                let ports = &self.world.instances[self.frame.instance.index()].ports;
                ports.get(port.index()).copied().unwrap_or(Known::Unknown)
            }
            Value::Global(global) => self.world.globals[global.index()],
            Value::Proc(proc) => Known::Proc(*proc, self.frame.instance),
            Value::Convert(from, to, inner) => {
                let inner = self.value(inner);
                known::convert(inner, *from, *to)
            }
            Value::Unary(op, ty, inner) => {
                let inner = self.value(inner);
                self.work(self.pace.operation);
                known::unary(*op, *ty, inner)
            }
            Value::Binary(op, ty, a, b) => self.binary(*op, *ty, a, b),
            Value::Length(inner) => {
                let inner = self.value(inner);
                self.work(self.pace.member);
                self.length(inner)
            }
            Value::Element(array, index, _) => {
                let array = self.value(array);
                let index = self.value(index);
                self.element(array, index)
            }
            Value::IndexOrZero(array, index, _) => {
                let array = self.value(array);
                let index = self.value(index);
                match (self.length(array), index) {
                    (Known::Int(length), Known::Int(index)) if !(0..length).contains(&index) => {
                        Known::Int(0)
                    }
                    (Known::Int(_), index) => index,
                    _ => Known::Unknown,
                }
            }
            Value::Field(object, _, field) => {
                let object = self.value(object);
                self.work(self.pace.element);
                self.field(object, *field)
            }
            Value::Unboxed(inner, ty) => match self.boxed(inner) {
                Some((found, content)) if found == *ty => content,
                _ => Known::Unknown,
            },
            Value::BoxIs(inner, ty) => {
                self.work(self.pace.operation);
                match self.boxed(inner) {
                    Some((found, _)) => Known::Bool(found == *ty),
                    None => Known::Unknown,
                }
            }
            Value::Received(_) => self.received,
        }
    }

    fn binary(&mut self, op: BinaryOp, ty: TypeId, a: &Value, b: &Value) -> Known {
        let left = self.value(a);
        let right = self.value(b);
        let pace = self.pace;
        self.work(match op {
            _ if ty == TypeId::REAL => pace.real,
            BinaryOp::Multiply => pace.multiplication,
            BinaryOp::Divide | BinaryOp::Remainder => match b {
                Value::Int(..) => pace.division_by_literal,
                _ => pace.division,
            },
            _ => pace.operation,
        });
        known::binary(op, ty, left, right)
    }

    pub(super) fn length(&mut self, object: Known) -> Known {
        match object {
            Known::Object(id) => match self.world.get(id) {
                Object::Array {
                    length: Some(length),
                    ..
                } => Known::Int(i64::from(*length)),
                _ => Known::Unknown,
            },
            Known::Text(number) => Known::Int(self.module.strings[number as usize].len() as i64),
            _ => Known::Unknown,
        }
    }

    fn element(&mut self, array: Known, index: Known) -> Known {
        self.work(self.pace.element);
        match array {
            Known::Object(id) => {
                self.touch(id);
                // Only numbers that are exact lead to one element.
                self.world.element(id, index)
            }
            _ => Known::Unknown,
        }
    }

    /// An access to an element or a field.
    fn touch(&mut self, object: ObjectId) {
        *self.tally.touched.entry(object).or_default() += self.weight;
    }

    fn field(&mut self, object: Known, field: u32) -> Known {
        let Known::Object(id) = object else {
            return Known::Unknown;
        };
        match self.world.get(id) {
            Object::Struct { fields } => fields
                .get(field as usize)
                .copied()
                .unwrap_or(Known::Unknown),
            _ => Known::Unknown,
        }
    }

    fn boxed(&mut self, value: &Value) -> Option<(TypeId, Known)> {
        match self.value(value) {
            Known::Object(id) => match self.world.get(id) {
                Object::Box { ty, content } => Some((*ty, *content)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Stores a value in a place.
    pub(super) fn store(&mut self, place: &StorePlace, value: Known) {
        let instance = self.frame.instance;
        match place {
            StorePlace::Slot(slot) => self.put(Spot::Slot(self.frame.base + slot.index()), value),
            StorePlace::Member(member) => {
                self.work(self.pace.member);
                self.put(Spot::Member(instance, member.0), value);
            }
            StorePlace::Global(global) => self.put(Spot::Global(global.0), value),
            StorePlace::Result => self.put(Spot::Result, value),
            StorePlace::Element(array, index, _) => {
                let array = self.value(array);
                let index = self.value(index);
                self.work(self.pace.element);
                if let Known::Object(id) = array {
                    self.touch(id);
                    self.store_element(id, index, value);
                }
            }
            StorePlace::Field(object, _, field) => {
                let object = self.value(object);
                self.work(self.pace.element);
                if let Known::Object(id) = object {
                    let old = self.field(object, *field);
                    self.put(Spot::Field(id, *field), self.lasting(old, value));
                }
            }
        }
    }

    /// The content of an object that a pass has stored into: the next pass may store another
    /// number.
    fn lasting(&self, old: Known, new: Known) -> Known {
        let is_reference = matches!(
            new,
            Known::Object(_)
                | Known::Channel(_)
                | Known::Component(_)
                | Known::Among(_)
                | Known::OneOf(_)
        );
        match self.phase {
            Phase::Pass if old != new && !is_reference => Known::Unknown,
            _ => new,
        }
    }

    /// Stores an element. With an unknown index any element may have changed; rows and numbers do
    /// not matter then: a fact about one holds for all, or nothing is known.
    fn store_element(&mut self, array: ObjectId, index: Known, value: Known) {
        match index {
            Known::Int(index) if (0..i64::from(u32::MAX)).contains(&index) => {
                if let Object::Array { length, .. } = self.world.get(array)
                    && length.is_none_or(|length| index < i64::from(length))
                {
                    let old = self.world.element(array, Known::Int(index));
                    self.put(Spot::Element(array, index as u32), self.lasting(old, value));
                }
            }
            _ => self.blur(array),
        }
    }
}
