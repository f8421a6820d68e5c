//! A profile as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hearth_draw::scale::Unit;
use hearth_machine::profile::{
    Access, Carrier, Claim, ClaimVerdict, Figure, Level, LineState, Mode, PairState, PairTransfer,
    Profile, Provenance, SystemCosts,
};
use hearth_machine::relation::Relation;
use hearth_machine::topology::{Bytes, CacheKind, Thread, Topology, format_list};
use hearth_text::columns::{Columns, Side};
use hearth_text::counted;
use hearth_text::date::date;

/// With more pairs, relations are shown instead.
const PAIRS_SHOWN: usize = 12;

/// A line with the number of each kind of part.
pub fn counts(machine: &Topology) -> String {
    [
        counted(machine.packages().len(), "package"),
        counted(machine.nodes().len(), "node"),
        counted(machine.cores().len(), "core"),
        counted(machine.threads().len(), "hardware thread"),
    ]
    .join(", ")
}

/// CPUs as the operating system numbers them.
pub fn cpus(machine: &Topology, threads: &[Thread]) -> String {
    format_list(threads.iter().map(|&thread| machine.os_thread(thread).0))
}

/// The parts of a machine.
pub fn parts(machine: &Topology) -> String {
    let mut text = counts(machine) + "\n\n";
    let mut columns = Columns::new(&[Side::Left, Side::Right, Side::Left]);
    for package in machine.packages() {
        let name = format!("package {}", package.os.0);
        columns.row([
            name,
            String::new(),
            format!("CPUs {}", cpus(machine, &package.threads)),
        ]);
    }
    for node in machine.nodes() {
        let memory = node
            .memory
            .map_or("memory not known".to_owned(), |m| m.to_string());
        let threads = match node.threads.as_slice() {
            [] => "no CPUs".to_owned(),
            threads => format!("CPUs {}", cpus(machine, threads)),
        };
        columns.row([format!("node {}", node.os.0), memory, threads]);
    }
    for (name, size, who) in caches(machine) {
        columns.row([name, size.to_string(), who]);
    }
    let siblings: Vec<String> = machine
        .cores()
        .iter()
        .filter(|core| core.threads.len() > 1)
        .map(|core| cpus(machine, &core.threads))
        .collect();
    if !siblings.is_empty() {
        let all = siblings.join(" ");
        columns.row([
            "cores".to_owned(),
            counted(siblings.len(), "pair"),
            format!("CPUs {all}"),
        ]);
    }
    if !machine.offline().is_empty() {
        let offline = format_list(machine.offline().iter().map(|thread| thread.0));
        columns.row([
            "offline".to_owned(),
            String::new(),
            format!("CPUs {offline}"),
        ]);
    }
    text.push_str(&columns.lines(0));
    if let Some(rows) = machine.distances().filter(|rows| rows.len() > 1) {
        text.push_str("\ndistances between nodes, by the firmware\n");
        let mut columns = Columns::new(&vec![Side::Right; rows.len() + 1]);
        for (node, row) in machine.nodes().iter().zip(rows) {
            let cells = row.iter().map(ToString::to_string);
            columns.row([format!("node {}", node.os.0)].into_iter().chain(cells));
        }
        text.push_str(&columns.lines(2));
    }
    text
}

/// Caches of one kind and size, and the CPUs that share each.
fn caches(machine: &Topology) -> Vec<(String, Bytes, String)> {
    let mut groups: BTreeMap<(u8, CacheKind, Bytes), Vec<&[Thread]>> = BTreeMap::new();
    for cache in machine.caches() {
        let key = (cache.level, cache.kind, cache.size);
        groups.entry(key).or_default().push(&cache.threads);
    }
    let row = |((level, kind, size), sets): ((u8, CacheKind, Bytes), Vec<&[Thread]>)| {
        let kind = match kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        let alone = |set: &&[Thread]| {
            let core = machine.thread(set[0]).core;
            machine.cores()[core.index()].threads == **set
        };
        let everywhere = sets.len() == machine.cores().len() && sets.iter().all(alone);
        let who = if everywhere {
            "each core".to_owned()
        } else {
            let sets: Vec<String> = sets.iter().map(|set| cpus(machine, set)).collect();
            format!("CPUs {}", sets.join(" "))
        };
        (format!("L{level}{kind}"), size, who)
    };
    groups.into_iter().map(row).collect()
}

/// A figure in a unit.
pub fn shown(unit: Unit, figure: &Figure) -> String {
    let mark = match figure.provenance {
        Provenance::Measured => "",
        Provenance::Claimed => " claimed",
        Provenance::Assumed => " assumed",
        Provenance::Inferred => "",
    };
    format!("{}{mark}", unit.show(figure.value))
}

/// Its interval.
pub fn range(unit: Unit, figure: &Figure) -> String {
    format!("{} to {}", unit.show(figure.low), unit.show(figure.high))
}

fn ns(figure: &Figure) -> [String; 2] {
    [
        shown(Unit::Nanoseconds, figure),
        range(Unit::Nanoseconds, figure),
    ]
}

pub fn level_name(level: Level) -> String {
    match level {
        Level::Cache(level) => format!("L{level}"),
        Level::Memory => "memory".to_owned(),
    }
}

pub fn carrier_name(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Threads => "threads that sleep",
        Carrier::Spin => "threads that spin",
        Carrier::Worker => "workers",
    }
}

pub fn state_name(state: LineState) -> &'static str {
    match state {
        LineState::Modified => "modified",
        LineState::Exclusive => "exclusive",
        LineState::Shared => "shared",
    }
}

/// The machine's identity, in a line or two.
pub fn identity(profile: &Profile) -> Vec<String> {
    let host = &profile.host;
    let mut first = vec![
        host.cpu_model
            .clone()
            .unwrap_or("unknown processor".to_owned()),
    ];
    first.extend(host.hypervisor.as_ref().map(|kind| match kind.as_str() {
        "unknown" => "virtual machine".to_owned(),
        kind => format!("virtual machine ({kind})"),
    }));
    first.extend(host.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    let origin = &profile.origin;
    let mut second = vec![counts(&profile.topology)];
    let how = match origin.mode {
        Mode::Quick => "quick",
        Mode::Normal => "normal",
        Mode::Deep => "deep",
        Mode::Assumed => "assumed",
    };
    if origin.mode == Mode::Assumed {
        second.push("nothing was measured".to_owned());
    } else {
        let when = origin
            .started_unix_s
            .map_or(String::new(), |s| format!(" on {}", date(s)));
        let took = Unit::Number.show(origin.duration_s);
        second.push(format!(
            "measured{when} in {took} s ({how}, seed {})",
            origin.seed
        ));
    }
    second.extend(
        host.quota_cpus
            .map(|quota| format!("limited to {} CPUs' time", Unit::Number.show(quota))),
    );
    let allowed = host.allowed.len();
    if allowed > 0 && allowed < profile.topology.threads().len() {
        let cpus = format_list(host.allowed.iter().map(|thread| thread.0));
        second.push(format!("only CPUs {cpus} could be used"));
    }
    vec![first.join(", "), second.join("; ")]
}

/// The whole summary.
pub fn summary(profile: &Profile) -> String {
    let mut text = identity(profile).join("\n") + "\n";
    for claim in profile.contradicted() {
        add_contradiction(&mut text, claim);
    }
    let sections: [(&str, String); 10] = [
        (
            "caches and memory, one load that waits for the last",
            caches_and_levels(profile),
        ),
        ("one way between two CPUs, through a line", pairs(profile)),
        ("a line in another CPU's cache", transfers(profile)),
        ("bandwidth", bandwidths(profile)),
        (
            "distances between nodes, by time (firmware's in brackets)",
            distances(profile),
        ),
        ("passing control, one way", hand_overs(profile)),
        ("whole messages, one exchange", messages(profile)),
        ("the operating system", system(profile)),
        ("noise", noise(profile)),
        ("claims", claims(profile)),
    ];
    for (heading, body) in sections {
        if !body.is_empty() {
            let _ = write!(text, "\n{heading}\n{body}");
        }
    }
    let (samples, discarded) = samples(profile);
    if samples + discarded > 0 {
        let share = 100.0 * discarded as f64 / (samples + discarded) as f64;
        let share = Unit::Percent.show(share);
        let _ = writeln!(
            text,
            "\n{samples} samples kept, {discarded} thrown away as disturbed ({share})"
        );
    }
    if !profile.origin.notes.is_empty() {
        text.push_str("\nto be known\n");
        for note in &profile.origin.notes {
            let _ = writeln!(text, "  - {note}");
        }
    }
    text
}

fn add_contradiction(text: &mut String, claim: &Claim) {
    let source = claim
        .source
        .as_ref()
        .map_or(String::new(), |s| format!(" ({s})"));
    let _ = writeln!(text, "\nclaim contradicted: {}", claim.subject);
    let _ = writeln!(text, "  claimed  {}{source}", claim.claimed);
    let _ = writeln!(text, "  found    {}", claim.found);
    if let Some(effect) = &claim.effect_ratio {
        let range = range(Unit::Number, effect);
        let value = Unit::Number.show(effect.value);
        let _ = writeln!(text, "  effect   {value} times the claim ({range})");
    }
}

/// The number of samples that all figures rest on, and of discarded ones.
pub fn samples(profile: &Profile) -> (u64, u64) {
    let curve = profile.curve.iter().map(|point| &point.load_ns);
    let pairs = profile.pairs.iter().map(|pair| &pair.one_way_ns);
    let pairs = pairs.filter(|figure| figure.provenance == Provenance::Measured);
    let transfers = profile
        .transfers
        .iter()
        .flat_map(|cost| std::iter::once(&cost.read_ns).chain(&cost.write_ns));
    let bandwidths = profile.bandwidths.iter().map(|found| &found.bytes_per_ns);
    let distances = profile
        .node_distances
        .iter()
        .flat_map(|found| &found.measured_s);
    let system = system_costs(&profile.system)
        .into_iter()
        .filter_map(|(_, figure)| figure);
    curve
        .chain(pairs)
        .chain(transfers)
        .chain(bandwidths)
        .chain(distances.flatten().flatten())
        .chain(system)
        .fold((0, 0), |(kept, gone), figure| {
            (kept + figure.samples, gone + figure.discarded)
        })
}

fn caches_and_levels(profile: &Profile) -> String {
    let mut columns = Columns::new(&[
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Left,
        Side::Right,
        Side::Left,
    ]);
    for cache in &profile.caches {
        let cost = profile.level(Level::Cache(cache.level));
        columns.row(level_row(
            format!("L{}", cache.level),
            cache.claimed_bytes.map(|bytes| Bytes(bytes).to_string()),
            cache.inferred_bytes.as_ref(),
            cost.map(|cost| &cost.read_ns),
        ));
    }
    for cost in &profile.levels {
        let known = profile
            .caches
            .iter()
            .any(|cache| Level::Cache(cache.level) == cost.level);
        if !known {
            columns.row(level_row(
                level_name(cost.level),
                None,
                None,
                Some(&cost.read_ns),
            ));
        }
    }
    if columns.is_empty() {
        return String::new();
    }
    let mut all = Columns::new(&[
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Left,
        Side::Right,
        Side::Left,
    ]);
    all.row(["", "claimed", "measured", "95 %", "a load", "95 %"]);
    all.append(columns);
    all.lines(2)
}

fn level_row(
    name: String,
    claimed: Option<String>,
    found: Option<&Figure>,
    load: Option<&Figure>,
) -> [String; 6] {
    let none = || "–".to_owned();
    [
        name,
        claimed.unwrap_or_else(none),
        found.map_or_else(none, |figure| Unit::Bytes.show(figure.value)),
        found.map_or_else(String::new, |figure| range(Unit::Bytes, figure)),
        load.map_or_else(none, |figure| shown(Unit::Nanoseconds, figure)),
        load.map_or_else(String::new, |figure| range(Unit::Nanoseconds, figure)),
    ]
}

fn pairs(profile: &Profile) -> String {
    let machine = &profile.topology;
    let mut columns = Columns::new(&[Side::Left, Side::Right, Side::Left, Side::Left]);
    if profile.pairs.len() <= PAIRS_SHOWN {
        for pair in &profile.pairs {
            let (a, b) = (machine.os_thread(pair.a), machine.os_thread(pair.b));
            let [value, range] = ns(&pair.one_way_ns);
            let relation = machine.relation(pair.a, pair.b).to_string();
            let inferred = match pair.one_way_ns.provenance {
                Provenance::Inferred => ", inferred",
                _ if !pair.states.is_empty() => ", over time",
                _ => "",
            };
            columns.row([format!("{a} – {b}"), value, range, relation + inferred]);
            for state in &pair.states {
                let [value, range] = ns(&state.one_way_ns);
                columns.row([String::new(), value, range, of_the_time(state)]);
            }
        }
        return columns.lines(2);
    }
    let mut groups: BTreeMap<Relation, Vec<&PairTransfer>> = BTreeMap::new();
    for pair in &profile.pairs {
        let relation = machine.relation(pair.a, pair.b);
        groups.entry(relation).or_default().push(pair);
    }
    for (relation, mut pairs) in groups {
        pairs.sort_by(|a, b| a.one_way_ns.value.total_cmp(&b.one_way_ns.value));
        let value = |at: usize| Unit::Nanoseconds.show(pairs[at].one_way_ns.value);
        let measured = pairs
            .iter()
            .filter(|pair| pair.one_way_ns.provenance == Provenance::Measured);
        columns.row([
            relation.to_string(),
            value(pairs.len() / 2),
            format!("{} to {}", value(0), value(pairs.len() - 1)),
            format!(
                "{}, {} measured{}",
                counted(pairs.len(), "pair"),
                measured.count(),
                with_states(&pairs)
            ),
        ]);
    }
    columns.lines(2)
}

/// The share of time in which a state holds, and its interval.
pub fn of_the_time(state: &PairState) -> String {
    let percent = state.time_share.times(100.0);
    let whole = |share: f64| Unit::Percent.show(share.round());
    format!(
        "{} of the time ({} to {})",
        whole(percent.value),
        whole(percent.low),
        whole(percent.high)
    )
}

/// The number of pairs with several states, if there are any.
fn with_states(pairs: &[&PairTransfer]) -> String {
    match pairs.iter().filter(|pair| !pair.states.is_empty()).count() {
        0 => String::new(),
        count => format!(", {count} with several states"),
    }
}

fn transfers(profile: &Profile) -> String {
    let mut columns = Columns::new(&[
        Side::Left,
        Side::Left,
        Side::Right,
        Side::Left,
        Side::Right,
        Side::Left,
    ]);
    if profile.transfers.is_empty() {
        return String::new();
    }
    columns.row(["", "", "read", "95 %", "write", "95 %"]);
    for cost in &profile.transfers {
        let [read, read_range] = ns(&cost.read_ns);
        let write = cost.write_ns.as_ref().map(ns);
        let [write, write_range] = write.unwrap_or(["–".to_owned(), String::new()]);
        columns.row([
            cost.relation.to_string(),
            state_name(cost.state).to_owned(),
            read,
            read_range,
            write,
            write_range,
        ]);
    }
    columns.lines(2)
}

fn bandwidths(profile: &Profile) -> String {
    let mut columns = Columns::new(&[Side::Left, Side::Left, Side::Left, Side::Right, Side::Left]);
    for found in &profile.bandwidths {
        let access = match found.access {
            Access::Read => "read",
            Access::Write => "write",
            Access::Copy => "copy",
        };
        columns.row([
            level_name(found.level),
            access.to_owned(),
            counted(found.threads as usize, "thread"),
            shown(Unit::BytesPerNanosecond, &found.bytes_per_ns),
            range(Unit::BytesPerNanosecond, &found.bytes_per_ns),
        ]);
    }
    columns.lines(2)
}

fn distances(profile: &Profile) -> String {
    let Some(found) = &profile.node_distances else {
        return String::new();
    };
    let nodes = profile.topology.nodes();
    let mut columns = Columns::new(&vec![Side::Right; nodes.len() + 1]);
    let names = nodes.iter().map(|node| format!("used from {}", node.os.0));
    columns.row(std::iter::once("memory of".to_owned()).chain(names));
    for (at, (node, row)) in nodes.iter().zip(&found.scaled).enumerate() {
        let firmware = |column: usize| found.firmware.as_ref()?.get(at)?.get(column).copied();
        let cell = |(column, cell): (usize, &Option<f64>)| {
            let value = cell.map_or("–".to_owned(), |value| format!("{value:.2}"));
            match firmware(column) {
                Some(claimed) => format!("{value} ({claimed})"),
                None => value,
            }
        };
        let cells = row.iter().enumerate().map(cell);
        columns.row(std::iter::once(format!("node {}", node.os.0)).chain(cells));
    }
    columns.lines(2)
}

fn hand_overs(profile: &Profile) -> String {
    let mut columns = Columns::new(&[Side::Left, Side::Left, Side::Right, Side::Left]);
    for cost in &profile.hand_overs {
        let [value, range] = ns(&cost.one_way_ns);
        let carrier = carrier_name(cost.carrier).to_owned();
        columns.row([carrier, cost.relation.to_string(), value, range]);
    }
    columns.lines(2)
}

/// The times of whole messages of some sizes; the page draws all.
fn messages(profile: &Profile) -> String {
    const SHOWN: [u64; 4] = [64, 4 << 10, 256 << 10, 16 << 20];
    let machine = &profile.topology;
    let alternating = profile.exchanges.iter().filter(|found| {
        found.stream_depth.is_none() && !found.fresh_buffer && SHOWN.contains(&found.bytes)
    });
    let mut kinds: BTreeMap<(Thread, Thread, Carrier), [String; SHOWN.len()]> = BTreeMap::new();
    for found in alternating {
        let cells = kinds
            .entry((found.sender, found.receiver, found.carrier))
            .or_insert_with(|| SHOWN.map(|_| "–".to_owned()));
        for (cell, bytes) in cells.iter_mut().zip(SHOWN) {
            if bytes == found.bytes {
                *cell = shown(Unit::Nanoseconds, &found.exchange_ns);
            }
        }
    }
    if kinds.is_empty() {
        return String::new();
    }
    let sides = [Side::Left, Side::Left].into_iter();
    let sides: Vec<Side> = sides.chain(SHOWN.map(|_| Side::Right)).collect();
    let mut columns = Columns::new(&sides);
    let sizes = SHOWN.map(|bytes| Bytes(bytes).to_string());
    columns.row([String::new(), String::new()].into_iter().chain(sizes));
    for ((sender, receiver, carrier), cells) in kinds {
        let (from, to) = (machine.os_thread(sender), machine.os_thread(receiver));
        let name = [format!("{from} to {to}"), carrier_name(carrier).to_owned()];
        columns.row(name.into_iter().chain(cells));
    }
    columns.lines(2)
}

/// The services of the operating system, by name.
pub fn system_costs(costs: &SystemCosts) -> [(&'static str, Option<&Figure>); 11] {
    [
        (
            "create and join a thread",
            costs.thread_create_join_ns.as_ref(),
        ),
        (
            "switch between two threads",
            costs.context_switch_ns.as_ref(),
        ),
        (
            "wake a thread, same CPU",
            costs.futex_wake_same_core_ns.as_ref(),
        ),
        (
            "wake a thread, another core",
            costs.futex_wake_other_core_ns.as_ref(),
        ),
        ("first touch of a page", costs.page_fault_ns.as_ref()),
        (
            "first touch of a huge page",
            costs.huge_page_fault_ns.as_ref(),
        ),
        ("mutex, uncontended", costs.mutex_ns.as_ref()),
        ("semaphore, uncontended", costs.semaphore_ns.as_ref()),
        ("yield, no other thread", costs.sched_yield_ns.as_ref()),
        ("the cheapest system call", costs.syscall_ns.as_ref()),
        ("read the clock", costs.clock_read_ns.as_ref()),
    ]
}

fn system(profile: &Profile) -> String {
    let mut columns = Columns::new(&[Side::Left, Side::Right, Side::Left]);
    for (name, figure) in system_costs(&profile.system) {
        if let Some(figure) = figure {
            let [value, range] = ns(figure);
            columns.row([name.to_owned(), value, range]);
        }
    }
    columns.lines(2)
}

fn noise(profile: &Profile) -> String {
    let mut columns = Columns::new(&[Side::Left, Side::Left, Side::Left, Side::Left]);
    for noise in profile.noise.iter().take(PAIRS_SHOWN) {
        let gaps: u64 = noise.gaps.iter().map(|gap| gap.count).sum();
        let a_second = gaps as f64 / noise.observed_s.max(f64::MIN_POSITIVE);
        let longest = noise.gaps.iter().rev().find(|gap| gap.count > 0);
        let longest = longest.map_or(String::new(), |gap| {
            let from = Unit::Nanoseconds.show(gap.from_ns as f64);
            format!("the longest {from} or more")
        });
        let interrupts = noise.interrupts_per_s.as_ref();
        let interrupts =
            interrupts.map(|f| format!("{} interrupts a second", Unit::Number.show(f.value)));
        let steal = noise.steal_share.as_ref();
        let steal = steal.map(|f| format!("{} stolen", Unit::Percent.show(100.0 * f.value)));
        columns.row([
            profile.topology.os_thread(noise.thread).to_string(),
            format!("{} gaps a second", Unit::Number.show(a_second)),
            longest,
            interrupts
                .into_iter()
                .chain(steal)
                .collect::<Vec<_>>()
                .join(", "),
        ]);
    }
    let mut text = columns.lines(2);
    let others = profile.noise.len().saturating_sub(PAIRS_SHOWN);
    if others > 0 {
        let _ = writeln!(text, "  and {others} CPUs more; --json shows all");
    }
    text
}

/// Claims that were confirmed or could not be decided; the contradicted ones come first.
fn claims(profile: &Profile) -> String {
    let mut columns = Columns::new(&[Side::Left, Side::Left, Side::Left]);
    for claim in &profile.claims {
        let verdict = match claim.verdict {
            ClaimVerdict::Confirmed => "confirmed",
            ClaimVerdict::Undecided => "undecided",
            ClaimVerdict::Contradicted => continue,
        };
        columns.row([
            claim.subject.clone(),
            claim.claimed.clone(),
            verdict.to_owned(),
        ]);
    }
    columns.lines(2)
}
