//! The system behind a trait: what programs read and ask about the machine, so that recorded and
//! broken machines can be tested like the real one.

use std::io;

use crate::affinity::{self, Pinned};
use crate::lists::parse_list;
use crate::policy::{self, Policy};
use crate::refused::Refused;

pub mod fake;

pub use fake::Fake;

/// Questions about a machine. [`Linux`] asks the real one, [`Fake`] an imagined one.
pub trait System: Sync {
    /// Reads a text file.
    ///
    /// # Errors
    /// It does not exist, or may not be read.
    fn read(&self, path: &str) -> io::Result<String>;

    /// Lists the names in a folder, sorted.
    ///
    /// # Errors
    /// It does not exist, or may not be read.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;

    /// The cores that this process may use, ascending.
    ///
    /// # Errors
    /// The system does not say.
    fn allowed(&self) -> io::Result<Vec<usize>>;

    /// Pins the calling thread to a core until the guard is dropped.
    ///
    /// # Errors
    /// The core is offline or not this process's.
    fn pin(&self, core: usize) -> Result<Pinned, Refused>;

    /// The nodes that this process may take memory from, ascending.
    ///
    /// # Errors
    /// The system has no NUMA support or does not say.
    fn memory_nodes(&self) -> Result<Vec<usize>, Refused>;

    /// Sets the policy for the calling thread's new pages.
    ///
    /// # Errors
    /// A node does not exist or is not this process's.
    fn place_memory(&self, policy: &Policy) -> Result<(), Refused>;

    /// Now, in nanoseconds since a fixed moment: the clock of time budgets.
    fn now_ns(&self) -> u64 {
        crate::time::monotonic_ns()
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
