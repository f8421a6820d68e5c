//! One mapping for all data, and which pages the system gave for it.

use std::sync::atomic::AtomicU64;

use hearth_sys::Refused;
use hearth_sys::mapping::{MapOptions, Mapping};
use serde::{Deserialize, Serialize};

use super::config::Config;
use super::walk::WORDS;

/// The pages that the data was on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pages {
    /// Huge ones of 2 MiB, all of it.
    Huge,
    /// Huge ones in part.
    Mixed,
    /// The smallest: huge ones were not asked for, or not available.
    Small,
}

pub(super) struct Pool {
    mapping: Mapping,
    pub(super) pages: Pages,
}

/// The parts of the pool.
pub(super) struct Parts<'a> {
    pub(super) section: &'a [AtomicU64],
    pub(super) local: Vec<&'a [AtomicU64]>,
}

impl Pool {
    pub(super) fn new(config: &Config) -> Result<Pool, Refused> {
        let bytes = config.pool_mib << 20;
        let options = match config.huge_pages {
            true => MapOptions::huge(bytes),
            false => MapOptions::small(bytes),
        };
        let mapping = Mapping::new(options)?;
        let pages = match config.huge_pages {
            true => pages_of(mapping.address(), mapping.bytes()),
            false => Pages::Small,
        };
        Ok(Pool { mapping, pages })
    }

    /// The section's data first, then each loop's, one after the other. The configuration was
    /// checked: they fit.
    pub(super) fn parts(&mut self, config: &Config) -> Parts<'_> {
        let words: &[AtomicU64] = self.mapping.atomics();
        let (section, rest) = words.split_at(config.section_lines * WORDS);
        let local = rest.chunks_exact(config.local_lines * WORDS);
        Parts {
            section,
            local: local.take(config.loops()).collect(),
        }
    }
}

/// Reads the system's report on the mapping that an address is in.
fn pages_of(address: usize, bytes: usize) -> Pages {
    let Ok(text) = std::fs::read_to_string("/proc/self/smaps") else {
        return Pages::Small;
    };
    let huge = huge_kib(&text, address).saturating_mul(1024);
    match huge {
        0 => Pages::Small,
        _ if huge >= bytes => Pages::Huge,
        _ => Pages::Mixed,
    }
}

/// Kibibytes on huge pages in the mapping that holds the address, from the text of `smaps`.
pub(super) fn huge_kib(text: &str, address: usize) -> usize {
    let mut is_inside = false;
    for line in text.lines() {
        let first = line.split_whitespace().next().unwrap_or("");
        if let Some((begin, end)) = first.split_once('-') {
            let hex = |text| usize::from_str_radix(text, 16);
            if let (Ok(begin), Ok(end)) = (hex(begin), hex(end)) {
                is_inside = (begin..end).contains(&address);
            }
        } else if is_inside && first == "AnonHugePages:" {
            let value = line.split_whitespace().nth(1);
            return value.and_then(|value| value.parse().ok()).unwrap_or(0);
        }
    }
    0
}
