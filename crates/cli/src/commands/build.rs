//! `hearth build`: an executable, or its C, as a file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::arguments::{Build, Emit};
use crate::failure::Failure;
use crate::toolchain::Debugging;
use crate::{input, output, program};

pub(crate) fn build(arguments: &Build) -> Result<(), Failure> {
    let source = input::read_program(&arguments.file)?;
    let options = arguments
        .compilation
        .options(Some(&arguments.compatibility));
    let out = match (&arguments.output, arguments.emit) {
        (Some(out), _) => Some(out.clone()),
        (None, Emit::C) => None,
        (None, Emit::Executable) => Some(name_of_executable(&arguments.file)?),
    };
    if let Some(out) = &out {
        refuse_unfit(out, &arguments.file)?;
    }
    let (c, _) = program::to_c(&source, &options)?;
    match (out, arguments.emit) {
        (None, _) => output::write(c),
        (Some(out), Emit::C) => output::replace(&out, c.as_bytes()),
        (Some(out), Emit::Executable) => build_executable(&c, &out, arguments.debugging()),
    }
}

impl Build {
    fn debugging(&self) -> Debugging {
        if self.debug {
            Debugging::Full
        } else {
            Debugging::None
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

/// Beside its place first, then there by one rename: nobody sees half of it, and an executable
/// that is running is no obstacle.
fn build_executable(c: &str, out: &Path, debugging: Debugging) -> Result<(), Failure> {
    let beside = output::beside(out);
    // The linker's own words about a directory it cannot write to are no help.
    let failure = |error: &std::io::Error| output::cannot_write(out, error);
    fs::write(&beside, "").map_err(|error| failure(&error))?;
    let built = program::build_at(c, &beside, debugging)
        .and_then(|()| fs::rename(&beside, out).map_err(|error| failure(&error)));
    if built.is_err() {
        let _ = fs::remove_file(&beside);
    }
    built
}
