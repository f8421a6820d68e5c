//! Futexes: sleeping on a word of memory until another thread changes it and wakes the sleeper.

use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// Sleeps while `word` holds `expected`. Returns early for no reason at all at times: look at the
/// word again.
pub fn wait(word: &AtomicU32, expected: u32) {
    // SAFETY: FUTEX_WAIT reads the word, which the reference keeps alive during the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            std::ptr::from_ref(word),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            std::ptr::null::<libc::timespec>(),
        );
    }
}

/// Wakes one thread that sleeps on the word at an address; see [`wake_one_at`]. Miri finds the
/// sleeper if the caller has exposed the word.
pub fn wake_one(word_address: usize) {
    wake_one_at(std::ptr::with_exposed_provenance(word_address));
}

/// Wakes one thread that sleeps on the word behind a pointer.
///
/// The word itself is not read: it may be gone already, freed by the
/// thread that saw the new value before this call. Then nobody is woken, or a thread that sleeps
/// on a new word at the same address wakes once for no reason, which `wait` allows.
#[expect(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the kernel takes it for a key and reads nothing"
)]
pub fn wake_one_at(word: *const AtomicU32) {
    // SAFETY: FUTEX_WAKE uses the address as a key; an unmapped one gives EFAULT.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word,
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        );
    }
}

/// Wakes all threads that sleep on a word.
pub fn wake_all(word: &AtomicU32) {
    // SAFETY: FUTEX_WAKE uses the address as a key.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            std::ptr::from_ref(word),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            libc::c_int::MAX,
        );
    }
}

/// The half of a word with its low bits.
fn low_half(word: &AtomicU64) -> *const AtomicU32 {
    let first = std::ptr::from_ref(word).cast::<AtomicU32>();
    match cfg!(target_endian = "little") {
        true => first,
        false => first.wrapping_add(1),
    }
}

/// Sleeps while the low 32 bits of a word that several processes share, as of
/// [`crate::shared::map`], are as expected, at most for the time given. May wake spuriously.
pub fn wait_between_processes(word: &AtomicU64, expected: u32, time: Duration) {
    let time = libc::timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    // SAFETY: the call reads the half of a word that the reference keeps alive, and the time.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            low_half(word),
            libc::FUTEX_WAIT,
            expected,
            std::ptr::from_ref(&time),
        );
    }
}

/// Wakes all threads of all processes that sleep on a word that they share.
pub fn wake_between_processes(word: &AtomicU64) {
    // SAFETY: FUTEX_WAKE uses the address as a key.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            low_half(word),
            libc::FUTEX_WAKE,
            libc::c_int::MAX,
        );
    }
}

/// A word that threads change, and sleep on while it does not change. Under `--cfg loom` the word
/// and the sleep are the model checker's.
pub struct Word {
    value: hearth_atomics::AtomicU32,
    #[cfg(loom)]
    gate: loom::sync::Mutex<()>,
    #[cfg(loom)]
    changed: loom::sync::Condvar,
}

impl Word {
    /// A word with this value.
    pub fn new(value: u32) -> Word {
        Word {
            value: hearth_atomics::AtomicU32::new(value),
            #[cfg(loom)]
            gate: loom::sync::Mutex::new(()),
            #[cfg(loom)]
            changed: loom::sync::Condvar::new(),
        }
    }

    /// Sleeps while the word holds `expected`; may wake spuriously.
    pub fn wait(&self, expected: u32) {
        #[cfg(not(loom))]
        wait(&self.value, expected);
        #[cfg(loom)]
        {
            // As in the kernel: those who wake see the look and the falling asleep as one step.
            let gate = self.gate.lock().unwrap();
            if self.value.load(hearth_atomics::Ordering::SeqCst) == expected {
                drop(self.changed.wait(gate).unwrap());
            }
        }
    }

    /// Wakes one thread that sleeps on a word. The word may be gone already: then this wakes
    /// nobody, or somebody spuriously.
    ///
    /// # Safety
    /// Under loom the word exists; models keep their words to the end.
    pub unsafe fn wake_one(word: *const Word) {
        #[cfg(not(loom))]
        // The value is the only field of a word.
        wake_one_at(word.cast::<AtomicU32>());
        #[cfg(loom)]
        {
            // SAFETY: the caller's promise.
            let word = unsafe { &*word };
            drop(word.gate.lock().unwrap());
            word.changed.notify_one();
        }
    }

    /// Wakes all threads that sleep on the word.
    pub fn wake_all(&self) {
        #[cfg(not(loom))]
        wake_all(&self.value);
        #[cfg(loom)]
        {
            drop(self.gate.lock().unwrap());
            self.changed.notify_all();
        }
    }
}

impl std::ops::Deref for Word {
    type Target = hearth_atomics::AtomicU32;

    fn deref(&self) -> &hearth_atomics::AtomicU32 {
        &self.value
    }
}
