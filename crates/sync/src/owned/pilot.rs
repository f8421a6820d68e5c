//! `Mode::Auto`: connects a section with the controller.

use std::sync::OnceLock;

use hearth_sys::clock::Clock;

use super::shared::{AUTO, Shared, WAY};
use super::tally::Tally;
use crate::Way;
use crate::auto::{Controller, Step, Window};
use crate::waiting::line_ns;
use hearth_atomics::Ordering;

/// Names of the controller's modes, by the numbers of [`Way`].
const NAMES: [&str; 3] = ["under the lock", "combining", "by message"];

/// A controller at work. For the holder of the lock.
pub(super) struct Pilot {
    controller: Controller,
    /// Counts at the beginning of the window.
    before: Tally,
    began: u64,
    /// End of the window, at the first timed call after it.
    ends: u64,
}

impl Pilot {
    pub(super) fn new(tally: &mut Tally, now: u64) -> Pilot {
        let mut controller = Controller::new(NAMES, ticks_per_second());
        if let Some(ns) = line_ns() {
            controller = controller.line_takes(ns / 1e9);
        }
        let step = controller.step();
        Pilot {
            controller,
            before: tally.begun(),
            began: now,
            ends: now.saturating_add(step.ticks),
        }
    }

    /// Checks, at the end of a timed call, whether the window has ended; the way to take if it has.
    #[inline]
    pub(super) fn look(&mut self, tally: &mut Tally, now: u64) -> Option<Way> {
        if now < self.ends {
            return None;
        }
        Some(self.observe(tally, now))
    }

    #[cold]
    fn observe(&mut self, tally: &mut Tally, now: u64) -> Way {
        let window = tally.since(&self.before, now.saturating_sub(self.began));
        let Step { mode, ticks } = self.controller.observe(&window);
        self.before = tally.begun();
        self.began = now;
        self.ends = now.saturating_add(ticks);
        Way::of_bits(mode as u32)
    }

    pub(super) fn explain(&self) -> String {
        self.controller.explain()
    }
}

impl Tally {
    /// Counts at the beginning of a window; callers are counted again.
    fn begun(&mut self) -> Tally {
        self.callers_before |= self.callers;
        self.callers = 0;
        *self
    }

    fn since(&self, before: &Tally, ticks: u64) -> Window {
        Window {
            ticks,
            calls: self.calls - before.calls,
            samples: self.samples - before.samples,
            section_ticks: self.section_ticks - before.section_ticks,
            contended: self.contended - before.contended,
            wait_ticks: self.wait_ticks - before.wait_ticks,
            callers: self.callers.count_ones(),
        }
    }
}

/// Rate of the clock that times sections; found once, in a few milliseconds.
fn ticks_per_second() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| 1e9 / Clock::calibrate(&hearth_sys::Linux, 4).ns_per_tick())
}

/// Changes to the chosen way, unless a mode was set meanwhile.
pub(super) fn steer<T>(shared: &Shared<T>, way: Way) {
    let change = |control| {
        (control & AUTO != 0 && control & WAY != way as u32)
            .then(|| super::shared::with_way(control, way))
    };
    let changed = shared
        .front
        .control
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    if changed.is_ok() {
        shared.wake_proprietor();
    }
}
