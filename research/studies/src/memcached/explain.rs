//! Measured causes, in sentences for each claim.

use std::collections::BTreeMap;

use super::kinds::{LOCK, MEMCACHED, MESSAGE, OPTIMISATIONS, PLAIN};
use super::measured::Measured;
use super::options::Experiment;
use super::plan::{Case, MEMCASLAP};
use super::ratio::of_runs;
use super::results::Results;
use super::verdict::AUTO;

/// Sentences by claim.
pub(super) fn explained(results: &Results) -> BTreeMap<&'static str, Vec<String>> {
    let of = Of {
        measured: Measured(results),
        results,
    };
    let mut all: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for (claim, reads) in [("gain-30", 70), ("gain-25", 75), ("gain-20", 80)] {
        let mut lines = of.gain(reads);
        lines.extend(of.second_opinion(reads));
        all.insert(claim, lines);
    }
    all.insert("gain-grows", of.section_share());
    for claim in ["plain-loses", "optimised-wins"] {
        all.insert(claim, of.plain());
    }
    for (optimisation, claim) in OPTIMISATIONS
        .iter()
        .zip(["zero-copy", "spinning", "draining"])
    {
        all.insert(claim, of.alone(optimisation.id));
    }
    for (claim, kind) in [("cycles-lock", LOCK), ("cycles-message", MESSAGE)] {
        all.insert(claim, of.cycles(kind));
    }
    let mix = [LOCK, MESSAGE].into_iter().filter_map(|kind| of.mix(kind));
    all.insert("mix", mix.collect());
    let bound = [LOCK, MESSAGE]
        .into_iter()
        .filter_map(|kind| of.bound(kind));
    all.insert("bound", bound.collect());
    all.insert(AUTO, of.choice());
    all.retain(|_, lines| !lines.is_empty());
    all
}

struct Of<'a> {
    measured: Measured<'a>,
    results: &'a Results,
}

impl Of<'_> {
    fn at(
        &self,
        experiment: Experiment,
        which: (u32, u32, &str, bool),
        figure: &str,
    ) -> Option<f64> {
        self.measured.median(experiment, which, figure)
    }

    /// Rates and the server's time, at the most threads that have a core each, and beyond.
    fn gain(&self, reads: u32) -> Vec<String> {
        let experiment = Experiment::Threads;
        let mut lines = Vec::new();
        for count in self.results.threads(experiment) {
            let side = |kind| {
                let which = (reads, count, kind, false);
                let rate = self.at(experiment, which, "rate")? / 1e3;
                let us = self.at(experiment, which, "server_ns")? / 1e3;
                let waits = self.at(experiment, which, "waits")?;
                Some(format!(
                    "{rate:.1} thousand requests/s at {us:.2} µs of the server each, whose threads wait {waits:.0} \
                     times for a thousand of them"
                ))
            };
            let of = |kind| {
                self.measured
                    .runs(experiment, (reads, count, kind, false), "rate")
            };
            if let (Some(lock), Some(message), Some(gain)) =
                (side(LOCK), side(MESSAGE), of_runs(of(MESSAGE), of(LOCK)))
            {
                lines.push(format!(
                    "{} under the lock {lock}; by message {message}: {} times the throughput.",
                    with(count),
                    gain.words()
                ));
            }
            if let Some(memcached) = side(MEMCACHED) {
                lines.push(format!("{} memcached itself {memcached}.", with(count)));
            }
        }
        lines
    }

    fn second_opinion(&self, reads: u32) -> Vec<String> {
        let runs = |kind: &str, threads| {
            let case = Case {
                experiment: Experiment::Threads,
                reads,
                load: MEMCASLAP.to_owned(),
                threads,
                kind: kind.to_owned(),
                is_bound: false,
            };
            self.results
                .cell(&case)
                .map_or(&[][..], |cell| cell.runs("rate"))
        };
        let mut found = Vec::new();
        for count in self.results.threads(Experiment::Threads) {
            if let Some(gain) = of_runs(runs(MESSAGE, count), runs(LOCK, count)) {
                found.push(format!("{} {}", with(count), gain.words()));
            }
        }
        match found.is_empty() {
            true => Vec::new(),
            false => vec![format!("By memcaslap: {} times.", found.join("; "))],
        }
    }

    fn choice(&self) -> Vec<String> {
        let experiment = Experiment::Threads;
        let mut lines = Vec::new();
        for count in self.results.threads(experiment) {
            let told: Vec<String> = self
                .results
                .mixes(experiment)
                .into_iter()
                .filter_map(|reads| {
                    let of = |kind| {
                        self.measured
                            .runs(experiment, (reads, count, kind, false), "rate")
                    };
                    let (lock, message) = (
                        of_runs(of("auto"), of(LOCK))?,
                        of_runs(of("auto"), of(MESSAGE))?,
                    );
                    Some(format!(
                        "{} of the lock's and {} of the message's throughput with {} % writes",
                        lock.words(),
                        message.words(),
                        100 - reads
                    ))
                })
                .collect();
            if !told.is_empty() {
                lines.push(format!("{} {}.", with(count), told.join("; ")));
            }
        }
        lines
    }

    /// The possible gain: the section's share of all that the server does.
    fn section_share(&self) -> Vec<String> {
        let experiment = Experiment::Threads;
        let Some(most) = self.measured.most(experiment) else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for reads in self.results.mixes(experiment) {
            let figure = |name| self.at(experiment, (reads, most, LOCK, false), name);
            if let (Some(share), Some(contended)) =
                (figure("section_percent"), figure("contended_percent"))
            {
                lines.push(format!(
                    "With {} % writes and {most} threads the section is {share:.1} % of the server's time, and {contended:.1} % \
                     of its entries wait for the lock: more than that cannot be gained by running it elsewhere.",
                    100 - reads
                ));
            }
        }
        lines
    }

    fn plain(&self) -> Vec<String> {
        let experiment = Experiment::Optimisations;
        let Some(most) = self.measured.most(experiment) else {
            return Vec::new();
        };
        let waits = |kind| self.at(experiment, (70, most, kind, false), "waits");
        match (waits(LOCK), waits(PLAIN), waits(MESSAGE)) {
            (Some(lock), Some(plain), Some(message)) => vec![format!(
                "{} the server's threads wait {lock:.0} times for a thousand requests under the lock, {plain:.0} times by \
                 message as it first was, {message:.0} times with the optimisations; each time the system puts one \
                 thread to sleep and wakes it.",
                with(most)
            )],
            _ => Vec::new(),
        }
    }

    /// An optimisation added to the plain version, and taken from the complete one.
    fn alone(&self, id: &str) -> Vec<String> {
        let experiment = Experiment::Optimisations;
        let Some(most) = self.measured.most(experiment) else {
            return Vec::new();
        };
        let rates = |kind| {
            self.measured
                .runs(experiment, (70, most, kind, false), "rate")
        };
        let others: Vec<&str> = OPTIMISATIONS
            .iter()
            .map(|other| other.id)
            .filter(|other| *other != id)
            .collect();
        let without = others.join("+");
        let alone = of_runs(rates(id), rates(PLAIN));
        let last = of_runs(rates(MESSAGE), rates(&without));
        let mut lines = Vec::new();
        if let (Some(alone), Some(last)) = (alone, last) {
            lines.push(format!(
                "Alone {} times the plain version's throughput; added to the other two {} times.",
                alone.words(),
                last.words()
            ));
        }
        let waits = |kind| self.at(experiment, (70, most, kind, false), "waits");
        if let (Some(plain), Some(with)) = (waits(PLAIN), waits(id)) {
            lines.push(format!(
                "The server's threads wait {plain:.0} times for a thousand requests without it and {with:.0} times with \
                 it alone."
            ));
        }
        if let Some(busy) = self.at(experiment, (70, most, id, false), "busy_percent") {
            lines.push(format!(
                "Of its requests {busy:.0} % found others waiting or being served."
            ));
        }
        lines
    }

    fn cycles(&self, kind: &str) -> Vec<String> {
        let experiment = Experiment::Sections;
        let told: Vec<String> = self
            .results
            .threads(experiment)
            .into_iter()
            .filter_map(|count| {
                let which = (0, count, kind, false);
                let ticks = self.at(experiment, which, "section_ticks")?;
                let share = self.at(experiment, which, "section_percent")?;
                Some(format!(
                    "{ticks:.0} with {count} thread{}, {share:.1} % of the server's time",
                    if count == 1 { "" } else { "s" }
                ))
            })
            .collect();
        match told.is_empty() {
            true => Vec::new(),
            false => vec![format!(
                "Cycles for an entry, writes only, {kind}: {}.",
                told.join("; ")
            )],
        }
    }

    fn mix(&self, kind: &str) -> Option<String> {
        let experiment = Experiment::Threads;
        let most = self.measured.most(experiment)?;
        let told: Vec<String> = self
            .results
            .mixes(experiment)
            .into_iter()
            .filter_map(|reads| {
                let us = self.at(experiment, (reads, most, kind, false), "server_ns")? / 1e3;
                Some(format!("{us:.2} with {} % writes", 100 - reads))
            })
            .collect();
        (!told.is_empty()).then(|| {
            format!(
                "{kind}: µs of the server for a request, {most} threads: {}.",
                told.join(", ")
            )
        })
    }

    fn bound(&self, kind: &str) -> Option<String> {
        let experiment = Experiment::Sections;
        let told: Vec<String> = self
            .results
            .threads(experiment)
            .into_iter()
            .filter_map(|count| {
                let of =
                    |is_bound| self.at(experiment, (0, count, kind, is_bound), "section_ticks");
                Some(format!(
                    "{:.0} and {:.0} with {count}",
                    of(true)?,
                    of(false)?
                ))
            })
            .collect();
        (!told.is_empty()).then(|| {
            format!(
                "{kind}: cycles with workers bound and unbound, by threads: {}.",
                told.join("; ")
            )
        })
    }
}

fn with(count: u32) -> String {
    match count {
        1 => "With 1 thread".to_owned(),
        count => format!("With {count} threads"),
    }
}
