//! Random statements, and the expressions that contain choices.

use super::Generator;
use super::scope::{Storage, Visible};
use crate::tree::*;

impl Generator {
    /// Adds `count` statements to the current scope.
    pub(super) fn some_statements(&mut self, count: usize) -> Vec<Stmt> {
        let mut statements = Vec::new();
        for _ in 0..count {
            if !self.scope.affords(40) {
                break;
            }
            statements.extend(self.statement());
        }
        statements
    }

    /// A few statements in a scope of their own.
    pub(super) fn nested(&mut self) -> Vec<Stmt> {
        self.scope.enter();
        let count = 1 + self.random.below(3);
        let statements = self.some_statements(count);
        self.scope.leave();
        statements
    }

    fn statement(&mut self) -> Vec<Stmt> {
        self.scope.spend(2);
        self.scope.made += 1;
        let deep = self.scope.is_deep();
        let roll = self.random.below(if deep { 50 } else { 100 });
        match roll {
            0..=21 => vec![self.declaration()],
            22..=36 => match self.assignment() {
                Some(statement) => vec![statement],
                None => vec![self.declaration()],
            },
            37..=45 => {
                let ty = self.likely_type();
                match self.readable(&ty) {
                    Some(place) if self.scope.may_print => self.show(place),
                    _ => vec![self.declaration()],
                }
            }
            46..=49 => match self.call(&Type::Void, 2) {
                Some(call) => vec![Stmt::Do(call)],
                None => vec![self.declaration()],
            },
            50..=62 => vec![self.if_statement()],
            63..=77 => vec![self.for_statement()],
            78..=82 => vec![self.case_statement()],
            83..=87 => vec![self.project_statement()],
            88..=94 => vec![self.try_statement()],
            95..=96 => vec![Stmt::Block(self.nested())],
            _ => self.leave_early(),
        }
    }

    fn declaration(&mut self) -> Stmt {
        let ty = if self.random.chance(8) {
            self.procedure_type().unwrap_or(Type::Integer)
        } else {
            self.value_type(2)
        };
        let (value, lengths) = if matches!(ty, Type::Array(_)) && self.random.chance(75) {
            let lengths = self.lengths(&ty);
            (self.array_of(&ty, lengths.clone(), 2), lengths)
        } else {
            (self.expr(&ty, 3), Vec::new())
        };
        let name = self.variable_name();
        let variable = self.scope.declare(name, ty);
        self.scope.newest().lengths = lengths;
        Stmt::Let(variable, value)
    }

    pub(super) fn procedure_type(&mut self) -> Option<Type> {
        if self.signatures.is_empty() {
            return None;
        }
        Some(self.random.pick(&self.signatures).clone())
    }

    /// Writes a variable, an element or a field.
    fn assignment(&mut self) -> Option<Stmt> {
        let types: Vec<Type> = self
            .scope
            .in_sight()
            .filter(|v| v.assignable)
            .map(|v| v.ty.clone())
            .collect();
        if types.is_empty() {
            return None;
        }
        let mut ty = self.random.pick(&types).clone();
        // Mostly into the parts of structs and arrays.
        while let Type::Array(element) = &ty {
            if self.random.chance(15) {
                break;
            }
            ty = (**element).clone();
        }
        if let Type::Struct(index) = ty
            && self.random.chance(80)
        {
            let fields = &self.program.structs[index].fields;
            ty = fields[self.random.below(fields.len())].1.clone();
        }
        let writable = |v: &Visible| v.assignable && !matches!(v.storage, Storage::Port(_));
        let quiet = std::mem::replace(&mut self.scope.quiet, true);
        let place = self.place(&ty, writable);
        self.scope.quiet = quiet;
        let place = place?;
        let value = match &ty {
            // Arrays in sight keep the lengths that indices rely on.
            Type::Array(_) => {
                let lengths = self.replacement_lengths(&place, &ty);
                self.array_of(&ty, lengths, 1)
            }
            _ => self.fitting(&ty, 3),
        };
        Some(Stmt::Assign(place, value))
    }

    /// Lengths at least those of the replaced array.
    fn replacement_lengths(&mut self, place: &Expr, ty: &Type) -> Vec<u32> {
        let (root, depth) = root_of(place);
        let known: Vec<u32> = self
            .scope
            .visible
            .iter()
            .filter(|v| v.expr().kind.same_place(&root.kind))
            .flat_map(|v| v.lengths.clone())
            .skip(depth)
            .collect();
        let mut lengths = self.lengths(ty);
        for (length, &least) in lengths.iter_mut().zip(&known) {
            *length = (*length).max(least);
        }
        lengths
    }

    fn if_statement(&mut self) -> Stmt {
        let condition = self.expr(&Type::Bool, 3);
        let then = self.nested();
        let otherwise = self.random.chance(50).then(|| self.nested());
        Stmt::If(condition, then, otherwise)
    }

    fn for_statement(&mut self) -> Stmt {
        if self.random.chance(45)
            && let Some(statement) = self.array_loop()
        {
            return statement;
        }
        let rounds = 1 + self.random.below(5) as i32;
        let start = self.random.between(-3, 4) as i32;
        let step = if self.random.chance(60) {
            1
        } else {
            *self.random.pick(&[-1, 2, -2, 3])
        };
        let end = start + step * (rounds - 1);
        let below = (start >= 0 && end >= 0).then(|| (start.max(end) + 1) as u32);
        self.loop_over(
            Expr::integer(start),
            Expr::integer(end),
            step,
            below,
            rounds,
        )
    }

    fn loop_over(
        &mut self,
        from: Expr,
        to: Expr,
        step: i32,
        below: Option<u32>,
        rounds: i32,
    ) -> Stmt {
        self.scope.enter();
        // A separate name: the bounds and the body refer to the array being walked.
        let name = self.unique("i");
        let variable = self.scope.declare(name, Type::Integer);
        let newest = self.scope.newest();
        newest.assignable = false;
        newest.below = below;
        let outer = self.scope.multiplicity;
        self.scope.multiplicity *= rounds.max(1) as u64;
        let mut body = self.nested();
        if self.random.chance(4) && step > 0 {
            // The body may steer the loop.
            let counter = Expr::new(ExprKind::Local(variable), Type::Integer);
            let more = Expr::binary(
                Binary::Add,
                counter.clone(),
                Expr::integer(1),
                Type::Integer,
            );
            body.push(Stmt::Assign(counter, more));
        }
        self.scope.multiplicity = outer;
        self.scope.leave();
        Stmt::For {
            variable,
            from,
            to,
            step,
            body,
        }
    }

    /// `for i = 0 .. a.length - 1 do …`
    fn array_loop(&mut self) -> Option<Stmt> {
        let arrays: Vec<Visible> = self
            .scope
            .in_sight()
            .filter(|v| matches!(v.ty, Type::Array(_)))
            .filter(|v| v.lengths.first().is_none_or(|&length| length < 40))
            .cloned()
            .collect();
        if arrays.is_empty() {
            return None;
        }
        let array = self.random.pick(&arrays).clone();
        let last = Expr::binary(
            Binary::Subtract,
            array.expr().length(),
            Expr::integer(1),
            Type::Integer,
        );
        // The array may be longer than known, by assignment: the counter is only valid for the
        // array itself, which indices of unknown length guard in other ways.
        let statement = if self.random.chance(70) {
            self.loop_over(Expr::integer(0), last, 1, None, 6)
        } else {
            self.loop_over(last, Expr::integer(0), -1, None, 6)
        };
        let Stmt::For {
            variable,
            from,
            to,
            step,
            mut body,
        } = statement
        else {
            unreachable!("made a loop")
        };
        // At least one statement walks along the array.
        let counter = Expr::new(ExprKind::Local(variable), Type::Integer);
        let element = array.expr().element(counter);
        if element.ty.is_numeric() && array.assignable {
            let one = self.narrow_one(&element.ty);
            let more = Expr::binary(Binary::Add, element.clone(), one, element.ty.clone());
            body.insert(0, Stmt::Assign(element, more));
        }
        Some(Stmt::For {
            variable,
            from,
            to,
            step,
            body,
        })
    }

    fn narrow_one(&mut self, ty: &Type) -> Expr {
        if *ty == Type::Integer && self.random.chance(50) {
            return Expr::integer(1);
        }
        Expr::new(ExprKind::Byte(1), Type::Byte)
    }

    /// Labels of a `case` over a type: constants that differ.
    fn case_labels(&mut self, ty: &Type, arms: usize, natural: bool) -> Vec<Vec<Expr>> {
        let mut next = 0;
        (0..arms)
            .map(|_| {
                (0..1 + self.random.below(2))
                    .map(|_| {
                        next += 1 + self.random.below(3) as i32;
                        let sign = if natural || self.random.chance(80) {
                            1
                        } else {
                            -1
                        };
                        let kind = match ty {
                            Type::Integer => ExprKind::Integer(sign * (next - 1)),
                            Type::Unsigned => ExprKind::Unsigned(next as u32 - 1),
                            _ => ExprKind::Byte(next as u8 - 1),
                        };
                        Expr::new(kind, ty.clone())
                    })
                    .collect()
            })
            .collect()
    }

    /// A value to distinguish cases of, small enough to match a label.
    fn scrutinee(&mut self, depth: u32) -> Expr {
        let ty = self
            .random
            .pick(&[Type::Integer, Type::Integer, Type::Unsigned, Type::Byte])
            .clone();
        let value = self.expr(&ty, depth);
        let limit = match ty {
            Type::Integer => Expr::integer(7),
            Type::Unsigned => Expr::new(ExprKind::Unsigned(7), Type::Unsigned),
            _ => Expr::new(ExprKind::Byte(7), Type::Byte),
        };
        Expr::binary(Binary::Remainder, value, limit, ty)
    }

    fn case_statement(&mut self) -> Stmt {
        let scrutinee = self.scrutinee(2);
        let count = 1 + self.random.below(4);
        let labels = self.case_labels(&scrutinee.ty, count, false);
        let arms = labels
            .into_iter()
            .map(|labels| (labels, self.nested()))
            .collect();
        let default = self.nested();
        Stmt::Case(scrutinee, arms, default)
    }

    /// Types for the arms of a `project`, each once.
    fn arm_types(&mut self) -> Vec<Type> {
        let mut types = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let ty = self.value_type(1);
            if ty != Type::Any && !types.contains(&ty) {
                types.push(ty);
            }
        }
        if types.is_empty() {
            types.push(Type::Integer);
        }
        types
    }

    fn project_statement(&mut self) -> Stmt {
        let scrutinee = self.expr(&Type::Any, 2);
        let name = self.unique("got");
        let arms = self
            .arm_types()
            .into_iter()
            .map(|ty| {
                self.scope.enter();
                let variable = self.scope.declare(name.clone(), ty);
                self.scope.newest().assignable = false;
                let body = self.nested();
                self.scope.leave();
                (variable, body)
            })
            .collect();
        let default = self.nested();
        Stmt::Project(scrutinee, arms, default)
    }

    /// Labels for handlers: some exceptions, or all of them when `all`.
    fn handler_labels(&mut self, all: bool) -> Vec<Option<usize>> {
        let mut labels: Vec<Option<usize>> = Vec::new();
        for label in [DIVISION_BY_ZERO, OPERATION_FAILED, 4] {
            if self.random.chance(40) {
                labels.push(Some(label));
            }
        }
        if all || labels.is_empty() {
            labels.push(None);
        }
        labels
    }

    fn try_statement(&mut self) -> Stmt {
        // An exception that the handlers do not name leaves the statement.
        let outer = self.scope.may_raise;
        let raises = self.scope.raises;
        let labels = self.handler_labels(!outer);
        let all = labels.contains(&None);
        self.scope.may_raise = true;
        let body = self.nested();
        self.scope.may_raise = outer;
        if all {
            self.scope.raises = raises;
        }
        let handlers = labels
            .into_iter()
            .map(|label| (label, self.nested()))
            .collect();
        Stmt::Try(body, handlers)
    }

    /// `if … then throw` or `return`, where possible.
    fn leave_early(&mut self) -> Vec<Stmt> {
        let condition = self.expr(&Type::Bool, 2);
        let leaves = match self.scope.result.clone() {
            Some(Type::Void) if self.random.chance(50) => Stmt::Return(None),
            Some(ty) if ty != Type::Void && self.random.chance(50) => {
                Stmt::Return(Some(self.fitting(&ty, 2)))
            }
            _ if self.scope.may_raise => {
                self.scope.raises = true;
                Stmt::Throw(*self.random.pick(&[0, 2, 4, 5]))
            }
            _ => return vec![self.if_statement()],
        };
        vec![Stmt::If(condition, vec![leaves], None)]
    }

    // Values that contain choices.

    pub(super) fn if_value(&mut self, ty: &Type, depth: u32) -> Expr {
        let condition = self.expr(&Type::Bool, depth);
        let then = self.expr(ty, depth);
        let scalar = matches!(
            ty,
            Type::Integer | Type::Unsigned | Type::Byte | Type::Bool | Type::Text | Type::Enum(_)
        );
        let otherwise = if scalar && self.random.chance(10) {
            None
        } else {
            Some(Box::new(self.expr(ty, depth)))
        };
        let kind = ExprKind::If(Box::new(condition), Box::new(then), otherwise);
        Expr::new(kind, ty.clone())
    }

    pub(super) fn block_value(&mut self, ty: &Type, depth: u32) -> Expr {
        if self.scope.quiet {
            return self.expr(ty, depth);
        }
        self.scope.enter();
        let statements = self.some_statements(2);
        let value = self.expr(ty, depth);
        self.scope.leave();
        Expr::new(ExprKind::Block(statements, Box::new(value)), ty.clone())
    }

    pub(super) fn case_value(&mut self, ty: &Type, depth: u32) -> Expr {
        let scrutinee = self.scrutinee(depth);
        let count = 1 + self.random.below(3);
        let labels = self.case_labels(&scrutinee.ty, count, true);
        let arms = labels
            .into_iter()
            .map(|labels| (labels, self.expr(ty, depth)))
            .collect();
        let default = self.expr(ty, depth);
        let kind = ExprKind::Case(Box::new(scrutinee), arms, Box::new(default));
        Expr::new(kind, ty.clone())
    }

    pub(super) fn project_value(&mut self, ty: &Type, depth: u32) -> Expr {
        let scrutinee = self.expr(&Type::Any, depth);
        let name = self.unique("got");
        let arms = self
            .arm_types()
            .into_iter()
            .map(|arm| {
                self.scope.enter();
                let variable = self.scope.declare(name.clone(), arm);
                self.scope.newest().assignable = false;
                let value = self.expr(ty, depth);
                self.scope.leave();
                (variable, value)
            })
            .collect();
        let default = self.expr(ty, depth);
        let kind = ExprKind::Project(Box::new(scrutinee), arms, Box::new(default));
        Expr::new(kind, ty.clone())
    }

    pub(super) fn try_value(&mut self, ty: &Type, depth: u32) -> Expr {
        let outer = self.scope.may_raise;
        let raises = self.scope.raises;
        let labels = self.handler_labels(!outer);
        self.scope.may_raise = true;
        let value = self.expr(ty, depth);
        self.scope.may_raise = outer;
        if labels.contains(&None) {
            self.scope.raises = raises;
        }
        let handlers = labels
            .into_iter()
            .map(|label| (label, self.expr(ty, depth)))
            .collect();
        Expr::new(ExprKind::Try(Box::new(value), handlers), ty.clone())
    }
}

/// The variable that a place starts at, and the depth of the element.
fn root_of(place: &Expr) -> (&Expr, usize) {
    match &place.kind {
        ExprKind::Index(base, _) => {
            let (root, depth) = root_of(base);
            (root, depth + 1)
        }
        // Lengths inside a struct are not tracked.
        ExprKind::Field(base, _) => (root_of(base).0, usize::MAX / 2),
        _ => (place, 0),
    }
}

impl ExprKind {
    fn same_place(&self, other: &ExprKind) -> bool {
        match (self, other) {
            (ExprKind::Local(a), ExprKind::Local(b)) => a == b,
            (ExprKind::Member(a), ExprKind::Member(b)) => a == b,
            _ => false,
        }
    }
}
