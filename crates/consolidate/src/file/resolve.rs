//! Names to numbers, units of the file to those of the model, and every check of a value.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use hearth_text::near::nearest;
use toml::Spanned;

use super::forms::{ComponentForm, CoreForm, Number, Power, RulesForm, SystemForm, Text, UnitForm};
use super::{Fault, FileError, Source};
use crate::model::{
    Apart, Asil, Before, Bound, Bus, By, Component, Core, LockStep, MODES_MAX, Memory, Message,
    Mixing, Mode, ModeSet, Point, Protocol, Rules, Switch, System, Time, Unit,
};

/// Longest time of a file: a day. Sums of a few thousand fit into 64 bits as nanoseconds.
const TIME_MAX_US: f64 = 86_400e6;
/// Most units and cores, so that a mistyped count does not fill the memory.
const UNITS_MAX: usize = 4096;
const CORES_MAX: f64 = 256.0;
/// Kind of cores and memories without one.
const PLAIN: &str = "plain";

pub(super) fn resolve(source: &Source, form: SystemForm) -> Result<System, FileError> {
    let modes = modes(source, &form)?;
    let rules = rules(source, &form.rules)?;
    let mut points = Vec::new();
    let mut point_names = Names::new("point");
    for point in &form.points {
        point_names.add(source, &point.name)?;
        points.push(Point {
            name: point.name.get_ref().clone(),
            at: place(source, point.at.as_ref())?,
            cables: number(source, point.cables.as_ref(), 1.0, NOT_NEGATIVE)?,
        });
    }
    let mode_names = Names::of("mode", modes.iter().map(|mode| mode.name.as_str()));
    let mut before = Vec::new();
    let mut before_names = Names::new("before");
    for unit in &form.before {
        before_names.add(source, &unit.name)?;
        before.push(Before {
            name: unit.name.get_ref().clone(),
            at: place(source, unit.at.as_ref())?,
            cost: number(source, unit.cost.as_ref(), 0.0, NOT_NEGATIVE)?,
            power_w: power(source, unit.power_w.as_ref(), &mode_names)?,
            sleep_w: number(source, unit.sleep_w.as_ref(), 0.0, NOT_NEGATIVE)?,
            cable_m: number(source, unit.cable_m.as_ref(), 0.0, NOT_NEGATIVE)?,
            cores: number(source, unit.cores.as_ref(), 1.0, NOT_NEGATIVE)? as usize,
        });
    }
    let mut built = Built::default();
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for unit in &form.units {
        let added = built.unit(source, unit, &mode_names, &point_names)?;
        groups.insert(unit.name.get_ref().clone(), added);
    }
    let mut system = System {
        name: form.name.clone().unwrap_or_else(|| "system".to_owned()),
        modes,
        components: Vec::new(),
        messages: Vec::new(),
        points,
        units: built.units,
        cores: built.cores,
        memories: built.memories,
        buses: Vec::new(),
        apart: Vec::new(),
        switches: Vec::new(),
        before,
        rules,
    };
    buses(source, &form, &mut system, &groups)?;
    let unit_names = Names::of("unit", system.units.iter().map(|unit| unit.name.as_str()));
    let mut names = Names::new("component");
    for component in &form.components {
        names.add(source, &component.name)?;
        let mut found = component_of(source, component, &mode_names, &point_names)?;
        found.on = (component.on.as_ref())
            .map(|name| unit_names.find(source, name))
            .transpose()?;
        if let Some(name) = &component.before {
            found.before = Some(before_of(source, name, &form, &mut system.before)?);
        }
        system.components.push(found);
    }
    if system.components.is_empty() {
        return Err(source.error(0, Fault::Missing { what: "component" }));
    }
    if system.units.is_empty() {
        return Err(source.error(0, Fault::Missing { what: "unit" }));
    }
    links(source, &form, &mut system, &names, &mode_names)?;
    Ok(system)
}

fn modes(source: &Source, form: &SystemForm) -> Result<Vec<Mode>, FileError> {
    if form.modes.is_empty() {
        let name = "always".to_owned();
        return Ok(vec![Mode { name, share: 1.0 }]);
    }
    if let Some(last) = form.modes.get(MODES_MAX) {
        let fault = Fault::Many {
            found: form.modes.len(),
            what: "modes",
            max: MODES_MAX,
        };
        return Err(source.error(last.name.span().start, fault));
    }
    let even = 1.0 / form.modes.len() as f64;
    let mut names = Names::new("mode");
    let mut modes = Vec::new();
    let is_shared = form.modes.iter().any(|mode| mode.share.is_some());
    for mode in &form.modes {
        names.add(source, &mode.name)?;
        let missing = if is_shared { 0.0 } else { even };
        modes.push(Mode {
            name: mode.name.get_ref().clone(),
            share: number(source, mode.share.as_ref(), missing, NOT_NEGATIVE)?,
        });
    }
    let sum: f64 = modes.iter().map(|mode| mode.share).sum();
    if (sum - 1.0).abs() > 1e-6 {
        let at = form.modes[0].name.span().start;
        return Err(source.error(at, Fault::Shares { sum }));
    }
    Ok(modes)
}

fn rules(source: &Source, form: &RulesForm) -> Result<Rules, FileError> {
    const SHARE: Limits = Limits(f64::MIN_POSITIVE..=1.0, "a number above 0 and at most 1");
    // A set of any size whose utilisation is below ln 2 meets its deadlines under rate-monotonic
    // priorities (Liu and Layland, 1973), rounded down.
    let limit = number(source, form.utilisation_max.as_ref(), 0.69, SHARE)?;
    Ok(Rules {
        bound: word(
            source,
            form.schedulability.as_ref(),
            "`response` and `utilisation`",
            &[
                ("response", Bound::Response),
                ("utilisation", Bound::Utilisation(limit)),
            ],
        )?,
        mixing: word(
            source,
            form.mixing.as_ref(),
            "`any`, `adjacent` and `same`",
            &[
                ("any", Mixing::Any),
                ("adjacent", Mixing::Adjacent),
                ("same", Mixing::Same),
            ],
        )?,
        protocol: word(
            source,
            form.protocol.as_ref(),
            "`idle` and `deferred`",
            &[("idle", Protocol::Idle), ("deferred", Protocol::Deferred)],
        )?,
    })
}

/// Units, cores and memories so far.
#[derive(Default)]
struct Built {
    units: Vec<Unit>,
    cores: Vec<Core>,
    memories: Vec<Memory>,
}

impl Built {
    /// Adds a unit as often as its table says; returns the numbers.
    fn unit(
        &mut self,
        source: &Source,
        form: &UnitForm,
        modes: &Names,
        points: &Names,
    ) -> Result<Vec<usize>, FileError> {
        let at = form.name.span().start;
        let count = whole(source, form.count.as_ref(), 1.0, 1.0..=UNITS_MAX as f64)?;
        if self.units.len() + count > UNITS_MAX {
            let fault = Fault::Many {
                found: self.units.len() + count,
                what: "units",
                max: UNITS_MAX,
            };
            return Err(source.error(at, fault));
        }
        if form.core.is_empty() || form.memory.is_empty() {
            let what = match form.core.is_empty() {
                true => "unit.core",
                false => "unit.memory",
            };
            return Err(source.error(at, Fault::Missing { what }));
        }
        let like = Unit {
            name: String::new(),
            at: place(source, form.at.as_ref())?,
            cost: number(source, form.cost.as_ref(), 0.0, NOT_NEGATIVE)?,
            power_w: power(source, form.power_w.as_ref(), modes)?,
            sleep_w: number(source, form.sleep_w.as_ref(), 0.0, NOT_NEGATIVE)?,
            points: (form.points.as_ref())
                .map(|names| names.iter().map(|name| points.find(source, name)).collect())
                .transpose()?,
            is_protected: form.protected.unwrap_or(true),
            core_latency_ns: time_ns(source, form.core_latency_us.as_ref(), 0.0, 0.0)?,
            cable_m: number(source, form.cable_m.as_ref(), 0.0, NOT_NEGATIVE)?,
            cores: Vec::new(),
            memories: Vec::new(),
        };
        if like.power_w.iter().any(|watts| *watts < like.sleep_w) {
            // Sums of power must only grow as components are added.
            let value = like.sleep_w;
            let range = "at most the power in each mode";
            let at = form.sleep_w.as_ref().map_or(at, |watts| watts.span().start);
            return Err(source.error(at, Fault::Range { value, range }));
        }
        let mut added = Vec::new();
        for nth in 1..=count {
            let name = match form.count {
                Some(_) => format!("{}-{nth}", form.name.get_ref()),
                None => form.name.get_ref().clone(),
            };
            if name.is_empty() {
                return Err(source.error(at, Fault::NoName));
            }
            if self.units.iter().any(|unit| unit.name == name) {
                return Err(source.error(at, Fault::Twice { name, what: "unit" }));
            }
            let number = self.units.len();
            let mut unit = Unit {
                name,
                ..like.clone()
            };
            for core in &form.core {
                self.cores_of(source, core, number, &mut unit.cores)?;
            }
            for memory in &form.memory {
                unit.memories.push(self.memories.len());
                self.memories.push(Memory {
                    unit: number,
                    kind: kind(source, memory.kind.as_ref())?,
                    bytes: kib(source, Some(&memory.kib))?,
                });
            }
            added.push(number);
            self.units.push(unit);
        }
        Ok(added)
    }

    fn cores_of(
        &mut self,
        source: &Source,
        form: &CoreForm,
        unit: usize,
        cores: &mut Vec<usize>,
    ) -> Result<(), FileError> {
        #[derive(Clone, Copy, PartialEq)]
        enum Pairs {
            No,
            Always,
            Configurable,
        }
        let count = whole(source, form.count.as_ref(), 1.0, 1.0..=CORES_MAX)?;
        let pairs = word(
            source,
            form.lockstep.as_ref(),
            "`no`, `always` and `pair`",
            &[
                ("no", Pairs::No),
                ("always", Pairs::Always),
                ("pair", Pairs::Configurable),
            ],
        )?;
        let kind = kind(source, form.kind.as_ref())?;
        let busy_w = number(source, form.busy_w.as_ref(), 0.0, NOT_NEGATIVE)?;
        for _ in 0..count {
            let first = self.cores.len();
            let (lockstep, width) = match pairs {
                Pairs::No => (LockStep::No, 1),
                Pairs::Always => (LockStep::Always, 1),
                Pairs::Configurable => (LockStep::With(first + 1), 2),
            };
            for at in 0..width {
                let nth = cores.len();
                cores.push(first + at);
                self.cores.push(Core {
                    unit,
                    nth,
                    kind: kind.clone(),
                    lockstep: if at == 0 { lockstep } else { LockStep::No },
                    checks: (at == 1).then_some(first),
                    busy_w,
                });
            }
        }
        Ok(())
    }
}

fn buses(
    source: &Source,
    form: &SystemForm,
    system: &mut System,
    groups: &BTreeMap<String, Vec<usize>>,
) -> Result<(), FileError> {
    const SHARE: Limits = Limits(f64::MIN_POSITIVE..=1.0, "a number above 0 and at most 1");
    let mut names = Names::new("bus");
    for bus in &form.buses {
        names.add(source, &bus.name)?;
        let mut units = Vec::new();
        match &bus.units {
            None => units.extend(0..system.units.len()),
            Some(list) => {
                for name in list {
                    let single = system.units.iter().position(|u| &u.name == name.get_ref());
                    match (groups.get(name.get_ref()), single) {
                        (Some(group), _) => units.extend(group),
                        (None, Some(unit)) => units.push(unit),
                        (None, None) => {
                            let all = system.units.iter().map(|unit| unit.name.as_str());
                            let all = all.chain(groups.keys().map(String::as_str));
                            return Err(unknown(source, name, "unit", all));
                        }
                    }
                }
            }
        }
        units.sort_unstable();
        units.dedup();
        system.buses.push(Bus {
            name: bus.name.get_ref().clone(),
            bits_per_s: 1e3 * number(source, Some(&bus.kbit_s), 0.0, ABOVE_0)?,
            latency_ns: time_ns(source, bus.latency_us.as_ref(), 0.0, 0.0)?,
            overhead_bytes: whole(source, bus.overhead_bytes.as_ref(), 0.0, 0.0..=1e6)? as u64,
            load_max: number(source, bus.load_max.as_ref(), 0.8, SHARE)?,
            units,
        });
    }
    Ok(())
}

fn component_of(
    source: &Source,
    form: &ComponentForm,
    modes: &Names,
    points: &Names,
) -> Result<Component, FileError> {
    let period_ns = time_ns(source, Some(&form.period_us), 0.0, 1e-3)?;
    let deadline_ns = match &form.deadline_us {
        Some(deadline) => time_ns(source, Some(deadline), 0.0, 1e-3)?,
        None => period_ns,
    };
    if let Some(given) = form
        .deadline_us
        .as_ref()
        .filter(|_| deadline_ns > period_ns)
    {
        let fault = Fault::Deadline {
            deadline: *given.get_ref(),
            period: *form.period_us.get_ref(),
        };
        return Err(source.error(given.span().start, fault));
    }
    let mut times = Vec::new();
    if let Some(wcet) = &form.wcet_us {
        let ns = time_ns(source, Some(wcet), 0.0, 1e-3)?;
        times.push(Time {
            core: None,
            memory: None,
            ns,
        });
    }
    for time in &form.times {
        times.push(Time {
            core: time.core.as_ref().map(|kind| kind.get_ref().clone()),
            memory: time.memory.as_ref().map(|kind| kind.get_ref().clone()),
            ns: time_ns(source, Some(&time.us), 0.0, 1e-3)?,
        });
    }
    if times.is_empty() {
        return Err(source.error(form.name.span().start, Fault::NoTime));
    }
    let in_modes = match &form.modes {
        None => ModeSet::all(modes.len()),
        Some(names) => {
            let mut set = ModeSet::default();
            for name in names {
                set = set.with(modes.find(source, name)?);
            }
            if set.is_empty() {
                let fault = Fault::Missing { what: "mode" };
                return Err(source.error(form.name.span().start, fault));
            }
            set
        }
    };
    let mut wired = Vec::new();
    for point in &form.points {
        wired.push(points.find(source, point)?);
    }
    wired.sort_unstable();
    wired.dedup();
    Ok(Component {
        name: form.name.get_ref().clone(),
        modes: in_modes,
        period_ns,
        deadline_ns,
        times,
        asil: word(
            source,
            form.asil.as_ref(),
            "`QM`, `A`, `B`, `C` and `D`",
            &Asil::ALL.map(|level| (level.name(), level)),
        )?,
        bytes: kib(source, form.kib.as_ref())?,
        points: wired,
        on: None,
        before: None,
    })
}

/// The unit of today by its name. Without tables `[[before]]` a name is enough.
fn before_of(
    source: &Source,
    name: &Text,
    form: &SystemForm,
    before: &mut Vec<Before>,
) -> Result<usize, FileError> {
    let found = before.iter().position(|unit| &unit.name == name.get_ref());
    match found {
        Some(at) => Ok(at),
        None if form.before.is_empty() => {
            before.push(Before {
                name: name.get_ref().clone(),
                cores: 1,
                ..Before::default()
            });
            Ok(before.len() - 1)
        }
        None => {
            let all = before.iter().map(|unit| unit.name.as_str());
            Err(unknown(source, name, "before", all))
        }
    }
}

/// Messages, separations and switches.
fn links(
    source: &Source,
    form: &SystemForm,
    system: &mut System,
    components: &Names,
    modes: &Names,
) -> Result<(), FileError> {
    for message in &form.messages {
        let from = components.find(source, &message.from)?;
        let to = components.find(source, &message.to)?;
        if from == to {
            let name = message.to.get_ref().clone();
            return Err(source.error(message.to.span().start, Fault::Loop { name }));
        }
        let latency = message.latency_us.as_ref();
        system.messages.push(Message {
            from,
            to,
            bytes: whole(source, Some(&message.bytes), 0.0, 0.0..=1e12)? as u64,
            period_ns: time_ns(source, Some(&message.period_us), 0.0, 1e-3)?,
            latency_ns: latency
                .map(|latency| time_ns(source, Some(latency), 0.0, 0.0))
                .transpose()?,
        });
    }
    for apart in &form.apart {
        let mut numbers = Vec::new();
        for name in &apart.components {
            numbers.push(components.find(source, name)?);
        }
        numbers.sort_unstable();
        numbers.dedup();
        system.apart.push(Apart {
            components: numbers,
            by: word(
                source,
                apart.by.as_ref(),
                "`unit` and `core`",
                &[("unit", By::Unit), ("core", By::Core)],
            )?,
        });
    }
    for switch in &form.switches {
        system.switches.push(Switch {
            from: modes.find(source, &switch.from)?,
            to: modes.find(source, &switch.to)?,
            within_ns: time_ns(source, Some(&switch.within_us), 0.0, 0.0)?,
        });
    }
    Ok(())
}

/// Names of one kind of thing.
pub(super) struct Names {
    what: &'static str,
    numbers: BTreeMap<String, usize>,
}

impl Names {
    fn new(what: &'static str) -> Self {
        let numbers = BTreeMap::new();
        Self { what, numbers }
    }

    pub(super) fn of<'a>(what: &'static str, names: impl Iterator<Item = &'a str>) -> Self {
        let numbers = names.enumerate().map(|(at, name)| (name.to_owned(), at));
        Self {
            what,
            numbers: numbers.collect(),
        }
    }

    fn len(&self) -> usize {
        self.numbers.len()
    }

    fn add(&mut self, source: &Source, name: &Text) -> Result<(), FileError> {
        let at = name.span().start;
        let what = self.what;
        let name = name.get_ref().clone();
        if name.trim().is_empty() {
            return Err(source.error(at, Fault::NoName));
        }
        let number = self.numbers.len();
        match self.numbers.insert(name.clone(), number) {
            None => Ok(()),
            Some(_) => Err(source.error(at, Fault::Twice { name, what })),
        }
    }

    pub(super) fn find(&self, source: &Source, name: &Text) -> Result<usize, FileError> {
        let found = self.numbers.get(name.get_ref()).copied();
        let all = || self.numbers.keys().map(String::as_str);
        found.ok_or_else(|| unknown(source, name, self.what, all()))
    }
}

fn unknown<'a>(
    source: &Source,
    name: &Text,
    what: &'static str,
    all: impl Iterator<Item = &'a str>,
) -> FileError {
    let near = nearest(name.get_ref(), all);
    let fault = Fault::Unknown {
        name: name.get_ref().clone(),
        what,
        near: near.map_or(String::new(), |near| format!("; `{near}` is near it")),
    };
    source.error(name.span().start, fault)
}

/// Allowed numbers, and their words.
struct Limits(RangeInclusive<f64>, &'static str);

const NOT_NEGATIVE: Limits = Limits(0.0..=1e15, "a number of at least 0");
const ABOVE_0: Limits = Limits(f64::MIN_POSITIVE..=1e15, "a number above 0");

fn number(
    source: &Source,
    given: Option<&Number>,
    missing: f64,
    limits: Limits,
) -> Result<f64, FileError> {
    let Some(given) = given else {
        return Ok(missing);
    };
    let value = *given.get_ref();
    match limits.0.contains(&value) {
        true => Ok(value),
        false => {
            let range = limits.1;
            Err(source.error(given.span().start, Fault::Range { value, range }))
        }
    }
}

pub(super) fn whole(
    source: &Source,
    given: Option<&Number>,
    missing: f64,
    range: RangeInclusive<f64>,
) -> Result<usize, FileError> {
    let words = "a whole number in the allowed range";
    let value = number(source, given, missing, Limits(range, words))?;
    match (value.fract() == 0.0, given) {
        (false, Some(given)) => {
            let fault = Fault::Range {
                value,
                range: "a whole number",
            };
            Err(source.error(given.span().start, fault))
        }
        _ => Ok(value as usize),
    }
}

/// A time in ns. Rounded to the nearest, so that `0.1` is 100 ns.
fn time_ns(
    source: &Source,
    given: Option<&Number>,
    missing: f64,
    least: f64,
) -> Result<u64, FileError> {
    let words = match least > 0.0 {
        true => "a number of µs above 0 and at most a day",
        false => "a number of µs from 0 to a day",
    };
    let us = number(source, given, missing, Limits(least..=TIME_MAX_US, words))?;
    Ok((us * 1e3).round() as u64)
}

fn kib(source: &Source, given: Option<&Number>) -> Result<u64, FileError> {
    const LIMITS: Limits = Limits(0.0..=1e12, "a number of KiB of at least 0");
    let kib = number(source, given, 0.0, LIMITS)?;
    Ok((kib * 1024.0).ceil() as u64)
}

fn place(source: &Source, at: Option<&[Number; 2]>) -> Result<Option<(f64, f64)>, FileError> {
    const LIMITS: Limits = Limits(-1e6..=1e6, "a number of metres");
    let Some([x, y]) = at else {
        return Ok(None);
    };
    let metres = |given| number(source, Some(given), 0.0, Limits(LIMITS.0, LIMITS.1));
    Ok(Some((metres(x)?, metres(y)?)))
}

fn power(
    source: &Source,
    given: Option<&Spanned<Power>>,
    modes: &Names,
) -> Result<Vec<f64>, FileError> {
    let mut watts = vec![0.0; modes.len()];
    let Some(given) = given else {
        return Ok(watts);
    };
    let at = given.span();
    let sound = |value: f64| match NOT_NEGATIVE.0.contains(&value) {
        true => Ok(value),
        false => {
            let range = NOT_NEGATIVE.1;
            Err(source.error(at.start, Fault::Range { value, range }))
        }
    };
    match given.get_ref() {
        Power::Same(value) => watts.fill(sound(*value)?),
        Power::Each(each) => {
            for (name, value) in each {
                let name = Spanned::new(at.clone(), name.clone());
                watts[modes.find(source, &name)?] = sound(*value)?;
            }
        }
    }
    Ok(watts)
}

fn kind(source: &Source, given: Option<&Text>) -> Result<String, FileError> {
    match given {
        Some(kind) if kind.get_ref().trim().is_empty() => {
            Err(source.error(kind.span().start, Fault::NoName))
        }
        Some(kind) => Ok(kind.get_ref().clone()),
        None => Ok(PLAIN.to_owned()),
    }
}

/// The meaning of a word; that of the first if there is none.
fn word<T: Copy>(
    source: &Source,
    given: Option<&Text>,
    choices: &'static str,
    words: &[(&str, T)],
) -> Result<T, FileError> {
    let Some(given) = given else {
        return Ok(words[0].1);
    };
    let word = given.get_ref().clone();
    match words.iter().find(|(name, _)| *name == word) {
        Some((_, meaning)) => Ok(*meaning),
        None => Err(source.error(given.span().start, Fault::Word { word, choices })),
    }
}
