//! From the document to a system.

use std::collections::BTreeMap;

use super::Model;
use super::xml::{Document, Element};
use crate::file::{Fault, FileError};
use crate::model::{
    Asil, Bound, Bus, Component, Core, LockStep, MODES_MAX, Memory, Message, Mixing, Mode, ModeSet,
    Protocol, Rules, System, Time, Unit,
};

/// Depth of calls from runnable to runnable.
const DEPTH_MAX: usize = 32;
/// Network between units, of which the subset reads nothing: automotive Ethernet.
const NETWORK_BITS_S: f64 = 1e8;

/// Reads a model. `name` is the file's name, for errors.
///
/// # Errors
/// [`FileError`] if the text is not XML, or lacks tasks, stimuli or processing units.
pub fn read(text: &str, name: &str) -> Result<Model, FileError> {
    let document = Document::read(text, name)?;
    let reader = Reader {
        document: &document,
        text,
        file: name,
    };
    if document.elements[0].name != "Amalthea" {
        let message = format!(
            "the outermost element is `{}` and not `Amalthea`: name an AMALTHEA model",
            document.elements[0].name
        );
        return Err(reader.error(0, message));
    }
    let mut notes = Vec::new();
    let modes = reader.modes()?;
    let hardware = reader.hardware(&modes, &mut notes)?;
    let mut system = System {
        name: name.to_owned(),
        modes,
        components: Vec::new(),
        messages: Vec::new(),
        points: Vec::new(),
        units: hardware.units,
        cores: hardware.cores,
        memories: hardware.memories,
        buses: Vec::new(),
        apart: Vec::new(),
        switches: Vec::new(),
        before: Vec::new(),
        rules: Rules {
            bound: Bound::Response,
            mixing: Mixing::Any,
            protocol: Protocol::Idle,
        },
    };
    if system.units.len() > 1 {
        notes.push(
            "the network is not read: one of 100 Mbit/s that joins all units is assumed".to_owned(),
        );
        system.buses.push(Bus {
            name: "network".to_owned(),
            bits_per_s: NETWORK_BITS_S,
            latency_ns: 0,
            overhead_bytes: 0,
            load_max: 0.8,
            units: (0..system.units.len()).collect(),
        });
    }
    let runnables = reader.named("runnables");
    let labels = reader.labels();
    let mut talks: BTreeMap<String, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for task in reader.all("tasks") {
        let number = system.components.len();
        let (component, accesses) = reader.task(task, &system, &hardware.hertz, &runnables)?;
        if system
            .components
            .iter()
            .any(|one| one.name == component.name)
        {
            let message = format!("two tasks are named `{}`: rename one", component.name);
            return Err(reader.error(task, message));
        }
        system.components.push(component);
        for (label, is_written) in accesses {
            let (writers, readers) = talks.entry(label).or_default();
            let ends = if is_written { writers } else { readers };
            if !ends.contains(&number) {
                ends.push(number);
            }
        }
    }
    if system.components.is_empty() {
        return Err(reader.error(0, "there is no task: add one to swModel".to_owned()));
    }
    for (label, (writers, readers)) in &talks {
        for from in writers {
            for to in readers.iter().filter(|to| *to != from) {
                system.messages.push(Message {
                    from: *from,
                    to: *to,
                    bytes: labels.get(label).copied().unwrap_or(0),
                    period_ns: system.components[*from].period_ns,
                    latency_ns: None,
                });
            }
        }
    }
    let processing_units = hardware.processing_units;
    let memories = hardware.memory_names;
    Ok(Model {
        text: text.to_owned(),
        document,
        system,
        notes,
        processing_units,
        memories,
    })
}

struct Reader<'a> {
    document: &'a Document,
    text: &'a str,
    file: &'a str,
}

struct Hardware {
    units: Vec<Unit>,
    cores: Vec<Core>,
    memories: Vec<Memory>,
    /// Frequency and definition by kind of core.
    hertz: BTreeMap<String, (f64, String)>,
    processing_units: Vec<String>,
    memory_names: Vec<Option<String>>,
}

impl<'a> Reader<'a> {
    fn element(&self, at: usize) -> &'a Element {
        &self.document.elements[at]
    }

    fn error(&self, at: usize, message: String) -> FileError {
        let element = self.element(at);
        let before = &self.text[..element.tag.start];
        let field = match element.attribute("name") {
            Some(name) => format!("{} `{name}`", element.name),
            None => element.name.clone(),
        };
        FileError {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            field,
            fault: Fault::Xml { message },
        }
    }

    /// All elements of a name, wherever they are.
    fn all(&self, name: &'a str) -> impl Iterator<Item = usize> + 'a {
        let document = self.document;
        let elements = document.elements.iter().enumerate();
        elements
            .filter(move |(_, one)| one.name == name)
            .map(|(at, _)| at)
    }

    /// Elements by their names.
    fn named(&self, element: &'a str) -> BTreeMap<&'a str, usize> {
        let all = self.all(element);
        all.filter_map(|at| Some((self.element(at).attribute("name")?, at)))
            .collect()
    }

    /// Literals of the first mode with literals; they share the time evenly.
    fn modes(&self) -> Result<Vec<Mode>, FileError> {
        let literals = self.all("modes").find_map(|at| {
            let literals = self.document.children(at, "literals");
            let names = literals.filter_map(|at| self.element(at).attribute("name"));
            let names: Vec<&str> = names.collect();
            (!names.is_empty()).then_some((at, names))
        });
        let Some((at, names)) = literals else {
            let name = "always".to_owned();
            return Ok(vec![Mode { name, share: 1.0 }]);
        };
        if names.len() > MODES_MAX {
            let message = format!("there are more than {MODES_MAX} modes: leave some out");
            return Err(self.error(at, message));
        }
        let share = 1.0 / names.len() as f64;
        let mode = |name: &&str| Mode {
            name: (*name).to_owned(),
            share,
        };
        Ok(names.iter().map(mode).collect())
    }

    fn hardware(&self, modes: &[Mode], notes: &mut Vec<String>) -> Result<Hardware, FileError> {
        let mut hardware = Hardware {
            units: Vec::new(),
            cores: Vec::new(),
            memories: Vec::new(),
            hertz: BTreeMap::new(),
            processing_units: Vec::new(),
            memory_names: Vec::new(),
        };
        let domains = self.named("domains");
        let definitions = self.named("definitions");
        let is_ecu = |at: &usize| self.element(*at).attribute("structureType") == Some("ECU");
        let mut ecus: Vec<usize> = self.all("structures").filter(is_ecu).collect();
        if ecus.is_empty() {
            // Without ECUs each outermost structure is one.
            let outer = |at: &usize| {
                let parent = self.element(*at).parent;
                parent.is_some_and(|parent| self.element(parent).name == "hwModel")
            };
            ecus = self.all("structures").filter(outer).collect();
        }
        for ecu in ecus {
            let unit = hardware.units.len();
            let name = self
                .element(ecu)
                .attribute("name")
                .unwrap_or("ECU")
                .to_owned();
            let (mut cores, mut memories) = (Vec::new(), Vec::new());
            let modules = self
                .document
                .below(ecu)
                .filter(|at| self.element(*at).name == "modules");
            for module in modules {
                let element = self.element(module);
                let own_name = element.attribute("name").unwrap_or_default().to_owned();
                let definition = reference(element.attribute("definition").unwrap_or_default());
                match element.kind() {
                    "ProcessingUnit" => {
                        let domain = element.attribute("frequencyDomain").map(reference);
                        let domain = domain.and_then(|name| domains.get(name.as_str()));
                        let hertz = domain.and_then(|at| self.hertz(*at)).ok_or_else(|| {
                            let message = "the processing unit has no frequency: give it a \
                                frequencyDomain with a defaultValue"
                                .to_owned();
                            self.error(module, message)
                        })?;
                        let kind = format!("{definition} {} MHz", hertz / 1e6);
                        hardware.hertz.insert(kind.clone(), (hertz, definition));
                        cores.push(hardware.cores.len());
                        hardware.processing_units.push(own_name);
                        hardware.cores.push(Core {
                            unit,
                            nth: cores.len() - 1,
                            kind,
                            lockstep: match self.property(module, "lockstep") {
                                Some("true") => LockStep::Always,
                                _ => LockStep::No,
                            },
                            checks: None,
                            busy_w: 0.0,
                        });
                    }
                    "Memory" => {
                        let size = definitions.get(definition.as_str());
                        let size = size.and_then(|at| self.size(*at));
                        memories.push(hardware.memories.len());
                        hardware.memory_names.push(Some(own_name.clone()));
                        hardware.memories.push(Memory {
                            unit,
                            kind: definition,
                            bytes: size.unwrap_or(u64::MAX / 4),
                        });
                    }
                    _ => {}
                }
            }
            if cores.is_empty() {
                continue;
            }
            if memories.is_empty() {
                notes.push(format!(
                    "`{name}` has no memory: one without limit is assumed"
                ));
                memories.push(hardware.memories.len());
                hardware.memory_names.push(None);
                hardware.memories.push(Memory {
                    unit,
                    kind: "memory".to_owned(),
                    bytes: u64::MAX / 4,
                });
            }
            hardware.units.push(Unit {
                name,
                at: None,
                cost: 0.0,
                power_w: vec![0.0; modes.len()],
                sleep_w: 0.0,
                points: None,
                is_protected: true,
                core_latency_ns: 0,
                cable_m: 0.0,
                cores,
                memories,
            });
        }
        match hardware.units.is_empty() {
            true => {
                let message = "there is no ECU with processing units: add a hwModel with \
                               structures of structureType ECU";
                Err(self.error(0, message.to_owned()))
            }
            false => Ok(hardware),
        }
    }

    /// Value of a custom property.
    fn property(&self, of: usize, key: &str) -> Option<&'a str> {
        let properties = self.document.below(of).filter(|at| {
            let element = self.element(*at);
            element.name == "customProperties" && element.attribute("key") == Some(key)
        });
        let mut values = properties.flat_map(|at| self.document.below(at));
        values.find_map(|at| self.element(at).attribute("value"))
    }

    fn hertz(&self, domain: usize) -> Option<f64> {
        let value = self.document.children(domain, "defaultValue").next()?;
        let value = self.element(value);
        let number: f64 = value.attribute("value")?.parse().ok()?;
        let factor = match value.attribute("unit").unwrap_or("Hz") {
            "kHz" => 1e3,
            "MHz" => 1e6,
            "GHz" => 1e9,
            _ => 1.0,
        };
        Some(number * factor).filter(|hertz| *hertz > 0.0 && hertz.is_finite())
    }

    /// Bytes of an element with a size.
    fn size(&self, of: usize) -> Option<u64> {
        let size = self.element(self.document.children(of, "size").next()?);
        let number: f64 = size.attribute("value")?.parse().ok()?;
        let factor = match size.attribute("unit").unwrap_or("B") {
            "bit" => 0.125,
            "kbit" => 125.0,
            "Mbit" => 125e3,
            "kB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "KiB" | "kiB" => 1024.0,
            "MiB" => 1_048_576.0,
            "GiB" => 1_073_741_824.0,
            "Kibit" => 128.0,
            "Mibit" => 131_072.0,
            _ => 1.0,
        };
        let bytes = (number * factor).ceil();
        (bytes >= 0.0).then_some((bytes as u64).min(u64::MAX / 4))
    }

    fn labels(&self) -> BTreeMap<String, u64> {
        let labels = self.named("labels").into_iter();
        let sized = labels.map(|(name, at)| (name.to_owned(), self.size(at).unwrap_or(0)));
        sized.collect()
    }

    /// A task as a component, with the labels that it reads and writes.
    fn task(
        &self,
        task: usize,
        system: &System,
        hertz: &BTreeMap<String, (f64, String)>,
        runnables: &BTreeMap<&str, usize>,
    ) -> Result<(Component, Vec<(String, bool)>), FileError> {
        let name = self.element(task).attribute("name").unwrap_or_default();
        if name.is_empty() {
            return Err(self.error(task, "the task has no name: give it one".to_owned()));
        }
        let (period_ns, modes) = self.activation(task, system)?;
        let mut runs = Vec::new();
        self.calls(task, runnables, &mut runs, 0)?;
        let mut times = Vec::new();
        for (kind, (hertz, definition)) in hertz {
            let ticks = runs.iter().map(|at| self.ticks(*at, definition));
            let ticks: f64 = ticks.sum();
            let ns = (ticks * 1e9 / hertz).ceil().max(1.0) as u64;
            times.push(Time {
                core: Some(kind.clone()),
                memory: None,
                ns,
            });
        }
        let levels = runs.iter().chain([&task]).filter_map(|at| {
            let level = self.element(*at).attribute("asilLevel")?;
            Asil::ALL.into_iter().find(|one| one.name() == level)
        });
        let sizes = runs.iter().map(|at| self.size(*at).unwrap_or(0));
        let component = Component {
            name: name.to_owned(),
            modes,
            period_ns,
            deadline_ns: period_ns,
            times,
            asil: levels.max().unwrap_or_default(),
            bytes: sizes.sum(),
            points: Vec::new(),
            on: None,
            before: None,
        };
        let mut accesses = Vec::new();
        for run in runs {
            for at in self.document.below(run) {
                let element = self.element(at);
                if let (Some(label), Some(access)) =
                    (element.attribute("data"), element.attribute("access"))
                {
                    accesses.push((reference(label), access == "write"));
                }
            }
        }
        Ok((component, accesses))
    }

    /// Period and modes of a task, by its stimuli: the shortest of several.
    fn activation(&self, task: usize, system: &System) -> Result<(u64, ModeSet), FileError> {
        let stimuli = self.named("stimuli");
        let named = self.element(task).attribute("stimuli").unwrap_or_default();
        let mut found: Option<(u64, ModeSet)> = None;
        for name in named.split_whitespace().map(reference) {
            let Some(stimulus) = stimuli.get(name.as_str()) else {
                continue;
            };
            let period = ["recurrence", "minDistance", "step"]
                .iter()
                .find_map(|time| {
                    let time = self
                        .document
                        .below(*stimulus)
                        .find(|at| self.element(*at).name == *time);
                    time.and_then(|at| self.time_ns(at))
                });
            let Some(period) = period.filter(|ns| *ns > 0) else {
                continue;
            };
            let mut modes = ModeSet::default();
            for at in self.document.below(*stimulus) {
                let value = self.element(at).attribute("value");
                let value = value.map(|value| value.rsplit('/').next().unwrap_or(value));
                let mode = system
                    .modes
                    .iter()
                    .position(|mode| Some(mode.name.as_str()) == value);
                modes = mode.map_or(modes, |mode| modes.with(mode));
            }
            if modes.is_empty() {
                modes = ModeSet::all(system.modes.len());
            }
            found = Some(match found {
                None => (period, modes),
                Some((other, both)) => (other.min(period), ModeSet(both.0 | modes.0)),
            });
        }
        found.ok_or_else(|| {
            let message = "the task has no stimulus with a time between two activations: give it \
                           one with a recurrence";
            self.error(task, message.to_owned())
        })
    }

    fn time_ns(&self, at: usize) -> Option<u64> {
        let element = self.element(at);
        let number: f64 = element.attribute("value")?.parse().ok()?;
        let factor = match element.attribute("unit")? {
            "s" => 1e9,
            "ms" => 1e6,
            "us" => 1e3,
            "ns" => 1.0,
            "ps" => 1e-3,
            _ => return None,
        };
        let ns = (number * factor).round();
        (0.0..=86_400e9).contains(&ns).then_some(ns as u64)
    }

    /// The runnables that a task or runnable calls, those that they call included.
    fn calls(
        &self,
        from: usize,
        runnables: &BTreeMap<&str, usize>,
        found: &mut Vec<usize>,
        depth: usize,
    ) -> Result<(), FileError> {
        if depth > DEPTH_MAX {
            let message =
                format!("runnables call each other {DEPTH_MAX} deep or in a circle: mend that");
            return Err(self.error(from, message));
        }
        for at in self.document.below(from) {
            let Some(called) = self.element(at).attribute("runnable") else {
                continue;
            };
            let name = reference(called);
            let Some(runnable) = runnables.get(name.as_str()) else {
                let message = format!("there is no runnable `{name}`: add it to swModel");
                return Err(self.error(at, message));
            };
            found.push(*runnable);
            self.calls(*runnable, runnables, found, depth + 1)?;
        }
        Ok(())
    }

    /// Most ticks of a runnable itself on a kind of processing unit.
    fn ticks(&self, runnable: usize, definition: &str) -> f64 {
        let items = self
            .document
            .below(runnable)
            .filter(|at| self.element(*at).kind() == "Ticks");
        let each = items.map(|at| {
            let extended = self.document.children(at, "extended").find(|at| {
                let key = self.element(*at).attribute("key").map(reference);
                key.is_some_and(|key| key == definition)
            });
            let extended = extended.and_then(|at| self.document.children(at, "value").next());
            let value = extended.or_else(|| self.document.children(at, "default").next());
            value.map_or(0.0, |at| self.most(at))
        });
        each.sum()
    }

    /// The largest value of a distribution.
    fn most(&self, at: usize) -> f64 {
        let element = self.element(at);
        let number = |name: &str| element.attribute(name)?.parse::<f64>().ok();
        let value = number("upperBound").or_else(|| number("value"));
        let inside = || {
            let bounds = self.document.below(at).filter_map(|at| {
                let element = self.element(at);
                let text = element
                    .attribute("upperBound")
                    .or(element.attribute("value"));
                text?.parse::<f64>().ok()
            });
            bounds.fold(0.0, f64::max)
        };
        value.unwrap_or_else(inside).max(0.0)
    }
}

/// The name in a reference such as `model.amxmi#Brake%20control?type=Task`.
pub(super) fn reference(text: &str) -> String {
    let text = text.rsplit('#').next().unwrap_or(text);
    let name = text.split("?type=").next().unwrap_or(text);
    let name = name.as_bytes();
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some(byte) = name.get(at) {
        let digits = name.get(at + 1..at + 3);
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (byte, code) {
            (b'%', Some(code)) => {
                bytes.push(code);
                at += 2;
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(*byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
