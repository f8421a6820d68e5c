//! The Rust module of a program, and the C symbols that it refers to.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use hearth_lang::emit::ComponentKind;
use heck::ToSnakeCase;

/// The words that Rust keeps for itself.
const KEYWORDS: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
    "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
    "ref", "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield", "_",
];

/// The module of one program.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    /// The program's file, for the module's documentation.
    file: String,
    /// The C symbol of the program; those of its components begin with it.
    pub(crate) symbol: String,
    makers: Vec<Maker>,
    /// The C names of the pointers to the services of the prelude that the program uses.
    services: Vec<String>,
}

/// A function that makes components of one kind.
#[derive(Debug)]
struct Maker {
    name: String,
    kind: String,
    /// The C name of the kind's descriptor within the program.
    descriptor: String,
    needs_services: bool,
}

impl Module {
    /// Names everything. The package is part of the symbols, since two packages may have programs
    /// of the same name.
    pub(crate) fn new(
        program: &Path,
        package: &str,
        kinds: &[ComponentKind],
        services: Vec<String>,
    ) -> Result<Module, String> {
        let file = program.display().to_string();
        let stem = program.file_stem().unwrap_or_default().to_string_lossy();
        if !is_identifier(&stem) {
            let mut better = stem.to_snake_case();
            if !is_identifier(&better) {
                better.insert_str(0, "insense_");
            }
            return Err(format!(
                "{file}: `{stem}` cannot be the name of a Rust module; rename the file, for \
                 example to `{better}.isf`"
            ));
        }
        let mut makers = BTreeMap::new();
        for kind in kinds.iter().filter(|kind| kind.arguments == 0) {
            let name = format!("new_{}", kind.name.to_snake_case());
            let maker = Maker {
                name: name.clone(),
                kind: kind.name.clone(),
                descriptor: kind.descriptor.clone(),
                needs_services: kind.needs_services,
            };
            if let Some(other) = makers.insert(name.clone(), maker) {
                return Err(format!(
                    "{file}: the components {} and {} would both be made by `{name}`; rename one",
                    other.kind, kind.name
                ));
            }
        }
        Ok(Module {
            symbol: format!("hearth_insense_{}_{stem}", package.replace('-', "_")),
            name: stem.into_owned(),
            file,
            makers: makers.into_values().collect(),
            services,
        })
    }

    /// The C that makes the program and its components visible outside of its file, and a function
    /// that tells whether the services exist if a component needs them.
    pub(crate) fn exports(&self) -> String {
        let symbol = &self.symbol;
        let mut c = format!("const hearth_program *const {symbol} = &program;\n");
        for Maker {
            kind, descriptor, ..
        } in &self.makers
        {
            let _ = writeln!(
                c,
                "const hearth_component_type *const {symbol}_{kind} = &{descriptor};"
            );
        }
        if self.makers.iter().any(|maker| maker.needs_services) {
            let pointers = self.services.iter().map(|name| format!("{name} != 0"));
            let all = pointers.collect::<Vec<_>>().join(" && ");
            let name = self.has_services();
            let _ = writeln!(
                c,
                "bool {name}(void);\nbool {name}(void) {{ return {all}; }}"
            );
        }
        c
    }

    /// The C name of the function that tells whether the services exist. A component's name begins
    /// with a capital letter.
    fn has_services(&self) -> String {
        format!("{}_has_services", self.symbol)
    }

    /// The call that `include_insense!` includes. The macro has all code, so that this file does
    /// not count as the user's.
    pub(crate) fn rust(&self) -> String {
        let (name, file, symbol) = (&self.name, &self.file, &self.symbol);
        let mut rust =
            format!("::hearth::__insense_module! {{\n    {name}, {file:?}, {symbol:?},\n");
        for maker in &self.makers {
            let Maker { name, kind, .. } = maker;
            let symbol = format!("{symbol}_{kind}");
            let _ = write!(rust, "    {name} {kind:?} {symbol:?}");
            if maker.needs_services {
                let _ = write!(rust, " if {:?}", self.has_services());
            }
            rust.push_str(",\n");
        }
        rust.push_str("}\n");
        rust
    }
}

fn is_identifier(name: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_start)
        && name.chars().all(|c| is_start(c) || c.is_ascii_digit())
        && !KEYWORDS.contains(&name)
}
