//! Shares of CPUs as a fair scheduler gives them: a fluid model of Linux's, in which time can be
//! divided at will.
//!
//! Threads are in groups, and groups in groups. The members of a group share its time by their
//! weights; none gets more than it wants, and what it leaves goes to the others. A thread can use
//! one CPU at a time, and a group no more than its quota.

/// A member of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Party {
    /// Its weight beside the other members. A thread of usual niceness has 1024.
    pub(crate) weight: f64,
    /// Its content.
    pub(crate) kind: Kind,
}

/// Content of a party.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A thread, the CPU time that it wants, from 0 to 1, and whose it is.
    Thread(f64, Owner),
    /// A group, with its quota in CPUs; infinite without one.
    Group(Vec<Party>, f64),
}

/// Owner of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The program that asks.
    Own,
    /// Another one, and its place in a list.
    Other(usize),
}

/// CPU time that threads get.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shares {
    /// The asking program's threads together, in CPUs.
    pub(crate) own: f64,
    /// Others, by their places.
    pub(crate) others: Vec<(usize, f64)>,
}

impl Party {
    /// A thread that wants all it can get.
    pub(crate) fn greedy(weight: f64, owner: Owner) -> Party {
        let kind = Kind::Thread(1.0, owner);
        Party { weight, kind }
    }

    /// Most CPUs that it can use.
    pub(crate) fn demand(&self) -> f64 {
        match &self.kind {
            Kind::Thread(demand, _) => *demand,
            Kind::Group(members, quota) => {
                let sum: f64 = members.iter().map(Party::demand).sum();
                sum.min(*quota)
            }
        }
    }

    /// Divides CPUs among all threads.
    pub(crate) fn share(&self, cpus: f64) -> Shares {
        let mut shares = Shares::default();
        self.divide(cpus.min(self.demand()), &mut shares);
        shares
    }

    /// Divides CPUs, of which the party can use all.
    fn divide(&self, cpus: f64, shares: &mut Shares) {
        match &self.kind {
            Kind::Thread(_, Owner::Own) => shares.own += cpus,
            Kind::Thread(_, Owner::Other(place)) => shares.others.push((*place, cpus)),
            Kind::Group(members, _) => {
                for (member, part) in members.iter().zip(parts(members, cpus)) {
                    member.divide(part, shares);
                }
            }
        }
    }
}

/// Parts of CPUs for the members of a group. Those who want the least for their weight come first:
/// they get what they want, if their part is as large.
fn parts(members: &[Party], mut cpus: f64) -> Vec<f64> {
    let demands: Vec<f64> = members.iter().map(Party::demand).collect();
    let mut order: Vec<usize> = (0..members.len()).collect();
    let wish = |at: usize| demands[at] / members[at].weight.max(f64::MIN_POSITIVE);
    order.sort_by(|a, b| wish(*a).total_cmp(&wish(*b)));
    let mut weight: f64 = members.iter().map(|member| member.weight).sum();
    let mut parts = vec![0.0; members.len()];
    for at in order {
        let fair = match weight > 0.0 {
            true => cpus * members[at].weight / weight,
            false => 0.0,
        };
        parts[at] = demands[at].min(fair);
        cpus -= parts[at];
        weight -= members[at].weight;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(place: usize, demand: f64) -> Party {
        let kind = Kind::Thread(demand, Owner::Other(place));
        let weight = 1024.0;
        Party { weight, kind }
    }

    fn group(weight: f64, quota: f64, members: Vec<Party>) -> Party {
        let kind = Kind::Group(members, quota);
        Party { weight, kind }
    }

    fn own(threads: usize) -> Vec<Party> {
        vec![Party::greedy(1024.0, Owner::Own); threads]
    }

    fn all(members: Vec<Party>) -> Party {
        group(1024.0, f64::INFINITY, members)
    }

    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn idle_cpus_are_all_ours() {
        assert_near(all(own(4)).share(4.0).own, 4.0);
        assert_near(all(own(2)).share(4.0).own, 2.0);
        let beside = all([own(4), vec![other(0, 0.5)]].concat());
        assert_near(beside.share(4.0).own, 3.5);
    }

    /// A program's part among r others that are always ready: x / (r + x), as in the paper on
    /// oversubscription of 2012.
    #[test]
    fn more_threads_get_more() {
        for (x, r, cpus) in [(4, 8, 8.0), (8, 8, 8.0), (16, 4, 8.0), (3, 3, 2.0)] {
            let others = (0..r).map(|place| other(place, 1.0)).collect();
            let shares = all([own(x), others].concat()).share(cpus);
            assert_near(shares.own, cpus * x as f64 / (r + x) as f64);
        }
    }

    #[test]
    fn groups_share_by_weight_and_leave_the_rest() {
        let groups = |weight| {
            all(vec![
                group(weight, f64::INFINITY, own(4)),
                group(1024.0, f64::INFINITY, vec![other(0, 1.0), other(1, 1.0)]),
            ])
        };
        // The other group's two threads want two CPUs at most.
        assert_near(groups(1024.0).share(4.0).own, 2.0);
        assert_near(groups(1024.0).share(2.0).own, 1.0);
        assert_near(groups(3072.0).share(2.0).own, 1.5);
        assert_near(groups(512.0).share(6.0).own, 4.0);
    }

    #[test]
    fn quotas_hold_at_each_level() {
        let nested = all(vec![group(
            1024.0,
            1.5,
            vec![
                group(1024.0, 1.0, own(4)),
                group(1024.0, f64::INFINITY, vec![other(0, 1.0)]),
            ],
        )]);
        assert_near(nested.share(4.0).own, 0.75);
        let alone = all(vec![group(1024.0, 1.5, vec![group(1024.0, 1.0, own(4))])]);
        assert_near(alone.share(4.0).own, 1.0);
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_near(all(Vec::new()).share(4.0).own, 0.0);
        let weightless = all(vec![group(0.0, f64::INFINITY, own(1))]);
        assert_near(weightless.share(1.0).own, 0.0);
        assert_near(all(own(1)).share(0.0).own, 0.0);
    }
}
