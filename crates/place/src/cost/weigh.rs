//! Weighs moves without making them.
//!
//! Most trials of a search are given up. A trial needs only the loads that change and the largest
//! of the others; lists and trees of maxima stay as they are, and there is little to undo.

use super::state::{State, Sums};
use crate::search::Score;
use crate::slots::CpuSlot;

/// Changes of a trial; empty between trials.
#[derive(Clone, Default)]
pub(super) struct Scratch {
    /// Added load of each slot, and then its new load.
    slots: Vec<f64>,
    touched: Vec<u32>,
    /// Added length of each cycle.
    cycles: Vec<f64>,
    touched_cycles: Vec<u32>,
    is_touched: Vec<bool>,
    /// Present slots of the components that move.
    homes: Vec<CpuSlot>,
}

impl Scratch {
    pub(super) fn new(slots: usize, cycles: usize) -> Self {
        Self {
            slots: vec![0.0; slots],
            is_touched: vec![false; slots],
            cycles: vec![0.0; cycles],
            ..Self::default()
        }
    }

    fn add(&mut self, slot: CpuSlot, ns: f64) {
        let at = slot.index();
        if !self.is_touched[at] {
            self.is_touched[at] = true;
            self.touched.push(slot.0);
        }
        self.slots[at] += ns;
    }
}

impl State<'_, '_> {
    /// The score after moves, each of a different component.
    pub(crate) fn weigh(&mut self, moves: &[(usize, CpuSlot)]) -> Score {
        let mut scratch = self.scratch.take().unwrap_or_default();
        let mut sums = self.sums;
        // Moved components count as moved for the next ones; put back below.
        for (component, to) in moves {
            scratch.homes.push(self.at[*component]);
            self.weigh_move(*component, *to, &mut scratch, &mut sums);
            self.at[*component] = *to;
        }
        self.steps += 2 + scratch.touched.len() as u64;
        let peak = self.weigh_slots(&mut scratch, &mut sums);
        let cycle = self.weigh_cycles(&mut scratch);
        if self.problem.memory_bounds {
            sums.over = self.over_bytes();
        }
        for ((component, to), home) in moves.iter().zip(scratch.homes.drain(..)) {
            self.at[*component] = home;
            self.weigh_memory(*component, *to, home, None);
        }
        self.scratch = Some(scratch);
        self.score_of(&sums, if peak > cycle { peak } else { cycle })
    }

    /// Moves heap and working set from one slot to another; marks slots that notice.
    fn weigh_memory(
        &mut self,
        component: usize,
        from: CpuSlot,
        to: CpuSlot,
        mut scratch: Option<&mut Scratch>,
    ) {
        let problem = self.problem;
        if from == to || !(problem.has_sets || problem.memory_bounds) {
            return;
        }
        self.add_memory(component, from, -1.0);
        self.add_memory(component, to, 1.0);
        let bytes = problem.set[component];
        if bytes == 0.0 {
            return;
        }
        let machine = problem.machine;
        for (old, new, sign) in [(from, to, -1.0), (to, from, 1.0)] {
            let there = machine.path(new);
            for cache in machine.path(old).iter().filter(|c| !there.contains(c)) {
                let is_noticed = self.demand_more(*cache, sign * bytes);
                if let Some(scratch) = scratch.as_deref_mut().filter(|_| is_noticed) {
                    let slots = machine.caches()[*cache as usize].slots.iter();
                    slots.for_each(|slot| scratch.add(*slot, 0.0));
                }
            }
        }
    }

    fn weigh_move(
        &mut self,
        component: usize,
        to: CpuSlot,
        scratch: &mut Scratch,
        sums: &mut Sums,
    ) {
        let from = self.at[component];
        if from == to {
            return;
        }
        let problem = self.problem;
        let messages = problem.machine.messages();
        let (from_classes, to_classes) = (messages.classes_of(from), messages.classes_of(to));
        let goes = problem.work[component] + problem.own[component];
        let (mut leaves, mut arrives) = (goes, goes);
        let ends = problem.ends(component);
        for end in ends {
            let other = self.at[end.peer as usize];
            let costs = problem.costs(end.row);
            let before = &costs[usize::from(from_classes[other.index()])];
            let after = &costs[usize::from(to_classes[other.index()])];
            let sender = after.send_ns - before.send_ns;
            let receiver = after.receive_ns - before.receive_ns;
            let (mine, mine_after, theirs) = if end.sends {
                (before.send_ns, after.send_ns, receiver)
            } else {
                (before.receive_ns, after.receive_ns, sender)
            };
            leaves += end.messages * mine;
            arrives += end.messages * mine_after;
            scratch.add(other, end.messages * theirs);
            let change = end.messages * (sender + receiver);
            sums.communication += change;
            if !self.cycles.is_empty() {
                for (cycle, weight) in problem.turns(end.edge) {
                    scratch.touched_cycles.push(*cycle);
                    scratch.cycles[*cycle as usize] += weight * change;
                }
            }
        }
        scratch.add(from, -leaves);
        scratch.add(to, arrives);
        self.weigh_memory(component, from, to, Some(scratch));
        if self.home.is_some() {
            sums.away += self.away_ns(component, to) - self.away_ns(component, from);
        }
        self.steps += 1 + ends.len() as u64;
    }

    /// The largest load of a core.
    fn weigh_slots(&mut self, scratch: &mut Scratch, sums: &mut Sums) -> f64 {
        for at in &scratch.touched {
            let slot = *at as usize;
            let mut busy = self.busy[slot] + scratch.slots[slot];
            if self.problem.has_sets {
                let lost = self.lost_ns(CpuSlot(*at));
                sums.sharing += lost - self.lost[slot];
                busy += lost;
            }
            let load = busy * self.problem.by_capacity[slot];
            let before = self.counted[slot];
            sums.squares += load * load - before * before;
            sums.load += load - before;
            scratch.slots[slot] = load;
        }
        let (mut before, mut after) = (0.0, 0.0);
        for slot in &scratch.touched {
            let core = self.problem.core_of[*slot as usize] as usize;
            let loads = self.problem.machine.cores()[core].iter().map(|slot| {
                let at = slot.index();
                match scratch.is_touched[at] {
                    true => scratch.slots[at],
                    false => self.counted[at],
                }
            });
            let load = self.core_of_loads(loads).0;
            after = if load > after { load } else { after };
            let was = self.peaks.get(core);
            before = if was > before { was } else { before };
        }
        let largest = self.peaks.largest();
        let peak = if before < largest || after >= largest {
            // The largest belongs to another slot, or was less than the present one.
            if after > largest { after } else { largest }
        } else {
            let slots = scratch.touched.iter();
            let cores = slots.map(|slot| self.problem.core_of[*slot as usize] as usize);
            let others = self.peaks.largest_but(cores);
            if after > others { after } else { others }
        };
        for slot in scratch.touched.drain(..) {
            scratch.slots[slot as usize] = 0.0;
            scratch.is_touched[slot as usize] = false;
        }
        peak
    }

    /// The longest cycle.
    fn weigh_cycles(&mut self, scratch: &mut Scratch) -> f64 {
        if self.cycles.is_empty() {
            return 0.0;
        }
        let (mut before, mut after) = (0.0, 0.0);
        for cycle in &scratch.touched_cycles {
            let cycle = *cycle as usize;
            let now = self.cycles[cycle] + scratch.cycles[cycle];
            after = if now > after { now } else { after };
            let was = self.cycles[cycle];
            before = if was > before { was } else { before };
        }
        let largest = self.cycle_peaks.largest();
        let longest = if before < largest || after >= largest {
            if after > largest { after } else { largest }
        } else {
            let touched = scratch.touched_cycles.iter();
            let others = self
                .cycle_peaks
                .largest_but(touched.map(|cycle| *cycle as usize));
            if after > others { after } else { others }
        };
        for cycle in scratch.touched_cycles.drain(..) {
            scratch.cycles[cycle as usize] = 0.0;
        }
        longest
    }
}
