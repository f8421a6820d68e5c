//! Loops whose rounds run beside each other: the range is halved, and each upper half is a record,
//! until a piece has its length.

use std::ffi::c_void;

use super::grain::Grain;
use super::record::Record;
use super::{NOWHERE, is_fixed, now_ns, offer, ring_of_thread, wait_for};
use crate::abi::Component;
use crate::seats::exceptions;

/// Bytes for the copies of a loop's reductions: eight of them.
const SUMS_BYTES: usize = 64;

/// A loop, as `hearth_rounds` in `hearth.h`.
#[repr(C)]
pub struct Rounds {
    /// Runs the rounds from one number up to another, and adds to the sums.
    run: unsafe extern "C" fn(*mut c_void, *mut Component, u32, *mut c_void, i64, i64),
    /// Adds the second sums to the first; None if there are none.
    join: Option<unsafe extern "C" fn(*mut c_void, *const c_void)>,
    /// Data that the rounds read.
    given: *mut c_void,
    /// The sums of no rounds, and their size.
    neutral: *const c_void,
    bytes: usize,
    grain: *mut Grain,
}

/// The upper half of a range.
#[repr(C)]
struct Half {
    record: Record,
    of: *const Rounds,
    from: i64,
    to: i64,
    sums: [u64; SUMS_BYTES / 8],
}

/// Runs rounds 0 up to `count` of a loop. After an exception it is in flight; rounds behind the one
/// that raised it may have run, and nobody sees that they did.
///
/// # Safety
/// As the header says: the loop is independent, and the caller runs with this base.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_run_rounds(
    rounds: *const Rounds,
    base: *mut Component,
    depth: u32,
    sums: *mut c_void,
    count: i64,
) {
    // SAFETY: as the caller promises.
    unsafe { divide(&*rounds, base, depth + 1, sums, 0..count, count) };
}

/// # Safety
/// As for [`hearth_run_rounds`].
unsafe fn divide(
    of: &Rounds,
    base: *mut Component,
    depth: u32,
    sums: *mut c_void,
    range: std::ops::Range<i64>,
    all: i64,
) {
    // SAFETY: as the caller promises.
    unsafe {
        let grain = &*of.grain;
        let count = range.end - range.start;
        let is_fixed = is_fixed();
        let piece = match is_fixed {
            true => (all / 8).max(1),
            false => i64::try_from(grain.rounds_of_piece(all as u64)).unwrap_or(i64::MAX),
        };
        if count <= piece || of.bytes > SUMS_BYTES {
            let start = now_ns();
            (of.run)(of.given, base, depth, sums, range.start, range.end);
            if !is_fixed && (*base).raised == 0 {
                grain.rounds_took(count as u64, now_ns() - start);
            }
            return;
        }
        let middle = range.start + count / 2;
        let mut half = Half {
            record: Record::new(run_half, of.grain, depth, false),
            of,
            from: middle,
            to: range.end,
            sums: [0; SUMS_BYTES / 8],
        };
        // The record is reached by this pointer alone from here on: others have it, too.
        let half = &raw mut half;
        let copies = (&raw mut (*half).sums).cast::<u8>();
        copies.copy_from_nonoverlapping(of.neutral.cast(), of.bytes);
        let record = &raw mut (*half).record;
        offer(
            record,
            base,
            grain.expected_of_rounds((range.end - middle) as u64),
        );
        divide(of, base, depth, sums, range.start..middle, all);
        let slot = (*record).slot;
        if slot != NOWHERE {
            let Some(ring) = ring_of_thread() else {
                unreachable!("a record is in a ring")
            };
            let slot = slot as usize - 1;
            if !ring.take_back(slot) {
                wait_for(record, slot, base, ring);
                ring.close(slot);
                // Rounds behind one that raised an exception do not count.
                if (*base).raised == 0 {
                    if let Some(join) = of.join {
                        join(sums, (&raw const (*half).sums).cast());
                    }
                    if let Some(kept) = (*record).take_kept() {
                        exceptions::put(base, kept);
                    }
                }
                return;
            }
            ring.close(slot);
        }
        if (*base).raised == 0 {
            divide(of, base, depth, sums, middle..range.end, all);
        }
    }
}

/// # Safety
/// The record is that of a half.
unsafe extern "C" fn run_half(record: *mut Record, base: *mut Component, depth: u32) {
    let half = record.cast::<Half>();
    // SAFETY: a half begins with its record; the caller has it.
    unsafe {
        let range = (*half).from..(*half).to;
        let all = (range.end - range.start) * 2;
        divide(
            &*(*half).of,
            base,
            depth,
            (&raw mut (*half).sums).cast(),
            range,
            all,
        );
    }
}
