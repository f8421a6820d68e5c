//! Answers of queries: a value that a client waits for when it needs it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::common::{Common, caught, current, lock};
use crate::error::CallError;

type Outcome<R> = Result<R, CallError>;

struct Line<R> {
    outcome: Option<Outcome<R>>,
    client: Option<Waker>,
}

struct Cell<R> {
    /// Set before the outcome is there: see [`crate::waits`].
    is_answered: Arc<AtomicBool>,
    line: Mutex<Line<R>>,
}

/// The answer of a query that is logged. Awaiting it waits until the query is applied; until then
/// the client goes on.
///
/// Dropping it gives up the wait. The query is applied all the same.
#[must_use = "a query whose answer nobody needs is a command"]
pub struct Answer<R> {
    cell: Arc<Cell<R>>,
    supplier: u32,
    common: Arc<Common>,
    /// The processor whose call waits here, as [`crate::waits`] knows.
    client: Option<u32>,
}

impl<R> fmt::Debug for Answer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

impl<R> Answer<R> {
    /// Makes an answer and what gives it.
    pub(crate) fn new(supplier: u32, common: &Arc<Common>) -> (Answer<R>, Reply<R>) {
        let cell = Arc::new(Cell {
            is_answered: Arc::default(),
            line: Mutex::new(Line {
                outcome: None,
                client: None,
            }),
        });
        let answer = Answer {
            cell: Arc::clone(&cell),
            supplier,
            common: Arc::clone(common),
            client: None,
        };
        (answer, Reply(Some(cell)))
    }

    /// Waits for the answer on a thread of its own, that of `main` for example.
    ///
    /// # Errors
    /// As awaiting it does; [`CallError::InCall`] in a call, which must await.
    ///
    /// # Panics
    /// Panics in a component that is no processor, as [`hearth::block_on`] does.
    pub fn wait(self) -> Result<R, CallError> {
        match current() {
            Some(_) => Err(CallError::InCall),
            None => hearth::block_on(self),
        }
    }

    /// The answer that says why the query was not logged.
    pub(crate) fn refused(self, error: CallError) -> Answer<R> {
        lock(&self.cell.line).outcome = Some(Err(error));
        self
    }

    fn leave(&mut self) {
        if let Some(client) = self.client.take() {
            self.common.waits.remove(client, &self.cell.is_answered);
        }
    }
}

impl<R> Future for Answer<R> {
    type Output = Outcome<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome<R>> {
        let answer = &mut *self;
        // Code of the program's: not under the lock.
        let waker = context.waker().clone();
        let (outcome, _former) = {
            let mut line = lock(&answer.cell.line);
            match line.outcome.take() {
                Some(outcome) => (Some(outcome), None),
                None => (None, line.client.replace(waker)),
            }
        };
        if let Some(outcome) = outcome {
            answer.leave();
            return Poll::Ready(outcome);
        }
        let client = current();
        if client != answer.client {
            answer.leave();
            if let Some(client) = client {
                let is_answered = &answer.cell.is_answered;
                let added = answer
                    .common
                    .waits
                    .add(client, answer.supplier, is_answered);
                match added {
                    Ok(()) => answer.client = Some(client),
                    Err(circle) => return Poll::Ready(Err(CallError::Deadlock { circle })),
                }
            }
        }
        Poll::Pending
    }
}

impl<R> Drop for Answer<R> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Gives an answer. Dropping it says that the processor has ended.
pub(crate) struct Reply<R>(Option<Arc<Cell<R>>>);

impl<R> Reply<R> {
    pub(crate) fn send(mut self, outcome: Outcome<R>) {
        self.put(outcome);
    }

    fn put(&mut self, outcome: Outcome<R>) {
        let Some(cell) = self.0.take() else { return };
        // Release pairs with the Acquire in `Waits::add`.
        cell.is_answered.store(true, Ordering::Release);
        let client = {
            let mut line = lock(&cell.line);
            line.outcome = Some(outcome);
            line.client.take()
        };
        if let Some(client) = client {
            // A panic of another's waker is not the supplier's; the panic hook has reported it.
            let _ = caught(|| client.wake());
        }
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        self.put(Err(CallError::Ended));
    }
}
