//! `--place talk`, while the program runs: who talks with whom is
//! [seen](crate::exchange::carrier::traffic) by samples, and components move where a plan by these
//! figures wants them, if that is worth the move.
//!
//! One thread does it, some times a second while anything runs, and sleeps while all sleeps. It
//! reads what carriers publish and leaves orders with workers; nobody ever waits for it.
//!
//! Nothing flaps: a plan must be better by [`MARGIN`], and be so twice in a row; after a move
//! everything is seen anew; each move makes the time until the next may come twice as long, until
//! moves have become rare, and what the next one must gain larger, until it is [`CLEAR`]; and of
//! two that [take turns](turns) it is remembered that two cores do no more for them than one. Who
//! is nowhere yet, or where nobody may be, is placed at once, and alone.

mod cores;
mod event;
pub(crate) mod initial;
mod log;
mod site;
mod statistics;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

use hearth_place::adapt::{Patience, follow, replan};
use hearth_place::cost;
use hearth_place::slots::{Placement, Slot};
use hearth_place::talk::{Effort, talk};
use hearth_sys::futex;

use crate::exchange::carrier::traffic::{self, NO_WORKER};
use crate::exchange::carrier::{self, Order};
use crate::ground::options;
use crate::ground::runtime::{self, Part};
use cores::{Change, Cores};
pub(crate) use event::listen;
pub use event::{Event, Happened, Move, Why};
pub(crate) use log::server as tell_of_server;
use site::{Scene, Site, Survey};
use statistics::Statistics;
use turns::Turns;

/// How often placements are thought over: components that live for less are left where they are.
const EVERY: Duration = Duration::from_millis(100);
/// Nothing is decided by less than was seen in so long.
const SEEN_NS: f64 = 80e6;
/// A plan is followed if it costs less by this part: what samples and the model may be wrong by.
const MARGIN: f64 = 0.1;
/// Whoever moves again soon was wrong by more than that: the margin becomes larger by this factor.
const DOUBT: f64 = 1.5;
/// A move that was followed by none for so long was none too many.
const CONTENT: Duration = Duration::from_secs(60);
/// One that costs less by this part is followed at once, others when they are found twice.
const CLEAR: f64 = 0.3;
/// A plan pays for its moves within a second, which is a round here. What moving a component takes
/// is from its worker's part to the first messages at its new place.
const PATIENCE: Patience = Patience {
    rounds: 1.0,
    move_ns: 30_000.0,
    byte_ns: 0.2,
    margin: MARGIN,
};
/// About a millisecond for a hundred components.
const EFFORT: Effort = Effort {
    steps: 2_000,
    seed: 1,
};
/// To think takes so large a part of a core's time, at most.
const DUTY: u32 = 100;
/// At least so long after a move comes the next, and at most.
const REST_MIN: Duration = Duration::from_millis(150);
const REST_MAX: Duration = Duration::from_secs(5);

static STARTED: Part<AtomicBool> = Part::new(AtomicBool::default);
static ASLEEP: Part<AtomicU32> = Part::new(AtomicU32::default);

/// The first carrier starts. The calling thread is not pinned.
pub(crate) fn start() {
    let is_first = options::get().watches_traffic() && !STARTED.swap(true, Ordering::Relaxed);
    // Before the log is there: who sees it may take cores away, and the placer is to notice.
    let cores = is_first.then(Cores::look);
    log::begin();
    let Some(cores) = cores else { return };
    // Without the thread everything stays where it began, and works.
    let _ = runtime::spawn("placer", 4 << 20, || Placer::new(cores).live());
}

/// Something was published.
pub(crate) fn notice() {
    // With the fence in `sleep`: either that thread sees what was published, or this one that it
    // sleeps.
    fence(Ordering::SeqCst);
    let asleep = &*ASLEEP;
    if asleep.load(Ordering::Relaxed) == 1 && asleep.swap(0, Ordering::Relaxed) == 1 {
        futex::wake_one(ptr::from_ref(asleep).expose_provenance());
    }
}

/// What could be done.
struct Proposal {
    scene: Scene,
    plan: Placement,
    /// Which components of the scene are elsewhere in the plan.
    moves: Vec<usize>,
    /// What is best for those who are where nobody may be any more, or were never placed, with all
    /// others where they are.
    here: Placement,
    /// What J is, in ns a second, and what it would be.
    now_ns: f64,
    then_ns: f64,
}

impl Proposal {
    /// That those who are nowhere get a place, and nobody else another.
    fn of_the_homeless(mut self) -> Proposal {
        let at = &self.scene.at;
        self.moves.retain(|&one| at[one].is_none());
        self.plan.0.clone_from(&self.here.0);
        self.then_ns = self.now_ns;
        self
    }
}

struct Placer {
    cores: Cores,
    /// None where nothing can be known of the machine.
    survey: Option<Survey>,
    is_surveyed: bool,
    site: Option<Site>,
    statistics: Statistics,
    turns: Turns,
    looked: Instant,
    /// Where threads were put, with a thread for each component.
    threads: BTreeMap<u64, Slot>,
    /// A plan was better the last time.
    was_better: bool,
    /// No move before.
    next_move: Instant,
    rest: Duration,
    /// By what part a plan must cost less.
    margin: f64,
    /// The last plan that was followed.
    moved: Option<Instant>,
    /// No thought before.
    next_thought: Instant,
}

impl Placer {
    fn new(cores: Cores) -> Placer {
        let now = Instant::now();
        Placer {
            cores,
            survey: None,
            is_surveyed: false,
            site: None,
            statistics: Statistics::default(),
            turns: Turns::default(),
            looked: now,
            threads: BTreeMap::new(),
            was_better: false,
            next_move: now,
            rest: REST_MIN,
            margin: MARGIN,
            moved: None,
            next_thought: now,
        }
    }

    fn live(mut self) {
        while runtime::current().pause(EVERY) {
            let (seen, _) = traffic::take();
            let change = self.cores.look_again();
            if seen.is_empty() && change.is_none() {
                sleep();
                self.looked = Instant::now();
                continue;
            }
            let now = Instant::now();
            let elapsed = now - std::mem::replace(&mut self.looked, now);
            self.statistics.age(elapsed.as_nanos() as u64);
            self.statistics.add(&seen);
            if !change.is_none() {
                log::cores(&change);
                self.look_at_site();
            }
            if !self.is_surveyed && self.statistics.span_ns() >= SEEN_NS {
                // Not sooner, as it takes a core, and most programs have something to do as they
                // start.
                self.is_surveyed = true;
                self.survey = Survey::load(self.cores.allowed());
                self.look_at_site();
            }
            if now >= self.next_thought || !change.is_none() {
                self.think(&change);
                self.next_thought = now + DUTY * now.elapsed();
            }
        }
    }

    fn look_at_site(&mut self) {
        let allowed = self.cores.allowed();
        self.site = self.survey.as_ref().and_then(|survey| survey.site(allowed));
        // Slots are others now.
        self.threads.clear();
        self.turns.look_anew();
    }

    /// Looks for a better plan, and follows it if it is worth that.
    fn think(&mut self, change: &Change) {
        let Some(proposal) = self.propose() else {
            return;
        };
        let is_worth = self.is_worth(&proposal);
        let is_all = is_worth || !change.lost.is_empty();
        let proposal = match is_all {
            true => proposal,
            false => proposal.of_the_homeless(),
        };
        if proposal.moves.is_empty() {
            return;
        }
        if let Some(site) = &self.site {
            log::moves(&self.statistics, site, &proposal);
        }
        self.order(&proposal);
        if is_all {
            self.rest();
        }
    }

    /// The best plan for what was seen. None if too little was, or there is no choice.
    fn propose(&mut self) -> Option<Proposal> {
        let site = self.site.as_ref()?;
        if self.statistics.span_ns() < SEEN_NS {
            return None;
        }
        let mut scene = Scene::new(&self.statistics, site, &self.threads);
        self.turns.tell(&self.statistics, &mut scene);
        let is_homeless = scene.at.iter().any(Option::is_none);
        if scene.ids.is_empty() || !site.is_choice() && !is_homeless {
            return None;
        }
        let options = cost::Options {
            carrier: site.carrier,
            ..cost::Options::default()
        };
        let (graph, machine) = (&scene.graph, &site.machine);
        let here = follow(graph, machine, &options, &scene.at).ok()?;
        let near = replan(graph, machine, &options, &here, &PATIENCE, EFFORT).ok()?;
        let (now_ns, mut then_ns) = (near.before_ns, near.cost.total_ns);
        let mut plan = near.placement;
        // What few moves cannot reach, if it is far better.
        let anew = talk(graph, machine, &options, EFFORT, Some(&plan)).ok()?;
        if anew.cost.total_ns < (1.0 - CLEAR) * then_ns {
            (plan, then_ns) = (anew.placement, anew.cost.total_ns);
        }
        let moves = (0..scene.ids.len())
            .filter(|&one| scene.at[one] != Some(plan.0[one]))
            .filter(|&one| !scene.graph.components[one].stays)
            .collect();
        Some(Proposal {
            scene,
            plan,
            moves,
            here,
            now_ns,
            then_ns,
        })
    }

    /// Does a plan pay for its moves, and is it time?
    fn is_worth(&mut self, proposal: &Proposal) -> bool {
        let (now, then) = (proposal.now_ns, proposal.then_ns);
        let moves = proposal.moves.len() as f64;
        // ns of the busiest core a second, as the graph's round is one.
        let gain = now - then;
        let is_better =
            gain > self.margin * now && gain * PATIENCE.rounds > moves * PATIENCE.move_ns;
        let is_clear = gain > CLEAR * now;
        let was_better = std::mem::replace(&mut self.was_better, is_better);
        is_better && (was_better || is_clear) && Instant::now() >= self.next_move
    }

    /// Has components go where a plan wants them.
    fn order(&mut self, proposal: &Proposal) {
        let Proposal {
            scene, plan, moves, ..
        } = proposal;
        // Of those that have ended nothing is kept: there may be thousands a second.
        carrier::keep_running(&mut self.threads);
        let Some(site) = self.site.as_ref() else {
            return;
        };
        let homes: BTreeMap<u64, u16> = self
            .statistics
            .components()
            .iter()
            .map(|(component, _)| (component.who.id, component.home))
            .collect();
        let mut orders: BTreeMap<u16, Vec<Order>> = BTreeMap::new();
        for &one in moves {
            let (id, slot) = (scene.ids[one], plan.0[one]);
            match (homes.get(&id), site.worker_of(slot)) {
                (Some(&home), Some(to)) if home != NO_WORKER => {
                    self.statistics.went(id, to);
                    orders.entry(home).or_default().push(Order { id, to });
                }
                (Some(&NO_WORKER), None) if carrier::move_thread(id, site.core_of(slot)) => {
                    self.threads.insert(id, slot);
                }
                _ => {}
            }
        }
        for (home, orders) in orders {
            carrier::order(usize::from(home), orders);
        }
    }

    /// After a plan was followed: all is seen anew, and the next one waits.
    fn rest(&mut self) {
        let now = Instant::now();
        // A program of phases moves at each; one that is never content, ever more rarely.
        let is_early = now < self.next_move + REST_MAX;
        self.rest = match is_early {
            true => (2 * self.rest).min(REST_MAX),
            false => REST_MIN,
        };
        self.next_move = now + self.rest;
        let is_again = self
            .moved
            .replace(now)
            .is_some_and(|then| now < then + CONTENT);
        self.margin = match is_again {
            true => (DOUBT * self.margin).min(CLEAR),
            false => MARGIN,
        };
        self.was_better = false;
        self.statistics = Statistics::default();
    }
}

fn sleep() {
    ASLEEP.store(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    if traffic::is_any() || runtime::current().is_over() {
        ASLEEP.store(0, Ordering::Relaxed);
        return;
    }
    while ASLEEP.load(Ordering::Relaxed) == 1 {
        futex::wait(&ASLEEP, 1);
    }
}
