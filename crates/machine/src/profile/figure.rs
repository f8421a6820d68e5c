//! A number with its uncertainty.

use serde::{Deserialize, Serialize};

/// Origin of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// Measured on this machine.
    Measured,
    /// Claimed by firmware, the kernel or a hypervisor, and not tested.
    Claimed,
    /// A stated default of Hearth's.
    Assumed,
    /// Inferred from figures measured elsewhere on this machine.
    Inferred,
}

/// A number with its interval. The unit is in the name of the field that holds the figure.
///
/// `low ≤ value ≤ high`, all finite. For a measured figure they bound a 95 % interval that covers
/// run-to-run variation; for an assumed one, the range seen on other machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The estimate.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// Samples that the estimate rests on; zero unless measured or inferred.
    #[serde(default)]
    pub samples: u64,
    /// Samples discarded as disturbed (steal, interrupts, migration, gaps).
    #[serde(default)]
    pub discarded: u64,
    /// Its origin.
    pub provenance: Provenance,
}

impl Figure {
    /// A measured figure.
    #[must_use]
    pub const fn measured(value: f64, low: f64, high: f64, samples: u64, discarded: u64) -> Self {
        Self {
            value,
            low,
            high,
            samples,
            discarded,
            provenance: Provenance::Measured,
        }
    }

    /// A default: the value, and an interval from `value / factor` to `value · factor`.
    #[must_use]
    pub fn assumed(value: f64, factor: f64) -> Self {
        Self {
            value,
            low: value / factor,
            high: value * factor,
            samples: 0,
            discarded: 0,
            provenance: Provenance::Assumed,
        }
    }

    /// A claimed value, with no interval but itself.
    #[must_use]
    pub const fn claimed(value: f64) -> Self {
        Self {
            value,
            low: value,
            high: value,
            samples: 0,
            discarded: 0,
            provenance: Provenance::Claimed,
        }
    }

    /// The same figure inferred for something it was not measured on.
    #[must_use]
    pub const fn inferred(self) -> Self {
        Self {
            provenance: Provenance::Inferred,
            ..self
        }
    }

    /// The figure and its interval multiplied by a positive factor.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            low: self.low * factor,
            high: self.high * factor,
            ..self
        }
    }

    /// Whether the figure is valid: finite, and inside its interval.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let finite = self.value.is_finite() && self.low.is_finite() && self.high.is_finite();
        finite && self.low <= self.value && self.value <= self.high
    }
}
