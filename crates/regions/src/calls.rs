//! Calls as they lie in a log: constructors, commands and queries, with steps or without.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::answer::Reply;
use crate::common::{Common, caught};
use crate::error::CallError;
use crate::handler::{Anchor, Applied, Call, Steps};
use crate::here::Here;
use crate::object::Object;

/// The receiver of an outcome: a client, or nobody.
pub(crate) trait Outlet<R>: Send {
    fn put(self, outcome: Result<R, CallError>, common: &Common);
}

impl<R: Send> Outlet<R> for Reply<R> {
    fn put(self, outcome: Result<R, CallError>, _common: &Common) {
        self.send(outcome);
    }
}

/// The outlet of commands: failures are kept for the program.
pub(crate) struct Unheard;

impl Outlet<()> for Unheard {
    fn put(self, outcome: Result<(), CallError>, common: &Common) {
        if let Err(error) = outcome {
            common.fail(match error {
                CallError::Panicked { message } => message,
                other => other.to_string(),
            });
        }
    }
}

/// Makes an object in a slot.
pub(crate) struct Make<F> {
    /// The object, which lives as long as the call is logged.
    pub(crate) target: Arc<Anchor>,
    pub(crate) make: F,
}

impl<T, F> Call for Make<F>
where
    T: Object,
    F: FnOnce(&mut Here) -> T + Send,
{
    fn apply<'a>(self: Box<Self>, here: &'a mut Here) -> Applied<'a> {
        let Make { target, make } = *self;
        match caught(|| make(here)) {
            Ok(object) => here.put(target.slot, Box::new(object)),
            Err(message) => here.handler.common.fail(message),
        }
        Applied::Done
    }
}

/// Applies a function to an object.
pub(crate) struct Plain<T, F, O> {
    /// The object, which lives as long as the call is logged.
    pub(crate) target: Arc<Anchor>,
    pub(crate) run: F,
    pub(crate) outlet: O,
    pub(crate) of: PhantomData<fn() -> T>,
}

impl<T, R, F, O> Call for Plain<T, F, O>
where
    T: Object,
    F: FnOnce(&mut T, &mut Here) -> R + Send,
    O: Outlet<R>,
{
    fn apply<'a>(self: Box<Self>, here: &'a mut Here) -> Applied<'a> {
        let Plain {
            target,
            run,
            outlet,
            ..
        } = *self;
        let outcome = match here.take(target.slot) {
            Ok(mut taken) => caught(|| {
                let (object, here) = taken.parts::<T>();
                run(object, here)
            })
            .map_err(|message| CallError::Panicked { message }),
            Err(_) => Err(CallError::NoObject),
        };
        outlet.put(outcome, &here.handler.common);
        Applied::Done
    }
}

/// Applies a function to an object that gives steps.
pub(crate) struct Stepped<T, F, O> {
    /// The object, which lives as long as the call is logged.
    pub(crate) target: Arc<Anchor>,
    pub(crate) run: F,
    pub(crate) outlet: O,
    pub(crate) of: PhantomData<fn() -> T>,
}

impl<T, R, F, O> Call for Stepped<T, F, O>
where
    T: Object,
    R: Send + 'static,
    F: for<'b> FnOnce(&'b mut T, &'b mut Here) -> Steps<'b, R> + Send + 'static,
    O: Outlet<R> + 'static,
{
    fn apply<'a>(self: Box<Self>, here: &'a mut Here) -> Applied<'a> {
        let Stepped {
            target,
            run,
            outlet,
            ..
        } = *self;
        Applied::Steps(Box::pin(async move {
            let common = Arc::clone(&here.handler.common);
            let outcome = match here.take(target.slot) {
                Ok(mut taken) => {
                    let begun = caught(|| {
                        let (object, here) = taken.parts::<T>();
                        run(object, here)
                    });
                    match begun {
                        Ok(steps) => Caught(Some(steps)).await,
                        Err(message) => Err(CallError::Panicked { message }),
                    }
                }
                Err(_) => Err(CallError::NoObject),
            };
            outlet.put(outcome, &common);
        }))
    }
}

/// Steps whose panic is an outcome.
struct Caught<'a, R>(Option<Steps<'a, R>>);

impl<R> Future for Caught<'_, R> {
    type Output = Result<R, CallError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(steps) = &mut self.0 else {
            return Poll::Pending;
        };
        match caught(|| steps.as_mut().poll(context)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Err(message) => {
                // What the steps still hold is dropped here; it may panic as well.
                let steps = self.0.take();
                let _ = caught(|| drop(steps));
                Poll::Ready(Err(CallError::Panicked { message }))
            }
        }
    }
}
