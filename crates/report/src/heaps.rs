//! The heaps of another process, gathered: what `hearth heap` shows.

use std::collections::HashMap;

use hearth_heap::geometry::{ARENA_BYTES, CHUNK_BYTES, LEVELS, granule_bytes, region_shift};
use hearth_heap::inspect::{
    ARENA_CHUNKS, HeapKind, HeapReading, Memory, NAME, Tag, Unfit, VERSION, Watched,
};
use hearth_sys::process::{Process, Range};
use hearth_sys::{Reason, Refused};
use hearth_terminal::Failure;
use serde_json::{Value, json};

/// A mapping that begins with a directory is a page, or several that the kernel has joined.
const DIRECTORIES_MAX: u64 = 64;
/// The smallest page there is, at the start of which a directory may be.
const PAGE: u64 = 4096;

/// The process as memory.
#[derive(Clone, Copy, Debug)]
pub struct Remote(Process);

impl Memory for Remote {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.0.read(address, into)
    }
}

/// The details to read besides totals and heaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// No further details.
    Totals,
    /// Every chunk, and how full its regions are. Takes longer.
    Chunks,
}

/// The spaces of a process.
pub struct Spaces {
    pub process: Process,
    spaces: Vec<(u64, Watched<Remote>)>,
}

/// A number of objects, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub count: u64,
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeSum {
    /// The system's number.
    pub number: u32,
    pub arenas: usize,
    pub held: u64,
    pub idle: u64,
    /// Chunks of its addresses with pages migrated to another node.
    pub brought: u64,
    pub heaps: Sum,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelSum {
    pub regions: u64,
    pub taken: u64,
}

/// A chunk, for the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chunk {
    pub owner: Owner,
    /// In parts of 1.
    pub filled: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Heap(HeapKind),
    Large,
    /// The allocator's own: chunks with the heaps of threads themselves.
    Own,
    Idle,
    Free,
}

/// An arena, for the map.
pub struct Arena {
    /// By index.
    pub node: usize,
    pub address: u64,
    pub chunks: [Chunk; ARENA_CHUNKS],
}

/// One space at about one moment.
#[derive(Default)]
pub struct Reading {
    pub directory: u64,
    pub held: u64,
    pub idle: u64,
    pub large: Sum,
    pub mapped: Sum,
    pub nodes: Vec<NodeSum>,
    /// By live bytes, the largest first.
    pub heaps: Vec<HeapReading>,
    /// Only if asked for, as the next.
    pub levels: Option<[LevelSum; LEVELS]>,
    pub arenas: Vec<Arena>,
}

/// The process, if it may be looked at and has a heap of Hearth's.
pub fn find(pid: u32) -> Result<Spaces, Failure> {
    let process = Process::of(pid).map_err(refused)?;
    let mappings = process.mappings().map_err(refused)?;
    if mappings.is_empty() {
        let message = format!("process {pid} is a thread of the kernel, which has no heap");
        return Err(Failure::input(message));
    }
    process.may_read().map_err(refused)?;
    let mut spaces = Vec::new();
    let mut unfit = None;
    for address in candidates(&mappings) {
        match Watched::at(Remote(process), address) {
            Ok(watched) => spaces.push((address, watched)),
            Err(Unfit::Absent) => {}
            Err(other) => unfit = Some(other),
        }
    }
    if !spaces.is_empty() {
        return Ok(Spaces { process, spaces });
    }
    Err(match unfit {
        Some(Unfit::Version(version)) => Failure::input(format!(
            "process {pid} has a heap of another version of Hearth: its layout is {version}, this \
             command knows {VERSION}; use the command that came with its library"
        )),
        Some(_) => Failure::input(format!(
            "process {pid} describes its heap in a way that makes no sense; use the command that came \
             with its library"
        )),
        None => Failure::input(format!(
            "process {pid} has no heap of Hearth's, or has not allocated yet; start the program with \
             `LD_PRELOAD=…/libhearth_malloc.so PROGRAM` or `hearth run`"
        )),
    })
}

fn refused(refused: Refused) -> Failure {
    match refused.reason {
        Reason::Invalid => Failure::input(refused.to_string()),
        _ => Failure::environment(refused.to_string()),
    }
}

/// Ranges that may hold directories: named ones first, then those that the kernel could not name.
fn candidates(mappings: &[Range]) -> Vec<u64> {
    let name = format!("[anon:{NAME}]");
    let mut found = Vec::new();
    let is_read_only =
        |range: &&Range| range.is_anonymous && range.is_readable && !range.is_writable;
    for range in mappings.iter().filter(is_read_only) {
        if range.name == name || range.name.is_empty() {
            let pages = range.end.saturating_sub(range.start) / PAGE;
            let looked_at = pages.min(DIRECTORIES_MAX);
            found.extend((0..looked_at).map(|nth| range.start + nth * PAGE));
        }
    }
    found
}

impl Spaces {
    /// Reads all of them.
    pub fn read(&self, depth: Depth) -> Vec<Reading> {
        let spaces = self.spaces.iter();
        spaces
            .map(|(directory, watched)| Reading {
                directory: *directory,
                ..Reading::of(watched, depth)
            })
            .collect()
    }

    /// The process as people know it: its name and number.
    pub fn title(&self) -> String {
        let pid = self.process.number();
        match self.process.name() {
            Some(name) => format!("process {pid}, {name}"),
            None => format!("process {pid}"),
        }
    }
}

impl Reading {
    fn of(watched: &Watched<impl Memory>, depth: Depth) -> Reading {
        let mut reading = Reading::default();
        let (count, bytes) = watched.mapped();
        reading.mapped = Sum { count, bytes };
        watched.heaps(|heap| reading.heaps.push(heap));
        reading
            .heaps
            .sort_by_key(|heap| (std::cmp::Reverse(heap.live()), heap.number));
        let kinds: HashMap<u32, HeapKind> = reading
            .heaps
            .iter()
            .map(|heap| (heap.number, heap.kind))
            .collect();
        let mut levels = [LevelSum::default(); LEVELS];
        // A large block may continue in the next arena.
        let mut large_until = 0;
        for node in 0..watched.nodes() {
            let Some(known) = watched.node(node) else {
                continue;
            };
            let mut sum = NodeSum {
                number: known.number,
                arenas: known.arenas.len(),
                ..NodeSum::default()
            };
            for number in known.arenas {
                let Some(arena) = watched.arena(number) else {
                    continue;
                };
                sum.held += chunk_bytes(!arena.free);
                sum.idle += chunk_bytes(arena.free & arena.used);
                sum.brought += chunk_bytes(!arena.free & arena.brought);
                let first = (number * ARENA_CHUNKS) as u64;
                for (nth, tag) in arena.tags.iter().enumerate() {
                    let is_taken = arena.free >> nth & 1 == 0;
                    if let (Tag::Large(chunks), true) = (tag, is_taken) {
                        reading.large.count += 1;
                        reading.large.bytes += u64::from(*chunks) * CHUNK_BYTES as u64;
                    }
                }
                if depth == Depth::Chunks {
                    let filled = watched.filled(&arena, |level, free| {
                        levels[level].regions += 1;
                        let granules = u64::from(free.count_zeros());
                        levels[level].taken += granules * granule_bytes(level) as u64;
                    });
                    let data = watched.directory().data;
                    let chunks = std::array::from_fn(|nth| {
                        let chunk = first + nth as u64;
                        if let Tag::Large(chunks) = arena.tags[nth] {
                            large_until = chunk + u64::from(chunks);
                        }
                        let bit = |word: u64| word >> nth & 1 == 1;
                        let owner = match arena.tags[nth] {
                            _ if bit(arena.free) && bit(arena.used) => Owner::Idle,
                            _ if bit(arena.free) => Owner::Free,
                            // One that has begun since is most likely a thread's.
                            Tag::Heap(heap) => {
                                Owner::Heap(kinds.get(&heap).copied().unwrap_or(HeapKind::Thread))
                            }
                            Tag::Nursery(_) => Owner::Heap(HeapKind::Nursery),
                            _ if chunk < large_until => Owner::Large,
                            _ => Owner::Own,
                        };
                        let filled = match owner {
                            Owner::Large | Owner::Own => 1.0,
                            _ => filled[nth],
                        };
                        Chunk { owner, filled }
                    });
                    reading.arenas.push(Arena {
                        node,
                        address: data + (number as u64) * ARENA_BYTES as u64,
                        chunks,
                    });
                }
            }
            reading.held += sum.held;
            reading.idle += sum.idle;
            reading.nodes.push(sum);
        }
        for heap in &reading.heaps {
            if let Some(node) = reading.nodes.get_mut(heap.node) {
                node.heaps.count += 1;
                node.heaps.bytes = node.heaps.bytes.saturating_add(heap.live());
            }
        }
        reading.levels = (depth == Depth::Chunks).then_some(levels);
        reading
    }

    /// Bytes of blocks that the program has, large and mapped ones included.
    pub fn live(&self) -> u64 {
        let all = self.heaps.iter().map(HeapReading::live);
        all.fold(
            self.large.bytes.saturating_add(self.mapped.bytes),
            u64::saturating_add,
        )
    }

    /// Bytes of blocks that heaps keep at hand.
    pub fn in_front(&self) -> u64 {
        let all = self.heaps.iter().map(|heap| heap.in_front);
        all.fold(0, u64::saturating_add)
    }
}

fn chunk_bytes(word: u64) -> u64 {
    u64::from(word.count_ones()) * CHUNK_BYTES as u64
}

/// The word for a kind.
pub fn kind_name(kind: HeapKind) -> &'static str {
    match kind {
        HeapKind::Thread => "thread",
        HeapKind::Parked => "parked",
        HeapKind::Nursery => "nursery",
        HeapKind::Component => "component",
        HeapKind::Orphan => "orphan",
    }
}

// ---- as data -----------------------------------------------------------------------------------

/// All of it as one document; `hearth heap show --help` describes it.
pub fn document(spaces: &Spaces, readings: &[Reading]) -> Value {
    json!({
        "process": { "pid": spaces.process.number(), "name": spaces.process.name() },
        "spaces": readings.iter().map(space).collect::<Vec<_>>(),
    })
}

fn space(reading: &Reading) -> Value {
    let sum = |sum: Sum| json!({ "count": sum.count, "bytes": sum.bytes });
    let node = |node: &NodeSum| {
        json!({
            "node": node.number,
            "arenas": node.arenas,
            "held_bytes": node.held,
            "idle_bytes": node.idle,
            "brought_away_bytes": node.brought,
            "heaps": node.heaps.count,
            "live_bytes": node.heaps.bytes,
        })
    };
    let level = |(level, sum): (usize, &LevelSum)| {
        json!({
            "level": level,
            "granule_bytes": granule_bytes(level),
            "block_bytes_max": granule_bytes(level) * 16,
            "regions": sum.regions,
            "bytes": sum.regions << region_shift(level),
            "taken_bytes": sum.taken,
        })
    };
    let number_of = |index: usize| reading.nodes.get(index).map(|node| node.number);
    let heap = |heap: &HeapReading| {
        json!({
            "number": heap.number,
            "kind": kind_name(heap.kind),
            "node": number_of(heap.node),
            "live_bytes": heap.live(),
            "in_front_bytes": heap.in_front,
            "owned_bytes": heap.owned(),
            "resident_bytes": heap.resident(),
            "chunks": heap.chunks,
        })
    };
    json!({
        "directory": format!("{:#x}", reading.directory),
        "held_bytes": reading.held,
        "idle_bytes": reading.idle,
        "live_bytes": reading.live(),
        "in_front_bytes": reading.in_front(),
        "large": sum(reading.large),
        "mapped": sum(reading.mapped),
        "nodes": reading.nodes.iter().map(node).collect::<Vec<_>>(),
        "levels": reading.levels.iter().flatten().enumerate().map(level).collect::<Vec<_>>(),
        "heaps": reading.heaps.iter().map(heap).collect::<Vec<_>>(),
    })
}
