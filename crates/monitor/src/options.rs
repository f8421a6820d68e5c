//! Choices of a monitor.

use std::path::{Path, PathBuf};

use hearth_watch::stream::{Encoding, Law};

use crate::rules::Rule;

/// Destination of the records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Destination {
    /// A file.
    File(PathBuf),
    /// Memory: [`Monitor::finish`](crate::Monitor::finish) returns the chunks.
    Memory,
    /// Nowhere: they are counted.
    #[default]
    Nowhere,
}

/// Time and thread of storing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A thread of its own stores blocks as they become full.
    #[default]
    Asynchronous,
    /// The thread that fills a block stores it.
    Synchronous,
}

/// Options of a monitor.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) to: Destination,
    pub(crate) mode: Mode,
    pub(crate) law: Law,
    pub(crate) buffer: u64,
    pub(crate) rules: Vec<Rule>,
    pub(crate) core: Option<usize>,
    pub(crate) follows_children: bool,
    pub(crate) encoding: Encoding,
    pub(crate) program: Option<String>,
}

impl Options {
    /// Records to a destination: asynchronously, the newest dropped if they come too fast, 16 MiB
    /// of blocks, all probes off.
    #[must_use]
    pub fn to(destination: Destination) -> Options {
        Options {
            to: destination,
            mode: Mode::default(),
            law: Law::default(),
            buffer: 16 << 20,
            rules: Vec::new(),
            core: None,
            follows_children: false,
            encoding: Encoding::Calls,
            program: None,
        }
    }

    /// Records to a file.
    #[must_use]
    pub fn to_file(path: &Path) -> Options {
        Options::to(Destination::File(path.to_owned()))
    }

    /// Switches on probes whose names match a pattern.
    #[must_use]
    pub fn on(self, pattern: &str) -> Options {
        self.rule(Rule::on(pattern))
    }

    /// Adds a rule; the last that matches a probe's name decides.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Options {
        self.rules.push(rule);
        self
    }

    /// Sets the consequence of records that come too fast.
    #[must_use]
    pub fn law(self, law: Law) -> Options {
        Options { law, ..self }
    }

    /// Sets the thread that stores.
    #[must_use]
    pub fn mode(self, mode: Mode) -> Options {
        Options { mode, ..self }
    }

    /// Sets the bytes of blocks, rounded to blocks of 64 KiB.
    #[must_use]
    pub fn buffer(self, bytes: u64) -> Options {
        Options {
            buffer: bytes,
            ..self
        }
    }

    /// Pins the writer's thread to a core.
    #[must_use]
    pub fn writer_on(self, core: usize) -> Options {
        Options {
            core: Some(core),
            ..self
        }
    }

    /// Stores calls of [`components`](crate::components) in the form that is made for them.
    #[must_use]
    pub fn of_components(self) -> Options {
        Options {
            encoding: Encoding::Components,
            ..self
        }
    }

    /// Names the program to readers; otherwise that is the path of the executable.
    #[must_use]
    pub fn program(self, name: &str) -> Options {
        Options {
            program: Some(name.to_owned()),
            ..self
        }
    }

    /// Whether a front end also records the children of forks, each into a file of its own.
    #[must_use]
    pub fn follows_children(&self) -> bool {
        self.follows_children
    }

    /// The file, if records go to one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.to {
            Destination::File(path) => Some(path),
            _ => None,
        }
    }

    /// Records to another destination.
    #[must_use]
    pub fn to_other(self, to: Destination) -> Options {
        Options { to, ..self }
    }
}
