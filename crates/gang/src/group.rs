//! Control groups of the second version: a folder for each set, whose processes are frozen
//! together.
//!
//! Freezing needs no controller, only folders that the user may write to: those of root, of a
//! service that systemd delegates (`systemd-run --user --scope`), or of a container.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use hearth_sys::control_groups::Tree;
use hearth_sys::{Linux, System};
use rustix::fs::Access;

/// Beginning of the names of groups.
const NAME: &str = "hearth-gang-";

/// The folder in which sets' groups are made: the process's own, or the one around it if it is a
/// member of a set itself. None where groups of the second version are not mounted.
pub(crate) fn home() -> Option<PathBuf> {
    let tree = Tree::unified(&Linux)?;
    let group = tree.group(&Linux.read("/proc/self/cgroup").ok()?);
    let mut home = PathBuf::from(tree.path(&group, ""));
    while let Some(name) = home.file_name()
        && name.as_encoded_bytes().starts_with(NAME.as_bytes())
    {
        home.pop();
    }
    Some(home)
}

/// Leaves a set's group if the process is in one, as what conducts must not be frozen.
pub(crate) fn leave() {
    let inner = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    if inner.contains(NAME)
        && let Some(home) = home()
    {
        let _ = fs::write(home.join("cgroup.procs"), "0");
    }
}

/// Makes a group and thaws it.
pub(crate) fn make(home: &Path, process: u32, nth: u32) -> io::Result<PathBuf> {
    let group = home.join(format!("{NAME}{process}-{nth}"));
    match fs::create_dir(&group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let usable = set_frozen(&group, false)
        .and_then(|()| may_write(&group.join("cgroup.procs")))
        // To move a process, its old group must be writable, too.
        .and_then(|()| may_write(&home.join("cgroup.procs")));
    if let Err(error) = usable {
        let _ = fs::remove_dir(&group);
        return Err(error);
    }
    Ok(group)
}

fn may_write(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, Access::WRITE_OK)?)
}

/// The file through which processes enter.
pub(crate) fn entrance(group: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .open(group.join("cgroup.procs"))
}

/// Freezes or thaws the processes of a group.
pub(crate) fn set_frozen(group: &Path, is_frozen: bool) -> io::Result<()> {
    let file = switch(group)?;
    write_switch(file.as_fd(), is_frozen)
}

/// The file that freezes and thaws.
pub(crate) fn switch(group: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .open(group.join("cgroup.freeze"))
}

/// Writes to the file that freezes and thaws.
pub(crate) fn write_switch(file: impl AsFd, is_frozen: bool) -> io::Result<()> {
    let text: &[u8] = if is_frozen { b"1" } else { b"0" };
    rustix::io::pwrite(file, text, 0)?;
    Ok(())
}

/// The processes in a group.
pub(crate) fn processes(group: &Path) -> Vec<u32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Moves what is left in a group to the one around it, and removes the group.
pub(crate) fn remove(group: &Path) {
    let is_ours = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(NAME.as_bytes());
    if let Some(home) = group.parent()
        && group.file_name().is_some_and(is_ours)
    {
        for process in processes(group) {
            let _ = fs::write(home.join("cgroup.procs"), process.to_string());
        }
        let _ = fs::remove_dir(group);
    }
}
