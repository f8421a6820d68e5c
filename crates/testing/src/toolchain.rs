//! Generated C to a running program: the system's C compiler, the runtime's static library, a
//! time limit.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What every generated program is compiled with; integers wrap.
const FLAGS: [&str; 4] = ["-std=c11", "-fwrapv", "-Wall", "-Wextra"];
const LIBRARIES: [&str; 3] = ["-lpthread", "-lm", "-ldl"];

/// Memory errors, undefined behaviour and leaks end the program.
pub const SANITIZERS: [&str; 4] = [
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
];

/// How to build a program.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The folder of `hearth.h`.
    pub include: PathBuf,
    /// The runtime's static library.
    pub library: PathBuf,
    /// Optimisation, sanitizers and the like.
    pub flags: Vec<String>,
}

/// What a run showed.
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
    /// Killed when its time was over.
    Late,
}

impl Toolchain {
    /// With the library of the cargo profile that built the calling executable. Cargo builds a
    /// static library only if it is asked to, so it is asked.
    pub fn of_this_profile(flags: &[&str]) -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Ok(Toolchain {
            include: root.join("crates/abi/include"),
            library: built_library(&root)?,
            flags: flags.iter().map(ToString::to_string).collect(),
        })
    }

    /// Does a sanitizer watch the programs?
    pub fn is_sanitized(&self) -> bool {
        self.flags.iter().any(|flag| flag.starts_with("-fsanitize"))
    }

    /// Compiles and links; warnings count as errors.
    pub fn build(&self, c: &str, folder: &Path) -> Result<PathBuf, String> {
        let source = folder.join("program.c");
        let program = folder.join("program");
        fs::write(&source, c).map_err(|error| error.to_string())?;
        let output = Command::new("cc")
            .args(FLAGS)
            .arg("-Werror")
            .args(&self.flags)
            .arg("-I")
            .arg(&self.include)
            .arg("-o")
            .args([&program, &source, &self.library])
            .args(LIBRARIES)
            .env("LC_ALL", "C")
            .output()
            .map_err(|error| format!("cannot start cc: {error}"))?;
        if output.status.success() {
            return Ok(program);
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Where the runtime's static library is, once cargo has built it.
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

/// Runs a program without input until it ends or `limit` is over.
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

/// Reads a pipe beside the waiting.
fn collect(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What was read before an error counts.
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
        // Tests of one process work side by side. A count needs no ordering.
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
