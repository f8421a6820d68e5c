//! Values of a running program.

use crate::tree::Type;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

#[derive(Clone, Debug)]
pub(super) enum Value {
    Void,
    Integer(i32),
    Unsigned(u32),
    Byte(u8),
    /// A stored real, or the result of arithmetic on stored reals.
    Single(f32),
    /// A real literal, or the result of arithmetic with one.
    Double(f64),
    Bool(bool),
    Label(u32),
    Text(Rc<str>),
    /// Structs and arrays are references.
    Cells(Rc<RefCell<Vec<Value>>>),
    Box(Rc<(Type, Value)>),
    Procedure(usize),
    Component(Rc<Instance>),
    Channel(Rc<Half>),
}

/// A half-channel.
#[derive(Debug)]
pub(super) struct Half {
    pub(super) id: usize,
    pub(super) peers: RefCell<Vec<Rc<Half>>>,
}

/// A component, or the main sequence.
#[derive(Debug)]
pub(super) struct Instance {
    /// Its place in the schedule.
    pub(super) number: usize,
    pub(super) component: usize,
    pub(super) members: RefCell<Vec<Value>>,
    pub(super) ports: RefCell<Vec<Rc<Half>>>,
    pub(super) ended: Cell<bool>,
}

impl Instance {
    pub(super) fn main() -> Self {
        Instance::new(0, usize::MAX, Vec::new())
    }

    pub(super) fn new(number: usize, component: usize, ports: Vec<Rc<Half>>) -> Self {
        Instance {
            number,
            component,
            members: RefCell::default(),
            ports: RefCell::new(ports),
            ended: Cell::new(false),
        }
    }
}

impl Value {
    pub(super) fn cells(values: Vec<Value>) -> Value {
        Value::Cells(Rc::new(RefCell::new(values)))
    }

    /// A copy for a message, a box or an array's initialiser: structs and arrays are copied,
    /// everything else is shared.
    pub(super) fn deep_copy(&self) -> Value {
        match self {
            Value::Cells(cells) => {
                Value::cells(cells.borrow().iter().map(Value::deep_copy).collect())
            }
            other => other.clone(),
        }
    }

    pub(super) fn integer(&self) -> i32 {
        match self {
            Value::Integer(value) => *value,
            other => unreachable!("{other:?} is no integer"),
        }
    }

    /// The value of an index, a case label or the like, of any integral type.
    pub(super) fn integral(&self) -> i64 {
        match self {
            Value::Integer(value) => i64::from(*value),
            Value::Unsigned(value) => i64::from(*value),
            Value::Byte(value) => i64::from(*value),
            Value::Label(value) => i64::from(*value),
            other => unreachable!("{other:?} is not integral"),
        }
    }

    pub(super) fn bool(&self) -> bool {
        match self {
            Value::Bool(value) => *value,
            other => unreachable!("{other:?} is no bool"),
        }
    }

    pub(super) fn text(&self) -> Rc<str> {
        match self {
            Value::Text(text) => text.clone(),
            other => unreachable!("{other:?} is no string"),
        }
    }

    pub(super) fn contents(&self) -> Rc<RefCell<Vec<Value>>> {
        match self {
            Value::Cells(cells) => cells.clone(),
            other => unreachable!("{other:?} is neither struct nor array"),
        }
    }

    pub(super) fn channel(&self) -> Rc<Half> {
        match self {
            Value::Channel(half) => half.clone(),
            other => unreachable!("{other:?} is no channel"),
        }
    }

    pub(super) fn component(&self) -> Rc<Instance> {
        match self {
            Value::Component(instance) => instance.clone(),
            other => unreachable!("{other:?} is no component"),
        }
    }

    /// A real as a variable of type real holds it.
    pub(super) fn single(&self) -> f32 {
        match self {
            Value::Single(value) => *value,
            Value::Double(value) => *value as f32,
            other => unreachable!("{other:?} is no real"),
        }
    }
}
