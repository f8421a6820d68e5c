//! A cell that one side fills once and the other side reads, or leaves.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::wakers::wake;

/// Locks a mutex whose holders leave nothing half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value to come. Wakers are cloned, woken and dropped without the lock.
pub(crate) struct Once<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    value: Option<T>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    has_reader_left: bool,
}

impl<T> Once<T> {
    pub(crate) fn new() -> Once<T> {
        Once {
            state: Mutex::new(State {
                value: None,
                reader: None,
                writer: None,
                has_reader_left: false,
            }),
        }
    }

    /// Fills the cell and wakes the reader. Gives the value back if the reader has left.
    pub(crate) fn put(&self, value: T) -> Result<(), T> {
        let reader = {
            let mut state = lock(&self.state);
            if state.has_reader_left {
                return Err(value);
            }
            state.value = Some(value);
            state.reader.take()
        };
        wake(reader);
        Ok(())
    }

    /// Runs the writer's operation, unless the reader leaves before it is over.
    pub(crate) async fn unless_left<F: Future>(&self, operation: F) -> Option<F::Output> {
        let mut operation = pin!(operation);
        poll_fn(|context| {
            let waker = context.waker().clone();
            let _former = {
                let mut state = lock(&self.state);
                if state.has_reader_left {
                    return Poll::Ready(None);
                }
                state.writer.replace(waker)
            };
            operation.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Tells whether a value waits for its reader.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.state).value.is_some()
    }

    /// Takes the value if it is there.
    pub(crate) fn take(&self) -> Option<T> {
        lock(&self.state).value.take()
    }

    /// Takes the value, or has the reader woken when it comes.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<T> {
        let waker = context.waker().clone();
        let (value, _former) = {
            let mut state = lock(&self.state);
            match state.value.take() {
                Some(value) => (Poll::Ready(value), None),
                None => (Poll::Pending, state.reader.replace(waker)),
            }
        };
        value
    }

    /// Wakes the reader though there is no value.
    pub(crate) fn wake_reader(&self) {
        let reader = lock(&self.state).reader.take();
        wake(reader);
    }

    /// Notes that the reader leaves, and wakes the writer. Gives a value that it did not take.
    pub(crate) fn leave(&self) -> Option<T> {
        let (writer, value) = {
            let mut state = lock(&self.state);
            state.has_reader_left = true;
            (state.writer.take(), state.value.take())
        };
        wake(writer);
        value
    }
}
