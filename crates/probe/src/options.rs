//! How thoroughly to measure, and how the time is shared out.

/// How long a probe may take.
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
    /// The time there is, in seconds.
    pub fn seconds(self) -> f64 {
        match self {
            Mode::Quick => 10.0,
            Mode::Normal => 60.0,
            Mode::Deep => 600.0,
        }
    }

    /// How often each measurement is visited. Six is the least for an interval by ranks; nine or
    /// more are needed to leave the extremes out.
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

/// What to measure and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long it may take.
    pub mode: Mode,
    /// The cores to measure, by the system's numbers; None for all that this process may use.
    pub cpus: Option<Vec<usize>>,
    /// What all random choices begin with. The same seed visits the same places in the same order.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
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
    /// A line's cost by its state in another core's cache.
    States,
    /// Transfer between pairs of hardware threads.
    Pairs,
    /// Bytes a second.
    Bandwidth,
    /// Memory nodes as seen from each core.
    Distances,
    /// What the operating system costs.
    Costs,
    /// Whole messages, which the model of messages is fitted to.
    Messages,
    /// Gaps, interrupts, steal.
    Noise,
}

impl Part {
    /// What somebody who waits is told.
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
    /// Which part.
    pub part: Part,
    /// Its time over all rounds, in seconds.
    pub seconds: f64,
}

/// The parts that make sense on a machine, with their time.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How often each part is visited.
    pub rounds: u32,
    /// In the order of a round.
    pub steps: Vec<Step>,
}

/// Left for beginning, ending and rounds that take a little longer than planned.
const RESERVE: f64 = 0.1;

impl Plan {
    /// Shares the mode's time out. `cpus` is how many cores are measured, `nodes` how many memory
    /// nodes there are.
    pub fn new(mode: Mode, cpus: usize, nodes: usize) -> Plan {
        // With many cores their pairs take most of the time; a machine of nodes gives up some of
        // everything for its distances.
        let pairs = if cpus > 16 { 40.0 } else { 22.0 };
        let weights = [
            (Part::Curve, 28.0, true),
            (Part::Pairs, pairs, cpus > 1),
            (Part::States, 10.0, cpus > 1),
            (Part::Bandwidth, 14.0, true),
            (Part::Costs, 12.0, true),
            // Large ones take longer than a quick look has.
            (Part::Messages, 24.0, mode != Mode::Quick),
            (Part::Distances, 30.0, nodes > 1),
            (Part::Noise, 10.0, true),
        ];
        let kept = || weights.iter().filter(|(_, _, makes_sense)| *makes_sense);
        let sum: f64 = kept().map(|(_, weight, _)| weight).sum();
        let seconds = mode.seconds() * (1.0 - RESERVE);
        Plan {
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
