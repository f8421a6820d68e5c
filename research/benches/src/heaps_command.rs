//! Compares private heaps with shared ones: the source's allocation experiment, reported as ratios.

use hearth_benches::measure::{in_turn, run};
use hearth_benches::peers::{build_insense, folder};
use hearth_benches::runtime::Effort;
use hearth_stats::{Summary, ratio};
use hearth_testing::toolchain::Workshop;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Location of the blocks, and how it is brought about.
struct Way {
    name: &'static str,
    /// Value of `HEARTH_HEAPS`.
    heaps: &'static str,
    /// Flags that `source-heap.c` is built with, to be preloaded.
    preload: Option<&'static [&'static str]>,
}

const WAYS: [Way; 5] = [
    Way {
        name: "private heaps",
        heaps: "private",
        preload: None,
    },
    Way {
        name: "one heap under a lock",
        heaps: "shared",
        preload: None,
    },
    Way {
        name: "the system's malloc",
        heaps: "system",
        preload: None,
    },
    Way {
        name: "malloc under a lock",
        heaps: "system",
        preload: Some(&[]),
    },
    Way {
        name: "the source's: and a list",
        heaps: "system",
        preload: Some(&["-DSOURCE_LIST"]),
    },
];

/// Components, passes of each, and their carrier; the source's result.
const SETTINGS: [(u32, u32, &str, &str); 4] = [
    (1, 4000, "threads", "1.5"),
    (4, 1000, "threads", "16"),
    (1, 4000, "workers", "1.5"),
    (4, 1000, "workers", "16"),
];
const BLOCKS_A_PASS: u32 = 1001;

/// Measures components that allocate and free, with heaps of their own and without.
pub(crate) fn heaps(effort: Effort) -> Result<String, String> {
    println!("heaps: what are private heaps worth to components that allocate and free?");
    println!(
        "  the source's test_alloc: an array of 1000 arrays of 5 in each pass, {BLOCKS_A_PASS} blocks; \
         elapsed time of the whole program, all ways in turn; its list grows by 24 bytes a block"
    );
    let workshop = Workshop::new("heaps")?;
    let program = build_insense("heaps/alloc", workshop.path())?;
    let mut preloads = Vec::new();
    for (number, way) in WAYS.iter().enumerate() {
        preloads.push(match way.preload {
            Some(flags) => Some(build(number, flags, workshop.path())?),
            None => None,
        });
    }
    let mut rows = String::new();
    for (components, passes, carrier, seen) in SETTINGS {
        let passes = if effort.brief { passes / 10 } else { passes };
        let input = format!("{components}\n{passes}\n");
        let kept = in_turn(WAYS.len(), effort.repeats, |side| {
            let mut command = Command::new(&program);
            command
                .env("HEARTH_CARRIER", carrier)
                .env("HEARTH_PLACE", "spread")
                .env("HEARTH_HEAPS", WAYS[side].heaps);
            if let Some(preload) = &preloads[side] {
                command.env("LD_PRELOAD", preload);
            }
            let ran = run(&mut command, &input)?;
            let expected: u32 = components * (1..=passes).sum::<u32>();
            if ran.stdout.trim() != expected.to_string() {
                return Err(format!(
                    "{}: {:?} {:?}",
                    WAYS[side].name, ran.stdout, ran.stderr
                ));
            }
            Ok((ran.times, ran.disturbed))
        })?;
        let plural = if components == 1 {
            "component"
        } else {
            "components"
        };
        println!(
            "  {components} {plural}, {carrier}; the source saw private heaps {seen} times as fast"
        );
        let walls: Vec<Vec<f64>> = kept
            .iter()
            .map(|kept| kept.values.iter().map(|times| times.wall).collect())
            .collect();
        let cpus = kept.iter().map(|kept| {
            kept.values
                .iter()
                .map(|times| times.cpu)
                .collect::<Vec<_>>()
        });
        for ((way, wall), cpu) in WAYS.iter().zip(&walls).zip(cpus) {
            let times = ratio(wall, &walls[0]).ok_or("no measurements")?;
            let (wall, cpu) = Summary::of(wall)
                .zip(Summary::of(&cpu))
                .ok_or("no measurements")?;
            let per_block = wall.median * 1e9 / f64::from(components * passes * BLOCKS_A_PASS);
            println!(
                "    {:25} {per_block:6.1} ns a block, {:.3} s CPU; {:.2} [{:.2}, {:.2}] times that of \
                 private heaps",
                way.name, cpu.median, times.value, times.low, times.high
            );
            let _ = writeln!(
                rows,
                "heaps {components} {carrier} {},{},{},{},{},{},{}",
                way.name,
                effort.repeats,
                walls[0][0],
                wall.median,
                times.value,
                times.low,
                times.high
            );
        }
    }
    println!();
    Ok(rows.trim_end().to_owned())
}

/// `source-heap.c` as an object to be preloaded.
fn build(number: usize, flags: &[&str], workshop: &Path) -> Result<PathBuf, String> {
    let object = workshop.join(format!("source-heap-{number}.so"));
    let output = Command::new("cc")
        .args([
            "-O2", "-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", "-o",
        ])
        .arg(&object)
        .args(flags)
        .arg(folder().join("../studies/src/insense_multicore/c/source-heap.c"))
        .output()
        .map_err(|error| format!("cannot start cc: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(object)
}
