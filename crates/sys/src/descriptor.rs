//! File descriptors: unbuffered writes, and reads of what is there.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::net::RecvFlags;
use rustix::net::sockopt::set_socket_linger;

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

/// Waits until a descriptor can be written, as a blocking write would.
pub fn wait_writable(descriptor: BorrowedFd<'_>) {
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::OUT)];
    // A signal ends the wait early: the caller writes, and waits again.
    let _ = rustix::event::poll(&mut polled, None);
}

/// True if the descriptor can be read now; false if it is not open. If its number has been reused,
/// the answer is about the new descriptor.
pub fn is_readable(descriptor: RawFd) -> bool {
    let mut poll = libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd, as told; a number that is no descriptor is reported.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 && poll.revents & libc::POLLIN != 0 }
}

/// Receives from a socket without waiting, even if the socket is blocking. With nothing there it
/// fails with `WouldBlock`; at the end it returns 0 bytes.
pub fn receive_now(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<usize> {
    let (count, _) = rustix::net::recv(socket, bytes, RecvFlags::DONTWAIT)?;
    Ok(count)
}

/// Opens a file for reading, and for writing if asked to. Neither the opening nor later reads and
/// writes block.
pub fn open_unblocked(path: &Path, writes: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(writes)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}

/// Takes over a descriptor that this process was started with, and whose number it was told. It is
/// closed with the value.
///
/// # Errors
/// It is not open.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call only asks about a number.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and was opened for this process by the one that named it: nothing else
    // here owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// True if the descriptor is a terminal.
pub fn is_terminal(descriptor: i32) -> bool {
    // SAFETY: isatty only looks the descriptor up.
    unsafe { libc::isatty(descriptor) == 1 }
}

/// Has the closing of the socket discard unsent bytes and tell the other side that the connection
/// broke, as when a process dies with bytes unread.
///
/// # Errors
/// It is not a socket.
pub fn break_on_close(socket: BorrowedFd<'_>) -> io::Result<()> {
    Ok(set_socket_linger(socket, Some(Duration::ZERO))?)
}
