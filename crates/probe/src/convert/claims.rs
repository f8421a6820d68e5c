//! Comparison of the claims of firmware, kernel and hypervisor with the measurements.

use hearth_machine::infer::{self, Evidence};
use hearth_machine::profile::{Claim, ClaimVerdict, Figure, NodeDistances};
use hearth_machine::topology::{OsThread, format_list};

use super::{Parts, samples_of};
use crate::curve::Curve;
use crate::staircase::{self, CacheVerdict, check_claim};

/// Origin of a topology's claims.
const DESCRIPTION: &str = "the topology's description";
/// Factor by which a measured node distance, with its interval, must differ from the firmware's to
/// contradict it: the same that separates two levels of latency.
const DISTANCE_NONE: f64 = 1.15;

impl Parts<'_> {
    /// All claims that measurement can test: sizes of caches, sharing, node distances.
    pub(super) fn claims(&self, distances: Option<&NodeDistances>) -> Vec<Claim> {
        let mut claims = self.cache_claims();
        claims.extend(self.group_claims());
        claims.extend(distances.into_iter().flat_map(distance_claims));
        claims
    }

    fn cache_claims(&self) -> Vec<Claim> {
        let Some(curve) = self.main_curve() else {
            return Vec::new();
        };
        let plain = Self::plain(curve);
        let claim = |(level, bytes): (u8, u64)| {
            let verdict = check_claim(bytes, &curve.levels, &plain);
            let (stored, ratio, found) = match verdict {
                CacheVerdict::Confirmed { size_ratio } => (
                    ClaimVerdict::Confirmed,
                    Some(size_ratio),
                    format!("the curve leaves a level at {:.2} of that size", size_ratio),
                ),
                CacheVerdict::Contradicted {
                    size_ratio,
                    slowdown,
                } => (
                    ClaimVerdict::Contradicted,
                    Some(size_ratio),
                    format!(
                        "the nearest level ends at {size_ratio:.3} of that size; loads within \
                         half of it are {slowdown:.1} times slower than in that level"
                    ),
                ),
                CacheVerdict::Undecided => (
                    ClaimVerdict::Undecided,
                    None,
                    format!(
                        "the curve ends at {} bytes, too early to tell",
                        plain.last().map_or(0, |point| point.bytes)
                    ),
                ),
            };
            let samples = samples_of(curve);
            Claim {
                subject: format!("size of L{level} data cache of core {}", curve.core),
                source: Some(DESCRIPTION.to_owned()),
                claimed: format!("{bytes} bytes"),
                found,
                verdict: stored,
                effect_ratio: ratio.map(|ratio| {
                    let (low, high) = bounds(curve, bytes as f64, ratio);
                    Figure::measured(ratio, low, high, samples.0, samples.1).inferred()
                }),
            }
        };
        self.claimed().into_iter().map(claim).collect()
    }

    /// Compares threads that are claimed to belong together with the latencies between them. The
    /// effect is the factor by which pairs that leave a group are slower.
    fn group_claims(&self) -> Vec<Claim> {
        let Some(structure) = &self.structure else {
            return Vec::new();
        };
        let (latencies, tree) = (&structure.latencies, &structure.tree);
        let report = infer::check(self.topology, latencies, tree);
        let measured = latencies.measured() as u64;
        let of_kind = |evidence: Evidence| Claim {
            subject: format!("threads of one {}", evidence.kind),
            source: Some(DESCRIPTION.to_owned()),
            claimed: groups_text(&evidence.groups),
            found: evidence.reason,
            verdict: match evidence.verdict {
                infer::GroupingVerdict::Confirmed => ClaimVerdict::Confirmed,
                infer::GroupingVerdict::Contradicted => ClaimVerdict::Contradicted,
                infer::GroupingVerdict::Undecided => ClaimVerdict::Undecided,
            },
            effect_ratio: evidence
                .effect
                .map(|e| Figure::measured(e.ratio, e.low, e.high, measured, 0).inferred()),
        };
        let mut claims: Vec<Claim> = report.evidence.into_iter().map(of_kind).collect();
        claims.extend(report.unclaimed.iter().map(|group| Claim {
            subject: format!("threads {}", threads_text(group)),
            source: Some(DESCRIPTION.to_owned()),
            claimed: "no group of their own".to_owned(),
            found: "they are nearer to each other than to the threads around them".to_owned(),
            verdict: ClaimVerdict::Contradicted,
            effect_ratio: structure.separation(group),
        }));
        claims
    }
}

fn threads_text(group: &[OsThread]) -> String {
    format_list(group.iter().map(|thread| thread.0))
}

fn groups_text(groups: &[Vec<OsThread>]) -> String {
    let texts: Vec<String> = groups.iter().map(|group| threads_text(group)).collect();
    texts.join(" | ")
}

/// A claim for each memory node: the firmware's distances from it. The effect is that of the
/// distance with the largest deviation.
fn distance_claims(distances: &NodeDistances) -> Vec<Claim> {
    let Some(firmware) = &distances.firmware else {
        return Vec::new();
    };
    let rows = distances.measured_s.iter().zip(firmware).enumerate();
    rows.filter_map(|(node, (measured, claimed))| {
        let known = measured.iter().flatten();
        let least = known.map(|f| f.value).fold(f64::INFINITY, f64::min);
        let cells: Vec<(Figure, f64)> = measured
            .iter()
            .zip(claimed)
            .filter_map(|(cell, &claimed)| Some((cell.as_ref()?.times(10.0 / least), claimed)))
            .map(|(scaled, claimed)| (scaled, f64::from(claimed)))
            .collect();
        let (worst, claimed_worst) = cells.iter().copied().max_by(|a, b| {
            let apart = |(scaled, claimed): &(Figure, f64)| (scaled.value / claimed).ln().abs();
            apart(a).total_cmp(&apart(b))
        })?;
        let differs = |(scaled, claimed): &(Figure, f64)| {
            scaled.low > claimed * DISTANCE_NONE || scaled.high * DISTANCE_NONE < *claimed
        };
        let texts: Vec<String> = cells
            .iter()
            .map(|(s, _)| format!("{:.1}", s.value))
            .collect();
        let said: Vec<String> = claimed.iter().map(u32::to_string).collect();
        Some(Claim {
            subject: format!("distances from node {node} (logical)"),
            source: Some("the firmware's table".to_owned()),
            claimed: said.join(" "),
            found: texts.join(" "),
            verdict: if cells.iter().any(differs) {
                ClaimVerdict::Contradicted
            } else {
                ClaimVerdict::Confirmed
            },
            effect_ratio: Some(worst.times(1.0 / claimed_worst).inferred()),
        })
    })
    .collect()
}

/// Interval of the ratio, from its capacity's.
fn bounds(curve: &Curve, claimed: f64, ratio: f64) -> (f64, f64) {
    let capacities = curve.levels.iter().filter_map(|level| level.capacity);
    let same = |c: &staircase::Capacity| (c.bytes / claimed - ratio).abs() < 1e-9 * ratio.abs();
    let mut found = capacities.filter(same);
    found
        .next()
        .map_or((ratio, ratio), |c| (c.low / claimed, c.high / claimed))
}
