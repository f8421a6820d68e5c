//! The benchmarks that compare programs with programs.

/// A program in Insense and the same by hand in C.
#[derive(Clone, Copy, Debug)]
pub struct Benchmark {
    pub name: &'static str,
    /// Folder and stem of `STEM.isf`, below `benches`.
    pub insense: &'static str,
    /// Folder and stem of `STEM.c`.
    pub c: &'static str,
    pub question: &'static str,
    pub fairness: &'static str,
    /// The clock that counts.
    pub clock: Clock,
    /// Number of cores the programs may use.
    pub cores: usize,
    /// Input of a full run: a quarter of a second of work or so. Long enough to time, short enough
    /// to fit between the disturbances of a shared host.
    pub full: u32,
    /// Input of a small run and the answer it must give.
    pub small: (u32, &'static str),
    /// The goal: the least speed of Insense over C; None if only for information.
    pub goal: Option<f64>,
}

impl Benchmark {
    /// The input of a run: [`Benchmark::full`], or a tenth of it.
    pub fn input(&self, brief: bool) -> u32 {
        if brief {
            self.full.div_ceil(10)
        } else {
            self.full
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// CPU time: only computing counts.
    Cpu,
    /// Elapsed time: waiting counts.
    Wall,
}

const COMPUTE: &str = "One core, CPU time. Both sides are compiled by cc at -O3 for the same \
    plain machine, no -march. Input decides the number of rounds, so nothing can be computed \
    beforehand. Starting costs about a millisecond on either side and is not subtracted.";

pub const BENCHMARKS: [Benchmark; 9] = [
    Benchmark {
        name: "matrix",
        insense: "compute/matrix",
        c: "compute/matrix",
        question: "How fast is a product of 384 x 384 real matrices whose inner loop runs along \
            rows?",
        fairness: "C has float[384][384], one block each, as a C programmer writes it; Insense \
            has an object a row.",
        clock: Clock::Cpu,
        cores: 1,
        full: 30,
        small: (1, "1381752272\n"),
        goal: Some(0.9),
    },
    Benchmark {
        name: "matrix-integer",
        insense: "compute/matrix-integer",
        c: "compute/matrix-integer",
        question: "How fast is the textbook product of integer matrices, an inner product down \
            the columns?",
        fairness: "C has int32_t[384][384], one block each; Insense follows a row's pointer for \
            every element of a column.",
        clock: Clock::Cpu,
        cores: 1,
        full: 5,
        small: (1, "1381752272\n"),
        goal: Some(0.9),
    },
    Benchmark {
        name: "sieve",
        insense: "compute/sieve",
        c: "compute/sieve",
        question: "How fast is the sieve of Eratosthenes up to a million?",
        fairness: "A step must be a literal in Insense, so the inner loop counts multiples and \
            multiplies where C adds the prime. Both use a byte a number.",
        clock: Clock::Cpu,
        cores: 1,
        full: 100,
        small: (1, "78498\n"),
        goal: Some(0.9),
    },
    Benchmark {
        name: "increments",
        insense: "compute/increments",
        c: "compute/increments",
        question: "How fast are increments along an array of 5000 integers, a pass of a \
            behaviour each time?",
        fairness: "A pass is a behaviour's pass in Insense and a call that is not inlined in C; \
            without that C would add all passes at once.",
        clock: Clock::Cpu,
        cores: 1,
        full: 500,
        small: (1, "-384224256\n"),
        goal: Some(0.9),
    },
    Benchmark {
        name: "cache",
        insense: "compute/cache",
        c: "compute/cache",
        question: "How fast is the study's cache workload, increments of 850 rows of 5?",
        fairness: "C allocates row by row and follows pointers, the same data structure. For a \
            flat array see cache-flat.",
        clock: Clock::Cpu,
        cores: 1,
        full: 150,
        small: (1, "18356480\n"),
        goal: Some(0.9),
    },
    Benchmark {
        name: "cache-flat",
        insense: "compute/cache",
        c: "compute/cache-flat",
        question: "The same beside a flat array, which is what C programmers choose?",
        fairness: "C has int32_t[850][5] in one block, Insense 850 objects of 5 elements: \
            different data structures, so this is for information.",
        clock: Clock::Cpu,
        cores: 1,
        full: 150,
        small: (1, "18356480\n"),
        goal: None,
    },
    Benchmark {
        name: "ping-pong",
        insense: "channels/ping-pong",
        c: "channels/ping-pong",
        question: "What does a round trip between two components cost?",
        fairness: "Kernel threads on both sides, on two cores if there are two. C has a mutex and \
            condition variables for one receiver; Insense's channels do N:M and \
            select.",
        clock: Clock::Wall,
        cores: 2,
        full: 100,
        small: (1, "1000\n"),
        goal: None,
    },
    Benchmark {
        name: "stream",
        insense: "channels/stream",
        c: "channels/stream",
        question: "What does a value sent one way cost?",
        fairness: "As ping-pong. Every send waits until its value is taken, on both sides.",
        clock: Clock::Wall,
        cores: 2,
        full: 200,
        small: (1, "500500\n"),
        goal: None,
    },
    Benchmark {
        name: "create",
        insense: "channels/create",
        c: "channels/create",
        question: "What does it cost to make a component that sends one value and stops?",
        fairness: "A kernel thread each on both sides. C connects nothing and has one channel for \
            all.",
        clock: Clock::Wall,
        cores: 2,
        full: 200,
        small: (1, "5050\n"),
        goal: None,
    },
];

/// Notes that hold for all computing benchmarks, printed once.
pub fn common_notes(benchmark: &Benchmark) -> &'static str {
    match benchmark.clock {
        Clock::Cpu => COMPUTE,
        Clock::Wall => "Elapsed time. Both sides are compiled by cc at -O3.",
    }
}
