//! The workloads of the allocators: the programs of the suite, and all sizes.

use std::fmt::Write as _;

use hearth_testing::large;
use hearth_testing::random::Random;

use super::programs::Programs;
use super::table::Better;
use crate::peers::beside;

/// Measurements that belong together and can be requested alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    Fast,
    Latency,
    Burst,
    Fragment,
    Suite,
    /// Programs not written for this benchmark; they count in the suite's means.
    Real,
    Threads,
    Forks,
}

impl Group {
    pub const ALL: [Group; 8] = [
        Group::Fast,
        Group::Latency,
        Group::Burst,
        Group::Fragment,
        Group::Suite,
        Group::Real,
        Group::Threads,
        Group::Forks,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Group::Fast => "fast",
            Group::Latency => "lat",
            Group::Burst => "burst",
            Group::Fragment => "frag",
            Group::Suite => "suite",
            Group::Real => "real",
            Group::Threads => "tchurn",
            Group::Forks => "forkt",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Group::ALL.into_iter().find(|group| group.name() == name)
    }

    /// The question asked, and notes on its answer.
    pub fn question(self) -> &'static str {
        match self {
            Group::Fast => {
                "What do a malloc and its free cost, block by block of one size, and in batches of \
                 10,000 blocks of 64 bytes? The best of five tries in a process."
            }
            Group::Latency => {
                "How long do single mallocs and frees take? Ticks of the time-stamp counter, those \
                 of reading it included (null). Blocks have sizes of the thesis' distribution (rt), \
                 of all kinds (mix), or of 4 KiB to 4 MiB (big); -2 is two threads that hand over 3 \
                 of 100 blocks. The floor: the least of each operation over processes with the same \
                 seed, after the first quarter, or from the start (cold). Raw: the median of what \
                 single processes show, interrupts included. With touch: until every page was \
                 written."
            }
            Group::Burst => {
                "What does the owner pay after another thread has freed its blocks? The slowest of \
                 its next mallocs, as many as were freed, and of that the median over rounds; of \
                 single processes (raw), of the floor over processes, which misses what comes at \
                 other times in every process, and of the calmest process for each round (by round), \
                 which has interrupts in it where rounds are long. Blocks of 64 bytes (one) or 16 to \
                 8192 (many), or none at all (null). Ticks."
            }
            Group::Fragment => {
                "How much is resident over what is live while sizes shift, with 85 of 100 blocks \
                 freed between phases? And how much once all is freed, at once and 1.5 s later \
                 without a call?"
            }
            Group::Suite => {
                "How long do programs take that mostly allocate, and what is resident of them at \
                 most?"
            }
            Group::Real => {
                "The same of programs that were not written for this. All must print the same."
            }
            Group::Threads => {
                "What do short threads cost that leave ten blocks each, and how much more is \
                 resident after so many? 240 bytes a thread are those blocks'."
            }
            Group::Forks => {
                "Can a child allocate that was forked while two threads did? One that takes more \
                 than three seconds hangs; after three of them the rest are not tried."
            }
        }
    }
}

/// Amount of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// Checks only whether the answers are right.
    Small,
    /// A tenth or so.
    Brief,
    Full,
}

impl Size {
    pub fn of<T>(self, sizes: [T; 3]) -> T {
        let [small, brief, full] = sizes;
        match self {
            Size::Small => small,
            Size::Brief => brief,
            Size::Full => full,
        }
    }
}

/// The seed of all random choices.
pub const SEED: u64 = 2013;

/// A program of `research/benches/heap`.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub name: &'static str,
    /// The command of `heap`, by size.
    pub words: [&'static str; 3],
    /// The kind of figure that it reports: a time or a rate.
    pub better: Better,
}

impl Workload {
    pub fn figure(&self) -> &'static str {
        match self.better {
            Better::Less => "seconds",
            Better::More => "rate",
        }
    }

    pub fn unit(&self) -> &'static str {
        match self.better {
            Better::Less => "s",
            Better::More => "M/s",
        }
    }
}

const fn timed(name: &'static str, words: [&'static str; 3]) -> Workload {
    Workload {
        name,
        words,
        better: Better::Less,
    }
}

const fn rated(name: &'static str, words: [&'static str; 3]) -> Workload {
    Workload {
        name,
        words,
        better: Better::More,
    }
}

/// Each stands for a well-known idea and was written anew.
pub const SUITE: [Workload; 17] = [
    // Larson and Krishnan: a server whose workers leave their blocks to others.
    rated(
        "larson-2",
        [
            "larson 2 3 2000 100 1",
            "larson 2 10 100000 5000 1",
            "larson 2 20 500000 5000 1",
        ],
    ),
    // Lever and Boreham: one thread allocates what another frees.
    rated(
        "hand-over-2",
        [
            "hand-over 1 12000 64",
            "hand-over 1 1200000 64",
            "hand-over 1 12000000 64",
        ],
    ),
    // Berger's tests of false sharing, passive and active.
    timed(
        "cache-scratch-1",
        [
            "cache-scratch 1 10 8 1000",
            "cache-scratch 1 200 8 200000",
            "cache-scratch 1 1000 8 200000",
        ],
    ),
    timed(
        "cache-scratch-2",
        [
            "cache-scratch 2 10 8 1000",
            "cache-scratch 2 200 8 200000",
            "cache-scratch 2 1000 8 200000",
        ],
    ),
    timed(
        "cache-thrash-1",
        [
            "cache-thrash 1 10 8 1000",
            "cache-thrash 1 200 8 200000",
            "cache-thrash 1 1000 8 200000",
        ],
    ),
    timed(
        "cache-thrash-2",
        [
            "cache-thrash 2 10 8 1000",
            "cache-thrash 2 200 8 200000",
            "cache-thrash 2 1000 8 200000",
        ],
    ),
    // Skewed sizes replaced at random, their contents used, as alloc-test does.
    timed(
        "replace-1",
        [
            "replace 1 5000 100 1",
            "replace 1 1000000 10000 1",
            "replace 1 10000000 10000 1",
        ],
    ),
    timed(
        "replace-2",
        [
            "replace 2 5000 100 1",
            "replace 2 1000000 10000 1",
            "replace 2 10000000 10000 1",
        ],
    ),
    // The shape of glibc's own malloc benchmarks.
    timed(
        "batches-1",
        ["batches 1 2", "batches 1 100", "batches 1 1000"],
    ),
    timed(
        "batches-2",
        ["batches 2 2", "batches 2 100", "batches 2 1000"],
    ),
    timed("large", ["large 20 1", "large 40 1", "large 200 1"]),
    // mimalloc's stress test: blocks travel, threads end, blocks stay.
    timed(
        "stress-2",
        [
            "stress 2 4 1000 1",
            "stress 2 40 10000 1",
            "stress 2 300 10000 1",
        ],
    ),
    // Threads one after the other, in whose heaps nothing may be lost.
    timed(
        "short-lives-2",
        [
            "short-lives 10 100 1",
            "short-lives 200 1000 1",
            "short-lives 1000 1000 1",
        ],
    ),
    // rpmalloc's benchmark: large blocks among small, handed round.
    rated(
        "random-pool-2",
        [
            "random-pool 2 8000 100 1",
            "random-pool 2 200000 5000 1",
            "random-pool 2 2000000 5000 1",
        ],
    ),
    // MicroQuill's SmartHeap tests, of one thread and of several.
    timed(
        "in-runs-1",
        [
            "in-runs 1 1000 4",
            "in-runs 1 20000 20",
            "in-runs 1 20000 100",
        ],
    ),
    timed(
        "in-runs-2",
        [
            "in-runs 2 1000 4",
            "in-runs 2 20000 20",
            "in-runs 2 20000 100",
        ],
    ),
    timed(
        "in-shifts-2",
        [
            "in-shifts 2 1000 4 1",
            "in-shifts 2 12000 10 1",
            "in-shifts 2 12000 60 1",
        ],
    ),
];

/// The workload by which the goals compare cross-thread frees.
pub const HAND_OVER: &str = "hand-over-2";

/// A program of the system's, or Hearth's compiler, and its expected output; None where that is
/// not known beforehand and only has to be the same under all.
#[derive(Clone, Debug)]
pub struct Real {
    pub name: &'static str,
    pub words: Vec<String>,
    pub answer: Option<String>,
}

/// Programs that are installed, and a line for each that is not. They stand in for the source's
/// gawk, cfrac, espresso and p2c, of which only the first is in Debian: programs that allocate much
/// and little at a time, from interpreters to compilers.
pub fn real(programs: &Programs, size: Size) -> Result<(Vec<Real>, Vec<String>), String> {
    let text = text(size);
    let path = programs.file("words");
    std::fs::write(&path, &text.text).map_err(|error| error.to_string())?;
    let path = path.display().to_string();
    let counted = format!("{} {}\n", text.words, text.different);
    let passes = size.of([1, 3, 20]);
    let rows = size.of([100, 20_000, 200_000]);
    let mut missing = Vec::new();
    let mut all = Vec::new();
    let mut add =
        |name: &'static str, program: Result<String, String>, words: Vec<String>, answer| {
            match program {
                Ok(program) => all.push(Real {
                    name,
                    words: [vec![program], words].concat(),
                    answer,
                }),
                Err(error) => missing.push(format!("{name}: skipped: {error}")),
            }
        };
    // The source's own: words and how often each occurs, in a table of strings.
    let awk =
        "{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) { k++; t += n[w] }; print t, k }";
    add(
        "gawk",
        found("gawk"),
        words(&[awk, &path]),
        Some(counted.clone()),
    );
    // Lists, hashes and strings of an interpreter that counts references.
    let perl = "my ($passes, $file) = @ARGV; my (%n, $t); for (1..$passes) { %n = (); $t = 0; \
        open my $f, '<', $file or die; while (<$f>) { for (split) { push @{$n{$_}}, $.; $t++ } } } \
        print $t, ' ', scalar(keys %n), \"\\n\"";
    add(
        "perl",
        found("perl"),
        words(&["-e", perl, &passes.to_string(), &path]),
        Some(counted.clone()),
    );
    // Objects of all kinds, written as text and read again. All of its blocks are malloc's.
    let python = "import json, sys\nfor _ in range(int(sys.argv[1])):\n    n = {}\n    \
        for word in open(sys.argv[2]).read().split():\n        n.setdefault(word, []).append(len(n))\n    \
        n = json.loads(json.dumps(n))\nprint(sum(map(len, n.values())), len(n))";
    add(
        "python3",
        python3(),
        words(&["-c", python, &passes.to_string(), &path]),
        Some(counted),
    );
    // A database in memory: pages, rows, an index, sorting.
    let sql = format!(
        "create table t(a integer, b text); with recursive n(i) as (select 1 union all select i + 1 \
         from n where i < {rows}) insert into t select i, hex(i * 2654435761 % 4294967296) from n; \
         create index i on t(b); select count(*), sum(a) from (select a from t order by b);"
    );
    let sum = rows * (rows + 1) / 2;
    add(
        "sqlite3",
        found("sqlite3"),
        words(&[":memory:", &sql]),
        Some(format!("{rows}|{sum}\n")),
    );
    // Hearth's own compiler: trees and tables of a program in Rust.
    let generated = programs.file("large.isf");
    let lines = size.of([200, 10_000, 50_000]);
    std::fs::write(&generated, large::program(lines, SEED)).map_err(|error| error.to_string())?;
    let generated = generated.display().to_string();
    add(
        "hearth-check",
        hearth(),
        words(&["check", &generated]),
        None,
    );
    // Another compiler, in C, with arenas of its own in part.
    let c = programs.file("generated.c");
    std::fs::write(&c, functions(size.of([5, 150, 1000]))).map_err(|error| error.to_string())?;
    let c = c.display().to_string();
    let object = programs.file("generated.o").display().to_string();
    add(
        "cc",
        found("cc"),
        words(&["-O1", "-c", "-o", &object, &c]),
        None,
    );
    Ok((all, missing))
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|&word| word.to_owned()).collect()
}

/// The path of a program, so that no shell and no search is timed with it.
fn found(name: &str) -> Result<String, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .map(|file| file.display().to_string())
        .ok_or_else(|| {
            format!("there is no {name}; install it, for example: apt-get install {name}")
        })
}

/// Finds the interpreter itself: the first `python3` on the path may be a script that looks for it.
fn python3() -> Result<String, String> {
    let output = std::process::Command::new(found("python3")?)
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if said.is_empty() {
        return Err("python3 does not say where it is".to_owned());
    }
    Ok(said)
}

fn hearth() -> Result<String, String> {
    Ok(beside("hearth", "use benches/run")?.display().to_string())
}

struct Text {
    text: String,
    words: usize,
    different: usize,
}

/// Lines of words, some of which are far commoner than others.
fn text(size: Size) -> Text {
    let words = size.of([500, 50_000, 500_000]);
    let mut random = Random::new(SEED);
    let mut text = String::new();
    let mut seen = std::collections::HashSet::new();
    for at in 1..=words {
        // The product of two draws: small numbers are common.
        let number = random.below(400) * random.below(400);
        let mut word = String::new();
        let mut rest = number + 27;
        while rest > 0 {
            word.push(char::from(b'a' + (rest % 26) as u8));
            rest /= 26;
        }
        // Longer than what fits into the smallest blocks, now and then.
        for _ in 0..number % 5 {
            word.push_str("ing");
        }
        text.push_str(&word);
        text.push(if at % 12 == 0 { '\n' } else { ' ' });
        seen.insert(word);
    }
    text.push('\n');
    Text {
        text,
        words,
        different: seen.len(),
    }
}

/// A text in C with the given number of functions.
fn functions(count: usize) -> String {
    let mut text = String::from("int f0(int x) { return x; }\n");
    for n in 1..=count {
        let _ = writeln!(
            text,
            "int f{n}(int x) {{ int s = 0; for (int i = 0; i < x; i++) {{ if (i % {m} == 0) s += \
             f{before}(i); else s ^= i * {n}; }} return s; }}",
            m = n % 7 + 2,
            before = n - 1
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_names_of_their_own() {
        for group in Group::ALL {
            assert_eq!(Group::named(group.name()), Some(group));
        }
        assert_eq!(Group::named("slow"), None);
    }

    #[test]
    fn the_text_is_the_same_every_time() {
        let (one, two) = (text(Size::Small), text(Size::Small));
        assert_eq!(one.text, two.text);
        assert_eq!(one.text.split_whitespace().count(), one.words);
        assert!(one.different > 100 && one.different < one.words);
    }
}
