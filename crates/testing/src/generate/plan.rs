//! Patterns of communication whose output does not depend on the schedule.

use super::Generator;
use super::servers::Servers;
use super::streams::Streams;
use crate::tree::*;

/// Components of one pattern, and their use by the main sequence.
pub(super) enum PatternPlan {
    /// One thread of control moves between them: all may print.
    Servers(Servers),
    /// They run side by side: only the main sequence prints.
    Streams(Streams),
}

impl Generator {
    pub(super) fn plan(&mut self, size: usize) -> PatternPlan {
        let outer = std::mem::take(&mut self.scope);
        let plan = if self.random.chance(60) {
            PatternPlan::Servers(self.servers(size))
        } else {
            PatternPlan::Streams(self.streams(size))
        };
        self.scope = outer;
        plan
    }

    /// The statements of the main sequence that carry out a plan.
    pub(super) fn stage(&mut self, plan: PatternPlan) -> Vec<Stmt> {
        match plan {
            PatternPlan::Servers(servers) => self.use_servers(&servers),
            PatternPlan::Streams(streams) => self.use_streams(&streams),
        }
    }

    /// Declares a local with this value.
    pub(super) fn bind(&mut self, stem: &str, value: Expr, statements: &mut Vec<Stmt>) -> Expr {
        let name = self.unique(stem);
        let ty = value.ty.clone();
        let variable = self.scope.declare(name, ty.clone());
        // Patterns rely on the values they bound.
        self.scope.newest().assignable = false;
        statements.push(Stmt::Let(variable, value));
        Expr::new(ExprKind::Local(variable), ty)
    }

    /// A new half-channel joined to a port of `component`, with the opposite direction.
    pub(super) fn join(
        &mut self,
        component: &Expr,
        port: usize,
        statements: &mut Vec<Stmt>,
    ) -> Expr {
        let end = self.port_of(component, port);
        let ty = match &end.ty {
            Type::In(payload) => Type::Out(payload.clone()),
            Type::Out(payload) => Type::In(payload.clone()),
            _ => unreachable!("a port is a channel"),
        };
        let channel = self.bind("ch", Expr::new(ExprKind::NewChannel, ty), statements);
        statements.push(self.connect(channel.clone(), end.clone()));
        if self.random.chance(15) {
            // A connection that already exists: no effect.
            statements.push(self.connect(channel.clone(), end));
        }
        channel
    }

    pub(super) fn port_of(&self, component: &Expr, port: usize) -> Expr {
        let Type::Component(index) = component.ty else {
            unreachable!("only components have ports")
        };
        let ty = self.program.components[index].ports[port].ty();
        Expr::new(ExprKind::PortOf(Box::new(component.clone()), port), ty)
    }

    /// `connect`, in either textual order.
    pub(super) fn connect(&mut self, a: Expr, b: Expr) -> Stmt {
        if self.random.chance(50) {
            Stmt::Connect(a, b)
        } else {
            Stmt::Connect(b, a)
        }
    }

    /// A payload: no procedures, no channels.
    pub(super) fn payload(&mut self) -> Type {
        self.value_type(2)
    }
}
