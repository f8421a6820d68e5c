//! The terminal: its size, and its keys as they are pressed.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

/// Columns and rows of a terminal. None for anything else, and for a terminal that does not know.
pub fn size(terminal: BorrowedFd<'_>) -> Option<(usize, usize)> {
    let size = tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0 && size.ws_row > 0)
        .then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Reads keys without waiting for the end of a line and without echo, until dropped. Ctrl-C is a
/// key then, the byte 3, and sends no signal.
#[derive(Debug)]
pub struct Keys<'a> {
    terminal: BorrowedFd<'a>,
    before: Termios,
}

impl<'a> Keys<'a> {
    /// Switches the terminal to single keys.
    ///
    /// # Errors
    /// It is not a terminal.
    pub fn of(terminal: BorrowedFd<'a>) -> io::Result<Keys<'a>> {
        let before = tcgetattr(terminal)?;
        let mut now = before.clone();
        now.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        now.special_codes[SpecialCodeIndex::VMIN] = 0;
        now.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(terminal, OptionalActions::Now, &now)?;
        Ok(Keys { terminal, before })
    }

    /// Waits for the next byte, at most this long. A terminal that has gone away gives byte 4, as
    /// Ctrl-D does.
    pub fn wait(&self, time: Duration) -> Option<u8> {
        let time = time.try_into().ok();
        let mut polled = [PollFd::from_borrowed_fd(self.terminal, PollFlags::IN)];
        if !matches!(rustix::event::poll(&mut polled, time.as_ref()), Ok(1..)) {
            return None;
        }
        let mut byte = [0];
        let read = rustix::io::read(self.terminal, &mut byte);
        Some(if read == Ok(1) { byte[0] } else { 4 })
    }
}

impl Drop for Keys<'_> {
    fn drop(&mut self) {
        // A terminal that has gone away needs nothing.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
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
