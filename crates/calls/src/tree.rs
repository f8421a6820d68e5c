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
    /// Number of gaps, and of records missing in them.
    pub gaps: (u64, u64),
    /// Lengths of the calls in nanoseconds, by the places of the probes.
    lengths: Vec<Histogram<u64>>,
    /// Places of the probes' histograms, by the probes' numbers.
    probes: HashMap<u32, usize>,
    /// Places of nodes, by the nodes around them and the probes.
    places: HashMap<(usize, Option<u32>), usize>,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree {
            nodes: vec![Node::default()],
            gaps: (0, 0),
            lengths: Vec::new(),
            probes: HashMap::new(),
            places: HashMap::new(),
        }
    }
}

impl Tree {
    /// Adds up all calls.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(recorded: &Recorded) -> Result<Tree, Unreadable> {
        let mut tree = Tree::default();
        recorded.visit(|step| tree.add(step))?;
        tree.add_tallies(recorded);
        Ok(tree)
    }

    /// Adds calls that were added up while the program ran. Which calls are within which is not
    /// known of them.
    pub fn add_tallies(&mut self, recorded: &Recorded) {
        for (&name, tally) in recorded.tallies() {
            let place = self.place(0, name);
            let node = &mut self.nodes[place];
            node.calls += tally.calls();
            node.unknown += tally.unknown;
            node.total += recorded.length_ns(tally.total);
            node.own += recorded.length_ns(tally.own);
            for (least, greatest, calls) in tally.lengths() {
                let middle = (least + (greatest - least) / 2).min(tally.longest);
                let longest = u64::from((least..=greatest).contains(&tally.longest));
                self.record(
                    name,
                    recorded.length_ns(middle),
                    calls.saturating_sub(longest),
                );
                self.record(name, recorded.length_ns(tally.longest), longest);
            }
        }
    }

    /// Adds a step.
    pub fn add(&mut self, step: Step<'_>) {
        match step {
            Step::Begins { .. } | Step::Appears { .. } => {}
            Step::Gap { records, .. } => {
                self.gaps.0 += 1;
                self.gaps.1 += records;
            }
            Step::Ends { call, around } => {
                let mut place = 0;
                for &name in around.iter().chain([&call.name]) {
                    place = self.place(place, name);
                }
                let node = &mut self.nodes[place];
                node.calls += 1;
                match call.length() {
                    Some(length) => {
                        node.total += length;
                        node.own += length.saturating_sub(call.within);
                        self.record(call.name, length, 1);
                    }
                    None => node.unknown += 1,
                }
            }
        }
    }

    /// The node of a probe within another node.
    fn place(&mut self, around: usize, name: Option<u32>) -> usize {
        *self.places.entry((around, name)).or_insert_with(|| {
            let new = self.nodes.len();
            self.nodes[around].within.push(new);
            self.nodes.push(Node {
                name,
                around,
                ..Node::default()
            });
            new
        })
    }

    fn record(&mut self, name: Option<u32>, length: u64, calls: u64) {
        let Some(name) = name else { return };
        let place = *self.probes.entry(name).or_insert_with(|| {
            self.lengths.push(histogram());
            self.lengths.len() - 1
        });
        // Lengths up to an hour have their digits; longer ones count as one.
        self.lengths[place].saturating_record_n(length, calls);
    }

    /// Lengths of a probe's calls in nanoseconds. None if none is known.
    #[must_use]
    pub fn lengths(&self, name: u32) -> Option<&Histogram<u64>> {
        self.probes.get(&name).map(|&place| &self.lengths[place])
    }

    /// Numbers of calls from one probe directly within another, or within none.
    #[must_use]
    pub fn edges(&self) -> BTreeMap<(Option<u32>, u32), u64> {
        let mut edges = BTreeMap::new();
        for node in &self.nodes {
            if let Some(name) = node.name {
                *edges
                    .entry((self.nodes[node.around].name, name))
                    .or_default() += node.calls;
            }
        }
        edges
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
