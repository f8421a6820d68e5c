//! Fallback lists, which say which node's memory a kernel takes when a node's own is used up: the
//! lists that Linux 3.0.4 makes from a table of distances, simulated. A measured table changes
//! nothing but these lists.

/// Lists for each node all nodes in the order in which the kernel tries them.
///
/// `table` is by the asking node and the memory's. As in `build_zonelists`: the next node is the
/// one of least distance, those behind the asking node before those in front, less loaded ones
/// before others; the node that is first at a distance is loaded by it. All nodes have processors.
#[must_use]
pub fn fallback(table: &[Vec<u16>]) -> Vec<Vec<usize>> {
    let nodes = table.len();
    // Distances count more than any load: `MAX_NODE_LOAD · MAX_NUMNODES` there.
    let weight = (nodes * 64) as u64;
    let mut loads = vec![0u64; nodes];
    (0..nodes)
        .map(|own| {
            let mut order = vec![own];
            let mut load = nodes as u64;
            let mut before = own;
            while order.len() < nodes {
                let distance =
                    |node: usize| u64::from(table[own].get(node).copied().unwrap_or(u16::MAX));
                let value = |node: usize| {
                    let in_front = u64::from(node < own);
                    (distance(node) + in_front + 1) * weight + loads[node]
                };
                let left = (0..nodes).filter(|node| !order.contains(node));
                let Some(next) = left.min_by_key(|&node| value(node)) else {
                    break;
                };
                if distance(next) != distance(before) {
                    loads[next] = load;
                }
                before = next;
                load -= 1;
                order.push(next);
            }
            order
        })
        .collect()
}

/// Links between nodes, each way, and so how many lead from any to any.
#[must_use]
pub fn hops(nodes: usize, links: &[(usize, usize)]) -> Vec<Vec<u32>> {
    let mut hops = vec![vec![u32::MAX; nodes]; nodes];
    for (from, row) in hops.iter_mut().enumerate() {
        row[from] = 0;
        let mut reached = vec![from];
        while let Some(at) = reached.pop() {
            let next = links.iter().filter_map(|&(a, b)| match at {
                at if at == a => Some(b),
                at if at == b => Some(a),
                _ => None,
            });
            for node in next {
                if row[node] > row[at] + 1 {
                    row[node] = row[at] + 1;
                    reached.push(node);
                }
            }
        }
    }
    hops
}

/// The links of the source's four-node machine: a square.
pub const SQUARE: [(usize, usize); 4] = [(0, 1), (0, 2), (1, 3), (2, 3)];

/// Pages that each node has left, and the order in which they are given out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zones {
    orders: Vec<Vec<usize>>,
    free: Vec<u64>,
}

impl Zones {
    /// Creates zones with the same number of pages on each node.
    #[must_use]
    pub fn new(orders: Vec<Vec<usize>>, pages: u64) -> Zones {
        let free = vec![pages; orders.len()];
        Zones { orders, free }
    }

    /// Takes pages for a task on a node from the nodes that it may use, as the list goes: how many
    /// from which node. Fewer than asked for if all are used up.
    pub fn take(
        &mut self,
        node: usize,
        pages: u64,
        may_use: impl Fn(usize) -> bool,
    ) -> Vec<(usize, u64)> {
        let mut left = pages;
        let mut taken = Vec::new();
        for &from in self.orders.get(node).map_or(&[][..], Vec::as_slice) {
            let here = left.min(self.free[from]);
            if here > 0 && may_use(from) {
                self.free[from] -= here;
                left -= here;
                taken.push((from, here));
            }
        }
        taken
    }
}

/// The mean cost of a page for a task on `node` that may use every other node, as in the source's
/// measurement of what the order is worth: from `pages` pages, with as many free on each node.
#[must_use]
pub fn remote_cost(orders: &[Vec<usize>], costs: &[Vec<u32>], node: usize, pages: u64) -> f64 {
    let mut zones = Zones::new(orders.to_vec(), pages);
    let taken = zones.take(node, pages, |from| from != node);
    let sum: f64 = taken
        .iter()
        .map(|&(from, pages)| f64::from(costs[node][from]) * pages as f64)
        .sum();
    sum / pages.max(1) as f64
}
