//! The ways a command ends other than well, each with its exit code.

use std::process::ExitCode;

/// Why a command ends without success. The message is one line, without the program's name.
#[derive(Debug)]
pub enum Failure {
    /// The answer is no, and what there is to say was said already: exit code 1.
    Negative,
    /// The command line or an input file is unfit: exit code 2.
    Input(String),
    /// The machine lacks something: exit code 3.
    Environment(String),
    /// A mistake of our own, with all the lines of its page: exit code 4.
    Bug(String),
    /// Somebody interrupted it with this signal; the line says what became of the work. Exit code
    /// 128 and the signal's number, as shells have it.
    Interrupted(u8, String),
    /// A program that was run for somebody has ended with this code, and has said why itself.
    Ended(u8),
    /// Nobody reads our output any more, as in `hearth explain | head`. That is fine.
    BrokenPipe,
}

impl Failure {
    pub fn input(message: impl Into<String>) -> Self {
        Failure::Input(message.into())
    }

    pub fn environment(message: impl Into<String>) -> Self {
        Failure::Environment(message.into())
    }

    /// Says what is to be said, and gives the exit code.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::Negative => ExitCode::from(1),
            Failure::Input(message) => {
                eprintln!("hearth: {message}");
                ExitCode::from(2)
            }
            Failure::Environment(message) => {
                eprintln!("hearth: {message}");
                ExitCode::from(3)
            }
            Failure::Bug(page) => {
                eprint!("{page}");
                ExitCode::from(4)
            }
            Failure::Interrupted(signal, message) => {
                eprintln!("hearth: {message}");
                ExitCode::from(128 + signal)
            }
            Failure::Ended(code) => ExitCode::from(code),
            Failure::BrokenPipe => ExitCode::SUCCESS,
        }
    }
}

/// An I/O error as part of a line: without the operating system's number, lower case.
pub fn cause(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::StorageFull => "the disk is full".into(),
        ErrorKind::QuotaExceeded => "the disk quota is used up".into(),
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        ErrorKind::IsADirectory => "it is a directory".into(),
        ErrorKind::NotADirectory => "a part of the path is not a directory".into(),
        ErrorKind::InvalidFilename => "the name is too long".into(),
        _ => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or(&text);
            let mut letters = text.chars();
            letters
                .next()
                .map(|first| first.to_lowercase().chain(letters).collect())
                .unwrap_or_default()
        }
    }
}
