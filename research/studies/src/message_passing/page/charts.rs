//! The source's figures, drawn again.

use hearth_draw::Picture;
use hearth_draw::line::{Axis, LineChart, Look, Mark, Point, Series};
use hearth_draw::scale::{Scale, Unit};
use hearth_sync::Mode;

use super::super::options::Experiment;
use super::super::plan::Fit;
use super::super::results::{BUSY, CYCLES, Cell, RATE, Results};

/// The charts as files of their own, by name.
#[must_use]
pub fn charts(results: &Results) -> Vec<(String, String)> {
    let mut charts = Vec::new();
    for experiment in [
        Experiment::Displacement,
        Experiment::Invalidation,
        Experiment::MessageSize,
    ] {
        for fit in results.fits(experiment) {
            for (figure, picture, _) in of_experiment(results, experiment, fit) {
                charts.push((format!("{figure}-{}.svg", super::tag(fit)), picture.file()));
            }
        }
    }
    charts
}

/// The sizes in words.
pub(super) fn sizes_in_words(results: &Results, fit: Fit) -> String {
    let sizes = results.sizes(fit);
    let whose = match fit {
        Fit::Machine => "Sizes for this machine's first cache",
        Fit::Source => "The source's sizes",
    };
    format!(
        "{whose}: {} lines, each loop's own data {}",
        sizes.cache_lines(),
        sizes.local_lines()
    )
}

/// The figures of an experiment: the source's number, picture, caption.
pub(super) fn of_experiment(
    results: &Results,
    experiment: Experiment,
    fit: Fit,
) -> Vec<(String, Picture, String)> {
    let draw = Draw {
        results,
        experiment,
        fit,
    };
    match experiment {
        Experiment::Displacement => vec![
            draw.displacement("3.5a", RATE, "Source: messages are worse below 64 lines, up to 3 times as good within the first cache, and equal beyond it."),
            draw.displacement("3.5b", CYCLES, "Source: up to 23 % fewer cycles by message while the section fits, and nearly equal beyond."),
        ],
        Experiment::Invalidation => vec![
            draw.invalidation("3.6a", Mode::Lock, RATE, "Source: falls, on a straight line for 2 and 4 threads and faster at first for 8 and 12; beyond 32 lines 4 threads are above 8, and 8 above 12."),
            draw.invalidation("3.6b", Mode::Message, RATE, "Source: level, and higher with more threads until the server is busy with 12."),
            draw.invalidation("3.6c", Mode::Lock, CYCLES, "Source: rises on a straight line."),
            draw.invalidation("3.6d", Mode::Message, CYCLES, "Source: nearly constant."),
        ],
        _ => vec![
            draw.message_size("3.7a", RATE, "Source: falls mildly with 5 threads and steeply with 9; 16 threads are below 9."),
            draw.message_size("3.7b", BUSY, "Source: rises toward 100 %."),
        ],
    }
}

struct Draw<'a> {
    results: &'a Results,
    experiment: Experiment,
    fit: Fit,
}

type Figure = (String, Picture, String);

impl Draw<'_> {
    fn displacement(&self, name: &str, figure: &str, caption: &str) -> Figure {
        let mut series = Vec::new();
        let message = self.results.threads(self.experiment, Mode::Message);
        let of_lock = self.results.threads(self.experiment, Mode::Lock);
        for (mode, word, threads) in [
            (Mode::Message, "by message", &message),
            (Mode::Lock, "under the lock", &of_lock),
        ] {
            for &n in threads {
                self.both(&mut series, mode, n, word, figure, |_| true);
            }
        }
        let cache = self.results.sizes(self.fit).cache_lines();
        let marks = vec![mark(cache, "first cache")];
        self.chart(name, "lines of the section", figure, series, marks, caption)
    }

    fn invalidation(&self, name: &str, mode: Mode, figure: &str, caption: &str) -> Figure {
        let mut series = Vec::new();
        for n in self.results.threads(self.experiment, mode) {
            let word = if mode == Mode::Lock {
                "under the lock"
            } else {
                "by message"
            };
            self.both(&mut series, mode, n, word, figure, |_| true);
        }
        self.chart(name, "lines modified", figure, series, Vec::new(), caption)
    }

    fn message_size(&self, name: &str, figure: &str, caption: &str) -> Figure {
        let mut series = Vec::new();
        let mut sections: Vec<usize> = self
            .results
            .of(self.experiment)
            .filter(|cell| cell.case.fit == self.fit)
            .map(|cell| cell.case.config.section_lines)
            .collect();
        sections.sort_unstable();
        sections.dedup();
        for n in self.results.threads(self.experiment, Mode::Message) {
            for &lines in &sections {
                let word = format!(
                    "section of {lines} line{},",
                    if lines == 1 { "" } else { "s" }
                );
                self.both(&mut series, Mode::Message, n, &word, figure, |cell| {
                    cell.case.config.section_lines == lines
                });
            }
        }
        let title = "bytes of the message";
        self.chart(name, title, figure, series, Vec::new(), caption)
    }

    /// Adds the measured series and beside it the predicted one, in one colour.
    fn both(
        &self,
        all: &mut Vec<Series>,
        mode: Mode,
        threads: usize,
        word: &str,
        figure: &str,
        is_of: impl Fn(&Cell) -> bool,
    ) {
        let mut cells = self
            .results
            .series(self.experiment, self.fit, mode, threads);
        cells.retain(|cell| is_of(cell));
        if cells.is_empty() {
            return;
        }
        // In every chart the same threads in the same mode have one colour.
        let colour = all
            .iter()
            .filter(|series| series.look == Look::Line)
            .count();
        let name = format!(
            "{word} {threads} thread{}",
            if threads == 1 { "" } else { "s" }
        );
        all.push(Series::line(&name, measured(&cells, figure)).coloured(colour));
        let expected = self.expected(&cells, figure);
        if !expected.is_empty() {
            let name = format!("{name}, predicted");
            all.push(Series::dashed(&name, expected).coloured(colour));
        }
    }

    /// Predicted points, where each thread has a core and for figures that the costs predict.
    fn expected(&self, cells: &[&Cell], figure: &str) -> Vec<Point> {
        let Some(costs) = &self.results.site.costs else {
            return Vec::new();
        };
        let is_told = figure == RATE && self.experiment != Experiment::MessageSize;
        let points = cells
            .iter()
            .filter(|cell| is_told && cell.case.config.threads <= self.results.site.cores.len());
        points
            .map(|cell| Point::new(cell.case.x as f64, costs.expect(&cell.case.config).rate))
            .collect()
    }

    fn chart(
        &self,
        name: &str,
        x: &str,
        figure: &str,
        series: Vec<Series>,
        marks: Vec<Mark>,
        caption: &str,
    ) -> Figure {
        let (y, unit) = match figure {
            RATE => ("iterations of all loops per second", Unit::Number),
            CYCLES => ("cycles per iteration", Unit::Number),
            _ => ("server busy", Unit::Percent),
        };
        let across = match self.experiment {
            Experiment::Invalidation => Axis::new(x, Scale::Linear, Unit::Number),
            Experiment::MessageSize => Axis::new(x, Scale::Log2, Unit::Bytes),
            _ => Axis::new(x, Scale::Log2, Unit::Number),
        };
        let mut upwards = Axis::new(y, Scale::Linear, unit);
        let most = series
            .iter()
            .flat_map(|series| &series.points)
            .flat_map(|point| [point.y, point.interval.map_or(point.y, |(_, high)| high)])
            .fold(0.0, f64::max);
        // The axis begins at 0, so that a level curve looks level.
        let top = if figure == BUSY { 100.0 } else { 1.05 * most };
        if top > 0.0 {
            upwards.range = Some((0.0, top));
        }
        let title = format!("Figure {name}: {}", title(self.experiment, figure));
        let chart = LineChart {
            x: across,
            y: upwards,
            series,
            marks,
            ..LineChart::new(&title)
        };
        (name.to_owned(), chart.draw(), caption.to_owned())
    }
}

fn title(experiment: Experiment, figure: &str) -> &'static str {
    match (experiment, figure) {
        (Experiment::Displacement, RATE) => "throughput by the section's size",
        (Experiment::Displacement, _) => "cycles by the section's size",
        (Experiment::Invalidation, RATE) => "throughput by lines modified",
        (Experiment::Invalidation, _) => "cycles by lines modified",
        (_, RATE) => "throughput by the message's size",
        _ => "requests that found the server busy",
    }
}

fn mark(at: usize, label: &str) -> Mark {
    Mark {
        at: at as f64,
        label: label.to_owned(),
    }
}

/// Medians with the least and the most.
fn measured(cells: &[&Cell], figure: &str) -> Vec<Point> {
    let point = |cell: &&Cell| {
        let summary = cell.summary(figure)?;
        let point = Point::new(cell.case.x as f64, summary.median);
        Some(point.within(summary.least, summary.most))
    };
    cells.iter().filter_map(point).collect()
}
