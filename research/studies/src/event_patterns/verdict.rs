//! What the source claims, judged by rules; and what we add.
//!
//! The same rules judge what is measured here and what the source published. Everything compared is a ratio;
//! [`Figure`] and [`Relation`] say when one is more, alike or less. A claim's size is met within a factor of
//! [`SIZE`]. A claim about threads side by side needs cores for them: with fewer the answer is that it cannot be
//! shown, whatever the figures are, since threads that share a core have other reasons.

use std::collections::BTreeMap;

use super::explain::explained;
use super::options::Experiment;
use super::plan::{APART, TOGETHER};
use super::published;
use super::results::{Cell, Results};
use crate::judging::{Answer, Figure, Relation, SIZE, Verdict};

/// A rate this near to the highest is at the peak.
const AT_PEAK: f64 = 0.95;
/// No system call is faster: a shorter time is a difference of larger ones that are too near.
const CALL_NS_MIN: f64 = 50.0;
/// Events that the source's select told of in one call, at most.
const EVENTS_A_CALL: f64 = 8.0;

/// A claim: relations that must hold, and the size of the first if the source gives one.
struct Claim {
    id: &'static str,
    claim: &'static str,
    published: Option<&'static str>,
    terms: &'static [(&'static str, &'static [Relation])],
    size: Option<f64>,
    /// The server needs so many cores.
    cores: usize,
}

use Relation::{Alike, Less, More};

const fn claim(
    id: &'static str,
    claim: &'static str,
    published: &'static str,
    terms: &'static [(&'static str, &'static [Relation])],
) -> Claim {
    Claim {
        id,
        claim,
        published: Some(published),
        terms,
        size: None,
        cores: 1,
    }
}

const CLAIMS: [Claim; 13] = [
    claim(
        "edge-over-select",
        "edge-triggered epoll gives more than select, in both patterns",
        "in words; the curves are lost",
        &[
            ("half-async edge/select", &[More]),
            ("leader edge/select", &[More]),
        ],
    ),
    Claim {
        size: Some(2.0),
        ..claim(
            "twice",
            "Leader/Followers gains most by it: up to twice as much",
            "up to 2 times, of the study as a whole; the pattern follows from its text",
            &[("leader edge/select", &[More])],
        )
    },
    Claim {
        size: Some(1.8),
        ..claim(
            "select-call",
            "the reason: with Leader/Followers a call of select takes almost 80 % longer, in the serial section",
            "almost 80 % longer",
            &[("leader select/edge call", &[More])],
        )
    },
    claim(
        "select-over-level",
        "Half-Sync/Half-Async does more with select than with level-triggered epoll, which has to arm again by a call",
        "in words; the curves are lost",
        &[("half-async select/level", &[More])],
    ),
    claim(
        "level-over-select",
        "Leader/Followers, where the wait is in the critical path, does more with either epoll than with select",
        "in words; the curves are lost",
        &[
            ("leader edge/select", &[More]),
            ("leader level/select", &[More]),
        ],
    ),
    Claim {
        cores: 4,
        ..claim(
            "events-a-call",
            "with Half-Sync/Half-Async a call of select tells of no more than 8 connections on average",
            "no more than 8",
            &[("half-async select events a call/8", &[Less, Alike])],
        )
    },
    Claim {
        cores: 4,
        ..claim(
            "rearming-grows",
            "arming again, level-triggered, takes longer the more threads there are, in both patterns",
            "in words; the curves are lost",
            &[
                ("half-async level rearming at most/least threads", &[More]),
                ("leader level rearming at most/least threads", &[More]),
            ],
        )
    },
    Claim {
        cores: 4,
        ..claim(
            "highest",
            "the highest rate of all is that of Half-Sync/Half-Async with edges",
            "in words; the curves are lost",
            &[("half-async/leader edge", &[More])],
        )
    },
    Claim {
        cores: 12,
        ..claim(
            "peaks",
            "Half-Sync/Half-Async has its peak with 10 threads, Leader/Followers with 13",
            "10 and 13 threads",
            &[
                ("half-async edge peak at/10 threads", &[Alike]),
                ("leader edge peak at/13 threads", &[Alike]),
            ],
        )
    },
    Claim {
        cores: 12,
        ..claim(
            "milder",
            "with too many threads Half-Sync/Half-Async loses much, and Leader/Followers little, which is then better",
            "beyond 11 threads; the curves are lost",
            &[
                ("leader/half-async edge kept at most threads", &[More]),
                ("leader/half-async edge at most threads", &[More]),
            ],
        )
    },
    Claim {
        cores: 4,
        ..claim(
            "waiter",
            "with few threads that work, the one that waits is not busy; with 9 it is",
            "in words; the curves are lost",
            &[("half-async edge waiter busy at 10/2 threads", &[More])],
        )
    },
    Claim {
        cores: 4,
        ..claim(
            "sweet-spot",
            "Leader/Followers gains by threads until the time of a message, divided by them, is that of the serial section",
            "a rule",
            &[("leader edge peak at/sweet spot", &[Alike])],
        )
    },
    Claim {
        published: None,
        ..claim(
            "sharded",
            "ours: threads with connections of their own do more than either pattern, with edges",
            "",
            &[
                ("sharded/half-async edge", &[More]),
                ("sharded/leader edge", &[More]),
            ],
        )
    },
];

/// What claims are judged from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    figures: BTreeMap<String, Figure>,
    cores: usize,
    /// Sentences for each claim that say why it came out so.
    explained: BTreeMap<&'static str, Vec<String>>,
}

impl Evidence {
    /// Nothing yet, of a server with so many cores.
    #[must_use]
    pub fn new(cores: usize) -> Evidence {
        Evidence {
            cores,
            ..Evidence::default()
        }
    }

    /// What the source published.
    #[must_use]
    pub fn published() -> Evidence {
        published::evidence()
    }

    /// Adds a figure.
    pub fn put(&mut self, name: &str, figure: Figure) {
        self.figures.insert(name.to_owned(), figure);
    }

    /// A figure.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.get(name)
    }

    /// What was measured, where server and clients have cores of their own.
    #[must_use]
    pub fn measured(results: &Results) -> Evidence {
        let mut evidence = Evidence::new(results.cores_of_server(APART));
        evidence.peaks(results);
        evidence.calls(results);
        evidence.threads(results);
        evidence.explained = explained(results);
        evidence
    }

    fn put_runs(&mut self, name: &str, of: Option<&[f64]>, to: Option<&[f64]>) {
        if let (Some(of), Some(to)) = (of, to)
            && let Some(figure) = Figure::of_runs(of, to)
        {
            self.put(name, figure);
        }
    }

    /// The highest rates beside each other.
    fn peaks(&mut self, results: &Results) {
        let rate = |pattern, mechanism| {
            let peak = results.peak(Experiment::Threads, [pattern, mechanism, APART], 0)?;
            Some(peak.runs("rate"))
        };
        for (name, of, to) in [
            (
                "half-async edge/select",
                ("half-async", "edge"),
                ("half-async", "select"),
            ),
            (
                "leader edge/select",
                ("leader", "edge"),
                ("leader", "select"),
            ),
            (
                "half-async select/level",
                ("half-async", "select"),
                ("half-async", "level"),
            ),
            (
                "leader level/select",
                ("leader", "level"),
                ("leader", "select"),
            ),
            (
                "half-async/leader edge",
                ("half-async", "edge"),
                ("leader", "edge"),
            ),
            (
                "sharded/half-async edge",
                ("sharded", "edge"),
                ("half-async", "edge"),
            ),
            (
                "sharded/leader edge",
                ("sharded", "edge"),
                ("leader", "edge"),
            ),
        ] {
            self.put_runs(name, rate(of.0, of.1), rate(to.0, to.1));
        }
    }

    /// What calls cost and tell.
    fn calls(&mut self, results: &Results) {
        let line =
            |pattern, mechanism| results.line(Experiment::Threads, [pattern, mechanism, APART], 0);
        let alone = |mechanism| {
            let cell = line("leader", mechanism).into_iter().next()?;
            (cell.case.threads == 1).then(|| cell.runs("call_ns"))
        };
        self.put_runs("leader select/edge call", alone("select"), alone("edge"));
        let select = line("half-async", "select").into_iter();
        let told = select.filter_map(|cell| Some((cell, cell.median("events_a_wait")?)));
        let most = told
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(cell, _)| cell);
        self.put_runs(
            "half-async select events a call/8",
            most.map(|cell| cell.runs("events_a_wait")),
            Some(&[EVENTS_A_CALL]),
        );
        for pattern in ["half-async", "leader"] {
            let cells = line(pattern, "level");
            let rearming =
                |cell: Option<&&Cell>| cell.map(|cell| cell.runs("reactivate_ns").to_vec());
            let (least, most) = (rearming(cells.first()), rearming(cells.last()));
            let name = format!("{pattern} level rearming at most/least threads");
            if cells.len() > 1 {
                self.put_runs(&name, most.as_deref(), least.as_deref());
            }
        }
    }

    /// What more threads do.
    fn threads(&mut self, results: &Results) {
        let edge = |pattern| results.line(Experiment::Threads, [pattern, "edge", APART], 0);
        let (half, leader) = (edge("half-async"), edge("leader"));
        if let (Some(half_last), Some(leader_last)) = (half.last(), leader.last()) {
            self.put_runs(
                "leader/half-async edge at most threads",
                Some(leader_last.runs("rate")),
                Some(half_last.runs("rate")),
            );
            let (of, to) = (kept(&leader), kept(&half));
            self.put_runs(
                "leader/half-async edge kept at most threads",
                of.as_deref(),
                to.as_deref(),
            );
        }
        for (name, line, threads) in [
            ("half-async edge peak at/10 threads", &half, 10.0),
            ("leader edge peak at/13 threads", &leader, 13.0),
        ] {
            if let Some(at) = first_at_peak(line) {
                self.put(name, Figure::exact(at as f64 / threads));
            }
        }
        let busy = |threads| {
            let cell = half.iter().find(|cell| cell.case.threads == threads)?;
            Some(cell.runs("waiter_busy"))
        };
        self.put_runs(
            "half-async edge waiter busy at 10/2 threads",
            busy(10),
            busy(2),
        );
        if let (Some(spot), Some(at)) = (sweet_spot(results, "edge"), first_at_peak(&leader)) {
            self.put(
                "leader edge peak at/sweet spot",
                Figure::exact(at as f64 / spot),
            );
        }
    }

    /// All claims.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        CLAIMS.iter().map(|claim| self.judge(claim)).collect()
    }

    fn judge(&self, claim: &Claim) -> Verdict {
        let terms = claim.terms.iter();
        let known: Vec<(&str, &[Relation], &Figure)> = terms
            .filter_map(|(name, wanted)| Some((*name, *wanted, self.figures.get(*name)?)))
            .collect();
        let said: Vec<String> = known
            .iter()
            .map(|(name, _, figure)| format!("{name} {}", figure.words()))
            .collect();
        let mut because = said.join(", ");
        let mut answer = relations(claim.terms.len(), &known);
        if known.is_empty() {
            because = "not measured".to_owned();
        } else if self.cores < claim.cores {
            answer = Answer::CannotTell;
            because += &format!(
                "; the server has {} core{}, and this needs {} or more",
                self.cores,
                if self.cores == 1 { "" } else { "s" },
                claim.cores
            );
        } else if answer == Answer::CannotTell {
            because += ": the runs differ by more than that";
        } else if answer == Answer::Yes
            && let Some(size) = claim.size
            && let Some((value, ..)) = known.first().and_then(|(_, _, figure)| figure.ratio)
            && !(size / SIZE..=size * SIZE).contains(&value)
        {
            answer = Answer::InPart;
            because += "; the direction and not the size";
        }
        Verdict {
            id: claim.id,
            claim: claim.claim,
            published: claim.published,
            answer,
            because,
            explained: self.explained.get(claim.id).cloned().unwrap_or_default(),
        }
    }
}

/// What the relations alone say.
fn relations(terms: usize, known: &[(&str, &[Relation], &Figure)]) -> Answer {
    let hits = known
        .iter()
        .filter(|(_, wanted, figure)| wanted.contains(&figure.relation))
        .count();
    let is_unclear = known
        .iter()
        .any(|(_, _, figure)| figure.relation == Relation::Unclear);
    match hits {
        0 if known.is_empty() || is_unclear => Answer::CannotTell,
        0 => Answer::No,
        all if all == terms => Answer::Yes,
        _ => Answer::InPart,
    }
}

/// Rates with the most threads, as shares of the highest median.
fn kept(line: &[&Cell]) -> Option<Vec<f64>> {
    let medians = line.iter().filter_map(|cell| cell.median("rate"));
    let peak = medians.fold(0.0, f64::max);
    let last = line.last()?.runs("rate");
    (peak > 0.0).then(|| last.iter().map(|rate| rate / peak).collect())
}

/// The fewest threads with which the rate is at its peak.
fn first_at_peak(line: &[&Cell]) -> Option<usize> {
    let rated = line
        .iter()
        .filter_map(|cell| Some((cell.case.threads, cell.median("rate")?)));
    let rated: Vec<(usize, f64)> = rated.collect();
    let peak = rated.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let found = rated.iter().find(|(_, rate)| *rate >= AT_PEAK * peak);
    found.map(|(threads, _)| *threads)
}

/// The source's rule for Leader/Followers, from the times of one thread: the threads with which the time of a message,
/// the serial section's included, divided by them is that of the serial section.
pub(super) fn sweet_spot(results: &Results, mechanism: &str) -> Option<f64> {
    let line = results.line(Experiment::Threads, ["leader", mechanism, APART], 0);
    let cell = line.into_iter().find(|cell| cell.case.threads == 1)?;
    let serial = cell.median("call_ns")? * cell.median("waits")?;
    (serial >= CALL_NS_MIN).then_some(cell.median("server_ns")? / serial)
}

/// The layouts with their words.
pub const LAYOUTS: [(&str, &str); 2] = [
    (APART, "server and clients on cores of their own"),
    (TOGETHER, "server and clients on all cores"),
];
