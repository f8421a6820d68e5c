//! Workers under every interleaving that the model checker can reach: links, leave, regrading,
//! moves, and threads that are detached.
//!
//! Components run scripts. Two workers run them, and at times a third party interferes. When
//! nothing runs any more, all scripts must have ended: this detects lost wake-ups and counts that
//! are too low. The cells detect any access to a queue, a watch list, a slot or a line without
//! leave.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use loom::thread;

use super::loom_tests::{Half, INTEGER, Static, check, free, header, kind_of, make};
use super::rendezvous::{hearth_receive, hearth_send};
use super::select::hearth_select;
use super::{Direction, connect, disconnect, hub};
use crate::abi::{Arm, Component, ComponentType, STOPPED, Step, Value};
use crate::exchange::carrier;
use crate::exchange::component::request_stop;
use crate::ground::planted_faults::faults;
use crate::ground::sync::{AtomicBool, Ordering};
use crate::outside::idle::Visit;
use crate::seats::seat::seat_of;

/// An action of a script: first a call, then, when that has ended, a check of the results.
pub(super) enum Act {
    Send(Arc<Half>, i32),
    Receive(Arc<Half>, Expected),
    Select(Vec<Arc<Half>>, Expected),
    Do(Box<dyn Fn()>),
    /// The component starts, or stops, migrating to its callers.
    Come(bool),
    Move(usize),
}

/// The values that a receive may give.
pub(super) type Expected = &'static [i32];

/// A component that runs a script.
#[repr(C)]
struct Scripted {
    base: Component,
    script: Vec<Act>,
    at: usize,
    is_blocked: bool,
    /// A thread is in its code, even if about to return from an operation that waits.
    is_run: AtomicBool,
}

std::thread_local! {
    /// Two threads ran a component at once. All threads of a model are one to the system.
    static OVERLAPS: Cell<bool> = const { Cell::new(false) };
}

static SCRIPTED: Static<ComponentType> = kind_of(c"Scripted", resume);

unsafe extern "C" fn resume(component: *mut Component) -> Step {
    let scripted = component.cast::<Scripted>();
    // SAFETY: a worker runs the component.
    unsafe {
        if (*scripted).is_run.swap(true, Ordering::Relaxed) {
            // A panic must not leave a function that C calls.
            OVERLAPS.set(true);
        }
        loop {
            let script = &(*scripted).script;
            let Some(act) = script.get((*scripted).at) else {
                return Step::Done;
            };
            let step = if std::mem::take(&mut (*scripted).is_blocked) {
                match (*component).outcome {
                    0 => Step::Done,
                    2 => Step::Raised,
                    other => panic!("a blocked operation ended with outcome {other}"),
                }
            } else {
                (*scripted).is_blocked = true;
                let step = act.begin(component);
                if step == Step::Blocked {
                    (*scripted).is_run.store(false, Ordering::Relaxed);
                    return step;
                }
                (*scripted).is_blocked = false;
                step
            };
            if step == Step::Raised {
                assert_eq!((*component).raised, STOPPED);
                return step;
            }
            act.end(component);
            (*scripted).at += 1;
        }
    }
}

impl Act {
    unsafe fn begin(&self, this: *mut Component) -> Step {
        // SAFETY: the component runs this.
        unsafe {
            match self {
                Act::Send(half, number) => {
                    let value = Value::of_integer(*number);
                    hearth_send(this, half.0, value, false, ptr::null())
                }
                Act::Receive(half, _) => hearth_receive(this, half.0, ptr::null()),
                Act::Select(halves, _) => {
                    let arms: Vec<Arm> = halves
                        .iter()
                        .map(|half| Arm {
                            channel: half.0.cast(),
                            acknowledge: false,
                            site: ptr::null(),
                        })
                        .collect();
                    hearth_select(this, arms.as_ptr(), arms.len() as u32, false, ptr::null())
                }
                Act::Do(action) => {
                    action();
                    Step::Done
                }
                Act::Come(comes) => {
                    match comes {
                        true => carrier::come_from_now(seat_of(this)),
                        false => carrier::stay(seat_of(this)),
                    }
                    Step::Done
                }
                Act::Move(index) => {
                    (*this).destination = 1 + *index as u16;
                    Step::Done
                }
            }
        }
    }

    unsafe fn end(&self, this: *mut Component) {
        if let Act::Receive(_, expected) | Act::Select(_, expected) = self {
            // SAFETY: the component runs this, and has received.
            let number = unsafe { (*this).received.integer };
            assert!(
                expected.contains(&number),
                "{number} is not of {expected:?}"
            );
        }
    }
}

/// A component with its script.
pub(super) struct Player {
    pub(super) component: *mut Component,
}

// SAFETY: one worker runs it; others only ask it to stop.
unsafe impl Send for Player {}
// SAFETY: as above.
unsafe impl Sync for Player {}

impl Player {
    /// Ready to run at a worker.
    pub(super) fn new(worker: usize, script: Vec<Act>) -> Arc<Player> {
        let scripted = Scripted {
            base: header(&raw const SCRIPTED.0, carrier::worker(worker)),
            script,
            at: 0,
            is_blocked: false,
            is_run: AtomicBool::new(false),
        };
        let component = make(1 + worker as u64, scripted);
        // SAFETY: just made.
        unsafe {
            carrier::enlist(component);
        }
        Arc::new(Player { component })
    }

    /// Stops it as `component::stop` does.
    pub(super) fn stop(&self) {
        // SAFETY: lives as long as the player.
        unsafe {
            (*self.component)
                .attention
                .fetch_or(1, std::sync::atomic::Ordering::Relaxed);
            request_stop(seat_of(self.component));
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // SAFETY: all workers have ended.
        unsafe { free::<Scripted>(self.component) };
    }
}

/// An out of worker 0 and an in of worker 1, connected.
fn pair() -> (Arc<Half>, Arc<Half>) {
    let halves = (
        Half::at(Direction::Out, carrier::worker(0)),
        Half::at(Direction::In, carrier::worker(1)),
    );
    connect(halves.0.get(), halves.1.get());
    halves
}

/// A linked pair.
fn linked_pair() -> (Arc<Half>, Arc<Half>) {
    let halves = pair();
    // SAFETY: locked.
    let is_linked = unsafe { hub::link(halves.0.get(), hub::lock_of(halves.0.get())).is_ok() };
    assert!(is_linked, "fit, and new");
    halves
}

/// Runs workers until nothing runs, and meanwhile `third`, on an outside thread.
pub(super) fn run(workers: usize, third: impl FnOnce()) {
    for index in 0..workers {
        carrier::start(index);
    }
    let visit = Visit::begin();
    let threads: Vec<_> = (0..workers)
        .map(|index| thread::spawn(move || carrier::live(index)))
        .collect();
    third();
    drop(visit);
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(!OVERLAPS.take(), "a component was run twice at once");
}

/// Runs workers until nothing runs, and lets the monitor check the first.
pub(super) fn run_monitored(workers: usize) {
    for index in 0..workers {
        carrier::start(index);
    }
    let threads: Vec<_> = (0..workers)
        .chain([carrier::SPARE_RUNNER])
        .map(|index| thread::spawn(move || carrier::live(index)))
        .collect();
    carrier::interfere(0);
    for thread in threads {
        thread.join().unwrap();
    }
}

pub(super) fn send(out: &Arc<Half>, number: i32) -> Act {
    Act::Send(out.clone(), number)
}

pub(super) fn receive(into: &Arc<Half>, expected: Expected) -> Act {
    Act::Receive(into.clone(), expected)
}

// ---- links --------------------------------------------------------------------------------------

/// Two messages over a link; either side may sleep.
fn two_over_a_link() {
    let (out, into) = linked_pair();
    let _players = [
        Player::new(0, vec![send(&out, 1), send(&out, 2)]),
        Player::new(1, vec![receive(&into, &[1]), receive(&into, &[2])]),
    ];
    run(2, || ());
}

#[test]
fn loom_two_messages_over_a_link() {
    check(2, two_over_a_link);
}

#[test]
fn loom_a_link_is_made_on_the_way() {
    check(2, || {
        let (out, into) = pair();
        let _players = [
            Player::new(0, vec![send(&out, 1)]),
            Player::new(1, vec![receive(&into, &[1])]),
        ];
        run(2, || ());
    });
}

#[test]
fn loom_a_full_watch_list() {
    check(1, || {
        let links = [linked_pair(), linked_pair()];
        let _players = [
            Player::new(0, vec![send(&links[0].0, 1)]),
            Player::new(0, vec![send(&links[1].0, 2)]),
            Player::new(1, vec![receive(&links[0].1, &[1])]),
            Player::new(1, vec![receive(&links[1].1, &[2])]),
        ];
        run(2, || ());
    });
}

/// A third party ends the link with a message in flight.
#[test]
fn loom_a_link_ends_by_a_third_party() {
    check(1, || {
        let (out, into) = linked_pair();
        let _players = [
            Player::new(0, vec![send(&out, 1)]),
            Player::new(1, vec![receive(&into, &[1])]),
        ];
        run(2, || hub::make_shared(out.get()));
    });
}

/// The sender ends it with its message in flight.
fn given_and_disconnected() {
    let (out, into) = linked_pair();
    let leave = {
        let out = out.clone();
        Act::Do(Box::new(move || disconnect(out.get())))
    };
    let sender = Player::new(0, vec![send(&out, 1), leave]);
    let receiver = Player::new(1, vec![receive(&into, &[1])]);
    run(2, || ());
    drop((sender, receiver));
}

#[test]
fn loom_what_was_given_comes_though_the_link_ends() {
    check(2, given_and_disconnected);
}

/// Ends it likewise; the next message goes over another link on the same line.
fn disconnected_by_its_sender() {
    let (out, into) = linked_pair();
    let leave = {
        let out = out.clone();
        Act::Do(Box::new(move || disconnect(out.get())))
    };
    let again = {
        let (out, into) = (out.clone(), into.clone());
        Act::Do(Box::new(move || connect(out.get(), into.get())))
    };
    let _players = [
        Player::new(0, vec![send(&out, 1), leave, again, send(&out, 2)]),
        Player::new(1, vec![receive(&into, &[1]), receive(&into, &[2])]),
    ];
    run(2, || ());
}

#[test]
fn loom_a_link_ends_by_its_sender() {
    check(1, disconnected_by_its_sender);
}

#[test]
fn loom_a_link_ends_by_another_connect() {
    check(1, || {
        let (out, into) = linked_pair();
        let other = Half::at(Direction::In, carrier::worker(1));
        let _players = [
            Player::new(0, vec![send(&out, 1)]),
            Player::new(1, vec![receive(&into, &[1])]),
        ];
        run(2, || connect(out.get(), other.get()));
    });
}

#[test]
fn loom_a_link_ends_by_a_select() {
    check(1, || {
        let (out, into) = linked_pair();
        let other = Half::at(Direction::In, carrier::worker(1));
        let _players = [
            Player::new(0, vec![send(&out, 1), send(&out, 2)]),
            Player::new(
                1,
                vec![
                    receive(&into, &[1]),
                    Act::Select(vec![other, into.clone()], &[2]),
                ],
            ),
        ];
        run(2, || ());
    });
}

#[test]
fn loom_a_link_ends_by_stops() {
    check(1, || {
        let (out, into) = linked_pair();
        let players = [
            Player::new(0, vec![send(&out, 1)]),
            Player::new(1, vec![receive(&into, &[1])]),
        ];
        run(2, || {
            players[1].stop();
            players[0].stop();
        });
    });
}

// ---- moves --------------------------------------------------------------------------------------

/// A receiver moves to a third worker while its sender sends.
#[test]
fn loom_one_end_moves() {
    check(1, || {
        let (out, into) = linked_pair();
        let _players = [
            Player::new(0, vec![send(&out, 1)]),
            Player::new(1, vec![Act::Move(2), receive(&into, &[1])]),
        ];
        carrier::moves(into.get());
        run(3, || ());
    });
}

/// It moves to its sender's worker.
#[test]
fn loom_one_end_moves_to_the_other() {
    check(1, || {
        let (out, into) = linked_pair();
        let _players = [
            Player::new(0, vec![send(&out, 1), send(&out, 2)]),
            Player::new(
                1,
                vec![Act::Move(0), receive(&into, &[1]), receive(&into, &[2])],
            ),
        ];
        carrier::moves(into.get());
        run(2, || ());
    });
}

// ---- leave --------------------------------------------------------------------------------------

/// An out and an in of worker 0, connected.
fn local_pair() -> (Arc<Half>, Arc<Half>) {
    let halves = (
        Half::at(Direction::Out, carrier::worker(0)),
        Half::at(Direction::In, carrier::worker(0)),
    );
    connect(halves.0.get(), halves.1.get());
    halves
}

#[test]
fn loom_leave_races_with_a_light_rendezvous() {
    check(2, || {
        let (out, into) = local_pair();
        let _players = [
            Player::new(0, vec![send(&out, 1), send(&out, 2)]),
            Player::new(0, vec![receive(&into, &[1]), receive(&into, &[2])]),
        ];
        run(1, || {
            disconnect(out.get());
            connect(into.get(), out.get());
        });
    });
}

#[test]
fn loom_sharing_races_with_a_light_select() {
    check(2, || {
        let (one, other) = (local_pair(), local_pair());
        let arms = || vec![one.1.clone(), other.1.clone()];
        let _players = [
            Player::new(
                0,
                vec![Act::Select(arms(), &[1, 2]), Act::Select(arms(), &[1, 2])],
            ),
            Player::new(0, vec![send(&one.0, 1)]),
            Player::new(0, vec![send(&other.0, 2)]),
        ];
        run(1, || hub::make_shared(other.1.get()));
        for half in [&one.1, &other.1] {
            assert_eq!(half.get().slot.get(), 0, "nobody waits there any more");
        }
    });
}

#[test]
fn loom_stops_race_with_a_light_rendezvous() {
    check(2, || {
        let (out, into) = local_pair();
        let players = [
            Player::new(0, vec![send(&out, 1)]),
            Player::new(0, vec![receive(&into, &[1])]),
        ];
        run(1, || {
            players[1].stop();
            players[0].stop();
        });
    });
}

/// The owner of a half-channel disconnects it and releases its reference while a component waits
/// there and is cancelled: the component's own reference is the last.
#[test]
fn loom_a_half_channel_goes_where_one_waits() {
    check(2, || {
        let (out, into) = local_pair();
        let player = Player::new(0, vec![send(&out, 1)]);
        let partner = Player::new(0, vec![receive(&into, &[1])]);
        run(1, || {
            disconnect(out.get());
            drop(out);
            disconnect(into.get());
            drop(into);
            player.stop();
            partner.stop();
        });
    });
}

#[test]
fn loom_a_value_comes_from_outside() {
    check(1, || {
        let into = Half::at(Direction::In, carrier::worker(0));
        let _player = Player::new(0, vec![receive(&into, &[7]), receive(&into, &[8])]);
        run(1, || {
            for number in [7, 8] {
                // SAFETY: alive, and of integers.
                while unsafe { !super::push(into.get(), Value::of_integer(number), false) } {
                    thread::yield_now();
                }
            }
        });
    });
}

// ---- detaching ----------------------------------------------------------------------------------

/// A component is detached while it computes, and returns to meet another of its worker.
fn one_is_detached() {
    let (out, into) = local_pair();
    let _players = [
        Player::new(0, vec![Act::Do(Box::new(|| ())), send(&out, 1)]),
        Player::new(0, vec![receive(&into, &[1])]),
    ];
    run_monitored(1);
}

#[test]
fn loom_one_is_detached() {
    check(2, one_is_detached);
}

#[test]
fn loom_one_is_detached_and_ends() {
    check(1, || {
        let (out, into) = local_pair();
        let join = {
            let (out, into) = (out.clone(), into.clone());
            Act::Do(Box::new(move || connect(out.get(), into.get())))
        };
        disconnect(out.get());
        let _players = [
            Player::new(0, vec![send(&out, 1)]),
            Player::new(0, vec![receive(&into, &[1])]),
            Player::new(0, vec![join]),
        ];
        run_monitored(1);
    });
}

#[test]
fn loom_one_is_detached_at_a_link() {
    check(1, || {
        let (out, into) = linked_pair();
        let _players = [
            Player::new(0, vec![Act::Do(Box::new(|| ())), send(&out, 1)]),
            Player::new(1, vec![receive(&into, &[1])]),
        ];
        run_monitored(2);
    });
}

// ---- faults that must be found ------------------------------------------------------------------

#[test]
#[should_panic(expected = "nothing runs, but")]
fn loom_canary_who_does_not_tell_is_found() {
    check(2, || {
        faults::plant_told_nobody();
        two_over_a_link();
    });
}

#[test]
#[should_panic(expected = "nothing runs, but")]
fn loom_canary_sleeping_without_a_look_is_found() {
    check(2, || {
        faults::plant_blind_sleep();
        two_over_a_link();
    });
}

#[test]
#[should_panic(expected = "who waits at a link is delivered as it ends")]
fn loom_canary_a_forgotten_value_is_found() {
    check(2, || {
        faults::plant_forgotten_value();
        given_and_disconnected();
    });
}
