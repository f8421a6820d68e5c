//! Calls added up: by the calls around them, and by name.

use std::collections::{BTreeMap, HashMap};

use hdrhistogram::Histogram;

use crate::recorded::{Recorded, Unreadable};
use crate::steps::Step;

/// Digits of a histogram that are right.
const DIGITS: u8 = 3;

/// Calls with the same name within the same calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The probe's number; none for calls of which neither beginning nor end is known, and for the
    /// root, which is no call.
    pub name: Option<u32>,
    /// The node around it.
    pub around: usize,
    /// Nodes directly within it, in the order of their first calls.
    pub within: Vec<usize>,
    /// Number of calls that ended.
    pub calls: u64,
    /// Number of those whose length is not known.
    pub unknown: u64,
    /// Length of the others together, in nanoseconds.
    pub total: u64,
    /// The same without the calls directly within them.
    pub own: u64,
}

/// A tree of calls, of all threads together, and histograms of their lengths.
pub struct Tree {
    /// The root, and all nodes.
    pub nodes: Vec<Node>,
    /// Lengths in nanoseconds, by the probes' numbers.
    pub lengths: BTreeMap<u32, Histogram<u64>>,
    /// Numbers of calls from one probe directly within another, or within none.
    pub edges: BTreeMap<(Option<u32>, u32), u64>,
    /// Number of gaps, and of records missing in them.
    pub gaps: (u64, u64),
}

impl Tree {
    /// Adds up all calls.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(recorded: &Recorded) -> Result<Tree, Unreadable> {
        let mut tree = Tree {
            nodes: vec![Node::default()],
            lengths: BTreeMap::new(),
            edges: BTreeMap::new(),
            gaps: (0, 0),
        };
        let mut places: HashMap<(usize, Option<u32>), usize> = HashMap::new();
        recorded.visit(|step| tree.add(&mut places, step))?;
        Ok(tree)
    }

    fn add(&mut self, places: &mut HashMap<(usize, Option<u32>), usize>, step: Step<'_>) {
        match step {
            Step::Begins { .. } | Step::Appears { .. } => {}
            Step::Gap { records, .. } => {
                self.gaps.0 += 1;
                self.gaps.1 += records;
            }
            Step::Ends { call, around } => {
                let mut place = 0;
                for &name in around.iter().chain([&call.name]) {
                    place = *places.entry((place, name)).or_insert_with(|| {
                        let new = self.nodes.len();
                        self.nodes[place].within.push(new);
                        self.nodes.push(Node {
                            name,
                            around: place,
                            ..Node::default()
                        });
                        new
                    });
                }
                let node = &mut self.nodes[place];
                node.calls += 1;
                match call.length() {
                    Some(length) => {
                        node.total += length;
                        node.own += length.saturating_sub(call.within);
                        if let Some(name) = call.name {
                            // Lengths up to an hour have their digits; longer ones count as one.
                            let histogram = self.lengths.entry(name).or_insert_with(histogram);
                            histogram.saturating_record(length);
                        }
                    }
                    None => node.unknown += 1,
                }
                if let Some(name) = call.name {
                    let outer = around.last().copied().flatten();
                    *self.edges.entry((outer, name)).or_default() += 1;
                }
            }
        }
    }

    /// Visits the nodes depth first, each with its depth.
    pub fn walk(&self, mut visit: impl FnMut(&Node, usize)) {
        let mut open = vec![(0, 0)];
        while let Some((place, depth)) = open.pop() {
            let node = &self.nodes[place];
            if place != 0 {
                visit(node, depth - 1);
            }
            let within = node.within.iter().rev();
            open.extend(within.map(|&within| (within, depth + 1)));
        }
    }
}

#[expect(clippy::expect_used, reason = "the bounds are constants that fit")]
fn histogram() -> Histogram<u64> {
    const HOUR_NS: u64 = 3_600_000_000_000;
    Histogram::new_with_bounds(1, HOUR_NS, DIGITS).expect("fitting bounds")
}
