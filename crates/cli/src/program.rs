//! From a program's text to diagnostics, C, or an executable.

use std::fmt::Write as _;
use std::path::PathBuf;

use hearth_lang::compile::{self, Compiled, Options, Sources};
use hearth_lang::diagnostic::Diagnostic;
use hearth_lang::emit::layout::ComponentSize;

use crate::cache::{Cache, Entry, PROGRAM, Workshop};
use crate::failure::{Failure, cause};
use crate::input::Source;
use crate::progress::Progress;
use crate::report::Report;
use crate::toolchain::{Debugging, Refusal, Toolchain};

/// The diagnostics of a program.
pub(crate) fn check(source: &Source, options: &Options) -> Vec<Diagnostic> {
    let checked = compile::check(&source.text, options);
    // The tree has served. To free it node by node would take another fifth of the time of a large
    // program; the end of the process frees it at once.
    std::mem::forget(checked.program);
    checked.diagnostics
}

/// The diagnostics of a program, and its C if there are no errors among them.
pub(crate) fn compile(source: &Source, options: &Options) -> Compiled {
    compile::compile(&source.text, &source.name, options)
}

/// What each component of a program costs; nothing if it has errors.
pub(crate) fn sizes(source: &Source, options: &Options) -> Vec<ComponentSize> {
    compile::sizes(&source.text, &source.name, options)
}

/// Shows what was found in a program on standard error. Fails if there were errors.
pub(crate) fn show(source: &Source, diagnostics: &[Diagnostic]) -> Result<(), Failure> {
    let mut report = Report::for_terminal();
    report.add(Sources::new(&source.name, &source.text), diagnostics);
    report.finish()
}

/// The C of a program, its warnings shown; fails if it has errors.
pub(crate) fn to_c(source: &Source, options: &Options) -> Result<(String, bool), Failure> {
    let compiled = compile(source, options);
    show(source, &compiled.diagnostics)?;
    let c = compiled
        .c
        .expect("a program without errors has been compiled");
    Ok((c, !compiled.diagnostics.is_empty()))
}

/// An executable, and what must not be removed before it has started.
pub(crate) struct Executable {
    pub(crate) path: PathBuf,
    /// There if it was not kept in the cache.
    pub(crate) workshop: Option<Workshop>,
}

/// The executable of a program: from the cache, or built and put there.
pub(crate) fn executable(source: &Source, options: &Options) -> Result<Executable, Failure> {
    let origin = Toolchain::find().and_then(|toolchain| {
        let record = record(source, options, &toolchain)?;
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
    // Mistakes in the program come first: they need no C compiler to be told.
    let (c, has_warnings) = to_c(source, options)?;
    let (toolchain, record) = origin?;
    if let Some(cache) = cache {
        match build_and_keep(&cache, &toolchain, &c, &record, has_warnings) {
            Ok(entry) => return Ok(entry.into()),
            Err(Refusal::Other(failure)) => return Err(failure),
            Err(Refusal::Place(reason)) => eprintln!(
                "hearth: note: cannot keep the build in {}: {reason}; using a temporary directory",
                cache.root().display()
            ),
        }
    }
    build_for_once(&toolchain, &c, Debugging::None)
}

impl From<Entry> for Executable {
    fn from(entry: Entry) -> Self {
        Executable {
            path: entry.program,
            workshop: None,
        }
    }
}

/// Everything that decides what executable comes out.
fn record(source: &Source, options: &Options, toolchain: &Toolchain) -> Result<Vec<u8>, Failure> {
    let mut record = toolchain.identity()?;
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
) -> Result<Entry, Refusal> {
    let place = |error: std::io::Error| Refusal::Place(cause(&error));
    let _progress = Progress::start("building");
    let workshop = cache.workshop().map_err(place)?;
    toolchain.build(
        c,
        &workshop.path().join(PROGRAM),
        workshop.path(),
        Debugging::None,
    )?;
    cache.keep(workshop, record, has_warnings).map_err(place)
}

/// Builds in a temporary directory.
pub(crate) fn build_for_once(
    toolchain: &Toolchain,
    c: &str,
    debugging: Debugging,
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
        .build(c, &path, workshop.path(), debugging)
        .map_err(|refusal| match refusal {
            Refusal::Place(reason) => no_room(&reason),
            Refusal::Other(failure) => failure,
        })?;
    Ok(Executable {
        path,
        workshop: Some(workshop),
    })
}
