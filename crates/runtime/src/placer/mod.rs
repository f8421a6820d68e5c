//! `--place talk`, at run time: [samples](crate::exchange::carrier::traffic) show which components
//! exchange messages, and components move to where a plan by these figures wants them, if that is
//! worth the move.
//!
//! One thread does this, several times a second while anything runs, and sleeps while all sleeps.
//! It reads the carriers' published samples and leaves move orders with workers; no thread ever
//! waits for it.
//!
//! Three rules prevent flapping. A plan must be better by [`MARGIN`], twice in a row. After a move
//! all statistics are cleared, and each move can double the time until the next, until moves are
//! rare, and raises the gain that the next must have, up to [`CLEAR`]. And the placer remembers
//! which pairs [take turns](turns): two cores do no more for them than one. A component without a
//! place, or at one that is not usable any more, is placed at once, and alone.

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
use hearth_place::slots::{CpuSlot, Placement};
use hearth_place::talk::{Effort, talk};
use hearth_sys::{clock, futex};

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

/// Interval between placement decisions: components that live for less are left where they are.
const EVERY: Duration = Duration::from_millis(100);
/// Least observed time that a decision needs.
const SEEN_NS: f64 = 80e6;
/// Relative gain that a plan must have: the possible error of samples and model.
const MARGIN: f64 = 0.1;
/// Factor by which the margin grows when a component moves again soon: the error was larger than
/// the margin.
const DOUBT: f64 = 1.5;
/// Time without another move after which the margin returns to [`MARGIN`].
const CONTENT: Duration = Duration::from_secs(60);
/// Relative gain from which a plan is followed at once; others must be found twice.
const CLEAR: f64 = 0.3;
/// A plan pays for its moves within a second, which is a round here. A move's cost counts from its
/// worker's part to the first messages at the new place.
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
/// Planning takes at most one part in this many of a core's time.
const DUTY: u32 = 100;
/// Least and most time between a move and the next.
const REST_MIN: Duration = Duration::from_millis(150);
const REST_MAX: Duration = Duration::from_secs(5);

static STARTED: Part<AtomicBool> = Part::new(AtomicBool::default);
static ASLEEP: Part<AtomicU32> = Part::new(AtomicU32::default);

/// Starts the placer with the first carrier. The calling thread must not be pinned.
pub(crate) fn start() {
    let is_first = options::get().watches_traffic() && !STARTED.swap(true, Ordering::Relaxed);
    // Before the log exists: a reader of the log may take cores away, and the placer must notice.
    let cores = is_first.then(Cores::look);
    log::begin();
    let Some(cores) = cores else { return };
    // Without the thread all components stay where they began, and work.
    let _ = runtime::spawn("placer", 4 << 20, || Placer::new(cores).live());
}

/// Wakes the placer: a carrier has published samples.
pub(crate) fn notice() {
    // Pairs with the fence in `sleep`: either that thread sees the samples, or this one sees that
    // it sleeps.
    fence(Ordering::SeqCst);
    let asleep = &*ASLEEP;
    if asleep.load(Ordering::Relaxed) == 1 && asleep.swap(0, Ordering::Relaxed) == 1 {
        futex::wake_one(ptr::from_ref(asleep).expose_provenance());
    }
}

/// A possible new placement.
struct Proposal {
    scene: Scene,
    plan: Placement,
    /// Scene indices of the components that the plan moves.
    moves: Vec<usize>,
    /// The best placement of components whose core is not usable any more, or that were never
    /// placed, with all others unmoved.
    here: Placement,
    /// Current and planned J, in ns a second.
    now_ns: f64,
    then_ns: f64,
}

impl Proposal {
    /// Reduces the proposal to placing the homeless components; no other moves.
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
    /// None if nothing is known of the machine.
    survey: Option<Survey>,
    is_surveyed: bool,
    site: Option<Site>,
    statistics: Statistics,
    turns: Turns,
    looked: Instant,
    /// Slots of threads, with a thread for each component.
    threads: BTreeMap<u64, CpuSlot>,
    /// The last look found a better plan.
    was_better: bool,
    /// Earliest moment of the next move.
    next_move: Instant,
    rest: Duration,
    /// Relative gain that a plan must have.
    margin: f64,
    /// Moment of the last plan that was followed.
    moved: Option<Instant>,
    /// Earliest moment of the next decision.
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
                // Not sooner: the survey takes a core, and most programs are busy as they start.
                self.is_surveyed = true;
                self.survey = Survey::load(self.cores.allowed());
                self.look_at_site();
            }
            if now >= self.next_thought || !change.is_none() {
                let began = clock::thread_ns();
                self.think(&change);
                // CPU time: where all cores compute, the thread waits for one for far longer.
                let took = Duration::from_nanos(clock::thread_ns() - began);
                self.next_thought = now + DUTY * took;
            }
        }
    }

    fn look_at_site(&mut self) {
        let allowed = self.cores.allowed();
        self.site = self.survey.as_ref().and_then(|survey| survey.site(allowed));
        // The slots have changed.
        self.threads.clear();
        self.turns.look_anew();
    }

    /// Looks for a better plan, and follows it if it is worth its moves.
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

    /// Finds the best plan for the observed traffic. None if too little was observed, or there is
    /// no choice.
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
        let options = cost::CostOptions {
            carrier: site.carrier,
            ..cost::CostOptions::default()
        };
        let (graph, machine) = (&scene.graph, &site.machine);
        let here = follow(graph, machine, &options, &scene.at).ok()?;
        let near = replan(graph, machine, &options, &here, &PATIENCE, EFFORT).ok()?;
        let (now_ns, mut then_ns) = (near.before_ns, near.cost.total_ns);
        let mut plan = near.placement;
        // A far better plan may lie beyond the reach of few moves.
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

    /// Tells whether a plan pays for its moves, and whether it is time.
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

    /// Orders components to the plan's places.
    fn order(&mut self, proposal: &Proposal) {
        let Proposal {
            scene, plan, moves, ..
        } = proposal;
        // Forget ended components: there may be thousands a second.
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

    /// Clears all statistics after a plan was followed, and delays the next plan.
    fn rest(&mut self) {
        let now = Instant::now();
        // A program with phases moves at each; one that never settles, ever more rarely.
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
