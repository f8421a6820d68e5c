//! How a section is made.

use std::marker::PhantomData;
use std::time::Duration;

use super::Owned;
use crate::{Drain, LockKind, Mode, NoProprietor, Order, Queue, Wait};

/// Threads that may have requests of their own at once; those beyond take the lock.
const CLIENTS: usize = 256;
/// More threads than a process has.
const CLIENTS_MAX: usize = 1 << 16;
/// Requests that a thread may have made and not seen served, if it waits for none of them.
const DEPTH: u32 = 4;
const DEPTH_MAX: u32 = 1 << 16;

/// What was chosen.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) mode: Mode,
    pub(super) lock: LockKind,
    pub(super) wait: Wait,
    pub(super) proprietor_wait: Wait,
    pub(super) core: Option<usize>,
    pub(super) drain: Drain,
    pub(super) queue: Queue,
    pub(super) order: Order,
    pub(super) clients: usize,
    pub(super) depth: u32,
    pub(super) poison: bool,
    pub(super) name: String,
}

/// Chooses how a section is entered, before it is made. Every choice has a default that is right for most.
///
/// ```
/// use hearth_sync::{LockKind, Mode, Owned};
///
/// let hits = Owned::builder()
///     .mode(Mode::Lock)
///     .lock(LockKind::Ticket)
///     .name("hits")
///     .build(0u64)?;
/// assert_eq!(hits.call(|hits| { *hits += 1; *hits }), 1);
/// # Ok::<(), hearth_sync::NoProprietor>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct Builder<T> {
    pub(super) options: Options,
    data: PhantomData<fn(T)>,
}

impl<T: Send + 'static> Builder<T> {
    pub(super) fn new() -> Builder<T> {
        Builder {
            options: Options {
                mode: Mode::default(),
                lock: LockKind::default(),
                wait: Wait::default(),
                proprietor_wait: Wait::default(),
                core: None,
                drain: Drain::default(),
                queue: Queue::default(),
                order: Order::default(),
                clients: CLIENTS,
                depth: DEPTH,
                poison: false,
                name: String::from("hearth-owner"),
            },
            data: PhantomData,
        }
    }

    /// The way that calls take at first, or `Auto`. [`Mode::Lock`] if not said.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.options.mode = mode;
        self
    }

    /// Which lock protects the data; in all modes one does. [`LockKind::Mutex`] if not said.
    pub fn lock(mut self, lock: LockKind) -> Self {
        self.options.lock = lock;
        self
    }

    /// How callers wait, for the lock and for answers.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.options.wait = wait;
        self
    }

    /// How the proprietor waits for requests.
    pub fn proprietor_wait(mut self, wait: Wait) -> Self {
        self.options.proprietor_wait = wait;
        self
    }

    /// The core that the proprietor stays on. Where the system puts it, if not said; so, too, if the core is
    /// none of this process's, which `explain` then tells.
    pub fn proprietor_core(mut self, core: usize) -> Self {
        self.options.core = Some(core);
        self
    }

    /// How many of a thread's requests are served before the next thread's.
    pub fn drain(mut self, drain: Drain) -> Self {
        self.options.drain = drain;
        self
    }

    /// How requests reach the proprietor. [`Queue::Lines`] if not said; the source's ring is there to be compared,
    /// and does without some of the other choices: see [`Queue::Ring`].
    pub fn queue(mut self, queue: Queue) -> Self {
        self.options.queue = queue;
        self
    }

    /// In which order requests are served that are found at once. As they are found, if not said, and always with
    /// [`Queue::Ring`].
    pub fn order(mut self, order: Order) -> Self {
        self.options.order = order;
        self
    }

    /// For so many threads lines are provided; later ones take the lock, whatever the mode. 256 if not said, 65536
    /// at most; each costs two words, and its lines once it asks.
    ///
    /// With [`Queue::Ring`] the ring has room for two messages of each, whosesoever they are, and nobody takes the lock.
    pub fn clients(mut self, clients: usize) -> Self {
        self.options.clients = clients.min(CLIENTS_MAX);
        self
    }

    /// So many posted requests a thread may have open before `post` waits, rounded up to a power of two. 4 if
    /// not said, 65536 at most; each is a line of 64 bytes. Not with [`Queue::Ring`], where `post` waits while the ring
    /// is full.
    pub fn depth(mut self, depth: u32) -> Self {
        self.options.depth = depth.clamp(1, DEPTH_MAX).next_power_of_two();
        self
    }

    /// Whether a closure that panics makes later calls fail until `clear_poison`. No, if not said: a panic
    /// then harms its caller only.
    pub fn poison(mut self, poison: bool) -> Self {
        self.options.poison = poison;
        self
    }

    /// What the proprietor's thread is called, up to a character of value nought, and the section in explanations.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = name.into();
        self
    }

    /// Callers and the proprietor look for so long before they sleep: both waits in one.
    pub fn spin_for(self, spin: Duration) -> Self {
        self.wait(Wait::spin_for(spin))
            .proprietor_wait(Wait::spin_for(spin))
    }

    pub(crate) fn waiting(&self) -> Wait {
        self.options.wait
    }

    /// Makes the section, and starts its proprietor if the mode needs one.
    ///
    /// # Errors
    /// The system has no thread for the proprietor.
    pub fn build(self, data: T) -> Result<Owned<T>, NoProprietor> {
        Owned::with_options(data, self.options)
    }
}
