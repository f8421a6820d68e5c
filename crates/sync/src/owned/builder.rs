//! Options of a section.

use std::marker::PhantomData;
use std::time::Duration;

use super::Owned;
#[cfg(feature = "research")]
use crate::Queue;
use crate::{Drain, LockKind, Mode, NoProprietor, Order, Wait};

/// Default number of threads with mailboxes; further threads take the lock.
const CLIENTS: usize = 256;
/// More threads than a process has.
const CLIENTS_MAX: usize = 1 << 16;
/// Default number of requests that a thread may have open without waiting.
const DEPTH: u32 = 4;
const DEPTH_MAX: u32 = 1 << 16;

/// The chosen options.
#[derive(Clone, Debug)]
pub(super) struct SectionOptions {
    pub(super) mode: Mode,
    pub(super) lock: LockKind,
    pub(super) wait: Wait,
    pub(super) proprietor_wait: Wait,
    pub(super) core: Option<usize>,
    pub(super) drain: Drain,
    #[cfg(feature = "research")]
    pub(super) queue: Queue,
    pub(super) order: Order,
    pub(super) clients: usize,
    pub(super) depth: u32,
    pub(super) poison: bool,
    pub(super) name: String,
}

/// Options of a section to be made. Each has a default that suits most uses.
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
    pub(super) options: SectionOptions,
    data: PhantomData<fn(T)>,
}

impl<T: Send + 'static> Builder<T> {
    pub(super) fn new() -> Builder<T> {
        Builder {
            options: SectionOptions {
                mode: Mode::default(),
                lock: LockKind::default(),
                wait: Wait::default(),
                proprietor_wait: Wait::default(),
                core: None,
                drain: Drain::default(),
                #[cfg(feature = "research")]
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

    /// Sets the way of calls at first, or `Auto`. Default: [`Mode::Lock`].
    pub fn mode(mut self, mode: Mode) -> Self {
        self.options.mode = mode;
        self
    }

    /// Sets the lock that protects the data; every mode uses one. Default: [`LockKind::Mutex`].
    pub fn lock(mut self, lock: LockKind) -> Self {
        self.options.lock = lock;
        self
    }

    /// Sets how callers wait, for the lock and for answers.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.options.wait = wait;
        self
    }

    /// Sets how the proprietor waits for requests.
    pub fn proprietor_wait(mut self, wait: Wait) -> Self {
        self.options.proprietor_wait = wait;
        self
    }

    /// Pins the proprietor to a core. Default: wherever the system puts it; so, too, if the core is
    /// not available to this process, which `explain` then mentions.
    pub fn proprietor_core(mut self, core: usize) -> Self {
        self.options.core = Some(core);
        self
    }

    /// Sets how many of a thread's requests are served before the next thread's.
    pub fn drain(mut self, drain: Drain) -> Self {
        self.options.drain = drain;
        self
    }

    /// Sets how requests reach the proprietor. Default: [`Queue::Lines`]. The source's ring is
    /// there to be compared, and ignores some of the other options: see [`Queue::Ring`].
    #[cfg(feature = "research")]
    pub fn queue(mut self, queue: Queue) -> Self {
        self.options.queue = queue;
        self
    }

    /// Sets the order of requests found at once. Default: as found, which the source's ring always
    /// uses.
    pub fn order(mut self, order: Order) -> Self {
        self.options.order = order;
        self
    }

    /// Sets the number of threads with mailboxes; further threads take the lock, whatever the mode.
    /// Default: 256; at most 65536. Each costs two words, and its lines once it makes a request.
    pub fn clients(mut self, clients: usize) -> Self {
        self.options.clients = clients.min(CLIENTS_MAX);
        self
    }

    /// Sets how many posted requests a thread may have open before `post` waits, rounded up to a
    /// power of two. Default: 4; at most 65536. Each is a line of 64 bytes.
    pub fn depth(mut self, depth: u32) -> Self {
        self.options.depth = depth.clamp(1, DEPTH_MAX).next_power_of_two();
        self
    }

    /// Sets whether a panicking closure makes later calls fail until `clear_poison`. Default: no; a
    /// panic then harms its caller only.
    pub fn poison(mut self, poison: bool) -> Self {
        self.options.poison = poison;
        self
    }

    /// Sets the name of the section in explanations and of the proprietor's thread, which ends at a
    /// NUL.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = name.into();
        self
    }

    /// Sets how long callers and the proprietor spin before they sleep: both waits in one.
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
