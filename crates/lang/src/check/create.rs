//! `new` and `any`: components, structs, arrays and boxes come into being.

use hearth_text::counted;

use super::fit::{Fit, Use, convert, faulty, with_article};
use super::name::Wanted;
use super::scope::Binding;
use super::{Checker, Signature};
use crate::codes::semantic as code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{self, Name};
use crate::tree::{ComponentId, Expr, ExprKind};
use crate::types::{Type, TypeId};

impl<'a> Checker<'a> {
    /// `any(e)`
    pub(super) fn boxed(&mut self, value: &'a ast::Expr, span: Span) -> Expr {
        let value = self.value(value);
        if matches!(self.types.get(value.ty), Type::Proc { .. }) {
            self.procedure_in_box(value.span, "boxed");
        }
        Expr {
            kind: ExprKind::Box(Box::new(value)),
            ty: TypeId::ANY,
            span,
        }
    }

    #[cold]
    pub(super) fn procedure_in_box(&mut self, span: Span, how: &str) {
        self.report(
            Diagnostic::error(
                code::PROC_IN_BOX,
                format!("a procedure cannot be {how}"),
                span,
                "this is a procedure",
            )
            .with_note("A box holds data, channels and components.")
            .with_help("to box its result, call it: add parentheses"),
        );
    }

    /// `new in integer`, `new C(…)` and the like, of a name.
    pub(super) fn new_named(&mut self, name: Name, args: &'a [ast::Expr], span: Span) -> Expr {
        match self.find(name.symbol) {
            Some(Binding::Component(id)) => self.new_component(id, name, args, span),
            Some(Binding::Type(ty, _)) if matches!(self.types.get(ty), Type::Struct(_)) => {
                self.new_struct(ty, name, args, span)
            }
            Some(Binding::Type(TypeId::ERROR, _) | Binding::Faulty) => {
                self.check_alone(args);
                faulty(span)
            }
            Some(binding) => {
                self.check_alone(args);
                self.not_makeable(name, binding);
                faulty(span)
            }
            None => {
                self.check_alone(args);
                self.undeclared(name, Wanted::Maker);
                faulty(span)
            }
        }
    }

    #[cold]
    fn not_makeable(&mut self, name: Name, binding: Binding) {
        let word = self.name(name.symbol);
        let what = self.kind_of(binding);
        let help = match binding {
            Binding::Type(ty, _) => match self.types.get(ty) {
                Type::Component(_) => "name a component that presents this interface".to_string(),
                Type::Array(_) => {
                    "arrays are created with their length and initial value: `new integer[8] of 0`"
                        .to_string()
                }
                Type::Enum(_) => "enums are not created; name a label".to_string(),
                _ => "`new` creates components, structs, arrays and channels".to_string(),
            },
            _ => "`new` is followed by the name of a component or a struct type".to_string(),
        };
        let diagnostic = Diagnostic::error(
            code::NOT_MAKEABLE,
            format!("`{word}` is {what} and cannot be created by `new`"),
            name.span,
            "neither a component nor a struct type",
        )
        .with_help(help);
        let declared = self.declared_at(name.symbol);
        let diagnostic =
            self.with_declaration(diagnostic, declared, format!("declared as {what} here"));
        self.report(diagnostic);
    }

    fn new_struct(&mut self, ty: TypeId, name: Name, texts: &'a [ast::Expr], span: Span) -> Expr {
        let count = self.fields(ty).len();
        if count != texts.len() {
            self.check_alone(texts);
            self.wrong_field_count(ty, name, texts.len(), span);
            return Expr { ty, ..faulty(span) };
        }
        let declared = self.declared_at(name.symbol);
        let names = self.names;
        let mut values = Vec::with_capacity(count);
        for (i, text) in texts.iter().enumerate() {
            let value = self.value(text);
            let (field, wanted) = self.fields(ty)[i];
            let used = Use {
                code: code::ARGUMENT,
                purpose: &|| format!("be the field `{}`", names.name(field)),
                because: Some((declared, "declared here, where the field is")),
                help: None,
            };
            values.push(self.coerce(value, wanted, &used));
        }
        Expr {
            kind: ExprKind::NewStruct(values),
            ty,
            span,
        }
    }

    fn fields(&self, ty: TypeId) -> &[(crate::symbol::Symbol, TypeId)] {
        match self.types.get(ty) {
            Type::Struct(fields) => fields,
            _ => &[],
        }
    }

    #[cold]
    fn wrong_field_count(&mut self, ty: TypeId, name: Name, found: usize, span: Span) {
        let word = self.name(name.symbol);
        let count = self.fields(ty).len();
        let few = if found < count { "few" } else { "many" };
        let diagnostic = Diagnostic::error(
            code::ARGUMENT_COUNT,
            format!(
                "too {few} values for `{word}`: it has {}, not {found}",
                counted(count, "field")
            ),
            span,
            "all fields are given, in order",
        )
        .with_note(format!("It is {}.", self.show_full(ty)));
        let declared = self.declared_at(name.symbol);
        let diagnostic = self.with_declaration(diagnostic, declared, "declared here");
        self.report(diagnostic);
    }

    fn new_component(
        &mut self,
        id: ComponentId,
        name: Name,
        texts: &'a [ast::Expr],
        span: Span,
    ) -> Expr {
        let ty = self.components[id.index()].ty;
        let values: Vec<Expr> = texts.iter().map(|text| self.value(text)).collect();
        for value in &values {
            self.leaves_component(value, "passed to another component");
        }
        if values.iter().any(|value| value.ty == TypeId::ERROR) {
            return Expr { ty, ..faulty(span) };
        }
        let Some(constructor) = self.choose_constructor(id, &values) else {
            self.no_constructor_fits(id, name, &values, span);
            return Expr { ty, ..faulty(span) };
        };
        let params = &self.components[id.index()].constructors[constructor].params;
        let args = values
            .into_iter()
            .zip(params.iter().flatten())
            .map(|(value, &param)| match self.fit(value.ty, param) {
                Fit::Widened => convert(value, param),
                _ => value,
            })
            .collect();
        Expr {
            kind: ExprKind::NewComponent {
                component: id,
                constructor,
                args,
            },
            ty,
            span,
        }
    }

    /// An exact match first, then the first in text order that fits by widening.
    fn choose_constructor(&self, id: ComponentId, values: &[Expr]) -> Option<usize> {
        let constructors = &self.components[id.index()].constructors;
        let matches = |signature: &Signature, fits: &dyn Fn(Fit) -> bool| {
            signature.params.as_ref().is_some_and(|params| {
                params.len() == values.len()
                    && values
                        .iter()
                        .zip(params)
                        .all(|(value, &param)| fits(self.fit(value.ty, param)))
            })
        };
        let exact = |fit| fit == Fit::Exact;
        let any = |fit| fit != Fit::No;
        constructors
            .iter()
            .position(|signature| matches(signature, &exact))
            .or_else(|| {
                constructors
                    .iter()
                    .position(|signature| matches(signature, &any))
            })
    }

    #[cold]
    fn no_constructor_fits(&mut self, id: ComponentId, name: Name, values: &[Expr], span: Span) {
        let constructors = &self.components[id.index()].constructors;
        if constructors.is_empty() || constructors.iter().any(|c| c.params.is_none()) {
            return; // reported at the component
        }
        let word = self.name(name.symbol);
        let given: Vec<String> = values.iter().map(|value| self.show(value.ty)).collect();
        let mut diagnostic = Diagnostic::error(
            code::NO_CONSTRUCTOR_FITS,
            format!("no constructor of `{word}` takes ({})", given.join(" ; ")),
            span,
            if values.is_empty() {
                "no arguments are given".to_string()
            } else {
                format!("given: {}", given.join(", "))
            },
        );
        let listed: Vec<(Span, String)> = self.components[id.index()]
            .constructors
            .iter()
            .map(|signature| {
                let params = signature.params.iter().flatten();
                let params: Vec<String> = params.map(|&ty| self.show(ty)).collect();
                (signature.span, params.join(" ; "))
            })
            .collect();
        for (span, params) in &listed {
            diagnostic = self.with_declaration(diagnostic, *span, format!("takes ({params})"));
        }
        let forms: Vec<String> = listed
            .iter()
            .map(|(_, params)| format!("`{word}({params})`"))
            .collect();
        diagnostic = diagnostic.with_help(format!("create it as {}", forms.join(" or ")));
        self.report(diagnostic);
    }

    /// `new integer[2][3] of e`
    pub(super) fn new_array(
        &mut self,
        element: &'a ast::Type,
        lengths: &'a [(u32, Span)],
        init: &'a ast::Expr,
        span: Span,
    ) -> Expr {
        let element_ty = self.resolve(element);
        let init = self.value(init);
        for &(length, at) in lengths {
            if length == 0 {
                self.empty_array(at);
            }
        }
        let used = Use {
            code: code::ARRAY_INITIALISER,
            purpose: &|| "fill this array".to_string(),
            because: Some((element.span, "the elements are")),
            help: None,
        };
        let init = self.coerce(init, element_ty, &used);
        let ty = lengths.iter().fold(element_ty, |ty, _| self.array_type(ty));
        Expr {
            kind: ExprKind::NewArray {
                lengths: lengths.iter().map(|&(length, _)| length).collect(),
                init: Box::new(init),
            },
            ty,
            span,
        }
    }

    #[cold]
    fn empty_array(&mut self, span: Span) {
        self.report(
            Diagnostic::error(
                code::ARRAY_LENGTH,
                "the length of an array must be positive",
                span,
                "this is 0",
            )
            .with_help("an array has at least one element"),
        );
    }

    /// The type of an arm of `project`, which a box may never hold.
    pub(super) fn projectable(&mut self, ty: TypeId, span: Span) {
        if matches!(self.types.get(ty), Type::Proc { .. }) {
            self.procedure_in_box(span, "in a box");
        }
    }

    /// `{expr}` is not what this statement works on.
    pub(super) fn wrong_kind(
        &mut self,
        code: crate::diagnostic::Code,
        value: &Expr,
        cannot: &str,
        wanted: &str,
    ) -> Diagnostic {
        let shown = with_article(&self.show(value.ty));
        Diagnostic::error(
            code,
            format!("{shown} cannot {cannot}"),
            value.span,
            format!("this is {}", self.show_full(value.ty)),
        )
        .with_note(format!("Expected {wanted}."))
    }
}
