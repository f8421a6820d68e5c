//! Lines of text from outside: standard input for `getString`, and the serial line.
//!
//! A reader reads only when somebody waits for a line. A line comes without its end (LF or CR LF);
//! one longer than 255 bytes comes in pieces of 255. What stands after the last line end is a line
//! if it is not empty. At the end of input nobody gets anything any more.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};

use crate::abi::{Component, Site, Step, Value};
use crate::services::mailbox::Mailbox;
use crate::settings::{self, after};
use crate::{exits, external, options, output};

/// Bytes a line may have, by the language reference.
const LONGEST: usize = 255;
const SERIAL: &str = "HEARTH_DEVICE_SERIAL";

type Line = Vec<u8>;

fn text(component: *mut Component, line: Line) -> Value {
    external::text_in(component, &line)
}

/// A line for `getString`, which kept the line break in the original.
fn input_text(component: *mut Component, mut line: Line) -> Value {
    if options::get().compat_original {
        line.push(b'\n');
    }
    text(component, line)
}

static CONSOLE: Mailbox<Line> = Mailbox::new("input", usize::MAX, input_text);
static SERIAL_LINE: Mailbox<Line> = Mailbox::new("the serial line", usize::MAX, text);

/// The next line of standard input.
///
/// # Safety
/// `this` runs the calling native, which returns the step at once.
pub(crate) unsafe fn next_of_console(this: *mut Component, site: *const Site) -> Step {
    static STARTED: Once = Once::new();
    // What the program asks should stand there before it waits for the answer.
    output::flush();
    STARTED.call_once(|| start(&CONSOLE, "input", || Ok(io::stdin())));
    // SAFETY: as the caller promises.
    unsafe { CONSOLE.ask(this, site) }
}

/// Does somebody wait for a line of standard input that is sure to come, or never will, since no
/// person types it?
pub(crate) fn come_soon() -> bool {
    static IS_TYPED: OnceLock<bool> = OnceLock::new();
    CONSOLE.is_asked() && !*IS_TYPED.get_or_init(|| std::io::IsTerminal::is_terminal(&io::stdin()))
}

/// The next line of the serial line.
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
            Port::File(path) => {
                let path = path.clone();
                start(&SERIAL_LINE, "serial", move || open(&path));
            }
        }
        port
    });
    match port {
        // Shared with `getString`: each line goes to whoever asked first.
        // SAFETY: as the caller promises.
        Port::Input => unsafe { next_of_console(this, site) },
        // SAFETY: as the caller promises.
        _ => unsafe { SERIAL_LINE.ask(this, site) },
    }
}

/// Where the serial line leads.
#[derive(Debug, PartialEq)]
enum Port {
    Off,
    Input,
    File(PathBuf),
}

/// `off`, `stdin`, or the path of a file, a FIFO or a terminal.
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

/// A FIFO is opened for writing too: so it does not end when its writer goes, and opening it waits
/// for nobody.
fn open(path: &Path) -> io::Result<std::fs::File> {
    let is_fifo = std::fs::metadata(path)?.file_type().is_fifo();
    OpenOptions::new().read(true).write(is_fifo).open(path)
}

fn start<R: Read>(
    lines: &'static Mailbox<Line>,
    name: &str,
    open: impl FnOnce() -> io::Result<R> + Send + 'static,
) {
    super::start_thread(name, move || {
        lines.wait_until_asked();
        let source = open().unwrap_or_else(|error| {
            exits::unfit(&format!("could not open the serial line ({error})"))
        });
        read_lines(BufReader::new(source), lines);
        lines.close();
    });
}

fn read_lines(source: impl BufRead, lines: &Mailbox<Line>) {
    let mut source = Lines {
        source,
        carried: Vec::new(),
    };
    loop {
        lines.wait_until_asked();
        match source.next() {
            Ok(Some(line)) => lines.deliver(line),
            // Input that fails has ended: there is nothing more to be had.
            Ok(None) | Err(_) => return,
        };
    }
}

struct Lines<R> {
    source: R,
    /// Read already, and part of the next piece: one byte, or CR and one byte.
    carried: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// A line, or the next piece of a long one.
    fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = std::mem::take(&mut self.carried);
        let mut is_end = line.is_empty();
        while let Some(byte) = self.byte()? {
            is_end = false;
            if byte == b'\n' {
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                break;
            }
            line.push(byte);
            // A CR may belong to the line's end; the next byte tells.
            if line.len() > LONGEST + 1 || line.len() == LONGEST + 1 && byte != b'\r' {
                break;
            }
        }
        if line.len() > LONGEST {
            self.carried = line.split_off(LONGEST);
        }
        Ok((!is_end).then_some(line))
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = loop {
            match self.source.fill_buf() {
                Ok(buffer) => break buffer.first().copied(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        self.source.consume(usize::from(byte.is_some()));
        Ok(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Line> {
        let mut source = Lines {
            source: text,
            carried: Vec::new(),
        };
        std::iter::from_fn(|| source.next().unwrap()).collect()
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
