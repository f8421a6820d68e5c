//! Cost of a message: one thread writes it, hands over, another reads it.
//!
//! An exchange begins with the writer's first store and ends with the reader's last load. The
//! clocks of two cores need not agree: in alternating flow both sides write and read in turn, in
//! one buffer, and an exchange is half of a round trip, the mean of both directions. In streaming
//! flow messages go one way through several buffers, and an exchange is the time from one message
//! to the next in the long run. Buffers were touched before, are used over and over, and lie where
//! the sender's first touch put them.
//!
//! A model that is judged by these points must not have seen them: [`Point::is_held_out`] splits
//! them into one half to fit with and another to judge by.

use std::sync::atomic::AtomicBool;

pub use hearth_machine::profile::Carrier;
use hearth_machine::topology::{OsThread, Topology};
use hearth_sys::mapping::MapOptions;
use hearth_sys::ping_pong::{PingPong, Seat, Turn};
use hearth_sys::{Refused, System, schedule};

use crate::context::{Context, Deadline, ProbeError, Rounds, Stop, spin_until, together};
use crate::disturbance::{Batch, Before, Discards};
use crate::statistics::Measured;

/// The least message: a line.
pub const BYTES_MIN: u64 = 64;
/// The largest message, beyond most caches.
pub const BYTES_MAX: u64 = 64 << 20;

/// Order of exchanges in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// One after the other: the sender waits until the receiver is done.
    Alternating,
    /// The sender continues with the next message while the receiver reads this one.
    Streaming {
        /// Buffers in rotation, 1 to [`DEPTH_MAX`].
        depth: u32,
    },
}

/// The most buffers in rotation.
pub const DEPTH_MAX: u32 = 8;

/// An exchange to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// The message's size, rounded up to whole lines, between [`BYTES_MIN`] and [`BYTES_MAX`].
    pub bytes: u64,
    /// Sender and receiver, by the system's numbers; the same twice for two threads of one core.
    pub cores: [usize; 2],
    /// Way in which control passes: [`Carrier::Threads`] by a futex, [`Carrier::Spin`] by looking
    /// at a word without pause, or on one core with a yield at each look. Workers pass control by a
    /// function call, which has no hand-over to measure here.
    pub carrier: Carrier,
    /// Order of exchanges in time.
    pub flow: Flow,
}

/// A measured exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The request that was measured.
    pub request: Request,
    /// Nanoseconds of one exchange: the stores, the hand-over, the loads.
    pub exchange_ns: Measured,
}

impl Point {
    /// Whether the point is for judging only: those whose size is an odd power of two (128 B, 512
    /// B, …, 32 MiB). A model may be fitted with the others.
    pub fn is_held_out(&self) -> bool {
        self.request.bytes.max(1).ilog2() % 2 == 1
    }
}

/// Result of measuring several requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// Points in the order of the requests; failed ones are left out.
    pub points: Vec<Point>,
    /// Failed measurements with their reasons, a sentence each.
    pub missing: Vec<String>,
    /// Samples discarded, by reason.
    pub discards: Discards,
    /// Number of measurements that had to use disturbed samples.
    pub disturbed: u32,
}

/// The sizes from a line to 64 MiB, doubling.
pub fn sizes() -> Vec<u64> {
    std::iter::successors(Some(BYTES_MIN), |bytes| Some(bytes * 2))
        .take_while(|bytes| *bytes <= BYTES_MAX)
        .collect()
}

/// Requests for fitting a model, none of them [held out](Point::is_held_out): the first core with
/// itself, and with one other for each relation in the machine. Without a topology the second core
/// stands for all others.
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
    // Nobody chooses a thread that spins on the core of the thread it waits for.
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

/// Sizes that are also streamed: enough to see the overlap.
const STREAMED: std::ops::RangeInclusive<u64> = 1 << 10..=4 << 20;

/// One core for each relation that others have to the first.
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

/// Time for measuring, and the seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// The available time, in seconds. When it is over nothing more begins.
    pub seconds: f64,
    /// Visits to each request; its interval comes from their differences.
    pub rounds: u32,
    /// Seed of the order of visits.
    pub seed: u64,
}

/// Measures points. Calls `progress` with the share of time that has passed, 0 to 1.
///
/// # Errors
/// If cancelled. All other failures are in [`Points::missing`].
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

/// Buffers of all exchanges: as many as the deepest stream needs, each as large as the largest
/// message so far.
#[derive(Debug, Default)]
pub struct Buffers {
    relays: Vec<PingPong>,
}

impl Buffers {
    /// Provides `count` buffers of at least this size; the calling thread touches them first.
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

/// A request being measured.
#[derive(Debug)]
pub struct Exchange {
    request: Request,
    rounds: Rounds,
}

impl Exchange {
    /// A request without samples.
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
    /// If cancelled, if a core cannot be pinned to, if there is no memory, or if the carrier has no
    /// hand-over.
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

    /// The figure; None if every visit failed.
    pub fn sum_up(&self) -> Option<Point> {
        Some(Point {
            request: self.request,
            exchange_ns: self.rounds.sum_up()?,
        })
    }
}

/// Way in which a side waits for its turn.
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
        // A thread that has waited already has its turn, and nobody sleeps.
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

    /// Rough time of passing control, before anything is known.
    fn guess_ns(self) -> f64 {
        match self {
            Wait::Asleep => 5_000.0,
            Wait::Spin => 200.0,
            Wait::Yield => 1_000.0,
        }
    }
}

/// Approximate duration of a chunk: long compared with the clock's cost, short compared with a
/// timer's tick.
const CHUNK_NS: f64 = 100_000.0;
/// Most exchanges in a chunk: in a longer one a gap hardly shows.
const EXCHANGES_MAX: f64 = 100.0;

/// Exchanges a chunk and chunks a window. A byte takes about half a nanosecond to write and read.
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

/// Adds a chunk. Threads that sleep or yield are always switched.
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
    // One round trip first, so that caches are in their steady state.
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
        // A round trip is two exchanges.
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
