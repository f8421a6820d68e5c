//! Insense programs in Rust crates: this compiles them in a build script, and
//! `hearth::include_insense!` declares a module for each.
//!
//! In `Cargo.toml`:
//!
//! ```toml
//! [dependencies]
//! hearth = "0.1"
//!
//! [build-dependencies]
//! hearth-build = "0.1"
//! ```
//!
//! In `build.rs`:
//!
//! ```no_run
//! fn main() {
//!     hearth_build::compile("src/thermometer.isf");
//! }
//! ```
//!
//! And in the crate, which needs no unsafe code for it:
//!
//! ```ignore
//! hearth::include_insense!("thermometer");
//! ```
//!
//! [`compile`] translates the program to C, has the C compiler make a static library of it, and
//! links that with the crate. Mistakes in the program end the build, with the messages of `hearth
//! check`. The folder `example` beside this crate is a whole crate with two programs.
//!
//! This crate must never know the runtime: the program meets it through `hearth.h` only.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a build script talks to Cargo and to people, and ends when they must act"
)]
#![allow(
    clippy::needless_doctest_main,
    reason = "a build script is shown whole"
)]

mod module;

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use hearth_lang::compile::{CompileOptions, compile as compile_to_c};
use hearth_lang::diagnostic::Severity;
use hearth_lang::source::{SourceId, Sources};
use hearth_terminal::render::Renderer;
use hearth_toolchain::{FLAGS, HEADER};
use module::Module;

/// Compiles an Insense program and links it with the crate that is being built. To be called in
/// `build.rs`, with a path in the package.
///
/// The name of the file, without its ending, becomes the name of a module and of functions, so it
/// must be an identifier.
///
/// If the program has mistakes, or if something is missing, prints the reason and ends the build.
pub fn compile(program: impl AsRef<Path>) {
    if let Err(reason) = compile_here(program.as_ref()) {
        eprintln!("{reason}");
        process::exit(1);
    }
}

fn compile_here(program: &Path) -> Result<(), String> {
    println!("cargo::rerun-if-changed={}", program.display());
    let text = fs::read_to_string(program)
        .map_err(|error| format!("hearth-build could not read {}: {error}", program.display()))?;
    let package = variable("CARGO_PKG_NAME")?;
    let translated = translate(program, &text, &package)?;
    for warning in &translated.warnings {
        println!("cargo::warning={warning}");
    }
    let folder = PathBuf::from(variable("OUT_DIR")?).join("hearth-insense");
    let c = folder.join(format!("{}.c", translated.module.name));
    let rust = folder.join(format!("{}.rs", translated.module.name));
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("hearth.h"), HEADER))
        .and_then(|()| fs::write(&c, &translated.c))
        .and_then(|()| fs::write(&rust, translated.module.rust()))
        .map_err(|error| {
            format!(
                "hearth-build could not write to {}: {error}",
                folder.display()
            )
        })?;
    let mut compiler = cc::Build::new();
    // The level of optimisation is the same as that of `hearth run`, in each profile of Cargo.
    compiler
        .file(c)
        .include(folder)
        .warnings(false)
        .opt_level(3);
    let is_set = |flag: &&&str| flag.starts_with("-O") || flag.starts_with("-W");
    for flag in FLAGS.iter().filter(|flag| !is_set(flag)) {
        compiler.flag(flag);
    }
    compiler
        .try_compile(&translated.module.symbol)
        .map_err(|error| format!("hearth-build: {error}"))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| {
        format!("hearth_build::compile belongs into a build script: Cargo has not set {name}")
    })
}

/// A program in C, and the module for it.
#[derive(Debug)]
struct Translated {
    c: String,
    module: Module,
    /// A line each.
    warnings: Vec<String>,
}

/// Translates a program. The error has all mistakes, as `hearth check` shows them.
fn translate(program: &Path, text: &str, package: &str) -> Result<Translated, String> {
    let name = program.display().to_string();
    let options = CompileOptions {
        hosted: true,
        ..CompileOptions::default()
    };
    let compiled = compile_to_c(text, &name, &options);
    let sources = Sources::new(&name, text);
    let Some(c) = compiled.c else {
        return Err(Renderer::new(false).render(sources, &compiled.diagnostics));
    };
    let lines = sources.lines(SourceId::USER);
    let warnings = compiled
        .diagnostics
        .iter()
        .filter(|found| found.severity == Severity::Warning)
        .map(|found| {
            let line = lines.line(found.primary.span.start);
            format!("{name}:{line}: {} [{}]", found.title, found.code.0)
        })
        .collect();
    let module = Module::new(program, package, &compiled.kinds, compiled.services)?;
    let c = format!(
        "#define main {}_main\n{c}\n{}",
        module.symbol,
        module.exports()
    );
    Ok(Translated {
        c,
        module,
        warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELSIUS: &str = "\
type ICelsius is interface (in real fahrenheit ; out real celsius)

component Celsius presents ICelsius {
    constructor() { }
    behaviour {
        receive degrees from fahrenheit
        send (degrees - 32.0) * 5.0 / 9.0 on celsius
    }
}
";

    fn translated(name: &str, text: &str) -> Result<Translated, String> {
        translate(Path::new(name), text, "my-crate")
    }

    #[test]
    fn a_component_that_the_program_never_makes_stays() {
        let translated = translated("src/celsius.isf", CELSIUS).unwrap();
        assert_eq!(
            translated.module.rust(),
            "::hearth::__insense_module! {\n    \
             celsius, \"src/celsius.isf\", \"hearth_insense_my_crate_celsius\",\n    \
             new_celsius \"Celsius\" \"hearth_insense_my_crate_celsius_Celsius\",\n}\n"
        );
        assert!(translated.c.contains(
            "const hearth_component_type *const hearth_insense_my_crate_celsius_Celsius = \
             &Celsius_type;"
        ));
        assert!(translated.warnings.is_empty(), "{:?}", translated.warnings);
    }

    #[test]
    fn mistakes_are_shown_with_their_place() {
        let text = CELSIUS.replace("on celsius", "on kelvin");
        let message = translated("src/celsius.isf", &text).unwrap_err();
        assert!(message.contains("--> src/celsius.isf:7:"), "{message}");
        assert!(message.contains("kelvin"), "{message}");
        assert!(message.contains("^^^^^^"), "{message}");
    }

    #[test]
    fn names_that_rust_cannot_have_are_refused() {
        let message = translated("src/my-sensor.isf", CELSIUS).unwrap_err();
        let expected = "src/my-sensor.isf: `my-sensor` cannot be the name of a Rust module; rename \
                        the file, for example to `my_sensor.isf`";
        assert_eq!(message, expected);
        assert!(translated("src/type.isf", CELSIUS).is_err());
    }

    #[test]
    fn who_needs_services_is_told_by_all_code_that_it_reaches() {
        let text = CELSIUS.to_owned()
            + "
type IRest is interface ()
proc ask() { offset = new out bool ; connect offset to storage.offsetReq ; send true on offset }
component Asker presents IRest { constructor() { } ; behaviour { ask() ; stop } }
component Maker presents IRest { constructor() { asker = new Asker() } ; behaviour { stop } }
";
        let module = translated("celsius.isf", &text).unwrap().module;
        let rust = module.rust();
        let has_services = "if \"hearth_insense_my_crate_celsius_has_services\",\n";
        for (kind, needs_services) in [("Celsius", false), ("Asker", true), ("Maker", true)] {
            let line = rust
                .lines()
                .find(|line| line.contains(&format!("{kind:?}")));
            let line = format!("{}\n", line.unwrap());
            assert_eq!(line.ends_with(has_services), needs_services, "{line}");
        }
        assert!(
            module.exports().contains("{ return global_storage != 0; }"),
            "{}",
            module.exports()
        );
    }

    #[test]
    fn constructors_with_arguments_are_left_to_the_program() {
        let text = CELSIUS.replace("constructor()", "constructor(integer number)");
        let translated = translated("celsius.isf", &text).unwrap();
        assert!(!translated.module.rust().contains("new_celsius"));
    }

    #[test]
    fn outside_of_a_build_script_the_reason_is_given() {
        let name = format!("hearth_build_{}.isf", process::id());
        let program = env::temp_dir().join(name);
        assert!(
            compile_here(&program)
                .unwrap_err()
                .contains("could not read")
        );
        fs::write(&program, CELSIUS).unwrap();
        let reason = compile_here(&program).unwrap_err();
        fs::remove_file(&program).unwrap();
        assert!(reason.contains("OUT_DIR"), "{reason}");
    }
}
