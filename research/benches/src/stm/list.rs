//! A sorted list: look-ups, and updates that keep its length.
//!
//! All sides run the same code over nodes of their own memory: words of transactions, a vector
//! under a lock, variables of fast-stm, each with a node's key and link.

use std::convert::Infallible;
use std::sync::Mutex;

use fast_stm::{StmError, TVar, Transaction};
use hearth_stm::{Algorithm, Halt, Lsa, Norec, Slab, Stm, Tx};

use super::{Random, Side};

const KEYS: usize = 512;
const UPDATE_PERCENT: usize = 20;
/// The head, which has no key.
const HEAD: u32 = 0;

/// A node: its key, and the node behind it or [`HEAD`] at the end.
type Node = (u64, u32);

/// Memory that nodes are in.
trait Nodes {
    type Halt;
    fn node(&mut self, node: u32) -> Result<Node, Self::Halt>;
    fn set(&mut self, node: u32, to: Node) -> Result<(), Self::Halt>;
    fn allocate(&mut self) -> Result<u32, Self::Halt>;
    fn free(&mut self, node: u32) -> Result<(), Self::Halt>;
}

enum Order {
    Has(u64),
    Add(u64),
    Take(u64),
}

fn order(random: &mut Random) -> Order {
    let key = random.below(KEYS) as u64;
    match random.below(200) {
        kind if kind >= 2 * UPDATE_PERCENT => Order::Has(key),
        kind if kind < UPDATE_PERCENT => Order::Add(key),
        _ => Order::Take(key),
    }
}

/// Does what is asked; true if the key was there.
#[inline]
fn serve<N: Nodes>(nodes: &mut N, order: &Order) -> Result<bool, N::Halt> {
    let (Order::Has(key) | Order::Add(key) | Order::Take(key)) = *order;
    let mut before = HEAD;
    let (mut before_key, mut at) = nodes.node(HEAD)?;
    let mut found = None;
    while at != HEAD {
        let (at_key, next) = nodes.node(at)?;
        if at_key >= key {
            found = (at_key == key).then_some(next);
            break;
        }
        (before, before_key, at) = (at, at_key, next);
    }
    match (order, found) {
        (Order::Add(_), None) => {
            let node = nodes.allocate()?;
            nodes.set(node, (key, at))?;
            nodes.set(before, (before_key, node))?;
        }
        (Order::Take(_), Some(next)) => {
            nodes.set(before, (before_key, next))?;
            nodes.free(at)?;
        }
        _ => {}
    }
    Ok(found.is_some())
}

fn keys<N: Nodes>(nodes: &mut N) -> Result<Vec<u64>, N::Halt> {
    let mut keys = Vec::new();
    let mut at = nodes.node(HEAD)?.1;
    // A list of a transaction that will not commit might have no end.
    while at != HEAD && keys.len() <= KEYS {
        let (key, next) = nodes.node(at)?;
        keys.push(key);
        at = next;
    }
    Ok(keys)
}

fn right(keys: &[u64]) -> Result<(), String> {
    match keys.is_sorted_by(|one, other| one < other) && !keys.is_empty() {
        true => Ok(()),
        false => Err("the keys are out of order".to_owned()),
    }
}

fn first_keys() -> impl Iterator<Item = Order> {
    (0..KEYS as u64).step_by(2).map(Order::Add)
}

const KEY: usize = 1;
const NEXT: usize = 2;

struct Words<'t, 'v, A: Algorithm> {
    tx: &'t mut Tx<'v, A>,
    slab: &'v Slab,
}

impl<A: Algorithm> Nodes for Words<'_, '_, A> {
    type Halt = Halt;

    #[inline]
    fn node(&mut self, node: u32) -> Result<Node, Halt> {
        let words = [KEY, NEXT].map(|word| self.slab.word(node, word));
        let (key, next) = self.tx.read_pair(words[0], words[1])?;
        Ok((key, next as u32))
    }

    #[inline]
    fn set(&mut self, node: u32, (key, next): Node) -> Result<(), Halt> {
        self.tx.write(self.slab.word(node, KEY), key)?;
        self.tx.write(self.slab.word(node, NEXT), next.into())
    }

    fn allocate(&mut self) -> Result<u32, Halt> {
        self.slab.allocate(self.tx)
    }

    fn free(&mut self, node: u32) -> Result<(), Halt> {
        self.slab.free(self.tx, node)
    }
}

fn hearth<A: Algorithm>(name: &'static str) -> Side {
    // The slab's node 0 is nobody's, so it is the head.
    let (stm, slab) = (Stm::<A>::with_algorithm(), Slab::with_capacity(KEYS));
    for order in first_keys() {
        stm.atomically(|tx| serve(&mut Words { tx, slab: &slab }, &order));
    }
    Side::new(
        name,
        (stm, slab),
        |(stm, slab), random| {
            let order = order(random);
            stm.atomically(|tx| serve(&mut Words { tx, slab }, &order));
        },
        |(stm, slab)| right(&stm.atomically(|tx| keys(&mut Words { tx, slab }))),
    )
}

/// Nodes under a lock.
struct Plain {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Nodes for Plain {
    type Halt = Infallible;

    #[inline]
    fn node(&mut self, node: u32) -> Result<Node, Infallible> {
        Ok(self.nodes[node as usize])
    }

    #[inline]
    fn set(&mut self, node: u32, to: Node) -> Result<(), Infallible> {
        self.nodes[node as usize] = to;
        Ok(())
    }

    fn allocate(&mut self) -> Result<u32, Infallible> {
        Ok(self.free.pop().unwrap_or_else(|| {
            self.nodes.push((0, HEAD));
            self.nodes.len() as u32 - 1
        }))
    }

    fn free(&mut self, node: u32) -> Result<(), Infallible> {
        self.free.push(node);
        Ok(())
    }
}

impl Plain {
    fn new() -> Plain {
        let mut plain = Plain {
            nodes: vec![(0, HEAD)],
            free: Vec::new(),
        };
        for order in first_keys() {
            let Ok(_) = serve(&mut plain, &order);
        }
        plain
    }

    fn check(&mut self) -> Result<(), String> {
        let Ok(keys) = keys(self);
        right(&keys)
    }
}

fn mutex() -> Side {
    Side::new(
        "mutex",
        Mutex::new(Plain::new()),
        |list, random| {
            let order = order(random);
            let Ok(_) = serve(&mut *list.lock().expect("nobody panics"), &order);
        },
        |list| list.lock().expect("nobody panics").check(),
    )
}

fn parking_lot() -> Side {
    Side::new(
        "parking_lot",
        parking_lot::Mutex::new(Plain::new()),
        |list, random| {
            let order = order(random);
            let Ok(_) = serve(&mut *list.lock(), &order);
        },
        |list| list.lock().check(),
    )
}

/// Variables of fast-stm. The first free node is a variable, too; free nodes are linked.
struct Shared {
    nodes: Vec<TVar<Node>>,
    free: TVar<u32>,
}

/// A transaction on them. One that will not commit may see a list that is a ring, so it counts.
struct Peer<'t> {
    tx: &'t mut Transaction,
    shared: &'t Shared,
    visited: usize,
}

impl Nodes for Peer<'_> {
    type Halt = StmError;

    fn node(&mut self, node: u32) -> Result<Node, StmError> {
        self.visited += 1;
        if self.visited > 2 * KEYS {
            return Err(StmError::Failure);
        }
        self.tx.read(&self.shared.nodes[node as usize])
    }

    fn set(&mut self, node: u32, to: Node) -> Result<(), StmError> {
        self.tx.write(&self.shared.nodes[node as usize], to)
    }

    fn allocate(&mut self) -> Result<u32, StmError> {
        let node = self.tx.read(&self.shared.free)?;
        let next = self.tx.read(&self.shared.nodes[node as usize])?.1;
        self.tx.write(&self.shared.free, next)?;
        Ok(node)
    }

    fn free(&mut self, node: u32) -> Result<(), StmError> {
        let next = self.tx.read(&self.shared.free)?;
        self.set(node, (0, next))?;
        self.tx.write(&self.shared.free, node)
    }
}

impl Shared {
    fn new() -> Shared {
        // A node for each key, and some that only transactions which will not commit ask for.
        let count = 2 * KEYS as u32;
        let link = |node: u32| TVar::new((0, if node == 0 { HEAD } else { node + 1 }));
        let mut nodes: Vec<TVar<Node>> = (0..count).map(link).collect();
        nodes.push(TVar::new((0, HEAD)));
        let shared = Shared {
            nodes,
            free: TVar::new(1),
        };
        for order in first_keys() {
            fast_stm::atomically(|tx| serve(&mut shared.peer(tx), &order));
        }
        shared
    }

    fn peer<'t>(&'t self, tx: &'t mut Transaction) -> Peer<'t> {
        Peer {
            tx,
            shared: self,
            visited: 0,
        }
    }
}

fn fast_stm() -> Side {
    Side::new(
        "fast-stm",
        Shared::new(),
        |shared, random| {
            let order = order(random);
            fast_stm::atomically(|tx| serve(&mut shared.peer(tx), &order));
        },
        |shared| right(&fast_stm::atomically(|tx| keys(&mut shared.peer(tx)))),
    )
}

pub(super) fn sides() -> Vec<Side> {
    vec![
        hearth::<Lsa>("lsa"),
        hearth::<Norec>("norec"),
        mutex(),
        parking_lot(),
        fast_stm(),
    ]
}
