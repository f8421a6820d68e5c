//! A whole probe: all parts, in rounds, within the time there is.
//!
//! Every part is visited in every round, so that each figure has seen the machine at several
//! moments and its interval knows how much they differ. A part that cannot be measured is left
//! out with its reason, and the others go on.

use std::sync::atomic::AtomicBool;

use hearth_sys::clock::{Clock, Offset};
use hearth_sys::procfs;
use hearth_sys::{Refused, System};

use crate::bandwidth::{Bandwidth, Flow, Stream};
use crate::context::{Context, Deadline, Lines, Stop};
use crate::costs::{Price, Service, ServiceCost};
use crate::curve::{Curve, Order, Walk};
use crate::distances::{Distances, Survey};
use crate::disturbance::Discards;
use crate::noise::{CoreNoise, Listener};
use crate::options::{Mode, Options, Part, Plan};
use crate::pairs::{self, Pair, PairLatency};
use crate::states::{self, Cost, StateCost};

/// Where a probe stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// How much is done, 0 to 1.
    pub fraction: f64,
    /// What is being measured.
    pub part: Part,
}

/// Why there is no result at all.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeError {
    /// The caller raised the flag.
    Cancelled,
    /// Not one core can be measured.
    NoCore(Refused),
}

impl std::fmt::Display for ProbeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProbeError::Cancelled => f.write_str("the probe was cancelled; nothing is recorded"),
            ProbeError::NoCore(refused) => write!(f, "no core can be measured: {refused}"),
        }
    }
}

impl std::error::Error for ProbeError {}

/// Something that was not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    /// The part it belongs to.
    pub part: Part,
    /// What and why, as a sentence without a full stop.
    pub why: String,
}

/// All that was found. What is not there is named in `missing`.
#[derive(Clone, Debug)]
pub struct Findings {
    /// What was asked for.
    pub options: Options,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The cores that were measured, by the system's numbers, ascending.
    pub cores: Vec<usize>,
    /// How many cores' worth of time this process may use, if limited.
    pub quota: Option<f64>,
    /// The clock that was used.
    pub clock: Clock,
    /// How far the clocks of other cores are from the first one's.
    pub offsets: Vec<(usize, Offset)>,
    /// Latency over sizes; the first is in random order, a line a step.
    pub curves: Vec<Curve>,
    /// Lines by state.
    pub states: Vec<StateCost>,
    /// Transfers between cores; on large machines not all pairs.
    pub pairs: Vec<PairLatency>,
    /// How many pairs there are, measured or not.
    pub pairs_all: usize,
    /// Bytes a second.
    pub bandwidths: Vec<Bandwidth>,
    /// Node distances, on machines with several.
    pub distances: Option<Distances>,
    /// Costs of the system's services.
    pub costs: Vec<ServiceCost>,
    /// Noise, a core each.
    pub noise: Vec<CoreNoise>,
    /// Samples thrown away, by reason.
    pub discards: Discards,
    /// How often disturbed samples had to serve, as there was hardly anything else.
    pub disturbed: u32,
    /// What could not be measured, and why.
    pub missing: Vec<Missing>,
}

/// Measures a machine.
///
/// `progress` is told before each visit; `cancel` ends the probe within some tenths of a second
/// when it becomes true.
///
/// # Errors
/// Cancelled, or not one core can be measured. All else that fails is in [`Findings::missing`].
pub fn run(
    system: &dyn System,
    options: &Options,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Findings, ProbeError> {
    let cores = cores(system, options)?;
    let nodes = system.memory_nodes().map_or(1, |nodes| nodes.len());
    let plan = Plan::new(options.mode, cores.len(), nodes);
    run_plan(system, options, &plan, &cores, cancel, progress)
}

/// As [`run`], with a plan of one's own: other parts, another time.
///
/// # Errors
/// As for [`run`].
pub fn run_plan(
    system: &dyn System,
    options: &Options,
    plan: &Plan,
    cores: &[usize],
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Findings, ProbeError> {
    let begin = hearth_sys::clock::monotonic_ns();
    let mut context = Context::new(system, options.seed, cancel);
    let mut session = Session::new(&mut context, options.mode, plan, cores);
    session.rounds(&mut context, plan, progress)?;
    let offsets = session.offsets(&context, cores);
    let quota = procfs::quota(system);
    let mut findings = Findings {
        options: options.clone(),
        seconds: 0.0,
        cores: cores.to_vec(),
        quota,
        clock: context.clock,
        offsets,
        curves: session.walks.iter().map(Walk::sum_up).collect(),
        states: session.states.iter().filter_map(Cost::sum_up).collect(),
        pairs: session.pairs.iter().filter_map(Pair::sum_up).collect(),
        pairs_all: cores.len() * (cores.len() - 1) / 2,
        bandwidths: session.flows.iter().filter_map(Flow::sum_up).collect(),
        distances: session.survey.as_ref().and_then(Survey::sum_up),
        costs: session.prices.iter().filter_map(Price::sum_up).collect(),
        noise: session.listener.sum_up(),
        discards: context.discards,
        disturbed: context.disturbed,
        missing: session.missing,
    };
    findings.pairs.sort_by_key(|pair| pair.cores);
    findings.curves.retain(|curve| !curve.points.is_empty());
    findings.seconds = (hearth_sys::clock::monotonic_ns() - begin) as f64 / 1e9;
    Ok(findings)
}

/// Those asked for that this process may use, else all it may use.
fn cores(system: &dyn System, options: &Options) -> Result<Vec<usize>, ProbeError> {
    let next = "widen the process's set of cores (see `taskset`), or name others";
    let allowed = system.allowed().map_err(|error| {
        let object = "the cores of this process";
        ProbeError::NoCore(Refused::new("read", object, &error, next))
    })?;
    let wanted = options.cpus.as_ref();
    let cores: Vec<usize> = allowed
        .iter()
        .copied()
        .filter(|core| wanted.is_none_or(|wanted| wanted.contains(core)))
        .collect();
    if cores.is_empty() {
        let object = format!(
            "cores {:?} among {allowed:?}",
            wanted.map_or(&[][..], |w| w)
        );
        let reason = hearth_sys::Reason::Invalid;
        let refused = Refused::because("use", object, reason, next);
        return Err(ProbeError::NoCore(refused));
    }
    Ok(cores)
}

struct Session {
    cores: Vec<usize>,
    walks: Vec<Walk>,
    lines: Option<Lines>,
    states: Vec<Cost>,
    pairs: Vec<Pair>,
    flows: Vec<Flow>,
    survey: Option<Survey>,
    prices: Vec<Price>,
    listener: Listener,
    missing: Vec<Missing>,
}

impl Session {
    fn new(context: &mut Context<'_>, mode: Mode, plan: &Plan, cores: &[usize]) -> Session {
        let system = context.system;
        let has = |part| plan.seconds_of(part) > 0.0;
        let mut missing = Vec::new();
        let first = cores[0];
        let walk = |stride, order| Walk::new(system, mode, first, stride, order);
        let mut walks = Vec::new();
        if has(Part::Curve) {
            walks.push(walk(64, Order::Random));
            if mode != Mode::Quick {
                walks.push(walk(64, Order::Sequential));
            }
            if mode == Mode::Deep {
                walks.extend([128, 256, 4096].map(|stride| walk(stride, Order::Random)));
            }
        }
        let lines = Lines::new()
            .map_err(|refused| {
                let why = refused.to_string();
                missing.push(Missing {
                    part: Part::Pairs,
                    why,
                });
            })
            .ok();
        let mut pairs = Vec::new();
        let mut costs = Vec::new();
        if let [first, .., last] = *cores {
            if has(Part::Pairs) {
                let chosen = pairs::choose(cores, &mut context.random);
                pairs.extend(chosen.into_iter().map(Pair::new));
            }
            if has(Part::States) {
                let third = cores
                    .iter()
                    .copied()
                    .find(|core| ![first, last].contains(core));
                let all = states::combinations(third.is_some());
                let cost = |&(state, access): &_| Cost::new([first, last], third, state, access);
                costs.extend(all.iter().map(cost));
            }
            if cores.len() == 2 {
                missing.push(Missing {
                    part: Part::States,
                    why: "reads of a line that two other cores share need three cores; \
                          this process may use two"
                        .to_owned(),
                });
            }
        } else {
            for part in [Part::Pairs, Part::States] {
                let why = format!(
                    "{} need two cores; this process may use core {first} only",
                    part.title()
                );
                missing.push(Missing { part, why });
            }
        }
        let mut flows = Vec::new();
        if has(Part::Bandwidth) {
            for stream in Stream::ALL {
                flows.push(Flow::new(system, mode, stream, vec![first]));
                if cores.len() > 1 {
                    flows.push(Flow::new(system, mode, stream, cores.to_vec()));
                }
            }
        }
        let survey = has(Part::Distances)
            .then(|| Survey::new(system, cores))
            .flatten();
        if has(Part::Distances) && survey.is_none() {
            missing.push(Missing {
                part: Part::Distances,
                why: "node distances need the kernel's list of nodes and their cores, \
                      /sys/devices/system/node"
                    .to_owned(),
            });
        }
        let second = cores.get(1).copied();
        let prices = Service::ALL
            .iter()
            .filter(|service| has(Part::Costs) && (second.is_some() || !service.needs_two()))
            .map(|&service| Price::new(service, [first, second.unwrap_or(first)]))
            .collect();
        Session {
            cores: cores.to_vec(),
            walks,
            lines,
            states: costs,
            pairs,
            flows,
            survey,
            prices,
            listener: Listener::new(cores),
            missing,
        }
    }

    /// Visits each part in each round as far as its time goes. A part that took more than its
    /// share waits for the rounds after.
    fn rounds(
        &mut self,
        context: &mut Context<'_>,
        plan: &Plan,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), ProbeError> {
        let mut spent = vec![0.0f64; plan.steps.len()];
        let mut longest = vec![0.0f64; plan.steps.len()];
        let whole = plan.seconds().max(f64::MIN_POSITIVE);
        for round in 0..plan.rounds {
            for (index, step) in plan.steps.iter().enumerate() {
                let share = f64::from(round + 1) / f64::from(plan.rounds);
                let allowance = step.seconds * share - spent[index];
                if round > 0 && allowance < longest[index] * 0.5 {
                    continue;
                }
                let done: f64 = spent.iter().sum();
                progress(Progress {
                    fraction: (done / whole).min(1.0),
                    part: step.part,
                });
                let rounds_left = f64::from(plan.rounds - round);
                let visit = allowance.max((step.seconds - spent[index]) / rounds_left);
                let begin = hearth_sys::clock::monotonic_ns();
                let result = self.visit(context, step.part, visit);
                let took = (hearth_sys::clock::monotonic_ns() - begin) as f64 / 1e9;
                spent[index] += took;
                longest[index] = longest[index].max(took);
                match result {
                    Ok(()) => {}
                    Err(Stop::Cancelled) => return Err(ProbeError::Cancelled),
                    Err(Stop::Refused(refused)) => self.note(step.part, refused.to_string()),
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, part: Part, why: String) {
        let missing = Missing { part, why };
        if !self.missing.contains(&missing) {
            self.missing.push(missing);
        }
    }

    /// One visit. What the system refuses for one figure does not keep the others of the part from
    /// being measured; it is noted.
    fn visit(&mut self, context: &mut Context<'_>, part: Part, seconds: f64) -> Result<(), Stop> {
        let mut refusals = Vec::new();
        let mut tolerate = |result: Result<(), Stop>| match result {
            Err(Stop::Refused(refused)) => {
                refusals.push(refused.to_string());
                Ok(())
            }
            other => other,
        };
        match part {
            Part::Curve => {
                // The first curve is the one everything is inferred from: half of the time.
                let others = (self.walks.len().max(2) - 1) as f64;
                let end = Deadline::after(seconds);
                for (index, walk) in self.walks.iter_mut().enumerate() {
                    let share = if index == 0 {
                        seconds / 2.0
                    } else {
                        end.left() / others
                    };
                    let share = if index == 0 && others < 1.5 {
                        seconds
                    } else {
                        share
                    };
                    tolerate(walk.visit(context, share))?;
                }
            }
            Part::Pairs => {
                if let Some(lines) = &mut self.lines {
                    let each = seconds / self.pairs.len().max(1) as f64;
                    let mut order: Vec<usize> = (0..self.pairs.len()).collect();
                    context.random.shuffle(&mut order);
                    for index in order {
                        tolerate(self.pairs[index].visit(context, lines, each))?;
                    }
                }
            }
            Part::States => {
                if let Some(lines) = &mut self.lines {
                    let each = seconds / self.states.len().max(1) as f64;
                    for cost in &mut self.states {
                        tolerate(cost.visit(context, lines, each))?;
                    }
                }
            }
            Part::Bandwidth => {
                let each = seconds / self.flows.len().max(1) as f64;
                for flow in &mut self.flows {
                    tolerate(flow.visit(context, each))?;
                }
            }
            Part::Distances => {
                if let Some(survey) = &mut self.survey {
                    tolerate(survey.visit(context, seconds))?;
                }
            }
            Part::Costs => {
                let each = seconds / self.prices.len().max(1) as f64;
                for price in &mut self.prices {
                    tolerate(price.visit(context, each))?;
                }
            }
            Part::Noise => tolerate(self.listener.visit(context, seconds))?,
        }
        for refusal in refusals {
            self.note(part, refusal);
        }
        Ok(())
    }

    /// A clock that differs from core to core would mislead whoever compares times across them;
    /// the probe itself never does.
    fn offsets(&mut self, context: &Context<'_>, cores: &[usize]) -> Vec<(usize, Offset)> {
        const MOST: usize = 64;
        const EXCHANGES: u32 = 300;
        let (first, others) = (self.cores[0], &cores[1..]);
        let mut found = Vec::new();
        for &core in others.iter().take(MOST) {
            let offset = context.clock.offset(context.system, first, core, EXCHANGES);
            match offset {
                Ok(offset) => found.push((core, offset)),
                Err(refused) => self.note(Part::Pairs, refused.to_string()),
            }
        }
        found
    }
}
