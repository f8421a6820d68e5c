//! The worst lateness of small sets, with a proof that it is the worst.
//!
//! Two ways, of which the first that suits is taken:
//!
//! - [`Way::Everything`]: the model leaves few choices open, and each scenario is simulated.
//! - [`Way::Constraints`]: under fixed priorities with preemption, tasks that stay on a core and
//!   wait for nothing. The busy period that ends with a job becomes a problem for a solver of
//!   constraints over arrival times; see `solver`. What the solver finds is simulated.

use thiserror::Error;

use crate::genes::{Layout, longest_is_worst};
use crate::model::Model;
use crate::scenario::Scenario;
use crate::sim::evaluate;

use super::solver;

/// Most scenarios that are simulated one by one.
pub const EVERYTHING_MAX: u64 = 100_000;

/// The way to a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each scenario was simulated.
    Everything,
    /// A solver of constraints found that there is no worse one.
    Constraints,
}

/// The worst that can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    /// Largest lateness of any job in any scenario of the mode, in nanoseconds.
    pub lateness_ns: i64,
    /// A scenario with it.
    pub scenario: Scenario,
    /// The way to the proof.
    pub way: Way,
}

/// Reason why the worst is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotExact {
    /// No way suits the model.
    #[error(
        "the exact search takes tasks of the clock or the outside that stay on a core, wait for nothing and have priorities of their own, or at most {EVERYTHING_MAX} scenarios: choose `--search genetic`"
    )]
    Unsuited,
    /// No task has a deadline.
    #[error("no task of the mode has a deadline: give one to be late for")]
    NoDeadline,
    /// The numbers do not fit the solver.
    #[error(
        "the times of the set need a finer unit than the solver has: round them, or choose `--search genetic`"
    )]
    Numbers,
    /// The set is too large for the solver.
    #[error(
        "a busy period of `{task}` may have {found} jobs, and the solver takes {max}: shorten the horizon, or choose `--search genetic`"
    )]
    Large {
        /// The task.
        task: String,
        /// Number of jobs.
        found: usize,
        /// Most jobs.
        max: usize,
    },
    /// The caller ended it.
    #[error("it was ended before the proof was complete")]
    Ended,
}

/// The worst lateness in a mode. `goes_on` is asked from time to time.
///
/// # Errors
///
/// The reason why it is not known.
pub fn worst_lateness(
    model: &Model,
    mode: usize,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Exact, NotExact> {
    if !model
        .tasks_in(mode)
        .any(|(_, task)| task.deadline_ns.is_some())
    {
        return Err(NotExact::NoDeadline);
    }
    let is_plain = longest_is_worst(model, mode);
    let layout = Layout::new(model, mode, is_plain);
    if layout.count() <= EVERYTHING_MAX {
        return everything(model, &layout, goes_on);
    }
    match is_plain {
        true => solver::worst_lateness(model, mode, goes_on),
        false => Err(NotExact::Unsuited),
    }
}

fn everything(
    model: &Model,
    layout: &Layout,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Exact, NotExact> {
    let blank = Scenario::empty(model, layout.mode);
    let mut genes: Vec<u64> = layout.ranges.iter().map(|range| range.from_ns).collect();
    let mut worst: Option<Exact> = None;
    loop {
        if !goes_on() {
            return Err(NotExact::Ended);
        }
        let scenario = layout.scenario(model, &blank, &genes);
        let late = evaluate(model, &scenario).lateness_ns_max();
        if let Some((lateness_ns, _)) = late
            && worst
                .as_ref()
                .is_none_or(|one| one.lateness_ns < lateness_ns)
        {
            worst = Some(Exact {
                lateness_ns,
                scenario,
                way: Way::Everything,
            });
        }
        // The next number of an odometer whose wheels are the free genes.
        let mut wheels = layout.free.iter();
        loop {
            let Some(&wheel) = wheels.next() else {
                return worst.ok_or(NotExact::NoDeadline);
            };
            if genes[wheel] < layout.ranges[wheel].to_ns {
                genes[wheel] += 1;
                break;
            }
            genes[wheel] = layout.ranges[wheel].from_ns;
        }
    }
}
