//! The checker: it finds what is planted, and agrees with a simulation.

mod support;

use hearth_consolidate::check::Violation;
use hearth_consolidate::generate::Recipe;
use hearth_consolidate::mapping::{Mapping, Seat};
use hearth_consolidate::model::{
    Apart, Asil, Bound, By, Mixing, ModeSet, Protocol, Switch, System,
};
use hearth_consolidate::switch;

fn system(seed: u64) -> (System, Mapping) {
    let recipe = Recipe {
        components: 4,
        messages: 0.0,
        ..Recipe::default()
    };
    let mut system = recipe.system(seed);
    system.apart.clear();
    for component in &mut system.components {
        component.asil = Asil::Qm;
        component.bytes = 1024;
    }
    let seat = |core| Seat { core, memory: 0 };
    (system, Mapping((0..4).map(|at| seat(at % 3)).collect()))
}

fn only(system: &System, mapping: &Mapping) -> Violation {
    let checked = support::checked(system, mapping);
    let [violation] = checked.violations.as_slice() else {
        panic!("one violation: {:?}", checked.violations);
    };
    violation.clone()
}

#[test]
fn each_planted_breach_is_found() {
    let (good, mapping) = system(1);
    assert!(support::checked(&good, &mapping).is_valid());
    let planted = |change: &dyn Fn(&mut System, &mut Mapping)| {
        let (mut system, mut mapping) = (good.clone(), mapping.clone());
        change(&mut system, &mut mapping);
        only(&system, &mapping)
    };
    let found = planted(&|_, mapping| _ = mapping.0.pop());
    assert!(matches!(found, Violation::Length { .. }));
    let found = planted(&|_, mapping| mapping.0[0].memory = 3);
    assert!(matches!(found, Violation::Seat { .. }));
    let found = planted(&|system, _| system.components[0].on = Some(1));
    assert!(matches!(found, Violation::Pinned { .. }));
    let found = planted(&|system, _| {
        system.components[0]
            .times
            .retain(|time| time.memory.as_deref() == Some("ram"))
    });
    assert!(matches!(found, Violation::NoTime { .. }));
    let found = planted(&|system, _| {
        system.units[0].points = Some(Vec::new());
        system
            .components
            .iter_mut()
            .for_each(|one| one.points.clear());
        system.components[0].points = vec![0];
    });
    assert!(matches!(found, Violation::Point { .. }));
    let found = planted(&|system, _| system.components[1].asil = Asil::D);
    assert!(matches!(found, Violation::LockStep { .. }));
    let found = planted(&|system, mapping| {
        mapping.0[3].core = 0;
        system.rules.mixing = Mixing::Adjacent;
        system.components[3].asil = Asil::B;
    });
    assert!(matches!(found, Violation::MixedCore { .. }));
    let found = planted(&|system, _| {
        system.units[0].is_protected = false;
        system.components[1].asil = Asil::A;
    });
    assert!(matches!(found, Violation::MixedUnit { .. }));
    let found = planted(&|system, _| {
        let by = By::Unit;
        system.apart.push(Apart {
            components: vec![0, 1],
            by,
        });
    });
    assert!(matches!(found, Violation::Together { .. }));
    let found = planted(&|system, _| system.components[0].bytes = 5 << 20);
    assert!(matches!(found, Violation::Memory { .. }));
    let found = planted(&|system, _| {
        let one = &mut system.components[1];
        let used = one.period_ns / 2;
        one.times.iter_mut().for_each(|time| time.ns = used);
        one.modes = ModeSet(1);
        system.rules.bound = Bound::Utilisation(0.4);
    });
    assert!(matches!(found, Violation::Utilisation { .. }));
    let found = planted(&|system, _| {
        let one = &mut system.components[1];
        one.times.iter_mut().for_each(|time| time.ns = 2000);
        one.modes = ModeSet(1);
        one.deadline_ns = 1000;
    });
    assert!(matches!(found, Violation::Late { .. }));
    let found = planted(&|system, _| {
        system.components[0].modes = ModeSet(1);
        let within_ns = 1;
        system.switches.push(Switch {
            from: 0,
            to: 1,
            within_ns,
        });
    });
    assert!(matches!(found, Violation::Switch { .. }));
}

/// Worst responses and idle moments from a common release, one time unit after the other.
fn simulate(tasks: &[(u64, u64)], until: u64) -> (Vec<u64>, Option<u64>) {
    let mut left: Vec<Vec<(u64, u64)>> = vec![Vec::new(); tasks.len()];
    let (mut worst, mut idle) = (vec![0; tasks.len()], None);
    for now in 0..until {
        for (at, (time, period)) in tasks.iter().enumerate() {
            if now % period == 0 {
                left[at].push((now, *time));
            }
        }
        match left
            .iter_mut()
            .enumerate()
            .find(|(_, jobs)| !jobs.is_empty())
        {
            Some((at, jobs)) => {
                jobs[0].1 -= 1;
                if jobs[0].1 == 0 {
                    worst[at] = worst[at].max(now + 1 - jobs[0].0);
                    jobs.remove(0);
                }
            }
            None => idle = idle.or(Some(now)),
        }
        if idle.is_none() && left.iter().all(Vec::is_empty) {
            idle = Some(now + 1);
        }
    }
    (worst, idle)
}

#[test]
fn responses_and_busy_periods_are_those_of_a_simulation() {
    let (mut valid, mut late) = (0, 0);
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut system, mut mapping) = system(seed);
        let periods = [4, 5, 6, 8, 10, 12, 15, 20];
        let mut tasks = Vec::new();
        for (component, seat) in system.components.iter_mut().zip(&mut mapping.0) {
            seat.core = 1;
            let period = periods[random.usize(..periods.len())];
            let time = random.u64(1..=period / 2);
            component.period_ns = period;
            component.deadline_ns = period;
            component.modes = ModeSet(1);
            component.times.iter_mut().for_each(|one| one.ns = time);
            tasks.push((time, period));
        }
        let mut order: Vec<usize> = (0..4).collect();
        order.sort_by_key(|at| (tasks[*at].1, *at));
        let ordered: Vec<(u64, u64)> = order.iter().map(|at| tasks[*at]).collect();
        let load: f64 = tasks
            .iter()
            .map(|(time, period)| *time as f64 / *period as f64)
            .sum();
        // Twice the least common multiple of all periods.
        let (worst, idle) = simulate(&ordered, 240);
        let is_met = load <= 1.0
            && worst
                .iter()
                .zip(&ordered)
                .all(|(worst, (_, period))| worst <= period);
        let checked = support::checked(&system, &mapping);
        assert_eq!(checked.is_valid(), is_met, "seed {seed}: {tasks:?}");
        if !is_met {
            late += 1;
            continue;
        }
        valid += 1;
        let load = checked
            .loads
            .iter()
            .find(|load| load.core == 1 && load.mode == 0)
            .expect("a load");
        let found: Vec<u64> = load.responses.iter().filter_map(|(_, ns)| *ns).collect();
        assert_eq!(found, worst, "seed {seed}");
        for protocol in [Protocol::Idle, Protocol::Deferred] {
            system.rules.protocol = protocol;
            let plans = switch::plans(&system, &mapping);
            let plan = plans.iter().find(|plan| plan.from == 0).expect("a plan");
            assert_eq!(plan.cores[0].busy_ns, idle, "seed {seed}");
            assert!(plan.cores[0].delay_ns <= idle, "seed {seed}");
            assert!(
                support::checked(&system, &mapping).is_valid(),
                "seed {seed} {protocol:?}"
            );
        }
    }
    assert!(valid > 40 && late > 40, "{valid} {late}");
}
