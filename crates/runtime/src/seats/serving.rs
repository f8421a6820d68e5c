//! What is known of a server: how often it is called, and which way of calling it costs less.

use hearth_sync::auto::{Controller, Window};
use hearth_sys::clock;

/// After so many calls at one worker it is asked whether all callers are there: to stay takes some
/// microseconds, a hundredth of what so many calls do.
const CALLS: u32 = 512;
/// What is known of a server; its own while it is awake.
#[derive(Default)]
pub(crate) struct Serving {
    /// Where it was called last, and how often in a row. The address is only compared.
    at: usize,
    calls: u32,
    /// With [`crate::ground::options::Servers::Auto`].
    pub(crate) watch: Option<Box<Watch>>,
}

/// Calls are counted, and the clock is read once for so many.
const COUNTED: u32 = 32;
/// A window that lasts longer than it is to by this factor has a pause in it, and tells nothing.
const PAUSE: u64 = 4;

/// The controller's modes. The first needs less besides: no core of the server's own.
const MODES: [&str; 2] = ["synchronously", "by message"];
pub(crate) const SYNCHRONOUS: usize = 0;
pub(crate) const BY_MESSAGE: usize = 1;

/// A server whose ways are compared. Ticks are ns.
pub(crate) struct Watch {
    controller: Controller,
    /// Where it goes back to when it is to be called by message: 1 + that worker's number.
    home: u16,
    callers: u32,
    /// Calls of the window so far, since when, and how long it is to be. Since 0: the next call
    /// begins one.
    calls: u32,
    since: u64,
    wanted: u64,
}

/// What is to change.
pub(crate) struct Change {
    pub(crate) mode: usize,
    pub(crate) home: u16,
    /// Why, if it is for good.
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

    /// One more call.
    #[inline]
    pub(crate) fn count(&mut self) -> Option<Change> {
        self.calls += 1;
        match self.calls.is_multiple_of(COUNTED) {
            true => self.look(),
            false => None,
        }
    }

    /// Looks at the clock.
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
    /// One more call; true after some at the same worker.
    pub(crate) fn count(&mut self, home: usize) -> bool {
        if self.at != home {
            self.at = home;
            self.calls = 0;
        }
        self.calls += 1;
        self.calls.is_multiple_of(CALLS)
    }
}
