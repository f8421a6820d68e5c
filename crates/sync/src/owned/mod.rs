//! Sections: data, and closures that run on it one at a time.

mod builder;
mod explain;
mod held;
#[cfg_attr(not(feature = "research"), path = "no_letters.rs")]
mod letters;
mod pilot;
mod proprietor;
mod reorder;
mod shared;
mod tally;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;

use std::fmt;
use std::sync::Arc;

pub use builder::Builder;
pub use tally::Statistics;

use crate::ending::{EndHook, Ending};
use crate::{CallError, Mode, NoProprietor, Way};
use builder::SectionOptions;
use hearth_atomics::{Ordering, fence};
use hearth_sys::threading::yield_now;
use reorder::NO_KEY;
use shared::{AUTO, CLOSED, DEAD, POISONED, Shared};

/// Data reached only through closures, which run one at a time: under a lock on the caller's core,
/// or by message on the core of the data's proprietor. The handle is cheap to clone; all clones
/// refer to the same data.
///
/// ```
/// use hearth_sync::{Mode, Owned};
///
/// let words = Owned::new(Vec::new());
/// words.call(|words| words.push("one"));
/// words.set_mode(Mode::Message)?;
/// let count = words.call(|words| { words.push("two"); words.len() });
/// assert_eq!(count, 2);
/// assert_eq!(words.into_inner().unwrap(), ["one", "two"]);
/// # Ok::<(), hearth_sync::NoProprietor>(())
/// ```
///
/// Each thread's requests are served in order, even while the mode changes. A panicking closure
/// panics in its caller; the data stays as the closure left it.
pub struct Owned<T: Send + 'static> {
    shared: Arc<Shared<T>>,
}

impl<T: Send + 'static> Owned<T> {
    /// A section under a mutex, until [`set_mode`](Owned::set_mode) changes that.
    pub fn new(data: T) -> Owned<T> {
        match Builder::new().build(data) {
            Ok(owned) => owned,
            // Only a proprietor can be refused.
            Err(error) => unreachable!("a lock needs no thread: {error}"),
        }
    }

    /// A builder, for all options.
    pub fn builder() -> Builder<T> {
        Builder::new()
    }

    fn with_options(data: T, options: SectionOptions) -> Result<Owned<T>, NoProprietor> {
        let (mode, way) = (options.mode, options.mode.first_way());
        let shared = Arc::new(Shared::new(data, options, way));
        let owned = Owned { shared };
        owned.start_what_is_needed(mode)?;
        Ok(owned)
    }

    /// Runs a closure on the data and returns its result.
    ///
    /// Closures and results of up to 40 bytes travel in the request's own cache line; larger ones
    /// stay with the caller, who waits.
    ///
    /// # Panics
    /// With the closure's panic, and for the reasons of [`CallError`], in its words.
    #[inline]
    pub fn call<R, F>(&self, closure: F) -> R
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        match self.shared.call(NO_KEY, closure) {
            Ok(result) => result,
            Err(error) => refused(error),
        }
    }

    /// Runs a closure as [`call`](Owned::call) does, and returns refusals.
    ///
    /// # Errors
    /// The closure was not run; the error says why.
    ///
    /// # Panics
    /// With the closure's panic.
    #[inline]
    pub fn checked_call<R, F>(&self, closure: F) -> Result<R, CallError>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        self.shared.call(NO_KEY, closure)
    }

    /// Runs a closure on the data without waiting for it: by message it runs when its turn comes,
    /// otherwise before this returns. Waits only while the thread has as many open requests as the
    /// section's depth.
    ///
    /// By message, a panic of the closure is counted and otherwise lost. A posted closure is lost
    /// if the process ends before its turn, for which only [`into_inner`](Owned::into_inner) and
    /// later calls of the same thread wait.
    ///
    /// # Panics
    /// For the reasons of [`CallError`], in its words.
    #[inline]
    pub fn post<F>(&self, closure: F)
    where
        F: FnOnce(&mut T) + Send + 'static,
    {
        if let Err(error) = self.shared.post(NO_KEY, closure) {
            refused(error);
        }
    }

    /// Posts a closure as [`post`](Owned::post) does, and returns refusals.
    ///
    /// # Errors
    /// The closure will not be run; the error says why.
    #[inline]
    pub fn checked_post<F>(&self, closure: F) -> Result<(), CallError>
    where
        F: FnOnce(&mut T) + Send + 'static,
    {
        self.shared.post(NO_KEY, closure)
    }

    /// Runs a closure as [`call`](Owned::call) does, on the part of the data that the key names:
    /// with [`Order::Key`](crate::Order::Key) the proprietor serves requests of near keys together.
    /// One thread's requests keep their order only if they have equal keys or none.
    ///
    /// # Panics
    /// As `call`.
    pub fn call_at<R, F>(&self, key: u64, closure: F) -> R
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        match self.shared.call(reorder::sent(key), closure) {
            Ok(result) => result,
            Err(error) => refused(error),
        }
    }

    /// Posts a closure as [`post`](Owned::post) does, for the part of the data that the key names;
    /// see [`call_at`](Owned::call_at).
    ///
    /// # Panics
    /// As `post`.
    pub fn post_at<F>(&self, key: u64, closure: F)
    where
        F: FnOnce(&mut T) + Send + 'static,
    {
        if let Err(error) = self.shared.post(reorder::sent(key), closure) {
            refused(error);
        }
    }

    /// Runs several closures in one request, in order, and returns their results: one wait, and one
    /// hand-over of the data or of a line, for all of them.
    ///
    /// # Panics
    /// With the panic of the first closure that panics; later ones do not run. And for the reasons
    /// of [`CallError`], in its words.
    pub fn batch<R, F>(&self, closures: impl IntoIterator<Item = F>) -> Vec<R>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        let closures: Vec<F> = closures.into_iter().collect();
        self.call(|data| closures.into_iter().map(|closure| closure(data)).collect())
    }

    /// Runs a closure for each item in one request, items of near keys one after the other, and
    /// returns the results in the items' order. For look-ups in data larger than a cache: those in
    /// the same part of it find that part in the cache.
    ///
    /// # Panics
    /// As [`batch`](Owned::batch).
    pub fn batch_by_key<I, R, K, F>(
        &self,
        items: impl IntoIterator<Item = I>,
        key: impl Fn(&I) -> K,
        mut closure: F,
    ) -> Vec<R>
    where
        I: Send,
        K: Ord,
        R: Send,
        F: FnMut(&mut T, I) -> R + Send,
    {
        let mut items: Vec<(usize, I)> = items.into_iter().enumerate().collect();
        items.sort_by_cached_key(|(_, item)| key(item));
        let mut results = self.call(move |data| {
            items
                .into_iter()
                .map(|(index, item)| (index, closure(data, item)))
                .collect::<Vec<_>>()
        });
        results.sort_unstable_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Changes the way of calls. Open requests are served; nothing is lost, and each thread's
    /// requests keep their order.
    ///
    /// # Errors
    /// The system has no thread for the proprietor; the mode stays as it was.
    pub fn set_mode(&self, mode: Mode) -> Result<(), NoProprietor> {
        self.start_what_is_needed(mode)?;
        if mode != Mode::Auto {
            self.shared.set_way(mode.first_way());
        }
        Ok(())
    }

    fn start_what_is_needed(&self, mode: Mode) -> Result<(), NoProprietor> {
        if matches!(mode, Mode::Message | Mode::Auto) {
            proprietor::start(&self.shared)?;
        }
        if mode == Mode::Auto {
            self.shared.engage_pilot();
        }
        Ok(())
    }

    /// The mode as set.
    pub fn mode(&self) -> Mode {
        let control = self.shared.front.control.load(Ordering::Relaxed);
        if control & AUTO != 0 {
            return Mode::Auto;
        }
        match self.way() {
            Way::Lock => Mode::Lock,
            Way::Combine => Mode::Combine,
            Way::Message => Mode::Message,
        }
    }

    /// The way that calls take now.
    pub fn way(&self) -> Way {
        self.shared.way()
    }

    /// Describes the section's state and figures, and the reasons for its way.
    pub fn explain(&self) -> String {
        explain::explain(&self.shared)
    }

    /// Statistics so far. Takes the lock for a moment.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics()
    }

    /// True if an earlier closure panicked and calls are refused. Only if built with
    /// `poison(true)`.
    pub fn is_poisoned(&self) -> bool {
        self.shared.front.control.load(Ordering::Acquire) & POISONED != 0
    }

    /// Accepts calls again.
    pub fn clear_poison(&self) {
        self.shared
            .front
            .control
            .fetch_and(!POISONED, Ordering::AcqRel);
    }

    /// Accepts no further calls. Earlier requests are served; later ones are refused with
    /// [`CallError::OwnerDied`]. Then come the hooks of [`at_end`](Owned::at_end): here, or, if the
    /// section ever had a proprietor, on its thread.
    pub fn close(&self) {
        self.shared.end();
    }

    /// Has `hook` called once when the section has ended: closed with [`close`](Owned::close) and
    /// its earlier requests served, or bereft of its proprietor, which has died by a panic. If that
    /// is so already, it is called at once. Dropping the result revokes the hook.
    ///
    /// When the last handle goes or [`into_inner`](Owned::into_inner) takes the data, hooks are
    /// dropped without a call. A hook should be brief: others wait for it. A panic of it is
    /// reported by the panic hook and otherwise lost.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use hearth_sync::Owned;
    ///
    /// let (tell, told) = channel();
    /// let owned = Owned::new(0);
    /// let _hook = owned.at_end(move || _ = tell.send("closed"));
    /// owned.close();
    /// assert_eq!(told.recv(), Ok("closed"));
    /// ```
    pub fn at_end(&self, hook: impl FnOnce() + Send + 'static) -> EndHook {
        self.ending().hook(Box::new(hook))
    }

    pub(crate) fn ending(&self) -> &Arc<Ending> {
        &self.shared.front.ending
    }

    /// True if every call is refused because the proprietor has died or the section was closed.
    pub fn is_closed(&self) -> bool {
        self.shared.front.control.load(Ordering::Acquire) & (CLOSED | DEAD) != 0
    }

    /// Takes the data, once everything posted is done, if this is the only handle. Works after the
    /// proprietor's death, too.
    ///
    /// # Errors
    /// There are other handles, or the calling thread is the proprietor; the handle comes back, and
    /// the section is as it was.
    pub fn into_inner(self) -> Result<T, Owned<T>> {
        if self.shared.front.handles.load(Ordering::Acquire) != 1 {
            return Err(self);
        }
        // Before anything else, so that the handle comes back as it was.
        let Ok(proprietor) = self.shared.take_proprietor() else {
            return Err(self);
        };
        self.shared.close();
        if let Some(proprietor) = proprietor {
            // If it panicked, the waiters have been refused.
            let _ = proprietor.join();
        }
        let mut shared = Arc::clone(&self.shared);
        drop(self);
        // The proprietor has ended. A thread that dropped another handle has counted that, but may
        // not yet have released its share: that takes an instruction, or longer if it has lost its
        // core.
        loop {
            match Arc::try_unwrap(shared) {
                Ok(shared) => return Ok(shared.into_data()),
                Err(other) => shared = other,
            }
            yield_now();
        }
    }
}

#[cold]
fn refused(error: CallError) -> ! {
    panic!("{error}")
}

impl<T: Send + 'static> Clone for Owned<T> {
    fn clone(&self) -> Owned<T> {
        // Relaxed: there is a handle already, so the count does not reach zero meanwhile.
        self.shared.front.handles.fetch_add(1, Ordering::Relaxed);
        Owned {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T: Send + 'static> Drop for Owned<T> {
    /// Closes the section with the last handle. Posted closures are still served, and then the data
    /// is dropped: by the proprietor if there is one. This does not wait for that: a posted closure
    /// may need a lock that the calling thread holds, or a section that it is inside of. Use
    /// [`into_inner`](Owned::into_inner) to wait.
    fn drop(&mut self) {
        // Release and the fence: whatever other handles did happened before the end.
        if self.shared.front.handles.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            self.shared.close();
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned")
            .field("name", &self.shared.front.options.name)
            .field("way", &self.way())
            .finish_non_exhaustive()
    }
}
