//! A whole probe: all parts, in rounds, within the available time.
//!
//! Every round visits every part, so that each figure has seen the machine at several moments and
//! its interval reflects their differences. A part that cannot be measured is left out with its
//! reason, and the others continue.
//!
//! On a machine slower than planned for, later rounds shrink first: each figure is visited once
//! before any is visited again, and when the mode's time is over nothing more begins. The figures
//! not reached by then are named.

use std::sync::atomic::AtomicBool;

use hearth_sys::clock::{Clock, Offset};
use hearth_sys::control_groups;
use hearth_sys::{Refused, System};

mod parts;

use crate::bandwidth::{Bandwidth, Flow};
pub use crate::context::ProbeError;
use crate::context::{Context, Deadline, Stop};
use crate::costs::{Price, ServiceCost};
use crate::curve::{Curve, Walk};
use crate::distances::{Distances, Survey};
use crate::disturbance::Discards;
use crate::handover::{Exchange, Point};
use crate::noise::CoreNoise;
use crate::options::{Part, ProbeOptions, ProbePlan};
use crate::pairs::PairLatency;
use crate::states::{Cost, StateCost};
use parts::Parts;

/// Progress of a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Share done, 0 to 1.
    pub fraction: f64,
    /// The part being measured.
    pub part: Part,
}

/// A failed measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    /// The part it belongs to.
    pub part: Part,
    /// The figure and the reason, as a sentence without a full stop.
    pub why: String,
}

/// Results of a probe. `missing` names the ones that could not be had.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The options of the probe.
    pub options: ProbeOptions,
    /// Its duration, in seconds.
    pub seconds: f64,
    /// The cores that were measured, by the system's numbers, ascending.
    pub cores: Vec<usize>,
    /// Quota of this process in cores' worth of time, if limited.
    pub quota: Option<f64>,
    /// The clock that was used.
    pub clock: Clock,
    /// Offsets of other cores' clocks from the first one's.
    pub offsets: Vec<(usize, Offset)>,
    /// Latency over sizes; the first is in random order, a line a step.
    pub curves: Vec<Curve>,
    /// Lines by state.
    pub states: Vec<StateCost>,
    /// Transfers between cores; on large machines not all pairs.
    pub pairs: Vec<PairLatency>,
    /// Number of all pairs, measured or not.
    pub pairs_all: usize,
    /// Bytes a second.
    pub bandwidths: Vec<Bandwidth>,
    /// Node distances, on machines with several.
    pub distances: Option<Distances>,
    /// Costs of the system's services.
    pub costs: Vec<ServiceCost>,
    /// Whole messages; none in the quick mode.
    pub messages: Vec<Point>,
    /// Noise, a core each.
    pub noise: Vec<CoreNoise>,
    /// Samples discarded, by reason.
    pub discards: Discards,
    /// Number of measurements that had to use disturbed samples.
    pub disturbed: u32,
    /// Failed measurements, with reasons.
    pub missing: Vec<Missing>,
}

/// Measures a machine.
///
/// Calls `progress` before each visit; `cancel` ends the probe within some tenths of a second when
/// it becomes true.
///
/// # Errors
/// If cancelled, or if no core can be measured. All other failures are in [`Findings::missing`].
pub fn run(
    system: &dyn System,
    options: &ProbeOptions,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Findings, ProbeError> {
    let cores = cores(system, options)?;
    let nodes = system.memory_nodes().map_or(1, |nodes| nodes.len());
    let plan = ProbePlan::new(options.mode, cores.len(), nodes);
    run_plan(system, options, &plan, &cores, cancel, progress)
}

/// [`run`] with a plan of the caller's: other parts, another time.
///
/// # Errors
/// As for [`run`].
pub fn run_plan(
    system: &dyn System,
    options: &ProbeOptions,
    plan: &ProbePlan,
    cores: &[usize],
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Findings, ProbeError> {
    let begin = system.now_ns();
    let mut context = Context::new(system, options.seed, cancel);
    let seconds = options.mode.seconds().max(plan.seconds());
    let end = Deadline::after(system, seconds);
    context.end = Some(end);
    let mut parts = Parts::new(&mut context, options.mode, plan, cores);
    rounds(&mut parts, &mut context, plan, seconds, progress)?;
    parts.unreached(seconds);
    let offsets = parts.offsets(&context);
    let quota = control_groups::quota(system);
    let (pairs, regained) = parts.matrix.sum_up();
    context.discards.gap = context.discards.gap.saturating_sub(regained);
    let mut curves: Vec<Curve> = parts.walks.iter().map(Walk::sum_up).collect();
    curves.retain(|curve| !curve.points.is_empty());
    Ok(Findings {
        options: options.clone(),
        seconds: (system.now_ns() - begin) as f64 / 1e9,
        cores: cores.to_vec(),
        quota,
        clock: context.clock,
        offsets,
        curves,
        states: parts.states.iter().filter_map(Cost::sum_up).collect(),
        pairs,
        pairs_all: cores.len() * (cores.len() - 1) / 2,
        bandwidths: parts.flows.iter().filter_map(Flow::sum_up).collect(),
        distances: parts.survey.as_ref().and_then(Survey::sum_up),
        costs: parts.prices.iter().filter_map(Price::sum_up).collect(),
        messages: parts
            .exchanges
            .iter()
            .filter_map(Exchange::sum_up)
            .collect(),
        noise: parts.listener.sum_up(),
        discards: context.discards,
        disturbed: context.disturbed,
        missing: parts.missing,
    })
}

/// Visits each part in each round as far as its time goes. A part that exceeded its share waits for
/// the next rounds.
fn rounds(
    parts: &mut Parts,
    context: &mut Context<'_>,
    plan: &ProbePlan,
    seconds: f64,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), ProbeError> {
    let mut spent = vec![0.0f64; plan.steps.len()];
    let mut longest = vec![0.0f64; plan.steps.len()];
    let whole = plan.seconds().max(f64::MIN_POSITIVE);
    for round in 0..plan.rounds {
        for (index, step) in plan.steps.iter().enumerate() {
            let share = f64::from(round + 1) / f64::from(plan.rounds);
            let allowance = step.seconds * share - spent[index];
            if round > 0 && (allowance <= 0.0 || allowance < longest[index] * 0.5) {
                continue;
            }
            let left = context.end.map_or(f64::INFINITY, |end| end.left());
            if left == 0.0 {
                let unreached = plan.steps[index..].iter().filter(|_| round == 0);
                unreached.for_each(|step| parts.note(step.part, out_of_time(seconds)));
                return Ok(());
            }
            let done: f64 = spent.iter().sum();
            progress(Progress {
                fraction: (done / whole).min(1.0),
                part: step.part,
            });
            let rounds_left = f64::from(plan.rounds - round);
            let visit = allowance.max((step.seconds - spent[index]) / rounds_left);
            let begin = context.system.now_ns();
            let result = parts.visit(context, step.part, visit.min(left));
            let took = (context.system.now_ns() - begin) as f64 / 1e9;
            spent[index] += took;
            // First visits do whatever later ones leave out.
            if round > 0 {
                longest[index] = longest[index].max(took);
            }
            match result {
                Ok(()) => {}
                Err(Stop::Cancelled) => return Err(ProbeError::Cancelled),
                Err(Stop::Refused(refused)) => parts.note(step.part, refused.to_string()),
            }
        }
    }
    Ok(())
}

fn out_of_time(seconds: f64) -> String {
    format!(
        "the {seconds} s were over before it was its turn; choose a longer mode, or a time \
             when this machine does less"
    )
}

/// The requested cores that this process may use, or all it may use.
fn cores(system: &dyn System, options: &ProbeOptions) -> Result<Vec<usize>, ProbeError> {
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
