//! A program that puts load on its allocator and reports its work: `workload NAME ARGUMENT…`.

use std::process::ExitCode;

use hearth_allocators::synthetic::{Model, Units};
use hearth_allocators::system::write_all;
use hearth_allocators::workload::Report;
use hearth_allocators::workload::larson::{self, Larson};
use hearth_allocators::workload::model::{self, Load, Wait};
use hearth_allocators::workload::random_order::{self, RandomOrder};
use hearth_allocators::workload::sharing::{self, Kind, Sharing};

const USAGE: &str = "\
usage: workload larson SECONDS LEAST LARGEST BLOCKS ROUNDS SEED THREADS
       workload cache-scratch|cache-thrash THREADS ITERATIONS BYTES WRITES
       workload shbench BLOCKS THREADS SEED
       workload mean|cdf THREADS REQUESTS as-published|corrected LARGE_MB_LEAST LARGE_MB_MOST
                PASSES_LEAST PASSES_MOST virtual|sleep|spin all|each SEED
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(report) = run(&words) else {
        write_all(2, USAGE.as_bytes());
        return ExitCode::from(2);
    };
    let text = format!(
        "seconds {:.6}\nallocations {}\nreleases {}\n",
        report.seconds, report.allocations, report.releases
    );
    write_all(1, text.as_bytes());
    ExitCode::SUCCESS
}

fn run(words: &[&str]) -> Option<Report> {
    let (name, words) = words.split_first()?;
    let number = |at: usize| -> Option<usize> { words.get(at)?.parse().ok() };
    let at_least_one = |at: usize| number(at).filter(|&number| number > 0);
    let seed = |at: usize| -> Option<u64> { words.get(at)?.parse().ok() };
    let expected = match *name {
        "larson" => 7,
        "cache-scratch" | "cache-thrash" => 4,
        "shbench" => 3,
        "mean" | "cdf" => 10,
        _ => return None,
    };
    if words.len() != expected {
        return None;
    }
    match *name {
        "larson" => Some(larson::run(Larson {
            seconds: words[0]
                .parse()
                .ok()
                .filter(|seconds| (0.0..1e6).contains(seconds))?,
            bytes_min: number(1)?,
            bytes_max: number(2)?,
            blocks: at_least_one(3)?,
            rounds: number(4)?,
            seed: seed(5)?,
            threads: at_least_one(6)?,
        })),
        "cache-scratch" | "cache-thrash" => Some(sharing::run(Sharing {
            kind: if *name == "cache-scratch" {
                Kind::Scratch
            } else {
                Kind::Thrash
            },
            threads: at_least_one(0)?,
            iterations: number(1)?,
            bytes: at_least_one(2)?,
            writes: number(3)?,
        })),
        "shbench" => Some(random_order::run(RandomOrder {
            blocks: number(0)?,
            threads: at_least_one(1)?,
            seed: seed(2)?,
        })),
        _ => Some(model::run(Load {
            model: match *name {
                "mean" => Model::published_mean(),
                _ => Model::published_cdf(),
            },
            threads: at_least_one(0)?,
            requests: number(1)?,
            units: match words[2] {
                "as-published" => Units::AsPublished,
                "corrected" => Units::Corrected,
                _ => return None,
            },
            large_bytes: (
                number(3)?.checked_mul(1 << 20)?,
                number(4)?.checked_mul(1 << 20)?,
            ),
            passes: (number(5)?, number(6)?),
            wait: match words[7] {
                "virtual" => Wait::Virtual,
                "sleep" => Wait::Sleep,
                "spin" => Wait::Spin,
                _ => return None,
            },
            is_each: match words[8] {
                "all" => false,
                "each" => true,
                _ => return None,
            },
            seed: seed(9)?,
        })),
    }
}
