//! The study of coscheduling: the published findings give the published answers by the rules that
//! judge this machine; the rules on results that are made up; the plan; one program.

use std::collections::BTreeSet;
use std::io::{BufReader, Cursor};

use hearth_studies::coscheduling::instance::{Asked, Record, Way, Work, arguments, serve};
use hearth_studies::coscheduling::plan::{Case, rounds};
use hearth_studies::coscheduling::results::{Cell, Site};
use hearth_studies::coscheduling::verdict::{CLAIMS, as_published, measured};
use hearth_studies::coscheduling::{
    CoschedulingOptions, Experiment, Results, launch, page, published,
};
use hearth_studies::judging::Answer;
use hearth_studies::results::Machine;
use hearth_studies::study::{Case as _, Choice as _};

/// Figures that the study does not measure.
const NOT_HERE: [&str; 3] = ["machines sets/left", "caches sets/left", "energy/predicted"];

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
    let findings = include_str!("../published/coscheduling/findings.csv");
    assert_eq!(published::findings().len(), rows(findings));
    let claims = include_str!("../published/coscheduling/claims.md");
    assert_eq!(CLAIMS.rows().len() + 1, rows(claims));
}

/// Figures of a machine that does as the source says and as we wish.
fn imagined_figures(case: &Case, cpus: usize) -> Vec<(&'static str, f64)> {
    let is_free = case.way == Way::Free;
    let all = 1000.0;
    let rate = match (case.work, case.programs) {
        (Work::Barrier, 1) => all,
        (Work::Barrier, _) if is_free => 0.05 * all,
        // Of half the width, two run side by side.
        (Work::Barrier, _) => all * (cpus / case.threads) as f64,
        (_, 1) => all,
        _ if case.is_isolated => all * 0.95,
        _ => all * 2.0,
    };
    let mut figures = vec![("rate", rate)];
    if case.work == Work::Barrier {
        let together = if is_free && case.programs > 1 {
            0.1
        } else {
            0.9998
        };
        figures.push(("together", together));
        if case.programs > 1 {
            figures.extend([("apart", 1.0), ("skew_us", 2.0), ("skew_99_us", 100.0)]);
        }
    }
    if !is_free {
        figures.push(("conductor_cores", 0.005));
    }
    figures
}

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
    let options = CoschedulingOptions::default();
    let mut results = Results::new(machine, site, options.clone());
    for experiment in Experiment::ALL {
        let rounds = rounds(experiment, &options, cpus);
        for case in rounds.into_iter().flat_map(|round| round.cases) {
            let mut cell = Cell::new(case.clone());
            for run in 0..7 {
                for (figure, value) in imagined_figures(&case, cpus) {
                    // Parts of a whole stay as they are: noise would drown what is missing.
                    let noise = match figure {
                        "rate" => 1.0 + 0.002 * f64::from(run % 3),
                        _ => 1.0,
                    };
                    cell.push(figure, value * noise);
                }
            }
            results.cells.push(cell);
        }
    }
    results
}

#[test]
fn a_machine_that_keeps_the_promises_gives_the_sources_answers() {
    let evidence = measured(&imagined(4));
    for verdict in evidence.verdicts() {
        let wanted = match verdict.id {
            "machines" | "caches" | "energy" => Answer::CannotTell,
            _ => Answer::Yes,
        };
        assert_eq!(
            verdict.answer, wanted,
            "{}: {}",
            verdict.id, verdict.because
        );
    }
    let names: BTreeSet<&str> = evidence.names().chain(NOT_HERE).collect();
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
fn two_cpus_cannot_tell_of_sets_of_half_their_width() {
    let verdicts = measured(&imagined(2)).verdicts();
    let of = |id: &str| verdicts.iter().find(|verdict| verdict.id == id).unwrap();
    assert_eq!(of("width").answer, Answer::CannotTell);
    assert_eq!(of("full").answer, Answer::Yes, "{}", of("full").because);
}

#[test]
fn gangs_that_do_not_help_refute_it() {
    let mut results = imagined(2);
    for cell in &mut results.cells {
        if cell.case.way != Way::Free {
            cell.figures.set("rate", vec![50.0; 7]);
            cell.figures.set("together", vec![0.5; 7]);
        }
    }
    let verdicts = measured(&results).verdicts();
    for id in [
        "simultaneous",
        "busy-waiting",
        "full",
        "ours-ceiling",
        "ours-three",
    ] {
        let found = verdicts.iter().find(|verdict| verdict.id == id).unwrap();
        assert_eq!(found.answer, Answer::No, "{id}: {}", found.because);
    }
}

#[test]
fn the_page_has_every_claim_and_says_what_was_not_run() {
    let results = imagined(2);
    let html = page::page(&results);
    for verdict in measured(&results).verdicts() {
        let begin: String = verdict.claim.chars().take(16).collect();
        assert!(html.contains(&begin), "{begin}");
    }
    assert!(html.contains("not run by the study") && html.contains("cannot be nested"));
    let nothing = Results::new(
        results.about.machine.clone(),
        results.site.clone(),
        CoschedulingOptions::default(),
    );
    assert!(page::page(&nothing).contains("Not measured."));
}

#[test]
fn cases_are_different_and_have_words() {
    let options = CoschedulingOptions::default();
    for cpus in [1, 2, 4, 100] {
        let mut different = BTreeSet::new();
        for experiment in Experiment::ALL {
            let rounds = rounds(experiment, &options, cpus);
            for case in rounds.into_iter().flat_map(|round| round.cases) {
                assert!(different.insert(format!("{experiment:?} {}", case.row())));
                assert!(!case.words().is_empty() && case.threads > 0);
            }
        }
    }
    let longer = CoschedulingOptions {
        measure_ms: Some(5_000),
        ..CoschedulingOptions::default()
    };
    assert_eq!(options.differs(&longer), Some("how long runs are"));
}

#[test]
fn a_program_begins_when_told_and_notes_when_it_ran() {
    for work in Work::ALL {
        let asked = Asked {
            way: Way::Free,
            is_isolated: false,
            work,
            threads: 3,
            milliseconds: 20,
        };
        let mut said = Vec::new();
        serve(&asked, BufReader::new(Cursor::new("go\n")), &mut said).unwrap();
        let said = String::from_utf8(said).unwrap();
        let (ready, json) = said.split_once('\n').unwrap();
        assert_eq!(ready, "ready");
        let record: Record = serde_json::from_str(json).unwrap();
        assert!(record.seconds >= 0.02 && record.rounds > 0, "{work:?}");
        assert_eq!(record.ran.len(), if work == Work::Barrier { 3 } else { 0 });
        assert!(serve(&asked, BufReader::new(Cursor::new("")), Vec::new()).is_err());
        assert!(arguments(&asked).contains(&work.id().to_owned()));
    }
    for way in Way::ALL {
        assert_eq!(Way::named(way.id()), Some(way));
    }
    assert_eq!(Work::named("nonsense"), None);
}

#[test]
fn figures_come_of_the_common_time() {
    let record = |ran: Vec<Vec<(u64, u64)>>| Record {
        rounds: 10,
        seconds: 2.0,
        ran,
        ..Record::default()
    };
    let first = record(vec![vec![(0, 100), (200, 300), (400, 500)]; 2]);
    let second = record(vec![
        vec![(100, 200), (300, 400)],
        vec![(105, 200), (305, 400)],
    ]);
    let figures = launch::figures(&[first.clone(), second]);
    let value = |name: &str| figures.iter().find(|(it, _)| it == name).unwrap().1;
    assert!((value("rate") - 10.0).abs() < 1e-9);
    assert!((value("apart") - 1.0).abs() < 1e-9);
    assert!(value("together") > 0.9 && value("skew_99_us") > 0.0);
    let alone = launch::figures(&[first]);
    assert!(alone.iter().all(|(name, _)| name != "skew_us"));
    assert!(alone.iter().any(|(name, _)| name == "together"));
    let half = launch::figures(&[record(Vec::new())]);
    assert_eq!(half.len(), 1);
}
