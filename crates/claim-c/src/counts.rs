//! Functions by which programs count the machine's online CPUs: here they count those that the
//! calling thread may use.
//!
//! The number of configured CPUs stays the machine's: programs take it for a bound on the numbers
//! of CPUs, by which they index arrays.
//!
//! Allocators call these before they can allocate, so nothing here allocates.

use hearth_sys::affinity;
use libc::{c_int, c_long};

unsafe extern "C" {
    /// The C library's own, under its other name: looking the usual one up could allocate.
    fn __sysconf(name: c_int) -> c_long;
}

/// Number of CPUs that the calling thread may use, 1 at least.
pub(crate) fn usable() -> c_int {
    affinity::count_allowed().map_or(1, |count| {
        c_int::try_from(count).unwrap_or(c_int::MAX).max(1)
    })
}

/// A figure of the system, as POSIX has it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn sysconf(name: c_int) -> c_long {
    match name {
        libc::_SC_NPROCESSORS_ONLN => c_long::from(usable()),
        // SAFETY: any number may be asked for.
        _ => unsafe { __sysconf(name) },
    }
}

/// Number of CPUs that are online, as the GNU C library has it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn get_nprocs() -> c_int {
    usable()
}
