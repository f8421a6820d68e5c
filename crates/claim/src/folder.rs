//! The folder of a registry.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::error::ClaimError;

/// Variable with a folder that is to be used instead.
pub const VARIABLE: &str = "HEARTH_CLAIMS";
/// Folder for all users of a machine, if an administrator has made it.
const OF_MACHINE: &str = "/run/hearth/claims";
/// Places for a user's folder: in memory, and where there is no such place. Everybody may write
/// there, and nothing depends on the environment: a user's programs must meet.
const OF_USER: [&str; 2] = ["/dev/shm", "/tmp"];
/// Number of the space of process numbers that has all processes: the kernel's own (`nsfs.h`).
const ALL_PROCESSES: u64 = 0xEFFF_FFFC;

/// Finds or makes the folder.
pub(crate) fn find() -> Result<PathBuf, ClaimError> {
    let (folder, is_private) = place();
    make(&folder, is_private)
}

/// The folder, if there is one.
pub(crate) fn existing() -> Result<Option<PathBuf>, ClaimError> {
    let (folder, is_private) = place();
    match fs::symlink_metadata(&folder) {
        Ok(_) => check(&folder, is_private).map(|()| Some(folder)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ClaimError::file(&folder, error)),
    }
}

/// The folder's place, and whether it must be the user's own.
fn place() -> (PathBuf, bool) {
    // Who calls a program with more rights than his own must not choose files for it.
    let named = env::var_os(VARIABLE).filter(|named| !named.is_empty());
    if let Some(named) = named.filter(|_| !hearth_sys::privileges::exceed_callers()) {
        return (named.into(), false);
    }
    if may_write(Path::new(OF_MACHINE)) {
        return (OF_MACHINE.into(), false);
    }
    let name = format!("hearth-claims-{}{}", geteuid().as_raw(), container());
    let mut places = OF_USER.iter().map(Path::new);
    let place = places.find(|place| may_write(place));
    (place.unwrap_or(Path::new(OF_USER[1])).join(name), true)
}

/// End of the folder's name for programs that have process numbers of their own, as in a container.
/// They may share the place with others, but cannot tell whether those others' processes live.
fn container() -> String {
    let space = fs::metadata("/proc/self/ns/pid").map(|data| data.ino());
    let own = space.ok().filter(|space| *space != ALL_PROCESSES);
    own.map(|space| format!("-{space}")).unwrap_or_default()
}

/// Whether files can be made in a folder.
fn may_write(folder: &Path) -> bool {
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(folder, access).is_ok()
}

/// Makes a folder, or takes one that is there.
fn make(folder: &Path, is_private: bool) -> Result<PathBuf, ClaimError> {
    let made = DirBuilder::new().mode(0o700).create(folder);
    if let Err(error) = made
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(ClaimError::file(folder, error));
    }
    check(folder, is_private).map(|()| folder.to_owned())
}

/// Refuses what is no folder. One that lies where everybody may write must be the user's own.
fn check(folder: &Path, is_private: bool) -> Result<(), ClaimError> {
    let data = fs::symlink_metadata(folder).map_err(|error| ClaimError::file(folder, error))?;
    let is_followed = !is_private && data.is_symlink() && folder.is_dir();
    let why = if !data.is_dir() && !is_followed {
        "is no folder"
    } else if is_private && data.uid() != geteuid().as_raw() {
        "belongs to another user"
    } else if is_private && data.mode() & 0o022 != 0 {
        "may be written to by other users"
    } else {
        return Ok(());
    };
    Err(ClaimError::Unsafe {
        folder: folder.to_owned(),
        why: why.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::testing::Folder;

    #[test]
    fn a_folder_is_the_users_own() {
        let place = Folder::new("folder");
        let own = place.path().join("own");
        assert_eq!(make(&own, true).expect("it is made"), own);
        assert_eq!(make(&own, true).expect("it is there"), own);
        let complaint = |folder: &Path, is_private| {
            let error = make(folder, is_private).expect_err("it is refused");
            error.to_string()
        };
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert!(complaint(&own, true).contains("may be written to by other users"));
        assert!(make(&own, false).is_ok(), "its user named it");
        let link = place.path().join("link");
        symlink(&own, &link).expect("a link");
        assert!(complaint(&link, true).contains("is no folder; remove it, or name another"));
        assert!(make(&link, false).is_ok());
        fs::write(place.path().join("file"), "").expect("a file");
        assert!(complaint(&place.path().join("file"), false).contains("is no folder"));
        let missing = place.path().join("missing/claims");
        assert!(complaint(&missing, false).contains("cannot be used"));
    }
}
