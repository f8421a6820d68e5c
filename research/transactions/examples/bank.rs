//! A bank without traces, with Hearth's and with the paper's, in turns.
//!
//! `bank [accounts=1024] [read-all=20] [single=1] [threads=2] [rounds=9] [ms=300] [kinds=all]`: the
//! question is how much of the untraced throughput is left, whether conflicts are as frequent, and
//! how many bytes an event takes. `single=0` sums with `fold`. `kinds=hearth` leaves the paper's
//! forms out. The deviation of aborts is the interval of 90 % of its mean. All bytes go to nowhere,
//! so that the disk is not measured; they are counted.
//!
//! Fairness: one binary, the same seeds, contenders in turns and in another order each round,
//! threads pinned, a new memory with new accounts for each turn, as where they lie makes some
//! percent. Expected: Hearth's reduced trace keeps 0.9, its full trace 0.7; the paper's full
//! forms, which write 17 bytes for each word read, far less.

#![expect(clippy::print_stdout, reason = "an example prints its figures")]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use hearth_stm::trace::{Options, Recorder, Session, Silent, Tracer};
use hearth_stm::{Algorithm, Lsa, Stm, Traced, Var, thread_counts};
use hearth_sys::{Linux, System as _};
use hearth_transactions::{Codec, Form, Paper, Plan};
use hearth_watch::stream::Sink;

const BEGINNING: i64 = 1000;
/// Transactions between two looks at the end.
const STRIDE: u64 = 64;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) as usize * bound) >> 32
    }
}

#[derive(Clone, Copy)]
struct Load {
    accounts: usize,
    read_all: usize,
    is_single: bool,
}

struct Bank<A: Algorithm> {
    stm: Stm<A>,
    accounts: Vec<Var<i64>>,
}

impl<A: Algorithm> Bank<A> {
    fn new(load: Load, to: <A::Tracer as Tracer>::Shared) -> Bank<A> {
        Bank {
            stm: Stm::with_algorithm().traces(to),
            accounts: (0..load.accounts).map(|_| Var::new(BEGINNING)).collect(),
        }
    }

    fn transaction(&self, random: &mut Random, load: Load) {
        let accounts = &self.accounts;
        if random.below(100) < load.read_all {
            let sum = self.stm.atomically(|tx| {
                if !load.is_single {
                    return tx.fold(accounts, 0, |sum, one| sum + one);
                }
                let mut sum = 0;
                for account in accounts {
                    sum += tx.read(account)?;
                }
                Ok(sum)
            });
            assert_eq!(sum, accounts.len() as i64 * BEGINNING);
            return;
        }
        let from = random.below(accounts.len());
        let other = random.below(accounts.len() - 1);
        let to = if other < from { other } else { other + 1 };
        self.stm.atomically(|tx| {
            tx.update(&accounts[from], |sum| sum - 1)?;
            tx.update(&accounts[to], |sum| sum + 1).map(drop)
        });
    }
}

/// Counts bytes; packs them first if there is a codec.
struct Counter(Arc<AtomicU64>, Option<Codec>);

impl Sink for Counter {
    fn store(&mut self, chunks: &[u8]) -> io::Result<()> {
        let bytes = match self.1 {
            Some(codec) => codec.pack(chunks)?.len(),
            None => chunks.len(),
        };
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Result of a contender's turn.
#[derive(Clone, Copy)]
struct Turn {
    rate: f64,
    conflicts: f64,
    /// Bytes a transaction.
    bytes: f64,
}

type Go<'c> = Box<dyn Fn(usize, Duration, u64) -> Turn + 'c>;

struct Contender<'c> {
    name: String,
    go: Go<'c>,
}

fn turn<A: Algorithm>(
    bank: &Bank<A>,
    load: Load,
    (threads, duration, seed): (usize, Duration, u64),
    bytes: &dyn Fn() -> u64,
) -> Turn {
    let cores = Linux.allowed().unwrap_or_default();
    let (begin, end) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let before = bytes();
    let (done, conflicts, elapsed) = thread::scope(|scope| {
        let worker = |number: usize| {
            let core = cores.get(number % cores.len().max(1)).copied();
            let (begin, end) = (&begin, &end);
            scope.spawn(move || {
                let _pinned = core.and_then(|core| Linux.pin(core).ok());
                let seed = seed * 100 + number as u64;
                let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
                // Descriptors, files and compressors are there before the clock runs.
                for _ in 0..STRIDE {
                    bank.transaction(&mut random, load);
                }
                let earlier = thread_counts::<A>().conflicts;
                begin.wait();
                let mut done = 0;
                while !end.load(Ordering::Relaxed) {
                    for _ in 0..STRIDE {
                        bank.transaction(&mut random, load);
                    }
                    done += STRIDE;
                }
                (done, thread_counts::<A>().conflicts - earlier)
            })
        };
        let workers: Vec<_> = (0..threads).map(worker).collect();
        begin.wait();
        let started = Instant::now();
        thread::sleep(duration);
        end.store(true, Ordering::Relaxed);
        let elapsed = started.elapsed().as_secs_f64();
        let counts = workers.into_iter().map(|it| it.join().expect("it works"));
        let (done, conflicts) = counts.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        (done, conflicts, elapsed)
    });
    Turn {
        rate: done as f64 / elapsed,
        conflicts: conflicts as f64 / done as f64,
        bytes: (bytes() - before) as f64 / done as f64,
    }
}

fn untraced<A: Algorithm>(name: &str, load: Load) -> Contender<'static> {
    let go = move |threads, duration, seed| {
        let bank = Bank::<A>::new(load, Default::default());
        turn(&bank, load, (threads, duration, seed), &|| 0)
    };
    Contender {
        name: name.to_owned(),
        go: Box::new(go),
    }
}

fn hearth<const FULL: bool>(name: &str, load: Load, codec: Option<Codec>) -> Contender<'static> {
    let bytes = Arc::new(AtomicU64::new(0));
    let sink = Counter(Arc::clone(&bytes), codec);
    let session = Session::begin(sink, Options::default()).expect("memory and a thread");
    let go = move |threads, duration, seed| {
        let bank = Bank::<Traced<Lsa, Recorder<FULL>>>::new(load, session.target());
        let journal = session.journal();
        let settled = || {
            // Blocks that are not stored yet belong to this turn.
            while journal.blocks_free() < journal.blocks() {
                thread::sleep(Duration::from_millis(1));
            }
            bytes.load(Ordering::Relaxed)
        };
        turn(&bank, load, (threads, duration, seed), &settled)
    };
    Contender {
        name: name.to_owned(),
        go: Box::new(go),
    }
}

fn paper<const FULL: bool>(name: &str, load: Load, form: Form) -> Contender<'static> {
    let plan = Arc::new(Plan::new(None, form));
    let go = move |threads, duration, seed| {
        let bank = Bank::<Traced<Lsa, Paper<FULL>>>::new(load, Some(Arc::clone(&plan)));
        turn(&bank, load, (threads, duration, seed), &|| plan.bytes())
    };
    Contender {
        name: name.to_owned(),
        go: Box::new(go),
    }
}

fn argument(name: &str, default: usize) -> usize {
    let start = format!("{name}=");
    let found = std::env::args().find_map(|it| Some(it.strip_prefix(&start)?.to_owned()));
    found.map_or(default, |value| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {value}"))
    })
}

/// The least, the quartiles and the most.
fn spread(mut values: Vec<f64>) -> [f64; 5] {
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    [0, last / 4, last / 2, last * 3 / 4, last].map(|nth| values[nth])
}

/// The interval of 90 % for the mean. If it lies within a bound on both sides, two one-sided tests
/// at 5 % show the equivalence.
fn interval(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let values: Vec<f64> = values.collect();
    let number = values.len() as f64;
    let mean = values.iter().sum::<f64>() / number;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    // Student's factor for 30 values; fewer need more.
    let half = 1.7 * (squares / (number - 1.0) / number).sqrt();
    [mean - half, mean + half]
}

fn contenders(load: Load) -> Vec<Contender<'static>> {
    let mut all = vec![
        untraced::<Lsa>("untraced", load),
        untraced::<Traced<Lsa, Silent>>("silent type", load),
        hearth::<false>("reduced", load, None),
        hearth::<true>("full", load, None),
        hearth::<false>("reduced, zstd", load, Some(Codec::Strong)),
        hearth::<true>("full, zstd", load, Some(Codec::Strong)),
    ];
    if std::env::args().any(|it| it == "kinds=hearth") {
        return all;
    }
    const TEN_K: usize = 10_000;
    const M: usize = 1_000_000;
    all.push(paper::<false>("P reduced, 10K", load, Form::Binary(TEN_K)));
    let lz4 = Form::Compressors(TEN_K, Codec::Fast, 1);
    all.push(paper::<false>("P reduced, lz4*1", load, lz4));
    for (name, form) in [
        ("P full, text", Form::Ascii),
        ("P full, 1", Form::Binary(1)),
        ("P full, 10K", Form::Binary(TEN_K)),
        ("P full, 1M", Form::Binary(M)),
        ("P full, lz4 inline", Form::Inline(TEN_K, Codec::Fast)),
        ("P full, lz4*1", Form::Compressors(TEN_K, Codec::Fast, 1)),
        ("P full, lz4*2", Form::Compressors(TEN_K, Codec::Fast, 2)),
        ("P full, lz4*3", Form::Compressors(TEN_K, Codec::Fast, 3)),
        ("P full, zstd inline", Form::Inline(TEN_K, Codec::Strong)),
        ("P full, zstd*3", Form::Compressors(TEN_K, Codec::Strong, 3)),
    ] {
        all.push(paper::<true>(name, load, form));
    }
    all
}

fn main() {
    let load = Load {
        accounts: argument("accounts", 1024),
        read_all: argument("read-all", 20),
        is_single: argument("single", 1) == 1,
    };
    let (threads, rounds) = (argument("threads", 2), argument("rounds", 9));
    let duration = Duration::from_millis(argument("ms", 300) as u64);
    let contenders = contenders(load);
    let mut turns = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for offset in 0..contenders.len() {
            let at = (round * 7 + offset) % contenders.len();
            let turn = (contenders[at].go)(threads, duration, round as u64 + 1);
            // The first round warms up.
            if round > 0 {
                turns[at].push(turn);
            }
        }
    }
    println!(
        "threads {threads}, rounds {rounds} of {} ms, accounts {}, sums {} %, {}",
        duration.as_millis(),
        load.accounts,
        load.read_all,
        if load.is_single {
            "word by word"
        } else {
            "by fold"
        }
    );
    println!(
        "{:<20} {:>10} {:>7} {:>15} {:>11} {:>16} {:>10}",
        "", "txn/s", "ratio", "quartiles", "aborts/txn", "deviation %", "bytes/txn"
    );
    for (contender, own) in contenders.iter().zip(&turns) {
        let median = |of: fn(&Turn) -> f64| spread(own.iter().map(of).collect())[2];
        let pairs = || own.iter().zip(&turns[0]);
        let ratios = spread(pairs().map(|(own, none)| own.rate / none.rate).collect());
        let aborts = median(|turn| turn.conflicts);
        let [least, most] = interval(pairs().map(|(own, none)| own.conflicts / none.conflicts));
        println!(
            "{:<20} {:>10.0} {:>7.3} {:>7.3}-{:<7.3} {:>11.6} {:>16} {:>10.1}",
            contender.name,
            median(|turn| turn.rate),
            ratios[2],
            ratios[1],
            ratios[3],
            aborts,
            format!(
                "{:+.1} to {:+.1}",
                100.0 * least - 100.0,
                100.0 * most - 100.0
            ),
            median(|turn| turn.bytes)
        );
    }
}
