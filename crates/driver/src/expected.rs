//! The expectations of a run: of each component, each pair that communicates, and the machine.

use std::collections::HashMap;
use std::path::Path;

use hearth_machine::profile::Carrier;
use hearth_machine::topology::OsThread;
use hearth_place::cost;
use hearth_place::slots::{CpuSlot, Message, Placement};

use crate::input::Source;
use crate::program_graph::ProgramGraph;
use crate::site::Site;

/// A program's graph, and the places that a plan has for its components.
pub struct Expected {
    pub program: ProgramGraph,
    pub site: Site,
    pub options: cost::CostOptions,
    /// The author of the plan in words: `the plan of talk`, or a policy's name.
    pub policy: String,
    /// The place of each component of the graph; `None` where the plan has none.
    pub slots: Vec<Option<CpuSlot>>,
}

impl Expected {
    /// The expectations of a run by a policy, with the lines in the file `plan` if there is one.
    /// `None` where the machine or the program cannot be read: there is a report all the same.
    pub fn of_run(
        source: &Source,
        policy: String,
        carrier: Carrier,
        plan: Option<&Path>,
    ) -> Option<Expected> {
        let site = Site::known().ok()?;
        let start = CpuSlot(0);
        let program = ProgramGraph::of_source(source, site.machine.os(start)).ok()?;
        let lines = plan.and_then(|path| std::fs::read_to_string(path).ok());
        let slots = match &lines {
            Some(lines) => planned(&program, &site, lines, start),
            None => vec![None; program.graph.components.len()],
        };
        let options = cost::CostOptions {
            carrier,
            ..cost::CostOptions::default()
        };
        Some(Expected {
            program,
            site,
            options,
            policy,
            slots,
        })
    }

    /// True if a plan has a place for a component.
    pub fn is_planned(&self) -> bool {
        self.slots.iter().any(Option::is_some)
    }

    /// Components of the graph by type and number, as the runtime knows them.
    pub fn by_instance(&self) -> HashMap<(&str, u32), usize> {
        let instances = self.program.instances.iter().enumerate();
        instances
            .filter_map(|(index, instance)| {
                let instance = instance.as_ref()?;
                Some(((instance.type_name.as_str(), instance.number), index))
            })
            .collect()
    }

    /// The load of each component in nanoseconds a second: its computing, and its parts of
    /// messages. Components without a place count as if all shared one.
    pub fn loads(&self) -> Vec<f64> {
        let graph = &self.program.graph;
        let works = graph.components.iter();
        let mut loads: Vec<f64> = works.map(|component| component.work_ns.value).collect();
        for connection in &graph.connections {
            let (from, to) = (connection.from.index(), connection.to.index());
            let (a, b) = match (self.slots[from], self.slots[to]) {
                (Some(a), Some(b)) => (a, b),
                _ => (CpuSlot(0), CpuSlot(0)),
            };
            let message = Message {
                bytes: connection.bytes.value,
                carrier: connection.carrier.unwrap_or(self.options.carrier),
                kind: connection.kind,
            };
            let share = self.site.machine.messages().share(a, b, &message);
            loads[from] += connection.messages.value * share.send_ns;
            loads[to] += connection.messages.value * share.receive_ns;
        }
        loads
    }

    /// The cost of the plan by the model; `None` unless it has a place for each component.
    pub fn cost(&self) -> Option<cost::Breakdown> {
        let slots: Option<Vec<CpuSlot>> = self.slots.iter().copied().collect();
        let placement = Placement(slots?);
        let (graph, machine) = (&self.program.graph, &self.site.machine);
        cost::evaluate(graph, machine, &self.options, &placement).ok()
    }
}

/// The places of components in a plan's lines of type, number and CPU. Components that are never
/// placed are where the program starts.
fn planned(
    program: &ProgramGraph,
    site: &Site,
    lines: &str,
    start: CpuSlot,
) -> Vec<Option<CpuSlot>> {
    let entry = |line: &str| {
        let mut fields = line.split('\t');
        let (name, number, cpu) = (fields.next()?, fields.next()?, fields.next()?);
        let slot = site.machine.slot_of(OsThread(cpu.parse().ok()?))?;
        Some(((name.to_owned(), number.parse::<u32>().ok()?), slot))
    };
    let slots: HashMap<(String, u32), CpuSlot> = lines.lines().filter_map(entry).collect();
    let instances = program.instances.iter();
    instances
        .map(|instance| match instance {
            None => Some(start),
            Some(instance) => slots
                .get(&(instance.type_name.clone(), instance.number))
                .copied(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use hearth_machine::profile::Profile;
    use hearth_place::graph::Graph;

    use super::*;
    use crate::program_graph::Instance;

    #[test]
    fn lines_of_a_plan_become_places() {
        let machine = hearth_machine::synthetic::parse("1 package, 4 cores").expect("it is one");
        let cpus = [0, 1, 2, 3].map(OsThread);
        let site = Site::described(Profile::assumed(machine), &cpus).expect("it is fit");
        let instance = |number| {
            Some(Instance {
                type_name: "A".to_owned(),
                number,
            })
        };
        let program = ProgramGraph {
            graph: Graph::default(),
            instances: vec![None, instance(1), instance(2), instance(3)],
            notes: Vec::new(),
        };
        // The first is on a CPU that may not be used, and the last has no line.
        let slots = planned(&program, &site, "A\t2\t3\nA\t1\t9\n", CpuSlot(1));
        assert_eq!(slots, [Some(CpuSlot(1)), None, Some(CpuSlot(3)), None]);
    }
}
