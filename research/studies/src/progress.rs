//! Progress of a study, and the question whether it is to continue.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::ending::End;

/// Progress of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The part that is done, 0 to 1, by the number of runs.
    pub fraction: f64,
    /// The step that is being measured, in words.
    pub what: String,
}

/// The runs of a study, reported to the caller, who waits for it and may end it.
pub(crate) struct Watched<'a> {
    pub(crate) cancel: &'a AtomicBool,
    progress: &'a mut dyn FnMut(Progress),
    done: u32,
    planned: u32,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(
        cancel: &'a AtomicBool,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Watched<'a> {
        Watched {
            cancel,
            progress,
            done: 0,
            planned: 0,
        }
    }

    /// Sets the number of runs, those that are there already among them.
    pub(crate) fn plan(&mut self, runs: u32) {
        self.planned = runs;
    }

    /// Counts `runs` as done that need not be made.
    pub(crate) fn skip(&mut self, runs: u32) {
        self.done += runs;
    }

    /// A run begins, unless the study is to end.
    pub(crate) fn tell(&mut self, what: impl FnOnce() -> String) -> Result<(), End> {
        self.go_on()?;
        (self.progress)(Progress {
            fraction: f64::from(self.done) / f64::from(self.planned.max(1)),
            what: what(),
        });
        self.done += 1;
        Ok(())
    }

    /// Checks whether the study is to continue.
    pub(crate) fn go_on(&self) -> Result<(), End> {
        // Relaxed: says only that it is to stop.
        match self.cancel.load(Ordering::Relaxed) {
            true => Err(End::Cancelled),
            false => Ok(()),
        }
    }
}
