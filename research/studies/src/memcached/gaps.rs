//! The gaps of the source, things left open or not shown, and what is done about each.

/// Something that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its number.
    pub id: &'static str,
    /// The gap.
    pub what: &'static str,
    /// The way it is handled here.
    pub here: &'static str,
}

const fn gap(id: &'static str, what: &'static str, here: &'static str) -> Gap {
    Gap { id, what, here }
}

/// All of them.
pub const GAPS: [Gap; 10] = [
    gap(
        "G1",
        "the curves of figure 4.1 are pictures: of their values the text has three gains",
        "our curves, with those three gains beside",
    ),
    gap(
        "G2",
        "a gain is of the peaks or of the same number of threads: not said",
        "both are told",
    ),
    gap(
        "G3",
        "the three optimisations are not measured one by one",
        "all eight combinations",
    ),
    gap(
        "G4",
        "how long a client spins, and how often it looks",
        "as long as blocking costs, measured",
    ),
    gap(
        "G5",
        "the asynchronous server is a thread more than the synchronous one has",
        "the server's time on cores for a request counts all its threads",
    ),
    gap(
        "G6",
        "means of three runs without their spread",
        "medians of runs in turns, with bootstrap intervals",
    ),
    gap(
        "G7",
        "size of the cache, keys, warm-up, the core of the server's thread",
        "said, and the last core",
    ),
    gap("G8", "no latencies", "p50 and p99 of our generator"),
    gap(
        "G9",
        "clients share the machine, and their share of it is not told",
        "the server's and the generator's time for a request are both told",
    ),
    gap(
        "G10",
        "cache misses are not counted; cycles of the section stand for them",
        "cycles of the section; where the processor's counters may not be read there is nothing better",
    ),
];
