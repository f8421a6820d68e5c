//! Fitting of values: assignability, widening, agreement.

use super::scope::Binding;
use super::{Checker, Leaving};
use crate::codes::semantic as code;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast;
use crate::tree::{Expr, ExprKind, ProcId};
use crate::types::{Type, TypeId};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Fit {
    /// Equal types, or one of them is a mistake already reported.
    Exact,
    /// A smaller number in a larger type.
    Widened,
    /// A component that offers at least what is asked.
    Offered,
    No,
}

/// The order in which numbers join: byte < unsigned < integer < real.
pub(super) fn rank(ty: TypeId) -> Option<u8> {
    match ty {
        TypeId::BYTE => Some(0),
        TypeId::UNSIGNED => Some(1),
        TypeId::INTEGER => Some(2),
        TypeId::REAL => Some(3),
        _ => None,
    }
}

/// The purpose of the value, for the message.
pub(super) struct Use<'t> {
    pub(super) code: Code,
    /// Completes "`x` cannot …": "be stored in `n`".
    pub(super) purpose: &'t dyn Fn() -> String,
    /// The origin of the expected type: "declared here as".
    pub(super) because: Option<(Span, &'static str)>,
    /// The fix to suggest, if the use suggests a better one than the types.
    pub(super) help: Option<&'static str>,
}

impl<'a> Checker<'a> {
    pub(super) fn fit(&self, source: TypeId, target: TypeId) -> Fit {
        if source == target || source == TypeId::ERROR || target == TypeId::ERROR {
            return Fit::Exact;
        }
        if let (Some(from), Some(to)) = (rank(source), rank(target)) {
            // Unsigned and integer never convert silently.
            let silent = from < to && !(source == TypeId::UNSIGNED && target == TypeId::INTEGER);
            return if silent { Fit::Widened } else { Fit::No };
        }
        match (self.types.get(source), self.types.get(target)) {
            (Type::Component(offers), Type::Component(asks)) => {
                let offered = asks.iter().all(|ask| {
                    let at = offers.binary_search_by_key(&ask.name, |port| port.name);
                    at.is_ok_and(|at| offers[at] == *ask)
                });
                if offered { Fit::Offered } else { Fit::No }
            }
            _ => Fit::No,
        }
    }

    /// The value as a value of that type, widened if need be; reports what does not fit.
    pub(super) fn coerce(&mut self, value: Expr, target: TypeId, used: &Use) -> Expr {
        match self.fit(value.ty, target) {
            Fit::Exact | Fit::Offered => value,
            Fit::Widened => convert(value, target),
            Fit::No => {
                self.mismatch(&value, target, used);
                faulty(value.span)
            }
        }
    }

    #[cold]
    fn mismatch(&mut self, value: &Expr, target: TypeId, used: &Use) {
        let found = self.show(value.ty);
        let wanted = self.show(target);
        let mut diagnostic = Diagnostic::error(
            used.code,
            format!("{} cannot {}", with_article(&found), (used.purpose)()),
            value.span,
            format!("this is {}", self.show_full(value.ty)),
        );
        if let Some((span, text)) = used.because {
            diagnostic = self.with_declaration(diagnostic, span, format!("{text} `{wanted}`"));
        }
        diagnostic = diagnostic.with_note(format!("Expected `{wanted}`, found `{found}`."));
        if let Some(missing) = self.missing_port(value.ty, target) {
            diagnostic = diagnostic.with_note(missing);
        }
        let help = used.help.map(str::to_string);
        if let Some(help) = help.or_else(|| self.conversion_help(value, target)) {
            diagnostic = diagnostic.with_help(help);
        }
        self.report(diagnostic);
    }

    fn missing_port(&self, source: TypeId, target: TypeId) -> Option<String> {
        let (Type::Component(offers), Type::Component(asks)) =
            (self.types.get(source), self.types.get(target))
        else {
            return None;
        };
        let missing = asks.iter().find(|ask| !offers.contains(ask))?;
        let name = self.name(missing.name);
        let asked = self.show_port(missing);
        Some(match offers.iter().find(|port| port.name == missing.name) {
            Some(port) => format!(
                "The channel `{name}` would have to be `{asked}`; it is `{}`.",
                self.show_port(port)
            ),
            None => format!("The channel `{asked} {name}` is missing."),
        })
    }

    /// Suggests a conversion between two types, if the language has one.
    fn conversion_help(&self, value: &Expr, target: TypeId) -> Option<String> {
        use TypeId as T;
        let text = match (value.ty, target) {
            (T::INTEGER, T::UNSIGNED) => match value.kind {
                ExprKind::Int(n) => format!("write the literal as unsigned: `${n}`"),
                _ => "`intToUnsigned(...)` converts an integer, modulo 2^32".to_string(),
            },
            (T::INTEGER, T::BYTE) => match value.kind {
                ExprKind::Int(n) if n <= 255 => format!("write the literal as a byte: `#{n}`"),
                _ => "`intToByte(...)` converts an integer, modulo 256".to_string(),
            },
            (T::UNSIGNED, T::INTEGER) => match value.kind {
                ExprKind::Int(n) if n <= i64::from(i32::MAX) => {
                    format!("write the literal as an integer: `{n}`")
                }
                _ => "`... + 0` makes it an integer: operators join to the larger type".to_string(),
            },
            (T::UNSIGNED, T::BYTE) => "`intToByte(... + 0)` converts it, modulo 256".to_string(),
            (T::REAL, T::INTEGER) => "`realToInt(...)` converts a real to an integer".to_string(),
            (T::REAL, T::UNSIGNED) => "`intToUnsigned(realToInt(...))` converts it".to_string(),
            (T::REAL, T::BYTE) => "`intToByte(realToInt(...))` converts it".to_string(),
            (T::STRING, to) if rank(to).is_some() && matches!(value.kind, ExprKind::String(_)) => {
                "numbers are written without quotes".to_string()
            }
            (T::STRING, T::INTEGER) => "`parseInt(...)` reads a number from a string".to_string(),
            (T::STRING, T::UNSIGNED) => {
                "`parseUnsignedInt(...)` reads a number from a string".to_string()
            }
            (T::STRING, T::REAL) => "`parseReal(...)` reads a number from a string".to_string(),
            (_, T::BOOL) if rank(value.ty).is_some() => {
                "compare it with a value: `... != 0`".to_string()
            }
            (T::ANY, _) => format!(
                "take it out of the box: `project ... as x onto {}: ... default: ...`",
                self.show(target)
            ),
            (_, T::ANY) => "put it in a box: `any(...)`".to_string(),
            (source, target) => return self.structural_help(source, target),
        };
        Some(text)
    }

    fn structural_help(&self, source: TypeId, target: TypeId) -> Option<String> {
        match (self.types.get(source), self.types.get(target)) {
            (Type::Proc { result, .. }, _) if *result == target => {
                Some("add parentheses to call it: `...()`".to_string())
            }
            (Type::Channel(ast::Direction::In, payload), _) if *payload == target => {
                Some("a value is taken from a channel by `receive x from ...`".to_string())
            }
            (Type::Array(element), _) if *element == target => {
                Some("choose one element: `...[0]`".to_string())
            }
            _ => None,
        }
    }

    /// The default of a form that yields nothing; references have none.
    pub(super) fn has_default(&self, ty: TypeId) -> bool {
        use Type as T;
        matches!(
            self.types.get(ty),
            T::Error
                | T::Integer
                | T::Unsigned
                | T::Real
                | T::Bool
                | T::Byte
                | T::String
                | T::Enum(_)
        )
    }

    /// The declaration of a place.
    pub(super) fn place_declaration(&self, place: &Expr) -> Option<(Span, &'static str)> {
        let span = match &place.kind {
            ExprKind::Local(id) => self.at.body.locals[id.index()].span,
            ExprKind::Member(id) => {
                let component = self.at.component.as_ref()?;
                component.members[id.index()].span
            }
            ExprKind::Port(id) => {
                let component = self.at.component.as_ref()?;
                self.components[component.id.index()].channels[id.index()].span
            }
            _ => return None,
        };
        Some((span, "declared here as"))
    }

    /// Notes that a body names a procedure.
    pub(super) fn note_use(&mut self, id: ProcId) {
        if self.procs[id.index()].owner.is_some() && self.at.body.uses.last() != Some(&id) {
            self.at.body.uses.push(id);
        }
    }

    /// Notes that a value leaves its component: see [`Self::check_leaving`].
    pub(super) fn leaves_component(&mut self, value: &Expr, how: &'static str) {
        if let (ExprKind::Proc(proc), Some(component)) = (&value.kind, &mut self.at.component) {
            component.leaving.push(Leaving {
                proc: *proc,
                span: value.span,
                how,
            });
        }
    }

    /// Only a procedure that stays away from its component's members may leave it.
    pub(super) fn check_leaving(&mut self, leaving: Vec<Leaving>) {
        for Leaving { proc, span, how } in leaving {
            let proc = &self.procs[proc.index()];
            if !(proc.owner.is_some() && proc.captures) {
                continue;
            }
            let (name, declared) = (self.name(proc.name), proc.span);
            let diagnostic = Diagnostic::error(
                code::PROC_LEAVES,
                format!("procedure `{name}` uses its component's members and cannot be {how}"),
                span,
                "would expose this component's members to others",
            )
            .with_label(declared, "declared here, in the component")
            .with_note("Components share nothing except through channels.")
            .with_help("move what it needs into its parameters, or declare it at program level");
            self.report(diagnostic);
        }
    }
}

/// Collects the types of branches that must agree.
pub(super) struct Agreement {
    /// The type of the first branch that yields, or at least returns.
    ty: TypeId,
    span: Span,
    failed: bool,
}

impl Agreement {
    pub(super) fn new() -> Self {
        Agreement {
            ty: TypeId::NEVER,
            span: Span::default(),
            failed: false,
        }
    }

    /// `text` is the branch as written; when its value is not used only NEVER counts.
    pub(super) fn add(
        &mut self,
        checker: &mut Checker,
        text: &ast::Expr,
        branch: &Expr,
        used: bool,
    ) {
        let ty = match branch.ty {
            TypeId::NEVER => return,
            ty if used => ty,
            _ => TypeId::VOID,
        };
        if self.ty == TypeId::NEVER {
            self.ty = ty;
            self.span = tail(text);
        } else if self.ty == TypeId::ERROR || ty == TypeId::ERROR {
            self.ty = TypeId::ERROR;
        } else if ty != self.ty && !self.failed {
            self.failed = true;
            checker.disagreement(self.ty, self.span, ty, tail(text));
        }
    }

    pub(super) fn ty(&self) -> TypeId {
        if self.failed { TypeId::ERROR } else { self.ty }
    }
}

/// The span that decides a clause's value: the last item of the last block.
pub(super) fn tail(text: &ast::Expr) -> Span {
    match &text.kind {
        ast::ExprKind::Block(block) => block.statements.last().map_or(text.span, tail),
        _ => text.span,
    }
}

impl Checker<'_> {
    #[cold]
    fn disagreement(&mut self, first: TypeId, first_span: Span, second: TypeId, span: Span) {
        let says = |checker: &Self, ty| {
            if ty == TypeId::VOID {
                "this branch yields no value".to_string()
            } else {
                format!("this branch yields {}", checker.show_full(ty))
            }
        };
        let (label, first_label) = (says(self, second), says(self, first));
        let numbers = rank(first).is_some() && rank(second).is_some();
        let diagnostic = Diagnostic::error(
            code::BRANCHES_DIFFER,
            "the branches do not agree on their type",
            span,
            label,
        )
        .with_label(first_span, first_label)
        .with_help(if numbers {
            "branches do not widen: write both numbers in one type"
        } else {
            "make every branch yield a value of one type, or none of them"
        });
        self.report(diagnostic);
    }
}

pub(super) fn convert(value: Expr, target: TypeId) -> Expr {
    let span = value.span;
    Expr {
        kind: ExprKind::Convert(Box::new(value)),
        ty: target,
        span,
    }
}

pub(super) fn faulty(span: Span) -> Expr {
    Expr {
        kind: ExprKind::Error,
        ty: TypeId::ERROR,
        span,
    }
}

/// "an `integer`", "a `real`".
pub(super) fn with_article(shown: &str) -> String {
    let vowel = shown.starts_with(['a', 'e', 'i', 'o', 'A', 'E', 'I', 'O']);
    let article = if vowel { "an" } else { "a" };
    format!("{article} `{shown}`")
}

impl Binding {
    pub(super) fn is_type(self) -> bool {
        matches!(self, Binding::Type(..) | Binding::Component(_))
    }
}
