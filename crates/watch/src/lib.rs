//! Recordings of a run: the runtime writes them as it goes on, and tools read them.
//!
//! A *recording* is a file of words that the program maps: totals of each component and worker,
//! connections, and the latest events. [`Recorder`] writes it, with plain stores and without locks;
//! it stays intact however the program ends. [`Recording`] is one that was read, [`figures`]
//! derives figures from it, [`trace`] a trace for Perfetto.
//!
//! With the feature `stream`, `stream` has the ground of monitors: records of many threads, with an
//! exact account of what was lost.
//!
//! This crate must never know what a component is made of, nor print. It receives names and
//! numbers.
//!
//! ```
//! use hearth_watch::{Made, Recorder, Recording, State, Wait};
//!
//! let file = hearth_sys::shared::memory_file("example", hearth_watch::bytes_for(0))?;
//! let recorder = Recorder::begin(&file, hearth_watch::Carrying::Workers, 1)?;
//! let name = recorder.name("Ping", &["ball"]);
//! recorder.made(1, &Made { name, number: 1, ..Made::default() });
//! recorder.runs(1, 0, recorder.now());
//! let ran_for = recorder.waits(1, 0, Wait::Send(Some(0)), recorder.now());
//! assert!(ran_for < recorder.now());
//! let recording = Recording::of_file(&file)?;
//! assert_eq!(recording.components[0].state, State::Waiting(Wait::Send(Some(0))));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod figures;
mod layout;
mod pen;
mod recorder;
mod recording;
#[cfg(feature = "stream")]
pub mod stream;
#[cfg(feature = "trace")]
pub mod trace;

pub use layout::{COMPONENTS_MAX, Carrying, NAME, NO_WORKER, State, Wait, bytes_for};
pub use recorder::{Made, Recorder};
pub use recording::{
    Collected, Component, Ending, Event, Happening, Port, Recording, Remark, Unfit, Worker,
};
