//! Reports: facts that were gathered, as text for terminals, pages for browsers and pictures.
//!
//! - [`summary`] and [`portrait`]: a machine's profile, as text and as a page.
//! - [`placement`]: a plan, as text, as a picture and as JSON.
//! - [`run`]: a recorded run beside what its plan expected, as a page.
//! - [`calls`]: recorded calls, as text and as a page, with one of them drawn.
//! - [`scenarios`]: a found scenario's run, as text, as a picture and as JSON.
//! - [`transactions`]: traces of transactions, as text and as a page.
//! - [`heaps`] and [`heap_map`]: the heaps of a running process, gathered, and as a picture.
//!
//! Charts and pages come from [`hearth_draw`]. This crate must never know the command line, and
//! never print: its reports are values.
//!
//! ```
//! use hearth_machine::profile::Profile;
//! use hearth_machine::synthetic;
//! use hearth_report::summary;
//!
//! let machine = synthetic::parse("1 package, 4 cores").expect("it is a machine");
//! assert!(summary::parts(&machine).starts_with("1 package, 1 node, 4 cores"));
//! ```
#![forbid(unsafe_code)]

pub mod calls;
pub mod heap_map;
pub mod heaps;
pub mod placement;
pub mod portrait;
pub mod run;
pub mod scenarios;
pub mod summary;
pub mod transactions;
