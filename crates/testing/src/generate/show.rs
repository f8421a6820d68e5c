//! Statements that print.

use super::Generator;
use crate::tree::*;

impl Generator {
    pub(super) fn show_text(&mut self, text: &str) -> Vec<Stmt> {
        self.scope.prints = true;
        vec![print(Standard::PrintString, Expr::text(text))]
    }

    /// Prints a value and a blank or a line break. `place` is evaluated several times if its type
    /// has parts.
    pub(super) fn show(&mut self, value: Expr) -> Vec<Stmt> {
        self.scope.prints = true;
        let mut statements = self.show_bare(value, 0);
        let separator = if self.random.chance(70) { "\n" } else { " " };
        statements.extend(self.show_text(separator));
        statements
    }

    fn show_bare(&mut self, value: Expr, depth: u32) -> Vec<Stmt> {
        self.scope.spend(4);
        match value.ty.clone() {
            Type::Integer | Type::Unsigned | Type::Byte | Type::Bool | Type::Text => {
                vec![self.show_scalar(value)]
            }
            Type::Real => {
                let call = ExprKind::Call(self.helpers.show_real, vec![value]);
                vec![Stmt::Do(Expr::new(call, Type::Void))]
            }
            Type::Enum(index) => self.show_label(value, index),
            Type::Struct(index) if value.is_place() && depth < 4 => {
                let fields = self.program.structs[index].fields.clone();
                let mut statements = Vec::new();
                for (number, (_, ty)) in fields.into_iter().enumerate() {
                    let field = value.clone().field(number, ty);
                    statements.extend(self.show_bare(field, depth + 1));
                    statements.extend(self.show_text("."));
                }
                statements
            }
            Type::Array(_) if value.is_place() && depth < 4 => self.show_array(value, depth),
            Type::Any => self.show_box(value, depth),
            _ => self.show_text("?"),
        }
    }

    fn show_scalar(&mut self, value: Expr) -> Stmt {
        let boxed = self.random.chance(25) || value.ty == Type::Bool;
        if boxed {
            let boxed = Expr::new(ExprKind::Box(Box::new(value)), Type::Any);
            return print(Standard::PrintAny, boxed);
        }
        let standard = match value.ty {
            Type::Integer => Standard::PrintInt,
            Type::Unsigned => Standard::PrintUnsignedInt,
            Type::Byte => Standard::PrintByte,
            _ => Standard::PrintString,
        };
        print(standard, value)
    }

    /// An enum's value by its label's number.
    fn show_label(&mut self, value: Expr, index: usize) -> Vec<Stmt> {
        let ty = Type::Enum(index);
        let labels = self.program.enums[index].labels.len();
        let arms = (1..labels)
            .map(|label| {
                let label_expr = Expr::new(ExprKind::Label(index, label), ty.clone());
                (vec![label_expr], self.show_text(&format!("#{label}")))
            })
            .collect::<Vec<_>>();
        let default = self.show_text("#0");
        if arms.is_empty() {
            return default;
        }
        vec![Stmt::Case(value, arms, default)]
    }

    fn show_array(&mut self, array: Expr, depth: u32) -> Vec<Stmt> {
        self.scope.enter();
        let name = self.unique("k");
        let variable = self.scope.declare(name, Type::Integer);
        let counter = Expr::new(ExprKind::Local(variable), Type::Integer);
        let outer = self.scope.multiplicity;
        self.scope.multiplicity *= 4;
        let element = array.clone().element(counter);
        let mut body = self.show_bare(element, depth + 1);
        body.extend(self.show_text(","));
        self.scope.multiplicity = outer;
        self.scope.leave();
        let to = Expr::binary(
            Binary::Subtract,
            array.length(),
            Expr::integer(1),
            Type::Integer,
        );
        vec![Stmt::For {
            variable,
            from: Expr::integer(0),
            to,
            step: 1,
            body,
        }]
    }

    fn show_box(&mut self, value: Expr, depth: u32) -> Vec<Stmt> {
        let name = self.unique("b");
        let mut types = vec![Type::Integer, Type::Text];
        for _ in 0..self.random.below(3) {
            // A box inside a box shows only scalars, or the statements would never end.
            let ty = if depth == 0 {
                self.value_type(1)
            } else {
                self.scalar()
            };
            if ty != Type::Any && !types.contains(&ty) {
                types.push(ty);
            }
        }
        let arms = types
            .into_iter()
            .map(|ty| {
                self.scope.enter();
                let variable = self.scope.declare(name.clone(), ty.clone());
                let content = Expr::new(ExprKind::Local(variable), ty);
                let body = self.show_bare(content, depth + 2);
                self.scope.leave();
                (variable, body)
            })
            .collect();
        let default = self.show_text("boxed");
        vec![Stmt::Project(value, arms, default)]
    }

    /// Prints every variable in sight.
    pub(super) fn show_all(&mut self) -> Vec<Stmt> {
        let places: Vec<Expr> = self.scope.in_sight().map(|v| v.expr()).collect();
        let mut statements = Vec::new();
        for place in places {
            let silent = matches!(
                place.ty,
                Type::In(_) | Type::Out(_) | Type::Component(_) | Type::Procedure(_)
            );
            if !silent {
                statements.extend(self.show(place));
            }
        }
        statements
    }
}

fn print(standard: Standard, value: Expr) -> Stmt {
    Stmt::Do(Expr::standard(standard, vec![value], Type::Void))
}
