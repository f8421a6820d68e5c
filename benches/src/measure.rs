//! One run of a program: how long it took and what it said.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Times {
    pub wall: f64,
    /// User and system time of the program and everything it started and waited for.
    pub cpu: f64,
}

/// What a run came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    pub times: Times,
    pub stdout: String,
}

/// Runs a program to its end with this input. An unhappy end is an error.
pub fn run(command: &mut Command, input: &str) -> Result<Run, String> {
    let cpu = children_cpu()?;
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input has closed it; that is its right.
        let _ = stdin.write_all(input.as_bytes());
    }
    let watch = Watch::over(child.id());
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    drop(watch);
    let wall = start.elapsed().as_secs_f64();
    let cpu = children_cpu()? - cpu;
    if !output.status.success() {
        return Err(format!(
            "{command:?} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(Run {
        times: Times { wall, cpu },
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
    })
}

/// Programs of ours take seconds.
const LIMIT: Duration = Duration::from_secs(300);

/// Kills a program that does not end, unless dropped before.
struct Watch {
    // Its end tells the watching thread that all is well.
    _ended: Sender<()>,
}

impl Watch {
    fn over(child: u32) -> Self {
        let (ended, told) = channel();
        std::thread::spawn(move || {
            if told.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                // It may have ended this moment; then there is nothing to kill.
                let _ = kill(Pid::from_raw(child as i32), Signal::SIGKILL);
            }
        });
        Watch { _ended: ended }
    }
}

fn children_cpu() -> Result<f64, String> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Binds this process, and with it every program it starts, to the last `count` of the cores it
/// may use: the first is where the system does most of its own work. The cores' numbers.
pub fn pin(count: usize) -> Result<Vec<usize>, String> {
    // Those of the start: an earlier call may have bound us to fewer.
    static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).map_err(|error| error.to_string())?;
    let cores = ALLOWED.get_or_init(|| {
        (0..CpuSet::count())
            .filter(|&core| allowed.is_set(core).unwrap_or(false))
            .collect()
    });
    let chosen = cores[cores.len().saturating_sub(count)..].to_vec();
    let mut set = CpuSet::new();
    for &core in &chosen {
        set.set(core).map_err(|error| error.to_string())?;
    }
    sched_setaffinity(this, &set).map_err(|error| error.to_string())?;
    Ok(chosen)
}
