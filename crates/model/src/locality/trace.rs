//! Traces as text, line by line.
//!
//! Two forms, which may even be mixed, since no line belongs to both:
//!
//! - valgrind's lackey (`--tool=lackey --trace-mem=yes`): ` L 1ffeffe7e8,8` loads, ` S …` stores,
//!   ` M …` does both, `I …` fetches an instruction; lines with `==` are the tool's own messages.
//! - ours: `r ADDRESS [BYTES]` reads, `w ADDRESS [BYTES]` writes, `t NUMBER` sets the thread of the
//!   next lines, `c NAME` the component that this thread enters. Addresses are decimal, or
//!   hexadecimal with `0x`. `#` begins a remark.
//!
//! ```
//! use hearth_model::locality::trace::{Reader, Reference};
//!
//! let mut reader = Reader::new();
//! assert_eq!(reader.line("c lookup"), Ok(None));
//! let reference = reader.line("r 0x1000 8").unwrap().unwrap();
//! assert_eq!(reference, Reference { address: 0x1000, bytes: 8, thread: 0, write: false });
//! assert_eq!(reader.component(), "lookup");
//! ```

use std::collections::HashMap;
use thiserror::Error;

/// The component of threads that name none.
pub const NO_COMPONENT: &str = "program";

/// Largest size of a reference in bytes; larger ones are errors in the trace.
const BYTES_MAX: u64 = 1 << 30;

/// One reference of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Address of its first byte.
    pub address: u64,
    /// At least 1.
    pub bytes: u64,
    /// The thread that refers.
    pub thread: u32,
    /// Whether it writes; a reference that also reads is a single one.
    pub write: bool,
}

impl Reference {
    /// The lines it touches, of `line_bytes` each, which must not be 0.
    pub fn lines(&self, line_bytes: u64) -> impl Iterator<Item = u64> + use<> {
        self.address / line_bytes..=(self.address + (self.bytes - 1)) / line_bytes
    }
}

/// Reason why a line is not part of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// Its first word is unknown.
    #[error(
        "no line of a trace begins with `{0}`; ours begin with r, w, t or c, lackey's with L, S, M or I"
    )]
    Unknown(String),
    /// The address is missing or not a number.
    #[error(
        "`{0}` is not an address; ours are decimal or begin with 0x, lackey's are hexadecimal with a comma and the size behind them"
    )]
    Address(String),
    /// The size is not a number from 1 to 2³⁰, or reaches beyond the last address.
    #[error("`{0}` is not the size of a reference; write a number of bytes from 1 to {bytes_max} that stays within 64-bit addresses", bytes_max = BYTES_MAX)]
    Size(String),
    /// `t` without a number.
    #[error("`{0}` is not a thread; write `t` and a number")]
    Thread(String),
    /// `c` without a name.
    #[error("a component without a name; write `c` and the name")]
    NoName,
    /// A superfluous word at the end.
    #[error("`{0}` means nothing here; put remarks behind `#` or on a line of their own")]
    Extra(String),
}

/// Reads the lines of one trace, and remembers each thread's component.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    thread: u32,
    components: HashMap<u32, String>,
}

impl Reader {
    /// A reader at the beginning: thread 0, no component.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The component of the thread whose line was read last.
    #[must_use]
    pub fn component(&self) -> &str {
        let name = self.components.get(&self.thread);
        name.map_or(NO_COMPONENT, String::as_str)
    }

    /// Reads the next line. `None` if it is not a reference.
    ///
    /// # Errors
    ///
    /// If it is not a line of a trace.
    pub fn line(&mut self, line: &str) -> Result<Option<Reference>, TraceError> {
        let line = line.trim();
        if line.starts_with("==") || line.starts_with("--") {
            return Ok(None);
        }
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else {
            return Ok(None);
        };
        let rest = line.trim_start()[first.len()..].trim();
        match first {
            "I" => Ok(None),
            "L" => self.of_lackey(rest, false).map(Some),
            "S" | "M" => self.of_lackey(rest, true).map(Some),
            "r" => self.of_ours(rest, false).map(Some),
            "w" => self.of_ours(rest, true).map(Some),
            "t" => {
                let thread = rest.parse();
                self.thread = thread.map_err(|_| TraceError::Thread(shown(rest)))?;
                Ok(None)
            }
            "c" if rest.is_empty() => Err(TraceError::NoName),
            "c" => {
                self.components.insert(self.thread, rest.to_owned());
                Ok(None)
            }
            other => Err(TraceError::Unknown(shown(other))),
        }
    }

    fn of_lackey(&self, rest: &str, write: bool) -> Result<Reference, TraceError> {
        let wrong = || TraceError::Address(shown(rest));
        let (address, bytes) = rest.split_once(',').ok_or_else(wrong)?;
        let address = u64::from_str_radix(address, 16).map_err(|_| wrong())?;
        self.reference(address, bytes, write)
    }

    fn of_ours(&self, rest: &str, write: bool) -> Result<Reference, TraceError> {
        let mut words = rest.split_whitespace();
        let word = words.next().unwrap_or_default();
        let address = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        let address = address.map_err(|_| TraceError::Address(shown(word)))?;
        let bytes = words.next().unwrap_or("1");
        if let Some(extra) = words.next() {
            return Err(TraceError::Extra(shown(extra)));
        }
        self.reference(address, bytes, write)
    }

    fn reference(&self, address: u64, bytes: &str, write: bool) -> Result<Reference, TraceError> {
        let size = bytes
            .parse()
            .ok()
            .filter(|size| (1..=BYTES_MAX).contains(size));
        let size = size.filter(|size| address.checked_add(size - 1).is_some());
        let Some(size) = size else {
            return Err(TraceError::Size(shown(bytes)));
        };
        Ok(Reference {
            address,
            bytes: size,
            thread: self.thread,
            write,
        })
    }
}

/// A word of the input for a message: short, and without terminal control characters.
fn shown(word: &str) -> String {
    word.chars().take(40).flat_map(char::escape_debug).collect()
}
