//! Components: the parts that all of them have, whatever their purpose.

use super::Generator;
use super::scope::{Scope, Storage, Visible};
use crate::tree::*;

/// A component being built. No other is begun before it is finished.
pub(super) struct Draft {
    pub(super) index: usize,
    name: String,
    pub(super) ports: Vec<Port>,
    members: Vec<Member>,
    constructors: Vec<Body>,
    /// Members and ports in sight.
    pub(super) sight: Scope,
}

impl Generator {
    /// Begins a component. With `prints`, its procedures and behaviour may print, which is allowed
    /// only where nothing else prints meanwhile.
    pub(super) fn draft(&mut self, stem: &str, ports: Vec<Port>, prints: bool) -> Draft {
        let index = self.program.components.len();
        let mut sight = Scope::body(Some(index));
        sight.may_print = prints;
        for (number, port) in ports.iter().enumerate() {
            sight.visible.push(Visible {
                storage: Storage::Port(number),
                name: port.name.clone(),
                ty: port.ty(),
                assignable: false,
                lengths: Vec::new(),
                below: None,
                // As if two scopes in: the pattern that uses it must not find it hidden.
                level: 2,
            });
        }
        Draft {
            index,
            name: self.unique(stem),
            ports,
            members: Vec::new(),
            constructors: Vec::new(),
            sight,
        }
    }

    pub(super) fn port(&mut self, stem: &str, outgoing: bool, payload: Type) -> Port {
        Port {
            name: self.unique(stem),
            outgoing,
            payload,
        }
    }

    /// Opens the scope of a body of the component.
    pub(super) fn open_body(&mut self, draft: &Draft, prints: bool) {
        self.scope = Scope::body(draft.sight.owner);
        self.scope.visible.clone_from(&draft.sight.visible);
        self.scope.may_print = prints && draft.sight.may_print;
        self.scope.enter();
    }

    pub(super) fn close_body(&mut self, statements: Vec<Stmt>) -> (Body, u64) {
        let scope = std::mem::take(&mut self.scope);
        let body = Body {
            params: scope.params,
            locals: scope.locals,
            statements,
        };
        (body, scope.cost)
    }

    /// Adds a member variable; returns its place.
    pub(super) fn member_variable(&mut self, draft: &mut Draft, ty: Type, init: Expr) -> Expr {
        let locals = std::mem::take(&mut self.scope.locals);
        let name = self.unique("m");
        let number = draft.members.len();
        draft.members.push(Member::Variable {
            variable: Variable {
                name: name.clone(),
                ty: ty.clone(),
            },
            init,
            locals,
        });
        let visible = Visible {
            storage: Storage::Member(number),
            name,
            ty,
            assignable: true,
            lengths: Vec::new(),
            below: None,
            level: 0,
        };
        let place = visible.expr();
        draft.sight.visible.push(visible);
        place
    }

    /// A member for the generator's own patterns, out of sight.
    pub(super) fn hidden_member(&mut self, draft: &mut Draft, ty: Type, init: Expr) -> Expr {
        self.scope = Scope::default();
        let place = self.member_variable(draft, ty, init);
        draft.sight.visible.pop();
        place
    }

    /// Some member variables and procedures.
    pub(super) fn random_members(&mut self, draft: &mut Draft) {
        for _ in 0..self.random.below(5) {
            if self.random.chance(30) {
                let proc = self.member_proc(&draft.sight);
                draft.members.push(Member::Proc(proc));
                continue;
            }
            self.open_body(draft, false);
            let ty = self.value_type(2);
            let mut lengths = Vec::new();
            let init = if matches!(ty, Type::Array(_)) {
                lengths = self.lengths(&ty);
                self.array_of(&ty, lengths.clone(), 2)
            } else {
                self.expr(&ty, 2)
            };
            self.member_variable(draft, ty, init);
            let newest = draft.sight.visible.last_mut();
            newest.expect("a member was declared").lengths = lengths;
        }
        if self.random.chance(25) {
            self.recursive_proc(draft);
        }
    }

    /// Adds a procedure already made for this component.
    pub(super) fn add_member_proc(&mut self, draft: &mut Draft, proc: usize) {
        draft.members.push(Member::Proc(proc));
    }

    /// A procedure that recurses through a forward type: the inner call names the type.
    fn recursive_proc(&mut self, draft: &mut Draft) {
        let other = self.scalar();
        self.open_body(draft, true);
        let depth = self.scope.declare("depth".into(), Type::Integer);
        self.scope.newest().assignable = false;
        let name = self.variable_name();
        self.scope.declare(name, other.clone());
        self.scope.params = 2;
        self.scope.result = Some(Type::Integer);
        self.scope.cost = super::scope::DEAR / 2;
        let mut statements = self.some_statements(2);
        let rest = self.fitting(&Type::Integer, 2);
        let last = self.fitting(&Type::Integer, 1);
        let again = self.fitting(&other, 1);
        let proc = self.program.procs.len();
        let depth = Expr::new(ExprKind::Local(depth), Type::Integer);
        let less = Expr::binary(
            Binary::Subtract,
            depth.clone(),
            Expr::integer(1),
            Type::Integer,
        );
        let call = Expr::new(ExprKind::Call(proc, vec![less, again]), Type::Integer);
        let more = Expr::binary(Binary::Greater, depth, Expr::integer(0), Type::Bool);
        let sum = Expr::binary(Binary::Add, rest, call, Type::Integer);
        statements.push(Stmt::If(more, vec![Stmt::Return(Some(sum))], None));
        self.finish_proc("visit", Type::Integer, statements, Some(last));
        let manner = self.manners[proc];
        self.manners[proc].reserved = true;
        // The forward type has the procedure's name.
        let signature = Signature {
            params: vec![Type::Integer, other.clone()],
            result: Type::Integer,
        };
        let name = self.program.procs[proc].name.clone();
        self.name_type(name, Type::Procedure(signature.into()));
        draft.members.push(Member::Proc(proc));
        self.recursion_entry(draft, proc, other, manner.cost);
    }

    /// A procedure that starts the recursion at a small depth, callable from anywhere.
    fn recursion_entry(&mut self, draft: &mut Draft, proc: usize, other: Type, cost: u64) {
        self.open_body(draft, true);
        let name = self.variable_name();
        let param = self.scope.declare(name, other.clone());
        self.scope.params = 1;
        let depth = self.random.between(0, 4) as i32;
        let args = vec![
            Expr::integer(depth),
            Expr::new(ExprKind::Local(param), other),
        ];
        let call = Expr::new(ExprKind::Call(proc, args), Type::Integer);
        self.scope.cost = (cost + 1).saturating_sub(super::scope::DEAR / 2) * (depth as u64 + 1);
        self.scope.prints = self.manners[proc].prints;
        let entry = self.finish_proc("enter", Type::Integer, Vec::new(), Some(call));
        draft.members.push(Member::Proc(entry));
    }

    /// One to three constructors with different parameter types.
    pub(super) fn random_constructors(&mut self, draft: &mut Draft) {
        let count = 1 + self.random.below(3);
        let mut known: Vec<Vec<Type>> = Vec::new();
        for _ in 0..count {
            let params: Vec<Type> = (0..self.random.below(3)).map(|_| self.scalar()).collect();
            if known.contains(&params) {
                continue;
            }
            self.open_body(draft, false);
            for ty in &params {
                let name = self.unique("p");
                self.scope.declare(name, ty.clone());
            }
            self.scope.params = params.len();
            let count = self.random.below(3);
            let statements = self.some_statements(count);
            let (body, _) = self.close_body(statements);
            draft.constructors.push(body);
            known.push(params);
        }
    }

    /// A constructor without parameters.
    pub(super) fn plain_constructor(&mut self, draft: &mut Draft) {
        draft.constructors.push(Body::default());
    }

    pub(super) fn finish(&mut self, draft: Draft, behaviour: Body) -> usize {
        let ports = draft.ports;
        // Sometimes two interfaces.
        let split = if ports.len() > 1 && self.random.chance(30) {
            1 + self.random.below(ports.len() - 1)
        } else {
            ports.len()
        };
        self.program.components.push(Component {
            name: draft.name,
            ports,
            split,
            members: draft.members,
            constructors: draft.constructors,
            behaviour,
        });
        self.program.order.push(Item::Component(draft.index));
        draft.index
    }

    /// `new C(…)` with arguments for one of its constructors; the language may choose another.
    pub(super) fn creation(&mut self, component: usize) -> Expr {
        let params: Vec<Vec<Type>> = self.program.components[component]
            .constructors
            .iter()
            .map(|body| {
                body.locals[..body.params]
                    .iter()
                    .map(|l| l.ty.clone())
                    .collect()
            })
            .collect();
        let wanted = self.random.pick(&params).clone();
        let args: Vec<Expr> = wanted.iter().map(|ty| self.fitting(ty, 1)).collect();
        let types: Vec<Type> = args.iter().map(|arg| arg.ty.clone()).collect();
        let chosen = choose(&params, &types);
        let kind = ExprKind::NewComponent(component, chosen, args);
        Expr::new(kind, Type::Component(component))
    }
}

/// Chooses an exact match first, then the first that fits by widening.
fn choose(constructors: &[Vec<Type>], args: &[Type]) -> usize {
    let exact = constructors.iter().position(|params| params == args);
    let fits = |params: &Vec<Type>| {
        params.len() == args.len() && params.iter().zip(args).all(|(to, from)| widens(from, to))
    };
    exact
        .or_else(|| constructors.iter().position(fits))
        .expect("the arguments were made for one of them")
}

fn widens(from: &Type, to: &Type) -> bool {
    let numbers = from.is_numeric() && from.rank() < to.rank();
    // An unsigned value never becomes an integer implicitly.
    from == to || (numbers && !(*from == Type::Unsigned && *to == Type::Integer))
}

impl Port {
    pub(super) fn ty(&self) -> Type {
        if self.outgoing {
            Type::output(self.payload.clone())
        } else {
            Type::input(self.payload.clone())
        }
    }
}
