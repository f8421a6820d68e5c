//! Keeps a thread that reads blocks near the threads that fill them: the writer of a recording, or
//! a compressor of traces.
//!
//! Such a *helper* counts the CPUs on which its blocks were filled. Each second it asks the
//! machine's model for the CPUs where reading costs least ([`hearth_place::helper`]), and lets
//! itself run only there. The machine is the kept profile's, as `hearth probe` measured it, or what
//! the system's files say with assumed costs. Without much to read, or without a description of the
//! machine, the scheduler decides alone.

#![forbid(unsafe_code)]

mod busy;

use std::fs;
use std::path::{Path, PathBuf};

use hearth_machine::capture::Capture;
use hearth_machine::profile::Profile;
use hearth_machine::topology::OsThread;
use hearth_model::fitted::Model;
use hearth_place::cost::CostOptions;
use hearth_place::helper::{Choice, CpuLoad, Helper, choose};
use hearth_place::slots::Machine;
use hearth_sys::{Linux, System, affinity, clock, paths};

use busy::Busy;

/// Time between two choices, ns.
const EVERY_NS: u64 = 1_000_000_000;
/// Bytes a second below which it does not matter where they are read.
const BYTES_MIN: f64 = 2e6;
/// A profile's size never comes near this.
const PROFILE_BYTES_MAX: u64 = 256 << 20;

/// A helper's place. It belongs to the helper's thread: that is the one which is moved.
pub struct Beside {
    system: Box<dyn System + Send>,
    /// The file of the machine's profile.
    profile: Option<PathBuf>,
    worked_ns: fn() -> u64,
    block_bytes: f64,
    site: Site,
    busy: Busy,
    /// Blocks since the last choice, by the CPU.
    filled: Vec<(usize, u64)>,
    since: Moment,
    /// The present CPUs, once something chose them.
    chosen: Option<Vec<OsThread>>,
}

/// The machine to choose from.
enum Site {
    /// Not looked at, which costs some milliseconds.
    Unread,
    /// It does not say enough of itself, or there is nothing to choose.
    None,
    Read(Box<Machine>),
}

/// The clock, and the thread's own time, ns.
#[derive(Clone, Copy)]
struct Moment {
    now: u64,
    worked: u64,
}

impl Beside {
    /// The place of a helper that reads blocks of a size. Nothing happens to its thread before
    /// [`settle`](Beside::settle).
    #[must_use]
    pub fn new(block_bytes: usize) -> Beside {
        let profile = paths::profile_path();
        Beside::on(Box::new(Linux), profile, clock::thread_ns, block_bytes)
    }

    /// The same on another machine, with the file of its profile and the helper's own time, for
    /// tests.
    #[doc(hidden)]
    #[must_use]
    pub fn on(
        system: Box<dyn System + Send>,
        profile: Option<PathBuf>,
        worked_ns: fn() -> u64,
        block_bytes: usize,
    ) -> Beside {
        Beside {
            profile,
            worked_ns,
            block_bytes: block_bytes as f64,
            site: Site::Unread,
            busy: Busy::default(),
            filled: Vec::new(),
            since: Moment {
                now: system.now_ns(),
                worked: worked_ns(),
            },
            chosen: None,
            system,
        }
    }

    /// Counts blocks that were filled on a CPU.
    pub fn count(&mut self, cpu: usize, blocks: u64) {
        match self.filled.iter_mut().find(|(known, _)| *known == cpu) {
            Some((_, count)) => *count += blocks,
            None => self.filled.push((cpu, blocks)),
        }
    }

    /// Moves the calling thread, if a second has passed and it makes a difference. The new place
    /// and the reason, if it moved.
    pub fn settle(&mut self) -> Option<String> {
        let choice = self.choice()?;
        let is_anywhere = choice.elsewhere_ns.is_none();
        match &self.chosen {
            None if is_anywhere => return None,
            Some(cpus) if *cpus == choice.cpus => return None,
            _ => {}
        }
        let cpus: Vec<usize> = choice.cpus.iter().map(|cpu| cpu.0 as usize).collect();
        affinity::allow_current(&cpus).ok()?;
        let reason = choice.to_string();
        self.chosen = Some(choice.cpus);
        Some(reason)
    }

    /// The CPUs for the helper, if it is time to choose.
    #[doc(hidden)]
    pub fn choice(&mut self) -> Option<Choice> {
        let now = self.system.now_ns();
        let passed = now.saturating_sub(self.since.now);
        if passed < EVERY_NS {
            return None;
        }
        let worked = (self.worked_ns)();
        let moment = Moment { now, worked };
        let worked = moment.worked.saturating_sub(self.since.worked);
        self.since = moment;
        let filled = std::mem::take(&mut self.filled);
        let per_second = 1e9 / passed as f64;
        let blocks: u64 = filled.iter().map(|(_, count)| count).sum();
        if blocks as f64 * per_second * self.block_bytes < BYTES_MIN {
            self.busy.forget();
            return None;
        }
        if matches!(self.site, Site::Unread) {
            self.site = site(&*self.system, self.profile.as_deref());
        }
        let Site::Read(machine) = &self.site else {
            return None;
        };
        let helper = Helper {
            block_bytes: self.block_bytes,
            work_ns: worked as f64 * per_second,
        };
        let mine = affinity::current().map(|cpu| (cpu, helper.work_ns / 1e9));
        let busy = self.busy.since_last(&*self.system, mine)?;
        let loads = machine.slots().iter().map(|slot| {
            let cpu = slot.os.0 as usize;
            let count = filled.iter().find(|(known, _)| *known == cpu);
            CpuLoad {
                cpu: slot.os,
                blocks: count.map_or(0.0, |(_, count)| *count as f64 * per_second),
                busy: busy.get(&cpu).copied().unwrap_or_default(),
            }
        });
        let loads: Vec<CpuLoad> = loads.collect();
        Some(choose(machine, &loads, &helper, &CostOptions::default()))
    }
}

/// The calling thread's part of this machine: its topology with the costs of the kept profile, or
/// assumed ones, and the CPUs that the thread may use now. None if the system does not describe
/// itself.
#[must_use]
pub fn this_machine() -> Option<(Profile, Machine)> {
    machine(&Linux, paths::profile_path().as_deref())
}

fn site(system: &dyn System, profile: Option<&Path>) -> Site {
    let machine = machine(system, profile).map(|(_, machine)| machine);
    match machine.filter(|machine| machine.slots().len() > 1) {
        Some(machine) => Site::Read(Box::new(machine)),
        None => Site::None,
    }
}

fn machine(system: &dyn System, profile: Option<&Path>) -> Option<(Profile, Machine)> {
    let allowed = system.allowed().ok()?;
    let described = described(system)?;
    // A profile of another machine, or of this one with other parts, does not count.
    let kept = profile.and_then(read_profile);
    let kept = kept.filter(|kept| kept.topology == described.topology);
    let profile = kept.unwrap_or(described);
    let topology = &profile.topology;
    let known = topology
        .all_threads()
        .map(|thread| topology.os_thread(thread));
    let known: Vec<OsThread> = known
        .filter(|cpu| allowed.contains(&(cpu.0 as usize)))
        .collect();
    let model = Model::fitted(&profile).ok()?;
    // None allowed would mean all.
    let machine = (!known.is_empty()).then(|| Machine::new(&profile, &model, &known).ok())??;
    Some((profile, machine))
}

fn read_profile(path: &Path) -> Option<Profile> {
    let length = fs::metadata(path).ok()?.len();
    let text = (length <= PROFILE_BYTES_MAX).then(|| fs::read_to_string(path).ok())?;
    Profile::from_json(&text?).ok()
}

fn described(system: &dyn System) -> Option<Profile> {
    let mut files = (
        |path: &str| system.read(path).ok(),
        |folder: &str| system.list(folder).unwrap_or_default(),
    );
    let reading = Capture::gather(&mut files).read().ok()?;
    Some(Profile::assumed(reading.topology))
}
