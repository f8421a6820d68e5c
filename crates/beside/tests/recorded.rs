//! Choices on recorded machines.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use hearth_beside::Beside;
use hearth_machine::capture::Capture;
use hearth_sys::affinity::Pinned;
use hearth_sys::policy::Policy;
use hearth_sys::refused::Refused;
use hearth_sys::{Fake, System};

/// A recorded machine that runs: each look at its clock takes a second, in which some CPUs are
/// busy.
struct Running {
    machine: Fake,
    cpus: usize,
    busy: Vec<usize>,
    seconds: AtomicU64,
}

impl System for Running {
    fn read(&self, path: &str) -> io::Result<String> {
        if path != "/proc/stat" {
            return self.machine.read(path);
        }
        let ticks = 100 * self.seconds.load(Ordering::Relaxed);
        let lines = (0..self.cpus).map(|cpu| match self.busy.contains(&cpu) {
            true => format!("cpu{cpu} {ticks} 0 0 0 0 0 0 0 0 0\n"),
            false => format!("cpu{cpu} 0 0 0 {ticks} 0 0 0 0 0 0\n"),
        });
        Ok(lines.collect())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.machine.list(path)
    }

    fn allowed(&self) -> io::Result<Vec<usize>> {
        self.machine.allowed()
    }

    fn pin(&self, core: usize) -> Result<Pinned, Refused> {
        self.machine.pin(core)
    }

    fn memory_nodes(&self) -> Result<Vec<usize>, Refused> {
        self.machine.memory_nodes()
    }

    fn place_memory(&self, policy: &Policy) -> Result<(), Refused> {
        self.machine.place_memory(policy)
    }

    fn now_ns(&self) -> u64 {
        1_000_000_000 * self.seconds.fetch_add(1, Ordering::Relaxed)
    }
}

/// The time of a helper that works for 0.1 s in each second.
fn worked_ns() -> u64 {
    thread_local!(static LOOKS: Cell<u64> = const { Cell::new(0) });
    100_000_000 * LOOKS.replace(LOOKS.get() + 1)
}

/// The CPUs chosen on a machine where some record, and others may be busy, too.
fn chosen(name: &str, recording: &[usize], busy: &[usize]) -> Option<Vec<u32>> {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    let text = std::fs::read_to_string(machines.join(name).join("capture.json"));
    let capture = Capture::from_json(&text.expect("a recorded machine")).expect("a capture");
    let cpus = capture.read().expect("a machine").topology.threads().len();
    let system = Running {
        machine: Fake::recorded(capture.files),
        cpus,
        busy: [recording, busy].concat(),
        seconds: AtomicU64::new(0),
    };
    let mut beside = Beside::on(Box::new(system), None, worked_ns, 1 << 16);
    let mut choice = None;
    for _ in 0..3 {
        for cpu in recording {
            beside.count(*cpu, 2000);
        }
        choice = beside.choice();
    }
    Some(choice?.cpus.iter().map(|cpu| cpu.0).collect())
}

#[test]
fn a_helper_stays_on_the_node_of_those_that_record() {
    let near = chosen("lab-nmart-four", &[4], &[]);
    assert_eq!(near, Some(vec![4, 5]));
    let near = chosen("lab-two-socket-smt", &[4], &[]).expect("a choice");
    assert!(near.iter().all(|cpu| *cpu > 3), "{near:?}");
    assert!(near.contains(&6) && near.contains(&7), "{near:?}");
}

#[test]
fn a_node_without_time_makes_it_leave() {
    let far = chosen("lab-nmart-four", &[4], &[5]).expect("a choice");
    assert!(far.iter().any(|cpu| ![4, 5].contains(cpu)), "{far:?}");
}

#[test]
fn on_one_package_it_runs_anywhere() {
    let all = chosen("firecracker-two-threads", &[0], &[]);
    assert_eq!(all, Some(vec![0, 1]));
}
