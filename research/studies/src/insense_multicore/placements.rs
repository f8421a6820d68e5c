//! All placements that are compared. Another one is another line.

use super::layouts::Hand;
use super::workloads::Workload;

/// The means by which a placement is brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The runtime's policy of this name.
    Policy(&'static str),
    /// A plan made first by `hearth run --place` of this name.
    Plan(&'static str),
    /// The program itself, which binds each component to a core.
    Hand(Hand),
}

/// A placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Its name in tables.
    pub id: &'static str,
    /// Its meaning.
    pub title: &'static str,
    /// The means by which it comes about.
    pub how: How,
    /// It is the same as the operating system's where each component has a thread.
    pub for_workers_only: bool,
}

const fn of(id: &'static str, title: &'static str, how: How) -> Placement {
    Placement {
        id,
        title,
        how,
        for_workers_only: false,
    }
}

/// All of them.
pub const PLACEMENTS: [Placement; 8] = [
    of(
        "os",
        "the system's own; the source's dynamic one",
        How::Policy("os"),
    ),
    of(
        "spread",
        "round robin in the order of creation",
        How::Policy("spread"),
    ),
    of("single", "all on one core", How::Policy("single")),
    of(
        "random",
        "anywhere, by the seed; another one in each run",
        How::Policy("random"),
    ),
    Placement {
        for_workers_only: true,
        ..of(
            "steal",
            "idle workers take what computes",
            How::Policy("steal"),
        )
    },
    of("talk", "by who talks to whom", How::Plan("talk")),
    of(
        "together",
        "by hand: those that talk on one core",
        How::Hand(Hand::Together),
    ),
    of(
        "apart",
        "by hand: those that talk on different cores",
        How::Hand(Hand::Apart),
    ),
];

impl Placement {
    /// The placement of that name.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Placement> {
        PLACEMENTS.iter().find(|placement| placement.id == id)
    }

    /// True if it makes sense for a workload. Layouts by hand are for those that communicate.
    #[must_use]
    pub fn suits(&self, workload: Workload) -> bool {
        workload.communicates() || self.hand().is_none()
    }

    /// True if the C program has this placement.
    #[must_use]
    pub fn is_in_c(&self) -> bool {
        matches!(self.how, How::Hand(_)) || matches!(self.id, "os" | "spread" | "single")
    }

    /// The layout by hand, if it is one.
    #[must_use]
    pub fn hand(&self) -> Option<Hand> {
        match self.how {
            How::Hand(hand) => Some(hand),
            _ => None,
        }
    }
}
