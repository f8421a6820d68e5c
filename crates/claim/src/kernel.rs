//! The real folder, and the processes of this system.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::outside::Outside;
use crate::processes::{self, Processes};
use crate::state::ProcessId;

/// End of the name of a file that is not there yet.
const DRAFT: &str = ".draft";
/// Room for the text of some dozen claims.
const USUAL_BYTES: usize = 4096;
/// Longest text: thousands of claims.
const BYTES_MAX: u64 = 1 << 24;
/// Time for others to go on.
const PAUSE: Duration = Duration::from_millis(1);

/// A folder, and descriptors of the processes that share it.
#[derive(Debug)]
pub(crate) struct Kernel {
    folder: PathBuf,
    processes: Processes,
    own: Option<Own>,
}

/// A process's own file.
#[derive(Debug)]
struct Own {
    file: File,
    /// Device and number.
    identity: (u64, u64),
}

impl Kernel {
    /// A folder that exists, by its whole path.
    pub(crate) fn in_folder(folder: &Path) -> Kernel {
        Kernel {
            folder: folder.to_owned(),
            processes: Processes::default(),
            own: None,
        }
    }

    /// Copies of descriptors that become readable when a process ends.
    pub(crate) fn ends(&self) -> Vec<OwnedFd> {
        self.processes.descriptors()
    }

    /// Removes the drafts of processes that have ended.
    pub(crate) fn tidy_up(&self, has_ended: impl Fn(u32) -> bool) {
        for name in self.names().unwrap_or_default() {
            let draft = name.strip_suffix(DRAFT);
            let process = draft.and_then(|draft| draft.split_once('-')?.0.parse().ok());
            if process.is_some_and(&has_ended) {
                self.remove(&name);
            }
        }
    }

    /// Writes a file that all users can read, whatever they usually can, and renames it. A link
    /// that somebody has put there is not followed.
    fn put(&self, name: &str, text: &str, flags: RenameFlags) -> io::Result<File> {
        let draft = format!("{}-{:016x}{DRAFT}", std::process::id(), fastrand::u64(..));
        let draft = self.folder.join(draft);
        let made = File::create_new(&draft);
        let written = made.and_then(|mut file| {
            file.set_permissions(Permissions::from_mode(0o644))?;
            file.write_all(text.as_bytes())?;
            renameat_with(CWD, &draft, CWD, self.folder.join(name), flags)?;
            Ok(file)
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

    fn names(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.folder)?.map(|entry| Ok(entry?.file_name()));
        let names: io::Result<Vec<_>> = names.collect();
        let names = names?
            .into_iter()
            .filter_map(|name| name.into_string().ok());
        Ok(names.collect())
    }

    fn read(&self, name: &str) -> io::Result<Option<String>> {
        match File::open(self.folder.join(name)) {
            Ok(file) => text_of(&file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn publish(&self, name: &str, text: &str) -> io::Result<bool> {
        match self.put(name, text, RenameFlags::NOREPLACE) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.folder.join(name));
    }

    fn make_own(&mut self, name: &str, text: &str) -> io::Result<()> {
        let file = self.put(name, text, RenameFlags::empty())?;
        let data = file.metadata()?;
        let identity = (data.dev(), data.ino());
        // The number of one that a program has closed may be another file's by now: it is not to
        // be closed here.
        std::mem::forget(self.own.replace(Own { file, identity }));
        Ok(())
    }

    fn has_own(&self) -> bool {
        let is_there = |own: &Own| {
            let data = own.file.metadata();
            data.is_ok_and(|data| (data.dev(), data.ino()) == own.identity && data.nlink() > 0)
        };
        self.own.as_ref().is_some_and(is_there)
    }

    fn write_own(&self, text: &str) -> io::Result<()> {
        let own = self.own.as_ref().ok_or(io::ErrorKind::NotFound)?;
        own.file.write_all_at(text.as_bytes(), 0)
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
fn text_of(file: &File) -> io::Result<String> {
    // An empty one would grow, and read, by steps of some bytes.
    let mut text = String::with_capacity(USUAL_BYTES);
    match file.take(BYTES_MAX).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(String::new()),
        Err(error) => Err(error),
    }
}
