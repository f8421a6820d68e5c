//! What the source claims, judged by rules.
//!
//! The same rules judge what is measured here and what the source published, so that an answer differs
//! because machines and programs differ and for no other reason.
//!
//! The source's components were threads: it is the threads here that its claims are judged by. Its
//! shared heap had a list of all blocks under a lock, and that is the shared heap in claims about
//! allocation.

use std::collections::BTreeMap;

use super::explain::explained;
use super::layouts::CORES;
use super::options::Experiment;
use super::published;
use super::results::Results;
use crate::judging::{Answer, Figure, Relation, Verdict, has_size};

/// What claims are judged from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    figures: BTreeMap<String, Figure>,
    cores: usize,
    /// Sentences for each claim that say why it came out so.
    explained: BTreeMap<&'static str, Vec<String>>,
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
            let cell = results.cell(Experiment::NoCommunication, case)?;
            Some(cell.runs("real"))
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

    fn put_runs(&mut self, name: &str, of: Option<&[f64]>, to: Option<&[f64]>) {
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
        let real =
            |components, heaps, placement| Some(cell(components, heaps, placement)?.runs("real"));
        for (name, components, placement) in [
            ("alloc-1 shared/private", 1, "os"),
            ("alloc-4 shared/private", 4, "os"),
            ("alloc-4 shared/private spread", 4, "spread"),
            ("alloc-4 shared/private single", 4, "single"),
        ] {
            let shared = real(components, "listed", placement);
            let private = real(components, "private", placement);
            self.put_runs(name, shared, private);
        }
        let listed = |placement| real(4, "listed", placement);
        self.put_runs("alloc-4 shared os/single", listed("os"), listed("single"));
        let times = |figure| cell(4, "listed", "os").map(|cell| cell.runs(figure));
        self.put_runs("alloc-4 shared system/user", times("system"), times("user"));
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
                Some(cell.runs("real"))
            };
            let name = format!("cache-{rows} shared/private");
            self.put_runs(&name, real("shared"), real("private"));
        }
        for placement in ["os", "single", "spread"] {
            let misses = |heaps| {
                let case = ["cache-4x250", "threads", heaps, placement];
                Some(results.cell(Experiment::Misses, case)?.runs("d1_misses"))
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
                Some(cell.runs("real"))
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
            published: Some(claim.published),
            answer,
            because,
            explained: self.explained.get(claim.id).cloned().unwrap_or_default(),
        }
    }
}

/// The last of an experiment's loads; nothing if it did not run.
pub(super) fn last_load(results: &Results, experiment: Experiment) -> String {
    let last = results.loads_of(experiment).last();
    last.map_or(String::new(), |(load, _)| load.to_owned())
}
