//! Other tools' forms of recorded calls.
//!
//! | form | written by | read by |
//! |---|---|---|
//! | folded stacks | [`folded()`] | flame graphs: inferno, speedscope |
//! | Kieker's text log | [`kieker()`] | Kieker's trace analysis |
//! | Perfetto's trace | [`perfetto()`] | Perfetto's trace processor and its page in the browser |
//! | CTF 1.8, a directory | [`ctf()`] | babeltrace2, Trace Compass |
//! | OTLP, requests with spans and figures | [`mod@otlp`] | collectors of OpenTelemetry |
//! | CSV, a line a call | [`csv()`] | anything |
//!
//! Calls and losses are the same in each. Where records are missing each form says so as far as it
//! can:
//!
//! | form | a gap | a call with an unknown end or beginning |
//! |---|---|---|
//! | folded stacks | no line | a frame `?` if its name is unknown too |
//! | Kieker's text log | no record | its whole trace is left out, and counted |
//! | Perfetto's trace | a slice, "N records lost", a counter | as long as it was open for sure |
//! | CTF | a packet that counts discarded events | has one event, or none |
//! | OTLP | a span with `hearth.lost` | as long as it was open for sure |
//! | CSV | a line | empty fields |

mod csv;
mod ctf;
mod folded;
mod kieker;
pub mod otlp;
mod perfetto;

pub use csv::csv;
pub use ctf::ctf;
pub use folded::folded;
pub use kieker::{Kieker, kieker};
pub use perfetto::perfetto;

use std::fmt;
use std::io;

use crate::recorded::Unreadable;

/// Reason for which a form could not be written.
#[derive(Debug)]
pub enum Unwritten {
    /// The recorded calls cannot be read.
    From(Unreadable),
    /// The output takes no more.
    To(io::Error),
}

impl From<Unreadable> for Unwritten {
    fn from(error: Unreadable) -> Unwritten {
        Unwritten::From(error)
    }
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Unwritten {
        Unwritten::To(error)
    }
}

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unwritten::From(error) => error.fmt(f),
            Unwritten::To(error) => write!(f, "could not write ({error})"),
        }
    }
}

impl std::error::Error for Unwritten {}

/// Spreads a number over all bits, each to a different one: the last steps of SplitMix64.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
