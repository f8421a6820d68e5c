//! The structures of the source's tests, built with the collector off.
//!
//! Each processor has one root of its own, which it alone refers to, and one *handle*, which the
//! program refers to: while the handle is live the processor is, and with it what its root leads
//! to. No processor has a call to apply but the first, that of the program. If half of them are to
//! be dead the program refers to every second handle only.

use serde::{Deserialize, Serialize};

use super::collector::Way;
use super::heap::{HEAD, Heap, NULL, Processor, World};

/// A shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Full binary trees, each wholly on one processor; its size is the depth.
    Trees,
    /// Rings of a thousand nodes that refer to both neighbours, each node on a random processor;
    /// its size is the number of nodes.
    Cycles,
    /// Objects on random processors, each with up to ten references to random others; its size is
    /// the number of objects.
    Links,
}

impl Shape {
    /// Its name in tables.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Shape::Trees => "trees",
            Shape::Cycles => "cycles",
            Shape::Links => "links",
        }
    }

    /// Objects of the structure itself.
    #[must_use]
    pub const fn objects(self, size: u32, processors: u32) -> u64 {
        match self {
            Shape::Trees => processors as u64 * ((1 << size) - 1),
            Shape::Cycles | Shape::Links => size as u64,
        }
    }

    /// Words of the structure and of what processors need, at most.
    #[must_use]
    pub const fn words_max(self, size: u32, processors: u32, way: Way) -> u64 {
        let fields = match self {
            Shape::Trees | Shape::Cycles => 2,
            Shape::Links => LINKS_MAX as u64,
        } + way.is_wider() as u64;
        // A handle and an object for the processor beside each root.
        (self.objects(size, processors) + 3 * processors as u64) * (HEAD as u64 + fields)
    }
}

/// Links of an object, at most.
const LINKS_MAX: u32 = 10;
/// Nodes of a ring.
const RING: u32 = 1_000;

/// Numbers that look random (SplitMix64).
#[derive(Clone, Debug)]
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // The upper half times the limit: even enough, and without a division.
        (((mixed >> 32) * u64::from(limit)) >> 32) as u32
    }
}

/// A program to be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The shape.
    pub shape: Shape,
    /// Its size.
    pub size: u32,
    /// Number of processors.
    pub processors: u32,
    /// Every second processor is dead.
    pub is_half_dead: bool,
    /// The way in which it will be collected.
    pub way: Way,
    /// The seed of random choices.
    pub seed: u64,
}

/// A builder: a heap whose objects have a field more if the way needs it.
struct Building {
    heap: Heap,
    extra: usize,
}

impl Building {
    fn add(&mut self, handler: u32, fields: usize) -> u32 {
        self.heap.add(handler, fields + self.extra)
    }

    fn set(&mut self, object: u32, field: usize, to: u32) {
        self.heap.set(object, field + self.extra, to);
    }
}

/// Builds the program.
#[must_use]
pub fn build(plan: &Plan) -> World {
    let Plan {
        shape,
        size,
        processors,
        way,
        ..
    } = *plan;
    let room = shape.words_max(size, processors, way) as usize;
    let mut building = Building {
        heap: Heap::with_room(room),
        extra: usize::from(way.is_wider()),
    };
    let mut numbers = Numbers(plan.seed);
    let handles: Vec<u32> = (0..processors).map(|it| building.add(it, 0)).collect();
    let roots_of = match shape {
        Shape::Trees => (0..processors)
            .map(|it| tree(&mut building, it, size))
            .collect(),
        Shape::Cycles => rings(&mut building, &mut numbers, size, processors),
        Shape::Links => links(&mut building, &mut numbers, size, processors),
    };
    let all = 0..processors as usize;
    let processors = all.clone().map(|number| Processor {
        is_basic: number == 0,
        first: number,
        last: number + 1,
        object: NULL,
    });
    let step = if plan.is_half_dead { 2 } else { 1 };
    let mut world = World {
        heap: building.heap,
        roots: handles.into_iter().step_by(step).collect(),
        processors: processors.collect(),
        roots_of,
    };
    if way == Way::AsObject {
        add_processors(&mut world);
    }
    world
}

fn tree(building: &mut Building, handler: u32, depth: u32) -> u32 {
    if depth == 0 {
        return NULL;
    }
    let vertex = building.add(handler, 2);
    for side in 0..2 {
        let child = tree(building, handler, depth - 1);
        building.set(vertex, side, child);
    }
    vertex
}

/// Makes rings. Each processor's root refers to the first node of one of them.
fn rings(building: &mut Building, numbers: &mut Numbers, nodes: u32, processors: u32) -> Vec<u32> {
    let mut firsts = Vec::new();
    let mut left = nodes;
    while left > 0 {
        let length = left.min(RING);
        let ring: Vec<u32> = (0..length)
            .map(|_| building.add(numbers.below(processors), 2))
            .collect();
        for (at, node) in ring.iter().enumerate() {
            building.set(*node, 0, ring[(at + 1) % ring.len()]);
            building.set(*node, 1, ring[(at + ring.len() - 1) % ring.len()]);
        }
        firsts.push(ring[0]);
        left -= length;
    }
    // All rings have a root, if there are more of them than processors, too.
    (0..processors)
        .map(|handler| {
            let mine = firsts.iter().skip(handler as usize);
            let mine: Vec<u32> = mine.step_by(processors as usize).copied().collect();
            let root = building.add(handler, mine.len());
            for (field, first) in mine.into_iter().enumerate() {
                building.set(root, field, first);
            }
            root
        })
        .collect()
}

/// Makes objects with random links. Each processor's root refers to a random one.
fn links(
    building: &mut Building,
    numbers: &mut Numbers,
    objects: u32,
    processors: u32,
) -> Vec<u32> {
    let all: Vec<u32> = (0..objects)
        .map(|_| {
            let count = numbers.below(LINKS_MAX + 1) as usize;
            building.add(numbers.below(processors), count)
        })
        .collect();
    for object in &all {
        let fields = building.heap.words[*object as usize] as usize - building.extra;
        for field in 0..fields {
            let to = all[numbers.below(objects) as usize];
            building.set(*object, field, to);
        }
    }
    (0..processors)
        .map(|handler| {
            let root = building.add(handler, 1);
            let to = all[numbers.below(objects) as usize];
            building.set(root, 0, to);
            root
        })
        .collect()
}

/// Gives each processor an object that refers to its roots, and each object a reference to it.
fn add_processors(world: &mut World) {
    let end = world.heap.words.len();
    for processor in &mut world.processors {
        let roots = &world.roots_of[processor.first..processor.last];
        let object = world.heap.add(0, roots.len());
        for (field, root) in roots.iter().enumerate() {
            world.heap.set(object, field, *root);
        }
        processor.object = object;
    }
    let mut at = 1;
    while at < end {
        let (fields, handler) = (world.heap.words[at], world.heap.words[at + 1]);
        let object = world.processors[handler as usize].object;
        world.heap.set(at as u32, 0, object);
        at += HEAD + fields as usize;
    }
}
