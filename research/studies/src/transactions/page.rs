//! The study as one page: the claims first, then the published figures beside ours, then each
//! experiment.

use hearth_draw::Picture;
use hearth_draw::bars::BarChart;
use hearth_draw::page::{Section, Table};
use hearth_stats::Ratio;
use hearth_transactions::kernels::{Name, Size};

use super::figures::{deviation, in_words, of_program};
use super::options::Experiment;
use super::plan::{BANK, OF_KERNELS, UNTRACED};
use super::published;
use super::results::Results;
use super::verdict;
use crate::pages::{self, counted};

/// Differences from the source's study, beyond the machine.
const DIFFERENCES: [[&str; 3]; 8] = [
    [
        "memory",
        "TinySTM 0.9.9, in C",
        "Hearth's `Lsa`, which is of the same family: locks at the first access, snapshots that extend",
    ],
    [
        "codecs",
        "LZO, and zlib by the worker",
        "LZ4, as LZO has no kept implementation in Rust, and Zstandard at its default level",
    ],
    [
        "from outside",
        "a tool on Pin, which rewrites the memory's functions",
        "the kernel's probes on functions of an instrumented build: each event is a trap into the kernel",
    ],
    [
        "the bank",
        "10 s, files on a disk",
        "half a second a run, bytes counted and thrown away, so that no disk is measured",
    ],
    [
        "STAMP",
        "the published programs, 8 workers",
        "programs written after their descriptions with the parameters of the simulators' inputs, traces in files; \
         Yada refines by a simpler rule",
    ],
    [
        "memory used",
        "the heap over time, by massif",
        "the most memory of the process, less what it had before: code and stacks of new threads count",
    ],
    [
        "aborts",
        "deviation of averages",
        "deviation in pairs of runs of the same turn, with an equivalence test",
    ],
    [
        "averages over programs",
        "not said which",
        "geometric means",
    ],
];

/// Draws the page.
#[must_use]
pub fn page(results: &Results) -> String {
    let used = counted(results.site.cores.len(), "core");
    let mut page = pages::begin(
        "Traces of transactions",
        &results.about,
        &used,
        "What does it cost to record what transactions do, and are the conflicts in the record those that would have \
         been without it? The source, of 2012, recorded 17 bytes an event in threads of its own memory. Its form and \
         Hearth's record the same programs here, in turns, each run in a process of its own.",
    );
    page.add(pages::claims(
        Section::new("What is claimed").text(
            "Each claim is judged by one rule, which the source's own figures go through as well. A ratio of medians \
             stands with its 95 % bootstrap interval. Deviations of aborts are tested for equivalence: less than a \
             bound means that two one-sided tests at 5 % show it.",
        ),
        &verdict::measured(results).verdicts(),
        &verdict::as_published().verdicts(),
        &results.about,
    ));
    page.add(published_figures(results));
    for (experiment, title) in [
        (Experiment::Bank, "The bank"),
        (Experiment::Outside, "Seen from outside"),
        (Experiment::Alone, "The bank by one thread"),
    ] {
        page.add(of_bank(results, experiment, title));
    }
    page.add(of_kernels(results));
    page.add(differences());
    pages::end(page, "transactions", &results.about)
}

/// The charts as files of their own, by name.
#[must_use]
pub fn charts(results: &Results) -> Vec<(String, String)> {
    let mut charts = Vec::new();
    if results.of(Experiment::Bank).next().is_some() {
        charts.push(("bank.svg".to_owned(), left(results).file()));
    }
    if results.of(Experiment::Kernels).next().is_some() {
        charts.push(("kernels.svg".to_owned(), speeds(results).file()));
    }
    charts
}

fn published_figures(results: &Results) -> Section {
    let mut table = Table::new(&["figure", ">published", ">here"]);
    for row in published::figures() {
        let here = match row.ours {
            None => "not measured: there are no counters of misses".to_owned(),
            Some(name) => in_words(results, name).unwrap_or_else(|| "not measured".to_owned()),
        };
        table.row(vec![row.what.to_owned(), row.value.to_owned(), here]);
    }
    Section::new("Published figures beside ours")
        .text(
            "Throughput is the share of the untraced program's. *Lost* are values of bars that the text does not give.",
        )
        .table(&table)
}

/// Throughput on the bank by each way.
fn left(results: &Results) -> Picture {
    let shares = results.of(Experiment::Bank).filter_map(|cell| {
        let tracing = &cell.case.tracing;
        let share = of_program(results, Experiment::Bank, BANK, "rate", tracing, UNTRACED)?;
        Some((tracing.clone(), share.value))
    });
    let (classes, values) = shares.unzip();
    BarChart {
        classes,
        series: vec![("of the untraced throughput".to_owned(), values)],
        y_label: "share".into(),
        width: 1360.0,
        ..BarChart::new("The bank: throughput that each trace leaves")
    }
    .draw()
}

/// Speed of each program by the ways of the kernels' experiment.
fn speeds(results: &Results) -> Picture {
    let programs = results.programs(Experiment::Kernels);
    let series = OF_KERNELS
        .iter()
        .filter(|way| **way != UNTRACED)
        .map(|way| {
            let speed = |program: &&str| {
                let experiment = Experiment::Kernels;
                let ratio = of_program(results, experiment, program, "seconds", UNTRACED, way);
                ratio.map_or(0.0, |ratio| ratio.value)
            };
            ((*way).to_owned(), programs.iter().map(speed).collect())
        });
    let series = series.collect();
    BarChart {
        classes: programs.iter().map(|&program| program.to_owned()).collect(),
        series,
        y_label: "speed, untraced 1".into(),
        width: 1360.0,
        ..BarChart::new("Programs to their end: speed with each trace")
    }
    .draw()
}

fn words(ratio: Option<Ratio>) -> String {
    ratio.map_or(String::new(), |Ratio { value, low, high }| {
        format!("{value:.3} [{low:.3}, {high:.3}]")
    })
}

fn of_bank(results: &Results, experiment: Experiment, title: &str) -> Section {
    let mut section = Section::new(title);
    if results.of(experiment).next().is_none() {
        return section.text("Not measured.");
    }
    if experiment == Experiment::Bank {
        section = section.picture(&left(results), "");
    }
    let mut table = Table::new(&[
        "way",
        ">threads",
        ">runs",
        ">transactions/s",
        ">of untraced",
        ">aborts a transaction",
        ">deviation (90 %)",
        ">bytes a transaction",
        ">lost",
        ">memory MB",
    ]);
    for cell in results.of(experiment) {
        let tracing = &cell.case.tracing;
        if let Some(why) = &cell.failed {
            let head = vec![tracing.clone(), cell.case.threads.to_string()];
            table.row([head, vec![why.clone()]].concat());
            continue;
        }
        let of = |figure: &str, digits: usize| {
            let median = cell.median(figure);
            median.map_or(String::new(), |median| format!("{median:.digits$}"))
        };
        let memory = cell.median("grown_kib").map(|kib| kib / 1024.0);
        let deviation = deviation(results, experiment, tracing);
        table.row(vec![
            tracing.clone(),
            cell.case.threads.to_string(),
            cell.count().to_string(),
            of("rate", 0),
            words(of_program(
                results, experiment, BANK, "rate", tracing, UNTRACED,
            )),
            of("aborts", 4),
            deviation.map_or(String::new(), |deviation| deviation.words()),
            of("bytes_a_txn", 1),
            of("lost", 0),
            memory.map_or(String::new(), |memory| format!("{memory:.1}")),
        ]);
    }
    section.table(&table)
}

fn of_kernels(results: &Results) -> Section {
    let mut section = Section::new("Programs to their end");
    if results.of(Experiment::Kernels).next().is_none() {
        return section.text("Not measured.");
    }
    section = section.picture(&speeds(results), "");
    let mut inputs = Table::new(&["program", "input"]);
    let size = match results.options.quick {
        true => Size::Small,
        false => Size::Published,
    };
    for program in results.programs(Experiment::Kernels) {
        let parameters = Name::named(program).map(|name| name.parameters(size));
        inputs.row(vec![program.to_owned(), parameters.unwrap_or_default()]);
    }
    let mut table = Table::new(&[
        "program",
        "way",
        ">seconds",
        ">speed of untraced",
        ">commits",
        ">aborts a transaction",
        ">bytes",
    ]);
    for cell in results.of(Experiment::Kernels) {
        let (program, tracing) = (&cell.case.program, &cell.case.tracing);
        let of = |figure: &str, digits: usize| {
            let median = cell.median(figure);
            median.map_or(String::new(), |median| format!("{median:.digits$}"))
        };
        let experiment = Experiment::Kernels;
        let speed = of_program(results, experiment, program, "seconds", UNTRACED, tracing);
        table.row(vec![
            program.clone(),
            tracing.clone(),
            of("seconds", 4),
            words(speed),
            of("commits", 0),
            of("aborts", 4),
            of("bytes", 0),
        ]);
    }
    section
        .folded_table("Inputs", &inputs)
        .folded_table("Each program with each way", &table)
}

fn differences() -> Section {
    let mut table = Table::new(&["", "the source", "here"]);
    for row in DIFFERENCES {
        table.row(row.map(str::to_owned).to_vec());
    }
    Section::new("What is different").table(&table)
}
