//! The source's queue: a circular array of messages under one lock, many senders and one receiver.
//!
//! It exists to be measured beside the lines that each client has for itself (`mailbox.rs`):
//!
//! | copying | the sender puts in | the receiver takes out | then runs |
//! |---|---|---|---|
//! | zero | the message's address | the address | the message where it is, in the sender's cache |
//! | single | the message's address | the address, and copies the message | its copy |
//! | double | a copy of the message | a copy of that | its copy |

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use crate::Copying;
use crate::lock::{Lock, LockPlace, Mutex};
use crate::request::{DONE, OnItsWay, PANICKED, Payload, REFUSED, drop_payload, drop_quietly};
use crate::waiting::Wait;
use hearth_atomics::{AtomicU32, Guarded, Ordering};
use hearth_sys::futex::Word;

const ASKED: u32 = 1;
/// Asked, and the sender sleeps.
const AWAITED: u32 = 5;

/// Unit of copying and of its alignment. A closure that needs more alignment stays where it is.
type Unit = MaybeUninit<u128>;
/// Runs the closure at an address on the data, or drops it if there is no data; the answer goes to
/// the other address.
type Run = unsafe fn(*mut (), *mut (), *mut ()) -> u32;

/// A message: a closure, and the address for its answer. It stays with the sender, who waits; or
/// no thread waits, and the receiver frees it.
///
/// | field | writer | reader |
/// |---|---|---|
/// | `state` | sender: → ASKED → AWAITED. Receiver, at last: → DONE, PANICKED, REFUSED | both |
/// | the rest | the sender, before it sends | the receiver |
pub(crate) struct Letter {
    state: Word,
    run: Run,
    closure: *mut (),
    /// Number of bytes of the closure to copy.
    bytes: usize,
    answer: *mut (),
    /// Frees a letter that no thread waits for.
    free: Option<unsafe fn(*mut Letter)>,
}

/// An answer: the result, or the payload of the closure's panic.
union Answer<R> {
    result: std::mem::ManuallyDrop<R>,
    payload: std::mem::ManuallyDrop<Payload>,
    nothing: (),
}

/// A letter that no thread waits for, with its closure.
#[repr(C)]
struct Posted<F> {
    letter: Letter,
    closure: MaybeUninit<F>,
}

/// Bytes to copy of a closure: all or, if no copy would be aligned for it, none.
const fn bytes_copied<F>() -> usize {
    if align_of::<F>() > align_of::<Unit>() {
        0
    } else {
        size_of::<F>()
    }
}

/// # Safety
/// There is an `F` at `closure`, which is not used again, and room for an answer at `answer`;
/// `data` is null or a `T` that no other thread touches.
unsafe fn run<T, R, F: FnOnce(&mut T) -> R>(
    closure: *mut (),
    answer: *mut (),
    data: *mut (),
) -> u32 {
    // SAFETY: as the caller promises.
    let closure = unsafe { closure.cast::<F>().read() };
    if data.is_null() {
        return drop_quietly(closure);
    }
    // SAFETY: as the caller promises.
    let data = unsafe { &mut *data.cast::<T>() };
    let outcome = catch_unwind(AssertUnwindSafe(|| closure(data)));
    let answer = answer.cast::<Answer<R>>();
    match outcome {
        Ok(result) => {
            let result = std::mem::ManuallyDrop::new(result);
            // SAFETY: as the caller promises.
            unsafe { answer.write(Answer { result }) };
            DONE
        }
        Err(payload) => {
            let payload = std::mem::ManuallyDrop::new(payload);
            // SAFETY: as the caller promises.
            unsafe { answer.write(Answer { payload }) };
            PANICKED
        }
    }
}

/// # Safety
/// As for [`run`], but there need be no room for an answer.
unsafe fn run_posted<T, F: FnOnce(&mut T)>(closure: *mut (), _: *mut (), data: *mut ()) -> u32 {
    let mut answer = Answer::<()> { nothing: () };
    // SAFETY: as the caller promises; the answer has room.
    match unsafe { run::<T, (), F>(closure, (&raw mut answer).cast(), data) } {
        // SAFETY: PANICKED says that it is there.
        PANICKED => drop_payload(unsafe { std::mem::ManuallyDrop::into_inner(answer.payload) }),
        outcome => outcome,
    }
}

/// Sends a closure, waits for the answer and takes it. None if refused.
///
/// # Panics
/// With the closure's panic.
///
/// # Safety
/// `send` puts the letter where it will be served once, with a `T`.
pub(crate) unsafe fn send_and_wait<T, R, F>(
    closure: F,
    wait: Wait,
    send: impl FnOnce(*mut Letter),
) -> Option<R>
where
    F: FnOnce(&mut T) -> R + Send,
    R: Send,
{
    let mut closure = MaybeUninit::new(closure);
    let mut answer = Answer::<R> { nothing: () };
    #[cfg_attr(
        loom,
        allow(unused_mut, reason = "there it does not stay in this frame")
    )]
    let mut letter = Letter {
        state: Word::new(ASKED),
        run: run::<T, R, F>,
        closure: closure.as_mut_ptr().cast(),
        bytes: bytes_copied::<F>(),
        answer: (&raw mut answer).cast(),
        free: None,
    };
    #[cfg(not(loom))]
    let address = &raw mut letter;
    // The model looks at its words when it wakes a thread.
    #[cfg(loom)]
    let address = Box::into_raw(Box::new(letter));
    let request = OnItsWay::new();
    send(address);
    // SAFETY: the letter is this frame's; the receiver writes its state only.
    let state = unsafe { &(*address).state };
    let outcome = await_answer(state, wait);
    request.came_back();
    match outcome {
        // SAFETY: DONE says that the result is there, and it is taken once.
        DONE => Some(unsafe { std::mem::ManuallyDrop::into_inner(answer.result) }),
        // SAFETY: PANICKED says that this is there, and it is taken once.
        PANICKED => resume_unwind(unsafe { std::mem::ManuallyDrop::into_inner(answer.payload) }),
        _ => None,
    }
}

/// Sends a closure whose result no thread waits for.
///
/// # Safety
/// As for [`send_and_wait`].
pub(crate) unsafe fn send_and_go<T, F>(closure: F, send: impl FnOnce(*mut Letter))
where
    F: FnOnce(&mut T) + Send + 'static,
{
    /// # Safety
    /// The letter is the first field of a boxed value, which no thread uses again.
    unsafe fn free<F>(letter: *mut Letter) {
        // SAFETY: as the caller promises.
        drop(unsafe { Box::from_raw(letter.cast::<Posted<F>>()) });
    }
    let posted = Box::into_raw(Box::new(Posted {
        letter: Letter {
            state: Word::new(ASKED),
            run: run_posted::<T, F>,
            closure: ptr::null_mut(),
            bytes: bytes_copied::<F>(),
            answer: ptr::null_mut(),
            free: Some(free::<F>),
        },
        closure: MaybeUninit::new(closure),
    }));
    // SAFETY: just made, and not sent yet.
    unsafe { (*posted).letter.closure = (*posted).closure.as_mut_ptr().cast() };
    send(posted.cast());
}

fn await_answer(state: &Word, wait: Wait) -> u32 {
    // Acquire, here and below, pairs with the Release in `serve`: the answer is seen.
    let is_answered = || state.load(Ordering::Acquire) != ASKED;
    if !wait.until(is_answered)
        && state
            .compare_exchange(ASKED, AWAITED, Ordering::Acquire, Ordering::Acquire)
            .is_ok()
    {
        while state.load(Ordering::Acquire) == AWAITED {
            state.wait(AWAITED);
        }
    }
    state.load(Ordering::Acquire)
}

// ---- the queue --------------------------------------------------------------------------------

struct Entry {
    letter: *mut Letter,
    copy: Vec<Unit>,
}

// SAFETY: letters are handed over whole, from who sends to who receives.
unsafe impl Send for Entry {}

struct Queue {
    entries: Box<[Entry]>,
    /// The next entry to take, and the number of entries.
    first: usize,
    count: usize,
}

/// | field | writer | reader |
/// |---|---|---|
/// | `queue` | the holder of `lock` | the holder of `lock` |
/// | `count` | the holder of `lock` | anyone, as a hint; exact about its own letters |
/// | `taken` | the receiver, which holds the section's lock | the same |
pub(crate) struct Ring {
    lock: Mutex,
    queue: Guarded<Queue>,
    count: AtomicU32,
    copying: Copying,
    taken: Guarded<Taken>,
}

/// Letters taken out and not served yet, each with the receiver's copy.
#[derive(Default)]
struct Taken {
    entries: Vec<Entry>,
    next: usize,
}

/// A message taken out.
pub(crate) struct Received {
    letter: *mut Letter,
    closure: *mut (),
}

impl Ring {
    /// A ring with room for `capacity` messages.
    pub(crate) fn new(capacity: usize, copying: Copying) -> Ring {
        let entry = |_| Entry {
            letter: ptr::null_mut(),
            copy: Vec::new(),
        };
        Ring {
            lock: Mutex::new(),
            queue: Guarded::new(Queue {
                entries: (0..capacity.max(1)).map(entry).collect(),
                first: 0,
                count: 0,
            }),
            count: AtomicU32::new(0),
            copying,
            taken: Guarded::new(Taken::default()),
        }
    }

    fn locked<R>(&self, change: impl FnOnce(&mut Queue) -> R) -> R {
        let place = LockPlace::new();
        // SAFETY: the place stays here until the lock is given up, and the closures below neither
        // panic nor send anything.
        unsafe {
            self.lock.acquire(&place, Wait::default());
            let result = self.queue.with_mut(change);
            self.lock.release(&place);
            result
        }
    }

    /// True if there is nothing to take. A hint, except to a sender about its own letter.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Puts a letter in. False if there is no room.
    ///
    /// # Safety
    /// The letter stays until it is answered; meanwhile its sender only waits.
    pub(crate) unsafe fn put(&self, letter: *mut Letter) -> bool {
        self.locked(|queue| {
            let capacity = queue.entries.len();
            if queue.count == capacity {
                return false;
            }
            let entry = &mut queue.entries[(queue.first + queue.count) % capacity];
            entry.letter = letter;
            if self.copying == Copying::Double {
                // SAFETY: as the caller promises; the closure is at that address until it is run.
                unsafe { copy_closure((*letter).closure, (*letter).bytes, &mut entry.copy) };
            }
            queue.count += 1;
            self.count.store(queue.count as u32, Ordering::Release);
            true
        })
    }

    /// Takes out the first letter, or all. Returns their number.
    ///
    /// # Safety
    /// The caller holds the section's lock, and has served everything taken before.
    pub(crate) unsafe fn take(&self, all: bool) -> usize {
        // SAFETY: as the caller promises.
        unsafe {
            self.taken.with_mut(|taken| {
                taken.next = 0;
                let count = self.locked(|queue| self.take_locked(queue, taken, all));
                taken.entries.iter_mut().take(count).for_each(|entry| {
                    if self.copying == Copying::Single {
                        let letter = entry.letter;
                        copy_closure((*letter).closure, (*letter).bytes, &mut entry.copy);
                    }
                });
                count
            })
        }
    }

    fn take_locked(&self, queue: &mut Queue, taken: &mut Taken, all: bool) -> usize {
        let count = if all { queue.count } else { queue.count.min(1) };
        let capacity = queue.entries.len();
        for index in 0..count {
            if taken.entries.len() == index {
                taken.entries.push(Entry {
                    letter: ptr::null_mut(),
                    copy: Vec::new(),
                });
            }
            let (from, to) = (
                &mut queue.entries[(queue.first + index) % capacity],
                &mut taken.entries[index],
            );
            to.letter = from.letter;
            if self.copying == Copying::Double {
                // The units were written, as far as the closure reaches.
                to.copy.clear();
                to.copy.extend_from_slice(&from.copy);
            }
        }
        queue.first = (queue.first + count) % capacity;
        queue.count -= count;
        self.count.store(queue.count as u32, Ordering::Release);
        count
    }

    /// The letter at an index among those taken.
    ///
    /// # Safety
    /// The caller holds the section's lock; `index` is below the result of `take`, and each is used
    /// once.
    pub(crate) unsafe fn taken(&self, index: usize) -> Received {
        // SAFETY: as the caller promises.
        unsafe {
            self.taken.with_mut(|taken| {
                let entry = &mut taken.entries[index];
                let letter = entry.letter;
                // No copy exists in zero-copy mode, for zero-sized closures, or for over-aligned
                // ones.
                let closure = if entry.copy.is_empty() {
                    (*letter).closure
                } else {
                    entry.copy.as_mut_ptr().cast()
                };
                Received { letter, closure }
            })
        }
    }
}

/// # Safety
/// There are `bytes` bytes at the address.
unsafe fn copy_closure(closure: *const (), bytes: usize, to: &mut Vec<Unit>) {
    to.clear();
    to.resize(bytes.div_ceil(size_of::<Unit>()), MaybeUninit::zeroed());
    // SAFETY: as the caller promises, and there is room.
    unsafe { ptr::copy_nonoverlapping(closure.cast::<u8>(), to.as_mut_ptr().cast::<u8>(), bytes) };
}

impl Received {
    /// Runs the closure on the data, or drops it if `data` is null, and answers. `ended` gets the
    /// outcome before the sender does.
    ///
    /// # Safety
    /// `data` is null or what the letter is for, and no other thread touches it.
    pub(crate) unsafe fn serve(self, data: *mut (), ended: impl FnOnce(u32)) {
        // SAFETY: a letter stays until it is answered.
        let (run, answer) = unsafe { ((*self.letter).run, (*self.letter).answer) };
        let closure = self.closure;
        // However the closure ends, the sender gets an answer.
        let mut sealed = Sealed {
            letter: self.letter,
            outcome: REFUSED,
        };
        // SAFETY: the closure is there, or its copy, and used once; the rest is as the caller
        // promises.
        sealed.outcome = unsafe { run(closure, answer, data) };
        ended(sealed.outcome);
    }
}

/// A letter on its way back.
struct Sealed {
    letter: *mut Letter,
    outcome: u32,
}

impl Drop for Sealed {
    fn drop(&mut self) {
        // SAFETY: not answered yet, so it is there; after the exchange only the state's address is
        // used.
        unsafe {
            if let Some(free) = (*self.letter).free {
                return free(self.letter);
            }
            let state = &raw const (*self.letter).state;
            // Release pairs with the Acquire in `await_answer`.
            if (*state).swap(self.outcome, Ordering::Release) == AWAITED {
                Word::wake_one(state);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// More alignment than an allocator gives a few bytes by chance.
    #[repr(align(4096))]
    struct Page(u32);

    /// Sends a closure through the ring and serves it. Returns the address it was run from.
    fn pass<F: FnOnce(&mut u32) + Send + 'static>(ring: &Ring, closure: F, sum: &mut u32) -> usize {
        // SAFETY: no other thread has the ring; the letter is served once, with what it is for.
        unsafe {
            send_and_go::<u32, F>(closure, |letter| assert!(ring.put(letter)));
            assert_eq!(ring.take(true), 1);
            let received = ring.taken(0);
            let place = received.closure.addr();
            received.serve(ptr::from_mut(sum).cast(), |_| ());
            place
        }
    }

    #[test]
    fn a_closure_is_run_where_it_is_aligned() {
        for copying in [Copying::Zero, Copying::Single, Copying::Double] {
            let (ring, mut sum) = (Ring::new(1, copying), 0);
            // Two in a row: the second does not run the first one's copy.
            let small = 1u32;
            pass(&ring, move |sum| *sum += small, &mut sum);
            let page = Page(2);
            let place = pass(
                &ring,
                move |sum| {
                    let page = page;
                    *sum += page.0;
                },
                &mut sum,
            );
            assert!(place.is_multiple_of(4096), "{copying:?}");
            assert_eq!(sum, 3);
        }
    }
}
