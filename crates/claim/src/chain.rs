//! A registry's states in a folder, each an immutable file with a number.
//!
//! A new state is published as the file of the next number, by renaming that fails if the number is
//! taken. So of all who start from the same state one succeeds, and the others start again from
//! what it published. Nobody holds a lock: a program that is stopped or killed anywhere stops
//! nobody. A program that was stopped for long may publish a number that is gone already; then a
//! much higher one is there, or its own beginning is not there any more, and it takes its file
//! back.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// End of a state's file name.
const STATE: &str = "state";
/// States kept besides the newest, in which others may still be reading.
const KEPT: u64 = 8;
/// Attempts to read what others replace meanwhile.
const ATTEMPTS: usize = 100;

/// The folder.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    folder: PathBuf,
}

/// The newest state's text, and that of the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Newest {
    /// Its number; 0 if there is none.
    pub(crate) number: u64,
    /// Its text; empty if there is none, or it is no text.
    pub(crate) text: String,
    /// The text of the state with the number before; empty as well.
    pub(crate) before: String,
}

/// Result of publishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// The state is the newest, or was.
    Yes,
    /// Another one came first.
    TooLate,
    /// It was published, and is not to be found any more; others may have gone on from it.
    Lost,
}

impl Chain {
    /// States in a folder that exists.
    pub(crate) fn in_folder(folder: &Path) -> Chain {
        Chain {
            folder: folder.to_owned(),
        }
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:020}.{STATE}"))
    }

    /// Numbers of the states that are there, ascending.
    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(STATE));
            let number = number.and_then(|name| name.strip_suffix('.'));
            numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The newest state.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn newest(&self) -> io::Result<Newest> {
        for _ in 0..ATTEMPTS {
            let Some(number) = self.numbers()?.last().copied() else {
                return Ok(Newest::default());
            };
            // Others may publish and tidy up meanwhile.
            if let Some(text) = self.read(number)? {
                let before = self.read(number.saturating_sub(1))?.unwrap_or_default();
                return Ok(Newest {
                    number,
                    text,
                    before,
                });
            }
        }
        Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            "other programs change it all the time",
        ))
    }

    /// A state's text; empty if it is none. None if there is no such state.
    fn read(&self, number: u64) -> io::Result<Option<String>> {
        match fs::read_to_string(self.path(number)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(String::new())),
            Err(error) => Err(error),
        }
    }

    /// Removes what processes that ended in the middle of publishing have left.
    pub(crate) fn tidy_up(&self, has_ended: impl Fn(u32) -> bool) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let draft = name.to_str().and_then(|name| name.strip_suffix(".draft"));
            let process = draft.and_then(|draft| draft.split_once('-')?.0.parse().ok());
            if process.is_some_and(&has_ended) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Publishes a state under the next number. `from` is what it was made from; somebody may have
    /// removed that meanwhile.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub(crate) fn publish(&self, from: &Newest, text: &str) -> io::Result<Published> {
        let number = from.number + 1;
        let draft = format!("{}-{:016x}.draft", std::process::id(), fastrand::u64(..));
        let draft = self.folder.join(draft);
        let written = new_file(&draft).and_then(|mut file| file.write_all(text.as_bytes()));
        let renamed = written.and_then(|()| {
            renameat_with(CWD, &draft, CWD, self.path(number), RenameFlags::NOREPLACE)
                .map_err(io::Error::from)
        });
        if let Err(error) = renamed {
            let _ = fs::remove_file(&draft);
            return match error.kind() {
                io::ErrorKind::AlreadyExists => Ok(Published::TooLate),
                _ => Err(error),
            };
        }
        let numbers = self.numbers()?;
        let highest = numbers.last().copied().unwrap_or(number);
        // The number was published and tidied up long ago; or states were removed.
        let is_late = highest > number + KEPT
            || from.number > 0 && self.read(from.number)?.as_ref() != Some(&from.text);
        if is_late {
            let _ = fs::remove_file(self.path(number));
            return Ok(Published::Lost);
        }
        // The one before a state stays for as long as the state may still be checked.
        for old in numbers.into_iter().filter(|old| old + KEPT + 1 < highest) {
            let _ = fs::remove_file(self.path(old));
        }
        Ok(Published::Yes)
    }
}

/// Makes a file that other users can read, whatever they usually can. A link that somebody has put
/// there is not followed.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    let file = File::create_new(path)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn files(folder: &Folder) -> usize {
        fs::read_dir(folder.path()).expect("a folder").count()
    }

    #[test]
    fn one_of_those_who_go_on_from_a_state_succeeds() {
        let folder = Folder::new("chain");
        let chain = Chain::in_folder(folder.path());
        let nothing = chain.newest().expect("it is read");
        assert_eq!(nothing, Newest::default());
        assert_eq!(
            chain.publish(&nothing, "one").expect("it works"),
            Published::Yes
        );
        assert_eq!(
            chain.publish(&nothing, "other").expect("it works"),
            Published::TooLate
        );
        let first = chain.newest().expect("it is read");
        assert_eq!((first.number, first.text.as_str()), (1, "one"));
        assert_eq!(
            chain.publish(&first, "two").expect("it works"),
            Published::Yes
        );
        let second = chain.newest().expect("it is read");
        assert_eq!(
            (second.text.as_str(), second.before.as_str()),
            ("two", "one")
        );
        assert_eq!(files(&folder), 2);
    }

    #[test]
    fn a_late_one_takes_its_file_back() {
        let folder = Folder::new("late");
        let chain = Chain::in_folder(folder.path());
        let late = chain.newest().expect("it is read");
        for nth in 0..20 {
            let newest = chain.newest().expect("it is read");
            assert_eq!(newest.number, nth);
            let published = chain.publish(&newest, &nth.to_string()).expect("it works");
            assert_eq!(published, Published::Yes);
        }
        assert_eq!(files(&folder), KEPT as usize + 2);
        assert_eq!(
            chain.publish(&late, "late").expect("it works"),
            Published::Lost
        );
        assert_eq!(files(&folder), KEPT as usize + 2);
        assert_eq!(chain.newest().expect("it is read").text, "19");
    }

    #[test]
    fn drafts_of_the_ended_go() {
        let folder = Folder::new("drafts");
        for name in ["7-00.draft", "8-00.draft", "x.draft"] {
            fs::write(folder.path().join(name), "").expect("it is written");
        }
        Chain::in_folder(folder.path()).tidy_up(|process| process == 7);
        assert!(!folder.path().join("7-00.draft").exists());
        assert_eq!(files(&folder), 2);
    }

    #[test]
    fn removed_states_are_noticed() {
        let folder = Folder::new("removed");
        let chain = Chain::in_folder(folder.path());
        let nothing = chain.newest().expect("it is read");
        chain.publish(&nothing, "one").expect("it works");
        let first = chain.newest().expect("it is read");
        fs::remove_file(chain.path(1)).expect("it is there");
        assert_eq!(
            chain.publish(&first, "two").expect("it works"),
            Published::Lost
        );
        assert_eq!(files(&folder), 0);
        fs::write(chain.path(7), [0xff, 0xfe]).expect("it is written");
        let damaged = chain.newest().expect("it is read");
        assert_eq!((damaged.number, damaged.text.as_str()), (7, ""));
    }
}
