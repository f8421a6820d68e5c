//! The cache line between the two ends of a link, and its workers' watch on it.
//!
//! Workers hold watches, and half-channels hold the protocol ([`super::channel::link`]), so the
//! line itself is below both.

use std::ptr;

use crate::abi::{Channel, Component, Value};
#[cfg(not(loom))]
use crate::ground::runtime::Part;
use crate::ground::sync::{AtomicUsize, Mutex, Ordering, PlainCell, boxed, lock, spin_loop};
use crate::ground::without::Mechanism;

/// The receiver is blocked.
pub(super) const WAITS: usize = 1;
/// `given` holds a value for it.
pub(super) const GIVEN: usize = 2;
/// The sender is blocked, and `full` holds its value.
pub(super) const FULL: usize = 4;
/// The receiver has it.
pub(super) const TAKEN: usize = 8;
/// The receiver's worker does not watch: post the receiver.
pub(super) const TELL_RECEIVER: usize = 16;
/// The sender's worker does not watch: post the sender.
pub(super) const TELL_SENDER: usize = 32;

/// Looks at a line before its component parks: a few round trips' time. In models, one.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 16 };
/// Spin hints before each look, and twice as many before the first. A look takes the line away from
/// the other side, which needs it for as long as a component takes from one operation to the next.
/// `docs/internals/workers.md` has what was measured.
const HINTS: u32 = if cfg!(loom) { 1 } else { 3 };

/// A link's line.
#[repr(C, align(128))]
pub(crate) struct Line {
    pub(super) word: AtomicUsize,
    pub(super) given: PlainCell<Value>,
    pub(super) full: PlainCell<Value>,
    /// The manner of sending the value in `full`: a number of `light`.
    pub(super) manner: PlainCell<u8>,
    pub(super) sender: PlainCell<*mut Component>,
    pub(super) receiver: PlainCell<*mut Component>,
    pub(super) ends: Ends,
}

/// The fields that are constant while the link exists.
#[repr(align(128))]
pub(super) struct Ends {
    pub(super) out: PlainCell<*const Channel>,
    pub(super) into: PlainCell<*const Channel>,
    /// Their workers: atomic, since stale lines are read.
    pub(super) out_worker: AtomicUsize,
    pub(super) into_worker: AtomicUsize,
}

// SAFETY: the side whose turn it is by the word writes the values and components; a holder of both
// workers' leave writes the ends.
unsafe impl Sync for Line {}
// SAFETY: as above.
unsafe impl Send for Line {}

/// A runtime's lines: the number made, and those that link nothing.
#[derive(Default)]
struct Lines {
    made: usize,
    spare: Vec<&'static Line>,
}

#[cfg(not(loom))]
impl Drop for Lines {
    fn drop(&mut self) {
        for line in self.spare.drain(..) {
            // SAFETY: from `Line::new`. The runtime ends, and with it every thread that could still
            // look at the line.
            drop(unsafe { Box::from_raw(ptr::from_ref(line).cast_mut()) });
        }
    }
}

#[cfg(not(loom))]
static LINES: Part<Mutex<Lines>> = Part::new(Mutex::default);
#[cfg(loom)]
loom::lazy_static! {
    static ref LINES: Mutex<Lines> = Mutex::new(Lines::default());
}

/// Number of links.
#[cfg(not(loom))]
pub(crate) fn in_use() -> usize {
    let lines = lock(&LINES);
    lines.made - lines.spare.len()
}

/// In a half-channel's place, a line's mark is two more than its address.
const MARK: usize = 2;

impl Line {
    pub(super) fn new() -> &'static Line {
        {
            let mut lines = lock(&LINES);
            if let Some(line) = lines.spare.pop() {
                return line;
            }
            lines.made += 1;
        }
        Box::leak(boxed(Line {
            word: AtomicUsize::new(0),
            given: PlainCell::new(Value::NOTHING),
            full: PlainCell::new(Value::NOTHING),
            manner: PlainCell::new(0),
            sender: PlainCell::new(ptr::null_mut()),
            receiver: PlainCell::new(ptr::null_mut()),
            ends: Ends {
                out: PlainCell::new(ptr::null()),
                into: PlainCell::new(ptr::null()),
                out_worker: AtomicUsize::new(0),
                into_worker: AtomicUsize::new(0),
            },
        }))
    }

    /// Prefetches the line for writing: read first, it would travel twice.
    pub(super) fn fetch(&self) {
        if Mechanism::Prefetch.is_off() {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch affects only caches.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(
                ptr::from_ref(self).cast(),
            );
        }
    }

    /// Polls the word for this bit for a short while. True once it is set.
    pub(super) fn comes_to(&self, bit: usize) -> bool {
        let pause = || (0..HINTS).for_each(|_| spin_loop());
        pause();
        (0..LOOKS).any(|_| {
            pause();
            self.word.load(Ordering::Acquire) & bit != 0
        })
    }

    /// Puts a line that links nothing any more in reserve.
    pub(super) fn put_by(&'static self) {
        lock(&LINES).spare.push(self);
    }

    pub(crate) fn mark(&'static self) -> usize {
        ptr::from_ref(self).expose_provenance() | MARK
    }
}

/// The line with this mark.
pub(crate) fn of_mark(place: usize) -> Option<&'static Line> {
    // SAFETY: lines live as long as their runtime, and only their marks have this bit alone.
    (place & 3 == MARK).then(|| unsafe { &*ptr::with_exposed_provenance(place - MARK) })
}

/// An end of a link whose component is blocked.
#[derive(Clone, Copy)]
pub(crate) struct Watch {
    line: &'static Line,
    is_sender: bool,
}

impl Watch {
    pub(crate) fn new(line: &'static Line, is_sender: bool) -> Watch {
        Watch { line, is_sender }
    }

    pub(crate) fn is_of(&self, line: &'static Line, is_sender: bool) -> bool {
        ptr::eq(self.line, line) && self.is_sender == is_sender
    }

    fn sign(&self) -> usize {
        if self.is_sender { TAKEN } else { GIVEN }
    }

    /// Whether the wait is over. Changes nothing.
    pub(crate) fn is_over(&self) -> bool {
        self.line.word.load(Ordering::Acquire) & self.sign() != 0
    }

    /// Makes the other side tell from now on; true if the wait is over already.
    pub(super) fn asks_to_be_told(&self) -> bool {
        let tell = if self.is_sender {
            TELL_SENDER
        } else {
            TELL_RECEIVER
        };
        self.line.word.fetch_or(tell, Ordering::AcqRel) & self.sign() != 0
    }

    /// The component that waited, with its result.
    ///
    /// # Safety
    /// The caller has its worker's leave, and the wait is over.
    pub(super) unsafe fn take(&self) -> *mut Component {
        let line = self.line;
        // SAFETY: as the caller promises, the component is parked and the caller's.
        unsafe {
            if self.is_sender {
                return line.sender.get();
            }
            let receiver = line.receiver.get();
            (*receiver).received = line.given.get();
            (*receiver).arm = 0;
            receiver
        }
    }
}
