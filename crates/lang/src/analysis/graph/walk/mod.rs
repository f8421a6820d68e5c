//! The walk: a program is run with what is known of its values, and what it would do is counted.
//!
//! The main sequence, initialisers and constructors are followed step by step: what they make and
//! connect is real. A behaviour is then walked as one pass. Where a condition is not known both
//! branches are walked with a part of the weight each, and their results are joined. Where
//! a loop only computes, it is walked once with the weight of all its rounds.

mod calls;
mod communicate;
mod loops;
mod paths;
mod statements;
mod values;

use super::facts::Facts;
use super::hubs::Incoming;
use super::known::Known;
use super::tally::{Operation, Tally};
use super::weights::{Pace, Weights};
use super::world::{Instance, World};
use super::{InstanceId, UnknownKind};
use crate::core::ir::*;
use crate::source::Span;
use crate::tree::{ComponentId, MemberId, Program};
use paths::Spot;
use std::collections::HashMap;

/// Statements that the main sequence, with all that it makes, may take before the walk gives up.
const STEPS_OF_MAIN: u64 = 50_000_000;
/// The same for one pass of a behaviour.
const STEPS_OF_PASS: u64 = 200_000;
/// Calls inside calls that are followed.
const DEPTH_MAX: u32 = 100;

/// The flow of control after a statement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Flow {
    Next,
    Return,
    /// The component stops.
    Stop,
    /// An exception with this label is under way.
    Raise(Known),
}

/// The part of a component's life that is walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Once, at its creation; for the main sequence all of it.
    Start,
    /// A pass.
    Pass,
}

/// The frame of a running function.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    function: usize,
    /// The index of its first slot in [`Walk::stack`].
    base: usize,
    instance: InstanceId,
}

pub(super) struct Walk<'a> {
    pub(super) program: &'a Program,
    pub(super) module: &'a Module,
    pub(super) facts: Facts<'a>,
    /// The number of a role's function.
    functions: HashMap<RoleKey, usize>,
    pub(super) world: World,
    pub(super) tally: Tally,
    pub(super) phase: Phase,
    stack: Vec<Known>,
    frame: Frame,
    result: Known,
    received: Known,
    /// Expected number of executions of the statement being walked.
    weight: f64,
    /// The weight is a number of times that is known.
    is_exact: bool,
    /// Reasons why the statement being walked may not run, or not just once; the innermost last.
    doubts: Vec<&'static str>,
    /// Values overwritten in the branches under way.
    trail: Vec<(Spot, Option<Known>)>,
    branches: u32,
    /// After how many passes the component stops, as an earlier walk found.
    pub(super) passes: Option<u64>,
    /// A condition depends on that.
    pub(super) wants_passes: bool,
    is_in_arm: bool,
    steps_left: u64,
    depth: u32,
    under_way: Vec<usize>,
    /// Operations whose next one has not come yet, and the computing since each.
    pub(super) pending: Vec<(Operation, f64)>,
    /// Rounds of the loops that are walked once for all rounds.
    rounds: f64,
    /// The costs of operations here.
    pace: &'static Weights,
    /// Rounds of loops that are followed one by one: those of all around. Outside of passes, of
    /// such as only compute.
    rounds_followed: f64,
    /// The messages on each channel, as far as they are known.
    pub(super) incoming: Incoming,
    /// The communication of constructors and initialisers.
    pub(super) starts: Vec<(InstanceId, Tally)>,
}

/// [`Role`] as a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum RoleKey {
    Proc(u32),
    Constructor(u32, usize),
    Members(u32),
    Behaviour(u32),
    Main,
}

impl From<Role> for RoleKey {
    fn from(role: Role) -> RoleKey {
        match role {
            Role::Proc(id) => RoleKey::Proc(id.0),
            Role::Constructor(id, k) => RoleKey::Constructor(id.0, k),
            Role::Members(id) => RoleKey::Members(id.0),
            Role::Behaviour(id) => RoleKey::Behaviour(id.0),
            Role::Main => RoleKey::Main,
        }
    }
}

impl<'a> Walk<'a> {
    /// Everything that happens once: the main sequence, and what it makes with its constructors.
    pub(super) fn start(program: &'a Program, module: &'a Module) -> Walk<'a> {
        let roles = module.functions.iter().enumerate();
        let mut walk = Walk {
            program,
            module,
            facts: Facts::new(program, module),
            functions: roles.map(|(i, f)| (f.role.into(), i)).collect(),
            world: World::default(),
            tally: Tally::default(),
            phase: Phase::Start,
            stack: Vec::new(),
            frame: Frame {
                function: 0,
                base: 0,
                instance: InstanceId::MAIN,
            },
            result: Known::Unknown,
            received: Known::Unknown,
            weight: 1.0,
            is_exact: true,
            doubts: Vec::new(),
            trail: Vec::new(),
            branches: 0,
            passes: None,
            wants_passes: false,
            is_in_arm: false,
            steps_left: STEPS_OF_MAIN,
            depth: 0,
            under_way: Vec::new(),
            pending: Vec::new(),
            rounds: 1.0,
            pace: Pace::Plain.weights(),
            rounds_followed: 1.0,
            incoming: Incoming::default(),
            starts: Vec::new(),
        };
        walk.world.globals = vec![Known::Unknown; program.globals.len()];
        walk.world.instances.push(Instance {
            component: None,
            name: None,
            parent: InstanceId::MAIN,
            ports: Vec::new(),
            members: Vec::new(),
            core: None,
            span: program.main.block.span,
        });
        walk.run(Role::Main, InstanceId::MAIN, &[]);
        walk
    }

    /// One pass of a component's behaviour, counted alone.
    pub(super) fn pass(&mut self, instance: InstanceId, component: ComponentId) -> (Tally, Flow) {
        self.phase = Phase::Pass;
        self.steps_left = STEPS_OF_PASS;
        self.weight = 1.0;
        self.is_exact = true;
        self.tally = Tally::default();
        let flow = self.run(Role::Behaviour(component), instance, &[]);
        if self.steps_left == 0 {
            // Where it was left is no stop.
            self.tally.is_work_estimate = true;
            self.tally.stops_after = None;
            return (std::mem::take(&mut self.tally), Flow::Next);
        }
        (std::mem::take(&mut self.tally), flow)
    }

    /// The members that passes of a component may assign.
    pub(super) fn members_written(&mut self, component: ComponentId) -> Vec<MemberId> {
        match self.functions.get(&RoleKey::Behaviour(component.0)) {
            Some(&index) => {
                let function = &self.module.functions[index];
                let writes = self.facts.of_function(index, function);
                writes.members.iter().copied().collect()
            }
            None => Vec::new(),
        }
    }

    /// Runs a function of an instance from its beginning to its end.
    fn run(&mut self, role: Role, instance: InstanceId, args: &[Known]) -> Flow {
        let Some(&index) = self.functions.get(&RoleKey::from(role)) else {
            return Flow::Next;
        };
        let module = self.module;
        let function = &module.functions[index];
        let frame = Frame {
            function: index,
            base: self.stack.len(),
            instance,
        };
        let outer = std::mem::replace(&mut self.frame, frame);
        let (weight, is_exact) = (self.weight, self.is_exact);
        let pace = std::mem::replace(&mut self.pace, Pace::Plain.weights());
        self.stack
            .resize(frame.base + function.slots.len(), Known::Unknown);
        for (param, value) in function.params.iter().zip(args) {
            self.stack[frame.base + param.index()] = *value;
        }
        self.put(Spot::Result, Known::Unknown);
        let mark = self.trail.len();
        self.depth += 1;
        self.under_way.push(index);
        let flow = self.block(&function.body);
        self.under_way.pop();
        self.depth -= 1;
        self.stack.truncate(frame.base);
        self.forget_frame(mark, frame.base);
        self.frame = outer;
        self.pace = pace;
        (self.weight, self.is_exact) = (weight, is_exact);
        flow
    }

    /// Slots of a frame that is gone need not be taken back.
    fn forget_frame(&mut self, mark: usize, base: usize) {
        if self.trail.len() > mark {
            let is_kept = |spot| !matches!(spot, Spot::Slot(slot) if slot >= base);
            let written = self.trail.split_off(mark);
            let kept = written.into_iter().filter(|(spot, _)| is_kept(*spot));
            self.trail.extend(kept);
        }
    }

    pub(super) fn function(&self) -> &'a Function {
        &self.module.functions[self.frame.function]
    }

    /// Notes a fact that cannot be known before the run.
    fn unknown(&mut self, kind: UnknownKind, reason: &'static str, span: Span) {
        let unknown = (kind, reason, span);
        if !self.tally.unknowns.contains(&unknown) {
            self.tally.unknowns.push(unknown);
        }
    }

    /// None if what happens here happens for certain, once each time the walk comes by, and before
    /// any pass. Otherwise why not.
    fn doubt(&self) -> Option<&'static str> {
        match (self.doubts.last(), self.phase) {
            (Some(doubt), _) => Some(doubt),
            (None, Phase::Pass) => Some("this is in a behaviour, or called from one"),
            (None, Phase::Start) => None,
        }
    }
}
