//! A thread asks for the class of its block while the owner of the region cuts blocks beside it,
//! takes them back and cuts others.
//!
//! Loom cannot see that the owner's other ways to change the words, in `regions.rs`, `deferred.rs`
//! and `marks.rs`, leave the granules of live blocks alone; the walk of `checks.rs` asks for each
//! block's class after them.

use loom::sync::Arc;
use loom::thread;

use super::*;

/// A region of the lowest level, which is one KiB, and its kind.
struct Kib {
    region: Region,
    kind: AtomicU8,
}

// SAFETY: the owner alone uses the cells.
unsafe impl Sync for Kib {}

impl Kib {
    fn new() -> Kib {
        let word = |word| Word(AtomicU64::new(word));
        Kib {
            region: Region {
                free: word(u64::MAX),
                starts: word(0),
                ends: word(0),
                previous: Cell::new(0),
                next: Cell::new(0),
            },
            kind: AtomicU8::new(0),
        }
    }

    fn cut(&self, first: u32, granules: u32) {
        self.region.cut(0, 1 << first, granules, |_| &self.kind);
    }

    /// Frees as `Heap::restore` does.
    fn restore(&self, first: u32, granules: u32) {
        let (free, starts) = (self.region.free.get(), self.region.starts.get());
        self.region.free.set(free | words::ones(granules) << first);
        self.region.starts.set(starts & !(1 << first));
    }

    /// The class of the block at a granule.
    fn ask(&self, first: u32) -> Option<Class> {
        let kind = Kind(self.kind.load(Ordering::Acquire));
        self.region
            .class_of_live(kind, 0, (first as usize) << granule_shift(0))
    }
}

/// Asks for a block of three granules at 4, while the owner works behind it.
fn asked_while(owner: impl Fn(&Kib) + Send + Sync + Copy + 'static) {
    loom::model(move || {
        let kib = Arc::new(Kib::new());
        kib.cut(4, 3);
        let working = {
            let kib = kib.clone();
            thread::spawn(move || owner(&kib))
        };
        assert_eq!(kib.ask(4), Some(Class::of(0, 3)));
        working.join().expect("it does not panic");
        assert_eq!(kib.ask(4), Some(Class::of(0, 3)));
    });
}

#[test]
fn loom_a_class_stays_while_a_neighbour_comes_and_goes() {
    asked_while(|kib| {
        kib.cut(7, 2);
        kib.restore(7, 2);
        kib.cut(7, 5);
        kib.restore(7, 5);
    });
}

#[test]
fn loom_a_class_stays_while_neighbours_on_both_sides_change() {
    asked_while(|kib| {
        kib.cut(7, 3);
        kib.cut(0, 4);
        kib.restore(7, 3);
        kib.restore(0, 4);
        kib.cut(2, 2);
    });
}

/// An older block is taken back, and lies across the ends of others.
#[test]
fn loom_ends_of_blocks_that_have_gone_are_not_seen() {
    loom::model(|| {
        let kib = Arc::new(Kib::new());
        // Two blocks of different sizes: their ends are written.
        kib.cut(0, 1);
        kib.cut(1, 2);
        kib.restore(0, 1);
        kib.restore(1, 2);
        // A single block: the kind gives its class, and the ends inside of it are stale.
        kib.cut(0, 4);
        let owner = {
            let kib = kib.clone();
            thread::spawn(move || {
                kib.cut(4, 1);
                kib.restore(4, 1);
                kib.cut(4, 2);
            })
        };
        assert_eq!(kib.ask(0), Some(Class::of(0, 4)));
        owner.join().expect("it does not panic");
    });
}

/// The algorithm of before, which fails: the first start or free granule behind the block, from
/// loads of starts, free granules and starts again. The owner changes both words between them.
#[test]
#[should_panic(expected = "the block seems longer")]
fn loom_two_words_tell_too_much() {
    loom::model(|| {
        let kib = Arc::new(Kib::new());
        kib.cut(4, 3);
        let owner = {
            let kib = kib.clone();
            thread::spawn(move || {
                kib.cut(7, 2);
                kib.restore(7, 2);
            })
        };
        let before = kib.region.starts.0.load(Ordering::Acquire);
        let free = kib.region.free.0.load(Ordering::Acquire);
        let starts = before | kib.region.starts.0.load(Ordering::Acquire);
        assert_eq!(words::length(free, starts, 4), 3, "the block seems longer");
        owner.join().expect("it does not panic");
    });
}
