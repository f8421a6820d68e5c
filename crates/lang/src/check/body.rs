//! Bodies, blocks and clauses: the walk itself, and who must yield a value.
//!
//! A clause is either *used*, then it must yield a value, or a statement, then it must not. The
//! forms with branches pass this on, so a stray value is reported at the branch that makes it.

use super::control::Arms;
use super::fit::{faulty, tail};
use super::scope::Binding;
use super::{BodyKind, BodyState, Checker};
use crate::codes::semantic as code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{self, Name, UnaryOp};
use crate::tree::{Asked, Body, Expr, ExprKind, Local, LocalId};
use crate::types::{Type, TypeId};
use std::mem;

/// A checked body, and what was seen in it.
pub(super) struct Finished {
    pub(super) body: Body,
    pub(super) state: BodyState,
}

impl<'a> Checker<'a> {
    /// The whole of the user's text.
    pub(super) fn unit(&mut self, unit: &'a ast::Unit) -> Body {
        self.at.scopes.enter();
        for declaration in &unit.declarations {
            self.declaration(declaration);
        }
        let span = match (unit.statements.first(), unit.statements.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => Span::default(),
        };
        self.at.body = BodyState::new(BodyKind::Main);
        let block = self.statements(&unit.statements, span, false);
        let locals = mem::take(&mut self.at.body.locals);
        self.at.scopes.leave();
        Body {
            locals,
            params: 0,
            block,
        }
    }

    /// A body between braces: parameters and statements in one scope of their own.
    pub(super) fn body(
        &mut self,
        state: BodyState,
        params: &[(Name, TypeId)],
        block: &'a ast::Block,
    ) -> Finished {
        let outer = mem::replace(&mut self.at.body, state);
        self.at.scopes.enter();
        for &(name, ty) in params {
            self.local(name, ty);
        }
        let block = self.statements(&block.statements, block.span, false);
        self.at.scopes.leave();
        let mut state = mem::replace(&mut self.at.body, outer);
        let locals = mem::take(&mut state.locals);
        let body = Body {
            locals,
            params: params.len(),
            block,
        };
        Finished { body, state }
    }

    /// The value a member or a prelude instance begins with.
    pub(super) fn initialiser(&mut self, value: &'a ast::Expr) -> Body {
        let state = BodyState::new(BodyKind::Initialiser);
        let outer = mem::replace(&mut self.at.body, state);
        self.at.scopes.enter();
        let block = self.value(value);
        self.at.scopes.leave();
        let state = mem::replace(&mut self.at.body, outer);
        Body {
            locals: state.locals,
            params: 0,
            block,
        }
    }

    /// A new variable in the innermost scope.
    pub(super) fn local(&mut self, name: Name, ty: TypeId) -> LocalId {
        let locals = &mut self.at.body.locals;
        let id = LocalId(locals.len() as u32);
        locals.push(Local {
            name: name.symbol,
            ty,
            span: name.span,
        });
        self.declare(name, Binding::Local(id, ty));
        id
    }

    /// Statements in the current scope. Only the last may yield a value, if that is used.
    fn statements(&mut self, list: &'a [ast::Expr], span: Span, used: bool) -> Expr {
        let mut items = Vec::with_capacity(list.len());
        let mut ended = false;
        for (i, text) in list.iter().enumerate() {
            let last = i + 1 == list.len();
            let item = if last && used {
                self.clause(text, true)
            } else {
                self.statement(text)
            };
            if item.ty == TypeId::NEVER && !last && !ended {
                ended = true;
                self.never_runs(text, &list[i + 1]);
            }
            items.push(item);
        }
        let mut ty = items.last().map_or(TypeId::VOID, |item| item.ty);
        if ty == TypeId::VOID && ended {
            ty = TypeId::NEVER;
        }
        Expr {
            kind: ExprKind::Block(items),
            ty,
            span,
        }
    }

    #[cold]
    fn never_runs(&mut self, end: &ast::Expr, next: &ast::Expr) {
        let word = match end.kind {
            ast::ExprKind::Stop(_) => "stop",
            ast::ExprKind::Return(_) => "return",
            ast::ExprKind::Throw(_) => "throw",
            _ => "statement that never returns",
        };
        self.report(
            Diagnostic::warning(
                code::NEVER_RUNS,
                format!("this code never runs: it follows a {word}"),
                next.span,
                "never runs",
            )
            .with_label(end.span, "nothing after this is reached")
            .with_help("remove it, or make the statement before it conditional"),
        );
    }

    /// A clause in a scope of its own: a branch, an arm, a handler, a loop's body.
    pub(super) fn scoped(&mut self, text: &'a ast::Expr, used: bool) -> Expr {
        self.at.scopes.enter();
        let expr = self.branch(text, used);
        self.at.scopes.leave();
        expr
    }

    pub(super) fn branch(&mut self, text: &'a ast::Expr, used: bool) -> Expr {
        if used {
            self.clause(text, true)
        } else {
            self.statement(text)
        }
    }

    /// A clause that must not yield a value.
    pub(super) fn statement(&mut self, text: &'a ast::Expr) -> Expr {
        let mut expr = self.clause(text, false);
        if expr.ty > TypeId::VOID && expr.ty != TypeId::NEVER {
            if !reports_itself(text) {
                self.unused(text, &expr);
            }
            expr.ty = TypeId::VOID;
        }
        expr
    }

    #[cold]
    fn unused(&mut self, text: &ast::Expr, expr: &Expr) {
        use ast::ExprKind as K;
        let mut help = None;
        match &text.kind {
            K::Operators(place, links)
                if matches!(
                    links[..],
                    [ast::Link {
                        op: ast::BinaryOp::Equal,
                        ..
                    }]
                ) && is_place(place) =>
            {
                help = Some("`==` compares; to change the variable write `:=`".to_string());
            }
            K::Call(..) => {
                help = Some("bind the result to a name: `x = ...`".to_string());
            }
            K::Name(_) if matches!(self.types.get(expr.ty), Type::Proc { .. }) => {
                help = Some("to call the procedure add parentheses: `...()`".to_string());
            }
            K::NewNamed { .. } | K::NewArray { .. } | K::NewChannel(..) => {
                help = Some("bind it to a name: `x = new ...`".to_string());
            }
            K::Unary(UnaryOp::Plus | UnaryOp::Minus, _) => {
                help = Some(
                    "a line that begins with a sign is a statement of its own; end the line \
                     before with the operator to continue it"
                        .to_string(),
                );
            }
            _ => {}
        }
        let mut diagnostic = Diagnostic::error(
            code::VALUE_UNUSED,
            "the value of this statement is not used",
            text.span,
            format!("yields {}", self.show_full(expr.ty)),
        )
        .with_note("A statement must not yield a value.");
        if let Some(help) = help {
            diagnostic = diagnostic.with_help(help);
        }
        self.report(diagnostic);
    }

    /// A clause that must yield a value.
    pub(super) fn value(&mut self, text: &'a ast::Expr) -> Expr {
        let expr = self.clause(text, true);
        if expr.ty != TypeId::VOID && expr.ty != TypeId::NEVER {
            return expr;
        }
        self.no_value(text, &expr);
        faulty(expr.span)
    }

    #[cold]
    fn no_value(&mut self, text: &ast::Expr, expr: &Expr) {
        let span = tail(text);
        let (label, help) = match &text.kind {
            ast::ExprKind::Call(..) => (
                "this procedure has no result",
                "only a procedure declared with `: type` yields a value",
            ),
            ast::ExprKind::Declare(..) => (
                "a declaration yields no value",
                "use `==` to compare; declare variables in statements of their own",
            ),
            ast::ExprKind::Assign(..) => (
                "an assignment yields no value",
                "assign in a statement of its own",
            ),
            ast::ExprKind::Receive { .. } => (
                "`receive` declares its variable and yields no value",
                "receive in a statement of its own, then name the variable",
            ),
            _ if expr.ty == TypeId::NEVER => {
                ("control never returns from here", "give a value here")
            }
            _ => ("yields no value", "give a value here"),
        };
        self.report(
            Diagnostic::error(
                code::NO_VALUE,
                "a value is needed, but there is none",
                span,
                label,
            )
            .with_help(help),
        );
    }

    /// Notes what is to be proved by the analysis of futures.
    fn beside(&mut self, inner: &'a ast::Expr, span: Span, used: bool) -> Expr {
        match inner.kind {
            ast::ExprKind::Call(..) | ast::ExprKind::For { .. } => {
                self.asked.push(Asked {
                    text: span,
                    what: inner.span,
                });
            }
            _ => {
                let word = Span {
                    end: span.start + "beside".len() as u32,
                    ..span
                };
                let diagnostic = Diagnostic::error(
                    code::BESIDE,
                    "`beside` stands before a call or a `for`",
                    inner.span,
                    "this is neither",
                );
                self.report(diagnostic.with_label(word, "this needs something to run"));
            }
        }
        self.clause(inner, used)
    }

    pub(super) fn clause(&mut self, text: &'a ast::Expr, used: bool) -> Expr {
        use ast::ExprKind as K;
        let span = text.span;
        let (kind, ty) = match &text.kind {
            K::Integer(value) => (ExprKind::Int(i64::from(*value)), TypeId::INTEGER),
            K::Unsigned(value) => (ExprKind::Int(i64::from(*value)), TypeId::UNSIGNED),
            K::Byte(value) => (ExprKind::Int(i64::from(*value)), TypeId::BYTE),
            K::Real(value) => (ExprKind::Real(*value), TypeId::REAL),
            K::Bool(value) => (ExprKind::Bool(*value), TypeId::BOOL),
            K::String(value) => (ExprKind::String(value.clone()), TypeId::STRING),
            K::Name(symbol) => return self.named_value(*symbol, span),
            K::Paren(inner) => return self.clause(inner, used),
            K::Unary(op, operand) => return self.unary(*op, operand, span),
            K::Operators(first, links) => return self.operators(first, links),
            K::Any(value) => return self.boxed(value, span),
            K::Length(base) => return self.length(base, span),
            K::Field(base, name) => return self.member(base, *name, span),
            K::Index(base, indices) => return self.index(base, indices, span),
            K::Call(callee, args) => return self.call(callee, args, span),
            K::Beside(inner) => return self.beside(inner, span, used),
            K::NewChannel(direction, payload) => {
                let payload = self.resolve(payload);
                let ty = self.channel_type(*direction, payload);
                (ExprKind::NewChannel, ty)
            }
            K::NewNamed { name, args } => return self.new_named(*name, args, span),
            K::NewArray {
                element,
                lengths,
                init,
            } => return self.new_array(element, lengths, init, span),
            K::Block(block) => {
                self.at.scopes.enter();
                let expr = self.statements(&block.statements, span, used);
                self.at.scopes.leave();
                return expr;
            }
            K::Declare(name, value) => {
                let value = self.value(value);
                let ty = value.ty;
                let id = self.local(*name, ty);
                (ExprKind::Let(id, Box::new(value)), TypeId::VOID)
            }
            K::Assign(place, value) => (self.assign(place, value), TypeId::VOID),
            K::Type(declaration) => {
                let binding = self.type_declaration(declaration);
                self.declare(declaration.name, binding);
                (ExprKind::Nothing, TypeId::VOID)
            }
            K::If {
                condition,
                then,
                otherwise,
            } => return self.choice(condition, then, otherwise.as_deref(), span, used),
            K::For {
                variable,
                from,
                to,
                step,
                body,
            } => (
                self.counted_loop(*variable, from, to, *step, body),
                TypeId::VOID,
            ),
            K::Case {
                scrutinee,
                arms,
                default,
            } => return self.cases(scrutinee, arms, default, Arms { span, used }),
            K::Project {
                scrutinee,
                name,
                arms,
                default,
            } => return self.projection(scrutinee, *name, arms, default, Arms { span, used }),
            K::Select { arms, default } => {
                return self.select(arms, default.as_deref(), Arms { span, used });
            }
            K::Connect(a, b) => (self.connect(a, b, span), TypeId::VOID),
            K::Disconnect(end) => (self.disconnect(end), TypeId::VOID),
            K::Publish { channel, name } => (self.publish(channel, name), TypeId::VOID),
            K::Send { value, channel } => (self.send(value, channel, span), TypeId::VOID),
            K::Receive { name, channel } => (self.receive(*name, channel, span), TypeId::VOID),
            K::Acknowledge {
                name,
                channel,
                body,
            } => (self.acknowledge(*name, channel, body, span), TypeId::VOID),
            K::Stop(target) => return self.stop(*target, span),
            K::Return(value) => (self.leave(value.as_deref(), span), TypeId::NEVER),
            K::Throw(label) => (self.throw(*label, span), self.departure),
            K::Try { body, handlers } => {
                return self.protected(body, handlers, Arms { span, used });
            }
            K::Error => (ExprKind::Error, TypeId::ERROR),
        };
        Expr { kind, ty, span }
    }
}

/// These report an unused value at the branch that makes it.
fn reports_itself(text: &ast::Expr) -> bool {
    use ast::ExprKind as K;
    match &text.kind {
        K::Paren(inner) => reports_itself(inner),
        K::Block(_)
        | K::If { .. }
        | K::Case { .. }
        | K::Project { .. }
        | K::Select { .. }
        | K::Try { .. } => true,
        _ => false,
    }
}

fn is_place(text: &ast::Expr) -> bool {
    use ast::ExprKind as K;
    matches!(text.kind, K::Name(_) | K::Index(..) | K::Field(..))
}
