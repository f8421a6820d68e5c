//! The message-passing study's published findings give the published answers by the rules that
//! judge this machine; the rules on made-up results; what costs predict; the walks' references.

use std::collections::BTreeMap;

use hearth_studies::claims::Evidence;
use hearth_studies::judging::{Answer, JudgedClaim, Relation};
use hearth_studies::message_passing::costs::Costs;
use hearth_studies::message_passing::distances::traced;
use hearth_studies::message_passing::engine::experiments::Sizes;
use hearth_studies::message_passing::engine::{Config, Defects};
use hearth_studies::message_passing::evidence::{Slopes, as_published, measured};
use hearth_studies::message_passing::options::{DEFECTS, set_defect};
use hearth_studies::message_passing::plan::{Case, Fit, rounds};
use hearth_studies::message_passing::results::{BUSY, CYCLES, Cell, RATE, Site};
use hearth_studies::message_passing::{
    Experiment, MessagePassingOptions, Results, page, published,
};
use hearth_studies::results::Machine;
use hearth_studies::study::Choice;
use hearth_sync::Mode;

/// A first cache of 512 lines at 1 ns, a second at 4 ns.
fn costs() -> Costs {
    Costs {
        caches: vec![32_768.0, 1_048_576.0],
        curve: vec![
            (1024.0, 1.0),
            (32_768.0, 1.0),
            (32_769.0, 4.0),
            (1_048_576.0, 4.0),
        ],
        transfer_ns: 40.0,
        hand_over_ns: 50.0,
    }
}

fn empty(cores: usize) -> Results {
    let machine = Machine {
        processor: "made up".into(),
        kernel: String::new(),
        hypervisor: None,
        threads: cores,
        nodes: vec![0],
    };
    let site = Site {
        cores: (0..cores).collect(),
        cache_lines: 512,
        second_cache_lines: Some(16_384),
        costs: Some(costs()),
        ..Site::default()
    };
    Results::new(machine, site, MessagePassingOptions::default())
}

/// Results of a machine that does exactly what its costs predict, in three runs that differ by a
/// hundredth.
fn as_predicted(cores: usize, experiments: &[Experiment]) -> Results {
    let mut results = empty(cores);
    for &experiment in experiments {
        for round in rounds(experiment, &MessagePassingOptions::default(), cores, 512) {
            for case in round.cases {
                let cell = predicted(case);
                if !results.cells.iter().any(|known| known.case == cell.case) {
                    results.cells.push(cell);
                }
            }
        }
    }
    results
}

fn predicted(case: Case) -> Cell {
    let expected = costs().expect(&case.config);
    let mut cell = Cell::new(case);
    let threads = cell.case.config.threads as f64;
    for factor in [0.99, 1.0, 1.01] {
        let mut push = |name: &str, value: f64| cell.figures.push(name, value * factor);
        push(RATE, expected.rate);
        // Everybody looks all the while.
        push(CYCLES, 2e9 * threads / expected.rate);
        push(BUSY, if expected.is_saturated { 99.0 } else { 50.0 });
    }
    cell
}

fn answers(evidence: &Evidence) -> BTreeMap<&'static str, JudgedClaim> {
    let verdicts = evidence.verdicts();
    verdicts
        .into_iter()
        .map(|verdict| (verdict.id, verdict))
        .collect()
}

#[test]
fn the_published_findings_give_the_published_answers() {
    for verdict in as_published().verdicts() {
        let because = &verdict.because;
        assert_eq!(verdict.answer, Answer::Yes, "{}: {because}", verdict.id);
    }
}

#[test]
fn every_line_of_the_findings_is_read_and_the_numbers_are_the_sources() {
    let text = include_str!("../published/message-passing/findings.csv");
    let findings = published::findings();
    assert_eq!(findings.len() + 1, text.lines().count());
    let numbers: Vec<f64> = findings
        .iter()
        .filter_map(|finding| finding.figure.ratio.map(|(value, ..)| value))
        .collect();
    assert_eq!(numbers, [3.0, 0.77]);
    assert!(findings.iter().all(|finding| finding.place.contains("3.")));
    let of = |name| findings.iter().find(|finding| finding.name == name);
    let gain = of("displacement best message/lock").unwrap();
    assert_eq!(gain.figure.relation, Relation::More);
}

/// Checks that with sixteen cores the model shows what the source saw: three times, the edge, level
/// lines by message.
#[test]
fn a_machine_as_the_source_thinks_of_it_gives_its_answers() {
    let experiments = [Experiment::Displacement, Experiment::Invalidation];
    let results = as_predicted(16, &experiments);
    let verdicts = answers(&measured(&results));
    for claim in ["gain", "line", "edge", "lock-falls", "message-flat"] {
        let verdict = &verdicts[claim];
        assert_eq!(verdict.answer, Answer::Yes, "{claim}: {}", verdict.because);
    }
    assert!(verdicts["gain"].because.contains("best message/lock 3."));
    // It has more to send than the server takes long before that is busy.
    assert_eq!(verdicts["message-rises"].answer, Answer::InPart);
    // More threads make it likelier that another one has modified a line, and all wait for the
    // section.
    assert_eq!(verdicts["thrashing"].answer, Answer::InPart);
    let words = verdicts["thrashing"].explained.join(" ");
    assert!(
        words.contains(
            "With 63 modified lines internal thrashing: throughput is highest with 4 threads"
        ),
        "{words}"
    );
    assert!(
        words.contains("finds no fall from 2 to 12 threads"),
        "{words}"
    );
}

#[test]
fn with_two_cores_nothing_is_said_of_more() {
    let experiments = [
        Experiment::Displacement,
        Experiment::Invalidation,
        Experiment::MessageSize,
    ];
    let results = as_predicted(2, &experiments);
    let verdicts = answers(&measured(&results));
    for claim in ["gain", "thrashing", "message-rises"] {
        assert_eq!(verdicts[claim].answer, Answer::CannotTell, "{claim}");
    }
    // What one loop and one server show.
    for claim in ["line", "edge"] {
        let verdict = &verdicts[claim];
        assert_eq!(verdict.answer, Answer::Yes, "{claim}: {}", verdict.because);
    }
    let gain = verdicts["gain"].explained.join(" ");
    assert!(gain.contains("With 10 cores of this kind"), "{gain}");
    assert_eq!(verdicts["lock-falls"].answer, Answer::InPart);
    let slopes = Slopes::of(&results, Fit::Machine, 2);
    assert!((slopes.lock.unwrap() - 4.0).abs() < 0.3, "{slopes:?}");
    assert!((slopes.message.unwrap() - 1.0).abs() < 0.1, "{slopes:?}");
    let html = page::page(&results);
    for figure in [
        "3.5a", "3.5b", "3.6a", "3.6b", "3.6c", "3.6d", "3.7a", "3.7b",
    ] {
        assert!(html.contains(&format!("Figure {figure}")), "{figure}");
    }
    // Each with the machine's sizes and the source's.
    assert_eq!(page::charts(&results).len(), 16);
}

#[test]
fn nothing_measured_is_said_to_be_so() {
    for verdict in measured(&empty(2)).verdicts() {
        assert_eq!(verdict.answer, Answer::CannotTell, "{}", verdict.id);
        assert!(
            verdict.because.contains("not measured"),
            "{}",
            verdict.because
        );
    }
    assert!(page::page(&empty(2)).contains("Not measured"));
}

#[test]
fn costs_lie_on_the_curve_and_add_up() {
    let costs = costs();
    assert_eq!(costs.load_ns(1), 1.0);
    assert_eq!(costs.load_ns(512), 1.0);
    assert_eq!(costs.load_ns(600), 4.0);
    assert_eq!(costs.load_ns(1 << 20), 4.0);
    assert_eq!(costs.lines(1), Some(512));
    assert_eq!(costs.lines(3), None);
    let config = |mode, threads, modified_lines| Config {
        mode,
        threads,
        modified_lines,
        local_lines: 1024,
        section_lines: 128,
        message_bytes: 0,
        ..Config::default()
    };
    let alone = costs.expect(&config(Mode::Lock, 1, 0));
    assert_eq!((alone.local_ns, alone.section_ns), (4096.0, 512.0));
    assert!((alone.rate - 1e9 / 4608.0).abs() < 1.0);
    // Half of the passes follow one of the other thread.
    let two = costs.expect(&config(Mode::Lock, 2, 100));
    assert_eq!(two.section_ns, 512.0 + 100.0 * 0.5 * 36.0);
    let message = costs.expect(&config(Mode::Message, 2, 100));
    assert_eq!(message.section_ns, 128.0);
    assert!((message.rate - 1e9 / (4096.0 + 128.0 + 100.0)).abs() < 1.0);
    // Twenty clients are more than one server can serve.
    let many = costs.expect(&config(Mode::Message, 41, 0));
    assert!(many.is_saturated);
    assert!((many.rate - 1e9 / 178.0).abs() < 1.0);
}

/// A pass under the lock walks both data: each reference of the section is as far apart as both
/// are large. By message the section's stay in the first cache of the server.
#[test]
fn walks_are_displaced_under_the_lock_and_not_by_message() {
    let all = traced(Sizes::CacheLines(64), &[64, 1024], 2, 1).unwrap();
    let of = |experiment: &str, mode: &str, most: bool| {
        let mut found = all
            .iter()
            .filter(|traced| traced.experiment == experiment && traced.mode == mode);
        let found = if most {
            found.next_back()
        } else {
            found.next()
        };
        found.unwrap().clone()
    };
    let lock = of("displacement", "lock", false);
    assert!(lock.displacement[0].starts_with("data displacement in L1d (64 lines)"));
    assert_eq!(lock.misses[0].2, 1.0);
    let message = of("displacement", "message", false);
    assert!(
        message.displacement.is_empty(),
        "{:?}",
        message.displacement
    );
    // Its first pass of twelve, two of each iteration, touches lines first.
    assert!(message.misses[0].2 < 0.2, "{:?}", message.misses);
    let lock = of("invalidation", "lock", true);
    assert!(lock.invalidation[0].starts_with("data invalidation:"));
    assert!(of("invalidation", "message", true).invalidation.is_empty());
    assert!(of("invalidation", "lock", false).invalidation.is_empty());
}

#[test]
fn the_plan_has_the_sources_threads_as_far_as_there_are_cores() {
    let threads = |experiment, cores| {
        let mut threads: Vec<usize> =
            rounds(experiment, &MessagePassingOptions::default(), cores, 512)
                .iter()
                .flat_map(|round| &round.cases)
                .filter(|case| case.config.mode == Mode::Message)
                .map(|case| case.config.threads)
                .collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    };
    assert_eq!(threads(Experiment::Displacement, 2), [2]);
    assert_eq!(threads(Experiment::Displacement, 24), [10]);
    assert_eq!(threads(Experiment::Invalidation, 6), [2, 4, 6]);
    assert_eq!(threads(Experiment::Invalidation, 24), [2, 4, 8, 12]);
    assert_eq!(threads(Experiment::MessageSize, 8), [5, 8]);
    let quick = MessagePassingOptions {
        quick: true,
        ..MessagePassingOptions::default()
    };
    let displacement = rounds(Experiment::Displacement, &quick, 2, 512);
    assert!(displacement.iter().all(|round| round.cases.len() == 3));
    assert_eq!(displacement.last().unwrap().cases[0].x, 1024);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let with = |options: MessagePassingOptions| options.check().map_err(|error| error.to_string());
    for (options, words) in [
        (
            MessagePassingOptions {
                threads: vec![1],
                ..MessagePassingOptions::default()
            },
            "ask for 2 to 64",
        ),
        (
            MessagePassingOptions {
                seconds: Some(0.0),
                ..MessagePassingOptions::default()
            },
            "ask for 0.01 to 3600",
        ),
        (
            MessagePassingOptions {
                repeats: Some(0),
                ..MessagePassingOptions::default()
            },
            "ask for 1 to 1000",
        ),
    ] {
        let error = with(options).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    let mut defects = Defects::default();
    for (name, _) in DEFECTS {
        set_defect(&mut defects, name).unwrap();
    }
    assert!(defects.power_of_two_mask && defects.head_unmodified);
    let error = set_defect(&mut defects, "cliff").unwrap_err().to_string();
    assert!(error.contains("choose from power-of-two-mask"), "{error}");
}
