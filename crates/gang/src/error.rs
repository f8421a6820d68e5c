//! Reasons for which a gang cannot be made.

use std::io;
use std::path::{Path, PathBuf};

use hearth_text::cause;
use thiserror::Error;

/// Reason for which a set cannot be joined to the others, or its command not be run.
#[derive(Debug, Error)]
pub enum GangError {
    /// A file or folder of the registry cannot be used.
    #[error("the registry of gangs in {} cannot be used: {}", .0.display(), cause(.1))]
    File(PathBuf, #[source] io::Error),
    /// The folder belongs to somebody else, or others may write into it.
    #[error("{} {why}; remove it, or name another folder in HEARTH_GANGS", .folder.display())]
    Unsafe {
        /// The folder.
        folder: PathBuf,
        /// The complaint.
        why: &'static str,
    },
    /// There is no set of the name that another is to be inside of.
    #[error("there is no gang named {0} now; `hearth gangs` lists those that there are")]
    NoSuchSet(String),
    /// A set of that name is there.
    #[error("a gang named {0} is there already; choose another name, or none")]
    Taken(String),
    /// A back end was asked for that does not work here.
    #[error("the back end {0} does not work here: {1}; leave it out, and another is chosen")]
    BackEnd(&'static str, String),
    /// No back end works.
    #[error("gangs need a kernel that lists the children of processes (CONFIG_PROC_CHILDREN)")]
    NoBackEnd,
    /// The command cannot be started.
    #[error("cannot start {}: {}", .0, cause(.1))]
    Command(String, #[source] io::Error),
    /// Nothing is known of the machine.
    #[error("the parts of this machine cannot be read, so there are no cores to share")]
    NoMachine,
}

impl GangError {
    pub(crate) fn file(path: &Path, error: io::Error) -> GangError {
        GangError::File(path.to_owned(), error)
    }
}
