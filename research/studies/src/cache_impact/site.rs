//! The site of the study: the machine, and which of its hardware threads play which part.

use hearth_machine::capture::{Capture, Reading};
use hearth_machine::relation::SourceType;
use hearth_machine::topology::{OsThread, Thread, Topology};
use hearth_published::source::Type;
use hearth_sys::System;
use serde::{Deserialize, Serialize};

use super::options::{CacheImpactOptions, Defect};
use crate::StudyError;
use crate::files::Files;

/// A cache as the system claims it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedCache {
    /// 1 is nearest to the core.
    pub level: u8,
    /// Its capacity.
    pub bytes: u64,
    /// Number of hardware threads that share it.
    pub threads: u32,
}

/// The cores that a sender and a receiver are asked to run on, by the system's numbers. Negative
/// ones are the source's; no system has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// The writer's.
    pub sender: i64,
    /// The reader's.
    pub receiver: i64,
}

/// The machine that results come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The processor's name.
    pub cpu: String,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The hypervisor, if this is a virtual machine.
    pub hypervisor: Option<String>,
    /// Chips.
    pub packages: u32,
    /// Cores.
    pub cores: u32,
    /// Hardware threads.
    pub threads: u32,
    /// NUMA nodes.
    pub nodes: u32,
    /// Data caches, nearest first, one of each level.
    pub caches: Vec<ClaimedCache>,
    /// Bytes a line.
    pub line_bytes: u32,
    /// The hardware threads that this process may use, by the system's numbers.
    pub allowed: Vec<usize>,
    /// Places of types 1 to 3; `None` if the machine has no such pair.
    pub places: [Option<Places>; 3],
}

impl Site {
    /// Reads the system's files.
    ///
    /// # Errors
    /// They do not describe a machine.
    pub fn read(system: &dyn System, options: &CacheImpactOptions) -> Result<Site, StudyError> {
        let machine = |why: String| StudyError::Machine { why };
        let capture = Capture::gather(&mut Files(system));
        let Reading {
            topology,
            environment,
            ..
        } = capture.read().map_err(|error| machine(error.to_string()))?;
        let allowed = system
            .allowed()
            .map_err(|error| machine(error.to_string()))?;
        let places = if options.has(Defect::Pinning) {
            published_places()
        } else {
            places(&topology, &allowed)
        };
        let count = |parts: usize| u32::try_from(parts).unwrap_or(u32::MAX);
        Ok(Site {
            cpu: environment.processor.unwrap_or_else(|| "unknown".into()),
            kernel: environment.kernel,
            hypervisor: environment.hypervisor,
            packages: count(topology.packages().len()),
            cores: count(topology.cores().len()),
            threads: count(topology.threads().len()),
            nodes: count(topology.nodes().len()),
            caches: caches(&topology),
            line_bytes: topology.caches().iter().find_map(|c| c.line).unwrap_or(64),
            allowed,
            places,
        })
    }

    /// Returns the places of a type, if the machine can show it.
    #[must_use]
    pub fn places(&self, kind: Type) -> Option<Places> {
        self.places[index(kind)]
    }

    /// The processor's name as part of a file's name: no space, no hyphen.
    #[must_use]
    pub fn cpu_type(&self) -> String {
        file_part(&self.cpu)
    }

    /// Says why a type is left out.
    #[must_use]
    pub fn why_not(&self, kind: Type) -> String {
        let (experiment, wanted) = match kind {
            Type::One => (2, "a core"),
            Type::Two => (3, "two cores of one chip"),
            Type::Three => (4, "cores of two chips"),
        };
        format!(
            "experiment {experiment} is left out: it needs {wanted}, and this process may use {} \
             in {}",
            counted(self.allowed.len(), "hardware thread"),
            counted(self.packages as usize, "chip"),
        )
    }
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// A type as an index of an array of three.
pub(crate) fn index(kind: Type) -> usize {
    kind.number() as usize - 1
}

/// Letters, digits and underscores of a processor's name, without its marks and its clock.
pub(crate) fn file_part(name: &str) -> String {
    let name = name.replace("(R)", " ").replace("(TM)", " ");
    let name = name.split('@').next().unwrap_or_default();
    let words = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty() && *word != "CPU");
    let text = words.collect::<Vec<_>>().join("_");
    if text.is_empty() {
        "unknown".into()
    } else {
        text
    }
}

/// The places in the source's programs.
fn published_places() -> [Option<Places>; 3] {
    [0, 1, -1].map(|receiver| {
        Some(Places {
            sender: 0,
            receiver,
        })
    })
}

/// Finds for each type the first pair that this process may use.
fn places(topology: &Topology, allowed: &[usize]) -> [Option<Places>; 3] {
    let threads: Vec<Thread> = allowed
        .iter()
        .filter_map(|&core| topology.thread_of(OsThread(u32::try_from(core).ok()?)))
        .collect();
    let number = |thread: Thread| i64::from(topology.os_thread(thread).0);
    let pair = |wanted: SourceType| {
        let pairs = threads
            .iter()
            .flat_map(|&sender| threads.iter().map(move |&receiver| (sender, receiver)));
        let mut found = pairs.filter(|&(sender, receiver)| {
            topology.relation(sender, receiver).source_type() == wanted
        });
        // The same core means one hardware thread for both, as in the source; siblings come later.
        found.next().map(|(sender, receiver)| Places {
            sender: number(sender),
            receiver: number(receiver),
        })
    };
    [
        pair(SourceType::SameCore),
        pair(SourceType::SameChip),
        pair(SourceType::OtherChip),
    ]
}

fn caches(topology: &Topology) -> Vec<ClaimedCache> {
    let Some(first) = topology.all_threads().next() else {
        return Vec::new();
    };
    let mut caches: Vec<ClaimedCache> = Vec::new();
    for cache in topology.data_caches(first) {
        if caches.iter().all(|known| known.level != cache.level) {
            caches.push(ClaimedCache {
                level: cache.level,
                bytes: cache.size.0,
                threads: u32::try_from(cache.threads.len()).unwrap_or(u32::MAX),
            });
        }
    }
    caches.sort_by_key(|cache| cache.level);
    caches
}
