//! The system's clocks, in nanoseconds.

/// The system's raw monotonic clock in nanoseconds, which time servers do not steer.
pub fn monotonic_ns() -> u64 {
    // Miri does not know the raw clock.
    system_ns(if cfg!(miri) {
        libc::CLOCK_MONOTONIC
    } else {
        libc::CLOCK_MONOTONIC_RAW
    })
}

/// The clock of the system's timeouts and of the standard library's `Instant`.
pub fn steady_ns() -> u64 {
    system_ns(libc::CLOCK_MONOTONIC)
}

/// The same clock at its last tick, some milliseconds ago: a load or two.
pub fn steady_coarse_ns() -> u64 {
    system_ns(libc::CLOCK_MONOTONIC_COARSE)
}

/// CPU time of the calling thread: a system call.
pub fn thread_ns() -> u64 {
    system_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of another thread of this process, by its number ([`crate::affinity::thread_id`]); 0 if
/// it has ended.
pub fn other_thread_ns(thread: u32) -> u64 {
    // How the system numbers threads' clocks: the complement of the thread's number, then three
    // bits that say "one thread" and "scheduler's time".
    system_ns(!(thread as libc::clockid_t) << 3 | 6)
}

/// CPU time of a process, all its threads together, those that have ended included. None if there
/// is no such process. A system call.
pub fn process_ns(process: u32) -> Option<u64> {
    // As above, without the bit for one thread. No system numbers processes that high.
    let number = libc::clockid_t::try_from(process)
        .ok()
        .filter(|number| number >> 28 == 0)?;
    read_ns(!number << 3 | 2)
}

fn system_ns(clock: libc::clockid_t) -> u64 {
    read_ns(clock).unwrap_or(0)
}

fn read_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes the structure given.
    let status = unsafe { libc::clock_gettime(clock, &mut time) };
    (status == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
