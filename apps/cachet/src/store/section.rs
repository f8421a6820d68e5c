//! How the allocation section is entered: by lock, by message, or by whichever is better.

use hearth_sync::{Drain, LockKind, Mode, NoProprietor, Owned, Queue, Statistics, Wait};
use hearth_sys::clock::Clock as Ticks;

use super::allocation::Allocation;

/// How the section runs.
#[derive(Clone, Debug)]
pub struct Running {
    /// Synchronously, asynchronously, or as measured.
    pub mode: Mode,
    /// Which lock protects it.
    pub lock: LockKind,
    /// How requests reach its proprietor.
    pub queue: Queue,
    /// How many of them the proprietor takes at once.
    pub drain: Drain,
    /// How callers wait for answers.
    pub wait: Wait,
    /// The core that the proprietor stays on.
    pub core: Option<usize>,
}

impl Default for Running {
    fn default() -> Running {
        Running {
            mode: Mode::default(),
            lock: LockKind::default(),
            queue: Queue::default(),
            drain: Drain::default(),
            wait: Wait::spin_then_park(),
            core: None,
        }
    }
}

/// The data of the section, and what is measured of it.
#[derive(Debug)]
struct Timed {
    allocation: Allocation,
    ticks: Ticks,
    measured: Measured,
}

/// What was measured of the section.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// How often it was entered.
    pub entries: u64,
    /// For how long, in ticks of the time stamp counter, without what it took to get in and out.
    pub ticks: u64,
}

/// The section.
#[derive(Debug)]
pub struct Section(Owned<Timed>);

impl Section {
    /// A section over its data.
    ///
    /// # Errors
    /// There is no thread for its proprietor.
    pub fn new(
        allocation: Allocation,
        ticks: Ticks,
        running: &Running,
    ) -> Result<Section, NoProprietor> {
        let mut builder = Owned::builder()
            .name("cachet-memory")
            .mode(running.mode)
            .lock(running.lock)
            .queue(running.queue)
            .drain(running.drain)
            .wait(running.wait);
        if let Some(core) = running.core {
            builder = builder.proprietor_core(core);
        }
        let measured = Measured::default();
        builder
            .build(Timed {
                allocation,
                ticks,
                measured,
            })
            .map(Section)
    }

    /// Runs something in the section. Not to be called by who has a part of the store locked.
    #[inline]
    pub fn enter<R: Send>(&self, run: impl FnOnce(&mut Allocation) -> R + Send) -> R {
        self.0.call(|timed| {
            let begin = timed.ticks.ticks();
            let result = run(&mut timed.allocation);
            timed.measured.ticks += timed.ticks.ticks().saturating_sub(begin);
            timed.measured.entries += 1;
            result
        })
    }

    /// What was measured so far, and what the section itself has counted. Enters it.
    #[must_use]
    pub fn measured(&self) -> (Measured, Statistics) {
        (self.0.call(|timed| timed.measured), self.0.statistics())
    }

    /// How it runs now, and why, in words.
    #[must_use]
    pub fn explain(&self) -> String {
        self.0.explain()
    }
}
