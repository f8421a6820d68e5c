//! The cache-impact source's model, equations 3.1 to 3.7 and 7.1 to 7.16, in its *intended* form.
//!
//! One thread writes `n` bytes, then a second one reads them: `d_comm = d_write + Control +
//! d_read`. The data lies in the smallest level that holds all of it (a step, not a mixture). The
//! first word of a line pays that level's latency, the other words of the line pay the first
//! level's. The place of the two threads enters through `Control` alone.
//!
//! The printed equations contradict each other in places. [`ERRATA`] lists each difference,
//! [`printed`] evaluates the equations as they stand on the page, and a [`Defect`] commits one
//! error at a time, for comparison.

mod defects;
mod errata;
mod parameters;
pub mod printed;

use hearth_machine::relation::SourceType;

pub use defects::Defect;
pub use errata::{ERRATA, Erratum};
pub use parameters::{BeyondLastLevel, Latency, Level, Parameters, Printed, ZeroData};

/// The three classes of the source's taxonomy, by where the two threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// Both threads on one core (experiment 2).
    One,
    /// Different cores of one chip (experiment 3).
    Two,
    /// Different chips (experiment 4).
    Three,
}

impl Type {
    /// All three, in order.
    pub const ALL: [Self; 3] = [Self::One, Self::Two, Self::Three];

    /// The source's number: 1, 2 or 3.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.index() as u32 + 1
    }

    /// The source's experiment with this placement: 2, 3 or 4.
    #[must_use]
    pub const fn experiment(self) -> u32 {
        self.number() + 1
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::One => 0,
            Self::Two => 1,
            Self::Three => 2,
        }
    }
}

impl From<SourceType> for Type {
    fn from(kind: SourceType) -> Self {
        match kind {
            SourceType::SameCore => Self::One,
            SourceType::SameChip => Self::Two,
            SourceType::OtherChip => Self::Three,
        }
    }
}

/// Writing or reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The first thread's part.
    Write,
    /// The second thread's part.
    Read,
}

/// Computation of the term for faults and interrupts beyond the last cache level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slope {
    /// From the costs and rates of the events (equations 7.7 and 7.8).
    Derived,
    /// The source's rounded number of nanoseconds a byte (equations 7.11 and 7.12), where the
    /// parameters have one; otherwise as [`Slope::Derived`].
    Rounded,
}

/// `Control` taken apart (equation 3.4). All fields in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Control {
    /// Leaving the first thread.
    pub exit_first_ns: f64,
    /// Switching between the threads.
    pub switch_ns: f64,
    /// Entering the second thread.
    pub enter_second_ns: f64,
    /// Interrupts. With context switches they make up the source's `I_ics`.
    pub interrupts_ns: f64,
    /// Context switches that come with interrupts.
    pub context_switches_ns: f64,
    /// Major page faults.
    pub major_faults_ns: f64,
    /// Minor page faults.
    pub minor_faults_ns: f64,
}

impl Control {
    /// `I_ics = I_int + I_cs`, ns: the source found that the two come together.
    #[must_use]
    pub fn interrupts_and_switches_ns(&self) -> f64 {
        self.interrupts_ns + self.context_switches_ns
    }

    /// `I`, ns: the unrequested addition of the operating system.
    #[must_use]
    pub fn unwanted_ns(&self) -> f64 {
        self.interrupts_and_switches_ns() + self.major_faults_ns + self.minor_faults_ns
    }

    /// The part that does not vary, ns.
    #[must_use]
    pub fn deterministic_ns(&self) -> f64 {
        self.exit_first_ns + self.switch_ns + self.enter_second_ns
    }

    /// `Control`, ns.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        self.deterministic_ns() + self.unwanted_ns()
    }
}

impl Parameters {
    /// The latency of the smallest level that holds `bytes`; memory when none does.
    #[must_use]
    pub fn latency_at(&self, bytes: u64) -> Latency {
        self.levels
            .iter()
            .find(|level| bytes <= level.capacity_bytes)
            .map_or(self.memory, |level| level.latency)
    }

    /// `l1w` or `l1r` (equation 3.3), ns: the accesses that find their line in the first level,
    /// `(n/ns − n/cls) · lat_L1`.
    #[must_use]
    pub fn first_level_rest_ns(&self, access: Access, bytes: u64) -> f64 {
        let n = bytes as f64;
        (n / self.word_bytes - n / self.line_bytes) * self.first_level().of(access)
    }

    /// `d_write` (3.2) or `d_read` (3.5), ns.
    #[must_use]
    pub fn side_ns(&self, access: Access, bytes: u64) -> f64 {
        let n = bytes as f64;
        let fits_first = self
            .levels
            .first()
            .is_some_and(|level| bytes <= level.capacity_bytes);
        if fits_first {
            n / self.word_bytes * self.first_level().of(access)
        } else {
            n / self.line_bytes * self.latency_at(bytes).of(access)
                + self.first_level_rest_ns(access, bytes)
        }
    }

    /// `Control_t(n)` (7.5 to 7.12), ns: the cost of an exchange of no data, and beyond the last
    /// cache level the faults and interrupts that the source saw there.
    ///
    /// Two faults are taken off because the base holds them already.
    #[must_use]
    pub fn control_ns(&self, kind: Type, bytes: u64, slope: Slope) -> f64 {
        let base = self.zero_data.control_ns[kind.index()];
        let last = self.levels.last().map_or(0, |level| level.capacity_bytes);
        match &self.beyond {
            Some(beyond) if bytes > last => {
                base - beyond.faults_in_base * beyond.fault_ns
                    + beyond.per_byte_ns(slope) * bytes as f64
            }
            _ => base,
        }
    }

    /// `d_comm` (3.1, 3.7; 7.13 to 7.16), ns.
    #[must_use]
    pub fn communication_ns(&self, kind: Type, bytes: u64, slope: Slope) -> f64 {
        self.with_control_ns(bytes, self.control_ns(kind, bytes, slope))
    }

    /// `d_comm` (3.7), ns, with a `Control` of one's own, for instance [`Control::total_ns`].
    #[must_use]
    pub fn with_control_ns(&self, bytes: u64, control_ns: f64) -> f64 {
        self.side_ns(Access::Write, bytes) + control_ns + self.side_ns(Access::Read, bytes)
    }

    /// Bytes a nanosecond: `n / d_comm`. Zero for no bytes.
    #[must_use]
    pub fn throughput_bytes_per_ns(&self, kind: Type, bytes: u64, slope: Slope) -> f64 {
        bytes as f64 / self.communication_ns(kind, bytes, slope)
    }

    /// The type that costs least for `bytes` among `feasible`, with its cost in ns: the decision
    /// procedure which the source implies. The lower number wins a draw. `None` for an empty slice.
    #[must_use]
    pub fn cheapest(&self, bytes: u64, feasible: &[Type], slope: Slope) -> Option<(Type, f64)> {
        feasible
            .iter()
            .map(|&kind| (kind, self.communication_ns(kind, bytes, slope)))
            .min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)))
    }
}
