//! Passes of a component in the long run.
//!
//! The first pass begins with what the constructor left in the members. What it changes there tells
//! how later passes differ from it: a number that grows by the same each time is a counter, a flag
//! that is set stays set. Such a guess is then put to the proof: a pass that begins with it must
//! end with it, one step further. What does not hold is not known.

use super::InstanceId;
use super::known::Known;
use super::tally::Tally;
use super::walk::{Flow, Walk};
use super::weights;
use crate::tree::MemberId;

/// Walks after which what still changes is given up.
const PROOFS_MAX: usize = 4;

/// A pass of an instance, counted.
pub(super) fn steady(walk: &mut Walk<'_>, id: InstanceId) -> Tally {
    let Some(component) = walk.world.instances[id.index()].component else {
        return Tally::default();
    };
    let written = walk.members_written(component);
    let start = members(walk, id, &written);
    walk.passes = None;
    walk.pending.clear();
    let (mut tally, flow) = walk.pass(id, component);
    if flow == Flow::Stop {
        tally.stops_after = Some(1);
    } else {
        let after = members(walk, id, &written);
        let guess = start
            .iter()
            .zip(&after)
            .map(|(a, b)| guess(*a, *b))
            .collect();
        let first = tally;
        tally = proved(walk, id, &written, guess);
        // What the first pass alone does counts for nothing, but others see it.
        tally.messages.extend(first.messages);
        tally.temporary.extend(first.temporary);
        tally.timers.extend(first.timers);
        set(walk, id, &written, &start);
    }
    tally.work_ns += weights::PASS;
    tally
}

/// A pass that begins with the guess, or with what is left of it when it holds.
fn proved(
    walk: &mut Walk<'_>,
    id: InstanceId,
    written: &[MemberId],
    mut guess: Vec<Known>,
) -> Tally {
    let Some(component) = walk.world.instances[id.index()].component else {
        return Tally::default();
    };
    for proof in 0.. {
        if proof == PROOFS_MAX {
            guess.fill(Known::Unknown);
        }
        set(walk, id, written, &guess);
        walk.wants_passes = false;
        let (tally, _) = walk.pass(id, component);
        let mut is_proved = true;
        for (known, now) in guess.iter_mut().zip(members(walk, id, written)) {
            if *known != Known::Unknown && now != one_pass_later(*known) {
                *known = Known::Unknown;
                is_proved = false;
            }
        }
        let knows_passes = !walk.wants_passes || walk.passes == tally.stops_after;
        walk.passes = tally.stops_after;
        if is_proved && knows_passes || proof > PROOFS_MAX {
            return tally;
        }
    }
    Tally::default()
}

fn members(walk: &Walk<'_>, id: InstanceId, which: &[MemberId]) -> Vec<Known> {
    let members = &walk.world.instances[id.index()].members;
    which.iter().map(|member| members[member.index()]).collect()
}

fn set(walk: &mut Walk<'_>, id: InstanceId, which: &[MemberId], values: &[Known]) {
    let members = &mut walk.world.instances[id.index()].members;
    for (member, value) in which.iter().zip(values) {
        members[member.index()] = *value;
    }
}

/// The long-run value of a member, from its values before and after the first pass.
fn guess(first: Known, second: Known) -> Known {
    match (first, second) {
        (Known::Int(a), Known::Int(b)) if a != b => match i32::try_from(b - a) {
            Ok(step) => Known::Counter { start: a, step },
            Err(_) => Known::Unknown,
        },
        (_, second) => second,
    }
}

fn one_pass_later(known: Known) -> Known {
    match known {
        Known::Counter { start, step } => Known::Counter {
            start: start + i64::from(step),
            step,
        },
        known => known,
    }
}
