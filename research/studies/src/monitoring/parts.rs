//! The parts of what monitoring costs a call, by the differences of four runs, with their
//! intervals.

use hearth_stats::{Ratio, interval, median};

use super::ways::Way;
use crate::judging::{Figure, Relation};

/// A part of the overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The probe, which is off: I.
    Instrumentation,
    /// Collecting in memory: C.
    Collecting,
    /// Writing: W.
    Writing,
    /// All three.
    Overhead,
    /// Instrumentation and collecting, where nothing is written.
    Unwritten,
}

impl Part {
    /// The three parts.
    pub const THREE: [Part; 3] = [Part::Instrumentation, Part::Collecting, Part::Writing];

    /// Its name in tables.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Part::Instrumentation => "instrumentation",
            Part::Collecting => "collecting",
            Part::Writing => "writing",
            Part::Overhead => "overhead",
            Part::Unwritten => "instrumentation and collecting",
        }
    }

    /// The runs whose difference it is: with it, and without.
    const fn between(self) -> [Way; 2] {
        match self {
            Part::Instrumentation => [Way::Off, Way::Plain],
            Part::Collecting => [Way::Nowhere, Way::Off],
            Part::Writing => [Way::File, Way::Nowhere],
            Part::Overhead => [Way::File, Way::Plain],
            Part::Unwritten => [Way::Nowhere, Way::Plain],
        }
    }
}

/// The means of the processes of four runs, in nanoseconds a call.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a>([&'a [f64]; 4]);

impl<'a> Runs<'a> {
    /// The runs that a function finds.
    pub fn new(of: impl FnMut(Way) -> &'a [f64]) -> Runs<'a> {
        Runs(Way::ALL.map(of))
    }

    fn sides(&self, part: Part) -> [&'a [f64]; 2] {
        part.between().map(|way| self.0[way as usize])
    }

    /// A part in nanoseconds: the difference of the medians over processes, and its interval.
    #[must_use]
    pub fn part(&self, part: Part) -> Option<Ratio> {
        interval(&self.sides(part), |drawn| difference(drawn, 0))
    }

    /// Nanoseconds of a call without a probe.
    #[must_use]
    pub fn plain(&self) -> Option<f64> {
        median(self.0[Way::Plain as usize])
    }
}

/// A part of some runs.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The runs.
    pub runs: Runs<'a>,
    /// The part.
    pub part: Part,
}

impl<'a> Side<'a> {
    /// A part of some runs.
    #[must_use]
    pub fn new(runs: Runs<'a>, part: Part) -> Side<'a> {
        Side { runs, part }
    }
}

/// The ratio of two parts. A divisor that is not above zero for sure says nothing of a ratio.
#[must_use]
pub fn ratio(above: Side<'_>, below: Side<'_>) -> Option<Figure> {
    let ([a, b], [c, d]) = (above.runs.sides(above.part), below.runs.sides(below.part));
    figure(
        &[a, b, c, d],
        |drawn| difference(drawn, 0),
        |drawn| difference(drawn, 2),
    )
}

/// The ratio of a part to a time.
#[must_use]
pub fn ratio_to(above: Side<'_>, ns: f64) -> Option<Figure> {
    let part = above.runs.part(above.part)?;
    Some(Figure::between(
        part.value / ns,
        part.low / ns,
        part.high / ns,
    ))
}

/// Growth of a part for each further call, between three depths: from the second to the third over
/// that from the first to the second.
#[must_use]
pub fn slopes(sides: [Side<'_>; 3], depths: [u32; 3]) -> Option<Figure> {
    let lists: Vec<&[f64]> = sides
        .iter()
        .flat_map(|side| side.runs.sides(side.part))
        .collect();
    let slope = |drawn: &[Vec<f64>], from: usize| {
        let grown = difference(drawn, 2 * from + 2)? - difference(drawn, 2 * from)?;
        Some(grown / f64::from(depths[from + 1] - depths[from]))
    };
    figure(&lists, |drawn| slope(drawn, 1), |drawn| slope(drawn, 0))
}

/// Growth of a part for each further call between two depths, over what it is at the first.
#[must_use]
pub fn further(sides: [Side<'_>; 2], depths: [u32; 2]) -> Option<Figure> {
    let lists: Vec<&[f64]> = sides
        .iter()
        .flat_map(|side| side.runs.sides(side.part))
        .collect();
    let calls = f64::from(depths[1] - depths[0]);
    figure(
        &lists,
        |drawn| Some((difference(drawn, 2)? - difference(drawn, 0)?) / calls),
        |drawn| difference(drawn, 0),
    )
}

/// A part for each call at one depth, over the same at another.
#[must_use]
pub fn each(sides: [Side<'_>; 2], depths: [u32; 2]) -> Option<Figure> {
    let lists: Vec<&[f64]> = sides
        .iter()
        .flat_map(|side| side.runs.sides(side.part))
        .collect();
    let of =
        |drawn: &[Vec<f64>], nth: usize| Some(difference(drawn, 2 * nth)? / f64::from(depths[nth]));
    figure(&lists, |drawn| of(drawn, 0), |drawn| of(drawn, 1))
}

/// The quotient of two figures of the same runs, and its interval.
fn figure(
    lists: &[&[f64]],
    above: impl Fn(&[Vec<f64>]) -> Option<f64>,
    below: impl Fn(&[Vec<f64>]) -> Option<f64>,
) -> Option<Figure> {
    let divisor = interval(lists, &below)?;
    let found = interval(lists, |drawn| Some(above(drawn)? / below(drawn)?))?;
    if divisor.low > 0.0 {
        return Some(Figure::between(found.value, found.low, found.high));
    }
    Some(Figure {
        relation: Relation::Unclear,
        ratio: Some((found.value, found.low, found.high)),
    })
}

/// The difference of the medians of two neighbouring lists.
fn difference(drawn: &[Vec<f64>], at: usize) -> Option<f64> {
    Some(median(drawn.get(at)?)? - median(drawn.get(at + 1)?)?)
}
