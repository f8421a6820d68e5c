//! Who talks with whom, and who computes: seen by samples.
//!
//! A message makes exactly one of its two ends wait, whoever comes first; so each time that a
//! component is resumed after a wait at a half-channel, one message has passed there. The carriers
//! look at some of these resumptions, by chance, each standing for as many as there were since the
//! last: at the half-channel, one of its peers, the value's size, and how long the component runs.
//! Nothing is added to the ways that are inlined in compiled programs.
//!
//! What was seen is kept by each worker for itself ([`Sampler`]), and published some times a
//! second, for whoever [takes](take) it.

mod sampler;

use std::sync::Mutex;

use crate::abi::ComponentType;
use crate::exchange::carrier;
pub(crate) use crate::exchange::channel::peek::End;
use crate::exchange::channel::peek::Wait;
use crate::ground::runtime::Part;
use crate::ground::sync::lock_std as lock;
use crate::hooks;
use crate::seats::registry;
use crate::seats::seat::Seat;

pub(crate) use sampler::{Interest, Sampler, ThreadSampler};

/// A component, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    /// From 1, in creation order; 0 for nobody.
    pub(crate) id: u64,
    pub(crate) of: *const ComponentType,
    /// From 1, over those of its type.
    pub(crate) number: u32,
}

impl Who {
    pub(crate) fn of(seat: &Seat) -> Who {
        Who {
            id: seat.id,
            // SAFETY: the seat's memory is there, and its component's with it.
            of: unsafe { (*seat.component()).r#type },
            number: seat.identity().number,
        }
    }
}

/// What a component did at a half-channel, in about a tenth of a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) who: Who,
    /// The worker where it was, by number; [`NO_WORKER`] for a thread.
    pub(crate) home: u16,
    /// Where it waited, and one of the peers there; none after waits for something else.
    pub(crate) end: Option<End>,
    pub(crate) partner: Option<End>,
    pub(crate) is_send: bool,
    /// One of the two ends has several peers.
    pub(crate) is_shared: bool,
    /// It was placed where it is by name, and stays.
    pub(crate) stays: bool,
    /// How many waits ended there.
    pub(crate) runs: u64,
    /// Bytes of the values, and of how many they are.
    pub(crate) bytes: u64,
    pub(crate) sized: u64,
    /// For how long it then ran.
    pub(crate) busy_ns: u64,
}

/// The home of a component that has a thread of its own.
pub(crate) const NO_WORKER: u16 = u16::MAX;

// SAFETY: the pointers are to types and literals, which are static.
unsafe impl Send for Seen {}

impl Seen {
    fn new(seat: &Seat, home: u16, wait: Option<&Wait>) -> Seen {
        Seen {
            who: Who::of(seat),
            home,
            stays: seat.identity().service
                || registry::is_main(seat)
                || carrier::is_kept_placed(seat)
                || carrier::comes(seat),
            end: wait.map(|wait| wait.end),
            partner: wait.and_then(|wait| wait.partner),
            is_send: wait.is_some_and(|wait| wait.is_send),
            is_shared: wait.is_some_and(|wait| wait.is_shared),
            runs: 0,
            bytes: 0,
            sized: 0,
            busy_ns: 0,
        }
    }

    fn is_alike(&self, other: &Seen) -> bool {
        let ends = |seen: &Seen| {
            let channel = |end: Option<End>| end.map_or(0, |end| end.channel);
            (channel(seen.end), channel(seen.partner))
        };
        self.who.id == other.who.id && self.home == other.home && ends(self) == ends(other)
    }
}

/// More than this is not kept until somebody takes it.
const MOST: usize = 1 << 16;

struct Published {
    seen: Vec<Seen>,
    /// How many were not kept.
    dropped: u64,
}

static PUBLISHED: Part<Mutex<Published>> = Part::new(|| {
    Mutex::new(Published {
        seen: Vec::new(),
        dropped: 0,
    })
});

fn publish(seen: impl Iterator<Item = Seen>) {
    let mut published = lock(&PUBLISHED);
    for one in seen {
        if published.seen.len() < MOST {
            published.seen.push(one);
        } else {
            published.dropped += 1;
        }
    }
    drop(published);
    (hooks::get().has_samples)();
}

/// Is there anything to take?
pub(crate) fn is_any() -> bool {
    !lock(&PUBLISHED).seen.is_empty()
}

/// What was published since the last time, and how much of it is missing.
pub(crate) fn take() -> (Vec<Seen>, u64) {
    let mut published = lock(&PUBLISHED);
    let dropped = std::mem::take(&mut published.dropped);
    (std::mem::take(&mut published.seen), dropped)
}
