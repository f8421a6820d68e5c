//! Cost of a line by its state and place.
//!
//! An owner brings a chain of lines into a state, then a reader walks the chain: each line holds
//! the place of the next, so that one access waits for the other. Reads are loads; writes are
//! atomic additions of zero, which need exclusive ownership of the line and return its contents.

use std::sync::atomic::{AtomicU64, Ordering};

use hearth_sys::mapping::{fence, flush};

use crate::context::{Context, Gate, Lines, Rounds, Stop, spin_until, start, together};
use crate::disturbance::{Batch, Before};
use crate::statistics::Measured;

/// State of a line when it is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// In the accessing core's own cache, changed there.
    Own,
    /// In the other core's cache, changed there.
    Modified,
    /// In the other core's cache alone, unchanged.
    Exclusive,
    /// In the other core's cache and in a third's, or, for a write, in the writer's own too.
    Shared,
    /// In no cache.
    Uncached,
}

/// Kind of access to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A load.
    Read,
    /// An atomic read-modify-write, which owns the line.
    Write,
}

/// The cost of an access to a line in a state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateCost {
    /// The core that accesses.
    pub reader: usize,
    /// The core that brought the line into its state.
    pub owner: usize,
    /// The state.
    pub state: State,
    /// The access.
    pub access: Access,
    /// Nanoseconds a line, each access waiting for the one before.
    pub line_ns: Measured,
}

/// Lines a chain: few enough for every first-level cache, many enough for the clock.
const CHAIN: usize = 128;
/// Chains a window.
const CHAINS: usize = 48;

/// All possible combinations for two cores, or with a third for shared reads.
pub fn combinations(has_third: bool) -> Vec<(State, Access)> {
    let mut all = vec![
        (State::Own, Access::Read),
        (State::Own, Access::Write),
        (State::Modified, Access::Read),
        (State::Modified, Access::Write),
        (State::Exclusive, Access::Read),
        (State::Exclusive, Access::Write),
        (State::Shared, Access::Write),
        (State::Uncached, Access::Read),
    ];
    if has_third {
        all.push((State::Shared, Access::Read));
    }
    if cfg!(not(target_arch = "x86_64")) {
        // Without an instruction to evict a line, only the states that writing produces are
        // possible.
        all.retain(|(state, _)| matches!(state, State::Own | State::Modified));
    }
    all
}

/// One reader and one owner being measured.
#[derive(Debug)]
pub struct Cost {
    cores: [usize; 2],
    third: Option<usize>,
    state: State,
    access: Access,
    rounds: Rounds,
}

impl Cost {
    /// A cost without samples. `cores` are the reader and the owner; a third core is needed for
    /// reads of shared lines only.
    pub fn new(cores: [usize; 2], third: Option<usize>, state: State, access: Access) -> Cost {
        Cost {
            cores,
            third,
            state,
            access,
            rounds: Rounds::default(),
        }
    }

    /// Measures for about `seconds`.
    ///
    /// # Errors
    /// If cancelled, or if a core cannot be pinned to.
    pub fn visit(
        &mut self,
        context: &mut Context<'_>,
        lines: &mut Lines,
        seconds: f64,
    ) -> Result<(), Stop> {
        let (cores, third) = (self.cores, self.third);
        let (state, access) = (self.state, self.access);
        let round = context.windows(&cores, seconds, |context| {
            let chains: Vec<Vec<usize>> = (0..CHAINS)
                .map(|_| Lines::draw(CHAIN, &mut context.random))
                .collect();
            let words = lines.words();
            let job = Job {
                words,
                chains: &chains,
                state,
                access,
                // A third thread reads along only for shared reads.
                parties: 2 + u32::from(third.is_some() && shared_read(state, access)),
                gate: Gate::default(),
            };
            window(context, cores, third, &job)
        })?;
        self.rounds.add(round);
        Ok(())
    }

    /// The figure; None if every visit failed.
    pub fn sum_up(&self) -> Option<StateCost> {
        Some(StateCost {
            reader: self.cores[0],
            owner: self.cores[1],
            state: self.state,
            access: self.access,
            line_ns: self.rounds.sum_up()?,
        })
    }
}

fn shared_read(state: State, access: Access) -> bool {
    (state, access) == (State::Shared, Access::Read)
}

struct Job<'a> {
    words: &'a [AtomicU64],
    chains: &'a [Vec<usize>],
    state: State,
    access: Access,
    parties: u32,
    gate: Gate,
}

impl Job<'_> {
    /// Writes the chain, which leaves its lines modified in this core's cache.
    fn write(&self, chain: &[usize]) {
        for (index, &word) in chain.iter().enumerate() {
            let next = chain[(index + 1) % chain.len()];
            self.words[word].store(next as u64, Ordering::Relaxed);
        }
    }

    fn empty(&self, chain: &[usize]) {
        for &word in chain {
            flush(&self.words[word]);
        }
        fence();
    }

    fn read(&self, chain: &[usize]) -> u64 {
        let mut at = chain[0] as u64;
        for _ in 0..chain.len() {
            at = self.words[at as usize].load(Ordering::Relaxed);
        }
        at
    }

    fn change(&self, chain: &[usize]) -> u64 {
        let mut at = chain[0] as u64;
        for _ in 0..chain.len() {
            at = self.words[at as usize].fetch_add(0, Ordering::Relaxed);
        }
        at
    }

    /// The owner's part before the gate.
    fn own(&self, chain: &[usize]) {
        match self.state {
            State::Own => {}
            State::Modified => self.write(chain),
            State::Exclusive | State::Shared => {
                self.write(chain);
                self.empty(chain);
                std::hint::black_box(self.read(chain));
            }
            State::Uncached => {
                self.write(chain);
                self.empty(chain);
            }
        }
        fence();
    }

    /// The reader's part before its walk.
    fn prepare(&self, chain: &[usize]) {
        match (self.state, self.access) {
            (State::Own, _) => self.write(chain),
            // The writer shares the lines with the owner, which has read them before.
            (State::Shared, Access::Write) => {
                std::hint::black_box(self.read(chain));
            }
            _ => {}
        }
        fence();
    }
}

/// Four gates a chain: the owner is done, the third is done, the reader is ready, the walk is over.
fn window(
    context: &Context<'_>,
    cores: [usize; 2],
    third: Option<usize>,
    job: &Job<'_>,
) -> Result<Batch, Stop> {
    let (clock, reading_ns) = (context.clock, context.reading_ns);
    let reader = || {
        let mut batch = Batch::of_chunks(CHAIN);
        for chain in job.chains {
            job.gate.pass(job.parties);
            job.gate.pass(job.parties);
            job.prepare(chain);
            let before = Before::now();
            let begin = clock.ticks_ordered();
            let last = match job.access {
                Access::Read => job.read(chain),
                Access::Write => job.change(chain),
            };
            let ns = clock.ns(clock.ticks_ordered() - begin) - reading_ns;
            std::hint::black_box(last);
            batch.add_chunk(ns, &before);
            job.gate.pass(job.parties);
        }
        batch
    };
    let owner = || {
        for chain in job.chains {
            job.own(chain);
            job.gate.pass(job.parties);
            job.gate.pass(job.parties);
            job.gate.pass(job.parties);
        }
    };
    let Some(third) = third.filter(|_| job.parties == 3) else {
        return together(context.system, cores, reader, owner);
    };
    let ready = std::sync::atomic::AtomicBool::new(false);
    let failed = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let along = start(scope, || {
            let pinned = context.system.pin(third);
            failed.store(pinned.is_err(), Ordering::Relaxed);
            ready.store(true, Ordering::Release);
            let _pinned = pinned?;
            for chain in job.chains {
                job.gate.pass(job.parties);
                std::hint::black_box(job.read(chain));
                fence();
                job.gate.pass(job.parties);
                job.gate.pass(job.parties);
            }
            Ok::<(), hearth_sys::Refused>(())
        })?;
        spin_until(|| ready.load(Ordering::Acquire));
        if failed.load(Ordering::Relaxed) {
            let refused = along.join().expect("the third party does not panic");
            return Err(Stop::from(refused.expect_err("it said that it failed")));
        }
        let result = together(context.system, cores, reader, owner);
        if result.is_err() {
            // One of the two failed to come, and the third must not wait for it.
            job.gate.abandon();
        }
        result
    })
}
