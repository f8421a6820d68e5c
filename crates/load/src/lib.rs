//! Load for servers: closed and open loops, and latency that a server's stalls cannot hide.
//!
//! A [`LoadPlan`] says which requests a server gets, and when; a [`Generator`] carries it out and
//! returns a [`Run`]: rates, latency histograms, and what went wrong. [`Verify`] compares every
//! reply with what a reader may see ([`model`]). To compare servers, start them with [`server`];
//! [`memcaslap`] is a second opinion. This crate knows the bytes of protocols ([`wire`]); it never
//! knows how a server works.

#![forbid(unsafe_code)]

mod arrivals;
pub mod chaos;
pub mod content;
pub mod cpu;
pub mod keys;
mod line;
pub mod memcaslap;
pub mod model;
mod plan;
pub mod random;
pub mod report;
mod run;
pub mod search;
pub mod server;
pub mod tally;
mod target;
pub mod units;
pub mod wire;
mod worker;

pub use keys::{Sizes, Spread};
pub use plan::{Gaps, LoadPlan, Mistake, Pacing, Per, Verify};
pub use run::{BUSY, Failed, Generator, PERCENTILES, Run, percentile_of, percentiles};
pub use tally::{Replies, Tally, Times, Verified};
pub use target::{PORT, Stream, Target};
pub use wire::Protocol;
