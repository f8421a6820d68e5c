//! Trees from noisy latencies, and what they say about claims.

mod support;

use fastrand::Rng;
use hearth_machine::infer::{
    GroupingKind, GroupingVerdict, Latencies, Latency, Origin, PairPlan, Tree, check, pairs_max,
};
use hearth_machine::profile;
use hearth_machine::topology::OsThread;
use support::{MACHINES, empty, groups, machine, measure, measure_all};

/// Rate of recovered trees, over draws of noise for each machine; at most `misses_max` misses for
/// any machine, and at most 5 % for all.
fn recover(draws: std::ops::Range<u64>, misses_max: usize) {
    let mut complaints = Vec::new();
    let (mut found, mut tried) = (0, 0);
    assert!(MACHINES.len() >= 30);
    for (name, description, _) in MACHINES {
        let machine = machine(description);
        let expected = groups(&machine);
        let misses: Vec<u64> = draws
            .clone()
            .filter(|seed| {
                let latencies = measure_all(&machine, &mut Rng::with_seed(*seed));
                Tree::infer(&latencies).groups() != expected
            })
            .collect();
        let count = draws.clone().count();
        found += count - misses.len();
        tried += count;
        if misses.len() > misses_max {
            complaints.push(format!("{name}: missed with seeds {misses:?}"));
        }
    }
    assert!(
        complaints.is_empty(),
        "{found} of {tried}\n{}",
        complaints.join("\n")
    );
    assert!(found * 100 >= tried * 95, "{found} of {tried}");
}

#[test]
fn trees_are_recovered_exactly() {
    recover(0..8, 1);
}

#[test]
#[ignore = "deep: a hundred draws of noise for each machine"]
fn trees_are_recovered_exactly_in_many_draws() {
    recover(0..100, 5);
}

/// Machines of more than 32 threads, of which not all pairs are measured.
const LARGE: &[&str] = &[
    "48 cores, l3 32M per package",
    "2 packages, 20 cores, 2 threads, l3 32M per package, numbering dealt",
    "8 packages, 8 cores, l3 32M per package",
    "2 packages, 32 cores, l3 32M per package",
    "2 packages, 20 cores, 2 threads, l3 32M per package, numbering spread",
    "2 packages, 32 cores, 2 threads, l3 16M per 8 cores, numbering spread",
    "2 packages, 64 cores, 2 threads, 4 nodes, l3 32M per package, numbering spread",
    "4 packages, 64 cores, l3 16M per 8 cores",
];

/// Follows a plan for each machine and checks the number of pairs and the result.
fn plan(machines: &[&str], seeds: &[(u64, bool)]) {
    let (mut found, mut draws) = (0, 0);
    let mut misses = Vec::new();
    for description in machines {
        let machine = machine(description);
        let expected = groups(&machine);
        let threads: Vec<OsThread> = machine.threads().iter().map(|thread| thread.os).collect();
        for (seed, hint) in seeds {
            let mut rng = Rng::with_seed(*seed);
            let mut latencies = empty(&machine);
            let mut plan = PairPlan::new(&threads, hint.then_some(&machine));
            loop {
                let round = plan.next_round(&latencies);
                if round.is_empty() {
                    break;
                }
                for (a, b) in round {
                    assert_eq!(latencies.get(a, b), None, "no pair comes twice");
                    let latency = measure(&machine, a, b, &mut rng);
                    latencies.set(a, b, latency).unwrap();
                }
            }
            let most = 4.0 * threads.len() as f64 * (threads.len() as f64).log2();
            assert!(latencies.measured() as f64 <= most);
            assert!(latencies.measured() <= pairs_max(threads.len()));
            let tree = Tree::infer(&latencies);
            draws += 1;
            if tree.groups() == expected {
                found += 1;
            } else {
                misses.push(format!("{description}, seed {seed}"));
            }
            let filled = tree.fill(&latencies);
            assert_eq!(filled.len(), threads.len() * (threads.len() - 1) / 2);
            let measured = filled.iter().filter(|f| f.origin == Origin::Measured);
            assert_eq!(measured.count(), latencies.measured());
        }
    }
    assert!(
        found * 100 >= draws * 95,
        "{found} of {draws}\n{}",
        misses.join("\n")
    );
}

#[test]
fn a_plan_needs_few_pairs_and_finds_the_same_tree() {
    plan(&LARGE[..3], &[(1, true), (2, false)]);
}

#[test]
#[ignore = "deep: up to 256 threads"]
fn a_plan_finds_the_same_tree_on_large_machines() {
    plan(LARGE, &[(1, true), (2, false), (3, false)]);
}

/// Draws of noise for each claim.
const LIE_DRAWS: usize = 5;

/// The most telling verdict for each lie, by the name of the machine.
#[test]
fn lies_are_contradicted_and_the_truth_is_not() {
    for (name, description, lie) in MACHINES {
        let truth = machine(description);
        let claimed = lie.map_or_else(|| truth.clone(), machine);
        let (mut contradicted, mut confirmed, mut unclaimed) = (0, 0, 0);
        for seed in 100..100 + LIE_DRAWS {
            let latencies = measure_all(&truth, &mut Rng::with_seed(seed as u64));
            let tree = Tree::infer(&latencies);
            let report = check(&claimed, &latencies, &tree);
            let is = |verdict| report.evidence.iter().any(|e| e.verdict == verdict);
            contradicted += usize::from(is(GroupingVerdict::Contradicted));
            confirmed += usize::from(is(GroupingVerdict::Confirmed));
            assert_eq!(
                report.is_contradicted(),
                is(GroupingVerdict::Contradicted) || !report.unclaimed.is_empty()
            );
            unclaimed += usize::from(!report.unclaimed.is_empty());
            for evidence in &report.evidence {
                if let Some(effect) = evidence.effect {
                    assert!(effect.low <= effect.ratio && effect.ratio <= effect.high);
                }
            }
        }
        let has_structure = groups(&truth).len() > 1;
        let right = match lie {
            Some(_) => contradicted >= LIE_DRAWS - 1,
            None if has_structure => contradicted <= 1 && confirmed >= LIE_DRAWS - 1,
            None => contradicted <= 1 && confirmed == 0,
        };
        let counts =
            format!("{contradicted} contradicted, {confirmed} confirmed, {unclaimed} unclaimed");
        assert!(right, "{name}: {counts}");
    }
}

#[test]
fn effects_are_sizes_with_intervals() {
    let truth = machine("8 cores, 2 threads, l3 16M per package");
    let claimed = machine("16 cores, l3 16M per package");
    let latencies = measure_all(&truth, &mut Rng::with_seed(7));
    let report = check(&claimed, &latencies, &Tree::infer(&latencies));
    let evidence = &report.evidence[0];
    assert_eq!(evidence.kind, GroupingKind::Cache(3));
    assert_eq!(evidence.verdict, GroupingVerdict::Contradicted);
    let effect = evidence.effect.unwrap();
    assert!(
        effect.low < 5.0 && 5.0 < effect.high,
        "40 ns against 8 ns: {effect}"
    );
    assert!(
        evidence
            .reason
            .starts_with("shared L3 0-15 falls apart: CPUs 0-1 and 2-3")
    );
    assert_eq!(report.unclaimed.len(), 8);

    let claims = report.claims(Some("/sys/devices/system/cpu"));
    let claim = &claims[0];
    assert_eq!(claim.subject, "sharing of L3");
    assert_eq!(claim.claimed, "one shared L3: CPUs 0-15");
    assert_eq!(claim.found, evidence.reason);
    assert_eq!(claim.verdict, profile::ClaimVerdict::Contradicted);
    let stored = claim.effect_ratio.unwrap();
    assert_eq!((stored.low, stored.high), (effect.low, effect.high));
    // 8 pairs of siblings, and the 112 others.
    assert_eq!(stored.samples, 120);
    assert!(stored.is_sound());
    // The claim that falls apart reports the groups of two, once.
    assert!(
        claims
            .iter()
            .all(|claim| claim.subject != "groups without a claim")
    );
}

#[test]
fn groups_that_nobody_claims_are_told() {
    let truth = machine("8 cores, l3 16M per 4 cores");
    // No wrong statement about caches or packages: just eight cores.
    let claimed = machine("8 packages");
    let latencies = measure_all(&truth, &mut Rng::with_seed(3));
    let report = check(&claimed, &latencies, &Tree::infer(&latencies));
    let claims = report.claims(None);
    assert_eq!(claims.len(), 1, "{claims:?}");
    assert_eq!(claims[0].verdict, profile::ClaimVerdict::Contradicted);
    assert_eq!(
        claims[0].found,
        "CPUs 0-3 and 4-7 are nearer to each other than to the rest"
    );
}

#[test]
fn intervals_cover() {
    let truth = machine("2 packages, 4 cores, l3 16M per package");
    let mut covered = 0;
    for seed in 0..200 {
        let latencies = measure_all(&truth, &mut Rng::with_seed(seed));
        let report = check(&truth, &latencies, &Tree::infer(&latencies));
        let effect = report.evidence[0].effect.unwrap();
        covered += usize::from(effect.low <= 5.0 && 5.0 <= effect.high);
    }
    assert!(
        covered >= 184,
        "{covered} of 200 intervals hold the ratio of 200 ns to 40 ns"
    );
}

#[test]
fn missing_pairs_are_done_without_and_marked() {
    let machine = machine("2 packages, 8 cores, l3 16M per package");
    let mut rng = Rng::with_seed(11);
    let mut latencies = empty(&machine);
    for (a, b) in latencies.pairs() {
        if rng.f64() < 0.6 {
            latencies
                .set(a, b, measure(&machine, a, b, &mut rng))
                .unwrap();
        }
    }
    let tree = Tree::infer(&latencies);
    assert_eq!(tree.groups(), groups(&machine));
    let filled = tree.fill(&latencies);
    assert_eq!(filled.len(), 120);
    for pair in filled {
        let thread = |os| machine.thread_of(os).unwrap();
        let true_ns = support::cost_ns(machine.relation(thread(pair.a), thread(pair.b)));
        let is_measured = latencies.get(pair.a, pair.b).is_some();
        assert_eq!(is_measured, pair.origin == Origin::Measured);
        if !is_measured {
            assert!((pair.latency.ns / true_ns).ln().abs() < 0.1);
        }
    }
    // Nothing measured, or one thread: no groups, no panic.
    let nothing = Tree::infer(&empty(&machine));
    assert_eq!(nothing.groups().len(), 1);
    assert_eq!(nothing.fill(&empty(&machine)), []);
    let alone = Latencies::new(&[OsThread(4)]).unwrap();
    assert!(Tree::infer(&alone).levels.is_empty());
}

#[test]
fn a_mesh_is_no_groups() {
    // Latency grows evenly with the distance on a line: pairs differ, but form no groups.
    let threads: Vec<OsThread> = (0..16).map(OsThread).collect();
    let mut latencies = Latencies::new(&threads).unwrap();
    for (a, b) in latencies.pairs() {
        let ns = 50.0 + f64::from(a.0.abs_diff(b.0));
        latencies.set(a, b, Latency { ns, error_ns: 0.5 }).unwrap();
    }
    assert_eq!(Tree::infer(&latencies).groups().len(), 1);
}

#[test]
fn figures_that_are_no_latencies_are_refused() {
    let threads = [OsThread(0), OsThread(5)];
    let mut latencies = Latencies::new(&threads).unwrap();
    let mut set = |a, b, ns, error_ns| {
        latencies
            .set(OsThread(a), OsThread(b), Latency { ns, error_ns })
            .unwrap_err()
            .to_string()
    };
    assert!(set(0, 1, 1.0, 0.0).contains("cpu1 is not in the table"));
    assert!(set(5, 5, 1.0, 0.0).contains("two different hardware threads"));
    for (ns, error_ns) in [
        (0.0, 0.0),
        (-1.0, 0.0),
        (f64::NAN, 0.0),
        (1.0, f64::INFINITY),
    ] {
        assert!(set(0, 5, ns, error_ns).contains("is not a latency"));
    }
    assert!(Latencies::new(&[OsThread(1), OsThread(1)]).is_err());
}
