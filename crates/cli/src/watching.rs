//! Runs a program with a recording, and makes a report and a trace of it when the program has
//! ended.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use hearth_driver::expected::Expected;
use hearth_report::run::{self, Process};
use hearth_sys::process::ends_with_this_thread;
use hearth_sys::shared;
use hearth_sys::signal::{self, Signals};
use hearth_terminal::{Failure, output};
use hearth_watch::{NAME, Recording, bytes_for, trace};

use crate::arguments::Run;

/// The default for the bytes of kept events; the runtime has the same.
const WINDOW: u64 = 64 << 20;

/// A recording that somebody asked for, in memory: it is there until the last who has it open has
/// ended.
pub(crate) struct Watching {
    file: File,
    window: u64,
    report: Option<PathBuf>,
    trace: Option<PathBuf>,
}

impl Watching {
    /// The recording for these options; `None` if they need none.
    pub(crate) fn asked(arguments: &Run) -> Result<Option<Watching>, Failure> {
        let (report, trace) = (arguments.report.clone(), arguments.trace.clone());
        if report.is_none() && trace.is_none() && !arguments.watch {
            return Ok(None);
        }
        // Better now than when the program has run for an hour.
        for path in report.iter().chain(&trace) {
            output::try_out(path)?;
        }
        let window = arguments.watch_window.map_or(WINDOW, |bytes| bytes.0);
        let file = shared::memory_file(NAME, bytes_for(window))
            .map_err(|refused| Failure::environment(refused.to_string()))?;
        Ok(Some(Watching {
            file,
            window,
            report,
            trace,
        }))
    }

    /// True if a report or a trace is to be written when the program has ended.
    pub(crate) fn writes(&self) -> bool {
        self.report.is_some() || self.trace.is_some()
    }

    /// The program will write into the recording.
    pub(crate) fn attach(&self, command: &mut Command) {
        let place = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        command.env("HEARTH_WATCH", place);
    }

    /// Runs the program to its end. Signals are for the program: this process passes on only those
    /// that it alone received. Killing this process kills the program, as without a recording.
    pub(crate) fn run(
        &self,
        start: std::io::Result<(PathBuf, Option<File>)>,
        command: impl FnOnce(PathBuf) -> Command,
    ) -> std::io::Result<ExitStatus> {
        let (path, _open) = start?;
        let mut command = command(path);
        self.attach(&mut command);
        let heeded: Vec<i32> = [signal::INTERRUPT, signal::TERMINATE]
            .into_iter()
            .filter(|&signal| !signal::is_ignored(signal))
            .collect();
        let signals = Signals::of(&heeded);
        // The program begins so, too, and waits for them as it does anyway.
        signals.block();
        // This thread waits for it.
        ends_with_this_thread(&mut command);
        let mut child = command.spawn()?;
        let process = child.id();
        if !heeded.is_empty() {
            // Waits until this process ends.
            std::thread::spawn(move || {
                while let Ok((signal, is_ours_alone)) = signals.wait_and_tell() {
                    if is_ours_alone {
                        signal::send(process, signal);
                    }
                }
            });
        }
        child.wait()
    }

    /// Writes the report and the trace. The command then ends as the program did.
    pub(crate) fn write(
        &self,
        ended: ExitStatus,
        name: &str,
        expected: impl FnOnce() -> Option<Expected>,
    ) -> Result<(), Failure> {
        let code = match (ended.code(), ended.signal()) {
            (Some(code), _) => code as u8,
            (None, signal) => 128 + signal.unwrap_or(0) as u8,
        };
        let program = Path::new(name)
            .file_stem()
            .map_or("program".into(), |stem| stem.to_string_lossy());
        match Recording::of_file(&self.file) {
            Ok(recording) => {
                if let Some(path) = &self.trace {
                    output::replace(path, &trace::bytes(&recording, &program))?;
                }
                if let Some(path) = &self.report {
                    let process = ended.signal().map_or(Process::Ended, Process::Killed);
                    let page = run::page(&recording, &program, process, expected().as_ref());
                    output::replace(path, page.as_bytes())?;
                }
                if recording.events_lost > 0 {
                    eprintln!(
                        "hearth: note: the first {} events are missing: they do not fit into {} bytes; \
                         a larger --watch-window keeps more",
                        recording.events_lost, self.window
                    );
                }
            }
            Err(_) => eprintln!(
                "hearth: note: the program ended before anything was recorded; nothing is written"
            ),
        }
        match code {
            0 => Ok(()),
            code => Err(Failure::Ended(code)),
        }
    }
}
