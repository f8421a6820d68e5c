//! Output: standard output, and files that are never seen half written.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use hearth_text::cause;
use serde_json::Value;

use crate::Failure;

/// Writes a text to standard output; the reader of a pipe may leave early.
pub fn write(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_ref())
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::environment(format!("cannot write the output: {}", cause(&error))),
        })
}

/// Writes a document to standard output as JSON, indented.
pub fn write_json(document: &Value) -> Result<(), Failure> {
    write(format!("{document:#}\n"))
}

/// Prints a line about the work on standard error, behind the command's name.
pub fn tell(line: impl std::fmt::Display) {
    eprintln!("hearth: {line}");
}

/// Gives a file new contents by one rename. Its permissions stay, and a link stays a link. A device
/// or a pipe gets them written into it.
pub fn replace(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    is_file_name(path)?;
    if is_special(path) {
        let written = fs::File::options().write(true).open(path);
        let written = written.and_then(|mut file| file.write_all(contents));
        return written.map_err(|error| cannot_write(path, &error));
    }
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
    if is_special(path) {
        return Ok(());
    }
    let beside = beside(&fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    fs::write(&beside, "")
        .and_then(|()| fs::remove_file(&beside))
        .map_err(|error| cannot_write(path, &error))
}

/// Whether a path leads to a device, a pipe or a socket, such as `/dev/null`: a file that is
/// renamed over it would take its place.
pub fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|facts| !facts.is_file() && !facts.is_dir())
}

/// Refuses `-`, which elsewhere is standard output: a file of that name is rarely meant.
fn is_file_name(path: &Path) -> Result<(), Failure> {
    match path.as_os_str() == "-" {
        true => Err(Failure::input(
            "`-` would be a file here, as this is not written to standard output: name a file, or write `./-`",
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

/// An unused name in the same folder.
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
