//! Frequencies with which the arms of a select are taken.
//!
//! A walk takes each open arm as often as the others. In a run an arm is taken when somebody sends
//! on its channel, so what comes decides: an arm's part grows with what its senders could send. If
//! all together could send more than the select takes, it goes round, so that each arm has as much
//! as the others or as it can have. A default is taken when nothing comes.

use super::ChannelId;
use super::balance::{self, Hub, level};
use super::hubs::Hubs;
use super::rates::speed_of;
use super::tally::{Choice, Part, Tally, Use};
use super::walk::Walk;

/// Rounds of fitting arms to the messages for them.
const ROUNDS: usize = 4;

/// Gives the arms of all selects their parts.
pub(super) fn settle(walk: &Walk<'_>, tallies: &mut [Tally]) {
    if tallies.iter().all(|tally| tally.choices.is_empty()) {
        return;
    }
    let links = walk.world.links.iter().flatten();
    let lasting = links.map(|link| (link.from, link.to));
    let temporary = tallies.iter().flat_map(|tally| &tally.temporary);
    let pairs = lasting.chain(temporary.map(|&(from, to, _)| (from, to)));
    let hubs = Hubs::new(walk.world.channels.len(), pairs);
    let walked = tallies.to_vec();
    for _ in 0..ROUNDS {
        let supply = supply(&hubs, tallies);
        let capacities = capacities(&hubs, tallies);
        for ((tally, walked), capacity) in tallies.iter_mut().zip(&walked).zip(capacities) {
            if !walked.choices.is_empty() {
                *tally = chosen(walked, capacity, &hubs, &supply);
            }
        }
    }
}

/// Passes a second that each component could make if its selects never waited: limited by its own
/// speed and by all components that it meets.
fn capacities(hubs: &Hubs, tallies: &[Tally]) -> Vec<f64> {
    let mut parts = vec![Hub::default(); hubs.count()];
    for (component, tally) in tallies.iter().enumerate() {
        let is_arm = |channel: ChannelId| {
            let mut arms = tally.choices.iter().flat_map(|choice| &choice.parts);
            arms.any(|part| part.channel == Some(channel))
        };
        let part = |used: &Use| balance::Part {
            component,
            messages: used.messages,
            is_exact: used.is_exact,
        };
        for (&channel, used) in &tally.sends {
            if used.messages > 0.0 {
                parts[hubs.of(channel)].senders.push(part(used));
            }
        }
        for (&channel, used) in &tally.receives {
            if used.messages > 0.0 && !is_arm(channel) {
                parts[hubs.of(channel)].receivers.push(part(used));
            }
        }
    }
    parts.retain(|hub| !hub.senders.is_empty() && !hub.receivers.is_empty());
    let speeds: Vec<f64> = tallies.iter().map(speed_of).collect();
    let rates = balance::solve(&speeds, &parts).rates;
    let least = speeds.iter().zip(rates);
    least.map(|(speed, rate)| speed.min(rate)).collect()
}

/// By hub: the most messages a second that could come to each of those who receive.
fn supply(hubs: &Hubs, tallies: &[Tally]) -> Vec<f64> {
    let mut supply = vec![0.0; hubs.count()];
    let mut receivers = vec![0.0_f64; hubs.count()];
    for tally in tallies {
        let speed = speed_of(tally);
        for (channel, used) in &tally.sends {
            supply[hubs.of(*channel)] += speed * used.messages;
        }
        for (channel, seconds) in &tally.timers {
            supply[hubs.of(*channel)] += 1.0 / seconds;
        }
        for channel in tally.receives.keys() {
            receivers[hubs.of(*channel)] += 1.0;
        }
    }
    for (supply, receivers) in supply.iter_mut().zip(&receivers) {
        *supply /= receivers.max(1.0);
    }
    supply
}

/// A pass whose selects take what comes.
fn chosen(walked: &Tally, capacity: f64, hubs: &Hubs, supply: &[f64]) -> Tally {
    let mut tally = walked.clone();
    for choice in &walked.choices {
        let times: f64 = choice.parts.iter().map(|part| part.times).sum();
        let comes = |part: &Part| match part.channel {
            Some(channel) => supply[hubs.of(channel)],
            None => 0.0,
        };
        let comes: Vec<f64> = choice.parts.iter().map(comes).collect();
        let shares = shares(choice, &comes, capacity * times);
        for (part, share) in choice.parts.iter().zip(shares) {
            if part.times > 0.0 {
                tally.add_scaled(&part.tally, times * share / part.times - 1.0);
            }
        }
    }
    tally
}

/// The arms' parts of what a select does, `capacity` times a second at most.
fn shares(choice: &Choice, comes: &[f64], capacity: f64) -> Vec<f64> {
    let all: f64 = comes.iter().sum();
    let even = 1.0 / choice.parts.len() as f64;
    // Nothing is known of what comes, or of one arm less than of the others.
    let is_unknown = |part: &Part| part.channel.is_none() && !part.is_default;
    if all <= 0.0 || choice.parts.iter().any(is_unknown) {
        return vec![even; choice.parts.len()];
    }
    let most = match all > capacity {
        true => level(comes, capacity),
        false => f64::INFINITY,
    };
    let taken: Vec<f64> = comes.iter().map(|comes| comes.min(most)).collect();
    let sum: f64 = taken.iter().sum();
    let has_default = choice.parts.iter().any(|part| part.is_default);
    let whole = if has_default { capacity.max(sum) } else { sum };
    let rest = 1.0 - sum / whole;
    let share = |(part, taken): (&Part, &f64)| match part.is_default {
        true => rest,
        false => taken / whole,
    };
    choice.parts.iter().zip(&taken).map(share).collect()
}
