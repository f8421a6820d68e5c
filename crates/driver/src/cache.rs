//! Executables of earlier runs.
//!
//! ```text
//! ~/.cache/hearth/
//!     programs/<hash>/program     the executable
//!                     record      everything it was built from, in full
//!                     warnings    there if its text gave warnings; empty
//!     work/<pid>-<number>/        builds under way
//! ```
//!
//! A hash names an entry, but its record is compared in full: a collision costs a build and never
//! runs another program. An entry appears by one rename, so concurrent runs see all of it or
//! nothing, and the one that comes second uses what is there.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// The size above which the entries unused for longest are removed.
const SIZE_MAX_BYTES: u64 = 256 * 1024 * 1024;
/// A build takes seconds; an older folder was left by one that was killed.
const WORK_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The executable's name in an entry and in a workshop.
pub const PROGRAM: &str = "program";
const RECORD: &str = "record";
const WARNINGS: &str = "warnings";

/// The folder of kept executables.
pub struct Cache {
    root: PathBuf,
    bytes_max: u64,
}

/// A kept executable.
pub struct Entry {
    pub program: PathBuf,
    /// The compiler had warnings about its text.
    pub has_warnings: bool,
}

impl Cache {
    /// The cache in `$XDG_CACHE_HOME/hearth` or `~/.cache/hearth`; `None` if neither variable
    /// helps.
    pub fn of_user() -> Option<Self> {
        let folder = |name| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let base = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
        Some(Cache {
            root: base.join("hearth"),
            bytes_max: SIZE_MAX_BYTES,
        })
    }

    /// The folder of the whole cache.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The executable built from exactly this, if there is one. Writes nothing but the time of use.
    pub fn find(&self, record: &[u8]) -> Option<Entry> {
        let entry = self.entry(record);
        let kept = fs::read(entry.join(RECORD)).ok()?;
        if kept != record {
            return None;
        }
        let program = entry.join(PROGRAM);
        if !program.is_file() {
            return None;
        }
        // Nothing is lost if the time of use cannot be noted.
        let _ = File::options()
            .append(true)
            .open(entry.join(RECORD))
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(Entry {
            program,
            has_warnings: entry.join(WARNINGS).exists(),
        })
    }

    /// A directory to build in, from which [`Cache::keep`] can take.
    pub fn workshop(&self) -> io::Result<Workshop> {
        let work = self.root.join("work");
        fs::create_dir_all(&work)?;
        fs::create_dir_all(self.root.join("programs"))?;
        Workshop::inside(&work)
    }

    /// Makes the program in a workshop an entry, and removes old entries if there are too many.
    pub fn keep(&self, workshop: Workshop, record: &[u8], has_warnings: bool) -> io::Result<Entry> {
        let folder = workshop.path();
        for leftover in fs::read_dir(folder)?.flatten() {
            if leftover.file_name() != OsStr::new(PROGRAM) {
                fs::remove_file(leftover.path())?;
            }
        }
        fs::write(folder.join(RECORD), record)?;
        if has_warnings {
            fs::write(folder.join(WARNINGS), "")?;
        }
        let entry = self.entry(record);
        if fs::rename(folder, &entry).is_err() {
            // Another run was first, or another text has the same hash, or the entry was damaged.
            if self.find(record).is_none() {
                fs::remove_dir_all(&entry)?;
                fs::rename(folder, &entry)?;
            }
        }
        self.prune(&entry);
        Ok(Entry {
            program: entry.join(PROGRAM),
            has_warnings,
        })
    }

    fn entry(&self, record: &[u8]) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        hasher.write(record);
        self.root
            .join("programs")
            .join(format!("{:016x}", hasher.finish()))
    }

    /// Keeps the cache within its size. An entry that cannot be removed stays: no reason to fail.
    fn prune(&self, newest: &Path) {
        for work in folders(&self.root.join("work")) {
            if age(&work).is_some_and(|age| age > WORK_AGE_MAX) {
                let _ = fs::remove_dir_all(&work);
            }
        }
        let mut entries: Vec<_> = folders(&self.root.join("programs"))
            .into_iter()
            .map(|entry| (age(&entry.join(RECORD)), size(&entry), entry))
            .collect();
        entries.sort_by_key(|(age, ..)| std::cmp::Reverse(age.unwrap_or(Duration::MAX)));
        let mut total: u64 = entries.iter().map(|(_, size, _)| size).sum();
        for (_, size, entry) in entries {
            if total <= self.bytes_max {
                return;
            }
            if entry != newest && fs::remove_dir_all(&entry).is_ok() {
                total -= size;
            }
        }
    }
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

fn age(path: &Path) -> Option<Duration> {
    fs::metadata(path).ok()?.modified().ok()?.elapsed().ok()
}

fn size(entry: &Path) -> u64 {
    [PROGRAM, RECORD]
        .iter()
        .filter_map(|name| fs::metadata(entry.join(name)).ok())
        .map(|facts| facts.len())
        .sum()
}

/// A private directory, removed when dropped.
pub struct Workshop {
    path: PathBuf,
}

impl Workshop {
    /// A directory among the system's temporary files.
    pub fn temporary() -> io::Result<Self> {
        Workshop::inside(&std::env::temp_dir())
    }

    /// A directory with a unique name, readable by its owner only.
    pub fn inside(parent: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("hearth-{process}-{number}"));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Workshop { path }),
                // Left by an earlier process of the same number, or by somebody else.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 10_000 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // It has moved into the cache, or it stays behind: both are harmless.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(cache: &Cache, record: &[u8], program: &[u8]) -> Entry {
        let workshop = cache.workshop().unwrap();
        fs::write(workshop.path().join(PROGRAM), program).unwrap();
        fs::write(workshop.path().join("program.c"), "leftover").unwrap();
        cache.keep(workshop, record, false).unwrap()
    }

    #[test]
    fn what_is_unused_for_longest_goes_first() {
        let folder = Workshop::temporary().unwrap();
        let cache = Cache {
            root: folder.path().join("hearth"),
            bytes_max: 2500,
        };
        let hour = Duration::from_secs(3600);
        for (i, record) in [b"first", b"other"].into_iter().enumerate() {
            keep(&cache, record, &[0; 1000]);
            let entry = File::open(cache.entry(record).join(RECORD)).unwrap();
            let used = SystemTime::now() - hour * (2 - i as u32);
            entry.set_modified(used).unwrap();
        }
        // Being looked for is being used.
        assert!(cache.find(b"first").is_some());
        keep(&cache, b"third", &[0; 1000]);
        assert!(cache.find(b"other").is_none());
        assert!(cache.find(b"first").is_some());
        let third = cache.find(b"third").unwrap();
        let left: Vec<_> = folders(third.program.parent().unwrap());
        assert_eq!(left.len(), 2, "{left:?}");
        // The newest stays, however large.
        keep(&cache, b"giant", &[0; 5000]);
        assert!(cache.find(b"giant").is_some());
        assert!(folders(&cache.root.join("work")).is_empty());
    }

    #[test]
    fn a_record_is_compared_in_full() {
        let folder = Workshop::temporary().unwrap();
        let cache = Cache {
            root: folder.path().join("hearth"),
            bytes_max: SIZE_MAX_BYTES,
        };
        let entry = keep(&cache, b"record", b"program");
        // As if another text had the same hash.
        let record = entry.program.with_file_name(RECORD);
        fs::write(&record, "another record").unwrap();
        assert!(cache.find(b"record").is_none());
        keep(&cache, b"record", b"program");
        assert!(cache.find(b"record").is_some());
    }
}
