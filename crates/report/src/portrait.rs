//! A profile as a page for a browser.

use std::collections::BTreeMap;

use hearth_draw::bars::BarChart;
use hearth_draw::heat::{Cell, HeatMap};
use hearth_draw::line::{Axis, LineChart, Mark, Point, Series};
use hearth_draw::page::{Page, Section, Table, Tone};
use hearth_draw::rows::{Row, RowChart};
use hearth_draw::scale::{Scale, Unit};
use hearth_draw::topology;
use hearth_machine::profile::{
    Access, Carrier, Claim, ClaimVerdict, Exchange, Figure, Mode, NodeDistances, Profile,
    Provenance,
};
use hearth_machine::topology::{Bytes, Thread};
use hearth_model::fitted::{Model, Question};

use crate::summary::{
    carrier_name, identity, level_name, of_the_time, parts, range, samples, shown, state_name,
    system_costs,
};

/// More threads than this are not told apart in a histogram: their gaps are added up.
const NOISE_SERIES: usize = 8;

/// The page.
pub fn page(profile: &Profile) -> String {
    let name = profile.host.name.as_ref();
    let title = match (name, profile.origin.mode) {
        (_, Mode::Assumed) => "A machine with assumed costs".to_owned(),
        (Some(name), _) => format!("The machine {name}"),
        (None, _) => "A machine".to_owned(),
    };
    let mut page = Page::new(&title);
    for line in identity(profile) {
        page.lead(&line);
    }
    for claim in profile.contradicted() {
        let heading = format!("claim contradicted: {}", claim.subject);
        page.callout(Tone::Bad, &heading, &claim_lines(claim));
    }
    if let Some(hypervisor) = &profile.host.hypervisor {
        let lines = [format!(
            "The hypervisor ({hypervisor}) may take time at any moment and may describe caches and \
             nodes that are not there. What it disturbed was thrown away as far as it was noticed."
        )];
        page.callout(Tone::Note, "A virtual machine", &lines);
    }
    if profile.origin.mode == Mode::Assumed {
        let lines = ["Every cost here is a stated default of Hearth's.".to_owned()];
        page.callout(Tone::Note, "Nothing was measured", &lines);
    }
    let sections = [
        Some(machine(profile)),
        staircase(profile),
        pairs(profile),
        costs_of_lines(profile),
        bandwidth(profile),
        profile
            .node_distances
            .as_ref()
            .map(|found| distances(profile, found)),
        system(profile),
        hand_overs(profile),
        messages(profile),
        noise(profile),
        claims(profile),
        notes(profile),
    ];
    for section in sections.into_iter().flatten() {
        page.add(section);
    }
    page.footer(&format!(
        "Drawn by hearth {} from a profile that hearth {} wrote. Whiskers, bands and ranges are 95 % \
         intervals; rings are figures that were not measured.",
        env!("CARGO_PKG_VERSION"),
        profile.origin.hearth_version
    ));
    page.html()
}

fn claim_lines(claim: &Claim) -> Vec<String> {
    let source = claim
        .source
        .as_ref()
        .map_or(String::new(), |s| format!(" ({s})"));
    let mut lines = vec![
        format!("Claimed: {}{source}", claim.claimed),
        format!("Found: {}", claim.found),
    ];
    lines.extend(claim.effect_ratio.as_ref().map(|effect| {
        format!(
            "Effect: {} times the claim ({})",
            Unit::Number.show(effect.value),
            range(Unit::Number, effect)
        )
    }));
    lines
}

fn machine(profile: &Profile) -> Section {
    let machine = &profile.topology;
    let drawing = topology::draw(machine);
    let text: Vec<String> = parts(machine).lines().map(str::to_owned).collect();
    let mut table = Table::new(&["as text"]);
    for line in text.iter().filter(|line| !line.is_empty()) {
        table.row(vec![line.clone()]);
    }
    Section::new("The machine")
        .picture(
            &drawing,
            "As kernel and firmware describe it; numbers in blue boxes are CPUs as the operating \
             system counts them.",
        )
        .folded_table("the same as text", &table)
}

fn interval(figure: &Figure) -> Option<(f64, f64)> {
    Some((figure.low, figure.high))
}

fn staircase(profile: &Profile) -> Option<Section> {
    if profile.curve.is_empty() && profile.levels.is_empty() {
        return None;
    }
    let mut section = Section::new("Caches and memory");
    if !profile.curve.is_empty() {
        let mut strides: Vec<u64> = profile
            .curve
            .iter()
            .map(|point| point.stride_bytes)
            .collect();
        strides.sort_unstable();
        strides.dedup();
        let series = strides.iter().map(|&stride| {
            let points = profile
                .curve
                .iter()
                .filter(|point| point.stride_bytes == stride);
            let points = points.map(|point| {
                let load = &point.load_ns;
                Point::new(point.size_bytes as f64, load.value).within(load.low, load.high)
            });
            Series::line(
                &format!("a load every {} in random order", Bytes(stride)),
                points.collect(),
            )
        });
        let claimed = profile.caches.iter().filter_map(|cache| {
            let bytes = cache.claimed_bytes?;
            Some(Mark {
                at: bytes as f64,
                label: format!("L{} claimed {}", cache.level, Bytes(bytes)),
            })
        });
        let found = profile.caches.iter().filter_map(|cache| {
            let bytes = cache.inferred_bytes?.value;
            Some(Mark {
                at: bytes,
                label: format!("L{} measured {}", cache.level, Unit::Bytes.show(bytes)),
            })
        });
        let chart = LineChart {
            x: Axis::new("buffer", Scale::Log2, Unit::Bytes),
            y: Axis::new(
                "one load that waits for the last",
                Scale::Log10,
                Unit::Nanoseconds,
            ),
            series: series.collect(),
            marks: claimed.chain(found).collect(),
            ..LineChart::new("The latency staircase")
        };
        section = section.picture(
            &chart.draw(),
            "Where the curve leaves a step, a cache is full. A claimed capacity with no rise at it, \
             or a rise long before it, is a claim to be doubted.",
        );
    }
    let mut table = Table::new(&["", ">claimed", ">measured", "95 %", ">a load", "95 %"]);
    let none = || "–".to_owned();
    for cost in &profile.levels {
        let cache = profile
            .caches
            .iter()
            .find(|cache| hearth_machine::profile::Level::Cache(cache.level) == cost.level);
        let found = cache.and_then(|cache| cache.inferred_bytes.as_ref());
        let claimed = cache.and_then(|cache| cache.claimed_bytes);
        table.row(vec![
            level_name(cost.level),
            claimed.map_or_else(none, |bytes| Bytes(bytes).to_string()),
            found.map_or_else(none, |figure| Unit::Bytes.show(figure.value)),
            found.map_or_else(none, |figure| range(Unit::Bytes, figure)),
            shown(Unit::Nanoseconds, &cost.read_ns),
            range(Unit::Nanoseconds, &cost.read_ns),
        ]);
    }
    Some(section.table(&table))
}

/// The borders between groups of threads, where another package or node begins.
fn borders(profile: &Profile) -> Vec<usize> {
    let threads = profile.topology.threads();
    let differ = |at: &usize| {
        let (before, after) = (&threads[at - 1], &threads[*at]);
        (before.package, before.node) != (after.package, after.node)
    };
    (1..threads.len()).filter(differ).collect()
}

fn pairs(profile: &Profile) -> Option<Section> {
    if profile.pairs.is_empty() {
        return None;
    }
    let machine = &profile.topology;
    let count = machine.threads().len();
    let mut cells: Vec<Vec<Option<Cell>>> = vec![vec![None; count]; count];
    for pair in &profile.pairs {
        let figure = &pair.one_way_ns;
        let cell = Cell {
            value: figure.value,
            interval: interval(figure),
            is_inferred: figure.provenance != Provenance::Measured,
        };
        cells[pair.a.index()][pair.b.index()] = Some(cell);
        cells[pair.b.index()][pair.a.index()] = Some(cell);
    }
    let names: Vec<String> = machine
        .threads()
        .iter()
        .map(|thread| thread.os.0.to_string())
        .collect();
    let map = HeatMap {
        title: "One way between two CPUs, in ns".to_owned(),
        row_label: "CPU".to_owned(),
        column_label: "CPU".to_owned(),
        rows: names.clone(),
        columns: names,
        cells,
        borders: borders(profile),
        unit: Unit::Nanoseconds,
    };
    let inferred = profile
        .pairs
        .iter()
        .filter(|pair| pair.one_way_ns.provenance != Provenance::Measured)
        .count();
    let all = profile.pairs.len();
    let caption = if all == 1 {
        "It was measured over many lines, as a single one misleads.".to_owned()
    } else if inferred == 0 {
        format!("All {all} pairs were measured over many lines each, as a single one misleads.")
    } else {
        format!(
            "{} of {all} pairs were measured; the {inferred} hatched ones are inferred from the \
             groups that those show.",
            all - inferred
        )
    };
    let mut table = Table::new(&[
        "CPU",
        "CPU",
        "relation",
        ">one way",
        "95 %",
        ">samples",
        ">thrown away",
        "",
    ]);
    let cpu = |thread: Thread| machine.os_thread(thread).0.to_string();
    for pair in &profile.pairs {
        let figure = &pair.one_way_ns;
        let inferred = figure.provenance != Provenance::Measured;
        table.row(vec![
            cpu(pair.a),
            cpu(pair.b),
            machine.relation(pair.a, pair.b).to_string(),
            shown(Unit::Nanoseconds, figure),
            range(Unit::Nanoseconds, figure),
            figure.samples.to_string(),
            figure.discarded.to_string(),
            match (inferred, pair.states.is_empty()) {
                (true, _) => "inferred".to_owned(),
                (false, true) => String::new(),
                (false, false) => "over time".to_owned(),
            },
        ]);
        for state in &pair.states {
            let figure = &state.one_way_ns;
            table.row(vec![
                cpu(pair.a),
                cpu(pair.b),
                String::new(),
                shown(Unit::Nanoseconds, figure),
                range(Unit::Nanoseconds, figure),
                figure.samples.to_string(),
                figure.discarded.to_string(),
                of_the_time(state),
            ]);
        }
    }
    let mut section = Section::new("Between CPUs").picture(&map.draw(), &caption);
    if let Some(chart) = pair_states(profile) {
        let caption = "Such a pair goes to and fro between states, as when a hypervisor moves its \
                       processors between siblings of a core and separate cores. Above is its \
                       mean over time.";
        section = section.picture(&chart.draw(), caption);
    }
    // A table of thousands of rows makes the page slow and says nothing that the file does not.
    Some(if all <= 500 {
        section.folded_table("the pairs as a table", &table)
    } else {
        section
    })
}

/// The states of pairs that have several; None if there are none.
fn pair_states(profile: &Profile) -> Option<RowChart> {
    /// More rows are hard to read; the file has all.
    const ROWS_MAX: usize = 40;
    let machine = &profile.topology;
    let rows = profile.pairs.iter().flat_map(|pair| {
        let (a, b) = (machine.os_thread(pair.a), machine.os_thread(pair.b));
        let label = move |share: String| format!("{a} – {b}, {share}");
        let states = pair.states.iter();
        states.map(move |state| row(label(of_the_time(state)), &state.one_way_ns))
    });
    let rows: Vec<Row> = rows.take(ROWS_MAX).collect();
    (!rows.is_empty()).then(|| RowChart {
        rows,
        ..RowChart::new(
            "Pairs with several states, one way",
            Scale::Log10,
            Unit::Nanoseconds,
        )
    })
}

fn row(label: String, figure: &Figure) -> Row {
    Row {
        label,
        value: figure.value,
        interval: interval(figure),
        is_measured: figure.provenance != Provenance::Assumed,
    }
}

fn costs_of_lines(profile: &Profile) -> Option<Section> {
    let rows: Vec<Row> = profile
        .transfers
        .iter()
        .flat_map(|cost| {
            let name = |what| {
                format!(
                    "{what} a {} line, {}",
                    state_name(cost.state),
                    cost.relation
                )
            };
            let write = cost
                .write_ns
                .as_ref()
                .map(|figure| row(name("write"), figure));
            [Some(row(name("read"), &cost.read_ns)), write]
        })
        .flatten()
        .collect();
    if rows.is_empty() {
        return None;
    }
    let chart = RowChart {
        rows,
        ..RowChart::new(
            "A line that another CPU's cache holds",
            Scale::Log10,
            Unit::Nanoseconds,
        )
    };
    Some(
        Section::new("Lines in other caches")
            .picture(&chart.draw(), "By the line's state at its holder."),
    )
}

fn bandwidth(profile: &Profile) -> Option<Section> {
    let rows: Vec<Row> = profile
        .bandwidths
        .iter()
        .map(|found| {
            let access = match found.access {
                Access::Read => "read",
                Access::Write => "write",
                Access::Copy => "copy",
            };
            let threads = hearth_text::counted(found.threads as usize, "thread");
            let label = format!("{}, {access}, {threads}", level_name(found.level));
            row(label, &found.bytes_per_ns)
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let chart = RowChart {
        rows,
        ..RowChart::new(
            "Sequential bandwidth",
            Scale::Linear,
            Unit::BytesPerNanosecond,
        )
    };
    let caption = "Of all threads together; a copied byte counts once.";
    Some(Section::new("Bandwidth").picture(&chart.draw(), caption))
}

fn distances(profile: &Profile, found: &NodeDistances) -> Section {
    let nodes = profile.topology.nodes();
    let names: Vec<String> = nodes.iter().map(|node| node.os.0.to_string()).collect();
    let map = |title: &str, cells: Vec<Vec<Option<Cell>>>| {
        HeatMap {
            title: title.to_owned(),
            row_label: "memory of node".to_owned(),
            column_label: "used from node".to_owned(),
            rows: names.clone(),
            columns: names.clone(),
            cells,
            borders: Vec::new(),
            unit: Unit::Number,
        }
        .draw()
    };
    let plain = |value: f64| Cell {
        value,
        interval: None,
        is_inferred: false,
    };
    let measured = found
        .scaled
        .iter()
        .map(|row| row.iter().map(|cell| cell.map(plain)).collect())
        .collect();
    let mut section = Section::new("Distances between nodes").picture(
        &map("By measured time, local being 10", measured),
        "The time to touch and copy memory of one node from another, on the firmware's scale but \
         not rounded.",
    );
    section = match &found.firmware {
        Some(rows) => {
            let cells = rows
                .iter()
                .map(|row| {
                    row.iter()
                        .map(|&cell| Some(plain(f64::from(cell))))
                        .collect()
                })
                .collect();
            section.picture(&map("By the firmware", cells), "")
        }
        None => section.text("The firmware claims no distances."),
    };
    let mut table = Table::new(&[
        "memory of",
        "used from",
        ">time",
        "95 %",
        ">measured",
        ">firmware",
    ]);
    for (at, row) in found.measured_s.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let seconds = cell.times(1e9);
            let scaled = found.scaled[at][column];
            let claimed = found
                .firmware
                .as_ref()
                .map(|rows| rows[at][column].to_string());
            table.row(vec![
                format!("node {}", names[at]),
                format!("node {}", names[column]),
                shown(Unit::Nanoseconds, &seconds),
                range(Unit::Nanoseconds, &seconds),
                scaled.map_or_else(String::new, |value| format!("{value:.2}")),
                claimed.unwrap_or_default(),
            ]);
        }
    }
    section.folded_table("the times as a table", &table)
}

fn system(profile: &Profile) -> Option<Section> {
    let rows: Vec<Row> = system_costs(&profile.system)
        .into_iter()
        .filter_map(|(name, figure)| Some(row(name.to_owned(), figure?)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let chart = RowChart {
        rows,
        ..RowChart::new("What its services cost", Scale::Log10, Unit::Nanoseconds)
    };
    Some(Section::new("The operating system").picture(&chart.draw(), ""))
}

fn hand_overs(profile: &Profile) -> Option<Section> {
    let rows: Vec<Row> = profile
        .hand_overs
        .iter()
        .map(|cost| {
            let label = format!("{}, {}", carrier_name(cost.carrier), cost.relation);
            row(label, &cost.one_way_ns)
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let chart = RowChart {
        rows,
        ..RowChart::new("Passing control, one way", Scale::Log10, Unit::Nanoseconds)
    };
    let caption = "From the sender's last step to the receiver's first.";
    Some(Section::new("Passing control").picture(&chart.draw(), caption))
}

/// Measured times of whole messages, and the model fitted to them.
fn messages(profile: &Profile) -> Option<Section> {
    let model = Model::fitted(profile).ok()?;
    let machine = &profile.topology;
    let mut kinds: BTreeMap<(Thread, Thread, Carrier, Option<u32>), Vec<&Exchange>> =
        BTreeMap::new();
    for exchange in &profile.exchanges {
        let Exchange {
            sender,
            receiver,
            carrier,
            stream_depth,
            ..
        } = *exchange;
        let kind = (sender, receiver, carrier, stream_depth);
        kinds.entry(kind).or_default().push(exchange);
    }
    if kinds.is_empty() {
        return None;
    }
    let mut series = Vec::new();
    for (colour, (kind, mut exchanges)) in kinds.into_iter().enumerate() {
        let (sender, receiver, carrier, stream_depth) = kind;
        exchanges.sort_by_key(|exchange| exchange.bytes);
        let (from, to) = (machine.os_thread(sender), machine.os_thread(receiver));
        let flow = stream_depth.map_or("", |_| ", streaming");
        let name = format!("{from} to {to}, {}{flow}", carrier_name(carrier));
        let measured = exchanges.iter().map(|exchange| {
            let figure = &exchange.exchange_ns;
            Point::new(exchange.bytes as f64, figure.value).within(figure.low, figure.high)
        });
        series.push(Series::dots(&name, measured.collect()).coloured(colour));
        let predicted = exchanges.iter().filter_map(|exchange| {
            let answer = model.predict(&Question::of(exchange)).ok()?;
            Some(Point::new(exchange.bytes as f64, answer.ns))
        });
        series.push(Series::dashed("", predicted.collect()).coloured(colour));
    }
    let chart = LineChart {
        x: Axis::new("message", Scale::Log2, Unit::Bytes),
        y: Axis::new("one exchange", Scale::Log10, Unit::Nanoseconds),
        series,
        ..LineChart::new("Whole messages, measured and modelled")
    };
    let quality = match model.report() {
        Some(report) => format!(
            " Of exchanges held out of the fit, it misses half by more than {} %.",
            Unit::Number.show(report.median_error_percent)
        ),
        None => " These are too few to fit a model to; it is Hearth's default.".to_owned(),
    };
    Some(Section::new("Whole messages").picture(
        &chart.draw(),
        &format!(
            "From the first store to the last load; in a stream, from one message to the next. \
             Broken lines are the model, which is what `hearth predict` uses.{quality}"
        ),
    ))
}

fn noise(profile: &Profile) -> Option<Section> {
    let first = profile.noise.first()?;
    let classes = first
        .gaps
        .iter()
        .map(|gap| Unit::Nanoseconds.show(gap.from_ns as f64));
    let classes: Vec<String> = classes.collect();
    let name = |thread: Thread| format!("CPU {}", profile.topology.os_thread(thread).0);
    let by_second = |count: f64, seconds: f64| {
        if seconds > 0.0 { count / seconds } else { 0.0 }
    };
    let counts = |at: usize| -> Vec<f64> {
        let noise = &profile.noise[at];
        let gaps = noise.gaps.iter();
        gaps.map(|gap| by_second(gap.count as f64, noise.observed_s))
            .collect()
    };
    let series: Vec<(String, Vec<f64>)> = if profile.noise.len() <= NOISE_SERIES {
        let all = profile.noise.iter().enumerate();
        all.map(|(at, noise)| (name(noise.thread), counts(at)))
            .collect()
    } else {
        let mut sums = vec![0.0; classes.len()];
        for at in 0..profile.noise.len() {
            for (sum, count) in sums.iter_mut().zip(counts(at)) {
                *sum += count / profile.noise.len() as f64;
            }
        }
        vec![("the mean of all CPUs".to_owned(), sums)]
    };
    let chart = BarChart {
        classes,
        series,
        scale: Scale::Log10,
        x_label: "gap of this length and up to twice as long".to_owned(),
        y_label: "gaps a second".to_owned(),
        ..BarChart::new("Gaps seen by a thread that only reads the clock")
    };
    let mut table = Table::new(&["", ">listened", ">gaps", ">interrupts a second", ">stolen"]);
    let none = || "–".to_owned();
    for noise in &profile.noise {
        let gaps: u64 = noise.gaps.iter().map(|gap| gap.count).sum();
        let interrupts = noise.interrupts_per_s.as_ref();
        let steal = noise.steal_share.as_ref();
        table.row(vec![
            name(noise.thread),
            Unit::Nanoseconds.show(noise.observed_s * 1e9),
            gaps.to_string(),
            interrupts.map_or_else(none, |figure| Unit::Number.show(figure.value)),
            steal.map_or_else(none, |figure| Unit::Percent.show(100.0 * figure.value)),
        ]);
    }
    let caption = "Interrupts, the kernel's own work and the hypervisor make such gaps.";
    let section = Section::new("Noise").picture(&chart.draw(), caption);
    Some(if profile.noise.len() <= NOISE_SERIES {
        section.table(&table)
    } else {
        section.folded_table("each CPU", &table)
    })
}

fn claims(profile: &Profile) -> Option<Section> {
    if profile.claims.is_empty() {
        return None;
    }
    let mut table = Table::new(&["claim", "claimed", "found", "verdict", ">effect", "95 %"]);
    for claim in &profile.claims {
        let verdict = match claim.verdict {
            ClaimVerdict::Confirmed => "confirmed",
            ClaimVerdict::Contradicted => "contradicted",
            ClaimVerdict::Undecided => "undecided",
        };
        let effect = claim.effect_ratio.as_ref();
        table.row(vec![
            claim.subject.clone(),
            claim.claimed.clone(),
            claim.found.clone(),
            verdict.to_owned(),
            effect.map_or_else(String::new, |figure| Unit::Number.show(figure.value)),
            effect.map_or_else(String::new, |figure| range(Unit::Number, figure)),
        ]);
    }
    let text = "What firmware, kernel or hypervisor say, held against measurements. The effect is \
                what was found over what was claimed.";
    Some(Section::new("Claims").text(text).table(&table))
}

fn notes(profile: &Profile) -> Option<Section> {
    let (kept, gone) = samples(profile);
    let mut notes = profile.origin.notes.clone();
    if kept + gone > 0 {
        let share = Unit::Percent.show(100.0 * gone as f64 / (kept + gone) as f64);
        notes.push(format!(
            "{kept} samples were kept and {gone} thrown away as disturbed ({share})"
        ));
    }
    if notes.is_empty() {
        return None;
    }
    Some(Section::new("What is missing, and why").list(&notes))
}
