//! Commands from outside: another process writes a rule into the journal, and the monitor's thread
//! carries it out.
//!
//! | word | written by | read by |
//! |---|---|---|
//! | asked: the number answered and one more | outside, when the rule is there | the monitor |
//! | answered | the monitor | outside |
//! | length and text of a rule | outside, before it asks | the monitor |
//! | probes that are on | the monitor | outside |
//!
//! Whoever is outside holds a lock on the journal's file, which goes with the process.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hearth_sys::file_lock;
use hearth_text::cause;
use hearth_watch::stream::{Journal, NAME, Remains, UserWords};

use crate::rules::Rule;

const ASKED: usize = 0;
const ANSWERED: usize = 1;
/// Bytes of the rule.
const LENGTH: usize = 2;
const ON: usize = 3;
const TEXT: usize = 4;
const TEXT_BYTES: usize = (64 - TEXT) * 8;

/// Time that a monitor is given to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A rule that was asked for.
pub(crate) fn heard(journal: &'static Journal) -> Option<Rule> {
    let word = |number| journal.user_word(number);
    // Acquire: the rule is there.
    if word(ASKED).load(Ordering::Acquire) == word(ANSWERED).load(Ordering::Relaxed) {
        return None;
    }
    let length = word(LENGTH).load(Ordering::Relaxed) as usize;
    let bytes: Vec<u8> = (0..length.min(TEXT_BYTES))
        .map(|at| word(TEXT + at / 8).load(Ordering::Relaxed).to_ne_bytes()[at % 8])
        .collect();
    Some(Rule::of(&String::from_utf8_lossy(&bytes)))
}

/// Answers that the rule holds, and how many probes are on.
pub(crate) fn answer(journal: &'static Journal, on: usize) {
    let word = |number| journal.user_word(number);
    word(ON).store(on as u64, Ordering::Relaxed);
    let asked = word(ASKED).load(Ordering::Relaxed);
    word(ANSWERED).store(asked, Ordering::Release);
}

/// A monitor of another process.
pub struct Outside {
    words: UserWords,
    /// Locked while commands are given.
    file: File,
    /// The journal.
    pub journal: PathBuf,
}

/// Reason for which a monitor of another process carries out nothing.
#[derive(Debug)]
pub enum Unheard {
    /// The process has no monitor that records into a file.
    None(u32),
    /// It cannot be looked at.
    Hidden(u32, io::Error),
    /// Another command is under way.
    Busy,
    /// The rule is too long.
    Long,
    /// There was no answer.
    Silent,
}

impl Outside {
    /// Finds the monitor of a process.
    ///
    /// # Errors
    /// It has none, or may not be looked at.
    pub fn of_process(process: u32) -> Result<Outside, Unheard> {
        let hidden = |error| Unheard::Hidden(process, error);
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).map_err(hidden)?;
        let paths = maps
            .lines()
            .filter_map(|line| line.split_once('/'))
            .map(|(_, path)| PathBuf::from(format!("/{path}")))
            .filter(|path| path.extension().is_some_and(|end| end == NAME));
        for journal in paths {
            let file = File::options().read(true).write(true).open(&journal);
            let file = file.map_err(hidden)?;
            let words = UserWords::of(&file);
            // A process that watches others has their journals mapped.
            if let Some(words) = words.filter(|words| words.process() == process) {
                return Ok(Outside {
                    words,
                    file,
                    journal,
                });
            }
        }
        Err(Unheard::None(process))
    }

    /// The file into which the process records.
    ///
    /// # Errors
    /// The journal does not say it.
    pub fn file(&self) -> Result<PathBuf, Unheard> {
        let file = File::open(&self.journal);
        let remains = file.and_then(|file| Remains::of_file(&file));
        let path = remains.ok().and_then(|remains| remains.file);
        path.ok_or(Unheard::None(self.words.process()))
    }

    /// Has a rule carried out. Returns how many probes are on then, of those passed so far.
    ///
    /// # Errors
    /// Another command is under way, or the monitor does not answer.
    pub fn rule(&self, rule: &str) -> Result<usize, Unheard> {
        let word = |number: usize| -> &AtomicU64 { self.words.word(number) };
        if rule.is_empty() || rule.len() > TEXT_BYTES {
            return Err(Unheard::Long);
        }
        if !file_lock::try_lock(&self.file).unwrap_or(false) {
            return Err(Unheard::Busy);
        }
        // Another process may have given up before it was answered.
        self.wait_for_answer()?;
        for (nth, bytes) in rule.as_bytes().chunks(8).enumerate() {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word(TEXT + nth).store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
        word(LENGTH).store(rule.len() as u64, Ordering::Relaxed);
        let answered = word(ANSWERED).load(Ordering::Relaxed);
        word(ASKED).store(answered + 1, Ordering::Release);
        self.wait_for_answer()?;
        Ok(word(ON).load(Ordering::Relaxed) as usize)
    }

    fn wait_for_answer(&self) -> Result<(), Unheard> {
        let begin = Instant::now();
        let word = |number| self.words.word(number).load(Ordering::Acquire);
        while word(ANSWERED) != word(ASKED) {
            if begin.elapsed() > PATIENCE {
                return Err(Unheard::Silent);
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl fmt::Display for Unheard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unheard::None(process) => write!(
                f,
                "process {process} has no monitor that records into a file; start it with one"
            ),
            Unheard::Hidden(process, error) => {
                write!(
                    f,
                    "cannot look at process {process}: {}; is it yours?",
                    cause(error)
                )
            }
            Unheard::Busy => f.write_str("another command is under way; try again"),
            Unheard::Long => write!(f, "a pattern has 1 to {TEXT_BYTES} bytes"),
            Unheard::Silent => {
                f.write_str("the monitor did not answer within 5 seconds; is the process stopped?")
            }
        }
    }
}

impl std::error::Error for Unheard {}
