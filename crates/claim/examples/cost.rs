//! Time that it takes to invade a core and to retreat from it, alone and beside others with claims.
//!
//! ```sh
//! cargo run --release -p hearth-claim --example cost
//! ```
//!
//! Others are processes that have a claim of one core and do nothing.
#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use hearth_claim::{Claim, Constraints, Site};

#[path = "../tests/support/mod.rs"]
mod support;

const OPERATIONS: usize = 20_000;

fn main() {
    let site = support::site();
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, folder] = words.as_slice()
        && word == "holder"
    {
        hold(Path::new(folder), site);
        return;
    }
    // Registries are in memory where there is such a file system.
    let memory = Path::new("/dev/shm");
    let place = match memory.is_dir() {
        true => memory.to_owned(),
        false => std::env::temp_dir(),
    };
    let folder = place.join(format!("hearth-claim-cost-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a new folder");
    println!("in {}, {OPERATIONS} times each", folder.display());
    for others in [0, 1, 6] {
        let mut holders: Vec<Child> = (0..others).map(|_| holder(&folder)).collect();
        measure(&folder, site.clone(), others);
        for holder in &mut holders {
            holder.kill().expect("it is ours");
            holder.wait().expect("it ends");
        }
    }
    std::fs::remove_dir_all(&folder).expect("it is ours");
}

fn hold(folder: &Path, site: Site) {
    let mut claim = Claim::within(folder, site, "holder").expect("it begins");
    claim.invade(Constraints::cores(1..=1)).expect("it asks");
    println!("has it");
    let _ = std::io::stdin().lines().count();
}

fn holder(folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg("holder").arg(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    let mut said = BufReader::new(child.stdout.take().expect("its output"));
    said.read_line(&mut line).expect("it says so");
    child
}

fn measure(folder: &Path, site: Site, others: usize) {
    let mut claim = Claim::within(folder, site, "cost").expect("it begins");
    let (mut invade, mut retreat) = (Vec::new(), Vec::new());
    for _ in 0..OPERATIONS {
        let begin = Instant::now();
        let grant = claim.invade(Constraints::cores(1..=1)).expect("it asks");
        invade.push(begin.elapsed());
        assert!(grant.is_enough(), "there are cores enough");
        let begin = Instant::now();
        claim.retreat(0).expect("it gives back");
        retreat.push(begin.elapsed());
    }
    for (name, mut times) in [("invade", invade), ("retreat", retreat)] {
        times.sort_unstable();
        let at = |part: f64| times[(part * (OPERATIONS - 1) as f64) as usize].as_secs_f64() * 1e6;
        println!(
            "{others} others: {name:7} p50 {:6.1} µs  p99 {:6.1}  p99.9 {:6.1}",
            at(0.5),
            at(0.99),
            at(0.999)
        );
    }
}
