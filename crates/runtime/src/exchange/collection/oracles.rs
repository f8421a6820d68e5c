//! The search beside two oracles on random worlds of components.
//!
//! A world is made of components, their ports, half-channels that are no ports, connections, and
//! references in fields. Three parties say who in it is alive:
//!
//! - the search, on the graph of the world's sleepers, with as many references as the runtime would
//!   count;
//! - the definition of the [page](../../../../../docs/internals/collection.md), applied to all
//!   components again and again until nothing changes;
//! - the published one, two sets that grow by each other, on objects and processors.
//!
//! They share no code, and the oracles look at the world, not at the graph.
//! `HEARTH_TEST_DEEP=1` tries ten times as many worlds.

use super::search::Graph;
use crate::ground::choices::scramble;

/// A component.
struct Person {
    /// It runs, is ready, or waits for something outside.
    is_awake: bool,
    /// The half-channels in its fields, with repetitions.
    halves: Vec<usize>,
    /// The components in its fields, with repetitions.
    people: Vec<usize>,
}

struct Half {
    /// The component whose port it is.
    owner: Option<usize>,
    /// The components that wait at it.
    waiting: Vec<usize>,
    peers: Vec<usize>,
}

#[derive(Default)]
struct World {
    people: Vec<Person>,
    halves: Vec<Half>,
    /// Components with a holder outside the world: the stack of a thread, say.
    people_outside: Vec<usize>,
    halves_outside: Vec<usize>,
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (scramble(self.0) % end.max(1) as u64) as usize
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn some(&mut self, most: usize, end: usize) -> Vec<usize> {
        let count = if end == 0 { 0 } else { self.below(most + 1) };
        (0..count).map(|_| self.below(end)).collect()
    }
}

impl World {
    /// Makes a world. The chances differ from world to world, so that in some nearly all live and
    /// in others few do.
    fn random(seed: u64) -> World {
        let mut random = Random(scramble(seed));
        let random = &mut random;
        let most = if random.percent(95) { 8 } else { 60 };
        let count = 1 + random.below(most);
        let mut world = World::default();
        for person in 0..count {
            for _ in 0..random.below(4) {
                world.add_half(Some(person));
            }
        }
        for _ in 0..random.below(1 + count / 2) {
            world.add_half(None);
        }
        let halves = world.halves.len();
        let (awake, fields) = (random.below(30), random.below(40));
        for _ in 0..count {
            let has_fields = random.percent(fields);
            let most = if has_fields { 3 } else { 0 };
            world.people.push(Person {
                is_awake: random.percent(awake),
                halves: random.some(most, halves),
                people: random.some(most, count),
            });
        }
        for _ in 0..random.below(2 * count + 1) {
            let (a, b) = (random.below(halves), random.below(halves));
            if a != b && halves > 0 && !world.halves[a].peers.contains(&b) {
                world.halves[a].peers.push(b);
                world.halves[b].peers.push(a);
            }
        }
        for person in 0..count {
            world.lay_to_sleep(person, random);
        }
        if random.percent(20) {
            world.people_outside = random.some(2, count);
        }
        if random.percent(20) {
            world.halves_outside = random.some(2, halves);
        }
        world
    }

    fn add_half(&mut self, owner: Option<usize>) {
        self.halves.push(Half {
            owner,
            waiting: Vec::new(),
            peers: Vec::new(),
        });
    }

    /// Has a component that is not awake wait at some of the half-channels that it can reach; at
    /// one at least, if it has any.
    fn lay_to_sleep(&mut self, person: usize, random: &mut Random) {
        if self.people[person].is_awake {
            return;
        }
        let is_its = |half: &usize| self.halves[*half].owner == Some(person);
        let mut within_reach: Vec<usize> = (0..self.halves.len()).filter(is_its).collect();
        within_reach.extend(&self.people[person].halves);
        within_reach.dedup();
        let first = random.below(within_reach.len());
        for (index, &half) in within_reach.iter().enumerate() {
            let waiting = &mut self.halves[half].waiting;
            if (index == first || random.percent(30)) && !waiting.contains(&person) {
                waiting.push(person);
            }
        }
    }

    // ---- the search ---------------------------------------------------------------------------

    /// Has the search say who lives, as the collector has it: nodes are those who sleep, and the
    /// half-channels that are no ports.
    ///
    /// Without `fields`, who holds what is not told, only how often things are held.
    fn search(&self, fields: bool) -> Vec<bool> {
        let mut graph = Graph::default();
        let nodes: Vec<Option<usize>> = self
            .people
            .iter()
            .map(|person| (!person.is_awake).then(|| graph.node()))
            .collect();
        let node_of_half: Vec<Option<usize>> = self
            .halves
            .iter()
            .map(|half| {
                half.owner
                    .map_or_else(|| Some(graph.node()), |own| nodes[own])
            })
            .collect();
        let references = |held: usize, by: fn(&Person) -> &[usize], outside: &[usize]| {
            let inside = self.people.iter().flat_map(by);
            inside.chain(outside).filter(|&&one| one == held).count() as i64
        };
        let counted_people: Vec<_> = (0..self.people.len())
            .map(|one| {
                let count = references(one, |of| &of.people, &self.people_outside);
                nodes[one].map(|node| graph.counted(node, count))
            })
            .collect();
        let counted_halves: Vec<_> = (0..self.halves.len())
            .map(|one| {
                let count = references(one, |of| &of.halves, &self.halves_outside);
                node_of_half[one].map(|node| graph.counted(node, count))
            })
            .collect();
        for (index, person) in self.people.iter().enumerate() {
            if let (Some(node), true) = (nodes[index], fields) {
                let halves = person.halves.iter().map(|&half| counted_halves[half]);
                let people = person.people.iter().map(|&one| counted_people[one]);
                for counted in halves.chain(people).flatten() {
                    graph.reference(node, counted);
                }
            }
        }
        for (index, half) in self.halves.iter().enumerate() {
            for waiting in half.waiting.iter().filter_map(|&one| nodes[one]) {
                for waker in half.peers.iter().map(|&peer| node_of_half[peer]) {
                    match waker {
                        Some(waker) => graph.wakes(waker, waiting),
                        None => graph.wakes_from_outside(waiting),
                    }
                }
                match node_of_half[index] {
                    Some(waker) => graph.wakes(waker, waiting),
                    None => graph.wakes_from_outside(waiting),
                }
            }
        }
        let live = graph.live();
        nodes
            .iter()
            .map(|node| node.is_none_or(|node| live[node]))
            .collect()
    }

    // ---- the page's definition ----------------------------------------------------------------

    /// Applies the rule to everybody until nothing changes.
    fn by_definition(&self) -> Vec<bool> {
        let mut live: Vec<bool> = self.people.iter().map(|person| person.is_awake).collect();
        loop {
            let next: Vec<bool> = (0..live.len())
                .map(|one| live[one] || self.can_be_woken(one, &live))
                .collect();
            if next == live {
                return live;
            }
            live = next;
        }
    }

    /// Whether one of the living, or somebody outside the world, can wake this one.
    fn can_be_woken(&self, one: usize, live: &[bool]) -> bool {
        let is_held = self.people_outside.contains(&one)
            || (0..live.len()).any(|who| live[who] && self.people[who].people.contains(&one));
        let has_held_port = (0..self.halves.len())
            .any(|half| self.halves[half].owner == Some(one) && self.is_in_hands(half, live));
        let waits_within_reach = self.halves.iter().enumerate().any(|(index, half)| {
            half.waiting.contains(&one)
                && half.peers.iter().chain([&index]).any(|&way| {
                    let owner = self.halves[way].owner;
                    owner.is_some_and(|owner| live[owner]) || self.is_in_hands(way, live)
                })
        });
        is_held || has_held_port || waits_within_reach
    }

    /// Whether one of the living has this half-channel in a field, or somebody outside has it.
    fn is_in_hands(&self, half: usize, live: &[bool]) -> bool {
        self.halves_outside.contains(&half)
            || (0..live.len()).any(|who| live[who] && self.people[who].halves.contains(&half))
    }

    // ---- the published definition -------------------------------------------------------------

    /// LO = s*(BR ∪ r(LP)), LP = BP ∪ h(LO): the least solution, by sets that only grow (Meyer,
    /// Kogtenkov and Akhi; as printed, the iteration loses roots).
    ///
    /// Processors are components. Objects are the half-channels, and one for each component, to
    /// which references to it refer.
    ///
    /// | theirs | here |
    /// |---|---|
    /// | BP, whose log is not empty | who runs, is ready, or waits for something outside |
    /// | BR, the system's roots | what is held outside |
    /// | r(p), the roots of a processor | its own object, and what is in its fields |
    /// | s(o) of a component's object | its ports |
    /// | s(o) of a half-channel | the objects of those who wait at it or at one of its peers |
    /// | h(o), the handler | the component, or the port's owner; other half-channels have none |
    fn as_published(&self) -> Vec<bool> {
        let people = self.people.len();
        let (person, half) = (|one: usize| one, |one: usize| people + one);
        let objects = people + self.halves.len();
        let s = |object: usize| -> Vec<usize> {
            if object < people {
                let is_its = |one: &usize| self.halves[*one].owner == Some(object);
                return (0..self.halves.len()).filter(is_its).map(half).collect();
            }
            let one = object - people;
            let ways = self.halves[one].peers.iter().chain([&one]);
            ways.flat_map(|&way| self.halves[way].waiting.iter().map(|&who| person(who)))
                .collect()
        };
        let r = |processor: usize| {
            let of = &self.people[processor];
            let fields = of.people.iter().map(|&one| person(one));
            fields
                .chain(of.halves.iter().map(|&one| half(one)))
                .chain([person(processor)])
                .collect::<Vec<usize>>()
        };
        let h = |object: usize| match object < people {
            true => Some(object),
            false => self.halves[object - people].owner,
        };
        let mut lo = vec![false; objects];
        let mut lp: Vec<bool> = self.people.iter().map(|of| of.is_awake).collect();
        for root in self.people_outside.iter().map(|&one| person(one)) {
            lo[root] = true;
        }
        for root in self.halves_outside.iter().map(|&one| half(one)) {
            lo[root] = true;
        }
        loop {
            let before = (lo.clone(), lp.clone());
            for processor in (0..people).filter(|&one| before.1[one]) {
                r(processor)
                    .into_iter()
                    .for_each(|object| lo[object] = true);
            }
            for object in (0..objects).filter(|&one| before.0[one]) {
                s(object).into_iter().for_each(|next| lo[next] = true);
                if let Some(handler) = h(object) {
                    lp[handler] = true;
                }
            }
            if before == (lo.clone(), lp.clone()) {
                return lp;
            }
        }
    }
}

#[test]
fn the_search_agrees_with_two_definitions_on_random_worlds() {
    let deep = std::env::var_os("HEARTH_TEST_DEEP").is_some();
    let worlds = if deep { 200_000 } else { 20_000 };
    let (mut garbage, mut with_both, mut found_without_fields) = (0, 0, 0);
    for seed in 0..worlds {
        let world = World::random(seed);
        let wanted = world.by_definition();
        assert_eq!(world.as_published(), wanted, "as published, seed {seed}");
        assert_eq!(world.search(true), wanted, "the search, seed {seed}");
        let without = world.search(false);
        let all_live = wanted
            .iter()
            .zip(&without)
            .all(|(&live, &found)| found || !live);
        assert!(
            all_live,
            "without fields one of the living is taken, seed {seed}"
        );
        let dead = wanted.iter().filter(|&&live| !live).count();
        garbage += dead;
        with_both += usize::from(dead > 0 && dead < wanted.len());
        found_without_fields += without.iter().filter(|&&live| !live).count();
    }
    // The worlds are worth the name: some have garbage beside the living, and fields matter.
    let worlds = worlds as usize;
    assert!(with_both > worlds / 10, "{with_both} of {worlds} have both");
    assert!(garbage > worlds / 2, "{garbage} of garbage");
    assert!(found_without_fields < garbage && found_without_fields > garbage / 10);
}

/// Somebody at the end of a chain of others, and many who are woken by one: where a search that is
/// not linear would not end.
#[test]
fn the_search_is_linear() {
    const COUNT: usize = 300_000;
    for is_alive in [true, false] {
        let mut graph = Graph::default();
        let nodes: Vec<usize> = (0..COUNT).map(|_| graph.node()).collect();
        for pair in nodes.windows(2) {
            // Backwards, so that the order of numbers does not help.
            graph.wakes(pair[1], pair[0]);
            graph.wakes(pair[0], COUNT - 1);
            let counted = graph.counted(pair[0], 1);
            graph.reference(pair[1], counted);
        }
        if is_alive {
            graph.wakes_from_outside(COUNT / 2);
        }
        assert!(graph.live().into_iter().all(|live| live == is_alive));
    }
}

#[test]
fn more_holders_than_references_are_no_reason_to_die() {
    let mut graph = Graph::default();
    let (one, holder) = (graph.node(), graph.node());
    let counted = graph.counted(one, 1);
    graph.reference(holder, counted);
    graph.reference(holder, counted);
    assert_eq!(graph.live(), [true, false]);
}
