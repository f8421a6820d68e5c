//! The C compiler and the runtime's library: where they are, which they are, and how generated C
//! becomes an executable.
//!
//! The one place that knows the compiler's flags. The command builds programs with it, tests and
//! studies too, so what is tested is what users run.
//!
//! [`Compiler`] is `$CC` or `cc`; [`Toolchain`] adds the runtime's library and builds programs. A
//! build that fails tells whether the directory, the installation or Hearth is at fault
//! ([`Error`]).
//!
//! This crate must never know Insense, nor where executables are kept.
//!
//! ```no_run
//! use hearth_toolchain::{STRIPPED, Toolchain};
//!
//! # let (c, workshop) = ("int main(void) { return 0; }", std::path::Path::new("/tmp/workshop"));
//! let toolchain = Toolchain::find()?;
//! toolchain.build(c, &workshop.join("program"), workshop, &[STRIPPED])?;
//! # Ok::<(), hearth_toolchain::Error>(())
//! ```
#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hearth_text::cause;

/// The C contract travels inside the command, so it always fits the C that the command writes.
pub use hearth_abi::HEADER;
const HEADER_NAME: &str = "hearth.h";
const LIBRARY_NAME: &str = "libhearth_runtime.a";

/// The flags of every program. Insense integers wrap, hence -fwrapv. Loops aligned to 32 bytes ran
/// up to 1.8 times as fast. No flag depends on the machine at hand, so a built program can be
/// carried to another.
pub const FLAGS: &[&str] = &[
    "-std=c11",
    "-O3",
    "-fwrapv",
    "-falign-loops=32",
    "-Wall",
    "-Wextra",
    "-pipe",
];
const LIBRARIES: &[&str] = &["-lpthread", "-lm", "-ldl", "-Wl,--gc-sections"];

/// Leaves out of an executable what only debuggers need, which is seven eighths of it.
pub const STRIPPED: &str = "-Wl,--strip-debug";
/// Keeps what debuggers need.
pub const DEBUGGABLE: &str = "-g";

/// Smallest program that needs what generated programs need of the system.
const PROBE: &str = "#include <stdint.h>\n#include <string.h>\nint main(void) { return 0; }\n";

/// The reason why there is no executable.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The installation lacks something, in a line.
    #[error("{0}")]
    Installation(String),
    /// The directory could not hold the build, for this reason; another may.
    #[error("{0}")]
    Directory(String),
    /// The compiler rejects the C: a mistake of whoever generated it.
    #[error("the C compiler {} rejects the generated C\n{complaint}", .compiler.display())]
    Rejected {
        /// The compiler's path.
        compiler: PathBuf,
        /// Its output.
        complaint: String,
    },
}

/// A C compiler.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The words of `$CC`, or `cc`.
    words: Vec<OsString>,
    /// The file of the first word.
    path: PathBuf,
}

impl Compiler {
    /// The compiler that `$CC` names, or `cc`.
    ///
    /// # Errors
    /// There is no such program.
    pub fn find() -> Result<Compiler, Error> {
        let chosen = env::var("CC").ok().filter(|words| !words.trim().is_empty());
        let words: Vec<OsString> = chosen
            .as_deref()
            .unwrap_or("cc")
            .split_whitespace()
            .map(OsString::from)
            .collect();
        if let Some(path) = find_executable(&words[0]) {
            return Ok(Compiler { words, path });
        }
        Err(Error::Installation(match chosen {
            Some(chosen) => format!(
                "there is no C compiler {chosen:?}, which the variable CC names; unset it to use cc"
            ),
            None => {
                "there is no C compiler (cc); install one, for example: apt-get install gcc".into()
            }
        }))
    }

    /// The compiler's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A call of the compiler, with the words of `$CC`, without input and with messages in English.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(&self.words[1..])
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        command
    }
}

/// A C compiler and the runtime's library.
#[derive(Clone, Debug)]
pub struct Toolchain {
    compiler: Compiler,
    library: PathBuf,
}

impl Toolchain {
    /// The compiler of [`Compiler::find`] and the library in `$HEARTH_LIB`, beside this executable
    /// or in `../lib/hearth`.
    ///
    /// # Errors
    /// One of them is not there.
    pub fn find() -> Result<Toolchain, Error> {
        Ok(Toolchain {
            compiler: Compiler::find()?,
            library: find_library()?,
        })
    }

    /// The compiler of [`Compiler::find`] and this library.
    ///
    /// # Errors
    /// There is no compiler.
    pub fn with_library(library: PathBuf) -> Result<Toolchain, Error> {
        Ok(Toolchain {
            compiler: Compiler::find()?,
            library,
        })
    }

    /// Everything an executable depends on besides its program and the options, as text.
    ///
    /// # Errors
    /// A file cannot be examined.
    pub fn identity(&self) -> Result<String, Error> {
        Ok(format!(
            "hearth {}\nlibrary {}\ncompiler {:?} {}\n",
            own_identity()?,
            file_identity(&self.library)?,
            self.compiler.words,
            file_identity(&self.compiler.path)?,
        ))
    }

    /// Compiles and links `c` into `out`, with more `flags` behind [`FLAGS`]. All other files that
    /// it writes stay in the folder `workshop`.
    ///
    /// # Errors
    /// There is no executable.
    pub fn build(&self, c: &str, out: &Path, workshop: &Path, flags: &[&str]) -> Result<(), Error> {
        let c_path = workshop.join("program.c");
        let unfit = |error: std::io::Error| Error::Directory(cause(&error));
        fs::write(workshop.join(HEADER_NAME), HEADER).map_err(unfit)?;
        fs::write(&c_path, c).map_err(unfit)?;
        let output = self
            .call(&c_path, out, workshop)
            .args(flags)
            .arg(&self.library)
            .args(LIBRARIES)
            .output()
            .map_err(|error| self.does_not_start(&error))?;
        if output.status.success() {
            return Ok(());
        }
        Err(self.explain(&output, workshop))
    }

    fn call(&self, c: &Path, out: &Path, workshop: &Path) -> Command {
        let mut command = self.compiler.command();
        command
            .args(FLAGS)
            .arg("-I")
            .arg(workshop)
            .arg("-o")
            .arg(out)
            .arg(c)
            .env("TMPDIR", workshop);
        command
    }

    fn does_not_start(&self, error: &std::io::Error) -> Error {
        Error::Installation(format!(
            "cannot start the C compiler {}: {}",
            self.compiler.path.display(),
            cause(error)
        ))
    }

    /// Finds what is to blame for a failed build: the directory, the installation, or the C.
    fn explain(&self, output: &Output, workshop: &Path) -> Error {
        let complaint = String::from_utf8_lossy(&output.stderr);
        if let Some(reason) = directory_is_unfit(&complaint, workshop) {
            return Error::Directory(reason);
        }
        if let Some(signal) = output.status.signal() {
            return Error::Installation(format!(
                "the C compiler {} was killed by signal {signal}{}",
                self.compiler.path.display(),
                if signal == 9 { " (out of memory?)" } else { "" }
            ));
        }
        if let Some(error) = self.installation_is_unfit(workshop) {
            return error;
        }
        Error::Rejected {
            compiler: self.compiler.path.clone(),
            complaint: complaint.into_owned(),
        }
    }

    /// Fails if the compiler cannot build an empty program either.
    fn installation_is_unfit(&self, workshop: &Path) -> Option<Error> {
        let probe = workshop.join("probe.c");
        fs::write(&probe, PROBE).ok()?;
        let output = self
            .call(&probe, &workshop.join("probe"), workshop)
            .output()
            .ok()?;
        if output.status.success() {
            return None;
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        let first = complaint
            .lines()
            .find(|line| line.contains("error") || line.contains("cannot"))
            .or_else(|| complaint.lines().next())
            .unwrap_or("without a message");
        Some(Error::Installation(format!(
            "the C compiler {} cannot build even an empty program ({}); install gcc and its \
             libraries, for example: apt-get install gcc libc6-dev",
            self.compiler.path.display(),
            first.trim()
        )))
    }
}

/// The reason if the directory gave out.
fn directory_is_unfit(complaint: &str, workshop: &Path) -> Option<String> {
    let signs = [
        ("No space left on device", "the disk is full"),
        ("Disk quota exceeded", "the disk quota is used up"),
        ("Read-only file system", "the file system is read-only"),
    ];
    for (sign, reason) in signs {
        if complaint.contains(sign) {
            return Some(reason.into());
        }
    }
    // Compilers do not always say why they could not write. This file is larger than any of theirs.
    let probe = workshop.join("space");
    let outcome = fs::write(&probe, vec![0; 1 << 20]).err();
    let _ = fs::remove_file(&probe);
    outcome.map(|error| cause(&error))
}

/// A text that differs between versions of this executable.
///
/// # Errors
/// The executable cannot be examined.
pub fn own_identity() -> Result<String, Error> {
    let command = env::current_exe()
        .map_err(|error| Error::Installation(format!("cannot find itself: {error}")))?;
    file_identity(&command)
}

/// Path, size and time of the last change, which tell versions of a file apart.
fn file_identity(path: &Path) -> Result<String, Error> {
    let facts = fs::metadata(path).map_err(|error| {
        Error::Installation(format!(
            "cannot examine {}: {}",
            path.display(),
            cause(&error)
        ))
    })?;
    Ok(format!(
        "{} {} {}.{:09}",
        path.display(),
        facts.len(),
        facts.mtime(),
        facts.mtime_nsec()
    ))
}

/// The file that a shell would start.
fn find_executable(name: &OsString) -> Option<PathBuf> {
    let direct = Path::new(name);
    if direct.components().count() > 1 {
        return is_executable(direct).then(|| direct.to_owned());
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

fn find_library() -> Result<PathBuf, Error> {
    if let Some(folder) = env::var_os("HEARTH_LIB") {
        let library = Path::new(&folder).join(LIBRARY_NAME);
        if library.is_file() {
            return Ok(library);
        }
        return Err(Error::Installation(format!(
            "there is no {LIBRARY_NAME} in {}, which the variable HEARTH_LIB names",
            Path::new(&folder).display()
        )));
    }
    let command = env::current_exe().unwrap_or_default();
    let home = command.parent().unwrap_or(Path::new("."));
    let candidates = [
        home.join(LIBRARY_NAME),
        home.join("../lib/hearth").join(LIBRARY_NAME),
    ];
    candidates
        .into_iter()
        .find(|library| library.is_file())
        .ok_or_else(|| {
            Error::Installation(format!(
                "there is no {LIBRARY_NAME} beside {} or in ../lib/hearth; \
                 build it with `cargo build --release`, or name its directory in HEARTH_LIB",
                command.display()
            ))
        })
}
