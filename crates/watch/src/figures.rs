//! What a recording comes to.

use std::collections::HashMap;

use crate::recording::{Component, Event, Happening, Port, Recording};

/// What is known of a channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    /// Component and port, of the end that sends and of the other; in any order where that was not told.
    pub ends: [(u64, u16); 2],
    /// Waits that ended with a message here, at each end. At a rendezvous whoever comes first waits, so
    /// their sum is the number of messages, but for those to or from a select that waited; and both may
    /// have waited for the first one before they were connected.
    pub waits: [u64; 2],
    /// For how long each end waited, in nanoseconds.
    pub waited: [u64; 2],
    /// About how many messages came to or from a select that waited, by samples.
    pub selected: u64,
    /// What is known of the bytes of a value.
    pub value: ValueBytes,
}

/// How many bytes a value at a channel takes, without what it refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ValueBytes {
    /// None was looked at.
    #[default]
    Unknown,
    /// All have as many.
    Each(u64),
    /// In the mean, over so many that were looked at.
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

    /// Both ends have looked, for themselves.
    fn and(self, other: ValueBytes) -> ValueBytes {
        match (self, other) {
            (ValueBytes::Mean(a, n), ValueBytes::Mean(b, m)) => {
                let all = (n + m) as f64;
                ValueBytes::Mean((a * n as f64 + b * m as f64) / all, n + m)
            }
            (ValueBytes::Unknown, known) | (known, _) => known,
        }
    }

    /// Of one value.
    pub fn bytes(self) -> Option<f64> {
        match self {
            ValueBytes::Unknown => None,
            ValueBytes::Each(bytes) => Some(bytes as f64),
            ValueBytes::Mean(bytes, _) => Some(bytes),
        }
    }
}

impl Channel {
    /// Messages: counted, but for those of selects. One more where both ends waited to be connected.
    pub fn messages(&self) -> u64 {
        self.waits[0] + self.waits[1] + self.selected
    }

    /// Turned round, if it is the other end that sends.
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

    /// Bytes of all messages, as far as that can be estimated.
    pub fn bytes(&self) -> Option<f64> {
        let bytes = self.value.bytes()?;
        Some(bytes * self.messages() as f64)
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
