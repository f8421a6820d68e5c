//! Figures derived from a recording.

use std::collections::HashMap;

use crate::recording::{Component, Event, Happening, Port, Recording};

/// Figures of a channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    /// Component and port of the sending end and of the other; in either order where the direction
    /// is unknown.
    pub ends: [(u64, u16); 2],
    /// Waits that ended with a message, at each end. At a rendezvous the first to arrive waits, so
    /// their sum is the number of messages, except for those to or from a select that waited; and
    /// both may have waited for the first one before they were connected.
    pub waits: [u64; 2],
    /// Waiting time at each end, in nanoseconds.
    pub waited: [u64; 2],
    /// Estimated number of messages to or from a select that waited, by samples.
    pub selected: u64,
    /// Size of a value.
    pub value: ValueBytes,
}

/// Bytes of a value at a channel, without anything it refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ValueBytes {
    /// No value was sampled.
    #[default]
    Unknown,
    /// The same for all values.
    Each(u64),
    /// The mean, and the number of sampled values.
    Mean(f64, u64),
}

impl ValueBytes {
    fn of(port: &Port) -> ValueBytes {
        match (port.value_bytes, port.sized) {
            (Some(bytes), _) => ValueBytes::Each(bytes),
            (None, 0) => ValueBytes::Unknown,
            (None, sized) => ValueBytes::Mean(port.sized_bytes as f64 / sized as f64, sized),
        }
    }

    /// Combines the sizes that both ends sampled on their own.
    fn and(self, other: ValueBytes) -> ValueBytes {
        match (self, other) {
            (ValueBytes::Mean(a, n), ValueBytes::Mean(b, m)) => {
                let all = (n + m) as f64;
                ValueBytes::Mean((a * n as f64 + b * m as f64) / all, n + m)
            }
            (ValueBytes::Unknown, known) | (known, _) => known,
        }
    }

    /// Bytes of one value.
    pub fn bytes(self) -> Option<f64> {
        match self {
            ValueBytes::Unknown => None,
            ValueBytes::Each(bytes) => Some(bytes as f64),
            ValueBytes::Mean(bytes, _) => Some(bytes),
        }
    }
}

impl Channel {
    /// Number of messages: counted, except for those of selects. One too many where both ends
    /// waited to be connected.
    pub fn messages(&self) -> u64 {
        self.waits[0] + self.waits[1] + self.selected
    }

    /// Swaps the ends if the other one sends.
    fn directed(mut self, recording: &Recording) -> Channel {
        let is_send = |(id, port): (u64, u16)| {
            let ports = &recording.component(id)?.ports;
            ports.get(usize::from(port))?.is_send
        };
        if is_send(self.ends[0]) == Some(false) || is_send(self.ends[1]) == Some(true) {
            self.ends.reverse();
            self.waits.reverse();
            self.waited.reverse();
        }
        self
    }

    /// Bytes of all messages, as far as they can be estimated.
    pub fn bytes(&self) -> Option<f64> {
        let bytes = self.value.bytes()?;
        Some(bytes * self.messages() as f64)
    }
}

/// Pairs of connected ports, those with most messages first. For a port that was connected with
/// several, the first; its figures are reported once.
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
                    found[at].selected += port.selected;
                    found[at].value = found[at].value.and(ValueBytes::of(port));
                }
                None => {
                    known.entry(peer).or_insert(found.len());
                    found.push(Channel {
                        ends: [own, peer],
                        waits: [port.waits, 0],
                        waited: [port.waited, 0],
                        selected: port.selected,
                        value: ValueBytes::of(port),
                    });
                }
            }
        }
    }
    let mut found: Vec<Channel> = found
        .into_iter()
        .map(|channel| channel.directed(recording))
        .collect();
    found.sort_by_key(|channel| (std::cmp::Reverse(channel.messages()), channel.ends));
    found
}

/// Names a component and its port, as in `Ping.ball`.
pub fn end_name(recording: &Recording, (id, port): (u64, u16)) -> String {
    let Some(component) = recording.component(id) else {
        return format!("component {id}");
    };
    match component.ports.get(usize::from(port)) {
        Some(port) => format!("{}.{}", component.name, port.name),
        None => component.name.clone(),
    }
}

/// Sums over several components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Number of components.
    pub components: u64,
    /// Time running, in nanoseconds.
    pub running: u64,
    /// Time ready, in nanoseconds.
    pub ready: u64,
    /// Time waiting, in nanoseconds.
    pub waiting: u64,
    /// Number of runs.
    pub runs: u64,
    /// Number of moves.
    pub moves: u64,
}

impl Sum {
    /// Sums over these components.
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
    /// The component.
    pub id: u64,
    /// The worker; none for a thread of its own.
    pub worker: Option<u16>,
    /// Start, in nanoseconds since the beginning.
    pub from: u64,
    /// End, in nanoseconds since the beginning.
    pub to: u64,
    /// The event that ended it; none for one that continues.
    pub end: Option<Happening>,
}

/// The runs in the window of the events, in the order of their starts. A run that begins before the
/// window, or ends after it, is cut there.
pub fn slices(recording: &Recording) -> Vec<Slice> {
    let Some(first) = recording.events.first() else {
        return Vec::new();
    };
    // Where events were lost, a run that ends without a beginning began before all of these.
    let before = match recording.events_lost {
        0 => None,
        _ => Some(first.ns),
    };
    let mut open: HashMap<u64, (u64, Option<u16>)> = HashMap::new();
    let mut seen: HashMap<u64, ()> = HashMap::new();
    let mut found = Vec::new();
    for &Event { ns, id, what } in &recording.events {
        if matches!(what, Happening::WorkerMoved(..) | Happening::Remark(_)) {
            continue;
        }
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
            Happening::Made(_)
            | Happening::Moved(..)
            | Happening::ThreadMoved(..)
            | Happening::WorkerMoved(..)
            | Happening::Remark(_) => {}
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
