//! Compares components with the tasks, goroutines, processes and threads of others: the cost of a
//! message, a component and a second core.
//!
//! A [`Row`] is a question with the programs that answer it: one in Insense below
//! `research/benches/runtime`, and the same shape in the programs below `research/benches/peers`.
//! Rows are independent of what is installed; a peer that is missing is named in what was
//! [found](Found) and nothing else changes. [`session`] says how a row is measured.

pub mod rows;
pub mod session;
pub mod sides;

pub use session::{Effort, Found, measure};
pub use sides::Who;

/// A question and the programs that answer it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub question: &'static str,
    pub fairness: &'static str,
    /// Stem of the Insense program below `research/benches/runtime`; the peers' programs know the
    /// row by the same name.
    pub program: &'static str,
    /// Number of workers, and of cores for each side.
    pub workers: usize,
    pub measure: Measure,
    pub besides: &'static [Beside],
    pub goal: Goal,
    /// Input of a small run and the answer it must give.
    pub small: (u32, i32),
}

/// The quantity measured.
#[derive(Clone, Copy, Debug)]
pub enum Measure {
    /// Nanoseconds for each of the `units` that a round has. The rounds are chosen for each side so
    /// that a run takes long enough; `answer` gives the output for that number of rounds.
    Time {
        unit: &'static str,
        units: f64,
        answer: fn(u32) -> i32,
    },
    /// Bytes resident for each of `count`, beyond what a run with one has; fewer for peers.
    Memory { count: u32, count_of_peers: u32 },
    /// Speed on as many cores as there are workers, divided by the speed on one.
    SpeedUp,
}

/// A peer that Hearth is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    pub who: Who,
    /// Reason why it is shown for information only; None if it counts as a peer.
    pub aside: Option<&'static str>,
}

/// Goal for Hearth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// Either is enough: this value, or this share of the best peer's.
    AtMost {
        value: Option<f64>,
        share_of_best: Option<f64>,
    },
    AtLeast(f64),
}

impl Row {
    pub fn hearth(&self) -> Who {
        Who::Hearth(self.program)
    }

    /// Unit that is written behind a value.
    pub fn unit(&self) -> String {
        match self.measure {
            Measure::Time { unit, .. } => format!("ns a {unit}"),
            Measure::Memory { .. } => "bytes each".to_owned(),
            Measure::SpeedUp => format!("times as fast on {} cores", self.workers),
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Goal::AtLeast(value) => write!(f, "at least {value}"),
            Goal::AtMost {
                value,
                share_of_best,
            } => {
                let share = share_of_best.map(|share| {
                    if share < 1.0 {
                        format!("1/{:.0} of the best", 1.0 / share)
                    } else {
                        format!("{share} times the best")
                    }
                });
                let value = value.map(|value| value.to_string());
                let parts: Vec<String> = [value, share].into_iter().flatten().collect();
                write!(f, "at most {}", parts.join(" or "))
            }
        }
    }
}

impl Goal {
    pub fn is_of_the_best(&self) -> bool {
        matches!(
            self,
            Goal::AtMost {
                share_of_best: Some(_),
                ..
            }
        )
    }

    /// `best`: the least of the peers that count, if there is one. None if it depends on a peer
    /// that is not there.
    pub fn is_reached(&self, value: f64, best: Option<f64>) -> Option<bool> {
        match *self {
            Goal::AtLeast(least) => Some(value >= least),
            Goal::AtMost {
                value: most,
                share_of_best,
            } => {
                let absolutely = most.is_some_and(|most| value <= most);
                let Some(share) = share_of_best else {
                    return Some(absolutely);
                };
                match best {
                    _ if absolutely => Some(true),
                    Some(best) => Some(value <= share * best),
                    None => None,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_half_of_a_goal_is_enough() {
        let goal = Goal::AtMost {
            value: Some(14.0),
            share_of_best: Some(1.0 / 6.0),
        };
        assert_eq!(goal.to_string(), "at most 14 or 1/6 of the best");
        assert_eq!(goal.is_reached(13.0, None), Some(true));
        assert_eq!(goal.is_reached(15.0, Some(90.0)), Some(true));
        assert_eq!(goal.is_reached(15.1, Some(90.0)), Some(false));
        assert_eq!(goal.is_reached(15.0, None), None);
    }

    #[test]
    fn goals_without_peers() {
        let goal = Goal::AtMost {
            value: Some(256.0),
            share_of_best: None,
        };
        assert_eq!(goal.is_reached(300.0, Some(1e6)), Some(false));
        assert_eq!(Goal::AtLeast(1.9).is_reached(1.95, None), Some(true));
        assert_eq!(Goal::AtLeast(1.9).to_string(), "at least 1.9");
    }
}
