//! Traces of transactions in the form of Schindewolf and Karl (MSEPT 2012), to compare Hearth's
//! with.
//!
//! [`Paper`] is a tracer for [`hearth_stm::Traced`]: each thread writes records of 17 bytes into a
//! file of its own, by itself or through threads that compress. [`trace`] reads the files, places
//! the events in time, and merges the threads. [`kernels`] are programs to be traced;
//! [`contender`] runs one of them with one of all ways to trace it, [`outside`]'s among them.
//! Nothing of the product uses this crate.
#![forbid(unsafe_code)]

mod codec;
pub mod contender;
pub mod kernels;
mod output;
pub mod outside;
mod record;
mod ring;
pub mod trace;
mod tracer;

pub use codec::Codec;
pub use output::{Form, Plan};
pub use record::{Kind, Record};
pub use tracer::Paper;
