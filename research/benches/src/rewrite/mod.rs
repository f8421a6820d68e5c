//! Graphs of videos and the matches that are looked for in them, after the description of the
//! paper on graph transformations on multicore systems (Imre and Mezei).
//!
//! Their graph was crawled: from 180 to 200 videos the first 20 related ones of each, 4 to 5
//! times. Ours is grown in the same way over made-up videos: a video's related ones are mostly of
//! its own neighbourhood, some are popular ones of its category, and few are any. Of the patterns
//! the paper gives size and diameter only: 6 vertices and 3, 7 and 5, 7 and 5. So conditions are
//! ours, and times are not to be compared with theirs; overheads and speed-ups may be.

use fastrand::Rng;
use hearth_rewrite::{Graph, Options, Rule, Sharing, Value, VertexId, read_rules, rewrite};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Seed of the graphs.
const SEED: u64 = 2012;
/// Related videos of a video.
const RELATED: usize = 20;
/// Videos that the growth begins with.
const START: usize = 190;
/// Categories of videos.
const CATEGORIES: i64 = 15;

const TYPES: &str = "
vertex Video { views: int, category: int, rate: float, length: int, done: bool }
edge related;
";

/// A match: its name, its size and diameter, and its rule.
pub struct Match {
    /// As in the paper, `1` to `3`.
    pub name: &'static str,
    /// Size, diameter and kind of the pattern.
    pub question: &'static str,
    /// Videos of the graph.
    pub videos: usize,
    rule: &'static str,
}

/// The matches, with the sizes of their graphs.
pub const MATCHES: [Match; 4] = [
    Match {
        name: "1",
        question: "6 vertices, diameter 3, cheap",
        videos: 23_500,
        rule: CHEAP,
    },
    Match {
        name: "1-large",
        question: "6 vertices, diameter 3, cheap",
        videos: 208_000,
        rule: CHEAP,
    },
    Match {
        name: "2",
        question: "7 vertices, diameter 5",
        videos: 23_500,
        rule: CHAIN,
    },
    Match {
        name: "3",
        question: "7 vertices, diameter 5, fewer conditions",
        videos: 23_500,
        rule: WIDE,
    },
];

/// Two related videos, each with two more around it.
const CHEAP: &str = "
rule cheap {
    match a: Video -[related]-> b: Video,
          a -[related]-> c: Video, a -[related]-> d: Video,
          b -[related]-> e: Video, b -[related]-> f: Video;
    if not a.done and a.rate >= 4.5 and b.views > a.views and b.category == a.category;
    if c.length > 600 and d.length < 60 and e.length > 600 and f.length < 60;
    set a.done = true;
}
";

/// A chain of six with a seventh beside it: ever more views within a category.
const CHAIN: &str = "
rule chain {
    match a: Video -[related]-> b: Video -[related]-> c: Video -[related]-> d: Video
          -[related]-> e: Video -[related]-> f: Video, c -[related]-> g: Video;
    if not a.done and b.views > a.views and c.views > b.views and d.views > c.views;
    if e.views > d.views and f.views > e.views and f.rate >= 4.5 and f.length < 200;
    if g.category != c.category and g.rate < 1.1;
    set a.done = true;
}
";

/// The same shape with weaker conditions on the way, so that most of the search is in vain.
const WIDE: &str = "
rule wide {
    match a: Video -[related]-> b: Video -[related]-> c: Video -[related]-> d: Video
          -[related]-> e: Video -[related]-> f: Video, c -[related]-> g: Video;
    if not a.done and b.category == a.category and c.category == a.category;
    if d.category == a.category and e.category == a.category and d.views > a.views;
    if f.rate >= 4.5 and f.length < 300 and g.category != a.category and g.rate < 1.2 and g.length > 1100;
    set a.done = true;
}
";

/// Rules of a match.
pub fn rules(of: &Match) -> Vec<Rule> {
    read_rules(&format!("{TYPES}{}", of.rule))
        .expect("the rules are right")
        .rules
}

/// A graph of some videos.
pub fn videos(count: usize) -> Graph {
    let read = read_rules(TYPES).expect("the types are right");
    let mut graph = Graph::new(read.schema.build().expect("the types are right"));
    let mut random = Rng::with_seed(SEED ^ count as u64);
    let number = graph
        .schema()
        .vertices
        .named("Video")
        .map_or(0, |of| of.range.first);
    let mut categories = Vec::with_capacity(count);
    for _ in 0..count {
        let video = graph.add_vertex(number);
        // Views are spread over powers, as for real videos.
        let views = 10f64.powf(random.f64() * 6.0) as i64;
        let category = random.i64(0..CATEGORIES);
        categories.push(category);
        for (attribute, value) in [
            ("views", Value::Int(views)),
            ("category", Value::Int(category)),
            ("rate", Value::Float(1.0 + 4.0 * random.f64())),
            ("length", Value::Int(random.i64(10..1200))),
        ] {
            assert!(graph.set_value(video, attribute, &value), "{attribute}");
        }
    }
    let mut popular: HashMap<i64, Vec<u32>> = HashMap::new();
    for (video, category) in (0..).zip(categories.iter().take(START * 20)) {
        popular.entry(*category).or_default().push(video);
    }
    for video in 0..count {
        let mut there = vec![video];
        while there.len() <= RELATED.min(count - 1) {
            let other = match random.u32(0..10) {
                // The neighbourhood: those that the crawl met at about the same time.
                0..7 => (video + count - 100 + random.usize(0..200)) % count,
                7..9 => {
                    let of = &popular[&categories[video]];
                    of[random.usize(0..of.len()).min(random.usize(0..of.len()))] as usize
                }
                _ => random.usize(0..count),
            };
            if !there.contains(&other) {
                there.push(other);
                graph.add_edge(0, VertexId(video as u32), VertexId(other as u32));
            }
        }
    }
    graph
}

/// A side of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// One thread, without atomic locks.
    Sequential,
    /// The parallel way with this many threads, one included.
    Threads(usize),
}

/// One run: its time, applications and rounds.
pub fn turn(graph: &Graph, rules: &[Rule], side: Side) -> (Duration, u64, u64) {
    let mut graph = graph.clone();
    let options = match side {
        Side::Sequential => Options::default(),
        Side::Threads(threads) => Options {
            threads,
            sharing: Sharing::Always,
            ..Options::default()
        },
    };
    let begin = Instant::now();
    let outcome = rewrite(&mut graph, rules, &options).expect("the rules come to an end");
    (begin.elapsed(), outcome.applications(), outcome.rounds)
}
