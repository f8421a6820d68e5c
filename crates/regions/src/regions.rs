//! The regions of a program: they make processors, and collect them.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

use hearth::Hearth;

use crate::collection::{Collected, Collection};
use crate::common::{Common, is_quiet, lock};
use crate::error::CallError;
use crate::handler::{Anchor, Handler, Maker, pause, run};
use crate::here::Here;
use crate::object::{Mobile, Object};
use crate::reference::{Processor, Separate};

/// Processors at which the first automatic collection begins. A sleeping one takes about as much as
/// a few objects, so this is by count and not by cost.
const PROCESSORS: usize = 1_000;
/// Bytes of objects at which the first automatic collection begins.
const BYTES: usize = 16 << 20;

/// The processors by number.
#[derive(Default)]
struct Registry {
    all: Vec<Option<Arc<Handler>>>,
    free: Vec<u32>,
}

struct Shared {
    hearth: Hearth,
    common: Arc<Common>,
    registry: Mutex<Registry>,
    /// The automatic collection that is under way.
    collection: Mutex<Option<Collection>>,
    itself: Weak<Shared>,
}

impl Maker for Shared {
    fn make(&self) -> Result<Arc<Anchor>, CallError> {
        if is_quiet() {
            return Err(CallError::Finalising);
        }
        let maker = self.itself.clone();
        let anchor = {
            let mut registry = lock(&self.registry);
            let id = registry.free.pop().unwrap_or_else(|| {
                registry.all.push(None);
                registry.all.len() as u32 - 1
            });
            let anchor = Handler::make(id, Arc::clone(&self.common), maker);
            registry.all[id as usize] = Some(Arc::clone(&anchor.handler));
            anchor
        };
        let component = self.hearth.component("Processor").service();
        component.spawn(run(Arc::clone(&anchor.handler)));
        if self.common.processors.add(1) {
            self.common.ring();
        }
        Ok(anchor)
    }
}

impl Shared {
    fn begin(&self) -> Collection {
        let registry = lock(&self.registry);
        Collection::new(registry.all.iter().flatten().cloned().collect())
    }

    /// Forgets those that have ended, and sets the next thresholds.
    fn finish(&self, collection: &Collection) -> Collected {
        let gone: Vec<Option<Arc<Handler>>> = {
            let mut registry = lock(&self.registry);
            let ended = collection.ended.iter();
            ended
                .map(|&id| {
                    registry.free.push(id);
                    registry.all[id as usize].take()
                })
                .collect()
        };
        let common = &self.common;
        common.processors.sub(gone.len());
        common.bytes.sub(collection.freed_bytes);
        common.processors.follow();
        common.bytes.follow();
        collection.collected
    }

    /// Goes on with an automatic collection, and begins one if need be; true when it is over.
    fn step(&self) -> bool {
        let mut under_way = match self.collection.try_lock() {
            Ok(under_way) => under_way,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            // Somebody collects just now.
            Err(TryLockError::WouldBlock) => return true,
        };
        let collection = under_way.get_or_insert_with(|| self.begin());
        let is_over = collection.step();
        if is_over && let Some(collection) = under_way.take() {
            self.finish(&collection);
        }
        is_over
    }

    fn collect(&self) -> Collected {
        if is_quiet() {
            return Collected::default();
        }
        let mut under_way = lock(&self.collection);
        // One that is under way has looked at some already: what has died since needs another.
        if let Some(mut former) = under_way.take() {
            while !former.step() {}
            self.finish(&former);
        }
        let mut collection = self.begin();
        while !collection.step() {}
        self.finish(&collection)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.common.close_bell();
        let registry = std::mem::take(&mut *lock(&self.registry));
        for handler in registry.all.into_iter().flatten() {
            handler.close();
        }
    }
}

/// Collects whenever the bell rings, in pieces, until the regions have gone.
async fn listen(common: Arc<Common>, shared: Weak<Shared>) {
    while poll_fn(|context| common.poll_bell(context)).await {
        loop {
            // Held for a step only: the last handle ends the regions.
            let Some(shared) = shared.upgrade() else {
                return;
            };
            if shared.step() {
                break;
            }
            drop(shared);
            pause().await;
        }
    }
}

/// The settings of regions.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is made before `start`"]
pub struct Builder {
    is_automatic: bool,
    processors: usize,
    bytes: usize,
}

impl Builder {
    /// Whether to collect when processors or bytes have reached a threshold; true if not set.
    pub fn automatic(mut self, is_automatic: bool) -> Builder {
        self.is_automatic = is_automatic;
        self
    }

    /// Processors below which nothing is collected automatically; 1000 if not set. After a
    /// collection the threshold is twice what is left, or this.
    pub fn processors_least(mut self, processors: usize) -> Builder {
        self.processors = processors;
        self
    }

    /// Bytes of objects below which nothing is collected automatically; 16 MiB if not set. After a
    /// collection the threshold is twice what is left, or this.
    pub fn bytes_least(mut self, bytes: usize) -> Builder {
        self.bytes = bytes;
        self
    }

    /// Makes regions in a runtime.
    pub fn start(self, hearth: &Hearth) -> Regions {
        let common = Arc::new(Common::new(self.processors, self.bytes));
        let shared = Arc::new_cyclic(|itself| Shared {
            hearth: hearth.clone(),
            common: Arc::clone(&common),
            registry: Mutex::default(),
            collection: Mutex::default(),
            itself: itself.clone(),
        });
        if self.is_automatic {
            let listening = listen(common, Arc::downgrade(&shared));
            hearth.component("Collector").service().spawn(listening);
        }
        Regions(shared)
    }
}

/// The processors of a program and their objects. A clone is another handle on the same.
///
/// They keep their runtime. When the last handle is dropped, processors apply what is logged and
/// end; later calls are refused. An object that holds a handle keeps the regions, and with them
/// itself: give it what it needs by [`Here`] instead.
#[derive(Clone)]
pub struct Regions(Arc<Shared>);

impl fmt::Debug for Regions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Regions").finish_non_exhaustive()
    }
}

impl Regions {
    /// Makes regions in a runtime, with the settings of [`Builder`] as they are.
    pub fn start(hearth: &Hearth) -> Regions {
        Regions::builder().start(hearth)
    }

    /// The settings, to be changed before the start.
    pub fn builder() -> Builder {
        Builder {
            is_automatic: true,
            processors: PROCESSORS,
            bytes: BYTES,
        }
    }

    /// Makes an object on a processor of its own: logs the call of its constructor there, and goes
    /// on.
    ///
    /// # Errors
    /// A finaliser calls.
    pub fn create<T: Object>(
        &self,
        make: impl FnOnce(&mut Here) -> T + Mobile,
    ) -> Result<Separate<T>, CallError> {
        self.processor()?.create(make)
    }

    /// Makes a processor.
    ///
    /// # Errors
    /// A finaliser calls.
    pub fn processor(&self) -> Result<Processor, CallError> {
        self.0.make().map(Processor::of)
    }

    /// Collects now: ends the processors that are dead, and drops dead objects of those that sleep.
    ///
    /// The calling thread does it, while processors go on. Nothing happens if a finaliser calls.
    pub fn collect(&self) -> Collected {
        self.0.collect()
    }

    /// Waits until no processor has a call to apply. Calls that come from outside meanwhile make it
    /// wait longer. In a call it would wait for itself.
    pub async fn rest(&self) {
        poll_fn(|context| self.0.common.poll_rest(context)).await;
    }

    /// Number of processors: those that live, and those that nobody has collected yet.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.0.common.processors.now()
    }

    /// Bytes of objects, as [`Object::bytes`] said when they were made.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.common.bytes.now()
    }

    /// Takes the messages of what panicked unheard: commands, constructors and finalisers. Each is
    /// given once.
    #[must_use]
    pub fn take_failures(&self) -> Vec<String> {
        self.0.common.take_failures()
    }
}
