//! The table of grades.

use super::{Grade, Input, Load, Off};

const fn load(program: &'static str, workers: usize, place: &'static str, small: u32) -> Load {
    Load {
        program,
        workers,
        cores: workers,
        place,
        input: Input::Rounds,
        small,
    }
}

/// Everything on one worker.
const fn near(program: &'static str, small: u32) -> Load {
    load(program, 1, "os", small)
}

/// Components dealt out over two workers, unless they say where they run.
const fn far(program: &'static str, small: u32) -> Load {
    load(program, 2, "spread", small)
}

const fn given(load: Load, input: Input) -> Load {
    Load { input, ..load }
}

const PING_PONG: Load = near("runtime/ping-pong", 1000);
const STREAM: Load = near("runtime/stream", 1000);
const RING: Load = near("runtime/ring", 10);
const FAN_IN: Load = near("runtime/fan-in", 1000);
const CREATE: Load = near("runtime/create", 2);
const MOVE_1K: Load = near("runtime/move-1k", 1000);
const MOVE_1M: Load = near("runtime/move-1m", 10);
const PING_PONG_2: Load = far("runtime/ping-pong", 1000);
const STREAM_2: Load = far("runtime/stream", 1000);
const RING_2: Load = far("runtime/ring", 10);

const COUNTING: &str = "savina/counting/counting";
const THREAD_RING: &str = "savina/thread-ring/thread-ring";
const CHAMENEOS: &str = "savina/chameneos/chameneos";
const BIG: &str = "savina/big/big";
const BANK: &str = "savina/bank-transaction/bank-transaction";
const DICTIONARY: &str = "savina/concurrent-dictionary/concurrent-dictionary";
const LOGISTIC: &str = "savina/logistic-map/logistic-map";
const FORK_JOIN: &str = "savina/fork-join-throughput/fork-join-throughput";
const FILTERS: &str = "savina/filter-bank/filter-bank";
const SAVINA_PING_PONG: &str = "savina/ping-pong/ping-pong";
const SMOKERS: &str = "savina/cigarette-smokers/cigarette-smokers";
const TRAPEZOID: &str = "savina/trapezoid/trapezoid";
const MATRICES: &str = "savina/matrix-multiplication/matrix-multiplication";

const SECTION: Load = load("servers/section", 2, "os", 100);
const SHORT: Load = given(SECTION, Input::Section(16));
const LONG: Load = given(SECTION, Input::Section(16_384));
const ALLOCATE: Load = far("heaps/alloc", 10);

const fn without(
    name: &'static str,
    mechanism: &'static str,
    difference: &'static str,
    loads: &'static [Load],
) -> Grade {
    Grade {
        name,
        difference,
        off: Off::Without(mechanism),
        loads,
    }
}

const fn variable(
    name: &'static str,
    (variable, with, without): (&'static str, Option<&'static str>, &'static str),
    difference: &'static str,
    loads: &'static [Load],
) -> Grade {
    Grade {
        name,
        difference,
        off: Off::Variable {
            name: variable,
            with,
            without,
        },
        loads,
    }
}

/// Loads for the kinds of heaps: one and four allocating components, and one that computes.
const HEAP_LOADS: &[Load] = &[
    given(ALLOCATE, Input::Allocators(1)),
    given(ALLOCATE, Input::Allocators(4)),
    near(MATRICES, 1),
];

pub const GRADES: [Grade; 21] = [
    Grade {
        name: "grades-same",
        difference: "the same; the same again: what chance alone makes of a ratio",
        off: Off::Same,
        loads: &[PING_PONG, PING_PONG_2, far(BIG, 20)],
    },
    Grade {
        name: "grades-build",
        difference: "the library as it is shipped; the build that can do without mechanisms, with all \
            of them: what its tests for them cost",
        off: Off::Build,
        loads: &[PING_PONG, STREAM, PING_PONG_2],
    },
    Grade {
        name: "grades-inline",
        difference: "operations on local channels inlined by the C compiler; a call for each",
        off: Off::Calls,
        loads: &[
            PING_PONG,
            STREAM,
            RING,
            FAN_IN,
            near(COUNTING, 1000),
            near(THREAD_RING, 10_050),
        ],
    },
    without(
        "grades-local",
        "local",
        "half-channels of one worker are local, and waits light; they have a hub and its lock",
        &[
            PING_PONG,
            FAN_IN,
            RING,
            CREATE,
            near(THREAD_RING, 10_050),
            near(CHAMENEOS, 1000),
            near(BANK, 20),
        ],
    ),
    without(
        "grades-barrier",
        "barrier",
        "a worker uses its half-channels without a lock, by the kernel's barriers; with its lock, as \
            where there are no such barriers",
        &[PING_PONG, STREAM, FAN_IN, near(BIG, 20)],
    ),
    without(
        "grades-return",
        "return",
        "shared half-channels become local once they are all one worker's; they stay shared",
        &[RING_2, far(BANK, 20), far(LOGISTIC, 100)],
    ),
    without(
        "grades-link",
        "link",
        "two half-channels of two workers are linked; they have a hub and its lock",
        &[
            PING_PONG_2,
            STREAM_2,
            RING_2,
            far(SAVINA_PING_PONG, 1000),
            far(FILTERS, 20),
            far(FORK_JOIN, 100),
        ],
    ),
    without(
        "grades-watch",
        "watch",
        "a worker watches its ends of links; the other side posts the component",
        &[PING_PONG_2, STREAM_2, far(FILTERS, 20), far(LOGISTIC, 100)],
    ),
    without(
        "grades-look",
        "look",
        "a component looks at its line for a while before it parks; it parks at once",
        &[PING_PONG_2, STREAM_2, far(FILTERS, 20), far(LOGISTIC, 100)],
    ),
    without(
        "grades-prefetch",
        "prefetch",
        "a link's line is fetched for writing before it is read; it is not",
        &[PING_PONG_2, STREAM_2, far(FILTERS, 20)],
    ),
    without(
        "grades-partner",
        "partner",
        "the partner of the running component is next; it waits for its turn",
        &[PING_PONG, RING, near(FORK_JOIN, 100), near(LOGISTIC, 100)],
    ),
    without(
        "grades-spin",
        "spin",
        "a worker without work looks for some before it sleeps; it sleeps",
        &[
            PING_PONG_2,
            STREAM_2,
            far(DICTIONARY, 100),
            far(BIG, 20),
            far(FORK_JOIN, 100),
        ],
    ),
    without(
        "grades-poller",
        "poller",
        "an idle worker waits for timers and descriptors; a thread of its own does",
        &[near("grades/ticks", 20), far("grades/ticks", 20)],
    ),
    without(
        "grades-move",
        "move",
        "a value that its sender gives away is handed over; it is copied",
        &[MOVE_1K, MOVE_1M],
    ),
    variable(
        "grades-carrier",
        ("HEARTH_CARRIER", Some("workers"), "threads"),
        "a worker a core; a kernel thread a component",
        &[
            PING_PONG,
            PING_PONG_2,
            CREATE,
            near(COUNTING, 1000),
            far(DICTIONARY, 100),
        ],
    ),
    variable(
        "grades-slice",
        ("HEARTH_SLICE", None, "1000000000"),
        "a component that computes for long is detached; others wait for it. One worker, two cores",
        &[Load {
            cores: 2,
            ..near("grades/beside", 10)
        }],
    ),
    variable(
        "grades-steal",
        ("HEARTH_PLACE", Some("steal"), "os"),
        "idle workers get components from busy ones; all stay with the worker that made them",
        &[far(TRAPEZOID, 1), far(SMOKERS, 1000), far(FORK_JOIN, 100)],
    ),
    variable(
        "grades-servers",
        ("HEARTH_SERVERS", Some("synchronous"), "asynchronous"),
        "servers run on their callers' worker; they stay on theirs. The callers are on the other",
        &[SHORT, LONG, far(DICTIONARY, 100)],
    ),
    variable(
        "grades-servers-auto",
        ("HEARTH_SERVERS", Some("auto"), "asynchronous"),
        "each server is called in the better of both ways; by message",
        &[SHORT, LONG, far(DICTIONARY, 100)],
    ),
    variable(
        "grades-heaps",
        ("HEARTH_HEAPS", Some("private"), "shared"),
        "a heap for each component; one for all, under a lock",
        HEAP_LOADS,
    ),
    variable(
        "grades-heaps-system",
        ("HEARTH_HEAPS", Some("private"), "system"),
        "a heap for each component; the system's malloc",
        HEAP_LOADS,
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_loads_are_there_once() {
        let names: BTreeSet<&str> = GRADES.iter().map(|grade| grade.name).collect();
        assert_eq!(names.len(), GRADES.len());
        for grade in &GRADES {
            let labels: BTreeSet<String> = grade.loads.iter().map(Load::label).collect();
            assert_eq!(labels.len(), grade.loads.len(), "{}", grade.name);
            for load in grade.loads {
                let path = crate::peers::folder().join(format!("{}.isf", load.program));
                assert!(path.is_file(), "{}", path.display());
            }
        }
    }
}
