//! Calls as spans and figures for OpenTelemetry: bodies of OTLP requests, in Protocol Buffers.
//!
//! [`spans()`] makes a trace of each outermost call: a call is a span, and so is a gap, with the
//! attribute `hearth.lost`. [`metrics()`] makes figures of each probe and each thread. Both hand
//! over bodies of requests one by one, as long as told, for a collector's `/v1/traces` and
//! `/v1/metrics`; with the feature `otlp`, `Endpoint` posts them. [`SpanBatch`] takes the steps of
//! a program that runs.
//!
//! A call whose beginning or end is unknown lasts for as long as it was open for sure, and has
//! `hearth.begin` or `hearth.end` as `unknown`. Times are the wall's time of the beginning and the
//! nanoseconds since then, so they never go back, even if the wall's clock did.
//!
//! Numbers of traces and spans are the same whenever a recording is written.

mod metrics;
#[cfg(feature = "otlp")]
mod post;
mod resource;
mod schema;
mod spans;

pub use metrics::metrics;
#[cfg(feature = "otlp")]
pub use post::{Endpoint, Taken, Unsent};
pub use spans::{SpanBatch, Spans, spans};
