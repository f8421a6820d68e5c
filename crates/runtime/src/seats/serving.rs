//! Statistics of a server: how often it is called, and which calling mode costs less.

use hearth_sync::auto::{Controller, Window};
use hearth_sys::clock;

/// Calls at one worker after which the server checks whether all callers are there: staying takes
/// some microseconds, a hundredth of the cost of that many calls.
const CALLS: u32 = 512;
/// Statistics of a server; its own while awake.
#[derive(Default)]
pub(crate) struct Serving {
    /// The worker of the latest call, and calls in a row there. The address is only compared.
    at: usize,
    calls: u32,
    /// With [`crate::ground::options::Servers::Auto`].
    pub(crate) watch: Option<Box<Watch>>,
}

/// Calls between two reads of the clock.
const COUNTED: u32 = 32;
/// Factor over its planned length at which a window must contain a pause, and is discarded.
const PAUSE: u64 = 4;

/// The controller's modes. The first needs less otherwise: no core of the server's own.
const MODES: [&str; 2] = ["synchronously", "by message"];
pub(crate) const SYNCHRONOUS: usize = 0;
pub(crate) const BY_MESSAGE: usize = 1;

/// The comparison of a server's two modes. Ticks are ns.
pub(crate) struct Watch {
    controller: Controller,
    /// Its home for calls by message: 1 + that worker's number.
    home: u16,
    callers: u32,
    /// Calls in the window so far, its start, and its planned length. Start 0: the next call begins
    /// one.
    calls: u32,
    since: u64,
    wanted: u64,
}

/// A change of mode.
pub(crate) struct Change {
    pub(crate) mode: usize,
    pub(crate) home: u16,
    /// The reason, if the change is final.
    pub(crate) why: Option<String>,
}

impl Watch {
    pub(crate) fn new(home: u16, callers: usize) -> Watch {
        let controller = Controller::new(MODES, 1e9).starting_in(BY_MESSAGE);
        Watch {
            wanted: controller.step().ticks,
            controller,
            home,
            callers: callers as u32,
            calls: 0,
            since: 0,
        }
    }

    /// Counts a call.
    #[inline]
    pub(crate) fn count(&mut self) -> Option<Change> {
        self.calls += 1;
        match self.calls.is_multiple_of(COUNTED) {
            true => self.look(),
            false => None,
        }
    }

    /// Reads the clock.
    #[inline(never)]
    fn look(&mut self) -> Option<Change> {
        let now = clock::steady_ns();
        let took = now.saturating_sub(self.since);
        let is_first = self.since == 0;
        if took < self.wanted {
            return None;
        }
        let window = Window {
            ticks: took,
            calls: u64::from(self.calls),
            callers: self.callers,
            ..Window::default()
        };
        self.calls = 0;
        self.since = now;
        if is_first || took > PAUSE * self.wanted {
            return None;
        }
        let (was, home) = (self.controller.step().mode, self.controller.home());
        let next = self.controller.observe(&window);
        self.wanted = next.ticks;
        let why = (self.controller.home() != home).then(|| self.controller.explain());
        (next.mode != was || why.is_some()).then_some(Change {
            mode: next.mode,
            home: self.home,
            why,
        })
    }
}

impl Serving {
    /// Counts a call; true after every [`CALLS`] in a row at the same worker.
    pub(crate) fn count(&mut self, home: usize) -> bool {
        if self.at != home {
            self.at = home;
            self.calls = 0;
        }
        self.calls += 1;
        self.calls.is_multiple_of(CALLS)
    }
}
