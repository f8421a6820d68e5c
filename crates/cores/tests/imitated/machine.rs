//! A machine whose scheduler is played in steps of a millisecond, and the files that its kernel
//! would show. It knows nothing of the estimate's model: in each step each CPU picks a thread, by
//! virtual times, and what threads got is counted.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use fastrand::Rng;
use hearth_sys::affinity::Pinned;
use hearth_sys::policy::Policy;
use hearth_sys::refused::Refused;
use hearth_sys::{System, affinity};

/// A step, ns.
const STEP: u64 = 1_000_000;
/// Steps in a period of quotas, which is the usual 100 ms.
const PERIOD: u64 = 100;
/// Steps in a tick of `/proc/stat`.
const TICK: u64 = 10;
/// Number of the program that others' files belong to.
const OTHERS: u32 = 4_000_000;

/// Version of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    First,
    Second,
}

/// A control group. Its path says in which others it is.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) path: &'static str,
    /// As `cpu.weight` has it: 100 is usual.
    pub(crate) weight: f64,
    /// In CPUs.
    pub(crate) quota: Option<f64>,
    /// Whether it gets only what is idle (`cpu.idle`).
    pub(crate) is_idle: bool,
}

/// Threads of another program.
#[derive(Clone, Debug)]
pub(crate) struct Others {
    pub(crate) group: &'static str,
    pub(crate) threads: usize,
    /// Share of the time in which each wants to run, in turns of 10 ms.
    pub(crate) duty: f64,
    pub(crate) nice: i32,
    /// Their CPUs; all if there is none.
    pub(crate) cpus: Vec<usize>,
    /// Whether the asking program cannot see them, as those of another container.
    pub(crate) are_hidden: bool,
}

/// A machine with its programs.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) cpus: usize,
    pub(crate) version: Version,
    /// Share of each CPU's time that the hypervisor gives to other guests.
    pub(crate) steal: f64,
    pub(crate) groups: Vec<Group>,
    /// The asking program's group and CPUs; all if there is none.
    pub(crate) own_group: &'static str,
    pub(crate) own_cpus: Vec<usize>,
    pub(crate) others: Vec<Others>,
}

#[derive(Clone, Debug)]
struct Thread {
    group: usize,
    weight: f64,
    duty: f64,
    phase: u64,
    cpus: Vec<usize>,
    is_own: bool,
    is_hidden: bool,
    /// Virtual time, and whether it wanted to run in the last step.
    time: f64,
    was_ready: bool,
    ran: u64,
    waited: u64,
}

#[derive(Clone, Debug)]
struct Node {
    parent: Option<usize>,
    weight: f64,
    quota: f64,
    time: f64,
    was_ready: bool,
    /// Steps that are left in this period.
    budget: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    used: u64,
    idle: u64,
    steal: u64,
}

/// A machine while it runs, which can be asked like a real one.
#[derive(Debug)]
pub(crate) struct Running {
    machine: Machine,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    paths: Vec<String>,
    nodes: Vec<Node>,
    threads: Vec<Thread>,
    cpus: Vec<Times>,
    now: u64,
    random: Rng,
}

impl Machine {
    /// Begins to run it.
    pub(crate) fn start(&self, seed: u64) -> Running {
        let mut inside = Inside {
            paths: vec!["/".to_owned()],
            nodes: vec![node(None, 1024.0, f64::INFINITY)],
            threads: Vec::new(),
            cpus: vec![Times::default(); self.cpus],
            now: 0,
            random: Rng::with_seed(seed),
        };
        for group in &self.groups {
            let parent = group.path.rsplit_once('/').map_or("", |(parent, _)| parent);
            let parent = inside.node(if parent.is_empty() { "/" } else { parent });
            let weight = match group.is_idle {
                true => 3.0,
                false => group.weight * 10.24,
            };
            let quota = group.quota.unwrap_or(f64::INFINITY);
            inside.nodes.push(node(Some(parent), weight, quota));
            inside.paths.push(group.path.to_owned());
        }
        for others in &self.others {
            for _ in 0..others.threads {
                inside.add(others, false);
            }
        }
        Running {
            machine: self.clone(),
            inside: Mutex::new(inside),
        }
    }
}

fn node(parent: Option<usize>, weight: f64, quota: f64) -> Node {
    Node {
        parent,
        weight,
        quota,
        time: 0.0,
        was_ready: false,
        budget: quota * PERIOD as f64,
    }
}

impl Running {
    /// Lets time pass.
    pub(crate) fn pass(&self, steps: u64) {
        let mut inside = self.inside.lock().expect("nobody panicked");
        for _ in 0..steps {
            inside.step(self.machine.steal);
        }
    }

    /// CPU time that a thread of the asking program on each of its CPUs gets together from now on.
    pub(crate) fn truth(&self, steps: u64) -> f64 {
        let own = Others {
            group: self.machine.own_group,
            threads: 0,
            duty: 1.0,
            nice: 0,
            cpus: self.machine.own_cpus.clone(),
            are_hidden: false,
        };
        let mut inside = self.inside.lock().expect("nobody panicked");
        for _ in 0..self.own_cpus().len() {
            inside.add(&own, true);
        }
        drop(inside);
        // What they do at first is not the rule.
        self.pass(PERIOD);
        let before = self.own_time();
        self.pass(steps);
        (self.own_time() - before) as f64 / (steps * STEP) as f64
    }

    fn own_time(&self) -> u64 {
        let inside = self.inside.lock().expect("nobody panicked");
        let own = inside.threads.iter().filter(|thread| thread.is_own);
        own.map(|thread| thread.ran).sum()
    }

    fn own_cpus(&self) -> Vec<usize> {
        match self.machine.own_cpus.is_empty() {
            true => (0..self.machine.cpus).collect(),
            false => self.machine.own_cpus.clone(),
        }
    }

    fn files(&self) -> BTreeMap<String, String> {
        let inside = self.inside.lock().expect("nobody panicked");
        let mut files = BTreeMap::new();
        let mut file = |path: String, text: String| files.insert(path, text);
        file(
            "/sys/devices/system/cpu/online".into(),
            format!("0-{}", self.machine.cpus - 1),
        );
        let mount = match self.machine.version {
            Version::First => "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
            Version::Second => "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        };
        file("/proc/self/mountinfo".into(), mount.into());
        file(
            "/sys/fs/cgroup/cgroup.controllers".into(),
            "cpuset cpu io memory pids\n".into(),
        );
        for group in &self.machine.groups {
            for (name, text) in self.limits(group) {
                file(format!("{}{}/{name}", self.mount(), group.path), text);
            }
        }
        file(
            "/proc/self/cgroup".into(),
            self.cgroup(self.machine.own_group),
        );
        file("/proc/self/stat".into(), stat(1, 0));
        let mut text = String::from("cpu  0 0 0 0 0 0 0 0 0 0\n");
        for (cpu, times) in inside.cpus.iter().enumerate() {
            let ticks = |steps: u64| steps / TICK;
            let (used, idle, steal) = (ticks(times.used), ticks(times.idle), ticks(times.steal));
            text.push_str(&format!("cpu{cpu} {used} 0 0 {idle} 0 0 0 {steal} 0 0\n"));
        }
        file("/proc/stat".into(), text);
        for (nth, thread) in inside.threads.iter().enumerate() {
            if thread.is_hidden || thread.is_own {
                continue;
            }
            let number = OTHERS + nth as u32;
            let folder = format!("/proc/{number}/task/{number}");
            let times = format!("{} {} 1\n", thread.ran, thread.waited);
            file(format!("{folder}/schedstat"), times);
            let nice = nice_of(thread.weight);
            file(format!("{folder}/stat"), stat(number, nice));
            let cpus: Vec<String> = thread.cpus.iter().map(usize::to_string).collect();
            let status = format!("Name:\tx\nCpus_allowed_list:\t{}\n", cpus.join(","));
            file(format!("{folder}/status"), status);
            let group = inside.paths[thread.group].clone();
            file(format!("{folder}/cgroup"), self.cgroup(&group));
        }
        files
    }

    fn mount(&self) -> &'static str {
        match self.machine.version {
            Version::First => "/sys/fs/cgroup/cpu",
            Version::Second => "/sys/fs/cgroup",
        }
    }

    fn cgroup(&self, group: &str) -> String {
        match self.machine.version {
            Version::First => format!("4:cpu,cpuacct:{group}\n0::/\n"),
            Version::Second => format!("0::{group}\n"),
        }
    }

    fn limits(&self, group: &Group) -> Vec<(&'static str, String)> {
        let us = |cpus: f64| (cpus * 100_000.0).round() as i64;
        let idle = ("cpu.idle", format!("{}\n", u8::from(group.is_idle)));
        match self.machine.version {
            Version::First => {
                let quota = group.quota.map_or(-1, us);
                let shares = (group.weight * 10.24).round();
                vec![
                    ("cpu.shares", format!("{shares}\n")),
                    ("cpu.cfs_quota_us", format!("{quota}\n")),
                    ("cpu.cfs_period_us", "100000\n".to_owned()),
                    idle,
                ]
            }
            Version::Second => {
                let quota = group
                    .quota
                    .map_or("max".to_owned(), |cpus| us(cpus).to_string());
                vec![
                    ("cpu.weight", format!("{}\n", group.weight)),
                    ("cpu.max", format!("{quota} 100000\n")),
                    idle,
                ]
            }
        }
    }
}

impl Inside {
    fn node(&self, path: &str) -> usize {
        let place = self.paths.iter().position(|one| one == path);
        place.expect("groups are described from the highest down")
    }

    fn add(&mut self, others: &Others, is_own: bool) {
        let all = (0..self.cpus.len()).collect();
        self.threads.push(Thread {
            group: self.node(others.group),
            weight: 1024.0 * 1.25_f64.powi(-others.nice),
            duty: others.duty,
            phase: self.random.u64(0..10),
            cpus: match others.cpus.is_empty() {
                true => all,
                false => others.cpus.clone(),
            },
            is_own,
            is_hidden: others.are_hidden,
            time: 0.0,
            was_ready: false,
            ran: 0,
            waited: 0,
        });
    }

    /// Each CPU that is not stolen picks a thread.
    fn step(&mut self, steal: f64) {
        if self.now.is_multiple_of(PERIOD) {
            for node in &mut self.nodes {
                node.budget = node.quota * PERIOD as f64;
            }
        }
        let now = self.now;
        let wants = |thread: &Thread| ((now + thread.phase) % 10) as f64 + 0.5 < 10.0 * thread.duty;
        let ready: Vec<bool> = self.threads.iter().map(wants).collect();
        self.wake(&ready);
        let is_stolen: Vec<bool> = self
            .cpus
            .iter()
            .map(|_| self.random.f64() < steal)
            .collect();
        let mut runs: Vec<Option<usize>> = vec![None; self.cpus.len()];
        let mut is_placed = vec![false; self.threads.len()];
        let mut waiting: Vec<usize> = (0..ready.len()).filter(|at| ready[*at]).collect();
        while runs.contains(&None)
            && let Some(thread) = self.next(&waiting)
        {
            waiting.retain(|one| *one != thread);
            let mut tried = vec![false; self.cpus.len()];
            if self.place(thread, &mut runs, &mut tried) {
                is_placed[thread] = true;
                self.charge(thread);
            }
        }
        for (at, thread) in self.threads.iter_mut().enumerate() {
            thread.was_ready = ready[at];
            if ready[at] && !is_placed[at] {
                thread.waited += STEP;
            }
        }
        for (cpu, runs) in runs.iter().enumerate() {
            let times = &mut self.cpus[cpu];
            match (runs, is_stolen[cpu]) {
                (None, _) => times.idle += 1,
                // The kernel takes stolen time off that of the thread.
                (Some(_), true) => times.steal += 1,
                (Some(thread), false) => {
                    times.used += 1;
                    self.threads[*thread].ran += STEP;
                }
            }
        }
        self.now += 1;
    }

    /// Threads and groups that begin to want CPUs get no credit for the time before.
    fn wake(&mut self, ready: &[bool]) {
        let has_ready: Vec<bool> = (0..self.nodes.len())
            .map(|node| {
                let mut threads = self.threads.iter().zip(ready);
                threads.any(|(thread, is_ready)| *is_ready && self.is_in(thread.group, node))
            })
            .collect();
        for (at, is_ready) in ready.iter().enumerate() {
            if *is_ready && !self.threads[at].was_ready {
                let least = self.least_time(self.threads[at].group);
                self.threads[at].time = self.threads[at].time.max(least);
            }
        }
        for (at, is_ready) in has_ready.into_iter().enumerate() {
            if let Some(parent) = self.nodes[at].parent
                && is_ready
                && !self.nodes[at].was_ready
            {
                let least = self.least_time(parent);
                self.nodes[at].time = self.nodes[at].time.max(least);
            }
            self.nodes[at].was_ready = is_ready;
        }
    }

    /// Least virtual time of those in a group that wanted to run.
    fn least_time(&self, group: usize) -> f64 {
        let threads = self.threads.iter();
        let threads = threads.filter(|one| one.group == group && one.was_ready);
        let nodes = self.nodes.iter();
        let nodes = nodes.filter(|one| one.parent == Some(group) && one.was_ready);
        let times = threads.map(|one| one.time).chain(nodes.map(|one| one.time));
        let least = times.fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 0.0 }
    }

    fn is_in(&self, mut group: usize, node: usize) -> bool {
        loop {
            match self.nodes[group].parent {
                _ if group == node => return true,
                None => return false,
                Some(parent) => group = parent,
            }
        }
    }

    /// The thread that is to run next: from the root down always where the least time was had.
    fn next(&self, waiting: &[usize]) -> Option<usize> {
        let mut node = 0;
        loop {
            let threads = waiting.iter().filter(|at| self.threads[**at].group == node);
            let threads = threads.map(|at| (self.threads[*at].time, Ok(*at)));
            let nodes = (0..self.nodes.len()).filter(|at| {
                let is_below = |thread: &usize| self.has_budget(self.threads[*thread].group, *at);
                self.nodes[*at].parent == Some(node) && waiting.iter().any(is_below)
            });
            let nodes = nodes.map(|at| (self.nodes[at].time, Err(at)));
            match threads.chain(nodes).min_by(|a, b| a.0.total_cmp(&b.0))?.1 {
                Ok(thread) => return Some(thread),
                Err(below) => node = below,
            }
        }
    }

    /// Whether a group is in another one, and all from here to there have something left.
    fn has_budget(&self, mut group: usize, node: usize) -> bool {
        loop {
            if self.nodes[group].budget < 1.0 {
                return false;
            }
            match self.nodes[group].parent {
                _ if group == node => return true,
                None => return false,
                Some(parent) => group = parent,
            }
        }
    }

    /// Finds a CPU for a thread, moving others if needed.
    fn place(&self, thread: usize, runs: &mut [Option<usize>], tried: &mut [bool]) -> bool {
        for cpu in &self.threads[thread].cpus {
            if std::mem::replace(&mut tried[*cpu], true) {
                continue;
            }
            if runs[*cpu].is_none_or(|other| self.place(other, runs, tried)) {
                runs[*cpu] = Some(thread);
                return true;
            }
        }
        false
    }

    fn charge(&mut self, thread: usize) {
        let thread = &mut self.threads[thread];
        thread.time += 1024.0 / thread.weight;
        let mut at = Some(thread.group);
        while let Some(node) = at {
            let node = &mut self.nodes[node];
            node.time += 1024.0 / node.weight;
            node.budget -= 1.0;
            at = node.parent;
        }
    }
}

/// A thread's file `stat`.
fn stat(number: u32, nice: i32) -> String {
    let (before, between) = ("0 ".repeat(15), "0 ".repeat(21));
    format!("{number} (x) R {before}{nice} {between}0 0 0")
}

fn nice_of(weight: f64) -> i32 {
    -(weight / 1024.0).log(1.25).round() as i32
}

impl System for Running {
    fn read(&self, path: &str) -> io::Result<String> {
        let found = self.files().remove(path);
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let below = format!("{}/", path.trim_end_matches('/'));
        let files = self.files();
        let names = files.keys().filter_map(|file| file.strip_prefix(&below));
        let mut names: Vec<String> = names
            .map(|name| name.split('/').next().unwrap_or_default().to_owned())
            .collect();
        names.dedup();
        Ok(names)
    }

    fn allowed(&self) -> io::Result<Vec<usize>> {
        Ok(self.own_cpus())
    }

    fn pin(&self, _: usize) -> Result<Pinned, Refused> {
        // Nobody pins to ask.
        Pinned::to(affinity::allowed()[0])
    }

    fn memory_nodes(&self) -> Result<Vec<usize>, Refused> {
        Ok(vec![0])
    }

    fn place_memory(&self, _: &Policy) -> Result<(), Refused> {
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.inside.lock().expect("nobody panicked").now * STEP
    }
}
