//! A processor: a log of calls, the region whose objects it handles, and the loop that applies one
//! call after the other.
//!
//! | field | who writes | in which state |
//! |---|---|---|
//! | `State::log` | any client puts in at the end, the loop takes from the front | under the lock |
//! | `State::objects` | the loop, which takes them out for a call; the collector | under the lock, if there |
//! | `State::anchors` | who reserves a slot, the collector | under the lock |
//! | `Here::objects` | the loop's call | while `State::objects` is `None` |
//!
//! A processor is *idle* if its objects are in place and its log is empty. It is basic, in the
//! collector's words, otherwise: also while it applies the last call and its log is empty.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use crate::common::{Common, as_processor, is_quiet, lock, quietly};
use crate::error::CallError;
use crate::here::{Here, Objects};
use crate::object::{Found, Object, Tracer};

/// The steps of a call that waits for others: a future in a box.
pub type Steps<'a, R> = Pin<Box<dyn Future<Output = R> + Send + 'a>>;

/// A logged call.
pub(crate) trait Call: Send {
    fn apply<'a>(self: Box<Self>, here: &'a mut Here) -> Applied<'a>;
}

/// An application, as far as it went without waiting.
pub(crate) enum Applied<'a> {
    Done,
    Steps(Steps<'a, ()>),
}

/// Makes processors.
pub(crate) trait Maker: Send + Sync {
    /// Makes one, and gives a reference to it: without any it could be collected at once.
    fn make(&self) -> Result<Arc<Anchor>, CallError>;
}

/// One object, as its references see it. Its count of strong references is the references' number
/// and one, that of the slot.
pub(crate) struct Anchor {
    pub(crate) handler: Arc<Handler>,
    pub(crate) slot: u32,
    /// The object was collected. A reference that its finaliser gave away must not lead to the
    /// slot's next object.
    is_gone: AtomicBool,
}

impl Anchor {
    /// Logs a call of the object.
    pub(crate) fn log(&self, call: Box<dyn Call>) -> Result<(), CallError> {
        if is_quiet() {
            return Err(CallError::Finalising);
        }
        match self.is_gone() {
            true => Err(CallError::Ended),
            false => self.handler.log(call),
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        // Acquire pairs with the Release of whoever let it go. A reference that came to be since
        // comes from the finaliser, which ran after that.
        self.is_gone.load(Ordering::Acquire)
    }

    fn let_go(&self) {
        self.is_gone.store(true, Ordering::Release);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Runs,
    /// The regions have gone: the processor ends when its log is empty.
    Closes,
    Ended,
}

struct State {
    log: VecDeque<Box<dyn Call>>,
    /// None while a call is applied.
    objects: Option<Objects>,
    anchors: Vec<Option<Arc<Anchor>>>,
    free: Vec<u32>,
    /// Calls logged and slots reserved so far. As long as it stays, an idle processor has slept.
    logged: u64,
    is_active: bool,
    fate: Fate,
    waker: Option<Waker>,
}

impl State {
    fn is_idle(&self) -> bool {
        self.objects.is_some() && self.log.is_empty()
    }

    fn slept_since(&self, logged: u64) -> bool {
        self.logged == logged && self.is_idle() && self.fate != Fate::Ended
    }
}

/// A processor.
pub(crate) struct Handler {
    /// Its number, which a later one has again when this has been collected.
    pub(crate) id: u32,
    pub(crate) common: Arc<Common>,
    pub(crate) maker: Weak<dyn Maker>,
    state: Mutex<State>,
}

/// Calls that are applied before the loop lets others have its worker.
const IN_A_ROW: u32 = 64;

impl Handler {
    /// Makes a processor whose first slot stands for itself, with a reference to that.
    pub(crate) fn make(id: u32, common: Arc<Common>, maker: Weak<dyn Maker>) -> Arc<Anchor> {
        let handler = Arc::new(Handler {
            id,
            common,
            maker,
            state: Mutex::new(State {
                log: VecDeque::new(),
                objects: Some(Objects::default()),
                anchors: Vec::new(),
                free: Vec::new(),
                logged: 0,
                is_active: false,
                fate: Fate::Runs,
                waker: None,
            }),
        });
        lock(&handler.state).reserve(&handler)
    }

    /// A reference to the processor itself.
    pub(crate) fn itself(&self) -> Result<Arc<Anchor>, CallError> {
        let state = lock(&self.state);
        let own = state.anchors.first().and_then(Option::as_ref);
        own.cloned().ok_or(CallError::Ended)
    }

    /// Reserves a slot for an object.
    pub(crate) fn reserve(self: &Arc<Self>) -> Result<Arc<Anchor>, CallError> {
        if is_quiet() {
            return Err(CallError::Finalising);
        }
        let mut state = lock(&self.state);
        match state.fate {
            Fate::Ended => Err(CallError::Ended),
            _ => Ok(state.reserve(self)),
        }
    }

    /// Logs a call, which is applied after all that are logged.
    pub(crate) fn log(&self, call: Box<dyn Call>) -> Result<(), CallError> {
        let waker = {
            let mut state = lock(&self.state);
            if state.fate != Fate::Runs {
                return Err(CallError::Ended);
            }
            state.log.push_back(call);
            state.logged += 1;
            if !state.is_active {
                state.is_active = true;
                self.common.begin_active();
            }
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
        Ok(())
    }

    fn poll_next(
        &self,
        here: &mut Here,
        is_applying: &mut bool,
        context: &Context<'_>,
    ) -> Poll<Option<Box<dyn Call>>> {
        // Declared before the lock is taken, so that destructors run without it.
        let _garbage;
        let mut state = lock(&self.state);
        if std::mem::take(is_applying) {
            let mut objects = here.leave();
            if objects.is_due() {
                _garbage = Garbage(state.own_garbage(&mut objects, self), self);
                objects.follow();
            }
            state.objects = Some(objects);
        }
        if state.fate != Fate::Ended
            && let Some(call) = state.log.pop_front()
        {
            here.enter(state.objects.take().unwrap_or_default());
            *is_applying = true;
            return Poll::Ready(Some(call));
        }
        let was_active = std::mem::take(&mut state.is_active);
        let goes_on = state.fate == Fate::Runs;
        if goes_on {
            state.waker = Some(context.waker().clone());
        }
        drop(state);
        // Wakes others' wakers, which may do anything.
        if was_active {
            self.common.end_active();
        }
        match goes_on {
            true => Poll::Pending,
            false => Poll::Ready(None),
        }
    }

    /// Lets the processor end when it has applied all that is logged.
    pub(crate) fn close(&self) {
        let waker = {
            let mut state = lock(&self.state);
            if state.fate == Fate::Runs {
                state.fate = Fate::Closes;
            }
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Ends it: nothing that is still logged is applied.
    fn end(&self) {
        let (was_active, _log, _objects, _anchors) = {
            let mut state = lock(&self.state);
            state.fate = Fate::Ended;
            (
                std::mem::take(&mut state.is_active),
                std::mem::take(&mut state.log),
                state.objects.take(),
                std::mem::take(&mut state.anchors),
            )
        };
        if was_active {
            self.common.end_active();
        }
        // Destructors of the program's run here, without the lock.
    }
}

/// Objects that a processor found dead in its own region.
struct Garbage<'a>(Vec<Box<dyn Object>>, &'a Handler);

impl Drop for Garbage<'_> {
    fn drop(&mut self) {
        for object in self.0.drain(..) {
            if let Err(message) = quietly(|| drop(object)) {
                self.1.common.fail(message);
            }
        }
    }
}

impl State {
    /// Takes those objects out that only dead objects of this region refer to. References from
    /// elsewhere, of logged calls too, are more than are found here and keep their objects, so this
    /// needs no look at others, and finds no circle that leads through them.
    ///
    /// A processor that is never idle collects its own garbage so, between two calls.
    fn own_garbage(&mut self, objects: &mut Objects, handler: &Handler) -> Vec<Box<dyn Object>> {
        let mut tracer = Tracer::default();
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut inside = vec![0_usize; self.anchors.len()];
        for (slot, object) in objects.held() {
            if let Err(message) = quietly(|| object.trace(&mut tracer)) {
                handler.common.fail(message);
                return Vec::new();
            }
            for found in tracer.take().filter(|it| it.processor == handler.id) {
                edges.push((slot, found.slot));
                inside[found.slot as usize] += 1;
            }
        }
        let is_outside = |slot: usize| {
            let anchor = self.anchors[slot].as_ref();
            slot == 0 || anchor.is_some_and(|it| Arc::strong_count(it) - 1 > inside[slot])
        };
        let mut is_live: Vec<bool> = (0..self.anchors.len()).map(is_outside).collect();
        let mut left: Vec<u32> = (0..self.anchors.len() as u32)
            .filter(|slot| is_live[*slot as usize])
            .collect();
        while let Some(from) = left.pop() {
            let begin = edges.partition_point(|edge| edge.0 < from);
            for (_, to) in edges[begin..].iter().take_while(|edge| edge.0 == from) {
                if !std::mem::replace(&mut is_live[*to as usize], true) {
                    left.push(*to);
                }
            }
        }
        let mut garbage = Vec::new();
        for slot in (0..self.anchors.len() as u32).filter(|slot| !is_live[*slot as usize]) {
            if let Some(anchor) = self.anchors[slot as usize].take() {
                anchor.let_go();
                self.free.push(slot);
            }
            if let Some((object, bytes)) = objects.remove(slot) {
                handler.common.bytes.sub(bytes);
                garbage.push(object);
            }
        }
        garbage
    }

    fn reserve(&mut self, handler: &Arc<Handler>) -> Arc<Anchor> {
        // The collector has not seen this slot.
        self.logged += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.anchors.push(None);
            self.anchors.len() as u32 - 1
        });
        let anchor = Arc::new(Anchor {
            handler: Arc::clone(handler),
            slot,
            is_gone: AtomicBool::new(false),
        });
        self.anchors[slot as usize] = Some(Arc::clone(&anchor));
        anchor
    }
}

/// Ends a processor however its component ends: by collection, with its regions, or stopped.
struct Ending(Arc<Handler>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The steps of a call, polled as part of the processor that applies it.
struct Within<'a> {
    id: u32,
    steps: Steps<'a, ()>,
}

impl Future for Within<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let id = self.id;
        as_processor(id, || self.steps.as_mut().poll(context))
    }
}

/// Applies calls until the processor ends.
pub(crate) async fn run(handler: Arc<Handler>) {
    let _ending = Ending(Arc::clone(&handler));
    let mut here = Here::new(&handler);
    let (mut is_applying, mut in_a_row) = (false, 0);
    loop {
        let next = poll_fn(|context| handler.poll_next(&mut here, &mut is_applying, context));
        let Some(call) = next.await else { return };
        if let Applied::Steps(steps) = as_processor(handler.id, || call.apply(&mut here)) {
            let id = handler.id;
            Within { id, steps }.await;
            handler.common.waits.clear(id);
        }
        in_a_row += 1;
        if in_a_row >= IN_A_ROW {
            in_a_row = 0;
            pause().await;
        }
    }
}

/// Lets others have the worker once.
pub(crate) async fn pause() {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The collector's look at a processor.
pub(crate) enum Look {
    /// It is no more.
    Ended,
    /// It has a call to apply, or applies one.
    Basic,
    /// It sleeps.
    Idle {
        /// Calls that it has had.
        logged: u64,
        /// Slots for objects.
        slots: u32,
    },
}

impl Handler {
    /// Looks at the processor, and at the references of its objects if it sleeps. `found` gets each
    /// with the slot of the object that holds it.
    ///
    /// The objects' own code traces, under the lock. It must not call, and cannot.
    pub(crate) fn look(&self, tracer: &mut Tracer, mut found: impl FnMut(u32, Found)) -> Look {
        let state = lock(&self.state);
        if state.fate == Fate::Ended {
            return Look::Ended;
        }
        let Some(objects) = state.objects.as_ref().filter(|_| state.log.is_empty()) else {
            return Look::Basic;
        };
        for (slot, object) in objects.held() {
            if let Err(message) = quietly(|| object.trace(tracer)) {
                tracer.clear();
                self.common.fail(message);
                return Look::Basic;
            }
            tracer.take().for_each(|reference| found(slot, reference));
        }
        Look::Idle {
            logged: state.logged,
            slots: state.anchors.len() as u32,
        }
    }

    /// Numbers of references to the objects by slot, of a processor that has slept since; an empty
    /// slot has none.
    pub(crate) fn counts(&self, logged: u64, mut count: impl FnMut(usize)) -> bool {
        let state = lock(&self.state);
        if !state.slept_since(logged) {
            return false;
        }
        for anchor in &state.anchors {
            count(
                anchor
                    .as_ref()
                    .map_or(0, |anchor| Arc::strong_count(anchor) - 1),
            );
        }
        true
    }

    pub(crate) fn has_slept_since(&self, logged: u64) -> bool {
        lock(&self.state).slept_since(logged)
    }

    /// Takes the objects of dead slots out, and ends the processor if it is dead itself. Gives the
    /// objects and their bytes.
    pub(crate) fn sweep(
        &self,
        logged: u64,
        is_dead: bool,
        dead: impl Fn(u32) -> bool,
    ) -> Option<(Vec<Box<dyn Object>>, usize)> {
        let (mut objects, mut bytes) = (Vec::new(), 0);
        let (waker, _anchors) = {
            let mut state = lock(&self.state);
            if !state.slept_since(logged) {
                return None;
            }
            let mut anchors = Vec::new();
            // The first slot is the processor itself, and goes with it.
            let first = u32::from(!is_dead);
            for slot in first..state.anchors.len() as u32 {
                if !is_dead && !dead(slot) {
                    continue;
                }
                let Some(anchor) = state.anchors[slot as usize].take() else {
                    continue;
                };
                anchor.let_go();
                anchors.push(anchor);
                state.free.push(slot);
                let gone = state.objects.as_mut().and_then(|all| all.remove(slot));
                if let Some((object, size)) = gone {
                    objects.push(object);
                    bytes += size;
                }
            }
            if is_dead {
                state.fate = Fate::Ended;
            }
            (state.waker.take_if(|_| is_dead), anchors)
        };
        waker.into_iter().for_each(Waker::wake);
        Some((objects, bytes))
    }
}
