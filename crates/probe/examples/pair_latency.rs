//! Measures the pairs of this machine and writes one line a pair: cores, value, low, high in
//! nanoseconds, samples, discarded. For repeatability over fresh processes.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use hearth_probe::{Options, Part, Plan, Step};
use hearth_sys::System;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().map_or(Ok(3.0), |text| text.parse())?;
    let rounds: u32 = arguments.next().map_or(Ok(12), |text| text.parse())?;
    let options = Options {
        seed: u64::from(std::process::id()),
        ..Options::default()
    };
    let plan = Plan {
        rounds,
        steps: vec![
            Step {
                part: Part::Pairs,
                seconds: seconds / 2.0,
            },
            Step {
                part: Part::Noise,
                seconds: seconds / 2.0,
            },
        ],
    };
    let cores = hearth_sys::Linux.allowed()?;
    let cancel = AtomicBool::new(false);
    let system = hearth_sys::Linux;
    let found = hearth_probe::run_plan(&system, &options, &plan, &cores, &cancel, &mut |_| {})?;
    let mut out = std::io::stdout().lock();
    for pair in &found.pairs {
        let (cores, m) = (pair.cores, pair.one_way_ns);
        writeln!(
            out,
            "{} {} {:.3} {:.3} {:.3} {} {} {:?}",
            cores[0], cores[1], m.value, m.low, m.high, m.samples, m.discarded, found.discards
        )?;
    }
    Ok(())
}
