//! Hardening by choice: what `HEARTH_HARDEN` asks for, looked at where blocks are given out and taken back.
//!
//! | mode | what it does |
//! |---|---|
//! | `guard` | blocks of more than 256 KiB have an inaccessible page behind them: see `guarded.rs` |
//! | `guard=N` | so has one of about N smaller ones |
//! | `check` | a free is looked up in the region's words before anything is done with the block |
//! | `zero` | blocks are zeroed when they are freed, and must be zero when they are given out |
//! | `junk` | the same with a pattern, and another one for blocks that are given out |
//!
//! Nothing of this is in the way of a process that asks for none: in all modes but plain `guard` caches have no
//! room, ever, so that each operation takes the slow path, and there the modes are looked at. So all of
//! them check what `check` checks.
//!
//! `zero` and `junk` rest on one invariant: every byte of free memory in a heap's chunk has the value of
//! freed memory, [`freed`]. Who takes chunks makes it so for those that have none, who frees a block
//! writes it, nothing of the heap's own lies there, as caches do not grow, and a component's heap that
//! ends wipes its header. A byte that is different was written by the program.

use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::ground::environment;
use crate::ground::faults::report_written;
use crate::ground::os;
use crate::ground::real_time;

/// The environment's name for the modes: a list with commas.
const NAME: &[u8] = b"HEARTH_HARDEN=";

const GUARD: u8 = 1;
const SAMPLE: u8 = 2;
const CHECK: u8 = 4;
const ZERO: u8 = 8;
const JUNK: u8 = 16;

/// Blocks that are given out are filled with this: as an address it is none, as a number not what anybody
/// means.
const NEW: u8 = 0xa5;
/// And those that are freed with this.
const FREED: u8 = 0x5a;

static MODES: AtomicU8 = AtomicU8::new(0);

/// One of so many small and medium blocks has guard pages.
static SAMPLED: AtomicU32 = AtomicU32::new(0);
/// So many blocks until the next one.
static UNTIL: AtomicI32 = AtomicI32::new(1);
static SAMPLES: AtomicU64 = AtomicU64::new(0);

#[inline]
fn has(modes: u8) -> bool {
    MODES.load(Ordering::Relaxed) & modes != 0
}

/// Is every operation looked at?
#[inline]
pub(crate) fn looks() -> bool {
    has(SAMPLE | CHECK | ZERO | JUNK)
}

/// Is free memory filled with a pattern?
#[inline]
pub(crate) fn fills() -> bool {
    has(JUNK)
}

/// Have large blocks guard pages?
#[inline]
pub(crate) fn guards() -> bool {
    has(GUARD)
}

/// What free memory consists of.
fn freed() -> u8 {
    if has(JUNK) { FREED } else { 0 }
}

// ---- what the environment says ---------------------------------------------------------------------

/// Reads the modes. What is no mode ends the process: who asks to be protected shall not believe that he is.
pub(crate) fn begin() -> bool {
    let mut buffer = [0; 1024];
    let Some(text) = environment::value(NAME, &mut buffer) else {
        return false;
    };
    let mut modes = 0;
    for word in text.split(|byte| *byte == b',') {
        let Some((mode, sampled)) = mode_of(word) else {
            os::die(&[
                b"hearth: HEARTH_HARDEN: ",
                &word[..word.len().min(64)],
                b" is no mode; give a list of guard, guard=N, check, zero and junk, or all, such as \
                  HEARTH_HARDEN=guard,check\n",
            ]);
        };
        modes |= mode;
        if let Some(sampled) = sampled {
            SAMPLED.store(sampled, Ordering::Relaxed);
        }
    }
    if modes & GUARD != 0 && real_time::is_on() {
        os::die(&[
            b"hearth: HEARTH_HARDEN: guard pages are made by the kernel, which real-time mode does \
              not call; leave guard, or HEARTH_REAL_TIME, out\n",
        ]);
    }
    MODES.store(modes, Ordering::Relaxed);
    modes & GUARD != 0
}

/// What a word of the list asks for, and of how many blocks one is guarded. None if it is no mode.
fn mode_of(word: &[u8]) -> Option<(u8, Option<u32>)> {
    let mode = match word {
        b"" => 0,
        b"guard" => GUARD,
        b"check" => CHECK,
        b"zero" => ZERO,
        b"junk" => JUNK,
        b"all" => GUARD | CHECK | JUNK,
        _ => {
            let sampled = environment::decimal(word.strip_prefix(b"guard=")?)?;
            let sampled = u32::try_from(sampled)
                .ok()
                .filter(|n| *n > 0 && *n < 1 << 30)?;
            return Some((GUARD | SAMPLE, Some(sampled)));
        }
    };
    Some((mode, None))
}

// ---- blocks as they come and go ------------------------------------------------------------------------

/// A block is going to be given out.
pub(crate) fn given(block: usize, bytes: usize, owner: u32) {
    if !has(ZERO | JUNK) {
        return;
    }
    let expected = u64::from_ne_bytes([freed(); 8]);
    let words: *const AtomicU64 = ptr::with_exposed_provenance(block);
    for i in 0..bytes / size_of::<u64>() {
        // SAFETY: a block that nobody has, of whole words; atomic, as the program may be writing to it.
        let word = unsafe { &*words.add(i) }.load(Ordering::Relaxed);
        if word != expected {
            let inside = ((word ^ expected).to_le().trailing_zeros() / 8) as usize;
            report_written(block, i * size_of::<u64>() + inside, bytes, owner);
        }
    }
    if has(JUNK) {
        fill(block, bytes, NEW);
    }
}

/// Memory that is free from now on, and not the program's.
pub(crate) fn wipe(start: usize, bytes: usize) {
    if has(ZERO | JUNK) {
        fill(start, bytes, freed());
    }
}

/// The same for whole pages that go back to the pool, where zeros do for both: see [`fill_new`].
pub(crate) fn wipe_pages(start: usize, bytes: usize) {
    if !has(ZERO | JUNK) {
        return;
    }
    // SAFETY: a large block that its owner gives back. Memory that is locked cannot be forgotten, and
    // real-time mode does not call the kernel.
    let is_zero = !real_time::is_on() && unsafe { os::forget(start, bytes) };
    if !is_zero {
        fill(start, bytes, freed());
    }
}

/// Chunks that a heap takes from the pool: pages that nobody has used since they were the system's get the
/// pattern. The others have it, unless somebody wrote there.
pub(crate) fn fill_new(start: usize, shift: u32) {
    for page in (start..start + (1 << shift)).step_by(os::PAGE) {
        let words: *const AtomicU64 = ptr::with_exposed_provenance(page);
        let mut words = (0..os::PAGE / size_of::<u64>()).map(|i| {
            // SAFETY: in chunks that have just been taken; atomic as in `given`.
            unsafe { &*words.add(i) }.load(Ordering::Relaxed)
        });
        if words.all(|word| word == 0) {
            fill(page, os::PAGE, FREED);
        }
    }
}

fn fill(start: usize, bytes: usize, value: u8) {
    let place: *mut u8 = ptr::with_exposed_provenance_mut(start);
    // SAFETY: called for memory that is nobody's but the caller's.
    unsafe { place.write_bytes(value, bytes) };
}

// ---- samples -------------------------------------------------------------------------------------------

/// Shall this small or medium block have guard pages?
pub(crate) fn is_sampled(seed: usize) -> bool {
    if !has(SAMPLE) || UNTIL.fetch_sub(1, Ordering::Relaxed) != 1 {
        return false;
    }
    // From 1 to 2N - 1, so that a program that repeats itself does not have the same ones guarded. Others
    // that ask meanwhile are told no.
    let n = u64::from(SAMPLED.load(Ordering::Relaxed));
    let nth = SAMPLES.fetch_add(1, Ordering::Relaxed) + 1;
    let next = 1 + mixed(nth ^ seed as u64) % (2 * n - 1);
    UNTIL.store(next as i32, Ordering::Relaxed);
    true
}

/// A number without order made of one with; splitmix64's constants.
fn mixed(number: u64) -> u64 {
    let x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read() {
        assert_eq!(mode_of(b"guard"), Some((GUARD, None)));
        assert_eq!(mode_of(b"guard=100"), Some((GUARD | SAMPLE, Some(100))));
        assert_eq!(mode_of(b"all"), Some((GUARD | CHECK | JUNK, None)));
        assert_eq!(mode_of(b""), Some((0, None)));
        for wrong in [&b"guard=0"[..], b"guard=", b"Guard", b"checks", b" zero"] {
            assert_eq!(mode_of(wrong), None, "{}", wrong.escape_ascii());
        }
    }
}
