//! Calls without a guard: missing ends, ends in another order, jumps, switches.
//!
//! One test, as a process has one monitor at a time.

use std::sync::Barrier;
use std::thread;

use hearth_monitor::unguarded::{Frame, begin, end, try_quietly};
use hearth_monitor::{Destination, Monitor, Options, Probe, Rule};

static A: Probe = Probe::new("unguarded.a");
static B: Probe = Probe::new("unguarded.b");
static C: Probe = Probe::new("unguarded.c");

/// Runs an action with all probes on, and returns the number of records.
fn records(action: impl FnOnce(&Monitor)) -> u64 {
    let mut options = Options::to(Destination::Memory).on("*");
    // It takes a while to look through so many rules.
    for number in 0..300 {
        options = options.on(&format!("nothing {number}*"));
    }
    let monitor = Monitor::begin(options).expect("it begins");
    action(&monitor);
    let report = monitor.finish();
    assert_eq!(report.lost, 0);
    report.emitted
}

#[test]
fn each_beginning_has_one_end() {
    let none = Frame::NONE;
    let at = |place: usize| Frame::at(0x7000_0000 + place, 1);
    let pair = |probe, frame| {
        begin(probe, frame);
        end(probe, frame);
    };
    assert_eq!(records(|_| pair(&A, none)), 2);
    let crossed = records(|_| {
        begin(&A, none);
        begin(&B, none);
        end(&A, none);
        end(&B, none);
        end(&B, none);
        pair(&C, none);
    });
    assert_eq!(crossed, 6, "the inner call ends with the outer one");
    let left = records(|_| {
        begin(&A, at(900));
        for _ in 0..10 {
            begin(&B, at(800));
            // In B's frame, as a compiler inlines it.
            begin(&C, at(800));
        }
        end(&A, at(890));
        pair(&A, at(900));
    });
    assert_eq!(left, 2 + 40 + 2, "calls end that a jump has left");
    let recursive = records(|_| {
        begin(&A, at(900));
        begin(&A, at(800));
        end(&A, at(900));
        end(&A, at(900));
    });
    assert_eq!(recursive, 4);
    let other_stack = records(|_| {
        begin(&A, at(0));
        begin(&B, at(64 << 20));
        end(&B, at(64 << 20));
        end(&A, at(0));
    });
    assert_eq!(other_stack, 4);
    let switched = records(|monitor| {
        begin(&A, none);
        monitor.rule(Rule::off("*.a"));
        end(&A, none);
        pair(&B, none);
        monitor.rule(Rule::on("*.a"));
        end(&A, none);
    });
    assert_eq!(switched, 4, "a call ends that was switched off");
    let at_once = records(|_| {
        let rounds: Vec<&'static Probe> = (0..1000)
            .map(|_| &*Box::leak(Box::new(Probe::new("unguarded.new"))))
            .collect();
        let barrier = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for probe in &rounds {
                        barrier.wait();
                        drop(probe.call());
                    }
                });
            }
        });
    });
    assert_eq!(at_once, 8000, "a new probe is off for nobody");
    let quiet = records(|_| {
        try_quietly(|| {
            pair(&A, none);
            assert!(try_quietly(|| ()).is_none());
        });
    });
    assert_eq!(quiet, 0);
}
