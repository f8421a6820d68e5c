//! Counts the verdicts of the check of a profile: `freshness PROFILE [TIMES [FACTOR]]`, where the
//! profile's figures are multiplied by a factor first. With a factor of 1 no figure should be off.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints"
)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use hearth_machine::profile::Profile;
use hearth_probe::freshness::{self, Freshness};
use hearth_sys::Linux;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let profile = words
        .first()
        .and_then(|path| std::fs::read_to_string(path).ok());
    let Some(profile) = profile.and_then(|text| Profile::from_json(&text).ok()) else {
        eprintln!("name a profile that `hearth probe` wrote");
        return ExitCode::from(2);
    };
    let number = |at: usize, usual: f64| -> f64 {
        let word: Option<f64> = words.get(at).and_then(|word| word.parse().ok());
        word.unwrap_or(usual)
    };
    let (times, factor) = (number(1, 100.0) as usize, number(2, 1.0));
    let mut pairs = freshness::expected(&profile, &hearth_sys::affinity::allowed());
    for pair in &mut pairs {
        pair.one_way_ns *= factor;
        println!("CPUs {:?}: {:.1} ns", pair.cores, pair.one_way_ns);
    }
    let (mut holds, mut unknown) = (0, 0);
    let mut off = Vec::new();
    let mut took = Vec::new();
    for _ in 0..times {
        let begin = Instant::now();
        for verdict in freshness::check(&Linux, &pairs) {
            match verdict {
                Freshness::Holds => holds += 1,
                Freshness::Unknown => unknown += 1,
                Freshness::Off { one_way_ns } => off.push(one_way_ns),
            }
        }
        took.push(begin.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
    took.sort_unstable();
    off.sort_unstable_by(f64::total_cmp);
    println!("holds {holds}, unknown {unknown}, off {}", off.len());
    if let (Some(least), Some(most)) = (off.first(), off.last()) {
        println!("off: {least:.1} to {most:.1} ns");
    }
    if let (Some(middle), Some(most)) = (took.get(times / 2), took.last()) {
        println!("a check took {middle:.1?}, at most {most:.1?}");
    }
    ExitCode::SUCCESS
}
