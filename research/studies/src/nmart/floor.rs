//! Longest times without what has nothing to do with the allocator.
//!
//! A run's longest call is nearly always one that the system interrupted. Where a program makes the
//! same calls in every run, the least time of each over several runs, the *floor*, is free of what
//! came by chance; what every run pays, such as a page that is touched first, stays in it. The
//! longest of the floors is then the longest time that the allocator itself takes.

use hearth_allocators::meter::format::Call;

/// The calls of runs, by place, with the least time of each so far.
#[derive(Clone, Debug, Default)]
pub struct Floor {
    calls: Vec<(Call, u32)>,
    runs: u32,
    differs: bool,
}

/// Floors over all runs: the longest and the sums.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Least {
    /// Runs that went in.
    pub runs: u32,
    /// The longest allocation, in the meter's unit.
    pub allocate_max: u32,
    /// The longest release.
    pub free_max: u32,
    /// All allocations.
    pub allocate_sum: u64,
    /// All releases.
    pub free_sum: u64,
}

impl Least {
    /// The figures by name, in the meter's unit.
    #[must_use]
    pub fn figures(&self) -> Vec<(String, f64)> {
        let figures = [
            ("floor_allocate_max", f64::from(self.allocate_max)),
            ("floor_free_max", f64::from(self.free_max)),
            ("floor_allocate_sum", self.allocate_sum as f64),
            ("floor_free_sum", self.free_sum as f64),
        ];
        let named = figures.into_iter();
        named
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

impl Floor {
    /// Takes a run in.
    pub fn add(&mut self, calls: impl Iterator<Item = (Call, u32)>) {
        self.runs += 1;
        if self.runs == 1 {
            self.calls = calls.collect();
            return;
        }
        let mut count = 0;
        for (at, (call, time)) in calls.enumerate() {
            count += 1;
            match self.calls.get_mut(at) {
                Some((known, least)) if *known == call => *least = (*least).min(time),
                _ => self.differs = true,
            }
        }
        self.differs |= count != self.calls.len();
    }

    /// Returns the number of runs.
    #[must_use]
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// The floor; none if runs made different calls, or if there was one only.
    #[must_use]
    pub fn least(&self) -> Option<Least> {
        if self.differs || self.runs < 2 {
            return None;
        }
        let mut least = Least {
            runs: self.runs,
            ..Least::default()
        };
        for &(call, time) in &self.calls {
            match call {
                Call::Allocate => {
                    least.allocate_max = least.allocate_max.max(time);
                    least.allocate_sum += u64::from(time);
                }
                Call::Free => {
                    least.free_max = least.free_max.max(time);
                    least.free_sum += u64::from(time);
                }
                Call::Realloc => {}
            }
        }
        Some(least)
    }
}
