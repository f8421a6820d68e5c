//! Layout of a recording. It consists of 64-bit words in the machine's byte order.
//!
//! ```text
//! header ─ names ─ workers ─ components ─ ports ─ moves ─ remarks ─ failures ─ chunks: 512 words each
//! ```
//!
//! A component's figures stand at its number less one, so no search is needed. Moves and remarks
//! are rings: the latest are kept, however many events follow. Chunks hold the events; a thread
//! writes into its own, and takes the oldest one when it is full.

use std::num::NonZeroU64;

/// Name of a recording's mappings in memory.
pub const NAME: &str = "hearth-watch";

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"HEARTHWA");
pub(crate) const VERSION: u64 = 3;

/// Words of the header.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 1;
    pub(crate) const CHUNKS: usize = 2;
    /// 1: the time stamp counter; 0: nanoseconds of the system's.
    pub(crate) const SOURCE: usize = 3;
    pub(crate) const BEGIN_TICKS: usize = 4;
    pub(crate) const BEGIN_NS: usize = 5;
    /// The latest moment at which both clocks were read.
    pub(crate) const LATEST_TICKS: usize = 6;
    pub(crate) const LATEST_NS: usize = 7;
    /// The highest number of a component.
    pub(crate) const MADE: usize = 8;
    /// Number of chunks taken.
    pub(crate) const TAKEN: usize = 9;
    /// Events lost for want of a chunk.
    pub(crate) const REFUSED: usize = 10;
    /// Events that were overwritten.
    pub(crate) const OVERWRITTEN: usize = 11;
    pub(crate) const NAME_WORDS: usize = 12;
    pub(crate) const PORTS: usize = 13;
    /// 0 while it runs, or if it was killed from outside; otherwise 1 and the exit code.
    pub(crate) const END: usize = 14;
    /// 0: workers; 1: threads.
    pub(crate) const CARRYING: usize = 15;
    pub(crate) const WORKERS: usize = 16;
    pub(crate) const PROCESS: usize = 17;
    /// Number of moves noted, then of remarks.
    pub(crate) const MOVES: usize = 18;
    pub(crate) const REMARKS: usize = 19;
    /// 0, or 1 and the bytes of blocks of the one heap that all components share.
    pub(crate) const HEAP_SHARED: usize = 20;
    /// Bytes of failures' texts, with a NUL behind each.
    pub(crate) const FAILURE_BYTES: usize = 21;
    /// Number of components in the ring of a deadlock, of which the first are kept.
    pub(crate) const CYCLE: usize = 22;
    /// Number of collections; of components that they ended; their nanoseconds; the most for which
    /// one held up a worker.
    pub(crate) const COLLECTIONS: usize = 23;
    pub(crate) const COLLECTED: usize = 24;
    pub(crate) const COLLECTING_NS: usize = 25;
    pub(crate) const COLLECTING_HELD_NS: usize = 26;
}
pub(crate) const HEADER: usize = 512;

pub(crate) const NAMES: usize = HEADER;
pub(crate) const NAME_WORDS_MAX: usize = 1 << 15;

pub(crate) const WORKERS: usize = NAMES + NAME_WORDS_MAX;
pub(crate) const WORKERS_MAX: usize = 4096;
pub(crate) const WORKER: usize = 8;
/// Words of a worker.
pub(crate) mod worker {
    /// 0, or 1 and the core.
    pub(crate) const CORE: usize = 0;
    pub(crate) const BUSY: usize = 1;
    pub(crate) const RUNS: usize = 2;
    /// 0, or 1 and the core where its thread was last seen; then the number of changes.
    pub(crate) const SEEN_ON: usize = 3;
    pub(crate) const MOVES: usize = 4;
}

pub(crate) const COMPONENTS: usize = WORKERS + WORKERS_MAX * WORKER;
/// Most components with figures of their own.
pub const COMPONENTS_MAX: usize = 1 << 17;
pub(crate) const COMPONENT: usize = 24;
/// Words of a component.
pub(crate) mod component {
    /// The word of its name, and above 32 bits its number within its type.
    pub(crate) const IDENTITY: usize = 0;
    /// State, wait, port, worker, flags: see `Packed`.
    pub(crate) const STATE: usize = 1;
    /// Start of that state.
    pub(crate) const SINCE: usize = 2;
    pub(crate) const RUNNING: usize = 3;
    pub(crate) const READY: usize = 4;
    pub(crate) const WAITING: usize = 5;
    pub(crate) const RUNS: usize = 6;
    pub(crate) const MOVES: usize = 7;
    pub(crate) const MADE_AT: usize = 8;
    pub(crate) const ENDED_AT: usize = 9;
    pub(crate) const CREATOR: usize = 10;
    /// Its first port, and above 32 bits the number of ports.
    pub(crate) const PORTS: usize = 11;
    /// The number of its heap.
    pub(crate) const HEAP: usize = 12;
    /// Largest size of its heap at any inspection, in bytes.
    pub(crate) const HEAP_BYTES: usize = 13;
    /// Size of its heap at the last inspection, in bytes.
    pub(crate) const HEAP_LAST: usize = 14;
    /// 0, or 1 and the worker, or the core of its own thread, where it ran for more than half of
    /// the time, if one exists; then its lead.
    pub(crate) const MOSTLY: usize = 15;
    pub(crate) const LEAD: usize = 16;
    /// 0, or 1 and the core where its own thread was last seen.
    pub(crate) const SEEN_ON: usize = 17;
    /// Its last wait, encoded as in its state.
    pub(crate) const WAITED_FOR: usize = 18;
}

pub(crate) const PORTS: usize = COMPONENTS + COMPONENTS_MAX * COMPONENT;
pub(crate) const PORTS_MAX: usize = 1 << 18;
pub(crate) const PORT: usize = 8;
/// Words of a port.
pub(crate) mod port {
    /// Number of waits that ended there, each with a message.
    pub(crate) const WAITS: usize = 0;
    pub(crate) const WAITED: usize = 1;
    /// The number of the component that it was first connected with, and above 32 bits the port
    /// there.
    pub(crate) const PEER: usize = 2;
    /// Number of connections.
    pub(crate) const CONNECTIONS: usize = 3;
    /// Bytes of a value, if all have the same, or 0; and above 32 bits 1 if it receives, 2 if it
    /// sends.
    pub(crate) const KIND: usize = 4;
    /// Number of sampled values, then their bytes.
    pub(crate) const SIZED: usize = 5;
    pub(crate) const SIZED_BYTES: usize = 6;
    /// Estimated number of selects' waits that ended here, by samples.
    pub(crate) const SELECTED: usize = 7;
}

pub(crate) const MOVES: usize = PORTS + PORTS_MAX * PORT;
/// Number of latest moves that are kept, in the form of events.
pub(crate) const MOVES_MAX: usize = 4096;
pub(crate) const MOVE: usize = 2;

pub(crate) const REMARKS: usize = MOVES + MOVES_MAX * MOVE;
/// Number of latest remarks that are kept: time, length in bytes, and text.
pub(crate) const REMARKS_MAX: usize = 256;
pub(crate) const REMARK: usize = 64;
pub(crate) const REMARK_BYTES: usize = (REMARK - 2) * 8;

/// Beginning of remarks about collections.
pub(crate) const COLLECTED: &str = "collected ";

/// Texts of failures: uncaught exceptions, a deadlock's report.
pub(crate) const FAILURES: usize = REMARKS + REMARKS_MAX * REMARK;
pub(crate) const FAILURE_WORDS: usize = 4096;

/// Numbers of the components in the ring of a deadlock.
pub(crate) const CYCLE: usize = FAILURES + FAILURE_WORDS;
pub(crate) const CYCLE_MAX: usize = 64;

pub(crate) const CHUNKS: usize = CYCLE + CYCLE_MAX;
pub(crate) const CHUNK: usize = 512;
/// Words of a chunk before its events: one more than the number of chunks taken before it; whether
/// a thread writes it; its number of events.
pub(crate) mod chunk {
    pub(crate) const ORDER: usize = 0;
    pub(crate) const IS_OPEN: usize = 1;
    pub(crate) const COUNT: usize = 2;
    pub(crate) const EVENTS: usize = 4;
}
pub(crate) const EVENTS_A_CHUNK: usize = (CHUNK - chunk::EVENTS) / 2;
/// With fewer, a handful of threads would take chunks from each other.
const CHUNKS_MIN: usize = 16;

/// Bytes of a recording with a window of events of this size.
pub fn bytes_for(window: u64) -> u64 {
    let chunks = (window as usize / (CHUNK * 8)).max(CHUNKS_MIN);
    ((CHUNKS + chunks * CHUNK) * 8) as u64
}

/// Number of chunks in a file of this many words.
pub(crate) fn chunks_in(words: usize) -> Option<usize> {
    let chunks = words.checked_sub(CHUNKS)? / CHUNK;
    (chunks >= CHUNKS_MIN).then_some(chunks)
}

/// Kind of carrier of components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrying {
    /// A worker a core.
    #[default]
    Workers,
    /// A kernel thread each.
    Threads,
}

/// Stands for the worker of a component with its own thread.
pub const NO_WORKER: u16 = u16::MAX;

/// Reason why a component waits, and the port if known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Unknown.
    #[default]
    Unknown,
    /// For a receiver.
    Send(Option<u16>),
    /// For a sender.
    Receive(Option<u16>),
    /// For one of several.
    Select,
    /// For a partner on another worker, in either direction.
    Linked(Option<u16>),
    /// For time, input or a device.
    Outside,
}

impl Wait {
    /// The port, if it is the component's own.
    pub fn port(self) -> Option<u16> {
        match self {
            Wait::Send(port) | Wait::Receive(port) | Wait::Linked(port) => port,
            Wait::Unknown | Wait::Select | Wait::Outside => None,
        }
    }

    /// 8 bits for the reason and 16 for the port.
    pub(crate) fn packed(self) -> u32 {
        let kind = match self {
            Wait::Unknown => 0,
            Wait::Send(_) => 1,
            Wait::Receive(_) => 2,
            Wait::Select => 3,
            Wait::Linked(_) => 4,
            Wait::Outside => 5,
        };
        let port = self.port().and_then(|port| port.checked_add(1));
        kind | u32::from(port.unwrap_or(0)) << 8
    }

    pub(crate) fn unpacked(bits: u32) -> Wait {
        let port = ((bits >> 8) as u16).checked_sub(1);
        match bits & 0xff {
            1 => Wait::Send(port),
            2 => Wait::Receive(port),
            3 => Wait::Select,
            4 => Wait::Linked(port),
            5 => Wait::Outside,
            _ => Wait::Unknown,
        }
    }
}

/// State of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// It was made and has not begun.
    #[default]
    Made,
    /// It could run, and is in a queue.
    Ready,
    /// Its code runs.
    Running,
    /// It waits.
    Waiting(Wait),
    /// It is over.
    Ended,
}

/// A component's state as a word:
///
/// ```text
/// 63         56   48        32 31    24 23       8 7      0
///   flags     0     worker      state     port      wait
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    pub(crate) state: State,
    pub(crate) worker: u16,
    pub(crate) is_service: bool,
    pub(crate) is_main: bool,
}

impl Packed {
    /// Never 0: 0 marks an unused word.
    pub(crate) fn word(self) -> u64 {
        let (state, wait) = match self.state {
            State::Made => (1, 0),
            State::Ready => (2, 0),
            State::Running => (3, 0),
            State::Waiting(wait) => (4, wait.packed()),
            State::Ended => (5, 0),
        };
        let flags = u64::from(self.is_service) | u64::from(self.is_main) << 1;
        flags << 56 | u64::from(self.worker) << 32 | state << 24 | u64::from(wait)
    }

    pub(crate) fn of_word(word: u64) -> Option<Packed> {
        let word = NonZeroU64::new(word)?.get();
        let state = match word >> 24 & 0xff {
            1 => State::Made,
            2 => State::Ready,
            3 => State::Running,
            4 => State::Waiting(Wait::unpacked(word as u32 & 0xff_ffff)),
            5 => State::Ended,
            _ => return None,
        };
        Some(Packed {
            state,
            worker: (word >> 32) as u16,
            is_service: word >> 56 & 1 == 1,
            is_main: word >> 56 & 2 == 2,
        })
    }
}

/// Kinds of events, in the low 8 bits of an event's second word; 24 bits of detail follow, and 32
/// for the component.
pub(crate) mod event {
    pub(crate) const MADE: u64 = 1;
    pub(crate) const READY: u64 = 2;
    pub(crate) const RUNS: u64 = 3;
    pub(crate) const WAITS: u64 = 4;
    pub(crate) const ENDED: u64 = 5;
    /// Detail: `Between` two workers.
    pub(crate) const MOVED: u64 = 6;
    /// Detail: `Between` two cores, for a component's own thread.
    pub(crate) const THREAD_MOVED: u64 = 7;
    /// Detail: `Between` two cores, with the worker's number in the place of the component.
    pub(crate) const WORKER_MOVED: u64 = 8;
    /// Detail: the remark's number.
    pub(crate) const REMARK: u64 = 9;
}

/// Source and destination, in 24 bits. Numbers that do not fit become the last one that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Between {
    pub(crate) from: u16,
    pub(crate) to: u16,
}

impl Between {
    const LAST: usize = 0xfff;

    pub(crate) fn new(from: usize, to: usize) -> Between {
        let cut = |place: usize| place.min(Between::LAST) as u16;
        Between {
            from: cut(from),
            to: cut(to),
        }
    }

    pub(crate) fn packed(self) -> u32 {
        u32::from(self.from) | u32::from(self.to) << 12
    }

    pub(crate) fn unpacked(bits: u32) -> Between {
        Between::new((bits & 0xfff) as usize, (bits >> 12 & 0xfff) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_back() {
        let waits = [
            Wait::Unknown,
            Wait::Send(None),
            Wait::Send(Some(0)),
            Wait::Receive(Some(65_534)),
            Wait::Select,
            Wait::Linked(Some(3)),
            Wait::Outside,
        ];
        let others = [State::Made, State::Ready, State::Running, State::Ended];
        for state in others.into_iter().chain(waits.map(State::Waiting)) {
            for (worker, flag) in [(0, false), (NO_WORKER, true), (4095, true)] {
                let packed = Packed {
                    state,
                    worker,
                    is_service: flag,
                    is_main: !flag,
                };
                assert_eq!(Packed::of_word(packed.word()), Some(packed));
            }
        }
        assert_eq!(Packed::of_word(0), None);
        assert_eq!(Packed::of_word(9 << 24), None);
    }

    #[test]
    fn ways_come_back() {
        for (from, to) in [(0, 0), (3, 4095), (4095, 1)] {
            let between = Between::new(from, to);
            assert_eq!(Between::unpacked(between.packed()), between);
            assert!(between.packed() >> 24 == 0);
        }
        assert_eq!(Between::new(9999, 1).from, 4095);
    }

    #[test]
    fn a_window_has_its_chunks() {
        assert_eq!(chunks_in((bytes_for(64 << 20) / 8) as usize), Some(16384));
        assert_eq!(chunks_in((bytes_for(0) / 8) as usize), Some(16));
        assert_eq!(chunks_in(5), None);
    }
}
