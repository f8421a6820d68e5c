//! Slots that may be taken for each other.
//!
//! The machine is a tree of blocks of slots: single slots, cores, slots that share a cache, nodes,
//! packages. Two blocks of one parent are alike if exchanging them, slot by slot, changes nothing
//! that enters a cost: classes of pairs, capacities, cores, caches, nodes. All of that is compared
//! and never inferred from numbers of parts, so uneven machines and pairs that were measured apart
//! need no special case: they have fewer blocks that are alike.
//!
//! As long as both of two such blocks are empty, a placement and the one with both exchanged cost
//! the same, so the next component may as well take the first.

use std::collections::BTreeMap;

use crate::baselines::levels;
use crate::slots::{CpuSlot, Machine, slot_number};

/// A run of slots, and the blocks in it.
struct Block {
    first: usize,
    end: usize,
    parent: Option<u32>,
    children: Vec<u32>,
    /// The first sibling that is alike.
    kind: u32,
}

/// The tree; children come before their parents, slots first, the root last.
pub(super) struct Alike {
    blocks: Vec<Block>,
}

impl Alike {
    pub(super) fn of(machine: &Machine) -> Self {
        let mut blocks = tree(machine);
        let parts = Parts::of(machine);
        for parent in 0..blocks.len() {
            let mut firsts: Vec<u32> = Vec::new();
            for child in blocks[parent].children.clone() {
                let alike = firsts.iter().copied().find(|first| {
                    parts.exchangeable(machine, &blocks[*first as usize], &blocks[child as usize])
                });
                blocks[child as usize].kind = alike.unwrap_or(child);
                if alike.is_none() {
                    firsts.push(child);
                }
            }
        }
        Self { blocks }
    }

    fn root(&self) -> usize {
        self.blocks.len() - 1
    }
}

/// Number of components in each block.
pub(super) struct Occupied<'a> {
    alike: &'a Alike,
    inside: Vec<u32>,
}

impl<'a> Occupied<'a> {
    pub(super) fn new(alike: &'a Alike) -> Self {
        Self {
            inside: vec![0; alike.blocks.len()],
            alike,
        }
    }

    pub(super) fn enter(&mut self, slot: CpuSlot) {
        self.around(slot, |inside| *inside += 1);
    }

    pub(super) fn leave(&mut self, slot: CpuSlot) {
        self.around(slot, |inside| *inside -= 1);
    }

    fn around(&mut self, slot: CpuSlot, change: impl Fn(&mut u32)) {
        let mut at = slot.index();
        change(&mut self.inside[at]);
        while let Some(parent) = self.alike.blocks[at].parent {
            at = parent as usize;
            change(&mut self.inside[at]);
        }
    }

    /// Keeps used slots, and one of each set of free slots that are alike.
    pub(super) fn different(&self, slots: &mut Vec<CpuSlot>) {
        slots.clear();
        self.visit(self.alike.root(), slots);
    }

    fn visit(&self, block: usize, slots: &mut Vec<CpuSlot>) {
        let parts = &self.alike.blocks[block];
        if parts.children.is_empty() {
            slots.push(slot_number(parts.first));
            return;
        }
        for (at, child) in parts.children.iter().enumerate() {
            let kind = self.alike.blocks[*child as usize].kind;
            let is_free = |child: u32| self.inside[child as usize] == 0;
            let mut before = parts.children[..at].iter();
            let is_first = !is_free(*child)
                || !before.any(|b| is_free(*b) && self.alike.blocks[*b as usize].kind == kind);
            if is_first {
                self.visit(*child as usize, slots);
            }
        }
    }
}

fn tree(machine: &Machine) -> Vec<Block> {
    let count = machine.slots().len();
    let mut blocks: Vec<Block> = (0..count).map(|at| leaf(at, at + 1)).collect();
    let mut top: Vec<u32> = (0..).take(count).collect();
    let whole = (count > 1).then(|| vec![count]);
    for level in levels(machine).into_iter().chain(whole) {
        if let Some(runs) = divide(&blocks, &top, &level) {
            top = runs
                .into_iter()
                .map(|children| match children.as_slice() {
                    [only] => *only,
                    _ => parent(&mut blocks, children),
                })
                .collect();
        }
    }
    blocks
}

const fn leaf(first: usize, end: usize) -> Block {
    Block {
        first,
        end,
        parent: None,
        children: Vec::new(),
        kind: 0,
    }
}

/// The blocks of each run of a level. None if a block would be cut: a level that does not nest is
/// left out.
fn divide(blocks: &[Block], top: &[u32], level: &[usize]) -> Option<Vec<Vec<u32>>> {
    let mut rest = top.iter().copied().peekable();
    let mut end = 0;
    let mut runs = Vec::new();
    for run in level {
        end += run;
        let mut children = Vec::new();
        while let Some(block) = rest.next_if(|block| blocks[*block as usize].first < end) {
            if blocks[block as usize].end > end {
                return None;
            }
            children.push(block);
        }
        runs.push(children);
    }
    Some(runs)
}

fn parent(blocks: &mut Vec<Block>, children: Vec<u32>) -> u32 {
    let number = u32::try_from(blocks.len()).expect("blocks are at most twice as many as slots");
    let of = |child: Option<&u32>| child.map_or(0, |child| *child as usize);
    let (first, last) = (of(children.first()), of(children.last()));
    for child in &children {
        blocks[*child as usize].parent = Some(number);
    }
    blocks.push(Block {
        children,
        ..leaf(blocks[first].first, blocks[last].end)
    });
    number
}

/// Parts of slots: cores, caches and nodes under one numbering.
struct Parts {
    /// By slot.
    of: Vec<Vec<u32>>,
    /// Kind and number of slots, by part.
    looks: Vec<(Look, usize)>,
}

/// Properties of a part; different ones are never alike.
#[derive(PartialEq, Eq)]
enum Look {
    Core,
    /// Level, bytes, and the cost of a miss, to the bit.
    Cache(u8, u64, u64),
    /// Memory, to the bit.
    Node(Option<u64>),
}

impl Parts {
    fn of(machine: &Machine) -> Self {
        let mut parts = Self {
            of: vec![Vec::new(); machine.slots().len()],
            looks: Vec::new(),
        };
        for core in machine.cores() {
            parts.add(Look::Core, core);
        }
        for cache in machine.caches() {
            let look = Look::Cache(cache.level, cache.bytes.to_bits(), cache.miss_ns.to_bits());
            parts.add(look, &cache.slots);
        }
        for node in machine.nodes() {
            parts.add(Look::Node(node.bytes.map(f64::to_bits)), &node.slots);
        }
        parts
    }

    fn add(&mut self, look: Look, slots: &[CpuSlot]) {
        let number = u32::try_from(self.looks.len()).expect("parts are few");
        self.looks.push((look, slots.len()));
        for slot in slots {
            self.of[slot.index()].push(number);
        }
    }

    /// Whether exchanging two blocks, slot by slot, changes nothing.
    fn exchangeable(&self, machine: &Machine, a: &Block, b: &Block) -> bool {
        let len = a.end - a.first;
        len == b.end - b.first
            && (0..len).all(|at| {
                let (mine, theirs) = (a.first + at, b.first + at);
                machine.slots()[mine].capacity.to_bits()
                    == machine.slots()[theirs].capacity.to_bits()
            })
            && self.parts_follow(a, b)
            && classes_follow(machine, a, b)
    }

    /// Whether each part of a slot in `a` is also a part of its partner in `b`, or moves as a whole
    /// to a part with the same properties.
    fn parts_follow(&self, a: &Block, b: &Block) -> bool {
        let mut moves: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for (mine, theirs) in (a.first..a.end).zip(b.first..b.end) {
            let (mine, theirs) = (&self.of[mine], &self.of[theirs]);
            if mine.len() != theirs.len() {
                return false;
            }
            for pair in mine.iter().copied().zip(theirs.iter().copied()) {
                *moves.entry(pair).or_default() += 1;
            }
        }
        moves.into_iter().all(|((from, to), slots)| {
            let (from_part, to_part) = (&self.looks[from as usize], &self.looks[to as usize]);
            from == to || (from_part == to_part && from_part.1 == slots)
        })
    }
}

/// Whether all pairs keep their class after the exchange.
fn classes_follow(machine: &Machine, a: &Block, b: &Block) -> bool {
    let messages = machine.messages();
    let class = |x: usize, y: usize| messages.class(slot_number(x), slot_number(y));
    let len = a.end - a.first;
    let outside = || {
        let all = 0..machine.slots().len();
        all.filter(|at| !(a.first..a.end).contains(at) && !(b.first..b.end).contains(at))
    };
    (0..len).all(|i| {
        let (mine, theirs) = (a.first + i, b.first + i);
        outside().all(|x| class(mine, x) == class(theirs, x))
            && (0..len).all(|j| {
                class(mine, a.first + j) == class(theirs, b.first + j)
                    && class(mine, b.first + j) == class(theirs, a.first + j)
            })
    })
}
