//! Prints the facts that the probe reads of this machine, in the words of `./x lab show`: nodes,
//! distances, orders, siblings, and the place of pages that it binds. With `--probe`, runs a probe
//! of every part with the least effort, and prints the parts it could not measure. The lab's tests
//! run it inside virtual machines.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use hearth_machine::profile::distance::fallback_order;
use hearth_machine::topology::{Thread, Topology, format_list};
use hearth_probe::{Findings, Mode, Part, ProbeOptions, ProbePlan, Step, description, run_plan};
use hearth_sys::mapping::{MapOptions, Mapping, page_bytes};
use hearth_sys::policy::{self, Policy};
use hearth_sys::{Linux, System};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let topology = description::capture(&Linux).read()?.topology;
    for line in described(&topology) {
        writeln!(out, "read: {line}")?;
    }
    for node in Linux.memory_nodes().unwrap_or_default() {
        writeln!(out, "read: {}", bound(node)?)?;
    }
    if std::env::args().any(|argument| argument == "--probe") {
        for line in probed()? {
            writeln!(out, "probe: {line}")?;
        }
    }
    Ok(())
}

fn listed(topology: &Topology, threads: &[Thread]) -> String {
    let list = format_list(threads.iter().map(|&thread| topology.os_thread(thread).0));
    if list.is_empty() {
        "none".to_owned()
    } else {
        list
    }
}

fn described(topology: &Topology) -> Vec<String> {
    let mut lines = Vec::new();
    let rows = topology.distances().unwrap_or_default();
    for (index, node) in topology.nodes().iter().enumerate() {
        let row = rows.get(index).map_or(&[][..], Vec::as_slice);
        let row: Vec<String> = row.iter().map(u32::to_string).collect();
        let cpus = listed(topology, &node.threads);
        lines.push(format!(
            "node {}: cpus {cpus}; distances {}",
            node.os.0,
            row.join(" ")
        ));
    }
    for (index, node) in topology.nodes().iter().enumerate() {
        let row = rows.get(index).map_or(&[][..], Vec::as_slice);
        let row: Vec<f64> = row.iter().map(|&distance| f64::from(distance)).collect();
        let order: Vec<String> = fallback_order(index, &row)
            .into_iter()
            .map(|index| topology.nodes()[index].os.0.to_string())
            .collect();
        lines.push(format!(
            "node {} falls back: {}",
            node.os.0,
            order.join(" ")
        ));
    }
    for thread in topology.all_threads() {
        let parts = topology.thread(thread);
        let package = &topology.packages()[parts.package.index()];
        let core = &topology.cores()[parts.core.index()];
        lines.push(format!(
            "cpu {}: package {} thread {} node {}",
            parts.os.0,
            listed(topology, &package.threads),
            listed(topology, &core.threads),
            topology.nodes()[parts.node.index()].os.0
        ));
    }
    lines
}

/// Binds this thread's memory to a node, touches pages, and asks where they are; then moves them by
/// a policy of the mapping's own and asks again.
fn bound(node: usize) -> Result<String, Failure> {
    const PAGES: usize = 256;
    Linux.place_memory(&Policy::Bind(vec![node]))?;
    let mut memory = Mapping::new(MapOptions::small(PAGES * page_bytes()))?;
    Linux.place_memory(&Policy::Default)?;
    let on = |memory: &Mapping| -> Result<usize, Failure> {
        let pages = policy::pages_of(memory)?;
        Ok(pages.iter().filter(|&&page| page == Some(node)).count())
    };
    let count = on(&memory)?;
    let others = Linux.memory_nodes()?;
    let other = others.iter().copied().find(|&other| other != node);
    if let Some(other) = other {
        policy::set_mapping(&mut memory, &Policy::Bind(vec![other]))?;
        let left = on(&memory)?;
        if left > 0 {
            return Err(format!("{left} pages stayed on node {node} when moved").into());
        }
        policy::set_mapping(&mut memory, &Policy::Bind(vec![node]))?;
        let back = on(&memory)?;
        if back != PAGES {
            return Err(format!("{back} of {PAGES} pages came back to node {node}").into());
        }
    }
    Ok(format!("bound to {node}: {count} pages on {node}"))
}

/// Times mean nothing where this runs, so it prints only which parts were measured.
fn probed() -> Result<Vec<String>, Failure> {
    let parts = [
        Part::Pairs,
        Part::States,
        Part::Costs,
        Part::Distances,
        Part::Noise,
    ];
    let plan = ProbePlan {
        rounds: 1,
        steps: parts
            .iter()
            .map(|&part| Step {
                part,
                seconds: 0.01,
            })
            .collect(),
    };
    let cores = Linux.allowed()?;
    let cancel = AtomicBool::new(false);
    // The longest limit, since emulation is slow; the plan bounds the work.
    let options = ProbeOptions {
        mode: Mode::Deep,
        ..ProbeOptions::default()
    };
    let found: Findings = run_plan(&Linux, &options, &plan, &cores, &cancel, &mut |_| {})?;
    let mut lines = vec![format!(
        "pairs {} of {}",
        found.pairs.len(),
        found.pairs_all
    )];
    if let Some(distances) = &found.distances {
        lines.push(format!(
            "distances of memory nodes {:?} from nodes {:?}",
            distances.memory_nodes, distances.cpu_nodes
        ));
    }
    for missing in &found.missing {
        lines.push(format!("missing {:?}: {}", missing.part, missing.why));
    }
    Ok(lines)
}
