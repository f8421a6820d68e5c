//! Syntax tree to typed tree: names resolved, types known, every mistake reported.
//!
//! One pass in text order, as the language wants it: everything is declared before use. The
//! prelude is the exception. Its declarations are only indexed by name ([`prelude`]), and one is
//! checked when something names it, so a small program costs little and the result holds nothing
//! that is not reachable.
//!
//! A mistake is reported where it stands and its node becomes [`TypeId::ERROR`], which fits
//! everywhere: what depends on it stays silent.

mod body;
mod call;
mod channel;
mod control;
mod create;
mod declare;
mod fit;
mod name;
mod operator;
mod place;
mod prelude;
mod scope;
mod show;
mod types;

use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::symbol::{Interner, Symbol};
use crate::syntax::ast;
use crate::tree::{
    Asked, Channel, Component, ComponentId, Global, Local, Member, Proc, ProcCode, ProcId, Program,
};
use crate::types::{Port, TypeId, Types};
pub(crate) use prelude::declared_names;
use scope::{Binding, Scopes};

/// Checks a program against a prelude, whose units are given oldest first: each later one
/// extends the earlier and hides names of it. The program is there if nothing is an error.
///
/// Under `compat_original`, control may come back from `stop` and `throw`, so they agree with no
/// branch that yields a value.
///
/// On success the names move into the program.
pub fn check(
    unit: &ast::Unit,
    prelude: &[ast::Unit],
    names: &mut Interner,
    compat_original: bool,
) -> (Option<Program>, Vec<Diagnostic>) {
    run(unit, prelude, names, compat_original, false)
}

/// Checks a prelude alone, all of it, reachable or not.
pub fn check_prelude(
    prelude: &[ast::Unit],
    names: &mut Interner,
) -> (Option<Program>, Vec<Diagnostic>) {
    run(&ast::Unit::default(), prelude, names, false, true)
}

fn run(
    unit: &ast::Unit,
    prelude: &[ast::Unit],
    names: &mut Interner,
    compat_original: bool,
    everything: bool,
) -> (Option<Program>, Vec<Diagnostic>) {
    let exception_type = names.intern("ExceptionType");
    let mut checker = Checker::new(unit, prelude, names);
    let exceptions = checker.find_type_of_prelude(exception_type);
    checker.exception_type = exceptions;
    if compat_original {
        checker.departure = TypeId::VOID;
    }
    let main = checker.unit(unit);
    if everything {
        checker.demand_everything();
    }
    checker.finish_prelude();
    let (mut program, diagnostics) = checker.into_program(main);
    if let Some(program) = &mut program {
        program.names = std::mem::take(names);
    }
    (program, diagnostics)
}

struct Checker<'a> {
    names: &'a Interner,
    unit: &'a ast::Unit,
    prelude: prelude::Index<'a>,
    types: Types,
    /// By type: the name it was first declared under.
    declared_names: Vec<Option<Symbol>>,
    type_names: Vec<(TypeId, Symbol)>,
    /// Interfaces in their order of writing, which their types forget.
    interfaces: Vec<Vec<(Port, Span)>>,
    procs: Vec<ProcEntry>,
    components: Vec<ComponentEntry>,
    globals: Vec<Global>,
    exception_type: TypeId,
    /// The type of `stop` and `throw`.
    departure: TypeId,
    at: CheckPosition<'a>,
    /// Calls and loops behind `beside`.
    asked: Vec<Asked>,
    diagnostics: Vec<Diagnostic>,
}

/// The checker's position in the text.
struct CheckPosition<'a> {
    scopes: Scopes,
    body: BodyState,
    component: Option<ComponentState<'a>>,
    /// The unit of the prelude this text belongs to; None is the user's.
    layer: Option<u32>,
}

/// The body under check.
struct BodyState {
    kind: BodyKind,
    locals: Vec<Local>,
    /// Number of `try` texts that enclose this point.
    tries: u32,
    /// The procedure's own name, for a word about recursion.
    proc: Option<(Symbol, ProcId)>,
    /// It names a member or channel of its component.
    captures: bool,
    /// The procedures of its component that it names.
    uses: Vec<ProcId>,
    /// A `return` stands in it.
    returns: bool,
    /// The variable of the `select` arm whose guard is under check: not yet declared.
    guarded: Option<ast::Name>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum BodyKind {
    Main,
    /// A member or a prelude instance.
    Initialiser,
    Constructor,
    Behaviour,
    /// With its result, VOID without one.
    Proc(TypeId),
}

impl BodyState {
    fn new(kind: BodyKind) -> Self {
        BodyState {
            kind,
            locals: Vec::new(),
            tries: 0,
            proc: None,
            captures: false,
            uses: Vec::new(),
            returns: false,
            guarded: None,
        }
    }
}

/// The component under check.
struct ComponentState<'a> {
    id: ComponentId,
    declaration: &'a ast::ComponentDeclaration,
    /// Its interfaces could not all be read or found.
    unknown_ports: bool,
    members: Vec<Member>,
    forwards: Vec<Forward>,
    leaving: Vec<Leaving>,
}

/// A procedure of a component that is to leave it. Whether it may is known once the whole component
/// has been checked.
struct Leaving {
    proc: ProcId,
    /// The place where it leaves, and the way.
    span: Span,
    how: &'static str,
}

/// A procedure called through the name of its type before it is declared.
struct Forward {
    name: Symbol,
    ty: TypeId,
    proc: ProcId,
    /// The first such call.
    span: Span,
    declared: bool,
}

struct ProcEntry {
    name: Symbol,
    owner: Option<ComponentId>,
    ty: TypeId,
    result: TypeId,
    span: Span,
    /// It names a member or channel of its component; when all of the component has been checked,
    /// also true if a procedure that it uses does.
    captures: bool,
    uses: Vec<ProcId>,
    code: Option<ProcCode>,
}

struct ComponentEntry {
    name: Symbol,
    span: Span,
    ty: TypeId,
    channels: Vec<Channel>,
    constructors: Vec<Signature>,
    /// Some of the channels are not known, because of a mistake already reported.
    unknown_ports: bool,
    service: bool,
    done: Option<Component>,
}

/// The parameters of a constructor.
struct Signature {
    /// None when they could not be read.
    params: Option<Vec<TypeId>>,
    span: Span,
}

impl<'a> Checker<'a> {
    fn new(unit: &'a ast::Unit, prelude: &'a [ast::Unit], names: &'a Interner) -> Self {
        let (prelude, globals) = prelude::Index::new(prelude, names.len());
        Checker {
            names,
            unit,
            prelude,
            types: Types::default(),
            declared_names: Vec::new(),
            type_names: Vec::new(),
            interfaces: Vec::new(),
            procs: Vec::new(),
            components: Vec::new(),
            globals,
            exception_type: TypeId::ERROR,
            departure: TypeId::NEVER,
            at: CheckPosition {
                scopes: Scopes::with_capacity(names.len()),
                body: BodyState::new(BodyKind::Main),
                component: None,
                layer: None,
            },
            asked: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    fn name(&self, symbol: Symbol) -> &'a str {
        self.names.name(symbol)
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Binds a name in the innermost scope, or reports that it is taken there.
    fn declare(&mut self, name: ast::Name, binding: Binding) {
        match self.at.scopes.lookup_here(name.symbol) {
            Some(earlier) if earlier.binding != Binding::Faulty => {
                let earlier = *earlier;
                self.declared_twice(name, earlier);
            }
            _ => self.at.scopes.bind(name.symbol, name.span, binding),
        }
    }

    fn into_program(mut self, main: crate::tree::Body) -> (Option<Program>, Vec<Diagnostic>) {
        self.diagnostics
            .sort_by_key(|d| (d.primary.span.source, d.primary.span.start));
        if self.diagnostics.iter().any(Diagnostic::is_error) {
            return (None, self.diagnostics);
        }
        let procs = self.procs.into_iter().map(ProcEntry::finish).collect();
        let components = self
            .components
            .into_iter()
            .map(|entry| entry.done.expect("a component without its body"))
            .collect();
        let program = Program {
            types: self.types,
            names: Interner::default(),
            procs,
            components,
            globals: self.globals,
            main,
            exception_type: self.exception_type,
            type_names: self.type_names,
            asked: self.asked,
        };
        (Some(program), self.diagnostics)
    }
}

impl ProcEntry {
    fn finish(self) -> Proc {
        Proc {
            name: self.name,
            owner: self.owner,
            ty: self.ty,
            result: self.result,
            code: self.code.expect("a procedure without its body"),
            bound: self.owner.is_some() && self.captures,
            span: self.span,
            used: true,
        }
    }
}
