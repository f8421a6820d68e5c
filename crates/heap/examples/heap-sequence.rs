//! `heap-sequence SEED OPERATIONS`: a random sequence of operations on heaps beside an oracle, by
//! several owners in turn.
//!
//! Each owner is a thread, and one at a time does a few operations; so a seed always means the
//! same, except for the heaps' helper. Owners free each other's blocks, end, and are followed by
//! new ones, which take over their heaps. What must hold:
//! - no two live blocks overlap, all have the requested size and alignment, are zero where
//!   requested, and keep their contents;
//! - whenever a heap is checked, all its invariants hold (`hearth_heap::check_this_thread`), and
//!   every live block is in use there;
//! - at the end everything has come home: no heap has a block in use.
//!
//! `fuzz/run heap` runs many of these, each in a process of its own, as a broken heap ends its
//! process; and shortens what fails.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hearth_heap as heap;
use hearth_testing::random::Random;

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse().ok())
        .collect();
    let [seed, operations] = numbers[..] else {
        return ExitCode::from(2);
    };
    run(seed, operations as usize);
    ExitCode::SUCCESS
}

/// Owners at once, at most.
const OWNERS: usize = 4;
/// The most operations of a turn.
const TURN: usize = 400;
/// Operations between changes of what is asked for.
const PHASE: usize = 2500;
/// Blocks of whole chunks belong to no heap.
const CHUNK: usize = 64 << 10;

/// A live block.
#[derive(Clone, Copy, Debug)]
struct Block {
    size: usize,
    mark: u8,
    owner: usize,
    /// Its position in the state's order.
    place: usize,
}

/// The state that goes from owner to owner.
struct State {
    random: Random,
    live: BTreeMap<usize, Block>,
    /// All live blocks, in any order: for uniform choices.
    order: Vec<usize>,
    left: usize,
    done: usize,
    /// Sizes have up to this many bits, or most are the same; and the number of live blocks.
    bits: usize,
    usual: Option<usize>,
    most: usize,
}

impl State {
    fn new(seed: u64, operations: usize) -> State {
        State {
            random: Random::new(seed),
            live: BTreeMap::new(),
            order: Vec::new(),
            left: operations,
            done: 0,
            bits: 8,
            usual: None,
            most: 200,
        }
    }

    fn turn(&mut self, owner: usize) {
        let count = 1 + self.random.below(TURN);
        for _ in 0..count.min(self.left) {
            self.operation(owner);
            self.left -= 1;
            self.done += 1;
            if self.done.is_multiple_of(PHASE) {
                self.bits = 4 + self.random.below(15);
                self.usual = None;
                if self.random.chance(50) {
                    self.usual = Some(self.size());
                }
                self.most = 1 << (4 + self.random.below(9));
            }
        }
        if self.random.chance(30) {
            self.check(owner);
        }
    }

    fn operation(&mut self, owner: usize) {
        let is_full = self.live.len() >= self.most;
        match self.random.below(100) {
            0..6 => self.resize(owner),
            6..14 if !is_full => {
                let (size, align) = (self.size(), 1 << self.random.below(17));
                self.add(heap::allocate_aligned(size, align), size, align, owner);
            }
            14..24 if !is_full => {
                let size = self.size();
                let block = heap::allocate_zeroed(size);
                // SAFETY: a block of this size.
                let is_zero = unsafe { is_all(block, size, 0) };
                assert!(is_zero, "{size} bytes are not zero");
                self.add(block, size, 16, owner);
            }
            24..60 if !is_full => {
                let size = self.size();
                self.add(heap::allocate(size), size, 16, owner);
            }
            60..61 => {
                heap::trim(self.random.below(1 << 22));
            }
            _ => {
                // Several that are near each other, or one.
                let count = if self.random.chance(4) { 300 } else { 1 };
                self.remove(count, owner);
            }
        }
    }

    fn size(&mut self) -> usize {
        if let Some(size) = self.usual
            && self.random.chance(90)
        {
            return size;
        }
        let bits = match self.random.below(100) {
            0..90 => self.bits,
            90..97 => 12,
            97..99 => 18,
            _ => 23,
        };
        let bits = self.random.below(bits + 1);
        self.random.below(2 << bits)
    }

    fn add(&mut self, block: *mut u8, size: usize, align: usize, owner: usize) {
        assert!(!block.is_null(), "there is memory for {size}");
        let start = block.expose_provenance();
        assert_eq!(start % align, 0, "{start:#x} is aligned to {align}");
        // SAFETY: the block is alive.
        let usable = unsafe { heap::usable_size(block) };
        assert!(usable >= size, "{start:#x} has {usable} bytes of {size}");
        if let Some((at, before)) = self.live.range(..=start).next_back() {
            assert!(
                at + before.size.max(1) <= start,
                "{start:#x} lies in {at:#x} of {before:?}"
            );
        }
        if let Some((at, behind)) = self.live.range(start..).next() {
            assert!(
                start + usable <= *at,
                "{start:#x} with {usable} bytes reaches {at:#x} of {behind:?}"
            );
        }
        let mark = self.random.bits() as u8;
        // SAFETY: as long as this.
        unsafe { block.write_bytes(mark, size) };
        let place = self.order.len();
        self.order.push(start);
        let block = Block {
            size,
            mark,
            owner,
            place,
        };
        self.live.insert(start, block);
    }

    fn take(&mut self, start: usize) -> (*mut u8, Block) {
        let block = self.live.remove(&start).expect("it is alive");
        self.order.swap_remove(block.place);
        if let Some(moved) = self.order.get(block.place) {
            self.live.get_mut(moved).expect("it is alive").place = block.place;
        }
        let pointer = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: a live block of this size.
        let is_whole = unsafe { is_all(pointer, block.size, block.mark) };
        assert!(is_whole, "{start:#x} of {block:?} was written to");
        (pointer, block)
    }

    fn any(&mut self) -> Option<usize> {
        let at = self.random.below(self.order.len());
        self.order.get(at).copied()
    }

    fn remove(&mut self, count: usize, owner: usize) {
        let Some(first) = self.any() else { return };
        // Its own blocks more often.
        let is_own = self.random.chance(70);
        let starts: Vec<usize> = self
            .live
            .range(first..)
            .filter(|(_, block)| !is_own || block.owner == owner)
            .map(|(start, _)| *start)
            .take(count)
            .collect();
        for start in starts {
            let (block, _) = self.take(start);
            // SAFETY: the block is alive and not used any more.
            unsafe { heap::free(block) };
        }
    }

    fn resize(&mut self, owner: usize) {
        let Some(start) = self.any() else { return };
        let (block, old) = self.take(start);
        let size = self.size().max(1);
        // SAFETY: the block is alive, and not used any more at its old place.
        let now = unsafe { heap::reallocate(block, size) };
        // SAFETY: what fits of the old bytes is there.
        let is_kept = unsafe { is_all(now, old.size.min(size), old.mark) };
        assert!(is_kept, "{start:#x} of {old:?} lost something as {size}");
        let stays = now.addr() == start;
        self.add(now, size, 16, if stays { old.owner } else { owner });
    }

    /// Asserts that the owner's heap keeps its invariants, and has its live blocks in use.
    fn check(&self, owner: usize) {
        let census = heap::check_this_thread();
        for (start, block) in &self.live {
            // Larger blocks start at chunks, and belong to no heap.
            if block.owner == owner && start % CHUNK != 0 {
                let length = census.used.get(start);
                assert!(
                    length.is_some_and(|length| *length >= block.size),
                    "{start:#x} of {block:?} is not in use: {length:?}"
                );
            }
        }
    }
}

/// Whether all bytes are this one; samples large blocks.
///
/// # Safety
/// This many bytes may be read.
unsafe fn is_all(block: *const u8, size: usize, byte: u8) -> bool {
    let step = (size / 512).max(1);
    (0..size)
        .step_by(step)
        .chain(size.checked_sub(1))
        // SAFETY: as the caller promises.
        .all(|at| unsafe { block.add(at).read() } == byte)
}

enum Turn {
    Operations(Box<State>),
    /// Sends remote frees, and takes back others'. Returns the blocks still in use.
    Settle,
}

enum Answer {
    State(Box<State>),
    InUse(usize),
}

/// A thread with a heap.
struct Owner {
    turns: SyncSender<Turn>,
    answers: Receiver<Answer>,
    thread: JoinHandle<()>,
}

impl Owner {
    fn new(number: usize) -> Owner {
        let (turns, todo) = sync_channel::<Turn>(1);
        let (done, answers) = sync_channel::<Answer>(1);
        let thread = thread::spawn(move || {
            for turn in todo {
                let answer = match turn {
                    Turn::Operations(mut state) => {
                        state.turn(number);
                        Answer::State(state)
                    }
                    Turn::Settle => {
                        heap::settle_this_thread();
                        Answer::InUse(heap::check_this_thread().used.len())
                    }
                };
                if done.send(answer).is_err() {
                    return;
                }
            }
        });
        Owner {
            turns,
            answers,
            thread,
        }
    }

    fn turn(&self, turn: Turn) -> Option<Answer> {
        self.turns.send(turn).ok()?;
        self.answers.recv().ok()
    }

    /// Ends it; passes its panic on.
    fn end(self) {
        drop(self.turns);
        if let Err(panic) = self.thread.join() {
            resume_unwind(panic);
        }
    }
}

/// Runs one sequence of operations.
fn run(seed: u64, operations: usize) {
    let mut state = Box::new(State::new(seed, operations));
    let count = 1 + state.random.below(OWNERS);
    let mut owners: Vec<Owner> = (0..count).map(Owner::new).collect();
    while state.left > 0 {
        let number = state.random.below(count);
        let ends = state.random.chance(1);
        match owners[number].turn(Turn::Operations(state)) {
            Some(Answer::State(back)) => state = back,
            _ => return owners.swap_remove(number).end(),
        }
        if ends {
            // The next one gets this one's heap.
            let next = Owner::new(number);
            std::mem::replace(&mut owners[number], next).end();
            // It takes over the heap that the old one left.
            owners[number].turn(Turn::Settle);
        }
    }
    let starts: Vec<usize> = state.live.keys().copied().collect();
    for start in starts {
        let (block, _) = state.take(start);
        // SAFETY: the block is alive and not used any more.
        unsafe { heap::free(block) };
    }
    everything_comes_home(&owners);
    owners.into_iter().for_each(Owner::end);
}

/// Waits until everything is home, as upkeep gives back lent pages in a while.
fn everything_comes_home(owners: &[Owner]) {
    // This thread's own blocks, and its remote frees.
    let limit = Instant::now() + Duration::from_secs(5);
    loop {
        heap::settle_this_thread();
        let mut in_use = heap::check_this_thread().used.len();
        for owner in owners {
            match owner.turn(Turn::Settle) {
                Some(Answer::InUse(count)) => in_use += count,
                _ => panic!("an owner's heap is broken"),
            }
        }
        if in_use == 0 {
            return;
        }
        assert!(
            Instant::now() < limit,
            "{in_use} blocks have not come home, though all are freed"
        );
        thread::sleep(Duration::from_millis(1));
    }
}
