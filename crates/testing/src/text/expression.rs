//! Printer of expressions and clauses.

use super::Printer;
use crate::tree::*;

/// Binding strength of a unary operand: above every binary operator.
const UNARY: u8 = 8;

impl<'p> Printer<'p> {
    /// Prints an expression where any clause may stand.
    pub(super) fn clause(&mut self, expr: &'p Expr) {
        match &expr.kind {
            ExprKind::If(condition, then, otherwise) => {
                self.push("if ");
                self.clause(condition);
                self.push(" then ");
                self.value_branch(then);
                if let Some(otherwise) = otherwise {
                    self.push(" else ");
                    self.value_branch(otherwise);
                }
            }
            ExprKind::Case(scrutinee, arms, default) => {
                self.push("case ");
                self.expr(scrutinee, 0);
                self.push(" of");
                self.indent += 1;
                for (labels, value) in arms {
                    self.line();
                    self.labels(labels);
                    self.value_branch(value);
                }
                self.line();
                self.push("default : ");
                self.value_branch(default);
                self.indent -= 1;
            }
            ExprKind::Project(scrutinee, arms, default) => {
                self.project_head(scrutinee, arms.first().map_or(0, |arm| arm.0));
                self.indent += 1;
                for (variable, value) in arms {
                    self.line();
                    self.ty(&self.scope.locals[*variable].ty);
                    self.push(" : ");
                    self.value_branch(value);
                }
                self.line();
                self.push("default : ");
                self.value_branch(default);
                self.indent -= 1;
            }
            _ => self.expr(expr, 0),
        }
    }

    pub(super) fn project_head(&mut self, scrutinee: &'p Expr, variable: usize) {
        self.push("project ");
        self.clause(scrutinee);
        let name = &self.scope.locals[variable].name;
        self.push(&format!(" as {name} onto"));
    }

    /// Labels of a `case` arm, with the colon.
    pub(super) fn labels(&mut self, labels: &'p [Expr]) {
        for (index, label) in labels.iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            // Without brackets they would read as a call after the arm before.
            self.primary(label);
        }
        self.push(" : ");
    }

    /// Prints a value of an arm or branch: in braces if it would swallow a following `else` or arm.
    fn value_branch(&mut self, expr: &'p Expr) {
        if expr.is_choice() || self.random.chance(30) {
            self.value_block(&[], expr);
        } else {
            self.clause(expr);
        }
    }

    fn value_block(&mut self, statements: &'p [Stmt], value: &'p Expr) {
        let brackets = std::mem::take(&mut self.brackets);
        self.push("{");
        self.indent += 1;
        for statement in statements {
            self.line();
            self.statement(statement);
        }
        if statements.is_empty() && self.random.chance(60) {
            self.push(" ");
        } else {
            self.line();
        }
        self.clause(value);
        self.indent -= 1;
        self.push(" }");
        self.brackets = brackets;
    }

    /// Prints an expression whose operator must bind at least as tightly as `floor`.
    pub(super) fn expr(&mut self, expr: &'p Expr, floor: u8) {
        match &expr.kind {
            ExprKind::Binary(op, left, right) => {
                let precedence = op.precedence();
                let bracket = precedence < floor || self.random.chance(8);
                self.bracketed(bracket, |printer| {
                    printer.operand(left, precedence);
                    printer.push(" ");
                    printer.push(op.text());
                    // A line may end in an operator.
                    if printer.random.chance(3) {
                        printer.line();
                    } else {
                        printer.push(" ");
                    }
                    printer.operand(right, precedence + 1);
                });
            }
            ExprKind::Unary(op, operand) => {
                self.push(match op {
                    Unary::Minus => "-",
                    Unary::Not => "!",
                    Unary::Complement => "~",
                });
                // Two minus signs in a row are legal; a blank keeps them apart for the reader.
                if matches!(operand.kind, ExprKind::Unary(..)) {
                    self.push(" ");
                }
                self.expr(operand, UNARY);
            }
            ExprKind::If(..) | ExprKind::Case(..) | ExprKind::Project(..) => {
                self.bracketed(true, |printer| printer.clause(expr));
            }
            _ => {
                let bracket = self.random.chance(2) && !expr.is_place();
                self.bracketed(bracket, |printer| printer.primary(expr));
            }
        }
    }

    /// Prints an operand: an array's initialiser would swallow the operator that follows.
    fn operand(&mut self, expr: &'p Expr, floor: u8) {
        let open = matches!(expr.kind, ExprKind::NewArray(..));
        self.bracketed(open, |printer| printer.expr(expr, floor));
    }

    fn bracketed(&mut self, brackets: bool, inner: impl FnOnce(&mut Self)) {
        if !brackets {
            return inner(self);
        }
        self.push("(");
        self.brackets += 1;
        inner(self);
        self.brackets -= 1;
        self.push(")");
    }

    pub(super) fn primary(&mut self, expr: &'p Expr) {
        match &expr.kind {
            // The least integer has no literal: its magnitude is too large.
            ExprKind::Integer(i32::MIN) => self.push("(-2147483647 - 1)"),
            ExprKind::Integer(value) => self.push(&value.to_string()),
            ExprKind::Unsigned(value) => self.push(&format!("${value}")),
            ExprKind::Byte(value) => self.push(&format!("#{value}")),
            ExprKind::Real(text) => self.push(text),
            ExprKind::Bool(value) => self.push(if *value { "true" } else { "false" }),
            ExprKind::Text(text) => self.text(text),
            ExprKind::Label(ty, label) => self.push(&self.program.enums[*ty].labels[*label]),
            ExprKind::Local(index) => self.push(&self.scope.locals[*index].name),
            ExprKind::Member(index) => {
                let name = self.member_name(*index);
                self.push(name);
            }
            ExprKind::Port(index) => {
                let component = self.scope.component.expect("ports are seen from inside");
                self.push(&component.ports[*index].name);
            }
            ExprKind::Procedure(index) => self.push(&self.program.procs[*index].name),
            ExprKind::Length(base) => {
                self.primary(base);
                self.push(".length");
            }
            ExprKind::Index(base, index) => self.index(base, index),
            ExprKind::Field(base, field) => {
                self.primary(base);
                let Type::Struct(ty) = base.ty else {
                    unreachable!("only structs have fields")
                };
                self.push(".");
                self.push(&self.program.structs[ty].fields[*field].0);
            }
            ExprKind::PortOf(base, port) => {
                self.primary(base);
                let Type::Component(ty) = base.ty else {
                    unreachable!("only components have ports")
                };
                self.push(".");
                self.push(&self.program.components[ty].ports[*port].name);
            }
            ExprKind::Call(proc, args) => {
                self.push(&self.program.procs[*proc].name);
                self.args(args);
            }
            ExprKind::CallValue(callee, args) => {
                self.primary(callee);
                self.args(args);
            }
            ExprKind::Standard(standard, args) => {
                self.push(standard.name());
                self.args(args);
            }
            ExprKind::Box(value) => {
                self.push("any");
                self.args(std::slice::from_ref(value));
            }
            ExprKind::NewArray(lengths, init) => self.new_array(&expr.ty, lengths, init),
            ExprKind::NewStruct(args) => {
                self.push("new ");
                self.ty_name(&expr.ty);
                self.args(args);
            }
            ExprKind::NewChannel => {
                self.push("new ");
                self.ty(&expr.ty);
            }
            ExprKind::NewComponent(component, _, args) => {
                let name = &self.program.components[*component].name;
                self.push(&format!("new {name}"));
                self.args(args);
            }
            ExprKind::Block(statements, value) => self.value_block(statements, value),
            ExprKind::Try(value, handlers) => self.try_value(value, handlers),
            ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::If(..)
            | ExprKind::Case(..)
            | ExprKind::Project(..) => self.bracketed(true, |printer| printer.clause(expr)),
        }
    }

    /// `a[i][j]` or `a[i, j]`.
    fn index(&mut self, base: &'p Expr, index: &'p Expr) {
        self.primary(base);
        let joins = matches!(base.kind, ExprKind::Index(..)) && self.random.chance(40);
        if joins && self.out.ends_with(']') {
            self.out.pop();
            self.push(", ");
        } else {
            self.push("[");
        }
        self.brackets += 1;
        self.clause(index);
        self.brackets -= 1;
        self.push("]");
    }

    fn args(&mut self, args: &'p [Expr]) {
        self.push("(");
        self.brackets += 1;
        for (index, arg) in args.iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            self.clause(arg);
        }
        self.brackets -= 1;
        self.push(")");
    }

    fn new_array(&mut self, ty: &Type, lengths: &[u32], init: &'p Expr) {
        let mut element = ty;
        for _ in lengths {
            let Type::Array(inner) = element else {
                unreachable!("as many dimensions as lengths")
            };
            element = inner;
        }
        self.push("new ");
        self.element_ty(element);
        for length in lengths {
            self.push(&format!("[{length}]"));
        }
        self.push(" of ");
        self.expr(init, 0);
    }

    /// Prints the element type of a creation as a single word, since brackets after it are lengths.
    fn element_ty(&mut self, ty: &Type) {
        match ty {
            Type::Array(_) | Type::In(_) | Type::Out(_) | Type::Procedure(_) => self.ty_name(ty),
            _ => self.ty(ty),
        }
    }

    fn ty_name(&mut self, ty: &Type) {
        let aliases = &self.program.aliases[..self.aliases];
        let alias = aliases.iter().find(|(_, target)| target == ty);
        match (alias, ty) {
            (Some((name, _)), _) => self.push(name),
            (None, Type::Struct(index)) => self.push(&self.program.structs[*index].name),
            _ => unreachable!("a type without a name: {ty:?}"),
        }
    }

    fn try_value(&mut self, value: &'p Expr, handlers: &'p [(Option<usize>, Expr)]) {
        let brackets = std::mem::take(&mut self.brackets);
        self.push("{ try ");
        self.value_block(&[], value);
        for (label, handler) in handlers {
            self.except(*label);
            self.value_block(&[], handler);
        }
        self.push(" }");
        self.brackets = brackets;
    }

    pub(super) fn except(&mut self, label: Option<usize>) {
        self.push(" except ");
        if let Some(label) = label {
            self.push(EXCEPTIONS[label]);
            self.push(" ");
        }
    }

    fn text(&mut self, text: &str) {
        let mut quoted = String::from("\"");
        for character in text.chars() {
            match character {
                '\n' => quoted.push_str("\\n"),
                '\t' => quoted.push_str("\\t"),
                '\r' => quoted.push_str("\\r"),
                '"' => quoted.push_str("\\\""),
                '\\' => quoted.push_str("\\\\"),
                _ => quoted.push(character),
            }
        }
        quoted.push('"');
        self.push(&quoted);
    }

    pub(super) fn member_name(&self, index: usize) -> &'p str {
        let component = self.scope.component.expect("members are seen from inside");
        match &component.members[index] {
            Member::Variable { variable, .. } => &variable.name,
            Member::Proc(_) => unreachable!("a procedure is no variable"),
        }
    }
}

impl Expr {
    /// Whether it is a clause whose end only the following token shows.
    pub fn is_choice(&self) -> bool {
        matches!(
            self.kind,
            ExprKind::If(..) | ExprKind::Case(..) | ExprKind::Project(..)
        )
    }

    /// Whether `.`, `[` or `:=` may follow it.
    pub fn is_place(&self) -> bool {
        matches!(
            self.kind,
            ExprKind::Local(_)
                | ExprKind::Member(_)
                | ExprKind::Port(_)
                | ExprKind::Index(..)
                | ExprKind::Field(..)
                | ExprKind::PortOf(..)
                | ExprKind::Call(..)
                | ExprKind::CallValue(..)
        )
    }
}
