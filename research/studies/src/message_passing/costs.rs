//! Known costs of the machine's caches, and the prediction that follows for the microbenchmark.
//!
//! The walks are dependent loads in random order, which is what the profile's latency curve was
//! measured with. A loop walks its own data and then, under the lock, over the section's: every
//! line comes back after all others, so that each load costs what the curve says of both together.
//! By message the loop's data and the section's are in caches of different cores, and each costs
//! what the curve says of it alone. A line that another core has modified costs a transfer.
//!
//! Per iteration of one thread, with `c` the curve, `n1` and `n2` lines of a loop and of the
//! section, `m` modified, `N` loops, `t` the transfer of a modified line and `h` the hand-over to a
//! core that looks for it:
//!
//! ```text
//! lock      section s = n2 · c(n1 + n2) + m · (1 − 1/N) · (t − c(n1 + n2));  l = n1 · c(n1 + n2)
//!           iterations/s = min(N / (l + s), 1 / (s + t))        t: the lock's own line, if N > 1
//! message   s = n2 · c(n2) + b · t;  l = n1 · c(n1)              b: lines of a message
//!           iterations/s = min(N / (l + s + 2h), 1 / (s + h))
//! ```

use hearth_machine::profile::{Carrier, LineState, Pages, Profile};
use hearth_sync::Mode;
use serde::{Deserialize, Serialize};

use super::engine::Config;
use super::engine::config::LINE_BYTES;

/// A profile's costs, as far as the study needs them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Capacities of the data caches, nearest first, bytes: measured, or claimed where they are
    /// not.
    pub caches: Vec<f64>,
    /// Bytes walked in random order, and the cost of a load then, ns.
    pub curve: Vec<(f64, f64)>,
    /// A line that another core has modified, ns.
    pub transfer_ns: f64,
    /// Hand-over to a core that looks for it, one way, ns.
    pub hand_over_ns: f64,
}

/// Predicted performance of a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Iterations of all loops per second.
    pub rate: f64,
    /// A section, ns.
    pub section_ns: f64,
    /// A loop's own data, ns.
    pub local_ns: f64,
    /// The section, and what must be done around it one at a time, is never idle.
    pub is_saturated: bool,
}

impl Costs {
    /// Reads the costs of a profile; `None` if it has no latency curve or no transfers between
    /// cores, like one that was not measured.
    #[must_use]
    pub fn of(profile: &Profile) -> Option<Costs> {
        let points = profile
            .curve
            .iter()
            .filter(|point| point.stride_bytes <= LINE_BYTES as u64);
        // Huge pages as in the benchmark, if the curve was measured with them too.
        let huge = |point: &&hearth_machine::profile::CurvePoint| point.pages != Pages::Small;
        let has_huge = points.clone().any(|point| huge(&point));
        let mut curve: Vec<(f64, f64)> = points
            .filter(|point| !has_huge || huge(point))
            .map(|point| (point.size_bytes as f64, point.load_ns.value))
            .collect();
        curve.sort_by(|a, b| a.0.total_cmp(&b.0));
        curve.dedup_by(|a, b| a.0 == b.0);
        let nearest = profile
            .transfers
            .iter()
            .filter(|transfer| transfer.state == LineState::Modified)
            .map(|transfer| (transfer.relation, transfer.read_ns.value))
            .filter(|(relation, _)| is_other_core(*relation))
            .min_by(|a, b| a.0.cmp(&b.0))?;
        let (relation, transfer_ns) = nearest;
        let hand_over = profile
            .hand_over(Carrier::Spin, relation)
            .map_or(transfer_ns, |cost| cost.one_way_ns.value);
        let caches = profile
            .caches
            .iter()
            .filter_map(|cache| cache.capacity_bytes());
        (curve.len() > 1).then(|| Costs {
            caches: caches.collect(),
            curve,
            transfer_ns,
            hand_over_ns: hand_over,
        })
    }

    /// Lines of a cache, 1 being the first.
    #[must_use]
    pub fn lines(&self, level: usize) -> Option<usize> {
        let bytes = self.caches.get(level.checked_sub(1)?)?;
        Some((bytes / LINE_BYTES as f64).round() as usize)
    }

    /// Cost of a dependent load in a walk over `lines` lines, ns: between the curve's points on a
    /// straight line over the size's logarithm.
    #[must_use]
    pub fn load_ns(&self, lines: usize) -> f64 {
        let bytes = (lines.max(1) * LINE_BYTES) as f64;
        let after = self.curve.partition_point(|(size, _)| *size < bytes);
        let last = self.curve.len().saturating_sub(1);
        let (Some(before), Some(after)) = (
            self.curve.get(after.saturating_sub(1).min(last)),
            self.curve.get(after.min(last)),
        ) else {
            return 0.0;
        };
        if after.0 <= before.0 {
            return after.1;
        }
        let share = ((bytes / before.0).ln() / (after.0 / before.0).ln()).clamp(0.0, 1.0);
        before.1 + share * (after.1 - before.1)
    }

    /// Predicts a configuration's performance if each thread has a core of its own.
    #[must_use]
    pub fn expect(&self, config: &Config) -> Expected {
        let loops = config.loops() as f64;
        let (own, section) = (config.local_lines, config.section_lines);
        let (local_ns, section_ns, around, serial) = match config.mode {
            Mode::Message => {
                let message = config.message_bytes.div_ceil(LINE_BYTES) as f64 * self.transfer_ns;
                let section_ns = section as f64 * self.load_ns(section) + message;
                let local_ns = own as f64 * self.load_ns(own);
                let h = self.hand_over_ns;
                (local_ns, section_ns, 2.0 * h, h)
            }
            _ => {
                let load = self.load_ns(own + section);
                let others = 1.0 - 1.0 / loops;
                let fetched =
                    config.modified_lines as f64 * others * (self.transfer_ns - load).max(0.0);
                let lock = if loops > 1.0 { self.transfer_ns } else { 0.0 };
                (
                    own as f64 * load,
                    section as f64 * load + fetched,
                    0.0,
                    lock,
                )
            }
        };
        let together = loops / (local_ns + section_ns + around);
        let one_by_one = 1.0 / (section_ns + serial);
        Expected {
            rate: 1e9 * together.min(one_by_one),
            section_ns,
            local_ns,
            is_saturated: one_by_one <= together,
        }
    }
}

fn is_other_core(relation: hearth_machine::relation::Relation) -> bool {
    use hearth_machine::relation::Closeness::{Same, SmtSibling};
    !matches!(relation.closeness, Same | SmtSibling)
}
