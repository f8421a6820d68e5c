//! Moves of components, and the placer's reasons.

use hearth_draw::page::{Section, Table};
use hearth_watch::{Carrying, Event, Happening, Recording};

use super::{ROWS, time};

pub(super) fn section(recording: &Recording) -> Section {
    let section = Section::new("Moves");
    let all = recording.moves.len() as u64 + recording.moves_left;
    if all == 0 && recording.remarks.is_empty() {
        let text = match recording.carrying {
            Carrying::Workers => {
                "No component went to another worker, and no worker's thread to another core."
            }
            Carrying::Threads => "No component's thread was seen on another core than before.",
        };
        return section.text(text);
    }
    let text = format!("{all} moves.");
    let mut said = Table::new(&[">when", "decision and reason"]);
    for remark in recording.remarks.iter().take(ROWS) {
        said.row(vec![time(remark.ns), remark.text.clone()]);
    }
    let remarks = recording.remarks.len() as u64 + recording.remarks_left;
    let mut section = section.text(&text).table(&said);
    if remarks > ROWS as u64 {
        section = section.text(&format!("The first {ROWS} of {remarks}."));
    }
    let mut table = Table::new(&[">when", "who", "from", "to"]);
    let first = recording.moves.len().saturating_sub(ROWS);
    for event in &recording.moves[first..] {
        if let Some(Move { who, from, to }) = Move::of(recording, event) {
            table.row(vec![time(event.ns), who, from, to]);
        }
    }
    if all > ROWS as u64 {
        section = section.text(&format!("The last {ROWS} of {all}:"));
    }
    section.table(&table).explained(
        "Moves are of components from one worker to another, and of threads from one core to another, which the \
         system does where it may. A thread's core is looked at whenever it resumes a component.",
    )
}

struct Move {
    who: String,
    from: String,
    to: String,
}

impl Move {
    fn of(recording: &Recording, event: &Event) -> Option<Move> {
        let component = || match recording.component(event.id) {
            Some(component) => component.name.clone(),
            None => format!("component {}", event.id),
        };
        let (who, of, from, to) = match event.what {
            Happening::Moved(from, to) => (component(), "worker", from, to),
            Happening::ThreadMoved(from, to) => (component(), "core", from, to),
            Happening::WorkerMoved(from, to) => (
                format!("the thread of worker {}", event.id),
                "core",
                from,
                to,
            ),
            _ => return None,
        };
        Some(Move {
            who,
            from: format!("{of} {from}"),
            to: format!("{of} {to}"),
        })
    }
}

/// The latest moves and decisions, one a line, the latest first. Of many moves some are left out,
/// so that the decision that they follow from is there.
pub fn latest(recording: &Recording, most: usize) -> Vec<String> {
    let decided = recording.remarks.last();
    let decided = decided.map(|remark| match remark.is_of_collection() {
        true => (remark.ns, remark.text.clone()),
        false => (remark.ns, format!("placer: {}", remark.text)),
    });
    let moves = recording.moves.iter().rev().filter_map(|event| {
        let Move { who, from, to } = Move::of(recording, event)?;
        Some((event.ns, format!("{who}: {from} to {to}")))
    });
    let room = most.saturating_sub(usize::from(decided.is_some()));
    let mut all: Vec<(u64, String)> = moves.take(room).chain(decided).collect();
    all.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    all.into_iter()
        .map(|(ns, text)| format!("{} {text}", time(ns)))
        .collect()
}

/// A mark in the timeline: its time, its component if it has one, and its text.
pub(super) fn marks(recording: &Recording) -> Vec<(u64, Option<u64>, String)> {
    let of_one = recording.moves.iter().filter_map(|event| {
        let Move { from, to, .. } = Move::of(recording, event)?;
        let text = format!("goes from {from} to {to} at {}", time(event.ns));
        let id = match event.what {
            Happening::WorkerMoved(..) => return None,
            _ => event.id,
        };
        Some((event.ns, Some(id), text))
    });
    let remarks = recording.remarks.iter();
    let of_all = remarks.map(|remark| {
        let text = format!("placer, at {}: {}", time(remark.ns), remark.text);
        (remark.ns, None, text)
    });
    of_one.chain(of_all).collect()
}

#[cfg(test)]
mod tests {
    use hearth_watch::Remark;

    use super::*;

    #[test]
    fn the_decision_is_told_with_the_moves_that_follow() {
        let event = |ns| Event {
            ns,
            id: 7,
            what: Happening::Moved(0, 1),
        };
        let recording = Recording {
            moves: (10..20).map(event).collect(),
            remarks: vec![Remark {
                ns: 9,
                text: "all move".to_owned(),
            }],
            ..Recording::default()
        };
        let told = latest(&recording, 3);
        assert_eq!(
            told,
            [
                "19 ns component 7: worker 0 to worker 1",
                "18 ns component 7: worker 0 to worker 1",
                "9 ns placer: all move",
            ]
        );
    }
}
