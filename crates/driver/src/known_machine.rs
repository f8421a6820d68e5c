//! The facts about the machine at hand that a plan follows from.

use std::fs;
use std::path::PathBuf;

use hearth_machine::profile::Profile;
use hearth_terminal::Failure;

use crate::{profiles, this_machine};

/// Files that stay the same while the machine runs with the same parts in use.
const PARTS: [&str; 3] = [
    "/proc/sys/kernel/random/boot_id",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/online",
];

/// The machine at hand.
pub enum KnownMachine {
    /// The kept profile: its file, and its text.
    Profile(PathBuf, String),
    /// No profile, only what the machine says of itself.
    Parts,
}

impl KnownMachine {
    /// Reads the kept profile, if there is one.
    pub fn find() -> Result<KnownMachine, Failure> {
        let path = profiles::kept().ok();
        let path = path.filter(|path| fs::metadata(path).is_ok());
        Ok(match path {
            Some(path) => {
                let text = profiles::text(&path)?;
                KnownMachine::Profile(path, text)
            }
            None => KnownMachine::Parts,
        })
    }

    /// A text that differs between machines; `None` if this one does not identify itself.
    pub fn identity(&self) -> Option<String> {
        match self {
            KnownMachine::Profile(_, text) => Some(format!("{}\n{text}", text.len())),
            KnownMachine::Parts => {
                let [boot, cpus, nodes] = PARTS.map(|path| fs::read_to_string(path).ok());
                // Kernels without NUMA say nothing of nodes.
                Some(format!("{} {} {nodes:?}", boot?.trim(), cpus?.trim()))
            }
        }
    }

    /// Its profile; with assumed costs where none was measured.
    pub fn profile(&self) -> Result<Profile, Failure> {
        match self {
            KnownMachine::Profile(path, text) => Profile::from_json(text)
                .map_err(|error| Failure::input(format!("{}: {error}", path.display()))),
            KnownMachine::Parts => Ok(Profile::assumed(this_machine::reading()?.topology)),
        }
    }
}
