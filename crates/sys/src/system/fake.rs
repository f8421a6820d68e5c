//! An imagined machine: files as text, cores that come and go, refusals on demand.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::System;
use crate::affinity::Pinned;
use crate::policy::Policy;
use crate::refused::{Reason, Refused};

/// An imagined machine. Threads "pinned" by it run wherever the real system lets them, so
/// measurements on it mean nothing; that they are made, refused or cut short does.
#[derive(Debug, Default)]
pub struct Fake {
    files: BTreeMap<String, String>,
    forbidden: BTreeSet<String>,
    allowed: Option<Vec<usize>>,
    nodes: Vec<usize>,
    pins_left: Mutex<BTreeMap<usize, u32>>,
    may_pin: bool,
    pins: Mutex<Vec<usize>>,
    placements: Mutex<Vec<Policy>>,
    /// Time that each look at the clock takes, and what it shows. Zero: the real clock.
    look_ns: u64,
    now_ns: AtomicU64,
}

impl Fake {
    /// A machine that has only these cores, all online and allowed.
    pub fn with_cores(cores: &[usize]) -> Fake {
        let listed: Vec<String> = cores.iter().map(usize::to_string).collect();
        Fake {
            may_pin: true,
            allowed: Some(cores.to_vec()),
            ..Fake::default()
        }
        .file("/sys/devices/system/cpu/online", listed.join(","))
    }

    /// A recorded machine: every file by its path. Its cores are those of the recorded
    /// `cpu/online`, its nodes those of `node/has_memory`.
    pub fn recorded(files: impl IntoIterator<Item = (String, String)>) -> Fake {
        let files: BTreeMap<String, String> = files.into_iter().collect();
        let list = |path: &str| files.get(path).map(|text| super::parse_list(text));
        Fake {
            allowed: list("/sys/devices/system/cpu/online"),
            nodes: list("/sys/devices/system/node/has_memory").unwrap_or_default(),
            files,
            may_pin: true,
            ..Fake::default()
        }
    }

    /// Adds or replaces a file.
    pub fn file(mut self, path: impl Into<String>, text: impl Into<String>) -> Fake {
        self.files.insert(path.into(), text.into());
        self
    }

    /// Forbids a path and all below it.
    pub fn forbid(mut self, path: impl Into<String>) -> Fake {
        self.forbidden.insert(path.into());
        self
    }

    /// Limits the process to these cores.
    pub fn allow(mut self, cores: &[usize]) -> Fake {
        self.allowed = Some(cores.to_vec());
        self
    }

    /// Gives the machine these memory nodes.
    pub fn with_nodes(mut self, nodes: &[usize]) -> Fake {
        self.nodes = nodes.to_vec();
        self
    }

    /// Refuses every pin, as a filter in a container may.
    pub fn without_pinning(mut self) -> Fake {
        self.may_pin = false;
        self
    }

    /// Takes a core offline after a number of pins to it.
    pub fn offline_after(self, core: usize, pins: u32) -> Fake {
        self.pins_left
            .lock()
            .expect("no holder panics")
            .insert(core, pins);
        self
    }

    /// Lets each look at the clock take this many nanoseconds, and everything else no time: a
    /// machine as slow as wanted, the same in every run.
    pub fn with_slow_clock(mut self, look_ns: u64) -> Fake {
        self.look_ns = look_ns;
        self
    }

    /// The cores pinned to so far, in order.
    pub fn pins(&self) -> Vec<usize> {
        self.pins.lock().expect("no holder panics").clone()
    }

    /// The memory policies set so far, in order.
    pub fn placements(&self) -> Vec<Policy> {
        self.placements.lock().expect("no holder panics").clone()
    }

    fn is_gone(&self, core: usize) -> bool {
        let left = self.pins_left.lock().expect("no holder panics");
        left.get(&core) == Some(&0)
    }

    fn check(&self, path: &str) -> io::Result<()> {
        let is_below = |folder: &String| {
            path.strip_prefix(folder.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if self.forbidden.iter().any(is_below) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        Ok(())
    }
}

impl System for Fake {
    fn read(&self, path: &str) -> io::Result<String> {
        self.check(path)?;
        let text = self.files.get(path).cloned();
        text.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.check(path)?;
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let names: BTreeSet<String> = self
            .files
            .keys()
            .filter_map(|file| file.strip_prefix(&prefix)?.split('/').next())
            .map(str::to_owned)
            .collect();
        if names.is_empty() {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        Ok(names.into_iter().collect())
    }

    fn allowed(&self) -> io::Result<Vec<usize>> {
        match &self.allowed {
            Some(cores) => Ok(cores
                .iter()
                .copied()
                .filter(|&core| !self.is_gone(core))
                .collect()),
            None => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
        }
    }

    fn pin(&self, core: usize) -> Result<Pinned, Refused> {
        let refuse = |reason| {
            let next = "choose a core that is online and in this process's set";
            Refused::because("pin a thread to", format!("core {core}"), reason, next)
        };
        if !self.may_pin {
            return Err(refuse(Reason::Permission));
        }
        if !self.allowed().is_ok_and(|cores| cores.contains(&core)) {
            return Err(refuse(Reason::Invalid));
        }
        if let Some(left) = self
            .pins_left
            .lock()
            .expect("no holder panics")
            .get_mut(&core)
        {
            *left = left.saturating_sub(1);
        }
        self.pins.lock().expect("no holder panics").push(core);
        Ok(Pinned::nowhere(core))
    }

    fn now_ns(&self) -> u64 {
        if self.look_ns == 0 {
            return crate::time::monotonic_ns();
        }
        // Relaxed: the number says nothing about other memory.
        self.now_ns.fetch_add(self.look_ns, Ordering::Relaxed) + self.look_ns
    }

    fn memory_nodes(&self) -> Result<Vec<usize>, Refused> {
        if self.nodes.is_empty() {
            let (action, next) = ("read the memory nodes of", "measure without nodes");
            return Err(Refused::because(
                action,
                "this process",
                Reason::Absent,
                next,
            ));
        }
        Ok(self.nodes.clone())
    }

    fn place_memory(&self, policy: &Policy) -> Result<(), Refused> {
        let known = match policy {
            Policy::Bind(nodes) | Policy::Interleave(nodes) | Policy::PreferredMany(nodes) => {
                nodes.iter().all(|node| self.nodes.contains(node))
            }
            Policy::Preferred(node) => self.nodes.contains(node),
            Policy::Default | Policy::Local | Policy::Unknown(_) => true,
        };
        if !known {
            let next = "choose nodes that have memory";
            let object = format!("{policy:?}");
            return Err(Refused::because(
                "set the memory policy",
                object,
                Reason::Invalid,
                next,
            ));
        }
        self.placements
            .lock()
            .expect("no holder panics")
            .push(policy.clone());
        Ok(())
    }
}
