//! The plan of runs: structures by sizes and processors, each collected in four ways.

use serde::{Deserialize, Serialize};

use super::collector::Way;
use super::options::{CollectionOptions, Experiment};
use super::shapes::{self, Shape};
use crate::study::{self, Round};

/// A structure, and the way in which it is collected.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Case {
    /// The experiment that it belongs to.
    pub experiment: Experiment,
    /// The structure.
    pub shape: Shape,
    /// Depth of a tree, or number of objects.
    pub size: u32,
    /// Number of processors.
    pub processors: u32,
    /// Every second processor is dead.
    pub is_half_dead: bool,
    /// The way in which it is collected.
    pub way: Way,
}

impl study::Case for Case {
    type Experiment = Experiment;

    fn experiment(&self) -> Experiment {
        self.experiment
    }

    fn words(&self) -> String {
        let Case {
            shape,
            size,
            processors,
            way,
            ..
        } = self;
        let of = match shape {
            Shape::Trees => "of depth",
            Shape::Cycles | Shape::Links => "of",
        };
        format!(
            "{} {of} {size} on {processors} processors, {}",
            shape.id(),
            way.id()
        )
    }

    fn row(&self) -> String {
        format!(
            "{},{},{},{}",
            self.shape.id(),
            self.size,
            self.processors,
            self.way.id()
        )
    }
}

impl Case {
    /// The program to be built.
    #[must_use]
    pub fn plan(&self, seed: u64) -> shapes::Plan {
        shapes::Plan {
            shape: self.shape,
            size: self.size,
            processors: self.processors,
            is_half_dead: self.is_half_dead,
            way: self.way,
            seed,
        }
    }

    /// The same structure, collected in another way.
    #[must_use]
    pub fn by(&self, way: Way) -> Case {
        Case {
            way,
            ..self.clone()
        }
    }

    /// Objects of the structure.
    #[must_use]
    pub fn objects(&self) -> f64 {
        self.shape.objects(self.size, self.processors) as f64
    }
}

/// Processors that the source could not have: its handlers are numbers of 16 bits.
const MILLION: u32 = 1_000_000;
/// Processors of the source, at most.
const HUNDRED: u32 = 100;

/// The structures of an experiment: shape, size, processors.
fn structures(experiment: Experiment, is_quick: bool) -> Vec<(Shape, u32, u32)> {
    let (shallow, deep) = if is_quick { (8, 12) } else { (12, 16) };
    let sizes: &[u32] = match is_quick {
        true => &[10_000, 100_000, 1_000_000],
        false => &[100_000, 1_000_000, 10_000_000],
    };
    match experiment {
        Experiment::Trees => {
            let processors: &[u32] = match is_quick {
                true => &[10, HUNDRED],
                false => &[1, 10, 25, 50, 75, HUNDRED],
            };
            let of = |depth| processors.iter().map(move |&it| (Shape::Trees, depth, it));
            of(shallow).chain(of(deep)).collect()
        }
        Experiment::Cycles => {
            let by_objects = sizes.iter().map(|&size| (Shape::Cycles, size, HUNDRED));
            let by_processors = [1, 10].map(|it| (Shape::Cycles, sizes[1], it));
            by_objects.chain(by_processors).collect()
        }
        Experiment::Links => sizes
            .iter()
            .map(|&size| (Shape::Links, size, HUNDRED))
            .collect(),
        // Only here: where objects of all processors refer to each other none is dead.
        Experiment::Dead => vec![
            (Shape::Trees, shallow, HUNDRED),
            (Shape::Trees, deep, HUNDRED),
        ],
        Experiment::Million => {
            let objects = if is_quick { MILLION } else { 10 * MILLION };
            // Trees of seven objects each, or of three.
            let depth = if is_quick { 2 } else { 3 };
            vec![
                (Shape::Trees, depth, MILLION),
                (Shape::Cycles, objects, MILLION),
                (Shape::Links, objects, MILLION),
            ]
        }
    }
}

/// The rounds of an experiment: one a structure, so that its ways take turns.
#[must_use]
pub fn rounds(experiment: Experiment, options: &CollectionOptions) -> Vec<Round<Case>> {
    let structures = structures(experiment, options.quick).into_iter();
    structures
        .map(|(shape, size, processors)| Round {
            cases: Way::ALL
                .into_iter()
                .map(|way| Case {
                    experiment,
                    shape,
                    size,
                    processors,
                    is_half_dead: experiment == Experiment::Dead,
                    way,
                })
                .collect(),
            repeats: options.repeats(),
        })
        .collect()
}
