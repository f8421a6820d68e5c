//! Verdict on whether placement matters on this machine.

use std::fmt;

use crate::cost::Breakdown;
use crate::cost::problem::Problem;
use crate::graph::Graph;
use crate::slots::Message;
use crate::talk::Placed;

/// Differences below this are noise on any machine.
const NOISE: f64 = 0.02;

/// Verdict whether placement matters, from the cost of reasonable placements: the plan's and the
/// other policies'.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacementVerdict {
    /// Extra cost of the worst of them over the best, as a share of the best.
    pub spread: f64,
    /// Largest upward error of the best one's prediction, and noise, as a share.
    pub uncertainty: f64,
    /// Extra cost of the plan over the best of them, as a share.
    pub behind: f64,
}

impl PlacementVerdict {
    pub(super) fn of(
        graph: &Graph,
        problem: &Problem,
        placed: &Placed,
        rivals: &[(String, Breakdown)],
    ) -> Self {
        let costs = || rivals.iter().map(|(_, cost)| cost).chain([&placed.cost]);
        let totals = || costs().map(|cost| cost.total_ns);
        let (best, worst) = (
            totals().fold(f64::INFINITY, f64::min),
            totals().fold(0.0, f64::max),
        );
        let over = |ns: f64| if best > 0.0 { ns / best - 1.0 } else { 0.0 };
        // Messages are uncertain, by their share of the best, as in the model's own advice.
        let cheapest = costs().min_by(|a, b| a.total_ns.total_cmp(&b.total_ns));
        let doubt = doubt(graph, problem) * cheapest.map_or(0.0, share);
        Self {
            spread: over(worst),
            uncertainty: NOISE + doubt,
            behind: over(placed.cost.total_ns),
        }
    }

    /// Whether the spread exceeds the uncertainty.
    #[must_use]
    pub fn matters(&self) -> bool {
        self.spread > self.uncertainty
    }
}

impl fmt::Display for PlacementVerdict {
    /// One sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| (100.0 * share).round();
        let (spread, uncertainty) = (percent(self.spread), percent(self.uncertainty));
        if self.matters() {
            write!(
                f,
                "placement matters here: the worst policy costs {spread} % more than the best \
                 (modelled, uncertain by {uncertainty} %)"
            )
        } else {
            write!(
                f,
                "no placement matters here: policies differ by {spread} %, and the prediction is \
                 uncertain by {uncertainty} %"
            )
        }
    }
}

/// Share of messages in a placement's J.
fn share(cost: &Breakdown) -> f64 {
    let most = cost.loads.iter().map(|load| load.communication_ns);
    let most = most.fold(0.0, f64::max).min(cost.bottleneck_ns);
    let messages = most + cost.communication_ns / cost.divisor;
    if cost.total_ns > 0.0 {
        (messages / cost.total_ns).min(1.0)
    } else {
        0.0
    }
}

/// Largest factor by which messages may cost more than predicted, each by its part of the whole;
/// over the farthest class.
fn doubt(graph: &Graph, problem: &Problem) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (edge, connection) in problem.edges.iter().zip(&graph.connections) {
        let message = Message {
            bytes: connection.bytes.value,
            carrier: connection.carrier.unwrap_or(problem.options.carrier),
            kind: connection.kind,
        };
        let class = problem.classes - 1;
        let weight = problem.edge_ns(edge, class);
        let factor = problem.machine.messages().uncertainty_in(class, &message);
        sum += weight * (factor - 1.0).max(0.0);
        weights += weight;
    }
    if weights > 0.0 { sum / weights } else { 0.0 }
}
