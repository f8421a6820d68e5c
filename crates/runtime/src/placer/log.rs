//! What the placer decided, told: to those who listen, and as a line each in the file that
//! `HEARTH_PLACE_LOG` names; and as remarks in the recording if somebody watches.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::time::Instant;

use super::Proposal;
use super::cores::Change;
use super::event::{self, Event, Happened, Move, Why};
use super::site::Site;
use super::statistics::Statistics;
use crate::{registry, watching};

pub(super) struct Log {
    file: Option<File>,
    began: Instant,
}

impl Log {
    pub(super) fn open(began: Instant) -> Log {
        let path = std::env::var_os("HEARTH_PLACE_LOG").filter(|path| !path.is_empty());
        Log {
            // Who asked for the file has made sure that it can be written.
            file: path.and_then(|path| File::create(path).ok()),
            began,
        }
    }

    fn is_wanted(&self) -> bool {
        self.file.is_some() || watching::is_on() || event::are_there_listeners()
    }

    fn tell(&mut self, what: Happened) {
        let after = self.began.elapsed();
        let event = Event { after, what };
        if let Some(recorder) = watching::recorder() {
            recorder.remark(&event.what.to_string());
        }
        if let Some(file) = &mut self.file {
            // Nobody is left to tell if this fails.
            let _ = writeln!(file, "{event}");
        }
        event::tell(&event);
    }

    /// Cores came and went.
    pub(super) fn cores(&mut self, change: &Change) {
        if self.is_wanted() {
            self.tell(Happened::Cpus {
                lost: change.lost.clone(),
                found: change.found.clone(),
            });
        }
    }

    /// Components move.
    pub(super) fn moves(&mut self, statistics: &Statistics, site: &Site, proposal: &Proposal) {
        if !self.is_wanted() {
            return;
        }
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
        self.tell(what);
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

/// For each component that moves, with whom it talks most among those at its new place, and how many
/// messages a second.
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
