//! Consolidation: the software components of many control units on the fewest units and cores that
//! hold them.
//!
//! - [`model`]: components with modes, times and safety levels; messages, circuit points, units
//!   with cores and memories, buses, rules. [`mod@file`] reads it from TOML.
//! - [`mapping`]: a result; [`figures`]: its units, traffic, cables and energy.
//! - [`switch`]: the plans by which cores change from one mode to another.
//! - [`check`]: whether a mapping keeps every rule, by code of its own.
#![forbid(unsafe_code)]

pub mod model;

pub mod file;

pub mod amalthea;

pub mod mapping;

pub mod figures;

pub mod switch;

pub mod check;

pub mod search;

pub mod result;

pub mod why;

pub mod report;

pub mod generate;
