//! An owner that serves several requests at once: it may answer later, and have others answer.

mod reply;
mod workers;

use std::fmt;

pub use reply::{Answer, Reply, Unanswered};
pub use workers::Workers;

use crate::{Builder, CallError, NoProprietor, Owned, Wait};

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The request was not served.
    Refused(CallError),
    /// It was served, and its [`Reply`] dropped without an answer.
    Unanswered,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::Refused(error) => error.fmt(f),
            RequestError::Unanswered => Unanswered.fmt(f),
        }
    }
}

impl std::error::Error for RequestError {}

/// Data whose owner may leave a request unanswered for now, serve others, and answer when it can: the
/// source's *administrator*, which it names and does not use. Where an [`Owned`] answers with what the closure
/// returns, here each request comes with a [`Reply`], which may be answered at once, kept with the data until another
/// request brings what is missing, or given to a [worker](Workers). Answering never waits.
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
    /// Built as the builder says, with so many worker threads.
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

    /// Has a closure run on the data, and waits until its reply is answered, by whomever.
    ///
    /// A reply that is kept in the data is neither answered nor dropped when the section is closed or its proprietor
    /// dies, and this waits on: whoever closes the section sees to those first. As this borrows a handle, the data
    /// does not go meanwhile.
    ///
    /// # Errors
    /// The request was not served, or the reply dropped unanswered.
    ///
    /// # Panics
    /// With what the closure panics with.
    pub fn request<R, F>(&self, closure: F) -> Result<R, RequestError>
    where
        F: FnOnce(&mut T, Reply<R>) + Send,
        R: Send + 'static,
    {
        let (reply, answer) = Reply::new(self.wait);
        self.owned
            .try_call(|data| closure(data, reply))
            .map_err(RequestError::Refused)?;
        answer.wait().map_err(|_| RequestError::Unanswered)
    }

    /// The same without waiting: the answer is to be had later. The caller may ask for more meanwhile. If the reply is
    /// kept in the data when the last handle goes, it goes with the data, and who waits is told.
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
            .try_post(|data| closure(data, reply))
            .map_err(RequestError::Refused)?;
        Ok(answer)
    }

    /// Threads for what takes long: a closure hands a job with the reply to them, and the next request is served.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// The section itself, for calls that are answered by what they return, and for its mode.
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
