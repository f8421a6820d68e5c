//! The promises of `hearth_lang::tree` about every typed tree, checked.

use hearth_lang::tree::*;
use hearth_lang::types::{Type, TypeId};

/// Panics where a promise is broken.
pub(crate) fn validate(program: &Program) {
    let nowhere = Walk {
        program,
        body: &program.main,
        component: None,
    };
    nowhere.body(&program.main, false);
    for proc in program.procs.iter().filter(|proc| proc.used) {
        let component = proc.owner.map(|id| &program.components[id.index()]);
        match &proc.code {
            ProcCode::Body(body) => Walk {
                component,
                ..nowhere
            }
            .body(body, false),
            ProcCode::Native { params, .. } => nowhere.native(proc, params),
        }
    }
    for global in program.globals.iter().filter(|global| global.used) {
        nowhere.body(&global.init, true);
        assert_eq!(global.init.block.ty, global.ty);
    }
    for component in &program.components {
        let inside = Walk {
            component: Some(component),
            ..nowhere
        };
        inside.component(component);
    }
}

#[derive(Clone, Copy)]
struct Walk<'p> {
    program: &'p Program,
    body: &'p Body,
    component: Option<&'p Component>,
}

impl<'p> Walk<'p> {
    fn ty(&self, ty: TypeId) -> &'p Type {
        self.program.types.get(ty)
    }

    fn native(&self, proc: &Proc, params: &[TypeId]) {
        let Type::Proc { params: listed, .. } = self.ty(proc.ty) else {
            panic!("not a procedure type");
        };
        assert_eq!(&listed[..], params);
        assert!(proc.owner.is_none());
    }

    fn component(&self, component: &'p Component) {
        let Type::Component(ports) = self.ty(component.ty) else {
            panic!("not a component type");
        };
        assert_eq!(ports.len(), component.channels.len());
        for channel in &component.channels {
            assert!(ports.iter().any(|port| port.name == channel.name
                && port.direction == channel.direction
                && port.payload == channel.payload));
        }
        for member in &component.members {
            self.body(&member.init, true);
            assert_eq!(member.init.block.ty, member.ty);
        }
        assert!(!component.constructors.is_empty());
        for body in component.constructors.iter().chain([&component.behaviour]) {
            self.body(body, false);
        }
    }

    fn body(&self, body: &'p Body, value: bool) {
        assert!(body.params <= body.locals.len());
        for local in &body.locals {
            assert!(is_value(local.ty), "{local:?}");
        }
        assert_eq!(is_value(body.block.ty), value, "{:?}", body.block);
        Walk { body, ..*self }.expr(&body.block);
    }

    /// The source fits the target without conversion.
    fn fits(&self, source: TypeId, target: TypeId) -> bool {
        match (self.ty(source), self.ty(target)) {
            (Type::Component(offers), Type::Component(asks)) => {
                asks.iter().all(|ask| offers.contains(ask))
            }
            _ => source == target,
        }
    }

    fn all(&self, exprs: &[Expr]) {
        exprs.iter().for_each(|expr| self.expr(expr));
    }

    fn branch(&self, whole: TypeId, branch: &Expr) {
        self.expr(branch);
        assert!(
            branch.ty == whole || branch.ty == TypeId::NEVER,
            "{branch:?} in {whole:?}"
        );
    }

    fn expr(&self, e: &Expr) {
        use ExprKind as K;
        assert_ne!(e.ty, TypeId::ERROR, "{e:?}");
        let ty = e.ty;
        match &e.kind {
            K::Error => panic!("{e:?}"),
            K::Int(_) => assert!(number(ty)),
            K::Real(_) => assert_eq!(ty, TypeId::REAL),
            K::Bool(_) => assert_eq!(ty, TypeId::BOOL),
            K::String(_) => assert_eq!(ty, TypeId::STRING),
            K::Label(at) => {
                assert!(matches!(self.ty(ty), Type::Enum(l) if (*at as usize) < l.len()))
            }
            K::Local(id) => assert_eq!(self.body.locals[id.index()].ty, ty),
            K::Member(id) => {
                assert_eq!(self.component.unwrap().members[id.index()].ty, ty);
            }
            K::Port(id) => {
                let channel = &self.component.unwrap().channels[id.index()];
                assert_eq!(
                    self.ty(ty),
                    &Type::Channel(channel.direction, channel.payload)
                );
            }
            K::Global(id) => {
                let global = &self.program.globals[id.index()];
                assert!(global.used && global.ty == ty);
            }
            K::Proc(id) => {
                let proc = &self.program.procs[id.index()];
                assert!(proc.used && proc.ty == ty);
            }
            K::Convert(inner) => {
                self.expr(inner);
                assert!(number(inner.ty) && number(ty) && inner.ty != ty);
            }
            K::Unary(_, inner) => {
                self.expr(inner);
                assert_eq!(inner.ty, ty);
            }
            K::Binary(op, a, b) => self.binary(*op, a, b, ty),
            K::Chain(parts) => {
                self.all(parts);
                assert!(parts.len() > 1 && parts[parts.len() - 1].ty == ty);
                for pair in parts.windows(2) {
                    assert_eq!(
                        carried(&pair[1]).map(|carried| carried.ty),
                        Some(pair[0].ty)
                    );
                }
                assert!(carried(&parts[0]).is_none());
            }
            K::Carried => {}
            K::Length(inner) => {
                self.expr(inner);
                assert_eq!(ty, TypeId::INTEGER);
            }
            K::Index(base, index) => {
                self.expr(base);
                self.expr(index);
                assert_eq!(self.ty(base.ty), &Type::Array(ty));
                assert!(number(index.ty) && index.ty != TypeId::REAL);
            }
            K::Field(base, at) => {
                self.expr(base);
                assert!(matches!(self.ty(base.ty), Type::Struct(f) if f[*at as usize].1 == ty));
            }
            K::PortOf(base, name) => {
                self.expr(base);
                let Type::Component(ports) = self.ty(base.ty) else {
                    panic!("{e:?}");
                };
                assert!(ports.iter().any(|port| port.name == *name
                    && self.ty(ty) == &Type::Channel(port.direction, port.payload)));
            }
            K::Call(callee, args) => self.call(callee, args, ty),
            K::Box(inner) => {
                self.expr(inner);
                assert!(is_value(inner.ty) && ty == TypeId::ANY);
            }
            K::NewArray { lengths, init } => {
                self.expr(init);
                let mut element = ty;
                for length in lengths {
                    assert!(*length > 0);
                    let Type::Array(inner) = self.ty(element) else {
                        panic!("{e:?}");
                    };
                    element = *inner;
                }
                assert!(self.fits(init.ty, element));
            }
            K::NewStruct(values) => {
                self.all(values);
                let Type::Struct(fields) = self.ty(ty) else {
                    panic!("{e:?}");
                };
                assert_eq!(fields.len(), values.len());
                for (value, field) in values.iter().zip(fields) {
                    assert!(self.fits(value.ty, field.1));
                }
            }
            K::NewChannel => assert!(matches!(self.ty(ty), Type::Channel(..))),
            K::NewComponent {
                component,
                constructor,
                args,
            } => {
                self.all(args);
                let made = &self.program.components[component.index()];
                let body = &made.constructors[*constructor];
                assert_eq!(body.params, args.len());
                for (arg, param) in args.iter().zip(&body.locals) {
                    assert!(self.fits(arg.ty, param.ty));
                }
            }
            K::Block(items) => {
                self.all(items);
                let (last, before) = match items.split_last() {
                    Some((last, before)) => (last.ty, before),
                    None => (TypeId::VOID, &[][..]),
                };
                assert!(before.iter().all(|item| !is_value(item.ty)));
                assert!(last == ty || (last == TypeId::VOID && ty == TypeId::NEVER));
            }
            K::Let(id, value) => {
                self.expr(value);
                assert_eq!(self.body.locals[id.index()].ty, value.ty);
            }
            K::Assign(place, value) => {
                self.expr(place);
                self.expr(value);
                assert!(matches!(
                    place.kind,
                    K::Local(_)
                        | K::Member(_)
                        | K::Port(_)
                        | K::PortOf(..)
                        | K::Index(..)
                        | K::Field(..)
                ));
                assert!(self.fits(value.ty, place.ty));
            }
            K::If {
                condition,
                then,
                otherwise,
            } => {
                self.condition(condition);
                self.branch(ty, then);
                if let Some(otherwise) = otherwise {
                    self.branch(ty, otherwise);
                }
            }
            K::For {
                variable,
                from,
                to,
                step,
                body,
            } => {
                assert_eq!(self.body.locals[variable.index()].ty, TypeId::INTEGER);
                assert_ne!(*step, 0);
                for bound in [from, to] {
                    self.expr(bound);
                    assert_eq!(bound.ty, TypeId::INTEGER);
                }
                self.branch(TypeId::VOID, body);
            }
            K::Case {
                scrutinee,
                arms,
                default,
            } => {
                self.expr(scrutinee);
                for (labels, body) in arms {
                    for label in labels {
                        self.expr(label);
                        assert!(
                            self.fits(label.ty, scrutinee.ty) || self.fits(scrutinee.ty, label.ty)
                        );
                    }
                    self.branch(ty, body);
                }
                self.branch(ty, default);
            }
            K::Project {
                scrutinee,
                arms,
                default,
            } => {
                self.expr(scrutinee);
                assert_eq!(scrutinee.ty, TypeId::ANY);
                for arm in arms {
                    assert_eq!(self.body.locals[arm.local.index()].ty, arm.ty);
                    self.branch(ty, &arm.body);
                }
                self.branch(ty, default);
            }
            K::Select { arms, default } => {
                for arm in arms {
                    self.received(arm.local, &arm.channel);
                    if let Some(guard) = &arm.guard {
                        self.condition(guard);
                    }
                    self.branch(ty, &arm.body);
                }
                if let Some(default) = default {
                    self.branch(ty, default);
                }
            }
            K::Connect(a, b) => {
                self.end(a);
                self.end(b);
            }
            K::Disconnect(end) => self.end(end),
            K::Publish { channel, name } => {
                self.expr(channel);
                self.expr(name);
                assert_eq!(name.ty, TypeId::STRING);
            }
            K::Send { value, channel } => {
                self.expr(value);
                self.expr(channel);
                let Type::Channel(Direction::Out, payload) = self.ty(channel.ty) else {
                    panic!("{e:?}");
                };
                assert!(self.fits(value.ty, *payload));
            }
            K::Receive { local, channel } => self.received(*local, channel),
            K::Acknowledge {
                local,
                channel,
                body,
            } => {
                self.received(*local, channel);
                self.branch(TypeId::VOID, body);
            }
            K::Stop(target) => {
                if let Some(target) = target {
                    self.expr(target);
                    assert!(matches!(self.ty(target.ty), Type::Component(_)));
                }
            }
            K::Return(value) => value.iter().for_each(|value| self.expr(value)),
            K::Throw(label) => self.exception(label),
            K::Try { body, handlers } => {
                self.branch(ty, body);
                for handler in handlers {
                    handler.label.iter().for_each(|label| self.exception(label));
                    self.branch(ty, &handler.body);
                }
            }
            K::Nothing => assert_eq!(ty, TypeId::VOID),
        }
    }

    fn binary(&self, op: BinaryOp, a: &Expr, b: &Expr, ty: TypeId) {
        use BinaryOp as B;
        self.expr(a);
        self.expr(b);
        assert!(self.fits(a.ty, b.ty) || self.fits(b.ty, a.ty));
        match op {
            B::Or | B::And => assert_eq!((a.ty, ty), (TypeId::BOOL, TypeId::BOOL)),
            B::Equal | B::NotEqual => assert_eq!(ty, TypeId::BOOL),
            B::Less | B::LessEqual | B::Greater | B::GreaterEqual => {
                assert!(number(a.ty) && ty == TypeId::BOOL);
            }
            _ => assert!(number(ty) && ty == a.ty),
        }
    }

    fn call(&self, callee: &Callee, args: &[Expr], ty: TypeId) {
        self.all(args);
        let called = match callee {
            Callee::Proc(id) => self.program.procs[id.index()].ty,
            Callee::Value(value) => {
                self.expr(value);
                value.ty
            }
        };
        let Type::Proc { params, result } = self.ty(called) else {
            panic!("{callee:?}");
        };
        assert_eq!(*result, ty);
        assert_eq!(params.len(), args.len());
        for (arg, &param) in args.iter().zip(params) {
            assert!(self.fits(arg.ty, param));
        }
    }

    fn condition(&self, condition: &Expr) {
        self.expr(condition);
        assert_eq!(condition.ty, TypeId::BOOL);
    }

    fn received(&self, local: LocalId, channel: &Expr) {
        self.expr(channel);
        let payload = self.body.locals[local.index()].ty;
        assert_eq!(self.ty(channel.ty), &Type::Channel(Direction::In, payload));
    }

    fn end(&self, end: &End) {
        match end {
            End::Local(channel) => {
                self.expr(channel);
                assert!(matches!(self.ty(channel.ty), Type::Channel(..)));
            }
            End::Remote { name, address } => {
                self.expr(name);
                self.expr(address);
                assert_eq!(name.ty, TypeId::STRING);
                assert!(
                    address.ty == TypeId::UNSIGNED
                        || self.ty(address.ty) == &Type::Array(TypeId::BYTE)
                );
            }
        }
    }

    fn exception(&self, label: &Expr) {
        self.expr(label);
        assert_eq!(label.ty, self.program.exception_type);
    }
}

fn number(ty: TypeId) -> bool {
    matches!(
        ty,
        TypeId::INTEGER | TypeId::UNSIGNED | TypeId::BYTE | TypeId::REAL
    )
}

fn is_value(ty: TypeId) -> bool {
    !matches!(ty, TypeId::VOID | TypeId::NEVER | TypeId::ERROR)
}

/// The value of the part before that a part of a chain begins with.
fn carried(mut part: &Expr) -> Option<&Expr> {
    loop {
        part = match &part.kind {
            ExprKind::Carried => return Some(part),
            ExprKind::Binary(_, left, _) | ExprKind::Convert(left) => left,
            _ => return None,
        };
    }
}
