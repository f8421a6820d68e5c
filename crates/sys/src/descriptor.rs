//! Writing to file descriptors without a buffer in between.

use std::io;

pub const STDOUT: i32 = 1;
pub const STDERR: i32 = 2;

/// Writes all of `bytes`, in as many calls as it takes.
pub fn write_all(descriptor: i32, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the pointer and length describe `bytes`.
        let count = unsafe { libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
        if count >= 0 {
            bytes = &bytes[count as usize..];
            continue;
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => wait_writable(descriptor),
            _ => return Err(error),
        }
    }
    Ok(())
}

/// A descriptor that somebody else made non-blocking: wait as a blocking one would.
fn wait_writable(descriptor: i32) {
    let mut poll = libc::pollfd {
        fd: descriptor,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one pollfd, as told.
    unsafe { libc::poll(&mut poll, 1, -1) };
}

/// Is it a terminal?
pub fn is_terminal(descriptor: i32) -> bool {
    // SAFETY: isatty only looks the descriptor up.
    unsafe { libc::isatty(descriptor) == 1 }
}
