//! A run as a page for a browser.

mod channels;
mod compared;
mod components;
mod failure;
mod machine;
mod moves;
mod plan;
mod timeline;

use hearth_draw::page::{Page, Tone};
use hearth_draw::scale::Unit;
use hearth_driver::expected::Expected;
use hearth_text::counted;
use hearth_watch::figures::Sum;
use hearth_watch::{Carrying, Component, Ending, Recording, State};

pub use moves::latest;

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// The most components, channels and moves with a row; the others are added up.
const ROWS: usize = 40;

/// The state of a program's process, which alone tells how a run without a recorded end ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    Runs,
    Ended,
    /// A signal ended it, by number.
    Killed(i32),
    Unknown,
}

/// The page of a program's run, with its expectations if they are known.
pub fn page(
    recording: &Recording,
    program: &str,
    process: Process,
    expected: Option<&Expected>,
) -> String {
    let mut page = Page::new(&format!("{program}: its run"));
    if let Some(section) = failure::section(recording) {
        page.first(section);
    }
    page.lead(&summary(recording, process));
    if recording.events_lost > 0 {
        let lines = [format!(
            "{} earlier events are not kept, so the timeline has the end of the run. The sums are of all \
             of it. A larger --watch-window keeps more.",
            recording.events_lost
        )];
        page.callout(Tone::Note, "A part of the events", &lines);
    }
    let picture = machine::MachinePicture::of(recording, expected);
    page.add(components::section(recording));
    page.add(timeline::section(recording, picture.as_ref()));
    page.add(machine::section(recording, picture.as_ref()));
    page.add(channels::section(recording));
    page.add(moves::section(recording));
    page.add(plan::section(recording, expected));
    page.footer("Written by hearth run --report. What the words mean: docs/report.md.");
    page.html()
}
/// One line of all of it.
pub fn summary(recording: &Recording, process: Process) -> String {
    let sum = Sum::of(&recording.components);
    let end = match (recording.ending, process) {
        (Ending::Code(code), _) => match failure::in_short(recording) {
            Some(reason) => format!("ended with code {code}: {reason}"),
            // The runtime ends so after a signal.
            None if code > 128 => by_signal(code as i32 - 128),
            None => format!("ended with code {code}"),
        },
        (Ending::Open, Process::Runs) => "is still running".to_owned(),
        (Ending::Open, Process::Killed(signal)) => by_signal(signal),
        (Ending::Open, Process::Ended) => "was killed".to_owned(),
        (Ending::Open, Process::Unknown) => "was killed, or is still running".to_owned(),
    };
    let carrier = match recording.carrying {
        Carrying::Workers => counted(recording.workers.len(), "worker"),
        Carrying::Threads => "a thread each".to_owned(),
    };
    let collected = recording.collected;
    let collections = match collected.collections {
        0 => String::new(),
        count => format!(
            " {} that nobody could wake ended in {}, which took {} and held up no worker for \
             longer than {}.",
            counted(collected.components as usize, "component"),
            counted(count as usize, "collection"),
            time(collected.ns),
            time(collected.held_ns_max),
        ),
    };
    format!(
        "{} on {carrier}; {}, in which components ran for {} in all; it {end}.{collections}",
        counted(
            recording.components.len() + recording.components_left as usize,
            "component"
        ),
        time(recording.ns),
        time(sum.running),
    )
}

fn by_signal(signal: i32) -> String {
    match signal {
        SIGINT => "was interrupted".to_owned(),
        SIGTERM => "was told to end".to_owned(),
        signal => format!("was killed by signal {signal}"),
    }
}

/// A time as people read it.
pub fn time(ns: u64) -> String {
    Unit::Nanoseconds.show(ns as f64)
}

/// The present state of a component, in a few words.
pub fn doing(recording: &Recording, component: &Component) -> String {
    match component.state {
        State::Made => "made".to_owned(),
        State::Ready => "ready".to_owned(),
        State::Running => "running".to_owned(),
        State::Ended => "ended".to_owned(),
        State::Waiting(wait) => hearth_watch::trace::describe(recording, component.id, wait),
    }
}

/// Components, the longest-running first.
pub fn busiest(recording: &Recording) -> Vec<&Component> {
    let mut all: Vec<&Component> = recording.components.iter().collect();
    all.sort_by_key(|component| (std::cmp::Reverse(component.running), component.id));
    all
}

fn share(part: u64, of: u64) -> String {
    hearth_text::percent(part as f64, of.max(1) as f64, 1)
}

/// A load, as a share of one.
fn percent(part: f64) -> String {
    hearth_text::percent(part, 1.0, 1)
}

/// A number of events a second.
fn rate(count: f64) -> String {
    match count {
        count if count >= 1e6 => format!("{:.1} M", count / 1e6),
        count if count >= 1e4 => format!("{:.1} k", count / 1e3),
        count if count >= 10.0 => format!("{count:.0}"),
        count => format!("{count:.2}"),
    }
}

/// The core where a component ran for most of the time, as the system numbers it.
fn mostly_on(recording: &Recording, component: &Component) -> Option<usize> {
    let place = component.mostly?;
    match recording.carrying {
        Carrying::Threads => Some(usize::from(place)),
        Carrying::Workers => {
            let worker = recording.workers.iter().find(|one| one.index == place)?;
            worker.core.or(worker.seen_on)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_short() {
        let told: Vec<String> = [0.0, 0.126, 9.0, 312.4, 25_300.0, 4_200_000.0, 31e6]
            .into_iter()
            .map(rate)
            .collect();
        assert_eq!(
            told,
            ["0.00", "0.13", "9.00", "312", "25.3 k", "4.2 M", "31.0 M"]
        );
    }
}
