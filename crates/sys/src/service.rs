//! Starting a service: change of user, background, locked memory.

use std::ffi::{CStr, CString};
use std::fs::OpenOptions;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use rustix::fs::Mode;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::refused::{Reason, Refused};

/// True if this process is the superuser's.
pub fn is_superuser() -> bool {
    rustix::process::geteuid().is_root()
}

/// Becomes another user for good, with that user's groups. For a process without threads that are
/// to keep the old user.
///
/// # Errors
/// The user does not exist, or the process may not.
pub fn become_user(name: &str) -> Result<(), Refused> {
    let next = "name a user of this system, and start as the superuser";
    let unknown = || Refused::because("find the user", name, Reason::Absent, next);
    let text = CString::new(name).map_err(|_| unknown())?;
    let (user, group) = user(&text).ok_or_else(unknown)?;
    // SAFETY: the name is a string; the other two touch no memory. Groups first: afterwards it may
    // not.
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

/// Numbers of a user and of the user's first group. None if there is no such user.
fn user(name: &CStr) -> Option<(libc::uid_t, libc::gid_t)> {
    // Not `getpwnam`, whose result is shared by all threads.
    let mut room = vec![0; 1 << 10];
    loop {
        let mut found = ptr::null_mut();
        let mut known = MaybeUninit::<libc::passwd>::uninit();
        // SAFETY: the name ends in a zero byte; the rest is written, the room as far as it is said
        // to be long.
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

/// Moves the process into the background, in a session of its own, away from the terminal. For a
/// process of one thread.
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
    let _ = rustix::process::setsid();
    if let Ok(nothing) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
        let _ = rustix::stdio::dup2_stderr(&nothing);
    }
    Ok(())
}

/// Locks all memory of the process, now and in future.
///
/// # Errors
/// The process may not, or not that much.
pub fn lock_memory() -> Result<(), Refused> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|error| {
        let next =
            "start it as the superuser, or raise the limit (ulimit -l, or LimitMEMLOCK= in a unit)";
        Refused::new("keep in memory", "all of the process", &error.into(), next)
    })
}

/// Lifts the limit of locked memory if the process is the superuser's, or else raises it to what
/// the process may allow itself. For a process about to become another user.
pub fn allow_locked_memory() {
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    if setrlimit(Resource::Memlock, unlimited).is_err() {
        raise_to_hard_limit(Resource::Memlock);
    }
}

/// Lets a crash write as large a core file as the process may allow itself.
pub fn allow_core_files() {
    raise_to_hard_limit(Resource::Core);
}

fn raise_to_hard_limit(resource: Resource) {
    let maximum = getrlimit(resource).maximum;
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    // At worst the limit stays as it was.
    let _ = setrlimit(resource, limit);
}

/// Runs something with a umask: new files are made without these rights.
pub fn with_umask<R>(mask: u32, run: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
    let before = rustix::process::umask(Mode::from_raw_mode(mask));
    let result = run();
    rustix::process::umask(before);
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
