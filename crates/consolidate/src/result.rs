//! A checked result: the mapping with its figures, bounds and mode switches; as text and as JSON.

use std::fmt::Write as _;

use hearth_text::columns::{Columns, Side};
use hearth_text::counted;
use serde_json::{Value as Json, json};

use crate::check::{Checked, Violation, check, core_name};
use crate::figures::Figures;
use crate::mapping::Mapping;
use crate::model::System;
use crate::search::{Found, Goals, Progress, SearchError, search};
use crate::switch::{SwitchPlan, plans};
use crate::why::reasons;

/// A mapping that the checker has accepted, and all that is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Consolidated {
    /// The mapping with its distance from the best.
    pub found: Found,
    /// The checker's loads; no violations.
    pub checked: Checked,
    /// Its figures.
    pub figures: Figures,
    /// Figures of today's units, if every component names one.
    pub before: Option<Figures>,
    /// The mode switches.
    pub switches: Vec<SwitchPlan>,
}

/// Reason why there is no result.
#[derive(Clone, Debug, PartialEq)]
pub enum ConsolidateError {
    /// The search has none.
    Search(SearchError),
    /// The checker refuses what the search found: a mistake of ours.
    Refused(Vec<Violation>),
}

/// Searches, and passes the result through the checker. `hook` is that of [`search`].
///
/// # Errors
/// [`ConsolidateError`].
pub fn consolidate(
    system: &System,
    goals: &Goals,
    seed: u64,
    hook: &mut dyn FnMut(Progress) -> f64,
) -> Result<Consolidated, ConsolidateError> {
    let found = search(system, goals, seed, hook).map_err(ConsolidateError::Search)?;
    let switches = plans(system, &found.mapping);
    let checked = check(system, &found.mapping, &switches);
    if !checked.is_valid() {
        return Err(ConsolidateError::Refused(checked.violations));
    }
    Ok(Consolidated {
        figures: Figures::of(system, &found.mapping),
        before: Figures::before(system),
        found,
        checked,
        switches,
    })
}

/// One figure: its name, today's and the new value, and its unit.
pub(crate) fn rows(result: &Consolidated) -> Vec<[String; 4]> {
    let (after, before) = (&result.figures, result.before.as_ref());
    let row = |name: &str, unit: &str, of: &dyn Fn(&Figures) -> Option<f64>| {
        let show = |value: Option<f64>| value.map_or("?".to_owned(), digits);
        let old = before.map_or("?".to_owned(), |before| show(of(before)));
        [name.to_owned(), old, show(of(after)), unit.to_owned()]
    };
    vec![
        row("units", "", &|f| Some(f.units as f64)),
        row("cores", "", &|f| Some(f.cores as f64)),
        row("cost", "", &|f| Some(f.cost)),
        row("traffic on buses", "kbit/s", &|f| {
            Some(f.traffic_bits_s / 1e3)
        }),
        row("messages' times on the way", "µs", &|f| {
            f.latency_ns.map(|ns| ns / 1e3)
        }),
        row("cables", "m", &|f| Some(f.cabling_m)),
        row("power", "W", &|f| Some(f.power_w)),
        row("steps below the core's level", "", &|f| {
            f.mixing_steps.map(|n| n as f64)
        }),
    ]
}

pub(crate) fn digits(value: f64) -> String {
    // An empty sum is -0.
    let value = value + 0.0;
    match value.abs() {
        large if large >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        large if large >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Sentences about the distance from the best.
#[must_use]
pub fn gaps(result: &Consolidated) -> Vec<String> {
    let found = &result.found;
    let of = |name: &str, value: usize, least: usize, gap: f64| match gap == 0.0 {
        true => format!("{}: no valid mapping has fewer.", counted(value, name)),
        false => format!(
            "{value} {name}s; at least {least} are needed, so the gap is at most {:.1} %.",
            100.0 * gap
        ),
    };
    let (value, least) = (&found.value, &found.least);
    let goal = match found.gap_goal() {
        Some(0.0) => "Goals: no valid mapping of so many units and cores is better.".to_owned(),
        Some(gap) => format!(
            "Goals: {:.4}, and {:.4} at least; the gap is at most {:.0} %, and the bound is weak.",
            value.goal,
            least.goal,
            100.0 * gap
        ),
        None => format!("Goals: {:.4}; no bound but 0 is known.", value.goal),
    };
    vec![
        of("unit", value.units, least.units, found.gap_units()),
        of("core", value.cores, least.cores, found.gap_cores()),
        goal,
    ]
}

/// The result for a terminal.
#[must_use]
pub fn text(system: &System, result: &Consolidated) -> String {
    let mapping = &result.found.mapping;
    let mut text = format!(
        "{} on {} and {}.\n\n",
        counted(system.components.len(), "component"),
        counted(result.figures.units, "unit"),
        counted(result.figures.cores, "core"),
    );
    let mut columns = Columns::new(&[Side::Left, Side::Right, Side::Right, Side::Left]);
    columns.row(["", "before", "after", ""]);
    for row in rows(result) {
        columns.row(row);
    }
    text += &columns.lines(2);
    text.push('\n');
    for line in gaps(result) {
        let _ = writeln!(text, "{line}");
    }
    text += &places(system, mapping, result);
    text.push('\n');
    for plan in &result.switches {
        let took = plan.total_ns.map_or("may never end".to_owned(), |ns| {
            format!("takes {} µs at most", digits(ns as f64 / 1e3))
        });
        let _ = writeln!(
            text,
            "The switch from {} to {} {took}: {} stop, {} start.",
            system.modes[plan.from].name,
            system.modes[plan.to].name,
            plan.stops.len(),
            plan.starts.len(),
        );
    }
    text +=
        "Everything above was checked by the checker; times and powers are those of the file.\n";
    text
}

fn places(system: &System, mapping: &Mapping, result: &Consolidated) -> String {
    let mut text = String::new();
    for core in mapping.cores() {
        let loads = result.checked.loads.iter().filter(|load| load.core == core);
        let loads = loads.map(|load| {
            let mode = &system.modes[load.mode].name;
            format!("{mode} {:.0} %", 100.0 * load.utilisation)
        });
        let loads: Vec<String> = loads.collect();
        let is_locked = mapping.locked(system).contains(&core);
        let lock = if is_locked { ", in lock-step" } else { "" };
        let names = mapping
            .on_core(core)
            .map(|at| system.components[at].name.as_str());
        let names: Vec<&str> = names.collect();
        let head = format!(
            "\n{}{lock}: {}\n",
            core_name(system, core),
            loads.join(", ")
        );
        text += &head;
        text += &hearth_text::prose::wrapped(&names.join(", "), 96, "  ", "  ");
        text.push('\n');
    }
    text
}

/// The result as JSON.
#[must_use]
pub fn document(system: &System, result: &Consolidated) -> Json {
    let found = &result.found;
    let figures = |figures: &Figures| {
        json!({
            "units": figures.units,
            "cores": figures.cores,
            "cost": figures.cost,
            "traffic_bits_s": figures.traffic_bits_s,
            "latency_ns": figures.latency_ns,
            "cabling_m": figures.cabling_m,
            "power_w": figures.power_w,
            "mixing_steps": figures.mixing_steps,
        })
    };
    let placed = system
        .components
        .iter()
        .zip(&found.mapping.0)
        .map(|(one, seat)| {
            let core = &system.cores[seat.core];
            json!({
                "component": one.name,
                "unit": system.units[core.unit].name,
                "core": core.nth,
                "memory": system.memories[seat.memory].kind,
            })
        });
    let loads = result.checked.loads.iter().map(|load| {
        let core = &system.cores[load.core];
        let responses = load
            .responses
            .iter()
            .map(|(at, ns)| json!({"component": system.components[*at].name, "response_ns": ns}));
        json!({
            "unit": system.units[core.unit].name,
            "core": core.nth,
            "mode": system.modes[load.mode].name,
            "utilisation": load.utilisation,
            "responses": responses.collect::<Vec<_>>(),
        })
    });
    let names = |list: &[usize]| -> Vec<&str> {
        list.iter()
            .map(|at| system.components[*at].name.as_str())
            .collect()
    };
    let switches = result.switches.iter().map(|plan| {
        json!({
            "from": system.modes[plan.from].name,
            "to": system.modes[plan.to].name,
            "stops": names(&plan.stops),
            "starts": names(&plan.starts),
            "goes_on": names(&plan.goes_on),
            "total_ns": plan.total_ns,
        })
    });
    let together = reasons(system, &found.mapping).into_iter().map(|pair| {
        json!({
            "a": system.components[pair.a].name,
            "b": system.components[pair.b].name,
            "why": pair.reasons,
        })
    });
    json!({
        "name": system.name,
        "after": figures(&result.figures),
        "before": result.before.as_ref().map(figures),
        "least": {"units": found.least.units, "cores": found.least.cores, "goal": found.least.goal},
        "goal": found.value.goal,
        "gap_units": found.gap_units(),
        "gap_cores": found.gap_cores(),
        "gap_goal": found.gap_goal(),
        "is_cut_short": found.is_cut_short,
        "placed": placed.collect::<Vec<_>>(),
        "loads": loads.collect::<Vec<_>>(),
        "switches": switches.collect::<Vec<_>>(),
        "together": together.collect::<Vec<_>>(),
    })
}
