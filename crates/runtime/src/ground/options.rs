//! Options from the environment: `hearth run` sets them, and built programs read the same ones.

use std::collections::HashMap;
use std::time::Duration;

use super::runtime;

/// The placement policy for components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Threads on the cores that the operating system picks; components on their creator's worker.
    Os,
    /// Round robin over the cores, in creation order.
    Spread,
    /// All on the first core.
    Single,
    /// Anywhere, by the seed if given.
    Random,
    /// On the creator's worker, until an idle worker steals them from a busy one.
    Steal,
    /// Near their partners, as a plan says and as their messages show.
    Talk,
    /// On the core that a plan names; the others on their creator's worker.
    Plan,
}

/// The carrier of components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrying {
    /// One worker a core.
    Workers,
    /// One kernel thread a component.
    Threads,
}

/// Whether calls that the compiler has proved to be independent run beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Futures {
    /// In order.
    Off,
    /// Beside, if that pays.
    Auto,
    /// Always beside, for tests.
    Always,
}

/// The place of the components' data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heaps {
    /// In a heap of the component's own.
    Private,
    /// In one heap for all, under a lock: for comparison.
    Shared,
    /// Wherever the system's allocator puts it: for comparison, and for tools that watch that
    /// allocator.
    System,
}

/// The place where servers run: components that others send to from several workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(
    loom,
    expect(unreachable_pub, reason = "models leave out what exports it")
)]
pub enum Servers {
    /// On their own worker. Requests come to them as messages.
    #[default]
    Asynchronous,
    /// On the worker of the caller, as under a lock: a waiting server continues at once on its
    /// caller's worker, and its data follows. Further callers wait in the channel meanwhile. A
    /// server with a CPU of its own stays there. Threads ignore this.
    Synchronous,
    /// The better of the two ways for each server: the runtime tries both now and then while the
    /// server runs, and keeps the one with more calls.
    Auto,
}

/// A run on one thread, by a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Simulation {
    pub(crate) seed: u64,
    /// The file of the schedule to follow instead of the seed's.
    pub(crate) schedule: Option<String>,
    /// The file for the record of the run.
    pub(crate) record: Option<String>,
    /// Steps after which the run ends.
    pub(crate) steps: Option<u64>,
}

/// The user's options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuntimeOptions {
    /// Passes after which each component stops.
    pub(crate) passes: Option<u64>,
    pub(crate) seed: Option<u64>,
    pub(crate) policy: Policy,
    /// The initial placement, with [`Policy::Talk`] and [`Policy::Plan`].
    pub(crate) plan: Option<CorePlan>,
    /// The machine's profile as JSON, for [`Policy::Talk`].
    pub(crate) machine: Option<String>,
    /// The file with the profile, unless `machine` is given.
    pub(crate) machine_file: Option<String>,
    /// The file with the model fitted to the profile of `machine_file`.
    pub(crate) tuning_file: Option<String>,
    /// The log of placement decisions.
    pub(crate) place_log: Option<String>,
    pub(crate) carrying: Carrying,
    pub(crate) servers: Servers,
    pub(crate) heaps: Heaps,
    /// Most bytes of its heap that migrate with a component that moves to a core of another node.
    pub(crate) heaps_move: usize,
    /// The log of allocations.
    pub(crate) heap_log: Option<String>,
    pub(crate) futures: Futures,
    /// Workers; one a core if not given.
    pub(crate) workers: Option<usize>,
    /// Time a component may compute, approximately, before others are served beside it.
    pub(crate) slice: Duration,
    pub(crate) collect: Collect,
    /// Time a worker without work keeps looking before it sleeps: the cost of a wake-up.
    pub(crate) patience: Duration,
    pub(crate) simulation: Option<Simulation>,
    /// The program was compiled to behave as the original did.
    pub(crate) compat_original: bool,
    pub(crate) arguments: Vec<Vec<u8>>,
    /// The program is written in Rust: it has no main sequence, and the runtime neither prints for
    /// it nor ends it.
    pub(crate) is_embedded: bool,
}

/// The times at which components that nobody can wake are collected. A program may collect at any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collect {
    Never,
    /// When there are many more components, or there is much more memory, than after the last time.
    AsItGrows,
    Every(Duration),
}

/// More than the cores of any machine; each worker costs a thread.
pub(crate) const WORKERS_MAX: usize = 4096;

/// A hundred times the wake-up cost of any machine we know: more is a mistake, or a core kept busy.
const PATIENCE_MAX_US: u64 = 10_000;

pub(crate) const DEFAULTS: RuntimeOptions = RuntimeOptions {
    passes: None,
    seed: None,
    policy: Policy::Os,
    plan: None,
    machine: None,
    machine_file: None,
    tuning_file: None,
    place_log: None,
    carrying: Carrying::Workers,
    servers: Servers::Asynchronous,
    heaps: Heaps::Private,
    // Copying a page pays if the component keeps using it, which only the author of the program
    // knows.
    heaps_move: 0,
    heap_log: None,
    futures: Futures::Auto,
    workers: None,
    slice: Duration::from_millis(10),
    collect: Collect::AsItGrows,
    // Generous: `hearth probe` finds 7 to 15 µs on a virtual machine of two cores, and a sleeping
    // processor takes longer.
    patience: hearth_sys::spin::WAKE_COST,
    simulation: None,
    compat_original: false,
    arguments: Vec::new(),
    is_embedded: false,
};

impl Default for RuntimeOptions {
    fn default() -> RuntimeOptions {
        DEFAULTS
    }
}

impl RuntimeOptions {
    /// Whether anything needs samples of the traffic.
    pub(crate) fn watches_traffic(&self) -> bool {
        self.policy == Policy::Talk && self.simulation.is_none()
    }
}

/// The options in force.
pub(crate) fn get() -> &'static RuntimeOptions {
    runtime::current().options.get_or_init(|| DEFAULTS)
}

/// Sets the options, before anything runs.
pub(crate) fn set(options: RuntimeOptions) {
    // Set once by `hearth_main`, before the first component is made.
    let _ = runtime::current().options.set(options);
}

/// Reads the environment's variables, as [`read`] does. An empty one counts as unset.
pub(crate) fn from_environment() -> Result<RuntimeOptions, String> {
    read(|name| {
        let value = std::env::var_os(name)?;
        (!value.is_empty()).then(|| value.to_string_lossy().into_owned())
    })
}

/// Reads the variables. The error for a bad value is one line that lists the good ones.
pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<RuntimeOptions, String> {
    let mut options = DEFAULTS;
    if let Some(text) = variable("HEARTH_PASSES") {
        options.passes = match text.parse() {
            Ok(passes) if passes > 0 => Some(passes),
            _ => return Err(bad("HEARTH_PASSES", &text, "a number of passes from 1 up")),
        };
    }
    if let Some(text) = variable("HEARTH_SEED") {
        options.seed = match text.parse() {
            Ok(seed) => Some(seed),
            Err(_) => return Err(bad("HEARTH_SEED", &text, "a number from 0 to 2^64 - 1")),
        };
    }
    if let Some(text) = variable("HEARTH_PLACE") {
        options.policy = match text.as_str() {
            "os" => Policy::Os,
            "spread" => Policy::Spread,
            "single" => Policy::Single,
            "random" => Policy::Random,
            "steal" => Policy::Steal,
            "talk" => Policy::Talk,
            "plan" => Policy::Plan,
            _ => {
                let good = "os, spread, single, random, steal, talk or plan";
                return Err(bad("HEARTH_PLACE", &text, good));
            }
        };
    }
    if let Some(path) = variable("HEARTH_PLAN") {
        options.plan = Some(read_plan(&path)?);
    }
    if options.policy == Policy::Plan && options.plan.is_none() {
        return Err(
            "HEARTH_PLACE=plan needs HEARTH_PLAN, the file with the plan; `hearth place PROGRAM --export \
             hearth` writes one"
                .to_owned(),
        );
    }
    if let Some(text) = variable("HEARTH_CARRIER") {
        options.carrying = match text.as_str() {
            "workers" => Carrying::Workers,
            "threads" => Carrying::Threads,
            _ => return Err(bad("HEARTH_CARRIER", &text, "workers or threads")),
        };
    }
    if let Some(text) = variable("HEARTH_SERVERS") {
        options.servers = match text.as_str() {
            "asynchronous" => Servers::Asynchronous,
            "synchronous" => Servers::Synchronous,
            "auto" => Servers::Auto,
            _ => {
                let good = "asynchronous, synchronous or auto";
                return Err(bad("HEARTH_SERVERS", &text, good));
            }
        };
    }
    if let Some(text) = variable("HEARTH_HEAPS") {
        options.heaps = match text.as_str() {
            "private" => Heaps::Private,
            "shared" => Heaps::Shared,
            "system" => Heaps::System,
            _ => return Err(bad("HEARTH_HEAPS", &text, "private, shared or system")),
        };
    }
    if let Some(text) = variable("HEARTH_HEAPS_MOVE") {
        options.heaps_move = match text.parse() {
            Ok(bytes) => bytes,
            Err(_) => {
                return Err(bad(
                    "HEARTH_HEAPS_MOVE",
                    &text,
                    "a number of bytes from 0 up",
                ));
            }
        };
    }
    options.heap_log = variable("HEARTH_HEAP_LOG");
    options.machine_file = variable("HEARTH_MACHINE");
    options.tuning_file = variable("HEARTH_TUNING");
    options.place_log = variable("HEARTH_PLACE_LOG");
    if let Some(text) = variable("HEARTH_FUTURES") {
        options.futures = match text.as_str() {
            "off" => Futures::Off,
            "auto" => Futures::Auto,
            "always" => Futures::Always,
            _ => return Err(bad("HEARTH_FUTURES", &text, "off, auto or always")),
        };
    }
    if let Some(text) = variable("HEARTH_WORKERS") {
        options.workers = match text.parse() {
            Ok(workers) if (1..=WORKERS_MAX).contains(&workers) => Some(workers),
            _ => {
                let good = format!("a number of workers from 1 to {WORKERS_MAX}");
                return Err(bad("HEARTH_WORKERS", &text, &good));
            }
        };
    }
    if let Some(text) = variable("HEARTH_SLICE") {
        options.slice = microseconds("HEARTH_SLICE", &text)?;
    }
    if let Some(text) = variable("HEARTH_COLLECT") {
        options.collect = match (text.as_str(), text.parse()) {
            ("off", _) => Collect::Never,
            ("auto", _) => Collect::AsItGrows,
            (_, Ok(microseconds)) if microseconds > 0 => {
                Collect::Every(Duration::from_micros(microseconds))
            }
            _ => {
                let good = "auto, off, or a number of microseconds from 1 up";
                return Err(bad("HEARTH_COLLECT", &text, good));
            }
        };
    }
    if let Some(text) = variable("HEARTH_PATIENCE") {
        options.patience = match text.parse() {
            Ok(microseconds) if (1..=PATIENCE_MAX_US).contains(&microseconds) => {
                Duration::from_micros(microseconds)
            }
            _ => {
                let good = format!("a number of microseconds from 1 to {PATIENCE_MAX_US}");
                return Err(bad("HEARTH_PATIENCE", &text, &good));
            }
        };
    }
    options.simulation = read_simulation(variable)?;
    Ok(options)
}

fn microseconds(name: &str, text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(microseconds) if microseconds > 0 => Ok(Duration::from_micros(microseconds)),
        _ => Err(bad(name, text, "a number of microseconds from 1 up")),
    }
}

fn read_plan(path: &str) -> Result<CorePlan, String> {
    const NEXT: &str = "`hearth place PROGRAM --export hearth` writes such a file";
    let text = std::fs::read_to_string(path).map_err(|error| {
        format!(
            "HEARTH_PLAN: could not read {path} ({error}); {NEXT}, and without HEARTH_PLAN the program runs \
             with HEARTH_PLACE=talk, too"
        )
    })?;
    CorePlan::read(&text).map_err(|what| format!("HEARTH_PLAN: in {path} {what}; {NEXT}"))
}

fn read_simulation(
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Simulation>, String> {
    let number = |name: &str, good: &str| match variable(name) {
        None => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(bad(name, &text, good)),
        },
    };
    let seed = number("HEARTH_SIMULATE", "a seed from 0 to 2^64 - 1")?;
    let steps = number("HEARTH_STEPS", "a number of steps")?;
    let schedule = variable("HEARTH_SCHEDULE");
    if seed.is_none() && schedule.is_none() {
        return Ok(None);
    }
    Ok(Some(Simulation {
        seed: seed.unwrap_or(0),
        schedule,
        record: variable("HEARTH_RECORD"),
        steps,
    }))
}

fn bad(name: &str, text: &str, good: &str) -> String {
    format!("{name}={text:?} is not understood; it takes {good}")
}

/// The cores for components: lines of `type`, `number` and `core`, separated by tabs. `hearth run`
/// writes the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CorePlan {
    cores: HashMap<String, HashMap<u32, usize>>,
}

impl CorePlan {
    /// Parses a plan. The error names the bad line.
    pub(crate) fn read(text: &str) -> Result<CorePlan, String> {
        let mut plan = CorePlan::default();
        for (index, line) in text.lines().enumerate() {
            let fields: Vec<&str> = line.split('\t').collect();
            let entry = match fields[..] {
                [name, number, core] => number
                    .parse()
                    .ok()
                    .zip(core.parse().ok())
                    .map(|at| (name, at)),
                _ => None,
            };
            let Some((name, (number, core))) = entry else {
                let line = index + 1;
                return Err(format!(
                    "line {line} is no type, number and core with tabs between them"
                ));
            };
            plan.put(name, number, core);
        }
        Ok(plan)
    }

    /// Puts a component, given by its type's name and its number among those of that type (from 1),
    /// on a core.
    pub(crate) fn put(&mut self, name: &str, number: u32, core: usize) {
        let of_type = self.cores.entry(name.to_owned()).or_default();
        of_type.insert(number, core);
    }

    /// All components with their cores, ordered by name.
    #[cfg(not(loom))]
    pub(crate) fn entries(&self) -> Vec<(String, u32)> {
        let mut entries: Vec<_> = self
            .cores
            .iter()
            .flat_map(|(name, of_type)| {
                of_type
                    .iter()
                    .map(move |(number, core)| (format!("{name}#{number}"), *core as u32))
            })
            .collect();
        entries.sort();
        entries
    }

    /// The core for the component of this type and number (from 1).
    pub(crate) fn core_of(&self, name: &str, number: u32) -> Option<usize> {
        self.cores.get(name)?.get(&number).copied()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn read_one(name: &str, value: &str) -> Result<RuntimeOptions, String> {
        read(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn good_values_are_taken() {
        assert_eq!(read(|_| None), Ok(DEFAULTS));
        assert_eq!(read_one("HEARTH_PASSES", "3").unwrap().passes, Some(3));
        assert_eq!(read_one("HEARTH_SEED", "0").unwrap().seed, Some(0));
        let moved = read_one("HEARTH_HEAPS_MOVE", "65536").unwrap().heaps_move;
        assert_eq!(moved, 65536);
        assert_eq!(
            read_one("HEARTH_PLACE", "single").unwrap().policy,
            Policy::Single
        );
    }

    #[test]
    fn of_a_plan_that_is_none_the_next_step_is_told() {
        let text = std::env::temp_dir().join(format!("hearth-no-plan-{}", std::process::id()));
        std::fs::write(&text, "no plan\n").unwrap();
        let paths = ["/no/such/plan", text.to_str().unwrap()];
        let told = paths.map(|path| read_one("HEARTH_PLAN", path).unwrap_err());
        std::fs::remove_file(&text).unwrap();
        assert!(told[0].contains("could not read /no/such/plan"), "{told:?}");
        assert!(told[1].contains("line 1 is no type"), "{told:?}");
        let without = read_one("HEARTH_PLACE", "plan").unwrap_err();
        for told in [&told[0], &told[1], &without] {
            assert!(told.contains("--export hearth` writes"), "{told}");
        }
    }

    #[test]
    fn bad_values_are_told() {
        for (name, value) in [
            ("HEARTH_PASSES", "0"),
            ("HEARTH_PASSES", "many"),
            ("HEARTH_SEED", "-1"),
            ("HEARTH_CARRIER", "horses"),
            ("HEARTH_HEAPS", "many"),
            ("HEARTH_SERVERS", "polite"),
            ("HEARTH_FUTURES", "perhaps"),
            ("HEARTH_HEAPS_MOVE", "1M"),
            ("HEARTH_SLICE", "0"),
            ("HEARTH_PATIENCE", "0"),
            ("HEARTH_PATIENCE", "10001"),
            ("HEARTH_WORKERS", "0"),
            ("HEARTH_WORKERS", "4097"),
            ("HEARTH_SIMULATE", "often"),
            ("HEARTH_STEPS", "1.5"),
            ("HEARTH_COLLECT", "never"),
        ] {
            assert!(read_one(name, value).is_err(), "{name}={value}");
        }
        assert_eq!(
            read_one("HEARTH_PLACE", "here").unwrap_err(),
            "HEARTH_PLACE=\"here\" is not understood; it takes os, spread, single, random, steal, talk or plan"
        );
    }
}
