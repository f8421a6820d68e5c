//! Core IR to C11: readable, deterministic, without warnings.
//!
//! Each component becomes a struct and a function that resumes it; each function that may park
//! becomes a resumable one over its frame, a struct nested in the component's. C's names and the
//! structs' layouts come from [`layout`](crate::layout), so that sizes are known without a C
//! compiler; the emitted `_Static_assert`s keep C in step with them.

mod beside;
mod component;
mod function;
mod probes;
mod shapes;
mod trace;
mod types;
mod values;

use crate::analysis::heap_bound::HeapBounds;
use crate::core::Lowered;
use crate::core::effects::names_globals;
use crate::core::ir::Role;
use crate::layout::Layouts;
use crate::layout::names::Names;
use crate::source::{LineIndex, SourceId, Span};
use crate::tree::{ComponentId, GlobalId, ProcId};
use crate::types::TypeId;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;

/// Longer channel expressions are cut in messages.
const QUOTE_CHARS_MAX: usize = 48;

/// The state that the parts of the emitter share.
struct Context<'a> {
    input: Lowered<'a>,
    /// The position of each function.
    functions: HashMap<Role, usize>,
    names: Names,
    /// By source.
    lines: Vec<LineIndex>,
    layouts: Layouts,
    heaps: HeapBounds,
    shapes: shapes::Shapes,
    /// Descriptors asked for so far.
    used_types: RefCell<BTreeSet<TypeId>>,
    /// Sites, by what they say.
    sites: RefCell<BTreeMap<(u16, u32, u32, String), usize>>,
    site_list: RefCell<Vec<String>>,
    used_texts: RefCell<BTreeSet<u32>>,
    used_structs: RefCell<BTreeSet<TypeId>>,
    /// The names each function mentions besides its own: what none mentions is unused. A handler
    /// that nothing can reach may have been the only one.
    mentioned: RefCell<HashSet<String>>,
    copies: beside::Copies,
    /// Numbers of probes, by name.
    probes: RefCell<BTreeMap<String, usize>>,
    /// The states in which a function waits for another one's frame, nested in its own.
    calls: RefCell<HashMap<Role, Vec<(u32, ProcId)>>>,
    /// Whether a function's frame has something to trace, of those asked about.
    traced: RefCell<HashMap<Role, bool>>,
}

/// The whole C file, and the names of the probes in it.
pub fn emit(input: Lowered<'_>) -> (String, Vec<String>) {
    let names = Names::new(input.program);
    let layouts = Layouts::new(&input);
    let heaps = HeapBounds::new(&input, &layouts);
    let functions = input.module.functions.iter().enumerate();
    let context = Context {
        input,
        functions: functions.map(|(i, f)| (f.role, i)).collect(),
        names,
        lines: (0..SourceId::COUNT)
            .map(|i| input.sources.lines(SourceId(i)))
            .collect(),
        layouts,
        heaps,
        shapes: shapes::Shapes::new(&input),
        used_types: RefCell::default(),
        sites: RefCell::default(),
        site_list: RefCell::default(),
        used_texts: RefCell::default(),
        used_structs: RefCell::default(),
        mentioned: RefCell::default(),
        copies: beside::Copies::of(&input),
        probes: RefCell::default(),
        calls: RefCell::default(),
        traced: RefCell::default(),
    };
    // Bodies first: they tell which descriptors and sites are needed.
    let mut texts: Vec<String> = input
        .module
        .functions
        .iter()
        .flat_map(|function| {
            let first = function::emit(&context, function, context.first_copy(function));
            let mut texts = context.with_probe(function, first);
            for copy in context.more_copies(function) {
                texts.push(function::emit(&context, function, copy));
            }
            texts
        })
        .collect();
    texts.extend(context.copies.take_functions());
    context.emit_value_thunks(&mut texts);
    let mut components = String::new();
    context.emit_components(&mut components);
    context.note_mentions(&texts, &components);
    let bodies = texts.concat();

    let mut declarations = String::new();
    context.emit_frames(&mut declarations);
    context.emit_globals(&mut declarations);
    context.emit_prototypes(&mut declarations);
    context.emit_copy_prototypes(&mut declarations);
    context.copies.emit_types(&mut declarations);

    let mut out = context.preamble();
    context.emit_strings(&mut out);
    context.emit_types(&mut out);
    out.push_str(&declarations);
    for site in context.site_list.borrow().iter() {
        out.push_str(site);
    }
    context.emit_probes(&mut out);
    out.push('\n');
    out.push_str(&bodies);
    out.push_str(&components);
    context.emit_main(&mut out);
    (out, context.probe_names())
}

/// A kind of component in the user's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentKind {
    pub name: String,
    /// The C name of its `hearth_component_type`.
    pub descriptor: String,
    /// The number of arguments that its first constructor takes.
    pub arguments: usize,
    /// True if its code uses services of the prelude, which the main sequence creates.
    pub needs_services: bool,
}

/// The used kinds of component in the user's text, in order.
pub fn kinds(input: &Lowered<'_>) -> Vec<ComponentKind> {
    let names = Names::new(input.program);
    let components = input.program.components.iter().enumerate();
    components
        .filter(|(_, component)| component.used && component.span.source == SourceId::USER)
        .map(|(index, component)| ComponentKind {
            name: input.program.names.name(component.name).to_owned(),
            descriptor: format!("{}_type", names.component(ComponentId(index as u32))),
            arguments: component.constructors.first().map_or(0, |body| body.params),
            needs_services: names_globals(input.program, component),
        })
        .collect()
}

/// The C names of the globals that hold services of the prelude, for tests that they exist.
pub fn services(input: &Lowered<'_>) -> Vec<String> {
    let names = Names::new(input.program);
    let globals = input.program.globals.iter().enumerate();
    globals
        .filter(|(_, global)| global.used)
        .map(|(index, _)| names.global(GlobalId(index as u32)).to_owned())
        .collect()
}

impl Context<'_> {
    fn note_mentions(&self, functions: &[String], components: &str) {
        let mut mentioned = self.mentioned.borrow_mut();
        let words = |text: &str, mentioned: &mut HashSet<String>| {
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            mentioned.extend(words.filter(|w| w.contains('_')).map(str::to_owned));
        };
        for text in functions {
            // The head names the function itself.
            let body = text.split_once("\n{\n").map_or("", |(_, body)| body);
            words(body, &mut mentioned);
        }
        for part in components.split("\n\n") {
            // Tables and functions of one component name each other, but a table not itself.
            let body = part.split_once('\n').map_or("", |(_, body)| body);
            words(body, &mut mentioned);
        }
    }

    /// `__attribute__((unused)) ` for what nothing mentions.
    fn unused_mark(&self, name: &str) -> &'static str {
        if self.mentioned.borrow().contains(name) {
            ""
        } else {
            "__attribute__((unused)) "
        }
    }

    fn preamble(&self) -> String {
        let mut out = String::new();
        let file = escape(self.input.sources.name);
        let _ = writeln!(
            out,
            "/* Made by Hearth from {}. Compile with -std=c11 -fwrapv. */",
            file.replace("*/", "* /")
        );
        let _ = writeln!(
            out,
            "#include \"hearth.h\"\n\n\
             _Static_assert(HEARTH_ABI == {}, \"this file and hearth.h are of different versions\");\n",
            hearth_abi::ABI,
        );
        out.push_str(
            "/* Insense integers wrap, and comparisons and divisions are as in the source. */\n\
             #pragma GCC diagnostic ignored \"-Wtype-limits\"\n\
             #pragma GCC diagnostic ignored \"-Wtautological-compare\"\n\
             #pragma GCC diagnostic ignored \"-Wsign-compare\"\n\
             #pragma GCC diagnostic ignored \"-Woverflow\"\n\
             #pragma GCC diagnostic ignored \"-Wdiv-by-zero\"\n\n",
        );
        out
    }

    /// The address of a string literal, which is emitted from now on.
    fn text(&self, number: u32) -> String {
        self.used_texts.borrow_mut().insert(number);
        format!("&text_{number}")
    }

    fn emit_strings(&self, out: &mut String) {
        let used = self.used_texts.borrow();
        for &number in used.iter() {
            let text = &self.input.module.strings[number as usize];
            let _ = writeln!(
                out,
                "static struct {{ hearth_object object; size_t length; char text[{}]; }} text_{number} =\n    \
                 {{ {{ HEARTH_IMMORTAL, 0 }}, {}, \"{}\" }};",
                text.len() + 1,
                text.len(),
                escape(text)
            );
        }
        if !used.is_empty() {
            out.push('\n');
        }
    }

    fn emit_main(&self, out: &mut String) {
        let main = match self.input.probes {
            Some(_) => "hearth_probed_main",
            None => "hearth_main",
        };
        let _ = writeln!(
            out,
            "\nstatic const hearth_program program = {{ \"{}\", HEARTH_ABI, &main_type, {} }};\n\n\
             int main(int argc, char **argv)\n{{\n    return {main}(&program, argc, argv);\n}}",
            escape(self.input.sources.name),
            self.input.options.compat_original
        );
    }

    /// The name of the static `hearth_site` for a place.
    fn site(&self, span: Span, text: &str) -> String {
        let (line, column) = self.line_column(span);
        let key = (span.source.0, line, column, text.to_owned());
        let mut sites = self.sites.borrow_mut();
        let next = sites.len();
        let number = *sites.entry(key).or_insert(next);
        if number == next {
            let (file, _) = self.input.sources.get(span.source);
            self.site_list.borrow_mut().push(format!(
                "static const hearth_site site_{number} = {{ \"{}\", {line}, {column}, \"{}\" }};\n",
                escape(file),
                escape(text)
            ));
        }
        format!("&site_{number}")
    }

    fn line_column(&self, span: Span) -> (u32, u32) {
        self.lines[usize::from(span.source.0)].line_column(span.start)
    }

    /// The source text of a span on one line, shortened.
    fn quote(&self, span: Span) -> String {
        let words = self.input.sources.slice(span).split_whitespace();
        let line = words.collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(QUOTE_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }
}

/// A text as the inside of a C string literal. Octal escapes, which end after three digits, and
/// no trigraphs.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for &byte in text.as_bytes() {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'?' => out.push_str("\\?"),
            0x20..=0x7e => out.push(byte as char),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out
}
