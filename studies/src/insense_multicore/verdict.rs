//! What the source claims, judged by rules.
//!
//! The same rules judge what is measured here and what the source published, so that an answer differs
//! because machines and programs differ and for no other reason. Everything compared is a ratio of two
//! times (or counts). Two are *alike* if they differ by no more than [`ALIKE`] and nothing speaks
//! against it; one is *more* if the whole interval of the ratio is above 1. A claim's size is met within
//! a factor of [`SIZE`].
//!
//! The source's components were threads: it is the threads here that its claims are judged by. Its
//! shared heap had a list of all blocks under a lock, and that is the shared heap in claims about
//! allocation.

use std::collections::BTreeMap;

use hearth_model::stats::quantile;

use super::explain::explained;
use super::layouts::CORES;
use super::options::Experiment;
use super::published;
use super::results::{Cell, Results};
use crate::cache_impact::verdict::Answer;

/// Ratios this near to 1 are alike.
pub const ALIKE: f64 = 0.1;
/// A ratio within this factor of the published one has its size.
pub const SIZE: f64 = 1.5;

/// How two times stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The first is longer.
    More,
    /// Neither is, noticeably.
    Alike,
    /// The first is shorter.
    Less,
    /// The runs differ by more than the two do.
    Unclear,
}

impl Relation {
    /// As the published tables write it.
    #[must_use]
    pub fn named(text: &str) -> Option<Relation> {
        match text {
            "more" => Some(Relation::More),
            "alike" => Some(Relation::Alike),
            "less" => Some(Relation::Less),
            _ => None,
        }
    }

    /// Of a ratio with its interval.
    #[must_use]
    pub fn of(value: f64, low: f64, high: f64) -> Relation {
        let is_near = (1.0 - ALIKE..=1.0 + ALIKE).contains(&value);
        if is_near && low <= 1.0 + ALIKE && high >= 1.0 - ALIKE {
            Relation::Alike
        } else if low > 1.0 {
            Relation::More
        } else if high < 1.0 {
            Relation::Less
        } else {
            Relation::Unclear
        }
    }
}

/// A ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// How the two stand to each other.
    pub relation: Relation,
    /// The ratio and its interval, unless there are words only.
    pub ratio: Option<(f64, f64, f64)>,
}

impl Figure {
    /// Without an interval.
    #[must_use]
    pub fn exact(value: f64) -> Figure {
        Figure::between(value, value, value)
    }

    /// With one.
    #[must_use]
    pub fn between(value: f64, low: f64, high: f64) -> Figure {
        Figure {
            relation: Relation::of(value, low, high),
            ratio: Some((value, low, high)),
        }
    }

    /// Said and not measured.
    #[must_use]
    pub fn in_words(relation: Relation) -> Figure {
        Figure {
            relation,
            ratio: None,
        }
    }

    /// Of the medians of runs; the interval is of their quarters.
    #[must_use]
    pub fn of_runs(of: &[f64], to: &[f64]) -> Option<Figure> {
        let at = |values, share| quantile(values, share).filter(|value| *value > 0.0);
        Some(Figure::between(
            at(of, 0.5)? / at(to, 0.5)?,
            at(of, 0.25)? / at(to, 0.75)?,
            at(of, 0.75)? / at(to, 0.25)?,
        ))
    }

    /// For people.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.ratio, self.relation) {
            (Some((value, low, high)), _) if low == high => digits(value),
            (Some((value, low, high)), _) => {
                format!("{} [{}, {}]", digits(value), digits(low), digits(high))
            }
            (None, Relation::More) => "more".into(),
            (None, Relation::Less) => "less".into(),
            (None, _) => "alike".into(),
        }
    }
}

fn digits(value: f64) -> String {
    if value < 9.95 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    }
}

/// What claims are judged from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    figures: BTreeMap<String, Figure>,
    cores: usize,
    /// Sentences for each claim that say why it came out so.
    explained: BTreeMap<&'static str, Vec<String>>,
}

/// A claim and what is said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Its name in tables.
    pub id: &'static str,
    /// What the source claims.
    pub claim: &'static str,
    /// Its figures, in words.
    pub published: &'static str,
    /// What the evidence says.
    pub answer: Answer,
    /// Why, with figures.
    pub because: String,
    /// What else was seen that explains it, in sentences.
    pub explained: Vec<String>,
}

/// The word for an answer to "does the claim come again?".
#[must_use]
pub const fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "reproduced",
        Answer::InPart => "reproduced in part",
        Answer::No => "not reproduced",
        Answer::CannotTell => "cannot be shown here",
    }
}

/// A claim: relations that must hold, and the size of the first if the source gives one.
struct Claim {
    id: &'static str,
    claim: &'static str,
    published: &'static str,
    terms: &'static [(&'static str, Relation)],
    size: Option<f64>,
    /// The first ratio cannot exceed the number of cores.
    is_bounded_by_cores: bool,
}

const fn claim(
    id: &'static str,
    claim: &'static str,
    published: &'static str,
    terms: &'static [(&'static str, Relation)],
    size: Option<f64>,
) -> Claim {
    Claim {
        id,
        claim,
        published,
        terms,
        size,
        is_bounded_by_cores: false,
    }
}

use Relation::{Alike, Less, More};

const CLAIMS: [Claim; 13] = [
    claim(
        "alloc-one",
        "one component that allocates is faster with a private heap than with the shared one",
        "1.5 times",
        &[("alloc-1 shared/private", More)],
        Some(1.5),
    ),
    claim(
        "alloc-four",
        "four components that allocate are faster with private heaps, where the system places them",
        "16 times",
        &[("alloc-4 shared/private", More)],
        Some(16.0),
    ),
    claim(
        "alloc-four-spread",
        "the same, placed round robin",
        "12 times",
        &[("alloc-4 shared/private spread", More)],
        Some(12.0),
    ),
    claim(
        "alloc-four-single",
        "on one core the shared heap is better than anywhere else, and private heaps are better still",
        "in words",
        &[
            ("alloc-4 shared os/single", More),
            ("alloc-4 shared/private single", More),
        ],
        None,
    ),
    claim(
        "alloc-kernel",
        "with the shared heap most of the processors' time goes to the kernel",
        "in words",
        &[("alloc-4 shared system/user", More)],
        None,
    ),
    claim(
        "memory",
        "memory creeps up with the shared heap, and no leak is found",
        "in words; at times the machine's memory was used up",
        &[("memory shared/private", More)],
        None,
    ),
    claim(
        "misses",
        "private heaps have about 30 % fewer first-level misses, in every placement",
        "31.2, 31.1 and 30.3 % fewer",
        &[
            ("misses private/shared os", Less),
            ("misses private/shared single", Less),
            ("misses private/shared spread", Less),
        ],
        Some(0.69),
    ),
    claim(
        "cache-time",
        "that does not show in the run time, with either size of array",
        "no significant gain",
        &[
            ("cache-250 shared/private", Alike),
            ("cache-850 shared/private", Alike),
        ],
        None,
    ),
    claim(
        "pairs",
        "who only talks is fastest on one core, slower on two, and slowest where the system chooses",
        "2.6 times from first to last",
        &[
            ("sender-receiver os/together", More),
            ("sender-receiver apart/together", More),
            ("sender-receiver os/apart", More),
        ],
        Some(2.6),
    ),
    claim(
        "client-server",
        "with clients and servers one core is bad; both layouts by hand are about as good as the system",
        "in words",
        &[
            ("client-server single/os", More),
            ("client-server together/os", Alike),
            ("client-server apart/os", Alike),
        ],
        None,
    ),
    claim(
        "dispatch-worker",
        "with dispatchers and workers one core is bad, and the system's placement is the best of all",
        "in words",
        &[
            ("dispatch-worker single/os", More),
            ("dispatch-worker together/os", More),
            ("dispatch-worker apart/os", More),
        ],
        None,
    ),
    Claim {
        is_bounded_by_cores: true,
        ..claim(
            "no-communication",
            "where nobody talks one core is as many times slower as there are cores, and round robin as good \
             as the system's placement",
            "about 4 times; about equal",
            &[
                ("no-communication single/os", More),
                ("no-communication spread/os", Alike),
            ],
            Some(4.0),
        )
    },
    claim(
        "abstract",
        "without communication a static placement is faster than the system's (the abstract)",
        "2.4 times",
        &[("no-communication os/spread in the abstract", More)],
        Some(2.4),
    ),
];

impl Evidence {
    /// Nothing yet, of a machine with so many cores.
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

    /// What was measured.
    #[must_use]
    pub fn measured(results: &Results) -> Evidence {
        let mut evidence = Evidence::new(results.cores.len());
        evidence.allocation(results);
        evidence.caches(results);
        evidence.communication(results);
        let real = |case: [&str; 4]| {
            results
                .cell(Experiment::NoCommunication, case)?
                .figures
                .get("real")
        };
        // The last load is the larger array.
        let load = last_load(results, Experiment::NoCommunication);
        let at = |placement| real([&load, "threads", "shared", placement]);
        for (name, of, to) in [
            ("no-communication single/os", "single", "os"),
            ("no-communication spread/os", "spread", "os"),
            ("no-communication os/spread in the abstract", "os", "spread"),
        ] {
            evidence.put_runs(name, at(of), at(to));
        }
        evidence.explained = explained(results);
        evidence
    }

    fn put_runs(&mut self, name: &str, of: Option<&Vec<f64>>, to: Option<&Vec<f64>>) {
        if let (Some(of), Some(to)) = (of, to)
            && let Some(figure) = Figure::of_runs(of, to)
        {
            self.put(name, figure);
        }
    }

    fn allocation(&mut self, results: &Results) {
        let cell = |components: u32, heaps: &str, placement: &str| {
            let load = format!("alloc-{components}x1000");
            results.cell(Experiment::List, [&load, "threads", heaps, placement])
        };
        let real = |cell: Option<&Cell>| cell.map(|cell| cell.runs("real").to_vec());
        for (name, components, placement) in [
            ("alloc-1 shared/private", 1, "os"),
            ("alloc-4 shared/private", 4, "os"),
            ("alloc-4 shared/private spread", 4, "spread"),
            ("alloc-4 shared/private single", 4, "single"),
        ] {
            let shared = real(cell(components, "listed", placement));
            let private = real(cell(components, "private", placement));
            self.put_runs(name, shared.as_ref(), private.as_ref());
        }
        let listed = |placement| real(cell(4, "listed", placement));
        self.put_runs(
            "alloc-4 shared os/single",
            listed("os").as_ref(),
            listed("single").as_ref(),
        );
        let times = |figure| cell(4, "listed", "os").map(|cell| cell.runs(figure).to_vec());
        self.put_runs(
            "alloc-4 shared system/user",
            times("system").as_ref(),
            times("user").as_ref(),
        );
        let load = last_load(results, Experiment::Memory);
        let load = results
            .loads_of(Experiment::Memory)
            .map(|(load, _)| load)
            .find(|load| load.starts_with("alloc"))
            .unwrap_or(&load)
            .to_owned();
        let growth = |heaps| {
            let cell = results.cell(Experiment::Memory, [&load, "threads", heaps, "os"])?;
            // A page more or less is no growth.
            Some(cell.summary("growth_kb")?.median.max(0.0) + 256.0)
        };
        if let (Some(shared), Some(private)) = (growth("listed"), growth("private")) {
            self.put("memory shared/private", Figure::exact(shared / private));
        }
    }

    fn caches(&mut self, results: &Results) {
        for rows in [250, 850] {
            let load = format!("cache-4x{rows}");
            let real = |heaps| {
                let cell = results.cell(Experiment::Cache, [&load, "threads", heaps, "os"])?;
                cell.figures.get("real")
            };
            let name = format!("cache-{rows} shared/private");
            self.put_runs(&name, real("shared"), real("private"));
        }
        for placement in ["os", "single", "spread"] {
            let misses = |heaps| {
                let case = ["cache-4x250", "threads", heaps, placement];
                results
                    .cell(Experiment::Misses, case)?
                    .figures
                    .get("d1_misses")
            };
            let name = format!("misses private/shared {placement}");
            self.put_runs(&name, misses("private"), misses("listed"));
        }
    }

    fn communication(&mut self, results: &Results) {
        let all: [(Experiment, &[(&str, &str)]); 3] = [
            (
                Experiment::SenderReceiver,
                &[("os", "together"), ("apart", "together"), ("os", "apart")],
            ),
            (
                Experiment::ClientServer,
                &[("single", "os"), ("together", "os"), ("apart", "os")],
            ),
            (
                Experiment::DispatchWorker,
                &[("single", "os"), ("together", "os"), ("apart", "os")],
            ),
        ];
        for (experiment, pairs) in all {
            let load = experiment.id();
            let real = |placement| {
                let cell = results.cell(experiment, [load, "threads", "shared", placement])?;
                cell.figures.get("real")
            };
            for (of, to) in pairs {
                self.put_runs(&format!("{load} {of}/{to}"), real(of), real(to));
            }
        }
    }

    /// All claims.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        CLAIMS.iter().map(|claim| self.judge(claim)).collect()
    }

    fn judge(&self, claim: &Claim) -> Verdict {
        let terms = claim.terms.iter();
        let known: Vec<(&str, Relation, &Figure)> = terms
            .filter_map(|(name, wanted)| Some((*name, *wanted, self.figures.get(*name)?)))
            .collect();
        let said: Vec<String> = known
            .iter()
            .map(|(name, _, figure)| format!("{name} {}", figure.words()))
            .collect();
        let mut because = said.join(", ");
        let hits = known
            .iter()
            .filter(|(_, wanted, figure)| figure.relation == *wanted)
            .count();
        let is_unclear = known
            .iter()
            .any(|(_, _, figure)| figure.relation == Relation::Unclear);
        let mut answer = match hits {
            0 if known.is_empty() => {
                because = "not measured".to_owned();
                Answer::CannotTell
            }
            0 if is_unclear => {
                because += ": the runs differ by more than that";
                Answer::CannotTell
            }
            0 => Answer::No,
            all if all == claim.terms.len() => Answer::Yes,
            _ => Answer::InPart,
        };
        if answer == Answer::Yes
            && let Some(size) = claim.size
            && let Some((value, ..)) = known.first().and_then(|(_, _, figure)| figure.ratio)
        {
            let bound = self.cores as f64;
            if claim.is_bounded_by_cores && self.cores < CORES {
                answer = Answer::InPart;
                because += &format!("; no more than {bound} can be seen on {bound} cores");
            } else if !has_size(value, size) {
                answer = Answer::InPart;
                because += "; the direction and not the size";
            }
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

/// Is a ratio as large as the published one? Of one below 1 it is what is saved that counts.
fn has_size(value: f64, published: f64) -> bool {
    let (value, published) = match published < 1.0 {
        true => (1.0 - value, 1.0 - published),
        false => (value, published),
    };
    value <= published * SIZE && value >= published / SIZE
}

/// The last of an experiment's loads; nothing if it did not run.
pub(super) fn last_load(results: &Results, experiment: Experiment) -> String {
    let last = results.loads_of(experiment).last();
    last.map_or(String::new(), |(load, _)| load.to_owned())
}
