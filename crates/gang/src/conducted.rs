//! A set as the conductor has it: its members, how they are held, and what their time went to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use hearth_sys::affinity;
use hearth_sys::clock::steady_ns;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::description::BackEnd;
use crate::group;
use crate::plan::Ask;
use crate::registry::Entry;
use crate::table::{Account, Held};
use crate::tree::{self, Births};

/// Turns over which a set's use of cores is remembered: its width is the greatest of them.
const REMEMBERED: usize = 4;
/// Part of a turn for which a thread must be ready to count as one that wants a core.
const BUSY: f64 = 0.05;
/// Part of the time that looking through a set's members may take; a larger set is looked through
/// less often than each turn.
const LOOKING: f64 = 0.01;
/// Times that members are looked for again because the last time found new ones.
const LOOKS_MAX: usize = 8;
/// Time after which members are looked for although nobody was born: somebody may have put a
/// process into a group by hand.
const LOOK_ANYWAY_NS: u64 = 500_000_000;

/// Facts about processes of no set, and of all.
#[derive(Debug)]
pub(crate) struct Around {
    /// Processes that made sets, and their keepers.
    pub(crate) outsiders: BTreeSet<u32>,
    pub(crate) births: Births,
}

/// Bound of the time that something takes: what takes long is done less often than each turn.
#[derive(Default)]
struct Pace {
    next_ns: u64,
}

impl Pace {
    fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    fn took(&mut self, begin_ns: u64, slice: Duration) {
        let rest = ((steady_ns() - begin_ns) as f64 / LOOKING) as u64;
        // A set's turn is every second one, if not rarer.
        let is_cheap = rest < 2 * slice.as_nanos() as u64;
        self.next_ns = if is_cheap { 0 } else { begin_ns + rest };
    }
}

struct Process {
    descriptor: OwnedFd,
    began: u32,
    /// Sent a signal that stops it, by us.
    is_stopped: bool,
    /// Stopped by somebody else before: that stop is not ours to end.
    is_left_alone: bool,
}

#[derive(Default)]
struct Thread {
    process: u32,
    ran_ns: u64,
    waited_ns: u64,
    is_busy: bool,
    /// Whether its affinity is the set's to change: it was that of the set when first seen.
    is_ours: bool,
    /// Its affinity by us.
    cpus: Option<Vec<usize>>,
}

pub(crate) struct Conducted {
    pub(crate) entry: Entry,
    /// The file that freezes the group.
    switch: Option<File>,
    processes: BTreeMap<u32, Process>,
    threads: BTreeMap<u32, Thread>,
    pub(crate) is_on: bool,
    /// Moment up to which the time of turns is counted.
    since_ns: u64,
    /// Time of turns that the account has not seen yet.
    unseen_ns: u64,
    looking: Pace,
    accounting: Pace,
    /// As of the last look at the set's processes: when, who was born last, and who did not count.
    looked_ns: u64,
    newest: Option<u32>,
    outsiders: BTreeSet<u32>,
    /// The one born last when the threads were last listed. None if they have to be listed anew.
    newest_of_threads: Option<u32>,
    recent: [u32; REMEMBERED],
    turns: usize,
    /// All affinities that were given to threads: what their new threads inherit.
    given: BTreeSet<Vec<usize>>,
}

impl Conducted {
    pub(crate) fn new(entry: Entry, around: &Around) -> Conducted {
        let cores = entry.description.cores;
        let folder = entry.description.group.as_ref();
        let switch = folder.and_then(|folder| group::switch(folder).ok());
        let mut set = Conducted {
            switch,
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            is_on: true,
            since_ns: steady_ns(),
            unseen_ns: 0,
            looking: Pace::default(),
            accounting: Pace::default(),
            looked_ns: 0,
            newest: None,
            outsiders: BTreeSet::new(),
            newest_of_threads: None,
            recent: [cores; REMEMBERED],
            turns: 0,
            given: BTreeSet::new(),
            entry,
        };
        // A former conductor may have left it held.
        crate::mend::release(&set.entry.description, &set.entry.table);
        set.look(around);
        set
    }

    pub(crate) fn ask(&self) -> Ask {
        let description = &self.entry.description;
        Ask {
            id: description.id,
            cores: description.cores,
            demand: self.recent.iter().copied().max().unwrap_or(0),
            fills: description.fills,
            within: description.within,
        }
    }

    fn back_end(&self) -> BackEnd {
        self.entry.description.back_end
    }

    /// Learns who the members are. Returns the number of processes that were not known.
    fn look(&mut self, around: &Around) -> usize {
        // Before the look: who is born meanwhile makes another one necessary.
        let (now, newest) = (steady_ns(), around.births.newest());
        let is_same = newest.is_some() && newest == self.newest;
        if is_same && around.outsiders == self.outsiders && now < self.looked_ns + LOOK_ANYWAY_NS {
            return 0;
        }
        (self.looked_ns, self.newest) = (now, newest);
        self.outsiders.clone_from(&around.outsiders);
        let description = &self.entry.description;
        let owner = description.id.process;
        let found = match &description.group {
            _ if description.is_inside => vec![owner],
            Some(folder) => group::processes(folder),
            None => tree::descendants(owner, &around.outsiders),
        };
        let found: BTreeSet<u32> = found.into_iter().collect();
        let before = self.processes.len();
        self.processes.retain(|number, process| {
            let is_member = found.contains(number);
            // It may have made a set itself since it was held: its process is a member of none.
            if !is_member && process.is_stopped {
                let _ = pidfd_send_signal(&process.descriptor, Signal::CONT);
            }
            is_member
        });
        let mut is_changed = self.processes.len() != before;
        let mut new = 0;
        for number in found {
            if self.processes.contains_key(&number) {
                continue;
            }
            let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
            let Some(descriptor) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            else {
                continue;
            };
            let Some(stat) = tree::stat(number).filter(|stat| stat.state != b'Z') else {
                continue;
            };
            self.processes.insert(
                number,
                Process {
                    descriptor,
                    began: stat.began,
                    is_stopped: false,
                    is_left_alone: stat.state == b'T',
                },
            );
            new += 1;
            is_changed = true;
        }
        if is_changed {
            self.newest_of_threads = None;
            let list = self.processes.iter();
            let list = list.map(|(number, process)| (*number, process.began));
            self.entry.table.set_processes(list);
        }
        new
    }

    /// Sees which processes somebody else has stopped, so that they are left alone. To be called
    /// shortly before [`Conducted::hold`], which is to be quick.
    pub(crate) fn prepare_to_hold(&mut self) {
        if self.back_end() == BackEnd::Stop {
            for (number, process) in &mut self.processes {
                let stat = tree::stat(*number);
                process.is_left_alone = stat.is_some_and(|stat| stat.state == b'T');
            }
        }
    }

    /// Holds all members, but those that somebody else has stopped.
    pub(crate) fn hold(&mut self) {
        self.is_on = false;
        let table = &self.entry.table;
        match self.back_end() {
            BackEnd::Gate => {
                table.set_held(Held::Gate);
                table.close();
            }
            BackEnd::Freezer => {
                table.set_held(Held::Frozen);
                if let Some(switch) = &self.switch {
                    let _ = group::write_switch(switch.as_fd(), true);
                }
            }
            BackEnd::Stop => {
                table.set_held(Held::Stopped);
                for process in self.processes.values_mut() {
                    if !process.is_stopped && !process.is_left_alone {
                        let sent = pidfd_send_signal(&process.descriptor, Signal::STOP);
                        process.is_stopped = sent.is_ok();
                    }
                }
            }
        }
    }

    /// Lets all members run.
    pub(crate) fn go(&mut self) {
        self.is_on = true;
        let table = &self.entry.table;
        match self.back_end() {
            BackEnd::Gate => table.open(),
            BackEnd::Freezer => {
                if let Some(switch) = &self.switch {
                    let _ = group::write_switch(switch.as_fd(), false);
                }
            }
            BackEnd::Stop => {
                for process in self.processes.values_mut() {
                    if process.is_stopped {
                        let _ = pidfd_send_signal(&process.descriptor, Signal::CONT);
                        process.is_stopped = false;
                    }
                }
            }
        }
        table.set_held(Held::No);
    }

    /// The moment from which the account of the next turn counts.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
    }

    /// The moment up to which the account of a turn counts.
    pub(crate) fn end(&mut self, now_ns: u64) {
        self.unseen_ns += now_ns.saturating_sub(self.since_ns);
        self.since_ns = now_ns;
    }

    /// Finds new members after a switch, and holds them if the others are held. Rarer than each
    /// turn where there are many members.
    pub(crate) fn catch_up(&mut self, slice: Duration, around: &Around) {
        let begin = steady_ns();
        if !self.looking.is_due(begin) {
            return;
        }
        for _ in 0..LOOKS_MAX {
            if self.look(around) == 0 || self.is_on {
                break;
            }
            // Started between the last look and the stop. They can start no others once held.
            self.hold();
        }
        self.looking.took(begin, slice);
    }

    /// Accounts for the time since the last call, or since the turn began, up to now. Rarer than
    /// each turn where there are many threads.
    pub(crate) fn account(&mut self, slice: Duration, around: &Around) {
        let begin = steady_ns();
        self.end(begin);
        if !self.accounting.is_due(begin) {
            return;
        }
        let time = std::mem::take(&mut self.unseen_ns);
        self.account_for(time, around.births.newest());
        self.accounting.took(begin, slice);
    }

    /// Pairs of a process and a thread of it: those that are known, if nobody was born since.
    fn listed(&mut self, newest: Option<u32>) -> Vec<(u32, u32)> {
        if newest.is_some() && newest == self.newest_of_threads {
            let known = self.threads.iter();
            return known.map(|(number, one)| (one.process, *number)).collect();
        }
        self.newest_of_threads = newest;
        let processes = self.processes.keys();
        let threads = processes.flat_map(|process| {
            let threads = tree::threads(*process).into_iter();
            threads.map(|thread| (*process, thread))
        });
        threads.collect()
    }

    fn account_for(&mut self, time: u64, newest: Option<u32>) {
        if time == 0 {
            return;
        }
        let mut seen = BTreeSet::new();
        let (mut ran_all, mut waited_all, mut busy, mut busy_ran) = (0, 0, 0u32, 0);
        for (process, number) in self.listed(newest) {
            let Some((ran, waited)) = tree::times(process, number) else {
                continue;
            };
            seen.insert(number);
            let is_new = !self.threads.contains_key(&number);
            let thread = self.threads.entry(number).or_default();
            if thread.process != process {
                *thread = Thread {
                    process,
                    is_ours: is_ours(number, &self.entry.description.cpus, &self.given),
                    ..Thread::default()
                };
            }
            // A thread seen for the first time may have run long before.
            let since = |now: u64, before: u64| match is_new {
                true => now.min(time),
                false => now.saturating_sub(before),
            };
            let (has_run, has_waited) =
                (since(ran, thread.ran_ns), since(waited, thread.waited_ns));
            (thread.ran_ns, thread.waited_ns) = (ran, waited);
            thread.is_busy = (has_run + has_waited) as f64 >= BUSY * time as f64;
            ran_all += has_run;
            waited_all += has_waited;
            if thread.is_busy {
                busy += 1;
                busy_ran += has_run;
            }
        }
        self.threads.retain(|number, _| seen.contains(number));
        let wide = busy.min(self.entry.description.cores);
        self.recent[self.turns % REMEMBERED] = wide;
        self.turns += 1;
        self.entry.table.set_demand(self.ask().demand);
        let all = u64::from(wide) * time;
        let lost = all - busy_ran.min(all);
        self.entry.table.add(&Account {
            turns: 1,
            on_ns: time,
            run_ns: ran_all,
            waited_ns: waited_all,
            wanted_ns: if wide > 0 { time } else { 0 },
            // Each core's missing time may be the only one in that moment.
            together_ns: match wide {
                0 => 0,
                _ => time.saturating_sub(lost),
            },
            lost_ns: lost,
        });
    }

    /// Moves the members to these CPUs, given core by core. Threads that compute get a CPU each if
    /// there are enough: woken together, they would otherwise crowd on some until the kernel
    /// notices.
    pub(crate) fn place(&mut self, cores: &[Vec<usize>]) {
        let home = &self.entry.description.cpus;
        let depth = cores.iter().map(Vec::len).max().unwrap_or(0);
        // The first CPU of each core, then the second of each.
        let cpus = (0..depth).flat_map(|at| cores.iter().filter_map(move |core| core.get(at)));
        let cpus: Vec<usize> = cpus.copied().filter(|cpu| home.contains(cpu)).collect();
        if cpus.is_empty() {
            return;
        }
        let mut all = cpus.clone();
        all.sort_unstable();
        let busy = self.threads.values().filter(|thread| thread.is_busy);
        let count = busy.clone().count();
        let is_one_each = (2..=cpus.len()).contains(&count);
        // Who has a CPU of these for itself keeps it.
        let mut free = cpus.clone();
        let mut kept = BTreeSet::new();
        for thread in busy {
            if let Some([cpu]) = thread.cpus.as_deref()
                && kept.insert(*cpu)
            {
                free.retain(|one| one != cpu);
            }
        }
        let mut free = free.into_iter();
        let mut is_changed = false;
        for (number, thread) in &mut self.threads {
            if !thread.is_ours {
                continue;
            }
            let wanted = match is_one_each && thread.is_busy {
                true => {
                    let own = match thread.cpus.as_deref() {
                        Some([cpu]) if cpus.contains(cpu) && kept.remove(cpu) => Some(*cpu),
                        _ => free.next(),
                    };
                    own.map_or_else(|| all.clone(), |cpu| vec![cpu])
                }
                false => all.clone(),
            };
            let has = thread.cpus.as_ref().unwrap_or(home);
            if *has != wanted {
                is_changed = true;
                if affinity::allow_thread(*number, &wanted).is_ok() {
                    self.given.insert(wanted.clone());
                    thread.cpus = Some(wanted);
                }
            }
        }
        if is_changed {
            let moved = self.threads.iter().filter(|(_, one)| one.cpus.is_some());
            let moved = moved.map(|(number, _)| *number);
            // A list that is full names fewer: the others stay where they are if all goes wrong.
            let _ = self.entry.table.set_moved_threads(moved);
        }
    }

    /// Lets the members run as if there were no sets.
    pub(crate) fn release(&mut self) {
        self.go();
        crate::mend::release(&self.entry.description, &self.entry.table);
        self.threads.clear();
        self.newest_of_threads = None;
    }
}

/// Whether a thread's affinity is that of its set, or one that we gave to the thread that made it.
fn is_ours(thread: u32, home: &[usize], given: &BTreeSet<Vec<usize>>) -> bool {
    affinity::allowed_of(thread).is_ok_and(|cpus| cpus == home || given.contains(&cpus))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    use super::*;
    use crate::description::Description;
    use crate::plan::SetId;
    use crate::registry::Registry;

    /// A process and its child, killed at the end.
    struct Pair {
        outer: Child,
        inner: u32,
    }

    impl Pair {
        fn start() -> Pair {
            let mut command = Command::new("sh");
            // A script's background processes have no input unless they are given one.
            command.args(["-c", "exec 3<&0; sh -c 'echo $$; read -r line' <&3 & wait"]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut outer = command.spawn().expect("it starts");
            let mut line = String::new();
            let output = outer.stdout.as_mut().expect("its output");
            let read = BufReader::new(output).read_line(&mut line);
            read.expect("its child's number");
            let inner = line.trim().parse().expect("a number");
            Pair { outer, inner }
        }
    }

    impl Drop for Pair {
        fn drop(&mut self) {
            let inner = i32::try_from(self.inner).ok().and_then(Pid::from_raw);
            let _ = rustix::process::kill_process(inner.expect("a number"), Signal::KILL);
            let _ = self.outer.kill();
            let _ = self.outer.wait();
        }
    }

    fn wait_until(process: u32, is_stopped: bool) {
        let begin = Instant::now();
        while tree::stat(process).is_some_and(|stat| (stat.state == b'T') != is_stopped) {
            assert!(begin.elapsed().as_secs() < 60, "process {process} is not");
            std::thread::yield_now();
        }
    }

    /// It has joined the registry after the conductor looked there, and is stopped as a member of
    /// the set around. Once it is known to have a set it is a member of none, and has to go on.
    #[test]
    fn a_process_that_makes_a_set_while_it_is_held_goes_on() {
        let pair = Pair::start();
        let folder = std::env::temp_dir().join(format!("hearth-held-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("it is new");
        let registry = Registry::in_folder(&folder);
        let id = SetId {
            process: pair.outer.id(),
            nth: 0,
        };
        let description = Description {
            id,
            name: "outer".to_owned(),
            cores: 1,
            fills: true,
            within: None,
            back_end: BackEnd::Stop,
            slice: Duration::from_millis(20),
            cpus: affinity::allowed(),
            group: None,
            is_inside: false,
        };
        registry.prepare(id).expect("a registry");
        let _lock = registry.announce(&description).expect("a registry");
        let entry = registry.entry(id).expect("a set");
        let mut around = Around {
            outsiders: BTreeSet::new(),
            births: Births::open(),
        };
        let mut set = Conducted::new(entry, &around);
        assert!(set.processes.contains_key(&pair.inner));
        set.hold();
        wait_until(pair.inner, true);
        // What the conductor learns in its next turn.
        around.outsiders.insert(pair.inner);
        set.look(&around);
        assert!(set.processes.is_empty());
        wait_until(pair.inner, false);
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
