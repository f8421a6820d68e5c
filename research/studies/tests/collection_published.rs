//! The study of processors and their collection: the published findings give the published answers
//! by the rules that judge this machine; the rules on results that are made up; the plan; the
//! collectors, which agree with each other and with a search.

use std::collections::BTreeSet;

use hearth_studies::collection::collector::{Way, collect};
use hearth_studies::collection::heap::{HEAD, NULL, World};
use hearth_studies::collection::plan::{Case, rounds};
use hearth_studies::collection::results::{Cell, Site};
use hearth_studies::collection::shapes::{Plan, Shape, build};
use hearth_studies::collection::verdict::{CLAIMS, as_published, measured};
use hearth_studies::collection::{CollectionOptions, Experiment, Results, page, published};
use hearth_studies::judging::Answer;
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
    let findings = include_str!("../published/collection/findings.csv");
    assert_eq!(published::findings().len(), rows(findings));
    let claims = include_str!("../published/collection/claims.md");
    assert_eq!(CLAIMS.rows().len() + 1, rows(claims));
}

/// Results as of a machine on which processors as objects cost so much more.
fn imagined(as_object: f64, combined: f64) -> Results {
    let machine = Machine {
        processor: "an imagined one".into(),
        threads: 2,
        nodes: vec![0],
        ..Machine::default()
    };
    let options = CollectionOptions::default();
    let mut results = Results::new(machine, Site { core: 1 }, options.clone());
    for experiment in Experiment::ALL {
        let rounds = rounds(experiment, &options);
        for case in rounds.into_iter().flat_map(|round| round.cases) {
            let factor = match case.way {
                Way::Objects => 1.0,
                Way::Combined if case.is_half_dead => 0.6,
                Way::Combined => combined,
                Way::CombinedNull => 1.05,
                Way::AsObject => 1.05 * as_object,
            };
            let mut cell = Cell::new(case.clone());
            for run in 0..9 {
                let noise = 1.0 + 0.001 * f64::from(run % 3);
                cell.push("seconds", 1e-7 * case.objects() * factor * noise);
            }
            results.cells.push(cell);
        }
    }
    results
}

#[test]
fn a_machine_as_the_sources_gives_its_answers() {
    let evidence = measured(&imagined(1.09, 1.0));
    for verdict in evidence.verdicts() {
        assert_eq!(
            verdict.answer,
            Answer::Yes,
            "{}: {}",
            verdict.id,
            verdict.because
        );
    }
    let names: BTreeSet<&str> = evidence.names().collect();
    for finding in published::findings() {
        assert!(names.contains(finding.name), "{}", finding.name);
    }
}

#[test]
fn a_machine_that_differs_gives_other_answers() {
    let verdicts = measured(&imagined(1.3, 1.2)).verdicts();
    let answer = |id: &str| verdicts.iter().find(|it| it.id == id).unwrap().answer;
    assert_eq!(answer("same"), Answer::No);
    // More, and not as much as published.
    assert_eq!(answer("as-object"), Answer::InPart);
}

#[test]
fn the_page_has_every_claim_and_structure() {
    let results = imagined(1.09, 1.0);
    let html = page::page(&results);
    for verdict in measured(&results).verdicts() {
        let begin: String = verdict.claim.chars().take(16).collect();
        assert!(html.contains(&begin), "{begin}");
    }
    assert!(html.contains("10000000") && html.contains("A million processors"));
}

#[test]
fn the_plan_reaches_the_sources_sizes_and_fits_into_memory() {
    let options = CollectionOptions::default();
    assert_eq!(options.repeats(), 50);
    let mut all: Vec<Case> = Vec::new();
    for experiment in Experiment::ALL {
        for round in rounds(experiment, &options) {
            let ways: Vec<Way> = round.cases.iter().map(|case| case.way).collect();
            assert_eq!(ways, Way::ALL);
            all.extend(round.cases);
        }
    }
    let rows: BTreeSet<String> = all
        .iter()
        .map(|case| format!("{:?} {}", case.experiment, case.row()))
        .collect();
    assert_eq!(rows.len(), all.len());
    assert!(all.iter().any(|case| case.objects() == 1e7));
    assert!(all.iter().any(|case| case.processors == 1_000_000));
    for case in &all {
        let words = case.shape.words_max(case.size, case.processors, case.way);
        // Marks may have all objects on the stack, and free lists all of them again.
        assert!(6 * words < 8 << 30, "{}", case.row());
    }
    let quick = CollectionOptions {
        quick: true,
        ..CollectionOptions::default()
    };
    assert_eq!(options.differs(&quick), Some("--quick"));
}

/// Live objects and processors, by going round until nothing changes.
fn search(world: &World) -> (usize, usize) {
    let words = &world.heap.words;
    let mut objects: BTreeSet<u32> = BTreeSet::new();
    let mut processors: BTreeSet<usize> = (0..world.processors.len())
        .filter(|number| world.processors[*number].is_basic)
        .collect();
    loop {
        let before = (objects.len(), processors.len());
        objects.extend(&world.roots);
        for number in &processors {
            let processor = &world.processors[*number];
            objects.extend(&world.roots_of[processor.first..processor.last]);
        }
        let mut more: Vec<u32> = Vec::new();
        for object in &objects {
            let (fields, handler) = (words[*object as usize], words[*object as usize + 1]);
            let first = *object as usize + HEAD;
            more.extend(&words[first..first + fields as usize]);
            processors.insert(handler as usize);
        }
        objects.extend(more.into_iter().filter(|object| *object != NULL));
        if before == (objects.len(), processors.len()) {
            return before;
        }
    }
}

#[test]
fn all_ways_find_the_same() {
    for (shape, size) in [
        (Shape::Trees, 4),
        (Shape::Cycles, 2_500),
        (Shape::Links, 600),
    ] {
        for (seed, is_half_dead) in [(1, false), (2, true), (3, true)] {
            for processors in [1, 7, 40] {
                let plan = |way| Plan {
                    shape,
                    size,
                    processors,
                    is_half_dead,
                    way,
                    seed,
                };
                let mut world = build(&plan(Way::Combined));
                let (live, live_processors) = search(&world);
                let all = world.heap.objects;
                let made: u64 = shape.objects(size, processors);
                assert_eq!(
                    all as u64,
                    made + match shape {
                        Shape::Trees => u64::from(processors),
                        _ => 2 * u64::from(processors),
                    }
                );
                let dead_processors = processors as usize - live_processors;
                // Marks are gone after a collection, so that the second finds the same.
                for way in [Way::Combined, Way::Combined] {
                    let found = collect(&mut world, way);
                    assert_eq!((found.live, found.dead), (live, all - live));
                    assert_eq!(found.dead_processors, dead_processors);
                }
                if shape == Shape::Trees && is_half_dead {
                    assert_eq!(dead_processors, processors as usize / 2);
                }
                for way in [Way::CombinedNull, Way::AsObject] {
                    let found = collect(&mut build(&plan(way)), way);
                    assert_eq!((found.live, found.dead), (live, all - live), "{way:?}");
                    assert_eq!(found.dead_processors, dead_processors, "{way:?}");
                }
                let objects = collect(&mut build(&plan(Way::Objects)), Way::Objects);
                assert!(objects.live >= live && objects.dead_processors == 0);
            }
        }
    }
}
