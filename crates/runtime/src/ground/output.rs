//! The program's output: buffered, and each print call written whole.
//!
//! The buffer is flushed when it is full, before input is read, when the program goes idle, at
//! every exit, and after each print to a terminal.

use std::io;
use std::sync::Mutex;
use std::sync::OnceLock;

use hearth_sys::descriptor::{self, STDERR, STDOUT};

use crate::ground::exits;
use crate::ground::sync::lock_std as lock;

/// Bytes from which the buffer is written in one call.
const FULL: usize = 64 << 10;

struct Buffer {
    bytes: Vec<u8>,
    /// Standard output has failed: the program is ending, and nothing more is written.
    broken: bool,
}

/// Process-wide, as standard output is.
static BUFFER: Mutex<Buffer> = Mutex::new(Buffer {
    bytes: Vec::new(),
    broken: false,
});

/// Prints the text in one piece.
pub fn print(text: &[u8]) {
    let mut buffer = lock(&BUFFER);
    buffer.bytes.extend_from_slice(text);
    if buffer.bytes.len() < FULL && !is_terminal() {
        return;
    }
    let result = write(&mut buffer);
    drop(buffer);
    heed(result);
}

fn is_terminal() -> bool {
    static IS_TERMINAL: OnceLock<bool> = OnceLock::new();
    *IS_TERMINAL.get_or_init(|| descriptor::is_terminal(STDOUT))
}

/// Writes the buffer.
pub fn flush() {
    let result = write(&mut lock(&BUFFER));
    heed(result);
}

/// Writes under the lock, so that prints keep their order.
fn write(buffer: &mut Buffer) -> io::Result<()> {
    if buffer.broken {
        buffer.bytes.clear();
        return Ok(());
    }
    let result = descriptor::write_all(STDOUT, &buffer.bytes);
    buffer.bytes.clear();
    buffer.broken = result.is_err();
    result
}

/// Ends the program quietly when the reader has gone, as the signal would; reports any other error.
fn heed(result: io::Result<()>) {
    match result {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exits::end(exits::PIPE_CLOSED),
        Err(error) => exits::unfit(&format!(
            "could not write the program's output ({error}); make room or write it elsewhere, \
             then run again"
        )),
    }
}

/// Prints a line on standard error, after everything printed before it.
pub fn complain(text: &str) {
    flush();
    let line = format!("hearth: {text}\n");
    // A failure here cannot be reported anywhere.
    let _ = descriptor::write_all(STDERR, line.as_bytes());
}
