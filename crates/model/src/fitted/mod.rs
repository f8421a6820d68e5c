//! Hearth's own model: the cost of passing `n` bytes between two hardware threads of a profiled
//! machine.
//!
//! `time = write + hand-over + read`, each term from the profile's figures. Beyond the source's
//! model it has coherence transfer by relation, lines in flight, prefetch and bandwidth, reads
//! apart from writes, smooth capacity, nodes, and the carrier's hand-over. The few numbers that no
//! probe measures are the [`Tuning`]; [`Model::fit`] adjusts them to measured exchanges.
//!
//! One exchange lasts from the sender's first store to the receiver's last load. The receiver's
//! answer is not included: compare with half the round trip of a ping-pong.
//!
//! ```
//! use hearth_machine::profile::{Carrier, Profile};
//! use hearth_machine::{synthetic, topology::Thread};
//! use hearth_model::fitted::{Between, Model, Question};
//!
//! let machine = synthetic::parse("2 packages, 2 cores, l1d 32K per core, l2 4M per package")?;
//! let model = Model::new(&Profile::assumed(machine))?;
//! let near = Question::new(4096, Between::Pair(Thread(0), Thread(1)), Carrier::Spin);
//! let far = Question { between: Between::Pair(Thread(0), Thread(2)), ..near };
//! assert!(model.predict(&near)?.ns < model.predict(&far)?.ns);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod advise;
mod fit;
mod pairs;
mod terms;
mod tuning;

use hearth_machine::profile::{Carrier, Exchange as Measured, Profile, ProfileError};
use hearth_machine::relation::Relation;
use hearth_machine::topology::{Thread, Topology};
use serde::{Deserialize, Serialize};

use pairs::Pairs;
use terms::{End, Exchange, Group, Pick, Terms};
use thiserror::Error;

pub use advise::{Advice, OtherChoice, Placement, Ranked};
pub use fit::{FitError, FitOptions, FitReport, Sample};
pub use pairs::{PairState, Scenario};
pub use tuning::{RelationFactor, Tuning};

/// Uncertainty of the unfitted model, as a factor either way: 95 % of the observed errors.
const UNFITTED_FACTOR: f64 = 1.6;

/// Sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// Two hardware threads: sender, receiver.
    Pair(Thread, Thread),
    /// Any two in this relation.
    Relation(Relation),
}

/// Order of exchanges in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// One after the other: the sender waits until the receiver is done.
    Alternating,
    /// The sender continues with the next message while the receiver reads this one.
    Streaming {
        /// Buffers in rotation. Zero counts as one.
        depth: u32,
    },
}

/// The sender's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffer {
    /// Memory that earlier messages used.
    Reused,
    /// Memory fresh from the operating system each time: every page faults.
    Fresh,
}

/// Factor between the times of a message in two states from which they are told apart.
const STATES_MATTER: f64 = 1.1;

/// A question to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Question {
    /// The message's size.
    pub bytes: u64,
    /// Sender and receiver.
    pub between: Between,
    /// Way in which control passes.
    pub carrier: Carrier,
    /// Order of exchanges in time.
    pub flow: Flow,
    /// The sender's buffer.
    pub buffer: Buffer,
}

impl Question {
    /// One exchange after the other, in a reused buffer.
    #[must_use]
    pub const fn new(bytes: u64, between: Between, carrier: Carrier) -> Self {
        Self {
            bytes,
            between,
            carrier,
            flow: Flow::Alternating,
            buffer: Buffer::Reused,
        }
    }

    /// The question that a profile's measured exchange answers.
    #[must_use]
    pub fn of(exchange: &Measured) -> Self {
        Self {
            bytes: exchange.bytes,
            between: Between::Pair(exchange.sender, exchange.receiver),
            carrier: exchange.carrier,
            flow: match exchange.stream_depth {
                None => Flow::Alternating,
                Some(depth) => Flow::Streaming { depth },
            },
            buffer: if exchange.fresh_buffer {
                Buffer::Fresh
            } else {
                Buffer::Reused
            },
        }
    }
}

/// Parts of an exchange's time, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// The sender's stores.
    pub write_ns: f64,
    /// Page faults of a fresh buffer.
    pub faults_ns: f64,
    /// Passing control, and the cost of each message at any size.
    pub hand_over_ns: f64,
    /// The receiver's loads.
    pub read_ns: f64,
    /// Overlap of these in a stream, to be subtracted.
    pub hidden_ns: f64,
}

impl Parts {
    /// The sum.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        self.write_ns + self.faults_ns + self.hand_over_ns + self.read_ns - self.hidden_ns
    }
}

impl Parts {
    /// The mean of parts, each with its share.
    fn mean(all: &[(f64, Parts)]) -> Parts {
        let over = |of: fn(&Parts) -> f64| all.iter().map(|(share, parts)| share * of(parts)).sum();
        Parts {
            write_ns: over(|parts| parts.write_ns),
            faults_ns: over(|parts| parts.faults_ns),
            hand_over_ns: over(|parts| parts.hand_over_ns),
            read_ns: over(|parts| parts.read_ns),
            hidden_ns: over(|parts| parts.hidden_ns),
        }
    }
}

/// Cost of a message while a pair is in one of its states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InState {
    /// The state.
    pub state: PairState,
    /// The cost.
    pub prediction: Prediction,
}

/// Cost of a message: modelled, never measured. Between two hardware threads with several states it
/// is the mean over time, and the interval holds all states'.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Time of one exchange; in a stream, from one message to the next.
    pub ns: f64,
    /// The lower end of a 95 % interval, ns.
    pub low_ns: f64,
    /// Its upper end, ns.
    pub high_ns: f64,
    /// Bytes a nanosecond: size by time.
    pub bytes_per_ns: f64,
    /// Parts of the time.
    pub parts: Parts,
}

/// Reason why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PredictError {
    /// The machine has no hardware thread of that number.
    #[error("the profile has {count} hardware threads and {thread} is not among them: name one from T0 to T{}", .count.saturating_sub(1))]
    NoSuchThread {
        /// The thread asked for.
        thread: Thread,
        /// Number of threads.
        count: usize,
    },
    /// No two hardware threads of the machine have this relation.
    #[error(
        "no two hardware threads of this machine have the relation asked for ({0}): name a pair instead"
    )]
    NoSuchRelation(Relation),
    /// A receiver cannot spin on the hardware thread that the sender needs.
    #[error(
        "a receiver cannot spin on the sender's own hardware thread: choose the carrier `threads` or `worker`, or two hardware threads"
    )]
    SpinOnOneThread,
}

/// A model of a machine, ready to answer.
#[derive(Clone, Debug)]
pub struct Model {
    topology: Topology,
    terms: Terms,
    /// One for each group of figures and end of the interval.
    moved: Vec<(Terms, Terms)>,
    pairs: Pairs,
    tuning: Tuning,
    report: Option<FitReport>,
}

impl Model {
    /// The unfitted model of a profile. Figures that the profile lacks are
    /// [assumed](Profile::with_defaults).
    ///
    /// # Errors
    /// The fault found by [`Profile::check`].
    pub fn new(profile: &Profile) -> Result<Self, ProfileError> {
        profile.check()?;
        let profile = profile.clone().with_defaults();
        let with = |group, end| Terms::new(&profile, Pick(Some((group, end))));
        Ok(Self {
            terms: Terms::new(&profile, Pick(None)),
            moved: Group::ALL
                .into_iter()
                .map(|group| (with(group, End::Cheap), with(group, End::Costly)))
                .collect(),
            pairs: Pairs::new(&profile),
            tuning: Tuning::default(),
            report: None,
            topology: profile.topology,
        })
    }

    /// The model of a profile, [fitted](Model::fit) to the profile's exchanges. With too few of
    /// them, or none, it is the unfitted model, and its [report](Model::report) is absent.
    /// Exchanges that the model cannot have, such as spinning on one hardware thread, do not count.
    ///
    /// # Errors
    /// The fault found by [`Profile::check`].
    pub fn fitted(profile: &Profile) -> Result<Self, ProfileError> {
        let model = Self::new(profile)?;
        let samples = profile.exchanges.iter().map(Sample::of);
        let samples: Vec<Sample> = samples
            .filter(|sample| model.predict(&sample.question).is_ok())
            .collect();
        // A valid profile's samples are times of this machine: they can only be too few.
        Ok(model.fit(&samples, &FitOptions::default()).unwrap_or(model))
    }

    /// The same model with another tuning, for instance one kept from an earlier fit. Its interval
    /// is that of an unfitted model.
    #[must_use]
    pub fn with_tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self.report = None;
        self
    }

    /// The same fit with other figures of the same machine, for instance of a profile that was
    /// [corrected](Profile::with_transfers_times).
    ///
    /// # Errors
    /// The fault found by [`Profile::check`].
    pub fn with_profile(&self, profile: &Profile) -> Result<Self, ProfileError> {
        Ok(Self {
            tuning: self.tuning.clone(),
            report: self.report.clone(),
            ..Self::new(profile)?
        })
    }

    /// The present values of the numbers that no probe measures.
    #[must_use]
    pub const fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// The quality of the fit, if there was one.
    #[must_use]
    pub const fn report(&self) -> Option<&FitReport> {
        self.report.as_ref()
    }

    /// The machine.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Predicts the cost of an exchange.
    ///
    /// # Errors
    /// [`PredictError`] if the machine has no such parts, or the carrier cannot serve them.
    pub fn predict(&self, question: &Question) -> Result<Prediction, PredictError> {
        let states = self.in_states(question)?;
        if states.is_empty() {
            return self.predict_one(&self.exchange(question)?);
        }
        let parts: Vec<(f64, Parts)> = states
            .iter()
            .map(|one| (one.state.time_share, one.prediction.parts))
            .collect();
        let parts = Parts::mean(&parts);
        let ends = || states.iter().map(|one| one.prediction);
        Ok(Prediction {
            ns: parts.total_ns(),
            low_ns: ends().map(|p| p.low_ns).fold(f64::INFINITY, f64::min),
            high_ns: ends().map(|p| p.high_ns).fold(0.0, f64::max),
            bytes_per_ns: question.bytes as f64 / parts.total_ns(),
            parts,
        })
    }

    /// The cost of an exchange in each state of its pair, the fastest first; empty if there is one
    /// state, or if they differ too little to matter.
    ///
    /// # Errors
    /// As for [`Model::predict`].
    pub fn predict_by_state(&self, question: &Question) -> Result<Vec<InState>, PredictError> {
        let mut states = self.in_states(question)?;
        let all = || states.iter().map(|one| one.prediction.ns);
        let (least, most) = (
            all().fold(f64::INFINITY, f64::min),
            all().fold(0.0, f64::max),
        );
        if most < least * STATES_MATTER {
            states.clear();
        }
        Ok(states)
    }

    /// Every pair with several states, in each of them.
    #[must_use]
    pub fn scenarios(&self) -> Vec<Scenario> {
        self.pairs.scenarios()
    }

    /// The same model with one pair in a state for good.
    #[must_use]
    pub fn under(&self, scenario: &Scenario) -> Self {
        Self {
            pairs: self.pairs.clone().under(scenario),
            ..self.clone()
        }
    }

    /// Transfer latency of a pair over time, relative to the usual one of its relation, if known.
    #[must_use]
    pub fn pair_ratio(&self, a: Thread, b: Thread) -> Option<f64> {
        self.pairs.ratio(a, b)
    }

    /// The states of a pair, the fastest first; empty if it has one.
    #[must_use]
    pub fn pair_states(&self, a: Thread, b: Thread) -> &[PairState] {
        self.pairs.states(a, b)
    }

    fn in_states(&self, question: &Question) -> Result<Vec<InState>, PredictError> {
        let exchange = self.exchange(question)?;
        let states = match question.between {
            Between::Pair(a, b) => self.pair_states(a, b).to_vec(),
            Between::Relation(relation) => self.pairs.usual_states(&self.topology, relation),
        };
        let one = |state: PairState| {
            let pair_ratio = state.ratio;
            let prediction = self.predict_one(&Exchange {
                pair_ratio,
                ..exchange
            })?;
            Ok(InState { state, prediction })
        };
        states.into_iter().map(one).collect()
    }

    fn predict_one(&self, exchange: &Exchange) -> Result<Prediction, PredictError> {
        let parts = self.parts(exchange, &self.tuning)?;
        let ns = parts.total_ns();
        let spread = self.log_spread(exchange, ns);
        Ok(Prediction {
            ns,
            low_ns: ns * (-spread).exp(),
            high_ns: ns * spread.exp(),
            bytes_per_ns: exchange.bytes as f64 / ns,
            parts,
        })
    }

    fn parts(&self, exchange: &Exchange, tuning: &Tuning) -> Result<Parts, PredictError> {
        // The relation exists, so only the carrier can be the reason.
        self.terms
            .parts(exchange, tuning)
            .ok_or(PredictError::SpinOnOneThread)
    }

    fn exchange(&self, question: &Question) -> Result<Exchange, PredictError> {
        let (relation, pair_ratio) = match question.between {
            Between::Relation(relation) => {
                if !self.terms.has(relation) {
                    return Err(PredictError::NoSuchRelation(relation));
                }
                (relation, 1.0)
            }
            Between::Pair(a, b) => {
                let count = self.topology.threads().len();
                if let Some(thread) = [a, b].into_iter().find(|t| t.index() >= count) {
                    return Err(PredictError::NoSuchThread { thread, count });
                }
                let ratio = self.pair_ratio(a, b);
                (self.topology.relation(a, b), ratio.unwrap_or(1.0))
            }
        };
        Ok(Exchange {
            bytes: question.bytes,
            relation,
            pair_ratio,
            carrier: question.carrier,
            flow: question.flow,
            buffer: question.buffer,
        })
    }

    /// Half the width of the interval, as a logarithm.
    ///
    /// A fitted model's is its error on held-out samples. An unfitted one's joins the intervals of
    /// the profile's figures, group by group, with [`UNFITTED_FACTOR`].
    fn log_spread(&self, exchange: &Exchange, ns: f64) -> f64 {
        if let Some(report) = &self.report {
            return report.log_spread_of(exchange.carrier);
        }
        let groups = self.moved.iter().map(|(cheap, costly)| {
            let total = |terms: &Terms| {
                let parts = terms.parts(exchange, &self.tuning);
                parts.map_or(ns, |parts| parts.total_ns())
            };
            let down = (ns / total(cheap)).ln().abs();
            let up = (total(costly) / ns).ln().abs();
            down.max(up).powi(2)
        });
        (groups.sum::<f64>() + UNFITTED_FACTOR.ln().powi(2)).sqrt()
    }
}
