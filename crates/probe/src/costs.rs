//! Costs of the operating system's services.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use hearth_sys::mapping::{HugePages, MapOptions, Mapping, page_bytes};
use hearth_sys::semaphore::Semaphore;
use hearth_sys::{clock, futex, schedule};

use crate::context::{Context, Rounds, Stop, together};
use crate::disturbance::{Batch, Before};
use crate::statistics::Measured;

/// A service of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// Creation, start and join of a thread that does nothing.
    ThreadCreateJoin,
    /// Switch between two threads on one core that yield to each other.
    SwitchByYield,
    /// Wake-up of a sleeping thread on the same core by futex, one way.
    FutexWakeSameCore,
    /// The same with the sleeper on another core.
    FutexWakeAcross,
    /// A byte through a pipe to a sleeping thread on the same core, one way.
    PipeSameCore,
    /// The same with the sleeper on another core.
    PipeAcross,
    /// The first touch of a small page.
    FaultSmall,
    /// First touch of a large page, including zeroing.
    FaultHuge,
    /// Lock and unlock of a mutex without contention.
    Mutex,
    /// Post and wait of a semaphore without another thread.
    Semaphore,
    /// `sched_yield` with no other thread to run.
    Yield,
    /// The shortest system call.
    Syscall,
    /// Reading the probe's clock in program order with its surroundings.
    ClockOrdered,
    /// Reading the probe's clock without order.
    ClockPlain,
    /// Rust's `Instant::now`.
    ClockInstant,
    /// The raw monotonic clock of the system.
    ClockMonotonicRaw,
}

impl Service {
    /// All of them.
    pub const ALL: [Service; 16] = [
        Service::ThreadCreateJoin,
        Service::SwitchByYield,
        Service::FutexWakeSameCore,
        Service::FutexWakeAcross,
        Service::PipeSameCore,
        Service::PipeAcross,
        Service::FaultSmall,
        Service::FaultHuge,
        Service::Mutex,
        Service::Semaphore,
        Service::Yield,
        Service::Syscall,
        Service::ClockOrdered,
        Service::ClockPlain,
        Service::ClockInstant,
        Service::ClockMonotonicRaw,
    ];

    /// Whether it needs two cores.
    pub fn needs_two(self) -> bool {
        matches!(self, Service::FutexWakeAcross | Service::PipeAcross)
    }
}

/// The cost of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceCost {
    /// The service.
    pub service: Service,
    /// Nanoseconds each.
    pub each_ns: Measured,
}

/// A service being measured.
#[derive(Debug)]
pub struct Price {
    service: Service,
    cores: [usize; 2],
    rounds: Rounds,
}

impl Price {
    /// A cost without samples. Services of one core use the first.
    pub fn new(service: Service, cores: [usize; 2]) -> Price {
        Price {
            service,
            cores,
            rounds: Rounds::default(),
        }
    }

    /// Measures for about `seconds`.
    ///
    /// # Errors
    /// If cancelled, or if the system refuses.
    pub fn visit(&mut self, context: &mut Context<'_>, seconds: f64) -> Result<(), Stop> {
        let (service, cores) = (self.service, self.cores);
        let round = context.windows(&cores, seconds, |context| window(context, service, cores))?;
        self.rounds.add(round);
        Ok(())
    }

    /// The figure; None if every visit failed.
    pub fn sum_up(&self) -> Option<ServiceCost> {
        Some(ServiceCost {
            service: self.service,
            each_ns: self.rounds.sum_up()?,
        })
    }
}

/// Operations in a chunk of the cheap services: about ten microseconds at 10 ns each.
const MANY: usize = 1000;
const CHUNKS: usize = 40;

fn window(context: &Context<'_>, service: Service, cores: [usize; 2]) -> Result<Batch, Stop> {
    let here = cores[0];
    match service {
        Service::ThreadCreateJoin => threads(context, here),
        Service::SwitchByYield => yields(context, here),
        Service::FutexWakeSameCore => futex_turns(context, [here, here]),
        Service::FutexWakeAcross => futex_turns(context, cores),
        Service::PipeSameCore => pipe_turns(context, [here, here]),
        Service::PipeAcross => pipe_turns(context, cores),
        Service::FaultSmall => faults(context, here, HugePages::Refused),
        Service::FaultHuge => faults(context, here, HugePages::Wanted),
        Service::Mutex => {
            let mutex = std::hint::black_box(Mutex::new(0u64));
            cheap(context, here, || {
                // No holder panics.
                *mutex
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
            })
        }
        Service::Semaphore => {
            let semaphore = Semaphore::new(0)?;
            cheap(context, here, || {
                semaphore.post();
                semaphore.wait();
            })
        }
        // Yielding is not a switch by itself, but the kernel counts it as one.
        Service::Yield => plain(context, here, schedule::give_way),
        Service::Syscall => cheap(context, here, || {
            std::hint::black_box(schedule::shortest_call());
        }),
        Service::ClockOrdered => cheap(context, here, || {
            std::hint::black_box(context.clock.ticks_ordered());
        }),
        Service::ClockPlain => cheap(context, here, || {
            std::hint::black_box(context.clock.ticks());
        }),
        Service::ClockInstant => cheap(context, here, || {
            std::hint::black_box(Instant::now());
        }),
        Service::ClockMonotonicRaw => cheap(context, here, || {
            std::hint::black_box(clock::monotonic_ns());
        }),
    }
}

fn cheap(context: &Context<'_>, core: usize, action: impl Fn()) -> Result<Batch, Stop> {
    let _pinned = context.system.pin(core)?;
    let mut batch = Batch::of_chunks(MANY);
    for _ in 0..CHUNKS {
        let before = Before::now();
        let ns = timed(context, MANY, &action);
        batch.add_chunk(ns, &before);
    }
    Ok(batch)
}

fn plain(context: &Context<'_>, core: usize, action: impl Fn()) -> Result<Batch, Stop> {
    let _pinned = context.system.pin(core)?;
    const FEW: usize = 100;
    let mut batch = Batch::of_chunks(FEW);
    for _ in 0..CHUNKS {
        batch.add_plain(timed(context, FEW, &action));
    }
    Ok(batch)
}

fn timed(context: &Context<'_>, count: usize, action: &impl Fn()) -> f64 {
    let begin = context.clock.ticks_ordered();
    for _ in 0..count {
        action();
    }
    let ticks = context.clock.ticks_ordered() - begin;
    context.clock.ns(ticks) - context.reading_ns
}

fn threads(context: &Context<'_>, core: usize) -> Result<Batch, Stop> {
    let _pinned = context.system.pin(core)?;
    let mut batch = Batch::of_chunks(1);
    for _ in 0..CHUNKS {
        let begin = context.clock.ticks_ordered();
        // A system without room for another thread fails here.
        let made = std::thread::Builder::new().spawn(|| {});
        let joined = made.map(std::thread::JoinHandle::join);
        let ticks = context.clock.ticks_ordered() - begin;
        if let Err(error) = joined {
            let next = "raise the limit `ulimit -u`";
            return Err(hearth_sys::Refused::new("start", "a thread", &error, next).into());
        }
        batch.add_plain(context.clock.ns(ticks));
    }
    Ok(batch)
}

/// Both threads count their turns; a turn ends when the other one has run.
fn yields(context: &Context<'_>, core: usize) -> Result<Batch, Stop> {
    const TURNS: u32 = 50;
    let turn = AtomicU32::new(0);
    let is_over = AtomicBool::new(false);
    let clock = context.clock;
    let mine = |parity: u32| {
        while turn.load(Ordering::Acquire) % 2 != parity && !is_over.load(Ordering::Relaxed) {
            schedule::give_way();
        }
    };
    let first = || {
        let mut batch = Batch::of_chunks(2 * TURNS as usize);
        for _ in 0..CHUNKS {
            let begin = clock.ticks_ordered();
            for _ in 0..TURNS {
                mine(0);
                turn.fetch_add(1, Ordering::Release);
            }
            mine(0);
            batch.add_plain(clock.ns(clock.ticks_ordered() - begin));
        }
        is_over.store(true, Ordering::Relaxed);
        batch
    };
    let second = || {
        while !is_over.load(Ordering::Relaxed) {
            mine(1);
            if !is_over.load(Ordering::Relaxed) {
                turn.fetch_add(1, Ordering::Release);
            }
        }
    };
    together(context.system, [core, core], first, second)
}

const TRIPS: usize = 20;

/// Two threads that sleep in turn, each on its own word.
fn futex_turns(context: &Context<'_>, cores: [usize; 2]) -> Result<Batch, Stop> {
    let words = [AtomicU32::new(0), AtomicU32::new(0)];
    let clock = context.clock;
    let sleep = |index: usize| {
        // Acquire pairs with the waker's release.
        while words[index].swap(0, Ordering::Acquire) == 0 {
            futex::wait(&words[index], 0);
        }
    };
    let wake = |index: usize| {
        words[index].store(1, Ordering::Release);
        futex::wake_one(std::ptr::from_ref(&words[index]).addr());
    };
    let first = || {
        let mut batch = Batch::of_chunks(2 * TRIPS);
        for _ in 0..CHUNKS {
            let begin = clock.ticks_ordered();
            for _ in 0..TRIPS {
                wake(1);
                sleep(0);
            }
            batch.add_plain(clock.ns(clock.ticks_ordered() - begin));
        }
        batch
    };
    let second = || {
        for _ in 0..CHUNKS * TRIPS {
            sleep(1);
            wake(0);
        }
    };
    together(context.system, cores, first, second)
}

fn pipe_turns(context: &Context<'_>, cores: [usize; 2]) -> Result<Batch, Stop> {
    use std::io::{Read, Write};
    let pipe = || {
        std::io::pipe().map_err(|error| {
            let next = "raise the limit `ulimit -n`";
            Stop::from(hearth_sys::Refused::new("make", "a pipe", &error, next))
        })
    };
    let (mut there_out, mut there_in) = pipe()?;
    let (mut back_out, mut back_in) = pipe()?;
    let clock = context.clock;
    let first = move || -> std::io::Result<Batch> {
        let mut batch = Batch::of_chunks(2 * TRIPS);
        let mut byte = [0u8];
        for _ in 0..CHUNKS {
            let begin = clock.ticks_ordered();
            for _ in 0..TRIPS {
                there_in.write_all(&byte)?;
                back_out.read_exact(&mut byte)?;
            }
            batch.add_plain(clock.ns(clock.ticks_ordered() - begin));
        }
        Ok(batch)
    };
    let second = move || {
        let mut byte = [0u8];
        // Ends when the other side closes its end.
        while there_out.read_exact(&mut byte).is_ok() && back_in.write_all(&byte).is_ok() {}
    };
    together(context.system, cores, first, second)?.map_err(|error| {
        let next = "try again";
        Stop::from(hearth_sys::Refused::new(
            "send through",
            "a pipe",
            &error,
            next,
        ))
    })
}

/// Takes a page a sample where pages are large, a run of them where they are small.
fn faults(context: &Context<'_>, core: usize, huge: HugePages) -> Result<Batch, Stop> {
    let _pinned = context.system.pin(core)?;
    let large = 2 << 20;
    let (page, pages, chunk) = match huge {
        HugePages::Wanted => (large, 8, 1),
        _ => (page_bytes(), 2048, 64),
    };
    let mut memory = Mapping::new(MapOptions {
        bytes: page * pages,
        align: large,
        huge,
        prefault: false,
    })?;
    if let Some(refused) = memory.huge_refused() {
        return Err(refused.clone().into());
    }
    let mut batch = Batch::of_chunks(chunk);
    for _ in 0..4 {
        memory.forget_contents();
        let words = memory.words_mut();
        for run in words.chunks_mut(page / 8 * chunk) {
            let before = Before::now();
            let begin = context.clock.ticks_ordered();
            for first in run.chunks_mut(page / 8) {
                first[0] = std::hint::black_box(1);
            }
            let ns = context.clock.ns(context.clock.ticks_ordered() - begin);
            batch.add_chunk(ns - context.reading_ns, &before);
        }
    }
    Ok(batch)
}
