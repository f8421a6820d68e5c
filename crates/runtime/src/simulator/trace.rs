//! The events of a simulation, in order, for people to read.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

use crate::abi::{Component, ComponentType, Site, literal};
use crate::seats::exceptions::place_of;
use crate::seats::registry;
use crate::seats::seat::{Identity, seat_of};

/// Number of events kept, the last ones.
const KEPT: usize = 20_000;

/// A component, which may have ended since.
#[derive(Clone, Copy)]
pub(super) struct Who {
    pub(super) id: u64,
    of: *const ComponentType,
    number: u32,
}

// SAFETY: types are static.
unsafe impl Send for Who {}

impl Who {
    /// # Safety
    /// The component is alive.
    pub(super) unsafe fn is(component: *mut Component) -> Who {
        // SAFETY: as the caller promises.
        let identity = unsafe { seat_of(component) }.identity();
        Who {
            id: identity.id,
            // SAFETY: as above.
            of: unsafe { (*component).r#type },
            number: identity.number,
        }
    }

    pub(super) fn will_be(identity: &Identity, of: *const ComponentType) -> Who {
        Who {
            id: identity.id,
            of,
            number: identity.number,
        }
    }

    pub(super) fn name(&self) -> String {
        if self.id == registry::MAIN {
            return "the main sequence".to_owned();
        }
        registry::name(self.of, self.number)
    }
}

/// An operation of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Send,
    Receive,
    Acknowledge,
    Select,
}

impl What {
    fn words(self, site: &str) -> String {
        match self {
            What::Send => format!("sends on {site}"),
            What::Receive => format!("receives from {site}"),
            What::Acknowledge => format!("acknowledges from {site}"),
            What::Select => "selects".to_owned(),
        }
    }
}

/// Outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Waits,
    Raised,
}

#[derive(Clone, Copy)]
pub(super) enum Event {
    Operation(What, Site, Outcome),
    /// A wait that is over, well or not.
    GoesOn(What, Site, Outcome),
    /// `connect`, `disconnect`, `stop`.
    Deed(&'static str, Option<Site>),
    Ends,
    IsMade,
    // Choices that were not plain:
    Paused,
    IsPreferred,
    IsPlaced(usize),
    StandsBy,
    WorkerGoesOn,
    WorkerLooks,
    WorkerSleeps,
    /// A collection begins.
    Collects,
    /// A collection waits while workers do something.
    CollectorStandsBy,
    // From outside:
    Time(Duration),
    Visit,
}

// SAFETY: sites are static.
unsafe impl Send for Event {}

impl Event {
    fn is_choice(&self) -> bool {
        matches!(
            self,
            Event::Paused
                | Event::IsPreferred
                | Event::IsPlaced(_)
                | Event::StandsBy
                | Event::WorkerGoesOn
                | Event::WorkerLooks
                | Event::WorkerSleeps
                | Event::Collects
                | Event::CollectorStandsBy
        )
    }
}

struct Entry {
    worker: usize,
    who: Option<Who>,
    event: Event,
}

/// The last events, and the number dropped before them.
#[derive(Default)]
pub(super) struct Trace {
    entries: VecDeque<Entry>,
    before: u64,
}

impl Trace {
    pub(super) fn add(&mut self, worker: usize, who: Option<Who>, event: Event) {
        if self.entries.len() == KEPT {
            self.entries.pop_front();
            self.before += 1;
        }
        self.entries.push_back(Entry { worker, who, event });
    }

    /// Formats one event a line: `*` for choices, the worker, the event.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if self.before > 0 {
            let _ = writeln!(text, "({} events before these)", self.before);
        }
        for entry in &self.entries {
            let mark = if entry.event.is_choice() { '*' } else { ' ' };
            let _ = writeln!(text, "{mark} worker {}  {}", entry.worker, entry.words());
        }
        text
    }
}

/// Returns the half-channel's name in the program, and the place.
fn of_site(site: &Site) -> (String, String) {
    // SAFETY: sites are static, their texts literals.
    let (text, place) = unsafe { (literal(site.text), place_of(site)) };
    (text.into_owned(), place)
}

impl Entry {
    fn words(&self) -> String {
        let who = self.who.map_or_else(String::new, |who| who.name());
        match &self.event {
            Event::Operation(what, site, outcome) => {
                let (text, place) = of_site(site);
                let came_to = match outcome {
                    Outcome::Done => "",
                    Outcome::Waits => ", and waits",
                    Outcome::Raised => ", and is stopped or fails",
                };
                format!("{who} {} at {place}{came_to}", what.words(&text))
            }
            Event::GoesOn(what, site, outcome) => {
                let (text, place) = of_site(site);
                let came_to = match outcome {
                    Outcome::Raised => "is stopped or fails",
                    _ => "goes on",
                };
                let after = match what {
                    What::Send => format!("send on {text}"),
                    What::Receive => format!("receive from {text}"),
                    What::Acknowledge => format!("acknowledge from {text}"),
                    What::Select => "select".to_owned(),
                };
                format!("{who} {came_to} after its {after} at {place}")
            }
            Event::Deed(words, site) => match site {
                Some(site) => format!("{who} {words} at {}", of_site(site).1),
                None => format!("{who} {words}"),
            },
            Event::Ends => format!("{who} ends"),
            Event::Paused => format!("{who} is set aside here"),
            Event::IsPreferred => format!("{who} goes before others whose turn it is"),
            Event::IsMade => format!("{who} is made"),
            Event::IsPlaced(plain) => format!("{who} is made here instead of on worker {plain}"),
            Event::StandsBy => format!("{who} stands still here while other workers do something"),
            Event::WorkerGoesOn => "goes on, before the one whose turn it is".to_owned(),
            Event::WorkerLooks => "looks at what has arrived".to_owned(),
            Event::WorkerSleeps => "falls asleep".to_owned(),
            Event::Collects => "stands still while a collection begins".to_owned(),
            Event::CollectorStandsBy => "goes on in the middle of a collection".to_owned(),
            Event::Time(time) => format!("has nothing to do until {:.6} s", time.as_secs_f64()),
            Event::Visit => "is brought something from outside".to_owned(),
        }
    }
}
