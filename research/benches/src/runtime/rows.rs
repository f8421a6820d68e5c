//! The table of rows. Goals are those of the runtime's milestone; the figures behind them are in
//! the sources' study of anchors.

use super::{Beside, Goal, Measure, Row, Who};

/// Its value may be the best of the peers.
const fn rival(who: Who) -> Beside {
    Beside { who, aside: None }
}

/// For information, because it does something else.
const fn aside(who: Who, reason: &'static str) -> Beside {
    Beside {
        who,
        aside: Some(reason),
    }
}

const fn at_most(value: f64, share_of_best: f64) -> Goal {
    Goal::AtMost {
        value: Some(value),
        share_of_best: Some(share_of_best),
    }
}

const fn share_of_best(share: f64) -> Goal {
    Goal::AtMost {
        value: None,
        share_of_best: Some(share),
    }
}

const BUFFERED: &str = "holds a value, so its sender goes on before the value is taken";
const ANYWHERE: &str = "its scheduler is free to keep both ends on one core";
const COPY: &str = "a channel, and a new block each time";
const MOVE: &str = "hands on a reference";

const COMPONENTS_ON_ONE_CORE: &str = "One worker, everything on one core.";
const COMPONENTS_ON_TWO_CORES: &str = "Two workers, an end on each of two cores. C and the threads \
    of kanal, crossbeam and locked goroutines are bound likewise; both ends are awake all the time \
    as far as their libraries look before they sleep.";

fn same(rounds: u32) -> i32 {
    rounds as i32
}

/// The sum of 1 to `rounds`, as integers of 32 bits go.
fn sum(rounds: u32) -> i32 {
    let rounds = u64::from(rounds);
    (rounds * (rounds + 1) / 2) as i32
}

fn sum_of_four(rounds: u32) -> i32 {
    sum(rounds).wrapping_mul(4)
}

/// Each round changes one element; the one just changed and the last are read.
fn sum_of_copies(rounds: u32, length: u32) -> i32 {
    let (mut sum, mut last) = (0u32, 1u32);
    for i in 1..=rounds {
        if i % length == length - 1 {
            last = i;
        }
        sum = sum.wrapping_add(i).wrapping_add(last);
    }
    sum as i32
}

const fn time(unit: &'static str, units: f64, answer: fn(u32) -> i32) -> Measure {
    Measure::Time {
        unit,
        units,
        answer,
    }
}

const RING: f64 = 503.0;

pub const ROWS: [Row; 15] = [
    Row {
        name: "runtime-ping-pong",
        question: "What does a round trip between two components cost on one core?",
        fairness: COMPONENTS_ON_ONE_CORE,
        program: "ping-pong",
        workers: 1,
        measure: time("round trip", 1.0, same),
        besides: &[
            rival(Who::Haskell),
            rival(Who::Rust("kanal")),
            rival(Who::Rust("tokio")),
            rival(Who::Rust("flume")),
            rival(Who::Go),
            rival(Who::Erlang),
        ],
        goal: at_most(14.0, 1.0 / 6.0),
        small: (1000, 1000),
    },
    Row {
        name: "runtime-stream",
        question: "What does an integer sent one way cost on one core?",
        fairness: COMPONENTS_ON_ONE_CORE,
        program: "stream",
        workers: 1,
        measure: time("message", 1.0, sum),
        besides: &[
            rival(Who::Rust("kanal")),
            rival(Who::Rust("flume")),
            rival(Who::Go),
            rival(Who::Erlang),
            aside(Who::Haskell, BUFFERED),
            aside(Who::Rust("tokio"), BUFFERED),
        ],
        goal: share_of_best(1.0 / 5.0),
        small: (1000, 500_500),
    },
    Row {
        name: "runtime-ring",
        question: "What does a token's hop in a ring of 503 components cost on one core?",
        fairness: COMPONENTS_ON_ONE_CORE,
        program: "ring",
        workers: 1,
        measure: time("hop", RING, |laps| laps.wrapping_mul(503) as i32),
        besides: &[
            rival(Who::Haskell),
            rival(Who::Rust("kanal")),
            rival(Who::Rust("tokio")),
            rival(Who::Rust("flume")),
            rival(Who::Go),
            rival(Who::Erlang),
        ],
        goal: share_of_best(1.0 / 5.0),
        small: (10, 5030),
    },
    Row {
        name: "runtime-ring-2",
        question: "What does the hop cost if each half of the ring is on a core of its own?",
        fairness: "Two workers; the token crosses twice a lap. The peers' schedulers place their \
            tasks as they like on the same two cores: what they can do best, not the same way.",
        program: "ring",
        workers: 2,
        measure: time("hop", RING, |laps| laps.wrapping_mul(503) as i32),
        besides: &[
            rival(Who::Rust("kanal-2")),
            rival(Who::Rust("tokio-2")),
            rival(Who::Go),
            rival(Who::Erlang),
        ],
        goal: share_of_best(1.0 / 8.0),
        small: (10, 5030),
    },
    Row {
        name: "runtime-fan-in",
        question: "What does a message cost that one component selects among four others'?",
        fairness: "One worker, everything on one core. kanal and GHC's MVars have no select. Erlang \
            has one mailbox for all, and acknowledges.",
        program: "fan-in",
        workers: 1,
        measure: time("message", 4.0, sum_of_four),
        besides: &[
            rival(Who::Rust("flume")),
            rival(Who::Rust("flume-selector")),
            rival(Who::Go),
            rival(Who::Erlang),
            aside(Who::Rust("tokio"), BUFFERED),
        ],
        goal: share_of_best(1.0 / 10.0),
        small: (1000, 2_002_000),
    },
    Row {
        name: "runtime-ping-pong-2",
        question: "What does a round trip between two components on two cores cost?",
        fairness: COMPONENTS_ON_TWO_CORES,
        program: "ping-pong",
        workers: 2,
        measure: time("round trip", 1.0, same),
        besides: &[
            rival(Who::C("ping-pong")),
            rival(Who::Rust("kanal-threads")),
            rival(Who::Rust("crossbeam")),
            rival(Who::GoLocked),
            aside(Who::Go, ANYWHERE),
            aside(Who::C("line"), "no channel: about what the machine allows"),
        ],
        goal: at_most(350.0, 1.0 / 2.0),
        small: (1000, 1000),
    },
    Row {
        name: "runtime-stream-2",
        question: "What does an integer sent one way to the other core cost?",
        fairness: COMPONENTS_ON_TWO_CORES,
        program: "stream",
        workers: 2,
        measure: time("message", 1.0, sum),
        besides: &[
            rival(Who::C("stream")),
            rival(Who::Rust("kanal-threads")),
            rival(Who::Rust("crossbeam")),
            rival(Who::GoLocked),
            aside(Who::Go, ANYWHERE),
        ],
        goal: share_of_best(1.0 / 2.0),
        small: (1000, 500_500),
    },
    Row {
        name: "runtime-create",
        question: "What does it cost to make a component that ends at once?",
        fairness: "One worker, everything on one core. A thousand at a time: the maker waits until \
            those have ended, then goes on. Nobody's have channels, but for the last of a thousand \
            of Hearth's, GHC's and Erlang's, which tells the maker; the others count.",
        program: "create",
        workers: 1,
        measure: time("component", 1000.0, |thousands| {
            thousands.wrapping_mul(1000) as i32
        }),
        besides: &[
            rival(Who::Haskell),
            rival(Who::Rust("tokio")),
            rival(Who::Go),
            rival(Who::Erlang),
        ],
        goal: Goal::AtMost {
            value: Some(200.0),
            share_of_best: None,
        },
        small: (2, 2000),
    },
    Row {
        name: "runtime-resident",
        question: "How many bytes are resident for each of a million blocked components?",
        fairness: "One worker. Each is connected with the next by a channel that it waits at; channel \
            included. Hearth's have 24 bytes of fields (`hearth check --sizes`: two half-channels, and \
            what lives while it waits), which do not count in the goal: 256 beyond them. The most that was resident (rusage), less that of one \
            component. Peers have 200,000, with a channel each, or a mailbox; what their collectors \
            have not swept counts. What the process that starts them had resident, some 3 MB, may \
            hide as much of the single one: some bytes each.",
        program: "blocked",
        workers: 1,
        measure: Measure::Memory {
            count: 1_000_000,
            count_of_peers: 200_000,
        },
        besides: &[
            rival(Who::Rust("kanal")),
            rival(Who::Rust("flume")),
            rival(Who::Rust("tokio")),
            rival(Who::Go),
            rival(Who::Haskell),
            rival(Who::Erlang),
        ],
        goal: Goal::AtMost {
            value: Some(256.0 + 24.0),
            share_of_best: None,
        },
        small: (1000, 1000),
    },
    Row {
        name: "runtime-copy-1k",
        question: "What does an array of 1 KiB cost that is passed by copy?",
        fairness: "One worker, everything on one core. The sender changes its array before each \
            send; the receiver reads two elements and drops its copy.",
        program: "copy-1k",
        workers: 1,
        measure: time("message", 1.0, |rounds| sum_of_copies(rounds, 256)),
        besides: &[
            rival(Who::Rust("kanal")),
            rival(Who::Rust("flume")),
            rival(Who::Go),
            aside(Who::Rust("tokio"), BUFFERED),
        ],
        goal: share_of_best(1.0 / 3.0),
        small: (1000, 876_328),
    },
    Row {
        name: "runtime-copy-1m",
        question: "Is an array of 1 MiB copied as fast as memcpy copies?",
        fairness: "As copy-1k. C copies between the same two blocks over and over, without any \
            channel, and reads as much.",
        program: "copy-1m",
        workers: 1,
        measure: time("message", 1.0, |rounds| sum_of_copies(rounds, 262_144)),
        besides: &[
            rival(Who::C("memcpy")),
            aside(Who::Rust("kanal"), COPY),
            aside(Who::Rust("tokio"), COPY),
            aside(Who::Rust("flume"), COPY),
            aside(Who::Go, COPY),
        ],
        goal: share_of_best(1.1),
        small: (10, 65),
    },
    Row {
        name: "runtime-move-1m",
        question: "Is an array of 1 MiB moved as quickly as one of 1 KiB?",
        fairness: "One worker, everything on one core. A round trip of an array that its sender \
            does not use again; each end adds one to an element. A message is half of it. The \
            peers hand on a vector or a slice.",
        program: "move-1m",
        workers: 1,
        measure: time("message", 2.0, |rounds| rounds.wrapping_mul(2) as i32),
        besides: &[
            rival(Who::Hearth("move-1k")),
            aside(Who::Rust("kanal"), MOVE),
            aside(Who::Rust("tokio"), MOVE),
            aside(Who::Rust("flume"), MOVE),
            aside(Who::Go, MOVE),
        ],
        goal: share_of_best(1.1),
        small: (1000, 2000),
    },
    Row {
        name: "runtime-mandelbrot",
        question: "How much faster is the Mandelbrot set, drawn by two components, on two workers?",
        fairness: SPEED_UP,
        program: "mandelbrot",
        workers: 2,
        measure: Measure::SpeedUp,
        besides: SPEED_UPS,
        goal: Goal::AtLeast(1.9),
        small: (1, 7_411_458),
    },
    Row {
        name: "runtime-matrix",
        question: "How much faster is a product of matrices, half by each of two components?",
        fairness: SPEED_UP,
        program: "matrix",
        workers: 2,
        measure: Measure::SpeedUp,
        besides: SPEED_UPS,
        goal: Goal::AtLeast(1.9),
        small: (1, 424_575_916),
    },
    Row {
        name: "runtime-n-body",
        question: "How much faster do 512 bodies move, half by each of two components?",
        fairness: SPEED_UP,
        program: "n-body",
        workers: 2,
        measure: Measure::SpeedUp,
        besides: SPEED_UPS,
        goal: Goal::AtLeast(1.9),
        small: (10, 4_186_112),
    },
];

const SPEED_UP: &str = "Each side against itself: one worker on one core, then two on two cores. \
    What two processes in C reach at the same time, each with the work of the one that ran alone, \
    is the ceiling: two cores may be one that runs two threads.";
const SPEED_UPS: &[Beside] = &[
    aside(Who::C("burn"), "the ceiling"),
    aside(Who::Go, "the same program"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_answers_are_those_of_the_formulas() {
        for row in &ROWS {
            if let Measure::Time { answer, .. } = row.measure {
                assert_eq!(answer(row.small.0), row.small.1, "{}", row.name);
            }
        }
    }

    #[test]
    fn sums_wrap() {
        assert_eq!(sum(1_000_000), 1_784_293_664);
        assert_eq!(sum_of_four(100_000), -1_474_636_480);
        assert_eq!(sum_of_copies(100_000, 256), 1_397_423_276);
        assert_eq!(sum_of_copies(1000, 262_144), 501_500);
    }
}
