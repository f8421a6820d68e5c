//! The study as one page: the claims first, then every figure again, then what the benchmark is.

mod charts;
mod tables;

use hearth_draw::page::{Section, Table};

use super::evidence::{as_published, measured};
use super::options::{DEFECTS, Experiment};
use super::plan::Fit;
use super::published::{CONDITIONS, findings};
use super::results::Results;
use crate::cache_impact::page::tables::sentence;
use crate::pages::{self, counted};

pub use charts::charts;

/// Draws the page.
#[must_use]
pub fn page(results: &Results) -> String {
    let used = format!(
        "{}, first data cache {} lines of 64 bytes",
        counted(results.site.cores.len(), "core"),
        results.site.cache_lines
    );
    let mut page = pages::begin(
        "Locality by message passing",
        &results.about,
        &used,
        "Is a section of code better run where its caller is, under a lock, or by message on the core that has its \
         data? The source, of 2014, measured both on four Opterons of six cores. Its benchmark is run again here, in \
         sizes that fit this machine's caches and in its own. Its curves are lost: its text has their shapes in \
         words and three numbers, and those stand beside what was measured.",
    );
    page.add(claims(results));
    for experiment in [
        Experiment::Displacement,
        Experiment::Invalidation,
        Experiment::MessageSize,
    ] {
        page.add(figures(results, experiment));
    }
    page.add(trade_off(results));
    page.add(distances(results));
    page.add(auto(results));
    page.add(listing(results));
    page.add(conditions(results));
    page.add(published());
    pages::end(page, "message-passing", &results.about)
}

fn claims(results: &Results) -> Section {
    let section = Section::new("What the source claims").text(
        "Each claim is judged by one rule, which the source's own findings go through as well. Ratios of medians \
         stand with their 95 % bootstrap interval; alike is within 10 %; a published size is met \
         within a factor of 1.5. What takes more cores than there are is not judged.",
    );
    pages::claims(
        section,
        &measured(results).verdicts(),
        &as_published().verdicts(),
        &results.about,
    )
}

/// The source's figures of an experiment, redrawn for each of the sizes.
fn figures(results: &Results, experiment: Experiment) -> Section {
    let (heading, text) = match experiment {
        Experiment::Displacement => (
            "Figures 3.5: data displacement",
            "Each loop's own data is twice the first cache, and the section's grows; nothing is modified. A broken \
             line is what the machine's measured costs predict. Under the lock there is one loop more, which by \
             message is the server; one series has as many loops as there are by message.",
        ),
        Experiment::Invalidation => (
            "Figures 3.6: data invalidation",
            "The section has an eighth of the first cache and modifies more and more of its lines. Under the lock \
             each thread finds what others have modified; by message nobody does.",
        ),
        _ => (
            "Figures 3.7: size of the message",
            "By message only, one copy, as the source has it. It says of the section that it has 128 lines, and \
             elsewhere one line: both are run.",
        ),
    };
    let mut section = Section::new(heading).text(text);
    if results.of(experiment).next().is_none() {
        return section.text("Not measured.");
    }
    for fit in results.fits(experiment) {
        section = section.heading(&charts::sizes_in_words(results, fit));
        for (_, picture, caption) in charts::of_experiment(results, experiment, fit) {
            section = section.picture(&picture, &caption);
        }
    }
    section.folded_table("All cells", &tables::cells(results, experiment))
}

/// The source's section 3.4.5 as a table: where which mode is better here.
fn trade_off(results: &Results) -> Section {
    let section = Section::new("The trade-off").text(
        "Under the lock a section's data is fetched wherever it runs; by message the request is. The first is better \
         where the data of both fits the cache, or little is modified; the second where it does not, or much is, and \
         the server has time left. Throughput by message over that under the lock, as measured, with as many threads \
         and with as many loops.",
    );
    let table = tables::trade_off(results);
    if table.rows.is_empty() {
        return section.text("Not measured.");
    }
    section.table(&table)
}

fn distances(results: &Results) -> Section {
    let section = Section::new("Reuse distances").text(
        "The source reasons with reuse distances and does not measure them. These are of the benchmark's own walks, \
         six passes of each of two threads, for caches as large as this machine's first two that drop the line \
         longest unused; six passes touch each line first in one of six. The detectors' words are those of `hearth \
         locality`.",
    );
    if results.site.traced.is_empty() {
        return section.text("Not computed.");
    }
    let mut section = section.table(&tables::distances(results));
    for traced in &results.site.traced {
        let words: Vec<String> = [&traced.displacement, &traced.invalidation]
            .into_iter()
            .flatten()
            .map(|word| sentence(word))
            .collect();
        if !words.is_empty() {
            let heading = format!(
                "{}, {}, {} lines of which {} are modified",
                traced.experiment,
                tables::mode_in_words(&traced.mode),
                traced.section_lines,
                traced.modified_lines
            );
            section = section.heading(&heading).list(&words);
        }
    }
    section
}

fn auto(results: &Results) -> Section {
    let section = Section::new("The mode found by measuring").text(
        "Each mode and `auto` in turns in every cell of the first two experiments, with Hearth's own queue and as many \
         loops in each mode; the server comes besides. The ratio is that of `auto` to the mode with the best median, \
         within each turn. It is to be 0.95 or more.",
    );
    let (table, held) = tables::auto(results);
    if table.rows.is_empty() {
        return section.text("Not measured.");
    }
    section
        .text(&format!(
            "{held} of {} cells are within 5 % of the best mode.",
            table.rows.len()
        ))
        .table(&table)
}

fn listing(results: &Results) -> Section {
    let mut names = Table::new(&["defect", "what"]);
    for (name, what) in DEFECTS {
        names.row(vec![name.to_owned(), what.to_owned()]);
    }
    let section = Section::new("The source's listing").text(
        "The printed walk does otherwise than its text says. Each defect can be had back with --defect, in all runs. \
         Lines are counted in the data after a run; a section has 128.",
    );
    let table = tables::listing(results);
    let section = section.table(&names);
    if table.rows.is_empty() {
        return section.text("Not counted.");
    }
    section.table(&table)
}

fn conditions(results: &Results) -> Section {
    let mut table = Table::new(&["", "the source", "here"]);
    for (what, there) in CONDITIONS {
        let here = match what {
            "machine" => results.about.machine.processor.clone(),
            "first data cache" => format!("{} lines", results.site.cache_lines),
            "second and third cache" => results
                .site
                .second_cache_lines
                .map_or("not known".into(), |lines| format!("second: {lines} lines")),
            "system" => format!("Linux {}", results.about.machine.kernel),
            "waiting" => "looks for as long as a wake-up costs, then sleeps".into(),
            "memory" => "one mapping of 32 MiB on huge pages, or as much as the data needs".into(),
            "runs" => format!(
                "{} seconds, {} times, medians with their quartiles",
                results.options.seconds(),
                results.options.repeats()
            ),
            _ => "mutex; the queue is a ring without one".into(),
        };
        table.row(vec![what.to_owned(), there.to_owned(), here]);
    }
    Section::new("Conditions")
        .text(
            "Cycles are those of the time stamp counter for which threads of the process had a core, the server among \
             them, over all iterations; the source does not say whether it counts the server's.",
        )
        .table(&table)
}

fn published() -> Section {
    let mut table = Table::new(&["figure", "published", "place"]);
    for finding in findings() {
        let said = match finding.figure.ratio {
            Some((value, ..)) => value.to_string(),
            None => finding.figure.words(),
        };
        table.row(vec![
            finding.name.to_owned(),
            said,
            finding.place.to_owned(),
        ]);
    }
    Section::new("What the source published").folded_table("All findings", &table)
}

/// The sizes that an experiment is drawn with, as file names have them.
fn tag(fit: Fit) -> &'static str {
    fit.id()
}
