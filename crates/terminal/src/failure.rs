//! The ways a command ends other than well, each with its exit code.

use std::process::ExitCode;

/// The reason why a command ends without success. A message is one line, without the command's
/// name.
#[derive(Debug)]
pub enum Failure {
    /// A negative answer that was printed already: exit code 1.
    Negative,
    /// An unfit command line or input file: exit code 2.
    Input(String),
    /// Something that the machine lacks: exit code 3.
    Environment(String),
    /// A mistake of Hearth's own, with all lines of its page: exit code 4.
    Bug(String),
    /// An interruption by this signal; the line says what became of the work. Exit code 128 plus
    /// the signal's number, as shells have it.
    Interrupted(u8, String),
    /// The end of a program that the command ran, with its code; it has printed the reason itself.
    Ended(u8),
    /// The reader of the output has gone, as in `hearth explain | head`: no failure.
    BrokenPipe,
}

impl Failure {
    pub fn input(message: impl Into<String>) -> Self {
        Failure::Input(message.into())
    }

    pub fn environment(message: impl Into<String>) -> Self {
        Failure::Environment(message.into())
    }

    /// Prints the message and returns the exit code.
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
