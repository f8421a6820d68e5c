//! The grid: patterns of threads by ways to wait. A line here is a cell more.

/// A cell of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// A name of `hearth_net::Pattern`.
    pub pattern: &'static str,
    /// A name of `hearth_net::Mechanism`.
    pub mechanism: &'static str,
    /// The source has it, too.
    pub is_published: bool,
    /// The fewest threads that it runs with.
    pub threads_min: usize,
}

const fn published(pattern: &'static str, mechanism: &'static str, threads_min: usize) -> Kind {
    Kind {
        pattern,
        mechanism,
        is_published: true,
        threads_min,
    }
}

const fn added(pattern: &'static str, mechanism: &'static str, threads_min: usize) -> Kind {
    Kind {
        is_published: false,
        ..published(pattern, mechanism, threads_min)
    }
}

/// All cells, in the order of the charts.
pub const GRID: &[Kind] = &[
    published("half-async", "select", 2),
    published("half-async", "level", 2),
    published("half-async", "edge", 2),
    published("leader", "select", 1),
    published("leader", "level", 1),
    published("leader", "edge", 1),
    added("sharded", "select", 1),
    added("sharded", "level", 1),
    added("sharded", "edge", 1),
    added("sharded", "io_uring", 1),
];

/// The patterns, each once.
#[must_use]
pub fn patterns() -> Vec<&'static str> {
    each_once(|kind| kind.pattern)
}

/// The ways to wait, each once.
#[must_use]
pub fn mechanisms() -> Vec<&'static str> {
    each_once(|kind| kind.mechanism)
}

fn each_once(name: fn(&Kind) -> &'static str) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for kind in GRID {
        if !names.contains(&name(kind)) {
            names.push(name(kind));
        }
    }
    names
}

/// A pattern in words.
#[must_use]
pub fn pattern_words(pattern: &str) -> &str {
    match pattern {
        "half-async" => "Half-Sync/Half-Async",
        "leader" => "Leader/Followers",
        "sharded" => "connections of each thread's own",
        other => other,
    }
}

/// A way to wait in words.
#[must_use]
pub fn mechanism_words(mechanism: &str) -> &str {
    match mechanism {
        "level" => "epoll, level-triggered",
        "edge" => "epoll, edge-triggered",
        other => other,
    }
}
