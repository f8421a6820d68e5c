//! Names: what they stand for, and what to say when they stand for nothing here.

use hearth_text::near::nearest;

use super::scope::{Binding, Entry};
use super::{BodyKind, Checker};
use crate::codes::semantic as code;
use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, Span};
use crate::symbol::Symbol;
use crate::syntax::ast::{self, Declaration, MemberDeclaration, Name};
use crate::syntax::habits;
use crate::tree::{Expr, ExprKind};
use crate::types::{Type, TypeId};

/// The kind of name that a place needs.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Wanted {
    Value,
    Type,
    Procedure,
    /// The target of `:=`.
    Variable,
    /// After `new`.
    Maker,
    Interface,
}

/// The number of mistakes after which near names are no longer searched: it would cost more than
/// the rest of the check, for messages that are rarely read.
const PATIENCE: usize = 200;

/// The prefix of prelude names that are for its own text only.
const INTERNAL: &str = "device_";

impl<'a> Checker<'a> {
    pub(super) fn find(&mut self, symbol: Symbol) -> Option<Binding> {
        match self.at.scopes.lookup(symbol) {
            Some(entry) => Some(entry.binding),
            None => self.find_in_prelude(symbol),
        }
    }

    /// A name where a value is wanted.
    pub(super) fn named_value(&mut self, symbol: Symbol, span: Span) -> Expr {
        let (kind, ty) = match self.find(symbol) {
            Some(Binding::Local(id, ty)) => (ExprKind::Local(id), ty),
            Some(Binding::Member(id, ty)) => {
                self.at.body.captures = true;
                (ExprKind::Member(id), ty)
            }
            Some(Binding::Port(id, ty)) => {
                self.at.body.captures = true;
                (ExprKind::Port(id), ty)
            }
            Some(Binding::Global(id, ty)) => (ExprKind::Global(id), ty),
            Some(Binding::Label(ty, position)) => (ExprKind::Label(position), ty),
            Some(Binding::Proc(id)) => {
                self.note_use(id);
                (ExprKind::Proc(id), self.procs[id.index()].ty)
            }
            Some(binding @ (Binding::Type(..) | Binding::Component(_))) => {
                self.type_for_value(symbol, span, binding);
                (ExprKind::Error, TypeId::ERROR)
            }
            Some(Binding::Faulty) => (ExprKind::Error, TypeId::ERROR),
            None => {
                self.undeclared(Name { symbol, span }, Wanted::Value);
                (ExprKind::Error, TypeId::ERROR)
            }
        };
        Expr { kind, ty, span }
    }

    /// `a variable`, `a procedure` … for messages.
    pub(super) fn kind_of(&self, binding: Binding) -> &'static str {
        match binding {
            Binding::Local(..) | Binding::Member(..) => "a variable",
            Binding::Port(..) => "a channel",
            Binding::Global(..) => "an instance of the standard environment",
            Binding::Proc(_) => "a procedure",
            Binding::Component(_) => "a component",
            Binding::Type(_, Some(_)) => "an interface",
            Binding::Type(..) => "a type",
            Binding::Label(..) => "a label of an enum",
            Binding::Faulty => "faulty",
        }
    }

    /// Points at a declaration of the user's text; the prelude's are not worth a look.
    pub(super) fn with_declaration(
        &self,
        diagnostic: Diagnostic,
        span: Span,
        text: impl Into<String>,
    ) -> Diagnostic {
        if span.source == SourceId::USER && span != Span::default() {
            diagnostic.with_label(span, text)
        } else {
            diagnostic
        }
    }

    pub(super) fn declared_at(&self, symbol: Symbol) -> Span {
        let entry = self.at.scopes.lookup(symbol);
        entry.map_or(Span::default(), |entry| entry.span)
    }

    pub(super) fn declared_twice(&mut self, name: Name, earlier: Entry) {
        let word = self.name(name.symbol);
        let what = self.kind_of(earlier.binding);
        let mut diagnostic = Diagnostic::error(
            code::DECLARED_TWICE,
            format!("`{word}` is declared twice in the same scope"),
            name.span,
            "declared again here",
        )
        .with_label(earlier.span, format!("already {what} here"));
        diagnostic = diagnostic.with_help(match earlier.binding {
            Binding::Local(..) | Binding::Member(..) => format!(
                "`=` always declares; to change the value write `{word} := ...`, otherwise choose another name"
            ),
            Binding::Label(..) => {
                "all enums of one scope share their labels' names: rename one label".to_string()
            }
            _ => "choose another name".to_string(),
        });
        self.report(diagnostic);
    }

    pub(super) fn type_for_value(&mut self, symbol: Symbol, span: Span, binding: Binding) {
        let word = self.name(symbol);
        let what = self.kind_of(binding);
        let help = match binding {
            Binding::Component(_) => {
                format!("create an instance with `new {word}(...)`; name the instance here")
            }
            Binding::Type(ty, _) => match self.types.get(ty) {
                Type::Struct(_) => format!("create a struct with `new {word}(...)`"),
                Type::Enum(labels) => {
                    let first = labels.first().map_or("label", |&label| self.name(label));
                    format!("name one of its labels, such as `{first}`")
                }
                _ => "name a variable of that type here".to_string(),
            },
            _ => "name a variable here".to_string(),
        };
        let diagnostic = Diagnostic::error(
            code::TYPE_FOR_VALUE,
            format!("`{word}` is {what}, not a value"),
            span,
            "a value is needed here",
        )
        .with_help(help);
        let declared = self.declared_at(symbol);
        let diagnostic =
            self.with_declaration(diagnostic, declared, format!("declared as {what} here"));
        self.report(diagnostic);
    }

    pub(super) fn value_for_type(&mut self, symbol: Symbol, span: Span, binding: Binding) {
        let word = self.name(symbol);
        let what = self.kind_of(binding);
        let diagnostic = Diagnostic::error(
            code::VALUE_FOR_TYPE,
            format!("`{word}` is {what}, not a type"),
            span,
            "a type is needed here",
        )
        .with_help(format!(
            "name the type of `{word}` instead, or declare one above: `type Name is ...`"
        ));
        let declared = self.declared_at(symbol);
        let diagnostic = self.with_declaration(diagnostic, declared, format!("{what} here"));
        self.report(diagnostic);
    }

    /// Nothing of that name is visible here: says why, and what was probably meant.
    #[cold]
    pub(super) fn undeclared(&mut self, name: Name, wanted: Wanted) {
        let inside = self.at.component.as_ref();
        if wanted == Wanted::Value && inside.is_some_and(|component| component.unknown_ports) {
            return; // perhaps a channel of the interface that is missing
        }
        let word = self.name(name.symbol);
        let patient = self.diagnostics.len() <= PATIENCE;
        if patient && (self.recursion(name) || self.elsewhere(name)) {
            return;
        }
        let title = match wanted {
            Wanted::Type => format!("no type is called `{word}`"),
            Wanted::Procedure => format!("no procedure is called `{word}`"),
            Wanted::Interface => format!("no interface is called `{word}`"),
            Wanted::Maker => format!("no component or struct is called `{word}`"),
            Wanted::Value | Wanted::Variable => format!("`{word}` is not declared"),
        };
        let mut diagnostic = Diagnostic::error(
            code::UNDECLARED,
            title,
            name.span,
            "nothing here has this name",
        );
        if let Some(help) = self.help_for(word, wanted) {
            diagnostic = diagnostic.with_help(help);
        }
        self.report(diagnostic);
    }

    fn help_for(&mut self, word: &'a str, wanted: Wanted) -> Option<String> {
        if let Some(near) = self.near_name(word, wanted) {
            return Some(format!("did you mean `{near}`?"));
        }
        if let Some(habit) = habits::help(word) {
            return Some(habit.to_string());
        }
        Some(match wanted {
            Wanted::Variable => {
                format!("`:=` changes a variable that exists; `{word} = ...` declares one")
            }
            Wanted::Interface => {
                format!("declare it above: `type {word} is interface(...)`")
            }
            Wanted::Type => format!("declare it above: `type {word} is ...`"),
            Wanted::Procedure => format!("declare it above: `proc {word}(...) {{ ... }}`"),
            Wanted::Maker => {
                format!(
                    "declare it above: `component {word} presents ... {{ ... }}` or `type {word} is struct(...)`"
                )
            }
            Wanted::Value => return None,
        })
    }

    fn near_name(&self, word: &str, wanted: Wanted) -> Option<String> {
        if self.diagnostics.len() > PATIENCE {
            return None;
        }
        let fits = |is_type: bool| match wanted {
            Wanted::Type | Wanted::Interface => is_type,
            Wanted::Maker => is_type,
            Wanted::Value | Wanted::Variable | Wanted::Procedure => !is_type,
        };
        let basic: &[&str] = match wanted {
            Wanted::Type => &[
                "integer", "unsigned", "real", "bool", "byte", "string", "any",
            ],
            _ => &[],
        };
        let visible = self.at.scopes.entries().filter_map(|entry| {
            let is_type = matches!(entry.binding, Binding::Type(..) | Binding::Component(_));
            fits(is_type).then_some(self.name(entry.symbol))
        });
        let standard = self
            .prelude
            .names()
            .filter_map(|(symbol, is_type)| fits(is_type).then_some(self.name(symbol)))
            .filter(|name| !name.starts_with(INTERNAL));
        nearest(word, basic.iter().copied().chain(visible).chain(standard)).map(str::to_string)
    }

    /// A procedure's or component's own name is not visible inside it.
    fn recursion(&mut self, name: Name) -> bool {
        let word = self.name(name.symbol);
        if self.at.body.proc.is_some_and(|(own, _)| own == name.symbol) {
            self.report(
                Diagnostic::error(
                    code::OWN_NAME,
                    format!("procedure `{word}` cannot call itself"),
                    name.span,
                    "its own name is not visible inside it",
                )
                .with_note("Without recursion the memory a component needs is known beforehand.")
                .with_help(
                    "use a loop; if you need recursion, declare a procedure type of \
                     this name at program level and the procedure as a member of a component",
                ),
            );
            return true;
        }
        let inside = self.at.component.as_ref();
        if inside.is_some_and(|component| component.declaration.name.symbol == name.symbol) {
            self.report(
                Diagnostic::error(
                    code::OWN_NAME,
                    format!("component `{word}` cannot create or name its own kind"),
                    name.span,
                    "its own name is not visible inside it",
                )
                .with_help("create the instances one level up and connect them there"),
            );
            return true;
        }
        false
    }

    /// The name exists, but not here: further down, in a block that has ended, or among the
    /// variables of the main sequence.
    fn elsewhere(&mut self, name: Name) -> bool {
        let word = self.name(name.symbol);
        if let Some(arm) = self.at.body.guarded.filter(|arm| arm.symbol == name.symbol) {
            self.report(
                Diagnostic::error(
                    code::GUARD_USES_ARM,
                    format!("the guard cannot use `{word}`, which its own arm receives"),
                    name.span,
                    "not received yet here",
                )
                .with_label(arm.span, "received only when the arm is chosen")
                .with_help("receive without the guard, and test the value in the arm"),
            );
            return true;
        }
        if let Some(span) = self.declared_later(name) {
            self.report(
                Diagnostic::error(
                    code::DECLARED_LATER,
                    format!("`{word}` is used before it is declared"),
                    name.span,
                    "not known yet here",
                )
                .with_label(span, "declared only here")
                .with_help("move the declaration above its first use"),
            );
            return true;
        }
        let mut locals = self.at.body.locals.iter().rev();
        if let Some(ended) = locals.find(|local| local.name == name.symbol) {
            let span = ended.span;
            self.report(
                Diagnostic::error(
                    code::UNDECLARED,
                    format!("`{word}` is not declared here"),
                    name.span,
                    "its scope has ended",
                )
                .with_label(span, "declared here, in an inner block")
                .with_help(format!(
                    "declare it before the block by `{word} = ...` and change it inside by `{word} := ...`"
                )),
            );
            return true;
        }
        self.program_variable(name)
    }

    fn declared_later(&self, name: Name) -> Option<Span> {
        if self.at.layer.is_some() {
            return None;
        }
        let later = |declared: Name| {
            let fits = declared.symbol == name.symbol && declared.span.start > name.span.start;
            fits.then_some(declared.span)
        };
        if let Some(component) = &self.at.component {
            let mut members = component.declaration.members.iter();
            let found = members.find_map(|member| {
                later(match member {
                    MemberDeclaration::Type(d) => d.name,
                    MemberDeclaration::Proc(d) => d.name,
                    MemberDeclaration::Variable { name, .. } => *name,
                })
            });
            if found.is_some() {
                return found;
            }
        }
        if self.at.body.kind == BodyKind::Main && self.at.component.is_none() {
            let found = self.program_variables().find_map(later);
            if found.is_some() {
                return found;
            }
        }
        self.unit.declarations.iter().find_map(|declaration| {
            later(match declaration {
                Declaration::Type(d) => d.name,
                Declaration::Proc(d) => d.name,
                Declaration::Component(d) => d.name,
            })
        })
    }

    fn program_variables(&self) -> impl Iterator<Item = Name> + use<'a> {
        self.unit
            .statements
            .iter()
            .filter_map(|statement| match &statement.kind {
                ast::ExprKind::Declare(name, _) => Some(*name),
                _ => None,
            })
    }

    fn program_variable(&mut self, name: Name) -> bool {
        if self.at.layer.is_some() || self.at.body.kind == BodyKind::Main {
            return false;
        }
        let mut variables = self.program_variables();
        let Some(declared) = variables.find(|declared| declared.symbol == name.symbol) else {
            return false;
        };
        let word = self.name(name.symbol);
        self.report(
            Diagnostic::error(
                code::PROGRAM_VARIABLE,
                format!("`{word}` is a variable of the program, which components and procedures cannot see"),
                name.span,
                "not visible here",
            )
            .with_label(declared.span, "declared here, in the main sequence")
            .with_help("pass it as an argument, or send it on a channel"),
        );
        true
    }
}
