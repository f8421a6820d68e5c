//! Search, by another algorithm than the optimiser's, for a placement that costs less than a limit.
//!
//! First components are divided into groups, one a slot, whatever the slots; then groups get slots.
//! A bound for groups takes all messages between groups at the cheapest class of pairs that are not
//! siblings, less the savings of siblings: a group has at most one sibling, so savings are at most
//! those of each group's best partner. Slots that have the same classes with all used ones are
//! tried once, which is sound on machines that nest and whose parts are equal; this search is for
//! those, without steal and with enough memory. Costs of working sets and turns are left out of
//! bounds and included in the final cost: that can only make more work.

use hearth_machine::relation::Closeness;
use hearth_place::cost::{CostOptions, evaluate};
use hearth_place::graph::{Connection, Graph, Turn};
use hearth_place::slots::{CpuSlot, Machine, Message, Placement, Share};

/// No group yet.
const NONE: usize = usize::MAX;

/// Result of the search.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// All placements cost at least the limit.
    Nothing,
    /// This one costs less.
    Cheaper(Placement, f64),
    /// The number of nodes did not suffice.
    TooMany,
}

/// Cost of messages of a pair of components, by class; the class of a slot with itself first.
struct Pair {
    a: usize,
    b: usize,
    /// By class: a's part and b's.
    costs: Vec<(f64, f64)>,
    /// The least over classes that are not siblings, of all but the first: both parts and the sum.
    far: (f64, f64, f64),
    any: (f64, f64, f64),
}

impl Pair {
    fn new(a: usize, b: usize, costs: Vec<(f64, f64)>, machine: &Machine) -> Self {
        let least = |may: &dyn Fn(Closeness) -> bool| {
            let classes = costs.iter().zip(machine.messages().classes());
            let may = classes.filter(|(_, class)| may(class.relation.closeness));
            may.fold((f64::MAX, f64::MAX, f64::MAX), |least, (cost, _)| {
                (
                    least.0.min(cost.0),
                    least.1.min(cost.1),
                    least.2.min(cost.0 + cost.1),
                )
            })
        };
        let any = least(&|c| c != Closeness::Same);
        let far = least(&|c| c != Closeness::Same && c != Closeness::SmtSibling);
        let far = if far.2 == f64::MAX { any } else { far };
        Self {
            far,
            any,
            a,
            b,
            costs,
        }
    }

    fn same(&self) -> f64 {
        self.costs[0].0 + self.costs[0].1
    }
}

struct Search<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    options: &'a CostOptions,
    limit: f64,
    nodes: u64,
    found: Option<(Placement, f64)>,
    /// By component: work and messages to itself.
    work: Vec<f64>,
    own: f64,
    pairs: Vec<Pair>,
    /// By component.
    pairs_of: Vec<Vec<usize>>,
    /// By component: bytes of its working set and lines touched.
    sets: Vec<(f64, f64)>,
    has_sets: bool,
    caches: Vec<Cache>,
    cycles: Vec<Cycle>,
    pins: Vec<Option<CpuSlot>>,
    order: Vec<usize>,
    divisor: f64,
    /// Capacity of all slots together.
    capacity: f64,
    group_of: Vec<usize>,
    groups: Vec<Group>,
    saved: Vec<Vec<f64>>,
    between: f64,
}

#[derive(Clone)]
struct Group {
    members: usize,
    pin: Option<CpuSlot>,
    /// Work and messages inside, and messages with other groups at the cheapest that is not a
    /// sibling.
    inside: f64,
    outside: f64,
    /// By other group, the load saved by being its sibling.
    saved: Vec<f64>,
    /// Bytes of working sets, lines touched, and by level the lines that members would miss alone.
    set: f64,
    lines: f64,
    alone: Vec<f64>,
    /// Time that members lose to each other in their caches, if no others are behind them.
    lost: f64,
}

/// Looks for a placement that costs less than the limit.
pub(crate) fn cheaper(
    graph: &Graph,
    machine: &Machine,
    options: &CostOptions,
    limit: f64,
    nodes: u64,
) -> Found {
    let mut search = Search::new(graph, machine, options, limit, nodes);
    search.divide(0);
    match search.found {
        Some((placement, cost)) => Found::Cheaper(placement, cost),
        None if search.nodes == 0 => Found::TooMany,
        None => Found::Nothing,
    }
}

impl<'a> Search<'a> {
    fn new(
        graph: &'a Graph,
        machine: &'a Machine,
        options: &'a CostOptions,
        limit: f64,
        nodes: u64,
    ) -> Self {
        let count = graph.components.len();
        assert!(machine.slots().iter().all(|slot| slot.capacity == 1.0));
        let mut work: Vec<f64> = graph.components.iter().map(|c| c.work_ns.value).collect();
        let (pairs, own) = pairs(graph, machine, options, &mut work);
        let mut pairs_of = vec![Vec::new(); count];
        for (at, pair) in pairs.iter().enumerate() {
            pairs_of[pair.a].push(at);
            pairs_of[pair.b].push(at);
        }
        let pins: Vec<Option<CpuSlot>> = graph
            .components
            .iter()
            .map(|c| c.pinned.and_then(|cpu| machine.slot_of(cpu)))
            .collect();
        let cores = machine.cores().iter();
        let capacity = cores.map(|core| (core.len() as f64).min(options.smt_yield.max(1.0)));
        let mut search = Self {
            capacity: capacity.sum(),
            divisor: machine.slots().len().min(count).max(1) as f64,
            graph,
            machine,
            options,
            limit,
            nodes,
            found: None,
            own,
            sets: graph
                .components
                .iter()
                .map(|c| {
                    let bytes = c.working_set_bytes.value;
                    (bytes, bytes / machine.line_bytes() * c.passes.value)
                })
                .collect(),
            has_sets: graph
                .components
                .iter()
                .any(|c| c.working_set_bytes.value > 0.0),
            caches: caches(machine),
            cycles: cycles(graph, machine, options),
            order: Vec::new(),
            group_of: vec![NONE; count],
            groups: Vec::new(),
            saved: vec![vec![0.0; count]; count],
            between: 0.0,
            work,
            pairs,
            pairs_of,
            pins,
        };
        search.order = search.order();
        search
    }

    /// The largest weight first, then the most messages with those before.
    fn order(&self) -> Vec<usize> {
        let count = self.work.len();
        let mut weight: Vec<f64> = (0..count)
            .map(|c| {
                self.work[c]
                    + self.pairs_of[c]
                        .iter()
                        .map(|p| self.pairs[*p].far.2)
                        .sum::<f64>()
                        / 10.0
            })
            .collect();
        let mut rest: Vec<usize> = (0..count).collect();
        let mut order = Vec::new();
        while !rest.is_empty() {
            let best = (0..rest.len()).max_by(|a, b| weight[rest[*a]].total_cmp(&weight[rest[*b]]));
            let component = rest.swap_remove(best.expect("some are left"));
            for pair in &self.pairs_of[component] {
                let pair = &self.pairs[*pair];
                weight[pair.a + pair.b - component] += pair.far.2;
            }
            order.push(component);
        }
        order
    }

    /// Puts the next component into each group, and a new one.
    fn divide(&mut self, depth: usize) {
        if self.found.is_some() || self.nodes == 0 {
            return;
        }
        self.nodes -= 1;
        let Some(&component) = self.order.get(depth) else {
            self.arrange_all();
            return;
        };
        let is_room = self.groups.len() < self.machine.slots().len();
        let mut tries = Vec::new();
        for group in 0..self.groups.len() + usize::from(is_room) {
            let before = (self.groups.clone(), self.saved.clone(), self.between);
            if self.join(component, group) {
                let bound = self.bound(depth + 1);
                if bound < self.limit {
                    tries.push((bound, group));
                }
                self.group_of[component] = NONE;
            }
            (self.groups, self.saved, self.between) = before;
        }
        tries.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, group) in tries {
            let before = (self.groups.clone(), self.saved.clone(), self.between);
            self.join(component, group);
            self.divide(depth + 1);
            self.group_of[component] = NONE;
            (self.groups, self.saved, self.between) = before;
        }
    }

    /// False if pins forbid it.
    fn join(&mut self, component: usize, group: usize) -> bool {
        if group == self.groups.len() {
            self.groups.push(Group {
                members: 0,
                pin: None,
                inside: 0.0,
                outside: 0.0,
                saved: vec![0.0; self.work.len()],
                set: 0.0,
                lines: 0.0,
                alone: vec![0.0; self.caches.len()],
                lost: 0.0,
            });
        }
        if let Some(pin) = self.pins[component] {
            let others = self.groups.iter().enumerate();
            let taken = others
                .filter(|(at, _)| *at != group)
                .any(|(_, g)| g.pin == Some(pin));
            if taken || self.groups[group].pin.is_some_and(|other| other != pin) {
                return false;
            }
            self.groups[group].pin = Some(pin);
        }
        self.group_of[component] = group;
        self.groups[group].members += 1;
        self.groups[group].inside += self.work[component];
        let lost = self.crowded(&self.groups[group], component);
        let more = lost.lost - self.groups[group].lost;
        let parts = &mut self.groups[group];
        (parts.set, parts.lines, parts.alone, parts.lost) =
            (lost.set, lost.lines, lost.alone, lost.lost);
        parts.inside += more;
        self.between += more;
        for at in &self.pairs_of[component] {
            let pair = &self.pairs[*at];
            let other = self.group_of[pair.a + pair.b - component];
            if other == NONE {
                continue;
            }
            if other == group {
                self.groups[group].inside += pair.same();
                self.between += pair.same();
                continue;
            }
            for (end, with) in [(pair.a, pair.b), (pair.b, pair.a)] {
                let (mine, theirs) = (self.group_of[end], self.group_of[with]);
                let (far, any) = match end == pair.a {
                    true => (pair.far.0, pair.any.0),
                    false => (pair.far.1, pair.any.1),
                };
                self.groups[mine].outside += far;
                self.groups[mine].saved[theirs] += far - any;
                self.saved[mine][theirs] += pair.far.2 - pair.any.2;
            }
            self.between += pair.far.2;
        }
        true
    }

    /// The group's caches with one more working set; only the result's counts.
    fn crowded(&self, group: &Group, component: usize) -> Group {
        let (set, lines) = self.sets[component];
        let mut after = Group {
            members: 0,
            pin: None,
            inside: 0.0,
            outside: 0.0,
            saved: Vec::new(),
            set: group.set + set,
            lines: group.lines + lines,
            alone: group.alone.clone(),
            lost: 0.0,
        };
        for (cache, alone) in self.caches.iter().zip(&mut after.alone) {
            *alone += lines * miss_share(cache.bytes, set);
            let missed = after.lines * miss_share(cache.bytes, after.set);
            after.lost += cache.miss_ns * (missed - *alone).max(0.0);
        }
        after
    }

    /// Lower bound of all completions of the groups.
    fn bound(&self, depth: usize) -> f64 {
        let count = self.groups.len();
        let rest = &self.order[depth..];
        let mut peak = self.cycle(&|_, _| None);
        let mut saved = f64::MAX;
        let mut messages = 0.0;
        // Two siblings have all their work on one core; a group that cannot be one saves nothing,
        // which in turn excludes others.
        for _ in 0..2 {
            let least = self.own + self.between - saved.min(self.savings(&|_, _| true));
            // No slot may have more, in any case.
            let most = self.limit - least / self.divisor;
            let may = |a: usize, b: usize| self.together(a, b) < most;
            saved = self.savings(&may);
            messages = self.own + self.between - saved;
            for component in rest {
                messages += self.cheapest(*component, most);
            }
            for (at, group) in self.groups.iter().enumerate() {
                let others = (0..count).filter(|other| *other != at && may(at, *other));
                let best = others.map(|other| group.saved[other] - self.paired(at, other).0);
                let best = best.fold(0.0, f64::max);
                peak = peak.max(group.inside + group.outside - best);
            }
        }
        for component in rest {
            peak = peak.max(self.work[*component]);
        }
        let work: f64 = self.work.iter().sum();
        let even = (work + messages - self.own) / self.capacity;
        peak.max(even) + messages / self.divisor
    }

    /// Least load of a core that two groups have to themselves.
    fn together(&self, a: usize, b: usize) -> f64 {
        let (first, second) = (&self.groups[a], &self.groups[b]);
        let more = self.paired(a, b);
        let load = first.inside + first.outside - first.saved[b] + more.0;
        let other = second.inside + second.outside - second.saved[a] + more.1;
        load.max(other)
            .max((load + other) / self.options.smt_yield.max(1.0))
    }

    /// Loss of each sibling compared with running alone.
    fn paired(&self, a: usize, b: usize) -> (f64, f64) {
        let (first, second) = (&self.groups[a], &self.groups[b]);
        let more = |group: &Group| {
            let caches = self.caches.iter().zip(&group.alone);
            let lost = caches.map(|(cache, alone)| {
                let set = if cache.is_of_core {
                    first.set + second.set
                } else {
                    group.set
                };
                cache.miss_ns * (group.lines * miss_share(cache.bytes, set) - alone).max(0.0)
            });
            lost.sum::<f64>() - group.lost
        };
        if self.has_sets {
            (more(first), more(second))
        } else {
            (0.0, 0.0)
        }
    }

    /// Largest savings of siblings.
    fn savings(&self, may: &dyn Fn(usize, usize) -> bool) -> f64 {
        let count = self.groups.len();
        let best = |a: usize| {
            let others = (0..count).filter(|b| *b != a && self.saved[a][*b] > 0.0 && may(a, *b));
            let saved = |b: usize| {
                let more = self.paired(a, b);
                self.saved[a][b] - more.0 - more.1
            };
            others.map(saved).fold(0.0, f64::max)
        };
        (0..count).map(best).sum::<f64>() / 2.0
    }

    /// Lower bound of the longest cycle. `class` gives the class of two groups, if known.
    fn cycle(&self, class: &dyn Fn(usize, usize) -> Option<usize>) -> f64 {
        let cycles = self.cycles.iter().map(|cycle| {
            let terms = cycle.terms.iter().map(|term| {
                let (a, b) = (self.group_of[term.from], self.group_of[term.to]);
                let ns = match (a, b) {
                    (NONE, _) | (_, NONE) => term.same.min(term.any),
                    (a, b) if a == b => term.same,
                    (a, b) => class(a, b).map_or(term.any, |class| term.costs[class]),
                };
                term.weight * ns
            });
            cycle.constant + terms.sum::<f64>()
        });
        cycles.fold(0.0, f64::max)
    }

    /// Least cost of a component's messages while it has no group: to those with groups and, by
    /// half, to others.
    fn cheapest(&self, component: usize, most: f64) -> f64 {
        let mut total = 0.0;
        let groups = self.groups.iter();
        let more = groups.map(|group| match self.sets[component].0 > 0.0 {
            true => self.crowded(group, component).lost - group.lost,
            false => 0.0,
        });
        let more: Vec<f64> = more.collect();
        let mut gain: Vec<f64> = more.iter().map(|more| -more).collect();
        for at in &self.pairs_of[component] {
            let pair = &self.pairs[*at];
            match self.group_of[pair.a + pair.b - component] {
                NONE => total += pair.any.2.min(pair.same()) / 2.0,
                group => {
                    total += pair.any.2;
                    gain[group] += pair.any.2 - pair.same();
                }
            }
        }
        let fits = self.groups.iter().zip(gain).zip(more);
        let fits =
            fits.filter(|((group, _), more)| group.inside + self.work[component] + more < most);
        total - fits.map(|((_, gain), _)| gain).fold(0.0, f64::max)
    }

    /// Assigns slots to all groups: pinned ones first, then the ones with most messages.
    fn arrange_all(&mut self) {
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        let weight = |group: &Group| match group.pin {
            Some(_) => f64::MAX,
            None => group.outside,
        };
        order.sort_by(|a, b| weight(&self.groups[*b]).total_cmp(&weight(&self.groups[*a])));
        let count = self.groups.len();
        let mut at = vec![None; count];
        let looks = vec![0; self.machine.slots().len()];
        self.arrange(&order, 0, &mut at, &looks);
    }

    fn arrange(
        &mut self,
        order: &[usize],
        depth: usize,
        at: &mut Vec<Option<CpuSlot>>,
        looks: &[u64],
    ) {
        if self.found.is_some() || self.nodes == 0 {
            return;
        }
        self.nodes -= 1;
        let Some(&group) = order.get(depth) else {
            self.complete(at);
            return;
        };
        let mut seen = Vec::new();
        for slot in self.machine.all() {
            let is_pin = self.groups[group].pin.is_none_or(|pin| pin == slot);
            if !is_pin || at.contains(&Some(slot)) {
                continue;
            }
            if self.groups[group].pin.is_none() {
                if seen.contains(&looks[slot.index()]) {
                    continue;
                }
                seen.push(looks[slot.index()]);
            }
            at[group] = Some(slot);
            if self.bound_arranged(at) < self.limit {
                let classes = self.machine.messages().classes().len() as u64 + 1;
                let looks: Vec<u64> = self
                    .machine
                    .all()
                    .map(|s| {
                        looks[s.index()] * classes + self.machine.messages().class(s, slot) as u64
                    })
                    .collect();
                self.arrange(order, depth + 1, at, &looks);
            }
            at[group] = None;
        }
    }

    /// Lower bound over all slots for the other groups.
    fn bound_arranged(&self, at: &[Option<CpuSlot>]) -> f64 {
        let count = self.groups.len();
        let mut load: Vec<f64> = self.groups.iter().map(|group| group.inside).collect();
        // Possible savings of siblings where not both have slots yet.
        let mut load_saved = vec![vec![0.0; count]; count];
        let mut saved = vec![vec![0.0; count]; count];
        let mut messages = self.own + self.groups.iter().map(|group| group.lost).sum::<f64>();
        for pair in &self.pairs {
            let (a, b) = (self.group_of[pair.a], self.group_of[pair.b]);
            if a == b {
                messages += pair.same();
            } else if let (Some(s), Some(t)) = (at[a], at[b]) {
                let cost = pair.costs[self.machine.messages().class(s, t)];
                load[a] += cost.0;
                load[b] += cost.1;
                messages += cost.0 + cost.1;
            } else {
                load[a] += pair.far.0;
                load[b] += pair.far.1;
                messages += pair.far.2;
                load_saved[a][b] += pair.far.0 - pair.any.0;
                load_saved[b][a] += pair.far.1 - pair.any.1;
                saved[a][b] += pair.far.2 - pair.any.2;
                saved[b][a] += pair.far.2 - pair.any.2;
            }
        }
        let core =
            |group: usize| at[group].map(|slot: CpuSlot| self.machine.slots()[slot.index()].core);
        let is_full = |group: usize| {
            let slots = core(group).map_or(NONE, |core| self.machine.cores()[core as usize].len());
            (0..count)
                .filter(|other| core(*other).is_some() && core(*other) == core(group))
                .count()
                >= slots
        };
        let full: Vec<bool> = (0..count).map(is_full).collect();
        let most = self.limit
            - (messages - saved.iter().map(|row| largest(row)).sum::<f64>() / 2.0) / self.divisor;
        for a in 0..count {
            for b in 0..count {
                if a == b {
                    continue;
                }
                let more = self.paired(a, b);
                if core(a).is_some() && core(a) == core(b) {
                    load[a] += more.0;
                    messages += more.0;
                } else if full[a] || full[b] || self.together(a, b) >= most {
                    (saved[a][b], load_saved[a][b]) = (0.0, 0.0);
                } else {
                    saved[a][b] -= more.0 + more.1;
                    load_saved[a][b] -= more.0;
                }
            }
        }
        messages -= saved.iter().map(|row| largest(row)).sum::<f64>() / 2.0;
        let class = |a: usize, b: usize| Some(self.machine.messages().class(at[a]?, at[b]?));
        let mut peak = self.cycle(&class);
        for group in 0..count {
            load[group] -= largest(&load_saved[group]);
        }
        for group in 0..count {
            let mates = (0..count).filter(|other| {
                *other == group || core(*other).is_some() && core(*other) == core(group)
            });
            let together: f64 = mates.map(|other| load[other]).sum();
            peak = peak
                .max(load[group])
                .max(together / self.options.smt_yield.max(1.0));
        }
        peak + messages / self.divisor
    }

    fn complete(&mut self, at: &[Option<CpuSlot>]) {
        let slot = |group: &usize| at[*group].expect("all have slots");
        let placement = Placement(self.group_of.iter().map(slot).collect());
        let cost = evaluate(self.graph, self.machine, self.options, &placement).expect("it fits");
        if cost.total_ns < self.limit {
            self.found = Some((placement, cost.total_ns));
        }
    }
}

/// A cache of which each slot has one.
#[derive(PartialEq)]
struct Cache {
    bytes: f64,
    miss_ns: f64,
    /// Whether it is behind all siblings of a core and no others.
    is_of_core: bool,
}

/// The caches of a slot, which must be the same for all.
fn caches(machine: &Machine) -> Vec<Cache> {
    let of = |slot: CpuSlot| -> Vec<Cache> {
        let core = &machine.cores()[machine.slots()[slot.index()].core as usize];
        let path = machine.path(slot).iter();
        let caches = path.map(|cache| &machine.caches()[*cache as usize]);
        let caches = caches.map(|cache| Cache {
            bytes: cache.bytes,
            miss_ns: cache.miss_ns,
            is_of_core: core.len() > 1 && cache.slots == *core,
        });
        caches.collect()
    };
    let first = of(CpuSlot(0));
    assert!(machine.all().all(|slot| of(slot) == first));
    first
}

fn miss_share(bytes: f64, wanted: f64) -> f64 {
    if wanted > bytes {
        1.0 - bytes / wanted
    } else {
        0.0
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Work and waiting of a component in a round, one after the other.
struct Cycle {
    constant: f64,
    terms: Vec<Term>,
}

/// All messages of a connection, by class.
#[derive(Clone)]
struct Term {
    from: usize,
    to: usize,
    weight: f64,
    same: f64,
    any: f64,
    costs: Vec<f64>,
}

/// Own work, requests and answers, and the same of each server in the share of its received
/// messages.
fn cycles(graph: &Graph, machine: &Machine, options: &CostOptions) -> Vec<Cycle> {
    let terms: Vec<Term> = graph
        .connections
        .iter()
        .map(|c| {
            let message = message(c, options);
            let classes = 0..machine.messages().classes().len();
            let share = |class| machine.messages().share_in(class, &message).total_ns();
            let costs: Vec<f64> = classes
                .map(|class| c.messages.value * share(class))
                .collect();
            Term {
                from: c.from.index(),
                to: c.to.index(),
                weight: 1.0,
                same: costs[0],
                any: costs[1..].iter().copied().fold(f64::MAX, f64::min),
                costs,
            }
        })
        .collect();
    let asks = |c: &Connection| c.turn == Turn::Request && c.from != c.to;
    let clients = 0..graph.components.len();
    let clients = clients.filter(|c| {
        graph
            .connections
            .iter()
            .any(|x| asks(x) && x.from.index() == *c)
    });
    clients
        .map(|client| {
            let mut cycle = Cycle {
                constant: 0.0,
                terms: Vec::new(),
            };
            wait(graph, &terms, client, 1.0, &mut Vec::new(), &mut cycle);
            cycle
        })
        .collect()
}

fn wait(
    graph: &Graph,
    terms: &[Term],
    component: usize,
    share: f64,
    path: &mut Vec<usize>,
    cycle: &mut Cycle,
) {
    cycle.constant += share * graph.components[component].work_ns.value;
    path.push(component);
    for (connection, term) in graph.connections.iter().zip(terms) {
        if connection.from == connection.to {
            continue;
        }
        let (from, to) = (connection.from.index(), connection.to.index());
        let is_request = connection.turn == Turn::Request && from == component;
        if is_request || connection.turn == Turn::Answer && to == component {
            cycle.terms.push(Term {
                weight: share,
                ..term.clone()
            });
        }
        // A bound may end early: deep servers count little.
        if is_request && !path.contains(&to) && path.len() < 4 {
            let into = graph
                .connections
                .iter()
                .filter(|c| c.to == connection.to && c.from != c.to && c.turn != Turn::Answer);
            let received: f64 = into.map(|c| c.messages.value).sum();
            let part = connection.messages.value / received;
            if received > 0.0 && part >= 1e-2 {
                wait(graph, terms, to, share * part, path, cycle);
            }
        }
    }
    path.pop();
}

fn message(connection: &Connection, options: &CostOptions) -> Message {
    Message {
        bytes: connection.bytes.value,
        carrier: connection.carrier.unwrap_or(options.carrier),
        kind: connection.kind,
    }
}

/// All messages of each pair of components, and those of components to themselves, which are work.
fn pairs(
    graph: &Graph,
    machine: &Machine,
    options: &CostOptions,
    work: &mut [f64],
) -> (Vec<Pair>, f64) {
    let classes = machine.messages().classes().len();
    let mut costs: std::collections::BTreeMap<(usize, usize), Vec<(f64, f64)>> = Default::default();
    let mut own = 0.0;
    for c in &graph.connections {
        let message = message(c, options);
        let share = |class| -> Share { machine.messages().share_in(class, &message) };
        let (from, to, messages) = (c.from.index(), c.to.index(), c.messages.value);
        if from == to {
            work[from] += messages * share(0).total_ns();
            own += messages * share(0).total_ns();
            continue;
        }
        let pair = costs.entry((from.min(to), from.max(to)));
        let pair = pair.or_insert_with(|| vec![(0.0, 0.0); classes]);
        for (class, cost) in pair.iter_mut().enumerate() {
            let share = share(class);
            let (first, second) = match from < to {
                true => (share.send_ns, share.receive_ns),
                false => (share.receive_ns, share.send_ns),
            };
            cost.0 += messages * first;
            cost.1 += messages * second;
        }
    }
    let pairs = costs.into_iter();
    let pairs = pairs.map(|((a, b), costs)| Pair::new(a, b, costs, machine));
    (pairs.collect(), own)
}
