//! Assumed costs of a machine that was never measured.
//!
//! Round numbers for a server or desktop of the 2020s at about 3 GHz. Transfers within a package
//! lie between the published medians of one-socket machines (16 ns within a cluster of Zen 3 cores
//! and 84 ns across, 46 to 51 ns on Graviton3, Cascade Lake and Ice Lake); the rest is our
//! judgement. Each interval spans the factor beside the number.

use super::{
    Access, Bandwidth, CacheFinding, Carrier, Figure, HandOver, Level, LevelCost, LineState, Mode,
    Origin, Profile, Provenance, StateTransfer, SystemCosts,
};
use crate::relation::{Closeness, Nodes, Relation};
use crate::topology::{Thread, Topology};

/// Factor by which an assumed figure may be off, either way.
const FACTOR: f64 = 2.0;
/// The same for services of the operating system, which vary more.
const SYSTEM_FACTOR: f64 = 3.0;
/// Factor for a line from another node's memory or cache.
const REMOTE: f64 = 1.5;
/// Waking a thread that sleeps on the waker's own hardware thread, ns.
const SAME_CORE_WAKE_NS: f64 = 2_500.0;
/// The same on another core.
const OTHER_CORE_WAKE_NS: f64 = 6_000.0;
/// Dependent load from memory, ns.
const MEMORY_NS: f64 = 90.0;

/// A dependent load from a cache level, ns.
fn level_read_ns(level: u8) -> f64 {
    match level {
        0 | 1 => 1.5,
        2 => 5.0,
        3 => 18.0,
        _ => 40.0,
    }
}

/// Sequential bytes a nanosecond of one thread.
fn level_bandwidth(level: Level) -> f64 {
    match level {
        Level::Cache(0 | 1) => 60.0,
        Level::Cache(2) => 35.0,
        Level::Cache(_) => 20.0,
        Level::Memory => 10.0,
    }
}

/// One-way time of a line between two hardware threads, ns.
fn one_way_ns(relation: Relation) -> f64 {
    let near = match relation.closeness {
        Closeness::Same => level_read_ns(1),
        Closeness::SmtSibling => 10.0,
        Closeness::SharedCache(0..=2) => 25.0,
        Closeness::SharedCache(_) => 45.0,
        Closeness::SamePackage => 85.0,
        Closeness::OtherPackage => 110.0,
    };
    match (relation.closeness, relation.nodes) {
        (Closeness::Same | Closeness::SmtSibling, _) | (_, Nodes::Same) => near,
        (_, Nodes::Other) => near * REMOTE,
    }
}

impl Profile {
    /// The profile of a machine that was never measured: Hearth's stated defaults for its parts,
    /// each marked as assumed. Pairs are absent: relations stand for them.
    #[must_use]
    pub fn assumed(topology: Topology) -> Self {
        let origin = Origin {
            hearth_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_s: None,
            duration_s: 0.0,
            mode: Mode::Assumed,
            seed: 0,
            notes: vec![
                "nothing was measured: every cost is Hearth's default; `hearth probe` measures"
                    .to_owned(),
            ],
        };
        Self::empty(origin, topology).with_defaults()
    }

    /// The same profile with an assumed figure wherever one is absent and a default exists. A
    /// hand-over by threads takes the measured wake-up, if there is one, and is marked as inferred.
    /// Measured figures stay as they are. Tables of pairs, nodes, noise and claims are not
    /// invented.
    #[must_use]
    pub fn with_defaults(mut self) -> Self {
        let levels = self.add_caches();
        for &level in &levels {
            self.add_level(level);
        }
        self.levels.sort_by_key(|cost| cost.level);
        for (relation, _) in self.topology.representatives() {
            self.add_relation(relation);
        }
        self.add_system();
        self
    }

    /// Claims the topology's data caches, and returns the levels that the machine has.
    fn add_caches(&mut self) -> Vec<Level> {
        let mut levels: Vec<u8> = Vec::new();
        // The first hardware thread stands for all; the topology knows deviating sizes.
        if !self.topology.threads().is_empty() {
            for cache in self.topology.data_caches(Thread(0)) {
                levels.push(cache.level);
                if !self.caches.iter().any(|found| found.level == cache.level) {
                    self.caches.push(CacheFinding {
                        level: cache.level,
                        claimed_bytes: Some(cache.size.0),
                        inferred_bytes: None,
                    });
                }
            }
        }
        self.caches.sort_by_key(|cache| cache.level);
        levels.extend(self.caches.iter().map(|cache| cache.level));
        levels.sort_unstable();
        levels.dedup();
        levels
            .into_iter()
            .map(Level::Cache)
            .chain([Level::Memory])
            .collect()
    }

    fn add_level(&mut self, level: Level) {
        let read = match level {
            Level::Cache(level) => level_read_ns(level),
            Level::Memory => MEMORY_NS,
        };
        match self.levels.iter_mut().find(|cost| cost.level == level) {
            Some(cost) => {
                let read = cost.read_ns.value;
                cost.write_ns
                    .get_or_insert_with(|| Figure::assumed(read, FACTOR));
            }
            None => self.levels.push(LevelCost {
                level,
                read_ns: Figure::assumed(read, FACTOR),
                write_ns: Some(Figure::assumed(read, FACTOR)),
            }),
        }
        for (access, share) in [
            (Access::Read, 1.0),
            (Access::Write, 0.6),
            (Access::Copy, 0.5),
        ] {
            if self.bandwidth(level, access, 1).is_none() {
                self.bandwidths.push(Bandwidth {
                    level,
                    access,
                    threads: 1,
                    bytes_per_ns: Figure::assumed(level_bandwidth(level) * share, FACTOR),
                });
            }
        }
    }

    fn add_relation(&mut self, relation: Relation) {
        let way = one_way_ns(relation);
        for state in [LineState::Modified, LineState::Exclusive, LineState::Shared] {
            if self.transfer(relation, state).is_none() {
                self.transfers.push(StateTransfer {
                    relation,
                    state,
                    read_ns: Figure::assumed(way, FACTOR),
                    write_ns: Some(Figure::assumed(way, FACTOR)),
                });
            }
        }
        let same = relation.closeness == Closeness::Same;
        // A hand-over to a sleeping thread wakes it: a wake-up measured between one pair is a
        // better guess for the others than any default.
        let (wake, default_ns) = if same {
            (self.system.futex_wake_same_core_ns, SAME_CORE_WAKE_NS)
        } else {
            (self.system.futex_wake_other_core_ns, OTHER_CORE_WAKE_NS)
        };
        let found = wake.filter(|figure| figure.provenance != Provenance::Assumed);
        let wake = found.map_or_else(
            || Figure::assumed(default_ns, SYSTEM_FACTOR),
            Figure::inferred,
        );
        for (carrier, default) in [
            (Carrier::Threads, wake),
            (Carrier::Spin, Figure::assumed(way, FACTOR)),
            (
                Carrier::Worker,
                Figure::assumed(if same { 5.0 } else { 2.0 * way }, FACTOR),
            ),
        ] {
            // A thread cannot spin for another that shares its hardware thread.
            let sensible = !(same && carrier == Carrier::Spin);
            if sensible && self.hand_over(carrier, relation).is_none() {
                self.hand_overs.push(HandOver {
                    carrier,
                    relation,
                    one_way_ns: default,
                });
            }
        }
    }

    fn add_system(&mut self) {
        let SystemCosts {
            thread_create_join_ns,
            context_switch_ns,
            futex_wake_same_core_ns,
            futex_wake_other_core_ns,
            page_fault_ns,
            huge_page_fault_ns,
            mutex_ns,
            semaphore_ns,
            sched_yield_ns,
            syscall_ns,
            clock_read_ns,
        } = &mut self.system;
        for (cost, default_ns) in [
            (thread_create_join_ns, 30_000.0),
            (context_switch_ns, 1_000.0),
            (futex_wake_same_core_ns, SAME_CORE_WAKE_NS),
            (futex_wake_other_core_ns, OTHER_CORE_WAKE_NS),
            (page_fault_ns, 500.0),
            (huge_page_fault_ns, 60_000.0),
            (mutex_ns, 15.0),
            (semaphore_ns, 15.0),
            (sched_yield_ns, 250.0),
            (syscall_ns, 100.0),
            (clock_read_ns, 20.0),
        ] {
            cost.get_or_insert_with(|| Figure::assumed(default_ns, SYSTEM_FACTOR));
        }
    }
}
