//! Events that report the placer's decisions to listeners.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::ground::calls::call;
use crate::ground::options::Servers;
use crate::ground::runtime::Part;
use crate::ground::sync::lock_std as lock;

/// Moves that a line names; it counts the others.
const NAMED: usize = 16;

/// A decision about placements while components ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The time since the first component was started.
    pub after: Duration,
    /// The decision.
    pub what: Happened,
}

/// A decision about placements, or a change that calls for one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Happened {
    /// The usable CPUs changed: by `taskset`, by a control group, or because one went offline.
    Cpus {
        /// The CPUs that may not be used any more.
        lost: Vec<usize>,
        /// The CPUs that may be used now and could not be before.
        found: Vec<usize>,
    },
    /// Components were told to move.
    Moves {
        /// The moves with their reasons.
        moves: Vec<Move>,
        /// The number of components that were considered.
        components: usize,
        /// The modelled cost of all of them before, in ns of the busiest CPU and of messages for
        /// each second.
        before_ns: f64,
        /// The modelled cost after the moves.
        after_ns: f64,
    },
    /// With [`Servers::Auto`], a server is called in another way from now on.
    Server {
        /// Its name, as in reports.
        component: String,
        /// [`Servers::Synchronous`] or [`Servers::Asynchronous`].
        way: Servers,
        /// The measurement behind it, in words.
        why: String,
    },
}

/// One component's move.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// The component's name, as in reports.
    pub component: String,
    /// The CPU where it was; none if that is not usable any more, or if it was never placed.
    pub from: Option<usize>,
    /// The CPU where it goes.
    pub to: usize,
    /// The reason for moving there.
    pub why: Why,
}

/// The advantage of a component's new place.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// It talks with components there, most with this one.
    With {
        /// The name of that component.
        peer: String,
        /// The messages between the two in a second, both ways.
        messages: f64,
    },
    /// It talks with no component there, but has more room to compute.
    Room {
        /// The share of a CPU that it takes.
        share: f64,
    },
}

impl fmt::Display for Event {
    /// One line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s: {}", self.after.as_secs_f64(), self.what)
    }
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happened::Cpus { lost, found } => {
                let mut parts = Vec::new();
                if !lost.is_empty() {
                    parts.push(format!("may not be used any more: {}", list(lost)));
                }
                if !found.is_empty() {
                    parts.push(format!("may be used: {}", list(found)));
                }
                write!(f, "cores that {}", parts.join("; that "))
            }
            Happened::Moves {
                moves,
                components,
                before_ns,
                after_ns,
            } => {
                let mut told: Vec<String> = moves.iter().take(NAMED).map(Move::to_string).collect();
                if moves.len() > NAMED {
                    told.push(format!("and {} more", moves.len() - NAMED));
                }
                let less = 100.0 * (1.0 - after_ns / before_ns.max(f64::MIN_POSITIVE));
                write!(
                    f,
                    "{} of {components} components move, for {less:.0} % less: {}",
                    moves.len(),
                    told.join(", ")
                )
            }
            Happened::Server { component, why, .. } => {
                write!(f, "{component} is called otherwise from now on: {why}")
            }
        }
    }
}

fn list(cores: &[usize]) -> String {
    let numbers: Vec<String> = cores.iter().map(usize::to_string).collect();
    numbers.join(", ")
}

impl fmt::Display for Move {
    /// `Stage#2 0→1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Some(from) => write!(f, "{} {from}→{}", self.component, self.to),
            None => write!(f, "{} →{}", self.component, self.to),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::With { peer, messages } => {
                write!(f, "{messages:.0} messages a second with {peer}")
            }
            Why::Room { share } => write!(f, "room for {:.0} % of a CPU", 100.0 * share),
        }
    }
}

type Listener = Box<dyn FnMut(&Event) + Send>;

static LISTENERS: Part<Mutex<Vec<Listener>>> = Part::new(Mutex::default);
static ARE_THERE: Part<AtomicBool> = Part::new(AtomicBool::default);

/// Registers `listener` for each later event; the placing thread calls it.
pub(crate) fn listen(listener: Listener) {
    lock(&LISTENERS).push(listener);
    ARE_THERE.store(true, Ordering::Release);
}

/// Tells whether there are listeners.
pub(super) fn are_there_listeners() -> bool {
    ARE_THERE.load(Ordering::Acquire)
}

/// Calls the listeners. One that panics is not called again.
pub(super) fn tell(event: &Event) {
    // One event at a time: meanwhile the list is empty.
    static TELLS: Part<Mutex<()>> = Part::new(Mutex::default);
    let _tells = lock(&TELLS);
    // Not with the list locked: a listener may register another.
    let listeners = std::mem::take(&mut *lock(&LISTENERS));
    let mut left: Vec<Listener> = listeners
        .into_iter()
        .filter_map(|mut listener| match call(|| listener(event)) {
            Ok(()) => Some(listener),
            Err(_) => {
                // Its captured values may panic as they are dropped.
                let _ = call(|| drop(listener));
                None
            }
        })
        .collect();
    let mut now = lock(&LISTENERS);
    left.append(&mut now);
    *now = left;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Panics as it is dropped.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a listener's own");
        }
    }

    #[test]
    fn listeners_panic_and_listen_with_others() {
        let told = Arc::new(AtomicUsize::new(0));
        let bomb = Bomb;
        listen(Box::new(move |_| {
            let _ = &bomb;
            panic!("a listener's");
        }));
        let count = Arc::clone(&told);
        listen(Box::new(move |_| {
            let count = Arc::clone(&count);
            // From the next event on, forever.
            listen(Box::new(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
            }));
        }));
        let event = Event {
            after: Duration::ZERO,
            what: Happened::Cpus {
                lost: vec![1],
                found: Vec::new(),
            },
        };
        for expected in [0, 1, 3] {
            tell(&event);
            assert_eq!(told.load(Ordering::Relaxed), expected);
        }
        lock(&LISTENERS).clear();
    }
}
