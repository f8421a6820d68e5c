//! The parts of a probe, and one visit to each.

use std::sync::atomic::Ordering;

use hearth_machine::topology::Topology;
use hearth_sys::System;
use hearth_sys::clock::Offset;

use super::{Missing, out_of_time};
use crate::bandwidth::{Flow, Stream};
use crate::context::{Context, Deadline, Lines, Stop};
use crate::costs::{Price, Service};
use crate::curve::{Order, Walk};
use crate::description;
use crate::distances::Survey;
use crate::handover::{self, Buffers, Exchange};
use crate::noise::Listener;
use crate::options::{Mode, Part, ProbePlan};
use crate::pairs::Matrix;
use crate::states::{self, Cost};

/// All parts of a running probe.
pub(super) struct Parts {
    cores: Vec<usize>,
    pub(super) walks: Vec<Walk>,
    lines: Option<Lines>,
    pub(super) states: Vec<Cost>,
    pub(super) matrix: Matrix,
    pub(super) flows: Vec<Flow>,
    pub(super) survey: Option<Survey>,
    pub(super) prices: Vec<Price>,
    pub(super) exchanges: Vec<Exchange>,
    buffers: Buffers,
    pub(super) listener: Listener,
    pub(super) missing: Vec<Missing>,
    /// Visits to the figures of parts with several, counted over all rounds.
    turns: Turns,
}

#[derive(Debug, Default)]
struct Turns {
    states: usize,
    flows: usize,
    prices: usize,
    exchanges: usize,
}

/// Cores above which pairs are chosen, with the machine's own claims as hints.
const CORES_ALL_PAIRS: usize = 32;

/// The machine's claims; None if they make no sense.
fn claimed(system: &dyn System) -> Option<Topology> {
    let reading = description::capture(system).read().ok()?;
    Some(reading.topology)
}

impl Parts {
    pub(super) fn new(
        context: &mut Context<'_>,
        mode: Mode,
        plan: &ProbePlan,
        cores: &[usize],
    ) -> Parts {
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
        let machine = claimed(system);
        let hint = machine
            .as_ref()
            .filter(|_| has(Part::Pairs) && cores.len() > CORES_ALL_PAIRS);
        let requests = if has(Part::Messages) {
            handover::for_fitting(machine.as_ref(), cores)
        } else {
            Vec::new()
        };
        let measured_in_pairs = if has(Part::Pairs) { cores } else { &[] };
        let mut costs = Vec::new();
        if let [first, .., last] = *cores {
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
        Parts {
            cores: cores.to_vec(),
            walks,
            lines,
            states: costs,
            matrix: Matrix::new(measured_in_pairs, hint),
            flows,
            survey,
            prices,
            exchanges: requests.into_iter().map(Exchange::new).collect(),
            buffers: Buffers::default(),
            listener: Listener::new(cores),
            missing,
            turns: Turns::default(),
        }
    }

    pub(super) fn note(&mut self, part: Part, why: String) {
        let missing = Missing { part, why };
        if !self.missing.contains(&missing) {
            self.missing.push(missing);
        }
    }

    /// Visits a part once. If the system refuses one figure, the part's others are still measured;
    /// the refusal is noted.
    pub(super) fn visit(
        &mut self,
        context: &mut Context<'_>,
        part: Part,
        seconds: f64,
    ) -> Result<(), Stop> {
        let mut refusals = Vec::new();
        let end = Deadline::after(context.system, seconds);
        let turns = &mut self.turns;
        let result = match part {
            Part::Curve => walk_all(&mut self.walks, context, seconds, &mut refusals),
            Part::Pairs => match &mut self.lines {
                Some(lines) => {
                    let mut refused = |why| refusals.push(why);
                    self.matrix.visit(context, lines, seconds, &mut refused)
                }
                None => Ok(()),
            },
            Part::States => match &mut self.lines {
                Some(lines) => {
                    let each = seconds / self.states.len().max(1) as f64;
                    let states = &mut self.states;
                    in_turn(
                        states,
                        &mut turns.states,
                        context,
                        &end,
                        &mut refusals,
                        |cost, c| cost.visit(c, lines, each),
                    )
                }
                None => Ok(()),
            },
            Part::Bandwidth => {
                let each = seconds / self.flows.len().max(1) as f64;
                let flows = &mut self.flows;
                in_turn(
                    flows,
                    &mut turns.flows,
                    context,
                    &end,
                    &mut refusals,
                    |flow, c| flow.visit(c, each),
                )
            }
            Part::Costs => {
                let each = seconds / self.prices.len().max(1) as f64;
                let prices = &mut self.prices;
                in_turn(
                    prices,
                    &mut turns.prices,
                    context,
                    &end,
                    &mut refusals,
                    |price, c| price.visit(c, each),
                )
            }
            Part::Messages => {
                let each = seconds / self.exchanges.len().max(1) as f64;
                let (exchanges, buffers) = (&mut self.exchanges, &mut self.buffers);
                in_turn(
                    exchanges,
                    &mut turns.exchanges,
                    context,
                    &end,
                    &mut refusals,
                    |exchange, c| exchange.visit(c, buffers, each),
                )
            }
            Part::Distances => match &mut self.survey {
                Some(survey) => survey.visit(context, seconds),
                None => Ok(()),
            },
            Part::Noise => self.listener.visit(context, seconds),
        };
        for refusal in refusals {
            self.note(part, refusal);
        }
        result
    }

    /// Notes the figures that were never reached if time ran out.
    pub(super) fn unreached(&mut self, seconds: f64) {
        if let Some((reached, planned)) = self.walks.first().and_then(Walk::falls_short) {
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            let why = format!(
                "buffers above {:.0} of {:.0} MiB: {}",
                mib(reached),
                mib(planned),
                out_of_time(seconds)
            );
            self.note(Part::Curve, why);
        }
        let counts = [
            (Part::States, self.states.len(), self.turns.states),
            (Part::Bandwidth, self.flows.len(), self.turns.flows),
            (Part::Costs, self.prices.len(), self.turns.prices),
            (Part::Messages, self.exchanges.len(), self.turns.exchanges),
        ];
        for (part, count, visited) in counts {
            if visited > 0 && visited < count {
                let why = format!(
                    "{} of {count} figures: {}",
                    count - visited,
                    out_of_time(seconds)
                );
                self.note(part, why);
            }
        }
    }

    /// Offsets of the cores' clocks. They would mislead programs that compare times across cores;
    /// the probe itself never does.
    pub(super) fn offsets(&mut self, context: &Context<'_>) -> Vec<(usize, Offset)> {
        const MOST: usize = 64;
        const EXCHANGES: u32 = 300;
        let (first, others) = (self.cores[0], self.cores[1..].to_vec());
        let mut found = Vec::new();
        for core in others.into_iter().take(MOST) {
            if context.is_over() || context.cancel.load(Ordering::Relaxed) {
                break;
            }
            let offset = context.clock.offset(context.system, first, core, EXCHANGES);
            match offset {
                Ok(offset) => found.push((core, offset)),
                Err(refused) => self.note(Part::Pairs, refused.to_string()),
            }
        }
        found
    }
}

/// Sets a refusal aside, and passes cancellation on.
fn tolerate(result: Result<(), Stop>, refusals: &mut Vec<String>) -> Result<(), Stop> {
    match result {
        Err(Stop::Refused(refused)) => {
            refusals.push(refused.to_string());
            Ok(())
        }
        other => other,
    }
}

/// Visits figures one after the other, beginning where the last visit ended; `turns` counts them
/// all. The first visit to each may take as long as the whole probe's time lasts, later ones until
/// `end`.
fn in_turn<'a, T>(
    figures: &mut [T],
    turns: &mut usize,
    context: &mut Context<'a>,
    end: &Deadline<'_>,
    refusals: &mut Vec<String>,
    mut visit: impl FnMut(&mut T, &mut Context<'a>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let count = figures.len();
    for visited in 0..count {
        let is_late = *turns >= count && visited > 0 && end.is_over();
        if is_late || context.is_over() {
            break;
        }
        let figure = &mut figures[*turns % count];
        *turns += 1;
        tolerate(visit(figure, context), refusals)?;
    }
    Ok(())
}

/// The first curve, from which everything is inferred, gets half of the time, if there are others.
fn walk_all(
    walks: &mut [Walk],
    context: &mut Context<'_>,
    seconds: f64,
    refusals: &mut Vec<String>,
) -> Result<(), Stop> {
    let end = Deadline::after(context.system, seconds);
    let count = walks.len();
    for (index, walk) in walks.iter_mut().enumerate() {
        if context.is_over() {
            break;
        }
        let share = if index == 0 && count > 1 {
            seconds / 2.0
        } else {
            end.left() / (count - index) as f64
        };
        tolerate(walk.visit(context, share), refusals)?;
    }
    Ok(())
}
