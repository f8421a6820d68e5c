//! Whole runs: one result for 1 to 8 threads, and the same as the naive rewriter's.

mod support;

use fastrand::Rng;
use hearth_rewrite::engine::search_orders;
use hearth_rewrite::{Graph, Options, RewriteError, Sharing, read_rules, rewrite};
use support::naive::Naive;
use support::random;

/// Rounds of a random rule set: most end before, some never.
const ROUNDS: u64 = 5;

fn options(threads: usize, rounds_max: u64) -> Options {
    Options {
        threads,
        rounds_max,
        sharing: Sharing::Always,
        ..Options::default()
    }
}

fn sets() -> u64 {
    match std::env::var_os("HEARTH_TEST_DEEP") {
        Some(_) => 1000,
        None => 120,
    }
}

/// Account of random sets, to see that sets are not all idle.
#[derive(Default, Debug)]
struct Tally {
    applied: usize,
    overlaps: usize,
    several_rounds: usize,
    ended: usize,
    deep: usize,
}

#[test]
fn random_rule_sets_give_one_result() {
    let mut tally = Tally::default();
    for seed in 0..sets() {
        let mut rng = Rng::with_seed(seed);
        let text = random::rules(&mut rng);
        one_set(seed, &text, rng, &mut tally);
    }
    let many = sets() as usize / 8;
    assert!(tally.applied > many * 8, "{tally:?}");
    assert!(
        tally.overlaps > many && tally.several_rounds > many,
        "{tally:?}"
    );
    assert!(
        tally.ended > many && tally.ended < sets() as usize,
        "{tally:?}"
    );
    assert!(tally.deep > 0, "{tally:?}");
}

/// Rules whose matches spoil each other without a common vertex that one deletes or sets.
const ADDERS: &[&str] = &[
    // Only one edge into each vertex.
    "rule r { match a: A, b: A; unless x: A, x -[g]-> b; create a -[g]-> b; }",
    "rule r { match a: A, b: A; unless x: A, b -[g]-> x; create b -[g]-> a; }",
    "rule r { match a: A, b: A; unless a -[g]-> b; unless b -[g]-> a; create a -[g]-> b; }",
    // Seen from afar: by a condition, by a path, and anywhere.
    "rule s { match a: A; if a.n == 2; set a.n = 3; }
     rule r { match a: A; unless x: A, a -[e]-> x if x.n > 2; create n: C, a -[g]-> n; }",
    "rule s { match a: A, c: C; unless a -[f]-> c; create a -[f]-> c; }
     rule r { match a: A, b: C; unless x: A, y: C, a -[g]-> x, x -[f]-> y; create a -[g]-> b; }",
    "rule r { match a: A, b: A; unless x: A, y: A, x -[g]-> y; create a -[g]-> b; }",
    "rule z { match b: B; delete b; }
     rule s { match a: A; if a.n > 1; unless b: B; create n: B; }
     rule r { match c: C; unless b: B; create c -[g]-> c; }",
];

#[test]
fn added_edges_are_seen() {
    let mut tally = Tally::default();
    for (place, rules) in (0..).zip(ADDERS) {
        for seed in 0..4 {
            let text = format!("{}{rules}", random::TYPES);
            one_set(seed + 10 * place, &text, Rng::with_seed(seed), &mut tally);
        }
    }
    assert!(tally.applied > 100 && tally.deep > 10, "{tally:?}");
}

fn one_set(seed: u64, text: &str, mut rng: Rng, tally: &mut Tally) {
    let read = read_rules(text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
    let start = random::graph(&mut rng, read.schema.build().unwrap(), 7);
    let rules = read.rules;
    let mut naive = Naive::of(&start);
    let orders = search_orders(&mut start.clone(), &rules)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
    let mut rounds = 0;
    let mut ended = false;
    while rounds < ROUNDS && naive.vertex_count() < 24 {
        let Some((found, applied)) = naive.round(&rules, &orders) else {
            break;
        };
        ended = found == 0;
        if ended {
            break;
        }
        rounds += 1;
        tally.applied += applied;
        tally.overlaps += found - applied;
        tally.deep += usize::from(orders.iter().any(|order| order.deep));
    }
    tally.several_rounds += usize::from(rounds > 1);
    tally.ended += usize::from(ended);
    if rounds == 0 {
        // A limit of 0 rounds still has one.
        let mut graph = start.clone();
        if ended {
            let outcome = rewrite(&mut graph, &rules, &options(2, 1)).unwrap();
            assert_eq!(
                (outcome.rounds, graph.listing()),
                (0, start.listing()),
                "seed {seed}"
            );
        }
        return;
    }
    let wanted = naive.listing();
    // None: one thread without any shared state.
    for threads in [None].into_iter().chain((1..=8).map(Some)) {
        let mut graph = start.clone();
        let mut options = options(threads.unwrap_or(1), rounds);
        if threads.is_none() {
            options.sharing = Sharing::Worthwhile;
        }
        let outcome = rewrite(&mut graph, &rules, &options);
        assert!(
            graph.listing() == wanted,
            "seed {seed}, {threads:?} threads, {rounds} rounds\n{text}\nbefore\n{}\nwanted\n{wanted}\n\
             found\n{}",
            start.listing(),
            graph.listing()
        );
        assert_eq!(graph.fault(), None, "seed {seed}, {threads:?} threads");
        match outcome {
            Ok(outcome) => assert_eq!(outcome.rounds, rounds, "seed {seed}"),
            Err(RewriteError::Endless { .. }) => assert!(!ended, "seed {seed}"),
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
}

const VIDEO: &str = "
    vertex Video { views: int, group: int }
    vertex Group;
    edge related;
    edge has;
    rule pair {
        match a: Video -[related]-> b: Video -[related]-> c: Video;
        if a.group == 0 and b.group == 0 and c.group == 0;
        unless b -[related]-> a;
        create g: Group, g -[has]-> a, g -[has]-> b;
        set a.group = 1, b.group = 1;
    }
    rule hang {
        match g: Group -[has]-> a: Video -[related]-> b: Video;
        if b.group == 0;
        create g -[has]-> b;
        set b.group = 2;
    }
    rule drop {
        match a: Video -[e: related]-> b: Video;
        if a.group == 1 and b.group == 2;
        delete e;
    }
";

fn videos(count: u32, seed: u64) -> Graph {
    let mut rng = Rng::with_seed(seed);
    let mut graph = Graph::new(read_rules(VIDEO).unwrap().schema.build().unwrap());
    let all: Vec<_> = (0..count).map(|_| graph.add_vertex(0)).collect();
    for video in &all {
        for _ in 0..rng.usize(0..6) {
            // Some are much more popular than others.
            let other = all[rng.usize(0..all.len()).min(rng.usize(0..all.len()))];
            graph.add_edge(0, *video, other);
        }
    }
    graph
}

/// Thousands of matches, several shards: all parallel phases have work.
#[test]
fn large_graphs_have_one_result() {
    let rules = read_rules(VIDEO).unwrap().rules;
    let start = videos(20_000, 5);
    let mut first = None;
    for (threads, sharing) in [
        (1, Sharing::Worthwhile),
        (1, Sharing::Always),
        (2, Sharing::Always),
        (3, Sharing::Worthwhile),
        (8, Sharing::Always),
    ] {
        let mut graph = start.clone();
        let options = Options {
            threads,
            sharing,
            ..Options::default()
        };
        let outcome = rewrite(&mut graph, &rules, &options).unwrap();
        assert!(
            outcome.applied.iter().all(|count| *count > 1000),
            "{outcome:?}"
        );
        assert!(outcome.overlaps > 1000, "{outcome:?}");
        assert_eq!(graph.fault(), None);
        let result = (
            graph.listing(),
            outcome.rounds,
            outcome.applied,
            outcome.overlaps,
        );
        let first = first.get_or_insert_with(|| result.clone());
        assert!(*first == result, "{threads} threads");
    }
}

/// Long chains of overlaps: each match overlaps with the next only.
#[test]
fn chains_of_overlaps() {
    let text = "vertex V; edge e; edge done;
        rule r { match a: V -[x: e]-> b: V; delete x; create b -[done]-> a; set a.n = b.n; }";
    let text = text.replace("vertex V;", "vertex V { n: int }");
    let read = read_rules(&text).unwrap();
    let mut start = Graph::new(read.schema.build().unwrap());
    let all: Vec<_> = (0..3000).map(|_| start.add_vertex(0)).collect();
    for pair in all.windows(2) {
        start.add_edge(0, pair[0], pair[1]);
    }
    let run = |threads| {
        let mut graph = start.clone();
        let outcome = rewrite(&mut graph, &read.rules, &options(threads, 100)).unwrap();
        (graph.listing(), outcome.rounds, outcome.overlaps)
    };
    let one = run(1);
    assert_eq!(one.1, 2, "every other match, then the rest");
    for threads in [2, 5] {
        assert!(run(threads) == one);
    }
}

#[test]
fn rules_that_never_end_are_named() {
    let text = "vertex V; edge e;
        rule quiet { match a: V -[x: e]-> b: V; delete x; }
        rule noisy { match a: V; create b: V, a -[e]-> b; }";
    let read = read_rules(text).unwrap();
    let mut graph = Graph::new(read.schema.build().unwrap());
    graph.add_vertex(0);
    let error = rewrite(&mut graph, &read.rules, &options(2, 6)).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("`noisy`") && message.contains("6 rounds"),
        "{message}"
    );
    assert_eq!(graph.fault(), None);
    let limited = Options {
        applications_max: 100,
        ..Options::default()
    };
    let error = rewrite(&mut graph, &read.rules, &limited).unwrap_err();
    assert!(matches!(
        error,
        RewriteError::Endless {
            applications: 100..,
            ..
        }
    ));
}
