//! Affinity: the cores that a thread may run on.
//!
//! Cores have the system's numbers. Masks grow with the machine: beyond 1024 cores the C library's
//! fixed set is too small and the call fails, which is how many tools break there.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::refused::{Reason, Refused};

const WORD_BITS: usize = usize::BITS as usize;
/// The largest mask tried: 2^18 cores, above what any Linux is built for.
const MASK_WORDS_MAX: usize = (1 << 18) / WORD_BITS;
const NEXT: &str = "choose a core that is online and in this process's set (see `taskset -p`)";

/// The mask of a thread, a bit a core; 0 is the calling one.
fn mask_of_thread(thread: u32) -> io::Result<Vec<usize>> {
    // Miri does not know the call, and runs one thread at a time whatever it says.
    if cfg!(miri) {
        return Ok(vec![0b11]);
    }
    let mut words = vec![0usize; 1024 / WORD_BITS];
    loop {
        // SAFETY: the size passed is that of the buffer. The raw call returns how many bytes it
        // wrote; those beyond stay zero.
        let written = unsafe {
            libc::syscall(
                libc::SYS_sched_getaffinity,
                thread,
                words.len() * size_of::<usize>(),
                words.as_mut_ptr(),
            )
        };
        if written >= 0 {
            return Ok(words);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) || words.len() >= MASK_WORDS_MAX {
            return Err(error);
        }
        words.resize(words.len() * 4, 0);
    }
}

fn set_mask(words: &[usize]) -> io::Result<()> {
    set_mask_of(0, words)
}

/// Sets the mask of any thread; 0 is the calling one.
fn set_mask_of(thread: u32, words: &[usize]) -> io::Result<()> {
    if cfg!(miri) {
        return Ok(());
    }
    // SAFETY: the size passed is that of the buffer, which is only read.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            thread,
            size_of_val(words),
            words.as_ptr(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn members(words: &[usize]) -> Vec<usize> {
    (0..words.len() * WORD_BITS)
        .filter(|core| words[core / WORD_BITS] >> (core % WORD_BITS) & 1 == 1)
        .collect()
}

fn mask_of(cores: &[usize]) -> io::Result<Vec<usize>> {
    let top = cores.iter().copied().max().unwrap_or(0);
    if cores.is_empty() || top >= MASK_WORDS_MAX * WORD_BITS {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut words = vec![0usize; (top / WORD_BITS + 1).max(1024 / WORD_BITS)];
    for core in cores {
        words[core / WORD_BITS] |= 1 << (core % WORD_BITS);
    }
    Ok(words)
}

/// The cores that the calling thread may use, ascending. Never empty: core 0 stands in where the
/// system does not say.
pub fn allowed() -> Vec<usize> {
    match try_allowed() {
        Ok(cores) if !cores.is_empty() => cores,
        _ => vec![0],
    }
}

/// The cores that the calling thread may use, ascending.
///
/// # Errors
/// The system does not say.
pub fn try_allowed() -> io::Result<Vec<usize>> {
    mask_of_thread(0).map(|words| members(&words))
}

/// Number of cores that the calling thread may use. It does not allocate. None where the system
/// does not say.
#[must_use]
pub fn count_allowed() -> Option<usize> {
    if cfg!(miri) {
        return Some(2);
    }
    let mut words = [0usize; 512];
    // SAFETY: the size passed is that of the buffer. The raw call returns how many bytes it wrote.
    let written = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            0,
            size_of_val(&words),
            words.as_mut_ptr(),
        )
    };
    let cores = words.iter().map(|word| word.count_ones() as usize).sum();
    (written >= 0 && cores > 0).then_some(cores)
}

/// The cores that a thread of any process may use, ascending.
///
/// # Errors
/// It has ended, or the system does not say.
pub fn allowed_of(thread: u32) -> io::Result<Vec<usize>> {
    mask_of_thread(thread).map(|words| members(&words))
}

/// Pins the calling thread to one core.
///
/// # Errors
/// The core does not exist, is offline, or is outside the process's set.
pub fn pin_current(core: usize) -> io::Result<()> {
    set_mask(&mask_of(&[core])?)
}

/// Lets the calling thread run on these cores.
pub fn allow_current(cores: &[usize]) -> io::Result<()> {
    set_mask(&mask_of(cores)?)
}

/// The calling thread's name, of 15 bytes at most. Unlike reading it from a file, this is no point
/// at which a thread can be cancelled.
pub fn thread_name() -> Vec<u8> {
    rustix::thread::name().map_or_else(|_| Vec::new(), |name| name.into_bytes())
}

/// The system's number of the calling thread, for [`allow_thread`].
pub fn thread_id() -> u32 {
    rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
}

/// Lets another thread, of this process or of another process of the same user, run on these cores.
///
/// # Errors
/// The thread has ended, or as for [`pin_current`].
pub fn allow_thread(thread: u32, cores: &[usize]) -> io::Result<()> {
    set_mask_of(thread, &mask_of(cores)?)
}

/// The cores that another thread may use, ascending.
///
/// The core that the calling thread runs on. None where the system does not say. It may change
/// before the caller uses it, unless the thread is pinned.
#[inline]
pub fn current() -> Option<usize> {
    // Miri does not know the call: a thread that always moves.
    if cfg!(miri) {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        return Some(CALLS.fetch_add(1, Ordering::Relaxed) % 2);
    }
    // SAFETY: the call takes nothing and only reads.
    let core = unsafe { libc::sched_getcpu() };
    usize::try_from(core).ok()
}

/// A thread pinned to one core. Dropping this restores its mask. It stays with the thread that made
/// it.
#[derive(Debug)]
pub struct Pinned {
    before: Vec<usize>,
    core: usize,
    /// A mask belongs to a thread, so the guard must not leave it.
    _here: std::marker::PhantomData<*const ()>,
}

impl Pinned {
    /// Pins the calling thread to `core` until the guard is dropped.
    ///
    /// # Errors
    /// The core is offline, outside the process's set, or the system forbids it.
    pub fn to(core: usize) -> Result<Pinned, Refused> {
        let object = || format!("core {core}");
        let refuse = |error: io::Error| Refused::new("pin a thread to", object(), &error, NEXT);
        let before = mask_of_thread(0).map_err(refuse)?;
        pin_current(core).map_err(refuse)?;
        // A kernel may move the thread only later; a pinned thread that runs elsewhere would
        // measure the wrong core.
        if current().is_some_and(|now| now != core) {
            let _ = set_mask(&before);
            let (action, reason) = ("pin a thread to", Reason::Invalid);
            return Err(Refused::because(action, object(), reason, NEXT));
        }
        Ok(Pinned {
            before,
            core,
            _here: std::marker::PhantomData,
        })
    }

    /// A guard that changes nothing, for fake systems.
    pub(crate) fn nowhere(core: usize) -> Pinned {
        Pinned {
            before: Vec::new(),
            core,
            _here: std::marker::PhantomData,
        }
    }

    /// The core asked for.
    pub fn core(&self) -> usize {
        self.core
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.before.is_empty() {
            // Where the old set cannot come back (its cores went offline) the thread stays here.
            let _ = set_mask(&self.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_pinned() {
        let last = *allowed().last().unwrap();
        std::thread::spawn(move || {
            pin_current(last).unwrap();
            assert_eq!(allowed(), [last]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_core_beyond_all_sets_is_refused() {
        assert!(pin_current(1 << 20).is_err());
    }
}
