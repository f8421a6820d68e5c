//! Plans for programs that are about to run, kept for the next run.
//!
//! ```text
//! ~/.cache/hearth/plans/
//!     <hash>.made       a plan, with all that it follows from, in full; or the result of a check
//!     <hash>.plan       lines, for the program to read
//!     <hash>.profile    the machine's profile, likewise
//!     <hash>.tuning     how the model of messages was fitted to the profile, likewise
//! ```
//!
//! A hash names a file, but its contents are compared: a collision, or a damaged file, costs
//! planning again and misplaces nothing. Files appear by a rename, so concurrent runs see all of
//! one or nothing; two that write the same one write the same text.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hearth_terminal::{Failure, output};

use crate::cache::Cache;

/// The number of kept files: two for each of a hundred programs, as many share a profile.
const KEPT: usize = 256;
/// Writing a file takes no time; one begun longer ago was left by a run that was killed.
const UNFINISHED_MAX: Duration = Duration::from_secs(60 * 60);

/// The first word of a kept plan; it changes with the format.
const FORMAT: &str = "hearth planned 1";

/// A plan for a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// A line for each component, as the runtime takes them.
    pub lines: String,
    /// The machine's profile, if the program is to know it; else empty.
    pub profile: String,
    /// The fit of the model to the profile, if the program is to know it; else empty.
    pub tuning: String,
    /// Lines for the user, printed at each run.
    pub warnings: String,
}

/// The folder of plans.
pub struct Plans {
    folder: PathBuf,
}

impl Plans {
    /// The folder in the user's cache, or among temporary files if there is none.
    pub fn of_user() -> Plans {
        match Cache::of_user() {
            Some(cache) => Plans {
                folder: cache.root().join("plans"),
            },
            None => Plans::temporary(),
        }
    }

    fn temporary() -> Plans {
        Plans {
            folder: std::env::temp_dir(),
        }
    }

    /// The plan kept for exactly this record.
    pub fn find(&self, record: &[u8]) -> Option<Planned> {
        let path = self.path("made", record);
        let bytes = fs::read(&path).ok()?;
        let planned = read(&bytes, record)?;
        note_use(&path);
        Some(planned)
    }

    /// Keeps a plan. Where that is not possible, the next run plans again.
    pub fn keep(&self, record: &[u8], planned: &Planned) {
        let _ = self.write(&self.path("made", record), &written(record, planned));
    }

    /// A file with this text, for a program that is about to run; the same text has the same file.
    pub fn file(&self, kind: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.path(kind, text.as_bytes());
        if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            note_use(&path);
            return Ok(path);
        }
        match self.write(&path, text.as_bytes()) {
            Ok(()) => Ok(path),
            // A program can run where nothing can be kept, as in a read-only container.
            Err(failure) => match Plans::temporary() {
                other if other.folder == self.folder => Err(failure),
                other => other.file(kind, text).map_err(|_| failure),
            },
        }
    }

    fn write(&self, path: &Path, contents: &[u8]) -> Result<(), Failure> {
        fs::create_dir_all(&self.folder).map_err(|error| output::cannot_write(path, &error))?;
        self.tidy();
        output::replace(path, contents)
    }

    fn path(&self, kind: &str, contents: &[u8]) -> PathBuf {
        let hash = hash([contents]);
        self.folder.join(format!("{hash:016x}.{kind}"))
    }

    /// Removes the files unused for longest where there are too many.
    fn tidy(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        let mut files = Vec::new();
        for path in entries.flatten().map(|entry| entry.path()) {
            let used = fs::metadata(&path).and_then(|facts| facts.modified());
            let Ok(used) = used else { continue };
            match path.extension().and_then(OsStr::to_str) {
                Some("made" | "plan" | "profile" | "tuning") => files.push((used, path)),
                Some("new") if is_unfinished(&path) && is_old(used) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        files.sort();
        let spare = files.len().saturating_sub(KEPT);
        for (_, path) in files.into_iter().take(spare) {
            // Another run may have removed it already.
            let _ = fs::remove_file(path);
        }
    }
}

/// True of a half-written file of ours; the folder of temporary files holds others' too.
fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [".made.", ".plan.", ".profile.", ".tuning."]
        .iter()
        .any(|kind| name.starts_with('.') && name.contains(kind))
}

fn is_old(used: SystemTime) -> bool {
    used.elapsed().is_ok_and(|age| age > UNFINISHED_MAX)
}

/// Notes the time of use. Nothing is lost if that fails.
fn note_use(path: &Path) {
    let _ = File::options()
        .append(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::now()));
}

fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in parts {
        hasher.write_usize(part.len());
        hasher.write(part);
    }
    hasher.finish()
}

/// A plan as bytes: a line with the format, the lengths of five parts and a hash of the last four;
/// then the parts.
fn written(record: &[u8], planned: &Planned) -> Vec<u8> {
    let parts = parts(planned);
    let [lines, profile, tuning, warnings] = parts.map(<[u8]>::len);
    let mut bytes = format!(
        "{FORMAT} {} {lines} {profile} {tuning} {warnings} {:016x}\n",
        record.len(),
        hash(parts)
    )
    .into_bytes();
    bytes.extend_from_slice(record);
    bytes.extend(parts.concat());
    bytes
}

fn parts(planned: &Planned) -> [&[u8]; 4] {
    [
        planned.lines.as_bytes(),
        planned.profile.as_bytes(),
        planned.tuning.as_bytes(),
        planned.warnings.as_bytes(),
    ]
}

/// Reads what [`written`] wrote; `None` if it belongs to another record or is damaged.
fn read(bytes: &[u8], record: &[u8]) -> Option<Planned> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let header = str::from_utf8(&bytes[..end]).ok()?.strip_prefix(FORMAT)?;
    let fields: Vec<&str> = header.split_whitespace().collect();
    let [of_record, lines, profile, tuning, warnings, _] = fields[..] else {
        return None;
    };
    let mut rest = &bytes[end + 1..];
    let mut take = |length: &str| {
        let (part, behind) = rest.split_at_checked(length.parse().ok()?)?;
        rest = behind;
        Some(part)
    };
    if take(of_record)? != record {
        return None;
    }
    let mut text = |length| Some(str::from_utf8(take(length)?).ok()?.to_owned());
    let planned = Planned {
        lines: text(lines)?,
        profile: text(profile)?,
        tuning: text(tuning)?,
        warnings: text(warnings)?,
    };
    let is_whole = written(record, &planned) == bytes;
    is_whole.then_some(planned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Workshop;

    fn planned() -> Planned {
        Planned {
            lines: "Sender\t1\t0\n".to_owned(),
            profile: "{}".to_owned(),
            tuning: "{ }".to_owned(),
            warnings: String::new(),
        }
    }

    #[test]
    fn what_was_kept_is_found_by_its_record_alone() {
        let folder = Workshop::temporary().unwrap();
        let plans = Plans {
            folder: folder.path().join("plans"),
        };
        assert_eq!(plans.find(b"record"), None);
        plans.keep(b"record", &planned());
        assert_eq!(plans.find(b"record"), Some(planned()));
        assert_eq!(plans.find(b"other"), None);
        // As if another record had the same hash.
        let (one, other) = (plans.path("made", b"record"), plans.path("made", b"other"));
        fs::copy(one, other).unwrap();
        assert_eq!(plans.find(b"other"), None);
    }

    #[test]
    fn where_nothing_can_be_kept_files_are_temporary() {
        let plans = Plans {
            folder: "/proc/self/nowhere/plans".into(),
        };
        let text = format!("a test's, {}", std::process::id());
        let path = plans.file("plan", &text).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_not_whole_is_as_nothing() {
        let whole = written(b"record", &planned());
        assert_eq!(read(&whole, b"record"), Some(planned()));
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length], b"record"), None, "{length}");
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x10;
            assert_eq!(read(&damaged, b"record"), None, "{place}");
        }
        let longer = [&whole[..], b" "].concat();
        assert_eq!(read(&longer, b"record"), None);
    }

    #[test]
    fn many_at_once_find_all_of_it_or_nothing() {
        let folder = Workshop::temporary().unwrap();
        let plans = Plans {
            folder: folder.path().join("plans"),
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..50_u8 {
                        let record = [number % 5];
                        plans.keep(&record, &planned());
                        let found = plans.find(&record);
                        assert!(found.is_none() || found == Some(planned()));
                    }
                });
            }
        });
        assert_eq!(plans.find(&[0]), Some(planned()));
    }

    #[test]
    fn those_that_are_used_stay() {
        let folder = Workshop::temporary().unwrap();
        let plans = Plans {
            folder: folder.path().join("plans"),
        };
        let first = plans.file("plan", "first").unwrap();
        let day = Duration::from_secs(86_400);
        let set_used = |path: &Path, ago: Duration| {
            let file = File::options().append(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - ago).unwrap();
        };
        for number in 0..KEPT {
            let path = plans.file("plan", &number.to_string()).unwrap();
            set_used(&path, day);
        }
        set_used(&first, 2 * day);
        assert_eq!(plans.file("plan", "first").unwrap(), first);
        let unfinished = plans.folder.join(".0.plan.1.new");
        fs::write(&unfinished, "").unwrap();
        set_used(&unfinished, day);
        plans.file("plan", "last").unwrap();
        assert!(first.exists() && !unfinished.exists());
        assert_eq!(fs::read_dir(&plans.folder).unwrap().count(), KEPT + 1);
    }
}
