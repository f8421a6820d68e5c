//! Where everything lies in a recording. All of it is words of 64 bits, as the machine has them.
//!
//! ```text
//! header ─ names ─ workers ─ components ─ ports ─ moves ─ remarks ─ chunks: 512 words each
//! ```
//!
//! A component's figures stand at its number less one, so nobody looks for them. Moves and remarks are rings:
//! the latest are kept, however many events come after them. Chunks hold the events; a thread writes into
//! one of its own, and takes the one that was written longest ago when it is full.

use std::num::NonZeroU64;

/// What mappings of a recording in memory are called.
pub const NAME: &str = "hearth-watch";

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"HEARTHWA");
pub(crate) const VERSION: u64 = 2;

/// Words of the header.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 1;
    pub(crate) const CHUNKS: usize = 2;
    /// 1: the time stamp counter; 0: nanoseconds of the system's.
    pub(crate) const SOURCE: usize = 3;
    pub(crate) const BEGIN_TICKS: usize = 4;
    pub(crate) const BEGIN_NS: usize = 5;
    /// The latest moment that both clocks were read at.
    pub(crate) const LATEST_TICKS: usize = 6;
    pub(crate) const LATEST_NS: usize = 7;
    /// The highest number of a component.
    pub(crate) const MADE: usize = 8;
    /// How many chunks were taken.
    pub(crate) const TAKEN: usize = 9;
    /// Events for which there was no chunk.
    pub(crate) const REFUSED: usize = 10;
    /// Events that were written over.
    pub(crate) const OVERWRITTEN: usize = 11;
    pub(crate) const NAME_WORDS: usize = 12;
    pub(crate) const PORTS: usize = 13;
    /// 0: it runs, or was ended from outside; else 1 and the exit code.
    pub(crate) const END: usize = 14;
    /// 0: workers; 1: threads.
    pub(crate) const CARRYING: usize = 15;
    pub(crate) const WORKERS: usize = 16;
    pub(crate) const PROCESS: usize = 17;
    /// How many moves were noted, and how many remarks.
    pub(crate) const MOVES: usize = 18;
    pub(crate) const REMARKS: usize = 19;
    /// 0, or 1 and the bytes of blocks of the one heap that all components share.
    pub(crate) const HEAP_SHARED: usize = 20;
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
    /// 0, or 1 and the core where its thread was seen last; and how many times that had changed.
    pub(crate) const SEEN_ON: usize = 3;
    pub(crate) const MOVES: usize = 4;
}

pub(crate) const COMPONENTS: usize = WORKERS + WORKERS_MAX * WORKER;
/// Components that were made after so many others have no figures of their own.
pub const COMPONENTS_MAX: usize = 1 << 17;
pub(crate) const COMPONENT: usize = 24;
/// Words of a component.
pub(crate) mod component {
    /// Its name's word, and behind 32 bits which of its type.
    pub(crate) const IDENTITY: usize = 0;
    /// State, wait, port, worker, flags: see `Packed`.
    pub(crate) const STATE: usize = 1;
    /// Since when it is in that state.
    pub(crate) const SINCE: usize = 2;
    pub(crate) const RUNNING: usize = 3;
    pub(crate) const READY: usize = 4;
    pub(crate) const WAITING: usize = 5;
    pub(crate) const RUNS: usize = 6;
    pub(crate) const MOVES: usize = 7;
    pub(crate) const MADE_AT: usize = 8;
    pub(crate) const ENDED_AT: usize = 9;
    pub(crate) const CREATOR: usize = 10;
    /// Its first port, and behind 32 bits how many.
    pub(crate) const PORTS: usize = 11;
    /// The number of its heap.
    pub(crate) const HEAP: usize = 12;
    /// The most bytes that its heap had when somebody looked.
    pub(crate) const HEAP_BYTES: usize = 13;
    /// The bytes that it had when somebody looked last.
    pub(crate) const HEAP_LAST: usize = 14;
    /// 0, or 1 and the worker, or core of a thread of its own, where it ran for more than half of the time,
    /// if there is such a one; and by how much it leads.
    pub(crate) const MOSTLY: usize = 15;
    pub(crate) const LEAD: usize = 16;
    /// 0, or 1 and the core where its own thread was seen last.
    pub(crate) const SEEN_ON: usize = 17;
    /// What it waited for last, as in its state.
    pub(crate) const WAITED_FOR: usize = 18;
}

pub(crate) const PORTS: usize = COMPONENTS + COMPONENTS_MAX * COMPONENT;
pub(crate) const PORTS_MAX: usize = 1 << 18;
pub(crate) const PORT: usize = 8;
/// Words of a port.
pub(crate) mod port {
    /// How many waits ended there, each with a message.
    pub(crate) const WAITS: usize = 0;
    pub(crate) const WAITED: usize = 1;
    /// The number of the component that it was connected with first, and behind 32 bits the port there.
    pub(crate) const PEER: usize = 2;
    /// How many times it was connected.
    pub(crate) const CONNECTIONS: usize = 3;
    /// Bytes of a value, if all have the same, or 0; and behind 32 bits 1 if it receives, 2 if it sends.
    pub(crate) const KIND: usize = 4;
    /// How many values were looked at, and the bytes of these.
    pub(crate) const SIZED: usize = 5;
    pub(crate) const SIZED_BYTES: usize = 6;
    /// How many waits of selects ended here, by samples.
    pub(crate) const SELECTED: usize = 7;
}

pub(crate) const MOVES: usize = PORTS + PORTS_MAX * PORT;
/// So many of the latest moves are kept, as events are written.
pub(crate) const MOVES_MAX: usize = 4096;
pub(crate) const MOVE: usize = 2;

pub(crate) const REMARKS: usize = MOVES + MOVES_MAX * MOVE;
/// So many of the latest remarks are kept: when, how many bytes, and the text.
pub(crate) const REMARKS_MAX: usize = 256;
pub(crate) const REMARK: usize = 64;
pub(crate) const REMARK_BYTES: usize = (REMARK - 2) * 8;

pub(crate) const CHUNKS: usize = REMARKS + REMARKS_MAX * REMARK;
pub(crate) const CHUNK: usize = 512;
/// Words of a chunk, before its events: how many chunks were taken before it, and one; whether somebody
/// writes it; how many events are in it.
pub(crate) mod chunk {
    pub(crate) const ORDER: usize = 0;
    pub(crate) const IS_OPEN: usize = 1;
    pub(crate) const COUNT: usize = 2;
    pub(crate) const EVENTS: usize = 4;
}
pub(crate) const EVENTS_A_CHUNK: usize = (CHUNK - chunk::EVENTS) / 2;
/// Fewer would be taken from each other by a handful of threads.
const CHUNKS_MIN: usize = 16;

/// The bytes of a recording whose events may take so many.
pub fn bytes_for(window: u64) -> u64 {
    let chunks = (window as usize / (CHUNK * 8)).max(CHUNKS_MIN);
    ((CHUNKS + chunks * CHUNK) * 8) as u64
}

/// How many chunks a file of so many words has.
pub(crate) fn chunks_in(words: usize) -> Option<usize> {
    let chunks = words.checked_sub(CHUNKS)? / CHUNK;
    (chunks >= CHUNKS_MIN).then_some(chunks)
}

/// What carries components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrying {
    /// A worker a core.
    #[default]
    Workers,
    /// A kernel thread each.
    Threads,
}

/// The worker of a component that has a thread of its own.
pub const NO_WORKER: u16 = u16::MAX;

/// What a component waits for, and at which of its ports if that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Nobody knows.
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
    /// The port, if it is one's own.
    pub fn port(self) -> Option<u16> {
        match self {
            Wait::Send(port) | Wait::Receive(port) | Wait::Linked(port) => port,
            Wait::Unknown | Wait::Select | Wait::Outside => None,
        }
    }

    /// 8 bits of what and 16 of where.
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

/// What a component does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// It was made and has not begun.
    #[default]
    Made,
    /// It could run, and stands in a queue.
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
    /// Never 0: what was not written is nobody's.
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

/// Kinds of events, in the low 8 bits of an event's second word; 24 bits of detail follow, and 32 of the
/// component.
pub(crate) mod event {
    pub(crate) const MADE: u64 = 1;
    pub(crate) const READY: u64 = 2;
    pub(crate) const RUNS: u64 = 3;
    pub(crate) const WAITS: u64 = 4;
    pub(crate) const ENDED: u64 = 5;
    /// The detail is `Between`: of workers.
    pub(crate) const MOVED: u64 = 6;
    /// The same of cores: a component's own thread.
    pub(crate) const THREAD_MOVED: u64 = 7;
    /// The same, and the component's place has the worker's number.
    pub(crate) const WORKER_MOVED: u64 = 8;
    /// The detail is the remark's number.
    pub(crate) const REMARK: u64 = 9;
}

/// From where to where, in 24 bits. More places than fit are told as the last.
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
