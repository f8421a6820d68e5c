//! Draws every kind of picture on one page: `gallery FILE.html`.

use hearth_draw::bars::BarChart;
use hearth_draw::heat::{Cell, HeatMap};
use hearth_draw::line::{Axis, LineChart, Look, Mark, Point, Series};
use hearth_draw::page::{Page, Section, Table, Tone};
use hearth_draw::rows::{Row, RowChart};
use hearth_draw::scale::{Scale, Unit};
use hearth_draw::topology;
use hearth_machine::synthetic;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args_os().nth(1).ok_or("name the file to write")?;
    let mut page = Page::new("All pictures");
    page.lead("Made-up data.");
    page.callout(
        Tone::Bad,
        "claim contradicted",
        &["L3 32 MiB <claimed>".to_owned()],
    );
    page.callout(Tone::Good, "Good", &["as it should be".to_owned()]);
    page.callout(Tone::Note, "Note", &["a virtual machine".to_owned()]);
    page.add(Section::new("Lines").picture(&line().draw(), "A caption."));
    page.add(Section::new("Empty").picture(&LineChart::new("Nothing").draw(), ""));
    page.add(Section::new("Rows").picture(&rows().draw(), ""));
    page.add(Section::new("Bars").picture(&bars().draw(), ""));
    for count in [2, 8, 24, 128] {
        let map = heat(count);
        page.add(Section::new(&format!("Heat map of {count}")).picture(&map.draw(), ""));
    }
    let mut table = Table::new(&["name", ">number"]);
    table.row(vec!["a & b".to_owned(), "12".to_owned()]);
    page.add(Section::new("Table").table(&table));
    for (name, description) in synthetic::EXAMPLES {
        let machine = synthetic::parse(description)?;
        page.add(Section::new(name).picture(&topology::draw(&machine), description));
    }
    std::fs::write(file, page.html())?;
    Ok(())
}

fn line() -> LineChart {
    let times = |factor: f64| {
        (6..27)
            .map(|power| {
                let size = f64::from(1u32 << power);
                let ns = factor * (1.0 + size / 30e3).powf(0.7);
                Point::new(size, ns).within(ns * 0.9, ns * 1.15)
            })
            .collect::<Vec<_>>()
    };
    let mark = |at, label: &str| Mark {
        at,
        label: label.to_owned(),
    };
    LineChart {
        x: Axis::new("buffer", Scale::Log2, Unit::Bytes),
        y: Axis::new("a load", Scale::Log10, Unit::Nanoseconds),
        series: vec![
            Series::line("measured", times(1.2)),
            Series::dashed("modelled", times(2.0)),
            Series::dots("dots", times(4.0)),
            Series::new("rings", times(7.0), Look::Rings),
        ],
        marks: vec![
            mark(49152.0, "L1 48 KiB claimed"),
            mark(65536.0, "L1 64 KiB found"),
            mark(2e6, "L2 2 MiB claimed"),
            mark(60e6, "L3 60 MiB claimed"),
        ],
        levels: vec![mark(90.0, "memory")],
        ..LineChart::new("Latency by size")
    }
}

fn rows() -> RowChart {
    let row = |label: &str, value: f64, is_measured| Row {
        label: label.to_owned(),
        value,
        interval: Some((value * 0.8, value * 1.3)),
        is_measured,
    };
    RowChart {
        rows: vec![
            row("creating and joining a thread", 31_000.0, true),
            row("futex wake", 2_500.0, true),
            row("mutex", 15.0, false),
        ],
        ..RowChart::new("Costs", Scale::Log10, Unit::Nanoseconds)
    }
}

fn bars() -> BarChart {
    BarChart {
        classes: (0..16).map(|i| format!("{} µs", 1u32 << i)).collect(),
        series: (0..2)
            .map(|s| {
                let counts = (0..16).map(|i| f64::from(30_000u32 >> (i + s))).collect();
                (format!("thread {s}"), counts)
            })
            .collect(),
        scale: Scale::Log10,
        x_label: "gap".to_owned(),
        y_label: "gaps".to_owned(),
        ..BarChart::new("Gaps")
    }
}

fn heat(count: usize) -> HeatMap {
    let cell = |row: usize, column: usize| {
        let value = match (row / 2 == column / 2, row / 8 == column / 8) {
            (true, _) => 12.0,
            (_, true) => 45.0,
            _ => 110.0,
        } + (row * 7 + column * 3) as f64 % 5.0;
        (row != column).then_some(Cell {
            value,
            interval: Some((value - 1.0, value + 2.0)),
            is_inferred: (row + column).is_multiple_of(3),
        })
    };
    let names: Vec<String> = (0..count).map(|i| i.to_string()).collect();
    HeatMap {
        title: "One way between hardware threads".to_owned(),
        row_label: "from".to_owned(),
        column_label: "to".to_owned(),
        rows: names.clone(),
        columns: names,
        cells: (0..count)
            .map(|row| (0..count).map(|column| cell(row, column)).collect())
            .collect(),
        borders: (1..count).filter(|i| i % 8 == 0).collect(),
        unit: Unit::Nanoseconds,
    }
}
