//! Ways that part and meet: conditions that are not known.

use super::{Flow, Walk};
use crate::analysis::graph::InstanceId;
use crate::analysis::graph::known::Known;
use crate::analysis::graph::tally::{Choice, Operation, Part, Tally};
use crate::analysis::graph::weights;
use crate::analysis::graph::world::{Object, ObjectId};
use crate::core::ir::*;
use crate::source::Span;
use std::collections::BTreeMap;

/// A place in memory that the walk writes to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Spot {
    /// By its position in the stack of all frames.
    Slot(usize),
    Member(InstanceId, u32),
    Port(InstanceId, u32),
    Global(u32),
    Element(ObjectId, u32),
    Field(ObjectId, u32),
    /// Whether the elements of the array are unknown: a Bool.
    Blur(ObjectId),
    Result,
}

/// One of several ways from here.
#[derive(Clone, Copy)]
pub(super) struct Way<'b> {
    /// Share of executions in which it is taken.
    pub(super) share: f64,
    /// The channel of an arm that is taken when something comes from it.
    pub(super) receives: Option<(Known, Span)>,
    pub(super) block: Option<&'b Block>,
    /// The arms of a select.
    pub(super) is_arm: bool,
}

impl<'b> Way<'b> {
    pub(super) fn of(share: f64, block: Option<&'b Block>) -> Way<'b> {
        Way {
            share,
            receives: None,
            block,
            is_arm: false,
        }
    }
}

impl Walk<'_> {
    /// Stores a value, so that a branch under way can be taken back.
    pub(super) fn put(&mut self, spot: Spot, value: Known) {
        let old = self.swap(spot, Some(value));
        if self.branches > 0 {
            self.trail.push((spot, old));
        }
    }

    /// Exchanges the content of a spot. `None`: an element that was never stored.
    fn swap(&mut self, spot: Spot, value: Option<Known>) -> Option<Known> {
        let plain = value.unwrap_or(Known::Unknown);
        let slot = match spot {
            Spot::Slot(index) => &mut self.stack[index],
            Spot::Member(instance, index) => {
                &mut self.world.instances[instance.index()].members[index as usize]
            }
            Spot::Port(instance, index) => {
                &mut self.world.instances[instance.index()].ports[index as usize]
            }
            Spot::Global(index) => &mut self.world.globals[index as usize],
            Spot::Result => &mut self.result,
            Spot::Element(..) | Spot::Field(..) | Spot::Blur(_) => {
                return self.swap_inside(spot, value);
            }
        };
        Some(std::mem::replace(slot, plain))
    }

    fn swap_inside(&mut self, spot: Spot, value: Option<Known>) -> Option<Known> {
        let (Spot::Element(id, _) | Spot::Field(id, _) | Spot::Blur(id)) = spot else {
            return None;
        };
        match (&mut self.world.objects[id.index()], spot) {
            (Object::Array { stored, .. }, Spot::Element(_, index)) => match value {
                Some(value) => stored.insert(index, value),
                None => stored.remove(&index),
            },
            (Object::Struct { fields }, Spot::Field(_, index)) => {
                let field = fields.get_mut(index as usize)?;
                Some(std::mem::replace(field, value.unwrap_or(Known::Unknown)))
            }
            (Object::Array { is_blurred, .. }, Spot::Blur(_)) => {
                let is_now = value == Some(Known::Bool(true));
                Some(Known::Bool(std::mem::replace(is_blurred, is_now)))
            }
            _ => None,
        }
    }

    /// The elements of an array are unknown from here on.
    pub(super) fn blur(&mut self, array: ObjectId) {
        if let Object::Array {
            is_blurred: false, ..
        } = self.world.get(array)
        {
            self.put(Spot::Blur(array), Known::Bool(true));
        }
    }

    pub(super) fn condition(&mut self, condition: &Value, then: &Block, otherwise: &Block) -> Flow {
        let known = self.value(condition);
        let share = match known {
            Known::Bool(is_true) => {
                self.work(weights::BRANCH_KNOWN);
                return self.block(if is_true { then } else { otherwise });
            }
            known => self.share_of_branch(known, then, otherwise),
        };
        self.work(match share {
            0.0 | 1.0 => weights::BRANCH_KNOWN,
            _ => weights::BRANCH,
        });
        self.fork(
            "this is under a condition that is not known before the run",
            &[
                Way::of(share, Some(then)),
                Way::of(1.0 - share, Some(otherwise)),
            ],
        )
    }

    /// The share with which the first of two branches is taken: half if nothing is known; but a
    /// branch in which the component stops or raises is taken once in its life.
    fn share_of_branch(&mut self, condition: Known, then: &Block, otherwise: &Block) -> f64 {
        let (then, otherwise) = (leaves(then), leaves(otherwise));
        match condition {
            Known::Once(at) | Known::Turns { at, to: true } if then => self.stops_in(at),
            Known::Turns { at, to: false } if otherwise => self.stops_in(at),
            _ => {}
        }
        match (then, otherwise, condition) {
            (true, false, _) => 0.0,
            (false, true, _) => 1.0,
            (.., Known::Chance(share)) => share,
            (.., Known::Once(at)) => match self.passes {
                Some(passes) if u64::from(at) < passes => 1.0 / passes as f64,
                _ => 0.0,
            },
            (.., Known::Turns { at, to }) => {
                self.wants_passes = true;
                match self.passes {
                    Some(passes) => {
                        let before = u64::from(at).min(passes) as f64 / passes as f64;
                        if to { 1.0 - before } else { before }
                    }
                    None => 0.5,
                }
            }
            _ => 0.5,
        }
    }

    /// The component stops in this pass, counted from 0, if not before.
    fn stops_in(&mut self, pass: u32) {
        if self.branches == 0 {
            let passes = u64::from(pass) + 1;
            let known = self.tally.stops_after.unwrap_or(u64::MAX);
            self.tally.stops_after = Some(known.min(passes));
        }
    }

    /// Walks several ways from here, each with its part of the weight, and joins what they leave
    /// behind. Ways that end by a return or a stop leave nothing behind.
    pub(super) fn fork(&mut self, doubt: &'static str, ways: &[Way<'_>]) -> Flow {
        let (weight, is_exact) = (self.weight, self.is_exact);
        let first_mark = self.trail.len();
        let is_choice = ways.iter().any(|way| way.share > 0.0 && way.share < 1.0);
        self.tally.is_work_estimate |= is_choice;
        self.doubts.push(doubt);
        self.branches += 1;
        let mut ends: Vec<BTreeMap<Spot, Known>> = Vec::new();
        let mut originals: BTreeMap<Spot, Option<Known>> = BTreeMap::new();
        let before = self.pending.clone();
        let mut pending: Vec<(Operation, f64)> = Vec::new();
        let mut parts = Vec::new();
        let mut left_over = 0.0;
        let mut last_flow = Flow::Next;
        for way in ways {
            self.weight = weight * way.share;
            self.is_exact = is_exact && way.share == 1.0;
            self.pending.clone_from(&before);
            let flow = self.take(way, &mut parts);
            if matches!(flow, Flow::Next | Flow::Return) {
                merge(&mut pending, &self.pending);
            }
            match flow {
                Flow::Next => {
                    left_over += self.weight;
                    let end = self.take_back(first_mark, &mut originals);
                    ends.push(end);
                }
                flow => {
                    last_flow = flow;
                    self.take_back(first_mark, &mut originals);
                }
            }
        }
        if parts.len() > 1 {
            self.tally.choose(Choice { parts });
        }
        self.pending = pending;
        self.branches -= 1;
        self.doubts.pop();
        if ends.is_empty() {
            (self.weight, self.is_exact) = (weight, is_exact);
            return last_flow;
        }
        self.meet(&ends, &originals);
        let is_whole = left_over >= weight;
        self.weight = left_over;
        self.is_exact = is_exact && is_whole;
        Flow::Next
    }

    /// Goes one way. What an arm of a select counts is kept apart, too; in an arm of another select
    /// it is part of that.
    fn take(&mut self, way: &Way<'_>, parts: &mut Vec<Part>) -> Flow {
        let is_part = way.is_arm && way.share > 0.0 && !self.is_in_arm;
        let mut outer = Tally::default();
        if is_part {
            std::mem::swap(&mut self.tally, &mut outer);
            self.is_in_arm = true;
        }
        let times = self.weight;
        if let Some((channel, text)) = way.receives {
            self.receive_from(channel, text);
        }
        let flow = way.block.map_or(Flow::Next, |block| self.block(block));
        if is_part {
            self.is_in_arm = false;
            std::mem::swap(&mut self.tally, &mut outer);
            self.tally.append(&outer);
            let channel = match way.receives {
                Some((Known::Channel(channel), _)) => Some(channel),
                _ => None,
            };
            parts.push(Part {
                channel,
                is_default: way.receives.is_none(),
                times,
                tally: outer,
            });
        }
        flow
    }

    /// Undoes what was written since the mark; yields what the spots held last.
    fn take_back(
        &mut self,
        mark: usize,
        originals: &mut BTreeMap<Spot, Option<Known>>,
    ) -> BTreeMap<Spot, Known> {
        let mut end = BTreeMap::new();
        for (spot, old) in self.trail.split_off(mark).into_iter().rev() {
            let now = self.swap(spot, old);
            end.entry(spot).or_insert(now.unwrap_or(Known::Unknown));
            originals.insert(spot, old);
        }
        end
    }

    /// Several ways have come here.
    fn meet(&mut self, ends: &[BTreeMap<Spot, Known>], originals: &BTreeMap<Spot, Option<Known>>) {
        for (&spot, &original) in originals {
            let value = |end: &BTreeMap<Spot, Known>| {
                let untouched = || self.untouched(spot, original);
                end.get(&spot).copied().unwrap_or_else(untouched)
            };
            let mut values = ends.iter().map(value);
            let Some(first) = values.next() else { continue };
            let joined = match spot {
                Spot::Blur(_) => {
                    let is_blurred = values.any(|v| v == Known::Bool(true));
                    Known::Bool(is_blurred || first == Known::Bool(true))
                }
                _ => values.fold(first, Known::join),
            };
            self.put(spot, joined);
        }
    }

    /// The content of a spot that this path did not write to.
    fn untouched(&self, spot: Spot, original: Option<Known>) -> Known {
        match (spot, original) {
            (_, Some(known)) => known,
            (Spot::Element(array, _), None) => match self.world.get(array) {
                Object::Array {
                    fill: crate::analysis::graph::world::Fill::Value(known),
                    ..
                } => *known,
                _ => Known::Unknown,
            },
            _ => Known::Unknown,
        }
    }
}

/// Operations that wait for their next on either way.
fn merge(all: &mut Vec<(Operation, f64)>, more: &[(Operation, f64)]) {
    for &(operation, work) in more {
        match all.iter_mut().find(|(known, _)| *known == operation) {
            Some((_, most)) => *most = most.max(work),
            None => all.push((operation, work)),
        }
    }
}

/// True if a branch ends in a stop or an exception.
pub(super) fn leaves(block: &Block) -> bool {
    let departs = |stmt: &Stmt| matches!(stmt.kind, StmtKind::StopSelf | StmtKind::Raise { .. });
    block.iter().any(departs)
}
