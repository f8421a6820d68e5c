//! Servers by message and as under a lock: which way serves more requests, by how much data a
//! request goes through and where the clients are.

use hearth_benches::measure::{in_order, run};
use hearth_benches::peers::build_insense;
use hearth_benches::runtime::Effort;
use hearth_stats::{Summary, ratio};
use hearth_sys::affinity;
use hearth_testing::toolchain::Workshop;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// `HEARTH_SERVERS`; the others are compared with the first.
const WAYS: [&str; 3] = ["asynchronous", "synchronous", "auto"];

/// Integers of 4 bytes that the server goes through for a request.
const SECTIONS: [u32; 6] = [16, 256, 4096, 16_384, 65_536, 262_144];
/// Cores of the clients; the server begins on the first core.
const LAYOUTS: [(&str, [usize; 2]); 2] = [
    ("clients on both cores", [0, 1]),
    ("clients on the other core", [1, 1]),
];
const CLIENTS: [u32; 2] = [2, 8];
/// Integers of its own that a client goes through between two requests.
const OWN: u32 = 256;

/// Wanted duration of a run, in seconds.
const RUN: f64 = 0.25;
/// With fewer requests the start is measured.
const LEAST: u32 = 200;

struct Cell {
    clients: u32,
    section: u32,
    cores: [usize; 2],
}

impl Cell {
    /// Seconds for this number of requests of each client, and whether they were disturbed.
    fn measure(&self, program: &Path, way: &str, requests: u32) -> Result<(f64, bool), String> {
        let input = format!(
            "{requests}\n{}\n{}\n{OWN}\n{}\n{}\n",
            self.clients, self.section, self.cores[0], self.cores[1]
        );
        let mut command = Command::new(program);
        command
            .envs([("HEARTH_SERVERS", way), ("HEARTH_PLACE", "os")])
            .env_remove("HEARTH_CARRIER");
        let ran = run(&mut command, &input)?;
        let sum = u64::from(self.clients) * u64::from(requests) * (u64::from(requests) + 1) / 2;
        // Insense's integers are of 32 bits, and wrap.
        let expected = sum as u32 as i32;
        match ran.stdout.trim() == expected.to_string() {
            true => Ok((ran.times.wall, ran.disturbed)),
            false => Err(format!("{way} gave {:?}, not {expected}", ran.stdout)),
        }
    }

    /// Number of requests of each client that take about as long as is wanted.
    fn requests(&self, program: &Path, seconds: f64) -> Result<u32, String> {
        let mut requests = LEAST;
        loop {
            let (took, _) = self.measure(program, WAYS[0], requests)?;
            if took >= seconds / 2.0 || requests > u32::MAX / 8 {
                return Ok(requests);
            }
            let factor = (seconds / took.max(seconds / 8.0)).min(8.0);
            requests = (f64::from(requests) * factor) as u32;
        }
    }
}

/// Compares the ways in each cell.
pub(crate) fn servers(effort: Effort) -> Result<String, String> {
    let cores = affinity::allowed();
    let [first, second, ..] = cores[..] else {
        return Err("servers: two cores are needed, so that there is somewhere to go".to_owned());
    };
    let seconds = if effort.brief { RUN / 5.0 } else { RUN };
    println!("servers: requests to a server as under a lock beside those by message");
    println!(
        "  each client asks, waits for the answer and goes through {} of its own; the server begins on core \
         {first}; runs of about {seconds} s in turn, {} of each",
        bytes(OWN),
        effort.repeats
    );
    let workshop = Workshop::new("servers")?;
    let program = build_insense("servers/section", workshop.path())?;
    let mut rows = String::new();
    for (name, layout) in LAYOUTS {
        for clients in CLIENTS {
            println!("  {clients} {name}");
            for section in SECTIONS {
                let cell = Cell {
                    clients,
                    section,
                    cores: layout.map(|place| [first, second][place]),
                };
                rows += &row(&cell, name, &program, seconds, effort.repeats)?;
            }
        }
    }
    Ok(rows)
}

fn row(
    cell: &Cell,
    layout: &str,
    program: &Path,
    seconds: f64,
    repeats: usize,
) -> Result<String, String> {
    let requests = cell.requests(program, seconds)?;
    let kept = in_order(
        WAYS.len(),
        repeats,
        |order| order.reverse(),
        |way| cell.measure(program, WAYS[way], requests),
    )?;
    let walls: Vec<&[f64]> = kept.iter().map(|kept| kept.values.as_slice()).collect();
    let all = f64::from(requests) * f64::from(cell.clients);
    let mut rows = String::new();
    for (way, walls_of) in walls.iter().enumerate() {
        let found = Summary::of(walls_of).ok_or("no measurements")?;
        let faster = ratio(walls[0], walls_of).ok_or("no measurements")?;
        let ns = found.median / all * 1e9;
        println!(
            "    {:8} {:13} {ns:9.0} ns a request; {:.2} [{:.2}, {:.2}] of the throughput by message",
            bytes(cell.section),
            WAYS[way],
            faster.value,
            faster.low,
            faster.high
        );
        let _ = writeln!(
            rows,
            "servers {} {layout} {} {},{repeats},{},{},{},{},{}",
            cell.clients,
            cell.section * 4,
            WAYS[way],
            found.median,
            Summary::of(walls[0]).map_or(0.0, |found| found.median),
            faster.value,
            faster.low,
            faster.high
        );
    }
    Ok(rows)
}

/// The size of `integers` integers, in words.
fn bytes(integers: u32) -> String {
    match integers * 4 {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}
