//! Nodes by number, allocated and freed inside of transactions.
//!
//! A node is four words on one cache line. Freeing one is a write like any other: it takes effect
//! with its transaction, or not at all. A transaction that still sees the node in its snapshot
//! finds its words newer than that, and extends or ends; and the memory stays words of the slab as
//! long as the slab lives. So nothing has to wait until all transactions of a time have ended, as
//! it would with epochs; the price is that a slab gives no memory back before it is dropped.
//!
//! ```text
//!  free nodes of a lane: head → node → node → 0, by the nodes' first words
//!  fresh nodes of a lane: from `fresh` up to `end`
//!  fresh nodes of nobody: from `untouched` on, taken by the batch
//! ```
//!
//! A thread allocates and frees in its lane, so that two threads seldom meet there. An empty lane
//! takes the free nodes of another as a whole: so a queue whose one end allocates and whose other
//! end frees does not grow.

use std::sync::OnceLock;

use crate::algorithm::Algorithm;
use crate::halt::Halt;
use crate::tx::Tx;
use crate::var::Var;

/// Words of a node.
pub(crate) const NODE_WORDS: usize = 4;
/// No node. Structures use the words of its node as they like: it is never given out.
pub(crate) const NIL: u32 = 0;

/// Lanes: more than threads that run at once on most machines, and each is two lines.
const LANES: usize = 16;
/// Fresh nodes that a lane takes at once.
const BATCH: u64 = 32;
/// Blocks of nodes: each but the first two is twice as large as the one before.
const BLOCKS: usize = 31;
/// Node numbers: one bit of a number is left for users, as in a tree's links.
const NODES_MAX: u64 = 1 << 31;

/// A node, on one cache line with one other.
#[repr(align(32))]
pub(crate) struct Node([Var<u64>; NODE_WORDS]);

/// Alone on its lines, so that lanes do not disturb one another.
#[repr(align(128))]
struct Lane {
    /// The first free node.
    head: Var<u32>,
    /// The next fresh node.
    fresh: Var<u64>,
    /// The end of the fresh nodes.
    end: Var<u64>,
    /// Nodes given out less nodes freed in this lane, which can be negative.
    given: Var<i64>,
}

/// A slab of nodes of four words.
pub struct Slab {
    first: Box<[Node]>,
    /// Block `k` has `first.len() << k` nodes, and begins at number `first.len() << k`.
    more: [OnceLock<Box<[Node]>>; BLOCKS],
    lanes: [Lane; LANES],
    untouched: Box<Lane>,
}

fn nodes(count: usize) -> Box<[Node]> {
    let node = |_| Node(std::array::from_fn(|_| Var::new(0)));
    (0..count).map(node).collect()
}

impl Lane {
    fn new(fresh: u64) -> Lane {
        Lane {
            head: Var::new(NIL),
            fresh: Var::new(fresh),
            end: Var::new(fresh),
            given: Var::new(0),
        }
    }
}

impl Slab {
    /// A slab with room for this many nodes at first.
    pub fn with_capacity(capacity: usize) -> Slab {
        let count = (capacity + 1).next_power_of_two().max(BATCH as usize);
        Slab {
            first: nodes(count),
            more: std::array::from_fn(|_| OnceLock::new()),
            lanes: std::array::from_fn(|_| Lane::new(0)),
            // The first node is nobody's.
            untouched: Box::new(Lane::new(1)),
        }
    }

    /// A word of a node.
    ///
    /// # Panics
    /// The slab has never given out such a node.
    #[inline(always)]
    pub fn word(&self, node: u32, word: usize) -> &Var<u64> {
        &self.node(node).0[word]
    }

    #[inline(always)]
    fn node(&self, node: u32) -> &Node {
        match self.first.get(node as usize) {
            Some(node) => node,
            None => self.node_of_more(node),
        }
    }

    #[inline(never)]
    fn node_of_more(&self, node: u32) -> &Node {
        let node = node as usize;
        let block = (node / self.first.len()).ilog2();
        let begin = self.first.len() << block;
        let block = self.more[block as usize].get();
        &block.expect("a node that was given out has its block")[node - begin]
    }

    /// Allocates a node; its words are as they were when it was freed.
    ///
    /// # Errors
    /// The attempt met a conflict.
    ///
    /// # Panics
    /// 2^31 nodes are in use.
    pub fn allocate<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>) -> Result<u32, Halt> {
        let lane = &self.lanes[tx.lane() % LANES];
        tx.update(&lane.given, |given| given.wrapping_add(1))?;
        let mut head = tx.read(&lane.head)?;
        if head == NIL {
            let (fresh, end) = tx.read_pair(&lane.fresh, &lane.end)?;
            if fresh < end {
                tx.write(&lane.fresh, fresh + 1)?;
                return Ok(fresh as u32);
            }
            head = self.take_from_others(tx)?;
        }
        if head != NIL {
            let next = tx.read(self.word(head, 0))?;
            tx.write(&lane.head, next as u32)?;
            return Ok(head);
        }
        let begin = tx.read(&self.untouched.fresh)?;
        let end = begin + BATCH;
        assert!(
            end <= NODES_MAX,
            "a slab has numbers for {NODES_MAX} nodes, and all are in use"
        );
        self.make_up_to(end);
        tx.write(&self.untouched.fresh, end)?;
        tx.write(&lane.fresh, begin + 1)?;
        tx.write(&lane.end, end)?;
        Ok(begin as u32)
    }

    /// Frees a node.
    ///
    /// # Errors
    /// The attempt met a conflict.
    pub fn free<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, node: u32) -> Result<(), Halt> {
        let lane = &self.lanes[tx.lane() % LANES];
        tx.update(&lane.given, |given| given.wrapping_sub(1))?;
        let head = tx.read(&lane.head)?;
        tx.write(self.word(node, 0), head.into())?;
        tx.write(&lane.head, node)
    }

    /// Nodes given out and not freed.
    ///
    /// # Errors
    /// The attempt met a conflict.
    pub fn given<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>) -> Result<u64, Halt> {
        let mut sum = 0i64;
        for lane in &self.lanes {
            sum = sum.wrapping_add(tx.read(&lane.given)?);
        }
        Ok(sum as u64)
    }

    /// The free nodes of some lane, which then has none.
    fn take_from_others<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>) -> Result<u32, Halt> {
        for lane in &self.lanes {
            let head = tx.read(&lane.head)?;
            if head != NIL {
                tx.write(&lane.head, NIL)?;
                return Ok(head);
            }
        }
        Ok(NIL)
    }

    /// Makes the blocks of the nodes below `end`. They stay if the transaction is undone.
    fn make_up_to(&self, end: u64) {
        let mut begin = self.first.len();
        for block in &self.more {
            if begin as u64 >= end {
                break;
            }
            block.get_or_init(|| nodes(begin));
            begin *= 2;
        }
    }
}
