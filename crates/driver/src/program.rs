//! From a program's text to diagnostics, C, or an executable.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use hearth_lang::analysis::size::ComponentSize;
use hearth_lang::compile::{self, CompileOptions, Compiled};
use hearth_lang::diagnostic::Diagnostic;
use hearth_lang::source::Sources;
use hearth_monitor::Rule;
use hearth_terminal::progress::Progress;
use hearth_terminal::{DiagnosticPrinter, Failure, crash, output};
use hearth_text::cause;
use hearth_toolchain::{Error, STRIPPED, Toolchain};

use crate::cache::{Cache, Entry, PROGRAM, Workshop};
use crate::input::Source;

/// The diagnostics of a program.
pub fn check(source: &Source, options: &CompileOptions) -> Vec<Diagnostic> {
    let checked = compile::check(&source.text, options);
    // Freeing the tree node by node would take another fifth of the time of a large program; the
    // end of the process frees it at once.
    std::mem::forget(checked.program);
    checked.diagnostics
}

/// The diagnostics of a program, and its C if there are no errors among them.
pub fn compile(source: &Source, options: &CompileOptions) -> Compiled {
    compile::compile(&source.text, &source.name, options)
}

/// The size of each component of a program; empty if it has errors.
pub fn sizes(source: &Source, options: &CompileOptions) -> Vec<ComponentSize> {
    compile::sizes(&source.text, &source.name, options)
}

/// Shows the diagnostics of a program on standard error. Fails if there were errors.
pub fn show(source: &Source, diagnostics: &[Diagnostic]) -> Result<(), Failure> {
    let mut printer = DiagnosticPrinter::for_terminal();
    printer.add(Sources::new(&source.name, &source.text), diagnostics);
    printer.finish()
}

/// The C of a program, and whether it has warnings, which are shown; fails if it has errors. Calls
/// that match a pattern get probes; fails if a pattern matches none.
pub fn to_c(
    source: &Source,
    options: &CompileOptions,
    probes: &[String],
) -> Result<(String, bool), Failure> {
    let rules: Vec<Rule> = probes.iter().map(|pattern| Rule::on(pattern)).collect();
    let choose = |name: &str| rules.iter().any(|rule| rule.matches(name));
    let compiled = compile_with(source, options, (!probes.is_empty()).then_some(&choose));
    show(source, &compiled.diagnostics)?;
    let idle = probes.iter().zip(&rules).find(|(_, rule)| {
        let mut names = compiled.probes.iter();
        !names.any(|name| rule.matches(name))
    });
    if let Some((pattern, _)) = idle {
        let all = compile_with(source, options, Some(&|_| true)).probes;
        return Err(no_call(source, pattern, &all));
    }
    let c = compiled
        .c
        .expect("a program without errors has been compiled");
    Ok((c, !compiled.diagnostics.is_empty()))
}

fn compile_with(
    source: &Source,
    options: &CompileOptions,
    probes: Option<compile::Choose<'_>>,
) -> Compiled {
    compile::compile_with_probes(&source.text, &source.name, options, probes)
}

/// A pattern that no call matches, with some names that there are.
fn no_call(source: &Source, pattern: &str, all: &[String]) -> Failure {
    const SOME: usize = 8;
    let names: Vec<&str> = all.iter().take(SOME).map(String::as_str).collect();
    let more = if all.len() > SOME { " and others" } else { "" };
    Failure::input(format!(
        "no call in {} matches --probes '{pattern}'; its calls are {}{more}",
        source.name,
        names.join(", ")
    ))
}

/// An executable, and the directory that must not be removed before it has started.
pub struct Executable {
    pub path: PathBuf,
    /// `None` for an executable in the cache.
    pub workshop: Option<Workshop>,
}

/// The executable of a program, with probes as [`to_c`] has them: from the cache, or built and put
/// there.
pub fn executable(
    source: &Source,
    options: &CompileOptions,
    probes: &[String],
) -> Result<Executable, Failure> {
    let origin = Toolchain::find().and_then(|toolchain| {
        let record = record(source, options, probes, &toolchain)?;
        Ok((toolchain, record))
    });
    let cache = Cache::of_user();
    if let (Ok((_, record)), Some(cache)) = (&origin, &cache)
        && let Some(entry) = cache.find(record)
    {
        if entry.has_warnings {
            show(source, &check(source, options))?;
        }
        return Ok(entry.into());
    }
    // Mistakes in the program come first: reporting them needs no C compiler.
    let (c, has_warnings) = to_c(source, options, probes)?;
    let (toolchain, record) = origin.map_err(|error| failure(error, &c))?;
    if let Some(cache) = cache {
        match build_and_keep(&cache, &toolchain, &c, &record, has_warnings) {
            Ok(entry) => return Ok(entry.into()),
            Err(Error::Directory(reason)) => output::tell(format_args!(
                "note: cannot keep the build in {}: {reason}; using a temporary directory",
                cache.root().display()
            )),
            Err(error) => return Err(failure(error, &c)),
        }
    }
    build_in_workshop(&toolchain, &c, STRIPPED)
}

impl From<Entry> for Executable {
    fn from(entry: Entry) -> Self {
        Executable {
            path: entry.program,
            workshop: None,
        }
    }
}

/// Everything that an executable depends on.
fn record(
    source: &Source,
    options: &CompileOptions,
    probes: &[String],
    toolchain: &Toolchain,
) -> Result<Vec<u8>, Error> {
    let mut record = toolchain.identity()?;
    if !probes.is_empty() {
        let _ = writeln!(record, "probes {probes:?}");
    }
    let _ = writeln!(record, "options {options:?}\nname {:?}\n", source.name);
    record.push_str(&source.text);
    Ok(record.into_bytes())
}

fn build_and_keep(
    cache: &Cache,
    toolchain: &Toolchain,
    c: &str,
    record: &[u8],
    has_warnings: bool,
) -> Result<Entry, Error> {
    let unfit = |error: std::io::Error| Error::Directory(cause(&error));
    let _progress = Progress::start("building");
    let workshop = cache.workshop().map_err(unfit)?;
    toolchain.build(
        c,
        &workshop.path().join(PROGRAM),
        workshop.path(),
        &[STRIPPED],
    )?;
    cache.keep(workshop, record, has_warnings).map_err(unfit)
}

/// Builds an executable in a temporary directory; `debugging` is [`STRIPPED`] or
/// [`hearth_toolchain::DEBUGGABLE`].
pub fn build(c: &str, debugging: &str) -> Result<Executable, Failure> {
    let toolchain = Toolchain::find().map_err(|error| failure(error, c))?;
    build_in_workshop(&toolchain, c, debugging)
}

fn build_in_workshop(
    toolchain: &Toolchain,
    c: &str,
    debugging: &str,
) -> Result<Executable, Failure> {
    let _progress = Progress::start("building");
    let no_room = |reason: &str| {
        Failure::environment(format!(
            "cannot build in {}: {reason}; set TMPDIR to a directory with some room",
            std::env::temp_dir().display()
        ))
    };
    let workshop = Workshop::temporary().map_err(|error| no_room(&cause(&error)))?;
    let path = workshop.path().join(PROGRAM);
    toolchain
        .build(c, &path, workshop.path(), &[debugging])
        .map_err(|error| match error {
            Error::Directory(reason) => no_room(&reason),
            error => failure(error, c),
        })?;
    Ok(Executable {
        path,
        workshop: Some(workshop),
    })
}

/// A failed build for the user. C that the compiler rejects is kept, to be sent to us.
fn failure(error: Error, c: &str) -> Failure {
    let Error::Rejected {
        compiler,
        complaint,
    } = error
    else {
        return Failure::environment(error.to_string());
    };
    let mut what = format!(
        "the C compiler {} rejects the generated C\n",
        compiler.display()
    );
    for line in complaint.lines().take(20) {
        what.push_str(line);
        what.push('\n');
    }
    let kept = std::env::temp_dir().join(format!("hearth-report-{}.c", std::process::id()));
    let kept = fs::write(&kept, c).ok().map(|()| kept);
    let files: Vec<&Path> = kept.iter().map(PathBuf::as_path).collect();
    Failure::Bug(crash::page(&what, &files))
}
