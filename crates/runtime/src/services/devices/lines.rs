//! Lines of text from outside: standard input for `getString`, and the serial line.
//!
//! A reader reads only while some component waits for a line. A thread, which may block, reads
//! standard input, which other processes may share, and files; other sources are read when ready. A
//! line comes without its end (LF or CR LF); one longer than 255 bytes comes in pieces of 255. Text
//! after the last line end is a line if it is not empty. After the end of input no component
//! receives anything.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once, OnceLock};

use hearth_sys::descriptor;

use crate::abi::{Component, Site, Step, Value};
use crate::exchange::external;
use crate::ground::settings::{self, after};
use crate::ground::{exits, options, output};
use crate::outside::poller::{self, Then};
use crate::services::mailbox::Mailbox;

/// Most bytes of a line, by the language reference.
const LONGEST: usize = 255;
const SERIAL: &str = "HEARTH_DEVICE_SERIAL";

type Line = Vec<u8>;

fn text(component: *mut Component, line: Line) -> Value {
    external::text_in(component, &line)
}

/// Makes a line for `getString`, which kept the line break in the original.
fn input_text(component: *mut Component, mut line: Line) -> Value {
    if options::get().compat_original {
        line.push(b'\n');
    }
    text(component, line)
}

static CONSOLE: Mailbox<Line> = Mailbox::new("input", usize::MAX, input_text);
static SERIAL_LINE: Mailbox<Line> = Mailbox::new("the serial line", usize::MAX, text);

/// Receives the next line of standard input.
///
/// # Safety
/// `this` runs the calling native, which returns the step at once.
pub(crate) unsafe fn next_of_console(this: *mut Component, site: *const Site) -> Step {
    static STARTED: Once = Once::new();
    // The program's prompt must be visible before it waits for the answer.
    output::flush();
    STARTED.call_once(|| read_by_thread(&CONSOLE, "input", io::stdin()));
    // SAFETY: as the caller promises.
    unsafe { CONSOLE.ask(this, site) }
}

/// Tells whether a component waits for a line of standard input that is sure to come, or never
/// will, since no person types it.
pub(crate) fn come_soon() -> bool {
    static IS_TYPED: OnceLock<bool> = OnceLock::new();
    CONSOLE.is_asked() && !*IS_TYPED.get_or_init(|| std::io::IsTerminal::is_terminal(&io::stdin()))
}

/// Receives the next line of the serial line.
///
/// # Safety
/// As for `next_of_console`.
pub(crate) unsafe fn next_of_serial(this: *mut Component, site: *const Site) -> Step {
    static PORT: OnceLock<Port> = OnceLock::new();
    let port = PORT.get_or_init(|| {
        let port = settings::read(SERIAL, || Port::Input, parse);
        match &port {
            Port::Off => SERIAL_LINE.close(),
            Port::Input => {}
            Port::File(path) => open_serial(path),
        }
        port
    });
    match port {
        // Shared with `getString`: each line goes to the component that asked first.
        // SAFETY: as the caller promises.
        Port::Input => unsafe { next_of_console(this, site) },
        // SAFETY: as the caller promises.
        _ => unsafe { SERIAL_LINE.ask(this, site) },
    }
}

/// The serial line's source.
#[derive(Debug, PartialEq)]
enum Port {
    Off,
    Input,
    File(PathBuf),
}

/// Parses `off`, `stdin`, or the path of a file, a FIFO or a terminal.
fn parse(text: &str) -> Result<Port, String> {
    match text {
        "off" => Ok(Port::Off),
        "stdin" => Ok(Port::Input),
        _ => {
            let path = PathBuf::from(after(text, "file").unwrap_or(text));
            match std::fs::metadata(&path) {
                Ok(about) if !about.is_dir() => Ok(Port::File(path)),
                Ok(_) => Err(
                    "it is a directory; give `off`, `stdin`, a file, a FIFO or a terminal"
                        .to_owned(),
                ),
                Err(error) => Err(format!(
                    "could not open it ({error}); give `off`, `stdin`, a file, a FIFO or a terminal"
                )),
            }
        }
    }
}

/// Opens a path. A FIFO is opened for writing too: so it does not end when its writer goes, and
/// opening it does not block.
fn open(path: &Path) -> io::Result<File> {
    let is_fifo = std::fs::metadata(path)?.file_type().is_fifo();
    descriptor::open_unblocked(path, is_fifo)
}

fn open_serial(path: &Path) {
    let source = open(path)
        .unwrap_or_else(|error| exits::unfit(&format!("could not open the serial line ({error})")));
    let source = Arc::new(source);
    // A thread reads a source that cannot be polled.
    if read_when_ready(&source).is_err() {
        read_by_thread(&SERIAL_LINE, "serial", ByThread(source));
    }
}

struct ByThread(Arc<File>);

impl Read for ByThread {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(bytes)
    }
}

fn read_when_ready(source: &Arc<File>) -> io::Result<()> {
    let (source, watched) = (Arc::clone(source), Arc::clone(source));
    let mut lines = Lines::default();
    let watch = poller::watch(watched, move || {
        if !SERIAL_LINE.is_asked() {
            return Then::Later;
        }
        let mut bytes = [0; 1024];
        match (&*source).read(&mut bytes) {
            Ok(count) if count > 0 => {
                // All of them: lines not yet asked for wait in the box.
                for line in bytes[..count].iter().filter_map(|&byte| lines.take(byte)) {
                    SERIAL_LINE.deliver(line);
                }
                Then::Again
            }
            Err(error)
                if [ErrorKind::Interrupted, ErrorKind::WouldBlock].contains(&error.kind()) =>
            {
                Then::Again
            }
            // Input that fails has ended: it yields nothing more.
            Ok(_) | Err(_) => {
                while let Some(line) = lines.end() {
                    SERIAL_LINE.deliver(line);
                }
                SERIAL_LINE.close();
                Then::Over
            }
        }
    })?;
    SERIAL_LINE.set_source(watch);
    Ok(())
}

fn read_by_thread(lines: &'static Mailbox<Line>, name: &str, source: impl Read + Send + 'static) {
    super::start_thread(name, move || {
        read_lines(BufReader::new(source), lines);
        lines.close();
    });
}

fn read_lines(mut source: impl BufRead, asked: &Mailbox<Line>) {
    let mut lines = Lines::default();
    loop {
        asked.wait_until_asked();
        match next_line(&mut source, &mut lines) {
            Ok(Some(line)) => asked.deliver(line),
            // Input that fails has ended: it yields nothing more.
            Ok(None) | Err(_) => return,
        };
    }
}

/// Reads a line, or the next piece of a long one.
fn next_line(source: &mut impl BufRead, lines: &mut Lines) -> io::Result<Option<Line>> {
    loop {
        let byte = match source.fill_buf() {
            Ok(buffer) => buffer.first().copied(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let Some(byte) = byte else {
            return Ok(lines.end());
        };
        source.consume(1);
        if let Some(line) = lines.take(byte) {
            return Ok(Some(line));
        }
    }
}

/// Splits bytes into lines.
#[derive(Default)]
struct Lines {
    /// The bytes so far of the next one.
    line: Line,
}

impl Lines {
    /// Takes one more byte; returns the line, or the piece of a long one, that it completes.
    fn take(&mut self, byte: u8) -> Option<Line> {
        if byte == b'\n' {
            if self.line.last() == Some(&b'\r') {
                self.line.pop();
            }
            return Some(std::mem::take(&mut self.line));
        }
        self.line.push(byte);
        // A CR may belong to the line's end; the next byte decides.
        let length = self.line.len();
        let is_long = length > LONGEST + 1 || length == LONGEST + 1 && byte != b'\r';
        is_long.then(|| self.piece())
    }

    /// Ends the input; returns the rest, a piece at a time.
    fn end(&mut self) -> Option<Line> {
        (!self.line.is_empty()).then(|| self.piece())
    }

    /// Returns at most a line's bytes; the rest belongs to the next piece.
    fn piece(&mut self) -> Line {
        let rest = self.line.split_off(LONGEST.min(self.line.len()));
        std::mem::replace(&mut self.line, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Line> {
        let (mut source, mut lines) = (text, Lines::default());
        std::iter::from_fn(|| next_line(&mut source, &mut lines).unwrap()).collect()
    }

    #[test]
    fn lines_come_without_their_ends() {
        assert_eq!(
            lines(b"one\ntwo\r\n\nlast"),
            [&b"one"[..], b"two", b"", b"last"]
        );
        assert_eq!(lines(b""), Vec::<Line>::new());
        assert_eq!(lines(b"\n"), [b""]);
        assert_eq!(lines(b"a\rb\n"), [b"a\rb"]);
    }

    #[test]
    fn a_long_line_comes_in_pieces() {
        let lengths = |count: usize, end: &[u8]| -> Vec<usize> {
            let mut text = vec![b'x'; count];
            text.extend(end);
            lines(&text).iter().map(Vec::len).collect()
        };
        for end in [&b"\n"[..], b"\r\n", b""] {
            assert_eq!(lengths(254, end), [254]);
            assert_eq!(lengths(255, end), [255]);
            assert_eq!(lengths(256, end), [255, 1]);
            assert_eq!(lengths(510, end), [255, 255]);
            assert_eq!(lengths(513, end), [255, 255, 3]);
        }
        assert_eq!(lengths(255, b"\r"), [255, 1]);
    }

    #[test]
    fn settings() {
        assert_eq!(parse("off"), Ok(Port::Off));
        assert_eq!(parse("stdin"), Ok(Port::Input));
        assert_eq!(
            parse("/dev/null"),
            Ok(Port::File(PathBuf::from("/dev/null")))
        );
        assert!(
            parse("/no/such/line")
                .unwrap_err()
                .contains("could not open it")
        );
        assert!(parse("/").unwrap_err().contains("directory"));
    }
}
