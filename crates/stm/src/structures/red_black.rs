//! Red-black trees over any memory: transactions, a lock's, or a peer's.
//!
//! The rules: a red node's children are black, and every way from the root down meets as many
//! black nodes. So no way is more than twice as long as another.
//!
//! Nodes do not know their parents; an update remembers the way it came. Both links and the colour
//! are one word, so going down reads two words of a node, and a rotation writes two words and the
//! link above.
//!
//! ```text
//!  63  62    61                    31 30                      0
//! ┌───┬─────┬────────────────────────┬────────────────────────┐
//! │ 0 │ red │ right                  │ left                   │   links
//! └───┴─────┴────────────────────────┴────────────────────────┘
//! ```

use std::cmp::Ordering;
use std::ops::Not;

/// No node; as a node of memory, the one whose left link is the root.
const NIL: u32 = 0;
const ABOVE_ROOT: u32 = 0;

const RED: u64 = 1 << 62;
const NODE_BITS: u32 = 31;
const NODE_MASK: u64 = (1 << NODE_BITS) - 1;

/// Steps of the longest way: twice the binary logarithm of 2^31 nodes, the step above the root,
/// and one that a rotation adds.
const STEPS_MAX: usize = 2 * NODE_BITS as usize + 2;

/// Memory that has nodes of a key, a value and links, each a word. The links of a fresh memory's
/// node 0 are 0, and that node is not given out.
pub trait Memory {
    /// The reason why the memory cannot go on.
    type Halt;

    /// The key and the links of a node.
    fn key_and_links(&mut self, node: u32) -> Result<(u64, u64), Self::Halt>;
    /// The links of a node.
    fn links(&mut self, node: u32) -> Result<u64, Self::Halt>;
    /// The value of a node.
    fn value(&mut self, node: u32) -> Result<u64, Self::Halt>;
    /// Changes the links of a node.
    fn set_links(&mut self, node: u32, links: u64) -> Result<(), Self::Halt>;
    /// Changes the value of a node.
    fn set_value(&mut self, node: u32, value: u64) -> Result<(), Self::Halt>;
    /// Changes the key and the value of a node.
    fn set_entry(&mut self, node: u32, key: u64, value: u64) -> Result<(), Self::Halt>;
    /// A node that is in no tree.
    fn allocate(&mut self) -> Result<u32, Self::Halt>;
    /// Takes a node back.
    fn free(&mut self, node: u32) -> Result<(), Self::Halt>;
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
}
use Side::{Left, Right};

impl Not for Side {
    type Output = Side;

    fn not(self) -> Side {
        match self {
            Left => Right,
            Right => Left,
        }
    }
}

#[inline(always)]
fn child(links: u64, side: Side) -> u32 {
    let shift = if side == Left { 0 } else { NODE_BITS };
    (links >> shift & NODE_MASK) as u32
}

fn with_child(links: u64, side: Side, node: u32) -> u64 {
    let shift = if side == Left { 0 } else { NODE_BITS };
    links & !(NODE_MASK << shift) | u64::from(node) << shift
}

fn is_red(links: u64) -> bool {
    links & RED != 0
}

/// The way from above the root down: nodes, and the side on which it goes on.
struct Way {
    steps: [(u32, Side); STEPS_MAX],
    length: usize,
}

impl Way {
    fn new() -> Way {
        Way {
            steps: [(ABOVE_ROOT, Left); STEPS_MAX],
            length: 1,
        }
    }

    fn push(&mut self, node: u32, side: Side) {
        self.steps[self.length] = (node, side);
        self.length += 1;
    }

    fn last(&self) -> (u32, Side) {
        self.steps[self.length.saturating_sub(1)]
    }

    /// The last step, taken off; the way keeps its first. Only in a memory that shows inconsistent
    /// states, as a peer's may, would an update go further up.
    fn pop(&mut self) -> (u32, Side) {
        let last = self.last();
        self.length = self.length.saturating_sub(1);
        last
    }
}

/// A red-black tree in a memory. `order` compares the key sought with that of a node.
pub struct RedBlack<'m, M>(pub &'m mut M);

impl<M: Memory> RedBlack<'_, M> {
    /// The node with the key.
    ///
    /// # Errors
    /// Those of the memory.
    #[inline]
    pub fn find(&mut self, order: impl Fn(u64) -> Ordering) -> Result<Option<u32>, M::Halt> {
        let mut node = child(self.0.links(ABOVE_ROOT)?, Left);
        while node != NIL {
            let (key, links) = self.0.key_and_links(node)?;
            node = match order(key) {
                Ordering::Equal => return Ok(Some(node)),
                Ordering::Less => child(links, Left),
                Ordering::Greater => child(links, Right),
            };
        }
        Ok(None)
    }

    /// The value of the key.
    ///
    /// # Errors
    /// Those of the memory.
    #[inline]
    pub fn get(&mut self, order: impl Fn(u64) -> Ordering) -> Result<Option<u64>, M::Halt> {
        match self.find(order)? {
            Some(node) => self.0.value(node).map(Some),
            None => Ok(None),
        }
    }

    /// Sets the value of a key, and gives its old one.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn insert(
        &mut self,
        order: impl Fn(u64) -> Ordering,
        key: u64,
        value: u64,
    ) -> Result<Option<u64>, M::Halt> {
        let mut way = Way::new();
        let found = self.go(&mut way, order)?;
        if found != NIL {
            let old = self.0.value(found)?;
            self.0.set_value(found, value)?;
            return Ok(Some(old));
        }
        let node = self.0.allocate()?;
        self.0.set_entry(node, key, value)?;
        self.0.set_links(node, RED)?;
        self.link(way.last(), node)?;
        self.mend_red(&mut way, node)?;
        Ok(None)
    }

    /// Takes a key out, and gives its value.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn remove(&mut self, order: impl Fn(u64) -> Ordering) -> Result<Option<u64>, M::Halt> {
        let mut way = Way::new();
        let found = self.go(&mut way, order)?;
        if found == NIL {
            return Ok(None);
        }
        let value = self.0.value(found)?;
        let mut links = self.0.links(found)?;
        let mut gone = found;
        if child(links, Left) != NIL && child(links, Right) != NIL {
            // The next larger entry takes the place of the one found; its own node goes.
            way.push(found, Right);
            gone = child(links, Right);
            let mut key;
            loop {
                (key, links) = self.0.key_and_links(gone)?;
                if child(links, Left) == NIL {
                    break;
                }
                way.push(gone, Left);
                gone = child(links, Left);
            }
            let next = self.0.value(gone)?;
            self.0.set_entry(found, key, next)?;
        }
        let below = child(links, Left).max(child(links, Right));
        self.link(way.last(), below)?;
        self.0.free(gone)?;
        if below != NIL {
            // An only child is red, and its parent was black.
            self.paint(below, 0)?;
        } else if !is_red(links) {
            self.mend_black(&mut way)?;
        }
        Ok(Some(value))
    }

    /// Visits all entries in the order of their keys.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn visit(&mut self, mut entry: impl FnMut(u64, u64)) -> Result<(), M::Halt> {
        let mut open = [(NIL, 0, 0); STEPS_MAX];
        let mut depth = 0;
        let mut node = child(self.0.links(ABOVE_ROOT)?, Left);
        loop {
            while node != NIL {
                let (key, links) = self.0.key_and_links(node)?;
                open[depth] = (node, key, links);
                depth += 1;
                node = child(links, Left);
            }
            if depth == 0 {
                return Ok(());
            }
            depth -= 1;
            let (left, key, links) = open[depth];
            entry(key, self.0.value(left)?);
            node = child(links, Right);
        }
    }

    /// Goes down to the node with the key, or to the empty place where it would be.
    fn go(&mut self, way: &mut Way, order: impl Fn(u64) -> Ordering) -> Result<u32, M::Halt> {
        let mut node = child(self.0.links(ABOVE_ROOT)?, Left);
        while node != NIL {
            let (key, links) = self.0.key_and_links(node)?;
            let side = match order(key) {
                Ordering::Equal => break,
                Ordering::Less => Left,
                Ordering::Greater => Right,
            };
            way.push(node, side);
            node = child(links, side);
        }
        Ok(node)
    }

    fn link(&mut self, (above, side): (u32, Side), node: u32) -> Result<(), M::Halt> {
        let links = self.0.links(above)?;
        self.0.set_links(above, with_child(links, side, node))
    }

    /// Gives a node a colour, `RED` or 0.
    fn paint(&mut self, node: u32, colour: u64) -> Result<(), M::Halt> {
        let links = self.0.links(node)?;
        if links & RED != colour {
            self.0.set_links(node, links & !RED | colour)?;
        }
        Ok(())
    }

    fn is_red(&mut self, node: u32) -> Result<bool, M::Halt> {
        Ok(node != NIL && is_red(self.0.links(node)?))
    }

    /// Moves a node down to one side, and its child of the other side up, which takes its place.
    fn rotate(&mut self, node: u32, side: Side, place: (u32, Side)) -> Result<u32, M::Halt> {
        let links = self.0.links(node)?;
        let up = child(links, !side);
        let up_links = self.0.links(up)?;
        let inner = child(up_links, side);
        self.0.set_links(node, with_child(links, !side, inner))?;
        self.0.set_links(up, with_child(up_links, side, node))?;
        self.link(place, up)?;
        Ok(up)
    }

    /// Restores the rules where `node`, at the end of the way, has become red.
    fn mend_red(&mut self, way: &mut Way, mut node: u32) -> Result<(), M::Halt> {
        loop {
            let (parent, side) = way.pop();
            if parent == ABOVE_ROOT {
                return self.paint(node, 0);
            }
            if !self.is_red(parent)? {
                return Ok(());
            }
            // The root is black, so a red parent has a parent.
            let (grand, parent_side) = way.pop();
            let uncle = child(self.0.links(grand)?, !parent_side);
            if self.is_red(uncle)? {
                self.paint(parent, 0)?;
                self.paint(uncle, 0)?;
                self.paint(grand, RED)?;
                node = grand;
                continue;
            }
            if side != parent_side {
                self.rotate(parent, parent_side, (grand, parent_side))?;
            }
            let up = self.rotate(grand, !parent_side, way.last())?;
            self.paint(up, 0)?;
            return self.paint(grand, RED);
        }
    }

    /// Restores the rules where all ways through the end of `way` have lost a black node.
    fn mend_black(&mut self, way: &mut Way) -> Result<(), M::Halt> {
        loop {
            let (parent, side) = way.pop();
            if parent == ABOVE_ROOT {
                return Ok(());
            }
            let mut sibling = child(self.0.links(parent)?, !side);
            if self.is_red(sibling)? {
                self.rotate(parent, side, way.last())?;
                self.paint(sibling, 0)?;
                self.paint(parent, RED)?;
                way.push(sibling, side);
                sibling = child(self.0.links(parent)?, !side);
            }
            let links = self.0.links(sibling)?;
            let is_near_red = self.is_red(child(links, side))?;
            if !self.is_red(child(links, !side))? {
                if !is_near_red {
                    self.paint(sibling, RED)?;
                    if self.is_red(parent)? {
                        return self.paint(parent, 0);
                    }
                    continue;
                }
                let near = self.rotate(sibling, !side, (parent, !side))?;
                self.paint(near, 0)?;
                self.paint(sibling, RED)?;
            }
            let colour = self.0.links(parent)? & RED;
            let up = self.rotate(parent, side, way.last())?;
            self.paint(up, colour)?;
            self.paint(parent, 0)?;
            let far = child(self.0.links(up)?, !side);
            return self.paint(far, 0);
        }
    }
}

#[cfg(test)]
impl<M: Memory<Halt: std::fmt::Debug>> RedBlack<'_, M> {
    /// The number of black nodes on each way down.
    ///
    /// # Panics
    /// A rule is broken.
    pub(crate) fn check(&mut self) -> u32 {
        let root = child(self.0.links(ABOVE_ROOT).unwrap(), Left);
        assert!(!self.is_red(root).unwrap(), "the root is red");
        self.check_below(root)
    }

    fn check_below(&mut self, node: u32) -> u32 {
        if node == NIL {
            return 0;
        }
        let links = self.0.links(node).unwrap();
        let below = [Left, Right].map(|side| {
            let child = child(links, side);
            let is_child_red = self.is_red(child).unwrap();
            assert!(!(is_red(links) && is_child_red), "two red nodes in a row");
            self.check_below(child)
        });
        assert_eq!(below[0], below[1], "black nodes below {node}");
        below[0] + u32::from(!is_red(links))
    }
}
