//! The sides of a comparison, and how each is started.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use hearth_testing::toolchain::Workshop;

use crate::peers;

/// A side of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// A program below `research/benches/runtime`.
    Hearth(&'static str),
    /// The row with this name in `research/benches/peers/c`.
    C(&'static str),
    /// `research/benches/peers/rust`, with this library.
    Rust(&'static str),
    Go,
    /// Each goroutine on a thread of its own.
    GoLocked,
    Haskell,
    Erlang,
}

impl Who {
    pub fn label(self) -> String {
        let label = match self {
            Who::Hearth(program) => return format!("Hearth, {program}"),
            Who::C("memcpy") => "C, memcpy",
            Who::C("line") => "C, a bare cache line",
            Who::C("burn") => "two processes in C",
            Who::C(_) => "C, futex and spinning",
            Who::Rust("kanal") => "kanal on tokio",
            Who::Rust("kanal-2") => "kanal on tokio, 2 threads",
            Who::Rust("kanal-threads") => "kanal, threads",
            Who::Rust("tokio") => "tokio, mpsc(1)",
            Who::Rust("tokio-2") => "tokio, 2 threads",
            Who::Rust("flume") => "flume on tokio",
            Who::Rust("flume-selector") => "flume Selector, threads",
            Who::Rust("crossbeam") => "crossbeam, threads",
            Who::Rust(library) => library,
            Who::Go => "Go",
            Who::GoLocked => "Go, locked threads",
            Who::Haskell => "GHC, MVars",
            Who::Erlang => "Erlang",
        };
        label.to_owned()
    }
}

/// Parameters of one run.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The peers' name of the row.
    pub row: &'a str,
    pub rounds: u32,
    /// The cores that the programs are bound to; as many workers.
    pub cores: &'a [usize],
}

/// The programs of Hearth's sides, built as `hearth build` does.
#[derive(Debug, Default)]
pub struct Programs(HashMap<&'static str, (PathBuf, Workshop)>);

impl Programs {
    /// Builds the programs that are not there yet.
    pub fn add(&mut self, program: &'static str) -> Result<(), String> {
        self.add_built(program, peers::build_insense)
    }

    /// Builds a program that is not there yet in another way: by its stem, into a folder.
    pub fn add_built(
        &mut self,
        program: &'static str,
        build: impl FnOnce(&str, &Path) -> Result<PathBuf, String>,
    ) -> Result<(), String> {
        if !self.0.contains_key(program) {
            let workshop = Workshop::new(program)?;
            let built = build(&format!("runtime/{program}"), workshop.path())?;
            self.0.insert(program, (built, workshop));
        }
        Ok(())
    }

    /// A side's command and its input. An error says what is missing and what to do.
    pub fn command(&self, who: Who, setting: &Setting<'_>) -> Result<(Command, String), String> {
        let words = [setting.row.to_owned(), setting.rounds.to_string()];
        let tool = |name: &str| -> Result<Command, String> {
            let mut command = Command::new(installed(name)?);
            command.args(&words);
            Ok(command)
        };
        let workers = setting.cores.len().max(1).to_string();
        let mut command = match who {
            Who::Hearth(program) => {
                let (built, _) = self
                    .0
                    .get(program)
                    .ok_or(format!("{program} is not built"))?;
                let mut command = Command::new(built);
                command
                    .env("HEARTH_CARRIER", "workers")
                    .env("HEARTH_WORKERS", &workers)
                    // Components that do not say where they run are dealt out over the workers.
                    .env("HEARTH_PLACE", "spread");
                return Ok((command, insense_input(setting)));
            }
            Who::C(row) => {
                let mut command = Command::new(installed("c-peers")?);
                command.args([row, &words[1]]);
                command
            }
            Who::Rust(library) => {
                let mut command = Command::new(installed("rust-peers")?);
                command.arg(library).args(&words);
                command
            }
            Who::Go => tool("go-peers")?,
            Who::GoLocked => {
                let mut command = tool("go-peers")?;
                command.arg("locked");
                command
            }
            Who::Haskell => tool("haskell-peers")?,
            Who::Erlang => {
                let compiled = installed("peers.beam")?;
                let path = std::env::var_os("PATH").unwrap_or_default();
                if !std::env::split_paths(&path).any(|folder| folder.join("erl").is_file()) {
                    return Err("there is no erl; install erlang-base".into());
                }
                let mut command = Command::new("erl");
                // As many schedulers as cores, room for as many processes as a row makes.
                command.args([
                    "+S", &workers, "+P", "2000000", "-noshell", "-noinput", "-pa",
                ]);
                command.arg(compiled.parent().unwrap_or(Path::new(".")));
                command.args(["-run", "peers", "main"]).args(&words);
                command
            }
        };
        command.env("GOMAXPROCS", workers);
        Ok((command, String::new()))
    }
}

/// The rounds, then a core for each half of what is spread over cores.
fn insense_input(setting: &Setting<'_>) -> String {
    let first = setting.cores.first().copied().unwrap_or(0);
    let last = setting.cores.last().copied().unwrap_or(0);
    format!("{}\n{first}\n{last}\n", setting.rounds)
}

fn installed(name: &str) -> Result<PathBuf, String> {
    peers::beside(
        &format!("../peers/bin/{name}"),
        "see what benches/install-peers says",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_told_its_cores() {
        let input = |cores| {
            insense_input(&Setting {
                row: "ring",
                rounds: 7,
                cores,
            })
        };
        assert_eq!(input(&[3]), "7\n3\n3\n");
        assert_eq!(input(&[2, 5]), "7\n2\n5\n");
    }
}
