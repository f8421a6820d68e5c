//! The CPUs that a program can have, for C.

use std::time::Duration;

use hearth_cores::Cores;
use libc::{c_double, c_uint};

/// `struct hearth_cores` of the header.
#[repr(C)]
pub(crate) struct CoresForC {
    allowed: c_uint,
    threads: c_uint,
    obtainable: c_double,
    idle: c_double,
}

/// Looks for so many milliseconds at who uses the CPUs; with 0 it reads limits only.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hearth_cores(milliseconds: c_uint) -> CoresForC {
    let cores = match milliseconds {
        0 => Cores::limits(),
        some => Cores::measured(Duration::from_millis(u64::from(some))),
    };
    CoresForC {
        allowed: c_uint::try_from(cores.allowed.len()).unwrap_or(c_uint::MAX),
        threads: c_uint::try_from(cores.threads).unwrap_or(c_uint::MAX),
        obtainable: cores.obtainable,
        idle: cores.idle,
    }
}
