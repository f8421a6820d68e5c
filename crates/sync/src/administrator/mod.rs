//! An owner that may answer later: it serves several requests at once, and may have others answer.

mod reply;
mod workers;

use std::fmt;

use thiserror::Error;

pub use reply::{Answer, Reply, Unanswered};
pub use workers::Workers;

use crate::{Builder, CallError, NoProprietor, Owned, Wait};

/// Reason why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The request was not served.
    #[error("{0}")]
    Refused(CallError),
    /// It was served, and its [`Reply`] dropped without an answer.
    #[error("{}", Unanswered::Dropped)]
    Unanswered,
    /// It was served, and the section ended before anybody answered: it was closed, or its
    /// proprietor died.
    #[error("{}", Unanswered::Ended)]
    Ended,
}

impl From<Unanswered> for RequestError {
    fn from(reason: Unanswered) -> RequestError {
        match reason {
            Unanswered::Dropped => RequestError::Unanswered,
            Unanswered::Ended => RequestError::Ended,
        }
    }
}

/// Data whose owner may leave a request unanswered for now, serve others, and answer when it can:
/// the source's *administrator*, which it names but does not use. An [`Owned`] answers with what
/// the closure returns; here each request comes with a [`Reply`], which may be answered at once,
/// kept with the data until another request brings what is missing, or given to a
/// [worker](Workers). Answering never waits.
///
/// ```
/// use std::collections::VecDeque;
/// use std::thread;
/// use hearth_sync::{Administrator, Owned, Reply};
///
/// /// Takers wait until somebody brings something.
/// #[derive(Default)]
/// struct Store {
///     things: VecDeque<u32>,
///     takers: VecDeque<Reply<u32>>,
/// }
///
/// let store = Administrator::build(Owned::builder(), Store::default(), 0)?;
/// let taker = thread::spawn({
///     let store = store.clone();
///     move || store.request(|store, reply| match store.things.pop_front() {
///         Some(thing) => reply.send(thing),
///         None => store.takers.push_back(reply),
///     })
/// });
/// store.owned().call(|store| match store.takers.pop_front() {
///     Some(reply) => reply.send(7),
///     None => store.things.push_back(7),
/// });
/// assert_eq!(taker.join().unwrap(), Ok(7));
/// # Ok::<(), hearth_sync::NoProprietor>(())
/// ```
pub struct Administrator<T: Send + 'static> {
    owned: Owned<T>,
    workers: Workers,
    wait: Wait,
}

impl<T: Send + 'static> Administrator<T> {
    /// Builds it from the builder, with `workers` worker threads.
    ///
    /// # Errors
    /// The system has no thread for the proprietor or for a worker.
    pub fn build(
        builder: Builder<T>,
        data: T,
        workers: usize,
    ) -> Result<Administrator<T>, NoProprietor> {
        Ok(Administrator {
            wait: builder.waiting(),
            workers: Workers::start(workers)?,
            owned: builder.build(data)?,
        })
    }

    /// Runs a closure on the data and waits until its reply is answered, by whatever thread.
    ///
    /// # Errors
    /// The request was not served, the reply was dropped unanswered, or the section has ended
    /// meanwhile: see [`Owned::at_end`]. A reply given after that is dropped.
    ///
    /// # Panics
    /// With the closure's panic.
    pub fn request<R, F>(&self, closure: F) -> Result<R, RequestError>
    where
        F: FnOnce(&mut T, Reply<R>) + Send,
        R: Send + 'static,
    {
        let (reply, answer) = Reply::new(self.wait);
        self.owned
            .checked_call(|data| closure(data, reply))
            .map_err(RequestError::Refused)?;
        Ok(answer.until_end_of(&self.owned).wait()?)
    }

    /// Runs a closure on the data without waiting for its answer; the caller may make more requests
    /// meanwhile. The end of the section ends the waiting for the answer, too. A reply kept in the
    /// data when the last handle goes is dropped with the data, and its waiter gets an error.
    ///
    /// # Errors
    /// The request will not be served.
    pub fn request_later<R, F>(&self, closure: F) -> Result<Answer<R>, RequestError>
    where
        F: FnOnce(&mut T, Reply<R>) + Send + 'static,
        R: Send + 'static,
    {
        let (reply, answer) = Reply::new(self.wait);
        self.owned
            .checked_post(|data| closure(data, reply))
            .map_err(RequestError::Refused)?;
        Ok(answer.until_end_of(&self.owned))
    }

    /// Threads for long jobs: a closure gives them a job with the reply, and the next request is
    /// served.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// The section itself, for calls answered by what they return, and for its mode.
    pub fn owned(&self) -> &Owned<T> {
        &self.owned
    }
}

impl<T: Send + 'static> Clone for Administrator<T> {
    fn clone(&self) -> Administrator<T> {
        Administrator {
            owned: self.owned.clone(),
            workers: self.workers.clone(),
            wait: self.wait,
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Administrator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Administrator").field(&self.owned).finish()
    }
}
