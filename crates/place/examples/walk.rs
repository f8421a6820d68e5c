//! The example that `docs/internals/placement.md` walks through: a camera's pipeline on two
//! packages of two cores. `cargo run -p hearth-place --example walk`
#![allow(clippy::print_stdout, reason = "an example prints")]

use hearth_machine::profile::Profile;
use hearth_machine::synthetic;
use hearth_model::fitted::Model;
use hearth_place::cost::{CostOptions, evaluate};
use hearth_place::graph::{Component, Connection, Graph};
use hearth_place::plan::place;
use hearth_place::policy::Policy;
use hearth_place::slots::{CpuSlot, Machine, Placement};
use hearth_place::talk::Effort;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let topology = synthetic::parse("2 packages, 2 cores, l1d 32K per core, l2 4M per package")?;
    let profile = Profile::assumed(topology);
    let machine = Machine::new(&profile, &Model::new(&profile)?, &[])?;
    let mut graph = Graph::new();
    let camera = graph.add(Component::new("camera").work_ns(3_000.0));
    let filter = graph.add(Component::new("filter").work_ns(9_000.0));
    let encoder = graph.add(Component::new("encoder").work_ns(8_000.0));
    let store = graph.add(Component::new("store").work_ns(2_000.0));
    graph.connect(
        Connection::new(camera, filter)
            .messages(1.0)
            .bytes(16_384.0),
    );
    graph.connect(
        Connection::new(filter, encoder)
            .messages(1.0)
            .bytes(16_384.0),
    );
    graph.call(
        Connection::new(encoder, store).messages(4.0).bytes(512.0),
        8.0,
    );

    let options = CostOptions::default();
    for slots in [[0, 0, 0, 0], [0, 1, 2, 3], [0, 0, 1, 1], [2, 0, 1, 1]] {
        let placement = Placement(slots.map(CpuSlot).to_vec());
        let cost = evaluate(&graph, &machine, &options, &placement)?;
        println!(
            "{slots:?}: J {:.0} ns, B {:.0} ({:?}), C {:.0}",
            cost.total_ns, cost.bottleneck_ns, cost.bottleneck, cost.communication_ns
        );
    }
    let plan = place(&graph, &machine, &Policy::Talk, &options, Effort::default())?;
    for place in &plan.places {
        println!("{} on {}: {}", place.name, place.cpu, place.reason);
    }
    println!(
        "J {:.0} ns, B {:.0}, C {:.0}, proved: {}",
        plan.cost.total_ns, plan.cost.bottleneck_ns, plan.cost.communication_ns, plan.proved
    );
    for other in &plan.others {
        println!("{}: {:.0} ns", other.name, other.total_ns);
    }
    println!("{}", plan.verdict);
    Ok(())
}
