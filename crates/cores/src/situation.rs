//! A program and those around it, as read from the system.

use std::collections::{BTreeMap, HashMap};

use hearth_sys::System;
use hearth_sys::control_groups::{Limits, Tree, USUAL_WEIGHT, chain};
use hearth_sys::procfs::{CpuTimes, parse_list, parse_stat};

use crate::fair::{Kind, Owner, Party, Shares};
use crate::load::{self, Busy, Session, Stat};

/// Use of CPUs that no visible thread explains, below which it does not count: the kernel's own.
const UNSEEN_MIN: f64 = 0.1;

/// Ticks of one CPU that say as much of it as those of all CPUs together. In the usual window of
/// 0.2 s a CPU has 20.
const STEAL_TICKS: f64 = 10.0;

/// Everything that decides about CPUs.
#[derive(Debug, Default)]
pub(crate) struct Situation {
    pub(crate) online: Vec<usize>,
    pub(crate) isolated: Vec<usize>,
    /// The CPUs of the control group, and the file that says so.
    pub(crate) set: Option<(Vec<usize>, String)>,
    /// The CPUs on which the program may run.
    pub(crate) allowed: Vec<usize>,
    pub(crate) is_measured: bool,
    /// Share of each CPU's time that the hypervisor takes while it is wanted.
    pub(crate) stolen: HashMap<usize, f64>,
    pub(crate) tree: Option<Tree>,
    /// The program's control group, and the limits of all groups that matter.
    pub(crate) group: String,
    pub(crate) limits: HashMap<String, Limits>,
    /// Group of the program's session, and the weight of its threads.
    session: Option<Session>,
    weight: f64,
    /// Others' threads.
    pub(crate) busy: Vec<Busy>,
    /// CPU time of programs that cannot be seen, and whether they want more.
    pub(crate) unseen: f64,
    unseen_wants_more: bool,
}

impl Situation {
    /// Everything that is written down.
    pub(crate) fn limits(system: &dyn System) -> Situation {
        let list = |path: &str| system.read(path).map(|text| parse_list(&text));
        let own = system.read("/proc/self/cgroup").unwrap_or_default();
        let tree = Tree::find(system, "cpu");
        let group = tree.as_ref().map_or("/".into(), |tree| tree.group(&own));
        let allowed = system.allowed().unwrap_or_default();
        let online = system.online().unwrap_or_default();
        let stat = system.read("/proc/self/stat").ok();
        let set = Tree::find(system, "cpuset").and_then(|sets| {
            let group = sets.group(&own);
            sets.cpus(system, &group)
        });
        let mut situation = Situation {
            online: if online.is_empty() {
                allowed.clone()
            } else {
                online
            },
            isolated: list("/sys/devices/system/cpu/isolated").unwrap_or_default(),
            set,
            allowed,
            group,
            tree,
            weight: stat
                .and_then(|text| Stat::of(&text))
                .map_or(USUAL_WEIGHT, |stat| stat.weight),
            ..Situation::default()
        };
        let group = situation.group.clone();
        situation.read_limits(system, &group);
        situation
    }

    /// The same with what happens while `pass` runs.
    pub(crate) fn measured(system: &dyn System, pass: &mut dyn FnMut()) -> Situation {
        let own = std::process::id();
        let cpus = || parse_stat(&system.read("/proc/stat").unwrap_or_default());
        // Reading all threads takes time itself, in the same order both times.
        let threads = || {
            let begin = system.now_ns();
            let times = load::times(system);
            (begin.midpoint(system.now_ns()), times)
        };
        let (begin, before) = threads();
        let cpus_before = cpus();
        pass();
        let cpus_after = cpus();
        let (end, after) = threads();
        let ns = end.saturating_sub(begin).max(1) as f64;
        let mut situation = Situation::limits(system);
        situation.is_measured = true;
        situation.session = load::session(system, own);
        situation.busy = load::busy(system, (&before, &after), ns, own);
        for group in situation.groups_of_others() {
            situation.read_limits(system, &group);
        }
        let own_used = load::used(&before, &after, own) / ns;
        situation.read_cpus(&cpus_before, &cpus_after, own_used);
        situation
    }

    fn groups_of_others(&self) -> Vec<String> {
        let group = |one: &Busy| Some(self.tree.as_ref()?.group(&one.cgroup));
        self.busy.iter().filter_map(group).collect()
    }

    fn read_limits(&mut self, system: &dyn System, group: &str) {
        let Some(tree) = &self.tree else { return };
        for group in chain(group) {
            if !self.limits.contains_key(group) {
                let limits = tree.limits(system, group);
                self.limits.insert(group.to_owned(), limits);
            }
        }
    }

    /// Reads what the hypervisor took, and CPU time that no visible program used.
    fn read_cpus(&mut self, before: &[CpuTimes], after: &[CpuTimes], own: f64) {
        let (mut used, mut idle) = (0.0, 0.0);
        // Ticks that were wanted of each CPU, and those of them that were stolen.
        let mut ticks: Vec<(usize, f64, f64)> = Vec::new();
        for now in after {
            let Some(then) = before.iter().find(|then| then.core == now.core) else {
                continue;
            };
            let all = now.total().saturating_sub(then.total());
            if all == 0 {
                continue;
            }
            let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / all as f64;
            let (resting, stolen) = (share(now.idle, then.idle), share(now.steal, then.steal));
            let all = all as f64;
            ticks.push((now.core, (1.0 - resting) * all, stolen * all));
            used += 1.0 - resting - stolen;
            idle += resting;
        }
        self.stolen = stolen(&ticks);
        let seen: f64 = self.busy.iter().map(|one| one.used).sum();
        let unseen = used - seen - own;
        if unseen >= UNSEEN_MIN {
            self.unseen = unseen;
            self.unseen_wants_more = idle < UNSEEN_MIN;
        }
    }

    /// CPU time of the allowed CPUs that the hypervisor leaves.
    pub(crate) fn capacity(&self) -> f64 {
        let left = |cpu: &usize| 1.0 - self.stolen.get(cpu).copied().unwrap_or(0.0);
        self.allowed.iter().map(left).sum()
    }

    /// The least quota around the program, in CPUs.
    pub(crate) fn quota(&self) -> f64 {
        let quotas = chain(&self.group).filter_map(|group| Some(self.limits.get(group)?.quota));
        quotas.fold(f64::INFINITY, f64::min)
    }

    /// Shares if the program has so many threads that want all they can get.
    pub(crate) fn share(&self, threads: usize) -> Shares {
        self.share_by(threads, &|limits| limits.weight)
    }

    /// The same if all groups had the same weight.
    pub(crate) fn share_of_equals(&self, threads: usize) -> Shares {
        self.share_by(threads, &|_| USUAL_WEIGHT)
    }

    /// The program gets the lesser of two shares: that of the allowed CPUs beside threads that can
    /// run nowhere else, and that of the whole machine beside all, for the kernel moves those that
    /// can run elsewhere.
    fn share_by(&self, threads: usize, weight: &dyn Fn(&Limits) -> f64) -> Shares {
        let own = threads as f64;
        let here = self.tree_of(threads, weight, &|place| place == Place::Here);
        let here = here.share(self.capacity());
        // Who must run elsewhere takes what it can of the other CPUs, and nothing of these.
        let outside = self.online.len().saturating_sub(self.allowed.len()) as f64;
        let machine = self.capacity() + outside - self.demand(Place::Elsewhere).min(outside);
        let all = self.tree_of(threads, weight, &|place| place != Place::Elsewhere);
        let all = all.share(machine);
        Shares {
            own: here.own.min(all.own).min(own).min(self.capacity()),
            others: least(here.others, all.others),
        }
    }

    /// CPU time of the allowed CPUs that others leave unused if the program is not there.
    pub(crate) fn idle(&self) -> f64 {
        let outside = self.online.len().saturating_sub(self.allowed.len()) as f64;
        let elsewhere = (outside - self.demand(Place::Elsewhere)).max(0.0);
        let free = self.demand(Place::Both) + self.unseen;
        let here = self.demand(Place::Here) + (free - elsewhere).max(0.0);
        (self.capacity() - here).max(0.0)
    }

    /// CPUs that threads of a place want together.
    fn demand(&self, place: Place) -> f64 {
        let there = self.busy.iter().filter(|one| self.place_of(one) == place);
        there.map(|one| one.demand).sum()
    }

    /// The groups with the program's threads, and those of others in some places.
    fn tree_of(
        &self,
        threads: usize,
        weight: &dyn Fn(&Limits) -> f64,
        is_there: &dyn Fn(Place) -> bool,
    ) -> Party {
        let mut root = Node::default();
        let limits = |group: &str| {
            let limits = self.limits.get(group);
            limits.map_or((USUAL_WEIGHT, f64::INFINITY), |limits| {
                (weight(limits), limits.quota)
            })
        };
        let own = root.at(&self.group, self.session.as_ref(), &limits);
        own.threads
            .extend(vec![Party::greedy(self.weight, Owner::Own); threads]);
        let others = self.busy.iter().enumerate();
        for (place, one) in others.filter(|(_, one)| is_there(self.place_of(one))) {
            let group = match &self.tree {
                Some(tree) => tree.group(&one.cgroup),
                None => "/".into(),
            };
            let node = root.at(&group, one.session.as_ref(), &limits);
            node.threads.push(Party {
                weight: one.weight,
                kind: Kind::Thread(one.demand, Owner::Other(place)),
            });
        }
        if is_there(Place::Both) {
            self.add_unseen(&mut root);
        }
        root.party()
    }

    /// Programs that cannot be seen are a group of their own: another container.
    fn add_unseen(&self, root: &mut Node) {
        let count = self.unseen.ceil();
        if count < 1.0 {
            return;
        }
        let demand = match self.unseen_wants_more {
            true => 1.0,
            false => self.unseen / count,
        };
        let node = root.child("unseen", (USUAL_WEIGHT, f64::INFINITY));
        for place in 0..count as usize {
            let owner = Owner::Other(self.busy.len() + place);
            node.threads.push(Party {
                weight: USUAL_WEIGHT,
                kind: Kind::Thread(demand, owner),
            });
        }
    }

    fn place_of(&self, one: &Busy) -> Place {
        let is_ours = |cpu: &&usize| self.allowed.contains(cpu);
        let here = one.cpus.iter().filter(is_ours).count();
        match here {
            // A list that cannot be read allows all.
            _ if one.cpus.is_empty() => Place::Both,
            0 => Place::Elsewhere,
            // Where all CPUs are allowed, nobody can go elsewhere.
            here if here == one.cpus.len() => Place::Here,
            _ => Place::Both,
        }
    }
}

/// The part of each CPU's time that the hypervisor takes while it is wanted, by ticks that were
/// wanted and those of them that were stolen. Of a CPU that few wanted little is seen; it is taken
/// to lose as much as all together.
fn stolen(ticks: &[(usize, f64, f64)]) -> HashMap<usize, f64> {
    let (wanted, stolen) = ticks.iter().fold((0.0, 0.0), |sum, (_, wanted, stolen)| {
        (sum.0 + wanted, sum.1 + stolen)
    });
    let overall = stolen / f64::max(wanted, STEAL_TICKS);
    let part = |(cpu, wanted, stolen): &(usize, f64, f64)| {
        let part = (stolen + STEAL_TICKS * overall) / (wanted + STEAL_TICKS);
        (*cpu, part.min(1.0))
    };
    ticks.iter().map(part).collect()
}

/// For each of others the lesser of its shares.
fn least(one: Vec<(usize, f64)>, other: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    let mut shares: BTreeMap<usize, f64> = one.into_iter().collect();
    for (place, cpus) in other {
        let share = shares.entry(place).or_insert(cpus);
        *share = share.min(cpus);
    }
    shares.into_iter().collect()
}

/// CPUs on which a thread may run, as seen from the allowed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Here,
    Elsewhere,
    Both,
}

/// A group with its groups and threads.
struct Node {
    weight: f64,
    quota: f64,
    groups: BTreeMap<String, Node>,
    threads: Vec<Party>,
}

impl Default for Node {
    fn default() -> Node {
        Node {
            weight: USUAL_WEIGHT,
            quota: f64::INFINITY,
            groups: BTreeMap::new(),
            threads: Vec::new(),
        }
    }
}

impl Node {
    fn child(&mut self, name: &str, (weight, quota): (f64, f64)) -> &mut Node {
        self.groups.entry(name.to_owned()).or_insert_with(|| Node {
            weight,
            quota,
            ..Node::default()
        })
    }

    /// The node of a control group; within the highest, that of a session.
    fn at(
        &mut self,
        group: &str,
        session: Option<&Session>,
        limits: &dyn Fn(&str) -> (f64, f64),
    ) -> &mut Node {
        let mut node = self;
        for group in chain(group) {
            node = node.child(group, limits(group));
        }
        match session {
            Some(session) if group == "/" => {
                node.child(&session.name, (session.weight, f64::INFINITY))
            }
            _ => node,
        }
    }

    fn party(self) -> Party {
        let groups = self.groups.into_values().map(Node::party);
        let members = groups.chain(self.threads).collect();
        Party {
            weight: self.weight,
            kind: Kind::Group(members, self.quota),
        }
    }
}
