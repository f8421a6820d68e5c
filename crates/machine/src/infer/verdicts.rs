//! Verdicts on groups as a profile keeps them.

use super::claims::{Evidence, GroupingKind, GroupingVerdict, Ratio, Report};
use crate::profile::{Claim, ClaimVerdict, Figure};
use crate::topology::{OsThread, format_list};

/// Groups named in a sentence; the others are counted.
const NAMED_MAX: usize = 4;

impl Report {
    /// One claim for each kind of group, and one for measured groups that no claim mentions, unless
    /// a contradicted claim accounts for them. `source` names the origin of the claims.
    #[must_use]
    pub fn claims(&self, source: Option<&str>) -> Vec<Claim> {
        let mut claims: Vec<Claim> = self
            .evidence
            .iter()
            .map(|evidence| claim(evidence, source))
            .collect();
        let mut verdicts = self.evidence.iter().map(|evidence| evidence.verdict);
        let is_accounted_for = verdicts.any(|verdict| verdict == GroupingVerdict::Contradicted);
        if !self.unclaimed.is_empty() && !is_accounted_for {
            claims.push(Claim {
                subject: "groups without a claim".to_owned(),
                source: source.map(str::to_owned),
                claimed: "none".to_owned(),
                found: format!(
                    "{} are nearer to each other than to the rest",
                    named(&self.unclaimed)
                ),
                verdict: ClaimVerdict::Contradicted,
                effect_ratio: None,
            });
        }
        claims
    }
}

fn claim(evidence: &Evidence, source: Option<&str>) -> Claim {
    let kind = evidence.kind;
    Claim {
        subject: match kind {
            GroupingKind::Core => "threads of one core".to_owned(),
            GroupingKind::Cache(level) => format!("sharing of L{level}"),
            GroupingKind::Package => "threads of one package".to_owned(),
            GroupingKind::Node => "threads of one node".to_owned(),
        },
        source: source.map(str::to_owned),
        claimed: match evidence.groups.len() {
            1 => format!("one {kind}: {}", named(&evidence.groups)),
            _ => format!("one {kind} each: {}", named(&evidence.groups)),
        },
        found: evidence.reason.clone(),
        verdict: match evidence.verdict {
            GroupingVerdict::Confirmed => ClaimVerdict::Confirmed,
            GroupingVerdict::Contradicted => ClaimVerdict::Contradicted,
            GroupingVerdict::Undecided => ClaimVerdict::Undecided,
        },
        effect_ratio: evidence.effect.map(figure),
    }
}

fn figure(ratio: Ratio) -> Figure {
    let samples = u64::try_from(ratio.pairs).unwrap_or(u64::MAX);
    Figure::measured(ratio.ratio, ratio.low, ratio.high, samples, 0).inferred()
}

/// `CPUs 0-1 and 2-3`.
fn named(groups: &[Vec<OsThread>]) -> String {
    let mut lists: Vec<String> = groups
        .iter()
        .take(NAMED_MAX)
        .map(|group| format_list(group.iter().map(|os| os.0)))
        .collect();
    let more = groups.len() - lists.len();
    if more > 0 {
        lists.push(format!("{more} groups more"));
    }
    format!("CPUs {}", lists.join(" and "))
}
