//! The figures from which the claims are judged.

use std::collections::BTreeMap;

use hearth_stats::{Ratio, interval, median};

use super::collector::Way;
use super::options::Experiment;
use super::plan::Case;
use super::published;
use super::results::Results;
use super::shapes::Shape;
use crate::claims::{Claims, Evidence, Size};
use crate::judging::{Figure, Relation};

/// The source's claims, and those that we add. A cost of 9 % has its size between 6 and 12.
pub static CLAIMS: Claims = Claims {
    table: include_str!("../../published/collection/claims.md"),
    size: Size::Difference(0.03),
};

/// Ratios this near to 1 are alike. The costs that this study is about begin at 6 %.
const ALIKE: f64 = 0.05;

/// A ratio with its interval, as this study judges it.
#[must_use]
pub fn between(value: f64, low: f64, high: f64) -> Figure {
    let is_near = (1.0 - ALIKE..=1.0 + ALIKE).contains(&value);
    let relation = match () {
        () if is_near && low <= 1.0 + ALIKE && high >= 1.0 - ALIKE => Relation::Alike,
        () if low > 1.0 => Relation::More,
        () if high < 1.0 => Relation::Less,
        () => Relation::Unclear,
    };
    Figure {
        relation,
        ratio: Some((value, low, high)),
    }
}

fn figure(ratio: Ratio) -> Figure {
    between(ratio.value, ratio.low, ratio.high)
}

/// The published evidence.
#[must_use]
pub fn as_published() -> Evidence {
    Evidence::new(&CLAIMS, published::CORES).with(published::findings())
}

/// The source's tests.
const SOURCES: [Experiment; 3] = [Experiment::Trees, Experiment::Cycles, Experiment::Links];

/// The measured evidence.
#[must_use]
pub fn measured(results: &Results) -> Evidence {
    let mut evidence = Evidence::new(&CLAIMS, results.about.machine.threads);
    for experiment in Experiment::ALL {
        for (of, to) in [
            (Way::Combined, Way::Objects),
            (Way::AsObject, Way::CombinedNull),
        ] {
            let ratio = results.mean_ratio(&[experiment], of, to);
            let name = format!("{} {}/{}", experiment.id(), of.id(), to.id());
            evidence.put(&name, ratio.map(figure));
        }
    }
    if SOURCES.iter().all(|&it| !results.structures(it).is_empty()) {
        let ratio = results.mean_ratio(&SOURCES, Way::AsObject, Way::CombinedNull);
        evidence.put("as-object/combined-null", ratio.map(figure));
    }
    for (name, experiment) in [("cycles", Experiment::Cycles), ("links", Experiment::Links)] {
        let growth = growth(results, experiment);
        // Linear within a tenth, as everywhere.
        let figure = growth.map(|it| Figure::between(it.value, it.low, it.high));
        evidence.put(&format!("{name} cost an object, most/middle"), figure);
    }
    evidence.explain(explained(results));
    evidence
}

/// The structures of an experiment by objects, on as many processors each.
fn by_objects(results: &Results, experiment: Experiment) -> Vec<&Case> {
    let mut cases = results.structures(experiment);
    let most = cases.iter().map(|case| case.processors).max();
    cases.retain(|case| Some(case.processors) == most && case.shape != Shape::Trees);
    cases.sort_by_key(|case| case.size);
    cases
}

/// The further cost an object of processors as objects, in the largest structure to the one
/// before.
fn growth(results: &Results, experiment: Experiment) -> Option<Ratio> {
    let cases = by_objects(results, experiment);
    let [.., middle, most] = cases[..] else {
        return None;
    };
    let mut lists = Vec::new();
    for case in [most, middle] {
        for way in [Way::AsObject, Way::CombinedNull] {
            lists.push(results.times(case, way)?);
        }
    }
    interval(&lists, |drawn| {
        let cost = |of: usize, case: &Case| {
            let more = median(&drawn[of])? - median(&drawn[of + 1])?;
            (more > 0.0).then_some(more / case.objects())
        };
        Some(cost(0, most)? / cost(2, middle)?)
    })
}

/// Sentences that say how far single structures are from their mean.
fn explained(results: &Results) -> BTreeMap<&'static str, Vec<String>> {
    let mut explained = BTreeMap::new();
    for (claim, of, to) in [
        ("same", Way::Combined, Way::Objects),
        ("as-object", Way::AsObject, Way::CombinedNull),
    ] {
        let structures = SOURCES.iter().flat_map(|&it| results.structures(it));
        let mut ratios: Vec<f64> = structures
            .filter_map(|case| results.ratio(case, of, to))
            .map(|ratio| ratio.value)
            .collect();
        ratios.sort_by(f64::total_cmp);
        if let [least, .., most] = ratios[..] {
            let sentence = format!("Single structures are between {least:.2} and {most:.2}.");
            explained.insert(claim, vec![sentence]);
        }
    }
    explained
}
