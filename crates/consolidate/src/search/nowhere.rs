//! The reasons why a component fits on no unit, each with a next step.

use crate::model::{Asil, Bound, LockStep, System};

/// The first reason that excludes the last core: rules are applied one after the other.
pub(super) fn reason(system: &System, component: usize) -> String {
    let one = &system.components[component];
    let mut cores: Vec<usize> = (0..system.cores.len()).collect();
    let unit = |core: usize| &system.units[system.cores[core].unit];
    if let Some(on) = one.on {
        cores.retain(|core| system.cores[*core].unit == on);
    }
    let named = match one.on {
        Some(on) => format!("unit `{}`, which it must be on,", system.units[on].name),
        None => "no unit".to_owned(),
    };
    let no = |rest: &str| match one.on {
        Some(_) => format!("{named} does not {rest}"),
        None => format!("{named} {rest}"),
    };
    cores.retain(|core| {
        let can = unit(*core).points.as_ref();
        can.is_none_or(|can| one.points.iter().all(|point| can.contains(point)))
    });
    if cores.is_empty() {
        let points = one
            .points
            .iter()
            .map(|at| format!("`{}`", system.points[*at].name));
        let points: Vec<String> = points.collect();
        let points = points.join(", ");
        return format!(
            "{} {points}: add them to a unit's points",
            no("wire all of")
        );
    }
    if one.asil == Asil::D {
        cores.retain(|core| system.cores[*core].lockstep != LockStep::No);
        if cores.is_empty() {
            let rest = no("run ASIL D in lock-step");
            return format!("{rest}: give a core lockstep = \"always\" or \"pair\"");
        }
    }
    let seats = |cores: &[usize]| -> Vec<(usize, u64, usize)> {
        let of = |core: &usize| {
            let core = *core;
            let memories = unit(core).memories.iter();
            let timed = memories.filter_map(move |memory| {
                let time = system.time_ns(component, core, *memory)?;
                Some((core, time, *memory))
            });
            timed.collect::<Vec<_>>()
        };
        cores.iter().flat_map(of).collect()
    };
    let mut left = seats(&cores);
    if left.is_empty() {
        let rest = no("have cores and memories that it has a time for");
        return format!("{rest}: add times for their kinds, or wcet_us for all");
    }
    left.retain(|(_, _, memory)| system.memories[*memory].bytes >= one.bytes);
    if left.is_empty() {
        let kib = one.bytes.div_ceil(1024);
        return format!(
            "{}: make a memory larger, or kib smaller",
            no(&format!("have {kib} KiB of memory"))
        );
    }
    let fastest = left.iter().map(|(_, time, _)| *time).min().unwrap_or(0);
    let (fastest_us, deadline_us) = (fastest as f64 / 1e3, one.deadline_ns as f64 / 1e3);
    if fastest > one.deadline_ns {
        return format!(
            "it takes {fastest_us} µs at least, and its deadline is {deadline_us} µs: shorten its \
             time, or lengthen deadline_us"
        );
    }
    let max = match system.rules.bound {
        Bound::Utilisation(max) => max,
        Bound::Response => 1.0,
    };
    let used = fastest as f64 / one.period_ns as f64;
    format!(
        "it uses a core to {used:.3} at least, and the bound is {max}: shorten its time, or raise \
         utilisation_max"
    )
}
