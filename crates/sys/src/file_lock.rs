//! File locks that last as long as a process lives.
//!
//! The lock is on an open file: it goes with the process, however that ends, and looking at it does
//! not take it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

fn whole_file() -> libc::flock {
    // SAFETY: flock is plain numbers, for which zero is good: from the start, to the end.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    lock
}

/// Locks a file opened for writing, until it is closed. False if it is locked already.
pub fn try_lock(file: &File) -> io::Result<bool> {
    let lock = whole_file();
    // SAFETY: the descriptor is open, and the lock described.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(error),
    }
}

/// True if the file is locked through another opening of it.
pub fn is_locked(file: &File) -> io::Result<bool> {
    let mut lock = whole_file();
    // SAFETY: the descriptor is open, and the lock described; the answer is written over it.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(lock.l_type != libc::F_UNLCK as i16)
}

/// Number of the user who runs this process.
pub fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    #[test]
    fn a_claim_lasts_as_long_as_its_file_is_open() {
        let path = std::env::temp_dir().join(format!("hearth-claim-{}", std::process::id()));
        let open = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            options.open(&path).unwrap()
        };
        let (first, second) = (open(), open());
        assert!(!is_locked(&second).unwrap());
        assert!(try_lock(&first).unwrap());
        assert!(is_locked(&second).unwrap());
        assert!(!try_lock(&second).unwrap());
        drop(first);
        assert!(!is_locked(&second).unwrap());
        assert!(try_lock(&second).unwrap());
        std::fs::remove_file(path).unwrap();
    }
}
