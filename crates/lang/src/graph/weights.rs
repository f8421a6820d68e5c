//! What an operation of the core IR costs, in nanoseconds.
//!
//! An estimate for the C that is made of it, optimised, on a machine of about 3 GHz, with data in the
//! caches next to the core. Loads, stores and branches of one statement overlap, so each counts for
//! less than it would take alone. `docs/internals/graph.md` says how the table was compared with
//! runs. What a message costs is not here: that is the communication model's, by size and distance.

/// An addition, comparison or the like in a register.
pub(super) const OPERATION: f64 = 0.15;
/// A division or remainder of integers; by a literal it is a multiplication and a shift.
pub(super) const DIVISION: f64 = 1.5;
pub(super) const DIVISION_BY_LITERAL: f64 = 0.6;
/// A member, field, element or length read.
pub(super) const LOAD: f64 = 0.15;
pub(super) const STORE: f64 = 0.15;
/// An index check; most are moved in front of loops.
pub(super) const CHECK: f64 = 0.05;
pub(super) const BRANCH: f64 = 0.3;
/// A round of a loop, beside its body.
pub(super) const ROUND: f64 = 0.15;
pub(super) const CALL: f64 = 1.0;
/// A block taken from the heap and given back, and each byte of it written.
pub(super) const BLOCK: f64 = 12.0;
pub(super) const BYTE: f64 = 0.05;
/// A native of the runtime that computes.
pub(super) const NATIVE: f64 = 3.0;
/// A native that prints: the text goes into a buffer of the process, under a lock.
pub(super) const PRINT: f64 = 60.0;
/// The beginning of a pass.
pub(super) const PASS: f64 = 1.0;
/// What either side of a message takes, where only rates are to be compared: a hand-over between
/// neighbours.
pub(super) const MESSAGE: f64 = 80.0;
