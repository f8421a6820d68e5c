//! The runtime's part of a component: its seat, the offer in it, and the lists that link it.
//!
//! This room knows neither how components meet nor which thread runs them.

pub(crate) mod exceptions;
pub(crate) mod offer;
pub(crate) mod parker;
pub(crate) mod registry;
pub mod seat;
pub(crate) mod serving;
pub(crate) mod waiting;
pub(crate) mod waits;
