//! Recorded calls as one page.

use hearth_draw::page::{Page, Section, Table, Tone};
use hearth_draw::spans::{Kind, Span, SpanChart, SpanRow};
use hearth_draw::{Look, Picture};
use hearth_text::counted;

use super::sequence::{mermaid, owner_edges, sequence};
use super::trace::Trace;
use super::{Calls, grouped, ns};

/// Rows of pictures: deeper calls are left out.
const DEPTH_MAX: usize = 40;
const WIDTH: f64 = 1_000.0;
/// Parts of the whole below which a node is left out of the picture.
const SMALLEST: f64 = 0.001;

/// The page.
#[must_use]
pub fn page(calls: &Calls) -> String {
    let mut page = Page::new("Recorded calls");
    let (program, account) = calls.headline();
    page.lead(&format!("{program}. {account}."));
    let remarks = calls.remarks();
    if !remarks.is_empty() {
        let tone = if calls.account().2 > 0 {
            Tone::Bad
        } else {
            Tone::Note
        };
        page.callout(tone, "Before you read on", &remarks);
    }
    page.add(probes(calls));
    if calls.are_added_up() {
        page.add(threads(calls));
        return page.html();
    }
    let colours = Colours::of(calls);
    page.add(tree(calls, &colours));
    if let Some(trace) = &calls.longest {
        page.add(longest(calls, trace, &colours));
    }
    page.add(owners(calls));
    page.add(threads(calls));
    page.html()
}

fn probes(calls: &Calls) -> Section {
    let mut table = Table::new(&[
        "probe",
        ">calls",
        ">total",
        ">own",
        ">median",
        ">90 %",
        ">99 %",
        ">99.9 %",
        ">longest",
        ">length unknown",
    ]);
    for row in calls.rows() {
        let [half, tenth, hundredth, thousandth, longest] = row.quantiles.map(ns);
        table.row(vec![
            row.name,
            grouped(row.calls),
            ns(row.total),
            ns(row.own),
            half,
            tenth,
            hundredth,
            thousandth,
            longest,
            if row.unknown == 0 {
                String::new()
            } else {
                grouped(row.unknown)
            },
        ]);
    }
    let precision = match calls.are_added_up() {
        true => "1 %",
        false => "three digits",
    };
    Section::new("Response times").table(&table).explained(&format!(
        "Own time is that of the calls without the calls directly within them. Quantiles are of \
         all calls whose length is known, right to {precision}.",
    ))
}

fn tree(calls: &Calls, colours: &Colours) -> Section {
    let mut table = Table::new(&["call", ">calls", ">total", ">own"]);
    calls.tree.walk(|node, depth| {
        let name = node.name.map_or("?", |name| calls.recorded.name(name));
        table.row(vec![
            format!("{}{name}", "\u{2003}".repeat(depth)),
            grouped(node.calls),
            ns(node.total),
            ns(node.own),
        ]);
    });
    Section::new("Call tree")
        .picture(
            &icicle(calls, colours),
            "Width is time, of all threads together; what is below was called.",
        )
        .folded_table("As a table", &table)
}

/// Nodes as stretches: each as wide as its time, those within it below it.
fn icicle(calls: &Calls, colours: &Colours) -> Picture {
    let nodes = &calls.tree.nodes;
    let length = |place: usize| -> u64 {
        let within = nodes[place]
            .within
            .iter()
            .map(|&within| nodes[within].total);
        nodes[place].total.max(within.sum())
    };
    let whole = length(0).max(1) as f64;
    let mut rows: Vec<SpanRow> = Vec::new();
    let mut open = vec![(0, 0.0, 0_usize)];
    while let Some((place, from, depth)) = open.pop() {
        let mut start = from;
        for &within in &nodes[place].within {
            let wide = length(within) as f64;
            if wide / whole >= SMALLEST && depth < DEPTH_MAX {
                if rows.len() == depth {
                    rows.push(SpanRow::default());
                }
                let node = &nodes[within];
                let name = node.name.map_or("?", |name| calls.recorded.name(name));
                rows[depth].spans.push(Span {
                    from: start,
                    to: start + wide,
                    kind: colours.kind(name),
                    tip: format!("{name}: {} calls, {}", grouped(node.calls), ns(node.total)),
                });
                open.push((within, start, depth + 1));
            }
            start += wide;
        }
    }
    colours.chart("Time by calls", (0.0, whole), rows)
}

/// Number of probes with a colour of their own.
const COLOURS: usize = 7;

/// The colours of probes: those with the most time of their own have one each.
struct Colours(Vec<String>);

impl Colours {
    fn of(calls: &Calls) -> Colours {
        let rows = calls.rows().into_iter().take(COLOURS);
        Colours(rows.map(|row| row.name).collect())
    }

    fn kind(&self, name: &str) -> usize {
        let place = self.0.iter().position(|own| own == name);
        place.unwrap_or(self.0.len())
    }

    fn kinds(&self) -> Vec<Kind> {
        let names = self.0.iter().cloned().chain(["others".to_owned()]);
        let looks = (0..self.0.len()).chain([COLOURS]).map(Look::series);
        names
            .zip(looks)
            .map(|(name, look)| Kind { name, look })
            .collect()
    }

    fn chart(&self, title: &str, window: (f64, f64), mut rows: Vec<SpanRow>) -> Picture {
        for (depth, row) in rows.iter_mut().enumerate() {
            row.label = format!("{}", depth + 1);
            row.spans
                .sort_by(|one, other| one.from.total_cmp(&other.from));
        }
        SpanChart {
            title: title.to_owned(),
            window,
            kinds: self.kinds(),
            rows,
            marks: Vec::new(),
            width: WIDTH,
        }
        .draw()
    }
}

fn longest(calls: &Calls, trace: &Trace, colours: &Colours) -> Section {
    let begin = trace.spans.first().map_or(0, |span| span.begin);
    let mut rows: Vec<SpanRow> = Vec::new();
    for span in trace
        .spans
        .iter()
        .filter(|span| (span.depth as usize) < DEPTH_MAX)
    {
        let depth = span.depth as usize;
        if rows.len() <= depth {
            rows.resize(depth + 1, SpanRow::default());
        }
        rows[depth].spans.push(Span {
            from: (span.begin - begin) as f64,
            to: (span.end - begin) as f64,
            kind: colours.kind(calls.recorded.name(span.name)),
            tip: format!(
                "{}: {}",
                calls.recorded.name(span.name),
                ns(span.end - span.begin)
            ),
        });
    }
    let window = (0.0, trace.length().max(1) as f64);
    let timeline = colours.chart("The longest call, over time", window, rows);
    let (diagram, left_out) = sequence(calls, trace);
    let caption = match left_out {
        0 => "Messages are calls between owners; answers have their length.".to_owned(),
        more => format!(
            "Messages are calls between owners; answers have their length. {} are left out.",
            counted(more, "further call")
        ),
    };
    Section::new("The longest call")
        .picture(
            &timeline,
            "What is below was called. Point at a stretch for its name.",
        )
        .picture(&diagram.draw(), &caption)
        .heading("For Mermaid")
        .printed(&mermaid(calls))
}

fn owners(calls: &Calls) -> Section {
    let mut table = Table::new(&["from", "to", ">calls"]);
    for ((from, to), count) in owner_edges(calls) {
        table.row(vec![from, to, grouped(count)]);
    }
    Section::new("Who calls whom")
        .table(&table)
        .explained("An owner is what stands before the last dot or double colon of a probe's name.")
}

fn threads(calls: &Calls) -> Section {
    let mut table = Table::new(&[
        "thread",
        ">number",
        ">emitted",
        ">stored",
        ">dropped",
        ">overwritten",
        ">refused",
    ]);
    for account in calls.recorded.accounts() {
        table.row(vec![
            account.name.clone(),
            account.id.to_string(),
            grouped(account.emitted),
            grouped(account.stored),
            grouped(account.dropped),
            grouped(account.overwritten),
            grouped(account.refused),
        ]);
    }
    Section::new("Accounts").table(&table).explained(
        "Emitted is stored, dropped, overwritten and refused together. Dropped: no block was \
             free, or a sample left the call out. Overwritten: the oldest block made room. \
             Refused: the file took no more.",
    )
}
