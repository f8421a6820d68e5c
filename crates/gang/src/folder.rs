//! The folder of the registry: one for each user, since nobody may stop another user's processes.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::error::GangError;

/// Variable with a folder that is to be used instead.
pub const VARIABLE: &str = "HEARTH_GANGS";
/// Places for a user's folder: in memory, and where there is no such place.
const OF_USER: [&str; 2] = ["/dev/shm", "/tmp"];

/// Finds or makes the folder.
pub(crate) fn find() -> Result<PathBuf, GangError> {
    let folder = place();
    let made = DirBuilder::new().mode(0o700).create(&folder);
    if let Err(error) = made
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(GangError::file(&folder, error));
    }
    check(&folder)?;
    Ok(folder)
}

/// The folder, if there is one.
pub(crate) fn existing() -> Result<Option<PathBuf>, GangError> {
    let folder = place();
    match fs::symlink_metadata(&folder) {
        Ok(_) => check(&folder).map(|()| Some(folder)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(GangError::file(&folder, error)),
    }
}

fn place() -> PathBuf {
    if let Some(named) = env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        return named.into();
    }
    let name = format!("hearth-gangs-{}", geteuid().as_raw());
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let mut places = OF_USER.iter().map(Path::new);
    let place = places.find(|place| rustix::fs::access(*place, access).is_ok());
    place.unwrap_or(Path::new(OF_USER[1])).join(name)
}

/// Refuses folders that another user could fill with numbers of processes to be stopped.
fn check(folder: &Path) -> Result<(), GangError> {
    let data = fs::symlink_metadata(folder).map_err(|error| GangError::file(folder, error))?;
    let why = if !data.is_dir() {
        "is no folder"
    } else if data.uid() != geteuid().as_raw() {
        "belongs to another user"
    } else if data.mode() & 0o022 != 0 {
        "may be written to by other users"
    } else {
        return Ok(());
    };
    Err(GangError::Unsafe {
        folder: folder.to_owned(),
        why,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_the_users_own() {
        let name = format!("hearth-gang-folder-{}", std::process::id());
        let own = env::temp_dir().join(name);
        fs::create_dir(&own).expect("it is new");
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).expect("it is ours");
        let error = check(&own).expect_err("it is refused").to_string();
        assert!(
            error.contains("may be written to by other users"),
            "{error}"
        );
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).expect("it is ours");
        assert!(check(&own).is_ok());
        fs::write(own.join("file"), "").expect("a file");
        let error = check(&own.join("file")).expect_err("it is refused");
        assert!(
            error
                .to_string()
                .contains("is no folder; remove it, or name")
        );
        fs::remove_dir_all(&own).expect("it is ours");
    }
}
