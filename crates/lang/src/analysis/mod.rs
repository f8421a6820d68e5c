//! Analyses of whole programs: the communication graph, the bounds of heaps, the sizes of
//! components, and what may run beside what.
//!
//! Each is found in the text, before any run. [`graph`] walks the program with what is known of its
//! values; [`heap_bound`] follows references; [`size`] adds layouts and bounds up for people.

pub mod futures;
pub mod graph;
pub mod heap_bound;
pub mod size;
