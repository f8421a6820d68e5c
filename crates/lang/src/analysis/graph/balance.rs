//! Rates at which components pass, computed from the sends and receives of one pass of each.
//!
//! Components meet in *hubs*: half-channels that are peers, directly or through others. What is
//! sent into a hub is received from it:
//!
//! ```text
//!   Σ rate(i) · sends(i, hub)  =  Σ rate(j) · receives(j, hub)      for each hub
//!   rate(i) ≤ speed(i)                                              for each component
//! ```
//!
//! A hub with one sender and one receiver fixes the ratio of their rates. Components so tied form a
//! *cluster*, with one unknown; a union-find that carries ratios finds them in one go. In other
//! hubs several share: if more could be sent than is received, the senders are held back, each to a
//! level that is the same for all that could do more, since waiting partners are served in turn;
//! and the other way round. That is done hub by hub, against what the other hubs allow, until
//! nothing changes.
//!
//! A system without a solution but zero belongs to a program that ends or deadlocks. Ties that
//! contradict earlier ones are left out and reported: of those hubs the slower side counts.

/// A component's part in a hub.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) component: usize,
    /// Messages in a pass; more than 0.
    pub(super) messages: f64,
    /// True if it follows from constants alone.
    pub(super) is_exact: bool,
}

/// Senders and receivers that meet. Neither side is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Hub {
    pub(super) senders: Vec<Part>,
    pub(super) receivers: Vec<Part>,
}

#[derive(Debug, Default)]
pub(super) struct Solution {
    /// Passes a second of each component.
    pub(super) rates: Vec<f64>,
    /// The hubs that do not balance.
    pub(super) unbalanced: Vec<usize>,
}

/// Ratios that differ by less are equal.
const TOLERANCE: f64 = 1e-6;
/// Rounds over all hubs. Each carries a limit at least one hub further.
const ROUNDS_MAX: usize = 64;
/// A change by less ends the rounds.
const SETTLED: f64 = 1e-4;
/// Clusters in more hubs learn of a new limit only at the end of a round, to stay linear.
const HUBS_OF_BUSY_CLUSTER: usize = 64;

/// `speeds`: the most passes a second that each component could do; infinite if nothing holds it.
pub(super) fn solve(speeds: &[f64], hubs: &[Hub]) -> Solution {
    let mut ties = Ties::new(speeds.len());
    let mut unbalanced = ties.tie_all(hubs);
    let mut sharing = Sharing::new(speeds, hubs, &mut ties);
    unbalanced.extend(sharing.settle());
    unbalanced.sort_unstable();
    unbalanced.dedup();
    let rates = (0..speeds.len()).map(|component| {
        let (cluster, gain) = ties.find(component);
        sharing.rate(sharing.number[cluster]) * gain
    });
    Solution {
        rates: rates.collect(),
        unbalanced,
    }
}

/// A union-find whose links carry ratios: `rate(x) = gain(x) · rate(root)`.
struct Ties {
    parent: Vec<usize>,
    gain: Vec<f64>,
    size: Vec<u32>,
}

impl Ties {
    fn new(count: usize) -> Ties {
        Ties {
            parent: (0..count).collect(),
            gain: vec![1.0; count],
            size: vec![1; count],
        }
    }

    fn find(&mut self, component: usize) -> (usize, f64) {
        let mut path = Vec::new();
        let mut root = component;
        while self.parent[root] != root {
            path.push(root);
            root = self.parent[root];
        }
        // From the root outwards, so that each gain is known when the next needs it.
        let mut gain = 1.0;
        for &node in path.iter().rev() {
            gain *= self.gain[node];
            self.gain[node] = gain;
            self.parent[node] = root;
        }
        (root, gain)
    }

    /// Ties what hubs of two fix, exact ones first; yields those that contradict.
    fn tie_all(&mut self, hubs: &[Hub]) -> Vec<usize> {
        let mut wrong = Vec::new();
        for wants_exact in [true, false] {
            for (index, hub) in hubs.iter().enumerate() {
                let ([from], [to]) = (&hub.senders[..], &hub.receivers[..]) else {
                    continue;
                };
                let is_exact = from.is_exact && to.is_exact;
                if is_exact == wants_exact && !self.tie(from, to) && is_exact {
                    wrong.push(index);
                }
            }
        }
        wrong
    }

    /// False if it contradicts what is tied already.
    fn tie(&mut self, from: &Part, to: &Part) -> bool {
        let ratio = from.messages / to.messages;
        let (a, gain_a) = self.find(from.component);
        let (b, gain_b) = self.find(to.component);
        // rate(to) = ratio · rate(from), hence rate(b) = ratio · gain_a / gain_b · rate(a).
        let between = ratio * gain_a / gain_b;
        if a == b {
            return (between - 1.0).abs() < TOLERANCE;
        }
        if self.size[a] >= self.size[b] {
            self.parent[b] = a;
            self.gain[b] = between;
            self.size[a] += self.size[b];
        } else {
            self.parent[a] = b;
            self.gain[a] = 1.0 / between;
            self.size[b] += self.size[a];
        }
        true
    }
}

/// One cluster's part on one side of a hub.
struct Share {
    cluster: usize,
    /// Messages for each pass of the cluster's root.
    messages: f64,
    /// The most passes of the root that this hub allows.
    limit: f64,
}

/// The hubs in which several share.
struct Sharing {
    /// By component that is a root: its cluster's number.
    number: Vec<usize>,
    /// The most passes of the root, by the speeds of the members.
    speeds: Vec<f64>,
    shares: Vec<Share>,
    /// By hub of this kind: its number among all, and the ranges of its senders and receivers.
    hubs: Vec<(usize, std::ops::Range<usize>, std::ops::Range<usize>)>,
    /// By cluster: its shares.
    of_cluster: Vec<Vec<usize>>,
    /// By cluster: the lowest limit, whose it is, and the second lowest.
    lowest: Vec<(f64, usize, f64)>,
}

impl Sharing {
    fn new(speeds: &[f64], hubs: &[Hub], ties: &mut Ties) -> Sharing {
        let mut sharing = Sharing {
            number: vec![usize::MAX; speeds.len()],
            speeds: Vec::new(),
            shares: Vec::new(),
            hubs: Vec::new(),
            of_cluster: Vec::new(),
            lowest: Vec::new(),
        };
        for (component, speed) in speeds.iter().enumerate() {
            let (root, gain) = ties.find(component);
            if sharing.number[root] == usize::MAX {
                sharing.number[root] = sharing.speeds.len();
                sharing.speeds.push(f64::INFINITY);
            }
            let most = &mut sharing.speeds[sharing.number[root]];
            *most = most.min(speed / gain);
        }
        sharing.of_cluster = vec![Vec::new(); sharing.speeds.len()];
        sharing.lowest = vec![(f64::INFINITY, usize::MAX, f64::INFINITY); sharing.speeds.len()];
        for (index, hub) in hubs.iter().enumerate() {
            if hub.senders.len() > 1 || hub.receivers.len() > 1 {
                let senders = sharing.add(&hub.senders, ties);
                let receivers = sharing.add(&hub.receivers, ties);
                sharing.hubs.push((index, senders, receivers));
            }
        }
        sharing
    }

    fn add(&mut self, parts: &[Part], ties: &mut Ties) -> std::ops::Range<usize> {
        let first = self.shares.len();
        for part in parts {
            let (root, gain) = ties.find(part.component);
            let cluster = self.number[root];
            self.of_cluster[cluster].push(self.shares.len());
            self.shares.push(Share {
                cluster,
                messages: part.messages * gain,
                limit: f64::INFINITY,
            });
        }
        first..self.shares.len()
    }

    fn rate(&self, cluster: usize) -> f64 {
        let rate = self.speeds[cluster].min(self.lowest[cluster].0);
        // Nothing holds it, so nothing is known: the main sequence of a program without messages.
        if rate.is_finite() { rate } else { 0.0 }
    }

    /// The rate of a cluster if this share's hub did not limit it.
    fn without(&self, share: usize) -> f64 {
        let cluster = self.shares[share].cluster;
        let (lowest, whose, second) = self.lowest[cluster];
        let others = if whose == share { second } else { lowest };
        self.speeds[cluster].min(others)
    }

    /// Settles what can be; yields the hubs that had to be left out, since with them the rates fall
    /// for ever.
    fn settle(&mut self) -> Vec<usize> {
        let mut left_out = Vec::new();
        loop {
            let moving = self.go_round();
            if moving.is_empty() {
                return left_out;
            }
            self.hubs
                .retain(|(index, ..)| moving.binary_search(index).is_err());
            left_out.extend(moving);
            for share in &mut self.shares {
                share.limit = f64::INFINITY;
            }
            for cluster in 0..self.of_cluster.len() {
                self.find_lowest(cluster);
            }
        }
    }

    /// Hub by hub until nothing changes; yields the hubs that keep changing.
    fn go_round(&mut self) -> Vec<usize> {
        let mut moving = Vec::new();
        for round in 0..ROUNDS_MAX {
            moving.clear();
            let count = self.hubs.len();
            for step in 0..count {
                // There and back, so that limits travel along rows of hubs in either direction.
                let hub = if round % 2 == 0 {
                    step
                } else {
                    count - 1 - step
                };
                let (index, senders, receivers) = self.hubs[hub].clone();
                if self.share_out(senders, receivers) {
                    moving.push(index);
                }
            }
            for cluster in 0..self.of_cluster.len() {
                self.find_lowest(cluster);
            }
            if moving.is_empty() {
                break;
            }
        }
        moving.sort_unstable();
        moving
    }

    /// Holds back the side of a hub that could do more. Did a limit change?
    fn share_out(
        &mut self,
        senders: std::ops::Range<usize>,
        receivers: std::ops::Range<usize>,
    ) -> bool {
        let could = |sharing: &Sharing, side: &std::ops::Range<usize>| -> Vec<f64> {
            let each = side.clone();
            each.map(|share| sharing.without(share) * sharing.shares[share].messages)
                .collect()
        };
        let (supply, demand) = (could(self, &senders), could(self, &receivers));
        let (all_supply, all_demand) = (supply.iter().sum::<f64>(), demand.iter().sum::<f64>());
        let free = f64::INFINITY;
        let level_of_senders = match all_supply > all_demand {
            true => level(&supply, all_demand),
            false => free,
        };
        let level_of_receivers = match all_demand > all_supply {
            true => level(&demand, all_supply),
            false => free,
        };
        let a = self.limit_side(senders, level_of_senders);
        let b = self.limit_side(receivers, level_of_receivers);
        a || b
    }

    fn limit_side(&mut self, side: std::ops::Range<usize>, level: f64) -> bool {
        let mut is_changed = false;
        for share in side {
            let limit = level / self.shares[share].messages;
            let old = std::mem::replace(&mut self.shares[share].limit, limit);
            let is_same = old == limit || (old - limit).abs() <= SETTLED * limit;
            is_changed |= !is_same;
            let cluster = self.shares[share].cluster;
            if self.of_cluster[cluster].len() <= HUBS_OF_BUSY_CLUSTER {
                self.find_lowest(cluster);
            }
        }
        is_changed
    }

    fn find_lowest(&mut self, cluster: usize) {
        let mut found = (f64::INFINITY, usize::MAX, f64::INFINITY);
        for &share in &self.of_cluster[cluster] {
            let limit = self.shares[share].limit;
            if limit < found.0 {
                found = (limit, share, found.0);
            } else {
                found.2 = found.2.min(limit);
            }
        }
        self.lowest[cluster] = found;
    }
}

/// The level at which all together reach a total: those that could do more do as much as the level,
/// others what they can.
pub(super) fn level(could: &[f64], total: f64) -> f64 {
    let mut sorted = could.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut left = total;
    for (index, &most) in sorted.iter().enumerate() {
        let even = left / (sorted.len() - index) as f64;
        if most >= even {
            return even;
        }
        left -= most;
    }
    f64::INFINITY
}

#[cfg(test)]
#[path = "balance_tests.rs"]
mod tests;
