//! The models, and the faults that they must find.

use std::env;

use super::explorer::{Model, Seen};
use super::player::Act::{self, Fork, Invade, Join, Leave, Retreat};
use super::player::Rules;
use crate::outside::{Fault, Limits};

/// Members that have joined, and what they do then.
fn model(cores: u32, programs: &[&[Act]]) -> Model {
    Model {
        rules: Rules {
            cores,
            limits: Limits { kept: 1, looks: 2 },
            fault: None,
        },
        programs: programs.iter().map(|program| program.to_vec()).collect(),
        before: vec![1; programs.len()],
        kills: 0,
        damages: 0,
        tears: 0,
        switches: 3,
        states_max: 4_000_000,
    }
}

fn holds(model: &Model) -> Seen {
    model.explore().unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn is_deep() -> bool {
    env::var_os("HEARTH_TEST_DEEP").is_some()
}

/// Two members want the same core, and another is left.
fn two() -> Model {
    model(2, &[&[Join, Invade(1)], &[Join, Invade(1)]])
}

/// Two members want everything.
fn all() -> Model {
    model(2, &[&[Join, Invade(2)], &[Join, Invade(2)]])
}

/// One is stopped while the other publishes more states than are kept.
fn slow() -> Model {
    let busy = [Join, Invade(2), Retreat(1), Retreat(0), Invade(1)];
    Model {
        switches: 2,
        ..model(2, &[&[Join, Invade(2)], &busy])
    }
}

/// One gives back what the other takes.
fn given() -> Model {
    model(2, &[&[Join, Invade(2), Retreat(0)], &[Join, Invade(1)]])
}

/// Two members join an empty folder, and one is stopped for long.
fn first() -> Model {
    let busy = [Join, Invade(2), Retreat(1), Retreat(0)];
    Model {
        before: vec![0; 2],
        switches: 2,
        ..model(2, &[&[Join, Invade(1)], &busy])
    }
}

/// One is stopped for long before it publishes, and one is killed before it removes an old state.
fn untidy() -> Model {
    let busy = [Join, Invade(1), Retreat(0), Invade(1)];
    Model {
        kills: 1,
        switches: 2,
        ..model(2, &[&[Join, Invade(1)], &[Join, Invade(1)], &busy])
    }
}

/// One is stopped for long, also while it lists the folder: all states that were there are gone.
fn stopped() -> Model {
    Model {
        switches: 3,
        ..slow()
    }
}

/// Two are stopped, and one of them sees what the other published beside the third's states.
fn both_stopped() -> Model {
    let busy = [Join, Invade(1), Retreat(0), Invade(1), Retreat(0)];
    Model {
        before: vec![1, 1, 1],
        switches: 2,
        ..model(2, &[&[Join, Invade(1)], &[Join, Invade(1)], &busy])
    }
}

fn killed(model: Model) -> Model {
    Model { kills: 1, ..model }
}

/// The folder is empty at the beginning.
fn empty(model: Model) -> Model {
    Model {
        before: vec![0; model.programs.len()],
        ..model
    }
}

fn damaged(model: Model) -> Model {
    Model {
        damages: 1,
        switches: 2,
        ..model
    }
}

#[test]
fn model_of_two_who_invade() {
    let ends = [two(), all()].map(|model| holds(&model).ends);
    assert!(ends[0] > 50 && ends[1] > 20, "{ends:?}");
}

#[test]
fn model_of_the_killed() {
    holds(&killed(all()));
    if is_deep() {
        holds(&killed(two()));
        holds(&killed(slow()));
        holds(&killed(empty(two())));
    }
}

#[test]
fn model_of_files_read_while_written() {
    let torn = Model { tears: 1, ..two() };
    holds(&Model {
        switches: 3 - u32::from(!is_deep()),
        ..torn
    });
}

#[test]
fn model_of_the_stopped() {
    if is_deep() {
        holds(&stopped());
        holds(&first());
        holds(&both_stopped());
    }
}

#[test]
fn model_of_invade_and_retreat() {
    if is_deep() {
        let both = [Join, Invade(1), Retreat(0)];
        holds(&given());
        holds(&model(2, &[&both, &both]));
    }
}

#[test]
fn model_of_images_and_children() {
    let all = [Join, Invade(1), Fork, Join, Invade(1), Leave];
    let exec = model(2, &[&all, &[Join, Invade(1)]]);
    holds(&Model {
        switches: 1 + u32::from(is_deep()),
        ..exec
    });
}

#[test]
fn model_of_three() {
    if is_deep() {
        let one = [Join, Invade(1)];
        let three = model(3, &[&one, &one, &one]);
        holds(&Model {
            switches: 2,
            ..three
        });
        let damaged = damaged(model(2, &[&one, &one, &one]));
        holds(&Model {
            switches: 1,
            ..damaged
        });
    }
}

/// Somebody removes or spoils one state, or removes all.
#[test]
fn model_of_damage() {
    if is_deep() {
        holds(&damaged(two()));
        holds(&damaged(all()));
        holds(&killed(damaged(two())));
        holds(&Model {
            switches: 1,
            ..damaged(empty(two()))
        });
    }
}

/// A model fails if its fault is planted.
fn finds(fault: Fault, mut model: Model, what: &str) {
    model.rules.fault = Some(fault);
    match model.explore() {
        Ok(seen) => panic!("{fault:?} is not found in {} states", seen.states),
        Err(wrong) => {
            let complaint = wrong.lines().next().unwrap_or_default();
            assert!(complaint.contains(what), "{fault:?}: {wrong}");
        }
    }
}

const TWO: &str = "a core belongs to two";
const UNTOLD: &str = "the newest state does not tell";

#[test]
fn model_canary_publishing_over_a_state_is_found() {
    finds(Fault::PublishesOver, two(), UNTOLD);
}

/// Two publish and are ended before they tidy up; a third removes what came after their states.
#[test]
fn model_canary_tidying_out_of_order_is_found() {
    if is_deep() {
        finds(Fault::TidiesOutOfOrder, untidy(), UNTOLD);
    }
}

#[test]
fn model_canary_removing_the_first_is_found() {
    if is_deep() {
        finds(Fault::RemovesTheFirst, stopped(), UNTOLD);
    }
}

/// Without the fault it holds.
#[test]
fn model_of_old_states_that_stay() {
    if is_deep() {
        holds(&untidy());
    }
}

#[test]
fn model_canary_publishing_the_past_is_found() {
    if is_deep() {
        finds(Fault::PublishesThePast, slow(), UNTOLD);
    }
}

/// Somebody removes the newest state while it is read: the one before says that a core is free.
#[test]
fn model_canary_not_looking_is_found() {
    finds(Fault::NeverLooks, damaged(two()), TWO);
    finds(Fault::PublishesFirst, damaged(two()), TWO);
}

#[test]
fn model_canary_ignoring_ends_is_found() {
    finds(Fault::IgnoresEnds, killed(two()), "a newcomer gets");
}

/// A member that is stopped between two steps of writing its file would stop all others.
#[test]
fn model_canary_writing_in_two_steps_is_found() {
    let what = "a file in /modelled is damaged";
    finds(Fault::BeginsEmpty, empty(two()), what);
    finds(Fault::LeavesRests, given(), what);
}
