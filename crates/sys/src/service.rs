//! What a process does to become a service: another user, the background, memory that stays.

use std::ffi::{CStr, CString};
use std::fs::OpenOptions;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr;

use crate::refused::{Reason, Refused};

/// Is this process the superuser's?
pub fn is_superuser() -> bool {
    // SAFETY: the call touches no memory.
    unsafe { libc::geteuid() == 0 }
}

/// Becomes another user for good, with that user's groups. For a process that has no threads yet that should stay what
/// they are.
///
/// # Errors
/// There is no such user, or the process may not.
pub fn become_user(name: &str) -> Result<(), Refused> {
    let next = "name a user of this system, and start as the superuser";
    let unknown = || Refused::because("find the user", name, Reason::Absent, next);
    let text = CString::new(name).map_err(|_| unknown())?;
    let (user, group) = user(&text).ok_or_else(unknown)?;
    // SAFETY: the name is a string; the other two touch no memory. Groups first: afterwards it may not.
    let is_done = unsafe {
        libc::initgroups(text.as_ptr(), group) == 0
            && libc::setgid(group) == 0
            && libc::setuid(user) == 0
    };
    if is_done {
        Ok(())
    } else {
        Err(Refused::last("become the user", name, next))
    }
}

/// The numbers of a user and of its first group, if there is such a user.
fn user(name: &CStr) -> Option<(libc::uid_t, libc::gid_t)> {
    // Not `getpwnam`, whose answer is in memory that all threads share.
    let mut room = vec![0; 1 << 10];
    loop {
        let mut found = ptr::null_mut();
        let mut known = MaybeUninit::<libc::passwd>::uninit();
        // SAFETY: the name ends in a zero byte; the rest is written, the room as far as it is said to be long.
        let error = unsafe {
            libc::getpwnam_r(
                name.as_ptr(),
                known.as_mut_ptr(),
                room.as_mut_ptr(),
                room.len(),
                &mut found,
            )
        };
        if error == libc::ERANGE && room.len() < 1 << 20 {
            room.resize(room.len() * 4, 0);
            continue;
        }
        // SAFETY: null, or `known`, which was written then.
        return unsafe { found.as_ref() }.map(|known| (known.pw_uid, known.pw_gid));
    }
}

/// Goes on in the background, in a session of its own, away from the terminal. For a process of one thread.
///
/// # Errors
/// The system has no room for another process.
pub fn go_to_background() -> Result<(), Refused> {
    let refused = || Refused::last("go to", "the background", "start it without -d");
    // SAFETY: the caller has one thread, so the child finds everything in order.
    match unsafe { libc::fork() } {
        -1 => return Err(refused()),
        0 => {}
        // SAFETY: ends this process without running what the child will run.
        _ => unsafe { libc::_exit(0) },
    }
    // SAFETY: the call touches no memory.
    unsafe { libc::setsid() };
    if let Ok(nothing) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        for standard in 0..3 {
            // SAFETY: both are open descriptors, or the call fails.
            unsafe { libc::dup2(nothing.as_raw_fd(), standard) };
        }
    }
    Ok(())
}

/// Keeps all memory of the process in memory, now and later.
///
/// # Errors
/// The process may not, or not so much.
pub fn lock_memory() -> Result<(), Refused> {
    // SAFETY: the call touches no memory of Rust's.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } == 0 {
        return Ok(());
    }
    let next =
        "start it as the superuser, or raise the limit (ulimit -l, or LimitMEMLOCK= in a unit)";
    Err(Refused::last("keep in memory", "all of the process", next))
}

/// Lets the process keep as much in memory as it likes, if it is the superuser's; else as much as it may allow itself. For who
/// is about to become another user.
pub fn allow_locked_memory() {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the calls read and write the structure given.
    unsafe {
        if libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) != 0
            && libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) == 0
        {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit);
        }
    }
}

/// Lets a crash write as large a core file as the process may allow itself.
pub fn allow_core_files() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the calls read and write the structure given.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_CORE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_CORE, &limit);
        }
    }
}

/// Runs something while files are made with these rights taken away.
pub fn with_umask<R>(mask: u32, run: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
    // SAFETY: the call touches no memory.
    let before = unsafe { libc::umask(mask as libc::mode_t) };
    let result = run();
    // SAFETY: as above.
    unsafe { libc::umask(before) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_names() {
        assert_eq!(user(c"root"), Some((0, 0)));
        assert_eq!(user(c"nobody of that name"), None);
        let refused = become_user("nobody of that name").expect_err("there is none");
        assert_eq!(refused.reason, Reason::Absent);
    }
}
