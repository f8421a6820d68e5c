//! Counts of a run.

use serde::{Deserialize, Serialize};

use super::pool::Pages;

/// One repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Iterations of all loops per second.
    pub iterations_per_second: f64,
    /// Cycles of the time stamp counter, for as long as threads had a core, over iterations: all
    /// threads of the process, the server among them, by the system's accounts. Who looks for an
    /// answer has a core; a sleeping thread has none.
    pub cycles_per_iteration: f64,
    /// 100 × (1 − dequeues that found nothing / dequeues), as the source has it. None if nobody
    /// served.
    pub server_busy_percent: Option<f64>,
    /// Lines that a pass through the section modified, counted in the data afterwards.
    pub modified_per_pass: f64,
    /// Different lines that were modified at all.
    pub lines_modified: usize,
    /// Iterations of the loop that made fewest, over those of the loop that made most.
    pub fairness: f64,
    /// Length of the measurement, seconds.
    pub seconds: f64,
    /// The pages that the data was on.
    pub pages: Pages,
    /// The section's report on itself.
    pub explained: String,
}

/// The median and the range of several values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The mean, which the source gives.
    pub mean: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

/// All repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Iterations of all loops per second.
    pub iterations_per_second: Spread,
    /// The spread of [`Measured::cycles_per_iteration`].
    pub cycles_per_iteration: Spread,
    /// The spread of [`Measured::server_busy_percent`].
    pub server_busy_percent: Option<Spread>,
    /// The single repetitions.
    pub repetitions: Vec<Measured>,
}

impl Spread {
    /// Computes the spread of `values`; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let count = values.len();
        let (least, most) = (*values.first()?, *values.last()?);
        Some(Spread {
            median: (values[(count - 1) / 2] + values[count / 2]) / 2.0,
            mean: values.iter().sum::<f64>() / count as f64,
            least,
            most,
        })
    }
}

impl Summary {
    /// Summarises `repetitions`; `None` if there are none.
    pub fn of(repetitions: Vec<Measured>) -> Option<Summary> {
        let spread = |figure: fn(&Measured) -> f64| Spread::of(repetitions.iter().map(figure));
        Some(Summary {
            iterations_per_second: spread(|run| run.iterations_per_second)?,
            cycles_per_iteration: spread(|run| run.cycles_per_iteration)?,
            server_busy_percent: Spread::of(
                repetitions.iter().filter_map(|run| run.server_busy_percent),
            ),
            repetitions,
        })
    }
}
