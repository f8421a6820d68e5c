//! Programs of transactions: the ten of a published suite, a bank, and sets of integers.
//!
//! The ten are written after the published descriptions of STAMP (Cao Minh, Chung, Kozyrakis and
//! Olukotun, IISWC 2008), with the parameters of its small inputs, those for simulators. Each is
//! generic over the algorithm and with that over its tracer, has a seed, and checks its result.

mod bank;
mod bayes;
mod genome;
mod intruder;
mod kmeans;
mod labyrinth;
mod random;
mod run;
mod sets;
mod ssca2;
mod vacation;
mod yada;

use std::ops::Range;

use hearth_stm::{Algorithm, Stm};

pub use bank::{Bank, Parameters as BankParameters};
pub use random::Random;
pub use run::{Ran, run, run_for};

/// A program whose threads share a memory.
pub trait Kernel: Sync {
    /// Does one thread's share. All threads call it once, with numbers from 0.
    fn work(&self, thread: usize);

    /// Looks whether the result is right, once all threads have ended.
    ///
    /// # Errors
    /// It is not, with the reason.
    fn check(&self) -> Result<(), String>;
}

/// Size of a kernel's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// For tests.
    Small,
    /// The published parameters: of STAMP's inputs those for simulators, of TinySTM's programs the
    /// defaults.
    Published,
}

/// A kernel's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// Structure learning.
    Bayes,
    /// A gene put together.
    Genome,
    /// Packets put together.
    Intruder,
    /// Points grouped around few centres.
    KmeansHigh,
    /// Points grouped around many centres.
    KmeansLow,
    /// Paths through a grid.
    Labyrinth,
    /// A graph's arrays.
    Ssca2,
    /// A travel agency whose clients meet often.
    VacationHigh,
    /// A travel agency whose clients meet seldom.
    VacationLow,
    /// A mesh refined.
    Yada,
    /// Transfers and sums.
    Bank,
    /// A sorted list.
    List,
    /// A skip list.
    SkipList,
    /// A red-black tree.
    Tree,
    /// A hash table.
    HashTable,
}

impl Name {
    /// All: the ten of the suite first.
    pub const ALL: [Name; 15] = [
        Name::Bayes,
        Name::Genome,
        Name::Intruder,
        Name::KmeansHigh,
        Name::KmeansLow,
        Name::Labyrinth,
        Name::Ssca2,
        Name::VacationHigh,
        Name::VacationLow,
        Name::Yada,
        Name::Bank,
        Name::List,
        Name::SkipList,
        Name::Tree,
        Name::HashTable,
    ];

    /// The ten of the suite.
    pub const SUITE: [Name; 10] = *Name::ALL.first_chunk().unwrap();

    /// Its name for people and files.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Name::Bayes => "bayes",
            Name::Genome => "genome",
            Name::Intruder => "intruder",
            Name::KmeansHigh => "kmeans-high",
            Name::KmeansLow => "kmeans-low",
            Name::Labyrinth => "labyrinth",
            Name::Ssca2 => "ssca2",
            Name::VacationHigh => "vacation-high",
            Name::VacationLow => "vacation-low",
            Name::Yada => "yada",
            Name::Bank => "bank",
            Name::List => "list",
            Name::SkipList => "skip-list",
            Name::Tree => "tree",
            Name::HashTable => "hash-table",
        }
    }

    /// The kernel of a name.
    #[must_use]
    pub fn named(id: &str) -> Option<Name> {
        Name::ALL.into_iter().find(|name| name.id() == id)
    }

    /// Its parameters, by the published options where there are such.
    #[must_use]
    pub fn parameters(self, size: Size) -> String {
        match self {
            Name::Bayes => {
                let of = bayes::Parameters::of(size);
                format!(
                    "-v{} -r{} -n{} -p{} -i{} -e{}",
                    of.variables, of.records, of.parents, of.percent, of.penalty, of.edges_max
                )
            }
            Name::Genome => {
                let of = genome::Parameters::of(size);
                format!("-g{} -s{} -n{}", of.gene, of.segment, of.number)
            }
            Name::Intruder => {
                let of = intruder::Parameters::of(size);
                format!("-a{} -l{} -n{}", of.attacks, of.length, of.flows)
            }
            Name::KmeansHigh => kmeans_words(size, kmeans::Contention::High),
            Name::KmeansLow => kmeans_words(size, kmeans::Contention::Low),
            Name::Labyrinth => {
                let labyrinth::Parameters {
                    sides: [x, y, z],
                    paths,
                } = labyrinth::Parameters::of(size);
                format!("random-x{x}-y{y}-z{z}-n{paths}")
            }
            Name::Ssca2 => {
                let of = ssca2::Parameters::of(size);
                let part = |percent: usize| percent as f64 / 100.0;
                format!(
                    "-s{} -i{:.1} -u{:.1} -p{}",
                    of.scale,
                    part(of.between_percent),
                    part(of.one_way_percent),
                    of.parallel
                )
            }
            Name::VacationHigh => vacation_words(size, vacation::Contention::High),
            Name::VacationLow => vacation_words(size, vacation::Contention::Low),
            Name::Yada => {
                let of = yada::Parameters::of(size);
                let triangles = 2 * of.cells * of.cells;
                format!("{triangles} triangles at first, a rule of our own")
            }
            Name::Bank => {
                let of = BankParameters::PUBLISHED;
                let (accounts, read_all) = (of.accounts, of.read_all_percent);
                format!("{accounts} accounts, {read_all} % sums")
            }
            Name::List | Name::SkipList | Name::Tree | Name::HashTable => {
                "256 of 512 keys, 20 % updates".to_owned()
            }
        }
    }

    /// Makes the kernel for a number of threads, in a memory of its own.
    pub fn make<A: Algorithm>(
        self,
        stm: Stm<A>,
        size: Size,
        threads: usize,
        seed: u64,
    ) -> Box<dyn Kernel> {
        use {kmeans::Contention as Centres, vacation::Contention as Clients};
        match self {
            Name::Bayes => Box::new(bayes::Bayes::new(stm, size, seed)),
            Name::Genome => Box::new(genome::Genome::new(stm, size, threads, seed)),
            Name::Intruder => Box::new(intruder::Intruder::new(stm, size, seed)),
            Name::KmeansHigh => {
                let centres = Centres::High;
                Box::new(kmeans::Kmeans::new(stm, size, centres, threads, seed))
            }
            Name::KmeansLow => {
                let centres = Centres::Low;
                Box::new(kmeans::Kmeans::new(stm, size, centres, threads, seed))
            }
            Name::Labyrinth => Box::new(labyrinth::Labyrinth::new(stm, size, seed)),
            Name::Ssca2 => Box::new(ssca2::Ssca2::new(stm, size, threads, seed)),
            Name::VacationHigh => {
                let clients = Clients::High;
                Box::new(vacation::Vacation::new(stm, size, clients, threads, seed))
            }
            Name::VacationLow => {
                let clients = Clients::Low;
                Box::new(vacation::Vacation::new(stm, size, clients, threads, seed))
            }
            Name::Yada => Box::new(yada::Yada::new(stm, size, seed)),
            Name::Bank => Box::new(Bank::kernel(stm, size, seed)),
            Name::List => Box::new(sets::Sets::<A, sets::List>::new(stm, size, seed)),
            Name::SkipList => Box::new(sets::Sets::<A, sets::SkipList>::new(stm, size, seed)),
            Name::Tree => Box::new(sets::Sets::<A, sets::RedBlackTree>::new(stm, size, seed)),
            Name::HashTable => Box::new(sets::Sets::<A, sets::HashTable>::new(stm, size, seed)),
        }
    }
}

fn kmeans_words(size: Size, contention: kmeans::Contention) -> String {
    let of = kmeans::Parameters::of(size, contention);
    format!(
        "-m{0} -n{0} -t{1} -i random-n{2}-d{3}-c{4}",
        of.centres, of.threshold, of.points, of.dimensions, of.made
    )
}

fn vacation_words(size: Size, contention: vacation::Contention) -> String {
    let of = vacation::Parameters::of(size, contention);
    format!(
        "-n{} -q{} -u{} -r{} -t{}",
        of.queries, of.reach_percent, of.reserve_percent, of.relations, of.transactions
    )
}

/// A thread's share of so many items.
fn shares(items: usize, threads: usize, thread: usize) -> Range<usize> {
    items * thread / threads..items * (thread + 1) / threads
}
