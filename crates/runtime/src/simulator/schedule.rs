//! The decisions of a simulation: made by a seed or read from a schedule, and recorded.
//!
//! A decision is a point with more than one way to continue. Choice 0 is the plain way: stay with
//! the same worker, take the component whose turn it is, pause no component. So a schedule is the
//! list of the decisions that were not plain, and short where little was out of the ordinary.
//!
//! Decisions are numbered from 1 among those of the same kind about the same *subject*: the pauses
//! of one component, the queue of one worker. So most of a schedule keeps its meaning when a part
//! of it is left out, which makes shrinking work.

use std::collections::HashMap;
use std::fmt::Write;

use crate::ground::choices::scramble;

/// The kind of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Kind {
    /// The worker of the next step.
    Worker,
    /// The ready component that resumes.
    Component,
    /// A pause of a component after an operation or a pass.
    Pause,
    /// A step of other workers in the middle of a component's pass.
    Beside,
    /// The place of a new component.
    Place,
    /// A worker's look at its arrivals before its next step.
    Look,
    /// A worker without work that falls asleep.
    Sleep,
    /// A collection between two steps.
    Collect,
    /// A call beside the running one that another worker runs now.
    Record,
}

const KINDS: [(Kind, &str); 9] = [
    (Kind::Worker, "worker"),
    (Kind::Component, "component"),
    (Kind::Pause, "pause"),
    (Kind::Beside, "beside"),
    (Kind::Place, "place"),
    (Kind::Look, "look"),
    (Kind::Sleep, "sleep"),
    (Kind::Collect, "collect"),
    (Kind::Record, "record"),
];

/// Odds with which a seed may make a kind of decision deviate: once in this many. The seed selects
/// one of them for each kind, so that some seeds differ much from the plain schedule and others
/// hardly.
const ODDS: [u64; 6] = [2, 3, 5, 10, 30, 100];

/// A decision's kind, its subject, and its number among those.
type DecisionPoint = (Kind, u64, u64);

/// A decision that was not plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deviation {
    pub(super) place: DecisionPoint,
    pub(super) choice: u32,
}

enum Source {
    /// No deviations.
    Plain,
    Seed {
        state: u64,
        odds: [u64; KINDS.len()],
    },
    Given(HashMap<DecisionPoint, u32>),
}

/// The source of a run's decisions, and their record.
pub(super) struct Schedule {
    source: Source,
    /// Decisions between several ways so far.
    pub(super) count: u64,
    /// Number of decisions, by kind and subject.
    numbers: HashMap<(Kind, u64), u64>,
    pub(super) deviations: Vec<Deviation>,
}

impl Schedule {
    fn of(source: Source) -> Schedule {
        Schedule {
            source,
            count: 0,
            numbers: HashMap::new(),
            deviations: Vec::new(),
        }
    }

    /// Makes the schedule of a seed; that of 0 is the plain one.
    pub(super) fn by_seed(seed: u64) -> Schedule {
        if seed == 0 {
            return Schedule::of(Source::Plain);
        }
        let mut state = scramble(seed);
        // Collections and records came later: a seed means the same to all other kinds as before.
        let mut of_collections = scramble(!seed);
        let odds = KINDS.map(|(kind, _)| {
            let state = match kind {
                Kind::Record => return 2,
                Kind::Collect => &mut of_collections,
                _ => &mut state,
            };
            ODDS[(draw(state) % ODDS.len() as u64) as usize]
        });
        Schedule::of(Source::Seed { state, odds })
    }

    /// Makes the schedule with these deviations from the plain one.
    pub(super) fn given(deviations: Vec<Deviation>) -> Schedule {
        let by_place = deviations.into_iter().map(|one| (one.place, one.choice));
        Schedule::of(Source::Given(by_place.collect()))
    }

    /// Decides between `options` ways.
    pub(super) fn choose(&mut self, kind: Kind, subject: u64, options: usize) -> usize {
        let number = self.numbers.entry((kind, subject)).or_default();
        *number += 1;
        let place = (kind, subject, *number);
        if options < 2 {
            return 0;
        }
        self.count += 1;
        let choice = match &mut self.source {
            Source::Plain => 0,
            Source::Seed { state, odds } => {
                if draw(state).is_multiple_of(odds[kind as usize]) {
                    1 + (draw(state) % (options as u64 - 1)) as usize
                } else {
                    0
                }
            }
            Source::Given(given) => given
                .get(&place)
                .map_or(0, |&choice| choice as usize % options),
        };
        if choice != 0 {
            let choice = choice as u32;
            self.deviations.push(Deviation { place, choice });
        }
        choice
    }
}

/// The next number of a SplitMix64 sequence.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    scramble(*state)
}

// ---- as text ----------------------------------------------------------------------------------

/// The first line of a schedule's file.
const TITLE: &str = "hearth schedule 1";

/// The contents of a schedule's file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) seed: u64,
    pub(super) workers: usize,
    pub(super) deviations: Vec<Deviation>,
}

/// `pause 3 12 1` a line: the kind, the subject, the number, the choice.
pub(super) fn write(seed: u64, workers: usize, deviations: &[Deviation]) -> String {
    let mut text = format!("{TITLE}\nseed {seed}\nworkers {workers}\n");
    for one in deviations {
        let (kind, subject, number) = one.place;
        let name = KINDS[kind as usize].1;
        let _ = writeln!(text, "{name} {subject} {number} {}", one.choice);
    }
    text
}

/// Reads a schedule's file; text after an empty line is for people.
pub(super) fn read(text: &str) -> Result<Written, String> {
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return Err(format!("it does not begin with `{TITLE}`"));
    }
    let mut written = Written {
        seed: 0,
        workers: 0,
        deviations: Vec::new(),
    };
    for (index, line) in lines.take_while(|line| !line.is_empty()).enumerate() {
        let bad = || format!("line {} is not understood: {line:?}", index + 2);
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["seed", seed] => written.seed = seed.parse().map_err(|_| bad())?,
            ["workers", count] => written.workers = count.parse().map_err(|_| bad())?,
            [kind, subject, number, choice] => {
                let known = KINDS.iter().find(|(_, name)| *name == kind);
                let kind = known.ok_or_else(bad)?.0;
                let number_of = |text: &str| text.parse().map_err(|_| bad());
                written.deviations.push(Deviation {
                    place: (kind, number_of(subject)?, number_of(number)?),
                    choice: choice.parse().map_err(|_| bad())?,
                });
            }
            _ => return Err(bad()),
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decisions(schedule: &mut Schedule) -> Vec<usize> {
        let kinds = [Kind::Worker, Kind::Component, Kind::Pause];
        (0..300)
            .map(|index| schedule.choose(kinds[index % 3], index as u64 % 2, 2 + index % 5))
            .collect()
    }

    #[test]
    fn a_seed_decides_the_same_again_and_its_record_does_too() {
        for seed in 1..50 {
            let mut first = Schedule::by_seed(seed);
            let wanted = decisions(&mut first);
            assert_eq!(decisions(&mut Schedule::by_seed(seed)), wanted);
            let text = write(seed, 2, &first.deviations);
            let written = read(&text).unwrap();
            assert_eq!(written.seed, seed);
            assert_eq!(decisions(&mut Schedule::given(written.deviations)), wanted);
        }
    }

    #[test]
    fn seed_0_is_plain() {
        assert!(
            decisions(&mut Schedule::by_seed(0))
                .iter()
                .all(|&one| one == 0)
        );
    }

    #[test]
    fn a_lonely_way_is_no_decision() {
        let mut schedule = Schedule::by_seed(3);
        assert_eq!(schedule.choose(Kind::Worker, 0, 1), 0);
        assert_eq!(schedule.count, 0);
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        assert!(read("").unwrap_err().contains("hearth schedule"));
        let bad = read("hearth schedule 1\nseed 4\nlunch 3 1 1\n").unwrap_err();
        assert!(bad.contains("line 3"), "{bad}");
        let good = read("hearth schedule 1\nseed 4\nworkers 2\npause 3 1 1\n\nanything").unwrap();
        assert_eq!(good.deviations.len(), 1);
    }
}
