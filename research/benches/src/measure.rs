//! One run of a program: its time and its output.

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

/// Result of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    pub times: Times,
    pub stdout: String,
    pub stderr: String,
    /// Other guests of the same host had our cores for a noticeable part of it.
    pub disturbed: bool,
}

/// Share of a run that may be stolen before it counts as disturbed.
const STOLEN_MAX: f64 = 0.02;

/// Number of runs tried for each that is wanted.
const TRIES: usize = 12;

/// Measurements of undisturbed runs, and how many runs were disturbed and did not count.
#[derive(Clone, PartialEq, Debug)]
pub struct Kept<T> {
    pub values: Vec<T>,
    pub discarded: usize,
}

/// Measures until there are `wanted` undisturbed values, after one that does not count. `measure`
/// says whether its value was disturbed. An error if a busy host leaves fewer than half of them.
pub fn undisturbed<T>(
    wanted: usize,
    mut measure: impl FnMut() -> Result<(T, bool), String>,
) -> Result<Kept<T>, String> {
    let mut kept = in_turn(1, wanted, |_| measure())?;
    kept.pop().ok_or("nothing was measured".into())
}

/// The same for several sides, which take turns; those that have enough wait for the others.
pub fn in_turn<T>(
    sides: usize,
    wanted: usize,
    mut measure: impl FnMut(usize) -> Result<(T, bool), String>,
) -> Result<Vec<Kept<T>>, String> {
    for side in 0..sides {
        measure(side)?;
    }
    in_order(sides, wanted, |_| {}, measure)
}

/// The same in an order that `arrange` makes anew for every turn, and without a run that does not
/// count.
pub fn in_order<T>(
    sides: usize,
    wanted: usize,
    mut arrange: impl FnMut(&mut [usize]),
    mut measure: impl FnMut(usize) -> Result<(T, bool), String>,
) -> Result<Vec<Kept<T>>, String> {
    let mut all: Vec<Kept<T>> = Vec::with_capacity(sides);
    all.resize_with(sides, || Kept {
        values: Vec::with_capacity(wanted),
        discarded: 0,
    });
    let mut order: Vec<usize> = (0..sides).collect();
    for _ in 0..wanted * TRIES {
        arrange(&mut order);
        for &side in &order {
            let kept = &mut all[side];
            if kept.values.len() < wanted {
                match measure(side)? {
                    (value, false) => kept.values.push(value),
                    (_, true) => kept.discarded += 1,
                }
            }
        }
        if all.iter().all(|kept| kept.values.len() == wanted) {
            return Ok(all);
        }
    }
    match all.iter().find(|kept| kept.values.len() * 2 < wanted) {
        Some(kept) => Err(format!(
            "the host is too busy: its other guests took our cores during {} of {} runs; try again \
             later",
            kept.discarded,
            wanted * TRIES
        )),
        None => Ok(all),
    }
}

/// Seconds that other guests have taken from the cores we may use, since the start of the machine.
/// 0 if the system does not report it.
fn stolen() -> f64 {
    /// The kernel counts in hundredths of a second whatever its own clock.
    const TICK: f64 = 0.01;
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else {
        return 0.0;
    };
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let core = words.next()?.parse().ok()?;
        // After user, nice, system, idle, iowait, irq and softirq.
        allowed.is_set(core).ok()?.then(|| words.nth(7))?
    });
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        * TICK
}

/// Runs a closure, and reports whether other guests had our cores for a noticeable part of it.
pub fn noticing<T>(what: impl FnOnce() -> T) -> (T, bool) {
    let before = stolen();
    let start = Instant::now();
    let done = what();
    let disturbed = stolen() - before > STOLEN_MAX * start.elapsed().as_secs_f64();
    (done, disturbed)
}

/// Runs a program to its end with this input. An unhappy end is an error.
pub fn run(command: &mut Command, input: &str) -> Result<Run, String> {
    let cpu = children_cpu()?;
    let stolen_before = stolen();
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
    let disturbed = stolen() - stolen_before > STOLEN_MAX * wall;
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
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        disturbed,
    })
}

/// Runs programs at the same time, each on its core, to their ends: seconds until the last of them
/// has ended, and whether one was disturbed.
pub fn side_by_side(commands: Vec<Command>, cores: &[usize]) -> Result<(f64, bool), String> {
    std::thread::scope(|scope| {
        let running: Vec<_> = commands
            .into_iter()
            .zip(cores)
            .map(|(mut command, &core)| {
                scope.spawn(move || {
                    // Of this thread, and with it of the program.
                    bind(&[core])?;
                    run(&mut command, "")
                })
            })
            .collect();
        let (mut seconds, mut disturbed) = (0.0, false);
        for one in running {
            let ran = one.join().map_err(|_| "a run has panicked")??;
            seconds = f64::max(seconds, ran.times.wall);
            disturbed |= ran.disturbed;
        }
        Ok((seconds, disturbed))
    })
}

/// Begins the last line of what [`tell_peak`] prints.
const PEAK: &str = "most resident bytes: ";

/// The command `peak PROGRAM ARGUMENT…`: runs a program and reports its peak resident memory. It is
/// a process of its own, as the system reports the peak of all children that it waited for.
pub fn tell_peak(words: &[String]) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("no program")?;
    let output = Command::new(program)
        .args(arguments)
        .stderr(Stdio::inherit())
        .stdin(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start {program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program} ended with {}", output.status));
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    // Linux counts in KiB.
    let bytes = usage.max_rss() * 1024;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(format!("{}\n{PEAK}{bytes}\n", said.trim_end()))
}

/// Runs a program through [`tell_peak`]: its peak resident bytes, and its output.
pub fn peak(command: &Command, input: &str) -> Result<(f64, String), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut through = Command::new(this);
    through.arg("peak").arg(command.get_program());
    through.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => through.env(name, value),
            None => through.env_remove(name),
        };
    }
    let said = run(&mut through, input)?.stdout;
    let parts = said.split_once(PEAK);
    let bytes = parts.and_then(|(_, bytes)| bytes.trim_end().parse().ok());
    match (parts, bytes) {
        (Some((before, _)), Some(bytes)) => Ok((bytes, before.to_owned())),
        _ => Err(format!("{command:?} says {said:?}")),
    }
}

/// Programs of ours take seconds.
const LIMIT: Duration = Duration::from_secs(300);

/// Kills a program that does not end, unless dropped before.
struct Watch {
    // Dropping it tells the watching thread that all is well.
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
    bind(&chosen)?;
    Ok(chosen)
}

/// Binds the calling thread, and with it every program it starts.
fn bind(cores: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core).map_err(|error| error.to_string())?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_values_do_not_count() {
        let mut n = 0;
        let kept = undisturbed(3, || {
            n += 1;
            Ok((n, n % 2 == 0))
        });
        let kept = kept.expect("enough");
        assert_eq!((kept.values, kept.discarded), (vec![3, 5, 7], 3));
    }

    #[test]
    fn sides_take_turns() {
        let mut order = Vec::new();
        let kept = in_turn(2, 2, |side| {
            order.push(side);
            // The second side's first value that would count is disturbed.
            Ok((order.len(), order.len() == 4))
        });
        let kept = kept.expect("enough");
        assert_eq!(order, [0, 1, 0, 1, 0, 1, 1]);
        assert_eq!((&kept[0].values, kept[0].discarded), (&vec![3, 5], 0));
        assert_eq!((&kept[1].values, kept[1].discarded), (&vec![6, 7], 1));
    }

    #[test]
    fn a_busy_host_is_an_error() {
        let refused = undisturbed(4, || Ok(((), true))).expect_err("nothing was undisturbed");
        assert!(refused.contains("48 of 48"), "{refused}");
    }
}
