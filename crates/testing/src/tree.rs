//! Tree of the generated programs: small, typed, and independent of the compiler's own.
//!
//! Every variable is a number in its body, every expression knows its type. The printer turns a
//! tree into text, the oracle into the expected output.

use std::rc::Rc;

/// A type. Structs and enums are numbers in [`Program`]; by construction no two of them are
/// structurally equal, so equality here is equality in the language.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    Void,
    Integer,
    Unsigned,
    Real,
    Bool,
    Byte,
    Text,
    Any,
    Enum(usize),
    Struct(usize),
    Array(Rc<Type>),
    In(Rc<Type>),
    Out(Rc<Type>),
    Procedure(Rc<Signature>),
    /// A component's own type.
    Component(usize),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Signature {
    pub params: Vec<Type>,
    pub result: Type,
}

impl Type {
    pub fn array(element: Type) -> Type {
        Type::Array(Rc::new(element))
    }

    pub fn input(payload: Type) -> Type {
        Type::In(Rc::new(payload))
    }

    pub fn output(payload: Type) -> Type {
        Type::Out(Rc::new(payload))
    }

    pub fn is_numeric(&self) -> bool {
        self.rank().is_some()
    }

    /// Position in the order byte < unsigned < integer < real.
    pub fn rank(&self) -> Option<u8> {
        match self {
            Type::Byte => Some(0),
            Type::Unsigned => Some(1),
            Type::Integer => Some(2),
            Type::Real => Some(3),
            _ => None,
        }
    }

    /// The type in which two numbers are joined.
    pub fn join(&self, other: &Type) -> Type {
        if self.rank() >= other.rank() {
            self.clone()
        } else {
            other.clone()
        }
    }
}

#[derive(Clone, Default, Debug)]
pub struct Program {
    /// Labels of each enum. Number 0 is the predeclared `ExceptionType`.
    pub enums: Vec<EnumType>,
    pub structs: Vec<StructType>,
    /// Second names of types, `type name is ty`, in order.
    pub aliases: Vec<(String, Type)>,
    /// Declarations before the main sequence, in the order of the text.
    pub order: Vec<Item>,
    pub procs: Vec<Proc>,
    pub components: Vec<Component>,
    pub main: Body,
}

#[derive(Clone, Copy, Debug)]
pub enum Item {
    Enum(usize),
    Struct(usize),
    Alias(usize),
    Proc(usize),
    Component(usize),
}

#[derive(Clone, Debug)]
pub struct EnumType {
    pub name: String,
    pub labels: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct StructType {
    pub name: String,
    pub fields: Vec<(String, Type)>,
}

/// A procedure of the program or, with an owner, of a component.
#[derive(Clone, Debug)]
pub struct Proc {
    pub name: String,
    pub owner: Option<usize>,
    pub result: Type,
    pub body: Body,
}

impl Proc {
    pub fn params(&self) -> Vec<Type> {
        let params = &self.body.locals[..self.body.params];
        params.iter().map(|local| local.ty.clone()).collect()
    }
}

#[derive(Clone, Debug)]
pub struct Component {
    pub name: String,
    pub ports: Vec<Port>,
    /// Ports before this number are in the first interface, the rest in a second.
    pub split: usize,
    pub members: Vec<Member>,
    pub constructors: Vec<Body>,
    pub behaviour: Body,
}

#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    pub outgoing: bool,
    pub payload: Type,
}

#[derive(Clone, Debug)]
pub enum Member {
    /// Its initialiser is a body of one expression statement.
    Variable {
        variable: Variable,
        init: Expr,
        locals: Vec<Variable>,
    },
    Proc(usize),
}

/// Code with its variables, parameters first.
#[derive(Clone, Default, Debug)]
pub struct Body {
    pub locals: Vec<Variable>,
    pub params: usize,
    pub statements: Vec<Stmt>,
}

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub ty: Type,
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: Type,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    Minus,
    Not,
    Complement,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
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

impl Binary {
    pub fn text(self) -> &'static str {
        match self {
            Binary::Or => "or",
            Binary::And => "and",
            Binary::BitOr => "|",
            Binary::BitXor => "^",
            Binary::BitAnd => "&",
            Binary::Equal => "==",
            Binary::NotEqual => "!=",
            Binary::Less => "<",
            Binary::LessEqual => "<=",
            Binary::Greater => ">",
            Binary::GreaterEqual => ">=",
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Remainder => "%",
        }
    }

    /// Binding strength; all operators group to the left.
    pub fn precedence(self) -> u8 {
        match self {
            Binary::Or => 0,
            Binary::And => 1,
            Binary::BitOr => 2,
            Binary::BitXor => 3,
            Binary::BitAnd => 4,
            Binary::Equal
            | Binary::NotEqual
            | Binary::Less
            | Binary::LessEqual
            | Binary::Greater
            | Binary::GreaterEqual => 5,
            Binary::Add | Binary::Subtract => 6,
            Binary::Multiply | Binary::Divide | Binary::Remainder => 7,
        }
    }
}

/// Standard procedures that the oracle implements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    PrintString,
    PrintInt,
    PrintUnsignedInt,
    PrintByte,
    PrintReal,
    PrintAny,
    StringEquals,
    StringStartsWith,
    CharAt,
    ParseInt,
    ParseUnsignedInt,
    ParseReal,
    IntToByte,
    IntToUnsigned,
    RealToInt,
    AbsInt,
    SquareInt,
    AbsReal,
    SquareReal,
    SquareRoot,
    ByteArrayEqual,
}

impl Standard {
    pub fn name(self) -> &'static str {
        match self {
            Standard::PrintString => "printString",
            Standard::PrintInt => "printInt",
            Standard::PrintUnsignedInt => "printUnsignedInt",
            Standard::PrintByte => "printByte",
            Standard::PrintReal => "printReal",
            Standard::PrintAny => "printAny",
            Standard::StringEquals => "stringEquals",
            Standard::StringStartsWith => "stringStartsWith",
            Standard::CharAt => "charAt",
            Standard::ParseInt => "parseInt",
            Standard::ParseUnsignedInt => "parseUnsignedInt",
            Standard::ParseReal => "parseReal",
            Standard::IntToByte => "intToByte",
            Standard::IntToUnsigned => "intToUnsigned",
            Standard::RealToInt => "realToInt",
            Standard::AbsInt => "absInt",
            Standard::SquareInt => "squareInt",
            Standard::AbsReal => "absReal",
            Standard::SquareReal => "squareReal",
            Standard::SquareRoot => "squareRoot",
            Standard::ByteArrayEqual => "byteArrayEqual",
        }
    }

    pub fn params(self) -> Vec<Type> {
        match self {
            Standard::PrintString | Standard::ParseInt | Standard::ParseUnsignedInt => {
                vec![Type::Text]
            }
            Standard::ParseReal => vec![Type::Text],
            Standard::PrintInt
            | Standard::IntToByte
            | Standard::IntToUnsigned
            | Standard::AbsInt
            | Standard::SquareInt => vec![Type::Integer],
            Standard::PrintUnsignedInt => vec![Type::Unsigned],
            Standard::PrintByte => vec![Type::Byte],
            Standard::PrintReal
            | Standard::RealToInt
            | Standard::AbsReal
            | Standard::SquareReal
            | Standard::SquareRoot => vec![Type::Real],
            Standard::PrintAny => vec![Type::Any],
            Standard::StringEquals | Standard::StringStartsWith => vec![Type::Text, Type::Text],
            Standard::CharAt => vec![Type::Text, Type::Unsigned],
            Standard::ByteArrayEqual => vec![Type::array(Type::Byte), Type::array(Type::Byte)],
        }
    }
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Integer(i32),
    Unsigned(u32),
    Byte(u8),
    /// The text as written, so that text and value agree.
    Real(String),
    Bool(bool),
    /// With its escapes resolved.
    Text(String),
    Label(usize, usize),
    Local(usize),
    Member(usize),
    Port(usize),
    /// A procedure as a value.
    Procedure(usize),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Length(Box<Expr>),
    Index(Box<Expr>, Box<Expr>),
    Field(Box<Expr>, usize),
    /// Port of another component.
    PortOf(Box<Expr>, usize),
    Call(usize, Vec<Expr>),
    /// A call through a forward type: the name is the type's, the target the later procedure.
    CallValue(Box<Expr>, Vec<Expr>),
    Standard(Standard, Vec<Expr>),
    Box(Box<Expr>),
    NewArray(Vec<u32>, Box<Expr>),
    NewStruct(Vec<Expr>),
    NewChannel,
    /// The component and the constructor that the language must choose.
    NewComponent(usize, usize, Vec<Expr>),
    Block(Vec<Stmt>, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
    Case(Box<Expr>, Vec<(Vec<Expr>, Expr)>, Box<Expr>),
    Project(Box<Expr>, Vec<(usize, Expr)>, Box<Expr>),
    Try(Box<Expr>, Vec<(Option<usize>, Expr)>),
}

#[derive(Clone, Debug)]
pub enum Stmt {
    Let(usize, Expr),
    Assign(Expr, Expr),
    /// A call for its effect.
    Do(Expr),
    Block(Vec<Stmt>),
    If(Expr, Vec<Stmt>, Option<Vec<Stmt>>),
    For {
        variable: usize,
        from: Expr,
        to: Expr,
        step: i32,
        body: Vec<Stmt>,
    },
    Case(Expr, Vec<(Vec<Expr>, Vec<Stmt>)>, Vec<Stmt>),
    /// Each arm binds the variable numbered in it; all have the same name.
    Project(Expr, Vec<(usize, Vec<Stmt>)>, Vec<Stmt>),
    Try(Vec<Stmt>, Vec<(Option<usize>, Vec<Stmt>)>),
    Throw(usize),
    Return(Option<Expr>),
    /// The component itself, or the one in a variable.
    Stop(Option<Expr>),
    Send(Expr, Expr),
    Receive(usize, Expr),
    Acknowledge(usize, Expr, Vec<Stmt>),
    Select(Vec<SelectArm>, Option<Vec<Stmt>>),
    Connect(Expr, Expr),
    Disconnect(Expr),
}

#[derive(Clone, Debug)]
pub struct SelectArm {
    pub acknowledge: bool,
    pub variable: usize,
    pub channel: Expr,
    pub guard: Option<Expr>,
    pub body: Vec<Stmt>,
}

/// The labels of the predeclared `ExceptionType`, in order.
pub const EXCEPTIONS: [&str; 9] = [
    "OperationFailedException",
    "ChannelBufferFullException",
    "DivisionByZeroException",
    "SendStatusUnknownException",
    "DuplicateLCNException",
    "NodesUnreachableException",
    "ChannelsUnknownException",
    "IncompatibleChannelsException",
    "BindStatusUnknownException",
];

pub const OPERATION_FAILED: usize = 0;
pub const DIVISION_BY_ZERO: usize = 2;
pub const SEND_STATUS_UNKNOWN: usize = 3;
