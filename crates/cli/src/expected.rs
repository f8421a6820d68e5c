//! What is expected of a run: of each component, each pair that communicates, and the machine.

use std::collections::HashMap;
use std::ffi::OsString;

use hearth_machine::topology::OsThread;
use hearth_place::cost;
use hearth_place::slots::{Message, Placement, Slot};

use crate::arguments::{Carrier, Run, WhereToRun};
use crate::commands::place::{Site, carrier};
use crate::input::Source;
use crate::placing::{self, Program};

/// A program as its text has it, and where a plan has its components.
pub(crate) struct Expected {
    pub(crate) program: Program,
    pub(crate) site: Site,
    pub(crate) options: cost::Options,
    /// Who decides, in words: `the plan of talk`, or a policy's name.
    pub(crate) policy: String,
    /// By component of the graph; none where no plan says it.
    pub(crate) slots: Vec<Option<Slot>>,
}

impl Expected {
    /// What was expected of a run that had these variables. None where the machine or the program cannot be
    /// read: there is a report all the same.
    pub(crate) fn of_run(
        arguments: &Run,
        source: &Source,
        variables: &[(&'static str, OsString)],
    ) -> Option<Expected> {
        let site = Site::known().ok()?;
        let start = Slot(0);
        let program = placing::program(source, site.machine.os(start)).ok()?;
        let named = variables.iter().find(|(name, _)| *name == "HEARTH_PLAN");
        let lines = named.and_then(|(_, path)| std::fs::read_to_string(path).ok());
        let slots = match &lines {
            Some(lines) => planned(&program, &site, lines, start),
            None => vec![None; program.graph.components.len()],
        };
        let policy = match &arguments.place {
            Some(WhereToRun::Plan(path)) => format!("the plan in {}", path.display()),
            Some(WhereToRun::Talk) => "the plan of `talk`".to_owned(),
            Some(WhereToRun::Policy(name)) => (*name).to_owned(),
            None => std::env::var("HEARTH_PLACE").unwrap_or_else(|_| "os".to_owned()),
        };
        let options = cost::Options {
            carrier: carrier(arguments.carrier.unwrap_or(Carrier::Workers)),
            ..cost::Options::default()
        };
        Some(Expected {
            program,
            site,
            options,
            policy,
            slots,
        })
    }

    /// Is there a plan?
    pub(crate) fn is_planned(&self) -> bool {
        self.slots.iter().any(Option::is_some)
    }

    /// The component of the graph for one of a type with a number, as the runtime knows it.
    pub(crate) fn by_instance(&self) -> HashMap<(&str, u32), usize> {
        let instances = self.program.instances.iter().enumerate();
        instances
            .filter_map(|(index, instance)| {
                let instance = instance.as_ref()?;
                Some(((instance.type_name.as_str(), instance.number), index))
            })
            .collect()
    }

    /// What each component takes of a core, in nanoseconds a second: what it computes, and its parts of
    /// messages. Those without a place count as if all were in one.
    pub(crate) fn loads(&self) -> Vec<f64> {
        let graph = &self.program.graph;
        let works = graph.components.iter();
        let mut loads: Vec<f64> = works.map(|component| component.work_ns.value).collect();
        for connection in &graph.connections {
            let (from, to) = (connection.from.index(), connection.to.index());
            let (a, b) = match (self.slots[from], self.slots[to]) {
                (Some(a), Some(b)) => (a, b),
                _ => (Slot(0), Slot(0)),
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

    /// What a plan costs by the model. None if it does not have a place for each component.
    pub(crate) fn cost(&self) -> Option<cost::Breakdown> {
        let slots: Option<Vec<Slot>> = self.slots.iter().copied().collect();
        let placement = Placement(slots?);
        let (graph, machine) = (&self.program.graph, &self.site.machine);
        cost::evaluate(graph, machine, &self.options, &placement).ok()
    }
}

/// Where a plan has the components, by its lines of type, number and CPU. Those that nobody places are where
/// the program starts.
fn planned(program: &Program, site: &Site, lines: &str, start: Slot) -> Vec<Option<Slot>> {
    let entry = |line: &str| {
        let mut fields = line.split('\t');
        let (name, number, cpu) = (fields.next()?, fields.next()?, fields.next()?);
        let slot = site.machine.slot_of(OsThread(cpu.parse().ok()?))?;
        Some(((name.to_owned(), number.parse::<u32>().ok()?), slot))
    };
    let slots: HashMap<(String, u32), Slot> = lines.lines().filter_map(entry).collect();
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
    use crate::placing::Instance;

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
        let program = Program {
            graph: Graph::default(),
            instances: vec![None, instance(1), instance(2), instance(3)],
            notes: Vec::new(),
        };
        // The first is where nobody may be, and the last has no line.
        let slots = planned(&program, &site, "A\t2\t3\nA\t1\t9\n", Slot(1));
        assert_eq!(slots, [Some(Slot(1)), None, Some(Slot(3)), None]);
    }
}
