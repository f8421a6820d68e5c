//! Measures messages from a line to 64 MiB, on one core and across, by both carriers, and writes a
//! table: bytes, sender, receiver, carrier, nanoseconds with interval, samples, discarded samples,
//! and whether the point is held out from fitting. `messages [SECONDS [ROUNDS]]`.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use hearth_probe::handover::{Effort, grid, points, sizes};
use hearth_sys::{Linux, System};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let effort = Effort {
        seconds: arguments.next().map_or(Ok(60.0), |text| text.parse())?,
        rounds: arguments.next().map_or(Ok(8), |text| text.parse())?,
        seed: u64::from(std::process::id()),
    };
    let cores = Linux.allowed()?;
    let mut pairs = vec![[cores[0], cores[0]]];
    pairs.extend(cores.get(1).map(|&other| [cores[0], other]));
    let requests = grid(&pairs, &sizes());
    let cancel = AtomicBool::new(false);
    let found = points(&Linux, &requests, effort, &cancel, &mut |_| {})?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "bytes,sender,receiver,carrier,exchange_ns,low,high,samples,discarded,held_out"
    )?;
    for point in &found.points {
        let (asked, ns) = (point.request, point.exchange_ns);
        writeln!(
            out,
            "{},{},{},{:?},{:.1},{:.1},{:.1},{},{},{}",
            asked.bytes,
            asked.cores[0],
            asked.cores[1],
            asked.carrier,
            ns.value,
            ns.low,
            ns.high,
            ns.samples,
            ns.discarded,
            point.is_held_out()
        )?;
    }
    for why in &found.missing {
        writeln!(std::io::stderr(), "missing: {why}")?;
    }
    Ok(())
}
