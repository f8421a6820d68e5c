//! Calls of a program that runs, as they come.

use std::path::{Path, PathBuf};

use hearth_watch::stream::{Chunk, Log};

use crate::recorded::{Recorded, Unreadable};
use crate::steps::{Step, Threads};

/// Runs of records between two looks at new names.
const AT_ONCE: usize = 64;

/// A file that a program writes, read on and on. The program is not involved.
pub struct Following {
    path: PathBuf,
    log: Log,
    recorded: Recorded,
    threads: Threads,
    is_over: bool,
}

impl Following {
    /// Begins with the first call of a file.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub fn open(path: &Path) -> Result<Following, Unreadable> {
        let log = Log::follow(path).map_err(|why| Unreadable::of(path, why))?;
        Ok(Following {
            path: path.to_owned(),
            recorded: Recorded::of(path, &log),
            log,
            threads: Threads::default(),
            is_over: false,
        })
    }

    /// Names, clocks and accounts, as far as they were read.
    #[must_use]
    pub fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// Visits the steps that are new, those in the journal included.
    pub fn go_on(&mut self, mut visit: impl FnMut(&Recorded, Step<'_>)) {
        self.log.catch_up();
        loop {
            let next = |_| self.log.next_chunk();
            let chunks: Vec<(u64, Chunk)> = (0..AT_ONCE).map_while(next).collect();
            self.recorded = Recorded::of(&self.path, &self.log);
            let recorded = &self.recorded;
            for (missing, chunk) in &chunks {
                let mut visit = |step: Step<'_>| visit(recorded, step);
                self.threads.chunk(recorded, *missing, chunk, &mut visit);
            }
            if chunks.len() < AT_ONCE {
                break;
            }
        }
    }

    /// Ends calls that are open, and tells of records missing at the end: when the program has
    /// ended.
    pub fn end(&mut self, mut visit: impl FnMut(&Recorded, Step<'_>)) {
        if !std::mem::replace(&mut self.is_over, true) {
            let recorded = &self.recorded;
            let mut visit = |step: Step<'_>| visit(recorded, step);
            self.threads.end(recorded, &mut visit);
        }
    }
}
