//! The syntax tree, as the parser reads it: no names resolved, no types known.
//!
//! Insense is a language of clauses: statements and expressions share one node type, [`Expr`],
//! and the checker decides what is void. Every node carries its span; the formatter and the
//! diagnostics need it.

use crate::source::Span;
use crate::symbol::Symbol;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    pub symbol: Symbol,
    pub span: Span,
}

/// A whole file: declarations, then the statements of the main sequence.
#[derive(Debug, Default)]
pub struct Unit {
    pub declarations: Vec<Declaration>,
    pub statements: Vec<Expr>,
}

#[derive(Debug)]
pub enum Declaration {
    Type(TypeDeclaration),
    Proc(ProcDeclaration),
    Component(ComponentDeclaration),
}

#[derive(Debug)]
pub struct TypeDeclaration {
    pub name: Name,
    pub ty: Type,
    pub span: Span,
}

#[derive(Debug)]
pub struct ProcDeclaration {
    pub name: Name,
    pub params: Vec<Group>,
    pub result: Option<Type>,
    pub body: ProcBody,
    pub span: Span,
}

#[derive(Debug)]
pub enum ProcBody {
    /// `{ … }`
    Block(Block),
    /// Prelude only: `native hearth_print_int blocks raises` — a C function of the runtime.
    Native {
        symbol: Symbol,
        blocks: bool,
        raises: bool,
    },
}

#[derive(Debug)]
pub struct ComponentDeclaration {
    pub name: Name,
    pub presents: Vec<Name>,
    pub members: Vec<MemberDeclaration>,
    pub constructors: Vec<ConstructorDeclaration>,
    pub behaviour: Block,
    pub span: Span,
}

#[derive(Debug)]
pub enum MemberDeclaration {
    Type(TypeDeclaration),
    Proc(ProcDeclaration),
    Variable { name: Name, value: Expr, span: Span },
}

#[derive(Debug)]
pub struct ConstructorDeclaration {
    pub params: Vec<Group>,
    pub body: Block,
    /// The keyword `constructor` up to the closing parenthesis.
    pub head: Span,
}

/// `integer w, h`: one type, several names. In interfaces too, with `direction`.
#[derive(Debug)]
pub struct Group {
    pub ty: Type,
    pub names: Vec<Name>,
}

/// `{ … }` with its statements.
#[derive(Debug)]
pub struct Block {
    pub statements: Vec<Expr>,
    /// Braces included.
    pub span: Span,
}

#[derive(Debug)]
pub struct Type {
    pub kind: TypeKind,
    pub span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Direction {
    In,
    Out,
}

#[derive(Debug)]
pub enum TypeKind {
    Integer,
    Unsigned,
    Real,
    Bool,
    Byte,
    String,
    Any,
    Named(Symbol),
    Channel(Direction, Box<Type>),
    /// One entry a group of ports, `in integer a, b`.
    Interface(Vec<(Direction, Group)>),
    Struct(Vec<Group>),
    Enum(Vec<Name>),
    Proc {
        params: Vec<Type>,
        result: Option<Box<Type>>,
    },
    Array(Box<Type>),
    /// Stands where a type could not be read; already reported.
    Error,
}

#[derive(Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnaryOp {
    Plus,
    Minus,
    Not,
    Complement,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryOp {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug)]
pub enum ExprKind {
    Integer(i32),
    Unsigned(u32),
    Byte(u8),
    Real(f64),
    Bool(bool),
    /// With its escapes resolved.
    String(Box<str>),
    Name(Symbol),
    /// `any(e)`
    Any(Box<Expr>),
    Unary(UnaryOp, Box<Expr>),
    /// A chain of operators in the order of evaluation: `a + b * c - d` is `a`, then `+ b * c`,
    /// then `- d`. An operator's own span lies between those of its operands.
    Operators(Box<Expr>, Vec<Link>),
    /// `( e )`, kept so that the formatter and "did you mean" can see it.
    Paren(Box<Expr>),
    /// `e.length`
    Length(Box<Expr>),
    /// `e.name`
    Field(Box<Expr>, Name),
    /// `e[i]`, `e[i, j]`
    Index(Box<Expr>, Vec<Expr>),
    /// `f(a, b)`
    Call(Box<Expr>, Vec<Expr>),
    Block(Block),

    /// `beside f(a)`, `beside for …`: what must be proved to be independent.
    Beside(Box<Expr>),

    /// `x = e`
    Declare(Name, Box<Expr>),
    /// `place := e`
    Assign(Box<Expr>, Box<Expr>),
    /// A type declared inside a body.
    Type(Box<TypeDeclaration>),
    If {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Option<Box<Expr>>,
    },
    For {
        variable: Name,
        from: Box<Expr>,
        to: Box<Expr>,
        step: i32,
        body: Box<Expr>,
    },
    Case {
        scrutinee: Box<Expr>,
        arms: Vec<CaseArm>,
        default: Box<Expr>,
    },
    Project {
        scrutinee: Box<Expr>,
        name: Name,
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
        name: Name,
        channel: Box<Expr>,
    },
    Acknowledge {
        name: Name,
        channel: Box<Expr>,
        body: Box<Expr>,
    },
    Stop(Option<Name>),
    Return(Option<Box<Expr>>),
    Throw(Name),
    Try {
        body: Box<Expr>,
        handlers: Vec<Handler>,
    },

    /// `new in integer`
    NewChannel(Direction, Type),
    /// `new C(args)`: a component or a struct.
    NewNamed {
        name: Name,
        args: Vec<Expr>,
    },
    /// `new integer[2][3] of e`. `lengths` are literals with their spans; zero is the checker's.
    NewArray {
        element: Type,
        lengths: Vec<(u32, Span)>,
        init: Box<Expr>,
    },
    /// Stands where an expression could not be read; already reported.
    Error,
}

/// An operator with its right operand; the left one is the whole chain before it.
#[derive(Debug)]
pub struct Link {
    pub op: BinaryOp,
    pub right: Expr,
    /// Later stages put the value of the chain so far aside before this operator: their trees do
    /// nest, and that of the whole chain would be too deep.
    pub apart: bool,
}

#[derive(Debug)]
pub struct CaseArm {
    pub labels: Vec<Expr>,
    pub body: Expr,
}

#[derive(Debug)]
pub struct ProjectArm {
    pub ty: Type,
    pub body: Expr,
}

#[derive(Debug)]
pub struct SelectArm {
    /// `acknowledge … after`, not `receive`.
    pub acknowledge: bool,
    pub name: Name,
    pub channel: Expr,
    pub guard: Option<Expr>,
    pub body: Expr,
    pub span: Span,
}

#[derive(Debug)]
pub struct Handler {
    /// None catches every exception.
    pub label: Option<Name>,
    pub body: Expr,
}

/// One end of a `connect`: a channel, or a published name on a node's address.
#[derive(Debug)]
pub struct End {
    pub channel: Box<Expr>,
    pub address: Option<Box<Expr>>,
}
