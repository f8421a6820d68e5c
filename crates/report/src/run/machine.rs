//! The places where components ran: on a picture of the machine, and worker by worker.

use std::collections::HashMap;

use hearth_draw::Look;
use hearth_draw::page::{Section, Table};
use hearth_draw::placement::{self, Placement};
use hearth_draw::rows::{Row, RowChart};
use hearth_draw::scale::{Scale, Unit};
use hearth_draw::topology;
use hearth_driver::expected::Expected;
use hearth_machine::topology::{OsThread, Topology};
use hearth_place::slots::Message;
use hearth_watch::{Carrying, Recording, figures};

use super::{busiest, mostly_on, share, time};

/// The machine, and what ran where.
pub(super) struct MachinePicture {
    machine: Topology,
    components: Vec<placement::Component>,
    connections: Vec<placement::Connection>,
    has_costs: bool,
}

impl MachinePicture {
    /// None where the system does not tell of the machine.
    pub(super) fn of(recording: &Recording, expected: Option<&Expected>) -> Option<MachinePicture> {
        let machine = hearth_driver::this_machine::reading().ok()?.topology;
        Some(MachinePicture::on(machine, recording, expected))
    }

    fn on(machine: Topology, recording: &Recording, expected: Option<&Expected>) -> MachinePicture {
        let mut index_of = HashMap::new();
        let mut cores = Vec::new();
        let mut components = Vec::new();
        for one in &recording.components {
            // The standard environment's components that barely run are not part of the program.
            if one.is_service && one.runs == 0 {
                continue;
            }
            let core = mostly_on(recording, one);
            let thread = core.and_then(|core| machine.thread_of(OsThread(core as u32)));
            index_of.insert(one.id, components.len());
            cores.push(core);
            components.push(placement::Component {
                // A share of the whole run, not of its life: a core's bar is the sum of those that
                // ran there, whether or not at the same time.
                load: (one.running as f64 / recording.ns.max(1) as f64).clamp(0.0, 1.0),
                ..placement::Component::new(&one.name, &one.of, thread)
            });
        }
        let seconds = recording.ns.max(1) as f64 / 1e9;
        let connections = figures::channels(recording)
            .iter()
            .filter_map(|channel| {
                let end = |nth: usize| index_of.get(&channel.ends[nth].0).copied();
                let (from, to) = (end(0)?, end(1)?);
                let messages = channel.messages() as f64 / seconds;
                let bytes = channel.value.bytes().unwrap_or(0.0);
                let each_ns = each_ns(expected, cores[from], cores[to], bytes);
                Some(placement::Connection {
                    from,
                    to,
                    messages_per_s: messages,
                    bytes_per_s: messages * bytes,
                    cost_ns_per_s: messages * each_ns.unwrap_or(0.0),
                })
            })
            .filter(|connection| connection.from != connection.to)
            .collect();
        MachinePicture {
            machine,
            components,
            connections,
            has_costs: expected.is_some(),
        }
    }

    fn placement(&self) -> Placement<'_> {
        let mut drawn = Placement::new("Where components ran mostly", &self.machine);
        drawn.components.clone_from(&self.components);
        drawn.connections.clone_from(&self.connections);
        drawn
    }

    /// The colours of types.
    pub(super) fn looks(&self) -> (Vec<(String, Look)>, Look) {
        self.placement().looks()
    }
}

/// The cost of a message between two cores, by the model.
fn each_ns(
    expected: Option<&Expected>,
    from: Option<usize>,
    to: Option<usize>,
    bytes: f64,
) -> Option<f64> {
    let expected = expected?;
    let machine = &expected.site.machine;
    let slot = |core: Option<usize>| machine.slot_of(OsThread(core? as u32));
    let message = Message {
        bytes,
        carrier: expected.options.carrier,
        kind: hearth_place::graph::Kind::default(),
    };
    let share = machine.messages().share(slot(from)?, slot(to)?, &message);
    Some(share.total_ns())
}

pub(super) fn section(recording: &Recording, seen: Option<&MachinePicture>) -> Section {
    let mut section = Section::new("The machine");
    if let Some(seen) = seen {
        let costs = match seen.has_costs {
            true => " What messages cost is the model's, at the rates that were seen.",
            false => "",
        };
        section = section.picture(
            &seen.placement().draw(),
            &format!(
                "Each component where it ran for most of the time, with the share of the run in which it ran; curves are messages.{costs}"
            ),
        );
    }
    if recording.carrying == Carrying::Workers && !recording.workers.is_empty() {
        section = workers(section, recording);
    }
    if let Some(seen) = seen
        && recording.components.is_empty()
    {
        section = section.picture(&topology::draw(&seen.machine), "The machine.");
    }
    section
}

fn workers(section: Section, recording: &Recording) -> Section {
    let mut chart = RowChart {
        reach: Some((0.0, 100.0)),
        ..RowChart::new("Busy share of each worker", Scale::Linear, Unit::Percent)
    };
    let mut table = Table::new(&[
        "worker",
        ">core",
        ">busy",
        ">share",
        ">runs",
        ">its thread moved",
        "components, busiest first",
    ]);
    let all = busiest(recording);
    for worker in &recording.workers {
        let core = worker
            .core
            .map_or(String::new(), |core| format!(" on core {core}"));
        chart.rows.push(Row {
            label: format!("worker {}{core}", worker.index),
            value: 100.0 * worker.busy as f64 / recording.ns.max(1) as f64,
            interval: None,
            is_measured: true,
        });
        let here: Vec<&str> = all
            .iter()
            .filter(|one| one.mostly == Some(worker.index))
            .map(|one| one.name.as_str())
            .collect();
        let mut names = here.iter().take(6).copied().collect::<Vec<_>>().join(", ");
        if here.len() > 6 {
            names += &format!(" and {} more", here.len() - 6);
        }
        table.row(vec![
            worker.index.to_string(),
            worker
                .core
                .map_or("any".to_owned(), |core| core.to_string()),
            time(worker.busy),
            share(worker.busy, recording.ns),
            worker.runs.to_string(),
            worker.moves.to_string(),
            names,
        ]);
    }
    section
        .picture(&chart.draw(), "From the beginning of the run to its end.")
        .table(&table)
}
