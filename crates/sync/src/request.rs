//! A request: a closure on its way to the holder of the data, and its result on the way back, in
//! one line.

use std::any::Any;
use std::mem::{self, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::inside::serves_as_proprietor;
use crate::waiting::Wait;
use hearth_atomics::{AtomicU32, Guarded, Ordering};
use hearth_sys::futex::Word;
use hearth_sys::membarrier::{heavy_fence, light_fence};

/// The slot is its client's: no request yet, or its result has been taken.
pub(crate) const FREE: u32 = 0;
/// The slot is the server's: the holder of the lock.
pub(crate) const ASKED: u32 = 1;
/// The slot is its client's, with the result.
pub(crate) const DONE: u32 = 2;
/// The slot is its client's, with the payload of the closure's panic.
pub(crate) const PANICKED: u32 = 3;
/// The slot is its client's; the closure was dropped without running.
pub(crate) const REFUSED: u32 = 4;

/// Words of a line left for the closure: 40 bytes.
const WORDS: usize = 5;

type Words = [MaybeUninit<u64>; WORDS];
/// Runs the closure on the data, or drops it if there is no data, and returns the slot's next
/// state.
type Run = unsafe fn(&mut Words, *mut ()) -> u32;

/// Payload of a closure's panic.
pub(crate) type Payload = Box<dyn Any + Send>;

/// A request and its answer.
///
/// | field | writer | reader |
/// |---|---|---|
/// | `state` | client: → ASKED. Server: ASKED → DONE, PANICKED, REFUSED | both |
/// | `sleeping` | client | server, after it has answered |
/// | `content` | client, unless ASKED; server, while ASKED | likewise |
///
/// ```text
///  0       4          8     16    24                     64
///  | state | sleeping | key | run | closure, then result  |
/// ```
///
/// A request moves the line to the server and back, and nothing else: two transfers, the least
/// possible.
#[repr(C, align(64))]
pub(crate) struct RequestSlot {
    pub(crate) state: Word,
    sleeping: AtomicU32,
    content: Guarded<Content>,
}

#[repr(C)]
struct Content {
    key: u64,
    run: Run,
    words: Words,
}

/// A closure or result too large for the line, which stays with the waiting caller.
struct Packet<F, R> {
    closure: MaybeUninit<F>,
    answer: MaybeUninit<R>,
}

impl RequestSlot {
    pub(crate) fn new() -> RequestSlot {
        unsafe fn nothing(_: &mut Words, _: *mut ()) -> u32 {
            REFUSED
        }
        RequestSlot {
            state: Word::new(FREE),
            sleeping: AtomicU32::new(0),
            content: Guarded::new(Content {
                key: 0,
                run: nothing,
                words: [MaybeUninit::uninit(); WORDS],
            }),
        }
    }

    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        // Acquire: the result comes with the answer, the closure with the request. Partners: `ask`,
        // `answer`.
        self.state.load(Ordering::Acquire) == ASKED
    }

    // ---- the client ---------------------------------------------------------------------------

    /// Puts in a closure whose result no thread waits for.
    ///
    /// # Safety
    /// The caller is the slot's client, and the slot is not ASKED. The request is served with a
    /// `T`.
    #[inline]
    pub(crate) unsafe fn ask_and_go<T, F>(&self, key: u64, closure: F)
    where
        F: FnOnce(&mut T) + Send + 'static,
    {
        if fits::<F>() {
            // SAFETY: it fits; and as the caller promises.
            unsafe { self.ask(key, run_posted::<T, F>, |words| put(words, closure)) };
        } else {
            let boxed = Box::new(closure);
            let call = move |data: &mut T| boxed(data);
            // SAFETY: a box fits; and as the caller promises.
            unsafe { self.ask(key, post_of::<T, _>(&call), |words| put(words, call)) };
        }
    }

    /// Puts in a closure, has `wait` wait until it is answered, and takes the answer. None if
    /// refused.
    ///
    /// # Panics
    /// With the closure's panic.
    ///
    /// # Safety
    /// The caller is the slot's client, and the slot is not ASKED. The request is served with a
    /// `T`; `wait` returns only when it is no longer ASKED.
    #[inline]
    pub(crate) unsafe fn ask_and_wait<T, R, F>(
        &self,
        key: u64,
        closure: F,
        wait: impl FnOnce(),
    ) -> Option<R>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        if fits::<F>() && fits::<R>() {
            // SAFETY: both fit; as the caller promises; the answer says what is in the words.
            unsafe {
                self.ask(key, run_inline::<T, R, F>, |words| put(words, closure));
                let request = OnItsWay::new();
                wait();
                request.came_back();
                self.take_answer(|words| take::<R>(words))
            }
        } else {
            let mut packet = Packet::<F, R> {
                closure: MaybeUninit::new(closure),
                answer: MaybeUninit::uninit(),
            };
            let address = &raw mut packet;
            // SAFETY: as above; the packet stays until the answer is there.
            unsafe {
                self.ask(key, run_packet::<T, R, F>, |words| put(words, address));
                let request = OnItsWay::new();
                wait();
                request.came_back();
                self.take_answer(|_| (*address).answer.assume_init_read())
            }
        }
    }

    /// # Safety
    /// The caller is the slot's client, the slot is not ASKED, and `run` finds what `fill` puts in.
    #[inline]
    unsafe fn ask(&self, key: u64, run: Run, fill: impl FnOnce(&mut Words)) {
        // SAFETY: not ASKED, so it is the client's.
        unsafe {
            self.content.with_mut(|content| {
                content.key = key;
                content.run = run;
                fill(&mut content.words);
            });
        }
        // Release pairs with the Acquire in `is_asked`: the server sees the closure.
        self.state.store(ASKED, Ordering::Release);
    }

    /// # Safety
    /// The caller is the slot's client, its request is answered, and `result` takes what a DONE one
    /// left.
    #[inline]
    unsafe fn take_answer<R>(&self, result: impl FnOnce(&mut Words) -> R) -> Option<R> {
        match self.state.load(Ordering::Acquire) {
            // SAFETY: answered, so it is the client's.
            DONE => Some(unsafe { self.content.with_mut(|content| result(&mut content.words)) }),
            PANICKED => {
                // SAFETY: as above; PANICKED says that this is there, once.
                let payload = unsafe {
                    self.state.store(FREE, Ordering::Relaxed);
                    self.content
                        .with_mut(|content| take::<Payload>(&content.words))
                };
                resume_unwind(payload)
            }
            _ => None,
        }
    }

    /// Waits until the request is answered: spins, then sleeps.
    pub(crate) fn await_answer(&self, wait: Wait) {
        if wait.until(|| !self.is_asked()) {
            return;
        }
        self.sleeping.store(1, Ordering::Relaxed);
        // Pairs with the light half in `answer`: either the server sees a sleeper, or the kernel
        // sees that the word has changed.
        heavy_fence();
        while self.is_asked() {
            self.state.wait(ASKED);
        }
        self.sleeping.store(0, Ordering::Relaxed);
    }

    // ---- the server ---------------------------------------------------------------------------

    /// The request's key.
    ///
    /// # Safety
    /// The slot is ASKED, and the caller holds the lock.
    pub(crate) unsafe fn key(&self) -> u64 {
        // SAFETY: as the caller promises it is the server's.
        unsafe { self.content.with_mut(|content| content.key) }
    }

    /// Runs the closure on the data, or drops it if `data` is null, and answers. `ended` gets the
    /// outcome before the client does.
    ///
    /// # Safety
    /// The slot is ASKED, and the caller holds the lock; `data` is null or what the request is for.
    #[inline]
    pub(crate) unsafe fn serve(&self, data: *mut (), ended: impl FnOnce(u32)) {
        // However the closure ends, the client gets an answer.
        let mut answer = Answering {
            slot: self,
            outcome: REFUSED,
        };
        // SAFETY: as the caller promises it is the server's, and `run` is for what is in it.
        answer.outcome = unsafe {
            self.content
                .with_mut(|content| (content.run)(&mut content.words, data))
        };
        ended(answer.outcome);
    }
}

/// A request being served.
struct Answering<'a> {
    slot: &'a RequestSlot,
    outcome: u32,
}

impl Drop for Answering<'_> {
    #[inline]
    fn drop(&mut self) {
        let slot = self.slot;
        // Release pairs with the Acquire in `is_asked`: the client sees the result. A store rather
        // than an exchange: the line may be on its way, and the server does not wait for it.
        slot.state.store(self.outcome, Ordering::Release);
        light_fence();
        if slot.sleeping.load(Ordering::Relaxed) != 0 {
            // SAFETY: a slot stays as long as its section.
            unsafe { Word::wake_one(&raw const slot.state) };
        }
    }
}

// ---- closures in words ------------------------------------------------------------------------

const fn fits<V>() -> bool {
    size_of::<V>() <= size_of::<Words>() && align_of::<V>() <= align_of::<Words>()
}

/// # Safety
/// `V` fits.
#[inline]
unsafe fn put<V>(words: &mut Words, value: V) {
    // SAFETY: as the caller promises there is room, and the words are aligned for it.
    unsafe { words.as_mut_ptr().cast::<V>().write(value) };
}

/// # Safety
/// There is a `V` in the words, which is not used again.
#[inline]
unsafe fn take<V>(words: &Words) -> V {
    // SAFETY: as the caller promises.
    unsafe { words.as_ptr().cast::<V>().read() }
}

/// # Safety
/// A `F` is in the words, and `data` is null or a `T` that no other thread touches.
unsafe fn run_inline<T, R, F: FnOnce(&mut T) -> R>(words: &mut Words, data: *mut ()) -> u32 {
    // SAFETY: as the caller promises.
    let closure = unsafe { take::<F>(words) };
    if data.is_null() {
        return drop_quietly(closure);
    }
    // SAFETY: as the caller promises.
    let data = unsafe { &mut *data.cast::<T>() };
    match catch_unwind(AssertUnwindSafe(|| closure(data))) {
        Ok(result) => {
            // SAFETY: `ask_and_wait` chose this form because it fits.
            unsafe { put(words, result) };
            DONE
        }
        Err(payload) => {
            // SAFETY: two words fit.
            unsafe { put(words, payload) };
            PANICKED
        }
    }
}

/// # Safety
/// The address of a packet is in the words, whose owner waits; `data` is null or a `T` that nobody
/// else touches.
unsafe fn run_packet<T, R, F: FnOnce(&mut T) -> R>(words: &mut Words, data: *mut ()) -> u32 {
    // SAFETY: as the caller promises; each closure is run once.
    let (packet, closure) = unsafe {
        let packet = take::<*mut Packet<F, R>>(words);
        (packet, (*packet).closure.assume_init_read())
    };
    if data.is_null() {
        return drop_quietly(closure);
    }
    // SAFETY: as the caller promises.
    let data = unsafe { &mut *data.cast::<T>() };
    match catch_unwind(AssertUnwindSafe(|| closure(data))) {
        Ok(result) => {
            // SAFETY: its owner waits for the answer, which comes after this.
            unsafe { (*packet).answer.write(result) };
            DONE
        }
        Err(payload) => {
            // SAFETY: two words fit.
            unsafe { put(words, payload) };
            PANICKED
        }
    }
}

/// The posted form for a closure whose type has no name.
fn post_of<T, F: FnOnce(&mut T)>(_: &F) -> Run {
    run_posted::<T, F>
}

/// # Safety
/// As for [`run_inline`].
unsafe fn run_posted<T, F: FnOnce(&mut T)>(words: &mut Words, data: *mut ()) -> u32 {
    // SAFETY: as the caller promises.
    match unsafe { run_inline::<T, (), F>(words, data) } {
        // SAFETY: PANICKED says that it is there.
        PANICKED => drop_payload(unsafe { take::<Payload>(words) }),
        outcome => outcome,
    }
}

/// Drops the payload of a posted closure's panic, which no thread takes. If that panics in turn,
/// the proprietor dies of it. Any other server only came by, and has a frame with a request in it
/// that others may serve.
#[cold]
pub(crate) fn drop_payload(payload: Payload) -> u32 {
    if serves_as_proprietor() {
        drop(payload);
    } else {
        drop_quietly(payload);
    }
    REFUSED
}

/// Drops a closure that was not run. A panic in its parts would end the server.
pub(crate) fn drop_quietly<V>(value: V) -> u32 {
    if mem::needs_drop::<V>() {
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(value)));
        if let Err(payload) = dropped {
            // The payload, too, may panic when dropped, and so may the payload of that. Once is
            // enough.
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
            mem::forget(dropped);
        }
    }
    REFUSED
}

/// A request under way whose closure or answer lies in the frame that has this. That frame must not
/// be left before the answer is there: the server would write to a frame that is gone.
pub(crate) struct OnItsWay(());

impl OnItsWay {
    pub(crate) fn new() -> OnItsWay {
        OnItsWay(())
    }

    /// The answer is there.
    #[inline]
    pub(crate) fn came_back(self) {
        mem::forget(self);
    }
}

impl Drop for OnItsWay {
    /// Ends the process with a panic: the waiting code unwound, which nothing there does.
    #[cold]
    fn drop(&mut self) {
        panic!(
            "hearth-sync has panicked while a request was on its way, which is a fault of its own; the process \
             ends, as its memory could not be trusted: please report this with the panic above"
        );
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_serves_knows_of_the_end_before_the_client() {
        let (slot, mut sum) = (RequestSlot::new(), 1u32);
        // SAFETY: this thread is the client and the server, each in its turn; a number is what it
        // is served with.
        unsafe {
            slot.ask_and_go::<u32, _>(0, |sum| *sum += 1);
            slot.serve((&raw mut sum).cast(), |outcome| {
                assert!(outcome == DONE && slot.is_asked());
            });
        }
        assert!(!slot.is_asked() && sum == 2);
    }

    #[test]
    fn a_request_is_a_line() {
        assert_eq!(size_of::<RequestSlot>(), 64);
        assert!(fits::<[u64; 5]>() && !fits::<[u64; 6]>() && !fits::<u128>());
    }
}
