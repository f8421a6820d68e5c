//! A plan: the requests to make of a server.

use std::time::Duration;

use thiserror::Error;

use crate::content;
use crate::keys::{KEY_MAX, KeyText, Sizes, Spread};
use crate::target::Target;
use crate::wire::Protocol;

/// Times at which requests are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Closed loop: each connection makes a request as soon as it may. Requests that a stalled
    /// server delays are not made, so their latency is not measured: the load waits politely.
    Closed,
    /// Open loop: requests are due at moments that do not depend on replies. Latency counts from
    /// those moments, whatever delayed the request.
    Open {
        /// Requests a second, of all connections together.
        rate: f64,
        /// Gaps between due times.
        gaps: Gaps,
        /// The connections that make them.
        per: Per,
    },
}

/// Gaps between the due times of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Constant.
    Constant,
    /// Exponential, as from many independent clients.
    Poisson,
}

/// The connections that make the requests of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Any connection that is free.
    Overall,
    /// Each connection sends its own share, even if others are free.
    Connection,
}

/// Verification of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Only that they answer the request.
    Nothing,
    /// Every byte, and that no value is stale.
    Values {
        /// The server may evict values.
        may_evict: bool,
    },
}

/// A plan, made by [`LoadPlan::new`] and its methods.
///
/// ```
/// use std::time::Duration;
/// use cachet_load::{LoadPlan, Pacing};
///
/// let plan = LoadPlan::new("127.0.0.1:11211".parse()?)
///     .connections(100)
///     .gets(0.9)
///     .pacing(Pacing::Closed)
///     .measure(Duration::from_secs(10));
/// plan.check()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LoadPlan {
    pub(crate) target: Target,
    pub(crate) protocol: Protocol,
    pub(crate) connections: usize,
    pub(crate) threads: usize,
    pub(crate) outstanding: usize,
    pub(crate) pacing: Pacing,
    pub(crate) gets: f64,
    pub(crate) prefix: String,
    pub(crate) keys: u64,
    pub(crate) spread: Spread,
    pub(crate) key_sizes: Sizes,
    pub(crate) value_sizes: Sizes,
    pub(crate) preload: bool,
    pub(crate) warm_up: Duration,
    pub(crate) measure: Duration,
    pub(crate) patience: Duration,
    pub(crate) seed: u64,
    pub(crate) pins: Vec<usize>,
    pub(crate) verify: Verify,
    pub(crate) watched: Option<u32>,
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty),* $(,)?) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> LoadPlan {
            self.$name = $name;
            self
        })*
    };
}

impl LoadPlan {
    /// memcached's text protocol, a closed loop of 16 connections with one request each, 70 %
    /// reads, 100,000 keys of 64 bytes with values of 1,024, a warm-up of one second and a
    /// measurement of ten.
    pub fn new(target: Target) -> LoadPlan {
        LoadPlan {
            target,
            protocol: Protocol::Text,
            connections: 16,
            threads: 1,
            outstanding: 1,
            pacing: Pacing::Closed,
            gets: 0.7,
            prefix: String::new(),
            keys: 100_000,
            spread: Spread::Uniform,
            key_sizes: Sizes::Fixed(64),
            value_sizes: Sizes::Fixed(1024),
            preload: true,
            warm_up: Duration::from_secs(1),
            measure: Duration::from_secs(10),
            patience: Duration::from_secs(5),
            seed: 1,
            pins: Vec::new(),
            verify: Verify::Nothing,
            watched: None,
        }
    }

    setters! {
        /// The language of the server.
        protocol: Protocol,
        /// Connections, of all threads together.
        connections: usize,
        /// Threads that drive them.
        threads: usize,
        /// Requests that a connection may have in flight.
        outstanding: usize,
        /// Times at which requests are made.
        pacing: Pacing,
        /// Share of reads, from 0 to 1; the rest are writes.
        gets: f64,
        /// Prefix of every key.
        prefix: String,
        /// Number of keys.
        keys: u64,
        /// Distribution of requests over keys.
        spread: Spread,
        /// Sizes of the keys' texts.
        key_sizes: Sizes,
        /// Sizes of values.
        value_sizes: Sizes,
        /// Whether every key is written once before the run.
        preload: bool,
        /// Length of the load before measuring begins.
        warm_up: Duration,
        /// Length of the measurement.
        measure: Duration,
        /// Time to wait for replies after that.
        patience: Duration,
        /// Seed of the run's requests.
        seed: u64,
        /// Cores that the threads are bound to, in turn; anywhere if empty.
        pins: Vec<usize>,
        /// Verification of replies.
        verify: Verify,
        /// Process of the server, to report its CPU time too.
        watched: Option<u32>,
    }

    /// Number of keys.
    pub fn key_count(&self) -> u64 {
        self.keys
    }

    /// Address of the server.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Checks that the plan can be carried out.
    ///
    /// # Errors
    /// The mistake, and what to do instead.
    pub fn check(&self) -> Result<(), Mistake> {
        let text = KeyText::new(&self.prefix, self.keys);
        let (key_least, key_most) = self.key_sizes.bounds();
        let (value_least, _) = self.value_sizes.bounds();
        let no = |text: String| Err(Mistake(text));
        if self.connections == 0 || self.threads == 0 || self.outstanding == 0 {
            return no(
                "at least one thread, one connection and one request under way are needed".into(),
            );
        }
        if self.connections < self.threads {
            return no(format!(
                "{} threads cannot share {} connections; ask for as many connections as threads",
                self.threads, self.connections
            ));
        }
        if !(0.0..=1.0).contains(&self.gets) {
            return no(format!(
                "a share of reads of {} is not from 0 to 1",
                self.gets
            ));
        }
        if self.keys == 0 || self.keys > 1 << 40 {
            return no(format!(
                "{} keys are not possible; ask for 1 to 2^40",
                self.keys
            ));
        }
        if self.prefix.bytes().any(|byte| byte <= b' ' || byte == 127) {
            return no("a key's prefix must not contain spaces or control characters".into());
        }
        let is_echo = matches!(self.protocol, Protocol::Echo { .. });
        if !is_echo && self.key_sizes != Sizes::Etc && key_least < text.size_min() {
            return no(format!(
                "{} keys with the prefix '{}' need texts of {} bytes to differ, not {key_least}",
                self.keys,
                self.prefix,
                text.size_min()
            ));
        }
        if !is_echo && (key_most > KEY_MAX || text.size_min() > KEY_MAX) {
            return no(format!("keys are at most {KEY_MAX} bytes"));
        }
        if let Pacing::Open { rate, .. } = self.pacing
            && !(rate.is_finite() && rate > 0.0 && rate < 1e9)
        {
            return no(format!("{rate} requests a second are not possible"));
        }
        if self.measure.is_zero() {
            return no("a run must take some time".into());
        }
        match self.verify {
            Verify::Values { .. } if is_echo => {
                no("an echo has no values to verify; use the text or meta protocol".into())
            }
            Verify::Values { .. } if value_least < content::HEAD => no(format!(
                "values must have at least {} bytes to be verified",
                content::HEAD
            )),
            Verify::Values { .. } if self.keys > 50_000_000 => {
                no("verifying remembers every key; ask for at most 50 million".into())
            }
            _ => Ok(()),
        }
    }
}

/// A plan that cannot be carried out: what is wrong and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Mistake(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> LoadPlan {
        LoadPlan::new("127.0.0.1:1".parse().unwrap())
    }

    #[test]
    fn plans_that_cannot_be_say_what_to_do() {
        plan().check().unwrap();
        let bad = [
            plan().connections(0),
            plan().threads(17),
            plan().gets(1.5),
            plan().keys(0),
            plan().prefix("a b".into()),
            plan().key_sizes(Sizes::Fixed(3)),
            plan().key_sizes(Sizes::Fixed(251)),
            plan().measure(Duration::ZERO),
            plan()
                .verify(Verify::Values { may_evict: true })
                .value_sizes(Sizes::Fixed(10)),
        ];
        for plan in bad {
            assert!(plan.check().unwrap_err().to_string().len() > 20);
        }
    }
}
