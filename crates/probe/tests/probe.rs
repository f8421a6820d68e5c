//! Whole probes on imagined machines: the figures mean nothing there; that they are measured,
//! refused or cut short does. No speed is asserted.

use std::sync::atomic::{AtomicBool, Ordering};

use hearth_probe::{Findings, Mode, Part, ProbeError, ProbeOptions, ProbePlan, Step, run_plan};
use hearth_sys::{Fake, Linux, System, affinity};

/// Each part with hardly any time, so that it does its least.
fn least(parts: &[Part]) -> ProbePlan {
    ProbePlan {
        rounds: 2,
        steps: parts
            .iter()
            .map(|&part| Step {
                part,
                seconds: 0.002,
            })
            .collect(),
    }
}

fn options() -> ProbeOptions {
    ProbeOptions {
        mode: Mode::Quick,
        ..ProbeOptions::default()
    }
}

fn probe(system: &dyn System, cores: &[usize], parts: &[Part]) -> Findings {
    probe_as(&options(), system, cores, parts)
}

fn probe_as(
    options: &ProbeOptions,
    system: &dyn System,
    cores: &[usize],
    parts: &[Part],
) -> Findings {
    let cancel = AtomicBool::new(false);
    let plan = least(parts);
    run_plan(system, options, &plan, cores, &cancel, &mut |_| {}).unwrap()
}

/// A fake machine with little memory, which keeps buffers small, and a clock that advances a
/// millisecond each time it is read, so that results do not depend on the load of the real machine.
fn machine(cores: &[usize]) -> Fake {
    Fake::with_cores(cores)
        .file("/proc/meminfo", "MemAvailable:      16384 kB\n")
        .with_slow_clock(1_000_000)
}

#[test]
fn two_cores_give_every_kind_of_figure() {
    let system = machine(&[0, 1]);
    let parts = [
        Part::Pairs,
        Part::States,
        Part::Bandwidth,
        Part::Costs,
        Part::Noise,
    ];
    let found = probe(&system, &[0, 1], &parts);
    assert_eq!((found.pairs.len(), found.pairs_all), (1, 1));
    let pair = &found.pairs[0];
    assert_eq!(pair.cores, [0, 1]);
    assert!(pair.one_way_ns.value > 0.0 && pair.one_way_ns.covers(pair.one_way_ns.value));
    assert_eq!(found.bandwidths.len(), 6);
    assert!(
        found
            .bandwidths
            .iter()
            .all(|flow| flow.bytes_per_ns.value > 0.0)
    );
    assert_eq!(found.noise.len(), 2);
    assert_eq!(
        found.noise[0].interrupts_per_s, None,
        "the fake has no such file"
    );
    assert!(found.states.len() >= 4, "{:?}", found.states);
    assert!(found.costs.len() >= 14, "{:?}", found.missing);
    let shared = found
        .missing
        .iter()
        .find(|missing| missing.part == Part::States);
    assert!(shared.is_some_and(|missing| missing.why.contains("three cores")));
}

#[test]
fn three_cores_read_shared_lines() {
    let found = probe(
        &machine(&[0, 1, 2]),
        &[0, 1, 2],
        &[Part::States, Part::Pairs],
    );
    assert_eq!(found.pairs.len(), 3);
    assert!(found.missing.is_empty(), "{:?}", found.missing);
}

#[test]
fn one_core_says_what_it_cannot_do() {
    let system = machine(&[0, 1, 2, 3]).allow(&[2]);
    let cancel = AtomicBool::new(true);
    let result = hearth_probe::run(&system, &options(), &cancel, &mut |_| {});
    assert_eq!(result.unwrap_err(), ProbeError::Cancelled);
    let found = probe(&system, &[2], &[Part::Costs, Part::Curve]);
    assert!(found.pairs.is_empty() && found.pairs_all == 0);
    let why: Vec<&str> = found.missing.iter().map(|m| m.why.as_str()).collect();
    assert_eq!(
        why,
        [
            "transfers between cores need two cores; this process may use core 2 only",
            "lines in other caches need two cores; this process may use core 2 only",
        ]
    );
    assert!(system.pins().iter().all(|&core| core == 2));
    assert!(found.curves[0].points.len() > 20);
}

#[test]
fn a_core_that_leaves_costs_its_own_figures_only() {
    let system = machine(&[0, 1, 2]).offline_after(2, 1);
    let found = probe(&system, &[0, 1, 2], &[Part::Noise, Part::Pairs]);
    let pairs: Vec<_> = found.pairs.iter().map(|pair| pair.cores).collect();
    assert_eq!(pairs, [[0, 1]]);
    assert_eq!(found.noise.len(), 3, "the first round heard all three");
    assert!(
        found
            .missing
            .iter()
            .any(|missing| { missing.part == Part::Pairs && missing.why.contains("core 2") })
    );
}

#[test]
fn nothing_is_measured_without_a_core() {
    let cancel = AtomicBool::new(false);
    let mut named = options();
    named.cpus = Some(vec![9]);
    let result = hearth_probe::run(&machine(&[0, 1]), &named, &cancel, &mut |_| {});
    let error = result.unwrap_err();
    assert!(matches!(error, ProbeError::NoCore(_)));
    assert_eq!(
        error.to_string(),
        "no core can be measured: cannot use cores [9] among [0, 1]: no such object, or it went \
         away; widen the process's set of cores (see `taskset`), or name others"
    );
}

#[test]
fn refused_pins_leave_reasons_not_zeroes() {
    let system = machine(&[0, 1]).without_pinning();
    let parts = [
        Part::Curve,
        Part::Pairs,
        Part::Bandwidth,
        Part::Costs,
        Part::Noise,
    ];
    let found = probe(&system, &[0, 1], &parts);
    assert!(found.curves.is_empty() && found.pairs.is_empty() && found.bandwidths.is_empty());
    assert!(found.costs.is_empty() && found.noise.is_empty());
    for part in parts {
        let said = found
            .missing
            .iter()
            .any(|missing| missing.part == part && missing.why.contains("permission denied"));
        assert!(said, "{part:?}: {:?}", found.missing);
    }
}

#[test]
fn nodes_are_bound_and_surveyed() {
    let system = machine(&[0, 1, 2, 3])
        .with_nodes(&[0, 1])
        .file("/sys/devices/system/node/node0/cpulist", "0-1\n")
        .file("/sys/devices/system/node/node1/cpulist", "2-3\n");
    let found = probe(&system, &[0, 1, 2, 3], &[Part::Distances]);
    let distances = found.distances.unwrap();
    assert_eq!(distances.memory_nodes, [0, 1]);
    assert_eq!(distances.cpu_nodes, [0, 1]);
    for (row, whole) in distances.fine.iter().zip(distances.rounded()) {
        assert!(row.contains(&10.0) && row.iter().all(|&d| d >= 10.0));
        assert!(whole.contains(&10));
    }
    assert_eq!(
        system.placements().len(),
        4,
        "four cells; they took the time of the second round too"
    );
    let flat = probe(&machine(&[0]), &[0], &[Part::Distances]);
    assert_eq!(flat.distances, None);
    assert!(
        flat.missing
            .iter()
            .any(|missing| missing.part == Part::Distances)
    );
}

#[test]
fn cancelling_ends_between_visits() {
    let cancel = AtomicBool::new(false);
    let mut told = Vec::new();
    let plan = least(&[Part::Noise, Part::Pairs, Part::Costs]);
    let system = machine(&[0, 1]);
    let result = run_plan(
        &system,
        &options(),
        &plan,
        &[0, 1],
        &cancel,
        &mut |progress| {
            told.push(progress);
            if progress.part == Part::Pairs {
                cancel.store(true, Ordering::Relaxed);
            }
        },
    );
    assert_eq!(result.unwrap_err(), ProbeError::Cancelled);
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|p| (0.0..=1.0).contains(&p.fraction)));
}

/// A machine on which each look at the clock takes a share of the mode's time: started work is
/// finished, nothing else begins, and the missing figures are named.
#[test]
fn modes_keep_their_time_on_slow_machines() {
    for (mode, share) in [
        (Mode::Quick, 200.0),
        (Mode::Normal, 100.0),
        (Mode::Deep, 100.0),
        (Mode::Quick, 10.0),
        (Mode::Normal, 1.0),
    ] {
        let look_s = mode.seconds() / share;
        let system = machine(&[0, 1]).with_slow_clock((look_s * 1e9) as u64);
        let cancel = AtomicBool::new(false);
        let asked = ProbeOptions { mode, ..options() };
        let found = hearth_probe::run(&system, &asked, &cancel, &mut |_| {}).unwrap();
        // The last unit looks a few times while it ends.
        let most = mode.seconds() + 12.0 * look_s;
        assert!(
            found.seconds <= most,
            "{mode:?}: {} of {most}",
            found.seconds
        );
        if share <= 10.0 {
            let out_of_time = |why: &str| why.contains("were over before");
            assert!(found.missing.iter().any(|m| out_of_time(&m.why)));
        }
        for pair in &found.pairs {
            assert!(pair.one_way_ns.covers(pair.one_way_ns.value));
        }
    }
}

/// A plan for 64 cores, which have 2016 pairs, asks for 1536 at most. A slow clock allows only a
/// few of those, and a later visit continues from there.
#[test]
fn large_machines_measure_what_time_allows() {
    let cores: Vec<usize> = (0..64).collect();
    let system = machine(&cores);
    let cancel = AtomicBool::new(false);
    let plan = ProbePlan {
        rounds: 2,
        steps: vec![Step {
            part: Part::Pairs,
            seconds: 0.1,
        }],
    };
    let found = run_plan(&system, &options(), &plan, &cores, &cancel, &mut |_| {}).unwrap();
    assert_eq!(found.pairs_all, 2016);
    assert!(
        (10..100).contains(&found.pairs.len()),
        "{}",
        found.pairs.len()
    );
    assert!(found.pairs.is_sorted_by_key(|pair| pair.cores));
    assert!(found.pairs.iter().all(|pair| pair.cores[0] < pair.cores[1]));
}

/// One figure needs three cores at once, and one of them leaves.
#[test]
fn nobody_waits_for_a_core_that_left() {
    for core in [0, 1, 2] {
        for pins in [0, 1] {
            let system = machine(&[0, 1, 2]).offline_after(core, pins);
            let found = probe(&system, &[0, 1, 2], &[Part::States, Part::Bandwidth]);
            let name = format!("core {core}");
            let said = found
                .missing
                .iter()
                .any(|missing| missing.why.contains(&name));
            assert!(said, "{:?}", found.missing);
        }
    }
}

/// Unreadable files: no counts of steal or interrupts, no sizes, no nodes. Times are taken all the
/// same, by the system's clock.
#[test]
fn unreadable_files_cost_what_they_say_only() {
    let system = machine(&[0, 1]).forbid("/proc").forbid("/sys");
    let parts = [Part::Pairs, Part::Costs, Part::Noise, Part::Distances];
    let found = probe(&system, &[0, 1], &parts);
    assert_eq!(found.pairs.len(), 1);
    assert!(found.costs.len() >= 14);
    assert_eq!((found.quota, found.noise[0].steal_share), (None, None));
    let missing: Vec<Part> = found.missing.iter().map(|missing| missing.part).collect();
    assert!(missing.contains(&Part::Distances));
    let host = hearth_probe::convert::host(&system, &found);
    assert_eq!((host.kernel, host.cpu_model), (None, None));
}

#[test]
fn a_quota_is_told() {
    let system = machine(&[0])
        .file("/proc/self/cgroup", "0::/box\n")
        .file("/sys/fs/cgroup/box/cpu.max", "50000 100000\n");
    let found = probe(&system, &[0], &[Part::Noise]);
    assert_eq!(found.quota, Some(0.5));
}

/// The real system, as under `taskset -c`: the mask of the calling thread counts.
#[test]
fn affinity_of_one_core_is_kept_and_told() {
    let core = Linux.allowed().unwrap()[0];
    std::thread::spawn(move || {
        affinity::pin_current(core).unwrap();
        let parts = [Part::Pairs, Part::States, Part::Costs, Part::Noise];
        // The time of a long mode, so that a busy machine reaches every part once.
        let patient = ProbeOptions {
            mode: Mode::Deep,
            ..options()
        };
        let found = probe_as(&patient, &Linux, &Linux.allowed().unwrap(), &parts);
        assert_eq!(found.cores, [core]);
        assert!(found.pairs.is_empty() && found.offsets.is_empty());
        assert!(found.costs.iter().all(|cost| !cost.service.needs_two()));
        assert!(found.costs.len() >= 12, "{:?}", found.missing);
        assert_eq!(found.noise.len(), 1);
        let why = format!("this process may use core {core} only");
        let told = found
            .missing
            .iter()
            .filter(|missing| missing.why.contains(&why));
        assert_eq!(told.count(), 2, "{:?}", found.missing);
        assert_eq!(Linux.allowed().unwrap(), [core], "the mask is as it was");
    })
    .join()
    .unwrap();
}
