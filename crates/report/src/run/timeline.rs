//! The timeline.

use std::cmp::Reverse;
use std::collections::HashMap;

use hearth_draw::page::Section;
use hearth_draw::spans::{Kind, Mark, Span, SpanChart, SpanRow};
use hearth_watch::figures::{self, Slice};
use hearth_watch::{Happening, Recording};

use super::machine::MachinePicture;
use super::{moves, time};

/// The most components, and the most workers, with a row.
const COMPONENTS: usize = 24;
const WORKERS: usize = 16;
/// The most stretches drawn, the last ones.
const SLICES: usize = 20_000;
/// Intervals that begin within this share of the time are drawn from the program's beginning.
const NEAR: u64 = 4;
/// The most moves and decisions marked.
const MARKS: usize = 400;

pub(super) fn section(recording: &Recording, seen: Option<&MachinePicture>) -> Section {
    let slices = figures::slices(recording);
    let section = Section::new("Timeline");
    let slices = &slices[slices.len().saturating_sub(SLICES)..];
    let Some(first) = slices.first() else {
        return section.text("No component ran in the window of the events.");
    };
    let last = slices.iter().map(|slice| slice.to).max().unwrap_or(0);
    // From the program's beginning, if that leaves most of the room.
    let begin = match first.from < last / NEAR {
        true => 0,
        false => first.from,
    };
    let (ids, left) = busiest(slices);
    let workers: Vec<u16> = recording
        .workers
        .iter()
        .map(|worker| worker.index)
        .take(WORKERS)
        .collect();
    let colours = Colours::of(recording, seen);
    let spans = |is_here: &dyn Fn(&Slice) -> bool, of_worker: bool| -> Vec<Span> {
        let here = slices.iter().filter(|slice| is_here(slice));
        here.map(|slice| Span {
            from: slice.from as f64,
            to: slice.to as f64,
            kind: colours.of_component(recording, slice.id),
            tip: tip(recording, slice, of_worker),
        })
        .collect()
    };
    let of_workers = workers.iter().map(|&worker| SpanRow {
        label: format!("worker {worker}"),
        spans: spans(&|slice| slice.worker == Some(worker), true),
    });
    let of_components = ids.iter().map(|&id| SpanRow {
        label: name(recording, id),
        spans: spans(&|slice| slice.id == id, false),
    });
    let row_of = |id: u64| ids.binary_search(&id).ok().map(|nth| workers.len() + nth);
    let chart = SpanChart {
        title: "Who ran when".to_owned(),
        window: (begin as f64, last as f64),
        rows: of_workers.chain(of_components).collect(),
        kinds: colours.kinds,
        marks: marks(recording, begin..=last, row_of),
        width: 1020.0,
    };
    section.picture(&chart.draw(), &caption(slices.len(), left))
}

fn caption(slices: usize, left: usize) -> String {
    let stretches = match slices {
        1 => "stretch".to_owned(),
        count => format!("{count} stretches"),
    };
    let more = match left {
        0 => String::new(),
        _ => format!(" {left} components that ran less are left out."),
    };
    format!(
        "The last {stretches} in which something ran, in the colour of the component's type. A diamond is a \
         move, a dashed line what the placer decided. A trace (--trace) has all that is kept, to look at \
         closely.{more}"
    )
}

/// The components that ran longest, ascending, and the number of others.
fn busiest(slices: &[Slice]) -> (Vec<u64>, usize) {
    let mut time_of = HashMap::new();
    for slice in slices {
        *time_of.entry(slice.id).or_insert(0) += slice.to - slice.from;
    }
    let mut ids: Vec<u64> = time_of.keys().copied().collect();
    ids.sort_by_key(|id| (Reverse(time_of[id]), *id));
    let left = ids.len().saturating_sub(COMPONENTS);
    ids.truncate(COMPONENTS);
    ids.sort_unstable();
    (ids, left)
}

fn name(recording: &Recording, id: u64) -> String {
    match recording.component(id) {
        Some(component) => component.name.clone(),
        None => format!("component {id}"),
    }
}

fn marks(
    recording: &Recording,
    window: std::ops::RangeInclusive<u64>,
    row_of: impl Fn(u64) -> Option<usize>,
) -> Vec<Mark> {
    let all = moves::marks(recording).into_iter();
    all.filter(|(at, ..)| window.contains(at))
        .filter_map(|(at, id, tip)| {
            let row = match id {
                Some(id) => Some(row_of(id)?),
                None => None,
            };
            let at = at as f64;
            Some(Mark { at, row, tip })
        })
        .take(MARKS)
        .collect()
}

/// The colours of types, as in the picture of the machine.
struct Colours {
    kinds: Vec<Kind>,
    by_type: HashMap<String, usize>,
}

impl Colours {
    fn of(recording: &Recording, seen: Option<&MachinePicture>) -> Colours {
        let Some((own, others)) = seen.map(MachinePicture::looks) else {
            return Colours {
                kinds: Vec::new(),
                by_type: HashMap::new(),
            };
        };
        let has_others = recording
            .components
            .iter()
            .any(|one| one.runs > 0 && !own.iter().any(|(name, _)| *name == one.of));
        let by_type = own.iter().enumerate();
        let by_type = by_type
            .map(|(nth, (name, _))| (name.clone(), nth))
            .collect();
        let mut kinds: Vec<Kind> = own
            .into_iter()
            .map(|(name, look)| Kind { name, look })
            .collect();
        // Who has no row in the picture, or a type without a look of its own.
        if has_others {
            let name = "others".to_owned();
            kinds.push(Kind { name, look: others });
        }
        Colours { kinds, by_type }
    }

    fn of_component(&self, recording: &Recording, id: u64) -> usize {
        let of = recording.component(id).map(|component| &component.of);
        let kind = of.and_then(|of| self.by_type.get(of));
        kind.copied().unwrap_or(self.kinds.len())
    }
}

fn tip(recording: &Recording, slice: &Slice, of_worker: bool) -> String {
    let end = match slice.end {
        Some(Happening::Waits(wait)) => {
            let wait = hearth_watch::trace::describe(recording, slice.id, wait);
            format!(", then {wait}")
        }
        Some(Happening::Ended) => ", then it ended".to_owned(),
        _ => String::new(),
    };
    let who = match (of_worker, slice.worker) {
        (true, _) => format!("{}: ", name(recording, slice.id)),
        (false, Some(worker)) => format!("on worker {worker}: "),
        (false, None) => String::new(),
    };
    format!(
        "{who}{} at {}{end}",
        time(slice.to - slice.from),
        time(slice.from)
    )
}
