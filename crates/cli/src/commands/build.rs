//! `hearth build`: an executable, or its C, as a file.

use std::fs;
use std::path::{Path, PathBuf};

use hearth_driver::{input, program};
use hearth_lang::compile::CompileOptions;
use hearth_terminal::{Failure, output};
use hearth_toolchain::{DEBUGGABLE, STRIPPED};

use crate::arguments::{Build, Emit};

pub(crate) fn build(arguments: &Build) -> Result<(), Failure> {
    let source = input::read_program(&arguments.file)?;
    let options = CompileOptions {
        futures: arguments.beside.futures,
        ..arguments
            .compilation
            .options(Some(&arguments.compatibility))
    };
    let out = match (&arguments.output, arguments.emit) {
        (Some(out), _) => Some(out.clone()),
        (None, Emit::C) => None,
        (None, Emit::Executable) => Some(name_of_executable(&arguments.file)?),
    };
    if let Some(out) = &out {
        refuse_unfit(out, &arguments.file)?;
    }
    if arguments.beside.futures && !arguments.probes.patterns.is_empty() {
        output::tell(format_args!(
            "note: {}",
            crate::without_effect::FUTURES_WITH_PROBES
        ));
    }
    let (c, _) = program::to_c(&source, &options, &arguments.probes.patterns)?;
    match (out, arguments.emit) {
        (None, _) => output::write(c),
        (Some(out), Emit::C) => output::replace(&out, c.as_bytes()),
        (Some(out), Emit::Executable) => build_executable(&c, &out, arguments.debugging()),
    }
}

impl Build {
    /// The C compiler's flag.
    fn debugging(&self) -> &'static str {
        match self.debug {
            true => DEBUGGABLE,
            false => STRIPPED,
        }
    }
}

/// The program's name without its ending, in the current folder.
fn name_of_executable(program: &Path) -> Result<PathBuf, Failure> {
    let stem = program
        .file_stem()
        .filter(|_| !input::is_standard_input(program));
    stem.map(PathBuf::from).ok_or_else(|| {
        Failure::input("a program from standard input has no name; say what to write with -o OUT")
    })
}

fn refuse_unfit(out: &Path, program: &Path) -> Result<(), Failure> {
    if out.is_dir() {
        return Err(Failure::input(format!(
            "{} is a directory; say what to write with -o OUT",
            out.display()
        )));
    }
    let same = |a: &Path, b: &Path| Some(fs::canonicalize(a).ok()? == fs::canonicalize(b).ok()?);
    if same(out, program) == Some(true) {
        return Err(Failure::input(format!(
            "{} is the program itself; say what else to write with -o OUT",
            out.display()
        )));
    }
    Ok(())
}

/// Builds elsewhere, copies the executable beside its place and renames it: it is never seen half
/// written, a running executable is no obstacle, and a full disk is blamed on the right directory.
fn build_executable(c: &str, out: &Path, debugging: &str) -> Result<(), Failure> {
    let built = program::build(c, debugging)?;
    if output::is_special(out) {
        let bytes = fs::read(&built.path).map_err(|error| output::cannot_write(out, &error))?;
        return output::replace(out, &bytes);
    }
    let beside = output::beside(out);
    let moved = fs::copy(&built.path, &beside).and_then(|_| fs::rename(&beside, out));
    moved.map_err(|error| {
        let _ = fs::remove_file(&beside);
        output::cannot_write(out, &error)
    })
}
