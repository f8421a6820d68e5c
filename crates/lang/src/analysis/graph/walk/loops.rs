//! Loops: round by round where they make or communicate something, else once for all rounds.

use super::paths::Spot;
use super::{Flow, Phase, STEPS_OF_MAIN, Walk};
use crate::analysis::graph::InstanceId;
use crate::analysis::graph::facts::Writes;
use crate::analysis::graph::known::Known;
use crate::core::ir::*;

/// Rounds of a loop that only computes are followed up to this many, those of loops around it
/// included: what it leaves in variables is then known. In the main sequence, which is walked once,
/// and elsewhere.
const ROUNDS_OF_MAIN: f64 = 20_000.0;
const ROUNDS_COMPUTED: f64 = 64.0;
/// Rounds of a loop in a behaviour that communicates, those of loops around it included.
const ROUNDS_OF_PASS: f64 = 256.0;
/// With more components than this, both of the latter are fewer, so that all of them together take
/// a time that is proportional to their number.
const COMPONENTS_AT_EASE: f64 = 500.0;
/// The assumed number of rounds of a loop of which nothing is known.
const ROUNDS_ASSUMED: f64 = 8.0;

impl Walk<'_> {
    pub(super) fn repeat(&mut self, l: &Loop) -> Flow {
        let from = self.value(&l.from);
        let flow = self.block(&l.prepare);
        if flow != Flow::Next {
            return flow;
        }
        let to = self.value(&l.to);
        let writes = self.facts.of_loop(l);
        let rounds = rounds(from, to, l.step);
        let outer = std::mem::replace(&mut self.pace, writes.pace.weights());
        let flow = self.rounds_of(l, from, to, rounds, &writes);
        self.pace = outer;
        flow
    }

    fn rounds_of(
        &mut self,
        l: &Loop,
        from: Known,
        to: Known,
        rounds: Option<(f64, bool)>,
        writes: &Writes,
    ) -> Flow {
        if let (Known::Int(first), Some((count, true))) = (from, rounds)
            && count <= self.rounds_to_follow(writes.is_structural)
        {
            let outer = self.rounds_followed;
            if self.phase == Phase::Pass || !writes.is_structural {
                self.rounds_followed *= count.max(1.0);
            }
            let flow = self.follow(l, first);
            self.rounds_followed = outer;
            return flow;
        }
        let middle = match (from.number(), to.number()) {
            (Some((a, _)), Some((b, _))) => Known::About((a + b) / 2.0),
            _ => Known::Unknown,
        };
        self.multiply(l, writes, middle, rounds)
    }

    fn rounds_to_follow(&self, is_structural: bool) -> f64 {
        let components = self.world.instances.len() as f64;
        let ease = (COMPONENTS_AT_EASE / components).min(1.0);
        match (is_structural, self.phase) {
            (true, Phase::Start) => f64::INFINITY,
            (true, Phase::Pass) => (ROUNDS_OF_PASS * ease).max(16.0) / self.rounds_followed,
            (false, Phase::Start)
                if self.frame.instance == InstanceId::MAIN
                    && self.steps_left > STEPS_OF_MAIN / 2 =>
            {
                ROUNDS_OF_MAIN / self.rounds_followed
            }
            (false, _) => (ROUNDS_COMPUTED * ease).max(4.0) / self.rounds_followed,
        }
    }

    /// Round by round.
    fn follow(&mut self, l: &Loop, first: i64) -> Flow {
        let variable = Spot::Slot(self.frame.base + l.variable.index());
        let mut now = first;
        loop {
            self.put(variable, Known::Int(now));
            let flow = self.block(&l.prepare);
            if flow != Flow::Next {
                return flow;
            }
            let Known::Int(to) = self.value(&l.to) else {
                return Flow::Next;
            };
            if (l.step > 0 && now > to) || (l.step < 0 && now < to) {
                return Flow::Next;
            }
            self.work(self.pace.round);
            let flow = self.block(&l.body);
            if flow != Flow::Next {
                return flow;
            }
            // The body may have steered the loop.
            match self.stack[self.frame.base + l.variable.index()] {
                Known::Int(after) => now = after + i64::from(l.step),
                _ => return Flow::Next,
            }
        }
    }

    /// Once, with the weight of all rounds.
    fn multiply(
        &mut self,
        l: &Loop,
        writes: &Writes,
        variable: Known,
        rounds: Option<(f64, bool)>,
    ) -> Flow {
        let (count, is_known) = rounds.unwrap_or((ROUNDS_ASSUMED, false));
        self.forget(l, writes);
        if count <= 0.0 && is_known {
            return Flow::Next;
        }
        let (weight, is_exact) = (self.weight, self.is_exact);
        let outer_rounds = self.rounds;
        self.rounds *= count.max(0.0);
        self.weight = weight * count.max(0.0);
        self.is_exact = is_exact && is_known;
        if !self.is_exact {
            self.tally.is_work_estimate = true;
        }
        self.doubts
            .push("this is in a loop whose rounds are not known before the run");
        self.put(Spot::Slot(self.frame.base + l.variable.index()), variable);
        self.work(self.pace.round);
        let flow = match self.block(&l.prepare) {
            Flow::Next => self.block(&l.body),
            flow => flow,
        };
        self.doubts.pop();
        if writes.is_structural {
            // The next operation may be in the next round, or after the loop.
            for (operation, _) in std::mem::take(&mut self.pending) {
                self.tally.follows(operation, None, 0.0);
            }
        }
        self.rounds = outer_rounds;
        (self.weight, self.is_exact) = (weight, is_exact);
        self.forget(l, writes);
        match flow {
            // A loop that a round leaves is still a loop; the code after it is as likely.
            Flow::Return | Flow::Raise(_) | Flow::Stop if !is_known => Flow::Next,
            flow => flow,
        }
    }

    /// Forgets the variables that a loop assigns: they are not known while it runs.
    fn forget(&mut self, l: &Loop, writes: &Writes) {
        for slot in &writes.slots {
            if !l.fresh.contains(&slot.0) {
                self.put(Spot::Slot(self.frame.base + slot.index()), Known::Unknown);
            }
        }
        for member in &writes.members {
            let instance = self.frame.instance;
            if member.index() < self.world.instances[instance.index()].members.len() {
                self.put(Spot::Member(instance, member.0), Known::Unknown);
            }
        }
    }
}

/// The number of rounds of a loop, and whether it is exact.
fn rounds(from: Known, to: Known, step: i32) -> Option<(f64, bool)> {
    let ((from, a), (to, b)) = (from.number()?, to.number()?);
    let rounds = ((to - from) / f64::from(step)).floor() + 1.0;
    Some((rounds.max(0.0), a && b))
}
