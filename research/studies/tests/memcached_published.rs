//! The memcached study's published figures give the published answers by the rules that judge this
//! machine; and made-up results give the answers that they must.

use hearth_studies::claims::Evidence;
use hearth_studies::judging::{Answer, JudgedClaim};
use hearth_studies::memcached::kinds::KINDS;
use hearth_studies::memcached::plan::{Case, OURS, rounds};
use hearth_studies::memcached::ratio::between;
use hearth_studies::memcached::results::{Cell, Site};
use hearth_studies::memcached::verdict::{AUTO, CLAIMS, as_published, measured};
use hearth_studies::memcached::{Experiment, MemcachedOptions, Results, page, published};

fn verdict(evidence: &Evidence, id: &str) -> JudgedClaim {
    let mut verdicts = evidence.verdicts().into_iter();
    verdicts.find(|verdict| verdict.id == id).unwrap()
}

#[test]
fn the_published_figures_give_the_published_answers() {
    for verdict in as_published().verdicts() {
        let JudgedClaim {
            id,
            answer,
            because,
            ..
        } = verdict;
        // Ours has no published answer.
        let expected = if id == AUTO {
            Answer::CannotTell
        } else {
            Answer::Yes
        };
        assert_eq!(answer, expected, "{id}: {because}");
    }
    assert_eq!(
        [70, 75, 80].map(published::gain),
        [1.32, 1.13, 1.01].map(Some)
    );
    assert_eq!(published::findings().len(), 19);
    assert!(published::setup().len() > 10);
}

#[test]
fn few_cores_do_not_refute_what_many_contend_for() {
    let with = |cores, gain| {
        let mut evidence = Evidence::new(&CLAIMS, cores);
        evidence.put("gain 70", gain);
        verdict(&evidence, "gain-30").answer
    };
    let loss = between(0.8, 0.78, 0.82);
    assert_eq!(with(2, loss), Answer::CannotTell);
    assert_eq!(with(32, loss), Answer::No);
    // What is seen is seen, on however few.
    assert_eq!(with(2, between(1.3, 1.25, 1.35)), Answer::Yes);
    assert_eq!(with(2, between(1.15, 1.1, 1.2)), Answer::InPart);
    assert_eq!(with(32, between(1.1, 0.9, 1.3)), Answer::CannotTell);
    // These take no cores.
    let mut evidence = Evidence::new(&CLAIMS, 2);
    evidence.put("plain/lock", between(1.2, 1.1, 1.3));
    assert_eq!(verdict(&evidence, "plain-loses").answer, Answer::No);
    assert_eq!(verdict(&evidence, "spinning").answer, Answer::CannotTell);
}

/// Results of a machine of `cores` cores, by a law for each figure.
fn made_up(cores: usize, law: impl Fn(&Case, &str) -> f64) -> Results {
    let options = MemcachedOptions::default();
    let machine = Default::default();
    let mut results = Results::new(machine, Site::new((0..cores).collect()), options.clone());
    results.about.is_complete = true;
    for experiment in Experiment::ALL {
        for round in rounds(experiment, &options, cores) {
            for case in round.cases {
                let mut cell = Cell::new(case);
                for figure in [
                    "rate",
                    "server_ns",
                    "waits",
                    "section_ticks",
                    "section_percent",
                    "contended_percent",
                ] {
                    for turn in 0..5 {
                        let value = law(&cell.case, figure) * (1.0 + 0.002 * f64::from(turn));
                        cell.push(figure, value);
                    }
                }
                results.cells.push(cell);
            }
        }
    }
    results
}

/// A machine that does what the source says.
fn as_the_source_says(case: &Case, figure: &str) -> f64 {
    let kind = KINDS.iter().find(|kind| kind.id == case.kind).unwrap();
    let threads = f64::from(case.threads);
    let is_message = kind.is_asynchronous();
    match figure {
        "section_ticks" if is_message => 300.0,
        "section_ticks" => 300.0 + 30.0 * threads,
        "rate" if case.experiment == Experiment::Threads => {
            let fall = if is_message { 0.005 } else { 0.01 };
            let beyond = (threads - 16.0).max(0.0);
            let rise = 100.0 * threads.min(16.0) * (1.0 - fall * beyond);
            let gain = published::gain(case.reads).unwrap();
            if case.kind == "auto" {
                return as_the_source_says(
                    &Case {
                        kind: "message".to_owned(),
                        ..case.clone()
                    },
                    figure,
                );
            }
            if is_message {
                rise * 1.4
            } else {
                rise * 1.4 / gain
            }
        }
        "rate" => {
            let optimised = ["zero", "spin", "drain"].map(|id| case.kind.contains(id));
            let count = if case.kind == "message" {
                3
            } else {
                optimised.iter().filter(|is| **is).count()
            };
            match is_message {
                true => 80.0 * 1.15f64.powi(count as i32),
                false => 100.0,
            }
        }
        _ => 10.0,
    }
}

#[test]
fn results_as_the_source_says_reproduce_it() {
    let results = made_up(64, as_the_source_says);
    for JudgedClaim {
        id,
        answer,
        because,
        ..
    } in measured(&results).verdicts()
    {
        assert_eq!(answer, Answer::Yes, "{id}: {because}");
    }
}

#[test]
fn two_cores_say_what_they_cannot_show_and_why() {
    let results = made_up(2, |case, figure| match figure {
        "rate" if case.kind == "message" => 90.0,
        "rate" => 100.0,
        _ => 10.0,
    });
    let evidence = measured(&results);
    let gain = verdict(&evidence, "gain-30");
    assert_eq!(gain.answer, Answer::CannotTell);
    assert!(gain.because.contains("2 cores"), "{}", gain.because);
    let told = gain.explained.join("\n");
    assert!(told.contains("With 2 threads under the lock"), "{told}");
    assert!(told.contains("By memcaslap"), "{told}");
    assert_eq!(
        verdict(&evidence, "optimised-wins").answer,
        Answer::CannotTell
    );
    assert_eq!(verdict(&evidence, "plain-loses").answer, Answer::No);
    assert_eq!(verdict(&evidence, "bound").answer, Answer::Yes);
}

#[test]
fn the_page_and_its_charts_are_drawn_of_much_and_of_nothing() {
    let results = made_up(2, as_the_source_says);
    let html = page::page(&results);
    for text in [
        "the source's gain by message",
        "4.1a: 70/30",
        "4.1c",
        "zero-copy",
        "G10",
        "32 %",
    ] {
        assert!(html.contains(text), "{text}");
    }
    let charts = page::charts(&results);
    assert!(charts.iter().any(|(name, _)| name == "optimisations-4.svg"));
    assert_eq!(charts.len(), 3 * 3 + 1 + 1 + 2);
    let nothing = Results::new(
        Default::default(),
        Site::new(vec![0, 1]),
        MemcachedOptions::default(),
    );
    assert!(page::page(&nothing).contains("Not measured."));
    assert!(page::charts(&nothing).is_empty());
}

#[test]
fn a_case_is_found_again() {
    let results = made_up(2, as_the_source_says);
    let case = Case {
        experiment: Experiment::Sections,
        reads: 0,
        load: OURS.to_owned(),
        threads: 2,
        kind: "lock".to_owned(),
        is_bound: true,
    };
    assert_eq!(results.cell(&case).unwrap().runs("rate").len(), 5);
    assert_eq!(results.threads(Experiment::Sections), [1, 2, 4]);
    assert_eq!(results.mixes(Experiment::Threads), [70, 75, 80]);
}
