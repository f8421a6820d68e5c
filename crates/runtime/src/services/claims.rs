//! Claims numbers for living processes, in directories.
//!
//! A number is a file of that name, locked while its owner lives. Files of ended processes stay and
//! are claimed again; no cleanup is needed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use hearth_sys::file_lock;

/// A number claimed until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    _file: File,
}

/// Makes a directory that only its user can enter, with its parents.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let about = fs::metadata(path)?;
    // In a place writable by all, another user could have made it.
    if about.uid() != file_lock::user() {
        return Err(of_another("it"));
    }
    // The owner of its parent, or of a link to that, can replace it; the system's own user is
    // trusted.
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let above = above.map(|above| [fs::metadata(above), fs::symlink_metadata(above)]);
    for about in above.into_iter().flatten() {
        if ![file_lock::user(), 0].contains(&about?.uid()) {
            return Err(of_another("the directory that it is in"));
        }
    }
    Ok(())
}

fn of_another(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{what} belongs to another user"),
    )
}

/// Claims a number. None if another process has it.
pub(crate) fn take(directory: &Path, number: u32) -> io::Result<Option<Claim>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(directory.join(number.to_string()))?;
    Ok(file_lock::try_lock(&file)?.then_some(Claim { _file: file }))
}

/// Claims the lowest free number from `first` on.
pub(crate) fn take_first_free(
    directory: &Path,
    first: u32,
    last: u32,
) -> io::Result<Option<(u32, Claim)>> {
    for number in first..=last {
        if let Some(claim) = take(directory, number)? {
            return Ok(Some((number, claim)));
        }
    }
    Ok(None)
}

/// Tells whether a living process has claimed the number.
pub(crate) fn is_taken(directory: &Path, number: u32) -> bool {
    let file = File::open(directory.join(number.to_string()));
    file.and_then(|file| file_lock::is_locked(&file))
        .unwrap_or(false)
}

/// The numbers claimed by living processes, ascending.
pub(crate) fn taken(directory: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let mut numbers: Vec<u32> = entries
        .filter_map(number)
        .filter(|&number| is_taken(directory, number))
        .collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the system's own user can give a directory to another user; run by others, this tests
    /// nothing.
    #[test]
    fn a_directory_within_another_users_is_refused() {
        const OTHER: u32 = 12345;
        let above = std::env::temp_dir().join(format!("hearth-theirs-{}", std::process::id()));
        let (directory, link) = (above.join("nodes"), above.with_extension("link"));
        make_directory(&directory).unwrap();
        std::os::unix::fs::symlink(&above, &link).unwrap();
        make_directory(&link.join("nodes")).unwrap();
        let refused = |path: &Path| make_directory(path).unwrap_err().to_string();
        let theirs = "the directory that it is in belongs to another user";
        if std::os::unix::fs::lchown(&link, Some(OTHER), None).is_ok() {
            assert_eq!(refused(&link.join("nodes")), theirs);
            std::os::unix::fs::chown(&above, Some(OTHER), None).unwrap();
            assert_eq!(refused(&directory), theirs);
        }
        fs::remove_file(link).unwrap();
        fs::remove_dir_all(above).unwrap();
    }

    #[test]
    fn the_living_are_listed() {
        let directory = std::env::temp_dir().join(format!("hearth-claims-{}", std::process::id()));
        make_directory(&directory).unwrap();
        let three = take(&directory, 3).unwrap().unwrap();
        assert!(take(&directory, 3).unwrap().is_none());
        let (one, first) = take_first_free(&directory, 1, 9).unwrap().unwrap();
        let (two, second) = take_first_free(&directory, 1, 9).unwrap().unwrap();
        let (four, _) = take_first_free(&directory, 3, 9).unwrap().unwrap();
        assert_eq!((one, two, four), (1, 2, 4));
        fs::write(directory.join("notes"), "").unwrap();
        assert_eq!(taken(&directory), [1, 2, 3]);
        drop((first, three));
        assert_eq!(taken(&directory), [2]);
        assert!(take_first_free(&directory, 2, 2).unwrap().is_none());
        drop(second);
        fs::remove_dir_all(directory).unwrap();
    }
}
