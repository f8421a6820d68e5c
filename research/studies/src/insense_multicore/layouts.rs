//! The source's placement of threads by hand, pattern by pattern.
//!
//! Its machine had four cores. With fewer, threads with a core of their own there share the
//! existing cores, and the last core stays what its fourth was.

use super::workloads::{Load, Role, Workload};

/// A layout by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hand {
    /// Those that talk on one core: each pair, each server with its clients, each dispatcher with
    /// its workers. With three groups the source's fourth core was idle.
    Together,
    /// Those that talk on different cores: sender and receiver; servers on single cores and all
    /// clients on the last; workers on all cores but the last and all dispatchers on that.
    Apart,
}

/// The source's cores: no more are used.
pub const CORES: usize = 4;

impl Hand {
    /// The core of each component of a load, in the order in which they are made. `cores` is not
    /// empty.
    #[must_use]
    pub fn cores(self, load: &Load, cores: &[usize]) -> Vec<usize> {
        let last = cores.len() - 1;
        let others = last.max(1);
        let computing = match load.workload {
            Workload::DispatchWorker => Role::Around,
            _ => Role::Middle,
        };
        let mut computed = 0;
        let mut places = Vec::new();
        for part in load.parts() {
            let group = part.group as usize;
            let index = match (self, load.workload, part.role) {
                (Hand::Together, ..) | (_, _, Role::Alone) => group,
                (_, Workload::SenderReceiver, Role::Middle) => 2 * group,
                (_, Workload::SenderReceiver, _) => 2 * group + 1,
                (_, _, role) if role == computing => {
                    computed += 1;
                    (computed - 1) % others
                }
                _ => last,
            };
            places.push(cores[index % cores.len()]);
        }
        places
    }
}
