//! The multi-core study's published figures give the published answers by the rules that judge this
//! machine; the rules by themselves; the loads as the source has them.

use std::collections::BTreeSet;

use hearth_studies::claims::Evidence;
use hearth_studies::insense_multicore::defects::DEFECTS;
use hearth_studies::insense_multicore::layouts::Hand;
use hearth_studies::insense_multicore::plan::rounds;
use hearth_studies::insense_multicore::published;
use hearth_studies::insense_multicore::verdict::{CLAIMS, as_published};
use hearth_studies::insense_multicore::workloads::{Load, Workload};
use hearth_studies::insense_multicore::{Experiment, InsenseMulticoreOptions};
use hearth_studies::judging::{Answer, Figure, Relation};

fn answer(evidence: &Evidence, id: &str) -> Answer {
    let verdicts = evidence.verdicts();
    verdicts
        .iter()
        .find(|verdict| verdict.id == id)
        .unwrap()
        .answer
}

#[test]
fn the_published_figures_give_the_published_answers() {
    for verdict in as_published().verdicts() {
        assert_eq!(
            verdict.answer,
            Answer::Yes,
            "{}: {}",
            verdict.id,
            verdict.because
        );
    }
}

#[test]
fn the_published_misses_are_first_touches() {
    let table = published::misses();
    assert_eq!(table.len(), 6);
    let of = |placement, heaps| {
        let found = table
            .iter()
            .find(|row| row.placement == placement && row.heaps == heaps);
        *found.unwrap()
    };
    for (placement, less) in [("os", 31.2), ("single", 31.1), ("spread", 30.3)] {
        let (shared, private) = (of(placement, "shared"), of(placement, "private"));
        let percent = 100.0 * (1.0 - private.d1() / shared.d1());
        assert!((percent - less).abs() < 0.06, "{placement}: {percent}");
        // What misses in the first level misses in the last.
        assert!(shared.d1() - shared.ll_data < 20.0 && private.d1() - private.ll_data < 20.0);
        // Writes make the difference.
        let writes = shared.d1_write - private.d1_write;
        assert!(writes / (shared.d1() - private.d1()) > 0.96);
    }
}

#[test]
fn ratios_stand_to_each_other_by_their_intervals() {
    for (value, low, high, relation) in [
        (1.05, 0.9, 1.2, Relation::Alike),
        (1.05, 1.01, 1.08, Relation::Alike),
        (1.5, 1.2, 1.8, Relation::More),
        (1.5, 0.9, 2.4, Relation::Unclear),
        (0.6, 0.5, 0.7, Relation::Less),
    ] {
        assert_eq!(Relation::of(value, low, high), relation, "{value}");
    }
    let figure = Figure::of_runs(&[2.0, 2.2, 1.8], &[1.0, 1.1, 0.9]).unwrap();
    assert_eq!(figure.relation, Relation::More);
    assert_eq!(figure.ratio.unwrap().0, 2.0);
    assert_eq!(Figure::of_runs(&[], &[1.0]), None);
}

#[test]
fn a_claim_needs_its_direction_and_its_size() {
    let with = |cores, name: &str, figure| {
        let mut evidence = Evidence::new(&CLAIMS, cores);
        evidence.put(name, figure);
        evidence
    };
    let sixteen = "alloc-4 shared/private";
    let four = |figure| answer(&with(4, sixteen, figure), "alloc-four");
    assert_eq!(four(Figure::between(14.0, 12.0, 17.0)), Answer::Yes);
    assert_eq!(four(Figure::between(3.0, 2.0, 4.0)), Answer::InPart);
    assert_eq!(four(Figure::between(1.4, 0.8, 2.0)), Answer::CannotTell);
    assert_eq!(four(Figure::between(0.5, 0.4, 0.6)), Answer::No);
    assert_eq!(
        answer(&Evidence::new(&CLAIMS, 4), "alloc-four"),
        Answer::CannotTell
    );
    let mut misses = Evidence::new(&CLAIMS, 4);
    for placement in ["os", "single", "spread"] {
        misses.put(
            &format!("misses private/shared {placement}"),
            Figure::exact(0.88),
        );
    }
    assert_eq!(answer(&misses, "misses"), Answer::InPart);
    // Two cores cannot be four times as fast as one.
    let mut two = with(
        2,
        "no-communication single/os",
        Figure::between(1.9, 1.8, 2.0),
    );
    two.put("no-communication spread/os", Figure::exact(1.0));
    assert_eq!(answer(&two, "no-communication"), Answer::InPart);
}

#[test]
fn the_defects_are_all_answered() {
    let ids: Vec<&str> = DEFECTS.iter().map(|defect| defect.id).collect();
    assert_eq!(ids.first(), Some(&"D1"));
    assert_eq!((ids.len(), ids.last()), (13, Some(&"D13")));
}

#[test]
fn loads_have_the_sources_parameters() {
    let options = InsenseMulticoreOptions::default();
    let load = |workload| options.loads(workload).pop().unwrap();
    assert_eq!(load(Workload::Alloc).passes, 5_000);
    assert_eq!(load(Workload::Cache).passes, 50_000);
    let servers = load(Workload::ClientServer);
    assert_eq!(
        (servers.parts().len(), servers.passes, servers.rounds),
        (15, 100, 100)
    );
    assert_eq!(load(Workload::NoCommunication).rounds, 1000);
    for experiment in Experiment::ALL {
        for (_, round) in rounds(experiment, &options) {
            let different: BTreeSet<String> =
                round.cases.iter().map(|case| format!("{case:?}")).collect();
            assert_eq!(different.len(), round.cases.len(), "{experiment:?}");
        }
    }
}

fn of(workload: Workload) -> Load {
    InsenseMulticoreOptions::default()
        .loads(workload)
        .pop()
        .unwrap()
}

#[test]
fn layouts_by_hand_are_the_sources() {
    let four = [0, 1, 2, 3];
    let pairs = of(Workload::SenderReceiver);
    // Both senders, then both receivers.
    assert_eq!(Hand::Together.cores(&pairs, &four), [0, 1, 0, 1]);
    assert_eq!(Hand::Apart.cores(&pairs, &four), [0, 2, 1, 3]);
    let servers = of(Workload::ClientServer);
    let apart = Hand::Apart.cores(&servers, &four);
    assert_eq!([apart[0], apart[5], apart[10]], [0, 1, 2]);
    assert!((0..15).filter(|k| k % 5 != 0).all(|k| apart[k] == 3));
    assert_eq!(Hand::Together.cores(&servers, &four)[5..10], [1; 5]);
    let workers = of(Workload::DispatchWorker);
    let apart = Hand::Apart.cores(&workers, &four);
    assert_eq!([apart[0], apart[5], apart[10]], [3, 3, 3]);
    assert!(
        [0, 1, 2]
            .iter()
            .all(|core| apart.iter().filter(|c| *c == core).count() == 4)
    );
    // With fewer cores all have a place.
    assert!(
        Hand::Apart
            .cores(&servers, &[7])
            .iter()
            .all(|core| *core == 7)
    );
    assert_eq!(Hand::Apart.cores(&servers, &[4, 9])[..2], [4, 9]);
}

#[test]
fn texts_are_those_of_the_workloads_with_other_sizes() {
    for workload in Workload::ALL {
        let load = of(workload);
        let plain = load.insense(None, &[0, 1]);
        assert!(!plain.contains("setCore"), "{plain}");
        let bound = load.insense(Some(Hand::Apart), &[0, 1]);
        let components = bound.matches("\ncomponent ").count();
        assert_eq!(
            bound.matches("setCore(core)").count(),
            components,
            "{bound}"
        );
        assert_eq!(
            bound.matches(" = new ").count() - plain.matches(" = new ").count(),
            0
        );
    }
    let mut small = of(Workload::Alloc);
    small.rows = 7;
    let text = small.insense(None, &[0]);
    assert!(
        text.contains("new integer[7][5]") && text.contains("pass % 7"),
        "{text}"
    );
}
