//! Machines with unequal parts: pairs that were measured apart, cores that may not be used, time
//! that a hypervisor takes. A placement proved there is the best of all, tried one by one.

mod support;

use hearth_machine::profile::{Figure, Noise, PairTransfer, Profile};
use hearth_machine::synthetic;
use hearth_machine::topology::OsThread;
use hearth_model::fitted::Model;
use hearth_place::cost::CostOptions;
use hearth_place::slots::Machine;
use hearth_place::talk::{Effort, talk};

const INSTANCES: u64 = if cfg!(debug_assertions) { 40 } else { 160 };

/// A machine of up to six slots.
fn machine(random: &mut fastrand::Rng) -> Machine {
    let description = [
        "1 package, 6 cores, l2 4M per package",
        "2 packages, 3 cores, l1d 32K per core, l2 1M per core, l3 8M per package",
        "1 package, 3 cores, 2 threads, l1d 32K per core, l2 1M per core",
        "2 packages, 2 cores, 2 threads, l2 1M per core, l3 8M per package",
    ][random.usize(..4)];
    let mut profile = Profile::assumed(synthetic::parse(description).expect("a machine"));
    let threads: Vec<_> = profile.topology.all_threads().collect();
    if random.u32(..3) > 0 {
        // Two values only, so that slots have as many pairs of each kind and are not alike.
        let far = 1.0 + 3.0 * random.f64();
        profile.pairs.clear();
        for (at, a) in threads.iter().enumerate() {
            for b in &threads[..at] {
                let ns = if random.bool() { 100.0 } else { 100.0 * far };
                let there_and_back = Figure::measured(ns, ns, ns, 1, 0);
                profile
                    .pairs
                    .push(PairTransfer::from_round_trip(*b, *a, there_and_back));
            }
        }
    }
    if random.u32(..3) == 0 {
        let share = 0.1 + 0.3 * random.f64();
        profile.noise = vec![Noise {
            thread: threads[random.usize(..threads.len())],
            observed_s: 1.0,
            gaps: Vec::new(),
            interrupts_per_s: None,
            steal_share: Some(Figure::measured(share, share, share, 1, 0)),
        }];
    }
    let mut allowed: Vec<OsThread> = threads
        .iter()
        .map(|t| profile.topology.os_thread(*t))
        .collect();
    random.shuffle(&mut allowed);
    allowed.truncate(random.usize(3..=6));
    let model = Model::new(&profile).expect("a sound profile");
    Machine::new(&profile, &model, &allowed).expect("a machine")
}

#[test]
fn what_is_proved_is_the_best_on_uneven_machines() {
    let options = CostOptions::default();
    let mut proved = 0;
    for seed in 0..INSTANCES {
        let mut random = fastrand::Rng::with_seed(9000 + seed);
        let machine = machine(&mut random);
        let most = if machine.slots().len() > 4 { 4 } else { 5 };
        let count = random.usize(2..=most);
        let graph = support::graph(&mut random, count);
        // With so few steps, local search has not found the best already.
        let effort = Effort {
            steps: 60_000,
            seed,
        };
        let ours = talk(&graph, &machine, &options, effort, None).expect("a placement");
        let best = support::least_of_all(&graph, &machine, &options);
        let share = ours.cost.total_ns / best;
        assert!(
            share >= 1.0 - 1e-9,
            "seed {seed}: better than the best of all"
        );
        assert!(share <= 1.01, "seed {seed}: {share} times the best");
        if ours.proved {
            proved += 1;
            assert!(
                share <= 1.0 + 1e-6,
                "seed {seed}: proved, and {share} times the best"
            );
        }
    }
    assert!(proved * 2 > INSTANCES, "{proved} proved");
}
