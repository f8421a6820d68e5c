//! Choices of a monitor.

use std::path::{Path, PathBuf};

use hearth_watch::stream::{Encoding, Law};

use crate::rules::Rule;

/// Destination of the records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Destination {
    /// A file.
    File(PathBuf),
    /// A file with the number of calls of each probe and a histogram of their lengths, and nothing
    /// else: it is written anew each second and at the end.
    Aggregate(PathBuf),
    /// A receiver at an address such as `localhost:4000`, over TCP: `hearth watch --listen` writes
    /// a file there. Nothing is encrypted.
    Tcp(String),
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

/// Place of the thread that stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Core {
    /// Near the threads that record, by the model of the machine.
    #[default]
    Modelled,
    /// Wherever the scheduler puts it.
    Any,
    One(usize),
}

/// Options of a monitor.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) to: Destination,
    pub(crate) mode: Mode,
    pub(crate) law: Law,
    pub(crate) buffer: Option<u64>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) core: Core,
    pub(crate) follows_children: bool,
    pub(crate) encoding: Encoding,
    pub(crate) program: Option<String>,
}

impl Options {
    /// Records to a destination: asynchronously, the newest dropped if they come too fast, 16 MiB
    /// of blocks, all probes off. An aggregation has 256 MiB, of which it uses what it needs: four
    /// to 24 KiB for each probe in each thread.
    #[must_use]
    pub fn to(destination: Destination) -> Options {
        Options {
            to: destination,
            mode: Mode::default(),
            law: Law::default(),
            buffer: None,
            rules: Vec::new(),
            core: Core::default(),
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

    /// Records to a receiver at an address such as `localhost:4000`.
    #[must_use]
    pub fn to_tcp(address: &str) -> Options {
        Options::to(Destination::Tcp(address.to_owned()))
    }

    /// Adds calls up, into a file.
    #[must_use]
    pub fn aggregate_to(path: &Path) -> Options {
        Options::to(Destination::Aggregate(path.to_owned()))
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

    /// Sets the bytes of blocks, rounded to blocks of 64 KiB, or 24 KiB for an aggregation.
    #[must_use]
    pub fn buffer(self, bytes: u64) -> Options {
        Options {
            buffer: Some(bytes),
            ..self
        }
    }

    /// Pins the writer's thread to a core. Otherwise it stays near the threads that record, where
    /// the model of the machine says that reading costs least; see [`hearth_beside`].
    #[must_use]
    pub fn writer_on(self, core: usize) -> Options {
        Options {
            core: Core::One(core),
            ..self
        }
    }

    /// Leaves the place of the writer's thread to the scheduler.
    #[must_use]
    pub fn writer_anywhere(self) -> Options {
        Options {
            core: Core::Any,
            ..self
        }
    }

    /// Whether sums are kept instead of records.
    #[must_use]
    pub fn keeps_sums(&self) -> bool {
        matches!(self.to, Destination::Aggregate(_))
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

    /// The file, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.to {
            Destination::File(path) | Destination::Aggregate(path) => Some(path),
            _ => None,
        }
    }

    /// Names another file, if there is one.
    #[must_use]
    pub fn with_file(self, path: PathBuf) -> Options {
        let to = match self.to {
            Destination::File(_) => Destination::File(path),
            Destination::Aggregate(_) => Destination::Aggregate(path),
            other => other,
        };
        Options { to, ..self }
    }

    /// Bytes of blocks.
    pub(crate) fn bytes(&self) -> u64 {
        let usual = match self.to {
            Destination::Aggregate(_) => 256 << 20,
            _ => 16 << 20,
        };
        self.buffer.unwrap_or(usual)
    }
}
