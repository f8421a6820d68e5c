//! One server, and one run of load against it.
//!
//! Figures of a run, by name:
//!
//! | name | what |
//! |---|---|
//! | `rate` | requests a second, as the generator counts |
//! | `server_ns` | the server's time on cores for a request, by its own count of requests |
//! | `waits` | how often the server's threads left their cores to wait, for a thousand requests |
//! | `own_ns` | the generator's time on cores for a request; ours only |
//! | `p50_us`, `p99_us` | latency, closed loop; ours only |
//! | `hit_percent` | reads that found something; ours only |
//! | `section_ticks` | time in the section for an entry, without getting in and out; cachet only |
//! | `section_percent` | the section's share of the server's time on cores |
//! | `contended_percent` | entries under the lock that had to wait for it |
//! | `delegated_percent` | entries that another thread than the caller ran |
//! | `busy_percent` | delegated entries, since the server started, that found others waiting or being served |

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cachet_load::memcaslap::Memcaslap;
use cachet_load::server::{Server, Start};
use cachet_load::{Generator, LoadPlan, Sizes, cpu};
use hearth_sys::affinity;
use hearth_sys::clock::process_ns;

use super::kinds::Kind;
use super::plan::{Case, MEMCASLAP};

/// Connections of each thread of the load: the source's concurrency.
pub const CONNECTIONS: usize = 20;
/// The source's sizes.
pub const KEY_SIZE: usize = 64;
/// See above.
pub const VALUE_SIZE: usize = 1024;
/// Keys of each of memcaslap's connections, in units of 1,024.
const WINDOW_K: usize = 1;
/// The share of replies whose data memcaslap compares.
const VERIFY: f64 = 0.01;

/// A server that runs for a case.
#[derive(Debug)]
pub struct Bench {
    server: Server,
    case: Case,
    keys: u64,
    run: Duration,
    ns_per_tick: f64,
}

/// Figures by name.
pub type Figures = Vec<(&'static str, f64)>;

/// A server's counts, at some time.
struct Counts {
    requests: f64,
    core_ns: f64,
    waits: f64,
    section: BTreeMap<String, String>,
}

/// Settings of a bench.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The file of cachet.
    pub cachet: &'a Path,
    /// The cores that there are; the section's own thread stays on the last one.
    pub cores: &'a [usize],
    /// Memory that values may need, in MiB.
    pub memory_mib: usize,
    /// Keys.
    pub keys: u64,
    /// Length of the measured part of a run.
    pub run: Duration,
    /// Length of a tick, ns.
    pub ns_per_tick: f64,
}

impl Bench {
    /// Starts a case's server, binds its workers if wanted, and writes all keys.
    ///
    /// # Errors
    /// In words: it does not start, or does not answer.
    pub fn new(case: &Case, setup: &Setup<'_>) -> Result<Bench, String> {
        let kind = Kind::named(&case.kind).ok_or_else(|| format!("no server {}", case.kind))?;
        let last = setup.cores.last().copied().unwrap_or(0);
        let start = Start {
            threads: case.threads as usize,
            memory_mib: setup.memory_mib,
        };
        let server = kind
            .program(setup.cachet, last)
            .start(start)
            .map_err(said)?;
        if case.is_bound {
            bind(&server, setup.cores).map_err(said)?;
        }
        let bench = Bench {
            server,
            case: case.clone(),
            keys: setup.keys,
            run: setup.run,
            ns_per_tick: setup.ns_per_tick,
        };
        if case.load != MEMCASLAP {
            let generator = Generator::new(bench.plan()).map_err(said)?;
            generator.fill().map_err(said)?;
        }
        Ok(bench)
    }

    /// Its case.
    #[must_use]
    pub fn case(&self) -> &Case {
        &self.case
    }

    fn threads(&self) -> usize {
        self.case.threads as usize
    }

    fn gets(&self) -> f64 {
        f64::from(self.case.reads) / 100.0
    }

    fn plan(&self) -> LoadPlan {
        LoadPlan::new(self.server.target())
            .threads(self.threads())
            .connections(CONNECTIONS * self.threads())
            .keys(self.keys)
            .key_sizes(Sizes::Fixed(KEY_SIZE))
            .value_sizes(Sizes::Fixed(VALUE_SIZE))
            .gets(self.gets())
            .warm_up(self.run / 10)
            .measure(self.run)
    }

    fn counts(&self) -> Result<Counts, String> {
        let gone = || format!("{} is gone", self.server.name());
        let general = self.server.stats("").map_err(said)?;
        let number = |name: &str| -> Option<f64> { general.get(name)?.parse().ok() };
        let requests = number("cmd_get").zip(number("cmd_set"));
        let (reads, writes) = requests
            .ok_or_else(|| format!("{} does not count its requests", self.server.name()))?;
        Ok(Counts {
            requests: reads + writes,
            core_ns: process_ns(self.server.id()).ok_or_else(gone)? as f64,
            waits: cpu::waits(self.server.id()).ok_or_else(gone)? as f64,
            section: self.server.stats("hearth").map_err(said)?,
        })
    }

    /// Makes one run.
    ///
    /// # Errors
    /// In words: the generator cannot run, a request was not served, a reply was wrong.
    pub fn run(&self) -> Result<Figures, String> {
        let before = self.counts()?;
        let mut figures = match self.case.load == MEMCASLAP {
            true => self.memcaslap()?,
            false => self.ours()?,
        };
        figures.extend(since(&before, &self.counts()?, self.ns_per_tick));
        Ok(figures)
    }

    fn ours(&self) -> Result<Figures, String> {
        let generator = Generator::new(self.plan()).map_err(said)?;
        let run = generator.run().map_err(said)?;
        let replies = run.tally.replies;
        if replies.errors + run.tally.unanswered > 0 || !run.tally.broken.is_empty() {
            return Err(format!("not every request was served: {replies:?}"));
        }
        let latency = run.tally.latency();
        let us = |percent| latency.percentile(percent) as f64 / 1e3;
        let mut figures = vec![
            ("rate", run.rate()),
            ("own_ns", run.own_ns_per_request()),
            ("p50_us", us(50.0)),
            ("p99_us", us(99.0)),
        ];
        let reads = replies.hits + replies.misses;
        if reads > 0 {
            figures.push(("hit_percent", 100.0 * replies.hits as f64 / reads as f64));
        }
        Ok(figures)
    }

    fn memcaslap(&self) -> Result<Figures, String> {
        let wanted = Memcaslap {
            threads: self.threads(),
            connections: CONNECTIONS * self.threads(),
            window_k: WINDOW_K,
            gets: self.gets(),
            key_size: KEY_SIZE,
            value_size: VALUE_SIZE,
            verify: VERIFY,
            time: self.run,
        };
        let told = wanted
            .run(&self.server.address(), &std::env::temp_dir())
            .map_err(said)?;
        if told.wrong + told.misses > 0 {
            return Err(format!(
                "memcaslap found {} replies wrong and {} values missing",
                told.wrong, told.misses
            ));
        }
        Ok(vec![("rate", told.rate)])
    }
}

fn said(error: impl ToString) -> String {
    error.to_string()
}

/// Worker N, by the name of its thread, goes to core N, and on from the first again.
fn bind(server: &Server, cores: &[usize]) -> std::io::Result<()> {
    for (thread, name) in server.threads()? {
        let number = name
            .strip_prefix("cachet-")
            .and_then(|n| n.parse::<usize>().ok());
        if let Some(number) = number {
            affinity::allow_thread(thread, &[cores[number % cores.len()]])?;
        }
    }
    Ok(())
}

fn since(before: &Counts, after: &Counts, ns_per_tick: f64) -> Figures {
    let requests = (after.requests - before.requests).max(1.0);
    let core_ns = after.core_ns - before.core_ns;
    let mut figures = vec![
        ("server_ns", core_ns / requests),
        ("waits", 1e3 * (after.waits - before.waits) / requests),
    ];
    let grown = |name: &str| -> Option<f64> {
        let of = |counts: &Counts| counts.section.get(name)?.parse::<f64>().ok();
        Some(of(after)? - of(before)?)
    };
    if let (Some(entries), Some(ticks)) = (grown("section_entries"), grown("section_ticks"))
        && entries > 0.0
    {
        figures.push(("section_ticks", ticks / entries));
        figures.push((
            "section_percent",
            100.0 * ticks * ns_per_tick / core_ns.max(1.0),
        ));
        for (figure, name) in [
            ("contended_percent", "section_contended"),
            ("delegated_percent", "section_delegated"),
        ] {
            if let Some(count) = grown(name) {
                figures.push((figure, 100.0 * count / entries));
            }
        }
        let busy = after.section.get("section_server_busy_percent");
        if let Some(busy) = busy.and_then(|busy| busy.parse().ok()) {
            figures.push(("busy_percent", busy));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_what_grew_meanwhile() {
        let counts = |requests, core_ns, waits, entries: u32, ticks: u32| Counts {
            requests,
            core_ns,
            waits,
            section: [
                ("section_entries", entries),
                ("section_ticks", ticks),
                ("section_contended", entries / 10),
            ]
            .map(|(name, count)| (name.to_owned(), count.to_string()))
            .into(),
        };
        let before = counts(100.0, 1e6, 10.0, 50, 1000);
        let after = counts(1100.0, 9e6, 30.0, 350, 61_000);
        let figures: BTreeMap<_, _> = since(&before, &after, 0.5).into_iter().collect();
        assert_eq!(figures["server_ns"], 8000.0);
        assert_eq!(figures["waits"], 20.0);
        assert_eq!(figures["section_ticks"], 200.0);
        assert_eq!(figures["section_percent"], 0.375);
        assert_eq!(figures["contended_percent"], 10.0);
        assert!(!figures.contains_key("delegated_percent"));
    }
}
