//! What is of the whole process: its beginning, its interface, its helper and what it tells of itself.

pub(crate) mod blocks;
pub(crate) mod helper;
pub mod inspect;
pub(crate) mod prepare;
pub(crate) mod private_heap;
pub(crate) mod publish;
pub(crate) mod rust;
pub(crate) mod start;
pub(crate) mod statistics;
