//! Entry to the allocation section: by lock, by message, or by whichever is better.

use hearth_sync::{Drain, LockKind, Mode, NoProprietor, Owned, Queue, Statistics, Wait};
use hearth_sys::clock::Clock as Ticks;

use super::allocation::Allocation;

/// Options of the section.
#[derive(Clone, Debug)]
pub struct Running {
    /// Lock, message, or as measured.
    pub mode: Mode,
    /// Kind of lock.
    pub lock: LockKind,
    /// Queue to its proprietor.
    pub queue: Queue,
    /// Number of requests that the proprietor takes at once.
    pub drain: Drain,
    /// Way in which callers wait for answers.
    pub wait: Wait,
    /// Core of the proprietor.
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

/// Data of the section, and its measurements.
#[derive(Debug)]
struct Timed {
    allocation: Allocation,
    ticks: Ticks,
    measured: Measured,
}

/// Measurements of the section.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// Number of entries.
    pub entries: u64,
    /// Time inside, in ticks of the time stamp counter, without entering and leaving.
    pub ticks: u64,
}

/// The section.
#[derive(Debug)]
pub struct Section(Owned<Timed>);

impl Section {
    /// Makes a section over its data.
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

    /// Runs a closure in the section. Not for threads that hold the lock of a stripe.
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

    /// Measurements so far, and the section's own counts. Enters it.
    #[must_use]
    pub fn measured(&self) -> (Measured, Statistics) {
        (self.0.call(|timed| timed.measured), self.0.statistics())
    }

    /// Explains how the section runs now, and why.
    #[must_use]
    pub fn explain(&self) -> String {
        self.0.explain()
    }
}
