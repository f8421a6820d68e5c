//! The estimate beside the truth on imitated machines: hypervisors that steal, control groups of
//! the second version, containers, and more CPUs than there are here.
#![allow(clippy::print_stdout, reason = "the table is what one wants to see")]

#[path = "imitated/machine.rs"]
mod machine;

use hearth_cores::Cores;
use machine::{Group, Machine, Others, Version};

/// Steps of a millisecond: before the estimate, of the estimate, and of the truth.
const BEFORE: u64 = 300;
const WINDOW: u64 = 200;
const TRUTH: u64 = 1000;
/// Largest difference, in CPUs.
const NEAR: f64 = 1.0;

fn machine(cpus: usize) -> Machine {
    Machine {
        cpus,
        version: Version::Second,
        steal: 0.0,
        groups: Vec::new(),
        own_group: "/",
        own_cpus: Vec::new(),
        others: Vec::new(),
    }
}

fn group(path: &'static str, weight: f64, quota: Option<f64>) -> Group {
    Group {
        path,
        weight,
        quota,
        is_idle: false,
    }
}

fn others(group: &'static str, threads: usize, duty: f64) -> Others {
    Others {
        group,
        threads,
        duty,
        nice: 0,
        cpus: Vec::new(),
        are_hidden: false,
    }
}

/// Hypervisors that give CPU time to other guests.
fn stolen() -> Vec<(String, Machine)> {
    let mut all = Vec::new();
    for cpus in [2, 4, 8] {
        for steal in [0.1, 0.3, 0.6] {
            for threads in [0, 1, cpus, 2 * cpus] {
                let one = Machine {
                    steal,
                    others: vec![others("/", threads, 1.0)],
                    ..machine(cpus)
                };
                let title = format!("{cpus} CPUs, {steal} stolen, {threads} beside");
                all.push((title, one));
            }
            let one = Machine {
                steal,
                others: vec![others("/", cpus, 0.5)],
                ..machine(cpus)
            };
            all.push((format!("{cpus} CPUs, {steal} stolen, halves beside"), one));
        }
    }
    all
}

/// Quotas, weights and nested groups.
fn grouped(version: Version) -> Vec<(String, Machine)> {
    let mut all = Vec::new();
    for cpus in [2, 4, 8] {
        let count = cpus as f64;
        let mut add = |what: &str, groups: Vec<Group>, own, beside: Vec<Others>| {
            let one = Machine {
                version,
                groups,
                own_group: own,
                others: beside,
                ..machine(cpus)
            };
            all.push((format!("{cpus} CPUs, {version:?} version, {what}"), one));
        };
        for quota in [0.5, 1.5, count - 0.5] {
            let own = || vec![group("/own", 100.0, Some(quota))];
            add(&format!("quota {quota}"), own(), "/own", Vec::new());
            let beside = vec![others("/", cpus, 1.0)];
            let what = format!("quota {quota} beside as many as CPUs");
            add(&what, own(), "/own", beside);
        }
        let nested = || {
            vec![
                group("/slice", 100.0, Some(count / 2.0)),
                group("/slice/own", 100.0, Some(count)),
                group("/slice/other", 100.0, None),
            ]
        };
        add("a nested quota", nested(), "/slice/own", Vec::new());
        let beside = vec![others("/slice/other", cpus, 1.0)];
        add(
            "a nested quota that is shared",
            nested(),
            "/slice/own",
            beside,
        );
        for (own, other) in [
            (100.0, 100.0),
            (50.0, 100.0),
            (300.0, 100.0),
            (10.0, 1000.0),
            (1000.0, 10.0),
        ] {
            for threads in [1, cpus, 2 * cpus] {
                let groups = vec![group("/own", own, None), group("/other", other, None)];
                let beside = vec![others("/other", threads, 1.0)];
                let what = format!("weights {own} and {other}, {threads} beside");
                add(&what, groups, "/own", beside);
            }
        }
        let groups = vec![
            group("/user", 100.0, None),
            group("/user/own", 400.0, None),
            group("/user/other", 100.0, None),
            group("/system", 100.0, None),
        ];
        let beside = vec![
            others("/user/other", cpus, 1.0),
            others("/system", cpus, 1.0),
        ];
        add("weights at two levels", groups, "/user/own", beside);
        let groups = vec![
            group("/own", 100.0, None),
            group("/other", 100.0, Some(count / 4.0)),
        ];
        let beside = vec![others("/other", cpus, 1.0)];
        add("others' quota", groups, "/own", beside);
        let groups = vec![
            group("/own", 100.0, None),
            Group {
                is_idle: true,
                ..group("/other", 100.0, None)
            },
        ];
        let beside = vec![others("/other", 2 * cpus, 1.0)];
        add("others that get what is idle", groups, "/own", beside);
        let groups = vec![group("/own", 100.0, None), group("/other", 100.0, None)];
        let beside = vec![others("/other", 2 * cpus, 0.3), others("/own", 1, 0.5)];
        add("others that rest", groups, "/own", beside);
    }
    all
}

/// Containers, CPUs of a process's own, niceness, and all of it with steal.
fn mixed() -> Vec<(String, Machine)> {
    let mut all = Vec::new();
    for cpus in [2, 4, 8] {
        let groups = || vec![group("/own", 100.0, None), group("/other", 100.0, None)];
        let hidden = |threads| Others {
            are_hidden: true,
            ..others("/other", threads, 1.0)
        };
        for threads in [1, cpus, 2 * cpus] {
            let one = Machine {
                groups: groups(),
                own_group: "/own",
                others: vec![hidden(threads)],
                ..machine(cpus)
            };
            all.push((format!("{cpus} CPUs, {threads} in another container"), one));
        }
        let half: Vec<usize> = (0..cpus / 2).collect();
        for (title, own, beside) in [
            (
                "half of the CPUs, others anywhere",
                half.clone(),
                Vec::new(),
            ),
            (
                "half of the CPUs, others there too",
                half.clone(),
                half.clone(),
            ),
            ("all CPUs, others on half", Vec::new(), half.clone()),
        ] {
            let one = Machine {
                own_cpus: own,
                others: vec![Others {
                    cpus: beside,
                    ..others("/", cpus, 1.0)
                }],
                ..machine(cpus)
            };
            all.push((format!("{cpus} CPUs, {title}"), one));
        }
        for nice in [-5, 5, 19] {
            let one = Machine {
                others: vec![Others {
                    nice,
                    ..others("/", cpus, 1.0)
                }],
                ..machine(cpus)
            };
            all.push((format!("{cpus} CPUs, others' niceness {nice}"), one));
        }
        let quota = cpus as f64 - 0.5;
        let one = Machine {
            steal: 0.25,
            groups: vec![
                group("/own", 100.0, Some(quota)),
                group("/other", 300.0, None),
            ],
            own_group: "/own",
            others: vec![others("/other", cpus, 1.0), hidden(1)],
            ..machine(cpus)
        };
        all.push((format!("{cpus} CPUs, everything at once"), one));
    }
    all
}

#[test]
fn the_estimate_is_near_the_truth_on_imitated_machines() {
    let mut situations = stolen();
    situations.extend(grouped(Version::First));
    situations.extend(grouped(Version::Second));
    situations.extend(mixed());
    let (mut far, mut not_quite) = (Vec::new(), 0);
    for (seed, (title, machine)) in situations.iter().enumerate() {
        let running = machine.start(seed as u64);
        running.pass(BEFORE);
        let found = Cores::on(&running, &mut || running.pass(WINDOW));
        let truth = running.truth(TRUTH);
        let difference = found.obtainable - truth;
        let line = format!("{:5.2} {truth:5.2}  {title}", found.obtainable);
        not_quite += usize::from(difference.abs() > 0.25);
        let mark = match difference.abs() {
            far if far > NEAR => '!',
            far if far > 0.25 => '+',
            _ => ' ',
        };
        println!("{mark} {line}");
        if difference.abs() > NEAR {
            far.push(line);
        }
    }
    println!(
        "{} situations, {} further off than {NEAR} CPU, {not_quite} than 0.25",
        situations.len(),
        far.len()
    );
    assert!(far.len() * 20 <= situations.len(), "{}", far.join("\n"));
}
