//! Reports the placer's decisions: to listeners, as one line each in the file that
//! `HEARTH_PLACE_LOG` names, and as remarks in the recording if there is one.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use super::Proposal;
use super::cores::Change;
use super::event::{self, Event, Happened, Move, Why};
use super::site::Site;
use super::statistics::Statistics;
use crate::ground::helpers;
use crate::ground::options::{self, Servers};
use crate::ground::runtime::Part;
use crate::ground::sync::lock_std as lock;
use crate::recording;
use crate::seats::registry;
use crate::seats::seat::Seat;

/// The log's destinations.
struct Log {
    file: Option<Mutex<File>>,
    began: Instant,
}

impl Log {
    /// Returns the one log, opened when the first component starts.
    fn get() -> &'static Log {
        static LOG: Part<OnceLock<Log>> = Part::new(OnceLock::new);
        LOG.get_or_init(|| {
            let path = options::get().place_log.as_ref();
            Log {
                // The command that set the file has checked that it is writable.
                file: path
                    .and_then(|path| File::create(path).ok())
                    .map(Mutex::new),
                began: Instant::now(),
            }
        })
    }
}

/// Starts the log's clock: components begin to run.
pub(super) fn begin() {
    let _ = Log::get();
}

fn is_wanted() -> bool {
    Log::get().file.is_some() || recording::is_on() || event::are_there_listeners()
}

/// Writes an event; the callers notify the listeners.
fn tell(what: Happened) {
    event::tell(&write_down(what));
}

fn write_down(what: Happened) -> Event {
    let log = Log::get();
    let after = log.began.elapsed();
    let event = Event { after, what };
    if let Some(recorder) = recording::recorder() {
        recorder.remark(&event.what.to_string());
    }
    if let Some(file) = &log.file {
        // Nobody is left to notify if this fails.
        let _ = writeln!(lock(file), "{event}");
    }
    event
}

/// Reports a decision about a server. Its worker's thread calls, which cannot wait for listeners.
pub(crate) fn server(seat: &Seat, way: Servers, why: String) {
    if is_wanted() {
        let component = registry::name_of(seat);
        let event = write_down(Happened::Server {
            component,
            way,
            why,
        });
        if event::are_there_listeners() {
            helpers::hand(move || event::tell(&event));
        }
    }
}

/// Reports that cores came or went.
pub(super) fn cores(change: &Change) {
    if is_wanted() {
        tell(Happened::Cpus {
            lost: change.lost.clone(),
            found: change.found.clone(),
        });
    }
}

/// Reports that components move.
pub(super) fn moves(statistics: &Statistics, site: &Site, proposal: &Proposal) {
    if is_wanted() {
        let name_of = names(statistics);
        let closest = closest(proposal);
        let moves = proposal.moves.iter().map(|&one| {
            let why = match closest.get(&one) {
                Some(&(peer, messages)) => Why::With {
                    peer: name_of(peer),
                    messages,
                },
                None => Why::Room {
                    share: proposal.scene.graph.components[one].work_ns.value / 1e9,
                },
            };
            Move {
                component: name_of(one),
                from: proposal.scene.at[one].map(|slot| site.core_of(slot)),
                to: site.core_of(proposal.plan.0[one]),
                why,
            }
        });
        let what = Happened::Moves {
            moves: moves.collect(),
            components: proposal.scene.ids.len(),
            before_ns: proposal.now_ns,
            after_ns: proposal.then_ns,
        };
        tell(what);
    }
}

/// The names of the scene's components.
fn names(statistics: &Statistics) -> impl Fn(usize) -> String {
    let all: Vec<_> = statistics
        .components()
        .iter()
        .map(|(component, _)| (component.who.of, component.who.number))
        .collect();
    move |one| registry::name(all[one].0, all[one].1)
}

/// Finds, for each component that moves, the peer at its new place with which it exchanges most
/// messages, and how many a second.
fn closest(proposal: &Proposal) -> HashMap<usize, (usize, f64)> {
    let plan = &proposal.plan.0;
    let mut between: HashMap<(usize, usize), f64> = HashMap::new();
    for connection in &proposal.scene.graph.connections {
        let (from, to) = (connection.from.index(), connection.to.index());
        if plan[from] == plan[to] {
            for pair in [(from, to), (to, from)] {
                *between.entry(pair).or_default() += connection.messages.value;
            }
        }
    }
    let mut closest: HashMap<usize, (usize, f64)> = HashMap::new();
    for ((one, peer), messages) in between {
        if proposal.moves.binary_search(&one).is_err() {
            continue;
        }
        let best = closest.entry(one).or_insert((peer, messages));
        if (messages, best.0) > (best.1, peer) {
            *best = (peer, messages);
        }
    }
    closest
}
