//! The references that a run makes to its data, in the order of a run in which each loop has its
//! turn.

use std::sync::atomic::AtomicU64;

use hearth_sync::Mode;

use super::config::{Config, ConfigError};
use super::walk::{Lines, Random, WORDS};

/// A reference to a line of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The thread that makes it: loops from 0 on; by message the server comes after them.
    pub thread: u32,
    /// True in the section, false in the loop's own data.
    pub in_section: bool,
    /// The line, by its place in the data of all.
    pub line: u64,
    /// True if it is modified.
    pub write: bool,
}

/// Reports the references of `iterations` iterations of each loop: a loop walks its own data, then
/// through the section; then the next loop does. By message it is the server that goes through the
/// section.
///
/// # Errors
/// The configuration asks for what cannot be.
pub fn trace(
    config: &Config,
    iterations: u32,
    mut tell: impl FnMut(Reference),
) -> Result<(), ConfigError> {
    config.check()?;
    let mut random = Random(config.seed);
    let words = |lines: usize| -> Vec<AtomicU64> {
        (0..lines * WORDS).map(|_| AtomicU64::new(0)).collect()
    };
    let section = words(config.section_lines);
    let section = Lines::shuffled(&section, &mut random).order();
    let own = words(config.local_lines);
    let locals: Vec<Vec<usize>> = (0..config.loops())
        .map(|_| Lines::shuffled(&own, &mut random).order())
        .collect();
    for _ in 0..iterations {
        for (thread, local) in (0..).zip(&locals) {
            let begin = config.section_lines + thread as usize * config.local_lines;
            for &line in local {
                tell(Reference {
                    thread,
                    in_section: false,
                    line: (begin + line) as u64,
                    write: false,
                });
            }
            let server = match config.mode {
                Mode::Message => config.loops() as u32,
                _ => thread,
            };
            for (at, &line) in section.iter().enumerate() {
                tell(Reference {
                    thread: server,
                    in_section: true,
                    line: line as u64,
                    write: is_modified(at, config),
                });
            }
        }
    }
    Ok(())
}

/// True for the lines that the walk modifies: evenly spread over its moves.
fn is_modified(at: usize, config: &Config) -> bool {
    let (modified, lines) = (config.modified_lines, config.section_lines);
    (at + 1) * modified / lines > at * modified / lines
}
