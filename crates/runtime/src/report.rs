//! The deadlock report: each blocked component, its place and the peers it waits for.
//!
//! Nothing runs while it is written, so it may read every component's offer.

use std::collections::HashMap;
use std::fmt::Write;

use crate::abi::literal;
use crate::exchange::channel::inflate::inflate;
use crate::exchange::channel::{Channel, hub};
use crate::ground::output;
use crate::recording;
use crate::seats::exceptions::place_of;
use crate::seats::offer::Stage;
use crate::seats::registry;
use crate::seats::seat::{Seat, Waiting};

/// A blocked component, as the report sees it.
struct Blocked {
    id: u64,
    name: String,
    service: bool,
    place: String,
    /// `send on ball`.
    operation: String,
    /// The half-channels it waits at, each with its peers.
    waits_for: Vec<(String, Vec<Peer>)>,
    /// The component that holds it in an acknowledge.
    holder: Option<u64>,
}

struct Peer {
    owner: u64,
    name: String,
}

/// Writes the report, and records it with the ring.
pub(crate) fn deadlock() {
    let blocked = look_at_all();
    let cycle = find_cycle(&blocked).unwrap_or_default();
    let text = text(&blocked, &cycle);
    let text = text.trim_end();
    if let Some(recorder) = recording::recorder() {
        let ids: Vec<u64> = cycle.iter().map(|&index| blocked[index].id).collect();
        recorder.cycle(&ids);
        recorder.failure(text);
    }
    output::complain(text);
}

/// The report. Nothing runs.
pub(crate) fn of_all() -> String {
    let blocked = look_at_all();
    text(&blocked, &find_cycle(&blocked).unwrap_or_default())
}

/// Every component, with what it waits for. Nothing runs.
fn look_at_all() -> Vec<Blocked> {
    let mut blocked = Vec::new();
    let mut seats = Vec::new();
    registry::for_each(|seat| seats.push(std::ptr::from_ref(seat)));
    for seat in seats {
        // SAFETY: nothing runs, so no component ends meanwhile, and every offer stands still.
        unsafe {
            inflate((*seat).component());
            blocked.push(look_at(&*seat));
        }
    }
    blocked
}

/// # Safety
/// Nothing runs.
unsafe fn look_at(seat: &Seat) -> Blocked {
    // SAFETY: as the caller promises.
    unsafe {
        seat.offer.with(|offer| {
            let is_held = seat.state.stage() == Stage::Held;
            let waits_for: Vec<_> = offer
                .registered
                .iter()
                .filter(|_| !is_held)
                .map(|registration| {
                    let channel = &*registration.channel.cast::<Channel>();
                    (channel_name(channel, registration.site), peers_of(channel))
                })
                .collect();
            let site_text = offer
                .site
                .as_ref()
                .map_or("".into(), |site| literal(site.text));
            let names: Vec<_> = waits_for.iter().map(|(name, _)| name.as_str()).collect();
            let operation = match offer.waiting {
                Waiting::Send => format!("send on {site_text}"),
                Waiting::Receive => format!("receive from {site_text}"),
                Waiting::Acknowledge => format!("acknowledge from {site_text}"),
                Waiting::Select => format!("select over {}", names.join(", ")),
                Waiting::Outside(what) => format!("wait for {what}"),
            };
            Blocked {
                id: seat.id,
                name: registry::name_of(seat),
                service: seat.identity().service,
                place: place_of(offer.site),
                operation,
                waits_for,
                holder: is_held.then_some(offer.holder),
            }
        })
    }
}

/// Names a half-channel as the program does, else by its port.
///
/// # Safety
/// The channel is alive; `site` is null or valid.
unsafe fn channel_name(channel: &Channel, site: *const crate::abi::Site) -> String {
    // SAFETY: as the caller promises; texts are literals.
    let text = unsafe { site.as_ref().map_or("".into(), |site| literal(site.text)) };
    if !text.is_empty() {
        return text.into_owned();
    }
    // SAFETY: nothing runs.
    let label = unsafe { channel.label() };
    registry::port_name(&label).unwrap_or_else(|| "a channel".to_owned())
}

fn peers_of(channel: &Channel) -> Vec<Peer> {
    let _guard = hub::lock_of(channel);
    // SAFETY: locked, so peers are alive.
    let labels = unsafe {
        channel
            .peers()
            .into_iter()
            .map(|peer| peer.as_ref().label())
    };
    labels
        .map(|label| Peer {
            owner: label.owner,
            name: registry::port_name(&label)
                .unwrap_or_else(|| "a channel that belongs to no component".to_owned()),
        })
        .collect()
}

/// With more components than this, the report shows those of a ring and the oldest others.
const SHOWN: usize = 20;
/// Length from which only the beginning of a ring is shown.
const RING_SHOWN: usize = 10;
/// Peers shown of one half-channel.
const PEERS_SHOWN: usize = 8;

/// Selects the components to report, in creation order, and counts those left out.
fn worth_telling<'a>(blocked: &'a [Blocked], cycle: &[usize]) -> (Vec<&'a Blocked>, usize) {
    let is_user = |&index: &usize| !blocked[index].service;
    let count = (0..blocked.len()).filter(is_user).count();
    let mut chosen: Vec<usize> = if count <= SHOWN {
        (0..blocked.len()).filter(is_user).collect()
    } else {
        let in_ring = cycle.iter().copied().filter(is_user).take(SHOWN);
        in_ring
            .chain((0..blocked.len()).filter(is_user))
            .take(SHOWN)
            .collect()
    };
    chosen.sort_unstable();
    chosen.dedup();
    let left = count - chosen.len();
    let chosen = chosen.into_iter().map(|index| &blocked[index]);
    (chosen.collect(), left)
}

/// The report's text; `cycle` is empty if there is no ring.
fn text(blocked: &[Blocked], cycle: &[usize]) -> String {
    let mut text =
        "deadlock: every component is blocked, and nothing outside can wake one\n".to_owned();
    let (told, left) = worth_telling(blocked, cycle);
    for one in told {
        let _ = writeln!(
            text,
            "  {} at {}: {}, {}",
            one.name,
            one.place,
            one.operation,
            for_whom(one, blocked),
        );
    }
    if left > 0 {
        let _ = writeln!(text, "  and {left} more components");
    }
    if !cycle.is_empty() {
        let mut names: Vec<_> = cycle
            .iter()
            .take(RING_SHOWN)
            .map(|&index| blocked[index].name.as_str())
            .collect();
        let more = format!("{} others", cycle.len() - names.len());
        let first = names[0];
        if cycle.len() > RING_SHOWN {
            names.push(&more);
        }
        let _ = writeln!(
            text,
            "  cycle: {} waits for {first}",
            names.join(" waits for ")
        );
    }
    text
}

fn for_whom(one: &Blocked, blocked: &[Blocked]) -> String {
    if let Some(holder) = one.holder {
        let holder = blocked.iter().find(|other| other.id == holder);
        return match holder {
            Some(holder) => format!(
                "received and held until {} ends its acknowledge ({})",
                holder.name,
                doing(holder)
            ),
            None => "received and held by an acknowledge".to_owned(),
        };
    }
    if one.waits_for.is_empty() {
        return "which nothing can end".to_owned();
    }
    let several = one.waits_for.len() > 1;
    let parts: Vec<_> = one
        .waits_for
        .iter()
        .map(|(name, peers)| {
            let to = connected_to(peers, blocked);
            if several { format!("{name} {to}") } else { to }
        })
        .collect();
    parts.join("; ")
}

/// `connected to Pong.ball (Pong is in: receive from other at pong.isf:9:3)`.
fn connected_to(peers: &[Peer], blocked: &[Blocked]) -> String {
    if peers.is_empty() {
        return "connected to nothing".to_owned();
    }
    let left = peers.len().saturating_sub(PEERS_SHOWN);
    let mut peers: Vec<_> = peers
        .iter()
        .take(PEERS_SHOWN)
        .map(
            |peer| match blocked.iter().find(|other| other.id == peer.owner) {
                Some(owner) => format!("{} ({} is at: {})", peer.name, owner.name, doing(owner)),
                // Half-channels of an ended component live as long as something refers to them.
                None => match peer.name.rsplit_once('.') {
                    Some((owner, _)) if peer.owner != 0 => {
                        format!("{} ({owner} has ended)", peer.name)
                    }
                    _ => peer.name.clone(),
                },
            },
        )
        .collect();
    if left > 0 {
        peers.push(format!("{left} more"));
    }
    format!("connected to {}", peers.join(" and "))
}

fn doing(one: &Blocked) -> String {
    format!("{} at {}", one.operation, one.place)
}

/// Finds components that wait for each other in a ring: the first ring on a walk from the oldest.
fn find_cycle(blocked: &[Blocked]) -> Option<Vec<usize>> {
    let places: HashMap<u64, usize> = blocked
        .iter()
        .enumerate()
        .map(|(index, one)| (one.id, index))
        .collect();
    let edges: Vec<Vec<usize>> = blocked
        .iter()
        .map(|one| {
            let owners = one
                .waits_for
                .iter()
                .flat_map(|(_, peers)| peers)
                .map(|peer| peer.owner);
            owners
                .chain(one.holder)
                .filter_map(|owner| places.get(&owner).copied())
                .collect()
        })
        .collect();
    cycle_in(&edges)
}

/// Finds a cycle in a directed graph, by depth-first search without recursion.
fn cycle_in(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        OnPath,
        Done,
    }
    let mut marks = vec![Mark::New; edges.len()];
    for start in 0..edges.len() {
        if marks[start] != Mark::New {
            continue;
        }
        // The path, each with the number of edges already followed.
        let mut path = vec![(start, 0)];
        marks[start] = Mark::OnPath;
        while let Some((vertex, followed)) = path.last_mut() {
            let Some(&next) = edges[*vertex].get(*followed) else {
                marks[*vertex] = Mark::Done;
                path.pop();
                continue;
            };
            *followed += 1;
            match marks[next] {
                Mark::Done => {}
                Mark::New => {
                    marks[next] = Mark::OnPath;
                    path.push((next, 0));
                }
                Mark::OnPath => {
                    let from = path.iter().position(|&(vertex, _)| vertex == next)?;
                    return Some(path[from..].iter().map(|&(vertex, _)| vertex).collect());
                }
            }
        }
    }
    None
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_found_behind_a_tail() {
        assert_eq!(
            cycle_in(&[vec![1], vec![2], vec![3], vec![1]]),
            Some(vec![1, 2, 3])
        );
        assert_eq!(cycle_in(&[vec![1], vec![2], vec![]]), None);
        assert_eq!(cycle_in(&[vec![0]]), Some(vec![0]));
    }
}
