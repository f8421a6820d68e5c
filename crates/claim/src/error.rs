//! Reasons for which a claim cannot be made.

use std::io;
use std::path::{Path, PathBuf};

use hearth_text::cause;
use thiserror::Error;

/// Reason for which a registry does not serve.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// A file or folder of the registry cannot be used.
    #[error("the registry of claims in {} cannot be used: {}{}", .0.display(), cause(.1), next(.1))]
    File(PathBuf, #[source] io::Error),
    /// The folder belongs to somebody else, or others may write into it.
    #[error("{} {why}; remove it, or name another folder in HEARTH_CLAIMS", .folder.display())]
    Unsafe {
        /// The folder.
        folder: PathBuf,
        /// The complaint.
        why: String,
    },
    /// The claim is that of the parent process.
    #[error("a claim belongs to the process that made it, and this is a child of it: make another")]
    Forked,
    /// The process has no claim, or has ended.
    #[error("process {0} has no claim, or has ended")]
    Ended(u32),
    /// The process manages its claim itself.
    #[error("process {0} manages its claim itself now")]
    TakenOver(u32),
    /// Other programs change the registry all the time.
    #[error("other programs change the registry of claims all the time; try again")]
    Crowded,
    /// A living member's file is damaged.
    #[error("a file in {} is damaged, and the program that wrote it does not mend it; end that program, or remove the folder", .0.display())]
    Damaged(PathBuf),
    /// Nothing is known of the machine.
    #[error("the parts of this machine cannot be read, so there is nothing to claim")]
    NoMachine,
    /// Processes cannot be told apart.
    #[error(
        "/proc says nothing of this process, so it cannot claim cores; in a container or another root, mount /proc"
    )]
    NoProcess,
}

impl ClaimError {
    pub(crate) fn file(path: &Path, error: io::Error) -> ClaimError {
        ClaimError::File(path.to_owned(), error)
    }
}

/// Advice for errors that another folder has not.
fn next(error: &io::Error) -> &'static str {
    use io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        PermissionDenied | ReadOnlyFilesystem | StorageFull | NotFound => {
            "; name a folder that you may write to in HEARTH_CLAIMS"
        }
        _ => "",
    }
}
