//! Ways to choose a number of threads: those of tools, and ours.

use std::time::Duration;

use hearth_cores::Cores;
use hearth_cores::calibrate::{Calibration, calibrate};

/// A way to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One thread for each CPU that the program may use: TBB, OpenMP, rayon. Takes no notice of
    /// others.
    All,
    /// CPUs less the load average over 15 minutes, as gcc's libgomp has it with `OMP_DYNAMIC`.
    LoadAverage,
    /// The same with the average that others would have brought about after a long time.
    LoadAverageSettled,
    /// More or fewer threads as long as the program's own throughput rises, as the .NET runtime's
    /// pool climbs.
    HillClimbing,
    /// [`Cores::measured`]: looks at others.
    Measured,
    /// [`calibrate`]: looks at the own section's times.
    Calibrated,
    /// The same in the first second, and where that cannot tell, [`Policy::Measured`].
    CalibratedElseMeasured,
}

impl Policy {
    /// All, in the order of tables.
    pub const ALL: [Policy; 7] = [
        Policy::All,
        Policy::LoadAverage,
        Policy::LoadAverageSettled,
        Policy::HillClimbing,
        Policy::Measured,
        Policy::Calibrated,
        Policy::CalibratedElseMeasured,
    ];

    /// Its name in tables and on the command line.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Policy::All => "all",
            Policy::LoadAverage => "loadavg",
            Policy::LoadAverageSettled => "loadavg-settled",
            Policy::HillClimbing => "hill",
            Policy::Measured => "measured",
            Policy::Calibrated => "calibrated",
            Policy::CalibratedElseMeasured => "calibrated-or-measured",
        }
    }

    /// The policy of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.id() == name)
    }
}

/// A choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    /// Threads, one at least.
    pub threads: usize,
    /// Foreign threads, if the way estimates them and can tell.
    pub foreign: Option<f64>,
}

/// Facts that policies look at.
pub struct Surroundings<'a> {
    /// CPUs that the program may use.
    pub cpus: usize,
    /// Threads that others run, which only the settled load average is told.
    pub foreign: usize,
    /// Load average over 15 minutes.
    pub load_average: f64,
    /// Longest time of a choice.
    pub time_max: Duration,
    /// Runs the own section with static parts and so many threads.
    pub section: &'a mut dyn FnMut(usize) -> Duration,
    /// Own throughput with so many threads.
    pub throughput: &'a mut dyn FnMut(usize) -> f64,
}

/// Chooses.
pub fn choose(policy: Policy, around: &mut Surroundings<'_>) -> Chosen {
    let cpus = around.cpus.max(1);
    let only = |threads: usize| Chosen {
        threads,
        foreign: None,
    };
    match policy {
        Policy::All => only(cpus),
        Policy::LoadAverage => only(less_load(cpus, around.load_average)),
        Policy::LoadAverageSettled => only(less_load(cpus, around.foreign as f64)),
        Policy::HillClimbing => only(climb(cpus, 4 * cpus, around.throughput)),
        Policy::Measured => measured(),
        Policy::Calibrated | Policy::CalibratedElseMeasured => {
            let how = Calibration {
                cpus: Some(cpus),
                time_max: around.time_max,
                ..Calibration::default()
            };
            let found = calibrate(&how, around.section);
            match policy {
                Policy::CalibratedElseMeasured if found.doubt.is_some() => measured(),
                _ => Chosen {
                    threads: found.threads,
                    foreign: found.foreign,
                },
            }
        }
    }
}

fn measured() -> Chosen {
    /// Time that [`Cores::measured`] recommends.
    const WINDOW: Duration = Duration::from_millis(200);
    Chosen {
        threads: Cores::measured(WINDOW).threads,
        foreign: None,
    }
}

/// CPUs less a load average, which is rounded down after a tenth was added; one at least.
#[must_use]
pub fn less_load(cpus: usize, load: f64) -> usize {
    let loaded = (load + 0.1).max(0.0) as usize;
    cpus.saturating_sub(loaded).max(1)
}

/// Climbs from `from` threads, one thread a step, up if that helps and otherwise down, until no
/// step raises the throughput by more than the noise of a few runs.
pub fn climb(from: usize, most: usize, throughput: &mut dyn FnMut(usize) -> f64) -> usize {
    /// A step that gains less is noise.
    const GAIN: f64 = 1.03;
    let (mut threads, mut best) = (from.clamp(1, most), throughput(from.clamp(1, most)));
    for is_up in [true, false] {
        let begin = threads;
        loop {
            let next = match is_up {
                true => threads + 1,
                false => threads - 1,
            };
            if next < 1 || next > most {
                break;
            }
            let found = throughput(next);
            if found < best * GAIN {
                break;
            }
            (threads, best) = (next, found);
        }
        if threads != begin {
            break;
        }
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_taken_away() {
        assert_eq!(less_load(8, 0.0), 8);
        assert_eq!(less_load(8, 3.89), 5);
        assert_eq!(less_load(8, 3.95), 4);
        assert_eq!(less_load(2, 40.0), 1);
    }

    /// Among r others throughput is x / (r + x) of the machine, and climbing does not end where the
    /// machine is full.
    #[test]
    fn who_climbs_takes_the_machine() {
        let beside = |r: f64| move |x: usize| 8.0 * (x as f64 / (x as f64 + r)).min(x as f64 / 8.0);
        assert_eq!(climb(8, 32, &mut beside(0.0)), 8);
        assert!(climb(8, 32, &mut beside(4.0)) > 8);
        assert_eq!(climb(4, 16, &mut |x| 1.0 / x as f64), 1);
        assert_eq!(climb(1, 1, &mut |_| 1.0), 1);
    }

    #[test]
    fn every_policy_chooses() {
        let times = |threads: usize| Duration::from_micros(8000 / threads as u64);
        for policy in Policy::ALL {
            assert_eq!(Policy::named(policy.id()), Some(policy));
            let around = &mut Surroundings {
                cpus: 4,
                foreign: 1,
                load_average: 2.0,
                time_max: Duration::from_secs(2),
                section: &mut |threads| times(threads),
                throughput: &mut |threads| threads.min(4) as f64,
            };
            let chosen = choose(policy, around);
            let wanted = match policy {
                Policy::All | Policy::HillClimbing => Some(4),
                Policy::LoadAverage => Some(2),
                Policy::LoadAverageSettled => Some(3),
                _ => None,
            };
            assert!(chosen.threads >= 1);
            assert!(
                wanted.is_none_or(|wanted| chosen.threads == wanted),
                "{policy:?}"
            );
        }
        assert_eq!(Policy::named("nonsense"), None);
    }
}
