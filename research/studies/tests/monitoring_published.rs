//! The study of monitoring: the published findings give the published answers by the rules that
//! judge this machine; the rules by themselves, on results that are made up; rows and their cores
//! on kept machines; the plan of runs.

use std::collections::BTreeSet;
use std::path::Path;

use hearth_machine::capture::Capture;
use hearth_machine::topology::Topology;
use hearth_studies::claims::Evidence;
use hearth_studies::judging::{Answer, Figure, JudgedClaim, Relation};
use hearth_studies::monitoring::options::METHOD_NS;
use hearth_studies::monitoring::page;
use hearth_studies::monitoring::parts::{Part, Runs, Side, each, further, ratio, slopes};
use hearth_studies::monitoring::places::{Place, Row, places};
use hearth_studies::monitoring::plan::{Case, LAWS, cases};
use hearth_studies::monitoring::published;
use hearth_studies::monitoring::results::Cell;
use hearth_studies::monitoring::site::Site;
use hearth_studies::monitoring::verdict::{CLAIMS, as_published, measured};
use hearth_studies::monitoring::ways::{Monitor, Way};
use hearth_studies::monitoring::{Experiment, MonitoringOptions, Results};
use hearth_studies::results::Machine;
use hearth_studies::study::Choice;

fn verdict(evidence: &Evidence, id: &str) -> JudgedClaim {
    let verdicts = evidence.verdicts();
    let found = verdicts.iter().find(|verdict| verdict.id == id);
    found.unwrap().clone()
}

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
    let findings = include_str!("../published/monitoring/findings.csv");
    assert_eq!(published::findings().len(), rows(findings));
    let claims = include_str!("../published/monitoring/claims.md");
    assert_eq!(CLAIMS.rows().len(), rows(claims) - 1);
    let parts = published::parts();
    assert!(parts.iter().map(|parts| parts.row).eq(Row::ALL));
    let processors = include_str!("../published/monitoring/processors.csv");
    assert_eq!(published::processors().len(), rows(processors));
    assert_eq!(published::by_depth(Part::Writing), Some((2.5, 0.1)));
    assert_eq!(published::by_depth(Part::Collecting), Some((0.0, 0.9)));
    assert!(
        published::findings()
            .iter()
            .all(|finding| finding.place.len() > 8)
    );
}

/// The savings that the source states are those of its parts.
#[test]
fn the_published_parts_add_up_to_the_published_savings() {
    let total = |row| {
        let parts = published::parts().into_iter().find(|of| of.row == row);
        parts.unwrap().overhead_us().unwrap()
    };
    let saved = |of, to| (100.0 * (1.0 - total(of) / total(to))).round();
    assert_eq!(saved(Row::A2, Row::S1), 55.0);
    assert_eq!(saved(Row::A2, Row::A1), 76.0);
    assert_eq!(saved(Row::A3, Row::S1), 73.0);
    assert_eq!(saved(Row::A3, Row::A1), 85.0);
}

fn topology(machine: &str) -> Topology {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    let text = std::fs::read_to_string(root.join(machine).join("capture.json")).unwrap();
    let reading = Capture::from_json(&text).unwrap().read().unwrap();
    reading.topology
}

#[test]
fn rows_have_the_cores_that_a_machine_has_for_them() {
    let topology = topology("lab-two-socket-smt");
    let number = |os: usize| {
        let is = |thread: &&hearth_machine::topology::HardwareThread| thread.os.0 as usize == os;
        *topology.threads().iter().find(is).unwrap()
    };
    let all: Vec<usize> = topology
        .threads()
        .iter()
        .map(|of| of.os.0 as usize)
        .collect();
    let found = places(&topology, &all);
    let rows: Vec<Row> = found.iter().map(|place| place.row).collect();
    let of = |row| found.iter().find(|place| place.row == row).unwrap();
    assert!(
        rows.contains(&Row::S2) && rows.contains(&Row::A2),
        "{rows:?}"
    );
    let application = number(of(Row::S1).application.unwrap());
    assert_eq!(of(Row::A1).writer, of(Row::A1).application);
    assert_eq!(of(Row::A1).allowed.len(), 1);
    let writer = |row| number(of(row).writer.unwrap());
    assert_eq!(writer(Row::A2).core, application.core);
    assert_ne!(writer(Row::A2).os, application.os);
    assert_ne!(writer(Row::A4).package, application.package);
    if rows.contains(&Row::A3) {
        assert_ne!(writer(Row::A3).core, application.core);
        assert_eq!(writer(Row::A3).package, application.package);
    }
    assert_eq!(of(Row::A5).allowed, all);
    // One thread alone has room for the rows of one thread.
    let alone = places(&topology, &all[..1]);
    let rows: Vec<Row> = alone.iter().map(|place| place.row).collect();
    assert_eq!(rows, [Row::S1, Row::A1]);
    let site = Site {
        places: alone,
        cores: 1,
        monitors: vec![Monitor::Hearth],
    };
    assert_eq!(site.apart(), Row::A1);
    assert_eq!(
        site.lacking(),
        [Row::S2, Row::A2, Row::A3, Row::A4, Row::A5]
    );
}

#[test]
fn parts_are_differences_and_a_divisor_near_zero_tells_nothing() {
    let lists: [Vec<f64>; 4] = [100.0, 110.0, 210.0, 940.0].map(|mean| vec![mean; 5]);
    let runs = Runs::new(|way: Way| &lists[way as usize]);
    let value = |part| runs.part(part).unwrap().value;
    assert_eq!(value(Part::Instrumentation), 10.0);
    assert_eq!(value(Part::Collecting), 100.0);
    assert_eq!(value(Part::Writing), 730.0);
    assert_eq!(value(Part::Overhead), 840.0);
    let side = |part| Side::new(runs, part);
    let found = ratio(side(Part::Instrumentation), side(Part::Collecting)).unwrap();
    assert_eq!(found, Figure::exact(0.1));
    // A part that may be nothing.
    let noise: [Vec<f64>; 4] = [
        vec![100.0, 101.0, 99.0],
        vec![100.0, 101.0, 99.0],
        vec![100.0, 102.0, 98.0],
        vec![500.0; 3],
    ];
    let noisy = Runs::new(|way: Way| &noise[way as usize]);
    let above = Side::new(noisy, Part::Writing);
    let below = Side::new(noisy, Part::Collecting);
    let unclear = ratio(above, below);
    assert!(unclear.is_none_or(|figure| figure.relation == Relation::Unclear));
    // Nothing was measured.
    let none = Runs::new(|_| &[]);
    assert!(none.part(Part::Writing).is_none());
    assert!(ratio(Side::new(none, Part::Writing), above).is_none());
}

#[test]
fn growth_is_by_call() {
    // 2.5 µs and 0.1 for each call, as the source has it.
    let at = |depth: f64| [500e3, 500e3, 500e3, 502.5e3 + 100.0 * depth].map(|ns| vec![ns; 4]);
    let lists = [1.0, 32.0, 64.0].map(at);
    let side = |nth: usize| {
        let lists: &[Vec<f64>; 4] = &lists[nth];
        Side::new(Runs::new(|way: Way| &lists[way as usize]), Part::Writing)
    };
    let grown = further([side(0), side(2)], [1, 64]).unwrap();
    let (value, ..) = grown.ratio.unwrap();
    assert!((value - 0.1 / 2.6).abs() < 1e-6, "{value}");
    let straight = slopes([side(0), side(1), side(2)], [1, 32, 64]).unwrap();
    assert_eq!(straight.relation, Relation::Alike);
    let single = each([side(2), side(0)], [64, 1]).unwrap();
    assert_eq!(single.relation, Relation::Less);
}

fn site(rows: &[Row]) -> Site {
    let place = |row: &Row| Place {
        row: *row,
        allowed: vec![0],
        application: Some(0),
        writer: Some(0),
    };
    Site {
        places: rows.iter().map(place).collect(),
        cores: 8,
        monitors: Monitor::ALL.to_vec(),
    }
}

/// Results of a machine with these rows, on which the source is right and Hearth's probes take the
/// same times, and half a nanosecond where the goals speak of them.
fn imagined(rows: &[Row]) -> Results {
    let machine = Machine {
        processor: "an imagined one".into(),
        kernel: String::new(),
        hypervisor: None,
        threads: 16,
        nodes: vec![0, 1],
    };
    let options = MonitoringOptions::default();
    let mut results = Results::new(machine, site(rows), options.clone());
    for experiment in Experiment::ALL {
        for case in cases(experiment, &options, &results.site) {
            let mut cell = Cell::new(case.clone());
            for run in 0..10 {
                let noise = f64::from(run % 5) - 2.0;
                cell.push("mean_ns", mean_ns(&case) + noise);
                if case.way == Way::File {
                    cell.push("bytes_a_call", 181.0);
                    cell.push("emitted", 1_000.0);
                    cell.push("stored", 990.0);
                    cell.push("lost", 10.0);
                    cell.push("emitted_per_s", 1e6);
                    cell.push("stored_per_s", 0.99e6);
                    cell.push("unaccounted", 0.0);
                }
            }
            results.cells.push(cell);
        }
    }
    results
}

fn mean_ns(case: &Case) -> f64 {
    let depth = f64::from(case.depth);
    let writing = match case.row {
        Row::S1 | Row::S2 => 7.3,
        Row::A1 => 14.5,
        Row::A2 | Row::A4 => 2.7,
        Row::A3 | Row::A5 => 1.2,
    };
    let writing = match case.experiment {
        Experiment::Parts | Experiment::Busy => writing,
        Experiment::Depth => 2.5 + 0.1 * depth,
        // It waits for the file.
        Experiment::Saturation if case.depth > 64 => 10.0 * depth,
        Experiment::Saturation => 2.5 + 0.1 * depth,
    };
    let us = match case.way {
        Way::Plain => 0.0,
        Way::Off => 0.1 * depth,
        Way::Nowhere => 1.1 * depth,
        Way::File => 1.1 * depth + writing,
    };
    let faster = match (case.experiment, case.monitor) {
        (Experiment::Busy, Monitor::Hearth) => 40.0,
        _ => 1.0,
    };
    f64::from(case.method_ns) + 1_000.0 + 1e3 * us / faster
}

#[test]
fn a_machine_as_the_sources_gives_its_answers_and_a_small_one_fewer() {
    let large = measured(&imagined(&Row::ALL));
    for verdict in large.verdicts() {
        assert_eq!(
            verdict.answer,
            Answer::Yes,
            "{}: {}",
            verdict.id,
            verdict.because
        );
    }
    let small = measured(&imagined(&[Row::S1, Row::A1, Row::A3, Row::A5]));
    for (id, answer) in [
        ("one-core", Answer::Yes),
        ("neighbour", Answer::Yes),
        ("sync-second-thread", Answer::CannotTell),
        ("second-thread", Answer::CannotTell),
        ("other-processor", Answer::CannotTell),
    ] {
        let verdict = verdict(&small, id);
        assert_eq!(verdict.answer, answer, "{id}: {}", verdict.because);
        if answer == Answer::CannotTell {
            let said = verdict.explained.join(" ");
            assert!(said.contains("This machine lacks it"), "{id}: {said}");
        }
    }
    // Kieker's answers stand below ours.
    let said = verdict(&small, "one-core").explained.join(" ");
    assert!(said.contains("A1, Kieker, one call in 500 µs"), "{said}");
}

#[test]
fn one_record_that_is_missing_is_not_accounted_for() {
    let mut results = imagined(&[Row::S1, Row::A1, Row::A3, Row::A5]);
    let accounted = |results: &Results| verdict(&measured(results), "accounted").answer;
    assert_eq!(accounted(&results), Answer::Yes);
    let cells = results.cells.iter_mut();
    let mut written = cells.filter(|cell| cell.case.way == Way::File);
    written.next().unwrap().push("unaccounted", 1.0);
    assert_eq!(accounted(&results), Answer::No);
}

#[test]
fn the_page_has_every_claim_row_and_loss() {
    let results = imagined(&[Row::S1, Row::A1, Row::A3, Row::A5]);
    let html = page::page(&results);
    for verdict in measured(&results).verdicts() {
        let begin: String = verdict.claim.chars().take(20).collect();
        assert!(html.contains(&begin), "{begin}");
    }
    for words in [
        "not on this machine",
        "has no such writer",
        "14.5 µs",
        "1.00 %",
        "UltraSPARC T2+",
    ] {
        assert!(html.contains(words), "{words}");
    }
    let names: Vec<String> = page::charts(&results)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    for name in ["parts-hearth.svg", "depth-kieker.svg", "saturation.svg"] {
        assert!(names.iter().any(|of| of == name), "{name} in {names:?}");
    }
}

#[test]
fn the_plan_has_the_sources_runs_and_ours() {
    let options = MonitoringOptions::default();
    let site = site(&Row::ALL);
    for experiment in Experiment::ALL {
        let cases = cases(experiment, &options, &site);
        let different: BTreeSet<String> = cases.iter().map(|case| format!("{case:?}")).collect();
        assert_eq!(different.len(), cases.len());
    }
    let parts = cases(Experiment::Parts, &options, &site);
    for row in Row::ALL {
        let of = parts
            .iter()
            .filter(|case| case.row == row && case.monitor == Monitor::Hearth);
        let ways: Vec<Way> = of.map(|case| case.way).collect();
        assert_eq!(ways, Way::ALL);
    }
    assert!(
        parts
            .iter()
            .all(|case| case.method_ns == METHOD_NS && case.depth == 1)
    );
    let deepest = |experiment| {
        let cases = cases(experiment, &options, &site);
        cases.iter().map(|case| case.depth).max()
    };
    assert_eq!(deepest(Experiment::Depth), Some(64));
    assert!(deepest(Experiment::Saturation) > Some(64));
    let laws: BTreeSet<String> = cases(Experiment::Saturation, &options, &site)
        .into_iter()
        .map(|case| case.law)
        .collect();
    assert!(LAWS.iter().all(|law| laws.contains(*law)));
    // Half of a run's calls count.
    assert_eq!(options.calls(METHOD_NS), 4_000);
}

#[test]
fn options_that_would_mix_are_kept_apart() {
    let options = MonitoringOptions::default();
    let quick = MonitoringOptions {
        quick: true,
        ..options.clone()
    };
    assert_eq!(options.differs(&quick), Some("--quick"));
    let longer = MonitoringOptions {
        measure_ms: Some(10),
        ..options.clone()
    };
    assert_eq!(options.differs(&longer), Some("how long runs are"));
    let none = MonitoringOptions {
        repeats: Some(0),
        ..options
    };
    assert!(none.check().is_err());
}
