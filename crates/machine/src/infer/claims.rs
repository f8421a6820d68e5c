//! Comparison of the firmware's tree with the measured groups.
//!
//! A claim that threads belong together says two things about latencies: threads of the group are
//! nearer to each other than to threads outside, and pairs inside it that no smaller claimed group
//! holds are alike. Both can be contradicted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::latencies::Latencies;
use super::tree::Tree;
use crate::topology::{OsThread, Thread, Topology, format_list};

/// If the whole interval of a claimed group's effect is below this ratio, the group does not exist.
/// Levels of a tree differ by 1.15 at least.
const RATIO_NONE: f64 = 1.15;
/// The same for threads of one core, which share the first cache: about 8 ns, against 16 ns and
/// more to the nearest other core (core-to-core-latency's published medians; anchors-rest, section
/// A).
const RATIO_NONE_CORE: f64 = 1.4;

/// Reason why threads belong together, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupingKind {
    /// One core.
    Core,
    /// One data or unified cache of this level.
    Cache(u8),
    /// One package.
    Package,
    /// One NUMA node.
    Node,
}

/// Verdict of measurement on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupingVerdict {
    /// The measured groups are the claimed ones.
    Confirmed,
    /// The two cannot both be true.
    Contradicted,
    /// Nothing to compare, or too uncertain.
    Undecided,
}

/// Ratio of latencies, farther to nearer, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The estimate.
    pub ratio: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Measured pairs on both sides.
    pub pairs: usize,
}

/// The verdict on all groups of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The kind.
    pub kind: GroupingKind,
    /// The claimed groups of at least two threads.
    pub groups: Vec<Vec<OsThread>>,
    /// The verdict: contradicted if one group is, confirmed if all are.
    pub verdict: GroupingVerdict,
    /// Effect size: how much slower pairs are that leave a group than pairs inside; for a group
    /// that falls apart, how much slower pairs between its parts are than pairs inside them.
    /// Nothing if there are no such pairs, or not enough for an interval.
    pub effect: Option<Ratio>,
    /// The contradicted groups.
    pub contradicted: Vec<Vec<OsThread>>,
    /// In a sentence, for people.
    pub reason: String,
}

/// Everything that latencies say about a claimed topology.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Evidence by kind. Kinds without a group of two measured threads are left out, since such a
    /// claim says nothing about pairs.
    pub evidence: Vec<Evidence>,
    /// Measured groups that no claim mentions.
    pub unclaimed: Vec<Vec<OsThread>>,
}

impl Report {
    /// Whether any claim is contradicted, or any measured group was not claimed.
    pub fn is_contradicted(&self) -> bool {
        let mut verdicts = self.evidence.iter().map(|evidence| evidence.verdict);
        !self.unclaimed.is_empty()
            || verdicts.any(|verdict| verdict == GroupingVerdict::Contradicted)
    }
}

impl fmt::Display for GroupingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupingKind::Core => write!(f, "core"),
            GroupingKind::Cache(level) => write!(f, "shared L{level}"),
            GroupingKind::Package => write!(f, "package"),
            GroupingKind::Node => write!(f, "node"),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} [{:.2}, {:.2}]", self.ratio, self.low, self.high)
    }
}

/// Compares a topology's claims with the groups found in latencies. The tree is the one
/// [inferred](Tree::infer) from the same latencies. Claims leave out threads that were not
/// measured; the comparison leaves out threads that the topology does not know.
pub fn check(claimed: &Topology, latencies: &Latencies, tree: &Tree) -> Report {
    let claims = claims(claimed, latencies);
    let known: BTreeSet<Group> = claims.values().flat_map(|groups| groups.clone()).collect();
    let whole: Group = latencies.threads().to_vec();
    let unclaimed: Vec<Group> = tree
        .groups()
        .into_iter()
        .filter(|group| *group != whole && !known.contains(group))
        .collect();
    let court = Court {
        latencies,
        measured: tree.groups(),
        known,
        unclaimed: &unclaimed,
        whole,
    };
    let mut blamed = BTreeSet::new();
    let evidence = claims
        .into_iter()
        .map(|(kind, groups)| court.judge(kind, groups, &mut blamed))
        .collect();
    Report {
        evidence,
        unclaimed,
    }
}

type Group = Vec<OsThread>;

/// The claimed groups of at least two measured threads, by kind, nearest kind first.
fn claims(claimed: &Topology, latencies: &Latencies) -> BTreeMap<GroupingKind, Vec<Group>> {
    let mut claims: BTreeMap<GroupingKind, Vec<Group>> = BTreeMap::new();
    let mut add = |kind, threads: &[Thread]| {
        let os = threads.iter().map(|thread| claimed.os_thread(*thread));
        let mut group: Group = os.filter(|os| latencies.position(*os).is_some()).collect();
        group.sort_unstable();
        if group.len() > 1 {
            claims.entry(kind).or_default().push(group);
        }
    };
    for core in claimed.cores() {
        add(GroupingKind::Core, &core.threads);
    }
    for cache in claimed.caches().iter().filter(|cache| cache.holds_data()) {
        add(GroupingKind::Cache(cache.level), &cache.threads);
    }
    for package in claimed.packages() {
        add(GroupingKind::Package, &package.threads);
    }
    for node in claimed.nodes() {
        add(GroupingKind::Node, &node.threads);
    }
    for groups in claims.values_mut() {
        groups.sort();
    }
    claims
}

struct Court<'a> {
    latencies: &'a Latencies,
    measured: BTreeSet<Group>,
    known: BTreeSet<Group>,
    unclaimed: &'a [Group],
    whole: Group,
}

/// Finding about one group.
enum Finding {
    AsClaimed,
    /// No thread is outside.
    Everything,
    /// These measured groups lie across it.
    Crossed(Vec<Group>),
    /// It falls apart into these measured groups, which no claim mentions.
    Apart(Vec<Group>),
    /// It is not among the measured groups, and nothing crosses it.
    Absent,
}

impl Court<'_> {
    /// `blamed` holds the groups that a nearer kind already answers for: of several claims about
    /// the same threads, the nearest says that they are alike.
    fn judge(
        &self,
        kind: GroupingKind,
        groups: Vec<Group>,
        blamed: &mut BTreeSet<Group>,
    ) -> Evidence {
        let findings: Vec<Finding> = groups
            .iter()
            .map(|group| self.finding(group, blamed.contains(group)))
            .collect();
        blamed.extend(groups.iter().cloned());
        let parts: Vec<Group> = findings
            .iter()
            .flat_map(|finding| match finding {
                Finding::Apart(parts) => parts.clone(),
                _ => Vec::new(),
            })
            .collect();
        let effect = if parts.is_empty() {
            self.effect(&groups, |group, i, j| self.is_outside(group, i, j))
        } else {
            self.effect(&parts, |part, i, j| self.is_beside(&groups, part, i, j))
        };
        let is_absent = |finding: &Finding| matches!(finding, Finding::Absent);
        let ratio_none = match kind {
            GroupingKind::Core => RATIO_NONE_CORE,
            _ => RATIO_NONE,
        };
        let is_none = effect.is_some_and(|effect| effect.high < ratio_none);
        let contradicted: Vec<Group> = findings
            .iter()
            .zip(&groups)
            .filter(|(finding, _)| match finding {
                Finding::Crossed(_) | Finding::Apart(_) => true,
                Finding::Absent => is_none && parts.is_empty(),
                Finding::AsClaimed | Finding::Everything => false,
            })
            .map(|(_, group)| group.clone())
            .collect();
        let all_as_claimed = findings
            .iter()
            .all(|finding| matches!(finding, Finding::AsClaimed));
        let is_nearer = effect.is_some_and(|effect| effect.low > 1.0);
        let (verdict, reason) = if !contradicted.is_empty() {
            let reason = self.contradiction(kind, &findings, &groups, effect);
            (GroupingVerdict::Contradicted, reason)
        } else if all_as_claimed && is_nearer {
            let effect = effect.map(|effect| effect.to_string()).unwrap_or_default();
            let reason = format!("threads of one {kind} are nearer, by a factor of {effect}");
            (GroupingVerdict::Confirmed, reason)
        } else if findings.iter().any(is_absent) {
            let reason =
                "the measured groups do not show it, and the interval is too wide to deny it";
            (GroupingVerdict::Undecided, reason.to_owned())
        } else if findings.iter().all(|f| matches!(f, Finding::Everything)) {
            let reason =
                "every measured thread is inside, so that there is nothing to compare with";
            (GroupingVerdict::Undecided, reason.to_owned())
        } else {
            let reason =
                "the groups are as claimed, but too few pairs were measured for an interval";
            (GroupingVerdict::Undecided, reason.to_owned())
        };
        Evidence {
            kind,
            groups,
            verdict,
            effect,
            contradicted,
            reason,
        }
    }

    fn finding(&self, group: &Group, is_blamed: bool) -> Finding {
        let crossing: Vec<Group> = self
            .measured
            .iter()
            .filter(|other| {
                overlaps(group, other) && !within(group, other) && !within(other, group)
            })
            .cloned()
            .collect();
        if !crossing.is_empty() {
            return Finding::Crossed(crossing);
        }
        let parts: Vec<Group> = self
            .unclaimed
            .iter()
            .filter(|part| within(part, group) && self.holder(part) == *group)
            .cloned()
            .collect();
        if !parts.is_empty() && !is_blamed {
            Finding::Apart(outermost(parts))
        } else if *group == self.whole {
            Finding::Everything
        } else if self.measured.contains(group) {
            Finding::AsClaimed
        } else {
            Finding::Absent
        }
    }

    /// The smallest claimed group around some threads, or all threads.
    fn holder(&self, part: &Group) -> Group {
        let around = self.known.iter().filter(|group| within(part, group));
        around
            .min_by_key(|group| group.len())
            .unwrap_or(&self.whole)
            .clone()
    }

    /// For a pair (i, j) with i in the group: whether j is outside, but within the smallest claimed
    /// group around this one.
    fn is_outside(&self, group: &Group, _: OsThread, j: OsThread) -> bool {
        let around = self
            .known
            .iter()
            .filter(|other| other.len() > group.len() && within(group, other));
        let around = around
            .min_by_key(|other| other.len())
            .unwrap_or(&self.whole);
        !holds(group, j) && holds(around, j)
    }

    /// Whether j is in the same claimed group as a part, and outside the part.
    fn is_beside(&self, groups: &[Group], part: &Group, _: OsThread, j: OsThread) -> bool {
        let mut around = groups.iter().filter(|group| within(part, group));
        !holds(part, j) && around.any(|group| holds(group, j))
    }

    /// Compares pairs inside the groups, but in no smaller claimed group, with pairs that the test
    /// selects.
    fn effect(
        &self,
        groups: &[Group],
        is_far: impl Fn(&Group, OsThread, OsThread) -> bool,
    ) -> Option<Ratio> {
        let mut near = Vec::new();
        let mut far = BTreeSet::new();
        for group in groups {
            let smaller: Vec<&Group> = self
                .known
                .iter()
                .chain(self.unclaimed)
                .filter(|other| other.len() < group.len() && within(other, group))
                .collect();
            let is_deeper = |i, j| {
                smaller
                    .iter()
                    .any(|other| holds(other, i) && holds(other, j))
            };
            for (at, i) in group.iter().enumerate() {
                let others = group[..at].iter().filter(|j| !is_deeper(*i, **j));
                near.extend(others.map(|j| (*i, *j)));
                let others = self.whole.iter().filter(|j| is_far(group, *i, **j));
                far.extend(others.map(|j| (*i.min(j), *i.max(j))));
            }
        }
        ratio(self.latencies, &near, &far.into_iter().collect::<Vec<_>>())
    }

    fn contradiction(
        &self,
        kind: GroupingKind,
        findings: &[Finding],
        groups: &[Group],
        effect: Option<Ratio>,
    ) -> String {
        let factor = effect.map_or(String::new(), |effect| format!(", by a factor of {effect}"));
        for (finding, group) in findings.iter().zip(groups) {
            let group = list(group);
            match finding {
                Finding::Crossed(across) => {
                    return format!(
                        "{kind} {group} is claimed, but CPUs {} belong together{factor}",
                        lists(across)
                    );
                }
                Finding::Apart(parts) => {
                    return format!(
                        "{kind} {group} falls apart: CPUs {} are nearer to each other than to the \
                         rest{factor}",
                        lists(parts)
                    );
                }
                _ => {}
            }
        }
        format!("threads of one {kind} are not nearer than others{factor}")
    }
}

fn list(group: &Group) -> String {
    format_list(group.iter().map(|os| os.0))
}

fn lists(groups: &[Group]) -> String {
    let shown: Vec<String> = groups.iter().take(4).map(list).collect();
    let more = groups.len().saturating_sub(shown.len());
    let rest = if more > 0 {
        format!(" (and {more} groups more)")
    } else {
        String::new()
    };
    format!("{}{rest}", shown.join(" and "))
}

fn holds(group: &Group, os: OsThread) -> bool {
    group.binary_search(&os).is_ok()
}

fn within(inner: &Group, outer: &Group) -> bool {
    inner.iter().all(|os| holds(outer, *os))
}

fn overlaps(a: &Group, b: &Group) -> bool {
    a.iter().any(|os| holds(b, *os))
}

fn outermost(groups: Vec<Group>) -> Vec<Group> {
    let inner = |group: &Group| {
        let mut others = groups.iter();
        others.any(|other| other.len() > group.len() && within(group, other))
    };
    groups
        .iter()
        .filter(|group| !inner(group))
        .cloned()
        .collect()
}

/// Ratio of the far pairs' geometric mean to that of the near ones. Pairs with a thread in common
/// are not independent, so the variance comes from leaving out one thread at a time (the
/// jackknife). That counts the peculiarity of a pair twice, once for each of its threads, and is
/// corrected once. The variance is never below that of independent pairs, or of the latencies' own
/// errors.
fn ratio(
    latencies: &Latencies,
    near: &[(OsThread, OsThread)],
    far: &[(OsThread, OsThread)],
) -> Option<Ratio> {
    let (near, far) = (Sample::new(latencies, near), Sample::new(latencies, far));
    let difference = far.mean(None)? - near.mean(None)?;
    let mut threads: BTreeSet<OsThread> = near.touched.keys().copied().collect();
    threads.extend(far.touched.keys());
    let left_out: Option<Vec<f64>> = threads
        .iter()
        .map(|os| Some(far.mean(Some(*os))? - near.mean(Some(*os))?))
        .collect();
    let measured = near.error.powi(2) + far.error.powi(2);
    let (variance, freedom) = match left_out {
        Some(values) if values.len() > 2 => {
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let by_thread = squares * (count - 1.0) / count;
            let by_pair = near.variance_of_mean() + far.variance_of_mean();
            let variance = (by_thread - by_pair).max(by_pair).max(measured);
            (variance, values.len() - 1)
        }
        // One thread carries a whole side: only the figures' own errors are left.
        _ => (measured, usize::MAX),
    };
    if variance <= 0.0 {
        return None;
    }
    let margin = student(freedom) * variance.sqrt();
    Some(Ratio {
        ratio: difference.exp(),
        low: (difference - margin).exp(),
        high: (difference + margin).exp(),
        pairs: (near.count + far.count) as usize,
    })
}

/// The log latencies of some pairs, and each thread's part of their sum.
struct Sample {
    sum: f64,
    squares: f64,
    count: f64,
    /// Standard error of the mean due to the figures' own errors.
    error: f64,
    touched: BTreeMap<OsThread, (f64, f64)>,
}

impl Sample {
    fn new(latencies: &Latencies, pairs: &[(OsThread, OsThread)]) -> Sample {
        let mut sample = Sample {
            sum: 0.0,
            squares: 0.0,
            count: 0.0,
            error: 0.0,
            touched: BTreeMap::new(),
        };
        let mut variance = 0.0;
        for (a, b) in pairs {
            let Some(latency) = latencies.get(*a, *b) else {
                continue;
            };
            let log = latency.ns.ln();
            sample.sum += log;
            sample.squares += log * log;
            sample.count += 1.0;
            variance += (latency.error_ns / latency.ns).powi(2);
            for os in [a, b] {
                let touched = sample.touched.entry(*os).or_default();
                touched.0 += log;
                touched.1 += 1.0;
            }
        }
        sample.error = variance.sqrt() / sample.count.max(1.0);
        sample
    }

    /// The variance if the pairs were independent.
    fn variance_of_mean(&self) -> f64 {
        if self.count < 2.0 {
            return 0.0;
        }
        let residue = (self.squares - self.sum * self.sum / self.count).max(0.0);
        residue / (self.count - 1.0) / self.count
    }

    fn mean(&self, without: Option<OsThread>) -> Option<f64> {
        let none = (0.0, 0.0);
        let (sum, count) = without.map_or(none, |os| *self.touched.get(&os).unwrap_or(&none));
        let left = self.count - count;
        (left > 0.0).then(|| (self.sum - sum) / left)
    }
}

/// The 97.5 % quantile of Student's distribution.
fn student(freedom: usize) -> f64 {
    const SMALL: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=10 => SMALL[freedom - 1],
        // 1.96 and the first term of the expansion for many degrees; 0.1 % off at 11.
        _ => 1.96 + 2.4 / freedom as f64 + 3.0 / (freedom as f64).powi(2),
    }
}
