//! The contents of messages, as far as they are known, and what follows for their receivers.
//!
//! Passes are walked first as if anything might come. What they send then is known of what comes
//! over the channels' peers, and who receives that is walked again. Each round only adds knowledge,
//! so it may end after any.

use super::hubs::{Hubs, Incoming};
use super::known::Known;
use super::passes;
use super::tally::Tally;
use super::walk::Walk;
use super::{ChannelId, InstanceId};

/// Rounds of learning: so far knowledge travels.
const ROUNDS: usize = 3;
/// Different messages of one hub beyond these are not compared.
const MESSAGES_MAX: usize = 20_000;

/// A pass of each instance, counted; the first is the main sequence's tally, which is given.
pub(super) fn passes(walk: &mut Walk<'_>, main: Tally) -> Vec<Tally> {
    let mut tallies = vec![main];
    for index in 1..walk.world.instances.len() {
        tallies.push(passes::steady(walk, InstanceId(index as u32)));
    }
    for _ in 0..ROUNDS {
        let changed = learn(walk, &tallies);
        if changed.is_empty() {
            break;
        }
        for index in changed {
            tallies[index] = passes::steady(walk, InstanceId(index as u32));
        }
    }
    tallies
}

/// Finds what comes over channels; yields the instances for which that is news, in order.
fn learn(walk: &mut Walk<'_>, tallies: &[Tally]) -> Vec<usize> {
    let links = walk.world.links.iter().flatten();
    let lasting = links.map(|link| (link.from, link.to));
    let temporary = tallies.iter().flat_map(|tally| &tally.temporary);
    let pairs = lasting.chain(temporary.map(|&(from, to, _)| (from, to)));
    let hubs = Hubs::new(walk.world.channels.len(), pairs);
    let mut sent: Vec<Vec<Known>> = vec![Vec::new(); hubs.count()];
    let starts = walk.starts.iter().map(|(_, tally)| tally);
    for tally in tallies.iter().chain(starts) {
        for &(channel, message) in &tally.messages {
            let known = &mut sent[hubs.of(channel)];
            if known.last() != Some(&message) && known.len() < MESSAGES_MAX {
                known.push(message);
            }
        }
    }
    let messages: Vec<Known> = sent
        .iter()
        .map(|known| match known.len() {
            MESSAGES_MAX => Known::Unknown,
            _ => walk.world.join_all(known),
        })
        .collect();
    let is_news = |channel: ChannelId| {
        let now = messages[hubs.of(channel)];
        !same(walk, walk.incoming.of(channel), now)
    };
    let changed = tallies.iter().enumerate().skip(1);
    let changed = changed
        .filter(|(_, tally)| tally.receives.keys().any(|&channel| is_news(channel)))
        .map(|(index, _)| index)
        .collect();
    walk.incoming = Incoming { hubs, messages };
    changed
}

/// True if as much is known as before. Objects are created anew each time; two of them are the same
/// if their contents are.
fn same(walk: &Walk<'_>, before: Known, now: Known) -> bool {
    use super::world::Object;
    match (before, now) {
        (Known::Object(a), Known::Object(b)) => match (walk.world.get(a), walk.world.get(b)) {
            (Object::Struct { fields: a }, Object::Struct { fields: b }) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(walk, *a, *b))
            }
            (Object::Array { length: a, .. }, Object::Array { length: b, .. }) => a == b,
            (Object::Box { ty: a, content: x }, Object::Box { ty: b, content: y }) => {
                a == b && same(walk, *x, *y)
            }
            _ => false,
        },
        (a, b) => a == b,
    }
}
