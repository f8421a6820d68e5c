//! The system as something that can be imagined: what is read and asked about the machine, behind
//! a trait, so that recorded and broken machines are tested like the one at hand.

use std::io;

use crate::affinity::{self, Pinned};
use crate::policy::{self, Policy};
use crate::procfs::parse_list;
use crate::refused::Refused;

pub mod fake;

pub use fake::Fake;

/// What is asked about a machine. [`Linux`] asks the real one, [`Fake`] an imagined one.
pub trait System: Sync {
    /// A text file, whole.
    ///
    /// # Errors
    /// It is not there, or may not be read.
    fn read(&self, path: &str) -> io::Result<String>;

    /// The names in a folder, sorted.
    ///
    /// # Errors
    /// It is not there, or may not be read.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;

    /// The cores that this process may use, ascending.
    ///
    /// # Errors
    /// The system will not say.
    fn allowed(&self) -> io::Result<Vec<usize>>;

    /// Keeps the calling thread on a core as long as the guard lives.
    ///
    /// # Errors
    /// The core is offline or not this process's.
    fn pin(&self, core: usize) -> Result<Pinned, Refused>;

    /// The nodes that this process may take memory from, ascending.
    ///
    /// # Errors
    /// The system knows no nodes or will not say.
    fn memory_nodes(&self) -> Result<Vec<usize>, Refused>;

    /// Sets where the calling thread's new pages go.
    ///
    /// # Errors
    /// A node is not there or not this process's.
    fn place_memory(&self, policy: &Policy) -> Result<(), Refused>;

    /// Now, in nanoseconds since some moment that stays the same: what time budgets are kept by.
    fn now_ns(&self) -> u64 {
        crate::clock::monotonic_ns()
    }

    /// The cores that are online, ascending, whoever may use them.
    ///
    /// # Errors
    /// The system will not say.
    fn online(&self) -> io::Result<Vec<usize>> {
        self.read("/sys/devices/system/cpu/online")
            .map(|text| parse_list(&text))
    }
}

/// The system this process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

impl System for Linux {
    fn read(&self, path: &str) -> io::Result<String> {
        let bytes = std::fs::read(path)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn allowed(&self) -> io::Result<Vec<usize>> {
        affinity::try_allowed()
    }

    fn pin(&self, core: usize) -> Result<Pinned, Refused> {
        Pinned::to(core)
    }

    fn memory_nodes(&self) -> Result<Vec<usize>, Refused> {
        policy::nodes_allowed()
    }

    fn place_memory(&self, policy: &Policy) -> Result<(), Refused> {
        policy::set_thread(policy)
    }
}
