//! The compiler's door: from text to diagnostics, C, sizes, heap bounds or the communication graph.
//!
//! The text is parsed once. The library changed its names over the years, so a program is checked
//! against the current prelude first, then against the older ones, and the first under which it has
//! no mistakes counts.

use crate::analysis::futures::{self, Futures};
use crate::analysis::graph::{self, CommunicationGraph};
use crate::analysis::heap_bound::{HeapBound, HeapBounds};
use crate::analysis::size::{self, ComponentSize};
use crate::check;
use crate::codes::semantic::{BESIDE, UNDECLARED};
use crate::core::{self, Lowered};
use crate::diagnostic::Diagnostic;
use crate::emit::{self, ComponentKind};
use crate::layout::Layouts;
use crate::source::{SourceId, Sources, Span};
use crate::symbol::{Interner, Symbol};
use crate::syntax::ast::Unit;
use crate::syntax::{self, Dialect};
use crate::tree::{Asked, Program};

/// A generation of the standard environment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Prelude {
    /// The newest under which the program has no mistakes; [`Prelude::G3`] if there is none.
    #[default]
    Auto,
    G0,
    G1,
    G2,
    /// The current one.
    G3,
}

/// The order of trying.
const GENERATIONS: [Prelude; 4] = [Prelude::G3, Prelude::G2, Prelude::G1, Prelude::G0];

impl Prelude {
    /// `g3` and the like, as the command line and messages name it.
    pub fn name(self) -> &'static str {
        match self {
            Prelude::Auto => "auto",
            Prelude::G0 => "g0",
            Prelude::G1 => "g1",
            Prelude::G2 => "g2",
            Prelude::G3 => "g3",
        }
    }

    /// The generation of that name, in either case of letters.
    pub fn from_name(name: &str) -> Option<Prelude> {
        let all = [Prelude::Auto].into_iter().chain(GENERATIONS);
        all.into_iter()
            .find(|prelude| prelude.name().eq_ignore_ascii_case(name))
    }

    /// Its own text; all but the current one extend the current one.
    fn source(self) -> SourceId {
        match self {
            Prelude::Auto | Prelude::G3 => SourceId::PRELUDE,
            Prelude::G2 => SourceId(2),
            Prelude::G1 => SourceId(3),
            Prelude::G0 => SourceId(4),
        }
    }
}

/// Options of checking and compiling.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompileOptions {
    pub prelude: Prelude,
    /// The original's behaviour at run time. The rules of the language stay as they are.
    pub compat_original: bool,
    /// Code outside of the program creates components of it and talks to them. So all components
    /// stay, though the main sequence creates none of them, and no heap has a bound.
    pub hosted: bool,
    /// Calls and loops that are proved to be independent run beside what follows them.
    pub futures: bool,
}

/// A checked text.
#[derive(Debug)]
pub struct Checked {
    /// In the order of the text; the user's first.
    pub diagnostics: Vec<Diagnostic>,
    /// `None` if a diagnostic is an error.
    pub program: Option<Program>,
    /// The generation that was used, never [`Prelude::Auto`].
    pub prelude: Prelude,
}

/// Parses and checks a program.
pub fn check(text: &str, options: &CompileOptions) -> Checked {
    let mut names = Interner::default();
    let parsed = syntax::parse(text, SourceId::USER, &mut names, Dialect::Program);
    let readable = !parsed.has_errors();
    let mut environment = Environment::default();
    let candidates = match &options.prelude {
        Prelude::Auto => &GENERATIONS[..],
        fixed => std::slice::from_ref(fixed),
    };
    let mut refused: Vec<(Vec<Diagnostic>, Prelude)> = Vec::new();
    for &prelude in candidates {
        let units = environment.units(prelude, &mut names);
        let (program, found) =
            check::check(&parsed.unit, units, &mut names, options.compat_original);
        let Some(program) = program else {
            refused.push((found, prelude));
            continue;
        };
        let mut checked = Checked {
            diagnostics: in_order(parsed.diagnostics, found),
            program: readable.then_some(program),
            prelude,
        };
        checked.prove_asked(options);
        return checked;
    }
    let older = refused.split_off(1);
    let (mut found, prelude) = refused.pop().expect("at least one prelude was tried");
    environment.name_older(&mut found, &older, text, &mut names);
    Checked {
        diagnostics: in_order(parsed.diagnostics, found),
        program: None,
        prelude,
    }
}

impl Checked {
    /// Refuses what stands behind `beside` and is not proved to be independent.
    fn prove_asked(&mut self, options: &CompileOptions) {
        let Some(program) = self.program.as_mut() else {
            return;
        };
        if program.asked.is_empty() {
            return;
        }
        // As in compiling: what is never reached is no reason.
        let used = Used::of(program);
        let refused = pruned_futures(program, options).refused;
        used.restore(program);
        let asked = |span| program.asked.iter().find(|asked| asked.what == span);
        let mistakes = refused.iter().filter_map(|refusal| {
            let asked = asked(refusal.span)?;
            Some(refused_word(refusal, asked))
        });
        let mistakes: Vec<Diagnostic> = mistakes.collect();
        if !mistakes.is_empty() {
            self.program = None;
            self.diagnostics = in_order(std::mem::take(&mut self.diagnostics), mistakes);
        }
    }
}

/// The reachable procedures and components of a program.
struct Used(Vec<bool>, Vec<bool>);

impl Used {
    fn of(program: &Program) -> Used {
        let procs = program.procs.iter().map(|proc| proc.used);
        let components = program.components.iter().map(|component| component.used);
        Used(procs.collect(), components.collect())
    }

    fn restore(self, program: &mut Program) {
        for (proc, used) in program.procs.iter_mut().zip(self.0) {
            proc.used = used;
        }
        for (component, used) in program.components.iter_mut().zip(self.1) {
            component.used = used;
        }
    }
}

fn refused_word(refusal: &futures::Refusal, asked: &Asked) -> Diagnostic {
    let word = Span {
        end: asked.text.start + "beside".len() as u32,
        ..asked.text
    };
    let title = format!("`beside` is not proved here: {}", refusal.title);
    let mut diagnostic =
        Diagnostic::error(BESIDE, title, word, "this claims that nothing is shared");
    for label in &refusal.labels {
        diagnostic = diagnostic.with_label(label.span, &label.text);
    }
    for note in &refusal.notes {
        diagnostic = diagnostic.with_note(note);
    }
    diagnostic
        .with_note(format!("The reason is `{}`.", refusal.reason.id()))
        .with_help("remove the word, or what stands in its way")
}

/// A compiled text.
#[derive(Debug)]
pub struct Compiled {
    pub diagnostics: Vec<Diagnostic>,
    /// The C11 text; `None` if a diagnostic is an error.
    pub c: Option<String>,
    pub prelude: Prelude,
    /// The kinds of component in the text that stayed; empty with errors.
    pub kinds: Vec<ComponentKind>,
    /// The C names of the pointers to the services that the program uses; empty with errors.
    pub services: Vec<String>,
    /// The names of the probes in the text.
    pub probes: Vec<String>,
}

/// Chooses by their names which calls get probes.
pub type Choose<'a> = &'a dyn Fn(&str) -> bool;

/// Compiles a program to C11. Messages call the text `name`, a path as a rule.
pub fn compile(text: &str, name: &str, options: &CompileOptions) -> Compiled {
    compile_with_probes(text, name, options, None)
}

/// Compiles a program to C11 as [`compile`] does, with probes around the calls that are chosen:
/// `Kind.procedure`, `Kind.constructor` and `Kind.behaviour` of a kind of component, `procedure`
/// and `main` outside of components, and `Kind.channel.send`, `Kind.channel.receive` and
/// `Kind.select` for what waits at channels. With None it is a program without probes, and also
/// without what begins a monitor.
pub fn compile_with_probes(
    text: &str,
    name: &str,
    options: &CompileOptions,
    probes: Option<Choose<'_>>,
) -> Compiled {
    let mut checked = check(text, options);
    let mut compiled = Compiled {
        diagnostics: checked.diagnostics,
        c: None,
        prelude: checked.prelude,
        kinds: Vec::new(),
        services: Vec::new(),
        probes: Vec::new(),
    };
    if let Some(program) = &mut checked.program {
        let hosted = options.hosted;
        core::prune(program, |component| {
            hosted && component.span.source == SourceId::USER
        });
        lowered_with(
            program,
            text,
            name,
            options,
            (probes, options.futures),
            |input| {
                let (c, names) = emit::emit(*input);
                compiled.c = Some(c);
                compiled.probes = names;
                compiled.kinds = emit::kinds(input);
                compiled.services = emit::services(input);
            },
        );
    }
    compiled
}

/// The size of every component of a program, in the order of the text; empty with errors.
pub fn sizes(text: &str, name: &str, options: &CompileOptions) -> Vec<ComponentSize> {
    let mut sizes = Vec::new();
    if let Some(program) = &check(text, options).program {
        lowered(program, text, name, options, |input| {
            sizes = size::sizes(input);
        });
    }
    sizes
}

/// The bound of each heap of a program, as compiled into it: by the names of its components, with
/// those of the prelude that it uses and `main`; empty with errors.
pub fn heap_bounds(text: &str, name: &str, options: &CompileOptions) -> Vec<(String, HeapBound)> {
    let mut bounds = Vec::new();
    if let Some(program) = &mut check(text, options).program {
        core::prune(program, |_| false);
        lowered(program, text, name, options, |input| {
            bounds = HeapBounds::new(input, &Layouts::new(input)).by_name(input.program);
        });
    }
    bounds
}

/// The communication graph of a program, as far as the text tells; `None` with errors.
pub fn graph(text: &str, name: &str, options: &CompileOptions) -> Option<CommunicationGraph> {
    let program = &mut check(text, options).program?;
    core::prune(program, |_| false);
    let mut bounds = Vec::new();
    lowered(program, text, name, options, |input| {
        bounds = HeapBounds::new(input, &Layouts::new(input)).by_name(input.program);
    });
    let mut known = bounds.into_iter().map(|(_, bound)| match bound {
        HeapBound::Bounded(room) => Some(room.bytes),
        HeapBound::Unbounded(_) => None,
    });
    let used = program.components.iter().map(|component| component.used);
    let mut heaps: Vec<Option<u64>> = used
        .map(|is_used| {
            if is_used {
                known.next().flatten()
            } else {
                None
            }
        })
        .collect();
    heaps.push(known.next().flatten());
    let options = core::LoweringOptions {
        compat_original: options.compat_original,
    };
    let module = core::lowered(program, options);
    Some(graph::of(program, &module, &heaps))
}

/// Calls and loops of a program that may run beside what follows them, and those that must not;
/// `None` with errors.
pub fn futures(text: &str, options: &CompileOptions) -> Option<Futures> {
    let program = &mut check(text, options).program?;
    Some(pruned_futures(program, options))
}

fn pruned_futures(program: &mut Program, options: &CompileOptions) -> Futures {
    let hosted = options.hosted;
    core::prune(program, |component| {
        hosted && component.span.source == SourceId::USER
    });
    let options = core::LoweringOptions {
        compat_original: options.compat_original,
    };
    let module = core::lowered(program, options);
    futures::of(program, &module)
}

fn lowered(
    program: &Program,
    text: &str,
    name: &str,
    options: &CompileOptions,
    then: impl FnOnce(&Lowered<'_>),
) {
    lowered_with(program, text, name, options, (None, false), then);
}

fn lowered_with(
    program: &Program,
    text: &str,
    name: &str,
    options: &CompileOptions,
    (probes, has_futures): (Option<Choose<'_>>, bool),
    then: impl FnOnce(&Lowered<'_>),
) {
    let hosted = options.hosted;
    let options = core::LoweringOptions {
        compat_original: options.compat_original,
    };
    let (module, effects) = core::build(program, options, &|module| match has_futures {
        true => futures::of(program, module).marks(true),
        false if program.asked.is_empty() => Vec::new(),
        false => futures::of(program, module).marks(false),
    });
    let sources = Sources::new(name, text);
    then(&Lowered {
        program,
        module: &module,
        effects: &effects,
        options,
        hosted,
        probes,
        sources,
    });
}

/// Checks the whole text of a generation of the prelude, reachable or not.
pub fn check_prelude(prelude: Prelude) -> Checked {
    let mut names = Interner::default();
    let mut environment = Environment::default();
    let units = environment.units(prelude, &mut names);
    let (program, found) = check::check_prelude(units, &mut names);
    Checked {
        diagnostics: in_order(environment.diagnostics, found),
        program,
        prelude,
    }
}

/// The parsed preludes: the current one, then the older one that extends it.
#[derive(Default)]
struct Environment {
    units: Vec<Unit>,
    diagnostics: Vec<Diagnostic>,
    /// The names that the older preludes tried so far declare.
    older: Vec<(Symbol, Prelude)>,
}

impl Environment {
    fn units(&mut self, prelude: Prelude, names: &mut Interner) -> &[Unit] {
        if self.units.is_empty() {
            self.add(Prelude::G3, names);
        }
        self.units.truncate(1);
        if !matches!(prelude, Prelude::Auto | Prelude::G3) {
            self.add(prelude, names);
        }
        &self.units
    }

    fn add(&mut self, prelude: Prelude, names: &mut Interner) {
        let source = prelude.source();
        let (_, text) = source.prelude().expect("a prelude's source");
        let parsed = syntax::parse(text, source, names, Dialect::Prelude);
        if prelude != Prelude::G3 {
            let declared = check::declared_names(&parsed.unit);
            self.older.extend(declared.map(|symbol| (symbol, prelude)));
        }
        self.units.push(parsed.unit);
        self.diagnostics.extend(parsed.diagnostics);
    }

    /// Notes where a missing name is one of an older prelude, under which the program has other
    /// mistakes: the first of them, and how to see all.
    fn name_older(
        &self,
        found: &mut [Diagnostic],
        refused: &[(Vec<Diagnostic>, Prelude)],
        text: &str,
        names: &mut Interner,
    ) {
        let lines = Sources::new("", text).lines(SourceId::USER);
        for diagnostic in found.iter_mut().filter(|d| d.code == UNDECLARED) {
            let span = diagnostic.primary.span;
            let word = text.get(span.start as usize..span.end as usize);
            let symbol = names.intern(word.unwrap_or_default());
            if let Some((_, prelude)) = self.older.iter().find(|(older, _)| *older == symbol) {
                let name = prelude.name();
                let mistakes = refused.iter().find(|(_, refused)| refused == prelude);
                let first = mistakes.and_then(|(found, _)| {
                    let mut errors = found.iter().filter(|d| d.is_error());
                    errors.find(|d| d.primary.span.source == SourceId::USER)
                });
                let first = first.map_or(String::new(), |first| {
                    let line = lines.line(first.primary.span.start);
                    format!(" The first is in line {line}: {}.", first.title)
                });
                diagnostic.notes.push(format!(
                    "The older environment `{name}` has this name, but under it the program has \
                     other mistakes.{first} `hearth check --prelude {name}` shows them all."
                ));
            }
        }
    }
}

fn in_order(mut syntax: Vec<Diagnostic>, semantic: Vec<Diagnostic>) -> Vec<Diagnostic> {
    syntax.extend(semantic);
    syntax.sort_by_key(|d| (d.primary.span.source, d.primary.span.start));
    syntax
}
