//! A member's own file in the registry: what it has, and what it is about to take. Only its process
//! writes it. If states are lost, the registry is rebuilt from these.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::chain::new_file;
use crate::constraints::Core;
use crate::state::{ProcessId, checked, list, read_list, unchecked};

const FIRST_LINE: &str = "hearth-claim-member 1";
/// End of a member's file name.
const MEMBER: &str = "member";
/// Longest text: thousands of cores.
const BYTES_MAX: u64 = 1 << 16;

/// Content of a member's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Cores that it has for sure.
    pub(crate) cores: Vec<Core>,
    /// Cores that it has as well, if the state that it was about to publish was.
    pub(crate) wants: Vec<Core>,
}

impl Held {
    /// Whether the member has a core, or may have it.
    pub(crate) fn names(&self, core: Core) -> bool {
        self.cores.contains(&core) || self.wants.contains(&core)
    }

    fn text(&self) -> String {
        let (cores, wants) = (list(&self.cores), list(&self.wants));
        checked(format!("{FIRST_LINE}\ncores {cores}\nwants {wants}\n"))
    }

    fn of(text: &str) -> Option<Held> {
        let mut lines = unchecked(text)?.lines();
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let mut value = |key: &str| read_list(lines.next()?.strip_prefix(key)?.trim());
        Some(Held {
            cores: value("cores")?,
            wants: value("wants")?,
        })
    }
}

/// The calling process's file.
#[derive(Debug)]
pub(crate) struct Member {
    path: PathBuf,
    file: File,
    identity: (u64, u64),
}

fn name(process: ProcessId) -> String {
    format!("{}-{}.{MEMBER}", process.number, process.began)
}

impl Member {
    /// Makes the file.
    pub(crate) fn join(folder: &Path, process: ProcessId) -> io::Result<Member> {
        let path = folder.join(name(process));
        // One that is there is that of the image that this process had before, or a trap.
        let _ = fs::remove_file(&path);
        let file = new_file(&path)?;
        let data = file.metadata()?;
        Ok(Member {
            path,
            identity: (data.dev(), data.ino()),
            file,
        })
    }

    /// Goes on with the file of a process that leaves it to this one.
    pub(crate) fn take_over(folder: &Path, process: ProcessId) -> io::Result<Member> {
        let path = folder.join(name(process));
        let how = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&path, how, Mode::empty())?);
        let data = file.metadata()?;
        Ok(Member {
            path,
            identity: (data.dev(), data.ino()),
            file,
        })
    }

    /// The file's content.
    pub(crate) fn read(&self) -> Option<Held> {
        read(&self.path)
    }

    /// Writes what the member has. A program may have closed all its files, or somebody may have
    /// removed this one: then it is made again.
    pub(crate) fn write(&mut self, held: &Held, process: ProcessId) -> io::Result<()> {
        let is_ours =
            |data: &fs::Metadata| (data.dev(), data.ino()) == self.identity && data.nlink() > 0;
        if !self.file.metadata().is_ok_and(|data| is_ours(&data)) {
            let folder = self.path.parent().unwrap_or(Path::new("/")).to_owned();
            let again = Member::join(&folder, process)?;
            // The number may be another file's by now: it is not to be closed here.
            std::mem::forget(std::mem::replace(self, again));
        }
        let text = held.text();
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }

    /// Removes the file, if it is still the one that this member wrote.
    pub(crate) fn leave(&self) {
        let data = fs::symlink_metadata(&self.path);
        if data.is_ok_and(|data| (data.dev(), data.ino()) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Members, with what they have.
pub(crate) type Members = BTreeMap<ProcessId, Option<Held>>;

/// Members that have a file in the folder; nothing of one that is being written.
pub(crate) fn members(folder: &Path) -> io::Result<Members> {
    let mut members = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Some(process) = entry.file_name().to_str().and_then(process_of) {
            members.insert(process, read(&entry.path()));
        }
    }
    Ok(members)
}

/// The same with members whose files somebody removed: they have them open, and are found by that,
/// as far as the system shows what other processes have open. It takes some milliseconds.
pub(crate) fn all_members(folder: &Path) -> io::Result<Members> {
    let mut members = members(folder)?;
    for (process, path) in removed(folder) {
        members.entry(process).or_insert_with(|| read(&path));
    }
    Ok(members)
}

fn read(path: &Path) -> Option<Held> {
    let is_sane = fs::metadata(path).is_ok_and(|data| data.len() <= BYTES_MAX);
    let text = is_sane.then(|| fs::read_to_string(path).ok())??;
    Held::of(&text)
}

/// The process of a member's file.
fn process_of(name: &str) -> Option<ProcessId> {
    let name = name.strip_suffix(MEMBER)?.strip_suffix('.')?;
    let (number, began) = name.split_once('-')?;
    Some(ProcessId {
        number: number.parse().ok()?,
        began: began.parse().ok()?,
    })
}

/// Members' files that were removed, where their processes have them open.
fn removed(folder: &Path) -> Vec<(ProcessId, PathBuf)> {
    let entries = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<PathBuf>>()
    };
    let mut found = Vec::new();
    let processes = entries(Path::new("/proc"));
    let is_number = |path: &&PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    for process in processes.iter().filter(is_number) {
        for descriptor in entries(&process.join("fd")) {
            let Ok(target) = fs::read_link(&descriptor) else {
                continue;
            };
            let name = target.file_name().and_then(|name| name.to_str());
            let name = name.and_then(|name| name.strip_suffix(" (deleted)"));
            let member = name
                .and_then(process_of)
                .filter(|_| target.parent() == Some(folder));
            // The child of a fork has its parent's, too.
            let number = member.map(|member| member.number.to_string());
            if let Some(member) = member
                && process.file_name().and_then(|name| name.to_str()) == number.as_deref()
            {
                found.push((member, descriptor));
            }
        }
    }
    found
}

/// Removes the file of a process that has ended.
pub(crate) fn bury(folder: &Path, process: ProcessId) {
    let _ = fs::remove_file(folder.join(name(process)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn a_member_tells_what_it_has() {
        let folder = Folder::new("member");
        let process = ProcessId {
            number: 7,
            began: 99,
        };
        let mut member = Member::join(folder.path(), process).expect("a file");
        let held = Held {
            cores: vec![Core(1), Core(2)],
            wants: vec![Core(9)],
        };
        member.write(&held, process).expect("it is written");
        let read = || -> Vec<_> {
            let members = all_members(folder.path()).expect("a folder");
            members.into_iter().collect()
        };
        assert_eq!(read(), [(process, Some(held.clone()))]);
        let less = Held::default();
        member.write(&less, process).expect("it is written");
        assert_eq!(read(), [(process, Some(less))]);
        // Somebody tidies up. The process of that number does not have it open; another does.
        bury(folder.path(), process);
        assert_eq!(read(), []);
        let own = crate::processes::own().expect("it is here");
        let mut mine = Member::join(folder.path(), own).expect("a file");
        mine.write(&held, own).expect("it is written");
        bury(folder.path(), own);
        assert_eq!(read(), [(own, Some(held.clone()))]);
        drop(mine);
        assert_eq!(read(), []);
        member.write(&held, process).expect("it is written again");
        assert_eq!(read(), [(process, Some(held))]);
        fs::write(folder.path().join("7-99.member"), "nonsense").expect("it is damaged");
        assert_eq!(read(), [(process, None)]);
        member.leave();
        assert_eq!(read(), []);
    }
}
