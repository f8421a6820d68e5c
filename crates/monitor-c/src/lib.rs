//! `libhearth_monitor`: functions of C and C++ programs as probes.
//!
//! ```text
//! cc -finstrument-functions …
//! HEARTH_MONITOR=program.calls LD_PRELOAD=libhearth_monitor.so ./program
//! ```
//!
//! The compiler calls [`__cyg_profile_func_enter`] at the beginning of each function and
//! [`__cyg_profile_func_exit`] at its end. `functions` finds the function's probe, and `symbols`
//! its name; `life` begins and ends the monitor; `calm` keeps what the program must not see
//! change. Everything else is in `hearth-monitor`. See
//! `docs/monitor-c.md`.

mod calm;
mod functions;
mod life;
mod symbols;

use calm::Errno;
use hearth_monitor::unguarded::{self, Frame};

/// Defines an exported function that jumps to another one with its caller's stack pointer as a
/// third argument.
macro_rules! with_frame {
    ($(#[$about:meta])* $name:ident => $to:ident) => {
        $(#[$about])*
        #[cfg(target_arch = "x86_64")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub extern "C" fn $name(function: usize, site: usize) {
            core::arch::naked_asm!("lea rdx, [rsp + 8]", "jmp {to}", to = sym $to)
        }

        $(#[$about])*
        #[cfg(target_arch = "aarch64")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub extern "C" fn $name(function: usize, site: usize) {
            core::arch::naked_asm!("mov x2, sp", "b {to}", to = sym $to)
        }

        $(#[$about])*
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(function: usize, _site: usize) {
            // No place: calls of other sites would look like calls left by a jump.
            $to(function, 0, 0);
        }
    };
}

with_frame! {
    /// Notes that a function begins; compilers call it.
    __cyg_profile_func_enter => enter
}

with_frame! {
    /// Notes that a function ends; compilers call it.
    __cyg_profile_func_exit => exit
}

extern "C" fn enter(function: usize, site: usize, stack_pointer: usize) {
    if !life::is_on() {
        return;
    }
    let probe = match functions::known(function) {
        Some(probe) => probe,
        None => match functions::meet(function) {
            Some(probe) => probe,
            None => return,
        },
    };
    if unguarded::is_on(probe) {
        let _errno = Errno::keep();
        unguarded::begin(probe, Frame::at(stack_pointer, site));
    }
}

extern "C" fn exit(function: usize, site: usize, stack_pointer: usize) {
    // A function that was never entered has no call to be ended.
    if life::is_on()
        && let Some(probe) = functions::known(function)
        && unguarded::is_on(probe)
    {
        let _errno = Errno::keep();
        unguarded::end(probe, Frame::at(stack_pointer, site));
    }
}
