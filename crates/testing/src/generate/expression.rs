//! Random expressions of a wanted type.

use super::Generator;
use super::scope::Storage;
use crate::tree::*;
use std::rc::Rc;

/// A step from a variable to a value inside it.
#[derive(Clone, Copy)]
enum Step {
    Element,
    Field(usize),
}

impl Generator {
    /// An expression of exactly this type.
    pub(super) fn expr(&mut self, ty: &Type, depth: u32) -> Expr {
        self.scope.spend(1);
        if depth == 0 || self.random.chance(25) {
            return self.leaf(ty, depth);
        }
        let depth = depth - 1;
        if self.scope.is_deep() {
            return self.operation(ty, depth);
        }
        match self.random.below(20) {
            0 if self.may_choose(ty) => self.if_value(ty, depth),
            1 if self.may_choose(ty) => self.block_value(ty, depth),
            2 if self.may_choose(ty) => self.case_value(ty, depth),
            3 if self.may_choose(ty) && !self.scope.quiet => self.project_value(ty, depth),
            4 if self.may_choose(ty) && !self.scope.quiet => self.try_value(ty, depth),
            5..=7 => match self.call(ty, depth) {
                Some(call) => call,
                None => self.operation(ty, depth),
            },
            _ => self.operation(ty, depth),
        }
    }

    /// An expression that may be stored in a variable of this type: the type itself, or a
    /// narrower number.
    pub(super) fn fitting(&mut self, ty: &Type, depth: u32) -> Expr {
        let narrower: &[Type] = match ty {
            Type::Unsigned | Type::Integer => &[Type::Byte],
            Type::Real => &[Type::Byte, Type::Unsigned, Type::Integer],
            _ => &[],
        };
        if !narrower.is_empty() && self.random.chance(12) {
            let ty = self.random.pick(narrower).clone();
            return self.expr(&ty, depth);
        }
        self.expr(ty, depth)
    }

    /// Whether a branch may yield the value. Reals may not: it is not specified whether such a
    /// value is single or double inside a larger expression.
    fn may_choose(&self, ty: &Type) -> bool {
        *ty != Type::Real
    }

    fn leaf(&mut self, ty: &Type, depth: u32) -> Expr {
        if self.random.chance(70)
            && let Some(place) = self.readable(ty)
        {
            return place;
        }
        if matches!(ty, Type::Struct(_) | Type::Array(_) | Type::Any) {
            return self.fresh_object(ty, depth);
        }
        self.literal(ty)
    }

    /// A variable, element or field of this type.
    pub(super) fn readable(&mut self, ty: &Type) -> Option<Expr> {
        self.place(ty, |_| true)
    }

    /// A place of this type that starts at a variable the filter allows.
    pub(super) fn place(
        &mut self,
        ty: &Type,
        allows: impl Fn(&super::scope::Visible) -> bool,
    ) -> Option<Expr> {
        let mut found = Vec::new();
        for variable in self.scope.in_sight().filter(|v| allows(v)) {
            let mut path = Vec::new();
            self.paths(&variable.ty, ty, &mut path, &mut |steps| {
                found.push((variable.clone(), steps.to_vec()));
            });
        }
        if found.is_empty() {
            return None;
        }
        let (variable, path) = found.swap_remove(self.random.below(found.len()));
        let mut place = variable.expr();
        let mut dimension = 0;
        for step in path {
            place = match step {
                Step::Field(index) => {
                    dimension = usize::MAX;
                    let Type::Struct(ty) = place.ty else {
                        unreachable!("only structs have fields")
                    };
                    let ty = self.program.structs[ty].fields[index].1.clone();
                    place.field(index, ty)
                }
                Step::Element => {
                    let least = variable.lengths.get(dimension).copied();
                    dimension = dimension.saturating_add(1);
                    let index = self.index(&place, least.unwrap_or(1));
                    place.element(index)
                }
            };
        }
        Some(place)
    }

    fn paths(&self, from: &Type, to: &Type, path: &mut Vec<Step>, found: &mut impl FnMut(&[Step])) {
        if from == to {
            found(path);
        }
        if path.len() == 3 {
            return;
        }
        match from {
            Type::Array(element) => {
                path.push(Step::Element);
                self.paths(element, to, path, found);
                path.pop();
            }
            Type::Struct(index) => {
                for (number, (_, ty)) in self.program.structs[*index].fields.iter().enumerate() {
                    path.push(Step::Field(number));
                    self.paths(ty, to, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
    }

    /// An index into `array`, whose length is at least `least`: nearly always valid.
    fn index(&mut self, array: &Expr, least: u32) -> Expr {
        if self.scope.may_raise && !self.scope.quiet && self.random.chance(4) {
            self.scope.raises = true;
            let bad = [-1, least as i32, 1000, i32::MIN, i32::MAX];
            return Expr::integer(*self.random.pick(&bad));
        }
        let counters: Vec<Expr> = self
            .scope
            .in_sight()
            .filter(|v| v.below.is_some_and(|below| below <= least))
            .map(|v| v.expr())
            .collect();
        if !counters.is_empty() && self.random.chance(70) {
            return self.random.pick(&counters).clone();
        }
        let outer = std::mem::replace(&mut self.scope.indexing, true);
        let quiet = std::mem::replace(&mut self.scope.quiet, true);
        // An index inside an index stays simple, or nesting would never end.
        let kinds = if outer { 2 } else { 4 };
        let index = match self.random.below(kinds) + 4 - kinds {
            0 => {
                // The remainder of an unsigned number is never negative.
                let number = self.expr(&Type::Unsigned, 1);
                let length = Expr::standard(
                    Standard::IntToUnsigned,
                    vec![array.clone().length()],
                    Type::Unsigned,
                );
                Expr::binary(Binary::Remainder, number, length, Type::Unsigned)
            }
            1 if least < 256 => {
                let number = self.expr(&Type::Byte, 1);
                let length = Expr::new(ExprKind::Byte(least as u8), Type::Byte);
                Expr::binary(Binary::Remainder, number, length, Type::Byte)
            }
            2 => Expr::binary(
                Binary::Subtract,
                array.clone().length(),
                Expr::integer(1),
                Type::Integer,
            ),
            _ => Expr::integer(self.random.below(least as usize) as i32),
        };
        self.scope.quiet = quiet;
        self.scope.indexing = outer;
        index
    }

    /// A new struct, array or box.
    pub(super) fn fresh_object(&mut self, ty: &Type, depth: u32) -> Expr {
        self.scope.spend(4);
        match ty {
            Type::Struct(index) => {
                let fields = self.program.structs[*index].fields.clone();
                let args = fields.iter().map(|(_, ty)| self.fitting(ty, depth));
                let kind = ExprKind::NewStruct(args.collect());
                Expr::new(kind, ty.clone())
            }
            Type::Array(_) => {
                let lengths = self.lengths(ty);
                self.array_of(ty, lengths, depth)
            }
            Type::Any => {
                // Without this end to the nesting, records of boxes of records would never end.
                let content = match depth {
                    0 => self.scalar(),
                    _ => self.value_type(1),
                };
                match content {
                    Type::Any => self.boxed(&Type::Integer, 0),
                    content => self.boxed(&content, depth.saturating_sub(1)),
                }
            }
            Type::Procedure(signature) => {
                let found = self
                    .proc_of(signature)
                    .expect("a procedure of each signature");
                Expr::new(ExprKind::Procedure(found), ty.clone())
            }
            _ => self.literal(ty),
        }
    }

    fn boxed(&mut self, content: &Type, depth: u32) -> Expr {
        let value = self.expr(content, depth);
        Expr::new(ExprKind::Box(Box::new(value)), Type::Any)
    }

    /// Lengths for every dimension of an array type, outermost first.
    pub(super) fn lengths(&mut self, ty: &Type) -> Vec<u32> {
        let mut lengths = Vec::new();
        let mut inner = ty;
        while let Type::Array(element) = inner {
            let long = lengths.is_empty() && self.random.chance(3);
            let limit = if long { 1500 } else { 6 };
            lengths.push(1 + self.random.below(limit) as u32);
            inner = element;
        }
        lengths
    }

    pub(super) fn array_of(&mut self, ty: &Type, lengths: Vec<u32>, depth: u32) -> Expr {
        let mut element = ty;
        for _ in &lengths {
            let Type::Array(inner) = element else {
                unreachable!("as many dimensions as lengths")
            };
            element = inner;
        }
        self.scope
            .spend(lengths.iter().map(|&n| u64::from(n)).product::<u64>() / 8);
        let element = element.clone();
        let init = self.fitting(&element, depth.min(1));
        Expr::new(ExprKind::NewArray(lengths, Box::new(init)), ty.clone())
    }

    /// An operator or standard procedure that yields this type.
    fn operation(&mut self, ty: &Type, depth: u32) -> Expr {
        match ty {
            Type::Integer => self.integer_operation(depth),
            Type::Unsigned => self.unsigned_operation(depth),
            Type::Byte => self.byte_operation(depth),
            Type::Real => self.real_operation(depth),
            Type::Bool => self.bool_operation(depth),
            _ => self.leaf(ty, depth),
        }
    }

    fn integer_operation(&mut self, depth: u32) -> Expr {
        let ty = Type::Integer;
        match self.random.below(14) {
            0 => self.unary(Unary::Minus, &ty, depth),
            1 => self.unary(Unary::Complement, &ty, depth),
            2 => {
                let standard = *self.random.pick(&[Standard::AbsInt, Standard::SquareInt]);
                self.standard(standard, ty, depth)
            }
            3 => self.standard(Standard::ParseInt, ty, depth),
            4 => {
                let real = self.fitting(&Type::Real, depth);
                Expr::new(ExprKind::Call(self.helpers.to_int, vec![real]), ty)
            }
            5 => match self.a_length() {
                Some(length) => length,
                None => self.leaf(&ty, depth),
            },
            6 => {
                // An unsigned number and an integer are joined as integers.
                let (op, right) = self.integral_operator(&Type::Integer, depth);
                let left = self.expr(&Type::Unsigned, depth);
                Expr::binary(op, left, right, ty)
            }
            _ => {
                let left = self.expr(&ty, depth);
                let narrow = if self.random.chance(10) {
                    Type::Byte
                } else {
                    Type::Integer
                };
                let (op, right) = self.integral_operator(&narrow, depth);
                Expr::binary(op, left, right, ty)
            }
        }
    }

    /// An operator of integral types and its right operand, which is not zero where a division by
    /// zero would not be caught.
    fn integral_operator(&mut self, ty: &Type, depth: u32) -> (Binary, Expr) {
        let op = *self.random.pick(&[
            Binary::Add,
            Binary::Add,
            Binary::Subtract,
            Binary::Subtract,
            Binary::Multiply,
            Binary::Divide,
            Binary::Remainder,
            Binary::BitAnd,
            Binary::BitOr,
            Binary::BitXor,
        ]);
        let right = self.expr(ty, depth);
        if !matches!(op, Binary::Divide | Binary::Remainder) {
            return (op, right);
        }
        if self.scope.may_raise && !self.scope.quiet && self.random.chance(50) {
            self.scope.raises = true;
            return (op, right);
        }
        let one = match ty {
            Type::Integer => Expr::integer(1),
            Type::Unsigned => Expr::new(ExprKind::Unsigned(1), Type::Unsigned),
            _ => Expr::new(ExprKind::Byte(1), Type::Byte),
        };
        let odd = Expr::binary(Binary::BitOr, right, one, ty.clone());
        (op, odd)
    }

    fn unsigned_operation(&mut self, depth: u32) -> Expr {
        let ty = Type::Unsigned;
        match self.random.below(8) {
            0 => self.standard(Standard::IntToUnsigned, ty, depth),
            1 => self.standard(Standard::CharAt, ty, depth),
            2 => self.unary(Unary::Complement, &ty, depth),
            3 => self.unary(Unary::Minus, &ty, depth),
            _ => {
                let left = self.expr(&ty, depth);
                let (op, right) = self.integral_operator(&ty, depth);
                Expr::binary(op, left, right, ty)
            }
        }
    }

    fn byte_operation(&mut self, depth: u32) -> Expr {
        let ty = Type::Byte;
        match self.random.below(6) {
            0 => self.standard(Standard::IntToByte, ty, depth),
            1 => self.unary(Unary::Complement, &ty, depth),
            _ => {
                let left = self.expr(&ty, depth);
                let (op, right) = self.integral_operator(&ty, depth);
                Expr::binary(op, left, right, ty)
            }
        }
    }

    fn real_operation(&mut self, depth: u32) -> Expr {
        let ty = Type::Real;
        match self.random.below(10) {
            0 => {
                let standard = *self.random.pick(&[
                    Standard::AbsReal,
                    Standard::SquareReal,
                    Standard::SquareRoot,
                ]);
                self.standard(standard, ty, depth)
            }
            1 => self.unary(Unary::Minus, &ty, depth),
            2 => {
                let text = *self
                    .random
                    .pick(&["2.1", "1.05", "-0.5", "17", "  3.25", "0.001"]);
                Expr::standard(Standard::ParseReal, vec![Expr::text(text)], ty)
            }
            _ => {
                let op = *self.random.pick(&[
                    Binary::Add,
                    Binary::Subtract,
                    Binary::Multiply,
                    Binary::Divide,
                ]);
                let mixed = self.random.below(6);
                let left = match mixed {
                    0 => self.fitting(&ty, depth),
                    _ => self.expr(&ty, depth),
                };
                let right = match mixed {
                    1 if left.ty == ty => self.fitting(&ty, depth),
                    _ => self.expr(&ty, depth),
                };
                Expr::binary(op, left, right, ty)
            }
        }
    }

    fn bool_operation(&mut self, depth: u32) -> Expr {
        let ty = Type::Bool;
        match self.random.below(12) {
            0 | 1 => {
                let op = *self.random.pick(&[Binary::And, Binary::Or]);
                let left = self.expr(&ty, depth);
                let right = self.expr(&ty, depth);
                Expr::binary(op, left, right, ty)
            }
            2 => self.unary(Unary::Not, &ty, depth),
            3 => {
                let standard = *self
                    .random
                    .pick(&[Standard::StringEquals, Standard::StringStartsWith]);
                self.standard(standard, ty, depth)
            }
            4 => {
                // Equality of two equal types; references by identity.
                let operand = match self.random.below(4) {
                    0 => Type::Text,
                    1 => Type::Bool,
                    2 => self.scalar(),
                    _ => self.likely_type(),
                };
                let op = *self.random.pick(&[Binary::Equal, Binary::NotEqual]);
                self.equality(op, &operand, depth)
            }
            _ => {
                let op = *self.random.pick(&[
                    Binary::Equal,
                    Binary::NotEqual,
                    Binary::Less,
                    Binary::LessEqual,
                    Binary::Greater,
                    Binary::GreaterEqual,
                ]);
                let numbers = [
                    Type::Integer,
                    Type::Integer,
                    Type::Unsigned,
                    Type::Byte,
                    Type::Real,
                ];
                let left = self.random.pick(&numbers).clone();
                let right = if self.random.chance(70) {
                    left.clone()
                } else {
                    self.random.pick(&numbers).clone()
                };
                let left = self.expr(&left, depth);
                let right = self.expr(&right, depth);
                Expr::binary(op, left, right, ty)
            }
        }
    }

    fn equality(&mut self, op: Binary, operand: &Type, depth: u32) -> Expr {
        // Boxes are compared by identity, but whether a projection copies is unspecified.
        let operand = if *operand == Type::Any {
            &Type::Integer
        } else {
            operand
        };
        let left = self.expr(operand, depth.min(1));
        let right = self.expr(operand, depth.min(1));
        Expr::binary(op, left, right, Type::Bool)
    }

    fn unary(&mut self, op: Unary, ty: &Type, depth: u32) -> Expr {
        let operand = self.expr(ty, depth);
        Expr::new(ExprKind::Unary(op, Box::new(operand)), ty.clone())
    }

    fn standard(&mut self, standard: Standard, ty: Type, depth: u32) -> Expr {
        let args = standard
            .params()
            .iter()
            .map(|param| self.fitting(param, depth))
            .collect();
        Expr::standard(standard, args, ty)
    }

    fn a_length(&mut self) -> Option<Expr> {
        let types: Vec<Type> = self
            .scope
            .in_sight()
            .map(|v| v.ty.clone())
            .filter(|ty| matches!(ty, Type::Array(_) | Type::Text))
            .collect();
        if types.is_empty() {
            return None;
        }
        let ty = self.random.pick(&types).clone();
        self.readable(&ty).map(Expr::length)
    }

    /// Calls a procedure with this result, if one may be called here.
    pub(super) fn call(&mut self, result: &Type, depth: u32) -> Option<Expr> {
        if self.scope.quiet {
            return None;
        }
        if self.random.chance(15)
            && let Some(call) = self.call_value(result, depth)
        {
            return Some(call);
        }
        let callable: Vec<usize> = (0..self.program.procs.len())
            .filter(|&proc| self.program.procs[proc].result == *result && self.may_call(proc))
            .collect();
        if callable.is_empty() {
            return None;
        }
        let proc = *self.random.pick(&callable);
        Some(self.call_of(proc, depth))
    }

    pub(super) fn call_of(&mut self, proc: usize, depth: u32) -> Expr {
        let manner = self.manners[proc];
        self.scope.spend(manner.cost + 5);
        self.scope.raises |= manner.raises;
        self.scope.prints |= manner.prints;
        let params = self.program.procs[proc].params();
        let args = params.iter().map(|ty| self.fitting(ty, depth)).collect();
        let result = self.program.procs[proc].result.clone();
        Expr::new(ExprKind::Call(proc, args), result)
    }

    fn may_call(&self, proc: usize) -> bool {
        let manner = &self.manners[proc];
        !manner.reserved
            && (manner.owner.is_none() || manner.owner == self.scope.owner)
            && (!manner.raises || self.scope.may_raise)
            && (!manner.prints || self.scope.may_print)
            && self.scope.affords(manner.cost + 5)
    }

    /// Calls a variable of procedure type.
    fn call_value(&mut self, result: &Type, depth: u32) -> Option<Expr> {
        let found: Vec<Expr> = self
            .scope
            .in_sight()
            .filter(|v| {
                matches!(&v.ty, Type::Procedure(signature) if signature.result == *result)
                    && !matches!(v.storage, Storage::Port(_))
            })
            .map(|v| v.expr())
            .collect();
        if found.is_empty() || !self.scope.affords(200) {
            return None;
        }
        let callee = self.random.pick(&found).clone();
        let Type::Procedure(signature) = callee.ty.clone() else {
            unreachable!("found by its type")
        };
        self.scope.spend(200);
        let args = signature.params.iter().map(|ty| self.fitting(ty, depth));
        let kind = ExprKind::CallValue(Box::new(callee), args.collect());
        Some(Expr::new(kind, result.clone()))
    }

    /// A procedure for a value of this signature: cheap and harmless, since the caller does not
    /// know which one it calls.
    pub(super) fn proc_of(&mut self, signature: &Rc<Signature>) -> Option<usize> {
        let found: Vec<usize> = (0..self.program.procs.len())
            .filter(|&index| {
                let (proc, manner) = (&self.program.procs[index], &self.manners[index]);
                manner.owner.is_none()
                    && !manner.raises
                    && !manner.prints
                    && manner.cost < 200
                    && proc.result == signature.result
                    && proc.params() == signature.params
            })
            .collect();
        (!found.is_empty()).then(|| *self.random.pick(&found))
    }
}
