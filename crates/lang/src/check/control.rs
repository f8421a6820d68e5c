//! Choices, loops, projection, exceptions, and the ways out: `stop`, `return`, `throw`.

use super::fit::{Agreement, Use, faulty, rank, with_article};
use super::name::Wanted;
use super::operator::{join, widen};
use super::{BodyKind, Checker};
use crate::codes::semantic as code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{self, Name};
use crate::tree::{Expr, ExprKind, Handler, ProjectArm};
use crate::types::{Type, TypeId};

/// A form with arms: where it stands and whether its value is used.
#[derive(Clone, Copy)]
pub(super) struct Arms {
    pub(super) span: Span,
    pub(super) used: bool,
}

impl<'a> Checker<'a> {
    /// A value of type bool.
    pub(super) fn condition(&mut self, text: &'a ast::Expr, what: &str) -> Expr {
        let value = self.value(text);
        if value.ty != TypeId::BOOL && value.ty != TypeId::ERROR {
            let shown = with_article(&self.show(value.ty));
            let mut diagnostic = Diagnostic::error(
                code::CONDITION,
                format!("{what} must be a bool, not {shown}"),
                value.span,
                format!("this is {}", self.show_full(value.ty)),
            );
            if rank(value.ty).is_some() {
                diagnostic = diagnostic.with_help("compare it with a value: `... != 0`");
            }
            self.report(diagnostic);
        }
        value
    }

    pub(super) fn choice(
        &mut self,
        condition: &'a ast::Expr,
        then: &'a ast::Expr,
        otherwise: Option<&'a ast::Expr>,
        span: Span,
        used: bool,
    ) -> Expr {
        let condition = self.condition(condition, "the condition of `if`");
        let mut agreement = Agreement::new();
        let yes = self.scoped(then, used);
        agreement.add(self, then, &yes, used);
        let no = otherwise.map(|text| {
            let no = self.scoped(text, used);
            agreement.add(self, text, &no, used);
            Box::new(no)
        });
        let mut ty = agreement.ty();
        if no.is_none() {
            if ty == TypeId::NEVER {
                ty = TypeId::VOID;
            } else if ty != TypeId::VOID && !self.has_default(ty) {
                self.no_default(ty, then, span);
                ty = TypeId::ERROR;
            }
        }
        Expr {
            kind: ExprKind::If {
                condition: Box::new(condition),
                then: Box::new(yes),
                otherwise: no,
            },
            ty,
            span,
        }
    }

    #[cold]
    fn no_default(&mut self, ty: TypeId, then: &ast::Expr, span: Span) {
        let shown = self.show(ty);
        self.report(
            Diagnostic::error(
                code::NO_DEFAULT,
                format!("this `if` may yield no value, and `{shown}` has no default"),
                span,
                "an `else` is missing",
            )
            .with_label(
                super::fit::tail(then),
                format!("yields {}", self.show_full(ty)),
            )
            .with_note("Only numbers, bool, string and enums have a default value.")
            .with_help("add an `else` that yields one too"),
        );
    }

    pub(super) fn counted_loop(
        &mut self,
        variable: Name,
        from: &'a ast::Expr,
        to: &'a ast::Expr,
        step: i32,
        body: &'a ast::Expr,
    ) -> ExprKind {
        let from = self.bound(from, "the first value");
        let to = self.bound(to, "the last value");
        self.at.scopes.enter();
        let local = self.local(variable, TypeId::INTEGER);
        let body = self.scoped(body, false);
        self.at.scopes.leave();
        ExprKind::For {
            variable: local,
            from: Box::new(from),
            to: Box::new(to),
            step,
            body: Box::new(body),
        }
    }

    fn bound(&mut self, text: &'a ast::Expr, what: &'static str) -> Expr {
        let value = self.value(text);
        let used = Use {
            code: code::LOOP_BOUND,
            purpose: &|| format!("be {what} of a loop, which counts in integers"),
            because: None,
            help: None,
        };
        self.coerce(value, TypeId::INTEGER, &used)
    }

    pub(super) fn cases(
        &mut self,
        scrutinee: &'a ast::Expr,
        arms: &'a [ast::CaseArm],
        default: &'a ast::Expr,
        at: Arms,
    ) -> Expr {
        let mut scrutinee = self.value(scrutinee);
        let subject = scrutinee.ty;
        let mut joined = subject;
        let mut agreement = Agreement::new();
        let mut checked = Vec::with_capacity(arms.len());
        for arm in arms {
            let mut labels = Vec::with_capacity(arm.labels.len());
            for text in &arm.labels {
                let label = self.value(text);
                match self.comparable(subject, label.ty) {
                    _ if subject == TypeId::ERROR || label.ty == TypeId::ERROR => {}
                    Some(_) => joined = join(joined, label.ty).unwrap_or(joined),
                    None => self.bad_label(&scrutinee, &label),
                }
                labels.push(label);
            }
            let body = self.scoped(&arm.body, at.used);
            agreement.add(self, &arm.body, &body, at.used);
            checked.push((labels, body));
        }
        let body = self.scoped(default, at.used);
        agreement.add(self, default, &body, at.used);
        if rank(joined).is_some() {
            scrutinee = widen(scrutinee, joined);
            for (labels, _) in &mut checked {
                *labels = std::mem::take(labels)
                    .into_iter()
                    .map(|label| widen(label, joined))
                    .collect();
            }
        }
        Expr {
            kind: ExprKind::Case {
                scrutinee: Box::new(scrutinee),
                arms: checked,
                default: Box::new(body),
            },
            ty: agreement.ty(),
            span: at.span,
        }
    }

    #[cold]
    fn bad_label(&mut self, scrutinee: &Expr, label: &Expr) {
        let (value, found) = (self.show(scrutinee.ty), self.show(label.ty));
        self.report(
            Diagnostic::error(
                code::CASE_LABEL,
                format!("this case can never match: `{value}` and `{found}` cannot be compared"),
                label.span,
                format!("this is {}", self.show_full(label.ty)),
            )
            .with_label(
                scrutinee.span,
                format!("compared with this, {}", self.show_full(scrutinee.ty)),
            ),
        );
    }

    pub(super) fn projection(
        &mut self,
        scrutinee: &'a ast::Expr,
        name: Name,
        arms: &'a [ast::ProjectArm],
        default: &'a ast::Expr,
        at: Arms,
    ) -> Expr {
        let scrutinee = self.value(scrutinee);
        if scrutinee.ty != TypeId::ANY && scrutinee.ty != TypeId::ERROR {
            let diagnostic = self
                .wrong_kind(code::NOT_A_BOX, &scrutinee, "be projected", "a box, `any`")
                .with_help("its type is known: use it directly");
            self.report(diagnostic);
        }
        let mut agreement = Agreement::new();
        let mut checked = Vec::with_capacity(arms.len());
        for arm in arms {
            let ty = self.resolve(&arm.ty);
            self.projectable(ty, arm.ty.span);
            self.at.scopes.enter();
            let local = self.local(name, ty);
            let body = self.scoped(&arm.body, at.used);
            self.at.scopes.leave();
            agreement.add(self, &arm.body, &body, at.used);
            checked.push(ProjectArm { ty, local, body });
        }
        let body = self.scoped(default, at.used);
        agreement.add(self, default, &body, at.used);
        Expr {
            kind: ExprKind::Project {
                scrutinee: Box::new(scrutinee),
                arms: checked,
                default: Box::new(body),
            },
            ty: agreement.ty(),
            span: at.span,
        }
    }

    pub(super) fn protected(
        &mut self,
        body: &'a ast::Expr,
        handlers: &'a [ast::Handler],
        at: Arms,
    ) -> Expr {
        let mut agreement = Agreement::new();
        self.at.body.tries += 1;
        let protected = self.scoped(body, at.used);
        agreement.add(self, body, &protected, at.used);
        let handlers = handlers
            .iter()
            .map(|handler| {
                let label = handler.label.map(|name| self.exception(name, "handled"));
                let checked = self.scoped(&handler.body, at.used);
                agreement.add(self, &handler.body, &checked, at.used);
                Handler {
                    label,
                    body: checked,
                }
            })
            .collect();
        self.at.body.tries -= 1;
        Expr {
            kind: ExprKind::Try {
                body: Box::new(protected),
                handlers,
            },
            ty: agreement.ty(),
            span: at.span,
        }
    }

    pub(super) fn throw(&mut self, label: Name, span: Span) -> ExprKind {
        let inside = matches!(self.at.body.kind, BodyKind::Proc(_)) || self.at.body.tries > 0;
        if !inside {
            self.report(
                Diagnostic::error(
                    code::THROW_OUTSIDE,
                    "`throw` outside a procedure and outside a `try`",
                    span,
                    "there is no handler here",
                )
                .with_help(
                    "put it inside `try { ... } except Label { ... }`, or into a procedure called there",
                ),
            );
        }
        ExprKind::Throw(Box::new(self.exception(label, "thrown")))
    }

    fn exception(&mut self, label: Name, how: &str) -> Expr {
        if self.find(label.symbol).is_none() {
            self.unknown_exception(label);
            return faulty(label.span);
        }
        let value = self.named_value(label.symbol, label.span);
        if value.ty != self.exception_type && value.ty != TypeId::ERROR {
            let word = self.name(label.symbol);
            self.report(
                Diagnostic::error(
                    code::NOT_AN_EXCEPTION,
                    format!("`{word}` is not an exception and cannot be {how}"),
                    label.span,
                    format!("this is {}", self.show_full(value.ty)),
                )
                .with_help(
                    "exceptions are the labels of `ExceptionType`, such as `OperationFailedException`",
                ),
            );
            return faulty(label.span);
        }
        value
    }

    #[cold]
    fn unknown_exception(&mut self, label: Name) {
        let word = self.name(label.symbol);
        let Type::Enum(labels) = self.types.get(self.exception_type) else {
            self.undeclared(label, Wanted::Value);
            return;
        };
        let names: Vec<&str> = labels.iter().map(|&label| self.name(label)).collect();
        let help = match hearth_text::near::nearest(word, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the exceptions are {}", names.join(", ")),
        };
        self.report(
            Diagnostic::error(
                code::NOT_AN_EXCEPTION,
                format!("no exception is called `{word}`"),
                label.span,
                "not a label of `ExceptionType`",
            )
            .with_help(help),
        );
    }

    pub(super) fn stop(&mut self, target: Option<Name>, span: Span) -> Expr {
        if self.at.body.kind == BodyKind::Constructor && self.at.layer.is_none() {
            self.report(
                Diagnostic::warning(
                    code::STOP_IN_CONSTRUCTOR,
                    "a constructor stops a component",
                    span,
                    "before any behaviour has run",
                )
                .with_help("stop in the behaviour instead"),
            );
        }
        let Some(name) = target else {
            return self.stop_self(span);
        };
        let value = match self.find(name.symbol) {
            None => {
                self.undeclared(name, Wanted::Value);
                faulty(name.span)
            }
            Some(_) => self.named_value(name.symbol, name.span),
        };
        if !matches!(self.types.get(value.ty), Type::Component(_) | Type::Error) {
            let diagnostic = self
                .wrong_kind(code::STOP_TARGET, &value, "be stopped", "a component")
                .with_help("`stop` alone ends the component that executes it");
            self.report(diagnostic);
        }
        Expr {
            kind: ExprKind::Stop(Some(Box::new(value))),
            ty: TypeId::VOID,
            span,
        }
    }

    fn stop_self(&mut self, span: Span) -> Expr {
        if self.at.body.kind == BodyKind::Main {
            self.report(
                Diagnostic::error(
                    code::STOP_AT_PROGRAM_LEVEL,
                    "`stop` without a target at program level",
                    span,
                    "no component runs this",
                )
                .with_help(
                    "the main sequence ends by itself; to stop a component name it: `stop c`",
                ),
            );
        }
        Expr {
            kind: ExprKind::Stop(None),
            ty: self.departure,
            span,
        }
    }

    /// `return`
    pub(super) fn leave(&mut self, value: Option<&'a ast::Expr>, span: Span) -> ExprKind {
        self.at.body.returns = true;
        let BodyKind::Proc(result) = self.at.body.kind else {
            if let Some(value) = value {
                self.value(value);
            }
            self.return_outside(span);
            return ExprKind::Return(None);
        };
        let value = match value {
            None if result == TypeId::VOID => None,
            None => {
                if result != TypeId::ERROR {
                    self.bare_return(result, span);
                }
                None
            }
            Some(text) => {
                let value = self.value(text);
                if result == TypeId::VOID {
                    self.return_with_value(&value);
                    return ExprKind::Return(None);
                }
                let because = self.at.body.proc.map(|(_, id)| {
                    let proc = &self.procs[id.index()];
                    (proc.span, "the result is declared here as")
                });
                let used = Use {
                    code: code::RETURN_TYPE,
                    purpose: &|| "be returned here".to_string(),
                    because,
                    help: None,
                };
                Some(Box::new(self.coerce(value, result, &used)))
            }
        };
        ExprKind::Return(value)
    }

    #[cold]
    fn return_outside(&mut self, span: Span) {
        let help = match self.at.body.kind {
            BodyKind::Behaviour => {
                "the behaviour repeats when its end is reached; `stop` ends the component"
            }
            BodyKind::Main => "the main sequence ends at its last statement",
            _ => "only procedures return",
        };
        self.report(
            Diagnostic::error(
                code::RETURN_OUTSIDE,
                "`return` outside a procedure",
                span,
                "there is nothing to return from",
            )
            .with_help(help),
        );
    }

    #[cold]
    fn bare_return(&mut self, result: TypeId, span: Span) {
        let shown = self.show(result);
        self.report(
            Diagnostic::error(
                code::RETURN_VALUE,
                format!("this `return` needs a value of type `{shown}`"),
                span,
                "no value is given",
            )
            .with_help("write `return ...` with the result"),
        );
    }

    #[cold]
    fn return_with_value(&mut self, value: &Expr) {
        self.report(
            Diagnostic::error(
                code::RETURN_VALUE,
                "this procedure has no result, but a value is returned",
                value.span,
                format!("this is {}", self.show_full(value.ty)),
            )
            .with_help("declare the result after the parameters, `: type`, or return no value"),
        );
    }
}
