//! The runs of the study.
//!
//! Sweeps that are compared with each other go through the sizes together: all runs of a size with
//! both threads on one core, then all with two cores, then two chips. So a machine that grows
//! slower over an hour does so for all alike. The source runs one experiment after the other. The
//! runs of one kind stay together, with an untimed one before, as a run finds the caches as the
//! last one left them.

use hearth_published::source::Type;
use serde::{Deserialize, Serialize};

use super::options::{CacheImpactOptions, Defect, Experiment};
use super::record::{Kind, Sweep};
use super::results::Results;
use super::ring;
use crate::study::{self, Round};

/// A part of an experiment whose runs stay together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// A curve of experiment 1b.
    Ring(ring::Kind),
    /// Exchanges of nothing.
    Zero(Kind),
    /// A size of a sweep.
    Row {
        /// The measurement.
        sweep: Sweep,
        /// The number of the sweep, from 1.
        number: u32,
        /// The buffer's size.
        bytes: u64,
    },
}

impl study::Case for Case {
    type Experiment = Experiment;

    fn experiment(&self) -> Experiment {
        match self {
            Case::Ring(_) => Experiment::Ring,
            Case::Zero(_) => Experiment::Zero,
            Case::Row { sweep, .. } => match sweep {
                Sweep::Latency => Experiment::Sweep,
                Sweep::Exchange(Kind::SameCore) => Experiment::SameCore,
                Sweep::Exchange(Kind::SameChip) => Experiment::SameChip,
                Sweep::Exchange(Kind::OtherChip) => Experiment::OtherChip,
                Sweep::Ready(_) => Experiment::Ready,
            },
        }
    }

    fn words(&self) -> String {
        let title = self.experiment().title();
        match self {
            Case::Ring(_) | Case::Zero(_) => title.to_owned(),
            Case::Row { bytes, .. } => format!("{title}, {bytes} bytes"),
        }
    }

    /// The source's tables have other columns.
    fn row(&self) -> String {
        String::new()
    }
}

/// The sweeps that are wanted and that the machine can show; says which it cannot.
fn sweeps(results: &mut Results) -> Vec<Sweep> {
    let (options, place) = (&results.options, &results.site.place);
    let mut sweeps = Vec::new();
    if options.wants(Experiment::Sweep) {
        sweeps.push(Sweep::Latency);
    }
    let experiments = [
        (Experiment::SameCore, Type::One),
        (Experiment::SameChip, Type::Two),
        (Experiment::OtherChip, Type::Three),
    ];
    for (experiment, kind) in experiments {
        match place.places(kind) {
            _ if !options.wants(experiment) => {}
            Some(_) => sweeps.push(Sweep::Exchange(kind.into())),
            None => results.about.note(place.why_not(kind)),
        }
    }
    // Ready threads stay on the cores that they are given; the source's numbers may not exist.
    if options.wants(Experiment::Ready) && !options.has(Defect::Pinning) {
        let kinds = Type::ALL.into_iter();
        let kinds = kinds.filter(|&kind| place.places(kind).is_some());
        sweeps.extend(kinds.map(|kind| Sweep::Ready(kind.into())));
    }
    sweeps
}

/// All runs, in order; the sweeps through `sizes`.
pub(super) fn rounds(results: &mut Results, sizes: &[u64]) -> Vec<Round<Case>> {
    let sweeps = sweeps(results);
    let (options, place) = (&results.options, &results.site.place);
    let mut rounds = Vec::new();
    if options.wants(Experiment::Ring) {
        let kinds = ring::kinds(options.quick).into_iter();
        rounds.push(Round {
            cases: kinds.map(Case::Ring).collect(),
            repeats: 1,
        });
    }
    if options.wants(Experiment::Zero) {
        let kinds = Type::ALL.into_iter();
        let kinds = kinds.filter(|&kind| place.places(kind).is_some());
        rounds.push(Round {
            cases: kinds.map(|kind| Case::Zero(kind.into())).collect(),
            repeats: options.zero_repeats(),
        });
    }
    rounds.extend((1..=options.sweeps).map(|number| sweep(options, &sweeps, number, sizes)));
    rounds
}

fn sweep(
    options: &CacheImpactOptions,
    sweeps: &[Sweep],
    number: u32,
    sizes: &[u64],
) -> Round<Case> {
    let row = |bytes| {
        let sweeps = sweeps.iter();
        sweeps.map(move |&sweep| Case::Row {
            sweep,
            number,
            bytes,
        })
    };
    Round {
        cases: sizes.iter().flat_map(|&bytes| row(bytes)).collect(),
        repeats: options.repeats(),
    }
}
