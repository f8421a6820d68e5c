//! The source's claims, each with the relations that must hold for it and what is published.

/// The claim that is our own.
pub const AUTO: &str = "auto";

/// A claim, and the relations that must hold for it.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) id: &'static str,
    pub(super) claim: &'static str,
    pub(super) published: &'static str,
    /// Relations that must hold.
    pub(super) terms: &'static [(&'static str, Relation)],
    /// Of the first ratio, if the source gives one.
    pub(super) size: Option<f64>,
    /// Does it take many cores to see it?
    pub(super) needs_cores: bool,
}

const fn claim(
    id: &'static str,
    claim: &'static str,
    published: &'static str,
    terms: &'static [(&'static str, Relation)],
    needs_cores: bool,
) -> Claim {
    Claim {
        id,
        claim,
        published,
        terms,
        size: None,
        needs_cores,
    }
}

const fn sized(claim: Claim, size: f64) -> Claim {
    Claim {
        size: Some(size),
        ..claim
    }
}

use crate::judging::Relation;
use Relation::{Alike, Less, More};

/// All of them.
pub(super) const CLAIMS: [Claim; 15] = [
    sized(
        claim(
            "gain-30",
            "with 30 % writes the section by message, optimised, gives more throughput than under a lock",
            "32 % more",
            &[("gain 70", More)],
            true,
        ),
        1.32,
    ),
    sized(
        claim(
            "gain-25",
            "the same with 25 % writes",
            "13 % more",
            &[("gain 75", More)],
            true,
        ),
        1.13,
    ),
    sized(
        claim(
            "gain-20",
            "with 20 % writes there is hardly a gain, as hardly anybody waits for the lock",
            "1 % more",
            &[("gain 80", Alike)],
            true,
        ),
        1.01,
    ),
    claim(
        "gain-grows",
        "the gain grows with the share of writes",
        "1, 13 and 32 %",
        &[("gain 70/80", More)],
        true,
    ),
    claim(
        "plain-loses",
        "without optimisations the section by message loses throughput",
        "in words",
        &[("plain/lock", Less)],
        false,
    ),
    claim(
        "optimised-wins",
        "the three optimisations together make it better than the plain one",
        "in words",
        &[("message/plain", More)],
        true,
    ),
    claim(
        "zero-copy",
        "a queue of pointers is better than one of copies",
        "in words; not measured alone",
        &[("effect zero", More)],
        false,
    ),
    claim(
        "spinning",
        "clients that spin before they block are better",
        "in words; not measured alone",
        &[("effect spin", More)],
        true,
    ),
    claim(
        "draining",
        "a server that takes all requests at once is better",
        "in words; not measured alone",
        &[("effect drain", More)],
        true,
    ),
    claim(
        "cycles-lock",
        "under a lock the section takes more cycles the more threads there are",
        "a curve that is lost",
        &[("cycles lock many/one", More)],
        true,
    ),
    claim(
        "cycles-message",
        "by message it takes as many cycles with many threads as with few, and fewer than under a lock",
        "a curve that is lost",
        &[
            ("cycles message many/one", Alike),
            ("cycles message/lock", Less),
        ],
        true,
    ),
    claim(
        "thrashing",
        "both lose throughput beyond some number of threads, and the one under a lock loses more",
        "curves that are lost",
        &[
            ("lock many/peak", Less),
            ("message many/peak", Less),
            ("lock fall/message fall", Less),
        ],
        true,
    ),
    claim(
        "mix",
        "under a lock throughput rises with the share of reads; by message it hardly changes",
        "in words",
        &[("lock 80/70", More), ("message 80/70", Alike)],
        true,
    ),
    claim(
        "bound",
        "cycles of the section are the same whether workers are bound to cores or not",
        "curves of the same pattern",
        &[
            ("cycles lock bound/unbound", Alike),
            ("cycles message bound/unbound", Alike),
        ],
        false,
    ),
    claim(
        AUTO,
        "where it may choose by what it measures, it is within 5 % of the better of lock and message (not of the source)",
        "not published",
        &[("auto/better, worst of all", Alike)],
        false,
    ),
];
