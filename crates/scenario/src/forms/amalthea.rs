//! Models from AMALTHEA's `.amxmi`, as APP4MC writes them.
//!
//! Read are tasks and interrupt routines with the ticks of the runnables that they call, stimuli,
//! cores with their frequency, allocations with priorities, and response-time requirements as
//! deadlines. Everything else is counted in the notes.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

use crate::model::{
    Arrival, CoreId, Model, Policy, Range, Scheduler, Scope, Step, TIME_NS_MAX, Task, TaskId,
};

use super::{Read, ReadError};

/// Horizon of a model: AMALTHEA has none.
const HORIZON_NS: u64 = 1_000_000_000;
/// Frequency of a core whose domain has none: 1 GHz, so a tick is a nanosecond.
const HERTZ: f64 = 1e9;
/// Most runnables called within each other.
const DEPTH_MAX: usize = 32;

/// Elements that are read, or only hold those that are.
const READ: [&str; 34] = [
    "Amalthea",
    "swModel",
    "hwModel",
    "osModel",
    "stimuliModel",
    "constraintsModel",
    "mappingModel",
    "tasks",
    "isrs",
    "runnables",
    "activityGraph",
    "callGraph",
    "graphEntries",
    "items",
    "calls",
    "default",
    "stimuli",
    "offset",
    "recurrence",
    "jitter",
    "structures",
    "modules",
    "domains",
    "defaultValue",
    "definitions",
    "requirements",
    "limit",
    "limitValue",
    "taskAllocation",
    "isrAllocation",
    "schedulerAllocation",
    "nextOccurrence",
    "lowerBound",
    "upperBound",
];

type Element<'a, 'input> = Node<'a, 'input>;

/// A model from an `.amxmi` file.
///
/// # Errors
///
/// The first mistake, with its line.
pub fn read(text: &str) -> Result<Read, ReadError> {
    let document = Document::parse(text).map_err(|error| ReadError::Syntax {
        line: error.pos().row as usize,
        reason: error.to_string(),
        form: "`.amxmi`, as APP4MC writes it",
    })?;
    let root = document.root_element();
    if root.tag_name().name() != "Amalthea" {
        return Err(ReadError::at(
            line(root),
            format!(
                "the root is `{}`, not `Amalthea`: give a model of AMALTHEA",
                root.tag_name().name()
            ),
        ));
    }
    let mut reader = Reader {
        root,
        notes: Vec::new(),
        cores: Vec::new(),
    };
    reader.cores();
    reader.model()
}

fn line(node: Element) -> String {
    let row = node.document().text_pos_at(node.range().start).row;
    format!("line {row}, element `{}`", node.tag_name().name())
}

/// The name in a reference such as `Task_1?type=Task`, escaped as in addresses.
fn referred(text: &str) -> String {
    let name = text.split('?').next().unwrap_or(text);
    let mut bytes = Vec::new();
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        let escaped = match byte {
            b'%' => {
                let digits = [rest.next(), rest.next()].map(|digit| digit.unwrap_or(b'?'));
                let digits = String::from_utf8_lossy(&digits).into_owned();
                u8::from_str_radix(&digits, 16).unwrap_or(b'_')
            }
            byte => byte,
        };
        bytes.push(escaped);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The kind of an element: `PeriodicStimulus` of `xsi:type="am:PeriodicStimulus"`.
fn kind<'a>(node: Element<'a, '_>) -> &'a str {
    let attributes = node.attributes();
    let found = attributes
        .into_iter()
        .find(|one| one.name() == "type" && one.namespace().is_some());
    let value = found.map_or("", |one| one.value());
    value.rsplit(':').next().unwrap_or(value)
}

fn child<'a, 'input>(node: Element<'a, 'input>, name: &str) -> Option<Element<'a, 'input>> {
    node.children().find(|one| one.tag_name().name() == name)
}

/// A time with its unit.
fn time(node: Element) -> Result<u64, ReadError> {
    let wrong = || {
        ReadError::at(
            line(node),
            "it is not a time of at most an hour: give `value` and `unit`",
        )
    };
    let value: f64 = node
        .attribute("value")
        .unwrap_or("0")
        .parse()
        .map_err(|_| wrong())?;
    let factor = match node.attribute("unit").unwrap_or("ns") {
        "ps" => 1e-3,
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(wrong()),
    };
    let ns = (value * factor).round();
    match (0.0..=TIME_NS_MAX as f64).contains(&ns) {
        true => Ok(ns as u64),
        false => Err(wrong()),
    }
}

struct Core {
    name: String,
    hertz: f64,
}

struct Reader<'a, 'input> {
    root: Element<'a, 'input>,
    notes: Vec<String>,
    cores: Vec<Core>,
}

impl<'a, 'input> Reader<'a, 'input> {
    /// Elements of a name anywhere below the root.
    fn all(
        &self,
        name: &'static str,
    ) -> impl Iterator<Item = Element<'a, 'input>> + use<'a, 'input> {
        let root = self.root;
        root.descendants()
            .filter(move |node| node.tag_name().name() == name)
    }

    fn named(&self, element: &'static str, name: &str) -> Option<Element<'a, 'input>> {
        self.all(element)
            .find(|node| node.attribute("name") == Some(name))
    }

    fn cores(&mut self) {
        let units: Vec<_> = self
            .all("modules")
            .filter(|node| kind(*node) == "ProcessingUnit")
            .collect();
        for unit in units {
            let domain = unit.attribute("frequencyDomain").map(referred);
            let domain = domain.and_then(|name| self.named("domains", &name));
            let value = domain.and_then(|domain| child(domain, "defaultValue"));
            let hertz = value.and_then(|value| {
                let number: f64 = value.attribute("value")?.parse().ok()?;
                let factor = match value.attribute("unit")? {
                    "Hz" => 1.0,
                    "KHz" | "kHz" => 1e3,
                    "MHz" => 1e6,
                    "GHz" => 1e9,
                    _ => return None,
                };
                Some(number * factor).filter(|hertz| *hertz > 0.0 && hertz.is_finite())
            });
            let name = unit.attribute("name").unwrap_or("core").to_owned();
            if hertz.is_none() {
                self.notes
                    .push(format!("Core `{name}` runs at 1 GHz: it has no frequency."));
            }
            self.cores.push(Core {
                name,
                hertz: hertz.unwrap_or(HERTZ),
            });
        }
        if self.cores.is_empty() {
            self.notes
                .push("There is one core, at 1 GHz: the model has no processing unit.".into());
            self.cores.push(Core {
                name: "core0".into(),
                hertz: HERTZ,
            });
        }
    }

    fn model(mut self) -> Result<Read, ReadError> {
        let elements: Vec<_> = self.all("tasks").chain(self.all("isrs")).collect();
        let names: Vec<String> = elements
            .iter()
            .map(|node| node.attribute("name").unwrap_or_default().to_owned())
            .collect();
        let mut tasks = Vec::new();
        for (nth, node) in elements.iter().enumerate() {
            if let Some(task) = self.task(*node, &names[nth], &names)? {
                tasks.push(task);
            }
        }
        // Arrivals name tasks by their place among all of them: some may have been left out.
        let kept: Vec<Option<usize>> = names
            .iter()
            .map(|name| tasks.iter().position(|task: &Task| task.name == *name))
            .collect();
        for task in &mut tasks {
            if let Arrival::After { task: before, .. } = &mut task.arrival {
                *before = TaskId(kept[before.0].ok_or_else(|| {
                    ReadError::at(
                        format!("task `{}`", task.name),
                        "the task that activates it is not read: see the notes, and give that one a stimulus",
                    )
                })?);
            }
        }
        self.count_unread();
        let is_pinned = tasks.iter().all(|task| task.cores.len() == 1);
        self.notes
            .push("The horizon is 1 s: AMALTHEA has none.".into());
        let model = Model {
            horizon_ns: HORIZON_NS,
            window_ns: 10_000_000,
            scheduler: Scheduler {
                policy: Policy::FixedPriority { preemptive: true },
                scope: if is_pinned {
                    Scope::Partitioned
                } else {
                    Scope::Global
                },
            },
            modes: vec![String::new()],
            cores: self.cores.iter().map(|core| core.name.clone()).collect(),
            resources: Vec::new(),
            queues: Vec::new(),
            tasks,
        };
        Ok(Read {
            model: model.checked()?,
            notes: self.notes,
        })
    }

    fn task(
        &mut self,
        node: Element<'a, 'input>,
        name: &str,
        names: &[String],
    ) -> Result<Option<Task>, ReadError> {
        if name.is_empty() {
            return Err(ReadError::at(line(node), "it has no name: give it one"));
        }
        let (cores, priority) = self.allocation(name)?;
        let hertz = cores.iter().map(|core| self.cores[core.0].hertz);
        let hertz = hertz.fold(f64::INFINITY, f64::min);
        let ticks = self.ticks(node, 0)?;
        let ns = |ticks: f64| (ticks * 1e9 / hertz).ceil();
        if ns(ticks.1) > TIME_NS_MAX as f64 {
            return Err(ReadError::at(
                line(node),
                "it computes for more than an hour: mend its ticks",
            ));
        }
        let duration = Range::between(ns(ticks.0) as u64, ns(ticks.1) as u64);
        if duration.to_ns == 0 {
            self.notes
                .push(format!("`{name}` is left out: it has no ticks."));
            return Ok(None);
        }
        let Some(arrival) = self.arrival(node, name, names)? else {
            self.notes.push(format!(
                "`{name}` is left out: no stimulus that is read activates it."
            ));
            return Ok(None);
        };
        Ok(Some(Task {
            name: name.to_owned(),
            arrival,
            steps: vec![Step::Run(duration)],
            deadline_ns: self.deadline(name)?,
            priority,
            weight: 1024,
            cores,
            modes: Vec::new(),
        }))
    }

    /// Cores and priority of a task.
    fn allocation(&mut self, name: &str) -> Result<(Vec<CoreId>, u32), ReadError> {
        let all: Vec<CoreId> = (0..self.cores.len()).map(CoreId).collect();
        let tasks = self.all("taskAllocation").map(|node| (node, "task"));
        let mut found = tasks.chain(self.all("isrAllocation").map(|node| (node, "isr")));
        let of_it = |(node, by): &(Element, &str)| {
            node.attribute(*by)
                .is_some_and(|task| referred(task) == name)
        };
        let Some((node, _)) = found.find(of_it) else {
            self.notes.push(format!(
                "`{name}` may run on all cores: it has no allocation."
            ));
            return Ok((all, 0));
        };
        // A priority is an attribute of older versions, and a parameter of newer ones.
        let mut priority = None;
        for one in node.descendants() {
            let is_named = one
                .attribute("key")
                .is_some_and(|key| key.contains("riority"));
            let value = match one.attribute("priority") {
                Some(value) => Some(value),
                None if is_named => one.descendants().find_map(|part| part.attribute("value")),
                None => None,
            };
            priority = priority.or(value);
        }
        let priority = match priority {
            None => 0,
            Some(text) => text.parse().map_err(|_| {
                ReadError::at(
                    line(node),
                    format!("`{text}` is not a priority: write a number from 0 on"),
                )
            })?,
        };
        let units = |text: Option<&str>| -> Vec<String> {
            text.map(|text| text.split_whitespace().map(referred).collect())
                .unwrap_or_default()
        };
        let mut wanted = units(node.attribute("affinity"));
        if wanted.is_empty()
            && let Some(scheduler) = node.attribute("scheduler").or(node.attribute("controller"))
        {
            let scheduler = referred(scheduler);
            let own = |one: &Element| {
                one.attribute("scheduler")
                    .is_some_and(|name| referred(name) == scheduler)
            };
            if let Some(one) = self.all("schedulerAllocation").find(own) {
                wanted = units(
                    one.attribute("responsibility")
                        .or(one.attribute("executingPU")),
                );
            }
        }
        let mut cores: Vec<CoreId> = Vec::new();
        for unit in wanted {
            let known = self.cores.iter().position(|core| core.name == unit);
            cores.push(CoreId(known.ok_or_else(|| {
                ReadError::at(
                    line(node),
                    format!("there is no processing unit `{unit}`: name one of the model's"),
                )
            })?));
        }
        cores.sort();
        cores.dedup();
        Ok((if cores.is_empty() { all } else { cores }, priority))
    }

    /// Fewest and most ticks of what an element does, with the runnables that it calls.
    fn ticks(&mut self, node: Element<'a, 'input>, depth: usize) -> Result<(f64, f64), ReadError> {
        if depth > DEPTH_MAX {
            return Err(ReadError::at(
                line(node),
                "runnables call each other more than 32 deep, or in a circle: break it",
            ));
        }
        let mut sum = (0.0, 0.0);
        for item in node.descendants().filter(|one| *one != node) {
            let found = match kind(item) {
                "Ticks" => self.of_ticks(item)?,
                "RunnableCall" | "TaskRunnableCall" | "RunnableCallItem" => {
                    let name = item.attribute("runnable").map(referred).unwrap_or_default();
                    match self.named("runnables", &name) {
                        Some(runnable) => self.ticks(runnable, depth + 1)?,
                        None => {
                            let fault =
                                format!("there is no runnable `{name}`: name one of the model's");
                            return Err(ReadError::at(line(item), fault));
                        }
                    }
                }
                _ => continue,
            };
            sum = (sum.0 + found.0, sum.1 + found.1);
        }
        Ok(sum)
    }

    fn of_ticks(&mut self, item: Element) -> Result<(f64, f64), ReadError> {
        let Some(value) = child(item, "default") else {
            self.notes.push(format!(
                "{} has no default ticks, and counts as none.",
                line(item)
            ));
            return Ok((0.0, 0.0));
        };
        let number = |name: &str| -> Result<Option<f64>, ReadError> {
            let Some(text) = value.attribute(name) else {
                return Ok(None);
            };
            let parsed = text
                .parse()
                .ok()
                .filter(|ticks: &f64| ticks.is_finite() && *ticks >= 0.0);
            parsed.map(Some).ok_or_else(|| {
                ReadError::at(
                    line(value),
                    format!("`{text}` is not a number of ticks: write one from 0 on"),
                )
            })
        };
        if let Some(ticks) = number("value")? {
            return Ok((ticks, ticks));
        }
        // EMF leaves out attributes of the value 0.
        match number("upperBound")? {
            Some(most) => Ok((number("lowerBound")?.unwrap_or(0.0).min(most), most)),
            None => {
                self.notes.push(format!(
                    "{} has no bound, and counts as no ticks.",
                    line(value)
                ));
                Ok((0.0, 0.0))
            }
        }
    }

    fn arrival(
        &mut self,
        node: Element<'a, 'input>,
        name: &str,
        names: &[String],
    ) -> Result<Option<Arrival>, ReadError> {
        let stimuli = node.attribute("stimuli").unwrap_or_default();
        let mut stimuli = stimuli.split_whitespace().map(referred);
        let Some(stimulus) = stimuli.next() else {
            return Ok(None);
        };
        if stimuli.next().is_some() {
            self.notes.push(format!(
                "`{name}` has several stimuli, of which the first is read."
            ));
        }
        let Some(stimulus) = self.named("stimuli", &stimulus) else {
            let fault = format!("there is no stimulus `{stimulus}`: name one of the model's");
            return Err(ReadError::at(line(node), fault));
        };
        let part = |name: &str| child(stimulus, name).map(time).transpose();
        match kind(stimulus) {
            "PeriodicStimulus" | "Periodic" => {
                let jitter = child(stimulus, "jitter");
                let upper = jitter.and_then(|node| {
                    node.descendants()
                        .find(|one| one.tag_name().name() == "upperBound")
                });
                if jitter.is_some() && upper.is_none() {
                    self.notes.push(format!(
                        "The jitter of `{name}` has no upper bound, and is not read."
                    ));
                }
                Ok(Some(Arrival::Periodic {
                    period_ns: part("recurrence")?.unwrap_or(0),
                    offset: Range::exactly(part("offset")?.unwrap_or(0)),
                    jitter_ns: upper.map(time).transpose()?.unwrap_or(0),
                }))
            }
            "RelativePeriodicStimulus" | "SporadicStimulus" => {
                let bound = |name: &str| {
                    let mut parts = stimulus.descendants();
                    parts
                        .find(|one| one.tag_name().name() == name)
                        .map(time)
                        .transpose()
                };
                let (least, most) = (bound("lowerBound")?, bound("upperBound")?);
                let (Some(least), Some(most)) = (least, most) else {
                    return Ok(None);
                };
                Ok(Some(Arrival::Sporadic {
                    between: Range::between(least, most),
                    first: Range::between(0, most),
                }))
            }
            "InterProcessStimulus" | "InterProcess" => {
                let own = stimulus.attribute("name").unwrap_or_default();
                let triggers = |one: &Element| {
                    kind(*one).starts_with("InterProcess")
                        && one
                            .attribute("stimulus")
                            .is_some_and(|text| referred(text) == own)
                };
                let mut by = self
                    .all("tasks")
                    .filter(|task| task.descendants().any(|one| triggers(&one)));
                let Some(by) = by.next().and_then(|task| task.attribute("name")) else {
                    return Ok(None);
                };
                let place = names.iter().position(|one| one == by);
                Ok(place.map(|place| Arrival::After {
                    task: TaskId(place),
                    delay: Range::default(),
                }))
            }
            other => {
                self.notes.push(format!(
                    "The stimulus of `{name}` is a {other}, which is not read."
                ));
                Ok(None)
            }
        }
    }

    /// The upper limit of a task's response time.
    fn deadline(&self, name: &str) -> Result<Option<u64>, ReadError> {
        let mut least: Option<u64> = None;
        for requirement in self.all("requirements") {
            if requirement
                .attribute("process")
                .is_none_or(|process| referred(process) != name)
            {
                continue;
            }
            let Some(limit) = child(requirement, "limit") else {
                continue;
            };
            let is_response = limit.attribute("metric") == Some("ResponseTime");
            if is_response
                && limit.attribute("limitType") == Some("UpperLimit")
                && let Some(value) = child(limit, "limitValue")
            {
                let ns = time(value)?;
                least = Some(least.map_or(ns, |least| least.min(ns)));
            }
        }
        Ok(least)
    }

    /// Elements of other names, counted.
    fn count_unread(&mut self) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for node in self.root.descendants().filter(Node::is_element) {
            let name = node.tag_name().name();
            if !READ.contains(&name) {
                *counts.entry(name.to_owned()).or_default() += 1;
            }
        }
        if !counts.is_empty() {
            let told: Vec<String> = counts
                .iter()
                .map(|(name, count)| format!("{name} ({count})"))
                .collect();
            self.notes
                .push(format!("Elements that are not read: {}.", told.join(", ")));
        }
    }
}
