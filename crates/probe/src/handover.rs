//! What a message costs: one thread writes it, hands over, another reads it.
//!
//! An exchange begins with the writer's first store and ends with the reader's last load. Clocks of
//! two cores need not agree for it: in alternating flow both sides write and read in turn, in one
//! buffer, and an exchange is half of a round trip, the mean of both directions. In streaming flow
//! messages go one way through several buffers, and an exchange is the time from one message to
//! the next in the long run. Buffers were touched before, are used over and over, and lie where
//! the sender's first touch put them.
//!
//! A model that is judged by these points must not have seen them: [`Point::is_held_out`] splits
//! them into one half to fit with and another to be judged by.

use std::sync::atomic::AtomicBool;

pub use hearth_machine::profile::Carrier;
use hearth_machine::topology::{OsThread, Topology};
use hearth_sys::mapping::MapOptions;
use hearth_sys::ping_pong::{PingPong, Seat, Turn};
use hearth_sys::{Refused, System, schedule};

use crate::context::{Context, Deadline, Rounds, Stop, spin_until, together};
use crate::disturbance::{Batch, Before, Discards};
use crate::session::ProbeError;
use crate::statistics::Measured;

/// The least message: a line.
pub const BYTES_MIN: u64 = 64;
/// The largest message, beyond most caches.
pub const BYTES_MAX: u64 = 64 << 20;

/// How exchanges follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// One after the other: the sender waits until the receiver is done.
    Alternating,
    /// The sender goes on with the next message while the receiver reads this one.
    Streaming {
        /// Buffers in rotation, 1 to [`DEPTH_MAX`].
        depth: u32,
    },
}

/// The most buffers in rotation.
pub const DEPTH_MAX: u32 = 8;

/// What is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// The message's size, rounded up to whole lines, between [`BYTES_MIN`] and [`BYTES_MAX`].
    pub bytes: u64,
    /// Sender and receiver, by the system's numbers; twice the same for two threads of one core.
    pub cores: [usize; 2],
    /// How control passes: [`Carrier::Threads`] by a futex, [`Carrier::Spin`] by looking at a word
    /// without pause, or on one core with a yield at each look. Workers pass control by calling
    /// each other, which has no hand-over to measure here.
    pub carrier: Carrier,
    /// How exchanges follow each other.
    pub flow: Flow,
}

/// A measured exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// What was measured.
    pub request: Request,
    /// Nanoseconds of one exchange: the stores, the hand-over, the loads.
    pub exchange_ns: Measured,
}

impl Point {
    /// Whether the point is for judging only. Those whose size is an odd power of two (128 B,
    /// 512 B, …, 32 MiB) are; a model may be fitted with the others.
    pub fn is_held_out(&self) -> bool {
        self.request.bytes.max(1).ilog2() % 2 == 1
    }
}

/// All that came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// In the order of the requests; those that came to nothing are left out.
    pub points: Vec<Point>,
    /// What could not be measured and why, a sentence each.
    pub missing: Vec<String>,
    /// Samples thrown away, by reason.
    pub discards: Discards,
    /// How often disturbed samples had to serve, as there was hardly anything else.
    pub disturbed: u32,
}

/// The sizes from a line to 64 MiB, doubling.
pub fn sizes() -> Vec<u64> {
    std::iter::successors(Some(BYTES_MIN), |bytes| Some(bytes * 2))
        .take_while(|bytes| *bytes <= BYTES_MAX)
        .collect()
}

/// What a model is fitted to, nothing that is [held out](Point::is_held_out): the first core with
/// itself, and with one other for each way in which the machine relates them. Without a topology
/// the second core stands for all others.
pub fn for_fitting(machine: Option<&Topology>, cores: &[usize]) -> Vec<Request> {
    let sizes: Vec<u64> = sizes().into_iter().step_by(2).collect();
    let request = |bytes, cores, carrier, flow| Request {
        bytes,
        cores,
        carrier,
        flow,
    };
    let mut requests = Vec::new();
    let Some((&first, others)) = cores.split_first() else {
        return requests;
    };
    // A thread that spins on the core of the one it waits for is no carrier that anybody chooses.
    requests.extend(sizes.iter().map(|&bytes| {
        let carrier = Carrier::Threads;
        request(bytes, [first, first], carrier, Flow::Alternating)
    }));
    for other in representatives(machine, first, others) {
        for carrier in [Carrier::Threads, Carrier::Spin] {
            for &bytes in &sizes {
                requests.push(request(bytes, [first, other], carrier, Flow::Alternating));
                if STREAMED.contains(&bytes) {
                    let flow = Flow::Streaming { depth: 2 };
                    requests.push(request(bytes, [first, other], carrier, flow));
                }
            }
        }
    }
    requests
}

/// The sizes that are streamed, too: enough to see what overlaps.
const STREAMED: std::ops::RangeInclusive<u64> = 1 << 10..=4 << 20;

/// One core for each way in which others are related to the first.
fn representatives(machine: Option<&Topology>, first: usize, others: &[usize]) -> Vec<usize> {
    let thread = |machine: &Topology, core: usize| {
        let os = OsThread(u32::try_from(core).ok()?);
        machine.thread_of(os)
    };
    let mut seen = Vec::new();
    let mut found = Vec::new();
    for &other in others {
        let relation = machine.and_then(|machine| {
            let (a, b) = (thread(machine, first)?, thread(machine, other)?);
            Some(machine.relation(a, b))
        });
        if !seen.contains(&relation) {
            seen.push(relation);
            found.push(other);
        }
    }
    found
}

/// Every size for every pair of cores, by both carriers, one exchange after the other.
pub fn grid(pairs: &[[usize; 2]], sizes: &[u64]) -> Vec<Request> {
    let mut requests = Vec::new();
    for &cores in pairs {
        for carrier in [Carrier::Threads, Carrier::Spin] {
            requests.extend(sizes.iter().map(|&bytes| Request {
                bytes,
                cores,
                carrier,
                flow: Flow::Alternating,
            }));
        }
    }
    requests
}

/// How long to measure, and with what chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// The time there is, in seconds. When it is over nothing more begins.
    pub seconds: f64,
    /// How often each request is visited; its interval comes from the differences.
    pub rounds: u32,
    /// What the order of visits begins with.
    pub seed: u64,
}

/// Measures points. `progress` is told the share of time that is gone, 0 to 1.
///
/// # Errors
/// Cancelled. All else that fails is in [`Points::missing`].
pub fn points(
    system: &dyn System,
    requests: &[Request],
    effort: Effort,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Points, ProbeError> {
    let mut context = Context::new(system, effort.seed, cancel);
    let mut exchanges: Vec<Exchange> = requests.iter().map(|&r| Exchange::new(r)).collect();
    let mut buffers = Buffers::default();
    let mut missing = Vec::new();
    let end = Deadline::after(system, effort.seconds);
    let mut visits_left = exchanges.len() as u32 * effort.rounds;
    'all: for _ in 0..effort.rounds {
        let mut order: Vec<usize> = (0..exchanges.len()).collect();
        context.random.shuffle(&mut order);
        for index in order {
            let left = end.left();
            if left == 0.0 {
                break 'all;
            }
            progress((1.0 - left / effort.seconds).clamp(0.0, 1.0));
            let seconds = left / f64::from(visits_left.max(1));
            visits_left = visits_left.saturating_sub(1);
            match exchanges[index].visit(&mut context, &mut buffers, seconds) {
                Ok(()) => {}
                Err(Stop::Cancelled) => return Err(ProbeError::Cancelled),
                Err(Stop::Refused(refused)) => {
                    let why = refused.to_string();
                    if !missing.contains(&why) {
                        missing.push(why);
                    }
                }
            }
        }
    }
    let points: Vec<Point> = exchanges.iter().filter_map(Exchange::sum_up).collect();
    let without = requests.len() - points.len();
    if without > 0 && end.left() == 0.0 {
        missing.push(format!(
            "{without} of {} points: the {} s were over; give more time or ask for fewer",
            requests.len(),
            effort.seconds
        ));
    }
    Ok(Points {
        points,
        missing,
        discards: context.discards,
        disturbed: context.disturbed,
    })
}

/// The buffers of all exchanges: as many as the deepest stream needs, each as large as the largest
/// message so far.
#[derive(Debug, Default)]
pub struct Buffers {
    relays: Vec<PingPong>,
}

impl Buffers {
    /// `count` buffers of at least so many bytes; first touched by the calling thread.
    fn get(&mut self, count: usize, bytes: usize) -> Result<&mut [PingPong], Refused> {
        for index in 0..count {
            if self.relays.get(index).is_some_and(|r| r.bytes() >= bytes) {
                continue;
            }
            let relay = PingPong::new(MapOptions::huge(bytes))?;
            if index < self.relays.len() {
                self.relays[index] = relay;
            } else {
                self.relays.push(relay);
            }
        }
        Ok(&mut self.relays[..count])
    }
}

/// A request under measurement.
#[derive(Debug)]
pub struct Exchange {
    request: Request,
    rounds: Rounds,
}

impl Exchange {
    /// A request of which nothing is known.
    pub fn new(request: Request) -> Exchange {
        let lines = request.bytes.clamp(BYTES_MIN, BYTES_MAX).div_ceil(64);
        Exchange {
            request: Request {
                bytes: lines * 64,
                ..request
            },
            rounds: Rounds::default(),
        }
    }

    /// Measures for about `seconds`.
    ///
    /// # Errors
    /// Cancelled, a core cannot be pinned to, there is no memory, or the carrier has no hand-over.
    pub fn visit(
        &mut self,
        context: &mut Context<'_>,
        buffers: &mut Buffers,
        seconds: f64,
    ) -> Result<(), Stop> {
        let request = self.request;
        let wait = Wait::of(&request)?;
        let count = match request.flow {
            Flow::Alternating => 1,
            Flow::Streaming { depth } => depth.clamp(1, DEPTH_MAX) as usize,
        };
        let relays = {
            let _pinned = context.system.pin(request.cores[0])?;
            buffers.get(count, request.bytes as usize)?
        };
        let round = context.windows(&request.cores, seconds, |context| match request.flow {
            Flow::Alternating => alternate(context, &mut relays[0], &request, wait),
            Flow::Streaming { .. } => stream(context, relays, &request, wait),
        })?;
        self.rounds.add(round);
        Ok(())
    }

    /// The figure; None if every visit came to nothing.
    pub fn sum_up(&self) -> Option<Point> {
        Some(Point {
            request: self.request,
            exchange_ns: self.rounds.sum_up()?,
        })
    }
}

/// How a side waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Asleep,
    Spin,
    Yield,
}

impl Wait {
    fn of(request: &Request) -> Result<Wait, Refused> {
        match request.carrier {
            Carrier::Threads => Ok(Wait::Asleep),
            Carrier::Spin if request.cores[0] == request.cores[1] => Ok(Wait::Yield),
            Carrier::Spin => Ok(Wait::Spin),
            Carrier::Worker => Err(Refused::because(
                "measure a hand-over between",
                "workers",
                hearth_sys::Reason::Invalid,
                "ask for threads or spinning",
            )),
        }
    }

    #[inline]
    fn take<'s>(self, seat: &'s mut Seat<'_>) -> Turn<'s> {
        match self {
            Wait::Asleep => {}
            Wait::Spin => spin_until(|| seat.is_mine()),
            Wait::Yield => {
                while !seat.is_mine() {
                    schedule::give_way();
                }
            }
        }
        // Of whoever has waited the turn is there already, and nobody sleeps.
        seat.take_asleep()
    }

    #[inline]
    fn wait_for(self, seat: &mut Seat<'_>) {
        let _turn = self.take(seat);
    }

    #[inline]
    fn pass_on(self, turn: Turn<'_>) {
        match self {
            Wait::Asleep => turn.pass_on_and_wake(),
            Wait::Spin | Wait::Yield => turn.pass_on(),
        }
    }

    /// What passing control takes, roughly, before anything is known.
    fn guess_ns(self) -> f64 {
        match self {
            Wait::Asleep => 5_000.0,
            Wait::Spin => 200.0,
            Wait::Yield => 1_000.0,
        }
    }
}

/// A chunk takes about this long: long beside the clock's cost, short beside a timer's tick.
const CHUNK_NS: f64 = 100_000.0;
/// Exchanges a chunk, at most: beyond, a gap hardly shows.
const EXCHANGES_MAX: f64 = 100.0;

/// Exchanges a chunk and chunks a window. A byte is written and read in half a nanosecond or so.
fn shape(request: &Request, wait: Wait) -> (usize, usize) {
    let each = wait.guess_ns() + request.bytes as f64 * 0.5;
    let exchanges = (CHUNK_NS / each).clamp(1.0, EXCHANGES_MAX) as usize;
    let chunks = (20e6 / (each * exchanges as f64)).clamp(2.0, 24.0) as usize;
    (exchanges, chunks)
}

#[inline(never)]
fn read(words: &[u64]) {
    let sum = words.iter().fold(0u64, |sum, &word| sum.wrapping_add(word));
    std::hint::black_box(sum);
}

#[inline(never)]
fn write(words: &mut [u64], what: u64) {
    words.fill(std::hint::black_box(what));
    std::hint::black_box(&words);
}

/// Adds a chunk. Threads that sleep or yield are switched by their nature.
fn add(batch: &mut Batch, wait: Wait, ns: f64, before: &Before) {
    match wait {
        Wait::Spin => batch.add_chunk(ns, before),
        Wait::Asleep | Wait::Yield => batch.add_plain(ns),
    }
}

fn alternate(
    context: &Context<'_>,
    relay: &mut PingPong,
    request: &Request,
    wait: Wait,
) -> Result<Batch, Stop> {
    let count = request.bytes as usize / 8;
    let (trips, chunks) = shape(request, wait);
    let (clock, reading_ns) = (context.clock, context.reading_ns);
    let [mut first, mut second] = relay.seats();
    // One round trip first, so that caches hold what they hold in the long run.
    let turns = 1 + trips * chunks;
    let exchange = |seat: &mut Seat<'_>, number: usize| {
        let mut turn = wait.take(seat);
        let words = &mut turn.words()[..count];
        read(words);
        write(words, number as u64);
        wait.pass_on(turn);
    };
    let one = || {
        exchange(&mut first, 0);
        // Two exchanges a round trip.
        let mut batch = Batch::of_chunks(2 * trips);
        // A chunk begins and ends when the turn has come back.
        wait.wait_for(&mut first);
        for chunk in 0..chunks {
            let before = Before::now();
            let begin = clock.ticks_ordered();
            for trip in 0..trips {
                exchange(&mut first, chunk * trips + trip);
                wait.wait_for(&mut first);
            }
            let ns = clock.ns(clock.ticks_ordered() - begin) - reading_ns;
            add(&mut batch, wait, ns, &before);
        }
        batch
    };
    let other = || {
        for number in 0..turns {
            exchange(&mut second, number);
        }
    };
    together(context.system, request.cores, one, other)
}

fn both_seats(relay: &mut PingPong) -> (Seat<'_>, Seat<'_>) {
    let [first, second] = relay.seats();
    (first, second)
}

fn stream(
    context: &Context<'_>,
    relays: &mut [PingPong],
    request: &Request,
    wait: Wait,
) -> Result<Batch, Stop> {
    let count = request.bytes as usize / 8;
    let depth = relays.len();
    let (messages, chunks) = shape(request, wait);
    // Whole rotations, so that each chunk uses each buffer equally often.
    let messages = messages.next_multiple_of(depth);
    let warm = 2 * depth;
    let (clock, reading_ns) = (context.clock, context.reading_ns);
    let (mut senders, mut receivers): (Vec<Seat<'_>>, Vec<Seat<'_>>) =
        relays.iter_mut().map(both_seats).unzip();
    let total = warm + messages * chunks;
    let one = || {
        let mut send = |number: usize| {
            let mut turn = wait.take(&mut senders[number % depth]);
            write(&mut turn.words()[..count], number as u64);
            wait.pass_on(turn);
        };
        (0..warm).for_each(&mut send);
        let mut batch = Batch::of_chunks(messages);
        for chunk in 0..chunks {
            let before = Before::now();
            let begin = clock.ticks_ordered();
            let from = warm + chunk * messages;
            (from..from + messages).for_each(&mut send);
            let ns = clock.ns(clock.ticks_ordered() - begin) - reading_ns;
            add(&mut batch, wait, ns, &before);
        }
        batch
    };
    let other = || {
        for number in 0..total {
            let mut turn = wait.take(&mut receivers[number % depth]);
            read(&turn.words()[..count]);
            wait.pass_on(turn);
        }
    };
    together(context.system, request.cores, one, other)
}
