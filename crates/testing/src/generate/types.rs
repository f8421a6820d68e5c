//! Types: declared enums, structs and second names, and random ones for variables.

use super::Generator;
use crate::tree::*;
use std::rc::Rc;

impl Generator {
    /// Declares the program's own types.
    pub(super) fn types(&mut self) {
        for _ in 0..self.random.below(4) {
            self.enum_type();
        }
        for _ in 0..1 + self.random.below(3) {
            self.struct_type();
        }
        for _ in 0..self.random.below(4) {
            let ty = match self.random.below(3) {
                0 => Type::array(self.scalar()),
                1 => {
                    let element = Type::array(self.scalar());
                    Type::array(element)
                }
                _ => self.value_type(1),
            };
            self.alias(ty);
        }
        for _ in 0..self.random.below(3) {
            let signature = self.signature();
            let ty = Type::Procedure(Rc::new(signature));
            self.alias(ty);
        }
    }

    fn enum_type(&mut self) {
        let name = self.unique("Mode");
        let labels = (0..1 + self.random.below(5))
            .map(|_| self.unique("Label"))
            .collect();
        let index = self.program.enums.len();
        self.program.enums.push(EnumType { name, labels });
        self.program.order.push(Item::Enum(index));
    }

    fn struct_type(&mut self) {
        let fields = (0..1 + self.random.below(5))
            .map(|_| {
                let mut ty = self.value_type(1);
                if matches!(ty, Type::Struct(_)) {
                    // No struct directly inside a struct.
                    ty = Type::array(ty);
                }
                (self.field_name(), ty)
            })
            .collect();
        self.declare_struct("Record", fields);
    }

    pub(super) fn declare_struct(&mut self, stem: &str, fields: Vec<(String, Type)>) -> Type {
        let name = self.unique(stem);
        let index = self.program.structs.len();
        self.program.structs.push(StructType { name, fields });
        self.program.order.push(Item::Struct(index));
        Type::Struct(index)
    }

    /// Gives a type a second name.
    pub(super) fn alias(&mut self, ty: Type) {
        let name = self.unique("T");
        self.name_type(name, ty);
    }

    pub(super) fn name_type(&mut self, name: String, ty: Type) {
        let index = self.program.aliases.len();
        self.program.aliases.push((name, ty));
        self.program.order.push(Item::Alias(index));
    }

    fn signature(&mut self) -> Signature {
        Signature {
            params: (0..self.random.below(3)).map(|_| self.scalar()).collect(),
            result: self.scalar(),
        }
    }

    pub(super) fn scalar(&mut self) -> Type {
        match self.random.weighted(&[30, 9, 12, 12, 9, 8, 8]) {
            0 => Type::Integer,
            1 => Type::Unsigned,
            2 => Type::Real,
            3 => Type::Bool,
            4 => Type::Byte,
            5 => Type::Text,
            _ => match self.own_enum() {
                Some(index) => Type::Enum(index),
                None => Type::Integer,
            },
        }
    }

    fn own_enum(&mut self) -> Option<usize> {
        let count = self.program.enums.len();
        (count > 1).then(|| 1 + self.random.below(count - 1))
    }

    /// A type of values without channels and procedures, at most `depth` arrays deep.
    pub(super) fn value_type(&mut self, depth: u32) -> Type {
        match self.random.weighted(&[60, 8, 12, 20]) {
            1 => Type::Any,
            2 if !self.program.structs.is_empty() => {
                Type::Struct(self.random.below(self.program.structs.len()))
            }
            3 if depth > 0 => {
                let element = self.value_type(depth - 1);
                Type::array(element)
            }
            _ => self.scalar(),
        }
    }

    /// A type for a variable: that of something in sight, or a random one.
    pub(super) fn likely_type(&mut self) -> Type {
        let in_sight: Vec<Type> = self.scope.in_sight().map(|v| v.ty.clone()).collect();
        let holds_value = |ty: &Type| {
            !matches!(
                ty,
                Type::In(_) | Type::Out(_) | Type::Component(_) | Type::Procedure(_)
            )
        };
        let candidates: Vec<&Type> = in_sight.iter().filter(|ty| holds_value(ty)).collect();
        if !candidates.is_empty() && self.random.chance(40) {
            return (*self.random.pick(&candidates)).clone();
        }
        self.value_type(2)
    }
}
