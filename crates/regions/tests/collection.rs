//! Collection: what is dead goes, circles over processors included; what lives stays; finalisers
//! revive nothing; random graphs against a search by brute force.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use hearth::{Hearth, block_on};
use hearth_regions::{CallError, Local, Object, Processor, Regions, Separate, Tracer};

fn start(automatic: bool) -> (Hearth, Regions) {
    let hearth = Hearth::builder().workers(2).start().unwrap();
    let regions = Regions::builder().automatic(automatic).start(&hearth);
    (hearth, regions)
}

type Alive = Arc<Mutex<BTreeSet<usize>>>;

/// A vertex that is in a set as long as it is there.
struct Vertex {
    number: usize,
    alive: Alive,
    links: Vec<Separate<Vertex>>,
    locals: Vec<Local<Vertex>>,
    /// References that it does not show.
    hidden: Vec<Separate<Vertex>>,
}

impl Vertex {
    fn new(number: usize, alive: &Alive) -> Vertex {
        alive.lock().unwrap().insert(number);
        Vertex {
            number,
            alive: Arc::clone(alive),
            links: Vec::new(),
            locals: Vec::new(),
            hidden: Vec::new(),
        }
    }

    fn made(number: usize, alive: &Alive, regions: &Regions) -> Separate<Vertex> {
        let alive = Arc::clone(alive);
        regions
            .create(move |_| Vertex::new(number, &alive))
            .unwrap()
    }
}

impl Object for Vertex {
    fn trace(&self, tracer: &mut Tracer) {
        self.links.trace(tracer);
        self.locals.trace(tracer);
    }
}

impl Drop for Vertex {
    fn drop(&mut self) {
        self.alive.lock().unwrap().remove(&self.number);
    }
}

fn link(from: &Separate<Vertex>, to: &Separate<Vertex>) {
    let to = to.clone();
    from.command(move |from, _| from.links.push(to)).unwrap();
}

fn left(alive: &Alive) -> Vec<usize> {
    alive.lock().unwrap().iter().copied().collect()
}

#[test]
fn a_ring_over_processors_goes_when_nobody_refers_to_it() {
    let (_hearth, regions) = start(false);
    let alive = Alive::default();
    let ring: Vec<_> = (0..100)
        .map(|number| Vertex::made(number, &alive, &regions))
        .collect();
    for (number, from) in ring.iter().enumerate() {
        link(from, &ring[(number + 1) % ring.len()]);
    }
    block_on(regions.rest());
    // One reference from outside keeps all of it.
    let entry = ring[40].clone();
    drop(ring);
    assert_eq!(regions.collect().processors, 0);
    assert_eq!(alive.lock().unwrap().len(), 100);
    drop(entry);
    let collected = regions.collect();
    assert_eq!((collected.processors, collected.objects), (100, 100));
    assert_eq!(
        (left(&alive), regions.processors(), regions.bytes()),
        (vec![], 0, 0)
    );
}

#[test]
fn a_vertex_of_a_living_processor_goes_alone() {
    let (_hearth, regions) = start(false);
    let alive = Alive::default();
    let processor = regions.processor().unwrap();
    let on_it = |number| {
        let alive = Arc::clone(&alive);
        processor
            .create(move |_| Vertex::new(number, &alive))
            .unwrap()
    };
    let (first, second) = (on_it(0), on_it(1));
    let far = Vertex::made(2, &alive, &regions);
    link(&second, &far);
    link(&far, &second);
    drop((second, far));
    block_on(regions.rest());
    let collected = regions.collect();
    assert_eq!((collected.processors, collected.objects), (1, 2));
    assert_eq!(left(&alive), [0]);
    drop(first);
    assert_eq!(regions.collect().objects, 1);
    // Who has the processor may make another object on it.
    assert_eq!(regions.processors(), 1);
    let again = on_it(7);
    assert_eq!(again.query(|vertex, _| vertex.number).wait(), Ok(7));
    drop((again, processor));
    block_on(regions.rest());
    assert_eq!(regions.collect().processors, 1);
}

#[test]
fn what_is_not_shown_lives() {
    let (_hearth, regions) = start(false);
    let alive = Alive::default();
    let (from, to) = (
        Vertex::made(0, &alive, &regions),
        Vertex::made(1, &alive, &regions),
    );
    let hidden = to.clone();
    from.command(move |from, _| from.hidden.push(hidden))
        .unwrap();
    let from_too = from.clone();
    to.command(move |to, _| to.hidden.push(from_too)).unwrap();
    drop((from, to));
    block_on(regions.rest());
    assert_eq!(regions.collect().objects, 0);
    assert_eq!(left(&alive), [0, 1]);
}

/// An object that shows one reference twice.
struct Twice(Separate<Vertex>);
impl Object for Twice {
    fn trace(&self, tracer: &mut Tracer) {
        self.0.trace(tracer);
        self.0.trace(tracer);
    }
}

#[test]
fn what_is_shown_twice_counts_once() {
    let (_hearth, regions) = start(false);
    let alive = Alive::default();
    let vertex = Vertex::made(0, &alive, &regions);
    let of = vertex.clone();
    drop(regions.create(|_| Twice(of)).unwrap());
    block_on(regions.rest());
    assert_eq!(regions.collect().processors, 1);
    assert_eq!(vertex.query(|vertex, _| vertex.number).wait(), Ok(0));
}

static ESCAPED: Mutex<Vec<Separate<Phoenix>>> = Mutex::new(Vec::new());

/// A finaliser that tries to come back.
struct Phoenix {
    itself: Option<Separate<Phoenix>>,
    regions: Regions,
    tried: Arc<Mutex<Vec<CallError>>>,
}
impl Object for Phoenix {
    fn trace(&self, tracer: &mut Tracer) {
        self.itself.trace(tracer);
    }
}
impl Drop for Phoenix {
    fn drop(&mut self) {
        let Some(itself) = self.itself.take() else {
            return;
        };
        let errors = [
            itself.command(|_, _| ()).err(),
            self.regions.processor().err(),
        ];
        self.tried
            .lock()
            .unwrap()
            .extend(errors.into_iter().flatten());
        assert_eq!(self.regions.collect().objects, 0);
        ESCAPED.lock().unwrap().push(itself);
        panic!("a finaliser may panic");
    }
}

#[test]
fn a_finaliser_revives_nothing() {
    let (_hearth, regions) = start(false);
    let tried = Arc::new(Mutex::new(Vec::new()));
    let (made, of) = (Arc::clone(&tried), regions.clone());
    let make = move |_: &mut _| Phoenix {
        itself: None,
        regions: of,
        tried: made,
    };
    let phoenix = regions.create(make).unwrap();
    let itself = phoenix.clone();
    phoenix
        .command(move |phoenix, _| phoenix.itself = Some(itself))
        .unwrap();
    drop(phoenix);
    block_on(regions.rest());
    assert_eq!(regions.collect().objects, 1);
    assert_eq!(
        *tried.lock().unwrap(),
        [CallError::Finalising, CallError::Finalising]
    );
    assert_eq!(regions.take_failures(), ["a finaliser may panic"]);
    // It got a reference out, which leads to nothing any more.
    let escaped = ESCAPED.lock().unwrap().pop().unwrap();
    assert_eq!(escaped.command(|_, _| ()), Err(CallError::Ended));
    assert_eq!(escaped.query(|_, _| ()).wait(), Err(CallError::Ended));
    assert_eq!(escaped.processor(), Err(CallError::Ended));
    // On a processor that lives it does not lead to the next object of its slot.
    let keeper = regions.processor().unwrap();
    let of = regions.clone();
    let make = move |_: &mut _| Phoenix {
        itself: None,
        regions: of,
        tried,
    };
    let phoenix = keeper.create(make).unwrap();
    let itself = phoenix.clone();
    phoenix
        .command(move |phoenix, _| phoenix.itself = Some(itself))
        .unwrap();
    drop(phoenix);
    block_on(regions.rest());
    assert_eq!(regions.collect().objects, 1);
    let escaped = ESCAPED.lock().unwrap().pop().unwrap();
    let next = keeper.create(|_| Large(Vec::new())).unwrap();
    assert_eq!(escaped.query(|_, _| ()).wait(), Err(CallError::Ended));
    assert_eq!(next.query(|_, _| ()).wait(), Ok(()));
}

#[test]
fn the_threshold_of_processors_collects() {
    let hearth = Hearth::builder().workers(2).start().unwrap();
    let regions = Regions::builder().processors_least(100).start(&hearth);
    let alive = Alive::default();
    let kept: Vec<_> = (0..50)
        .map(|number| Vertex::made(number, &alive, &regions))
        .collect();
    for number in 50..5_050 {
        let vertex = Vertex::made(number, &alive, &regions);
        link(&vertex, &kept[number % 50]);
        link(&vertex, &vertex);
    }
    block_on(regions.rest());
    // A last one crosses the threshold, if nothing else does.
    while regions.processors() > 200 {
        drop(Vertex::made(9_999, &alive, &regions));
        block_on(regions.rest());
    }
    let asked = kept
        .iter()
        .map(|vertex| vertex.query(|vertex, _| vertex.number).wait().unwrap());
    assert_eq!(asked.collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
}

struct Large(Vec<u8>);
impl Object for Large {
    fn bytes(&self) -> usize {
        self.0.len()
    }
}

#[test]
fn the_threshold_of_bytes_collects() {
    let hearth = Hearth::builder().workers(2).start().unwrap();
    let regions = Regions::builder().bytes_least(1 << 20).start(&hearth);
    let make = || regions.create(|_| Large(vec![0; 16 << 10])).unwrap();
    for _ in 0..2_000 {
        make().query(|_, _| ()).wait().unwrap();
    }
    while regions.bytes() > 4 << 20 {
        make().query(|_, _| ()).wait().unwrap();
    }
    assert!(regions.processors() < 2_000);
}

/// A processor that always has a call to apply cannot be collected with others: it looks at its
/// own.
#[test]
fn a_busy_processor_drops_its_own_garbage() {
    let (_hearth, regions) = start(false);
    let alive = Alive::default();
    let keeper = Vertex::made(0, &alive, &regions);
    for number in 1..=20_000 {
        let alive = Arc::clone(&alive);
        let make = move |keeper: &mut Vertex, here: &mut hearth_regions::Here| {
            let made = here.create(Vertex::new(number, &alive)).unwrap();
            // In pairs that refer to each other; every hundredth pair is kept.
            let other = here.create(Vertex::new(100_000 + number, &alive)).unwrap();
            let back = made.clone();
            here.with(&other, |other, _| other.locals.push(back))
                .unwrap();
            here.with(&made, |made, _| made.locals.push(other)).unwrap();
            if number % 100 == 0 {
                keeper.locals.push(made);
            }
        };
        keeper.command(make).unwrap();
    }
    block_on(regions.rest());
    let left = alive.lock().unwrap().len();
    assert!((401..4_000).contains(&left), "{left}");
    assert_eq!(regions.collect().objects, left - 401);
    assert_eq!(alive.lock().unwrap().len(), 401);
    drop(keeper);
    regions.collect();
    assert_eq!((regions.processors(), regions.bytes()), (0, 0));
}

/// The graph as it should be.
#[derive(Default)]
struct Oracle {
    edges: HashMap<usize, Vec<usize>>,
    handler: HashMap<usize, usize>,
}

impl Oracle {
    fn live(&self, roots: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut live = roots.clone();
        let mut left: Vec<usize> = roots.iter().copied().collect();
        while let Some(from) = left.pop() {
            for to in self.edges.get(&from).into_iter().flatten() {
                if live.insert(*to) {
                    left.push(*to);
                }
            }
        }
        live
    }
}

#[test]
fn random_graphs_are_collected_as_a_search_says() {
    for seed in 0..60 {
        random_graph(seed);
    }
}

fn random_graph(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (_hearth, regions) = start(false);
    let alive = Alive::default();
    let mut oracle = Oracle::default();
    // What the test itself refers to.
    let mut held: HashMap<usize, Separate<Vertex>> = HashMap::new();
    let mut processors: HashMap<usize, Processor> = HashMap::new();
    let (mut next, mut next_processor) = (0, 0);
    for step in 0..400 {
        let some = |random: &mut fastrand::Rng, held: &HashMap<usize, Separate<Vertex>>| {
            let mut numbers: Vec<usize> = held.keys().copied().collect();
            numbers.sort_unstable();
            random
                .choice(numbers)
                .map(|number| (number, held[&number].clone()))
        };
        match random.u32(0..13) {
            0..3 => {
                held.insert(next, Vertex::made(next, &alive, &regions));
                oracle.handler.insert(next, next_processor);
                (next, next_processor) = (next + 1, next_processor + 1);
            }
            3 if processors.len() < 3 => {
                processors.insert(next_processor, regions.processor().unwrap());
                next_processor += 1;
            }
            4 => {
                let mut numbers: Vec<usize> = processors.keys().copied().collect();
                numbers.sort_unstable();
                if let Some(on) = random.choice(numbers) {
                    let (number, set) = (next, Arc::clone(&alive));
                    let made = processors[&on].create(move |_| Vertex::new(number, &set));
                    held.insert(next, made.unwrap());
                    oracle.handler.insert(next, on);
                    next += 1;
                    if random.bool() {
                        processors.remove(&on);
                    }
                }
            }
            5..8 => {
                let from = some(&mut random, &held);
                let to = some(&mut random, &held);
                if let (Some((from, giver)), Some((to, taker))) = (from, to) {
                    link(&giver, &taker);
                    oracle.edges.entry(from).or_default().push(to);
                }
            }
            8 => {
                // A local object, to which somebody outside may refer as well.
                if let Some((from, giver)) = some(&mut random, &held) {
                    let (number, set) = (next, Arc::clone(&alive));
                    let local = giver.query(move |giver, here| {
                        let local = here.create(Vertex::new(number, &set)).unwrap();
                        // It may refer to the one that was made before it.
                        let back = giver.locals.last().cloned();
                        here.with(&local, |local, _| local.locals.extend(back))
                            .unwrap();
                        let separate = local.separate();
                        let before = giver.locals.last().cloned();
                        let before = before.map(|it| here.with(&it, |it, _| it.number).unwrap());
                        giver.locals.push(local);
                        (separate, before)
                    });
                    let (separate, before) = local.wait().unwrap();
                    oracle.edges.entry(from).or_default().push(number);
                    oracle.edges.entry(number).or_default().extend(before);
                    oracle.handler.insert(number, oracle.handler[&from]);
                    if random.bool() {
                        held.insert(number, separate);
                    }
                    next += 1;
                }
            }
            9 => {
                if let Some((from, giver)) = some(&mut random, &held) {
                    let cleared = |giver: &mut Vertex, _: &mut _| {
                        giver.links.clear();
                        giver.locals.clear();
                    };
                    giver.query(cleared).wait().unwrap();
                    oracle.edges.remove(&from);
                }
            }
            10..12 => {
                if let Some((number, _)) = some(&mut random, &held) {
                    held.remove(&number);
                }
            }
            _ => {
                block_on(regions.rest());
                regions.collect();
                let live = oracle.live(&held.keys().copied().collect());
                let found: BTreeSet<usize> = left(&alive).into_iter().collect();
                assert_eq!(found, live, "seed {seed}, step {step}");
                let mut handlers: BTreeSet<usize> =
                    live.iter().map(|number| oracle.handler[number]).collect();
                handlers.extend(processors.keys());
                assert_eq!(
                    regions.processors(),
                    handlers.len(),
                    "seed {seed}, step {step}"
                );
            }
        }
    }
}

/// Wanderers that pass references on while collections go round: nobody that is alive may go.
#[test]
fn what_moves_between_processors_lives() {
    for seed in 0..4 {
        moving(seed);
    }
}

fn moving(seed: u64) {
    const VERTICES: usize = 32;
    let (_hearth, regions) = start(false);
    let alive = Alive::default();
    // Outside refers to the first only; it and the others hand their references around.
    let all: Vec<_> = (0..VERTICES)
        .map(|number| Vertex::made(number, &alive, &regions))
        .collect();
    for (number, from) in all.iter().enumerate() {
        for step in [1, 5] {
            link(from, &all[(number + step) % VERTICES]);
        }
    }
    let first = all[0].clone();
    drop(all);
    let collecting = {
        let regions = regions.clone();
        std::thread::spawn(move || {
            let mut rounds = 0;
            for _ in 0..400 {
                rounds += regions.collect().processors;
                std::thread::yield_now();
            }
            rounds
        })
    };
    let mut random = fastrand::Rng::with_seed(seed);
    let mut refused = 0;
    while !collecting.is_finished() {
        let seed = random.u64(..);
        refused += usize::from(
            first
                .command(move |vertex, _| wander(vertex, seed, 12))
                .is_err(),
        );
        block_on(regions.rest());
    }
    assert_eq!((collecting.join().unwrap(), refused), (0, 0), "seed {seed}");
    assert_eq!(left(&alive).len(), VERTICES, "seed {seed}");
    assert_eq!(regions.take_failures(), Vec::<String>::new(), "seed {seed}");
    drop(first);
    block_on(regions.rest());
    regions.collect();
    assert_eq!(left(&alive), Vec::<usize>::new());
}

/// Takes a reference out and gives it to whom another one leads to, which goes on: links move, and
/// each vertex stays reachable, as the giver keeps its link to whom it gave to.
fn wander(vertex: &mut Vertex, seed: u64, steps: u32) {
    let mut random = fastrand::Rng::with_seed(seed);
    if steps == 0 {
        return;
    }
    let to = random.usize(0..vertex.links.len());
    let next = vertex.links[to].clone();
    let given = (vertex.links.len() > 1).then(|| {
        let at = (to + 1) % vertex.links.len();
        vertex.links.swap_remove(at)
    });
    let seed = random.u64(..);
    let call = move |next: &mut Vertex, _: &mut _| {
        next.links.extend(given);
        wander(next, seed, steps - 1);
    };
    next.command(call).unwrap();
}
