//! The machine that a program is about to run on, as far as its plan follows from it.

use std::fs;
use std::path::PathBuf;

use hearth_machine::profile::Profile;

use crate::failure::Failure;
use crate::{profiles, surroundings};

/// What says that the parts of a machine are the same as before: it has not been started anew, and the
/// same of them are in use.
const PARTS: [&str; 3] = [
    "/proc/sys/kernel/random/boot_id",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/online",
];

/// What is known of it.
pub(crate) enum MachineHere {
    /// The kept profile: its file, and its text.
    Profile(PathBuf, String),
    /// Only what it says of itself.
    Parts,
}

impl MachineHere {
    pub(crate) fn look() -> Result<MachineHere, Failure> {
        let path = profiles::kept().ok();
        let path = path.filter(|path| fs::metadata(path).is_ok());
        Ok(match path {
            Some(path) => {
                let text = profiles::text(&path)?;
                MachineHere::Profile(path, text)
            }
            None => MachineHere::Parts,
        })
    }

    /// A text that is another one if the machine is. None if it does not tell.
    pub(crate) fn identity(&self) -> Option<String> {
        match self {
            MachineHere::Profile(_, text) => Some(format!("{}\n{text}", text.len())),
            MachineHere::Parts => {
                let [boot, cpus, nodes] = PARTS.map(|path| fs::read_to_string(path).ok());
                // Kernels without NUMA say nothing of nodes.
                Some(format!("{} {} {nodes:?}", boot?.trim(), cpus?.trim()))
            }
        }
    }

    pub(crate) fn profile(&self) -> Result<Profile, Failure> {
        match self {
            MachineHere::Profile(path, text) => Profile::from_json(text)
                .map_err(|error| Failure::input(format!("{}: {error}", path.display()))),
            MachineHere::Parts => Ok(Profile::assumed(surroundings::reading()?.topology)),
        }
    }
}
