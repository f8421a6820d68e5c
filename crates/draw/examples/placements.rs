//! Draws placements of several sizes, as text and as files: `placements FOLDER [WIDTH]`.

use hearth_draw::placement::{Component, Connection, Placement, TextLook};
use hearth_machine::synthetic;
use hearth_machine::topology::{Thread, Topology};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .ok_or("name the folder to write into")?;
    let folder = std::path::PathBuf::from(folder);
    let width = std::env::args()
        .nth(2)
        .map_or(Ok(80), |text| text.parse())?;
    let two = synthetic::parse("1 package, 2 cores, memory 8G, l2 1M per core, l3 8M per package")?;
    let four = synthetic::parse("2 packages, 2 cores, 2 threads, l2 4M per package")?;
    let nodes = "2 packages, 16 cores, 4 nodes, memory 32G, l2 1M per core, l3 16M per node";
    let nodes = synthetic::parse(nodes)?;
    let large = "2 packages, 64 cores, 2 threads, 8 nodes, memory 64G, l3 32M per 8 cores, \
                 numbering spread";
    let large = synthetic::parse(large)?;
    let pictures = [
        ("two", pipeline(&two)),
        ("four", clients(&four)),
        ("nodes", many(&nodes, 200)),
        ("large", many(&large, 64)),
        ("full", many(&large, 2_000)),
        ("crowd", many(&two, 5_000)),
    ];
    for (name, placement) in pictures {
        let look = TextLook {
            width,
            is_ascii: name == "four",
        };
        let text = placement.text(look);
        std::fs::write(folder.join(format!("{name}.txt")), text)?;
        let picture = placement.draw();
        std::fs::write(folder.join(format!("{name}.svg")), picture.file())?;
    }
    Ok(())
}

fn connection(from: usize, to: usize, messages: f64, ns: f64) -> Connection {
    Connection {
        from,
        to,
        messages_per_s: messages,
        bytes_per_s: messages * 64.0,
        cost_ns_per_s: messages * ns,
    }
}

fn component(name: &str, type_name: &str, thread: u32, load: f64) -> Component {
    Component {
        load,
        ..Component::new(name, type_name, Some(Thread(thread)))
    }
}

/// Six components in a row.
fn pipeline(machine: &Topology) -> Placement<'_> {
    let mut placement = Placement::new("pipeline.isn, placed by talk", machine);
    let types = ["Reader", "Filter", "Filter", "Filter", "Writer", "Monitor"];
    for (i, what) in types.into_iter().enumerate() {
        let thread = u32::from(i > 2);
        placement.components.push(component(
            &format!("c{i}"),
            what,
            thread,
            0.08 * (i + 1) as f64,
        ));
    }
    for i in 0..5 {
        let ns = if i == 2 { 160.0 } else { 40.0 };
        placement
            .connections
            .push(connection(i, i + 1, 4e5 - 3e4 * i as f64, ns));
    }
    placement
        .remarks
        .push("Costs are the model's, for a machine with assumed costs.".to_owned());
    placement
}

/// One server and fourteen clients.
fn clients(machine: &Topology) -> Placement<'_> {
    let mut placement = Placement::new("clients.isn, placed by spread", machine);
    placement
        .components
        .push(component("server", "Server", 0, 0.6));
    for i in 1..15 {
        let thread = i * 7 % 8;
        placement
            .components
            .push(component(&format!("client{i}"), "Client", thread, 0.05));
        let ns = [40.0, 55.0, 90.0, 90.0, 300.0, 300.0, 300.0, 300.0][thread as usize];
        placement
            .connections
            .push(connection(i as usize, 0, 1e5, ns));
        placement
            .connections
            .push(connection(0, i as usize, 1e5, ns));
    }
    placement
}

/// Groups that talk mostly among themselves, on every second core.
fn many(machine: &Topology, count: usize) -> Placement<'_> {
    let mut placement = Placement::new(&format!("{count} components"), machine);
    let types = [
        "Worker",
        "Collector",
        "Store",
        "Logger",
        "Timer",
        "Web",
        "Cache",
    ];
    let threads = machine.threads().len();
    for i in 0..count {
        let what = types[(i * i) % 11 % 7];
        let thread = (i / 4 * 4 + i % 3) % threads;
        let name = format!("{}{i}", what.to_lowercase());
        placement.components.push(component(
            &name,
            what,
            thread as u32,
            0.9 / (1 + i % 9) as f64 / 6.0,
        ));
        for other in [i / 8 * 8, i * 5 / 7, (i + 1) % count] {
            let messages = 1e6 / (1 + (i * 37) % 101) as f64;
            placement
                .connections
                .push(connection(i, other, messages, 40.0 + (i % 7 * 60) as f64));
        }
    }
    placement
}
