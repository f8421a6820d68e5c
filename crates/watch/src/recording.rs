//! A recording that was read, during the run or afterwards.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use hearth_sys::Linux;
use hearth_sys::clock::{Source, Stamps};

use crate::layout::{
    Between, CHUNK, CHUNKS, COLLECTED, COMPONENT, COMPONENTS, COMPONENTS_MAX, CYCLE, CYCLE_MAX,
    Carrying, EVENTS_A_CHUNK, FAILURE_WORDS, FAILURES, HEADER, MAGIC, MOVE, MOVES, MOVES_MAX,
    NAME_WORDS_MAX, NAMES, PORT, PORTS, PORTS_MAX, Packed, REMARK, REMARK_BYTES, REMARKS,
    REMARKS_MAX, State, VERSION, WORKER, WORKERS, WORKERS_MAX, Wait, chunk, component, event,
    header, port, worker,
};

/// A recording's contents, all times in nanoseconds since the beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The number of the process.
    pub process: u32,
    /// The carrier of components.
    pub carrying: Carrying,
    /// Time from the beginning to the reading, or to the end.
    pub ns: u64,
    /// The way in which it ended.
    pub ending: Ending,
    /// Components with figures of their own, in creation order.
    pub components: Vec<Component>,
    /// Number of further components.
    pub components_left: u64,
    /// Workers that have run something.
    pub workers: Vec<Worker>,
    /// The latest events, in the order in which they happened; empty where only totals were read.
    pub events: Vec<Event>,
    /// Number of events before those, or that were not written.
    pub events_lost: u64,
    /// The latest moves, in order, including those whose events are lost.
    pub moves: Vec<Event>,
    /// Number of moves before them.
    pub moves_left: u64,
    /// The latest remarks about the whole program, in order.
    pub remarks: Vec<Remark>,
    /// Number of remarks before them.
    pub remarks_left: u64,
    /// Failures as they were printed, in order: uncaught exceptions, and a deadlock's report.
    pub failures: Vec<String>,
    /// Numbers of the components of a deadlock that wait for each other in a ring, each for the
    /// next; the first 64 of them.
    pub cycle: Vec<u64>,
    /// Number of further components in the ring.
    pub cycle_left: u64,
    /// Components that nobody could wake.
    pub collected: Collected,
    /// Bytes of blocks in the one heap that all components share, if they do.
    pub heap_shared: Option<u64>,
}

/// All collections of components that nobody could wake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Number of collections.
    pub collections: u64,
    /// Number of components that they ended.
    pub components: u64,
    /// Nanoseconds that they took.
    pub ns: u64,
    /// The most nanoseconds for which one held up a worker.
    pub held_ns_max: u64,
}

/// A remark about the whole program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remark {
    /// Its time.
    pub ns: u64,
    /// Its text.
    pub text: String,
}

/// The end of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// It has not ended, or was killed from outside.
    #[default]
    Open,
    /// It ended with this code.
    Code(u32),
}

/// A component's figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Component {
    /// From 1, in creation order.
    pub id: u64,
    /// `Ping`, or `Ping#2` if there are several.
    pub name: String,
    /// Its type, `Ping`.
    pub of: String,
    /// Its number within its type, from 1.
    pub number: u32,
    /// Part of the language's environment.
    pub is_service: bool,
    /// The main sequence.
    pub is_main: bool,
    /// Number of its creator; 0 for none.
    pub creator: u64,
    /// Its present state.
    pub state: State,
    /// The worker where it last ran.
    pub worker: Option<u16>,
    /// Time of its creation.
    pub made: u64,
    /// Time of its end, if it has ended.
    pub ended: Option<u64>,
    /// Time running, including the present state.
    pub running: u64,
    /// Time ready, likewise.
    pub ready: u64,
    /// Time waiting, likewise.
    pub waiting: u64,
    /// Number of times that it was resumed.
    pub runs: u64,
    /// The worker, or the core of its own thread, where it ran for more than half of the time; if
    /// there is none, one of those where it ran long.
    pub mostly: Option<u16>,
    /// Number of times that it moved to another worker, or its own thread to another core.
    pub moves: u64,
    /// The number of its heap; 0 if it has none.
    pub heap: u32,
    /// Largest size of its heap at any inspection, in bytes of blocks.
    pub heap_bytes: u64,
    /// Size of its heap at the last inspection.
    pub heap_last: u64,
    /// Its ports.
    pub ports: Vec<Port>,
}

/// Figures of one of a component's ports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Port {
    /// Its name in the interface.
    pub name: String,
    /// Number of waits that ended there: each with a message, except for the last of a stopped
    /// component.
    pub waits: u64,
    /// Time waited there.
    pub waited: u64,
    /// The component and the port that it was first connected with.
    pub peer: Option<(u64, u16)>,
    /// Number of connections.
    pub connections: u64,
    /// Whether it sends, if known.
    pub is_send: Option<bool>,
    /// Estimated number of selects' waits that ended there, by samples.
    pub selected: u64,
    /// Bytes of a value, if all have the same.
    pub value_bytes: Option<u64>,
    /// Number of sampled values.
    pub sized: u64,
    /// Bytes of the sampled values.
    pub sized_bytes: u64,
}

/// A worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worker {
    /// Its number.
    pub index: u16,
    /// The core that its thread is pinned to.
    pub core: Option<usize>,
    /// Time that its components ran.
    pub busy: u64,
    /// Number of times that it resumed one.
    pub runs: u64,
    /// The core where its thread was last seen.
    pub seen_on: Option<usize>,
    /// Number of times that this changed.
    pub moves: u64,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its time.
    pub ns: u64,
    /// The number of the component; of the worker where that moves.
    pub id: u64,
    /// Its kind.
    pub what: Happening,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The component with this number created it.
    Made(u64),
    /// It became ready because of the component with this number; 0 if unknown.
    Ready(u64),
    /// It runs, on a worker or with its own thread.
    Runs(Option<u16>),
    /// It waits.
    Waits(Wait),
    /// It is over.
    Ended,
    /// It moves from one worker to another.
    Moved(u16, u16),
    /// Its own thread moved from one core to another.
    ThreadMoved(u16, u16),
    /// The thread of the worker with this number moved; concerns no component.
    WorkerMoved(u16, u16),
    /// A remark about the whole program: the one with this number, counted from 0 over all of them.
    Remark(u32),
}

/// Reason why something is not a readable recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is not a recording, or cannot be read.
    Absent,
    /// It comes from another version of Hearth, with this number.
    Version(u64),
}

impl Remark {
    /// Whether it tells of a collection; the others are the placer's.
    pub fn is_of_collection(&self) -> bool {
        self.text.starts_with(COLLECTED)
    }
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unfit::Absent => f.write_str("this is not a recording of a run"),
            Unfit::Version(version) => write!(
                f,
                "this recording has layout {version}, and this command knows {VERSION}"
            ),
        }
    }
}

impl std::error::Error for Unfit {}

/// Fills a slice with words from a position on; false where there are none.
type Words<'a> = dyn Fn(usize, &mut [u64]) -> bool + 'a;

impl Recording {
    /// Reads a whole file.
    ///
    /// # Errors
    /// If it is not a recording.
    pub fn of_file(file: &File) -> Result<Recording, Unfit> {
        let read = |from: usize, into: &mut [u64]| read_words(file, from, into).is_ok();
        let mut recording = Recording::totals(&read)?;
        let chunks = one(&read, header::CHUNKS) as usize;
        let clock = Rate::of(&read)?;
        (recording.events, recording.events_lost) = events(&read, chunks, &clock);
        recording.events_lost += one(&read, header::REFUSED);
        Ok(recording)
    }

    /// Reads only the totals of a file.
    ///
    /// # Errors
    /// If it is not a recording.
    pub fn totals_of_file(file: &File) -> Result<Recording, Unfit> {
        Recording::totals(&|from, into| read_words(file, from, into).is_ok())
    }

    /// Reads the totals from any source of words.
    ///
    /// # Errors
    /// If they are not a recording.
    pub fn totals(read: &Words<'_>) -> Result<Recording, Unfit> {
        let clock = Rate::of(read)?;
        let head = |at| one(read, at);
        let made = head(header::MADE);
        let mut names = vec![0; (head(header::NAME_WORDS) as usize).min(NAME_WORDS_MAX)];
        let mut ports = vec![0; (head(header::PORTS) as usize).min(PORTS_MAX) * PORT];
        let mut words = vec![0; (made as usize).min(COMPONENTS_MAX) * COMPONENT];
        let parts = [
            (NAMES, &mut names),
            (PORTS, &mut ports),
            (COMPONENTS, &mut words),
        ];
        for (from, part) in parts {
            if !read(from, part) {
                return Err(Unfit::Absent);
            }
        }
        let mut components: Vec<Component> = words
            .chunks_exact(COMPONENT)
            .zip(1..)
            .filter_map(|(words, id)| component_of(id, words, &names, &ports, &clock))
            .collect();
        name_all(&mut components);
        Ok(Recording {
            process: head(header::PROCESS) as u32,
            carrying: match head(header::CARRYING) {
                0 => Carrying::Workers,
                _ => Carrying::Threads,
            },
            ns: clock.now,
            ending: match head(header::END) {
                0 => Ending::Open,
                code => Ending::Code((code - 1) as u32),
            },
            components,
            components_left: made.saturating_sub(COMPONENTS_MAX as u64),
            workers: workers(read, &clock),
            events: Vec::new(),
            events_lost: 0,
            moves: moves(read, &clock),
            moves_left: head(header::MOVES).saturating_sub(MOVES_MAX as u64),
            remarks: remarks(read, &clock),
            remarks_left: head(header::REMARKS).saturating_sub(REMARKS_MAX as u64),
            failures: failures(read),
            cycle: cycle(read),
            cycle_left: head(header::CYCLE).saturating_sub(CYCLE_MAX as u64),
            collected: Collected {
                collections: head(header::COLLECTIONS),
                components: head(header::COLLECTED),
                ns: head(header::COLLECTING_NS),
                held_ns_max: head(header::COLLECTING_HELD_NS),
            },
            heap_shared: head(header::HEAP_SHARED).checked_sub(1),
        })
    }

    /// The component with this number.
    pub fn component(&self, id: u64) -> Option<&Component> {
        let nth = self
            .components
            .binary_search_by_key(&id, |component| component.id);
        nth.ok().map(|nth| &self.components[nth])
    }
}

impl Recording {
    /// The remark with this number, if it is kept.
    pub fn remark(&self, number: u32) -> Option<&Remark> {
        let nth = u64::from(number).checked_sub(self.remarks_left)?;
        self.remarks.get(usize::try_from(nth).ok()?)
    }
}

fn read_words(file: &File, from: usize, into: &mut [u64]) -> io::Result<()> {
    let mut bytes = vec![0; into.len() * 8];
    file.read_exact_at(&mut bytes, from as u64 * 8)?;
    for (word, bytes) in into.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    }
    Ok(())
}

fn one(read: &Words<'_>, at: usize) -> u64 {
    let mut word = [0];
    if read(at, &mut word) { word[0] } else { 0 }
}

/// Conversion from ticks to nanoseconds since the beginning.
struct Rate {
    begin: u64,
    ns_per_tick: f64,
    now: u64,
}

impl Rate {
    /// Derived from the recording's moments or, for a running program, from the present one.
    fn of(read: &Words<'_>) -> Result<Rate, Unfit> {
        let mut head = vec![0; HEADER];
        if !read(0, &mut head) || head[header::MAGIC] != MAGIC {
            return Err(Unfit::Absent);
        }
        if head[header::VERSION] != VERSION {
            return Err(Unfit::Version(head[header::VERSION]));
        }
        let (begin, begin_ns) = (head[header::BEGIN_TICKS], head[header::BEGIN_NS]);
        let mut latest = (head[header::LATEST_TICKS], head[header::LATEST_NS]);
        if head[header::END] == 0 {
            // Still the same machine, unless the file was brought to another one.
            let stamps = Stamps::here(&Linux);
            let is_counter = stamps.source() == Source::Tsc;
            let now = stamps.moment();
            if is_counter == (head[header::SOURCE] == 1) && now.ticks > begin && now.ns > begin_ns {
                latest = (now.ticks, now.ns);
            }
        }
        let ticks = latest.0.saturating_sub(begin);
        let ns = latest.1.saturating_sub(begin_ns);
        let ns_per_tick = if ticks == 0 {
            1.0
        } else {
            ns as f64 / ticks as f64
        };
        Ok(Rate {
            begin,
            ns_per_tick,
            now: ns,
        })
    }

    fn span(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick) as u64
    }

    fn at(&self, ticks: u64) -> u64 {
        self.span(ticks.saturating_sub(self.begin))
    }
}

/// The names behind a number: the type's, then those of its ports.
fn names_at(names: &[u64], number: u32) -> Option<Vec<String>> {
    let first = (number as usize).checked_sub(1)?;
    let length = usize::try_from(*names.get(first)?).ok()?;
    let words = names.get(first + 1..first + 1 + length.div_ceil(8))?;
    let text = text_of(words, length);
    Some(text.split('\0').map(str::to_owned).collect())
}

fn component_of(
    id: u64,
    words: &[u64],
    names: &[u64],
    ports: &[u64],
    clock: &Rate,
) -> Option<Component> {
    let packed = Packed::of_word(words[component::STATE])?;
    let identity = words[component::IDENTITY];
    let mut texts = names_at(names, identity as u32)
        .unwrap_or_default()
        .into_iter();
    let of = texts.next().unwrap_or_else(|| "?".to_owned());
    let since = clock.at(words[component::SINCE]);
    // The present state continues.
    let open = |state: bool| {
        if state {
            clock.now.saturating_sub(since)
        } else {
            0
        }
    };
    let waits = matches!(packed.state, State::Waiting(_));
    let of_ports = words[component::PORTS];
    let first = (of_ports & 0xffff_ffff) as usize * PORT;
    let mut own: Vec<Port> = ports
        .get(first..first + (of_ports >> 32) as usize * PORT)
        .unwrap_or_default()
        .chunks_exact(PORT)
        .map(|words| Port {
            name: texts.next().unwrap_or_else(|| "?".to_owned()),
            waits: words[port::WAITS],
            waited: clock.span(words[port::WAITED]),
            peer: (words[port::PEER] != 0).then(|| {
                let peer = words[port::PEER];
                (peer & 0xffff_ffff, (peer >> 32) as u16)
            }),
            connections: words[port::CONNECTIONS],
            is_send: match words[port::KIND] >> 32 {
                1 => Some(false),
                2 => Some(true),
                _ => None,
            },
            value_bytes: Some(words[port::KIND] & 0xffff_ffff).filter(|&bytes| bytes > 0),
            selected: words[port::SELECTED],
            sized: words[port::SIZED],
            sized_bytes: words[port::SIZED_BYTES],
        })
        .collect();
    if let State::Waiting(wait) = packed.state
        && let Some(port) = wait.port().and_then(|port| own.get_mut(usize::from(port)))
    {
        port.waited += open(true);
    }
    let ended = words[component::ENDED_AT];
    Some(Component {
        id,
        name: String::new(),
        of,
        number: (identity >> 32) as u32,
        is_service: packed.is_service,
        is_main: packed.is_main,
        creator: words[component::CREATOR],
        state: packed.state,
        worker: (packed.worker != crate::NO_WORKER).then_some(packed.worker),
        made: clock.at(words[component::MADE_AT]),
        ended: (ended != 0).then(|| clock.at(ended)),
        running: clock.span(words[component::RUNNING]) + open(packed.state == State::Running),
        ready: clock.span(words[component::READY]) + open(packed.state == State::Ready),
        waiting: clock.span(words[component::WAITING]) + open(waits),
        runs: words[component::RUNS],
        mostly: words[component::MOSTLY]
            .checked_sub(1)
            .and_then(|place| u16::try_from(place).ok()),
        moves: words[component::MOVES],
        heap: words[component::HEAP] as u32,
        heap_bytes: words[component::HEAP_BYTES],
        heap_last: words[component::HEAP_LAST],
        ports: own,
    })
}

/// Names them as the runtime's messages do.
fn name_all(components: &mut [Component]) {
    let mut made = std::collections::HashMap::new();
    for component in components.iter() {
        *made.entry(component.of.clone()).or_insert(0) += 1;
    }
    for component in components {
        component.name = match (component.is_main, made.get(&component.of)) {
            (true, _) => "the main sequence".to_owned(),
            (false, Some(2..)) => format!("{}#{}", component.of, component.number),
            (false, _) => component.of.clone(),
        };
    }
}

fn workers(read: &Words<'_>, clock: &Rate) -> Vec<Worker> {
    let count = (one(read, header::WORKERS) as usize).min(WORKERS_MAX);
    let mut words = vec![0; count * WORKER];
    if !read(WORKERS, &mut words) {
        return Vec::new();
    }
    words
        .chunks_exact(WORKER)
        .zip(0..)
        .filter(|(words, _)| words[worker::RUNS] > 0)
        .map(|(words, index)| Worker {
            index,
            core: words[worker::CORE].checked_sub(1).map(|core| core as usize),
            busy: clock.span(words[worker::BUSY]),
            runs: words[worker::RUNS],
            seen_on: words[worker::SEEN_ON]
                .checked_sub(1)
                .map(|core| core as usize),
            moves: words[worker::MOVES],
        })
        .collect()
}

fn moves(read: &Words<'_>, clock: &Rate) -> Vec<Event> {
    let count = (one(read, header::MOVES) as usize).min(MOVES_MAX);
    let mut words = vec![0; count * MOVE];
    if !read(MOVES, &mut words) {
        return Vec::new();
    }
    let mut found: Vec<Event> = words
        .chunks_exact(MOVE)
        .filter_map(|pair| event_of(pair[0], pair[1], clock))
        .collect();
    found.sort_by_key(|event| event.ns);
    found
}

fn remarks(read: &Words<'_>, clock: &Rate) -> Vec<Remark> {
    let count = (one(read, header::REMARKS) as usize).min(REMARKS_MAX);
    let mut words = vec![0; count * REMARK];
    if !read(REMARKS, &mut words) {
        return Vec::new();
    }
    let remark = |words: &[u64]| Remark {
        ns: clock.at(words[0]),
        text: text_of(&words[2..], (words[1] as usize).min(REMARK_BYTES)),
    };
    let mut found: Vec<Remark> = words.chunks_exact(REMARK).map(remark).collect();
    found.sort_by_key(|remark| remark.ns);
    found
}

fn failures(read: &Words<'_>) -> Vec<String> {
    let bytes = (one(read, header::FAILURE_BYTES) as usize).min(FAILURE_WORDS * 8);
    let mut words = vec![0; bytes.div_ceil(8)];
    if !read(FAILURES, &mut words) {
        return Vec::new();
    }
    let texts = text_of(&words, bytes);
    texts.split_terminator('\0').map(str::to_owned).collect()
}

fn cycle(read: &Words<'_>) -> Vec<u64> {
    let mut ids = vec![0; (one(read, header::CYCLE) as usize).min(CYCLE_MAX)];
    if read(CYCLE, &mut ids) {
        ids
    } else {
        Vec::new()
    }
}

fn text_of(words: &[u64], length: usize) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let length = length.min(bytes.len());
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// The events of all chunks, and the number of lost ones.
fn events(read: &Words<'_>, chunks: usize, clock: &Rate) -> (Vec<Event>, u64) {
    let taken = (one(read, header::TAKEN) as usize).min(chunks);
    let mut found = Vec::new();
    let mut words = vec![0; CHUNK];
    for nth in 0..taken {
        let base = CHUNKS + nth * CHUNK;
        if !read(base, &mut words) {
            break;
        }
        let order = words[chunk::ORDER];
        // Taken by another thread meanwhile: its events are gone.
        if order == 0 || one(read, base + chunk::ORDER) != order {
            continue;
        }
        let count = (words[chunk::COUNT] as usize).min(EVENTS_A_CHUNK);
        let pairs = words[chunk::EVENTS..].chunks_exact(2).take(count);
        let events = pairs.filter_map(|pair| event_of(pair[0], pair[1], clock));
        found.push((order, events.collect::<Vec<Event>>()));
    }
    // A thread's events within a nanosecond stay in order.
    found.sort_by_key(|(order, _)| *order);
    let mut found: Vec<Event> = found.into_iter().flat_map(|(_, events)| events).collect();
    found.sort_by_key(|event| event.ns);
    (found, one(read, header::OVERWRITTEN))
}

fn event_of(at: u64, what: u64, clock: &Rate) -> Option<Event> {
    let detail = (what >> 8) as u32 & 0xff_ffff;
    let happening = match what & 0xff {
        event::MADE => Happening::Made(u64::from(detail)),
        event::READY => Happening::Ready(u64::from(detail)),
        event::RUNS => {
            Happening::Runs(Some(detail as u16).filter(|&worker| worker != crate::NO_WORKER))
        }
        event::WAITS => Happening::Waits(Wait::unpacked(detail)),
        event::ENDED => Happening::Ended,
        event::MOVED | event::THREAD_MOVED | event::WORKER_MOVED => {
            let Between { from, to } = Between::unpacked(detail);
            match what & 0xff {
                event::MOVED => Happening::Moved(from, to),
                event::THREAD_MOVED => Happening::ThreadMoved(from, to),
                _ => Happening::WorkerMoved(from, to),
            }
        }
        event::REMARK => Happening::Remark(detail),
        _ => return None,
    };
    Some(Event {
        ns: clock.at(at),
        id: what >> 32,
        what: happening,
    })
}
