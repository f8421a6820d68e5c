//! The real folder, and the processes of this system.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::mem::{self, MaybeUninit};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, RawDir, RenameFlags, renameat_with};

use crate::outside::Outside;
use crate::processes::{self, Processes};
use crate::state::ProcessId;

/// End of the name of a file that is not there yet.
const DRAFT: &str = ".draft";
/// Room for the text of some dozen claims.
const USUAL_BYTES: usize = 4096;
/// Longest text: thousands of claims.
const BYTES_MAX: u64 = 1 << 24;
/// Rights of files.
const FOR_ALL_TO_READ: u32 = 0o644;
/// Time for others to go on.
const PAUSE: Duration = Duration::from_millis(1);

/// Bytes of a listing that are read at once.
const LISTING_BYTES: usize = 8192;

/// A folder, and descriptors of the processes that share it.
#[derive(Debug)]
pub(crate) struct Kernel {
    folder: PathBuf,
    processes: Processes,
    own: Option<Kept>,
    /// The last two states that this process published.
    published: Mutex<Vec<Published>>,
}

/// A state that this process published.
#[derive(Debug)]
struct Published {
    name: String,
    text: String,
    file: Kept,
}

/// A file that was made here and stays open. The number of one that the program has closed may be
/// another file's by now.
#[derive(Debug)]
struct Kept {
    file: Option<File>,
    /// Device and number.
    identity: (u64, u64),
}

impl Kept {
    /// Number of its names in folders. None if it is not open any more.
    fn names(&self) -> Option<u64> {
        let data = self.file.as_ref()?.metadata().ok()?;
        ((data.dev(), data.ino()) == self.identity).then(|| data.nlink())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.names().is_none() {
            mem::forget(self.file.take());
        }
    }
}

impl Kernel {
    /// A folder that exists, by its whole path.
    pub(crate) fn in_folder(folder: &Path) -> Kernel {
        Kernel {
            folder: folder.to_owned(),
            processes: Processes::default(),
            own: None,
            published: Mutex::default(),
        }
    }

    /// Copies of descriptors that become readable when a process ends.
    pub(crate) fn ends(&self) -> Vec<OwnedFd> {
        self.processes.descriptors()
    }

    fn published(&self) -> MutexGuard<'_, Vec<Published>> {
        let published = self.published.lock();
        published.unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the drafts of processes that have ended.
    pub(crate) fn tidy_up(&self, has_ended: impl Fn(u32) -> bool) {
        for name in self.names(DRAFT).unwrap_or_default() {
            let draft = name.strip_suffix(DRAFT);
            let process = draft.and_then(|draft| draft.split_once('-')?.0.parse().ok());
            if process.is_some_and(&has_ended) {
                self.remove(&name);
            }
        }
    }

    /// Writes a file that all users can read, whatever they usually can, and renames it. A link
    /// that somebody has put there is not followed.
    fn put(&self, name: &str, text: &str, flags: RenameFlags) -> io::Result<Kept> {
        let draft = format!("{}-{:016x}{DRAFT}", std::process::id(), fastrand::u64(..));
        let draft = self.folder.join(draft);
        let mut how = File::options();
        let how = how.write(true).create_new(true).mode(FOR_ALL_TO_READ);
        let written = how.open(&draft).and_then(|mut file| {
            let data = file.metadata()?;
            if data.mode() & 0o777 != FOR_ALL_TO_READ {
                file.set_permissions(Permissions::from_mode(FOR_ALL_TO_READ))?;
            }
            file.write_all(text.as_bytes())?;
            renameat_with(CWD, &draft, CWD, self.folder.join(name), flags)?;
            Ok(Kept {
                file: Some(file),
                identity: (data.dev(), data.ino()),
            })
        });
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written
    }
}

impl Outside for Kernel {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn process(&self) -> u32 {
        std::process::id()
    }

    fn own(&self) -> Option<ProcessId> {
        processes::own()
    }

    fn names(&self, ending: &str) -> io::Result<Vec<String>> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&self.folder, how, Mode::empty())?;
        let mut room = [MaybeUninit::uninit(); LISTING_BYTES];
        let mut entries = RawDir::new(&folder, &mut room);
        let mut names = Vec::new();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let name = name.to_str().filter(|name| name.ends_with(ending));
            names.extend(name.map(str::to_owned));
        }
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Option<String>> {
        match File::open(self.folder.join(name)) {
            Ok(file) => text_of(&file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        match fs::symlink_metadata(self.folder.join(name)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_there(&self, name: &str, text: &str) -> io::Result<bool> {
        let published = self.published();
        let own = published
            .iter()
            .find(|one| one.name == name && one.text == text);
        let Some(own) = own.filter(|own| own.file.names().is_some()) else {
            return Ok(self.read(name)?.as_deref() == Some(text));
        };
        match fs::symlink_metadata(self.folder.join(name)) {
            Ok(data) => Ok((data.dev(), data.ino()) == own.file.identity),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn publish(&self, name: &str, text: &str) -> io::Result<bool> {
        match self.put(name, text, RenameFlags::NOREPLACE) {
            Ok(file) => {
                let mut published = self.published();
                if published.len() == 2 {
                    published.remove(0);
                }
                published.push(Published {
                    name: name.to_owned(),
                    text: text.to_owned(),
                    file,
                });
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.folder.join(name));
    }

    fn put_over(&self, name: &str, other: &str) {
        let _ = fs::rename(self.folder.join(name), self.folder.join(other));
    }

    fn make_own(&mut self, name: &str, text: &str) -> io::Result<()> {
        self.own = Some(self.put(name, text, RenameFlags::empty())?);
        Ok(())
    }

    fn has_own(&self) -> bool {
        let names = self.own.as_ref().and_then(Kept::names);
        names.is_some_and(|names| names > 0)
    }

    fn write_own(&self, text: &str) -> io::Result<()> {
        let own = self.own.as_ref().and_then(|own| own.file.as_ref());
        let own = own.ok_or(io::ErrorKind::NotFound)?;
        own.write_all_at(text.as_bytes(), 0)
    }

    fn removed(&self) -> Vec<(String, String)> {
        let entries = |folder: &Path| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<PathBuf>>()
        };
        let mut found = Vec::new();
        let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
        for process in entries(Path::new("/proc")) {
            let Some(number) = number(&process) else {
                continue;
            };
            for descriptor in entries(&process.join("fd")) {
                let Ok(target) = fs::read_link(&descriptor) else {
                    continue;
                };
                let name = target.file_name().and_then(|name| name.to_str());
                let name = name.and_then(|name| name.strip_suffix(" (deleted)"));
                // The child of a fork has its parent's, too.
                let is_own = |name: &&str| name.starts_with(&format!("{number}-"));
                if target.parent() == Some(&self.folder)
                    && let Some(name) = name.filter(is_own)
                {
                    let text = File::open(&descriptor).and_then(|file| text_of(&file));
                    found.push((name.to_owned(), text.unwrap_or_default()));
                }
            }
        }
        found
    }

    fn is_alive(&mut self, process: ProcessId) -> bool {
        self.processes.is_alive(process)
    }

    fn ended(&mut self, processes: &[ProcessId]) -> Vec<ProcessId> {
        self.processes.ended(processes)
    }

    fn keep(&mut self, is_needed: &dyn Fn(&ProcessId) -> bool) {
        self.processes.keep(is_needed);
    }

    fn random(&self) -> u64 {
        fastrand::u64(..)
    }

    fn pause(&self) {
        thread::sleep(PAUSE);
    }
}

/// A file's text; empty if it is none, or too long.
fn text_of(mut file: &File) -> io::Result<String> {
    let mut bytes = vec![0; USUAL_BYTES];
    let length = file.read(&mut bytes)?;
    bytes.truncate(length);
    // Fewer than asked for are the last.
    if length == USUAL_BYTES {
        file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8(bytes).unwrap_or_default())
}
