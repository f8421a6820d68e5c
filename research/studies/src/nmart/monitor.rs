//! The source's memory monitor: a process's own account of its memory, looked at over and over
//! while it runs.
//!
//! The source looks every 0.1 ms by its text and every 100 ms by its listing, and prints four of
//! its five figures. Here the interval can be chosen, and all seven fields are kept.

use std::fs;
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The source's interval, by its text.
pub const INTERVAL: Duration = Duration::from_micros(100);

/// Contents of a status file. Sizes in kB, as there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// `VmSize`.
    pub size_kb: u64,
    /// `VmPeak`.
    pub peak_kb: u64,
    /// `VmRSS`.
    pub resident_kb: u64,
    /// `VmHWM`.
    pub resident_peak_kb: u64,
    /// `VmData`.
    pub data_kb: u64,
    /// `Cpus_allowed_list`.
    pub processors: String,
    /// `Mems_allowed_list`.
    pub nodes: String,
}

impl Status {
    /// Reads a status file's text. `None` if it has no memory, as of a process that has ended.
    #[must_use]
    pub fn parse(text: &str) -> Option<Status> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.strip_prefix(':')).map(str::trim)
        };
        let kb = |name: &str| field(name)?.strip_suffix("kB")?.trim().parse().ok();
        Some(Status {
            size_kb: kb("VmSize")?,
            peak_kb: kb("VmPeak")?,
            resident_kb: kb("VmRSS").unwrap_or(0),
            resident_peak_kb: kb("VmHWM").unwrap_or(0),
            data_kb: kb("VmData").unwrap_or(0),
            processors: field("Cpus_allowed_list").unwrap_or_default().to_owned(),
            nodes: field("Mems_allowed_list").unwrap_or_default().to_owned(),
        })
    }

    /// The larger of each size.
    pub fn join(&mut self, other: &Status) {
        self.size_kb = self.size_kb.max(other.size_kb);
        self.peak_kb = self.peak_kb.max(other.peak_kb);
        self.resident_kb = self.resident_kb.max(other.resident_kb);
        self.resident_peak_kb = self.resident_peak_kb.max(other.resident_peak_kb);
        self.data_kb = self.data_kb.max(other.data_kb);
        self.processors.clone_from(&other.processors);
        self.nodes.clone_from(&other.nodes);
    }

    /// The fields as the source prints them, with tabs between.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}",
            self.size_kb,
            self.peak_kb,
            self.resident_kb,
            self.resident_peak_kb,
            self.data_kb,
            self.processors,
            self.nodes
        )
    }
}

/// The names of [`Status::line`]'s columns.
pub const COLUMNS: &str =
    "VmSize\tVmPeak\tVmRSS\tVmHWM\tVmData\tCpus_allowed_list\tMems_allowed_list";

/// Waits for a child, and shows `seen` its status every `interval`. When `cancel` becomes true the
/// child is killed, and `None` comes back.
///
/// # Errors
/// The child cannot be waited for.
pub fn watch(
    child: &mut Child,
    interval: Duration,
    cancel: &AtomicBool,
    seen: &mut dyn FnMut(Status),
) -> io::Result<Option<ExitStatus>> {
    let path = format!("/proc/{}/status", child.id());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        // Relaxed: says only that it is to stop.
        if cancel.load(Ordering::Relaxed) {
            // It may have ended meanwhile.
            let _ = child.kill();
            child.wait()?;
            return Ok(None);
        }
        if let Some(status) = fs::read_to_string(&path)
            .ok()
            .and_then(|text| Status::parse(&text))
        {
            seen(status);
        }
        thread::sleep(interval);
    }
}
