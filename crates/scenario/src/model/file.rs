//! The file form: TOML.

use std::collections::HashMap;

use hearth_text::near;
use toml::Spanned;

use super::check::Part;
use super::quantity::{parse_ns, parse_range};
use super::raw::{RawArrival, RawModel, RawScheduler, RawStep, RawTask, Text};
use super::{
    Arrival, CoreId, FORMAT, LINE_UNKNOWN, Model, ModelError, ModelFault, Policy, Protocol, Queue,
    QueueId, Range, Resource, ResourceId, Scheduler, Scope, Step, Task, TaskId, WhenFull,
};

/// Length of the sliding window if a file gives none: 10 ms, or the horizon if that is shorter.
const WINDOW_NS: u64 = 10_000_000;
/// Slice of the fair scheduler if a file gives none: 3 ms, Linux's for one core.
const SLICE_NS: u64 = 3_000_000;
/// Weight of a task if a file gives none: that of nice 0.
const WEIGHT: u32 = 1024;

impl Model {
    /// Reads the file form.
    ///
    /// # Errors
    ///
    /// The first mistake, with its line and field.
    pub fn from_toml(text: &str) -> Result<Model, ModelError> {
        let raw: RawModel = toml::from_str(text).map_err(|error| ModelError {
            line: error
                .span()
                .map_or(LINE_UNKNOWN, |span| line(text, span.start)),
            place: "the file".into(),
            fault: ModelFault::Form {
                reason: error.message().trim().replace('\n', ", "),
            },
        })?;
        let mut reader = Reader {
            text,
            lines: HashMap::new(),
        };
        let model = reader.model(&raw)?;
        match model.mistake() {
            None => Ok(model),
            Some((part, field, fault)) => {
                let whole = match part {
                    Part::Step(task, _) => Part::Task(task),
                    part => part,
                };
                let line = [(part, field), (whole, field), (whole, "name")]
                    .iter()
                    .find_map(|place| reader.lines.get(place));
                Err(ModelError {
                    line: line.copied().unwrap_or(LINE_UNKNOWN),
                    place: model.place(part, field),
                    fault,
                })
            }
        }
    }
}

/// Line of a byte, from 1.
fn line(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().iter().take(byte);
    1 + before.filter(|letter| **letter == b'\n').count()
}

struct Reader<'a> {
    text: &'a str,
    /// Lines of the fields that were read.
    lines: HashMap<(Part, &'static str), usize>,
}

/// A part with its name for messages.
struct Where<'a> {
    part: Part,
    label: &'a str,
}

impl Reader<'_> {
    fn note<T>(&mut self, part: Part, field: &'static str, value: &Spanned<T>) {
        let line = line(self.text, value.span().start);
        self.lines.insert((part, field), line);
    }

    fn error<T>(&self, label: &str, field: &str, at: &Spanned<T>, fault: ModelFault) -> ModelError {
        let field = format!("field `{field}`");
        ModelError {
            line: line(self.text, at.span().start),
            place: match label {
                "" => field,
                label => format!("{label}, {field}"),
            },
            fault,
        }
    }

    fn time(&mut self, at: &Where, field: &'static str, text: &Text) -> Result<u64, ModelError> {
        self.note(at.part, field, text);
        parse_ns(text.get_ref()).ok_or_else(|| {
            let text_of = text.get_ref().clone();
            self.error(at.label, field, text, ModelFault::Time { text: text_of })
        })
    }

    fn range(&mut self, at: &Where, field: &'static str, text: &Text) -> Result<Range, ModelError> {
        self.note(at.part, field, text);
        parse_range(text.get_ref()).ok_or_else(|| {
            let text_of = text.get_ref().clone();
            self.error(at.label, field, text, ModelFault::Range { text: text_of })
        })
    }

    fn word<T: Copy>(
        &mut self,
        at: &Where,
        field: &'static str,
        text: Option<&Text>,
        words: &[(&str, T)],
        expected: &'static str,
    ) -> Result<Option<T>, ModelError> {
        let Some(text) = text else { return Ok(None) };
        self.note(at.part, field, text);
        let known = words.iter().find(|(word, _)| word == text.get_ref());
        known.map(|(_, value)| Some(*value)).ok_or_else(|| {
            let word = text.get_ref().clone();
            self.error(at.label, field, text, ModelFault::Word { word, expected })
        })
    }

    /// Number of a name among others.
    fn named(
        &mut self,
        at: &Where,
        field: &'static str,
        (what, names): (&'static str, &[String]),
        text: &Text,
    ) -> Result<usize, ModelError> {
        self.note(at.part, field, text);
        let known = names.iter().position(|name| name == text.get_ref());
        known.ok_or_else(|| {
            let name = text.get_ref().clone();
            let near = near::nearest(&name, names.iter().map(String::as_str)).map(str::to_owned);
            let fault = ModelFault::Unknown { what, name, near };
            self.error(at.label, field, text, fault)
        })
    }

    fn model(&mut self, raw: &RawModel) -> Result<Model, ModelError> {
        let whole = Where {
            part: Part::Model,
            label: "",
        };
        if *raw.format.get_ref() != FORMAT {
            let found = *raw.format.get_ref();
            let wanted = FORMAT;
            let fault = ModelFault::Format { found, wanted };
            return Err(self.error("", "format", &raw.format, fault));
        }
        let horizon_ns = self.time(&whole, "horizon", &raw.horizon)?;
        let window_ns = match &raw.window {
            Some(text) => self.time(&whole, "window", text)?,
            None => WINDOW_NS.min(horizon_ns),
        };
        for mode in &raw.modes {
            self.note(Part::Model, "modes", mode);
        }
        let modes = match raw.modes.is_empty() {
            true => vec![String::new()],
            false => raw
                .modes
                .iter()
                .map(|mode| mode.get_ref().clone())
                .collect(),
        };
        for (nth, core) in raw.core.iter().enumerate() {
            self.note(Part::Core(nth), "name", &core.name);
        }
        let cores: Vec<String> = match raw.core.is_empty() {
            true => vec!["core0".into()],
            false => raw
                .core
                .iter()
                .map(|core| core.name.get_ref().clone())
                .collect(),
        };
        let scheduler = self.scheduler(&raw.scheduler)?;
        let mut model = Model {
            horizon_ns,
            window_ns,
            scheduler,
            modes,
            cores,
            resources: Vec::new(),
            queues: Vec::new(),
            tasks: Vec::new(),
        };
        self.shared(raw, &mut model)?;
        let names: Vec<String> = raw
            .task
            .iter()
            .map(|task| task.get_ref().name.get_ref().clone())
            .collect();
        for (nth, task) in raw.task.iter().enumerate() {
            let task = self.task(nth, task.get_ref(), &model, &names)?;
            model.tasks.push(task);
        }
        Ok(model)
    }

    fn scheduler(&mut self, raw: &RawScheduler) -> Result<Scheduler, ModelError> {
        let at = Where {
            part: Part::Scheduler,
            label: "scheduler",
        };
        if let Some(value) = &raw.preemptive {
            self.note(at.part, "preemptive", value);
        }
        let slice_ns = match &raw.slice {
            Some(text) => self.time(&at, "slice", text)?,
            None => SLICE_NS,
        };
        let fixed = Policy::FixedPriority {
            preemptive: raw.preemptive.as_ref().is_none_or(|value| *value.get_ref()),
        };
        let words = [
            ("fixed-priority", fixed),
            ("edf", Policy::Edf),
            ("fair", Policy::Fair { slice_ns }),
            (
                "workers",
                Policy::Workers {
                    steal: raw.steal.as_ref().is_some_and(|value| *value.get_ref()),
                },
            ),
        ];
        let expected = "`fixed-priority`, `edf`, `fair` or `workers`";
        let policy = self.word(&at, "policy", raw.policy.as_ref(), &words, expected)?;
        let words = [
            ("partitioned", Scope::Partitioned),
            ("global", Scope::Global),
        ];
        let expected = "`partitioned` or `global`";
        let scope = self.word(&at, "scope", raw.scope.as_ref(), &words, expected)?;
        let policy = policy.unwrap_or(fixed);
        // A setting of another policy would be read over by a reader who believes that it counts.
        if let (Some(value), false) = (&raw.preemptive, policy == fixed) {
            let both = "`preemptive` and a policy other than `fixed-priority`";
            return Err(self.error(at.label, "preemptive", value, ModelFault::Both { both }));
        }
        if let (Some(value), false) = (&raw.slice, matches!(policy, Policy::Fair { .. })) {
            let both = "`slice` and a policy other than `fair`";
            return Err(self.error(at.label, "slice", value, ModelFault::Both { both }));
        }
        if let (Some(value), false) = (&raw.steal, matches!(policy, Policy::Workers { .. })) {
            let both = "`steal` and a policy other than `workers`";
            return Err(self.error(at.label, "steal", value, ModelFault::Both { both }));
        }
        Ok(Scheduler {
            policy,
            scope: scope.unwrap_or_default(),
        })
    }

    fn shared(&mut self, raw: &RawModel, model: &mut Model) -> Result<(), ModelError> {
        for (nth, resource) in raw.resource.iter().enumerate() {
            let name = resource.name.get_ref().clone();
            let at = Where {
                part: Part::Resource(nth),
                label: &format!("resource `{name}`"),
            };
            self.note(at.part, "name", &resource.name);
            let words = [
                ("none", Protocol::None),
                ("inheritance", Protocol::Inheritance),
                ("ceiling", Protocol::Ceiling),
            ];
            let expected = "`none`, `inheritance` or `ceiling`";
            let given = resource.protocol.as_ref();
            let protocol = self.word(&at, "protocol", given, &words, expected)?;
            let protocol = protocol.unwrap_or_default();
            model.resources.push(Resource { name, protocol });
        }
        for (nth, queue) in raw.queue.iter().enumerate() {
            let name = queue.name.get_ref().clone();
            let at = Where {
                part: Part::Queue(nth),
                label: &format!("queue `{name}`"),
            };
            self.note(at.part, "name", &queue.name);
            self.note(at.part, "capacity", &queue.capacity);
            let words = [("lose", WhenFull::Lose), ("wait", WhenFull::Wait)];
            let given = queue.when_full.as_ref();
            let when_full = self.word(&at, "when-full", given, &words, "`lose` or `wait`")?;
            model.queues.push(Queue {
                name,
                capacity: *queue.capacity.get_ref(),
                when_full: when_full.unwrap_or_default(),
            });
        }
        Ok(())
    }

    fn task(
        &mut self,
        nth: usize,
        raw: &RawTask,
        model: &Model,
        tasks: &[String],
    ) -> Result<Task, ModelError> {
        let name = raw.name.get_ref().clone();
        let label = format!("task `{name}`");
        let at = Where {
            part: Part::Task(nth),
            label: &label,
        };
        self.note(at.part, "name", &raw.name);
        self.note(at.part, "arrival", &raw.arrival);
        let queues: Vec<String> = model.queues.iter().map(|one| one.name.clone()).collect();
        let arrival = self.arrival(&at, &raw.arrival, tasks, &queues)?;
        let steps = match (&raw.duration, &raw.steps) {
            (Some(text), None) => vec![Step::Run(self.range(&at, "duration", text)?)],
            (None, Some(raw)) => self.steps(&at, nth, raw, model, &queues)?,
            (Some(text), Some(_)) => {
                let both = "`duration` and `steps`";
                return Err(self.error(&label, "duration", text, ModelFault::Both { both }));
            }
            (None, None) => {
                let what = "`duration`, or `steps` of which one is `run`";
                let fault = ModelFault::Missing { what };
                return Err(self.error(&label, "duration", &raw.name, fault));
            }
        };
        let deadline_ns = match &raw.deadline {
            Some(text) => Some(self.time(&at, "deadline", text)?),
            None => None,
        };
        for (field, value) in [("priority", &raw.priority), ("weight", &raw.weight)] {
            if let Some(value) = value {
                self.note(at.part, field, value);
            }
        }
        let mut cores = match &raw.cores {
            None => (0..model.cores.len()).map(CoreId).collect(),
            Some(names) => {
                let mut cores = Vec::new();
                for name in names {
                    let known = ("core", &model.cores[..]);
                    cores.push(CoreId(self.named(&at, "cores", known, name)?));
                }
                cores
            }
        };
        cores.sort();
        cores.dedup();
        let mut modes = Vec::new();
        for name in &raw.modes {
            modes.push(self.named(&at, "modes", ("mode", &model.modes), name)?);
        }
        Ok(Task {
            name,
            arrival,
            steps,
            deadline_ns,
            priority: raw.priority.as_ref().map_or(0, |value| *value.get_ref()),
            weight: raw.weight.as_ref().map_or(WEIGHT, |value| *value.get_ref()),
            cores,
            modes,
        })
    }

    fn arrival(
        &mut self,
        at: &Where,
        raw: &Spanned<RawArrival>,
        tasks: &[String],
        queues: &[String],
    ) -> Result<Arrival, ModelError> {
        let fields = raw.get_ref();
        let kinds = [&fields.period, &fields.between, &fields.after, &fields.push];
        let given = kinds.iter().filter(|kind| kind.is_some()).count();
        let wrong = |both| Err(self.error(at.label, "arrival", raw, ModelFault::Both { both }));
        if given > 1 {
            return wrong("two of `period`, `between`, `after` and `push`");
        }
        if fields.period.is_none() && (fields.offset.is_some() || fields.jitter.is_some()) {
            return wrong("`offset` or `jitter`, and an arrival without `period`,");
        }
        if fields.between.is_none() && fields.first.is_some() {
            return wrong("`first`, and an arrival without `between`,");
        }
        if fields.delay.is_some() && fields.after.is_none() && fields.push.is_none() {
            return wrong("`delay`, and an arrival without `after` or `push`,");
        }
        let or_zero = |reader: &mut Self, text: &Option<Text>| match text {
            Some(text) => reader.range(at, "arrival", text),
            None => Ok(Range::default()),
        };
        if let Some(period) = &fields.period {
            return Ok(Arrival::Periodic {
                period_ns: self.time(at, "arrival", period)?,
                offset: or_zero(self, &fields.offset)?,
                jitter_ns: match &fields.jitter {
                    Some(text) => self.time(at, "arrival", text)?,
                    None => 0,
                },
            });
        }
        if let Some(between) = &fields.between {
            let between = self.range(at, "arrival", between)?;
            let first = match &fields.first {
                Some(text) => self.range(at, "arrival", text)?,
                None => Range {
                    from_ns: 0,
                    to_ns: between.to_ns,
                },
            };
            return Ok(Arrival::Sporadic { between, first });
        }
        let delay = or_zero(self, &fields.delay)?;
        if let Some(name) = &fields.after {
            let task = TaskId(self.named(at, "arrival", ("task", tasks), name)?);
            return Ok(Arrival::After { task, delay });
        }
        if let Some(name) = &fields.push {
            let queue = QueueId(self.named(at, "arrival", ("queue", queues), name)?);
            return Ok(Arrival::OnPush { queue, delay });
        }
        let what = "`period`, `between`, `after` or `push`";
        Err(self.error(at.label, "arrival", raw, ModelFault::Missing { what }))
    }

    fn steps(
        &mut self,
        at: &Where,
        nth: usize,
        raw: &[Spanned<RawStep>],
        model: &Model,
        queues: &[String],
    ) -> Result<Vec<Step>, ModelError> {
        let resources: Vec<String> = model.resources.iter().map(|one| one.name.clone()).collect();
        let mut steps = Vec::new();
        for (number, step) in raw.iter().enumerate() {
            let place = Where {
                part: Part::Step(nth, number),
                label: &format!("{}, step {}", at.label, number + 1),
            };
            self.note(place.part, "steps", step);
            if number == 0 {
                self.note(at.part, "steps", step);
            }
            let one = step.get_ref();
            let given = [&one.run, &one.lock, &one.unlock, &one.push, &one.pop];
            if given.iter().filter(|field| field.is_some()).count() != 1 {
                let what = "exactly one of `run`, `lock`, `unlock`, `push` and `pop` in each step";
                return Err(self.error(at.label, "steps", step, ModelFault::Missing { what }));
            }
            let resource = ("resource", &resources[..]);
            let queue = ("queue", queues);
            steps.push(if let Some(text) = &one.run {
                Step::Run(self.range(&place, "run", text)?)
            } else if let Some(name) = &one.lock {
                Step::Lock(ResourceId(self.named(&place, "lock", resource, name)?))
            } else if let Some(name) = &one.unlock {
                Step::Unlock(ResourceId(self.named(&place, "unlock", resource, name)?))
            } else if let Some(name) = &one.push {
                Step::Push(QueueId(self.named(&place, "push", queue, name)?))
            } else if let Some(name) = &one.pop {
                Step::Pop(QueueId(self.named(&place, "pop", queue, name)?))
            } else {
                unreachable!("exactly one field is given")
            });
        }
        Ok(steps)
    }
}
