//! The study of transactions: the published findings give the published answers by the rules that
//! judge this machine; the equivalence test; the rules on results that are made up; the plan.

use std::collections::BTreeSet;

use hearth_studies::judging::{Answer, JudgedClaim, Relation};
use hearth_studies::results::Machine;
use hearth_studies::study::{Case as _, Choice as _};
use hearth_studies::transactions::equivalence::Deviation;
use hearth_studies::transactions::launch::{Asked, figures};
use hearth_studies::transactions::plan::{Case, rounds};
use hearth_studies::transactions::results::{Cell, Site};
use hearth_studies::transactions::verdict::{CLAIMS, as_published, measured};
use hearth_studies::transactions::{Experiment, Results, TransactionsOptions, page, published};
use hearth_transactions::contender::CONTENDERS;
use hearth_transactions::kernels::Name;

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
    let findings = include_str!("../published/transactions/findings.csv");
    assert_eq!(published::findings().len(), rows(findings));
    let figures = include_str!("../published/transactions/figures.csv");
    assert_eq!(published::figures().len(), rows(figures));
    let claims = include_str!("../published/transactions/claims.md");
    assert_eq!(CLAIMS.rows().len() + 1, rows(claims));
}

#[test]
fn equivalence_has_to_be_shown() {
    let base = [100.0; 30];
    let around = |centre: f64, spread: f64| -> Vec<f64> {
        let run = |run: i32| 100.0 * (1.0 + centre + spread * f64::from(run % 3 - 1));
        (0..30).map(run).collect()
    };
    let close = Deviation::of(&around(0.01, 0.03), &base).unwrap();
    assert!(close.is_within(0.05));
    assert_eq!(close.against(0.05).relation, Relation::Less);
    // The same mean from runs that differ wildly shows nothing.
    let wild = Deviation::of(&around(0.01, 0.5), &base).unwrap();
    assert!(!wild.is_within(0.05));
    assert_eq!(wild.against(0.05).relation, Relation::Unclear);
    let far = Deviation::of(&around(-0.3, 0.03), &base).unwrap();
    assert!(far.high < 0.0);
    assert_eq!(far.against(0.15).relation, Relation::More);
    assert_eq!(Deviation::of(&[1.0, 2.0], &[1.0, 1.0]), None);
    assert_eq!(Deviation::of(&[1.0; 9], &[0.0; 9]), None);
}

/// Results as the source's machine gave them, with what it does not say made up to fit.
fn imagined(cores: usize) -> Results {
    let machine = Machine {
        processor: "an imagined one".into(),
        kernel: String::new(),
        hypervisor: None,
        threads: cores,
        nodes: vec![0],
    };
    let site = Site {
        cores: (0..cores).collect(),
    };
    let mut results = Results::new(machine, site, TransactionsOptions::default());
    let options = TransactionsOptions::default();
    for experiment in Experiment::ALL {
        for case in rounds(experiment, &options, cores)
            .into_iter()
            .flat_map(|it| it.cases)
        {
            let mut cell = Cell::new(case.clone());
            for run in 0..9 {
                let noise = 1.0 + 0.002 * f64::from(run % 3);
                for (figure, value) in imagined_figures(&case) {
                    cell.push(figure, noise * value);
                }
            }
            results.cells.push(cell);
        }
    }
    results
}

fn imagined_figures(case: &Case) -> Vec<(&'static str, f64)> {
    let alone = if case.threads == 1 { 1.3 } else { 1.0 };
    // Throughput, deviation of aborts, bytes and memory.
    let (rate, deviation, bytes, memory) = match case.tracing.as_str() {
        "untraced" | "silent" | "seen" => (1.0, 0.0, 0.0, 1.2),
        "hearth-reduced" => (0.95, 0.01, 8.0, 20.0),
        "hearth-full" => (0.92, -0.02, 20.0, 20.0),
        "hearth-reduced-zstd" | "hearth-full-zstd" => (0.9, 0.02, 5.0, 20.0),
        "reduced-bin10k" => (0.9, 0.05, 68.0, 1.8),
        "reduced-lz4-3ct" => (0.8, 0.05, 68.0 / 3.94, 3.0),
        "reduced-zstd" => (0.6, 0.3, 68.0 / 8.63, 3.0),
        "full-bin1m" => (0.8, 0.05, 4000.0, 70.0),
        "full-lz4-1ct" => (0.45, 0.3, 4000.0 / 7.82, 3.0),
        "full-lz4-2ct" => (0.6, 0.1, 4000.0 / 7.82, 3.0),
        "full-lz4-3ct" => (0.65 * alone, 0.1, 4000.0 / 7.82, 3.0),
        "full-zstd" => (0.5, 0.5, 4000.0 / 10.79, 3.0),
        "outside-reduced" => (0.22, 0.6, 4000.0, 1.5),
        "outside-full" => (0.02, 0.9, 4000.0, 1.5),
        _ => (0.8, 0.05, 4000.0, 1.8),
    };
    let is_labyrinth = case.program == Name::Labyrinth.id();
    let speed = match case.tracing.as_str() {
        "full-bin1m" if is_labyrinth => 1.3,
        // On the disk of the source's machine.
        "full-bin10k" if case.experiment == Experiment::Kernels => 0.65 / 5.51,
        _ => rate,
    };
    // The bank's example is of other sizes than the mean of the programs.
    let bytes = match case.tracing.as_str() {
        "full-lz4-3ct" if case.experiment == Experiment::Bank => 4000.0 / 29.5,
        _ => bytes,
    };
    vec![
        ("rate", 1e6 * rate),
        ("seconds", 1.0 / speed),
        ("aborts", 0.1 * (1.0 + deviation)),
        ("bytes_a_txn", bytes),
        ("bytes", 1e5 * bytes),
        ("grown_kib", 1024.0 * memory),
    ]
}

#[test]
fn a_machine_as_the_sources_gives_its_answers() {
    let evidence = measured(&imagined(24));
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
    for finding in published::findings() {
        assert!(names.contains(finding.name), "{}", finding.name);
    }
    for figure in published::figures() {
        let ours = figure.ours.map(|name| {
            let words = hearth_studies::transactions::figures::in_words(&imagined(24), name);
            assert!(words.is_some(), "{name}");
        });
        assert!(ours.is_some() || figure.what.contains("misses") || figure.value.contains('e'));
    }
}

#[test]
fn few_cores_decide_fewer_claims() {
    let verdicts = measured(&imagined(2)).verdicts();
    let told = verdicts.iter().find(|it| it.id == "few-threads").unwrap();
    assert_eq!(told.answer, Answer::CannotTell);
}

#[test]
fn the_page_has_every_claim_and_figure() {
    let results = imagined(2);
    let html = page::page(&results);
    for verdict in measured(&results).verdicts() {
        let begin: String = verdict.claim.chars().take(16).collect();
        assert!(html.contains(&begin), "{begin}");
    }
    assert!(html.contains("4,607 MB to 156 MB") && html.contains("simulators"));
    let names: Vec<String> = page::charts(&results)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["bank.svg", "kernels.svg"]);
}

#[test]
fn the_plan_has_all_ways_and_programs() {
    let options = TransactionsOptions::default();
    let mut ways = BTreeSet::new();
    let mut different = BTreeSet::new();
    for experiment in Experiment::ALL {
        for case in rounds(experiment, &options, 2)
            .into_iter()
            .flat_map(|it| it.cases)
        {
            assert!(different.insert(format!("{experiment:?} {}", case.row())));
            ways.insert(case.tracing);
        }
    }
    assert_eq!(ways.len(), CONTENDERS.len());
    assert_eq!(options.repeats(), 30);
    let longer = TransactionsOptions {
        measure_ms: Some(5_000),
        ..TransactionsOptions::default()
    };
    assert_eq!(options.differs(&longer), Some("how long runs are"));
}

#[test]
fn a_run_has_its_figures() {
    let asked = |tracing: &str, program: &str| Asked {
        tracing: tracing.into(),
        program: program.into(),
        threads: 2,
        seed: 1,
        milliseconds: 5,
        is_small: true,
        folder: None,
    };
    for (tracing, program) in [
        ("untraced", "bank"),
        ("hearth-full", "bank"),
        ("reduced-lz4-3ct", "genome"),
        ("hearth-reduced-zstd", "yada"),
    ] {
        let found = figures(&asked(tracing, program)).unwrap();
        assert!(found["rate"] > 0.0 && found["lost"] == 0.0, "{found:?}");
        assert_eq!(found["bytes"] > 0.0, tracing != "untraced");
    }
    assert!(figures(&asked("nonsense", "bank")).is_err());
    assert!(figures(&asked("untraced", "nonsense")).is_err());
}
