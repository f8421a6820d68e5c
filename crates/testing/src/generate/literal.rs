//! Constants, the interesting ones more often.

use super::Generator;
use crate::tree::*;

const TEXTS: [&str; 14] = [
    "",
    "a",
    "hearth",
    "42",
    "-17",
    "  8 ",
    "2.25",
    "-0.5x",
    "tab\there",
    "two\nlines",
    "100%d %s",
    "say \"hi\"",
    "back\\slash",
    "// no remark",
];

impl Expr {
    pub(super) fn new(kind: ExprKind, ty: Type) -> Expr {
        Expr { kind, ty }
    }

    pub(super) fn integer(value: i32) -> Expr {
        Expr::new(ExprKind::Integer(value), Type::Integer)
    }

    pub(super) fn text(text: &str) -> Expr {
        Expr::new(ExprKind::Text(text.to_string()), Type::Text)
    }

    pub(super) fn binary(op: Binary, left: Expr, right: Expr, ty: Type) -> Expr {
        Expr::new(ExprKind::Binary(op, Box::new(left), Box::new(right)), ty)
    }

    pub(super) fn field(self, index: usize, ty: Type) -> Expr {
        Expr::new(ExprKind::Field(Box::new(self), index), ty)
    }

    pub(super) fn standard(standard: Standard, args: Vec<Expr>, ty: Type) -> Expr {
        Expr::new(ExprKind::Standard(standard, args), ty)
    }

    /// `a.length`
    pub(super) fn length(self) -> Expr {
        Expr::new(ExprKind::Length(Box::new(self)), Type::Integer)
    }

    /// `a[index]`
    pub(super) fn element(self, index: Expr) -> Expr {
        let Type::Array(element) = &self.ty else {
            unreachable!("only arrays have elements")
        };
        let ty = (**element).clone();
        Expr::new(ExprKind::Index(Box::new(self), Box::new(index)), ty)
    }
}

impl Generator {
    /// A constant of a type that has constants; otherwise a fresh object.
    pub(super) fn literal(&mut self, ty: &Type) -> Expr {
        let kind = match ty {
            Type::Integer => ExprKind::Integer(self.integer()),
            Type::Unsigned => ExprKind::Unsigned(self.unsigned()),
            Type::Byte => ExprKind::Byte(self.random.bits() as u8),
            Type::Real => ExprKind::Real(self.real()),
            Type::Bool => ExprKind::Bool(self.random.chance(50)),
            Type::Text => ExprKind::Text(self.random.pick(&TEXTS).to_string()),
            Type::Enum(index) => {
                let labels = self.program.enums[*index].labels.len();
                ExprKind::Label(*index, self.random.below(labels))
            }
            Type::In(_) | Type::Out(_) => ExprKind::NewChannel,
            _ => return self.fresh_object(ty, 0),
        };
        Expr::new(kind, ty.clone())
    }

    fn integer(&mut self) -> i32 {
        match self.random.below(12) {
            0 => 0,
            1 => 1,
            2 => -1,
            3 => i32::MAX,
            4 => i32::MIN,
            5 => self.random.bits() as i32,
            6 => 1 << self.random.below(31),
            7 => self.random.between(-300, 300) as i32,
            _ => self.random.between(0, 12) as i32,
        }
    }

    fn unsigned(&mut self) -> u32 {
        match self.random.below(6) {
            0 => u32::MAX,
            1 => self.random.bits(),
            _ => self.random.below(20) as u32,
        }
    }

    fn real(&mut self) -> String {
        match self.random.below(6) {
            0 => "0.0".into(),
            1 => format!("{}.{}", self.random.below(1000), self.random.below(1000)),
            2 => format!("{}.5e{}", self.random.below(10), self.random.between(-4, 4)),
            _ => format!("{}.{}", self.random.below(10), self.random.below(100)),
        }
    }
}
