//! The page's tables.

use hearth_draw::page::Table;
use hearth_stats::Summary;
use hearth_sync::Mode;

use super::super::options::{Experiment, defects_of};
use super::super::results::{BUSY, CYCLES, Cell, MODIFIED, RATE, Results};
use crate::judging::Figure;
use crate::study::Case as _;

/// Says how a mode runs a section.
pub(super) fn mode_in_words(mode: &str) -> &str {
    match mode {
        "lock" => "under the lock",
        "message" => "by message",
        other => other,
    }
}

/// Every cell of an experiment.
pub(super) fn cells(results: &Results, experiment: Experiment) -> Table {
    let mut table = Table::new(&[
        "sizes",
        "mode",
        ">threads",
        ">section",
        ">modified",
        ">message",
        ">iterations/s",
        ">least",
        ">most",
        ">cycles",
        ">busy %",
        ">predicted/s",
    ]);
    for cell in results.of(experiment) {
        let config = &cell.case.config;
        let mut row = vec![
            cell.case.fit.id().to_owned(),
            config.mode.to_string(),
            config.threads.to_string(),
            config.section_lines.to_string(),
            config.modified_lines.to_string(),
            config.message_bytes.to_string(),
        ];
        let Some(rate) = cell.summary(RATE) else {
            row.push("failed".to_owned());
            row.resize(table.columns.len(), String::new());
            table.row(row);
            continue;
        };
        let median = |figure| {
            let summary = cell.summary(figure);
            summary.map_or(String::new(), |summary| format!("{:.0}", summary.median))
        };
        let is_carried = config.threads <= results.site.cores.len();
        let costs = results.site.costs.as_ref().filter(|_| is_carried);
        row.extend([
            format!("{:.0}", rate.median),
            format!("{:.0}", rate.least),
            format!("{:.0}", rate.most),
            median(CYCLES),
            median(BUSY),
            costs.map_or(String::new(), |costs| {
                format!("{:.0}", costs.expect(config).rate)
            }),
        ]);
        table.row(row);
    }
    table
}

/// Message over lock in every cell of the first two experiments.
pub(super) fn trade_off(results: &Results) -> Table {
    let mut table = Table::new(&[
        "sizes",
        ">threads",
        ">section",
        ">modified",
        ">as many threads",
        ">as many loops",
    ]);
    for experiment in [Experiment::Displacement, Experiment::Invalidation] {
        let by_message = results
            .of(experiment)
            .filter(|cell| cell.case.config.mode == Mode::Message);
        for cell in by_message {
            let config = &cell.case.config;
            let over = |threads| {
                let locks = results.series(experiment, cell.case.fit, Mode::Lock, threads);
                let lock = locks.into_iter().find(|lock| lock.case.x == cell.case.x)?;
                Some(Figure::of_runs(cell.runs(RATE), lock.runs(RATE))?.words())
            };
            table.row(vec![
                cell.case.fit.id().to_owned(),
                config.threads.to_string(),
                config.section_lines.to_string(),
                config.modified_lines.to_string(),
                over(config.threads).unwrap_or_default(),
                over(config.threads - 1).unwrap_or_default(),
            ]);
        }
    }
    table
}

pub(super) fn distances(results: &Results) -> Table {
    let mut table = Table::new(&[
        "experiment",
        "mode",
        ">section",
        ">modified",
        ">all miss the first %",
        ">section's miss it %",
        ">miss the second %",
    ]);
    for traced in &results.site.traced {
        let share = |level: usize, of_section: bool| {
            let misses = traced.misses.get(level);
            misses.map_or(String::new(), |(_, all, section)| {
                format!("{:.1}", 100.0 * if of_section { section } else { all })
            })
        };
        table.row(vec![
            traced.experiment.clone(),
            mode_in_words(&traced.mode).to_owned(),
            traced.section_lines.to_string(),
            traced.modified_lines.to_string(),
            share(0, false),
            share(0, true),
            share(1, false),
        ]);
    }
    table
}

/// `auto` beside each mode, and in how many cells it holds.
pub(super) fn auto(results: &Results) -> (Table, usize) {
    let mut table = Table::new(&[
        ">loops",
        ">section",
        ">modified",
        ">lock/s",
        ">combine/s",
        ">message/s",
        ">auto/s",
        ">auto over best",
        ">least",
        ">most",
        "it says",
    ]);
    let mut held = 0;
    let autos = results
        .of(Experiment::Auto)
        .filter(|cell| cell.case.config.mode == Mode::Auto);
    for cell in autos {
        let Some((ratio, of_modes)) = auto_over_best(results, cell) else {
            continue;
        };
        held += usize::from(ratio.median >= 0.95);
        let config = &cell.case.config;
        let mut row = vec![
            config.threads.to_string(),
            config.section_lines.to_string(),
            config.modified_lines.to_string(),
        ];
        row.extend(of_modes.map(|rate| format!("{rate:.0}")));
        row.extend([
            cell.summary(RATE)
                .map_or(String::new(), |rate| format!("{:.0}", rate.median)),
            format!("{:.3}", ratio.median),
            format!("{:.3}", ratio.least),
            format!("{:.3}", ratio.most),
            results
                .site
                .explained
                .get(&cell.case.words())
                .cloned()
                .unwrap_or_default(),
        ]);
        table.row(row);
    }
    (table, held)
}

/// Returns the rate of an `auto` cell over that of the mode with the best median, turn by turn; and
/// the modes' medians.
pub(super) fn auto_over_best(results: &Results, auto: &Cell) -> Option<(Summary, [f64; 3])> {
    let config = &auto.case.config;
    let of = |mode| {
        let cells = results.series(Experiment::Auto, auto.case.fit, mode, config.threads);
        cells.into_iter().find(|cell| {
            let other = &cell.case.config;
            other.section_lines == config.section_lines
                && other.modified_lines == config.modified_lines
        })
    };
    let modes = [of(Mode::Lock)?, of(Mode::Combine)?, of(Mode::Message)?];
    let median = |cell: &Cell| cell.summary(RATE).map_or(0.0, |rate| rate.median);
    let best = modes
        .iter()
        .max_by(|a, b| median(a).total_cmp(&median(b)))?;
    let turns = auto.runs(RATE).iter().zip(best.runs(RATE));
    let ratios: Vec<f64> = turns.map(|(auto, best)| auto / best).collect();
    Some((Summary::of(&ratios)?, modes.map(median)))
}

pub(super) fn listing(results: &Results) -> Table {
    let mut table = Table::new(&[
        ">asked for",
        "defect",
        ">modified a pass",
        ">different lines",
    ]);
    for cell in results.of(Experiment::Listing) {
        let figure = |name| {
            let summary = cell.summary(name);
            summary.map_or("failed".to_owned(), |summary| {
                format!("{:.1}", summary.median)
            })
        };
        let defects = defects_of(cell.case.config.defects);
        table.row(vec![
            cell.case.x.to_string(),
            if defects.is_empty() {
                "none".to_owned()
            } else {
                defects.join(", ")
            },
            figure(MODIFIED),
            figure("lines"),
        ]);
    }
    table
}
