//! Packing: a first mapping, and the same with fewer units or cores.
//!
//! A component goes where it raises a core's load least, the largest over the modes: one that is
//! only active while charging goes for nothing beside one that is only active while driving. A unit
//! is closed by emptying it and giving its components other seats. One that finds none ejects up to
//! two others, those that had the least trouble so far, as in Nagata and Bräysy's guided ejection
//! search (2009), which closes routes of vehicles so.

use super::problem::parts;
use super::state::State;
use crate::mapping::Seat;
use crate::model::Asil;

/// Cores tried for an ejection, and components looked at on each.
const EJECTION_CORES: usize = 24;
const EJECTED_MAX: usize = 14;
/// Random moves after each ejection.
const SHAKES: usize = 6;

/// Cores that may be used.
pub(crate) type Mask = Vec<bool>;

/// Random choices, and the trouble that each component had.
pub(crate) struct Packer {
    pub(crate) random: fastrand::Rng,
    trouble: Vec<u32>,
}

impl Packer {
    pub(crate) fn new(count: usize, seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            trouble: vec![1; count],
        }
    }

    /// Components in an order for packing: those with few cores to choose from first, large ones
    /// before small ones, with some noise.
    pub(crate) fn order(&mut self, state: &State, noise: f64) -> Vec<usize> {
        let problem = state.problem;
        let mut keyed: Vec<(u8, u64, usize)> = (0..problem.count())
            .map(|at| {
                let is_locked = problem.system.components[at].asil == Asil::D;
                let factor = 1.0 + noise * self.random.f64();
                let size = problem.least[at] as f64 * factor;
                (u8::from(!is_locked), u64::MAX - size as u64, at)
            })
            .collect();
        keyed.sort_unstable();
        keyed.into_iter().map(|(_, _, at)| at).collect()
    }

    /// The best seat among the cores that may be used, if the component fits on any.
    pub(crate) fn seat(
        &mut self,
        state: &mut State,
        component: usize,
        mask: &Mask,
    ) -> Option<Seat> {
        let problem = state.problem;
        let level = problem.system.components[component].asil;
        let mut tries: Vec<((u8, u64, u64), u32)> = Vec::new();
        let mut opened: Vec<(u32, u32)> = Vec::new();
        for core in &problem.candidates[component] {
            let at = *core as usize;
            if !mask[at] {
                continue;
            }
            let unit = problem.system.cores[at].unit;
            let is_open = state.unit_count[unit] > 0;
            if !state.is_used(at) {
                // Free cores that can be taken for each other: one is enough.
                let which = match is_open {
                    true => u32::MAX - unit as u32,
                    false => problem.unit_class[unit],
                };
                let look = (which, problem.core_class[at]);
                if opened.contains(&look) {
                    continue;
                }
                opened.push(look);
            }
            let used = least_here(state, component, at);
            let after = state.peak_with(at, component, used);
            if after > problem.core_max {
                continue;
            }
            let rise = after - state.peak(at);
            // A lock-step core is for the highest level as long as others will do.
            let is_wasted =
                level != Asil::D && problem.system.cores[at].lockstep != crate::model::LockStep::No;
            let kind = match (is_open, state.is_used(at)) {
                (true, true) => u8::from(is_wasted && !self.random.bool()),
                (true, false) => 2,
                (false, _) => 4 + u8::from(is_wasted),
            };
            // Larger units first, by their number of cores.
            let size = match is_open {
                true => u64::MAX - after,
                false => u64::MAX - problem.system.units[unit].cores.len() as u64,
            };
            // Small differences of the rise do not matter: sixteenths of the component's size.
            tries.push(((kind, 16 * rise / used.max(1), size), *core));
        }
        tries.sort_unstable();
        tries
            .into_iter()
            .find_map(|(_, core)| seat_on(state, component, core as usize))
    }

    /// Places components one by one; those that fit nowhere come back.
    pub(crate) fn fill(&mut self, state: &mut State, order: &[usize], mask: &Mask) -> Vec<usize> {
        let mut left = Vec::new();
        for component in order {
            match self.seat(state, *component, mask) {
                Some(seat) => state.place(*component, seat),
                None => left.push(*component),
            }
        }
        left
    }

    /// Places all of a pool, with ejections, within a number of tries.
    pub(crate) fn squeeze(
        &mut self,
        state: &mut State,
        mut pool: Vec<usize>,
        mask: &Mask,
        tries: usize,
        stop: &mut dyn FnMut() -> bool,
    ) -> bool {
        pool.sort_by_key(|at| state.problem.least[*at]);
        for _ in 0..tries {
            let Some(component) = pool.pop() else {
                return true;
            };
            if let Some(seat) = self.seat(state, component, mask) {
                state.place(component, seat);
                continue;
            }
            if stop() {
                return false;
            }
            self.trouble[component] = self.trouble[component].saturating_add(1);
            match self.ejection(state, component, mask) {
                Some((seat, ejected)) => {
                    ejected.iter().for_each(|other| state.remove(*other));
                    state.place(component, seat);
                    pool.extend(ejected);
                }
                None => pool.insert(0, component),
            }
            for _ in 0..SHAKES {
                self.shake(state, mask);
            }
        }
        pool.is_empty()
    }

    /// A seat for a component and the others that must leave for it, those with the least trouble.
    fn ejection(
        &mut self,
        state: &mut State,
        component: usize,
        mask: &Mask,
    ) -> Option<(Seat, Vec<usize>)> {
        let problem = state.problem;
        let mut cores: Vec<usize> = (problem.candidates[component].iter())
            .map(|core| *core as usize)
            .filter(|core| mask[*core])
            .collect();
        self.random.shuffle(&mut cores);
        cores.truncate(EJECTION_CORES);
        let mut best: Option<(u32, Seat, Vec<usize>)> = None;
        for core in cores {
            let mut there: Vec<usize> = state.on(core).iter().map(|at| *at as usize).collect();
            self.random.shuffle(&mut there);
            there.truncate(EJECTED_MAX);
            let more = least_here(state, component, core);
            for (nth, first) in there.iter().enumerate() {
                let seconds = std::iter::once(None).chain(there[nth + 1..].iter().map(Some));
                for second in seconds {
                    let trouble = |at: &usize| self.trouble[*at];
                    let sum = trouble(first).saturating_add(second.map_or(0, trouble));
                    if best.as_ref().is_some_and(|(least, _, _)| *least <= sum) {
                        continue;
                    }
                    let out: Vec<usize> = std::iter::once(*first).chain(second.copied()).collect();
                    if !makes_room(state, core, component, more, &out) {
                        continue;
                    }
                    let seats: Vec<Seat> = out.iter().filter_map(|at| state.seat(*at)).collect();
                    out.iter().for_each(|at| state.remove(*at));
                    let seat = seat_on(state, component, core);
                    for (at, seat) in out.iter().zip(seats) {
                        state.place(*at, seat);
                    }
                    if let Some(seat) = seat {
                        best = Some((sum, seat, out));
                    }
                }
            }
        }
        best.map(|(_, seat, out)| (seat, out))
    }

    /// Moves a random component to a random core that it fits on.
    fn shake(&mut self, state: &mut State, mask: &Mask) {
        let problem = state.problem;
        let component = self.random.usize(..problem.count());
        let Some(home) = state.seat(component) else {
            return;
        };
        let cores = &problem.candidates[component];
        let core = cores[self.random.usize(..cores.len())] as usize;
        if !mask[core] || core == home.core || !state.is_used(core) {
            return;
        }
        state.remove(component);
        let seat = seat_on(state, component, core).unwrap_or(home);
        state.place(component, seat);
    }
}

/// The least parts that a component takes on a core.
fn least_here(state: &State, component: usize, core: usize) -> u64 {
    let problem = state.problem;
    let unit = problem.system.cores[core].unit;
    let memories = problem.system.units[unit].memories.iter();
    let times = memories.map(|memory| problem.time(component, core, *memory));
    let least = times.min().unwrap_or(u64::MAX);
    parts(least, problem.system.components[component].period_ns)
}

/// Whether the load of a core allows a component once others have left.
fn makes_room(state: &State, core: usize, component: usize, more: u64, out: &[usize]) -> bool {
    let problem = state.problem;
    (0..problem.modes).all(|mode| {
        if !problem.is_active(component, mode) {
            return true;
        }
        let gone = out.iter().filter(|at| problem.is_active(**at, mode));
        let gone: u64 = gone.map(|at| state.taken(*at)).sum();
        state.used(core, mode) - gone + more <= problem.core_max
    })
}

/// The seat on a core with the memory that is best for all, if the component fits: the fastest,
/// less what its bytes would save for others.
pub(crate) fn seat_on(state: &mut State, component: usize, core: usize) -> Option<Seat> {
    let problem = state.problem;
    let unit = problem.system.cores[core].unit;
    let memories = &problem.system.units[unit].memories;
    if let [memory] = memories.as_slice() {
        let memory = *memory;
        let seat = Seat { core, memory };
        return state.fits(component, seat).then_some(seat);
    }
    let one = &problem.system.components[component];
    let mut keyed: Vec<(f64, usize)> = memories
        .iter()
        .filter_map(|memory| {
            let time = problem.time(component, core, *memory);
            let price = problem.prices[problem.memory_kind(*memory)];
            let key = parts(time, one.period_ns) as f64 + price * one.bytes as f64;
            (time != u64::MAX).then_some((key, *memory))
        })
        .collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut seats = keyed.into_iter().map(|(_, memory)| Seat { core, memory });
    seats.find(|seat| state.fits(component, *seat))
}
