//! Samples of the traffic between components, and of their computing time.
//!
//! A message makes exactly one of its two ends wait, the first to arrive; so each resumption of a
//! component after a wait at a half-channel stands for one message there. The carriers sample some
//! of these resumptions at random, each weighted by the number since the last: the half-channel,
//! one of its peers, the value's size, and the length of the component's run. The paths inlined in
//! compiled programs get no extra code.
//!
//! Each worker collects its own samples ([`Sampler`]) and publishes them some times a second, for
//! the code that [takes](take) them.

mod sampler;

use std::ffi::c_char;
use std::sync::Mutex;

use crate::abi::ComponentType;
use crate::exchange::carrier;
use crate::ground::runtime::Part;
use crate::ground::sync::lock_std as lock;
use crate::hooks;
use crate::recording::Port;
use crate::seats::registry;
use crate::seats::seat::Seat;

pub(crate) use sampler::{Interest, Sampler, ThreadSampler};

/// A component, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    /// From 1, in creation order; 0 for none.
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

/// A half-channel, by address and by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) channel: usize,
    /// The number of the component whose port it is, or that made it; 0 for none.
    pub(crate) owner: u64,
    /// The port's name, a literal; null for a free one.
    pub(crate) port: *const c_char,
}

/// The finished wait of a component about to be resumed.
pub(crate) struct Wait {
    pub(crate) end: End,
    /// One of its peers, at random.
    pub(crate) partner: Option<End>,
    /// True if that peer, or this end, has several peers.
    pub(crate) is_shared: bool,
    pub(crate) is_send: bool,
    /// Bytes of the value that it received, if known.
    pub(crate) bytes: Option<usize>,
    /// The component's number and the port's, if the run is watched and this end is a port.
    pub(crate) port: Option<Port>,
}

/// A component's activity at a half-channel, over about a tenth of a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) who: Who,
    /// The number of its worker then; [`NO_WORKER`] for a thread.
    pub(crate) home: u16,
    /// The half-channel of its wait, and one of the peers there; none after other waits.
    pub(crate) end: Option<End>,
    pub(crate) partner: Option<End>,
    pub(crate) is_send: bool,
    /// One of the two ends has several peers.
    pub(crate) is_shared: bool,
    /// It was placed there by name, and stays.
    pub(crate) stays: bool,
    /// Number of waits that ended there.
    pub(crate) runs: u64,
    /// Bytes of the measured values, and the number of those values.
    pub(crate) bytes: u64,
    pub(crate) sized: u64,
    /// Time that it then ran.
    pub(crate) busy_ns: u64,
}

/// Stands for the home of a component that runs on a thread of its own.
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
                || seat.comes_to_callers(),
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

/// Most samples kept until they are taken.
const MOST: usize = 1 << 16;

struct Published {
    seen: Vec<Seen>,
    /// Number of samples dropped.
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

/// Whether there are samples to take.
pub(crate) fn is_any() -> bool {
    !lock(&PUBLISHED).seen.is_empty()
}

/// Takes the samples published since the last call, and the number dropped.
pub(crate) fn take() -> (Vec<Seen>, u64) {
    let mut published = lock(&PUBLISHED);
    let dropped = std::mem::take(&mut published.dropped);
    (std::mem::take(&mut published.seen), dropped)
}
