//! Writing to file descriptors without a buffer in between, and reading what is there.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

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
            io::ErrorKind::WouldBlock => {
                // SAFETY: the caller's descriptor, open during the call as it was for the write.
                wait_writable(unsafe { BorrowedFd::borrow_raw(descriptor) });
            }
            _ => return Err(error),
        }
    }
    Ok(())
}

/// Waits until more can be written to a descriptor, as a write would that waits.
pub fn wait_writable(descriptor: BorrowedFd<'_>) {
    let mut poll = libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one pollfd, as told.
    unsafe { libc::poll(&mut poll, 1, -1) };
}

/// Whether this descriptor can be read now; one that is not open cannot. If the number is another's by now, it is that one
/// which is told of.
pub fn is_readable(descriptor: RawFd) -> bool {
    let mut poll = libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd, as told; a number that is no descriptor is reported.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 && poll.revents & libc::POLLIN != 0 }
}

/// Takes what has come at a socket, without waiting, though the socket waits otherwise: nothing there
/// is an error, `WouldBlock`; the end is 0 bytes.
pub fn receive_now(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length describe `bytes`.
    let count = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            bytes.as_mut_ptr().cast(),
            bytes.len(),
            libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Opens a file for reading, and for writing if asked to, neither of which then waits; nor does the
/// opening.
pub fn open_unblocked(path: &Path, writes: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(writes)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}

/// Is it a terminal?
pub fn is_terminal(descriptor: i32) -> bool {
    // SAFETY: isatty only looks the descriptor up.
    unsafe { libc::isatty(descriptor) == 1 }
}

/// Closing the socket will throw away what is not sent yet and tell the other side that the connection
/// broke, as when a process dies with bytes unread.
///
/// # Errors
/// It is no socket.
pub fn break_on_close(socket: BorrowedFd<'_>) -> io::Result<()> {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the pointer and length describe `linger`, which the call reads.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            std::ptr::from_ref(&linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
