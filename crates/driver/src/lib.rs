//! Building and run planning: from a program's file to an executable, and to where its components
//! start.
//!
//! - [`input`]: reading programs, with a clear line for everything that can be wrong with a file.
//! - [`program`]: text to diagnostics, C or an executable; [`cache`] keeps executables.
//! - [`this_machine`], [`profiles`]: the machine at hand as it describes itself, and its measured
//!   profile. [`known_machine`] is what a plan follows from.
//! - [`program_graph`]: the compiler's communication graph as placement takes it.
//! - [`corrections`]: how the machine deviates from its profile now. [`site`] is a profile, its
//!   model and the CPUs to place on.
//! - [`run_plan`]: the variables that `hearth run --place` sets; [`plans`] keeps plans.
//!   [`expected`] is what a plan expects of a run.
//!
//! This crate must never know the command line, and prints through [`hearth_terminal`] only. What a
//! program means is `hearth-lang`'s; what it does is the runtime's.
//!
//! ```
//! use hearth_driver::input::Source;
//! use hearth_driver::program;
//!
//! let source = Source {
//!     name: "hello.isf".into(),
//!     text: "type IHello is interface( out string output )".into(),
//! };
//! assert!(program::check(&source, &Default::default()).is_empty());
//! ```
#![forbid(unsafe_code)]

pub mod input;

pub mod cache;
pub mod program;

pub mod known_machine;
pub mod profiles;
pub mod this_machine;

pub mod program_graph;

pub mod corrections;
pub mod plans;
pub mod site;

pub mod expected;
pub mod run_plan;
