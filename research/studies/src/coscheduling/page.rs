//! The study as one page: the claims first, then each experiment's figures.

use hearth_draw::page::{Section, Table};

use super::options::Experiment;
use super::results::{Cell, Results};
use super::verdict;
use crate::pages::{self, counted};

/// Differences from the source's study, beyond the machine.
const DIFFERENCES: [[&str; 3]; 6] = [
    [
        "who schedules",
        "Linux 3.2, with sets in its scheduler",
        "a process that holds and continues others; the kernel is as it is",
    ],
    [
        "programs",
        "virtual machines that compile Linux, NAS, and synthetic ones",
        "processes whose threads spin at a barrier, or of which half compute",
    ],
    [
        "measure",
        "time of a fixed amount of work",
        "work in a fixed time, of programs that begin at once",
    ],
    [
        "half load",
        "guests of four processors that compile with two jobs",
        "half of the threads compute, the same ones or in turns",
    ],
    [
        "gangs in the kernel",
        "the source's subject",
        "not run by the study: `kernel/gang` needs sched_ext, and was tried in the lab's emulated machines only",
    ],
    ["virtual machines, NAS, energy", "measured", "not measured"],
];

/// Draws the page.
#[must_use]
pub fn page(results: &Results) -> String {
    let used = counted(results.cpus(), "CPU");
    let mut page = pages::begin(
        "Coscheduling",
        &results.about,
        &used,
        "Threads that spin for each other lose most of their time where one of them runs without the others. The source, of \
         2012, ran sets of tasks at the same time or not at all, in the kernel. Here gangs do so from outside, and programs \
         share the machine with them and without.",
    );
    page.add(pages::claims(
        Section::new("What is claimed").text(
            "Each claim is judged by one rule, which the source's own figures go through as well. A ratio of medians stands \
             with its 95 % bootstrap interval. Alone is one program without a gang; ideal is what ideal packing would do.",
        ),
        &verdict::measured(results).verdicts(),
        &verdict::as_published().verdicts(),
        &results.about,
    ));
    for (experiment, title, text) in [
        (
            Experiment::Barriers,
            "One program and two",
            "Threads compute some microseconds and spin at a barrier, one thread a CPU. One program alone is what this machine \
             allows.",
        ),
        (
            Experiment::Packing,
            "Four programs, and eight",
            "The same work. Programs as wide as the machine, and on four CPUs or more of half its width.",
        ),
        (
            Experiment::Half,
            "Half load",
            "Half of a program's threads compute. In *moving* the work goes to other threads each millisecond. Isolated gangs \
             keep cores that they do not use.",
        ),
    ] {
        page.add(of(results, experiment, title, text));
    }
    page.add(differences());
    pages::end(page, "coscheduling", &results.about)
}

const FIGURES: [(&str, &str, f64, usize); 6] = [
    ("rate", ">rounds, 1000/s", 1e-3, 2),
    ("together", ">together, %", 1e2, 2),
    ("apart", ">apart, %", 1e2, 2),
    ("skew_us", ">skew, µs", 1.0, 0),
    ("skew_99_us", ">skew of 99 %, µs", 1.0, 0),
    ("conductor_cores", ">conductor, % of a CPU", 1e2, 2),
];

fn of(results: &Results, experiment: Experiment, title: &str, text: &str) -> Section {
    let section = Section::new(title);
    let cells: Vec<&Cell> = results.of(experiment).collect();
    if cells.is_empty() {
        return section.text("Not measured.");
    }
    let mut head = vec!["way", "work", ">programs", ">threads", ">runs"];
    head.extend(FIGURES.iter().map(|(_, column, ..)| *column));
    let mut table = Table::new(&head);
    for cell in cells {
        let case = &cell.case;
        let mut row = vec![
            case.way(),
            case.work.id().to_owned(),
            case.programs.to_string(),
            case.threads.to_string(),
            cell.count().to_string(),
        ];
        match &cell.failed {
            Some(why) => row.push(why.clone()),
            None => row.extend(FIGURES.iter().map(|(figure, _, factor, digits)| {
                let median = cell.median(figure);
                median.map_or(String::new(), |median| {
                    format!("{:.digits$}", factor * median)
                })
            })),
        }
        table.row(row);
    }
    section.text(text).text("Medians over runs.").table(&table)
}

fn differences() -> Section {
    let mut table = Table::new(&["", "the source", "here"]);
    for row in DIFFERENCES {
        table.row(row.map(str::to_owned).to_vec());
    }
    Section::new("What is different").table(&table)
}
