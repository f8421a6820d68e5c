//! Probes of call sites, found by the address of their metadata without a lock.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use tracing_core::Metadata;

use crate::probe::Probe;

/// Number of places; a power of two. Each has 24 bytes.
const PLACES: usize = 1 << 14;
/// Most places that are used, so that searches stay short.
const USED_MAX: usize = PLACES / 4 * 3;

/// A place of the table, written once, under the lock of `USED`. The key comes last, with release;
/// who reads it with acquire sees the probe.
struct Place {
    /// Address of the metadata; 0 for none.
    key: AtomicUsize,
    probe: OnceLock<&'static Probe>,
}

static TABLE: LazyLock<Box<[Place]>> = LazyLock::new(|| {
    let place = |_| Place {
        key: AtomicUsize::new(0),
        probe: OnceLock::new(),
    };
    (0..PLACES).map(place).collect()
});

/// Number of places used.
static USED: Mutex<usize> = Mutex::new(0);

/// The probe of a call site, and its number. None if there are too many.
#[inline]
pub(super) fn site(metadata: &'static Metadata<'static>) -> Option<(usize, &'static Probe)> {
    let key = ptr::from_ref(metadata).addr();
    match find(&TABLE, key) {
        Ok(number) => Some((number, probe(number)?)),
        Err(_) => add(metadata, key),
    }
}

/// The probe of a call site, if it has one already.
pub(super) fn known(metadata: &Metadata<'_>) -> Option<&'static Probe> {
    probe(find(&TABLE, ptr::from_ref(metadata).addr()).ok()?)
}

/// The probe of a number.
#[inline]
pub(super) fn probe(number: usize) -> Option<&'static Probe> {
    TABLE.get(number)?.probe.get().copied()
}

/// The place of a key, or the free one where it belongs.
#[inline]
fn find(table: &[Place], key: usize) -> Result<usize, usize> {
    // Addresses of metadata are multiples of 8 and close together; Fibonacci hashing spreads them.
    let spread = (key as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut at = (spread >> 32) as usize % PLACES;
    loop {
        match table[at].key.load(Ordering::Acquire) {
            0 => return Err(at),
            found if found == key => return Ok(at),
            _ => at = (at + 1) % PLACES,
        }
    }
}

/// Makes a probe for a call site. Call sites are statics, so their probes may be leaked.
#[cold]
#[inline(never)]
fn add(metadata: &'static Metadata<'static>, key: usize) -> Option<(usize, &'static Probe)> {
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    let at = match find(&TABLE, key) {
        Ok(number) => return Some((number, probe(number)?)),
        Err(at) => at,
    };
    if *used == USED_MAX {
        return None;
    }
    *used += 1;
    let name = format!("{}::{}", metadata.target(), metadata.name());
    let new: &'static Probe = Box::leak(Box::new(Probe::new(name.leak())));
    let place = &TABLE[at];
    let new = *place.probe.get_or_init(|| new);
    place.key.store(key, Ordering::Release);
    Some((at, new))
}
