//! Files of a study's folder: read whole, replaced whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::StudyError;

/// A file could not be read or written.
pub(crate) fn file(action: &'static str, path: &Path, error: io::Error) -> StudyError {
    StudyError::File {
        action,
        file: path.to_owned(),
        error,
    }
}

/// The part of a file that says which form the rest has.
#[derive(Deserialize)]
struct Form {
    format: u32,
}

/// Reads the contents of a file of this format; `None` if there is no file.
pub(crate) fn read<T: DeserializeOwned>(path: &Path, format: u32) -> Result<Option<T>, StudyError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file("read", path, error)),
    };
    let damaged = |why| StudyError::Damaged {
        file: path.to_owned(),
        why,
    };
    let unread = |error: serde_json::Error| damaged(error.to_string());
    let Form { format: found } = serde_json::from_str(&text).map_err(unread)?;
    if found != format {
        let why = format!("it has format {found}, and this Hearth reads {format}");
        return Err(damaged(why));
    }
    serde_json::from_str(&text).map(Some).map_err(unread)
}

/// May what a folder holds be gone on with? `differs` says what keeps it from that.
pub(crate) fn go_on(
    folder: &Path,
    resume: bool,
    differs: Option<&'static str>,
) -> Result<(), StudyError> {
    let folder = folder.to_owned();
    match (resume, differs) {
        (false, _) => Err(StudyError::Occupied { folder }),
        (true, Some(differs)) => Err(StudyError::OtherRun { folder, differs }),
        (true, None) => Ok(()),
    }
}

/// Gives a file new contents by one rename.
pub(crate) fn replace(folder: &Path, name: &str, contents: &[u8]) -> Result<PathBuf, StudyError> {
    let path = folder.join(name);
    let beside = folder.join(format!(".{name}.new"));
    fs::write(&beside, contents)
        .and_then(|()| fs::rename(&beside, &path))
        .map_err(|error| file("write", &path, error))?;
    Ok(path)
}
