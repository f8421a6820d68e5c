//! The core IR: what the passes work on and the C emitter prints.
//!
//! Structured statements over pure values. A [`Value`] has no side effect and cannot fail: whatever
//! can fail, block, allocate or change something is a [`Stmt`] of its own, in evaluation order.
//! Reference counts are explicit: a slot that is `counted` holds one reference or NULL, every
//! [`StmtKind::Set`] says by its [`Mode`] whether a reference is taken or handed on, and every
//! counted slot is released at the end of its scope. So "last use becomes a move" is a change of
//! one mode, and what lives across a blocking point is a question of liveness alone.

use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{BinaryOp, ComponentId, Direction, GlobalId, MemberId, PortId, ProcId, UnaryOp};
use crate::types::TypeId;
use std::ops::Range;

/// A variable of one function: parameter, local or temporary.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct SlotId(pub u32);

impl SlotId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotType {
    Of(TypeId),
    /// An intermediate real result: double, so that spilling it loses no digit.
    Double,
    /// A sender held by an acknowledge.
    Held,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// A C local: never live across a blocking point.
    Register,
    /// A field of the function's frame in the component's struct.
    Frame,
    /// A counted loop's variable, a 64-bit C local that cannot wrap.
    Counter,
}

#[derive(Clone, Debug)]
pub struct LocalSlot {
    /// The source name, or None for a temporary.
    pub name: Option<Symbol>,
    pub ty: SlotType,
    /// Holds a reference of its own, or NULL.
    pub counted: bool,
    pub storage: Storage,
    /// A slot that borrows is only as good as what it was read through.
    pub borrows: Vec<SlotId>,
}

/// Pure: no effect, cannot fail; reads variables and memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Int(i64, TypeId),
    Real(f64),
    Bool(bool),
    /// Index into [`Module::strings`].
    String(u32),
    Null,
    Slot(SlotId),
    Member(MemberId),
    Port(PortId),
    Global(GlobalId),
    /// The static procedure object of a procedure that is bound to no component.
    Proc(ProcId),
    /// Numeric conversion `from` → `to`.
    Convert(TypeId, TypeId, Box<Value>),
    Unary(UnaryOp, TypeId, Box<Value>),
    /// The type is the operands'.
    Binary(BinaryOp, TypeId, Box<Value>, Box<Value>),
    Length(Box<Value>),
    /// Array, index, element type. The index has been checked.
    Element(Box<Value>, Box<Value>, TypeId),
    /// Struct value, its type, field number.
    Field(Box<Value>, TypeId, u32),
    /// `--compat original`: the index if it is inside the array, else 0. The type is the index's.
    IndexOrZero(Box<Value>, Box<Value>, TypeId),
    /// The content of a box, known to be of this type.
    Unboxed(Box<Value>, TypeId),
    /// True if the box holds this type.
    BoxIs(Box<Value>, TypeId),
    /// The result of the last receive, select or blocking native.
    Received(TypeId),
}

#[derive(Clone, Debug, PartialEq)]
pub enum StorePlace {
    Slot(SlotId),
    Member(MemberId),
    Global(GlobalId),
    /// Array, index, element type. The index has been checked.
    Element(Value, Value, TypeId),
    Field(Value, TypeId, u32),
    /// The result of the function.
    Result,
}

/// The treatment of references when a value is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Not counted: a scalar, or a slot that borrows.
    Plain,
    /// The place gets a reference of its own.
    Retain,
    /// The value's own reference goes to the place; a slot moved from becomes NULL.
    Move,
}

pub type Block = Vec<Stmt>;

#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Callee {
    Proc(ProcId),
    /// A procedure value and its type.
    Value(Value, TypeId),
}

#[derive(Clone, Debug)]
pub struct Argument {
    pub value: Value,
    pub ty: TypeId,
}

#[derive(Clone, Debug)]
pub struct Loop {
    pub variable: SlotId,
    pub from: Value,
    /// Run before each test, to make `to` readable.
    pub prepare: Block,
    pub to: Value,
    pub step: i32,
    pub body: Block,
    /// The slots made while lowering the body: fresh in each round.
    pub fresh: Range<u32>,
    /// The variable is never assigned and `to` never changes: set by the loop pass.
    pub counted: bool,
    pub rounds: Rounds,
}

/// The order in which the rounds of a loop run.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Rounds {
    #[default]
    InOrder,
    /// In any order, and at the same time: proved. No round leaves the function but by an
    /// exception, sets a slot from outside but those of the reductions, or touches what another
    /// writes. The number of rounds is fixed before the first. The slots of a round are those of
    /// `fresh`, and those of each [`StmtKind::Promoted`] inside.
    Apart(Vec<Reduction>),
}

/// A slot to which the rounds of a loop only add. Each part of the rounds may add to a copy that
/// begins with the neutral value; the copies and the slot are then put together in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    pub slot: SlotId,
    /// The type of the slot.
    pub ty: TypeId,
    pub way: Way,
}

/// The way in which a reduction puts two values together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// Wraps. Rounds may also subtract; the copies are added.
    Sum,
    /// Wraps.
    Product,
    BitAnd,
    BitOr,
    BitXor,
    /// `and` of bools.
    All,
    /// `or` of bools.
    Any,
    Greatest,
    Least,
}

impl Way {
    /// The value that changes nothing.
    pub fn neutral(self, ty: TypeId) -> Value {
        let (least, greatest) = match ty {
            TypeId::BYTE => (0, i64::from(u8::MAX)),
            TypeId::UNSIGNED => (0, i64::from(u32::MAX)),
            _ => (i64::from(i32::MIN), i64::from(i32::MAX)),
        };
        match self {
            Way::Sum | Way::BitOr | Way::BitXor => Value::Int(0, ty),
            Way::Product => Value::Int(1, ty),
            // All bits of the type.
            Way::BitAnd if ty == TypeId::INTEGER => Value::Int(-1, ty),
            Way::BitAnd | Way::Least => Value::Int(greatest, ty),
            Way::Greatest => Value::Int(least, ty),
            Way::All => Value::Bool(true),
            Way::Any => Value::Bool(false),
        }
    }
}

/// A call beside what follows it; numbers count from 0 in each function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct RecordId(pub u32);

/// The time at which a call runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Turn {
    #[default]
    InOrder,
    /// At any time up to the [`StmtKind::Await`] of this record: proved.
    Beside(RecordId),
}

/// A sufficient condition for leaving an index check out of a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Guard {
    /// `index` (of `ty`), which the loop leaves alone, is inside `array`.
    Index { array: Value, index: Value },
    /// `low + offset >= 0` and `high + offset < length(array)` for the loop's bounds.
    Range {
        array: Value,
        low: Value,
        high: Value,
        offset: i64,
    },
    /// `factor` times the variable of a loop from `low` to `high` stays inside `array`.
    Scaled {
        array: Value,
        factor: Value,
        low: Value,
        high: Value,
    },
    /// `start`, which grows by `step` each round of a loop from `low` to `high` by 1, stays inside
    /// `array`. `after`: it is used after it has grown.
    Induction {
        array: Value,
        start: SlotId,
        step: Value,
        low: Value,
        high: Value,
        after: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Arm {
    /// None: always open.
    pub open: Option<Value>,
    /// Borrowed; not looked at when the arm is closed.
    pub channel: Value,
    pub acknowledge: bool,
    pub text: Span,
    pub body: Block,
}

#[derive(Clone, Debug)]
pub struct Handler {
    /// The label to compare with; None catches all.
    pub label: Option<Value>,
    pub body: Block,
}

#[derive(Clone, Debug)]
pub enum End {
    Local(Value),
    /// Name and address as unsigned.
    Remote(Value, Value),
}

#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `replace`: the place holds something to release.
    Set {
        place: StorePlace,
        value: Value,
        mode: Mode,
        replace: bool,
    },
    /// Releases a counted slot and makes it NULL; ends an acknowledge for a Held slot.
    Release(SlotId),
    CheckIndex {
        array: Value,
        index: Value,
        index_type: TypeId,
    },
    CheckZero {
        value: Value,
        ty: TypeId,
    },
    If {
        condition: Value,
        then: Block,
        otherwise: Block,
    },
    Loop(Box<Loop>),
    /// The same loop twice: without the checks the guards make needless, and as it was.
    Versioned {
        guards: Vec<Guard>,
        fast: Box<Loop>,
        slow: Box<Loop>,
    },
    /// Members kept in slots while `body` runs: (member, slot, written).
    Promoted {
        members: Vec<(MemberId, SlotId, bool)>,
        body: Block,
    },
    Call {
        target: Option<SlotId>,
        callee: Callee,
        args: Vec<Argument>,
        /// The call itself, which may be a part of its statement.
        text: Span,
        turn: Turn,
    },
    /// The call of this record has come to its end behind this statement, and its target has its
    /// result. In the same block as the call, behind it, once; control leaves the statements in
    /// between by exceptions only.
    Await(RecordId),
    /// `on_stack`: the object cannot outlive the function's run to its next blocking point.
    NewArray {
        target: SlotId,
        ty: TypeId,
        lengths: Vec<u32>,
        init: Value,
        init_type: TypeId,
        on_stack: bool,
    },
    NewStruct {
        target: SlotId,
        ty: TypeId,
        fields: Vec<(Value, Mode)>,
        on_stack: bool,
    },
    NewChannel {
        target: SlotId,
        direction: Direction,
        payload: TypeId,
    },
    NewComponent {
        target: SlotId,
        component: ComponentId,
        constructor: usize,
        args: Vec<Argument>,
    },
    NewBox {
        target: SlotId,
        ty: TypeId,
        value: Value,
    },
    /// A procedure bound to this component as a value.
    NewProcedure {
        target: SlotId,
        proc: ProcId,
    },
    /// A deep copy.
    Copy {
        target: SlotId,
        ty: TypeId,
        value: Value,
    },
    /// A counted reference to a port of some component.
    PortOf {
        target: SlotId,
        component: Value,
        name: Symbol,
    },
    /// Hands the reference in `value` to a port; own ports too.
    PortAssign {
        component: Option<Value>,
        name: Symbol,
        value: SlotId,
    },
    /// `moved`: the slot whose reference goes with the value.
    Send {
        channel: Value,
        value: Value,
        ty: TypeId,
        moved: Option<SlotId>,
        text: Span,
    },
    /// The value is then [`Value::Received`].
    Receive {
        channel: Value,
        held: Option<SlotId>,
        text: Span,
    },
    Select {
        arms: Vec<Arm>,
        default: Option<Block>,
    },
    /// Remembers the sender of a select's acknowledge arm.
    TakeHeld(SlotId),
    Connect(End, End),
    Disconnect(End),
    Publish {
        channel: Value,
        name: Value,
    },
    /// `byte[]` address to number.
    AddressOf {
        target: SlotId,
        bytes: Value,
    },
    StopOther(Value),
    StopSelf,
    Raise {
        label: Value,
    },
    /// The result has been stored.
    Return,
    /// `slots`: what the body made, to be released when it is left by an exception.
    Try {
        body: Block,
        slots: Range<u32>,
        handlers: Vec<Handler>,
    },
}

/// A function's part in life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    Proc(ProcId),
    Constructor(ComponentId, usize),
    /// All member initialisers, in order.
    Members(ComponentId),
    Behaviour(ComponentId),
    /// The globals and the main sequence.
    Main,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub role: Role,
    pub slots: Vec<LocalSlot>,
    pub params: Vec<SlotId>,
    pub result: TypeId,
    pub body: Block,
    /// Ends of the parts of a long main sequence, as positions in `body`: each part becomes a C
    /// function. Empty for all other functions. See [`passes::parts`](super::passes::parts).
    pub parts: Vec<usize>,
    /// Resumable: has a frame and returns a step.
    pub blocks: bool,
    /// May leave with an exception or a stop.
    pub raises: bool,
    /// Calls beside others: the number of [`RecordId`]s.
    pub records: u32,
    pub span: Span,
}

impl Function {
    /// The component whose members and ports the function names.
    pub fn is_main(&self) -> bool {
        self.role == Role::Main
    }
}

/// A program in core form.
#[derive(Debug)]
pub struct Module {
    pub functions: Vec<Function>,
    pub strings: Vec<Box<str>>,
    /// Array types of which a row was replaced somewhere: their rows may differ in length.
    pub ragged: Vec<TypeId>,
    /// Procedures used as values.
    pub valued: Vec<ProcId>,
}
