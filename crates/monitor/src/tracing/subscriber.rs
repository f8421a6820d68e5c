//! Spans as calls, without a registry.

use std::fmt;

use tracing_core::callsite::rebuild_interest_cache;
use tracing_core::dispatcher::{Dispatch, SetGlobalDefaultError, set_global_default};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Interest, Metadata};

use super::sites;
use crate::controller::{self, Monitor, NotBegun};
use crate::options::Options;
use crate::parse::Misread;
use crate::unguarded::{self, Frame};

/// Number of spans that have no probe.
const NO_PROBE: u64 = u64::MAX;

/// Subscriber that notes each entering of a span as a call, and does nothing else.
///
/// A span's id is one more than its call site's number, so all spans of a call site have the same.
///
/// Interest: a call site whose probe is off has none, and the crate `tracing` asks no more. When
/// rules change, all are asked again. The alternative, to be asked at each span, makes a span that
/// is off cost 5.4 ns instead of 1.5 (`examples/spans.rs`). A call site that another thread meets
/// during the very change of a rule may miss it, until the next change.
#[derive(Debug)]
pub struct Subscriber {
    _private: (),
}

/// Reason for which spans are not recorded.
#[derive(Debug)]
pub enum NotInstalled {
    /// The choices cannot be read.
    Misread(Misread),
    /// The program has a subscriber already.
    Second(SetGlobalDefaultError),
    /// The monitor does not begin.
    Monitor(NotBegun),
}

/// Makes [`Subscriber`] the program's subscriber and begins a monitor.
///
/// # Errors
/// The program has a subscriber already, or the monitor does not begin.
pub fn init(options: Options) -> Result<Monitor, NotInstalled> {
    set_global_default(Dispatch::new(Subscriber::new())).map_err(NotInstalled::Second)?;
    Monitor::begin(options).map_err(NotInstalled::Monitor)
}

/// Does as [`init`] with the choices of the variable `HEARTH_MONITOR`, and nothing if it is not
/// set.
///
/// # Errors
/// The variable's text is wrong, the program has a subscriber already, or the monitor does not
/// begin.
pub fn init_of_env() -> Result<Option<Monitor>, NotInstalled> {
    let options = Options::of_env().map_err(NotInstalled::Misread)?;
    options.map(init).transpose()
}

impl Subscriber {
    /// A subscriber. All of a process note calls for the one monitor there is.
    #[must_use]
    pub fn new() -> Subscriber {
        controller::after_switches(rebuild_interest_cache);
        Subscriber { _private: () }
    }
}

impl Default for Subscriber {
    fn default() -> Subscriber {
        Subscriber::new()
    }
}

impl tracing_core::Subscriber for Subscriber {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match sites::site(metadata) {
            Some((_, probe)) if unguarded::is_on(probe) => Interest::always(),
            _ => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        sites::known(metadata).is_some_and(unguarded::is_on)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let number = sites::site(span.metadata()).map_or(NO_PROBE - 1, |(number, _)| number as u64);
        Id::from_u64(number + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if let Some((_, probe)) = sites::site(event.metadata()) {
            unguarded::begin(probe, Frame::NONE);
            unguarded::end(probe, Frame::NONE);
        }
    }

    #[inline]
    fn enter(&self, span: &Id) {
        if let Some(probe) = sites::probe(span.into_u64() as usize - 1) {
            unguarded::begin(probe, Frame::NONE);
        }
    }

    #[inline]
    fn exit(&self, span: &Id) {
        if let Some(probe) = sites::probe(span.into_u64() as usize - 1) {
            unguarded::end(probe, Frame::NONE);
        }
    }
}

impl fmt::Display for NotInstalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotInstalled::Misread(misread) => misread.fmt(f),
            NotInstalled::Second(_) => f.write_str(
                "the program has a subscriber of spans already; add hearth_monitor::tracing::Layer to it",
            ),
            NotInstalled::Monitor(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotInstalled {}
