//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use cachet_load::search::{self, Limit};
use cachet_load::{Gaps, LoadPlan, Pacing, Per, Protocol, Sizes, Spread, Target, Verify, units};
use clap::Parser;

/// Puts load on a memcached-compatible server, or an echo server, and reports how it coped.
///
/// Without --rate each connection makes a request as soon as it has its reply (closed loop). With
/// --rate requests are due at moments that do not depend on the server (open loop), and latency
/// counts from those moments: a server that stalls cannot hide it.
#[derive(Debug, Parser)]
#[command(name = "cachet-load", version, max_term_width = 100)]
pub(crate) struct LoadOptions {
    /// Address of the server: HOST:PORT or unix:PATH
    #[arg(default_value = "127.0.0.1:11211", value_name = "SERVER")]
    target: Target,
    /// text, meta, or echo:REQUEST:REPLY (bytes)
    #[arg(long, default_value = "text")]
    protocol: Protocol,
    /// Connections, of all threads together
    #[arg(short = 'c', long, default_value = "16", value_parser = units::count)]
    connections: u64,
    /// Threads of the generator
    #[arg(short = 't', long, default_value_t = 1)]
    threads: usize,
    /// Requests a connection may have in flight
    #[arg(short = 'o', long, default_value_t = 1)]
    outstanding: usize,
    /// Open loop: requests a second, of all connections together
    #[arg(short = 'r', long, value_parser = units::rate)]
    rate: Option<f64>,
    /// With a rate: exponential gaps between requests, as from many independent clients
    #[arg(long)]
    poisson: bool,
    /// With a rate: each connection sends its own share, even if others are free
    #[arg(long)]
    per_connection: bool,
    /// Share of reads, from 0 to 1
    #[arg(short = 'g', long, default_value_t = 0.7)]
    gets: f64,
    /// Number of keys
    #[arg(short = 'n', long, default_value = "100k", value_parser = units::count)]
    keys: u64,
    /// uniform, zipf:EXPONENT, hotspot:KEYS:REQUESTS (shares) or sequential
    #[arg(long, default_value = "uniform")]
    spread: Spread,
    /// Bytes of a key: 64, 16-250 or etc
    #[arg(long, default_value = "64")]
    key_size: Sizes,
    /// Bytes of a value: 1k, 24-64k or etc
    #[arg(long, default_value = "1024")]
    value_size: Sizes,
    /// Prefix of every key
    #[arg(long, default_value = "")]
    prefix: String,
    /// Do not write every key once before the run
    #[arg(long)]
    no_preload: bool,
    /// Only write every key once
    #[arg(long, conflicts_with_all = ["no_preload", "search", "scan"])]
    only_preload: bool,
    /// Load before measuring begins
    #[arg(short = 'w', long, default_value = "1s", value_parser = units::time)]
    warm_up: Duration,
    /// Length of the measurement
    #[arg(short = 's', long, default_value = "10s", value_parser = units::time)]
    seconds: Duration,
    /// How long to wait for replies after a run
    #[arg(long, default_value = "5s", value_parser = units::time)]
    patience: Duration,
    /// Number of runs; the median is reported
    #[arg(long, default_value_t = 1)]
    repeat: usize,
    /// Seed of the choice of keys
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cores for the generator's threads, in turn, such as 0,2
    #[arg(long, value_delimiter = ',')]
    pin: Vec<usize>,
    /// Process of the server, to report its CPU time too
    #[arg(long)]
    pid: Option<u32>,
    /// Verify every byte of every reply, and that no value is stale
    #[arg(long)]
    verify: bool,
    /// With --verify: the server must keep every value; a missing one is an error
    #[arg(long, requires = "verify")]
    keeps_all: bool,
    /// Beside the load: clients that die, send nonsense or halves, and read slowly
    #[arg(long)]
    pub(crate) chaos: bool,
    /// Find the highest rate that keeps a limit, such as p99:500us
    #[arg(long, conflicts_with_all = ["rate", "scan"])]
    pub(crate) search: Option<Limit>,
    /// Try several rates: 10k,20k or FROM:TO:STEP
    #[arg(long, value_parser = parse_rates, conflicts_with = "rate")]
    pub(crate) scan: Option<Rates>,
    /// Write the result as JSON to this file, or - for the terminal
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the latencies of the last run for HdrHistogram's plotters
    #[arg(long, value_name = "FILE")]
    pub(crate) hgrm: Option<PathBuf>,
}

/// Rates to try.
#[derive(Clone, Debug)]
pub(crate) struct Rates(pub(crate) Vec<f64>);

fn parse_rates(text: &str) -> Result<Rates, String> {
    search::rates(text).map(Rates)
}

/// Way in which the keys are written before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preload {
    None,
    First,
    Only,
}

impl LoadOptions {
    pub(crate) fn gaps(&self) -> Gaps {
        match self.poisson {
            true => Gaps::Poisson,
            false => Gaps::Constant,
        }
    }

    pub(crate) fn per(&self) -> Per {
        match self.per_connection {
            true => Per::Connection,
            false => Per::Overall,
        }
    }

    pub(crate) fn open(&self, rate: f64) -> Pacing {
        Pacing::Open {
            rate,
            gaps: self.gaps(),
            per: self.per(),
        }
    }

    pub(crate) fn preload(&self) -> Preload {
        match (self.protocol, self.only_preload, self.no_preload) {
            (Protocol::Echo { .. }, ..) | (_, _, true) => Preload::None,
            (_, true, _) => Preload::Only,
            (_, false, false) => Preload::First,
        }
    }

    pub(crate) fn repeat(&self) -> usize {
        self.repeat.max(1)
    }

    pub(crate) fn plan_pacing(&self) -> Pacing {
        self.rate.map_or(Pacing::Closed, |rate| self.open(rate))
    }

    pub(crate) fn plan(&self) -> LoadPlan {
        let verify = match self.verify {
            true => Verify::Values {
                may_evict: !self.keeps_all,
            },
            false => Verify::Nothing,
        };
        LoadPlan::new(self.target.clone())
            .protocol(self.protocol)
            .connections(self.connections as usize)
            .threads(self.threads)
            .outstanding(self.outstanding)
            .pacing(self.plan_pacing())
            .gets(self.gets)
            .prefix(self.prefix.clone())
            .keys(self.keys)
            .spread(self.spread)
            .key_sizes(self.key_size)
            .value_sizes(self.value_size)
            .warm_up(self.warm_up)
            .measure(self.seconds)
            .patience(self.patience)
            .seed(self.seed)
            .pins(self.pin.clone())
            .verify(verify)
            .watched(self.pid)
    }
}
