//! One process: rounds of making, working, stopping and counting the remains.

use std::os::raw::c_char;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use hearth_runtime::abi::{ABI, Component, ComponentType, Program, Site, Step};
use hearth_runtime::c;
use hearth_runtime::census::{self, Census};

use crate::actors::{
    Answers, Asks, Life, Meddles, Pool, Random, Receives, ReceivesArrays, Relays, Sends,
    SendsArrays,
};
use crate::ledger::{Ledger, MESSAGES};
use crate::machine::{self, Handle, PORTS, Static};
use crate::neighbours::Neighbours;
use crate::remains::{self, Growth};

/// Far longer than any round takes.
const PATIENCE: Duration = Duration::from_secs(120);
/// Rounds whose remains are not checked: one-time allocations happen in them.
const WARM_UP: u64 = 3;
/// Threads that rest between two rounds, and more: at most one for each component that computed for
/// long.
const THREADS: usize = 120;

/// The census between two rounds: the anchor, which waits for the end.
const AT_REST: Census = Census {
    components: 1,
    hubs: 0,
    links: 0,
    waits: 1,
};

static ROUND: AtomicU64 = AtomicU64::new(0);
static PLAN: OnceLock<Plan> = OnceLock::new();

/// The process's rounds.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    seconds: u64,
    /// The most other runtimes in a round.
    neighbours: usize,
}

/// Runs rounds for this many seconds, then ends the process.
pub(crate) fn run(seed: u64, seconds: u64, neighbours: usize) -> ! {
    const NOWHERE: Site = Site {
        file: ptr::null(),
        line: 0,
        column: 0,
        text: ptr::null(),
    };
    static MAIN: Static<ComponentType> = Static(ComponentType {
        name: c"Main".as_ptr(),
        size: size_of::<Component>(),
        resume: begin,
        destroy: None,
        trace: None,
        port_count: 0,
        ports: ptr::null(),
        service: false,
        declared: NOWHERE,
        heap_bytes: 0,
        heap_largest: 0,
    });
    static PROGRAM: Static<Program> = Static(Program {
        name: c"soak".as_ptr(),
        abi: ABI,
        main: &raw const MAIN.0,
        compat_original: false,
    });
    PLAN.get_or_init(|| Plan {
        seed,
        seconds,
        neighbours,
    });
    // SAFETY: a valid program; it is given no arguments.
    unsafe { c::hearth_main(&raw const PROGRAM.0, 0, ptr::null_mut::<*mut c_char>()) };
    unreachable!("the program ends the process")
}

/// The main sequence: another thread, from outside, does the rest.
unsafe extern "C" fn begin(_: *mut Component) -> Step {
    machine::anchor();
    std::thread::spawn(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let (seed, round) = (PLAN.get(), ROUND.load(Ordering::Relaxed));
            eprintln!("soak: in round {round} of {seed:?}");
            told(panic);
        }));
        rounds(PLAN.get().expect("made before"));
        end();
    });
    Step::Done
}

#[expect(clippy::disallowed_methods, reason = "components are left waiting")]
fn end() -> ! {
    std::process::exit(0)
}

fn rounds(plan: &Plan) {
    let time = Duration::from_secs(plan.seconds);
    let start = Instant::now();
    let mut told = start;
    let mut messages = 0u64;
    let mut baseline = None;
    let mut used = Growth::new("bytes in use", 256 << 10);
    let mut held = Growth::new("bytes that heaps have", 4 << 20);
    let mut resident = Growth::new("bytes resident", 8 << 20);
    let mut round = 0;
    while start.elapsed() < time || round < WARM_UP + 2 {
        ROUND.store(round, Ordering::Relaxed);
        let mut random = Random::new(plan.seed.wrapping_add(round << 32));
        let neighbours = Neighbours::new(plan.neighbours, &mut random);
        messages += u64::from(Round::new(&mut random).live(&mut random));
        messages += neighbours.join();
        until("the round's components to be gone", || {
            census::take() == AT_REST
        });
        if round >= WARM_UP {
            let expected = *baseline.get_or_insert_with(remains::exact);
            let has_settled = || remains::exact() == expected && remains::threads() <= THREADS;
            until("everything to be given back", has_settled);
            let (in_use, rss) = remains::bytes();
            used.see(in_use);
            held.see(hearth_heap::totals().held);
            resident.see(rss);
        }
        round += 1;
        if told.elapsed() > Duration::from_secs(60) {
            told = Instant::now();
            tell(start, round, messages);
        }
    }
    tell(start, round, messages);
    used.check();
    held.check();
    resident.check();
}

fn tell(start: Instant, rounds: u64, messages: u64) {
    println!(
        "soak:   {:4} s, {rounds} rounds, {messages} messages, {} threads, {} descriptors, {} KiB",
        start.elapsed().as_secs(),
        remains::threads(),
        remains::exact().descriptors,
        remains::bytes().1 >> 10,
    );
}

/// Waits until a condition holds. If that takes too long, prints the deadlock report and ends the
/// process.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    for turn in 0.. {
        if is_so() {
            return;
        }
        if turn < 50 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(200));
        }
        if start.elapsed() > PATIENCE {
            hang(what);
        }
    }
}

fn hang(what: &str) -> ! {
    let (seed, round) = (PLAN.get(), ROUND.load(Ordering::Relaxed));
    eprintln!("soak: in round {round} of {seed:?} in vain: waited for {what}");
    eprintln!("soak: {:?}", remains::exact());
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten() {
        let folder = task.map(|task| task.path()).unwrap_or_default();
        let read = |name| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        eprintln!("soak: {} {}", read("stat").trim(), read("wchan"));
    }
    // If all sleep, the runtime prints the deadlock report and ends the process.
    machine::expect_nothing_more();
    std::thread::sleep(Duration::from_secs(5));
    eprintln!("soak: something still runs");
    std::process::abort()
}

/// One round's components, by their fate.
struct Round {
    ledger: Arc<Ledger>,
    pool: Arc<Pool>,
    children: Arc<Mutex<Vec<Handle>>>,
    /// Components that must deliver everything.
    owing: Vec<Handle>,
    meddlers: Vec<Handle>,
    still_meddling: Arc<AtomicU32>,
    others: Vec<Handle>,
}

impl Round {
    fn new(random: &mut Random) -> Round {
        let ledger = Ledger::new();
        let children: Arc<Mutex<Vec<Handle>>> = Arc::default();
        let mut pool = Pool::default();
        let life = |random: &mut Random| Life::new(&ledger, random);
        let account = |random: &mut Random| {
            let messages = 5 + random.below(80) as u32;
            ledger.sender(messages).expect("few are made here")
        };
        for _ in 0..2 + random.below(6) {
            let left = if random.once_in(5) { 20 } else { u32::MAX };
            let receiver = Handle::new(Receives::new(life(random), false, left));
            pool.ins.extend((0..PORTS).map(|port| receiver.input(port)));
            pool.victims.push(receiver);
        }
        for _ in 0..random.below(4) {
            let relay = Handle::new(Relays {
                account: ledger.sender(MESSAGES / 16).expect("few are made here"),
                life: life(random),
                is_sending: false,
            });
            pool.ins.push(relay.input(0));
            pool.outs.push(relay.output(0));
            pool.victims.push(relay);
        }
        let mut owing = Vec::new();
        for index in 0..3 + random.below(16) {
            let owes = index < 2 || random.once_in(2);
            let outs = 1 + random.below(2);
            let makes = random.once_in(5);
            let sender = Handle::new(Sends {
                life: life(random),
                account: account(random),
                outs,
                owes,
                children_to: if makes { pool.ins.clone() } else { Vec::new() },
                children: children.clone(),
                is_sending: false,
            });
            pool.outs.extend((0..outs).map(|port| sender.output(port)));
            if owes {
                ledger.owing.fetch_add(1, Ordering::Relaxed);
                owing.push(sender);
            } else {
                pool.victims.push(sender);
            }
        }
        let mut round = Round {
            ledger: ledger.clone(),
            pool: Arc::new(pool),
            children,
            owing,
            meddlers: Vec::new(),
            still_meddling: Arc::default(),
            others: Vec::new(),
        };
        round.add_meddlers(random);
        round.add_arrays(random);
        for _ in 0..random.below(4) {
            round.add_questions(random);
        }
        round
    }

    fn add_meddlers(&mut self, random: &mut Random) {
        for _ in 0..random.below(4) {
            self.still_meddling.fetch_add(1, Ordering::Relaxed);
            let meddler = Handle::new(Meddles {
                life: Life::new(&self.ledger, random),
                pool: self.pool.clone(),
                meddlers: self.still_meddling.clone(),
                stops_once_in: 10 + random.below(200),
            });
            for _ in 0..1 + random.below(3) {
                random.one_of(&self.pool.outs).connect(&meddler.input(0));
            }
            self.meddlers.push(meddler);
        }
    }

    fn add_arrays(&mut self, random: &mut Random) {
        for _ in 0..random.below(4) {
            let senders = (0..1 + random.below(4)).map(|_| {
                let account = self.ledger.sender(5 + random.below(100) as u32);
                let account = account.expect("few are made here");
                self.ledger.owing.fetch_add(1, Ordering::Relaxed);
                SendsArrays::new(Life::new(&self.ledger, random), account)
            });
            let senders = senders.collect();
            self.others.push(Handle::new(ReceivesArrays {
                life: Life::new(&self.ledger, random),
                senders,
                children: self.children.clone(),
                from: None,
            }));
        }
    }

    fn add_questions(&mut self, random: &mut Random) {
        // Lone askers are linked with the answering component, and each answer is a link of its
        // own.
        let askers = if random.once_in(2) {
            1
        } else {
            2 + random.below(8)
        };
        let askers = (0..askers).map(|_| {
            self.ledger.owing.fetch_add(1, Ordering::Relaxed);
            let questions = if random.once_in(3) { 1000 } else { 100 };
            let left = 1 + random.below(questions) as u32;
            Asks::new(Life::new(&self.ledger, random), left)
        });
        let askers = askers.collect();
        self.others.push(Handle::new(Answers {
            life: Life::new(&self.ledger, random),
            account: self.ledger.sender(MESSAGES / 4).expect("few are made here"),
            askers,
            children: self.children.clone(),
            questions: None,
            out: None,
            asker: None,
        }));
    }

    /// Lives from start to end. Returns the number of messages received.
    fn live(self, random: &mut Random) -> u32 {
        self.start(random);
        self.disturb(random);
        self.calm_down();
        let drains = self.drain(random);
        let ledger = self.ledger.clone();
        until("all that must be delivered", || {
            ledger.owing.load(Ordering::Relaxed) == 0
        });
        let children = self.children.clone();
        let all = [&self.owing, &self.others, &drains, &self.pool.victims];
        all.into_iter().flatten().for_each(Handle::stop);
        drop(self);
        drop(drains);
        until("all to end", || {
            children
                .lock()
                .unwrap()
                .drain(..)
                .for_each(|child| child.stop());
            ledger.alive.load(Ordering::Acquire) == 0
        });
        ledger.check();
        ledger.received.load(Ordering::Relaxed)
    }

    fn start(&self, random: &mut Random) {
        let pool = &self.pool;
        for out in &pool.outs {
            for _ in 0..1 + random.below(2) {
                out.connect(random.one_of(&pool.ins));
            }
        }
        let groups = [&pool.victims, &self.owing, &self.meddlers, &self.others];
        let mut all: Vec<&Handle> = groups.into_iter().flatten().collect();
        while !all.is_empty() {
            let index = random.below(all.len());
            all.swap_remove(index).start();
        }
    }

    /// Disturbs the round from outside, for a while.
    fn disturb(&self, random: &mut Random) {
        for _ in 0..random.below(60) {
            self.pool.meddle(random, 40);
            for _ in 0..random.below(20) {
                std::thread::yield_now();
            }
        }
    }

    /// Ends all disconnecting.
    fn calm_down(&self) {
        self.meddlers.iter().for_each(Handle::stop);
        until("those to end that disturb", || {
            self.still_meddling.load(Ordering::Acquire) == 0
        });
    }

    /// Makes all owed messages deliverable from now on.
    fn drain(&self, random: &mut Random) -> Vec<Handle> {
        let drains: Vec<Handle> = (0..1 + random.below(2))
            .map(|_| {
                let life = Life::new(&self.ledger, random);
                Handle::new(Receives::new(life, true, u32::MAX))
            })
            .collect();
        for drain in &drains {
            drain.start();
        }
        for (index, out) in self.pool.outs.iter().enumerate() {
            let drain = &drains[index % drains.len()];
            out.connect(&drain.input(random.below(PORTS)));
        }
        drains
    }
}
