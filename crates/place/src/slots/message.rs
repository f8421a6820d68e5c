//! Look-up of message costs.
//!
//! Two slots have a [class](PairClass): their relation, the deviation of their measured transfer
//! latency from others of that relation, in steps of a tenth, and the states of the pair, if it
//! has several. For each class, carrier and
//! power of two the model is asked once; sizes between are interpolated. A look-up is then two
//! loads and a multiplication.

use std::collections::HashMap;

use hearth_machine::profile::Carrier;
use hearth_machine::relation::{Closeness, Nodes, Relation};
use hearth_machine::topology::{Thread, Topology};
use hearth_model::fitted::{Between, Model, PairState, Question};

use super::CpuSlot;
use crate::graph::Kind;

/// Smallest size in the table, after none.
const SMALLEST_LOG2: u32 = 3;
/// Largest size in the table: 64 MiB. Beyond, time grows with size.
const LARGEST_LOG2: u32 = 26;
/// No payload, then powers of two.
const SIZES: usize = (LARGEST_LOG2 - SMALLEST_LOG2 + 2) as usize;
/// Factor by which a hand-over between workers takes longer where several components use an end of
/// the channel. Measured with four senders and one receiver, on two cores that share a cache.
const SHARED: f64 = 5.0;
/// Ratio of latencies from which pairs of one relation are told apart.
const RATIO_STEP: f64 = 1.1;
/// Most such steps.
const RATIO_STEPS_MAX: f64 = 20.0;
const CARRIERS: [Carrier; 3] = [Carrier::Threads, Carrier::Spin, Carrier::Worker];

/// A kind of message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message {
    /// Its payload.
    pub bytes: f64,
    /// Way in which control passes.
    pub carrier: Carrier,
    /// Treatment of the payload.
    pub kind: Kind,
}

/// Cost of a message to each side, ns.
///
/// The sender bears its stores and half of the hand-over, the receiver its loads and the other
/// half. From the first store to the last load takes the sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Time that the sender's hardware thread is busy.
    pub send_ns: f64,
    /// Time that the receiver's is.
    pub receive_ns: f64,
}

impl Share {
    /// Both together: the duration of the message.
    #[must_use]
    pub fn total_ns(self) -> f64 {
        self.send_ns + self.receive_ns
    }
}

/// Class of pairs of hardware threads with equal costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairClass {
    /// Relation of the two slots.
    pub relation: Relation,
    /// Their measured transfer latency relative to the usual one of the relation.
    pub ratio: f64,
    /// One such pair.
    pub example: (Thread, Thread),
}

/// The model's answer for a size.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    write_ns: f64,
    hand_over_ns: f64,
    read_ns: f64,
    /// Upper end of the model's interval relative to its value.
    high: f64,
}

/// Cost of messages between any two slots. See the [module](super).
#[derive(Clone, Debug)]
pub struct MessageCost {
    count: usize,
    /// Class by pair, row by row.
    class_of: Vec<u16>,
    classes: Vec<PairClass>,
    /// By class, carrier, size.
    points: Vec<Point>,
}

impl MessageCost {
    pub(super) fn new(model: &Model, threads: &[Thread]) -> Self {
        let (class_of, classes) = classify(model, threads);
        let mut points = Vec::with_capacity(classes.len() * CARRIERS.len() * SIZES);
        for class in &classes {
            for carrier in CARRIERS {
                points.extend((0..SIZES).map(|at| point(model, class, carrier, size_bytes(at))));
            }
        }
        Self {
            count: threads.len(),
            class_of,
            classes,
            points,
        }
    }

    /// The classes of pairs; the first is that of a slot with itself.
    #[must_use]
    pub fn classes(&self) -> &[PairClass] {
        &self.classes
    }

    /// The class of a pair, as a position in [`MessageCost::classes`]. The order does not matter.
    #[must_use]
    pub fn class(&self, a: CpuSlot, b: CpuSlot) -> usize {
        usize::from(self.class_of[a.index() * self.count + b.index()])
    }

    /// The class of a slot with each slot.
    pub(crate) fn classes_of(&self, slot: CpuSlot) -> &[u16] {
        &self.class_of[slot.index() * self.count..][..self.count]
    }

    /// Cost of a message between two slots, to each side.
    #[must_use]
    pub fn share(&self, from: CpuSlot, to: CpuSlot, message: &Message) -> Share {
        self.share_in(self.class(from, to), message)
    }

    /// The same by class. Panics if there is no such class.
    #[must_use]
    pub fn share_in(&self, class: usize, message: &Message) -> Share {
        let (points, at, part) = self.between(class, message);
        let mix = |of: fn(&Point) -> f64| {
            let (low, high) = (of(&points[at]), of(&points[at + 1]));
            (low + (high - low) * part).max(0.0)
        };
        let half = mix(|p| p.hand_over_ns) / 2.0;
        let write = match message.kind {
            Kind::Copied => mix(|p| p.write_ns),
            Kind::Moved => 0.0,
        };
        Share {
            send_ns: write + half,
            receive_ns: mix(|p| p.read_ns) + half,
        }
    }

    /// The same for a message by half-channels that others use, too, if `is_shared`: between
    /// workers it takes a lock, whose line goes to and fro.
    #[must_use]
    pub fn share_of(&self, class: usize, message: &Message, is_shared: bool) -> Share {
        let share = self.share_in(class, message);
        let is_locked = is_shared && message.carrier == Carrier::Worker;
        if !is_locked || self.classes[class].relation.closeness == Closeness::Same {
            return share;
        }
        let more = self.half_lock_ns(class, message);
        Share {
            send_ns: share.send_ns + more,
            receive_ns: share.receive_ns + more,
        }
    }

    /// Half of the time that the lock of a shared half-channel adds to a hand-over.
    fn half_lock_ns(&self, class: usize, message: &Message) -> f64 {
        let (points, at, part) = self.between(class, message);
        let (low, high) = (points[at].hand_over_ns, points[at + 1].hand_over_ns);
        (SHARED - 1.0) * (low + (high - low) * part).max(0.0) / 2.0
    }

    /// Cost to a worker of taking a lock that another took last: by the class of the two, half
    /// each. Zero on one slot.
    pub(crate) fn contention_in(&self, class: usize) -> Share {
        if self.classes[class].relation.closeness == Closeness::Same {
            return Share::default();
        }
        let message = Message {
            bytes: 0.0,
            carrier: Carrier::Worker,
            kind: Kind::Moved,
        };
        let half = self.half_lock_ns(class, &message);
        Share {
            send_ns: half,
            receive_ns: half,
        }
    }

    /// Factor by which the message may cost more than predicted: the upper end of the model's
    /// interval.
    #[must_use]
    pub fn uncertainty_in(&self, class: usize, message: &Message) -> f64 {
        let (points, at, part) = self.between(class, message);
        let part = part.min(1.0);
        points[at].high + (points[at + 1].high - points[at].high) * part
    }

    /// The points of a class and carrier: the one at or below the size, and how far the size is on
    /// the way to the next; above 1 beyond the last.
    fn between(&self, class: usize, message: &Message) -> (&[Point], usize, f64) {
        let carrier = match message.carrier {
            Carrier::Threads => 0,
            Carrier::Spin => 1,
            Carrier::Worker => 2,
        };
        let first = (class * CARRIERS.len() + carrier) * SIZES;
        let points = &self.points[first..first + SIZES];
        let bytes = message.bytes.max(0.0);
        let smallest = size_bytes(1);
        let at = if bytes < smallest {
            0
        } else {
            let doublings = (bytes / smallest).log2().floor();
            (1 + doublings.min(SIZES as f64) as usize).min(SIZES - 2)
        };
        let (low, high) = (size_bytes(at), size_bytes(at + 1));
        (points, at, (bytes - low) / (high - low))
    }
}

fn size_bytes(at: usize) -> f64 {
    match at {
        0 => 0.0,
        at => 2_f64.powi(SMALLEST_LOG2 as i32 + at as i32 - 1),
    }
}

fn point(model: &Model, class: &PairClass, carrier: Carrier, bytes: f64) -> Point {
    let (a, b) = class.example;
    // A thread that spins for itself would never run meanwhile: on one thread, hand over as a
    // worker does.
    let carrier = match (class.relation.closeness, carrier) {
        (Closeness::Same, Carrier::Spin) => Carrier::Worker,
        (_, carrier) => carrier,
    };
    let question = Question::new(bytes as u64, Between::Pair(a, b), carrier);
    let answer = model.predict(&question);
    // The pair is in the machine and the carrier fits: there is an answer.
    answer.map_or(Point::default(), |prediction| Point {
        write_ns: prediction.parts.write_ns + prediction.parts.faults_ns,
        hand_over_ns: prediction.parts.hand_over_ns,
        read_ns: prediction.parts.read_ns,
        high: prediction.high_ns / prediction.ns.max(f64::MIN_POSITIVE),
    })
}

/// Parts that each hardware thread is in, so that relations need no look at every cache for every
/// pair.
struct Shape {
    core: u32,
    package: u32,
    node: u32,
    /// Data caches, nearest first: level and position.
    caches: Vec<(u8, usize)>,
}

fn shape(topology: &Topology, thread: Thread, caches: &HashMap<Thread, Vec<(u8, usize)>>) -> Shape {
    let parts = topology.thread(thread);
    Shape {
        core: parts.core.0,
        package: parts.package.0,
        node: parts.node.0,
        caches: caches.get(&thread).cloned().unwrap_or_default(),
    }
}

/// Same result as [`Topology::relation`], which a test checks.
fn relation(a: &Shape, b: &Shape, same: bool) -> Relation {
    let shared = || {
        let mine = a.caches.iter().filter(|cache| b.caches.contains(cache));
        mine.map(|(level, _)| *level).min()
    };
    let closeness = if same {
        Closeness::Same
    } else if a.core == b.core {
        Closeness::SmtSibling
    } else if a.package != b.package {
        Closeness::OtherPackage
    } else {
        shared().map_or(Closeness::SamePackage, Closeness::SharedCache)
    };
    let nodes = if a.node == b.node {
        Nodes::Same
    } else {
        Nodes::Other
    };
    Relation { closeness, nodes }
}

fn shapes(topology: &Topology, threads: &[Thread]) -> Vec<Shape> {
    let mut caches: HashMap<Thread, Vec<(u8, usize)>> = HashMap::new();
    for (at, cache) in topology.caches().iter().enumerate() {
        for thread in cache.threads.iter().filter(|_| cache.holds_data()) {
            caches.entry(*thread).or_default().push((cache.level, at));
        }
    }
    threads
        .iter()
        .map(|thread| shape(topology, *thread, &caches))
        .collect()
}

/// Properties by which classes differ: the relation, the steps of its latency, and its states.
type Alike = (Relation, i32, Vec<(i32, i32)>);

/// The class of every pair, and the classes: that of a slot with itself first.
fn classify(model: &Model, threads: &[Thread]) -> (Vec<u16>, Vec<PairClass>) {
    let shapes = shapes(model.topology(), threads);
    let mut numbers: HashMap<Alike, u16> = HashMap::new();
    let mut classes = Vec::new();
    let mut class_of = vec![0; threads.len() * threads.len()];
    // The diagonal first, so that it has the first number.
    let pairs = (0..threads.len()).map(|at| (at, at));
    let rest = (0..threads.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    for (a, b) in pairs.chain(rest) {
        let relation = relation(&shapes[a], &shapes[b], a == b);
        let key = (threads[a].min(threads[b]), threads[a].max(threads[b]));
        let ratio = model.pair_ratio(key.0, key.1).filter(|_| a != b);
        let step = ratio.map_or(0.0, steps);
        let alike = (relation, step as i32, states(model, key));
        let number = *numbers.entry(alike).or_insert_with(|| {
            classes.push(PairClass {
                relation,
                ratio: RATIO_STEP.powf(step),
                example: key,
            });
            u16::try_from(classes.len() - 1).expect("relations, steps and states are few")
        });
        class_of[a * threads.len() + b] = number;
        class_of[b * threads.len() + a] = number;
    }
    (class_of, classes)
}

/// A latency's ratio to another in steps of a tenth, whole ones.
fn steps(ratio: f64) -> f64 {
    let steps = ratio.ln() / RATIO_STEP.ln();
    steps.clamp(-RATIO_STEPS_MAX, RATIO_STEPS_MAX).round()
}

/// The states of a pair as far as they tell classes apart: steps of latency, and hundredths of the
/// time.
fn states(model: &Model, (a, b): (Thread, Thread)) -> Vec<(i32, i32)> {
    let coarse = |state: &PairState| (steps(state.ratio) as i32, (100.0 * state.time_share) as i32);
    model.pair_states(a, b).iter().map(coarse).collect()
}

#[cfg(test)]
mod tests {
    use hearth_machine::synthetic;

    use super::{relation, shapes};

    #[test]
    fn relations_are_those_of_the_topology() {
        for (name, description) in synthetic::EXAMPLES {
            let machine = synthetic::parse(description).expect("examples are machines");
            let threads: Vec<_> = machine.all_threads().collect();
            let shapes = shapes(&machine, &threads);
            for (at, a) in threads.iter().enumerate() {
                for (other, b) in threads.iter().enumerate() {
                    let ours = relation(&shapes[at], &shapes[other], a == b);
                    assert_eq!(ours, machine.relation(*a, *b), "{name}: {a} and {b}");
                }
            }
        }
    }
}
