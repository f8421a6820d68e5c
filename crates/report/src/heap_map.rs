//! The heaps of a process as a picture: each chunk, owner it is and how full.

use hearth_draw::Picture;
use hearth_draw::tiles::{Block, Cell, Group, Look, Names, Tiles};
use hearth_heap::inspect::HeapKind;
use hearth_machine::topology::Bytes;

use crate::heaps::{Arena, Chunk, Owner, Reading};

/// Owners of chunks with their looks and names. The most different kinds have the most different
/// colours.
const LEGEND: [(Owner, Look, &str); 9] = [
    (
        Owner::Heap(HeapKind::Thread),
        Look::Series(0),
        "a thread's heap",
    ),
    (
        Owner::Heap(HeapKind::Component),
        Look::Series(2),
        "a component's",
    ),
    (
        Owner::Heap(HeapKind::Nursery),
        Look::Series(3),
        "a nursery's, pages lent to components",
    ),
    (
        Owner::Heap(HeapKind::Orphan),
        Look::Series(4),
        "an orphan's",
    ),
    (
        Owner::Heap(HeapKind::Parked),
        Look::Series(5),
        "a thread's that has ended",
    ),
    (Owner::Large, Look::Series(1), "large blocks"),
    (Owner::Own, Look::Series(7), "the allocator's own"),
    (Owner::Idle, Look::Pale, "idle, backed by memory"),
    (Owner::Free, Look::Nothing, "free, not backed by memory"),
];

/// The meaning of height.
const FILL: &str = "A heap's chunk is filled as high as it is in blocks.";

/// Draws the picture. The legend has only the owners that occur.
pub fn draw(title: &str, readings: &[Reading]) -> Picture {
    let arenas = || readings.iter().flat_map(|reading| &reading.arenas);
    let is_there =
        |owner| arenas().any(|arena| arena.chunks.iter().any(|chunk| chunk.owner == owner));
    let legend = LEGEND.iter().filter(|(owner, ..)| is_there(*owner));
    let lead = readings.iter().map(|reading| {
        format!(
            "{} held, {} live, {} idle; heaps: {}; mapped: {}",
            Bytes(reading.held),
            Bytes(reading.live()),
            Bytes(reading.idle),
            reading.heaps.len(),
            Bytes(reading.mapped.bytes),
        )
    });
    let tiles = Tiles {
        title: format!("Heaps of {title}"),
        lead: lead.chain([FILL.to_owned()]).collect(),
        legend: legend
            .map(|(_, look, name)| (*look, (*name).to_owned()))
            .collect(),
        groups: groups(readings),
        names: Names {
            block: "arena of 4 MiB".into(),
            blocks: "arenas of 4 MiB".into(),
            cell: "chunk of 64 KiB".into(),
        },
    };
    tiles.draw()
}

/// A group for each node of each space that has any arena.
fn groups(readings: &[Reading]) -> Vec<Group> {
    let mut groups = Vec::new();
    for (nth, reading) in readings.iter().enumerate() {
        for (index, node) in reading.nodes.iter().enumerate() {
            let own = reading.arenas.iter().filter(|arena| arena.node == index);
            let blocks: Vec<Block> = own.map(block).collect();
            if blocks.is_empty() {
                continue;
            }
            let mut name = format!("node {}, {} arenas", node.number, blocks.len());
            if readings.len() > 1 {
                name = format!("space {}, {name}", nth + 1);
            }
            groups.push(Group { name, blocks });
        }
    }
    groups
}

fn block(arena: &Arena) -> Block {
    let cell = |chunk: &Chunk| Cell {
        look: look(chunk.owner),
        fill: f64::from(chunk.filled),
    };
    Block {
        name: format!("{:#x}", arena.address),
        cells: arena.chunks.iter().map(cell).collect(),
    }
}

fn look(owner: Owner) -> Look {
    let known = LEGEND.iter().find(|(known, ..)| *known == owner);
    known.map_or(Look::Nothing, |(_, look, _)| *look)
}
