//! Reasons why a study could not be run. Each message says what to do next.

use std::fmt;
use std::path::PathBuf;

use hearth_sys::Refused;

use crate::STUDIES;

/// Reason why a study could not be run.
#[derive(Debug)]
pub enum StudyError {
    /// No study has this name.
    UnknownStudy {
        /// The name asked for.
        given: String,
    },
    /// No experiment of the study has this name.
    UnknownExperiment {
        /// The name asked for.
        given: String,
        /// The names that exist.
        known: Vec<&'static str>,
    },
    /// No object has this name.
    NotThere {
        /// The kind of thing asked for, such as `allocator`.
        what: &'static str,
        /// Its name.
        given: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// A program could not be started.
    Program {
        /// The program.
        program: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// A program could not be built.
    NotBuilt {
        /// The program.
        what: String,
        /// The builder.
        with: PathBuf,
        /// The builder's message.
        said: String,
    },
    /// The study has no such option.
    NotOfThisStudy {
        /// The study.
        study: &'static str,
        /// The option, as it is typed.
        option: &'static str,
    },
    /// The source has no such defect.
    UnknownDefect {
        /// The name asked for.
        given: String,
        /// The names that exist.
        known: Vec<&'static str>,
    },
    /// A count that makes no sense.
    Count {
        /// The quantity that is counted, such as `repeats`.
        what: &'static str,
        /// The count asked for.
        given: u32,
        /// The largest that is taken; the smallest is 1.
        largest: u32,
    },
    /// The source's listing has no such defect.
    UnknownListingDefect {
        /// The name asked for.
        given: String,
        /// The names that exist.
        known: Vec<&'static str>,
    },
    /// A number of threads that cannot be run with.
    Threads {
        /// The number asked for.
        given: usize,
        /// The largest that is taken; the smallest is 2.
        largest: usize,
    },
    /// A run of a length that makes no sense.
    Duration {
        /// The length asked for, seconds.
        given: f64,
    },
    /// A benchmark could not be run.
    Benchmark {
        /// The reason, with what to change.
        why: String,
    },
    /// The folder holds an earlier run, and the caller did not ask to continue it.
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds a run of another kind or machine, which cannot be continued.
    OtherRun {
        /// The folder.
        folder: PathBuf,
        /// The difference, such as `the sizes`.
        differs: &'static str,
    },
    /// A file of an earlier run cannot be understood.
    Damaged {
        /// The file.
        file: PathBuf,
        /// The fault in it.
        why: String,
    },
    /// A file could not be read or written.
    File {
        /// The intended action, as a verb.
        action: &'static str,
        /// The file or folder.
        file: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// A thread could not be started.
    Thread {
        /// The reason.
        error: std::io::Error,
    },
    /// A server of a study does not serve.
    Server {
        /// The reason.
        why: String,
    },
    /// Threads cannot be kept to their cores.
    Cores {
        /// The reason.
        error: std::io::Error,
    },
    /// The system would not.
    Refused(Refused),
    /// The system does not say what machine this is.
    Machine {
        /// The reason.
        why: String,
    },
}

impl StudyError {
    /// Refuses a count that is given and is not from 1 to `largest`.
    pub(crate) fn check(
        what: &'static str,
        given: Option<u32>,
        largest: u32,
    ) -> Result<(), StudyError> {
        match given {
            Some(given) if given == 0 || given > largest => Err(StudyError::Count {
                what,
                given,
                largest,
            }),
            _ => Ok(()),
        }
    }

    /// The machine is not as it must be.
    pub(crate) fn machine(why: impl ToString) -> StudyError {
        StudyError::Machine {
            why: why.to_string(),
        }
    }
}

impl From<Refused> for StudyError {
    fn from(refused: Refused) -> Self {
        StudyError::Refused(refused)
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StudyError::UnknownStudy { given } => {
                let known: Vec<&str> = STUDIES.iter().map(|study| study.name).collect();
                write!(
                    f,
                    "there is no study {given:?}; there is {}",
                    known.join(", ")
                )
            }
            StudyError::UnknownExperiment { given, known } => write!(
                f,
                "there is no experiment {given:?}; choose from {}",
                known.join(", ")
            ),
            StudyError::NotThere { what, given, known } => write!(
                f,
                "there is no {what} {given:?} here; choose from {}, or install it",
                known.join(", ")
            ),
            StudyError::Program { program, error } => write!(
                f,
                "cannot start {}: {}; give the name of a program",
                program.display(),
                plain(error)
            ),
            StudyError::NotBuilt { what, with, said } => {
                let is_error = |line: &&str| line.contains("error") || line.starts_with("hearth:");
                let first = said.lines().find(is_error).unwrap_or("it does not say why");
                let first = first.strip_prefix("hearth: ").unwrap_or(first);
                write!(f, "{} does not build {what}: {first}", with.display())
            }
            StudyError::NotOfThisStudy { study, option } => write!(
                f,
                "the study {study} has no {option}; `hearth study run --help` says whose it is"
            ),
            StudyError::UnknownDefect { given, known } => write!(
                f,
                "there is no defect {given:?}; choose from {}",
                known.join(", ")
            ),
            StudyError::Count {
                what,
                given,
                largest,
            } => write!(f, "{given} {what} cannot be made; ask for 1 to {largest}"),
            StudyError::UnknownListingDefect { given, known } => write!(
                f,
                "the listing has no defect {given:?}; choose from {}",
                known.join(", ")
            ),
            StudyError::Threads { given, largest } => write!(
                f,
                "cannot run with {given} threads, of which one serves; ask for 2 to {largest}"
            ),
            StudyError::Duration { given } => {
                write!(f, "a run cannot take {given} seconds; ask for 0.01 to 3600")
            }
            StudyError::Benchmark { why } => f.write_str(why),
            StudyError::Occupied { folder } => write!(
                f,
                "{} holds an earlier run; add --resume to go on with it, or choose another folder \
                 with --out",
                folder.display()
            ),
            StudyError::OtherRun { folder, differs } => write!(
                f,
                "{} holds a run that differs in {differs}; choose another folder with --out, or \
                 ask for the same",
                folder.display()
            ),
            StudyError::Damaged { file, why } => write!(
                f,
                "{} cannot be gone on with: {why}; choose another folder with --out",
                file.display()
            ),
            StudyError::File {
                action,
                file,
                error,
            } => write!(
                f,
                "cannot {action} {}: {}; choose another folder with --out",
                file.display(),
                plain(error)
            ),
            StudyError::Thread { error } => write!(
                f,
                "cannot start a thread: {}; raise the limit `ulimit -u`",
                plain(error)
            ),
            StudyError::Server { why } => write!(f, "the server of the study ended: {why}"),
            StudyError::Cores { error } => write!(
                f,
                "cannot keep threads to their cores: {}; `taskset -p $$` says which are allowed",
                plain(error)
            ),
            StudyError::Refused(refused) => refused.fmt(f),
            StudyError::Machine { why } => write!(
                f,
                "the system does not say what machine this is: {why}; mount /proc and /sys"
            ),
        }
    }
}

/// The system's words, without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    text.to_lowercase()
}

impl std::error::Error for StudyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StudyError::File { error, .. }
            | StudyError::Program { error, .. }
            | StudyError::Cores { error }
            | StudyError::Thread { error } => Some(error),
            StudyError::Refused(refused) => Some(refused),
            _ => None,
        }
    }
}
