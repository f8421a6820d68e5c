//! Optional hardening: the modes that `HEARTH_HARDEN` turns on, checked where blocks are handed out
//! and taken back.
//!
//! | mode | what it does |
//! |---|---|
//! | `guard` | blocks of more than 256 KiB have an inaccessible page behind them |
//! | `guard=N` | so has one of about N smaller ones |
//! | `check` | a free is looked up in the region's words before anything is done with the block |
//! | `zero` | blocks are zeroed when they are freed, and must be zero when they are handed out |
//! | `junk` | the same with a pattern, and another one for blocks that are handed out |
//!
//! A process without modes pays nothing: in all modes but plain `guard` caches never have room, so
//! every operation takes the slow path, and only that path looks at the modes. So every such mode
//! checks what `check` checks.
//!
//! `zero` and `junk` rest on one invariant: every free byte in a heap's chunk has the value
//! [`freed`]. Taking chunks establishes it, freeing a block restores it, the heap keeps nothing of
//! its own there, as caches do not grow, and a component's heap wipes its header at its end. So a
//! byte with another value was written by the program.

use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::ground::faults::report_written;
use crate::ground::{environment, os, real_time};

/// The variable with the modes: a list with commas.
const NAME: &[u8] = b"HEARTH_HARDEN=";

const GUARD: u8 = 1;
const SAMPLE: u8 = 2;
const CHECK: u8 = 4;
const ZERO: u8 = 8;
const JUNK: u8 = 16;

/// Fills blocks that are handed out: not an address, and not a plausible number.
const NEW: u8 = 0xa5;
/// Fills freed blocks.
const FREED: u8 = 0x5a;

/// The modes of the process: the environment sets them once, for all heaps.
static MODES: AtomicU8 = AtomicU8::new(0);

/// One of this many small and medium blocks gets guard pages.
static SAMPLED: AtomicU32 = AtomicU32::new(0);
/// Blocks until the next sample, and samples so far: of all threads, so that they share one rate.
static UNTIL: AtomicI32 = AtomicI32::new(1);
static SAMPLES: AtomicU64 = AtomicU64::new(0);

#[inline]
fn has(modes: u8) -> bool {
    MODES.load(Ordering::Relaxed) & modes != 0
}

/// Whether every operation is checked.
#[inline]
pub(crate) fn is_checking() -> bool {
    has(SAMPLE | CHECK | ZERO | JUNK)
}

/// Whether free memory is filled with a pattern.
#[inline]
pub(crate) fn fills() -> bool {
    has(JUNK)
}

/// Whether large blocks have guard pages.
#[inline]
pub(crate) fn guards() -> bool {
    has(GUARD)
}

/// The value of every free byte.
fn freed() -> u8 {
    if has(JUNK) { FREED } else { 0 }
}

// ---- what the environment says ---------------------------------------------------------------

/// Reads the modes, and returns whether `guard` is among them. An unknown mode ends the process: a
/// user who asks for protection must not believe in it wrongly.
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
                b" is not a mode; give a list of guard, guard=N, check, zero and junk, or all, such as \
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
            b"hearth: HEARTH_HARDEN: guard pages need system calls, which real-time mode does not \
              make; leave out guard or HEARTH_REAL_TIME\n",
        ]);
    }
    MODES.store(modes, Ordering::Relaxed);
    modes & GUARD != 0
}

/// The mode that a word of the list names, and the sampling rate; None if unknown.
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

// ---- blocks as they come and go --------------------------------------------------------------

/// Checks and fills a block that is about to be handed out.
pub(crate) fn hand_out(block: usize, bytes: usize, owner: u32) {
    if !has(ZERO | JUNK) {
        return;
    }
    let expected = u64::from_ne_bytes([freed(); 8]);
    let words: *const AtomicU64 = ptr::with_exposed_provenance(block);
    for i in 0..bytes / size_of::<u64>() {
        // SAFETY: a block that nobody has, of whole words; atomic, as the program may be writing to
        // it by mistake.
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

/// Fills memory that the program has given up.
pub(crate) fn wipe(start: usize, bytes: usize) {
    if has(ZERO | JUNK) {
        fill(start, bytes, freed());
    }
}

/// Clears whole pages that go back to the pool, where zeros serve both modes: see [`fill_new`].
pub(crate) fn wipe_pages(start: usize, bytes: usize) {
    if !has(ZERO | JUNK) {
        return;
    }
    // SAFETY: a large block that its owner gives back. Locked memory stays, and real-time mode does
    // not call the kernel.
    let is_zero = !real_time::is_on() && unsafe { os::forget(start, bytes) };
    if !is_zero {
        fill(start, bytes, freed());
    }
}

/// Fills fresh pages of chunks that a heap takes from the pool. The other pages have the pattern
/// already, unless somebody wrote there.
pub(crate) fn fill_new(start: usize, shift: u32) {
    for page in (start..start + (1 << shift)).step_by(os::PAGE) {
        let words: *const AtomicU64 = ptr::with_exposed_provenance(page);
        let mut words = (0..os::PAGE / size_of::<u64>()).map(|i| {
            // SAFETY: in chunks that have just been taken; atomic as in `hand_out`.
            unsafe { &*words.add(i) }.load(Ordering::Relaxed)
        });
        if words.all(|word| word == 0) {
            fill(page, os::PAGE, FREED);
        }
    }
}

fn fill(start: usize, bytes: usize, value: u8) {
    let place: *mut u8 = ptr::with_exposed_provenance_mut(start);
    // SAFETY: the caller owns the memory.
    unsafe { place.write_bytes(value, bytes) };
}

// ---- samples ---------------------------------------------------------------------------------

/// Whether this small or medium block is to have guard pages.
pub(crate) fn is_sampled(seed: usize) -> bool {
    if !has(SAMPLE) || UNTIL.fetch_sub(1, Ordering::Relaxed) != 1 {
        return false;
    }
    // From 1 to 2N - 1, so that a program that repeats itself does not have the same blocks
    // guarded. Callers that ask meanwhile get false.
    let n = u64::from(SAMPLED.load(Ordering::Relaxed));
    let nth = SAMPLES.fetch_add(1, Ordering::Relaxed) + 1;
    let next = 1 + mixed(nth ^ seed as u64) % (2 * n - 1);
    UNTIL.store(next as i32, Ordering::Relaxed);
    true
}

/// Scrambles a counter; the constants of SplitMix64.
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
