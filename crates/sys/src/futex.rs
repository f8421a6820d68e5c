//! Sleeping on a word of memory until somebody says that it has changed.

use std::sync::atomic::AtomicU32;

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

/// Wakes one thread that sleeps on the word at an address; see [`wake_one_at`]. Miri finds the sleeper if the
/// caller has exposed the word.
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
