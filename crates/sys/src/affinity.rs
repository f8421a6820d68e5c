//! Which cores a thread may run on.

use std::io;

/// The cores this process may use, ascending. Never empty: core 0 stands in where the system
/// will not say.
pub fn allowed() -> Vec<usize> {
    // SAFETY: a zeroed cpu_set_t is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is as large as the call is told.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    if result != 0 {
        return vec![0];
    }
    let capacity = libc::CPU_SETSIZE as usize;
    // SAFETY: every index is below CPU_SETSIZE.
    let cores: Vec<usize> = (0..capacity)
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect();
    if cores.is_empty() { vec![0] } else { cores }
}

/// Keeps the calling thread on one core from now on.
pub fn pin_current(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: a zeroed cpu_set_t is an empty set, and `core` is below CPU_SETSIZE.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        set
    };
    // SAFETY: `set` is as large as the call is told.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
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
