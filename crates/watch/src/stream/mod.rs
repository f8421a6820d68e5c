//! Streams of records from many threads, with an exact account of what was lost.
//!
//! Each thread writes records of two words into blocks of its own, in memory that outlives the
//! process. Full blocks queue for a writer, which stores them as chunks of a file. A *law* says
//! what happens when records come faster than they are stored: the thread waits, or the newest or
//! the oldest records are dropped, and counted. Whatever ends the program, for each thread
//!
//! ```text
//! emitted = stored + lost
//! ```
//!
//! holds in the file together with the journal, as these blocks are called. Where records are not
//! wanted, a thread's [`Counter`] keeps a [`Tally`] of each probe in the journal instead: counts
//! and a histogram. [`TcpSink`] and [`Receiver`] pass chunks on to another machine. See
//! `docs/internals/streams.md`.
//!
//! ```
//! use hearth_watch::stream::{Journal, Law, Shape, Tape};
//!
//! let shape = Shape::for_bytes(1 << 20);
//! let file = hearth_sys::shared::memory_file("example", shape.bytes())?;
//! let journal = Journal::begin(&file, shape, Law::DropNewest)?;
//! let tape = Tape::new();
//! if !tape.write(7, 8) {
//!     // A new thread, or a full block.
//!     tape.turn(journal, 0);
//!     assert!(tape.write(7, 8));
//! }
//! tape.close();
//! let full = journal.try_next().expect("one block was handed over");
//! assert_eq!(full.records().collect::<Vec<_>>(), [[7, 8]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calls;
mod chunk;
mod chunks;
mod columns;
pub mod components;
mod counter;
mod full;
mod journal;
pub(crate) mod layout;
mod numbers;
mod reader;
mod remains;
mod tally;
mod tape;
mod user_words;
mod wire;
mod words;
mod writer;

pub use chunk::{Chunk, Clocks, Encoding, Head, Said, write_chunk};
pub use chunks::{Chunks, Damage};
pub use counter::Counter;
pub use full::Full;
pub use journal::Journal;
pub use layout::{GAP, Law, NAME, PLACED, RECORDS_MIN, Shape, THREADS_MAX, TICKS, is_gap};
pub use reader::{Log, Unread, chunk_at};
pub use remains::Remains;
pub use tally::Tally;
pub use tape::Tape;
pub use user_words::UserWords;
pub use wire::{Received, Receiver, TcpSink};
pub use words::Total;
pub use writer::{FileSink, Sink, WholeFileSink, Writer};
