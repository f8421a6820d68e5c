//! Everything that the protocol of claims needs from outside: a folder that all members share,
//! other processes' lives, chance and time. The real one is [`crate::kernel::Kernel`]; the models
//! have another, in which each operation is a step that others can come before.

use std::fmt::{self, Debug};
use std::io;
use std::path::Path;

use crate::state::ProcessId;

/// Numbers by which the protocol is finite. Models have smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// States kept besides the newest, in which others may still be reading.
    pub(crate) kept: u64,
    /// Looks at members' files that are being written, or that name what their members may drop at
    /// once; with a pause between two.
    pub(crate) looks: usize,
}

/// The usual limits.
pub(crate) const USUAL: Limits = Limits { kept: 8, looks: 20 };

/// A folder and the processes that share it, seen by one of them.
pub(crate) trait Outside: Debug {
    /// The folder, for messages.
    fn folder(&self) -> &Path;

    /// Number of the calling process.
    fn process(&self) -> u32;

    /// The calling process. None if the system does not tell of it.
    fn own(&self) -> Option<ProcessId>;

    /// Names of the files with that ending. One that comes or goes meanwhile may be among them or
    /// not.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn names(&self, ending: &str) -> io::Result<Vec<String>>;

    /// A file's text; empty if it has none. None if there is no such file.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, name: &str) -> io::Result<Option<String>>;

    /// Whether there is a file of a name.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.read(name)?.is_some())
    }

    /// Whether a state's file is there, and the very one that had this text.
    ///
    /// # Errors
    /// It cannot be read.
    fn is_there(&self, name: &str, text: &str) -> io::Result<bool>;

    /// Makes a file that has its whole text as soon as it is there. False if the name is taken.
    ///
    /// # Errors
    /// The folder cannot be written to.
    fn publish(&self, name: &str, text: &str) -> io::Result<bool>;

    /// Removes a file, if it is there.
    fn remove(&self, name: &str);

    /// Renames a file, if it is there, over another.
    fn put_over(&self, name: &str, other: &str);

    /// Makes the calling process's own file, which has its whole text as soon as it is there, in
    /// place of one of that name. The process keeps it open.
    ///
    /// # Errors
    /// The folder cannot be written to.
    fn make_own(&mut self, name: &str, text: &str) -> io::Result<()>;

    /// Whether the process has its own file open, and it is in the folder. A program may have
    /// closed all its files, and somebody may have removed it.
    fn has_own(&self) -> bool;

    /// Writes over the beginning of the own file, at once for all but those who are just reading;
    /// what is behind the text stays.
    ///
    /// # Errors
    /// It cannot be written to.
    fn write_own(&self, text: &str) -> io::Result<()>;

    /// Names and texts of own files that were removed and that their processes have open, as far
    /// as the system shows that. It takes some milliseconds.
    fn removed(&self) -> Vec<(String, String)>;

    /// Whether a process has not ended. One with threads left has not, and a stopped one neither.
    fn is_alive(&mut self, process: ProcessId) -> bool;

    /// Those of some processes that have ended.
    fn ended(&mut self, processes: &[ProcessId]) -> Vec<ProcessId> {
        let all = processes.iter().copied();
        all.filter(|process| !self.is_alive(*process)).collect()
    }

    /// Forgets all processes but some.
    fn keep(&mut self, is_needed: &dyn Fn(&ProcessId) -> bool);

    /// A random number.
    fn random(&self) -> u64;

    /// Lets others go on for a moment.
    fn pause(&self);

    /// Numbers by which the protocol is finite.
    fn limits(&self) -> Limits {
        USUAL
    }

    /// Tells a model that whatever the caller does next depends on this, and on no answer before.
    fn begins_again(&self, _: fmt::Arguments) {}

    /// Whether a model has planted a fault, which it must find.
    fn has(&self, _: Fault) -> bool {
        false
    }
}

/// Steps that the models leave out or take at the wrong place, to see that they find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "some are faults of the modelled folder")
)]
pub(crate) enum Fault {
    /// A state is published over one that is there.
    PublishesOver,
    /// A number that is gone is published, and counts.
    PublishesThePast,
    /// Old states are removed although older ones are there.
    TidiesOutOfOrder,
    /// Number 1 is removed as other old states are.
    RemovesTheFirst,
    /// Wanted cores are not written before they are published.
    PublishesFirst,
    /// Nobody looks into others' files after publishing.
    NeverLooks,
    /// Those who have ended keep what they had.
    IgnoresEnds,
    /// A member's file is there before its text is.
    BeginsEmpty,
    /// A member's file ends with the rest of a longer text before.
    LeavesRests,
}
