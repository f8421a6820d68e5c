//! Four ways to collect one heap: full, by marking and sweeping, with all processors stopped.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::heap::{HEAD, Heap, MARK, NULL, World};

/// A way to collect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Objects only: all processors live, and their roots are roots.
    Objects,
    /// Objects and processors together, as the source does it.
    Combined,
    /// The same, with a further field in each object that refers to nothing: what the next is
    /// compared with.
    CombinedNull,
    /// Processors are objects that refer to their roots, and each object refers to its processor in
    /// a further field. Only objects are collected.
    AsObject,
}

impl Way {
    /// All, in the order in which they run.
    pub const ALL: [Way; 4] = [
        Way::Objects,
        Way::Combined,
        Way::CombinedNull,
        Way::AsObject,
    ];

    /// Its name in tables.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Way::Objects => "objects",
            Way::Combined => "combined",
            Way::CombinedNull => "combined-null",
            Way::AsObject => "as-object",
        }
    }

    /// True if each object has a field more.
    #[must_use]
    pub const fn is_wider(self) -> bool {
        matches!(self, Way::CombinedNull | Way::AsObject)
    }
}

/// A collection that was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// Time for marks, seconds.
    pub mark_seconds: f64,
    /// Time for sweeping and for dead processors, seconds.
    pub sweep_seconds: f64,
    /// Objects that stayed, those that stand for processors left out.
    pub live: usize,
    /// Objects that went, those that stand for processors left out.
    pub dead: usize,
    /// Processors that went.
    pub dead_processors: usize,
}

/// Collects, and takes the time.
#[must_use]
pub fn collect(world: &mut World, way: Way) -> Collected {
    let begin = Instant::now();
    let mut stack = Vec::new();
    let live = match way {
        Way::Objects => {
            mark_objects(world, &mut stack);
            Vec::new()
        }
        Way::Combined | Way::CombinedNull => mark_together(world, &mut stack),
        Way::AsObject => {
            mark_as_objects(world, &mut stack);
            Vec::new()
        }
    };
    let marked = Instant::now();
    let dead_processors = match way {
        Way::Objects => Vec::new(),
        Way::Combined | Way::CombinedNull => dead(&live, |alive| *alive == 0),
        Way::AsObject => {
            let words = &world.heap.words;
            dead(&world.processors, |processor| {
                words[processor.object as usize] & MARK == 0
            })
        }
    };
    let (mut kept, freed) = sweep(&mut world.heap);
    let end = Instant::now();
    // Objects for processors are no objects of the program; they were swept all the same.
    let mut gone = freed.len();
    if way == Way::AsObject {
        gone -= dead_processors.len();
        kept -= world.processors.len() - dead_processors.len();
    }
    Collected {
        mark_seconds: (marked - begin).as_secs_f64(),
        sweep_seconds: (end - marked).as_secs_f64(),
        live: kept,
        dead: gone,
        dead_processors: dead_processors.len(),
    }
}

/// The processors to be ended.
fn dead<T>(all: &[T], is_dead: impl Fn(&T) -> bool) -> Vec<u32> {
    let all = all.iter().enumerate().filter(|(_, it)| is_dead(it));
    all.map(|(processor, _)| processor as u32).collect()
}

fn mark_objects(world: &mut World, stack: &mut Vec<u32>) {
    let words = &mut world.heap.words;
    let nobody: &mut [u8] = &mut [];
    mark_from::<false>(words, nobody, &world.roots, stack);
    for processor in &world.processors {
        let roots = &world.roots_of[processor.first..processor.last];
        mark_from::<false>(words, nobody, roots, stack);
    }
}

/// Marks by the least fixpoint, and gives the processors that live.
fn mark_together(world: &mut World, stack: &mut Vec<u32>) -> Vec<u8> {
    let words = &mut world.heap.words;
    let mut live: Vec<u8> = world
        .processors
        .iter()
        .map(|processor| u8::from(processor.is_basic))
        .collect();
    let mut is_scanned = vec![false; live.len()];
    mark_from::<true>(words, &mut live, &world.roots, stack);
    loop {
        let mut is_any = false;
        for (number, processor) in world.processors.iter().enumerate() {
            if live[number] == 0 || is_scanned[number] {
                continue;
            }
            (is_any, is_scanned[number]) = (true, true);
            let roots = &world.roots_of[processor.first..processor.last];
            mark_from::<true>(words, &mut live, roots, stack);
        }
        if !is_any {
            return live;
        }
    }
}

fn mark_as_objects(world: &mut World, stack: &mut Vec<u32>) {
    let words = &mut world.heap.words;
    let nobody: &mut [u8] = &mut [];
    mark_from::<false>(words, nobody, &world.roots, stack);
    for processor in world.processors.iter().filter(|it| it.is_basic) {
        mark_from::<false>(words, nobody, &[processor.object], stack);
    }
}

/// Marks what roots lead to. With `HANDLERS` the handler of each object is noted as live when the
/// object is: one store, whatever was there.
fn mark_from<const HANDLERS: bool>(
    words: &mut [u32],
    live: &mut [u8],
    roots: &[u32],
    stack: &mut Vec<u32>,
) {
    let mut visit = |words: &mut [u32], stack: &mut Vec<u32>, object: u32| {
        let head = &mut words[object as usize];
        if *head & MARK == 0 {
            *head |= MARK;
            if HANDLERS {
                live[words[object as usize + 1] as usize] = 1;
            }
            stack.push(object);
        }
    };
    for root in roots {
        visit(words, stack, *root);
        while let Some(object) = stack.pop() {
            let fields = (words[object as usize] & !MARK) as usize;
            let first = object as usize + HEAD;
            for field in first..first + fields {
                let to = words[field];
                if to != NULL {
                    visit(words, stack, to);
                }
            }
        }
    }
}

/// Goes over the heap: clears marks, and gives the number of marked objects and the others.
fn sweep(heap: &mut Heap) -> (usize, Vec<u32>) {
    let (mut at, mut live, mut free) = (1, 0, Vec::new());
    while at < heap.words.len() {
        let head = heap.words[at];
        if head & MARK == 0 {
            free.push(at as u32);
        } else {
            heap.words[at] = head & !MARK;
            live += 1;
        }
        at += HEAD + (head & !MARK) as usize;
    }
    (live, free)
}
