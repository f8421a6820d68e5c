//! The study of oversubscription: the published findings give the published answers by the rules
//! that judge this machine; the rules on results that are made up; the plan; one program.

use std::collections::BTreeSet;
use std::io::{BufReader, Cursor};

use hearth_published::oversubscription::share;
use hearth_studies::judging::{Answer, JudgedClaim};
use hearth_studies::oversubscription::instance::{Asked, Record, serve};
use hearth_studies::oversubscription::matrix::Partition;
use hearth_studies::oversubscription::plan::{Case, NOBODY, foreign, of_policies, rounds, sweep};
use hearth_studies::oversubscription::policies::Policy;
use hearth_studies::oversubscription::results::{Cell, Site};
use hearth_studies::oversubscription::verdict::{CLAIMS, as_published, measured};
use hearth_studies::oversubscription::{
    Experiment, OversubscriptionOptions, Results, launch, page, published, simulated,
};
use hearth_studies::results::Machine;
use hearth_studies::study::{Case as _, Choice as _};

#[test]
fn the_published_findings_give_the_published_answers() {
    for verdict in as_published().verdicts() {
        let wanted = match verdict.published {
            Some(_) => Answer::Yes,
            None => Answer::CannotTell,
        };
        assert_eq!(
            verdict.answer, wanted,
            "{}: {}",
            verdict.id, verdict.because
        );
    }
}

#[test]
fn every_row_is_understood() {
    let rows = |text: &str| text.lines().count() - 1;
    let findings = include_str!("../published/oversubscription/findings.csv");
    assert_eq!(published::findings().len(), rows(findings));
    let claims = include_str!("../published/oversubscription/claims.md");
    assert_eq!(CLAIMS.rows().len() + 1, rows(claims));
}

/// CPU time that A's and B's threads get on a fair machine.
fn shares(threads: usize, r: usize, cpus: usize) -> (f64, f64) {
    let (threads, r, all) = (threads as f64, r as f64, (threads + r) as f64);
    let each = (cpus as f64 / all).min(1.0);
    (threads * each, r * each)
}

/// Threads that policies choose where they work as the source says of them, or ours as they should.
fn chosen(policy: Policy, r: usize, cpus: usize) -> usize {
    match policy {
        Policy::All | Policy::LoadAverage => cpus,
        Policy::HillClimbing if r > 0 => 4 * cpus,
        Policy::HillClimbing => cpus,
        _ => cpus.saturating_sub(r).max(1),
    }
}

fn imagined_figures(case: &Case, cpus: usize) -> Vec<(&'static str, f64)> {
    let r = case.foreign;
    let (fixed, is_nobody) = (Partition::Static.id(), case.way == NOBODY);
    if case.experiment == Experiment::Simulated {
        let outcome = simulated::run(simulated::Scene {
            cores: 8,
            foreign: r,
            threads: case.threads,
            is_stolen: case.way == Partition::Stealing.id(),
            moves: case.way.len() <= 8,
        });
        return vec![("time", outcome.time), ("others", outcome.others)];
    }
    let threads = match Policy::named(&case.way) {
        Some(policy) => chosen(policy, r, cpus),
        None => case.threads,
    };
    let (own, other) = shares(threads, r, cpus);
    let time = if case.way == fixed && threads <= 2 * cpus {
        // With static parts as simulated, but for jumps after the first, which the source's system
        // evened out.
        let outcome = simulated::run(simulated::Scene {
            cores: cpus,
            foreign: r,
            threads,
            is_stolen: false,
            moves: true,
        });
        outcome.time
    } else {
        1.0 / own.max(1e-9)
    };
    let mut figures = Vec::new();
    if !is_nobody {
        figures.extend([("seconds", time), ("rate", 1.0 / time)]);
        figures.extend([("threads", threads as f64), ("told", 1.0)]);
    }
    if r > 0 {
        let (.., alone) = shares(0, r, cpus);
        let other = if is_nobody { alone } else { other };
        figures.extend([("victim_seconds", 1.0 / other), ("victim_rate", other)]);
    }
    let own = if is_nobody { 0.0 } else { 1.0 / time };
    figures.push(("total_rate", own + if r > 0 { other } else { 0.0 }));
    figures
}

/// Results as a fair scheduler gives them.
fn imagined(cpus: usize) -> Results {
    let machine = Machine {
        processor: "an imagined one".into(),
        threads: cpus,
        nodes: vec![0],
        ..Machine::default()
    };
    let site = Site {
        cpus: (0..cpus).collect(),
    };
    let options = OversubscriptionOptions::default();
    let mut results = Results::new(machine, site, options.clone());
    for experiment in Experiment::ALL {
        let rounds = rounds(experiment, &options, cpus);
        for case in rounds.into_iter().flat_map(|round| round.cases) {
            let mut cell = Cell::new(case.clone());
            for run in 0..7 {
                let noise = match experiment {
                    Experiment::Simulated => 1.0,
                    _ => 1.0 + 0.002 * f64::from(run % 3),
                };
                for (figure, value) in imagined_figures(&case, cpus) {
                    let is_count = ["threads", "told"].contains(&figure);
                    cell.push(figure, if is_count { value } else { value * noise });
                }
            }
            results.cells.push(cell);
        }
    }
    results
}

#[test]
fn a_fair_machine_as_the_sources_gives_its_answers() {
    let evidence = measured(&imagined(8));
    for verdict in evidence.verdicts() {
        let JudgedClaim {
            id,
            answer,
            because,
            ..
        } = &verdict;
        assert_eq!(*answer, Answer::Yes, "{id}: {because}");
    }
    let names: BTreeSet<&str> = evidence.names().collect();
    for claim in CLAIMS.rows() {
        for (name, _) in claim.relations {
            assert!(names.contains(name), "{name}");
        }
    }
    for finding in published::findings() {
        assert!(names.contains(finding.name), "{}", finding.name);
    }
}

#[test]
fn two_cpus_decide_fewer_claims() {
    let verdicts = measured(&imagined(2)).verdicts();
    for verdict in verdicts {
        let wanted = match verdict.id {
            "throughput-below" | "jump-beside" | "jump-idle" => Answer::CannotTell,
            _ => Answer::Yes,
        };
        assert_eq!(
            verdict.answer, wanted,
            "{}: {}",
            verdict.id, verdict.because
        );
    }
}

#[test]
fn a_victim_that_is_harmed_refutes_the_goal() {
    let mut results = imagined(2);
    for cell in &mut results.cells {
        let is_ours = ["measured", "calibrated"].contains(&cell.case.way.as_str());
        if is_ours && cell.case.foreign == 1 {
            cell.figures.set("victim_seconds", vec![1.2; 7]);
        }
    }
    let verdicts = measured(&results).verdicts();
    let goal = verdicts.iter().find(|it| it.id == "ours-goal").unwrap();
    assert_eq!(goal.answer, Answer::InPart, "{}", goal.because);
}

#[test]
fn the_page_has_every_claim_and_says_what_is_simulated() {
    let results = imagined(2);
    let html = page::page(&results);
    for verdict in measured(&results).verdicts() {
        let begin: String = verdict.claim.chars().take(16).collect();
        assert!(html.contains(&begin), "{begin}");
    }
    assert!(html.contains("A model, not a measurement"));
    let charts = page::charts(&results);
    let names: Vec<&str> = charts.iter().map(|(name, _)| name.as_str()).collect();
    let wanted = [
        "impact.svg",
        "throughput.svg",
        "artifact.svg",
        "bounds-0.svg",
        "bounds-1.svg",
        "simulated.svg",
    ];
    assert_eq!(names, wanted);
    let nothing = Results::new(
        results.about.machine.clone(),
        results.site.clone(),
        OversubscriptionOptions::default(),
    );
    assert!(page::page(&nothing).contains("Not measured."));
    assert!(page::charts(&nothing).is_empty());
}

#[test]
fn the_plan_has_the_sources_sweeps() {
    let options = OversubscriptionOptions::default();
    let cases = |experiment, cpus| {
        let rounds = rounds(experiment, &options, cpus);
        rounds.into_iter().flat_map(|round| round.cases)
    };
    let most = |experiment| cases(experiment, 8).map(|case| case.threads).max();
    assert_eq!(most(Experiment::Impact), Some(16));
    assert_eq!(most(Experiment::Artifact), Some(32));
    assert_eq!((foreign(8), foreign(2), foreign(1)), (4, 1, 1));
    assert_eq!(of_policies(2), [0, 1, 2]);
    assert_eq!(of_policies(8), [0, 1, 4, 7, 8]);
    let long = sweep(512, 128);
    assert!(long.len() < 80 && [64, 65, 128, 129, 512].iter().all(|x| long.contains(x)));
    for cpus in [1, 2, 8, 100] {
        let mut different = BTreeSet::new();
        for experiment in Experiment::ALL {
            for case in cases(experiment, cpus) {
                assert!(different.insert(format!("{experiment:?} {}", case.row())));
                assert!(!case.words().is_empty());
            }
        }
    }
    let longer = OversubscriptionOptions {
        measure_ms: Some(5_000),
        ..OversubscriptionOptions::default()
    };
    assert_eq!(options.differs(&longer), Some("how long runs are"));
}

fn asked(way: &str) -> Asked {
    Asked {
        way: way.into(),
        threads: 3,
        foreign: 1,
        rows: 8,
        milliseconds: 4,
    }
}

#[test]
fn a_program_begins_when_told_and_keeps_its_times() {
    let all = Policy::ALL.map(Policy::id);
    for way in ["static", "stealing"].into_iter().chain(all) {
        let mut said = Vec::new();
        let input = BufReader::new(Cursor::new("go\n"));
        serve(&asked(way), input, &mut said).unwrap();
        let said = String::from_utf8(said).unwrap();
        let (ready, json) = said.split_once('\n').unwrap();
        assert_eq!(ready, "ready");
        let record: Record = serde_json::from_str(json).unwrap();
        assert!(record.products.len() >= 2 && record.threads >= 1);
        assert!(record.products.is_sorted());
        if Policy::named(way).is_none() {
            assert_eq!((record.threads, record.foreign), (3, None));
        }
    }
    let input = || BufReader::new(Cursor::new(""));
    assert!(serve(&asked("static"), input(), Vec::new()).is_err());
    assert!(serve(&asked("nonsense"), input(), Vec::new()).is_err());
}

#[test]
fn both_are_timed_while_they_run_together() {
    let record = |begin: u64, length: u64, count: u64| Record {
        threads: 1,
        products: (0..count)
            .map(|at| (begin + at * length, begin + (at + 1) * length))
            .collect(),
        ..Record::default()
    };
    // B began before and ends after A, whose products take half as long.
    let (own, victim) = (record(1_000, 50, 10), record(0, 100, 40));
    let figures = launch::figures(Some(&own), Some(&victim)).unwrap();
    let value = |name: &str| figures.iter().find(|(it, _)| it == name).unwrap().1;
    assert!((value("seconds") - 50e-9).abs() < 1e-15);
    assert!((value("victim_seconds") - 100e-9).abs() < 1e-15);
    assert!((value("rate") / value("victim_rate") - 2.0).abs() < 1e-9);
    assert!((value("total_rate") - 3e7).abs() < 1.0);
    let apart = launch::figures(Some(&record(0, 5, 2)), Some(&record(100, 5, 2)));
    assert!(apart.is_err());
    let alone = launch::figures(None, Some(&victim)).unwrap();
    assert!(alone.iter().all(|(name, _)| name != "seconds"));
    assert!(share(1, 1) > 0.49);
}
