//! Probes of functions, found by their addresses.
//!
//! The table has open addressing and never shrinks. Looking up takes no lock and no memory.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | a place's probe | whoever adds it, with the lock, once | all, after the function |
//! | a place's function | the same, after the probe | all |

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hearth_monitor::{Probe, unguarded};

use crate::calm::{Errno, Uncancelled};
use crate::symbols::Symbols;

/// Number of places; a power of two. The table uses memory as it is touched: 16 bytes a place.
const PLACES: usize = 1 << 18;
/// Most places that are used, so that searches stay short.
const USED_MAX: usize = PLACES / 4 * 3;

struct Place {
    /// Address of the function; 0 for none.
    function: AtomicUsize,
    probe: AtomicPtr<Probe>,
}

static TABLE: [Place; PLACES] = [const {
    Place {
        function: AtomicUsize::new(0),
        probe: AtomicPtr::new(ptr::null_mut()),
    }
}; PLACES];

/// State of adding.
pub(crate) struct Adding {
    used: usize,
    /// Functions beyond the table.
    refused: usize,
    symbols: Symbols,
}

static ADDING: Mutex<Adding> = Mutex::new(Adding {
    used: 0,
    refused: 0,
    symbols: Symbols::new(),
});

pub(crate) fn lock() -> MutexGuard<'static, Adding> {
    ADDING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Adding {
    /// Calls of functions for which there was no place.
    pub(crate) fn refused(&self) -> usize {
        self.refused
    }
}

/// Makes the probe of a function that is entered for the first time, and has it switched. None if
/// the table is full, and within the library's own work.
#[cold]
#[inline(never)]
pub(crate) fn meet(function: usize) -> Option<&'static Probe> {
    let _errno = Errno::keep();
    let _uncancelled = Uncancelled::begin();
    let probe = unguarded::try_quietly(|| add(function)).flatten()?;
    unguarded::is_on(probe).then_some(probe)
}

/// The probe of a function that was entered before. None while another thread does so for the
/// first time: to have the probe switched takes what [`meet`] does around it.
#[inline]
pub(crate) fn known(function: usize) -> Option<&'static Probe> {
    find(function).ok().filter(|probe| unguarded::is_met(probe))
}

/// The probe of a function, or the free place where it belongs.
#[inline]
fn find(function: usize) -> Result<&'static Probe, &'static Place> {
    // Functions lie close to each other; Fibonacci hashing spreads their addresses.
    let spread = (function as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut at = (spread >> 32) as usize % PLACES;
    loop {
        let place = &TABLE[at];
        // Acquire: with the function comes its probe.
        match place.function.load(Ordering::Acquire) {
            0 => return Err(place),
            found if found == function => {
                let probe = place.probe.load(Ordering::Relaxed);
                // SAFETY: `add` stored a leaked probe before the function, and nobody changes it.
                return Ok(unsafe { &*probe });
            }
            _ => at = (at + 1) % PLACES,
        }
    }
}

fn add(function: usize) -> Option<&'static Probe> {
    let mut adding = lock();
    let place = match find(function) {
        Ok(probe) => return Some(probe),
        Err(place) => place,
    };
    if adding.used == USED_MAX {
        adding.refused += 1;
        return None;
    }
    adding.used += 1;
    let name = adding.symbols.name(function as u64);
    // Functions stay, and so do their probes.
    let probe: &'static Probe = Box::leak(Box::new(Probe::new(name.leak())));
    place
        .probe
        .store(ptr::from_ref(probe).cast_mut(), Ordering::Relaxed);
    place.function.store(function, Ordering::Release);
    Some(probe)
}
