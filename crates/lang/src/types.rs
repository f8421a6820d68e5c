//! Types, interned: equal types have equal numbers, so structural equality is one comparison.

use crate::symbol::Symbol;
use crate::syntax::ast::Direction;
use std::collections::HashMap;

/// An interned type. The first few are the fixed ones below.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct TypeId(pub u32);

impl TypeId {
    /// The type of what could not be typed; fits everywhere, so that one mistake is reported once.
    pub const ERROR: TypeId = TypeId(0);
    pub const VOID: TypeId = TypeId(1);
    pub const INTEGER: TypeId = TypeId(2);
    pub const UNSIGNED: TypeId = TypeId(3);
    pub const REAL: TypeId = TypeId(4);
    pub const BOOL: TypeId = TypeId(5);
    pub const BYTE: TypeId = TypeId(6);
    pub const STRING: TypeId = TypeId(7);
    pub const ANY: TypeId = TypeId(8);
    /// The type of `stop`, `return` and `throw`, from which control never returns.
    /// Agrees with every type where branches must agree.
    pub const NEVER: TypeId = TypeId(9);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A channel as a component or interface offers it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Port {
    pub name: Symbol,
    pub direction: Direction,
    pub payload: TypeId,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    Error,
    Void,
    Integer,
    Unsigned,
    Real,
    Bool,
    Byte,
    String,
    Any,
    Never,
    /// Labels in order.
    Enum(Box<[Symbol]>),
    /// Fields in order.
    Struct(Box<[(Symbol, TypeId)]>),
    Array(TypeId),
    Channel(Direction, TypeId),
    /// A component or interface: its ports sorted by name. Order and grouping do not matter.
    Component(Box<[Port]>),
    Proc {
        params: Box<[TypeId]>,
        result: TypeId,
    },
}

/// The table of all types of a program.
#[derive(Debug, Clone)]
pub struct Types {
    list: Vec<Type>,
    numbers: HashMap<Type, TypeId>,
}

impl Default for Types {
    fn default() -> Self {
        let mut types = Types {
            list: Vec::new(),
            numbers: HashMap::new(),
        };
        let fixed = [
            Type::Error,
            Type::Void,
            Type::Integer,
            Type::Unsigned,
            Type::Real,
            Type::Bool,
            Type::Byte,
            Type::String,
            Type::Any,
            Type::Never,
        ];
        for ty in fixed {
            types.intern(ty);
        }
        types
    }
}

impl Types {
    pub fn intern(&mut self, ty: Type) -> TypeId {
        if let Some(&id) = self.numbers.get(&ty) {
            return id;
        }
        let id = TypeId(self.list.len() as u32);
        self.list.push(ty.clone());
        self.numbers.insert(ty, id);
        id
    }

    pub fn get(&self, id: TypeId) -> &Type {
        &self.list[id.index()]
    }

    pub fn array(&mut self, element: TypeId) -> TypeId {
        self.intern(Type::Array(element))
    }

    pub fn channel(&mut self, direction: Direction, payload: TypeId) -> TypeId {
        self.intern(Type::Channel(direction, payload))
    }

    /// All types, in the order they were first seen.
    pub fn iter(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        self.list
            .iter()
            .enumerate()
            .map(|(i, ty)| (TypeId(i as u32), ty))
    }
}
