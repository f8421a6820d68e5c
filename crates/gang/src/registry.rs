//! The registry: a folder with two files for each set, and one for the conductor.
//!
//! `PID-NTH.set` says what a set is; its process has it locked, so that the lock's end is the
//! set's, however the process ends. `PID-NTH.words` is its [`Table`]. `conductor` is locked by
//! whoever divides the time, and its first word is when it last did.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use hearth_sys::clock::steady_ns;
use hearth_sys::file_lock;
use hearth_sys::shared::Words;

use crate::description::{Description, parse_id};
use crate::error::GangError;
use crate::mend;
use crate::plan::SetId;
use crate::table::{BYTES, Table};

/// A conductor that has not moved for so long is stopped, or worse: sets let their members go.
pub(crate) const STALLED_NS: u64 = 1_000_000_000;

/// A set in the registry.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) description: Description,
    pub(crate) table: Table,
    /// Locked by the set's process.
    file: File,
}

impl Entry {
    pub(crate) fn is_alive(&self) -> bool {
        // Where the question is refused the set is taken for alive: it then has turns for nothing.
        file_lock::is_locked(&self.file).unwrap_or(true)
    }
}

/// The registry's folder.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    folder: PathBuf,
}

/// The lock of the one who divides the time.
#[derive(Debug)]
pub(crate) struct Baton {
    beat: Words,
    /// Locked.
    _file: File,
}

impl Baton {
    pub(crate) fn beat(&self) {
        self.beat[0].store(steady_ns(), Relaxed);
        self.beat[1].store(std::process::id().into(), Relaxed);
    }

    /// Counts core time of turns, and the part of it for which there was no set.
    pub(crate) fn count(&self, all_ns: u64, idle_ns: u64) {
        self.beat[2].fetch_add(all_ns, Relaxed);
        self.beat[3].fetch_add(idle_ns, Relaxed);
    }
}

/// Words of the conductor as others see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) process: u32,
    pub(crate) ns: u64,
    pub(crate) all_ns: u64,
    pub(crate) idle_ns: u64,
}

impl Registry {
    pub(crate) fn in_folder(folder: &Path) -> Registry {
        let folder = folder.to_owned();
        Registry { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, id: SetId, kind: &str) -> PathBuf {
        self.folder
            .join(format!("{}-{}.{kind}", id.process, id.nth))
    }

    /// The file of a set's words.
    pub(crate) fn words_path(&self, id: SetId) -> PathBuf {
        self.path(id, "words")
    }

    fn open(&self, path: &Path, is_new: bool) -> Result<File, GangError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(is_new).mode(0o600);
        let file = options.open(path);
        file.map_err(|error| GangError::file(path, error))
    }

    /// Makes a set's words, which nobody looks at before [`Registry::announce`].
    pub(crate) fn prepare(&self, id: SetId) -> Result<(File, Table), GangError> {
        // What a process of the same number left behind.
        self.remove(id);
        let words = self.words_path(id);
        let file = self.open(&words, true)?;
        file.set_len(BYTES)
            .map_err(|error| GangError::file(&words, error))?;
        let table = map(&file, &words)?;
        Ok((file, table))
    }

    /// Makes a set of this process known. It lasts until the returned file is closed.
    pub(crate) fn announce(&self, description: &Description) -> Result<File, GangError> {
        let id = description.id;
        // Locked before it has its name: whoever sees the file finds it locked.
        let draft = self.path(id, "draft");
        let file = self.open(&draft, true)?;
        let written = fs::write(&draft, description.text());
        let done = written
            .and_then(|()| file_lock::try_lock(&file))
            .and_then(|_| fs::rename(&draft, self.path(id, "set")));
        done.map_err(|error| GangError::file(&draft, error))?;
        Ok(file)
    }

    /// Removes the files of a set.
    pub(crate) fn remove(&self, id: SetId) {
        for kind in ["set", "words"] {
            let _ = fs::remove_file(self.path(id, kind));
        }
    }

    /// Numbers of all sets, oldest first as far as numbers of processes tell. Some may have ended.
    pub(crate) fn ids(&self) -> Result<Vec<SetId>, GangError> {
        let files = fs::read_dir(&self.folder);
        let files = files.map_err(|error| GangError::file(&self.folder, error))?;
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let mut ids: Vec<SetId> = names
            .filter_map(|name| parse_id(name.strip_suffix(".set")?))
            .collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Opens a set. None if it went away, or its file makes no sense.
    pub(crate) fn entry(&self, id: SetId) -> Option<Entry> {
        let path = self.path(id, "set");
        let file = self.open(&path, false).ok()?;
        let description = Description::parse(&io::read_to_string(&file).ok()?)?;
        let words = self.open(&self.words_path(id), false).ok()?;
        let is_whole = words.metadata().is_ok_and(|data| data.len() == BYTES);
        if description.id != id || !is_whole {
            return None;
        }
        let table = Table::of(&words).ok()?;
        Some(Entry {
            description,
            table,
            file,
        })
    }

    /// All living sets. Members of those that have ended are let go, and their files removed.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, GangError> {
        let mut living = Vec::new();
        for id in self.ids()? {
            match self.entry(id) {
                Some(entry) if entry.is_alive() => living.push(entry),
                Some(entry) => {
                    mend::end(&entry.description, &entry.table);
                    self.remove(id);
                }
                // Of a process that is about to join, or nonsense that harms nobody.
                None => {}
            }
        }
        Ok(living)
    }

    /// Lets the members of all sets go: nobody divides the time now.
    pub(crate) fn release_all(&self) -> Result<(), GangError> {
        for entry in self.entries()? {
            mend::release(&entry.description, &entry.table);
        }
        Ok(())
    }

    /// Takes the baton, if nobody has it.
    pub(crate) fn take_baton(&self) -> Result<Option<Baton>, GangError> {
        let (path, file) = self.conductor()?;
        let is_taken = file_lock::try_lock(&file);
        match is_taken.map_err(|error| GangError::file(&path, error))? {
            false => Ok(None),
            true => {
                let baton = Baton {
                    beat: words(&file, &path)?,
                    _file: file,
                };
                baton.beat();
                Ok(Some(baton))
            }
        }
    }

    fn conductor(&self) -> Result<(PathBuf, File), GangError> {
        let path = self.folder.join("conductor");
        let file = self.open(&path, true)?;
        // Never shortened, and as long for everybody.
        file.set_len(BEAT_BYTES)
            .map_err(|error| GangError::file(&path, error))?;
        Ok((path, file))
    }

    /// The conductor's words, if there is one.
    pub(crate) fn beat(&self) -> Result<Option<Beat>, GangError> {
        let (path, file) = self.conductor()?;
        let is_locked = file_lock::is_locked(&file);
        if !is_locked.map_err(|error| GangError::file(&path, error))? {
            return Ok(None);
        }
        let words = words(&file, &path)?;
        let at = |at: usize| words[at].load(Relaxed);
        Ok(Some(Beat {
            ns: at(0),
            process: at(1) as u32,
            all_ns: at(2),
            idle_ns: at(3),
        }))
    }

    /// Whether somebody divides the time and has moved lately.
    pub(crate) fn is_conducted(&self) -> bool {
        let beat = self.beat().ok().flatten();
        beat.is_some_and(|beat| steady_ns().saturating_sub(beat.ns) < STALLED_NS)
    }
}

/// Bytes of the conductor's file: a page's worth of words is more than it has.
const BEAT_BYTES: u64 = 4096;

fn words(file: &File, path: &Path) -> Result<Words, GangError> {
    Words::of(file, BEAT_BYTES as usize / 8).map_err(|refused| refuse(path, &refused))
}

fn map(file: &File, path: &Path) -> Result<Table, GangError> {
    Table::of(file).map_err(|refused| refuse(path, &refused))
}

fn refuse(path: &Path, refused: &hearth_sys::Refused) -> GangError {
    GangError::file(path, io::Error::other(refused.to_string()))
}
