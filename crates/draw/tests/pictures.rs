//! Pictures of odd data: nothing breaks, and the output is well-formed.

use hearth_draw::Picture;
use hearth_draw::bars::BarChart;
use hearth_draw::heat::{Cell, HeatMap};
use hearth_draw::line::{Axis, LineChart, Look, Mark, Point, Series};
use hearth_draw::page::{Page, Section, Table, Tone};
use hearth_draw::placement::{Component, Connection, Placement};
use hearth_draw::rows::{Row, RowChart};
use hearth_draw::scale::{Scale, Unit};
use hearth_draw::tiles::{self, Block, Group, Names, Tiles};
use hearth_draw::topology;
use hearth_machine::synthetic;
use hearth_machine::topology::{Thread, Topology};

/// Every element that opens closes, in order; no number is missing.
#[track_caller]
fn is_whole(markup: &str) {
    assert!(
        !markup.contains("NaN") && !markup.contains("inf\""),
        "{markup}"
    );
    let mut open: Vec<&str> = Vec::new();
    // Style sheets and declarations have no elements in them.
    for tag in markup.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        if tag.starts_with(['?', '!']) || tag.ends_with('/') {
            continue;
        }
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        if name == "meta" {
            continue;
        }
        match name.strip_prefix('/') {
            None => open.push(name),
            Some(closing) => assert_eq!(open.pop(), Some(closing), "{markup}"),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[track_caller]
fn check(picture: &Picture) -> String {
    let file = picture.file();
    is_whole(&file);
    let mut page = Page::new("page");
    page.add(Section::new("picture").picture(picture, "caption"));
    is_whole(&page.html());
    file
}

fn strange() -> Vec<Point> {
    [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 5.0, 7.0]
        .into_iter()
        .map(|y| Point::new(10.0, y).within(y, f64::NAN))
        .collect()
}

#[test]
fn charts_take_any_data() {
    for scale in [Scale::Linear, Scale::Log2, Scale::Log10] {
        for look in [Look::Line, Look::Dashed, Look::Dots, Look::Rings] {
            for points in [Vec::new(), vec![Point::new(1.0, 1.0)], strange()] {
                let chart = LineChart {
                    x: Axis::new("x", scale, Unit::Bytes),
                    y: Axis::new("y", scale, Unit::Nanoseconds),
                    series: vec![Series::new("a", points, look)],
                    marks: vec![Mark {
                        at: -4.0,
                        label: "nowhere".to_owned(),
                    }],
                    ..LineChart::new("chart")
                };
                check(&chart.draw());
            }
        }
        let chart = RowChart {
            rows: [f64::NAN, 0.0, -3.0, 5.0]
                .into_iter()
                .map(|value| Row {
                    label: "a row".to_owned(),
                    value,
                    interval: Some((-1.0, 9.0)),
                    is_measured: false,
                })
                .collect(),
            ..RowChart::new("rows", scale, Unit::Number)
        };
        check(&chart.draw());
        let chart = BarChart {
            classes: vec!["one".to_owned(), "two".to_owned()],
            series: vec![("a".to_owned(), vec![f64::NAN, 0.0, 9.0])],
            scale,
            ..BarChart::new("bars")
        };
        check(&chart.draw());
    }
}

#[test]
fn a_line_stops_where_a_point_cannot_be_shown() {
    let points = [1.0, 2.0, 0.0, 4.0, 5.0];
    let points = points
        .into_iter()
        .zip(1..)
        .map(|(y, x)| Point::new(f64::from(x), y));
    let chart = LineChart {
        y: Axis::new("y", Scale::Log10, Unit::Number),
        series: vec![Series::line("", points.collect())],
        ..LineChart::new("chart")
    };
    let svg = check(&chart.draw());
    let path = svg.split("curve\" d=\"").nth(1).unwrap();
    let path = path.split('"').next().unwrap();
    assert_eq!(path.matches('M').count(), 2, "{path}");
}

fn heat(count: usize, value: impl Fn(usize, usize) -> Option<f64>) -> HeatMap {
    let names: Vec<String> = (0..count).map(|i| i.to_string()).collect();
    let cell = |row, column| {
        Some(Cell {
            value: value(row, column)?,
            interval: None,
            is_inferred: row > column,
        })
    };
    HeatMap {
        title: "pairs".to_owned(),
        row_label: "from".to_owned(),
        column_label: "to".to_owned(),
        rows: names.clone(),
        columns: names,
        cells: (0..count)
            .map(|row| (0..count).map(|column| cell(row, column)).collect())
            .collect(),
        borders: vec![count / 2, 99_999],
        unit: Unit::Nanoseconds,
    }
}

#[test]
fn heat_maps_of_any_size() {
    for count in [0, 1, 2, 9, 70, 300] {
        let svg = check(&heat(count, |a, b| (a != b).then_some((a * b) as f64 + 1.0)).draw());
        assert!(svg.len() < 2_000_000, "{count}: {}", svg.len());
    }
    check(&heat(4, |_, _| None).draw());
    check(&heat(4, |_, _| Some(7.0)).draw());
    let marked = check(&heat(4, |a, b| Some((a + b) as f64)).draw());
    assert!(marked.contains(">inferred<"));
}

#[test]
fn every_example_machine_is_drawn() {
    let across = "2 packages, 4 cores, 1 node, l3 8M per package, offline 3";
    let odd = "3/1 cores, 2 threads, 1 memory nodes, memory 4G/2G/1G, l1d 32K per thread";
    let examples = synthetic::EXAMPLES.iter().map(|(_, text)| *text);
    let large = "8 packages, 64 cores, 2 threads, 16 nodes, l2 1M per core, l3 32M per 8 cores";
    for description in examples.chain([across, odd, large]) {
        let Ok(machine) = synthetic::parse(description) else {
            panic!("{description}");
        };
        let svg = check(&topology::draw(&machine));
        let threads = svg.matches("class=\"thread\"").count();
        assert_eq!(threads, machine.threads().len(), "{description}");
    }
}

#[test]
fn what_is_given_is_text() {
    let bad = "<script>alert(\"1\")</script>&\u{1}";
    let mut page = Page::new(bad);
    let mut table = Table::new(&[bad]);
    table.row(vec![bad.to_owned()]);
    let chart = LineChart {
        series: vec![Series::line(bad, vec![Point::new(1.0, 2.0)])],
        ..LineChart::new(bad)
    };
    let section = Section::new(bad).text(bad).list(&[bad.to_owned()]);
    page.lead(bad)
        .footer(bad)
        .callout(Tone::Bad, bad, &[bad.to_owned()]);
    page.add(section.table(&table).picture(&chart.draw(), bad));
    let html = page.html();
    is_whole(&html);
    assert!(!html.contains("<script") && !html.contains('\u{1}'));
    // Nothing is fetched from the network: the one address is the name of SVG's elements.
    let addresses = html.matches("http").count();
    assert_eq!(
        addresses,
        html.matches("http://www.w3.org/2000/svg").count()
    );
}

fn tiles(blocks: usize) -> Tiles {
    let looks = [
        tiles::Look::Series(0),
        tiles::Look::Series(9),
        tiles::Look::Pale,
        tiles::Look::Nothing,
    ];
    let cell = |block: usize, nth: usize| tiles::Cell {
        look: looks[(block * 7 + nth / 5 + block * nth / 90) % 4],
        fill: (block * nth % 13) as f64 / 12.0,
    };
    let block = |block| Block {
        name: format!("block {block}"),
        cells: (0..64).map(|nth| cell(block, nth)).collect(),
    };
    Tiles {
        title: "Memory".into(),
        lead: vec!["1 GiB & more".into()],
        legend: looks.map(|look| (look, "some <kind>".into())).to_vec(),
        groups: vec![Group {
            name: "node 0".into(),
            blocks: (0..blocks).map(block).collect(),
        }],
        names: Names {
            block: "arena".into(),
            blocks: "arenas".into(),
            cell: "chunk".into(),
        },
    }
}

#[test]
fn tiles_have_a_bound() {
    for blocks in [0, 1, 4, 48, 49, 240, 241, 4_000, 50_000] {
        let file = check(&tiles(blocks).draw());
        assert!(file.len() < 2_000_000, "{blocks}: {}", file.len());
    }
    let strange = |fill| tiles::Cell {
        look: tiles::Look::Series(1),
        fill,
    };
    let mut odd = tiles(1);
    odd.groups[0].blocks[0].cells = [f64::NAN, f64::INFINITY, -1.0, 7.0].map(strange).to_vec();
    odd.groups[0].blocks.push(Block {
        name: String::new(),
        cells: Vec::new(),
    });
    check(&odd.draw());
}

/// Components dealt out to the first threads; each sends to the next, to the first, and to itself.
fn placement(machine: &Topology, count: usize, threads: usize) -> Placement<'_> {
    let mut placement = Placement::new("<placement>", machine);
    for nth in 0..count {
        let thread = Thread(u32::try_from(nth % threads).expect("few threads"));
        let type_name = format!("Type<{}>", nth % 7);
        let name = format!("one&{nth}");
        placement.components.push(Component {
            load: (nth % 5) as f64 / 4.0,
            ..Component::new(&name, &type_name, Some(thread))
        });
        for to in [(nth + 1) % count, 0, nth] {
            let number = (nth + to) as f64;
            placement.connections.push(Connection {
                from: nth,
                to,
                messages_per_s: number,
                bytes_per_s: number,
                cost_ns_per_s: number * 100.0,
            });
        }
    }
    placement
}

const NUMA: &str = "2 packages, 4 cores, 2 threads, 2 nodes, memory 4G, l2 1M per core, \
                    l3 8M per 2 cores";

#[test]
fn few_components_are_boxes_with_names_and_curves() {
    let machine = synthetic::parse(NUMA).expect("the description is right");
    let svg = check(&placement(&machine, 16, 16).draw());
    assert_eq!(
        svg.matches("class=\"small\"").count(),
        16 + 4,
        "components, caches"
    );
    for nth in 0..16 {
        assert!(svg.contains(&format!(">one&amp;{nth}</text>")), "{nth}");
    }
    // Sixteen in a ring, each with the first, which already neighbours two of them; none with
    // itself.
    assert_eq!(svg.matches("class=\"way way").count(), 4 + 16 + 13);
    for way in ["one core", "one cache", "one package", "between nodes"] {
        assert!(svg.contains(way), "{way}");
    }
    assert!(svg.contains("one&amp;3 → one&amp;4: 7 messages/s, 7 B/s"));
    assert!(svg.contains("3 other types (6)") && !svg.contains("NaN"));
}

#[test]
fn many_components_are_dots_then_counted() {
    let machine = synthetic::parse(NUMA).expect("the description is right");
    let svg = check(&placement(&machine, 200, 16).draw());
    assert!(!svg.contains("member\""), "boxes");
    assert!(
        svg.contains("one&amp;199, Type&lt;3&gt;, on hardware thread 7, busy"),
        "{svg}"
    );
    assert!(svg.contains("connections,") && svg.contains("bundled"));
    let svg = check(&placement(&machine, 5_000, 16).draw());
    assert!(!svg.contains("one&amp;4999"), "counted ones have no tips");
    assert!(svg.contains("of other types"));
    assert!(svg.len() < 100_000, "{}", svg.len());
}

#[test]
fn placements_have_a_bound() {
    let large = "8 packages, 64 cores, 2 threads, 16 nodes, l2 1M per core, l3 32M per 8 cores";
    let large = synthetic::parse(large).expect("the description is right");
    let svg = check(&placement(&large, 30_000, 1024).draw());
    assert!(svg.matches("<path").count() < 200);
    let svg = check(&placement(&large, 100_000, 1024).draw());
    assert!(svg.len() < 1_000_000, "{}", svg.len());
}

#[test]
fn placements_of_odd_data() {
    for (_, description) in synthetic::EXAMPLES {
        let Ok(machine) = synthetic::parse(description) else {
            panic!("{description}");
        };
        check(&Placement::new("", &machine).draw());
        let threads = machine.threads().len();
        check(&placement(&machine, 1, 1).draw());
        check(&placement(&machine, 50, threads).draw());
        let mut odd = placement(&machine, 40, threads);
        for (nth, component) in odd.components.iter_mut().enumerate() {
            component.load = [f64::NAN, f64::INFINITY, -1.0, 1e300][nth % 4];
            component.thread = [None, Some(Thread(u32::MAX)), Some(Thread(0))][nth % 3];
            component.name = ["", "\u{1}", &"long".repeat(99)][nth % 3].to_owned();
            component.type_name = component.name.clone();
        }
        for (nth, connection) in odd.connections.iter_mut().enumerate() {
            connection.to = [0, 7, usize::MAX, 41][nth % 4];
            connection.cost_ns_per_s = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300][nth % 5];
            connection.bytes_per_s = connection.cost_ns_per_s;
        }
        odd.remarks.push("<a remark>".repeat(99));
        let svg = check(&odd.draw());
        assert!(svg.contains("Without a place"));
    }
}
