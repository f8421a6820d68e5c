//! The study of event servers: the published findings give the published answers by the rules that
//! judge this machine; the rules by themselves, on results that are made up; the plan of runs.

use std::collections::BTreeSet;

use hearth_net::{Mechanism, Pattern};
use hearth_studies::claims::Evidence;
use hearth_studies::event_patterns::figures::Figures;
use hearth_studies::event_patterns::grid::{GRID, Kind};
use hearth_studies::event_patterns::page;
use hearth_studies::event_patterns::plan::{APART, Case, cases};
use hearth_studies::event_patterns::published;
use hearth_studies::event_patterns::results::{Cell, Site};
use hearth_studies::event_patterns::verdict::{
    CLAIMS, as_published as published_evidence, measured,
};
use hearth_studies::event_patterns::{EventPatternsOptions, Experiment, Results};
use hearth_studies::judging::{Answer, Figure, JudgedClaim};
use hearth_studies::results::Machine;
use hearth_studies::study::Choice;

fn verdict(evidence: &Evidence, id: &str) -> JudgedClaim {
    let verdicts = evidence.verdicts();
    let found = verdicts.iter().find(|verdict| verdict.id == id);
    found.unwrap().clone()
}

#[test]
fn the_published_findings_give_the_published_answers() {
    for verdict in published_evidence().verdicts() {
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
    let findings = include_str!("../published/event-patterns/findings.csv");
    assert_eq!(published::findings().len(), rows(findings));
    let figures = include_str!("../published/event-patterns/figures.csv");
    assert_eq!(published::figures().len(), rows(figures));
    assert!(
        published::findings()
            .iter()
            .all(|finding| finding.place.len() > 8)
    );
}

#[test]
fn a_claim_needs_its_direction_its_size_and_cores() {
    let with = |cores, name: &str, figure| {
        let mut evidence = Evidence::new(&CLAIMS, cores);
        evidence.put(name, figure);
        evidence
    };
    let twice = |figure| verdict(&with(1, "leader edge/select", figure), "twice").answer;
    assert_eq!(twice(Figure::between(2.2, 2.0, 2.4)), Answer::Yes);
    assert_eq!(twice(Figure::between(4.0, 3.8, 4.1)), Answer::InPart);
    assert_eq!(twice(Figure::between(0.8, 0.7, 0.85)), Answer::No);
    assert_eq!(twice(Figure::between(1.3, 0.9, 1.8)), Answer::CannotTell);
    let highest = |cores| {
        verdict(
            &with(cores, "half-async/leader edge", Figure::exact(1.5)),
            "highest",
        )
    };
    assert_eq!(highest(8).answer, Answer::Yes);
    let few = highest(1);
    assert_eq!(few.answer, Answer::CannotTell);
    assert_eq!(few.word(), "cannot be shown here");
    assert!(
        few.because.contains("1.50") && few.because.contains("1 core"),
        "{}",
        few.because
    );
    let none = verdict(&Evidence::new(&CLAIMS, 16), "milder");
    assert_eq!(
        (none.answer, &*none.because),
        (Answer::CannotTell, "not measured")
    );
    let mut part = with(16, "half-async edge/select", Figure::exact(1.3));
    part.put("leader edge/select", Figure::exact(1.0));
    assert_eq!(verdict(&part, "edge-over-select").answer, Answer::InPart);
}

/// Results of a machine with `server_cores` cores for the server, in which the source is right: the
/// waiting thread or the serial section sets the limit, and threads beyond ten harm
/// Half-Sync/Half-Async.
fn as_published(server_cores: usize) -> Results {
    let machine = Machine {
        processor: "an imagined one".into(),
        kernel: String::new(),
        hypervisor: None,
        threads: 2 * server_cores,
        nodes: vec![0],
    };
    let cores: Vec<usize> = (0..2 * server_cores).collect();
    let mut results = Results::new(machine, Site::new(&cores), EventPatternsOptions::default());
    for case in cases(Experiment::Threads, &EventPatternsOptions::default()) {
        let mut cell = Cell::new(case.clone());
        for run in 0..5 {
            for (figure, value) in imagined(&case, 1.0 + 0.002 * f64::from(run)) {
                cell.push(&figure, value);
            }
        }
        results.cells.push(cell);
    }
    results
}

fn imagined(case: &Case, noise: f64) -> Figures {
    let threads = case.threads as f64;
    // Of one event: to obtain it, and to work for it.
    let (call, rearm) = match case.mechanism.as_str() {
        "select" => (1_800.0, 3_000.0),
        "level" => (1_000.0_f64, 700.0 * threads),
        _ => (1_000.0, 0.0),
    };
    let work = 12_000.0 + rearm;
    let (limit, workers, harm) = match case.pattern.as_str() {
        "half-async" => (
            0.8 * call.min(1_300.0),
            (threads - 1.0) / 0.6,
            (threads - 10.0).max(0.0),
        ),
        "leader" => (call, threads, 0.0),
        _ => (0.0, 4.0 * threads, 0.0),
    };
    let ns = f64::max(limit, work / workers) * (1.0 + 0.3 * harm);
    let mut figures = Figures::new();
    let mut put = |name: &str, value: f64| figures.insert(name.to_owned(), noise * value);
    put("rate", 1e9 / ns);
    put("server_ns", call + work);
    put("server_cores", threads);
    put("waits", 1.0);
    put("events_a_wait", 6.0);
    put("call_ns", call);
    put("obtain_ns", call);
    put("reactivate_ns", rearm);
    put("waiter_busy", (threads / 10.0).min(1.0));
    figures
}

#[test]
fn a_machine_as_the_sources_gives_its_answers_and_a_small_one_fewer() {
    let large = measured(&as_published(16));
    for verdict in large.verdicts() {
        let is_known = verdict.published.is_some();
        assert!(
            !is_known || verdict.answer == Answer::Yes,
            "{}: {} {}",
            verdict.id,
            verdict.word(),
            verdict.because
        );
        assert!(is_known || verdict.answer != Answer::CannotTell);
    }
    let small = measured(&as_published(1)).verdicts();
    let told: Vec<&str> = small
        .iter()
        .filter(|verdict| verdict.answer != Answer::CannotTell)
        .map(|verdict| verdict.id)
        .collect();
    assert_eq!(
        told,
        [
            "edge-over-select",
            "twice",
            "select-call",
            "select-over-level",
            "level-over-select",
            "sharded"
        ]
    );
    for verdict in &small {
        assert!(
            !verdict.explained.is_empty() || verdict.id != "twice",
            "{}",
            verdict.id
        );
    }
}

#[test]
fn the_page_has_every_claim_and_figure() {
    let results = as_published(4);
    let html = page::page(&results);
    for verdict in measured(&results).verdicts() {
        let words = verdict.claim.replace('%', "");
        let begin: String = words.chars().take(20).collect();
        assert!(html.contains(&begin), "{begin}");
    }
    assert!(html.contains("lost: peaks at 10 and 13 threads"));
    assert!(html.contains("4 cores; beyond, shared"));
    let names: Vec<String> = page::charts(&results)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(
        names.contains(&"threads-half-async.svg".to_owned()),
        "{names:?}"
    );
}

#[test]
fn the_grid_has_the_sources_cells_and_all_of_ours() {
    let published: Vec<&Kind> = GRID.iter().filter(|kind| kind.is_published).collect();
    assert_eq!(published.len(), 6);
    for kind in GRID {
        kind.pattern.parse::<Pattern>().unwrap();
        kind.mechanism.parse::<Mechanism>().unwrap();
    }
    let all = cases(Experiment::Threads, &EventPatternsOptions::default());
    let threads = |pattern: &str| -> BTreeSet<usize> {
        let of = all.iter().filter(|case| case.pattern == pattern);
        of.map(|case| case.threads).collect()
    };
    // One thread cannot both wait and work for others.
    assert_eq!(threads("half-async").first(), Some(&2));
    assert_eq!(threads("leader").first(), Some(&1));
    for pattern in ["half-async", "leader"] {
        assert!(
            [10, 13, 16]
                .iter()
                .all(|count| threads(pattern).contains(count))
        );
    }
    assert!(
        all.iter()
            .all(|case| case.layout == APART && case.work_us == 0)
    );
    for experiment in Experiment::ALL {
        let cases = cases(experiment, &EventPatternsOptions::default());
        let different: BTreeSet<String> = cases.iter().map(|case| format!("{case:?}")).collect();
        assert_eq!(different.len(), cases.len());
    }
}

#[test]
fn halves_of_the_cores_are_the_servers_and_the_clients() {
    let machine = as_published(1).about.machine;
    let of = |cores: &[usize]| {
        let results = Results::new(
            machine.clone(),
            Site::new(cores),
            EventPatternsOptions::default(),
        );
        (
            results.site.server_cores.clone(),
            results.site.client_cores.clone(),
            results.cores_of_server("together"),
        )
    };
    assert_eq!(of(&[0, 1, 4, 5]), (vec![0, 1], vec![4, 5], 4));
    assert_eq!(of(&[2, 3, 7]), (vec![2], vec![3, 7], 3));
    assert_eq!(of(&[6]), (vec![6], vec![6], 1));
}

#[test]
fn more_repeats_may_be_asked_for_later_and_other_times_not() {
    let options = EventPatternsOptions::default();
    let more = EventPatternsOptions {
        repeats: Some(20),
        experiments: vec![Experiment::Work],
        ..EventPatternsOptions::default()
    };
    assert_eq!(options.differs(&more), None);
    let longer = EventPatternsOptions {
        measure_ms: Some(5_000),
        ..EventPatternsOptions::default()
    };
    assert_eq!(options.differs(&longer), Some("how long runs are"));
    let none = EventPatternsOptions {
        repeats: Some(0),
        ..EventPatternsOptions::default()
    };
    assert!(none.check().is_err());
}
