//! What the placer decided, for those who ask: a line each, in the file that `HEARTH_PLACE_LOG` names.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use super::Proposal;
use super::cores::Change;
use super::site::Site;
use super::statistics::Statistics;
use crate::registry;

/// So many moves are told by name; the others are counted.
const NAMED: usize = 16;

pub(super) struct Log {
    file: Option<File>,
    began: Instant,
}

impl Log {
    pub(super) fn open(began: Instant) -> Log {
        let path = std::env::var_os("HEARTH_PLACE_LOG").filter(|path| !path.is_empty());
        Log {
            // Who asked for the file has made sure that it can be written.
            file: path.and_then(|path| File::create(path).ok()),
            began,
        }
    }

    fn line(&mut self, text: &str) {
        if let Some(file) = &mut self.file {
            let seconds = self.began.elapsed().as_secs_f64();
            // Nobody is left to tell if this fails.
            let _ = writeln!(file, "{seconds:.3} s: {text}");
        }
    }

    /// Cores came and went.
    pub(super) fn cores(&mut self, change: &Change) {
        if self.file.is_none() {
            return;
        }
        let list = |cores: &[usize]| {
            let numbers: Vec<String> = cores.iter().map(usize::to_string).collect();
            numbers.join(", ")
        };
        let mut parts = Vec::new();
        if !change.lost.is_empty() {
            parts.push(format!("may not be used any more: {}", list(&change.lost)));
        }
        if !change.found.is_empty() {
            parts.push(format!("may be used: {}", list(&change.found)));
        }
        self.line(&format!("cores that {}", parts.join("; that ")));
    }

    /// Components move.
    pub(super) fn moves(&mut self, statistics: &Statistics, site: &Site, proposal: &Proposal) {
        let Proposal {
            scene,
            plan,
            moves,
            now_ns,
            then_ns,
            ..
        } = proposal;
        if self.file.is_none() {
            return;
        }
        let known = statistics.components();
        let mut told: Vec<String> = Vec::new();
        for &one in moves.iter().take(NAMED) {
            let who = known[one].0.who;
            let to = site.core_of(plan.0[one]);
            let name = registry::name(who.of, who.number);
            told.push(match scene.at[one] {
                Some(from) => format!("{name} {}→{to}", site.core_of(from)),
                None => format!("{name} →{to}"),
            });
        }
        if moves.len() > NAMED {
            told.push(format!("and {} more", moves.len() - NAMED));
        }
        let less = 100.0 * (1.0 - then_ns / now_ns.max(f64::MIN_POSITIVE));
        self.line(&format!(
            "{} of {} components move, for {less:.0} % less: {}",
            moves.len(),
            scene.ids.len(),
            told.join(", ")
        ));
    }
}
