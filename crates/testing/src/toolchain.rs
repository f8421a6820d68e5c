//! Turns generated C into a running program: the users' toolchain, the runtime's library of the
//! profile under test, a time limit.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Flags that make memory errors, undefined behaviour and leaks end the program.
pub const SANITIZERS: [&str; 4] = [
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
];

/// Tools and flags for building a program.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The runtime's static library.
    pub library: PathBuf,
    /// Flags behind those of users' programs: another optimisation, sanitizers.
    pub flags: Vec<String>,
}

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub end: End,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Exit(i32),
    Signal(i32),
    /// Killed at the time limit.
    Late,
}

impl Toolchain {
    /// Uses the library of the cargo profile that built the calling executable. Cargo builds a
    /// static library only on request, so this requests it.
    pub fn of_this_profile(flags: &[&str]) -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Ok(Toolchain {
            library: built_library(&root)?,
            flags: flags.iter().map(ToString::to_string).collect(),
        })
    }

    /// Whether a sanitizer watches the programs.
    pub fn is_sanitized(&self) -> bool {
        self.flags.iter().any(|flag| flag.starts_with("-fsanitize"))
    }

    /// Compiles and links; warnings count as errors.
    pub fn build(&self, c: &str, folder: &Path) -> Result<PathBuf, String> {
        let program = folder.join("program");
        let flags: Vec<&str> = ["-Werror"]
            .into_iter()
            .chain(self.flags.iter().map(String::as_str))
            .collect();
        hearth_toolchain::Toolchain::with_library(self.library.clone())
            .and_then(|toolchain| toolchain.build(c, &program, folder, &flags))
            .map_err(|error| error.to_string())?;
        Ok(program)
    }
}

/// Path of the runtime's static library, once cargo has built it.
fn built_library(root: &Path) -> Result<PathBuf, String> {
    static LIBRARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        // An executable lies in the profile's folder, a test in `deps` below it.
        let home = this.parent().unwrap_or(Path::new("."));
        let home = match home.file_name() {
            Some(name) if name == "deps" => home.parent().unwrap_or(home),
            _ => home,
        };
        let profile = match home.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(other) => other,
        };
        let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
            .args(["build", "--quiet", "--package", "hearth-runtime", "--lib"])
            .args(["--profile", profile, "--target-dir"])
            .arg(home.parent().unwrap_or(home))
            .current_dir(root)
            .output()
            .map_err(|error| format!("cannot start cargo: {error}"))?;
        if !output.status.success() {
            return Err(format!(
                "the runtime does not build:\n{}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        Ok(home.join("libhearth_runtime.a"))
    };
    LIBRARY.get_or_init(build).clone()
}

/// Runs a program without input until it ends or `limit` has passed.
pub fn run(command: &mut Command, limit: Duration) -> Result<Ran, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let end = wait(&mut child, limit)?;
    Ok(Ran {
        stdout: stdout.join().unwrap_or_default(),
        stderr: stderr.join().unwrap_or_default(),
        end,
    })
}

/// The most output of a run that is kept.
const OUTPUT_LIMIT: u64 = 16 << 20;

/// Reads a pipe while another thread waits.
fn collect(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // Keep the bytes read before an error.
            let _ = pipe.take(OUTPUT_LIMIT).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, limit: Duration) -> Result<End, String> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(match (status.code(), status.signal()) {
                (Some(code), _) => End::Exit(code),
                (None, signal) => End::Signal(signal.unwrap_or(0)),
            });
        }
        if start.elapsed() > limit {
            // It may have ended meanwhile; then there is nothing to kill.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(End::Late);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// A new empty folder for temporary files, removed when dropped.
#[derive(Debug)]
pub struct Workshop(PathBuf);

impl Workshop {
    pub fn new(name: &str) -> Result<Self, String> {
        use std::sync::atomic::{AtomicU32, Ordering};
        // Tests of one process run concurrently. A count needs no ordering.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = format!("hearth-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        Ok(Workshop(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // A folder left over in the temporary directory does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
