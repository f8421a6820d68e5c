//! The terminal: its size, and its keys as they are pressed.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// How many columns and rows a terminal has; None if it is none, or does not know.
pub fn size(terminal: BorrowedFd<'_>) -> Option<(usize, usize)> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the structure is written.
    let told = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &mut size) } == 0;
    (told && size.ws_col > 0 && size.ws_row > 0)
        .then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Keys without waiting for the end of a line, and without showing them, until this is dropped. Ctrl-C
/// is a key then, the byte 3, and no signal.
#[derive(Debug)]
pub struct Keys<'a> {
    terminal: BorrowedFd<'a>,
    before: libc::termios,
}

impl<'a> Keys<'a> {
    /// From now on.
    ///
    /// # Errors
    /// It is no terminal.
    pub fn of(terminal: BorrowedFd<'a>) -> io::Result<Keys<'a>> {
        // SAFETY: the structure is plain numbers, for which zero is good.
        let mut before: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: the structure is written.
        if unsafe { libc::tcgetattr(terminal.as_raw_fd(), &mut before) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut now = before;
        now.c_lflag &= !(libc::ICANON | libc::ECHO | libc::ISIG);
        now.c_cc[libc::VMIN] = 0;
        now.c_cc[libc::VTIME] = 0;
        // SAFETY: the structure is read.
        if unsafe { libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &now) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Keys { terminal, before })
    }

    /// The next byte, waited for so long at most. A terminal that has gone away gives byte 4, as
    /// Ctrl-D does.
    pub fn wait(&self, time: Duration) -> Option<u8> {
        let mut waited = libc::pollfd {
            fd: self.terminal.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let ms = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one structure, which is written.
        if unsafe { libc::poll(&mut waited, 1, ms) } <= 0 {
            return None;
        }
        let mut byte = 0u8;
        // SAFETY: one byte, which is there.
        let read = unsafe { libc::read(waited.fd, (&raw mut byte).cast(), 1) };
        Some(if read == 1 { byte } else { 4 })
    }
}

impl Drop for Keys<'_> {
    fn drop(&mut self) {
        // SAFETY: the structure is read. A terminal that has gone away needs nothing.
        unsafe { libc::tcsetattr(self.terminal.as_raw_fd(), libc::TCSANOW, &self.before) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_is_no_terminal() {
        let file = std::fs::File::open("/dev/null").expect("it is there");
        assert_eq!(size(file.as_fd()), None);
        assert!(Keys::of(file.as_fd()).is_err());
    }
}
