//! Reads this process as if it were another, intact and damaged.

use core::cell::Cell;
use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec::Vec;

use super::*;
use crate::PrivateHeap;

/// This process's memory, of which some read bytes are damaged.
struct Here {
    damage: Cell<u64>,
    /// Damages one byte in this many; 0 for none.
    every: u64,
    file: std::fs::File,
}

impl Here {
    fn new(seed: u64, every: u64) -> Here {
        Here {
            damage: Cell::new(seed | 1),
            every,
            file: std::fs::File::open("/proc/self/mem").expect("a process may read itself"),
        }
    }

    fn random(&self) -> u64 {
        // Marsaglia's shifts.
        let mut word = self.damage.get();
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        self.damage.set(word);
        word
    }
}

impl Memory for Here {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        use std::os::unix::fs::FileExt;
        if self.file.read_exact_at(into, address).is_err() {
            return false;
        }
        if self.every != 0 {
            for byte in into.iter_mut() {
                if self.random().is_multiple_of(self.every) {
                    *byte = self.random() as u8;
                }
            }
        }
        true
    }
}

/// The directories of this process, by the kernel's list of its mappings.
fn directories() -> Vec<u64> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("it can be read");
    let here = Here::new(0, 0);
    let starts = maps.lines().filter_map(|line| {
        let (start, rest) = line.split_once('-')?;
        rest.split_once(' ')?
            .1
            .starts_with("r--p 00000000 00:00")
            .then_some(())?;
        u64::from_str_radix(start, 16).ok()
    });
    starts
        .filter(|start| {
            let mut magic = [0; 8];
            here.read(*start, &mut magic) && u64::from_le_bytes(magic) == MAGIC
        })
        .collect()
}

fn heaps(watched: &Watched<Here>) -> Vec<HeapReading> {
    let mut heaps = Vec::new();
    watched.heaps(|heap| heaps.push(heap));
    heaps
}

#[test]
fn this_process_is_found_and_told() {
    crate::begin();
    let own = PrivateHeap::new().expect("there is memory");
    let blocks: Vec<_> = (0..1000).map(|_| own.allocate(1000)).collect();
    let large = crate::allocate(3 << 20);
    let [place] = directories()[..] else {
        panic!("one directory: {:?}", directories());
    };
    let watched = Watched::at(Here::new(0, 0), place).expect("it is sound");
    let all = heaps(&watched);
    let found = all.iter().find(|heap| heap.number == own.number());
    let found = found.unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!(found.kind, HeapKind::Component);
    let live = found.live();
    assert!((1_000_000..1_100_000).contains(&live), "{found:?}");
    assert!(
        found.owned() >= live && found.resident() >= live,
        "{found:?}"
    );
    assert_eq!(found.used as usize, own.figures().used);
    assert!(
        all.iter().any(|heap| heap.kind == HeapKind::Thread),
        "{all:?}"
    );
    assert!(
        all.iter().any(|heap| heap.kind == HeapKind::Nursery),
        "{all:?}"
    );

    let node = watched.node(0).expect("there is one");
    let (mut larges, mut regions, mut fullest) = (0, [0; LEVELS], 0.0f32);
    for arena in node.arenas.clone() {
        let arena = watched.arena(arena).expect("it is in use");
        larges += arena
            .tags
            .iter()
            .filter(|tag| **tag == Tag::Large(48))
            .count();
        let filled = watched.filled(&arena, |level, _| regions[level] += 1);
        for (fill, tag) in filled.iter().zip(arena.tags) {
            if tag == Tag::Heap(own.number()) {
                fullest = fullest.max(*fill);
            }
        }
    }
    assert_eq!(larges, 1);
    // 1000 bytes are 16 granules of level 1, of which a region has four.
    assert!(regions[1] >= 200 && fullest > 0.99, "{regions:?} {fullest}");
    assert!(watched.arena(usize::MAX).is_none() && watched.regions(usize::MAX).is_none());

    for block in blocks {
        // SAFETY: allocated above, and not used any more.
        unsafe { own.free(block) };
    }
    // SAFETY: as above.
    unsafe { crate::free(large) };
}

#[test]
fn damage_does_no_harm() {
    crate::begin();
    let [place] = directories()[..] else {
        panic!("one directory: {:?}", directories());
    };
    let mut followed = 0;
    for seed in 1..40u64 {
        let every = [30, 300, 3000][seed as usize % 3];
        // A sound directory is believed; all that it leads to is damaged.
        let Ok(mut watched) = Watched::at(Here::new(seed * 0x9e37_79b9, 2000), place) else {
            continue;
        };
        followed += 1;
        watched.memory.every = every;
        let mut looked = 0;
        watched.heaps(|heap| looked += heap.live().wrapping_add(heap.resident()) & 1);
        let _ = watched.mapped();
        for node in 0..watched.nodes() {
            let Some(node) = watched.node(node) else {
                continue;
            };
            for arena in node.arenas.take(8) {
                if let Some(arena) = watched.arena(arena) {
                    let filled = watched.filled(&arena, |level, _| assert!(level < LEVELS));
                    assert!(filled.iter().all(|fill| (0.0..=1.0).contains(fill)));
                }
            }
        }
    }
    assert!(followed > 3, "{followed}");
}

/// A directory in bytes, and nothing else.
struct Alone(Box<[u8]>);

impl Memory for Alone {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let start = address as usize;
        let Some(bytes) = self.0.get(start..start.wrapping_add(into.len())) else {
            return false;
        };
        into.copy_from_slice(bytes);
        true
    }
}

#[test]
fn what_is_unfit_is_told_apart() {
    crate::begin();
    let [place] = directories()[..] else {
        panic!("one directory: {:?}", directories());
    };
    let good = *Watched::at(Here::new(0, 0), place)
        .expect("it is sound")
        .directory();
    let unfit = |change: &dyn Fn(&mut Directory)| {
        let mut directory = good;
        change(&mut directory);
        let bytes: Vec<u8> = directory
            .to_words()
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        Watched::at(Alone(bytes.into()), 0).err()
    };
    assert_eq!(unfit(&|_| {}), None);
    assert_eq!(unfit(&|d| d.magic = 1), Some(Unfit::Absent));
    assert_eq!(unfit(&|d| d.version = 7), Some(Unfit::Version(7)));
    let changes: [&dyn Fn(&mut Directory); 12] = [
        &|d| d.arenas = 0,
        &|d| d.arenas = u64::MAX,
        &|d| d.node_shift = 64,
        &|d| d.node_shift = 0,
        &|d| d.data = u64::MAX,
        &|d| d.meta_stride = u64::MAX,
        &|d| d.regions_at = u64::MAX - 3,
        &|d| d.entries_stride = 0,
        &|d| d.heap_used_at = d.heap_bytes - 4,
        &|d| d.heap_pages_count = 1 << 62,
        &|d| d.fronts_stride = 0,
        &|d| d.segments_count = u64::MAX,
    ];
    for (nth, change) in changes.into_iter().enumerate() {
        let name: String = format!("change {nth}");
        assert_eq!(unfit(change), Some(Unfit::Damaged), "{name}");
    }
    assert_eq!(
        Watched::at(Alone(Box::new([])), 0).err(),
        Some(Unfit::Absent)
    );
}
