//! Placements as text and as pictures: golden files of the text, and odd data. `HEARTH_BLESS=1`
//! keeps the present output; read the difference.

use std::path::Path;

use hearth_draw::placement::{Component, Connection, Placement, TextLook};
use hearth_machine::synthetic;
use hearth_machine::topology::{Thread, Topology};

const SMALL: &str = "1 package, 2 cores, memory 8G, l3 8M per package";
const CLUSTERED: &str = "2 packages, 4 cores, 2 threads, memory 16G, l2 1M per core, \
                         l3 16M per 2 cores, numbering spread";
const LARGE: &str = "2 packages, 64 cores, 2 threads, 8 nodes, l3 32M per 8 cores, \
                     numbering spread";

fn machine(description: &str) -> Topology {
    let Ok(machine) = synthetic::parse(description) else {
        panic!("{description}");
    };
    machine
}

fn component(name: &str, type_name: &str, thread: u32, load: f64) -> Component {
    Component {
        load,
        ..Component::new(name, type_name, Some(Thread(thread)))
    }
}

fn connection(from: usize, to: usize, messages_per_s: f64, cost_ns: f64) -> Connection {
    Connection {
        from,
        to,
        messages_per_s,
        bytes_per_s: messages_per_s * 64.0,
        cost_ns_per_s: messages_per_s * cost_ns,
    }
}

/// A server, its clients, and a crowd of workers on one thread; one component has no place.
fn mixed(machine: &Topology) -> Placement<'_> {
    let mut placement = Placement::new("mixed.isn, placed by talk", machine);
    placement
        .components
        .push(component("server", "Server", 0, 0.605));
    for nth in 1..6 {
        let client = component(&format!("client{nth}"), "Client", nth * 3 % 16, 0.1);
        placement.components.push(client);
    }
    for nth in 0..40 {
        placement
            .components
            .push(component(&format!("worker{nth}"), "Worker", 4, 0.03));
    }
    placement.components.push(component("Main", "Main", 0, 0.0));
    placement.components.push(Component::new("lost", "", None));
    for nth in 1..6 {
        placement.components[nth]
            .name
            .push_str(if nth == 2 { "\u{1b}[31m" } else { "" });
        let cost = [50.0, 80.0, 90.0, 300.0, 320.0][nth - 1];
        placement
            .connections
            .push(connection(nth, 0, 120_000.0, cost));
        placement
            .connections
            .push(connection(0, nth, 119_000.0, cost));
    }
    for nth in 6..46 {
        placement
            .connections
            .push(connection(nth, 6, 900.0 * nth as f64, 40.0));
    }
    placement.connections.push(connection(47, 0, 3.0, 1000.0));
    placement.remarks.push(
        "Costs are predicted by the model, from a profile that was measured on this machine."
            .to_owned(),
    );
    placement
}

#[track_caller]
fn check(name: &str, placement: &Placement, look: TextLook) -> String {
    let text = placement.text(look);
    for line in text.lines() {
        assert!(line.chars().count() <= look.width, "{name}: {line}");
        assert!(!line.chars().any(char::is_control), "{name}: {line:?}");
        assert_eq!(line, line.trim_end(), "{name}");
    }
    assert!(!look.is_ascii || text.is_ascii(), "{name}");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/placements");
    let golden = golden.join(format!("{name}.txt"));
    if std::env::var_os("HEARTH_BLESS").is_some() {
        std::fs::write(&golden, &text).expect("the golden file can be written");
    }
    let blessed = std::fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(text, blessed, "{name}: HEARTH_BLESS=1 accepts this");
    text
}

fn look(width: usize) -> TextLook {
    TextLook {
        width,
        is_ascii: false,
    }
}

#[test]
fn text_at_80_and_40_columns() {
    let clustered = machine(CLUSTERED);
    let text = check("mixed-80", &mixed(&clustered), look(80));
    assert!(
        text.contains("between nodes") && text.contains("more"),
        "{text}"
    );
    check("mixed-40", &mixed(&clustered), look(40));
    let ascii = TextLook {
        width: 80,
        is_ascii: true,
    };
    check("mixed-ascii", &mixed(&clustered), ascii);
}

/// Components that are dealt out to few threads of many.
fn dealt(machine: &Topology, count: usize, threads: usize) -> Placement<'_> {
    let mut placement = Placement::new(&format!("{count} components"), machine);
    let types = ["Worker", "Collector", "Store", "Logger", "Timer"];
    for nth in 0..count {
        let what = types[nth * nth % 7 % 5];
        let name = format!("{}{nth}", what.to_lowercase());
        let thread = u32::try_from(nth % threads).expect("few threads");
        placement
            .components
            .push(component(&name, what, thread, 0.01));
        placement
            .connections
            .push(connection(nth, (nth + 1) % count, 1e4, 100.0));
    }
    placement
}

#[test]
fn large_machines_and_many_components() {
    let large = machine(LARGE);
    check("large-80", &dealt(&large, 300, 40), look(80));
    let small = machine(SMALL);
    check("crowd-60", &dealt(&small, 5_000, 2), look(60));
}

#[test]
fn idle_parts_are_told_together() {
    let large = machine(LARGE);
    let text = dealt(&large, 4, 2).text(look(80));
    assert!(text.lines().count() < 40, "{text}");
    assert!(
        text.contains("package 1: nothing on 64-127, 192-255"),
        "{text}"
    );
}

#[test]
fn text_of_any_data() {
    let one = machine("1 package");
    for width in [0, 31, 32, 33, 50, 64, 80, 1000] {
        let shown = width.clamp(32, 80);
        for is_ascii in [false, true] {
            for placement in odd(&one) {
                let text = placement.text(TextLook { width, is_ascii });
                for line in text.lines() {
                    assert!(line.chars().count() <= shown, "{width}: {line}");
                }
                assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            }
        }
    }
}

/// Empty data; invalid numbers; indices of no component; places outside the machine; names of any
/// kind.
fn odd(machine: &Topology) -> Vec<Placement<'_>> {
    let mut strange = Placement::new("<&\u{7}>", machine);
    let long = "long".repeat(200);
    let names = ["", " ", "ü", "<b>", "a\nb", &long];
    for (nth, name) in (0..).zip(names) {
        strange
            .components
            .push(component(name, name, nth % 2 * 77, f64::NAN));
        let loads = [-1.0, f64::INFINITY, 1e300];
        strange
            .components
            .push(component(name, &long, 0, loads[nth as usize % 3]));
    }
    for from in [0, 5, 11, 12, usize::MAX] {
        for to in [0, 1, 7, 99] {
            for number in [f64::NAN, -1.0, 0.0, 1e300] {
                strange
                    .connections
                    .push(connection(from, to, number, number));
            }
        }
    }
    let mut quiet = Placement::new("quiet", machine);
    quiet.components.push(component("alone", "Alone", 0, 0.0));
    vec![Placement::new("", machine), quiet, strange]
}
