//! The typed tree: what the checker makes of a correct program and the lowering reads.
//!
//! Every name is resolved to a number, every expression knows its type, every widening is an
//! explicit [`ExprKind::Convert`], and operands of arithmetic and comparison have equal types.
//! Nothing here depends on the syntax tree.

use crate::source::Span;
use crate::symbol::{Interner, Symbol};
pub use crate::syntax::ast::{BinaryOp, Direction, UnaryOp};
use crate::types::{TypeId, Types};

macro_rules! number {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

number! {
    /// Index into [`Body::locals`] of the body the expression belongs to.
    LocalId;
    /// Index into [`Component::members`] of the component the expression belongs to.
    MemberId;
    /// Index into [`Component::channels`].
    PortId;
    /// Index into [`Program::procs`].
    ProcId;
    /// Index into [`Program::components`].
    ComponentId;
    /// Index into [`Program::globals`].
    GlobalId;
}

/// A whole program, prelude included. Of the prelude only what is reachable from the user's
/// text has `used` set, and only that is lowered.
#[derive(Debug)]
pub struct Program {
    pub types: Types,
    pub names: Interner,
    pub procs: Vec<Proc>,
    pub components: Vec<Component>,
    /// The prelude's instances (`sensors`, `radio`, `standardOut`), in the order of their text.
    pub globals: Vec<Global>,
    /// The main sequence.
    pub main: Body,
    /// The type of the predeclared enum `ExceptionType`.
    pub exception_type: TypeId,
    /// The name a type was first declared under, for readable C and messages.
    pub type_names: Vec<(TypeId, Symbol)>,
    /// Calls and loops behind the word `beside`.
    pub asked: Vec<Asked>,
}

/// A call or a loop that the text wants to run beside others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The word and what it stands before.
    pub text: Span,
    /// The call or the loop: the span of its expression.
    pub what: Span,
}

/// A prelude instance: a value every component can name.
#[derive(Debug)]
pub struct Global {
    pub name: Symbol,
    pub ty: TypeId,
    /// Evaluated once before the main sequence; may name earlier globals.
    pub init: Body,
    pub used: bool,
}

#[derive(Debug)]
pub struct Proc {
    pub name: Symbol,
    /// The component it is declared in: it sees that component's members and ports.
    pub owner: Option<ComponentId>,
    /// True if it uses members or channels of its component, itself or through another procedure:
    /// as a value it stays with that component. Any other is the same everywhere.
    pub bound: bool,
    /// The type as a procedure type.
    pub ty: TypeId,
    /// VOID without one.
    pub result: TypeId,
    pub code: ProcCode,
    pub span: Span,
    pub used: bool,
}

#[derive(Debug)]
pub enum ProcCode {
    Body(Body),
    /// A C function of the runtime. A prelude component procedure's are like any other.
    Native {
        symbol: Symbol,
        params: Vec<TypeId>,
        blocks: bool,
        raises: bool,
    },
}

#[derive(Debug)]
pub struct Component {
    pub name: Symbol,
    pub ty: TypeId,
    /// In the order the interfaces list them.
    pub channels: Vec<Channel>,
    /// Variables in order; their initialisers run in the component's own thread.
    pub members: Vec<Member>,
    pub constructors: Vec<Body>,
    pub behaviour: Body,
    /// A component of the prelude: it does not keep the program alive and is left out of
    /// reports about who is blocked.
    pub service: bool,
    pub span: Span,
    pub used: bool,
}

#[derive(Debug)]
pub struct Channel {
    pub name: Symbol,
    pub direction: Direction,
    pub payload: TypeId,
    pub span: Span,
}

#[derive(Debug)]
pub struct Member {
    pub name: Symbol,
    pub ty: TypeId,
    pub init: Body,
    pub span: Span,
}

/// Code with its local variables: a behaviour, constructor, procedure, initialiser or the
/// main sequence.
#[derive(Debug)]
pub struct Body {
    /// Parameters first.
    pub locals: Vec<Local>,
    pub params: usize,
    pub block: Expr,
}

#[derive(Debug)]
pub struct Local {
    pub name: Symbol,
    pub ty: TypeId,
    pub span: Span,
}

#[derive(Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: TypeId,
    pub span: Span,
}

#[derive(Debug)]
pub enum Callee {
    /// Also forward procedures, resolved to the later member; recursion shows as a cycle.
    Proc(ProcId),
    /// A procedure value.
    Value(Box<Expr>),
}

#[derive(Debug)]
pub enum ExprKind {
    /// Integer, unsigned and byte literals; `ty` tells which.
    Int(i64),
    Real(f64),
    Bool(bool),
    String(Box<str>),
    /// The label's position in its enum.
    Label(u32),

    Local(LocalId),
    /// A variable of this component.
    Member(MemberId),
    /// A channel this component presents.
    Port(PortId),
    Global(GlobalId),
    /// A procedure as a value.
    Proc(ProcId),

    /// Numeric widening of the operand to `ty`.
    Convert(Box<Expr>),
    /// Minus, Not and Complement only; a plus sign leaves no trace.
    Unary(UnaryOp, Box<Expr>),
    /// Operand types are equal (widened by Convert). And, Or short-circuit.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A long chain of operators in parts, lest its tree be as deep as the chain is long. Each part
    /// but the first begins with the value of the part before, [`ExprKind::Carried`].
    Chain(Vec<Expr>),
    /// The value of the part before, as the leftmost operand of a part.
    Carried,
    Length(Box<Expr>),
    /// One dimension; `a[i, j]` is two of these. The index is integer, unsigned or byte.
    Index(Box<Expr>, Box<Expr>),
    /// Field number of a struct.
    Field(Box<Expr>, u32),
    /// A port of another component, by name (component types are sets, so positions differ).
    PortOf(Box<Expr>, Symbol),
    Call(Callee, Vec<Expr>),

    /// `any(e)`: structs and arrays are copied into the box, channels and components referred to.
    Box(Box<Expr>),
    /// `ty` is the whole array's type; `lengths` outermost first.
    NewArray {
        lengths: Vec<u32>,
        init: Box<Expr>,
    },
    NewStruct(Vec<Expr>),
    /// `ty` tells direction and payload.
    NewChannel,
    NewComponent {
        component: ComponentId,
        constructor: usize,
        args: Vec<Expr>,
    },

    /// Value and type of the last; void if empty.
    Block(Vec<Expr>),
    /// `x = e`
    Let(LocalId, Box<Expr>),
    /// The place is Local, Member, Port, PortOf, Index or Field.
    Assign(Box<Expr>, Box<Expr>),
    /// Without else, and not void: the default of `ty` when false.
    If {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Option<Box<Expr>>,
    },
    /// Inclusive; `to` is evaluated again each round; `step` is not 0.
    For {
        variable: LocalId,
        from: Box<Expr>,
        to: Box<Expr>,
        step: i32,
        body: Box<Expr>,
    },
    /// Labels are compared by `==`, already widened to the scrutinee's type or it to theirs.
    Case {
        scrutinee: Box<Expr>,
        arms: Vec<(Vec<Expr>, Expr)>,
        default: Box<Expr>,
    },
    Project {
        scrutinee: Box<Expr>,
        arms: Vec<ProjectArm>,
        default: Box<Expr>,
    },
    Select {
        arms: Vec<SelectArm>,
        default: Option<Box<Expr>>,
    },
    Connect(End, End),
    Disconnect(End),
    Publish {
        channel: Box<Expr>,
        name: Box<Expr>,
    },
    Send {
        value: Box<Expr>,
        channel: Box<Expr>,
    },
    Receive {
        local: LocalId,
        channel: Box<Expr>,
    },
    Acknowledge {
        local: LocalId,
        channel: Box<Expr>,
        body: Box<Expr>,
    },
    /// Self, or another component.
    Stop(Option<Box<Expr>>),
    Return(Option<Box<Expr>>),
    /// An expression of type ExceptionType.
    Throw(Box<Expr>),
    Try {
        body: Box<Expr>,
        handlers: Vec<Handler>,
    },
    /// Local type declarations and the like leave nothing.
    Nothing,
    /// Never in a program without errors.
    Error,
}

#[derive(Debug)]
pub struct ProjectArm {
    pub ty: TypeId,
    pub local: LocalId,
    pub body: Expr,
}

#[derive(Debug)]
pub struct SelectArm {
    pub acknowledge: bool,
    pub local: LocalId,
    pub channel: Expr,
    pub guard: Option<Expr>,
    pub body: Expr,
    pub span: Span,
}

#[derive(Debug)]
pub struct Handler {
    /// An expression of type ExceptionType (a label as a rule); None catches all.
    pub label: Option<Expr>,
    pub body: Expr,
}

#[derive(Debug)]
pub enum End {
    /// A channel of this process.
    Local(Box<Expr>),
    /// A published name (string) on a node (unsigned, or byte[]).
    Remote { name: Box<Expr>, address: Box<Expr> },
}
