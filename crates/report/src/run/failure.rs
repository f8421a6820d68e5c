//! Failures of a run: a deadlock with its ring, uncaught exceptions.

use hearth_draw::page::Section;
use hearth_draw::ring::{Link, Ring};
use hearth_text::counted;
use hearth_watch::Recording;

use super::doing;

/// The most components of a ring that are drawn.
const DRAWN: usize = 10;

/// The failures as they were printed, and the ring of a deadlock; `None` if there were none.
pub(super) fn section(recording: &Recording) -> Option<Section> {
    if recording.failures.is_empty() {
        return None;
    }
    let mut section = Section::new("What went wrong").printed(&recording.failures.join("\n"));
    if let Some(ring) = ring(recording) {
        section = section.picture(
            &ring.draw(),
            "Each waits for the one that its arrow leads to.",
        );
    }
    Some(section)
}

/// The first line of the last failure.
pub(super) fn in_short(recording: &Recording) -> Option<&str> {
    recording.failures.last()?.lines().next()
}

fn ring(recording: &Recording) -> Option<Ring> {
    let all = recording.cycle.len() + recording.cycle_left as usize;
    let drawn = if all > DRAWN { DRAWN - 1 } else { DRAWN };
    let shown = recording.cycle.iter().take(drawn);
    let mut links: Vec<Link> = shown
        .filter_map(|&id| {
            let component = recording.component(id)?;
            Some(Link {
                name: component.name.clone(),
                detail: doing(recording, component),
            })
        })
        .collect();
    if all > links.len() && !links.is_empty() {
        links.push(Link {
            name: counted(all - links.len(), "other"),
            detail: "in the same ring".to_owned(),
        });
    }
    (!links.is_empty()).then(|| Ring {
        title: "Who waits for whom".to_owned(),
        links,
    })
}
