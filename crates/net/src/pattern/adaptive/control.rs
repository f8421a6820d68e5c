//! The choice of the threads that have the connections. Pure: no clock, no threads; it observes
//! what each stretch of time brought.
//!
//! [`hearth_sync::auto`] tries ways to serve beside each other. This module adds which of them are
//! worth a trial, which thread gives how many connections to which when the way changes, and that a
//! thread which cannot keep up with one connection gives its other connections away.

use std::ops::Range;

use hearth_sync::auto::{Controller, Window};

use super::survey::Survey;
use crate::pattern::crew::{Order, Which};

/// Length of windows relative to those of sections: 10 ms. A change of ways moves connections, and
/// the scheduler needs some milliseconds to spread threads again.
const PACE: f64 = 2.0;
/// Number of ways up to which each is tried.
const WAYS_FEW: usize = 4;
/// Mean busy share of the threads at work below which more threads are of no use.
const BUSY_ENOUGH: f64 = 0.2;
/// Busy share above which a thread has nothing to gain by spinning.
const BUSY_ALL: f64 = 0.95;
/// Weight of the last window in a thread's busy share.
const BUSY_NEW: f64 = 0.3;
/// Busy share above which a thread cannot keep up.
const OVERLOADED: f64 = 0.9;
/// Difference in busy share at which an overloaded thread gives connections to another.
const UNEVEN: f64 = 0.3;
/// Length of the steps, in seconds, while connections move; they are not judged.
const MOVING: f64 = 0.002;
/// Most such steps: a thread stuck in a long call gives nothing away.
const MOVING_STEPS: u32 = 50;
/// Windows under a new load before all ways are surveyed.
const SURVEY_AFTER: u32 = 4;
/// Ratio of replies that twice the threads must bring in a survey, and spinning threads as well.
const SURVEY_GAIN: f64 = 1.02;
/// Windows after a move of connections in which no thread counts as overloaded.
const CALM_WINDOWS: u32 = 10;

/// A way to serve: a number of threads that wait by one mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// Index of the mechanism.
    pub(super) kind: usize,
    pub(super) threads: usize,
    /// Whether they spin before they sleep.
    pub(super) spins: bool,
}

/// Observations of a stretch of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) ticks: u64,
    /// Replies, or something proportional to them.
    pub(super) calls: u64,
    /// Busy share of each started thread.
    pub(super) busy: &'a [f64],
    /// Number of connections of each started thread.
    pub(super) held: &'a [usize],
}

/// The next actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StretchPlan {
    /// Length of the next stretch.
    pub(super) ticks: u64,
    /// Orders, each with the thread that gives.
    pub(super) moves: Vec<(usize, Order)>,
}

pub(super) struct Control {
    auto: Controller,
    ways: Vec<Way>,
    /// Threads of each mechanism.
    most: usize,
    /// Present way.
    now: usize,
    /// Steps for which connections have been moving to this way's threads; none if they are there.
    moving: Option<u32>,
    survey: Option<Survey>,
    /// Number of the load of the last survey, and windows under the present load.
    surveyed: Option<u64>,
    windows: (u64, u32),
    ticks_per_second: f64,
    busy: Vec<f64>,
    /// Windows since connections moved.
    calm: u32,
}

impl Control {
    /// A control for `most` threads of each of these mechanisms on this many cores. It begins with
    /// one thread of the first.
    pub(super) fn new(
        kinds: &[String],
        most: usize,
        cores: usize,
        ticks_per_second: f64,
    ) -> Control {
        let mut counts: Vec<usize> = (0..usize::BITS)
            .map(|power| 1 << power)
            .take_while(|count| *count < most)
            .collect();
        counts.push(most);
        // Ordered by what they need.
        let ways: Vec<Way> = counts
            .iter()
            .flat_map(|&threads| [(threads, false), (threads, true)])
            // A spinning thread needs a core, and so do the clients.
            .filter(|(threads, spins)| !spins || *threads < cores)
            .flat_map(|(threads, spins)| {
                (0..kinds.len()).map(move |kind| Way {
                    kind,
                    threads,
                    spins,
                })
            })
            .collect();
        let names = ways.iter().map(|way| {
            let plural = if way.threads == 1 { "" } else { "s" };
            let spinning = if way.spins { " spinning" } else { "" };
            format!(
                "{} thread{plural}, {}{spinning}",
                way.threads, kinds[way.kind]
            )
        });
        Control {
            auto: Controller::new(names, ticks_per_second).paced(PACE),
            busy: vec![0.0; most * kinds.len()],
            ways,
            most,
            now: 0,
            moving: None,
            survey: None,
            surveyed: None,
            windows: (0, 0),
            ticks_per_second,
            calm: 0,
        }
    }

    /// The present way, trials included.
    pub(super) fn way(&self) -> Way {
        self.ways[self.now]
    }

    /// The threads that have connections now.
    pub(super) fn active(&self) -> Range<usize> {
        let way = self.way();
        let first = way.kind * self.most;
        first..first + way.threads
    }

    pub(super) fn explain(&self) -> String {
        self.auto.explain()
    }

    #[cfg(test)]
    pub(super) fn home(&self) -> Way {
        self.ways[self.auto.home()]
    }

    #[cfg(test)]
    pub(super) fn switches(&self) -> u64 {
        self.auto.switches()
    }

    /// True if nothing is being tried: without events there is nothing to observe.
    pub(super) fn is_calm(&self) -> bool {
        !self.auto.is_trying() && self.survey.is_none()
    }

    pub(super) fn ticks(&self) -> u64 {
        self.auto.step().ticks
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>) -> StretchPlan {
        for (known, new) in self.busy.iter_mut().zip(seen.busy) {
            *known += BUSY_NEW * (new - *known);
        }
        let connections: usize = seen.held.iter().sum();
        self.allow(connections);
        let window = Window {
            ticks: seen.ticks,
            calls: seen.calls,
            callers: u32::try_from(connections).unwrap_or(u32::MAX),
            ..Window::default()
        };
        if let Some(steps) = self.moving {
            self.auto.pass(&window);
            let is_over = steps >= MOVING_STEPS || self.strays(seen.held).next().is_none();
            self.moving = (!is_over).then_some(steps + 1);
            let ticks = if is_over {
                self.stretch()
            } else {
                self.moving_ticks()
            };
            let moves = Vec::new();
            return StretchPlan { ticks, moves };
        }
        let mode = match self.survey {
            Some(_) => self.look_on(&window),
            None => {
                let step = self.auto.observe(&window);
                self.begin_survey(&window).unwrap_or(step.mode)
            }
        };
        self.go_to(mode, seen.held)
    }

    fn go_to(&mut self, mode: usize, held: &[usize]) -> StretchPlan {
        let is_new = mode != self.now;
        self.now = mode;
        let moves = match is_new {
            true => self.spread(held),
            false => self.mend(held),
        };
        self.calm = if moves.is_empty() { self.calm + 1 } else { 0 };
        let moves_ways = is_new && !moves.is_empty();
        self.moving = moves_ways.then_some(0);
        let ticks = match moves_ways {
            true => self.moving_ticks(),
            false => self.stretch(),
        };
        StretchPlan { ticks, moves }
    }

    /// Length of the next stretch, if nothing moves.
    fn stretch(&self) -> u64 {
        match &self.survey {
            Some(survey) => (survey.seconds() * self.ticks_per_second) as u64,
            None => self.auto.step().ticks,
        }
    }

    /// Begins a survey if the load is new, known, and trials can be paid for. Returns its first
    /// way.
    fn begin_survey(&mut self, window: &Window) -> Option<usize> {
        let load = self.auto.loads();
        self.windows = match self.windows {
            (known, windows) if known == load => (load, windows + 1),
            _ => (load, 0),
        };
        let is_due = self.windows.1 >= SURVEY_AFTER && self.surveyed != Some(load);
        if !is_due || self.auto.is_trying() || !self.auto.is_rich() {
            return None;
        }
        self.surveyed = Some(load);
        let connections = window.callers as usize;
        let ways = self.ways.iter().enumerate();
        let ways = ways.filter(|(_, way)| self.is_of_use(way, connections));
        let worth = |way: &Way| {
            let doublings = (way.threads as f64).log2() + f64::from(u8::from(way.spins));
            SURVEY_GAIN.powf(-doublings)
        };
        let ways = ways.map(|(mode, way)| (mode, worth(way)));
        let rate = window.calls as f64 / window.ticks.max(1) as f64 * self.ticks_per_second;
        self.survey = Survey::new(ways, rate);
        self.survey.as_ref().map(Survey::way)
    }

    /// Continues a survey. Returns the way to serve.
    fn look_on(&mut self, window: &Window) -> usize {
        self.auto.pass(window);
        let Some(survey) = &mut self.survey else {
            return self.auto.home();
        };
        let rate = window.calls as f64 / window.ticks.max(1) as f64;
        match survey.observe(rate) {
            Some(best) => {
                self.auto.move_to(best, survey.ratios());
                self.survey = None;
                best
            }
            None => survey.way(),
        }
    }

    /// True if this way may be better than home, judging without a trial.
    fn is_of_use(&self, way: &Way, connections: usize) -> bool {
        let home = self.ways[self.auto.home()];
        let busy = self.business();
        let is_more = way.threads > home.threads;
        let has_work = !is_more || way.threads <= connections && busy > BUSY_ENOUGH;
        has_work && (!way.spins || home.spins || busy < BUSY_ALL)
    }

    /// Mean busy share of home's threads.
    fn business(&self) -> f64 {
        let home = self.ways[self.auto.home()];
        let at_home = home.kind * self.most..home.kind * self.most + home.threads;
        self.busy[at_home].iter().sum::<f64>() / home.threads as f64
    }

    fn moving_ticks(&self) -> u64 {
        (MOVING * self.ticks_per_second) as u64
    }

    /// Threads that have connections and should have none.
    fn strays<'a>(&self, held: &'a [usize]) -> impl Iterator<Item = usize> + use<'a> {
        let active = self.active();
        (0..held.len()).filter(move |thread| !active.contains(thread) && held[*thread] > 0)
    }

    /// Decides which ways may be tried.
    fn allow(&mut self, connections: usize) {
        let home = self.ways[self.auto.home()];
        let is_few = self.ways.len() <= WAYS_FEW;
        for (mode, way) in self.ways.iter().enumerate() {
            let is_near = match way.kind == home.kind {
                true => way.threads <= 2 * home.threads && home.threads <= 2 * way.threads,
                false => way.threads == home.threads,
            };
            let allowed = (is_few || is_near) && self.is_of_use(way, connections);
            self.auto.allow(mode, allowed);
        }
    }

    /// Moves all connections to the active threads, evenly.
    fn spread(&self, held: &[usize]) -> Vec<(usize, Order)> {
        let active = self.active();
        let all: usize = held.iter().sum();
        let wanted = |thread: usize| match active.contains(&thread) {
            true => all / active.len() + usize::from(thread - active.start < all % active.len()),
            false => 0,
        };
        let mut moves = Vec::new();
        let mut to = active.start;
        let mut room = wanted(to).saturating_sub(held[to]);
        for (from, &has) in held.iter().enumerate() {
            let mut over = has.saturating_sub(wanted(from));
            while over > 0 {
                while room == 0 && to + 1 < active.end {
                    to += 1;
                    room = wanted(to).saturating_sub(held[to]);
                }
                // Connections on their way, counted twice, make no room; the last thread takes
                // them.
                let count = if room == 0 { over } else { over.min(room) };
                if from != to {
                    let which = Which::Mixed;
                    moves.push((from, Order { to, count, which }));
                }
                over -= count;
                room = room.saturating_sub(count);
            }
        }
        moves
    }

    /// Moves connections of inactive threads, and connections that share a thread with one that
    /// asks too much.
    fn mend(&self, held: &[usize]) -> Vec<(usize, Order)> {
        let active = self.active();
        let Some(least) = active.clone().min_by_key(|&thread| held[thread]) else {
            return Vec::new();
        };
        let strays: Vec<_> = self
            .strays(held)
            .map(|from| {
                let (to, count, which) = (least, held[from], Which::Mixed);
                (from, Order { to, count, which })
            })
            .collect();
        if !strays.is_empty() || !self.is_calm() || self.calm < CALM_WINDOWS {
            return strays;
        }
        let by_busy = |a: &usize, b: &usize| self.busy[*a].total_cmp(&self.busy[*b]);
        let (Some(from), Some(to)) = (active.clone().max_by(by_busy), active.min_by(by_busy))
        else {
            return Vec::new();
        };
        let uneven = self.busy[from] - self.busy[to];
        if self.busy[from] < OVERLOADED || uneven < UNEVEN || held[from] < 2 {
            return Vec::new();
        }
        let share = uneven / (2.0 * self.busy[from]);
        let count = ((held[from] as f64 * share) as usize).clamp(1, held[from] - 1);
        let which = Which::Lightest;
        vec![(from, Order { to, count, which })]
    }
}
