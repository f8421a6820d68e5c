//! Random systems: no result breaks a rule, and none is better than the bound.

mod support;

use hearth_consolidate::figures::Figures;
use hearth_consolidate::model::{Asil, ModeSet, Protocol, Switch};
use hearth_consolidate::search::{Goals, SearchError, search};

/// Number of systems: ten thousand if asked for.
fn instances() -> u64 {
    if support::is_deep() { 10_000 } else { 30 }
}

#[test]
fn no_result_breaks_a_rule() {
    let (mut found, mut none) = (0, 0);
    // A component that had to stay was moved to make room in the 80th.
    for seed in (0..instances()).chain([79]) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut system = support::any_recipe(&mut random, 40).system(seed);
        if random.u32(..4) == 0 {
            system.rules.protocol = Protocol::Deferred;
            system.switches.push(Switch {
                from: 0,
                to: 1,
                within_ns: random.u64(1_000_000..100_000_000),
            });
        }
        if random.u32(..4) == 0 {
            for unit in &mut system.units {
                unit.is_protected = random.bool();
            }
        }
        if random.u32(..4) == 0 {
            let count = system.components.len();
            let pinned = random.usize(..count);
            system.components[pinned].on = Some(random.usize(..system.units.len()));
        }
        // The hook ends each search after some questions, so that it stays short.
        let mut asked = 0.0;
        let result = search(&system, &Goals::default(), seed, &mut |_| {
            asked += 1.0;
            asked / 60.0
        });
        let result = match result {
            Ok(result) => result,
            Err(SearchError::Nowhere { reason, .. }) => {
                assert!(reason.contains(": "), "a next step: {reason}");
                none += 1;
                continue;
            }
            Err(_) => {
                none += 1;
                continue;
            }
        };
        found += 1;
        let checked = support::checked(&system, &result.mapping);
        assert!(checked.is_valid(), "seed {seed}: {:?}", checked.violations);
        let figures = Figures::of(&system, &result.mapping);
        assert_eq!(
            (figures.units, figures.cores),
            (result.value.units, result.value.cores),
            "seed {seed}"
        );
        assert!(result.least.units <= result.value.units, "seed {seed}");
        assert!(result.least.cores <= result.value.cores, "seed {seed}");
        assert!(result.least.goal <= result.value.goal, "seed {seed}");
        let d = |at: &usize| system.components[*at].asil == Asil::D;
        assert!(
            result.mapping.locked(&system).len() <= (0..system.components.len()).filter(d).count()
        );
    }
    assert!(
        found > 5 * none / 2,
        "{found} found, {none} without a mapping"
    );
}

/// Two components that are never active together share a core as if there were one.
#[test]
fn exclusive_components_are_packed_at_the_larger_load() {
    for seed in 0..if support::is_deep() { 20 } else { 4 } {
        let recipe = hearth_consolidate::generate::Recipe {
            components: 12,
            load: (0.6, 0.9),
            messages: 0.0,
            ..Default::default()
        };
        let mut system = recipe.system(seed);
        system.apart.clear();
        for (at, component) in system.components.iter_mut().enumerate() {
            component.modes = ModeSet::default().with(at % 2);
            component.asil = Asil::Qm;
        }
        let found = search(&system, &Goals::default(), seed, &mut |_| 0.0).expect("a mapping");
        // Each core takes one of either mode: half as many cores as components.
        assert_eq!(found.value.cores, 6, "seed {seed}");
        assert_eq!(found.value.units, 2, "seed {seed}");
        assert_eq!(found.gap_cores(), 0.0, "and that is proved");
        let checked = support::checked(&system, &found.mapping);
        assert!(checked.is_valid(), "{:?}", checked.violations);
    }
}

#[test]
fn the_same_seed_gives_the_same_mapping() {
    let recipe = hearth_consolidate::generate::Recipe {
        components: 30,
        ..Default::default()
    };
    let system = recipe.system(5);
    let run = || search(&system, &Goals::default(), 9, &mut |_| 0.0).expect("a mapping");
    assert_eq!(run(), run());
}
