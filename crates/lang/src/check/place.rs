//! Places: fields, channels of components, elements, lengths, and assignment to them.

use hearth_text::near::nearest;

use super::Checker;
use super::fit::{Use, faulty, with_article};
use super::scope::Binding;
use crate::codes::semantic as code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{self, Name};
use crate::tree::{Expr, ExprKind};
use crate::types::{Type, TypeId};

impl<'a> Checker<'a> {
    /// `base.length`
    pub(super) fn length(&mut self, base: &'a ast::Expr, span: Span) -> Expr {
        let base = self.value(base);
        match self.types.get(base.ty) {
            Type::Array(_) | Type::String => {}
            Type::Error => return known(span, TypeId::INTEGER),
            _ => {
                self.no_length(&base, span);
                return known(span, TypeId::INTEGER);
            }
        }
        Expr {
            kind: ExprKind::Length(Box::new(base)),
            ty: TypeId::INTEGER,
            span,
        }
    }

    #[cold]
    fn no_length(&mut self, base: &Expr, span: Span) {
        let shown = with_article(&self.show(base.ty));
        self.report(
            Diagnostic::error(
                code::NO_LENGTH,
                format!("{shown} has no length"),
                behind(base.span, span),
                "`.length` is for arrays and strings",
            )
            .with_label(base.span, format!("this is {}", self.show_full(base.ty))),
        );
    }

    /// `base.name`: a field of a struct or a channel of a component.
    pub(super) fn member(&mut self, base: &'a ast::Expr, name: Name, span: Span) -> Expr {
        if let Some(answer) = self.member_of_type(base, name) {
            return answer;
        }
        let base = self.value(base);
        let (kind, ty) = match self.types.get(base.ty) {
            Type::Error => return faulty(span),
            Type::Struct(fields) => {
                match fields.iter().position(|&(field, _)| field == name.symbol) {
                    Some(at) => {
                        let ty = fields[at].1;
                        (ExprKind::Field(Box::new(base), at as u32), ty)
                    }
                    None => {
                        let fields: Vec<_> = fields.iter().map(|&(field, _)| field).collect();
                        let names = fields.iter().map(|&field| self.name(field)).collect();
                        self.no_member(&base, name, "field", names);
                        return faulty(span);
                    }
                }
            }
            Type::Component(ports) => {
                match ports.binary_search_by_key(&name.symbol, |port| port.name) {
                    Ok(at) => {
                        let port = ports[at];
                        let ty = self.channel_type(port.direction, port.payload);
                        (ExprKind::PortOf(Box::new(base), name.symbol), ty)
                    }
                    Err(_) => {
                        let names = ports.iter().map(|port| self.name(port.name)).collect();
                        self.no_member(&base, name, "channel", names);
                        return faulty(span);
                    }
                }
            }
            _ => {
                self.no_members(&base, name);
                return faulty(span);
            }
        };
        Expr { kind, ty, span }
    }

    /// `Colour.red`, `C.output`: the base names a type.
    fn member_of_type(&mut self, base: &'a ast::Expr, name: Name) -> Option<Expr> {
        let ast::ExprKind::Name(symbol) = base.kind else {
            return None;
        };
        let binding = self.find(symbol).filter(|binding| binding.is_type())?;
        let (word, member) = (self.name(symbol), self.name(name.symbol));
        let (what, help) = match binding {
            Binding::Type(ty, _) if matches!(self.types.get(ty), Type::Enum(_)) => (
                "an enum",
                format!("labels are named without their type: `{member}`"),
            ),
            Binding::Component(_) => (
                "a component",
                format!(
                    "make an instance, `x = new {word}(...)`, and name its channel: `x.{member}`"
                ),
            ),
            _ => (
                "a type",
                format!("name a variable of that type: `x.{member}`"),
            ),
        };
        self.report(
            Diagnostic::error(
                code::TYPE_FOR_VALUE,
                format!("`{word}` is {what}, not a value"),
                base.span,
                "a value is needed before the dot",
            )
            .with_help(help),
        );
        Some(faulty(base.span))
    }

    #[cold]
    fn no_member(&mut self, base: &Expr, name: Name, what: &str, names: Vec<&str>) {
        let word = self.name(name.symbol);
        let code = if what == "field" {
            code::NO_FIELD
        } else {
            code::NO_CHANNEL
        };
        let shown = self.show(base.ty);
        let mut diagnostic = Diagnostic::error(
            code,
            format!("`{shown}` has no {what} `{word}`"),
            name.span,
            format!("no such {what}"),
        )
        .with_label(base.span, format!("this is {}", self.show_full(base.ty)));
        let near = nearest(word, names.iter().copied());
        diagnostic = match near {
            Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
            None if names.is_empty() => diagnostic.with_help(format!("it has no {what}s at all")),
            None if names.len() == 1 => {
                diagnostic.with_help(format!("its only {what} is `{}`", names[0]))
            }
            None => diagnostic.with_help(format!("its {what}s are `{}`", names.join("`, `"))),
        };
        self.report(diagnostic);
    }

    #[cold]
    fn no_members(&mut self, base: &Expr, name: Name) {
        let word = self.name(name.symbol);
        let shown = with_article(&self.show(base.ty));
        let mut diagnostic = Diagnostic::error(
            code::NO_MEMBERS,
            format!("{shown} has neither fields nor channels"),
            name.span,
            format!("`.{word}` is for structs and components"),
        )
        .with_label(base.span, format!("this is {}", self.show_full(base.ty)));
        diagnostic = match self.types.get(base.ty) {
            Type::Any => diagnostic
                .with_help("take the value out of the box first: `project ... as x onto ...`"),
            Type::Array(_) if matches!(word, "size" | "count" | "len") => {
                diagnostic.with_help("the length of an array is `.length`")
            }
            Type::Array(_) => diagnostic.with_help("choose an element first: `...[i]`"),
            Type::Proc { .. } => diagnostic.with_help("call the procedure first: `...()`"),
            Type::Channel(..) => {
                diagnostic.with_help("take a value from the channel first: `receive x from ...`")
            }
            _ => diagnostic,
        };
        self.report(diagnostic);
    }

    /// `base[i, j]`
    pub(super) fn index(
        &mut self,
        base: &'a ast::Expr,
        indices: &'a [ast::Expr],
        whole: Span,
    ) -> Expr {
        let mut result = self.value(base);
        for (number, text) in indices.iter().enumerate() {
            let index = self.value(text);
            let is_last = number + 1 == indices.len();
            let end = if is_last { whole.end } else { text.span.end };
            result = self.element(result, index, Span { end, ..base.span });
        }
        result
    }

    fn element(&mut self, base: Expr, index: Expr, span: Span) -> Expr {
        let fits = matches!(
            index.ty,
            TypeId::INTEGER | TypeId::UNSIGNED | TypeId::BYTE | TypeId::ERROR
        );
        if !fits {
            self.bad_index(&index);
        }
        match *self.types.get(base.ty) {
            Type::Array(element) => Expr {
                kind: ExprKind::Index(Box::new(base), Box::new(index)),
                ty: element,
                span,
            },
            Type::Error => faulty(span),
            _ => {
                self.not_an_array(&base, index.span);
                faulty(span)
            }
        }
    }

    #[cold]
    fn bad_index(&mut self, index: &Expr) {
        let shown = with_article(&self.show(index.ty));
        let mut diagnostic = Diagnostic::error(
            code::INDEX_TYPE,
            format!("{shown} cannot be an index"),
            index.span,
            format!("this is {}", self.show_full(index.ty)),
        )
        .with_note("An index is an integer, unsigned or byte.");
        if index.ty == TypeId::REAL {
            diagnostic = diagnostic.with_help("`realToInt(...)` makes an integer of a real");
        }
        self.report(diagnostic);
    }

    #[cold]
    fn not_an_array(&mut self, base: &Expr, at: Span) {
        let shown = with_article(&self.show(base.ty));
        let mut diagnostic = Diagnostic::error(
            code::NOT_AN_ARRAY,
            format!("{shown} cannot be indexed"),
            at,
            "only arrays have elements",
        )
        .with_label(base.span, format!("this is {}", self.show_full(base.ty)));
        if base.ty == TypeId::STRING {
            diagnostic = diagnostic.with_help("`charAt(s, $0)` gives a character's code");
        }
        self.report(diagnostic);
    }

    /// `place := value`
    pub(super) fn assign(&mut self, place: &'a ast::Expr, value: &'a ast::Expr) -> ExprKind {
        let target = self.target(place);
        let value = self.value(value);
        let because = self.place_declaration(&target);
        let names = self.names;
        let used = Use {
            code: code::ASSIGNMENT,
            purpose: &|| match &place.kind {
                ast::ExprKind::Name(symbol) => {
                    format!("be stored in `{}`", names.name(*symbol))
                }
                ast::ExprKind::Field(_, name) => {
                    format!("be stored in `.{}`", names.name(name.symbol))
                }
                _ => "be stored here".to_string(),
            },
            because,
            help: None,
        };
        let value = self.coerce(value, target.ty, &used);
        ExprKind::Assign(Box::new(target), Box::new(value))
    }

    fn target(&mut self, place: &'a ast::Expr) -> Expr {
        let mut place = place;
        while let ast::ExprKind::Paren(inner) = &place.kind {
            place = inner;
        }
        if let ast::ExprKind::Name(symbol) = place.kind {
            let name = Name {
                symbol,
                span: place.span,
            };
            return self.named_target(name);
        }
        let target = self.value(place);
        match target.kind {
            ExprKind::Index(..) | ExprKind::Field(..) | ExprKind::PortOf(..) | ExprKind::Error => {
                target
            }
            _ => {
                self.no_place(&target);
                faulty(place.span)
            }
        }
    }

    #[cold]
    fn no_place(&mut self, target: &Expr) {
        let (title, label, help) = match target.kind {
            ExprKind::Length(_) => (
                "the length of an array cannot be changed",
                "fixed when the array was created",
                "create a new array of the right length and copy the elements",
            ),
            _ => (
                "this cannot be assigned to",
                "not a place that holds a value",
                "only variables, elements, fields and channels can be left of `:=`",
            ),
        };
        let diagnostic = Diagnostic::error(code::NOT_ASSIGNABLE, title, target.span, label);
        self.report(diagnostic.with_help(help));
    }

    fn named_target(&mut self, name: Name) -> Expr {
        match self.find(name.symbol) {
            None => {
                self.undeclared(name, super::name::Wanted::Variable);
                // Meant as a declaration, as a rule: its uses are no mistakes of their own.
                self.declare(name, Binding::Faulty);
                faulty(name.span)
            }
            Some(Binding::Local(..) | Binding::Member(..) | Binding::Port(..)) => {
                self.named_value(name.symbol, name.span)
            }
            Some(Binding::Faulty) => faulty(name.span),
            Some(binding) => {
                self.not_assignable(name, binding);
                faulty(name.span)
            }
        }
    }

    #[cold]
    fn not_assignable(&mut self, name: Name, binding: Binding) {
        let word = self.name(name.symbol);
        let what = self.kind_of(binding);
        let diagnostic = Diagnostic::error(
            code::NOT_ASSIGNABLE,
            format!("`{word}` is {what} and cannot be assigned to"),
            name.span,
            "not a variable",
        )
        .with_help(format!(
            "declare a variable of your own: `x = {word}`, then `x := ...`"
        ));
        let declared = self.declared_at(name.symbol);
        let diagnostic =
            self.with_declaration(diagnostic, declared, format!("declared as {what} here"));
        self.report(diagnostic);
    }
}

fn known(span: Span, ty: TypeId) -> Expr {
    Expr { ty, ..faulty(span) }
}

/// The part of `whole` after its beginning `base`.
fn behind(base: Span, whole: Span) -> Span {
    Span {
        start: base.end.min(whole.end),
        ..whole
    }
}
