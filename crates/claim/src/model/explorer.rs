//! All orders of steps of some members, state by state, the nearest first.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::rc::Rc;

use super::player::{self, Act, Answer, Place, Rules, Step};
use super::text::{Text, number};
use super::world::{Changed, Damage, World};

/// Steps of a member that are more than it ever needs.
const STEPS_MAX: usize = 1000;

/// Members with their programs, and what may happen to them.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) rules: Rules,
    pub(super) programs: Vec<Vec<Act>>,
    /// Parts of each program that are done before, one member after another.
    pub(super) before: Vec<usize>,
    pub(super) kills: u32,
    pub(super) damages: u32,
    pub(super) tears: u32,
    pub(super) switches: u32,
    /// States more than these are too many to be seen.
    pub(super) states_max: usize,
}

/// Numbers of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) states: usize,
    /// Those in which no member has a step left.
    pub(super) ends: usize,
}

/// Something that happens next.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A member takes its step and gets one of the answers that there may be.
    Step(usize, usize),
    Kill(usize),
    Damage(Damage),
}

struct Known {
    place: Place,
    before: u32,
    answer: Option<Answer>,
}

struct Explorer<'a> {
    model: &'a Model,
    programs: Vec<Vec<Act>>,
    known: Vec<Known>,
    after: HashMap<(u32, Answer), u32>,
    whole: HashSet<u128>,
    newcomer: u32,
    /// Places of members, by all that decides what they do next.
    alike: HashMap<(usize, u128), u32>,
}

impl Model {
    /// Tries everything. The shortest way to a failure, if there is one.
    pub(super) fn explore(&self) -> Result<Seen, String> {
        let mut newcomer = self.programs.clone();
        newcomer.push(vec![Act::Join, Act::Invade(self.rules.cores as usize)]);
        let mut explorer = Explorer {
            model: self,
            programs: newcomer,
            known: Vec::new(),
            after: HashMap::new(),
            whole: HashSet::new(),
            newcomer: 0,
            alike: HashMap::new(),
        };
        explorer.explore()
    }
}

impl Explorer<'_> {
    fn explore(&mut self) -> Result<Seen, String> {
        let first = self.first();
        let mut seen = HashSet::from([number(&first)]);
        let mut ways: Vec<(usize, Event)> = vec![(0, Event::Kill(0))];
        let mut here = vec![(0, first.clone())];
        let mut ends = 0;
        while !here.is_empty() {
            let mut there = Vec::new();
            for (way, world) in here {
                let events = self.events(&world);
                let is_end = !events
                    .iter()
                    .any(|(event, _)| matches!(event, Event::Step(..)));
                ends += usize::from(is_end);
                let wrong = self.wrong(&world, is_end);
                if let Some(wrong) = wrong {
                    return Err(self.told(&wrong, &first, &ways, way));
                }
                for (event, next) in events {
                    if seen.insert(number(&next)) {
                        ways.push((way, event));
                        there.push((ways.len() - 1, next));
                    }
                }
                if seen.len() > self.model.states_max {
                    return Err(format!("more than {} states", self.model.states_max));
                }
            }
            here = there;
        }
        Ok(Seen {
            states: seen.len(),
            ends,
        })
    }

    /// The world at the beginning.
    fn first(&mut self) -> World {
        // Place 0 is that of all who have ended.
        let mut world = World::new(self.model.programs.len());
        self.know(0, 0, None);
        for at in 0..self.model.programs.len() {
            world.players[at].place = self.know(at, 0, None);
        }
        self.newcomer = self.know(self.model.programs.len(), 0, None);
        for (at, acts) in self.model.before.iter().enumerate() {
            world = self.alone(world, at, *acts);
        }
        world.kills = self.model.kills;
        world.damages = self.model.damages;
        world.tears = self.model.tears;
        world.switches = self.model.switches;
        world
    }

    /// Lets one member go on alone, until so many parts of its program are done.
    fn alone(&mut self, mut world: World, at: usize, acts: usize) -> World {
        while self.known(&world, at).place.acts < acts
            && self.known(&world, at).place.next.is_some()
        {
            let steps = self.steps(&world, at);
            world = steps.into_iter().next().expect("an answer");
        }
        world
    }

    fn known(&self, world: &World, at: usize) -> &Known {
        &self.known[world.players[at].place as usize]
    }

    /// A member's place after an answer.
    fn know(&mut self, member: usize, before: u32, answer: Option<Answer>) -> u32 {
        let mut answers: Vec<Answer> = answer.clone().into_iter().collect();
        let mut from = before as usize;
        if answer.is_some() {
            while let Some(answer) = &self.known[from].answer {
                answers.push(answer.clone());
                from = self.known[from].before as usize;
            }
        }
        answers.reverse();
        let steps = answers.len();
        let program = &self.programs[member];
        let mut place = player::place(member, program, self.model.rules, answers);
        if steps > STEPS_MAX {
            place.complaint = Some("an operation does not end".to_owned());
        }
        let like = place.is_like.map(|like| (member, like));
        if let Some(known) = like.and_then(|like| self.alike.get(&like)) {
            return *known;
        }
        self.known.push(Known {
            place,
            before,
            answer,
        });
        let number = u32::try_from(self.known.len() - 1).expect("a number");
        self.alike.extend(like.map(|like| (like, number)));
        number
    }

    /// The answers that a member's next step may get, with what changes.
    fn results(&self, world: &World, at: usize) -> Option<(Rc<Step>, Vec<Changed>)> {
        let step = self.known(world, at).place.next.clone()?;
        let racing = |writer: usize| match self.known(world, writer).place.next.as_deref() {
            Some(Step::WriteOwn(text)) => Some(Text::clone(text)),
            _ => None,
        };
        let results = world.step(at, &step, self.model.rules.fault, &racing);
        Some((step, results))
    }

    /// The worlds after a member's next step, and after those that nobody notices.
    fn steps(&mut self, world: &World, at: usize) -> Vec<World> {
        let Some((_, results)) = self.results(world, at) else {
            return Vec::new();
        };
        let mut worlds = Vec::new();
        for (answer, mut next, over) in results {
            self.advance(&mut next, at, answer);
            if let Some(writer) = over {
                self.advance(&mut next, writer, Answer::Done);
            }
            worlds.push(next);
        }
        worlds
    }

    fn advance(&mut self, world: &mut World, at: usize, answer: Answer) {
        self.place(world, at, answer);
        while let Some(step) = &self.known(world, at).place.next
            && world.is_private(step)
        {
            let step = Rc::clone(step);
            let mut results = world.step(at, &step, None, &|_| None);
            let (answer, next, _) = results.pop().expect("an answer");
            *world = next;
            self.place(world, at, answer);
        }
    }

    fn place(&mut self, world: &mut World, at: usize, answer: Answer) {
        let before = world.players[at].place;
        let key = (before, answer);
        world.players[at].place = match self.after.get(&key) {
            Some(place) => *place,
            None => {
                let place = self.know(at, before, Some(key.1.clone()));
                self.after.insert(key, place);
                place
            }
        };
    }

    /// Everything that may happen next, with the world then.
    fn events(&mut self, world: &World) -> Vec<(Event, World)> {
        let mut events = Vec::new();
        for at in 0..self.model.programs.len() {
            if world.players[at].has_ended {
                continue;
            }
            let last = &world.players[world.last];
            let goes_on = !last.has_ended && self.known(world, world.last).place.next.is_some();
            let cost = u32::from(at != world.last && goes_on);
            if cost <= world.switches {
                for (nth, mut next) in self.steps(world, at).into_iter().enumerate() {
                    (next.last, next.switches) = (at, world.switches - cost);
                    events.push((Event::Step(at, nth), next));
                }
            }
            if world.kills > 0 {
                events.push((Event::Kill(at), world.kill(at)));
            }
        }
        if world.damages > 0 {
            let damages = world.damages().into_iter();
            events.extend(damages.map(|one| (Event::Damage(one), world.damage(one))));
        }
        events
    }

    /// Cores that living members have, as bits.
    fn owned(&self, world: &World) -> impl Iterator<Item = u32> {
        let living = world.players.iter().filter(|player| !player.has_ended);
        living.map(|player| self.known[player.place as usize].place.owned)
    }

    fn wrong(&mut self, world: &World, is_end: bool) -> Option<String> {
        let mut all = 0;
        for owned in self.owned(world) {
            if all & owned != 0 {
                return Some("a core belongs to two".to_owned());
            }
            all |= owned;
        }
        for at in 0..world.players.len() {
            let known = self.known(world, at);
            if !world.players[at].has_ended && known.place.complaint.is_some() {
                return known.place.complaint.clone();
            }
        }
        if !is_end {
            return None;
        }
        let is_damaged = world.damages < self.model.damages;
        if !is_damaged && world.told() != all {
            return Some("the newest state does not tell who has which cores".to_owned());
        }
        let mut rest = world.clone();
        for player in &mut rest.players {
            player.place = 0;
        }
        (rest.kills, rest.damages, rest.tears) = (0, 0, 0);
        (rest.last, rest.switches) = (0, 0);
        if !self.whole.insert(number(&(&rest, all))) {
            return None;
        }
        // What is left, a newcomer gets.
        let newcomer = rest.players.len();
        rest.players.push(Default::default());
        rest.players[newcomer].place = self.newcomer;
        rest = self.alone(rest, newcomer, usize::MAX);
        let known = self.known(&rest, newcomer);
        let left = (1 << self.model.rules.cores) - 1 - all;
        match &known.place.complaint {
            Some(complaint) => Some(format!("a newcomer: {complaint}")),
            // What a state gave back that somebody removed is free again when its holder next
            // changes something.
            None if is_damaged && known.place.owned & !left == 0 => None,
            None if known.place.owned != left => Some(format!(
                "a newcomer gets cores {:b} instead of {left:b}",
                known.place.owned
            )),
            None => None,
        }
    }

    /// The way to a failure, for people.
    fn told(
        &mut self,
        wrong: &str,
        first: &World,
        ways: &[(usize, Event)],
        mut way: usize,
    ) -> String {
        let mut events = Vec::new();
        while way != 0 {
            events.push(ways[way].1);
            way = ways[way].0;
        }
        let mut text = format!("{wrong}, after {} steps:\n", events.len());
        let mut world = first.clone();
        for event in events.into_iter().rev() {
            let next = match event {
                Event::Kill(at) => {
                    let _ = writeln!(text, "  {at} is killed");
                    world.kill(at)
                }
                Event::Damage(damage) => {
                    let _ = writeln!(text, "  somebody: {damage:?}");
                    world.damage(damage)
                }
                Event::Step(at, nth) => {
                    if let Some((step, results)) = self.results(&world, at) {
                        let _ = writeln!(text, "  {at}: {step} {}", results[nth].0);
                    }
                    self.steps(&world, at).swap_remove(nth)
                }
            };
            world = next;
        }
        for (at, owned) in self.owned(&world).enumerate() {
            let _ = writeln!(text, "  living {at} has {owned:b}");
        }
        text
    }
}
