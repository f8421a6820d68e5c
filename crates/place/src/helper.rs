//! Place of a thread that reads what others write: the writer of a recording, a compressor.
//!
//! The scheduler knows best which of several CPUs is idle at a moment. It does not know who reads
//! whose data. So the answer is a set of CPUs, for the scheduler to choose from: those where the
//! model says that reading costs least, as many as it takes until they have time for the helper.
//!
//! What a helper costs on a CPU, in ns a second, is the sum of
//!
//! - reading: for each block, the model's cost of its bytes from the CPU where it was filled;
//! - crowding: the part of its work by which it slows down its core's other CPUs, as far as these
//!   are busy ([`CostOptions::smt_yield`]).
//!
//! CPUs are taken from the cheapest on. One that fills blocks is taken like others, but its time
//! does not count, since a helper there would take turns with those it works for. When those taken
//! have time for twice the helper's work, all that cost hardly more are taken, too.

use std::fmt;

use hearth_machine::profile::Carrier;
use hearth_machine::topology::{OsThread, format_list};

use crate::cost::CostOptions;
use crate::graph::Kind;
use crate::slots::{CpuSlot, Machine, Message};

/// Difference between two CPUs that does not matter: half a per cent of one's time, ns a second.
const INDIFFERENT_NS: f64 = 5e6;
/// Idle time of the chosen CPUs together, relative to the helper's work.
const ROOM: f64 = 2.0;

/// Load of a CPU lately.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuLoad {
    /// The CPU.
    pub cpu: OsThread,
    /// Blocks a second that threads fill there for the helper.
    pub blocks: f64,
    /// Share of its time that it is busy, with whatever but the helper: from 0 to 1.
    pub busy: f64,
}

/// A thread that reads blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Helper {
    /// Size of a block.
    pub block_bytes: f64,
    /// Its own work, ns a second.
    pub work_ns: f64,
}

/// The CPUs for a helper, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The CPUs, ascending; all usable ones if it makes no difference.
    pub cpus: Vec<OsThread>,
    /// Cost of reading on one of them, the mean, ns a second.
    pub reading_ns: f64,
    /// The same on the others; none if there are no others.
    pub elsewhere_ns: Option<f64>,
    /// The CPUs that fill blocks, ascending.
    pub sources: Vec<OsThread>,
}

/// Chooses the CPUs for a helper. CPUs without a load are idle; loads of CPUs that may not be used
/// do not count.
#[must_use]
pub fn choose(
    machine: &Machine,
    loads: &[CpuLoad],
    helper: &Helper,
    options: &CostOptions,
) -> Choice {
    let (mut blocks, mut busy) = (
        vec![0.0; machine.slots().len()],
        vec![0.0; machine.slots().len()],
    );
    for load in loads {
        if let Some(slot) = machine.slot_of(load.cpu) {
            blocks[slot.index()] = load.blocks.max(0.0);
            busy[slot.index()] = load.busy.clamp(0.0, 1.0);
        }
    }
    let sources: Vec<CpuSlot> = machine
        .all()
        .filter(|slot| blocks[slot.index()] > 0.0)
        .collect();
    let message = Message {
        bytes: helper.block_bytes,
        carrier: Carrier::Worker,
        kind: Kind::Moved,
    };
    let reading: Vec<f64> = machine
        .all()
        .map(|slot| {
            let cost = |source: &CpuSlot| {
                let share = machine.messages().share(*source, slot, &message);
                blocks[source.index()] * share.receive_ns
            };
            sources.iter().map(cost).sum()
        })
        .collect();
    let crowding = |slot: CpuSlot| {
        let core = &machine.cores()[machine.slots()[slot.index()].core as usize];
        let others = core.iter().filter(|other| **other != slot);
        let busy: f64 = others.map(|other| busy[other.index()]).sum();
        // Alone a CPU does 1; each of two siblings does half of what both do.
        busy * helper.work_ns * (1.0 - options.smt_yield / 2.0).max(0.0)
    };
    let mut ranked: Vec<(f64, CpuSlot)> = machine
        .all()
        .map(|slot| (reading[slot.index()] + crowding(slot), slot))
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut missing = ROOM * helper.work_ns;
    let enough = ranked.iter().position(|(_, slot)| {
        if blocks[slot.index()] == 0.0 {
            missing -= 1e9 * (1.0 - busy[slot.index()]) * machine.slots()[slot.index()].capacity;
        }
        missing <= 0.0
    });
    let limit = enough.map_or(f64::INFINITY, |last| ranked[last].0 + INDIFFERENT_NS);
    let taken = ranked.partition_point(|(cost, _)| *cost <= limit);
    let mean = |slots: &[(f64, CpuSlot)]| {
        let sum: f64 = slots.iter().map(|(_, slot)| reading[slot.index()]).sum();
        (!slots.is_empty()).then(|| sum / slots.len() as f64)
    };
    let numbers = |slots: &mut dyn Iterator<Item = CpuSlot>| {
        let mut cpus: Vec<OsThread> = slots.map(|slot| machine.os(slot)).collect();
        cpus.sort();
        cpus
    };
    Choice {
        cpus: numbers(&mut ranked[..taken].iter().map(|(_, slot)| *slot)),
        reading_ns: mean(&ranked[..taken]).unwrap_or_default(),
        elsewhere_ns: mean(&ranked[taken..]),
        sources: numbers(&mut sources.iter().copied()),
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |cpus: &[OsThread]| format_list(cpus.iter().map(|cpu| cpu.0));
        let ms = |ns: f64| ns / 1e6;
        let (cpus, sources) = (list(&self.cpus), list(&self.sources));
        let reading = ms(self.reading_ns);
        match self.elsewhere_ns {
            Some(elsewhere) => write!(
                f,
                "CPUs {cpus}, near those that record (CPUs {sources}): reading there is modelled \
                 as {reading:.1} ms a second, elsewhere {:.1}",
                ms(elsewhere)
            ),
            None => write!(
                f,
                "any CPU ({cpus}): CPUs {sources} record, and reading is modelled as {reading:.1} \
                 ms a second on the average"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use hearth_machine::profile::Profile;
    use hearth_machine::synthetic;
    use hearth_model::fitted::Model;

    use super::*;

    fn machine(description: &str) -> Machine {
        let profile = Profile::assumed(synthetic::parse(description).expect("a machine"));
        let model = Model::new(&profile).expect("a model");
        Machine::new(&profile, &model, &[]).expect("a machine")
    }

    fn load(cpu: u32, blocks: f64, busy: f64) -> CpuLoad {
        CpuLoad {
            cpu: OsThread(cpu),
            blocks,
            busy,
        }
    }

    fn choice(description: &str, loads: &[CpuLoad]) -> Choice {
        let helper = Helper {
            block_bytes: 65536.0,
            work_ns: 1e8,
        };
        let options = CostOptions::default();
        choose(&machine(description), loads, &helper, &options)
    }

    fn chosen(description: &str, loads: &[CpuLoad]) -> Vec<u32> {
        let choice = choice(description, loads);
        choice.cpus.iter().map(|cpu| cpu.0).collect()
    }

    const TWO_PACKAGES: &str = "2 packages, 4 cores, l1d 32K per core, l2 8M per package";

    #[test]
    fn a_helper_stays_in_the_package_of_those_that_record() {
        let loads = [load(4, 2000.0, 1.0), load(5, 2000.0, 1.0)];
        assert_eq!(chosen(TWO_PACKAGES, &loads), [4, 5, 6, 7]);
        let loads = [load(0, 2000.0, 1.0)];
        assert_eq!(chosen(TWO_PACKAGES, &loads), [0, 1, 2, 3]);
    }

    #[test]
    fn a_choice_says_why() {
        let near = choice(TWO_PACKAGES, &[load(4, 2000.0, 1.0), load(5, 2000.0, 1.0)]);
        let text = near.to_string();
        let begin = "CPUs 4-7, near those that record (CPUs 4-5): reading there is modelled as ";
        assert!(text.starts_with(begin), "{text}");
        let elsewhere = near.elsewhere_ns.expect("there are others");
        assert!(elsewhere > 1.5 * near.reading_ns, "{text}");
        let any = choice(TWO_PACKAGES, &[load(0, 3.0, 0.1)]).to_string();
        assert!(any.starts_with("any CPU (0-7): CPUs 0 record, "), "{any}");
    }

    #[test]
    fn a_full_package_makes_it_leave() {
        let loads: Vec<CpuLoad> = (0..4).map(|cpu| load(cpu, 2000.0, 1.0)).collect();
        assert_eq!(chosen(TWO_PACKAGES, &loads), [0, 1, 2, 3, 4, 5, 6, 7]);
        // Others than those that record leave time, or do not.
        let mut loads = vec![load(0, 2000.0, 1.0), load(1, 0.0, 1.0), load(2, 0.0, 1.0)];
        loads.push(load(3, 0.0, 0.5));
        assert_eq!(chosen(TWO_PACKAGES, &loads), [0, 1, 2, 3]);
        loads[3].busy = 0.95;
        assert_eq!(chosen(TWO_PACKAGES, &loads).len(), 8);
    }

    #[test]
    fn a_trickle_decides_nothing() {
        assert_eq!(chosen(TWO_PACKAGES, &[load(0, 3.0, 0.1)]).len(), 8);
        assert_eq!(chosen(TWO_PACKAGES, &[]).len(), 8);
    }

    #[test]
    fn a_busy_sibling_is_left_alone() {
        let machine = "2 packages, 2 cores, 2 threads, l1d 32K per core, l2 8M per package";
        let first = chosen(machine, &[load(0, 500.0, 1.0)]);
        // Two threads of a core are 0 and 1 there, and 2 and 3 are the package's other core.
        assert!(first.contains(&2) && first.contains(&3), "{first:?}");
        assert!(!first.contains(&1), "{first:?}");
    }

    #[test]
    fn two_cpus_are_both_taken() {
        let loads = [load(0, 3000.0, 1.0)];
        assert_eq!(
            chosen("1 package, 2 cores, l2 8M per package", &loads),
            [0, 1]
        );
    }
}
