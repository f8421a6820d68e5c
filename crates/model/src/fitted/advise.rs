//! Advice on where to put a sender and a receiver, or that it does not matter.

use std::fmt;

use hearth_machine::profile::Carrier;
use hearth_machine::relation::Relation;
use hearth_machine::topology::Thread;

use super::{Between, Buffer, Flow, Model, PredictError, Prediction, Question, Scenario};

/// A sender and a receiver to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The message's size.
    pub bytes: u64,
    /// Way in which control passes.
    pub carrier: Carrier,
    /// Order of exchanges in time.
    pub flow: Flow,
    /// The sender's buffer.
    pub buffer: Buffer,
}

impl Placement {
    /// The question for one pair or relation.
    #[must_use]
    pub const fn between(self, between: Between) -> Question {
        Question {
            bytes: self.bytes,
            between,
            carrier: self.carrier,
            flow: self.flow,
            buffer: self.buffer,
        }
    }
}

/// One way to place the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// Sender and receiver. Of a relation, its first pair.
    pub pair: (Thread, Thread),
    /// Their relation.
    pub relation: Relation,
    /// Cost of an exchange.
    pub prediction: Prediction,
}

/// Ways to place a sender and a receiver, cheapest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// At least one, cheapest first; equals in the order they were asked for.
    pub ranked: Vec<Ranked>,
    /// Extra cost of the worst over the best, as a share of the best.
    pub spread: f64,
    /// Largest upward error of the best one's prediction, as a share.
    pub uncertainty: f64,
}

/// A choice that is better than the advised one while a pair is in one of its states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherChoice {
    /// The pair and its state.
    pub scenario: Scenario,
    /// The cheapest way then.
    pub best: Ranked,
    /// Cost that it saves then, as a share of the advised way's.
    pub saves: f64,
}

/// Least share of cost for which another choice is named.
const SAVES_MIN: f64 = 0.05;

impl Advice {
    /// Whether the spread exceeds the uncertainty.
    #[must_use]
    pub fn matters(&self) -> bool {
        self.spread > self.uncertainty
    }

    /// The cheapest way.
    #[must_use]
    pub fn best(&self) -> &Ranked {
        &self.ranked[0]
    }

    fn from_ranked(mut ranked: Vec<Ranked>) -> Option<Self> {
        ranked.sort_by(|a, b| a.prediction.ns.total_cmp(&b.prediction.ns));
        let best = ranked.first()?.prediction;
        let worst = ranked.last()?.prediction;
        Some(Self {
            spread: worst.ns / best.ns - 1.0,
            uncertainty: best.high_ns / best.ns - 1.0,
            ranked,
        })
    }
}

impl fmt::Display for Advice {
    /// The advice in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| (100.0 * share).round();
        let (spread, uncertainty) = (percent(self.spread), percent(self.uncertainty));
        if self.matters() {
            let best = self.best();
            let (sender, receiver) = best.pair;
            write!(
                f,
                "sender on {sender}, receiver on {receiver} ({}): {:.0} ns; the worst placement \
                 costs {spread} % more",
                best.relation, best.prediction.ns
            )
        } else if self.ranked.len() == 1 {
            write!(f, "there is only one placement here")
        } else {
            write!(
                f,
                "placement does not matter here: it changes {spread} %, and the prediction is \
                 uncertain by {uncertainty} %"
            )
        }
    }
}

impl Model {
    /// The choices that would be better than an advice in some state of a pair. `rank` gives the
    /// advice of a model, as that advice was given by this one.
    pub fn other_choices(
        &self,
        advice: &Advice,
        rank: impl Fn(&Model) -> Option<Advice>,
    ) -> Vec<OtherChoice> {
        let chosen = advice.best().pair;
        let other = |scenario: Scenario| {
            let then = rank(&self.under(&scenario))?;
            let stays = then.ranked.iter().find(|ranked| ranked.pair == chosen)?;
            let best = *then.best();
            let saves = 1.0 - best.prediction.ns / stays.prediction.ns;
            (saves >= SAVES_MIN).then_some(OtherChoice {
                scenario,
                best,
                saves,
            })
        };
        self.scenarios().into_iter().filter_map(other).collect()
    }

    /// Ranks relations, each by its first pair, for a sender and a receiver that may run anywhere.
    /// Those that the carrier cannot serve are left out; `None` when that leaves nothing.
    #[must_use]
    pub fn advise(&self, placement: Placement) -> Option<Advice> {
        let ranked = self
            .topology
            .representatives()
            .into_iter()
            .filter_map(|(relation, pair)| {
                let question = placement.between(Between::Relation(relation));
                let prediction = self.predict(&question).ok()?;
                Some(Ranked {
                    pair,
                    relation,
                    prediction,
                })
            })
            .collect();
        Advice::from_ranked(ranked)
    }

    /// Ranks the given pairs of sender and receiver. Those that the carrier cannot serve are left
    /// out; `Ok(None)` when that leaves nothing.
    ///
    /// # Errors
    /// [`PredictError::NoSuchThread`] if a pair is not of this machine.
    pub fn advise_among(
        &self,
        placement: Placement,
        pairs: impl IntoIterator<Item = (Thread, Thread)>,
    ) -> Result<Option<Advice>, PredictError> {
        let mut ranked = Vec::new();
        for pair in pairs {
            let question = placement.between(Between::Pair(pair.0, pair.1));
            match self.predict(&question) {
                Ok(prediction) => ranked.push(Ranked {
                    pair,
                    relation: self.topology.relation(pair.0, pair.1),
                    prediction,
                }),
                Err(PredictError::SpinOnOneThread) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Advice::from_ranked(ranked))
    }

    /// Ranks every hardware thread as the receiver for a sender that stays where it is.
    ///
    /// # Errors
    /// [`PredictError::NoSuchThread`] if `sender` is not of this machine.
    pub fn advise_receiver(
        &self,
        placement: Placement,
        sender: Thread,
    ) -> Result<Option<Advice>, PredictError> {
        let receivers = self.topology.all_threads();
        self.advise_among(placement, receivers.map(|receiver| (sender, receiver)))
    }
}
