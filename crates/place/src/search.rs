//! Parts of a search that do not depend on its subject: a budget of steps, a score in three
//! criteria, and annealing.
//!
//! The optimiser anneals placements with them, and `hearth-consolidate` the seats of software
//! components on control units. What a move is and what it costs is the [`Landscape`]'s.

/// Stages of the temperature, each colder by [`FALL`]: to about a thirtieth in all.
const STAGES: u64 = 64;
const FALL: f64 = 0.947;
/// Sampled moves, to learn their usual cost.
const SAMPLE: usize = 128;

/// A budget of steps.
#[derive(Clone, Debug)]
pub struct Steps {
    left: u64,
    spent: u64,
}

impl Steps {
    /// A budget.
    #[must_use]
    pub const fn new(left: u64) -> Self {
        Self { left, spent: 0 }
    }

    /// Steps that are left.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Steps that have been spent.
    #[must_use]
    pub const fn spent(&self) -> u64 {
        self.spent
    }

    /// Spends steps; a budget that is overdrawn has none left.
    pub fn spend(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
        self.spent += steps;
    }

    /// A budget of its own with at most the steps that are left.
    #[must_use]
    pub fn part(&self, steps: u64) -> Self {
        Self::new(steps.min(self.left))
    }
}

/// Criteria of a search, from the most important one on. Less is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Excess that no saving outweighs.
    pub over: f64,
    /// The cost.
    pub total: f64,
    /// Unevenness, which decides between equal costs.
    pub squares: f64,
}

impl Score {
    /// Whether this is better than `other` by more than rounding.
    #[must_use]
    pub fn beats(&self, other: &Self) -> bool {
        let less = |a: f64, b: f64, part: f64| a < b - part * b.abs();
        if less(self.over, other.over, 1e-9) {
            return true;
        }
        if less(other.over, self.over, 1e-9) {
            return false;
        }
        less(self.total, other.total, 1e-9)
            || (!less(other.total, self.total, 1e-9) && less(self.squares, other.squares, 1e-6))
    }
}

/// Arrangements and the moves between them, as annealing sees them. It has a present arrangement, a
/// proposed move, and the best arrangement that was kept.
pub trait Landscape {
    /// Score of the present arrangement.
    fn score(&mut self) -> Score;
    /// Chooses a random move.
    fn propose(&mut self);
    /// Score after the proposed move, which is not made.
    fn weigh(&mut self) -> Score;
    /// Makes the proposed move.
    fn accept(&mut self);
    /// Remembers the present arrangement as the best.
    fn keep(&mut self);
    /// Takes the number of steps since the last call.
    fn take_steps(&mut self) -> u64;
    /// Random bits.
    fn bits(&mut self) -> u64;
}

/// Anneals from the present arrangement; the best one on the way is [kept](Landscape::keep), the
/// first included. `hot` is the first temperature relative to the cost of a random move.
///
/// A move may make things worse by about the temperature, which falls as the steps are used up: the
/// rough arrangement settles first, the detail last. [`Score::over`] never grows.
pub fn anneal(landscape: &mut impl Landscape, steps: &mut Steps, hot: f64) {
    let mut here = landscape.score();
    let mut best = here;
    landscape.keep();
    let stage = steps.left() / STAGES;
    let mut temperature = hot * usual_loss(landscape, steps);
    while steps.left() > 0 {
        let end = steps.left().saturating_sub(stage.max(1));
        while steps.left() > end {
            landscape.propose();
            let there = landscape.weigh();
            let loss = there.total - here.total;
            let is_kept = there.over < here.over
                || there.over <= here.over
                    && (loss <= 0.0 || loss < temperature * patience(landscape.bits()));
            if is_kept {
                landscape.accept();
                here = there;
                if here.beats(&best) {
                    best = here;
                    landscape.keep();
                }
            }
            steps.spend(landscape.take_steps());
        }
        temperature *= FALL;
    }
}

/// Usual increase of the cost by a random move: the median of some.
fn usual_loss(landscape: &mut impl Landscape, steps: &mut Steps) -> f64 {
    let here = landscape.score().total;
    let losses = (0..SAMPLE).map(|_| {
        landscape.propose();
        landscape.weigh().total - here
    });
    let mut losses: Vec<f64> = losses.filter(|loss| *loss > 0.0).collect();
    steps.spend(landscape.take_steps());
    losses.sort_by(f64::total_cmp);
    losses.get(losses.len() / 2).copied().unwrap_or(0.0)
}

/// A number of roughly exponential distribution with mean one, made of bits only so that it is the
/// same on all machines: the zeros before the first one, and the next bits as a fraction.
fn patience(bits: u64) -> f64 {
    let zeros = bits.leading_zeros();
    let rest = bits.checked_shl(zeros + 1).unwrap_or(0) >> 11;
    let part = rest as f64 / (1_u64 << 53) as f64;
    (f64::from(zeros) + 1.0 - part) * std::f64::consts::LN_2
}
