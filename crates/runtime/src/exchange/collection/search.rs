//! The search for those that somebody alive can wake, on plain numbers.
//!
//! A *node* is a component that waits, and may be garbage; a half-channel that is no port is one,
//! too, which wakes by being in somebody's hands. Everybody else is *outside*, and alive. An edge
//! leads from a waker to those whom it can wake. There are three kinds:
//!
//! - by a *connection*: [`Graph::wakes`], or [`Graph::wakes_from_outside`] for a waker outside;
//! - by a *reference to a half-channel* of a node, or to the *component* itself:
//!   [`Graph::counted`] says how many there are, and [`Graph::reference`] who holds one of them.
//!   Those that nobody is known to hold are held outside.
//!
//! Live is the least set that contains the nodes which those outside can wake, and with each node
//! those which that one can wake. This module never knows of components.

/// Number of a node, from 0 in the order of [`Graph::node`].
pub(super) type Node = usize;
/// Number of something with counted references, from 0 in the order of [`Graph::counted`].
pub(super) type Counted = usize;

/// Those who wait, and who can wake whom.
#[derive(Default)]
pub(super) struct Graph {
    /// Whether somebody outside can wake it, by node.
    from_outside: Vec<bool>,
    /// Wakers and those whom they can wake.
    edges: Vec<(u32, u32)>,
    /// The node to which it belongs, and its references that nobody is known to hold.
    counted: Vec<(u32, i64)>,
}

fn narrow(number: usize) -> u32 {
    match u32::try_from(number) {
        Ok(narrow) => narrow,
        Err(_) => unreachable!("each node is a component, whose identity takes memory"),
    }
}

impl Graph {
    /// Adds a node.
    pub(super) fn node(&mut self) -> Node {
        self.from_outside.push(false);
        self.from_outside.len() - 1
    }

    /// Adds something that belongs to a node, itself or a half-channel, with its number of
    /// references, without those that the node or the collector has. Who holds one can wake the
    /// node.
    pub(super) fn counted(&mut self, of: Node, references: i64) -> Counted {
        self.counted.push((narrow(of), references));
        self.counted.len() - 1
    }

    /// Adds that a node holds one of the references to something.
    pub(super) fn reference(&mut self, holder: Node, to: Counted) {
        let (of, unknown) = &mut self.counted[to];
        *unknown -= 1;
        self.edges.push((narrow(holder), *of));
    }

    /// Adds that a node is connected to where another waits.
    pub(super) fn wakes(&mut self, waker: Node, woken: Node) {
        self.edges.push((narrow(waker), narrow(woken)));
    }

    /// Adds that somebody outside can wake a node.
    pub(super) fn wakes_from_outside(&mut self, woken: Node) {
        self.from_outside[woken] = true;
    }

    /// Whether somebody alive can wake it, by node. Takes time and memory in proportion to what was
    /// added.
    pub(super) fn live(self) -> Vec<bool> {
        let mut live = self.from_outside;
        for (of, unknown) in self.counted {
            // More holders than references are known: the looks at them were of different moments.
            live[of as usize] |= unknown != 0;
        }
        let woken = ByWaker::of(&self.edges, live.len());
        let mut wakers: Vec<usize> = (0..live.len()).filter(|&node| live[node]).collect();
        while let Some(waker) = wakers.pop() {
            for &node in woken.by(waker) {
                let node = node as usize;
                if !std::mem::replace(&mut live[node], true) {
                    wakers.push(node);
                }
            }
        }
        live
    }
}

/// Edges in the order of their wakers.
struct ByWaker {
    /// The first edge of each waker, and the number of all.
    first: Vec<usize>,
    woken: Vec<u32>,
}

impl ByWaker {
    fn of(edges: &[(u32, u32)], nodes: usize) -> ByWaker {
        let mut first = vec![0; nodes + 1];
        for &(waker, _) in edges {
            first[waker as usize] += 1;
        }
        let mut end = 0;
        for one in &mut first {
            end += *one;
            *one = end;
        }
        let mut woken = vec![0; edges.len()];
        for &(waker, node) in edges {
            // Filled from the end: what was the end of its edges becomes their beginning.
            first[waker as usize] -= 1;
            woken[first[waker as usize]] = node;
        }
        ByWaker { first, woken }
    }

    fn by(&self, waker: Node) -> &[u32] {
        &self.woken[self.first[waker]..self.first[waker + 1]]
    }
}
