//! The study as one page: the claims first, then each experiment's figures.

use hearth_draw::page::{Section, Table};
use hearth_stats::Ratio;

use super::collector::Way;
use super::options::Experiment;
use super::results::Results;
use super::verdict;
use crate::pages;

/// Differences from the source's study, beyond the machine.
const DIFFERENCES: [[&str; 3]; 5] = [
    [
        "heap",
        "an Eiffel program's, collected by its own collector",
        "words of 32 bits, collected by marking and sweeping",
    ],
    [
        "handler",
        "16 bits in an object's header",
        "a word of it, in every way to collect",
    ],
    ["processors", "100 at most", "1,000,000 at most"],
    [
        "threads of dead processors",
        "ended",
        "listed: there are no threads",
    ],
    ["objects", "10 million at most", "the same"],
];

/// Draws the page.
#[must_use]
pub fn page(results: &Results) -> String {
    let mut page = pages::begin(
        "Processors and their collection",
        &results.about,
        "one core",
        "Processors that apply calls to objects are made like objects, and have to go like objects. The source, of 2012, \
         collects them with the objects, and says that this takes no more time. Here heaps of the same shapes are \
         collected so, and in the ways that it is compared with.",
    );
    page.add(pages::claims(
        Section::new("What is claimed").text(
            "Each claim is judged by one rule, which the source's own figures go through as well. A ratio of medians, or a \
             geometric mean of such ratios over structures, stands with its 95 % bootstrap interval. Times are alike within \
             a twentieth.",
        ),
        &verdict::measured(results).verdicts(),
        &verdict::as_published().verdicts(),
        &results.about,
    ));
    for (experiment, title) in [
        (Experiment::Trees, "Trees, each on one processor"),
        (Experiment::Cycles, "Rings on random processors"),
        (Experiment::Links, "Random links between processors"),
        (Experiment::Dead, "Every second processor dead"),
        (Experiment::Million, "A million processors"),
    ] {
        page.add(of(results, experiment, title));
    }
    page.add(differences());
    pages::end(page, "collection", &results.about)
}

fn words(ratio: Option<Ratio>) -> String {
    ratio.map_or(String::new(), |Ratio { value, low, high }| {
        format!("{value:.3} [{low:.3}, {high:.3}]")
    })
}

fn of(results: &Results, experiment: Experiment, title: &str) -> Section {
    let section = Section::new(title);
    let structures = results.structures(experiment);
    if structures.is_empty() {
        return section.text("Not measured.");
    }
    let mut table = Table::new(&[
        "structure",
        ">size",
        ">processors",
        ">objects",
        ">runs",
        ">objects only, ms",
        ">combined, ms",
        ">combined/objects",
        ">with a field more, ms",
        ">as objects, ms",
        ">as object/field more",
    ]);
    for case in structures {
        let cell = |way| results.cell(&case.by(way));
        let median = |way| {
            let seconds = cell(way).and_then(|cell| cell.median("seconds"));
            seconds.map_or(String::new(), |seconds| format!("{:.3}", 1e3 * seconds))
        };
        let runs = cell(Way::Objects).map_or(0, super::results::Cell::count);
        table.row(vec![
            case.shape.id().to_owned(),
            case.size.to_string(),
            case.processors.to_string(),
            case.objects().to_string(),
            runs.to_string(),
            median(Way::Objects),
            median(Way::Combined),
            words(results.ratio(case, Way::Combined, Way::Objects)),
            median(Way::CombinedNull),
            median(Way::AsObject),
            words(results.ratio(case, Way::AsObject, Way::CombinedNull)),
        ]);
    }
    section
        .text("Medians over runs. The size of trees is their depth.")
        .table(&table)
}

fn differences() -> Section {
    let mut table = Table::new(&["", "the source", "here"]);
    for row in DIFFERENCES {
        table.row(row.map(str::to_owned).to_vec());
    }
    Section::new("What is different").table(&table)
}
