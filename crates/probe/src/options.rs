//! Thoroughness of a probe, and the division of its time.

/// Duration of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// About 10 seconds: enough to place components.
    Quick,
    /// About a minute: the default.
    Normal,
    /// About ten minutes, with more strides and larger buffers.
    Deep,
}

impl Mode {
    /// The available time, in seconds.
    pub fn seconds(self) -> f64 {
        match self {
            Mode::Quick => 10.0,
            Mode::Normal => 60.0,
            Mode::Deep => 600.0,
        }
    }

    /// Visits to each measurement. Six is the least for an interval by ranks; leaving the extremes
    /// out takes nine or more.
    pub fn rounds(self) -> u32 {
        match self {
            Mode::Quick => 7,
            Mode::Normal => 12,
            Mode::Deep => 30,
        }
    }

    /// The largest buffer of the latency curve, in bytes.
    pub fn curve_bytes(self) -> usize {
        match self {
            Mode::Quick => 64 << 20,
            Mode::Normal => 256 << 20,
            Mode::Deep => 1 << 30,
        }
    }

    /// The buffer of a bandwidth measurement, in bytes for each thread.
    pub fn stream_bytes(self) -> usize {
        match self {
            Mode::Quick => 64 << 20,
            Mode::Normal => 128 << 20,
            Mode::Deep => 256 << 20,
        }
    }
}

/// Options of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeOptions {
    /// Its duration.
    pub mode: Mode,
    /// The cores to measure, by the system's numbers; None for all that this process may use.
    pub cpus: Option<Vec<usize>>,
    /// Seed of all random choices. The same seed visits the same places in the same order.
    pub seed: u64,
}

impl Default for ProbeOptions {
    fn default() -> ProbeOptions {
        ProbeOptions {
            mode: Mode::Normal,
            cpus: None,
            seed: 1,
        }
    }
}

/// A kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Latency of dependent loads over sizes.
    Curve,
    /// Cost of a line by its state in another core's cache.
    States,
    /// Transfer between pairs of hardware threads.
    Pairs,
    /// Bytes a second.
    Bandwidth,
    /// Memory nodes as seen from each core.
    Distances,
    /// Costs of the operating system's services.
    Costs,
    /// Whole messages, which the model of messages is fitted to.
    Messages,
    /// Gaps, interrupts, steal.
    Noise,
}

impl Part {
    /// The part's name for a user who waits.
    pub fn title(self) -> &'static str {
        match self {
            Part::Curve => "cache latency",
            Part::States => "lines in other caches",
            Part::Pairs => "transfers between cores",
            Part::Bandwidth => "bandwidth",
            Part::Distances => "node distances",
            Part::Costs => "operating-system costs",
            Part::Messages => "whole messages",
            Part::Noise => "noise",
        }
    }
}

/// A part and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The part.
    pub part: Part,
    /// Its time over all rounds, in seconds.
    pub seconds: f64,
}

/// The parts that a machine allows, with their time.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbePlan {
    /// Visits to each part.
    pub rounds: u32,
    /// Parts in the order of a round.
    pub steps: Vec<Step>,
}

/// Reserve for beginning, ending and rounds that take a little longer than planned.
const RESERVE: f64 = 0.1;

impl ProbePlan {
    /// Divides the mode's time. `cpus` is the number of measured cores, `nodes` the number of
    /// memory nodes.
    pub fn new(mode: Mode, cpus: usize, nodes: usize) -> ProbePlan {
        // With many cores their pairs take most of the time; a machine with nodes gives up some of
        // everything for its distances.
        let pairs = if cpus > 16 { 40.0 } else { 22.0 };
        let weights = [
            (Part::Curve, 28.0, true),
            (Part::Pairs, pairs, cpus > 1),
            (Part::States, 10.0, cpus > 1),
            (Part::Bandwidth, 14.0, true),
            (Part::Costs, 12.0, true),
            // Large ones take longer than a quick look allows.
            (Part::Messages, 24.0, mode != Mode::Quick),
            (Part::Distances, 30.0, nodes > 1),
            (Part::Noise, 10.0, true),
        ];
        let kept = || weights.iter().filter(|(_, _, makes_sense)| *makes_sense);
        let sum: f64 = kept().map(|(_, weight, _)| weight).sum();
        let seconds = mode.seconds() * (1.0 - RESERVE);
        ProbePlan {
            rounds: mode.rounds(),
            steps: kept()
                .map(|&(part, weight, _)| Step {
                    part,
                    seconds: seconds * weight / sum,
                })
                .collect(),
        }
    }

    /// The time of all parts, in seconds.
    pub fn seconds(&self) -> f64 {
        self.steps.iter().map(|step| step.seconds).sum()
    }

    /// The time of one part, in seconds; 0 if it is not planned.
    pub fn seconds_of(&self, part: Part) -> f64 {
        let step = self.steps.iter().find(|step| step.part == part);
        step.map_or(0.0, |step| step.seconds)
    }
}
