//! The C compiler and what programs are linked with: where they are, which they are, and calling
//! them.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::crash;
use crate::failure::{Failure, cause};

const HEADER_NAME: &str = "hearth.h";
const LIBRARY_NAME: &str = "libhearth_runtime.a";

/// Insense integers wrap, hence -fwrapv. Loops aligned to 32 bytes ran up to 1.8 times as fast here.
/// Nothing here depends on the machine at hand, so that a
/// built program can be carried to another.
const FLAGS: &[&str] = &[
    "-std=c11",
    "-O3",
    "-fwrapv",
    "-falign-loops=32",
    "-Wall",
    "-Wextra",
    "-pipe",
];
const LIBRARIES: &[&str] = &["-lpthread", "-lm", "-ldl", "-Wl,--gc-sections"];

/// What debuggers need makes an executable eight times as large.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Debugging {
    None,
    Full,
}

impl Debugging {
    fn flag(self) -> &'static str {
        match self {
            Debugging::None => "-Wl,--strip-debug",
            Debugging::Full => "-g",
        }
    }
}

/// Smallest program that needs what generated programs need of the system.
const PROBE: &str = "#include <stdint.h>\n#include <string.h>\nint main(void) { return 0; }\n";

pub(crate) struct Toolchain {
    /// The words of `$CC`, or `cc`.
    compiler: Vec<OsString>,
    /// Where the first of them was found.
    compiler_path: PathBuf,
    library: PathBuf,
}

/// Why there is no executable.
pub(crate) enum Refusal {
    /// The directory could not hold it; another may.
    Place(String),
    Other(Failure),
}

impl Toolchain {
    pub(crate) fn find() -> Result<Self, Failure> {
        let (compiler, compiler_path) = find_compiler()?;
        Ok(Toolchain {
            compiler,
            compiler_path,
            library: find_library()?,
        })
    }

    /// Everything an executable depends on besides its program and the options, as text.
    pub(crate) fn identity(&self) -> Result<String, Failure> {
        Ok(format!(
            "hearth {}\nlibrary {}\ncompiler {:?} {}\n",
            own_identity()?,
            file_identity(&self.library)?,
            self.compiler,
            file_identity(&self.compiler_path)?,
        ))
    }

    /// Compiles and links `c`, which lies in `workshop`, into `out`. Whatever else it writes stays
    /// in `workshop`.
    pub(crate) fn build(
        &self,
        c: &str,
        out: &Path,
        workshop: &Path,
        debugging: Debugging,
    ) -> Result<(), Refusal> {
        let c_path = workshop.join("program.c");
        let place = |error: std::io::Error| Refusal::Place(cause(&error));
        fs::write(workshop.join(HEADER_NAME), hearth_abi::HEADER).map_err(place)?;
        fs::write(&c_path, c).map_err(place)?;
        let output = self
            .call(&c_path, out, workshop)
            .arg(&self.library)
            .args(LIBRARIES)
            .arg(debugging.flag())
            .output()
            .map_err(|error| Refusal::Other(self.does_not_start(&error)))?;
        if output.status.success() {
            return Ok(());
        }
        Err(self.explain(&output, c, workshop))
    }

    fn call(&self, c: &Path, out: &Path, workshop: &Path) -> Command {
        let mut command = Command::new(&self.compiler_path);
        command
            .args(&self.compiler[1..])
            .args(FLAGS)
            .arg("-I")
            .arg(workshop)
            .arg("-o")
            .arg(out)
            .arg(c)
            .env("TMPDIR", workshop)
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        command
    }

    fn does_not_start(&self, error: &std::io::Error) -> Failure {
        Failure::environment(format!(
            "cannot start the C compiler {}: {}",
            self.compiler_path.display(),
            cause(error)
        ))
    }

    /// Who is to blame for a failed build: the place, the installation, or we.
    fn explain(&self, output: &Output, c: &str, workshop: &Path) -> Refusal {
        let complaint = String::from_utf8_lossy(&output.stderr);
        if let Some(reason) = place_is_unfit(&complaint, workshop) {
            return Refusal::Place(reason);
        }
        if let Some(signal) = output.status.signal() {
            return Refusal::Other(Failure::environment(format!(
                "the C compiler {} was killed by signal {signal}{}",
                self.compiler_path.display(),
                if signal == 9 { " (out of memory?)" } else { "" }
            )));
        }
        if let Some(failure) = self.installation_is_unfit(workshop) {
            return Refusal::Other(failure);
        }
        Refusal::Other(self.our_mistake(&complaint, c))
    }

    /// Can it compile and link anything at all?
    fn installation_is_unfit(&self, workshop: &Path) -> Option<Failure> {
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
        Some(Failure::environment(format!(
            "the C compiler {} cannot build even an empty program ({}); install gcc and its \
             libraries, for example: apt-get install gcc libc6-dev",
            self.compiler_path.display(),
            first.trim()
        )))
    }

    fn our_mistake(&self, complaint: &str, c: &str) -> Failure {
        let mut what = format!(
            "the C compiler {} refuses the generated C\n",
            self.compiler_path.display()
        );
        for line in complaint.lines().take(20) {
            what.push_str(line);
            what.push('\n');
        }
        let kept = env::temp_dir().join(format!("hearth-report-{}.c", std::process::id()));
        let kept = fs::write(&kept, c).ok().map(|()| kept);
        let files: Vec<&Path> = kept.iter().map(PathBuf::as_path).collect();
        Failure::Bug(crash::page(&what, &files))
    }
}

/// Did the directory give out? Then the reason.
fn place_is_unfit(complaint: &str, workshop: &Path) -> Option<String> {
    let told = [
        ("No space left on device", "the disk is full"),
        ("Disk quota exceeded", "the disk quota is used up"),
        ("Read-only file system", "the file system is read-only"),
    ];
    for (sign, reason) in told {
        if complaint.contains(sign) {
            return Some(reason.into());
        }
    }
    // Compilers do not always say why they could not write. More than any file they leave here.
    let probe = workshop.join("space");
    let outcome = fs::write(&probe, vec![0; 1 << 20]).err();
    let _ = fs::remove_file(&probe);
    outcome.map(|error| cause(&error))
}

/// What this command is another one by, if it is.
pub(crate) fn own_identity() -> Result<String, Failure> {
    let command = env::current_exe()
        .map_err(|error| Failure::environment(format!("cannot find itself: {error}")))?;
    file_identity(&command)
}

/// Path, size and time of the last change: what tells one version of a file from another.
fn file_identity(path: &Path) -> Result<String, Failure> {
    let facts = fs::metadata(path).map_err(|error| {
        Failure::environment(format!(
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

fn find_compiler() -> Result<(Vec<OsString>, PathBuf), Failure> {
    let chosen = env::var("CC").ok().filter(|words| !words.trim().is_empty());
    let words: Vec<OsString> = chosen
        .as_deref()
        .unwrap_or("cc")
        .split_whitespace()
        .map(OsString::from)
        .collect();
    if let Some(path) = find_executable(&words[0]) {
        return Ok((words, path));
    }
    Err(Failure::environment(match chosen {
        Some(chosen) => format!(
            "there is no C compiler {chosen:?}, which the variable CC names; unset it to use cc"
        ),
        None => "there is no C compiler (cc); install one, for example: apt-get install gcc".into(),
    }))
}

/// What the shell would start.
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

fn find_library() -> Result<PathBuf, Failure> {
    if let Some(folder) = env::var_os("HEARTH_LIB") {
        let library = Path::new(&folder).join(LIBRARY_NAME);
        if library.is_file() {
            return Ok(library);
        }
        return Err(Failure::environment(format!(
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
            Failure::environment(format!(
                "there is no {LIBRARY_NAME} beside {} or in ../lib/hearth; \
                 build it with `cargo build --release`, or name its directory in HEARTH_LIB",
                command.display()
            ))
        })
}
