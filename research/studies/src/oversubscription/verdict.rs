//! The figures from which the claims are judged.

use std::collections::BTreeMap;

use hearth_published::oversubscription::share;
use hearth_stats::Ratio;

use super::figures::{bounded, of_room, slowdown};
use super::matrix::Partition;
use super::options::Experiment;
use super::plan::{SOURCE, foreign};
use super::policies::Policy;
use super::published;
use super::results::Results;
use crate::claims::{Claims, Evidence, Size};
use crate::judging::{Figure, Relation};

/// The source's claims, and those that we add.
pub static CLAIMS: Claims = Claims {
    table: include_str!("../../published/oversubscription/claims.md"),
    size: Size::Factor,
};

/// The published evidence.
#[must_use]
pub fn as_published() -> Evidence {
    Evidence::new(&CLAIMS, published::CORES).with(published::findings())
}

/// The measured evidence.
#[must_use]
pub fn measured(results: &Results) -> Evidence {
    let mut evidence = Evidence::new(&CLAIMS, results.cpus());
    of_impact(&mut evidence, results);
    of_artifact(&mut evidence, results);
    of_policies(&mut evidence, results);
    of_simulation(&mut evidence, results);
    evidence.explain(explained(results));
    evidence
}

/// A ratio in units of a bound, which it is above or below only if its whole interval is.
fn against(ratio: Ratio, bound: f64) -> Figure {
    let Ratio { value, low, high } = ratio;
    let relation = match () {
        () if low > bound => Relation::More,
        () if high < bound => Relation::Less,
        () => Relation::Unclear,
    };
    Figure {
        relation,
        ratio: Some((value / bound, low / bound, high / bound)),
    }
}

fn of_impact(evidence: &mut Evidence, results: &Results) {
    let (cpus, r) = (results.cpus(), foreign(results.cpus()));
    let (fit, over) = (cpus.saturating_sub(r).max(1), 2 * cpus);
    let runs = |threads, r, figure| {
        let way = Partition::Stealing.id();
        results.found(Experiment::Impact, (way, threads, r), figure)
    };
    let victim = |threads| runs(threads, r, "victim_seconds");
    evidence.put_runs("B over/fit", victim(over), victim(fit));
    let slower = victim(over)
        .zip(victim(fit))
        .and_then(|(over, fit)| hearth_stats::ratio(over, fit));
    evidence.put("B over/fit/1.3", slower.map(|ratio| against(ratio, 1.3)));
    let own = |threads| runs(threads, r, "seconds");
    evidence.put_runs("A over/fit", own(over), own(fit));
    evidence.put_runs("A over/N", own(over), own(cpus));
    let rates = runs(over, r, "rate").zip(runs(over, r, "total_rate"));
    if let Some((own, total)) = rates {
        let shares: Vec<f64> = own.iter().zip(total).map(|(own, all)| own / all).collect();
        let wanted = share(over as u32, r as u32);
        evidence.put("share/p at over", Figure::of_runs(&shares, &[wanted]));
    }
    let total = |threads| runs(threads, r, "total_rate");
    evidence.put_runs("total over/fit", total(over), total(fit));
    let alone = |threads| runs(threads, 0, "rate");
    evidence.put_runs("alone 2N/N", alone(2 * cpus), alone(cpus));
    if fit > 1 {
        evidence.put_runs("total fit/1", total(fit), total(1));
    }
    if cpus > 1 {
        evidence.put_runs("alone N/1", alone(cpus), alone(1));
    }
}

fn of_artifact(evidence: &mut Evidence, results: &Results) {
    let (cpus, r) = (results.cpus(), foreign(results.cpus()));
    let fit = cpus.saturating_sub(r).max(1);
    let runs = |partition: Partition, threads, r| {
        let case = (partition.id(), threads, r);
        results.found(Experiment::Artifact, case, "seconds")
    };
    let (fixed, stealing) = (Partition::Static, Partition::Stealing);
    for (name, partition, above, below, beside) in [
        ("idle static N+1/N", fixed, cpus + 1, cpus, 0),
        ("beside static jump/fit", fixed, fit + 1, fit, r),
        ("idle static 2N+1/2N", fixed, 2 * cpus + 1, 2 * cpus, 0),
        ("idle stealing N+1/N", stealing, cpus + 1, cpus, 0),
        ("beside stealing jump/fit", stealing, fit + 1, fit, r),
    ] {
        let side = |threads| runs(partition, threads, beside);
        evidence.put_runs(name, side(above), side(below));
    }
    for (name, threads) in [
        ("beside/idle static fit", fit),
        ("beside/idle static jump", fit + 1),
    ] {
        let side = |r| runs(fixed, threads, r);
        evidence.put_runs(name, side(r), side(0));
    }
    let all = bounded(results);
    let points: usize = all.iter().map(|one| one.points.len()).sum();
    if points > 0 {
        let within: usize = all.iter().map(|one| one.within()).sum();
        let figure = Figure::exact(within as f64 / points as f64 / 0.9);
        evidence.put("points within/90 %", figure);
    }
}

fn of_policies(evidence: &mut Evidence, results: &Results) {
    let r = foreign(results.cpus());
    let ratio = |policy| slowdown(results, policy, r);
    let figure = |Ratio { value, low, high }| Figure::between(value, low, high);
    for policy in [Policy::All, Policy::LoadAverage, Policy::HillClimbing] {
        let name = format!("B {}/alone", policy.id());
        evidence.put(&name, ratio(policy).map(figure));
    }
    for (policy, bound) in [
        (Policy::All, 1.3),
        (Policy::Measured, 1.05),
        (Policy::Calibrated, 1.05),
    ] {
        let name = format!("B {}/alone/{bound}", policy.id());
        evidence.put(&name, ratio(policy).map(|ratio| against(ratio, bound)));
    }
    let rooms = of_room(results, Policy::Calibrated);
    let figures = rooms
        .iter()
        .filter_map(|(_, of)| Figure::of_runs(of, &[1.0]));
    let by_ratio = |one: &Figure, other: &Figure| {
        let ratio = |figure: &Figure| figure.ratio.map_or(1.0, |(value, ..)| value);
        ratio(one).total_cmp(&ratio(other))
    };
    let most = figures.clone().max_by(by_ratio);
    evidence.put("worst calibrated/room", most);
    let least = figures.min_by(by_ratio);
    let turned = least.and_then(|figure| figure.ratio);
    let turned =
        turned.map(|(value, low, high)| Figure::between(1.0 / value, 1.0 / high, 1.0 / low));
    evidence.put("worst room/calibrated", turned);
    let runs = |policy: Policy, r, figure| {
        results.found(Experiment::Policies, (policy.id(), 0, r), figure)
    };
    for (name, r, figure) in [
        ("idle calibrated/all", 0, "rate"),
        ("total calibrated/all", r, "total_rate"),
    ] {
        let side = |policy| runs(policy, r, figure);
        evidence.put_runs(name, side(Policy::Calibrated), side(Policy::All));
    }
}

fn of_simulation(evidence: &mut Evidence, results: &Results) {
    let (cores, r) = SOURCE;
    let time = |partition: Partition, threads, r| {
        let case = (partition.id(), threads, r);
        let runs = results.found(Experiment::Simulated, case, "time")?;
        runs.first().copied()
    };
    let step = |partition, at: usize, r| {
        let (after, before) = (time(partition, at, r)?, time(partition, at - 1, r)?);
        Some(after / before)
    };
    let fixed = Partition::Static;
    let first = step(fixed, cores + 1, 0);
    for (name, ratio) in [
        ("simulated idle static 9/8", first),
        ("simulated beside static 5/4", step(fixed, cores - r + 1, r)),
        (
            "simulated second/first jump",
            step(fixed, 2 * cores + 1, 0)
                .zip(first)
                .map(|(second, first)| second / first),
        ),
        (
            "simulated idle stealing 9/8",
            step(Partition::Stealing, cores + 1, 0),
        ),
        (
            "simulated beside stealing 5/4",
            step(Partition::Stealing, cores - r + 1, r),
        ),
    ] {
        evidence.put(name, ratio.map(Figure::exact));
    }
}

/// Sentences for claims that this machine shows in its own way.
fn explained(results: &Results) -> BTreeMap<&'static str, Vec<String>> {
    let mut explained = BTreeMap::new();
    let cpus = results.cpus();
    if cpus < 4 {
        explained.insert(
            "jump-idle",
            vec![format!(
                "With {cpus} CPUs there may be nothing to see: a thread that moves to the CPU that gets free first ends \
                 after 3 / (2 (N + 1)) of the time with one, and with N threads it is 1 / N."
            )],
        );
        explained.insert(
            "jump-beside",
            vec![format!(
                "With {cpus} CPUs and a thread of B the bound at N − r + 1 = 2 threads is as high as the time with \
                 one, so that there is nothing to see but that A gets no faster; beside the times of an idle machine \
                 it shows."
            )],
        );
    }
    let settled = slowdown(results, Policy::LoadAverageSettled, foreign(cpus));
    if let Some(Ratio { value, low, high }) = settled {
        explained.insert(
            "load-average",
            vec![format!(
                "Were the average up to date, B would take {value:.2} [{low:.2}, {high:.2}] times as long as alone: \
                 Linux counts threads, and it is the delay that fails."
            )],
        );
    }
    explained
}
