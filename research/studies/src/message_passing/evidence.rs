//! The figures from which the claims are judged.
//!
//! The sizes are those fitted to this machine's first cache where they were run. Most claims are
//! about more threads than many machines have cores. A claim about numbers of threads that were not
//! run is not judged; one about ten threads or so that came out otherwise with fewer is not refuted
//! either, as the server's core is a larger share of all.

use hearth_sync::Mode;

use super::explain;
use super::options::Experiment;
use super::plan::{Fit, INVALIDATION_THREADS, MESSAGE_THREADS};
use super::published;
use super::results::{BUSY, CYCLES, Cell, RATE, Results};
use crate::claims::{Claims, Evidence, Size};
use crate::judging::Figure;

/// The source's claims.
pub static CLAIMS: Claims = Claims {
    table: include_str!("../../published/message-passing/claims.md"),
    size: Size::Factor,
};

/// The published evidence.
#[must_use]
pub fn as_published() -> Evidence {
    Evidence::new(&CLAIMS, published::CORES).with(published::findings())
}

/// The measured evidence.
#[must_use]
pub fn measured(results: &Results) -> Evidence {
    let mut evidence = Evidence::new(&CLAIMS, results.site.cores.len());
    displacement(results, &mut evidence);
    invalidation(results, &mut evidence);
    message_size(results, &mut evidence);
    evidence.explain(explain::explained(results));
    evidence
}

/// The sizes by which an experiment is judged.
pub(super) fn judged_fit(results: &Results, experiment: Experiment) -> Option<Fit> {
    results.fits(experiment).first().copied()
}

/// The largest number of threads that have a core each; else the smallest that was run.
pub(super) fn judged_threads(results: &Results, experiment: Experiment) -> Option<usize> {
    let threads = results.threads(experiment, Mode::Message);
    let fits = threads
        .iter()
        .rev()
        .find(|n| **n <= results.site.cores.len());
    fits.or(threads.first()).copied()
}

/// Cells of both modes at the same place.
fn pairs<'a>(of: &[&'a Cell], to: &[&'a Cell]) -> Vec<(&'a Cell, &'a Cell)> {
    let partner = |cell: &&'a Cell| {
        let found = to.iter().find(|other| other.case.x == cell.case.x)?;
        Some((*cell, *found))
    };
    of.iter().filter_map(partner).collect()
}

fn displacement(results: &Results, evidence: &mut Evidence) {
    let experiment = Experiment::Displacement;
    let (Some(fit), Some(threads)) = (
        judged_fit(results, experiment),
        judged_threads(results, experiment),
    ) else {
        return;
    };
    evidence.set_threads(threads);
    let cache = results.sizes(fit).cache_lines();
    let series = |mode, threads| results.series(experiment, fit, mode, threads);
    let message = series(Mode::Message, threads);
    let alike = pairs(&message, &series(Mode::Lock, threads));
    // The source's 64 lines, in proportion, are not among the small ones.
    let small = alike
        .iter()
        .rev()
        .find(|(cell, _)| cell.case.x * 1024 < 64 * cache);
    let beyond = alike.last().filter(|(cell, _)| cell.case.x > cache);
    let within = alike
        .iter()
        .filter(|(cell, _)| cell.case.x * 1024 >= 64 * cache && cell.case.x < cache);
    let names = [(RATE, ""), (CYCLES, "cycles ")];
    for (figure, word) in names {
        if let Some((of, to)) = small.filter(|_| figure == RATE) {
            evidence.put_runs(
                "displacement small message/lock",
                of.runs(figure),
                to.runs(figure),
            );
        }
        if let Some((of, to)) = beyond {
            let name = format!("displacement {word}beyond message/lock");
            evidence.put_runs(&name, of.runs(figure), to.runs(figure));
        }
        let ratios = within.clone().filter_map(|(of, to)| {
            Figure::of_runs(of.runs(figure), to.runs(figure)).and_then(|f| Some((f.ratio?.0, f)))
        });
        let best = match figure {
            RATE => ratios.max_by(|a, b| a.0.total_cmp(&b.0)),
            _ => ratios.min_by(|a, b| a.0.total_cmp(&b.0)),
        };
        if let Some((_, best)) = best {
            evidence.put(&format!("displacement {word}best message/lock"), best);
        }
    }
    lines(results, fit, threads, evidence);
}

/// Adds the cost of a further line of the section, ns: by message within the first cache and beyond
/// it; under the lock with as many loops.
fn lines(results: &Results, fit: Fit, threads: usize, evidence: &mut Evidence) {
    let slopes = Slopes::of(results, fit, threads);
    if let Some((message, lock)) = slopes.message.zip(slopes.lock) {
        evidence.put(
            "displacement line message/lock",
            Figure::exact(message / lock),
        );
    }
    if let Some((beyond, within)) = slopes.beyond.zip(slopes.message) {
        let name = "displacement line beyond/within by message";
        evidence.put(name, Figure::exact(beyond / within));
    }
}

/// Time that a further line of the section adds to an iteration of one loop, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slopes {
    /// The slope by message, while the section fits the first cache.
    pub message: Option<f64>,
    /// Under the lock, with as many loops, for the same sections.
    pub lock: Option<f64>,
    /// The slope by message, beyond the first cache.
    pub beyond: Option<f64>,
}

impl Slopes {
    /// Computes the slopes of the results with `threads` threads.
    #[must_use]
    pub fn of(results: &Results, fit: Fit, threads: usize) -> Slopes {
        let experiment = Experiment::Displacement;
        let cache = results.sizes(fit).cache_lines() as f64;
        let series = |mode, threads| results.series(experiment, fit, mode, threads);
        // At three quarters of the cache the loop's stack and the queue still have room.
        let within = |cell: &&&Cell| (cell.case.x as f64) <= 0.75 * cache;
        let beyond = |cell: &&&Cell| (cell.case.x as f64) >= cache;
        let slope = |cells: Vec<&&Cell>| {
            let points = cells.into_iter().filter_map(|cell| {
                let rate = cell.summary(RATE)?.median;
                let loops = cell.case.config.loops() as f64;
                Some((cell.case.x as f64, 1e9 * loops / rate))
            });
            line(&points.collect::<Vec<_>>())
                .map(|line| line.slope)
                .filter(|slope| *slope > 0.0)
        };
        let (message, lock) = (
            series(Mode::Message, threads),
            series(Mode::Lock, threads - 1),
        );
        Slopes {
            message: slope(message.iter().filter(within).collect()),
            lock: slope(lock.iter().filter(within).collect()),
            beyond: slope(message.iter().filter(beyond).collect()),
        }
    }
}

/// A straight line through points by least squares.
struct Line {
    slope: f64,
    /// The share of the variance that it explains.
    straightness: f64,
    /// The root mean square of what it leaves.
    residual: f64,
}

impl Line {
    /// Measures how straight the points lie. If runs alone leave as much as the line does, they may
    /// as well lie straight.
    fn figure(&self, noise: f64) -> Figure {
        let high = if self.residual <= noise {
            1.0
        } else {
            self.straightness
        };
        Figure::between(self.straightness, self.straightness, high)
    }
}

/// The root mean square, over cells, of the standard error of a figure's mean: what runs leave
/// without any cause.
fn noise(cells: &[&Cell], figure: &str) -> f64 {
    let squares = cells.iter().filter_map(|cell| {
        let runs = cell.runs(figure).len() as f64;
        Some(cell.summary(figure)?.deviation.powi(2) / runs)
    });
    let squares: Vec<f64> = squares.collect();
    (squares.iter().sum::<f64>() / squares.len().max(1) as f64).sqrt()
}

fn line(points: &[(f64, f64)]) -> Option<Line> {
    let count = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|p| p.0), mean(|p| p.1));
    let across: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    let along: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    let all: f64 = points.iter().map(|p| (p.1 - mean_y).powi(2)).sum();
    if across <= 0.0 || all <= 0.0 {
        return None;
    }
    let slope = along / across;
    let left = (all - slope * along).max(0.0);
    Some(Line {
        slope,
        straightness: 1.0 - left / all,
        residual: (left / count).sqrt(),
    })
}

fn medians(cells: &[&Cell], figure: &str) -> Vec<(f64, f64)> {
    let of = |cell: &&Cell| Some((cell.case.x as f64, cell.summary(figure)?.median));
    cells.iter().filter_map(of).collect()
}

fn invalidation(results: &Results, evidence: &mut Evidence) {
    let experiment = Experiment::Invalidation;
    let Some(fit) = judged_fit(results, experiment) else {
        return;
    };
    let series = |mode, threads| results.series(experiment, fit, mode, threads);
    let carried = |threads: &usize| *threads <= results.site.cores.len().max(2);
    for threads in INVALIDATION_THREADS.into_iter().filter(carried) {
        for (mode, name) in [(Mode::Lock, "lock"), (Mode::Message, "message")] {
            let cells = series(mode, threads);
            let (Some(none), Some(most)) = (cells.first(), cells.last()) else {
                continue;
            };
            for (figure, word) in [(RATE, ""), (CYCLES, "cycles ")] {
                let put = format!("invalidation {name} {word}most/none {threads}");
                evidence.put_runs(&put, most.runs(figure), none.runs(figure));
            }
        }
        shapes(&series(Mode::Lock, threads), threads, evidence);
    }
    let last = |mode, threads: usize| series(mode, threads).pop().filter(|_| carried(&threads));
    // The source says it of more than a quarter of the section's lines: the most of all.
    for (of, to) in [(8, 4), (12, 8)] {
        if let (Some(of_cell), Some(to_cell)) = (last(Mode::Lock, of), last(Mode::Lock, to)) {
            let name = format!("invalidation lock {of}/{to}");
            evidence.put_runs(&name, of_cell.runs(RATE), to_cell.runs(RATE));
        }
    }
    if let (Some(of), Some(to)) = (last(Mode::Message, 12), last(Mode::Message, 2)) {
        evidence.put_runs("invalidation message 12/2", of.runs(RATE), to.runs(RATE));
    }
    if let Some(busy) = last(Mode::Message, 12) {
        evidence.put_runs("invalidation busy 12 of 100", busy.runs(BUSY), &[100.0][..]);
    }
    if let (Some(of), Some(to)) = (last(Mode::Message, 12), last(Mode::Lock, 12)) {
        evidence.put_runs(
            "invalidation most message/lock 12",
            of.runs(RATE),
            to.runs(RATE),
        );
        let name = "invalidation most cycles message/lock 12";
        evidence.put_runs(name, of.runs(CYCLES), to.runs(CYCLES));
    }
}

/// Straight, or faster at first? The second is straight in the logarithm.
fn shapes(cells: &[&Cell], threads: usize, evidence: &mut Evidence) {
    let rates = medians(cells, RATE);
    let mean = rates.iter().map(|p| p.1).sum::<f64>() / rates.len().max(1) as f64;
    let logs: Vec<(f64, f64)> = rates.iter().map(|p| (p.0, p.1.ln() * mean)).collect();
    if let (Some(straight), Some(curved)) = (line(&rates), line(&logs)) {
        let name = format!("invalidation lock straightness {threads}");
        evidence.put(&name, straight.figure(noise(cells, RATE)));
        let name = format!("invalidation lock curved/straight residuals {threads}");
        let ratio = curved.residual / straight.residual.max(1e-9 * mean);
        evidence.put(&name, Figure::exact(ratio));
    }
    if let Some(straight) = line(&medians(cells, CYCLES)) {
        let name = format!("invalidation lock cycles straightness {threads}");
        evidence.put(&name, straight.figure(noise(cells, CYCLES)));
    }
}

/// The source's three numbers of threads stand for little, middling and much to serve; on fewer
/// cores there is the first alone.
fn message_size(results: &Results, evidence: &mut Evidence) {
    let experiment = Experiment::MessageSize;
    let Some(fit) = judged_fit(results, experiment) else {
        return;
    };
    let there = results.threads(experiment, Mode::Message);
    let carried = |threads: usize| there.contains(&threads) && threads <= results.site.cores.len();
    let [low, middle, high] = MESSAGE_THREADS;
    let low = if carried(low) {
        Some(low)
    } else {
        there.first().copied()
    };
    let middle = carried(middle).then_some(middle);
    let high = carried(high).then_some(high);
    // Of the source's two sizes of the section that of its text, one line: the message is then
    // nearly all.
    let series = |threads: Option<usize>| -> Vec<&Cell> {
        let cells = threads.map(|n| results.series(experiment, fit, Mode::Message, n));
        let mut cells = cells.unwrap_or_default();
        cells.retain(|cell| cell.case.config.section_lines == 1);
        cells
    };
    let ends = |cells: &[&Cell], figure| -> Option<Figure> {
        let (small, large) = (cells.first()?, cells.last()?);
        Figure::of_runs(large.runs(figure), small.runs(figure))
    };
    let (low, middle, high) = (series(low), series(middle), series(high));
    for (name, cells, figure) in [
        ("message-size low largest/smallest", &low, RATE),
        ("message-size middle largest/smallest", &middle, RATE),
        ("message-size busy low largest/smallest", &low, BUSY),
    ] {
        if let Some(found) = ends(cells, figure) {
            evidence.put(name, found);
        }
    }
    if let (Some(small), Some(large), Some(low_small), Some(low_large)) =
        (middle.first(), middle.last(), low.first(), low.last())
    {
        let sides = [large, small, low_large, low_small].map(|cell| cell.runs(RATE));
        let ratio = hearth_stats::ratio_of_ratios(sides);
        let figure = ratio.map(|ratio| Figure::between(ratio.value, ratio.low, ratio.high));
        evidence.put("message-size fall middle/low", figure);
    }
    if let (Some(of), Some(to)) = (high.last(), middle.last()) {
        evidence.put_runs("message-size high/middle", of.runs(RATE), to.runs(RATE));
    }
    if let Some(busy) = middle.last() {
        evidence.put_runs(
            "message-size busy middle of 100",
            busy.runs(BUSY),
            &[100.0][..],
        );
    }
}
