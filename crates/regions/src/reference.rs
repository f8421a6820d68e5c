//! References: separate ones, which lead to other processors and carry calls, and local ones.

use std::fmt;
use std::marker::{PhantomData, PhantomPinned};
use std::sync::Arc;

use crate::answer::Answer;
use crate::calls::{Make, Plain, Stepped, Unheard};
use crate::error::{CallError, LocalError};
use crate::handler::{Anchor, Handler, Steps};
use crate::here::{Absent, Here};
use crate::object::{Mobile, Object, Tracer};

/// A reference to an object that some processor handles, usually another one.
///
/// It leads to no data: calls are all that it takes. Nothing makes a [`Local`] of it. A clone is
/// another reference to the same object.
pub struct Separate<T: Object> {
    anchor: Arc<Anchor>,
    of: PhantomData<fn() -> T>,
}

impl<T: Object> Clone for Separate<T> {
    fn clone(&self) -> Separate<T> {
        Separate::of(Arc::clone(&self.anchor))
    }
}

/// Equal if both lead to one object.
impl<T: Object> PartialEq for Separate<T> {
    fn eq(&self, other: &Separate<T>) -> bool {
        Arc::ptr_eq(&self.anchor, &other.anchor)
    }
}

impl<T: Object> Eq for Separate<T> {}

impl<T: Object> fmt::Debug for Separate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Anchor { handler, slot, .. } = &*self.anchor;
        write!(f, "Separate({}.{slot})", handler.id)
    }
}

impl<T: Object> Object for Separate<T> {
    fn trace(&self, tracer: &mut Tracer) {
        note(self, &self.anchor, tracer);
    }
}

/// Notes a reference, with the place where it lies.
fn note<R>(reference: &R, anchor: &Anchor, tracer: &mut Tracer) {
    let at = std::ptr::from_ref(reference).addr();
    tracer.note(at, anchor.handler.id, anchor.slot);
}

impl<T: Object> Separate<T> {
    fn of(anchor: Arc<Anchor>) -> Separate<T> {
        Separate {
            anchor,
            of: PhantomData,
        }
    }

    /// Makes an object on a processor: logs the call of its constructor.
    pub(crate) fn make(
        handler: &Arc<Handler>,
        make: impl FnOnce(&mut Here) -> T + Mobile,
    ) -> Result<Separate<T>, CallError> {
        let anchor = handler.reserve()?;
        let target = Arc::clone(&anchor);
        handler.log(Box::new(Make { target, make }))?;
        Ok(Separate::of(anchor))
    }

    /// Logs a command, and goes on. It is applied after all calls that are logged before, also if
    /// the client has died by then. A panic of it is kept for
    /// [`Regions::take_failures`](crate::Regions::take_failures).
    ///
    /// # Errors
    /// The processor has ended, or a finaliser calls. Then nothing is logged.
    pub fn command(&self, run: impl FnOnce(&mut T, &mut Here) + Mobile) -> Result<(), CallError> {
        self.anchor.log(Box::new(Plain {
            target: Arc::clone(&self.anchor),
            run,
            outlet: Unheard,
            of: PhantomData::<fn() -> T>,
        }))
    }

    /// Logs a command that waits for others on its way, as it awaits answers of its own. Until it
    /// is over its processor applies no other call.
    ///
    /// # Errors
    /// As [`command`](Separate::command).
    pub fn command_async<F>(&self, run: F) -> Result<(), CallError>
    where
        F: for<'a> FnOnce(&'a mut T, &'a mut Here) -> Steps<'a, ()> + Mobile,
    {
        self.anchor.log(Box::new(Stepped {
            target: Arc::clone(&self.anchor),
            run,
            outlet: Unheard,
            of: PhantomData::<fn() -> T>,
        }))
    }

    /// Logs a query, and goes on. Its answer waits by necessity: when it is awaited.
    ///
    /// The answer is an error if the query was not applied to its end: it panicked, the processor
    /// has ended, or the wait would close a circle of calls that wait for each other.
    pub fn query<R: Mobile>(&self, run: impl FnOnce(&mut T, &mut Here) -> R + Mobile) -> Answer<R> {
        let handler = &self.anchor.handler;
        let (answer, outlet) = Answer::new(handler.id, &handler.common);
        let refused = self.anchor.log(Box::new(Plain {
            target: Arc::clone(&self.anchor),
            run,
            outlet,
            of: PhantomData::<fn() -> T>,
        }));
        said(refused, answer)
    }

    /// Logs a query that waits for others on its way.
    ///
    /// The answer is an error as with [`query`](Separate::query).
    pub fn query_async<R, F>(&self, run: F) -> Answer<R>
    where
        R: Mobile,
        F: for<'a> FnOnce(&'a mut T, &'a mut Here) -> Steps<'a, R> + Mobile,
    {
        let handler = &self.anchor.handler;
        let (answer, outlet) = Answer::new(handler.id, &handler.common);
        let refused = self.anchor.log(Box::new(Stepped {
            target: Arc::clone(&self.anchor),
            run,
            outlet,
            of: PhantomData::<fn() -> T>,
        }));
        said(refused, answer)
    }

    /// The processor that handles the object.
    ///
    /// # Errors
    /// It has ended.
    pub fn processor(&self) -> Result<Processor, CallError> {
        self.anchor.handler.itself().map(Processor)
    }
}

/// The answer of a query, or the reason why it was not logged.
fn said<R>(refused: Result<(), CallError>, answer: Answer<R>) -> Answer<R> {
    match refused {
        // The reply went with the call, and said that the processor has ended.
        Ok(()) | Err(CallError::Ended) => answer,
        Err(error) => answer.refused(error),
    }
}

/// A reference to an object of the same processor.
///
/// [`Here::with`] leads to the object, within a call of its processor only. It does not travel: see
/// [`Mobile`].
pub struct Local<T: Object> {
    anchor: Arc<Anchor>,
    of: PhantomData<fn() -> T>,
    /// Keeps it from calls to others.
    _stays: PhantomPinned,
}

impl<T: Object> Clone for Local<T> {
    fn clone(&self) -> Local<T> {
        Local::of(Arc::clone(&self.anchor))
    }
}

/// Equal if both lead to one object.
impl<T: Object> PartialEq for Local<T> {
    fn eq(&self, other: &Local<T>) -> bool {
        Arc::ptr_eq(&self.anchor, &other.anchor)
    }
}

impl<T: Object> Eq for Local<T> {}

impl<T: Object> fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Anchor { handler, slot, .. } = &*self.anchor;
        write!(f, "Local({}.{slot})", handler.id)
    }
}

impl<T: Object> Object for Local<T> {
    fn trace(&self, tracer: &mut Tracer) {
        note(self, &self.anchor, tracer);
    }
}

impl<T: Object> Local<T> {
    fn of(anchor: Arc<Anchor>) -> Local<T> {
        Local {
            anchor,
            of: PhantomData,
            _stays: PhantomPinned,
        }
    }

    /// The same object for others: a local reference may become a separate one, never the reverse.
    #[must_use]
    pub fn separate(&self) -> Separate<T> {
        Separate::of(Arc::clone(&self.anchor))
    }
}

/// A processor, to make objects on it. It lives as long as somebody alive has this.
#[derive(Clone)]
pub struct Processor(Arc<Anchor>);

impl fmt::Debug for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Processor({})", self.0.handler.id)
    }
}

impl PartialEq for Processor {
    fn eq(&self, other: &Processor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Processor {}

impl Object for Processor {
    fn trace(&self, tracer: &mut Tracer) {
        note(self, &self.0, tracer);
    }
}

impl Processor {
    pub(crate) fn of(anchor: Arc<Anchor>) -> Processor {
        Processor(anchor)
    }

    /// Makes an object that this processor handles: logs the call of its constructor.
    ///
    /// # Errors
    /// The processor has ended, or a finaliser calls.
    pub fn create<T: Object>(
        &self,
        make: impl FnOnce(&mut Here) -> T + Mobile,
    ) -> Result<Separate<T>, CallError> {
        Separate::make(&self.0.handler, make)
    }
}

impl Here {
    /// This processor.
    ///
    /// # Errors
    /// It has ended, with its runtime.
    pub fn processor(&self) -> Result<Processor, CallError> {
        self.handler.itself().map(Processor)
    }

    /// Makes an object that this processor handles.
    ///
    /// # Errors
    /// The processor has ended, with its runtime.
    pub fn create<T: Object>(&mut self, object: T) -> Result<Local<T>, CallError> {
        let anchor = self.handler.clone().reserve()?;
        self.put(anchor.slot, Box::new(object));
        Ok(Local::of(anchor))
    }

    /// Makes a processor.
    ///
    /// # Errors
    /// The regions have gone.
    pub fn new_processor(&self) -> Result<Processor, CallError> {
        let maker = self.handler.maker.upgrade().ok_or(CallError::Ended)?;
        maker.make().map(Processor)
    }

    /// Makes an object on a processor of its own.
    ///
    /// # Errors
    /// The regions have gone.
    pub fn create_separate<T: Object>(
        &self,
        make: impl FnOnce(&mut Here) -> T + Mobile,
    ) -> Result<Separate<T>, CallError> {
        self.new_processor()?.create(make)
    }

    /// Uses an object of this processor.
    ///
    /// # Errors
    /// The reference belongs to another processor; the object is in use further up in this call.
    pub fn with<T: Object, R>(
        &mut self,
        local: &Local<T>,
        run: impl FnOnce(&mut T, &mut Here) -> R,
    ) -> Result<R, LocalError> {
        if !Arc::ptr_eq(&local.anchor.handler, &self.handler) {
            return Err(LocalError::Elsewhere);
        }
        if local.anchor.is_gone() {
            return Err(LocalError::NoObject);
        }
        let taken = self.take(local.anchor.slot);
        let mut taken = taken.map_err(|absent| match absent {
            Absent::Taken => LocalError::InUse,
            Absent::Empty => LocalError::NoObject,
        })?;
        let (object, here) = taken.parts();
        Ok(run(object, here))
    }
}
