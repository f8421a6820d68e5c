//! Calls: of procedures, of procedure values, and forward through the name of a procedure type.

use hearth_text::counted;

use super::fit::{Use, faulty};
use super::name::Wanted;
use super::scope::Binding;
use super::{BodyKind, Checker, Forward, ProcEntry};
use crate::codes::semantic as code;
use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, Span};
use crate::symbol::Symbol;
use crate::syntax::ast::{self, Name};
use crate::tree::{Callee, Expr, ExprKind, ProcId};
use crate::types::{Type, TypeId};

/// The called thing, for messages.
#[derive(Clone, Copy)]
struct Called {
    name: Option<Symbol>,
    declared: Span,
}

impl<'a> Checker<'a> {
    pub(super) fn call(
        &mut self,
        callee: &'a ast::Expr,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Expr {
        if self.at.body.kind == BodyKind::Constructor && self.at.layer.is_none() {
            self.call_in_constructor(span);
        }
        let mut called = Called {
            name: None,
            declared: Span::default(),
        };
        if let ast::ExprKind::Name(symbol) = callee.kind {
            called.name = Some(symbol);
            let name = Name {
                symbol,
                span: callee.span,
            };
            match self.find(symbol) {
                Some(Binding::Proc(id)) => return self.call_proc(id, args, called, span),
                Some(Binding::Type(ty, _)) => {
                    if let Some(id) = self.forward(symbol, ty, callee.span) {
                        return self.call_proc(id, args, called, span);
                    }
                    return self.call_of_type(name, args, span);
                }
                Some(Binding::Component(_)) => return self.call_of_type(name, args, span),
                None => {
                    self.undeclared(name, Wanted::Procedure);
                    self.check_alone(args);
                    return faulty(span);
                }
                Some(_) => called.declared = self.declared_at(symbol),
            }
        }
        let callee = self.value(callee);
        let result = match self.types.get(callee.ty) {
            Type::Proc { result, .. } => *result,
            Type::Error => {
                self.check_alone(args);
                return faulty(span);
            }
            _ => {
                self.not_a_procedure(&callee, called);
                self.check_alone(args);
                return faulty(span);
            }
        };
        let args = self.arguments(callee.ty, args, called, span);
        Expr {
            kind: ExprKind::Call(Callee::Value(Box::new(callee)), args),
            ty: result,
            span,
        }
    }

    fn call_proc(&mut self, id: ProcId, args: &'a [ast::Expr], called: Called, span: Span) -> Expr {
        self.note_use(id);
        let proc = &self.procs[id.index()];
        let (ty, result) = (proc.ty, proc.result);
        let called = Called {
            declared: proc.span,
            ..called
        };
        if ty == TypeId::ERROR {
            self.check_alone(args);
            return Expr {
                ty: result,
                ..faulty(span)
            };
        }
        let args = self.arguments(ty, args, called, span);
        Expr {
            kind: ExprKind::Call(Callee::Proc(id), args),
            ty: result,
            span,
        }
    }

    /// A call inside a component through the name of a procedure type means the procedure of
    /// that name which the component declares later.
    fn forward(&mut self, name: Symbol, ty: TypeId, span: Span) -> Option<ProcId> {
        let Type::Proc { result, .. } = *self.types.get(ty) else {
            return None;
        };
        let component = self.at.component.as_mut()?;
        if let Some(known) = component.forwards.iter().find(|f| f.name == name) {
            return Some(known.proc);
        }
        let proc = ProcId(self.procs.len() as u32);
        component.forwards.push(Forward {
            name,
            ty,
            proc,
            span,
            declared: false,
        });
        self.procs.push(ProcEntry {
            name,
            owner: Some(component.id),
            ty,
            result,
            span: Span::default(),
            captures: false,
            uses: Vec::new(),
            code: None,
        });
        Some(proc)
    }

    /// Arguments of a faulty call may hold mistakes of their own.
    pub(super) fn check_alone(&mut self, args: &'a [ast::Expr]) {
        for arg in args {
            self.value(arg);
        }
    }

    fn arguments(
        &mut self,
        ty: TypeId,
        texts: &'a [ast::Expr],
        called: Called,
        span: Span,
    ) -> Vec<Expr> {
        let count = self.param_count(ty);
        if count != texts.len() {
            self.wrong_count(ty, texts, called, span);
            self.check_alone(texts);
            return Vec::new();
        }
        let names = self.names;
        let mut args = Vec::with_capacity(count);
        for (i, text) in texts.iter().enumerate() {
            let value = self.value(text);
            let Type::Proc { params, .. } = self.types.get(ty) else {
                return args;
            };
            let param = params[i];
            if param == value.ty {
                args.push(value);
                continue;
            }
            let used = Use {
                code: code::ARGUMENT,
                purpose: &|| match called.name {
                    Some(name) => {
                        let name = names.name(name);
                        format!("be argument {} of `{name}`", i + 1)
                    }
                    None => format!("be argument {} of this call", i + 1),
                },
                because: Some((called.declared, "declared here, where it is")),
                help: self.printing_help(called, value.ty),
            };
            args.push(self.coerce(value, param, &used));
        }
        args
    }

    /// The standard procedures that print are easily taken for each other.
    fn printing_help(&self, called: Called, found: TypeId) -> Option<&'static str> {
        let standard = called.declared.source != SourceId::USER;
        let name = called
            .name
            .filter(|_| standard)
            .map(|name| self.name(name))?;
        if !name.starts_with("print") || name.starts_with("printTC") {
            return None;
        }
        Some(match found {
            TypeId::STRING => "a string is printed by `printString`",
            TypeId::INTEGER => "an integer is printed by `printInt`",
            TypeId::UNSIGNED => "an unsigned is printed by `printUnsignedInt`",
            TypeId::BYTE => "a byte is printed by `printByte`",
            TypeId::REAL => "a real is printed by `printReal`",
            TypeId::ANY => "a box is printed by `printAny`",
            TypeId::BOOL => "a bool is printed in a box: `printAny(any(...))`",
            _ => return None,
        })
    }

    fn param_count(&self, ty: TypeId) -> usize {
        match self.types.get(ty) {
            Type::Proc { params, .. } => params.len(),
            _ => 0,
        }
    }

    #[cold]
    fn wrong_count(&mut self, ty: TypeId, texts: &[ast::Expr], called: Called, span: Span) {
        let count = self.param_count(ty);
        let few = texts.len() < count;
        let word = called.name.map_or("this procedure", |name| self.name(name));
        let title = format!(
            "too {} arguments for `{word}`: it takes {}, not {}",
            if few { "few" } else { "many" },
            count,
            texts.len()
        );
        let label = if few {
            format!("{} missing", counted(count - texts.len(), "argument"))
        } else {
            format!("{} too many", counted(texts.len() - count, "argument"))
        };
        let at = texts.get(count).map_or(span, |extra| {
            extra
                .span
                .to(texts.last().map_or(extra.span, |last| last.span))
        });
        let shown = self.signature(word, ty);
        let diagnostic = Diagnostic::error(code::ARGUMENT_COUNT, title, at, label)
            .with_note(format!("Its heading is `{shown}`."));
        let diagnostic = self.with_declaration(diagnostic, called.declared, "declared here");
        self.report(diagnostic);
    }

    /// `area(integer ; integer) : integer`
    fn signature(&self, name: &str, ty: TypeId) -> String {
        let shown = self.show(ty);
        shown.replacen("proc", name, 1)
    }

    fn call_of_type(&mut self, name: Name, args: &'a [ast::Expr], span: Span) -> Expr {
        self.check_alone(args);
        let word = self.name(name.symbol);
        let binding = self.find(name.symbol).unwrap_or(Binding::Faulty);
        let what = self.kind_of(binding);
        let help = match binding {
            Binding::Component(_) => format!("create an instance with `new {word}(...)`"),
            Binding::Type(ty, _) => match self.types.get(ty) {
                Type::Struct(_) => format!("create a struct with `new {word}(...)`"),
                Type::Proc { .. } => format!(
                    "inside a component this would call a procedure `{word}` that it declares later"
                ),
                _ => "name a procedure here".to_string(),
            },
            _ => "name a procedure here".to_string(),
        };
        let diagnostic = Diagnostic::error(
            code::NOT_A_PROCEDURE,
            format!("`{word}` is {what} and cannot be called"),
            name.span,
            "not a procedure",
        )
        .with_help(help);
        let declared = self.declared_at(name.symbol);
        let diagnostic =
            self.with_declaration(diagnostic, declared, format!("declared as {what} here"));
        self.report(diagnostic);
        faulty(span)
    }

    #[cold]
    fn not_a_procedure(&mut self, callee: &Expr, called: Called) {
        let what = match called.name {
            Some(name) => format!("`{}`", self.name(name)),
            None => "this".to_string(),
        };
        let shown = self.show_full(callee.ty);
        let mut diagnostic = Diagnostic::error(
            code::NOT_A_PROCEDURE,
            format!("{what} is not a procedure and cannot be called"),
            callee.span,
            format!("this is {shown}"),
        );
        diagnostic = match self.types.get(callee.ty) {
            Type::Array(_) => diagnostic.with_help("elements are chosen with brackets: `a[i]`"),
            Type::Channel(..) => {
                diagnostic.with_help("values go through a channel with `send` and `receive`")
            }
            _ => diagnostic,
        };
        let diagnostic = self.with_declaration(diagnostic, called.declared, "declared here");
        self.report(diagnostic);
    }

    #[cold]
    fn call_in_constructor(&mut self, span: Span) {
        self.report(
            Diagnostic::warning(
                code::CALL_IN_CONSTRUCTOR,
                "a constructor calls a procedure",
                span,
                "called while the component is being made",
            )
            .with_note(
                "A constructor should only set members; what takes time or waits belongs in the behaviour.",
            ),
        );
    }

    /// At the end of a component: what was called forward must have been declared.
    pub(super) fn check_forwards(&mut self, forwards: Vec<Forward>) {
        for forward in forwards {
            if forward.declared || forward.span.source != SourceId::USER {
                continue;
            }
            let word = self.name(forward.name);
            let heading = self.signature(word, forward.ty);
            self.report(
                Diagnostic::error(
                    code::FORWARD_MISSING,
                    format!("no procedure `{word}` of its type is declared later in this component"),
                    forward.span,
                    format!("`{word}` is a procedure type, so this calls the later procedure of that name"),
                )
                .with_help(format!("declare `proc {heading}` as a member")),
            );
        }
    }
}
