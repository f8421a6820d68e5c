//! A pool of rayon's that follows a claim: each section runs as many threads as the claim has CPUs
//! when it begins.
//!
//! ```sh
//! cargo run --release -p hearth-claim --example rayon
//! ```
//!
//! Another program claims a core in the middle and gives it back.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::process::{Command, Stdio};

use hearth_claim::{Claim, Constraints, Remade};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word] = words.as_slice()
        && word == "other"
    {
        return other();
    }
    let most = u32::try_from(std::thread::available_parallelism()?.get())?;
    let pools = Remade::new(|cpus: &[usize]| {
        let pool = ThreadPoolBuilder::new().num_threads(cpus.len());
        pool.build().ok()
    });
    let tended = Claim::begin("rayon")?.tend(pools.team())?;
    tended.invade(Constraints::cores(1..=most))?;
    section(&pools, "alone")?;
    let before = tended.cpus().len();
    if before == 1 {
        println!("there is no core for another");
        return Ok(());
    }
    let mut other = Command::new(std::env::current_exe()?);
    let mut other = other.arg("other").stdin(Stdio::piped()).spawn()?;
    while tended.cpus().len() == before {
        std::thread::yield_now();
    }
    section(&pools, "beside another")?;
    drop(other.stdin.take());
    other.wait()?;
    while tended.cpus().len() < before {
        std::thread::yield_now();
    }
    section(&pools, "alone again")
}

fn section(pools: &Remade<rayon::ThreadPool>, when: &str) -> Result<(), Box<dyn Error>> {
    let pool = pools.now().ok_or("the claim has no cores")?;
    let sum: u64 = pool.install(|| (0..1_000_000_u64).into_par_iter().map(|x| x % 7).sum());
    println!("{when}: {} threads, sum {sum}", pool.current_num_threads());
    Ok(())
}

/// Claims a core until the input ends.
fn other() -> Result<(), Box<dyn Error>> {
    let mut claim = Claim::begin("other")?;
    let time = std::time::Duration::from_secs(60);
    claim.invade_within(Constraints::cores(1..=1), time)?;
    std::io::stdin().lines().count();
    Ok(())
}
