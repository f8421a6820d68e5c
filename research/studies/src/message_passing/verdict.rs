//! What the source claims, judged by rules.
//!
//! The same rules judge what is measured here and what the source published. Everything compared is a ratio of two
//! figures, with the rules for *alike*, *more* and *less* of the multi-core study. The sizes are those fitted to
//! this machine's first cache where they were run.
//!
//! Most claims are about more threads than many machines have cores. A claim about so many threads that were not
//! run is not judged; one about ten threads or so that came out otherwise with fewer is not refuted either, as the
//! server's core is a larger share of all.

use super::evidence::Evidence;
use crate::judging::{Answer, Figure, Relation, Verdict, has_size};

/// A claim: relations that must hold, and the size of the first if the source gives one.
struct Claim {
    id: &'static str,
    claim: &'static str,
    published: &'static str,
    terms: &'static [(&'static str, Relation)],
    size: Option<f64>,
    /// With fewer threads it may come out otherwise and not be refuted.
    threads: Option<usize>,
}

const fn claim(
    id: &'static str,
    claim: &'static str,
    published: &'static str,
    terms: &'static [(&'static str, Relation)],
) -> Claim {
    Claim {
        id,
        claim,
        published,
        terms,
        size: None,
        threads: None,
    }
}

use Relation::{Alike, Less, More};

const CLAIMS: [Claim; 15] = [
    claim(
        "small",
        "with a section of fewer than 64 lines messages cost more than they save",
        "in words (figure 3.5a)",
        &[("displacement small message/lock", Less)],
    ),
    Claim {
        size: Some(3.0),
        threads: Some(10),
        ..claim(
            "gain",
            "as the section grows, messages let through up to three times as much",
            "up to 3 times (figure 3.5a)",
            &[("displacement best message/lock", More)],
        )
    },
    claim(
        "line",
        "by message the section's data is in the first cache; under the lock it comes from the second",
        "in words (figure 3.5a)",
        &[("displacement line message/lock", Less)],
    ),
    claim(
        "edge",
        "past the first cache throughput by message drops sharply",
        "past 1,024 lines of 64 bytes (figure 3.5a)",
        &[("displacement line beyond/within by message", More)],
    ),
    Claim {
        threads: Some(10),
        ..claim(
            "beyond",
            "there both modes are equal",
            "in words (figure 3.5a)",
            &[("displacement beyond message/lock", Alike)],
        )
    },
    Claim {
        size: Some(0.77),
        threads: Some(10),
        ..claim(
            "cycles",
            "messages take up to 23 % fewer cycles while the section fits; beyond it as many",
            "up to 23 % fewer; nearly equal (figure 3.5b)",
            &[
                ("displacement cycles best message/lock", Less),
                ("displacement cycles beyond message/lock", Alike),
            ],
        )
    },
    claim(
        "lock-falls",
        "under the lock throughput falls as more lines are modified",
        "in words, for 2, 4, 8 and 12 threads (figure 3.6a)",
        &[
            ("invalidation lock most/none 2", Less),
            ("invalidation lock most/none 4", Less),
            ("invalidation lock most/none 8", Less),
            ("invalidation lock most/none 12", Less),
        ],
    ),
    claim(
        "shape",
        "it falls along a straight line with 2 and 4 threads, and faster at first with 8 and 12",
        "\"linear\" and \"exponential\" (figure 3.6a)",
        &[
            ("invalidation lock straightness 2", Alike),
            ("invalidation lock straightness 4", Alike),
            ("invalidation lock curved/straight residuals 8", Less),
            ("invalidation lock curved/straight residuals 12", Less),
        ],
    ),
    claim(
        "thrashing",
        "with more than 32 modified lines 4 threads are faster than 8, and 8 than 12: internal thrashing",
        "in words (figure 3.6a)",
        &[
            ("invalidation lock 8/4", Less),
            ("invalidation lock 12/8", Less),
        ],
    ),
    claim(
        "message-flat",
        "by message the number of modified lines does not matter",
        "in words, for each number of threads (figure 3.6b)",
        &[
            ("invalidation message most/none 2", Alike),
            ("invalidation message most/none 4", Alike),
            ("invalidation message most/none 8", Alike),
            ("invalidation message most/none 12", Alike),
        ],
    ),
    claim(
        "message-rises",
        "by message throughput rises with threads until the server is busy, with 12",
        "near 100 % at 12 threads (figure 3.6b)",
        &[
            ("invalidation message 12/2", More),
            ("invalidation busy 12 of 100", Alike),
        ],
    ),
    claim(
        "lock-cycles",
        "under the lock cycles per iteration rise linearly with the lines modified",
        "in words (figure 3.6c)",
        &[
            ("invalidation lock cycles most/none 2", More),
            ("invalidation lock cycles most/none 4", More),
            ("invalidation lock cycles most/none 8", More),
            ("invalidation lock cycles most/none 12", More),
            ("invalidation lock cycles straightness 2", Alike),
            ("invalidation lock cycles straightness 4", Alike),
            ("invalidation lock cycles straightness 8", Alike),
            ("invalidation lock cycles straightness 12", Alike),
        ],
    ),
    claim(
        "message-cycles",
        "by message they are nearly constant, and with 12 threads messages are better in both measures",
        "in words (figures 3.6b and 3.6d)",
        &[
            ("invalidation message cycles most/none 2", Alike),
            ("invalidation message cycles most/none 4", Alike),
            ("invalidation message cycles most/none 8", Alike),
            ("invalidation message cycles most/none 12", Alike),
            ("invalidation most message/lock 12", More),
            ("invalidation most cycles message/lock 12", Less),
        ],
    ),
    claim(
        "size",
        "larger messages lower throughput: mildly while the server has time left, steeply when it has none",
        "5, 9 and 16 threads (figure 3.7a)",
        &[
            ("message-size low largest/smallest", Less),
            ("message-size middle largest/smallest", Less),
            ("message-size fall middle/low", Less),
            ("message-size high/middle", Less),
        ],
    ),
    claim(
        "busy",
        "the server becomes busier as messages grow, up to all of the time",
        "toward 100 % (figure 3.7b)",
        &[
            ("message-size busy low largest/smallest", More),
            ("message-size busy middle of 100", Alike),
        ],
    ),
];

/// All claims, judged.
pub(super) fn judged(evidence: &Evidence) -> Vec<Verdict> {
    CLAIMS.iter().map(|claim| judge(evidence, claim)).collect()
}

fn judge(evidence: &Evidence, claim: &Claim) -> Verdict {
    let known: Vec<(&str, Relation, &Figure)> = claim
        .terms
        .iter()
        .filter_map(|(name, wanted)| Some((*name, *wanted, evidence.figure(name)?)))
        .collect();
    let said: Vec<String> = known
        .iter()
        .map(|(name, _, figure)| format!("{name} {}", figure.words()))
        .collect();
    let (answer, remark) = answered(evidence, claim, &known);
    Verdict {
        id: claim.id,
        claim: claim.claim,
        published: Some(claim.published),
        answer,
        because: [said.join(", "), remark]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("; "),
        explained: evidence.explanations(claim.id).to_vec(),
    }
}

fn answered(
    evidence: &Evidence,
    claim: &Claim,
    known: &[(&str, Relation, &Figure)],
) -> (Answer, String) {
    let all = claim.terms.len();
    let hits = known
        .iter()
        .filter(|(_, wanted, figure)| figure.relation == *wanted);
    let hits = hits.count();
    let is_unclear = known
        .iter()
        .any(|(_, _, figure)| figure.relation == Relation::Unclear);
    if known.is_empty() {
        return (Answer::CannotTell, evidence.why_missing());
    }
    if hits < known.len()
        && let Some((wanted, there)) = claim.threads.zip(evidence.threads())
        && there < wanted
    {
        let remark = format!("with {there} threads, where the source had {wanted}");
        return (Answer::CannotTell, remark);
    }
    if hits == 0 && is_unclear {
        return (
            Answer::CannotTell,
            "the runs differ by more than that".into(),
        );
    }
    if hits == 0 {
        return (Answer::No, String::new());
    }
    if hits < known.len() {
        return (Answer::InPart, String::new());
    }
    if known.len() < all {
        return (
            Answer::InPart,
            format!("the rest {}", evidence.why_missing()),
        );
    }
    let first = known.first().and_then(|(_, _, figure)| figure.ratio);
    if let (Some(size), Some((value, ..))) = (claim.size, first)
        && !has_size(value, size)
    {
        return (Answer::InPart, "the direction and not the size".into());
    }
    (Answer::Yes, String::new())
}
