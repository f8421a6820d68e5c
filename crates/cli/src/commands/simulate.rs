//! `hearth run --simulate FROM..TO`: one schedule after the other until one fails, which is then
//! made as plain as it can be.

use std::ffi::OsString;
use std::fs;
use std::io::{IsTerminal, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hearth_driver::cache::Workshop;
use hearth_driver::program::Executable;
use hearth_sys::process::ends_with_this_thread;
use hearth_terminal::progress::Bar;
use hearth_terminal::{Failure, Interruption, output};
use hearth_text::cause;

use crate::arguments::Run;
use crate::shrink::shrink;

/// The default number of steps after which a run counts as endless.
const STEPS: u64 = 1_000_000;
/// A run that takes longer is stuck in the program's own code.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval at which the end of a run is checked.
const BEAT: Duration = Duration::from_micros(300);
/// The most runs, and the most time, for simplifying a schedule.
const SHRINKING_RUNS: usize = 2_000;
const SHRINKING_TIME: Duration = Duration::from_secs(60);
/// The first words of a schedule's lines, in the order in which they are easiest to follow.
const KINDS: [&str; 8] = [
    "look",
    "sleep",
    "collect",
    "beside",
    "component",
    "pause",
    "worker",
    "place",
];
/// The longest trace that is shown whole; of longer ones only the end is.
const TRACE_LINES: usize = 60;

/// End of a run, as printed: `done`, `cut short`, or what went wrong.
const DONE: &str = "done";
const CUT_SHORT: &str = "cut short";

/// The seeds to try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeds {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// The result of one run.
struct RunResult {
    /// The schedule as the runtime wrote it.
    record: Record,
    stderr: Vec<u8>,
}

struct Record {
    end: String,
    steps: u64,
    decisions: u64,
    /// The lines of the schedule before its choices.
    head: Vec<String>,
    /// The choices that were not plain.
    choices: Vec<String>,
    trace: Vec<String>,
}

/// Starts the program again and again.
struct Session<'a> {
    program: &'a Path,
    name: &'a str,
    arguments: &'a Run,
    environment: Vec<(String, OsString)>,
    stdin: Vec<u8>,
    workshop: Workshop,
    interruption: Interruption,
}

pub(crate) fn search(
    executable: &Executable,
    arguments: &Run,
    environment: Vec<(String, OsString)>,
    name: &str,
    seeds: Seeds,
) -> Result<(), Failure> {
    let workshop = Workshop::temporary().map_err(|error| {
        Failure::environment(format!(
            "cannot keep the records of simulations in {}: {}; set TMPDIR to a directory with free space",
            std::env::temp_dir().display(),
            cause(&error)
        ))
    })?;
    let session = Session {
        program: &executable.path,
        name,
        arguments,
        environment,
        stdin: read_input()?,
        workshop,
        interruption: Interruption::watch(),
    };
    let mut cut_short = 0;
    let mut bar = Bar::start();
    let count = seeds.last - seeds.first + 1;
    for seed in seeds.first..=seeds.last {
        let tried = seed - seeds.first;
        bar.show(tried as f64 / count as f64, &format!("seed {seed}"));
        let told = |failure| match failure {
            Failure::Interrupted(signal, _) => Failure::Interrupted(
                signal,
                format!("interrupted; {tried} of {count} seeds have passed"),
            ),
            other => other,
        };
        let found = session.run(seed, None).map_err(told)?;
        match found.record.end.as_str() {
            DONE => {}
            CUT_SHORT => cut_short += 1,
            _ => {
                drop(bar);
                return session.tell(seed, tried, found);
            }
        }
    }
    drop(bar);
    let seeds = match count {
        1 => format!("seed {} has passed", seeds.first),
        _ => format!("{count} seeds have passed"),
    };
    let rest = match cut_short {
        0 => String::new(),
        _ => format!(
            "; {cut_short} had not ended after {} steps (--steps)",
            arguments.steps.unwrap_or(STEPS)
        ),
    };
    output::write(format!("{seeds}{rest}\n"))
}

/// The input of each run. A user at a terminal cannot be asked again and again.
fn read_input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin();
    if !stdin.is_terminal() {
        stdin.read_to_end(&mut bytes).map_err(|error| {
            Failure::input(format!("cannot read standard input: {}", cause(&error)))
        })?;
    }
    Ok(bytes)
}

impl Session<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.workshop.path().join(name)
    }

    /// Runs the program by a seed, or by a schedule instead.
    fn run(&self, seed: u64, schedule: Option<&str>) -> Result<RunResult, Failure> {
        let record = self.path("record");
        let _ = fs::remove_file(&record);
        let mut command = Command::new(self.program);
        command
            .arg0(
                Path::new(self.name)
                    .file_stem()
                    .unwrap_or("program".as_ref()),
            )
            .args(&self.arguments.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("HEARTH_SIMULATE", seed.to_string())
            .env("HEARTH_RECORD", &record)
            .env_remove("HEARTH_SCHEDULE")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if self.arguments.steps.is_none() {
            command.env("HEARTH_STEPS", STEPS.to_string());
        }
        if let Some(schedule) = schedule {
            let path = self.path("schedule");
            fs::write(&path, schedule).map_err(|error| output::cannot_write(&path, &error))?;
            command.env("HEARTH_SCHEDULE", path);
        }
        // `attend` waits for it, in this thread.
        ends_with_this_thread(&mut command);
        let mut child = command.spawn().map_err(|error| {
            Failure::environment(format!(
                "cannot start {}: {}",
                self.program.display(),
                cause(&error)
            ))
        })?;
        let stderr = self.attend(&mut child, seed)?;
        match fs::read_to_string(&record) {
            Ok(text) => Ok(RunResult {
                record: Record::read(&text),
                stderr,
            }),
            // It did not come to run: an option is of no use, or the machine lacks something.
            Err(_) => {
                show(&stderr);
                Err(Failure::Negative)
            }
        }
    }

    /// Feeds a run, waits for its end, and returns its output.
    fn attend(&self, child: &mut Child, seed: u64) -> Result<Vec<u8>, Failure> {
        if let Some(mut pipe) = child.stdin.take() {
            let bytes = self.stdin.clone();
            // A program need not read its input.
            std::thread::spawn(move || pipe.write_all(&bytes));
        }
        let pipe = child.stderr.take();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                // What was said before it broke is worth telling all the same.
                let _ = pipe.read_to_end(&mut bytes);
            }
            bytes
        });
        let end = Instant::now() + PATIENCE;
        let refusal = loop {
            match child.try_wait() {
                Ok(Some(_)) => break None,
                Ok(None) => {}
                Err(error) => break Some(Failure::environment(cause(&error))),
            }
            if self.interruption.flag.load(Ordering::SeqCst) {
                let signal = self.interruption.signal.load(Ordering::SeqCst);
                break Some(Failure::Interrupted(signal, "interrupted".to_owned()));
            }
            if Instant::now() > end {
                break Some(Failure::input(format!(
                    "with seed {seed} the program computes for more than {} s without an operation; \
                     to see where: hearth run --simulate {seed} {}",
                    PATIENCE.as_secs(),
                    self.name
                )));
            }
            std::thread::sleep(BEAT);
        };
        if let Some(refusal) = refusal {
            // Gone already is as good.
            let _ = child.kill();
            let _ = child.wait();
            return Err(refusal);
        }
        Ok(reader.join().unwrap_or_default())
    }

    /// Tells of a seed that fails, and of the plainest schedule that fails like it.
    fn tell(&self, seed: u64, passed: u64, found: RunResult) -> Result<(), Failure> {
        let name = self.name;
        let before = match passed {
            0 => String::new(),
            1 => " (one seed before it has passed)".to_owned(),
            _ => format!(" ({passed} seeds before it have passed)"),
        };
        say(&format!("seed {seed} fails: {}{before}", found.record.end));
        show(&found.stderr);
        let original = found.record.choices.len();
        let end = found.record.end.clone();
        let plain = self.make_plain(seed, found)?;
        let choices = &plain.record.choices;
        say(&match choices.len() {
            0 => "the plain schedule fails in the same way; the course:".to_owned(),
            1 => format!("one choice of {original} is enough for that (*); the course:"),
            count => {
                format!("{count} choices of {original} are enough for that (*); the course:")
            }
        });
        show(excerpt(&plain.record.trace).as_bytes());
        say(&format!(
            "to repeat seed {seed}: hearth run --simulate {seed} {name}"
        ));
        if let Some(path) = &self.arguments.schedule {
            output::replace(path, plain.record.schedule(choices).as_bytes())?;
            say(&format!(
                "to repeat what is shown above: hearth run --simulate {} {name}",
                path.display()
            ));
        } else if !choices.is_empty() {
            say("to keep the schedule shown above, name a file for it: --schedule FILE");
        }
        debug_assert_eq!(end, plain.record.end, "shrinking keeps the failure");
        Err(Failure::Negative)
    }

    /// Leaves out choices as long as the program fails in the same way.
    fn make_plain(&self, seed: u64, found: RunResult) -> Result<RunResult, Failure> {
        let mut bar = Bar::start();
        let start = Instant::now();
        let (mut runs, mut refusal) = (0, None);
        let original = found.record.choices.len();
        let mut best = found;
        let (head, end) = (best.record.head.clone(), best.record.end.clone());
        let choices = best.record.choices.clone();
        let mut keeps = |choices: &[String]| {
            let is_enough = runs >= SHRINKING_RUNS || start.elapsed() > SHRINKING_TIME;
            if is_enough || refusal.is_some() {
                return None;
            }
            runs += 1;
            let left = best.record.choices.len();
            let fraction = 1.0 - left as f64 / original.max(1) as f64;
            bar.show(fraction, &format!("{left} of {original} choices left"));
            match self.run(seed, Some(&schedule(&head, choices))) {
                Ok(found) if found.record.end == end => {
                    let kept = found.record.choices.clone();
                    if kept.len() <= choices.len() {
                        best = found;
                    }
                    Some(kept)
                }
                Ok(_) => None,
                Err(error) => {
                    refusal = Some(error);
                    None
                }
            }
        };
        // All of a kind first, then one by one.
        let mut choices = choices;
        for kind in KINDS {
            let others = choices.iter().filter(|choice| !choice.starts_with(kind));
            let others: Vec<String> = others.cloned().collect();
            if others.len() < choices.len() {
                choices = keeps(&others).unwrap_or(choices);
            }
        }
        shrink(choices, keeps);
        match refusal {
            // One that computes for long fails in another way.
            Some(Failure::Input(_)) | None => Ok(best),
            Some(refusal) => Err(refusal),
        }
    }
}

fn schedule(head: &[String], choices: &[String]) -> String {
    let lines = head.iter().chain(choices).map(|line| format!("{line}\n"));
    lines.collect()
}

impl Record {
    /// Three parts with an empty line between them: the schedule, how it ended, what happened.
    fn read(text: &str) -> Record {
        let mut parts = text.splitn(3, "\n\n");
        let lines = |part: Option<&str>| -> Vec<String> {
            part.unwrap_or_default()
                .lines()
                .map(str::to_owned)
                .collect()
        };
        let (head, choices) = lines(parts.next())
            .into_iter()
            .partition(|line: &String| line.split(' ').count() < 4);
        let facts = lines(parts.next());
        let fact = |name: &str| {
            let found = facts.iter().find_map(|line| line.strip_prefix(name));
            found.unwrap_or_default().trim().to_owned()
        };
        Record {
            end: fact("end "),
            steps: fact("steps ").parse().unwrap_or(0),
            decisions: fact("decisions ").parse().unwrap_or(0),
            head,
            choices,
            trace: lines(parts.next()),
        }
    }

    /// The text of a schedule's file, with what happened for people to read.
    fn schedule(&self, choices: &[String]) -> String {
        format!(
            "{}\nend {}\nsteps {}\ndecisions {}\n\n{}\n",
            schedule(&self.head, choices),
            self.end,
            self.steps,
            self.decisions,
            self.trace.join("\n")
        )
    }
}

/// All of a short trace; of a long one its choices, each with what is around it, and its end.
fn excerpt(trace: &[String]) -> String {
    let mut shown = vec![trace.len() <= TRACE_LINES; trace.len()];
    if trace.len() > TRACE_LINES {
        shown[trace.len() - TRACE_LINES / 3..].fill(true);
        let choices = (0..trace.len()).filter(|&index| trace[index].starts_with('*'));
        for index in choices.take(TRACE_LINES / 3) {
            let to = (index + 2).min(trace.len());
            shown[index.saturating_sub(1)..to].fill(true);
        }
    }
    let mut text = String::new();
    let mut left_out = 0;
    for (line, &is_shown) in trace.iter().zip(&shown) {
        if !is_shown {
            left_out += 1;
            continue;
        }
        if left_out > 0 {
            text += &format!("  … {left_out} more …\n");
            left_out = 0;
        }
        text += line;
        text.push('\n');
    }
    text
}

fn say(text: &str) {
    eprintln!("hearth: {text}");
}

fn show(text: &[u8]) {
    // Nobody is left to tell if this fails.
    let _ = std::io::stderr().write_all(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_in_its_parts() {
        let text = "hearth schedule 1\nseed 4\nworkers 2\npause 3 7 1\n\nend deadlock\nsteps 9\n\
                    decisions 5\n\n  worker 0  A sends on b\n* worker 1  B goes on\n";
        let record = Record::read(text);
        assert_eq!(record.end, "deadlock");
        assert_eq!(record.choices, ["pause 3 7 1"]);
        assert_eq!(record.head.len(), 3);
        assert_eq!(record.schedule(&record.choices), text);
    }

    #[test]
    fn a_long_trace_is_told_by_its_choices_and_its_end() {
        let line = |index| match index {
            40 => "* forty".to_owned(),
            other => format!("  {other}"),
        };
        let trace: Vec<String> = (0..1000).map(line).collect();
        let text = excerpt(&trace);
        assert!(
            text.starts_with("  … 39 more …\n  39\n* forty\n  41\n  … "),
            "{text}"
        );
        assert!(text.ends_with("  999\n"));
        assert_eq!(excerpt(&trace[..60]).lines().count(), 60);
    }
}
