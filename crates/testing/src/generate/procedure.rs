//! Procedures of the program, and the helpers every program has.

use super::scope::Scope;
use super::{Generator, Manner};
use crate::tree::*;
use std::rc::Rc;

impl Generator {
    /// Procedures that print and convert reals only where the result is specified.
    pub(super) fn helpers(&mut self) {
        self.helpers.show_real = self.real_helper("showReal", Type::Void, |real| {
            let shown = Expr::standard(Standard::PrintReal, vec![real], Type::Void);
            let far = Expr::standard(Standard::PrintString, vec![Expr::text("far")], Type::Void);
            (vec![Stmt::Do(shown)], vec![Stmt::Do(far)])
        });
        self.manners[self.helpers.show_real].prints = true;
        self.helpers.to_int = self.real_helper("toInt", Type::Integer, |real| {
            let whole = Expr::standard(Standard::RealToInt, vec![real], Type::Integer);
            let far = Stmt::Return(Some(Expr::integer(-7)));
            (vec![Stmt::Return(Some(whole))], vec![far])
        });
        for (_, ty) in self.program.aliases.clone() {
            if let Type::Procedure(signature) = &ty {
                self.proc_with(signature.clone());
                self.signatures.push(ty);
            }
        }
    }

    /// `if r > -1.0e6 and r < 1.0e6 then … else …`
    fn real_helper(
        &mut self,
        name: &str,
        result: Type,
        branches: impl FnOnce(Expr) -> (Vec<Stmt>, Vec<Stmt>),
    ) -> usize {
        let real = Expr::new(ExprKind::Local(0), Type::Real);
        let bound = |sign: Option<Unary>| {
            let bound = Expr::new(ExprKind::Real("1.0e6".into()), Type::Real);
            match sign {
                Some(op) => Expr::new(ExprKind::Unary(op, Box::new(bound)), Type::Real),
                None => bound,
            }
        };
        let above = Expr::binary(
            Binary::Greater,
            real.clone(),
            bound(Some(Unary::Minus)),
            Type::Bool,
        );
        let below = Expr::binary(Binary::Less, real.clone(), bound(None), Type::Bool);
        let near = Expr::binary(Binary::And, above, below, Type::Bool);
        let (then, otherwise) = branches(real);
        let body = Body {
            locals: vec![Variable {
                name: "r".into(),
                ty: Type::Real,
            }],
            params: 1,
            statements: vec![Stmt::If(near, then, Some(otherwise))],
        };
        let manner = Manner {
            cost: 15,
            reserved: true,
            ..Manner::default()
        };
        self.add_proc(name.into(), result, body, manner)
    }

    pub(super) fn add_proc(
        &mut self,
        name: String,
        result: Type,
        body: Body,
        manner: Manner,
    ) -> usize {
        let index = self.program.procs.len();
        self.program.procs.push(Proc {
            name,
            owner: manner.owner,
            result,
            body,
        });
        self.manners.push(manner);
        if manner.owner.is_none() {
            self.program.order.push(Item::Proc(index));
        }
        index
    }

    /// A procedure that can be a value of this signature.
    fn proc_with(&mut self, signature: Rc<Signature>) {
        self.scope = Scope::body(None);
        self.scope.enter();
        for ty in &signature.params {
            let name = self.variable_name();
            self.scope.declare(name, ty.clone());
            self.scope.params += 1;
        }
        self.scope.cost = super::scope::DEAR - 100;
        let value = self.fitting(&signature.result, 2);
        self.scope.cost = 60;
        self.finish_proc("pick", signature.result.clone(), Vec::new(), Some(value));
    }

    pub(super) fn top_level_proc(&mut self) {
        self.scope = Scope::body(None);
        self.scope.may_raise = self.random.chance(30);
        self.scope.may_print = self.random.chance(50);
        self.random_proc("work");
    }

    /// A procedure of the component being generated. Its members are in sight.
    pub(super) fn member_proc(&mut self, members: &Scope) -> usize {
        let owner = members.owner;
        self.scope = Scope::body(owner);
        self.scope.visible.clone_from(&members.visible);
        self.scope.may_raise = self.random.chance(30);
        self.scope.may_print = members.may_print;
        self.random_proc("task")
    }

    fn random_proc(&mut self, stem: &str) -> usize {
        self.scope.enter();
        for _ in 0..self.random.below(4) {
            let ty = self.param_type();
            let name = self.variable_name();
            self.scope.declare(name, ty);
            self.scope.params += 1;
        }
        let result = if self.random.chance(70) {
            self.value_type(1)
        } else {
            Type::Void
        };
        self.scope.result = Some(result.clone());
        let count = 1 + self.random.below(6);
        let statements = self.some_statements(count);
        let value = (result != Type::Void).then(|| self.fitting(&result, 2));
        self.finish_proc(stem, result, statements, value)
    }

    fn param_type(&mut self) -> Type {
        if self.random.chance(12)
            && let Some(ty) = self.procedure_type()
        {
            return ty;
        }
        self.value_type(2)
    }

    /// Finishes a procedure of the current scope. Its parameters are the first locals declared.
    pub(super) fn finish_proc(
        &mut self,
        stem: &str,
        result: Type,
        mut statements: Vec<Stmt>,
        value: Option<Expr>,
    ) -> usize {
        if let Some(value) = value {
            statements.push(Stmt::Return(Some(value)));
        }
        let scope = std::mem::take(&mut self.scope);
        let name = self.unique(stem);
        let manner = Manner {
            cost: scope.cost,
            raises: scope.raises,
            prints: scope.prints,
            owner: scope.owner,
            reserved: false,
        };
        let body = Body {
            params: scope.params,
            locals: scope.locals,
            statements,
        };
        self.add_proc(name, result, body, manner)
    }
}
