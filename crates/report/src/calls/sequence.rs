//! A trace as messages between owners, and who calls whom.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hearth_draw::sequence::{Message, Sequence};

use super::trace::Trace;
use super::{Calls, grouped, ns, owner_of};

/// Most messages of a diagram.
const MESSAGES_MAX: usize = 60;

/// The longest call as a diagram, and the number of calls that it leaves out.
pub(super) fn sequence(calls: &Calls, trace: &Trace) -> (Sequence, usize) {
    let mut parties = vec!["caller".to_owned()];
    let mut messages: Vec<Message> = Vec::new();
    // The open calls' parties, and when each ends.
    let mut open: Vec<(usize, u64, u64)> = Vec::new();
    let mut shown = 0;
    for span in &trace.spans {
        while open.len() > span.depth as usize {
            answer(&mut messages, &mut open);
        }
        if messages.len() + 2 * open.len() + 2 > MESSAGES_MAX {
            break;
        }
        let (owner, what) = owner_of(calls.recorded.name(span.name));
        let to = parties.iter().position(|party| party == owner);
        let to = to.unwrap_or_else(|| {
            parties.push(owner.to_owned());
            parties.len() - 1
        });
        let from = open.last().map_or(0, |&(party, ..)| party);
        messages.push(Message {
            from,
            to,
            text: what.to_owned(),
            is_answer: false,
        });
        open.push((to, span.begin, span.end));
        shown += 1;
    }
    while !open.is_empty() {
        answer(&mut messages, &mut open);
    }
    let diagram = Sequence {
        title: format!("The longest call, {}", ns(trace.length())),
        parties,
        messages,
    };
    (diagram, trace.spans.len() + trace.more as usize - shown)
}

fn answer(messages: &mut Vec<Message>, open: &mut Vec<(usize, u64, u64)>) {
    let Some((party, begin, end)) = open.pop() else {
        return;
    };
    let to = open.last().map_or(0, |&(party, ..)| party);
    // A call of one's own is one arrow, with its time.
    let length = ns(end - begin);
    match messages.last_mut() {
        Some(last) if last.from == party && last.to == party && to == party && !last.is_answer => {
            let _ = write!(last.text, " ({length})");
        }
        _ => messages.push(Message {
            from: party,
            to,
            text: length,
            is_answer: true,
        }),
    }
}

/// The longest call as a sequence diagram in Mermaid's language. Empty if no call is whole.
#[must_use]
pub fn mermaid(calls: &Calls) -> String {
    let Some(trace) = &calls.longest else {
        return String::new();
    };
    let (diagram, left_out) = sequence(calls, trace);
    let mut text = "sequenceDiagram\n".to_owned();
    for (nth, party) in diagram.parties.iter().enumerate() {
        let _ = writeln!(text, "    participant p{nth} as {}", plain(party));
    }
    for message in &diagram.messages {
        let arrow = if message.is_answer { "-->>" } else { "->>" };
        let _ = writeln!(
            text,
            "    p{}{arrow}p{}: {}",
            message.from,
            message.to,
            plain(&message.text)
        );
    }
    if left_out > 0 {
        let _ = writeln!(text, "    Note over p0: {left_out} further calls");
    }
    text
}

/// Calls between owners, as a flow chart in Mermaid's language.
#[must_use]
pub fn owners_mermaid(calls: &Calls) -> String {
    let edges = owner_edges(calls);
    let mut parties: Vec<&str> = Vec::new();
    for (from, to) in edges.keys() {
        for party in [from, to] {
            if !parties.contains(&party.as_str()) {
                parties.push(party);
            }
        }
    }
    let place = |party: &str| parties.iter().position(|one| *one == party).unwrap_or(0);
    let mut text = "flowchart LR\n".to_owned();
    for (nth, party) in parties.iter().enumerate() {
        let _ = writeln!(text, "    p{nth}[\"{}\"]", plain(party));
    }
    for ((from, to), calls) in &edges {
        let (from, to) = (place(from), place(to));
        let _ = writeln!(text, "    p{from} -- {} --> p{to}", grouped(*calls));
    }
    text
}

/// Numbers of calls from one owner to another; `caller` calls those that nothing else calls.
pub(super) fn owner_edges(calls: &Calls) -> BTreeMap<(String, String), u64> {
    let mut edges: BTreeMap<(String, String), u64> = BTreeMap::new();
    for ((from, to), count) in calls.tree.edges() {
        let owner = |name| owner_of(calls.recorded.name(name)).0.to_owned();
        let from = from.map_or("caller".to_owned(), owner);
        *edges.entry((from, owner(to))).or_default() += count;
    }
    edges
}

/// Text without what Mermaid takes for its own.
fn plain(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            ';' | '#' | '"' | '\n' => ' ',
            letter => letter,
        })
        .collect()
}
