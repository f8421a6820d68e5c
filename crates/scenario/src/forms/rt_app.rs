//! Workloads of `rt-app`.
//!
//! Its times are whole microseconds. Written are the jobs of a scenario one by one, each a phase
//! that waits for its time, runs and locks; read are the usual hand-written loops.

use std::fmt::Write;

use crate::model::{
    Arrival, CoreId, Model, Policy, Protocol, Range, Resource, ResourceId, Scheduler, Scope, Step,
    TIME_NS_MAX, Task,
};
use crate::scenario::Scenario;

use super::ordered::Ordered;
use super::{Read, ReadError, Written, quoted};

/// Largest priority of SCHED_FIFO that `rt-app` leaves to its tasks.
const PRIORITY_MAX: usize = 98;
/// Horizon of a workload that runs for ever or for very long.
const HORIZON_NS: u64 = 1_000_000_000;

fn micros(ns: u64) -> u64 {
    ns.div_ceil(1000)
}

/// Time after which the workload ends by itself, in seconds: the horizon, and some more for its
/// last jobs. Without it a task whose wake-up was lost would wait for ever.
fn seconds(model: &Model) -> u64 {
    model.horizon_ns.div_ceil(1_000_000_000) + 1
}

/// A scenario as a workload. The scenario must be one of the model's.
pub fn write(model: &Model, scenario: &Scenario) -> Written {
    let mut left_out = vec!["Times are rounded up to whole microseconds.".to_owned()];
    match model.scheduler.policy {
        Policy::FixedPriority { preemptive: true } | Policy::Edf => {}
        _ => left_out.push("The tasks run under SCHED_FIFO by their priorities.".to_owned()),
    }
    if model
        .tasks
        .iter()
        .flat_map(|task| &task.steps)
        .any(|step| matches!(step, Step::Pop(_)))
    {
        left_out.push("Waits for items and room in queues: rt-app has no queues.".to_owned());
    }
    if model
        .resources
        .iter()
        .any(|one| one.protocol != Protocol::None)
    {
        left_out.push("Locks lend no priorities.".to_owned());
    }
    if model.tasks.iter().any(|task| !task.arrival_is_clocked()) {
        left_out.push(
            "A task that is woken while it still runs misses that: rt-app remembers no wake-ups."
                .to_owned(),
        );
    }
    let mut priorities: Vec<u32> = model.tasks.iter().map(|task| task.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    let mut tasks = Vec::new();
    for (nth, task) in model.tasks.iter().enumerate() {
        let jobs = &scenario.tasks[nth].jobs;
        if jobs.is_empty() {
            continue;
        }
        let mut phases = Vec::new();
        // Arrivals of the clock count from the one before; woken tasks wait to be woken.
        let mut before_us = 0;
        for (number, job) in jobs.iter().enumerate() {
            let mut events = Vec::new();
            if task.arrival_is_clocked() {
                let at_us = micros(job.due_ns + job.after_ns).max(before_us);
                // A timer's period must be above 0: the first job may arrive at once.
                if at_us > before_us {
                    events.push(format!(
                        "\"timer\": {{ \"ref\": {}, \"period\": {}, \"mode\": \"absolute\" }}",
                        quoted(&format!("arrival_{}", task.name)),
                        at_us - before_us
                    ));
                }
                before_us = at_us;
            } else {
                events.push(format!("\"suspend\": {}", quoted(&task.name)));
                if job.after_ns > 0 {
                    events.push(format!("\"sleep\": {}", micros(job.after_ns)));
                }
            }
            let mut runs = job.runs_ns.iter();
            for (at, step) in task.steps.iter().enumerate() {
                match step {
                    Step::Run(_) => match runs.next() {
                        Some(&ns) if ns > 0 => events.push(format!("\"run{at}\": {}", micros(ns))),
                        _ => {}
                    },
                    Step::Lock(id) => {
                        let name = quoted(&model.resources[id.0].name);
                        events.push(format!("\"lock{at}\": {name}"));
                    }
                    Step::Unlock(id) => {
                        let name = quoted(&model.resources[id.0].name);
                        events.push(format!("\"unlock{at}\": {name}"));
                    }
                    Step::Push(queue) => {
                        for (woken, other) in model.tasks.iter().enumerate() {
                            if matches!(other.arrival, Arrival::OnPush { queue: one, .. } if one == *queue)
                            {
                                events.push(format!(
                                    "\"resume{at}_{woken}\": {}",
                                    quoted(&other.name)
                                ));
                            }
                        }
                    }
                    Step::Pop(_) => {}
                }
            }
            for (woken, other) in model.tasks.iter().enumerate() {
                if matches!(other.arrival, Arrival::After { task, .. } if task.0 == nth) {
                    events.push(format!("\"resume{woken}\": {}", quoted(&other.name)));
                }
            }
            phases.push(format!(
                "        \"job{number}\": {{ \"loop\": 1, {} }}",
                events.join(", ")
            ));
        }
        let place = priorities
            .iter()
            .position(|one| *one == task.priority)
            .unwrap_or(0);
        let policy = match (model.scheduler.policy, &task.arrival) {
            (Policy::Edf, Arrival::Periodic { period_ns, .. }) => format!(
                "\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": {}, \"dl-deadline\": {}, \"dl-period\": {}",
                micros(task.duration().to_ns),
                micros(task.deadline_ns.unwrap_or(*period_ns)),
                micros(*period_ns)
            ),
            _ => format!(
                "\"policy\": \"SCHED_FIFO\", \"priority\": {}",
                (place + 1).min(PRIORITY_MAX)
            ),
        };
        let cores: Vec<String> = task.cores.iter().map(|core| core.0.to_string()).collect();
        tasks.push(format!(
            "    {}: {{\n      \"loop\": 1, {policy}, \"cpus\": [{}],\n      \"phases\": {{\n{}\n      }}\n    }}",
            quoted(&task.name),
            cores.join(", "),
            phases.join(",\n")
        ));
    }
    let resources: Vec<String> = (model.resources.iter())
        .map(|one| format!("    {}: {{ \"type\": \"mutex\" }}", quoted(&one.name)))
        .collect();
    let mut text = String::from("{\n");
    let _ = write!(
        text,
        "  \"global\": {{ \"duration\": {}, \"default_policy\": \"SCHED_OTHER\", \"calibration\": \"CPU0\" }},\n  \"resources\": {{\n{}\n  }},\n  \"tasks\": {{\n{}\n  }}\n}}\n",
        seconds(model),
        resources.join(",\n"),
        tasks.join(",\n")
    );
    Written { text, left_out }
}

/// State of reading.
struct Reader {
    cores: u64,
    resources: Vec<Resource>,
    notes: Vec<String>,
}

/// A model from a workload.
///
/// # Errors
///
/// The first mistake, with its place.
pub fn read(text: &str) -> Result<Read, ReadError> {
    let whole: Ordered = serde_json::from_str(text).map_err(|error| ReadError::Syntax {
        line: error.line(),
        reason: error.to_string(),
        form: "that rt-app reads, without comments",
    })?;
    let Some(Ordered::Object(tasks)) = whole.get("tasks") else {
        return Err(ReadError::at(
            "field `tasks`",
            "it is missing: give a workload with tasks",
        ));
    };
    let mut reader = Reader {
        cores: 1,
        resources: Vec::new(),
        notes: Vec::new(),
    };
    let mut model_tasks = Vec::new();
    for (name, task) in tasks {
        let count = match task.get("instance") {
            None => 1,
            Some(value) => value
                .whole()
                .filter(|count| *count <= 1000)
                .ok_or_else(|| {
                    ReadError::at(
                        format!("task `{name}`, field `instance`"),
                        "it is not a number from 0 to 1000: write one",
                    )
                })?,
        };
        for instance in 0..count {
            let name = match count {
                1 => name.clone(),
                _ => format!("{name}-{instance}"),
            };
            model_tasks.push(reader.task(&name, task)?);
        }
    }
    let is_pinned = model_tasks.iter().all(|(_, cores)| cores.len() == 1) || reader.cores == 1;
    let all: Vec<CoreId> = (0..reader.cores as usize).map(CoreId).collect();
    let tasks: Vec<Task> = (model_tasks.into_iter())
        .map(|(task, cores)| Task {
            cores: match cores.is_empty() {
                true => all.clone(),
                false => cores,
            },
            ..task
        })
        .collect();
    let duration = whole
        .get("global")
        .and_then(|global| global.get("duration"));
    let horizon_ns = match duration.and_then(Ordered::whole) {
        Some(seconds) if seconds > 0 => seconds.saturating_mul(1_000_000_000).min(TIME_NS_MAX),
        _ => {
            reader
                .notes
                .push("The horizon is 1 s: the workload has no duration.".into());
            HORIZON_NS
        }
    };
    reader
        .notes
        .push("Tasks have no deadlines: rt-app has none.".into());
    let model = Model {
        horizon_ns,
        window_ns: horizon_ns.min(10_000_000),
        scheduler: Scheduler {
            policy: Policy::FixedPriority { preemptive: true },
            scope: if is_pinned {
                Scope::Partitioned
            } else {
                Scope::Global
            },
        },
        modes: vec![String::new()],
        cores: (0..reader.cores).map(|nth| format!("cpu{nth}")).collect(),
        resources: reader.resources,
        queues: Vec::new(),
        tasks,
    };
    Ok(Read {
        model: model.checked()?,
        notes: reader.notes,
    })
}

impl Reader {
    fn task(&mut self, name: &str, task: &Ordered) -> Result<(Task, Vec<CoreId>), ReadError> {
        let place = |field: &str| format!("task `{name}`, field `{field}`");
        let Ordered::Object(members) = task else {
            return Err(ReadError::at(
                format!("task `{name}`"),
                "it is not an object: write one",
            ));
        };
        let mut cores = Vec::new();
        if let Some(value) = task.get("cpus") {
            let Ordered::List(list) = value else {
                return Err(ReadError::at(
                    place("cpus"),
                    "it is not a list: write one, as `[0]`",
                ));
            };
            for cpu in list {
                let cpu = cpu.whole().filter(|cpu| *cpu < 4096).ok_or_else(|| {
                    ReadError::at(
                        place("cpus"),
                        "a CPU is not a number from 0 to 4095: mend it",
                    )
                })?;
                self.cores = self.cores.max(cpu + 1);
                cores.push(CoreId(cpu as usize));
            }
            cores.sort();
            cores.dedup();
        }
        let policy = task
            .get("policy")
            .and_then(Ordered::text)
            .unwrap_or("SCHED_OTHER");
        let priority = task.get("priority").and_then(Ordered::whole).unwrap_or(0);
        let priority = match policy {
            "SCHED_FIFO" | "SCHED_RR" => u32::try_from(priority).unwrap_or(u32::MAX),
            _ => {
                self.notes
                    .push(format!("`{name}` has priority 0: its policy is {policy}."));
                0
            }
        };
        let mut cycle = Cycle::default();
        match task.get("phases") {
            Some(Ordered::Object(phases)) => {
                for (phase, events) in phases {
                    let times = events.get("loop").and_then(Ordered::whole).unwrap_or(1);
                    let Ordered::Object(events) = events else {
                        return Err(ReadError::at(
                            place(phase),
                            "it is not an object: write one",
                        ));
                    };
                    for _ in 0..times.clamp(1, 1000) {
                        self.events(name, events, &mut cycle)?;
                    }
                }
            }
            Some(_) => {
                return Err(ReadError::at(
                    place("phases"),
                    "it is not an object: write one",
                ));
            }
            None => self.events(name, members, &mut cycle)?,
        }
        let run_ns: u64 = cycle.run_ns();
        let period_ns = match cycle.period_ns {
            Some(ns) => ns,
            None if cycle.sleep_ns > 0 => {
                self.notes.push(format!(
                    "`{name}` arrives every {} us, the sum of its runs and sleeps: it has no timer.",
                    (run_ns + cycle.sleep_ns) / 1000
                ));
                run_ns + cycle.sleep_ns
            }
            None => {
                return Err(ReadError::at(
                    format!("task `{name}`"),
                    "it has neither `timer` nor `sleep`, so its arrivals are unknown: add a timer",
                ));
            }
        };
        let task = Task {
            name: name.to_owned(),
            arrival: Arrival::Periodic {
                period_ns,
                offset: Range::exactly(micros_to_ns(task.get("delay")).unwrap_or(0)),
                jitter_ns: 0,
            },
            steps: cycle.steps,
            deadline_ns: None,
            priority,
            weight: 1024,
            cores: Vec::new(),
            modes: Vec::new(),
        };
        Ok((task, cores))
    }

    fn events(
        &mut self,
        name: &str,
        events: &[(String, Ordered)],
        cycle: &mut Cycle,
    ) -> Result<(), ReadError> {
        for (event, value) in events {
            let place = || format!("task `{name}`, field `{event}`");
            let kind =
                event.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '_');
            let time = || {
                micros_to_ns(Some(value)).ok_or_else(|| {
                    ReadError::at(
                        place(),
                        "it is not a number of microseconds up to an hour: write one",
                    )
                })
            };
            match kind {
                "run" | "runtime" => cycle.steps.push(Step::Run(Range::exactly(time()?))),
                "sleep" => cycle.sleep_ns += time()?,
                "timer" => {
                    let period_ns = micros_to_ns(value.get("period")).ok_or_else(|| {
                        ReadError::at(place(), "it has no `period` in microseconds: add one")
                    })?;
                    if cycle.period_ns.is_some_and(|before| before != period_ns) {
                        return Err(ReadError::at(
                            place(),
                            "the task has timers of several periods: split it into tasks of one period",
                        ));
                    }
                    cycle.period_ns = Some(period_ns);
                }
                "lock" | "unlock" => {
                    let resource = value.text().ok_or_else(|| {
                        ReadError::at(place(), "it is not the name of a resource: write one")
                    })?;
                    let id = self.resource(resource);
                    cycle.steps.push(match kind {
                        "lock" => Step::Lock(id),
                        _ => Step::Unlock(id),
                    });
                }
                "loop" | "phases" | "policy" | "priority" | "cpus" | "delay" | "instance" => {}
                _ => self
                    .notes
                    .push(format!("`{event}` of `{name}` is not read.")),
            }
        }
        Ok(())
    }

    fn resource(&mut self, name: &str) -> ResourceId {
        let known = self.resources.iter().position(|one| one.name == name);
        ResourceId(known.unwrap_or_else(|| {
            self.resources.push(Resource {
                name: name.to_owned(),
                protocol: Protocol::None,
            });
            self.resources.len() - 1
        }))
    }
}

/// The course that a task repeats.
#[derive(Default)]
struct Cycle {
    steps: Vec<Step>,
    sleep_ns: u64,
    period_ns: Option<u64>,
}

impl Cycle {
    fn run_ns(&self) -> u64 {
        let runs = self.steps.iter().map(|step| match step {
            Step::Run(range) => range.to_ns,
            _ => 0,
        });
        runs.fold(0, u64::saturating_add)
    }
}

fn micros_to_ns(value: Option<&Ordered>) -> Option<u64> {
    let ns = value?.whole()?.checked_mul(1000)?;
    (ns <= TIME_NS_MAX).then_some(ns)
}
