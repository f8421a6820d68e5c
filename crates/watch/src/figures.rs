//! What a recording comes to.

use std::collections::HashMap;

use crate::recording::{Component, Event, Happening, Recording};

/// What is known of a channel, by whoever counts: the seam for figures that the recorder does not have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    /// Component and port, of one end and of the other.
    pub ends: [(u64, u16); 2],
    /// Waits that ended with a message here, at each end. At a rendezvous whoever comes first waits, so
    /// their sum is the number of messages, but for those to or from a select that waited.
    pub waits: [u64; 2],
    /// For how long each end waited, in nanoseconds.
    pub waited: [u64; 2],
    /// Bytes of the values, if somebody has counted them.
    pub bytes: Option<u64>,
}

impl Channel {
    /// Messages, as far as waits tell.
    pub fn messages(&self) -> u64 {
        self.waits[0] + self.waits[1]
    }
}

/// Pairs of ports that were connected, those with most messages first. Of a port that was connected with
/// several, the first; what happened there is told once.
pub fn channels(recording: &Recording) -> Vec<Channel> {
    let mut found: Vec<Channel> = Vec::new();
    let mut known: HashMap<(u64, u16), usize> = HashMap::new();
    for component in &recording.components {
        for (nth, port) in component.ports.iter().enumerate() {
            let own = (component.id, nth as u16);
            let Some(peer) = port.peer else {
                continue;
            };
            match known.get(&own) {
                Some(&at) => {
                    found[at].waits[1] = port.waits;
                    found[at].waited[1] = port.waited;
                }
                None => {
                    known.entry(peer).or_insert(found.len());
                    found.push(Channel {
                        ends: [own, peer],
                        waits: [port.waits, 0],
                        waited: [port.waited, 0],
                        bytes: None,
                    });
                }
            }
        }
    }
    found.sort_by_key(|channel| (std::cmp::Reverse(channel.messages()), channel.ends));
    found
}

/// A component's name and that of its port: `Ping.ball`.
pub fn end_name(recording: &Recording, (id, port): (u64, u16)) -> String {
    let Some(component) = recording.component(id) else {
        return format!("component {id}");
    };
    match component.ports.get(usize::from(port)) {
        Some(port) => format!("{}.{}", component.name, port.name),
        None => component.name.clone(),
    }
}

/// Figures of several components together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub components: u64,
    /// Times in nanoseconds, and counts, as of one [`Component`].
    pub running: u64,
    /// The same.
    pub ready: u64,
    /// The same.
    pub waiting: u64,
    /// The same.
    pub runs: u64,
    /// The same.
    pub moves: u64,
}

impl Sum {
    /// Of all these.
    pub fn of<'a>(components: impl IntoIterator<Item = &'a Component>) -> Sum {
        let mut sum = Sum::default();
        for one in components {
            sum.components += 1;
            sum.running += one.running;
            sum.ready += one.ready;
            sum.waiting += one.waiting;
            sum.runs += one.runs;
            sum.moves += one.moves;
        }
        sum
    }
}

/// A run of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Of whom.
    pub id: u64,
    /// Where; none for a thread of its own.
    pub worker: Option<u16>,
    /// In nanoseconds since the beginning.
    pub from: u64,
    /// The same.
    pub to: u64,
    /// How it ended; none for one that goes on.
    pub end: Option<Happening>,
}

/// The runs in the window of the events, in the order of their beginnings. One that had begun before it, or
/// goes on behind it, is cut there.
pub fn slices(recording: &Recording) -> Vec<Slice> {
    let Some(first) = recording.events.first() else {
        return Vec::new();
    };
    // Where events were lost, whose run ends without having begun began before all of these.
    let before = match recording.events_lost {
        0 => None,
        _ => Some(first.ns),
    };
    let mut open: HashMap<u64, (u64, Option<u16>)> = HashMap::new();
    let mut seen: HashMap<u64, ()> = HashMap::new();
    let mut found = Vec::new();
    for &Event { ns, id, what } in &recording.events {
        let is_first = seen.insert(id, ()).is_none();
        match what {
            Happening::Runs(worker) => {
                open.insert(id, (ns, worker));
            }
            Happening::Waits(_) | Happening::Ended | Happening::Ready(_) => {
                let begun = open.remove(&id).or_else(|| {
                    let cut = before.filter(|_| is_first && !matches!(what, Happening::Ready(_)));
                    cut.map(|from| {
                        let worker = recording.component(id).and_then(|one| one.worker);
                        (from, worker)
                    })
                });
                if let Some((from, worker)) = begun {
                    found.push(Slice {
                        id,
                        worker,
                        from,
                        to: ns,
                        end: Some(what),
                    });
                }
            }
            Happening::Made(_) | Happening::Moved(_) => {}
        }
    }
    found.extend(open.into_iter().map(|(id, (from, worker))| Slice {
        id,
        worker,
        from,
        to: recording.ns.max(from),
        end: None,
    }));
    found.sort_by_key(|slice| (slice.from, slice.id));
    found
}
