//! Experiment 1b: a ring of pointers, by stride and size, and the levels that it shows.
//!
//! It takes the place that lmbench's `lat_mem_rd` and `cache` have in the source. The walking is
//! the probe's: in the order of addresses, which the hardware fetches ahead, and in random order,
//! which it cannot.

use std::sync::atomic::AtomicBool;

use hearth_probe::context::{Context, Stop};
use hearth_probe::curve::{Curve, Order, Walk};
use hearth_probe::options::Mode;
use hearth_sys::System;
use serde::{Deserialize, Serialize};

use crate::StudyError;

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ring {
    /// Bytes from an element to its neighbour in memory.
    pub stride: usize,
    /// True for random order, false for that of the addresses.
    pub is_random: bool,
    /// Size in bytes, and nanoseconds a load: value, low, high of a 95 % interval.
    pub points: Vec<(u64, f64, f64, f64)>,
    /// The levels it shows, fastest first; for random order only.
    pub levels: Vec<RingLevel>,
}

/// A level that a curve shows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RingLevel {
    /// Nanoseconds a load.
    pub latency_ns: f64,
    /// Its capacity in bytes, where the level ends; `None` for the last one that the curve reaches.
    pub capacity_bytes: Option<f64>,
    /// False if the latency still rises where the curve ends.
    pub is_settled: bool,
}

/// A kind of walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// Bytes from an element to its neighbour.
    pub stride: usize,
    /// True for random order.
    pub is_random: bool,
}

/// The curves, in order; the one that levels are taken from first.
#[must_use]
pub fn kinds(quick: bool) -> Vec<Kind> {
    let strides: &[usize] = if quick {
        &[64, 512]
    } else {
        &[64, 16, 32, 128, 256, 512, 1024, 4096]
    };
    let of = |is_random| {
        strides
            .iter()
            .map(move |&stride| Kind { stride, is_random })
    };
    let random = of(true).filter(|kind| kind.stride >= 64);
    random.chain(of(false)).collect()
}

/// Time limit of one walk through the sizes, in seconds, and the number of walks.
fn visits(quick: bool) -> (f64, u32) {
    if quick { (1.2, 3) } else { (2.5, 6) }
}

/// Walks one curve. `None` if the caller raised the flag.
///
/// # Errors
/// The core cannot be pinned to, or there is not enough memory.
pub fn walk(
    system: &dyn System,
    core: usize,
    kind: Kind,
    quick: bool,
    seed: u64,
    cancel: &AtomicBool,
) -> Result<Option<Ring>, StudyError> {
    let order = if kind.is_random {
        Order::Random
    } else {
        Order::Sequential
    };
    let mode = if quick { Mode::Quick } else { Mode::Normal };
    let mut context = Context::new(system, seed, cancel);
    let mut walk = Walk::new(system, mode, core, kind.stride, order);
    let (seconds, rounds) = visits(quick);
    for _ in 0..rounds {
        match walk.visit(&mut context, seconds) {
            Ok(()) => {}
            Err(Stop::Cancelled) => return Ok(None),
            Err(Stop::Refused(refused)) => return Err(refused.into()),
        }
    }
    Ok(Some(ring(kind, &walk.sum_up())))
}

fn ring(kind: Kind, curve: &Curve) -> Ring {
    let points = curve.points.iter().map(|point| {
        let ns = &point.load_ns;
        (point.bytes, ns.value, ns.low, ns.high)
    });
    Ring {
        stride: kind.stride,
        is_random: kind.is_random,
        points: points.collect(),
        levels: curve
            .levels
            .iter()
            .map(|level| RingLevel {
                latency_ns: level.latency_ns,
                capacity_bytes: level.capacity.map(|capacity| capacity.bytes),
                is_settled: level.is_settled,
            })
            .collect(),
    }
}
