//! The shared objects in real processes. Cargo builds them before it runs this.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hearth_allocators::meter::format::{Call, MeterWord, Mode, Readings, VARIABLE, prepare};

const ALL: [&str; 5] = ["best_fit", "first_fit", "half_fit", "tlsf", "nmart"];

/// The path at which Cargo puts an example.
fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let found = profile.join("examples").join(name);
    assert!(found.exists(), "{} is not built", found.display());
    found
}

fn object(name: &str) -> PathBuf {
    built(&format!("lib{name}.so"))
}

/// The same with objects preloaded, none of its own input or output.
fn command(program: &Path, arguments: &str, objects: &[PathBuf]) -> Command {
    let mut command = Command::new(program);
    let objects: Vec<_> = objects
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    command
        .args(arguments.split_whitespace())
        .env("LD_PRELOAD", objects.join(":"))
        .env_remove(VARIABLE)
        .stdin(Stdio::null());
    command
}

/// Runs the workload; its figures by name.
fn work(arguments: &str, objects: &[PathBuf], file: Option<&Path>) -> impl Fn(&str) -> f64 + use<> {
    let mut command = command(&built("workload"), arguments, objects);
    if let Some(file) = file {
        command.env(VARIABLE, file);
    }
    let output = command.output().unwrap();
    let (said, complained) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(
        output.status.success(),
        "{arguments} {objects:?}: {} {complained}",
        output.status
    );
    move |name| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().parse().unwrap()
    }
}

const LOADS: [&str; 5] = [
    "larson 0.05 32 32768 50 3 927 4",
    "cache-scratch 4 20 8 400",
    "cache-thrash 4 20 8 400",
    "shbench 80000 4 1",
    "cdf 4 4000 corrected 1 2 1 2 virtual all 1",
];

#[test]
fn every_object_bears_every_load() {
    for name in ALL {
        for load in LOADS {
            let said = work(load, &[object(name)], None);
            assert!(said("allocations") > 0.0, "{name}: {load}");
        }
    }
}

/// The source's arithmetic: larson leaves threads times blocks unreleased, 16,000 with its
/// arguments.
#[test]
fn larson_leaves_threads_times_blocks() {
    let said = work("larson 0.05 32 32768 50 3 927 16", &[object("nmart")], None);
    assert_eq!(said("allocations") - said("releases"), 16.0 * 50.0);
}

/// Programs not written for this test, with children and pipes.
#[test]
fn shells_and_their_children_live() {
    let script =
        "i=0; while [ $i -lt 20 ]; do i=$((i + 1)); ls / | sort | wc -l; done | uniq | wc -l";
    for name in ALL {
        let mut command = command(Path::new("/bin/sh"), "", &[object(name)]);
        let output = command.arg("-c").arg(script).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            "1",
            "{name}: {output:?}"
        );
    }
}

fn metered(mode: Mode, load: &str, allocator: Option<&str>) -> (Readings, f64) {
    let name = format!("meter-{mode:?}-{}", allocator.unwrap_or("system"));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    prepare(&file, mode, 1 << 17).unwrap();
    let objects: Vec<PathBuf> = [Some("meter"), allocator]
        .iter()
        .flatten()
        .map(|name| object(name))
        .collect();
    let said = work(load, &objects, Some(&file));
    let readings = Readings::of(std::fs::read(&file).unwrap()).expect("a process was measured");
    (readings, said("allocations"))
}

#[test]
fn the_meter_counts_what_the_program_asks_for() {
    for allocator in [None, Some("best_fit"), Some("nmart")] {
        let (counted, asked) = metered(Mode::Count, "shbench 40000 2 1", allocator);
        // The program's library asks for some blocks besides.
        let more = counted.allocations() as f64 - asked;
        assert!((0.0..300.0).contains(&more), "{allocator:?}: {more}");
        let mean = counted.get(MeterWord::Requested) as f64 / counted.allocations() as f64;
        assert!((90.0..170.0).contains(&mean), "{allocator:?}: {mean}");
        assert!(counted.get(MeterWord::Provided) >= counted.get(MeterWord::Requested));
        assert!(counted.get(MeterWord::Largest) >= 10_000);
        assert_eq!(counted.get(MeterWord::Overhead) > 0, allocator.is_some());
        assert!(
            counted
                .status()
                .is_some_and(|status| status.contains("VmPeak"))
        );
    }
}

#[test]
fn the_meter_times_every_call() {
    let (timed, asked) = metered(Mode::Time, "shbench 40000 2 1", Some("tlsf"));
    let times: Vec<_> = timed.times().collect();
    assert!(timed.is_whole() && times.len() as u64 == timed.get(MeterWord::Records));
    let longest = |call| {
        let of_call = times.iter().filter(|(of, _)| *of == call);
        of_call.map(|(_, time)| u64::from(*time)).max().unwrap_or(0)
    };
    assert_eq!(longest(Call::Allocate), timed.get(MeterWord::AllocateMax));
    assert_eq!(longest(Call::Free), timed.get(MeterWord::FreeMax));
    let allocations = times
        .iter()
        .filter(|(call, _)| *call == Call::Allocate)
        .count();
    assert!(allocations as f64 >= asked);
}

#[test]
fn the_meter_traces_every_block() {
    let (traced, asked) = metered(Mode::Trace, "shbench 40000 2 1", Some("half_fit"));
    let mut live = std::collections::HashMap::new();
    let (mut begun, mut unknown) = (0.0, 0);
    // Threads may write their records in another order than they got the blocks, so that a block
    // may seem to be handed out twice in a moment; none is forgotten.
    for event in traced.events() {
        match event.bytes {
            Some(bytes) => {
                begun += 1.0;
                live.insert(event.block, bytes);
            }
            None => unknown += usize::from(live.remove(&event.block).is_none()),
        }
    }
    assert!(begun >= asked && unknown < 50, "{begun} {asked} {unknown}");
    // All blocks went, except those that the program's library keeps.
    assert!(live.len() < 300, "{}", live.len());
}
