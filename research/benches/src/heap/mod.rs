//! Compares Hearth's allocator with others, in programs that know nothing of either.
//!
//! An [`Allocator`](allocators::Allocator) is a library to preload, or none for the system's own.
//! The programs are in `research/benches/heap`, one executable in C, and a few of Debian's; every
//! one checks its answers. [`Session`](session::Session) runs them under all allocators in shuffled
//! turns and fills a [`Table`](table::Table); [`goals`] judges it, [`report`] prints it.

pub mod allocators;
pub mod goals;
pub mod programs;
pub mod report;
pub mod session;
pub mod table;
pub mod ticks;
pub mod workloads;

use workloads::{Group, Size};

/// The measurements requested.
#[derive(Clone, Debug)]
pub struct Request {
    pub size: Size,
    /// Runs of each program under each allocator; as many as the method needs, where it needs more.
    pub repeats: usize,
    pub groups: Vec<Group>,
}

impl Request {
    pub fn wants(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }
}
