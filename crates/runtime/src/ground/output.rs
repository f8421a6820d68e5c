//! What the program prints: buffered, and each print call whole.
//!
//! The buffer is written when it is full, before input is read, when the program goes idle, at
//! every exit, and after each print when standard output is a terminal.

use std::io;
use std::sync::Mutex;
use std::sync::OnceLock;

use hearth_sys::descriptor::{self, STDERR, STDOUT};

use crate::ground::exits;
use crate::ground::sync::lock_std as lock;

/// Written in one call from here on.
const FULL: usize = 64 << 10;

struct Buffer {
    bytes: Vec<u8>,
    /// Standard output refused: the program is ending, and nothing more is written.
    broken: bool,
}

/// There is one standard output.
static BUFFER: Mutex<Buffer> = Mutex::new(Buffer {
    bytes: Vec::new(),
    broken: false,
});

/// Prints, all of it together.
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

/// Writes what is buffered.
pub fn flush() {
    let result = write(&mut lock(&BUFFER));
    heed(result);
}

/// Under the lock, so that prints keep their order.
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

/// A reader that has gone ends the program quietly, as the signal would; anything else is told.
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

/// A line on standard error, after what was printed before it.
pub fn complain(text: &str) {
    flush();
    let line = format!("hearth: {text}\n");
    // Nobody is left to tell if this fails.
    let _ = descriptor::write_all(STDERR, line.as_bytes());
}
