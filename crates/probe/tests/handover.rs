//! Messages between threads: each request returns a sensible figure, or a reason.

use std::sync::atomic::AtomicBool;

use hearth_probe::ProbeError;
use hearth_probe::handover::{
    BYTES_MAX, BYTES_MIN, Carrier, Effort, Flow, Point, Points, Request, for_fitting, grid, points,
    sizes,
};
use hearth_probe::statistics::Measured;
use hearth_sys::{Fake, System};

const EFFORT: Effort = Effort {
    seconds: 10.0,
    rounds: 2,
    seed: 3,
};

/// A tenth of a second for each look at the clock, whatever it is on the real machine: each visit
/// takes a few looks.
fn machine(cores: &[usize]) -> Fake {
    Fake::with_cores(cores).with_slow_clock(100_000_000)
}

fn measure(system: &dyn System, requests: &[Request]) -> Points {
    let cancel = AtomicBool::new(false);
    let mut told = Vec::new();
    let found = points(system, requests, EFFORT, &cancel, &mut |f| told.push(f)).unwrap();
    assert!(told.iter().all(|share| (0.0..=1.0).contains(share)) && told.is_sorted());
    found
}

#[test]
fn every_carrier_and_flow_gives_a_point() {
    let mut requests = grid(&[[0, 0], [0, 1]], &[64, 4096]);
    assert_eq!(requests.len(), 8);
    for carrier in [Carrier::Threads, Carrier::Spin] {
        for depth in [1, 3] {
            requests.push(Request {
                bytes: 1000,
                cores: [1, 0],
                carrier,
                flow: Flow::Streaming { depth },
            });
        }
    }
    let found = measure(&machine(&[0, 1]), &requests);
    assert!(found.missing.is_empty(), "{:?}", found.missing);
    assert_eq!(found.points.len(), requests.len());
    for (point, request) in found.points.iter().zip(&requests) {
        assert_eq!(point.request.cores, request.cores);
        assert_eq!(point.request.bytes, request.bytes.next_multiple_of(64));
        let ns = point.exchange_ns;
        assert!(ns.value > 0.0 && ns.covers(ns.value) && ns.samples > 0);
    }
}

/// Each relation between two threads occurs once, and nothing that is held out.
#[test]
fn fitting_asks_for_every_relation() {
    let machine = hearth_machine::synthetic::parse("2 packages, 2 cores, 2 threads").unwrap();
    let requests = for_fitting(Some(&machine), &[0, 1, 2, 3, 4, 5, 6, 7]);
    let mut others: Vec<usize> = requests.iter().map(|request| request.cores[1]).collect();
    others.sort_unstable();
    others.dedup();
    // Itself, its sibling, another core, another package.
    assert_eq!(others, [0, 1, 2, 4]);
    assert!(requests.iter().all(|request| request.cores[0] == 0));
    let judges = requests.iter().filter(|request| {
        let point = Point {
            request: **request,
            exchange_ns: Measured {
                value: 1.0,
                low: 1.0,
                high: 1.0,
                samples: 1,
                discarded: 0,
            },
        };
        point.is_held_out()
    });
    assert_eq!(judges.count(), 0);
    let alone = for_fitting(None, &[3]);
    assert!(alone.iter().all(|request| request.cores == [3, 3]));
    assert_eq!(for_fitting(None, &[3, 5]).last().unwrap().cores, [3, 5]);
    assert!(for_fitting(None, &[]).is_empty());
}

#[test]
fn sizes_double_from_a_line_to_64_mebibytes() {
    let sizes = sizes();
    assert_eq!((sizes[0], sizes.len()), (BYTES_MIN, 21));
    assert_eq!(sizes.last(), Some(&BYTES_MAX));
    let exchange_ns = Measured {
        value: 1.0,
        low: 1.0,
        high: 1.0,
        samples: 1,
        discarded: 0,
    };
    let held_out = |bytes: u64| {
        let request = Request {
            bytes,
            cores: [0, 1],
            carrier: Carrier::Spin,
            flow: Flow::Alternating,
        };
        let point = Point {
            request,
            exchange_ns,
        };
        point.is_held_out()
    };
    let judged = sizes.iter().filter(|&&bytes| held_out(bytes)).count();
    assert_eq!(judged, 10);
    assert!(!held_out(64) && held_out(128) && held_out(32 << 20) && !held_out(64 << 20));
}

#[test]
fn refusals_leave_the_other_points() {
    let system = machine(&[0, 1]).offline_after(1, 0);
    let mut requests = grid(&[[0, 0], [0, 1]], &[64]);
    requests.push(Request {
        carrier: Carrier::Worker,
        ..requests[0]
    });
    let found = measure(&system, &requests);
    assert_eq!(found.points.len(), 2);
    assert!(found.points.iter().all(|p| p.request.cores == [0, 0]));
    let said = |what: &str| found.missing.iter().any(|why| why.contains(what));
    assert!(said("core 1") && said("workers"), "{:?}", found.missing);
}

#[test]
fn time_ends_and_says_what_is_left() {
    let requests = grid(&[[0, 0]], &sizes()[..6]);
    let system = Fake::with_cores(&[0]).with_slow_clock(2_000_000_000);
    let found = measure(&system, &requests);
    assert!(found.points.len() < requests.len());
    assert!(
        found
            .missing
            .iter()
            .any(|why| why.contains("the 10 s were over"))
    );
}

#[test]
fn whoever_cancels_gets_nothing() {
    let cancel = AtomicBool::new(true);
    let requests = grid(&[[0, 0]], &[64]);
    let result = points(&machine(&[0]), &requests, EFFORT, &cancel, &mut |_| {});
    assert_eq!(result.unwrap_err(), ProbeError::Cancelled);
}
