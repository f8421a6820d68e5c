//! What the command writes: standard output, and files that are never seen half written.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, cause};

/// Writes a text to standard output, which may be a pipe that nobody reads to its end.
pub fn write(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_ref())
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::environment(format!("cannot write the output: {}", cause(&error))),
        })
}

/// Gives a file new contents by one rename. Its permissions stay, and a link stays a link.
pub fn replace(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    is_file_name(path)?;
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let beside = beside(&target);
    let result = write_and_rename(&beside, &target, contents);
    if result.is_err() {
        let _ = fs::remove_file(&beside);
    }
    result.map_err(|error| cannot_write(path, &error))
}

/// Whether a file can be written later, found out without touching it.
pub fn try_out(path: &Path) -> Result<(), Failure> {
    is_file_name(path)?;
    if path.is_dir() {
        return Err(cannot_write(path, &ErrorKind::IsADirectory.into()));
    }
    let beside = beside(&fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    fs::write(&beside, "")
        .and_then(|()| fs::remove_file(&beside))
        .map_err(|error| cannot_write(path, &error))
}

/// Elsewhere `-` is standard output. A file of that name is hardly wanted, and not easily removed.
fn is_file_name(path: &Path) -> Result<(), Failure> {
    match path.as_os_str() == "-" {
        true => Err(Failure::input(
            "`-` is no file, and this is not written to standard output: name a file, or write `./-`",
        )),
        false => Ok(()),
    }
}

fn write_and_rename(beside: &Path, target: &Path, contents: &[u8]) -> std::io::Result<()> {
    if let Ok(facts) = fs::metadata(target) {
        // A rename would get around the permissions of the file itself.
        if facts.permissions().readonly() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        fs::write(beside, contents)?;
        fs::set_permissions(beside, facts.permissions())?;
    } else {
        fs::write(beside, contents)?;
    }
    fs::rename(beside, target)
}

/// A name in the same folder that nobody else uses.
pub fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.new", std::process::id()))
}

pub fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    let reason = match (error.kind(), path.parent()) {
        (ErrorKind::NotFound, Some(folder)) => {
            format!("there is no directory {}", folder.display())
        }
        _ => cause(error),
    };
    Failure::environment(format!("cannot write {}: {reason}", path.display()))
}
