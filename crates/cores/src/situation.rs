//! A program and those around it, as read from the system.

use std::collections::{BTreeMap, HashMap};

use hearth_sys::System;
use hearth_sys::control_groups::{Limits, Tree, USUAL_WEIGHT, chain};
use hearth_sys::procfs::{CpuTimes, parse_list, parse_stat};

use crate::fair::{Kind, Owner, Party, Shares};
use crate::load::{self, Busy, Session, Stat};

/// Use of CPUs that no visible thread explains, below which it does not count: the kernel's own.
const UNSEEN_MIN: f64 = 0.1;

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
            // Only time that somebody wants is stolen.
            let wanted = (1.0 - resting).max(f64::MIN_POSITIVE);
            self.stolen.insert(now.core, (stolen / wanted).min(1.0));
            used += 1.0 - resting - stolen;
            idle += resting;
        }
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

    /// Shares of the allowed CPUs if the program has so many threads that want all they can get.
    pub(crate) fn share(&self, threads: usize) -> Shares {
        self.share_by(threads, |limits| limits.weight)
    }

    /// The same if all groups had the same weight.
    pub(crate) fn share_of_equals(&self, threads: usize) -> Shares {
        self.share_by(threads, |_| USUAL_WEIGHT)
    }

    fn share_by(&self, threads: usize, weight: impl Fn(&Limits) -> f64) -> Shares {
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
        let stays = self.part_that_stays();
        for (place, one) in self.busy.iter().enumerate() {
            let demand = match self.place_of(one) {
                Place::Elsewhere => continue,
                Place::Here => one.demand,
                Place::Both => one.demand * stays,
            };
            let group = match &self.tree {
                Some(tree) => tree.group(&one.cgroup),
                None => "/".into(),
            };
            let node = root.at(&group, one.session.as_ref(), &limits);
            node.threads.push(Party {
                weight: one.weight,
                kind: Kind::Thread(demand, Owner::Other(place)),
            });
        }
        self.add_unseen(&mut root, stays);
        root.party().share(self.capacity())
    }

    /// Programs that cannot be seen are a group of their own: another container.
    fn add_unseen(&self, root: &mut Node, stays: f64) {
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
            let kind = Kind::Thread(demand * stays, owner);
            node.threads.push(Party {
                weight: USUAL_WEIGHT,
                kind,
            });
        }
    }

    fn place_of(&self, one: &Busy) -> Place {
        let here = one
            .cpus
            .iter()
            .filter(|cpu| self.allowed.contains(cpu))
            .count();
        match here {
            // A list that cannot be read allows all.
            _ if one.cpus.is_empty() => Place::Both,
            0 => Place::Elsewhere,
            here if here == one.cpus.len() => Place::Here,
            _ => Place::Both,
        }
    }

    /// The part of demand for all CPUs that falls on the allowed ones: the others are used first,
    /// for the kernel balances.
    fn part_that_stays(&self) -> f64 {
        let outside = self.online.len().saturating_sub(self.allowed.len()) as f64;
        let demand = |place: Place| {
            let there = self.busy.iter().filter(|one| self.place_of(one) == place);
            there.map(|one| one.demand).sum::<f64>()
        };
        let free = demand(Place::Both) + self.unseen;
        let room = (outside - demand(Place::Elsewhere)).max(0.0);
        match free > 0.0 {
            true => (free - room).max(0.0) / free,
            false => 0.0,
        }
    }
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
