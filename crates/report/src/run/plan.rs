//! Expectations of a run beside observations: in words and tables.

use hearth_draw::page::{Section, Table, Tone};
use hearth_driver::expected::Expected;
use hearth_text::counted;
use hearth_watch::Recording;

use super::compared::{Compared, Pair};
use super::{ROWS, percent, rate, time};

/// In a shorter run its beginning and its end weigh, ns.
const SHORT_NS: u64 = 100_000_000;
/// Differences below this share count as expected.
const CLOSE: f64 = 0.1;
/// The most names in a sentence.
const NAMED: usize = 5;

pub(super) fn section(recording: &Recording, expected: Option<&Expected>) -> Section {
    let section = Section::new("Expected and seen");
    let Some(expected) = expected else {
        return section.text(
            "Nothing is known that the run could be compared with: the program's text is not at hand, or \
             this machine cannot be described (hearth machine show says why).",
        );
    };
    let compared = Compared::of(recording, expected);
    let mut section = section.text(&format!(
        "Expected is what the compiler reads in the program's text, at the costs of {}. MachinePicture is this run, from \
         its beginning to its end. Who runs where: by {}.",
        expected.site.origin,
        policy(expected)
    ));
    if compared.slower > 1.0 {
        section = section.text(&format!(
            "At the rates of the text alone {} would need {:.1} times the time that there is, by the model. So \
             what is expected is by so much less.",
            match compared.busiest {
                Some(_) => "the busiest part of the machine",
                None => "the busiest component, on a core of its own,",
            },
            compared.slower
        ));
    }
    section = section.callout(Tone::Note, "How far off", &verdict(&compared));
    if !compared.components.is_empty() {
        section = section
            .heading("Components")
            .text(
                "The share is a component's part of the load of all in this table. The load is its share of a \
                 core, its parts of messages included.",
            )
            .table(&components(&compared));
    }
    if !compared.talks.is_empty() {
        section = section.heading("Messages").table(&talks(&compared));
    }
    section
        .heading("What cannot be compared, and why")
        .list(&limits(recording, expected, &compared))
}

fn policy(expected: &Expected) -> String {
    match expected.is_planned() {
        // Ticks are for the terminal.
        true => expected.policy.replace('`', ""),
        false => format!("the policy {}, without a plan", expected.policy),
    }
}

/// The ratio to the expected number, in words.
fn times(pair: Pair) -> String {
    match pair.ratio() {
        None => "nothing expected".to_owned(),
        Some(ratio) if (ratio - 1.0).abs() <= CLOSE => "as expected".to_owned(),
        Some(ratio) if ratio >= 10.0 => format!("{ratio:.0} times the expectation"),
        Some(ratio) if ratio >= 0.095 => format!("{ratio:.1} times the expectation"),
        Some(ratio) if ratio > 0.0 => format!("1/{:.0} of the expectation", 1.0 / ratio),
        Some(_) => "nothing seen".to_owned(),
    }
}

/// The plain statement: how far off the plan was.
fn verdict(compared: &Compared) -> Vec<String> {
    let mut lines = Vec::new();
    let messages = compared.messages();
    if !compared.talks.is_empty() {
        lines.push(format!(
            "Messages: {} a second, {} expected: {}.",
            rate(messages.seen),
            rate(messages.expected),
            times(messages)
        ));
    }
    if let Some((worst, most, mean)) = compared.shares() {
        lines.push(format!(
            "Shares of running: off by {:.1} points in the mean and {:.1} at most, of {} ({} seen, {} expected).",
            100.0 * mean,
            100.0 * most,
            worst.name,
            percent(worst.share.seen),
            percent(worst.share.expected)
        ));
    }
    if let Some(busiest) = compared.busiest {
        lines.push(format!(
            "The busiest core was busy for {} of the time, {} expected.",
            percent(busiest.seen),
            percent(busiest.expected)
        ));
    }
    let (both, as_planned) = compared.places();
    if both > 0 {
        lines.push(format!(
            "Places: {as_planned} of {} ran mostly where the plan has them.",
            counted(both, "component")
        ));
    }
    if lines.is_empty() {
        lines.push("This run created no component of the text.".to_owned());
    }
    lines
}

fn core(core: Option<usize>) -> String {
    core.map_or_else(|| "–".to_owned(), |core| core.to_string())
}

fn ratio(pair: Pair) -> String {
    match pair.ratio() {
        None => "–".to_owned(),
        Some(ratio) if ratio >= 100.0 => format!("{ratio:.0}"),
        Some(ratio) if ratio >= 0.095 || ratio <= 0.0 => format!("{ratio:.2}"),
        Some(ratio) => format!("1/{:.0}", 1.0 / ratio),
    }
}

fn components(compared: &Compared) -> Table {
    let mut table = Table::new(&[
        "component",
        ">planned on core",
        ">ran on",
        ">share expected",
        ">seen",
        ">of a core expected",
        ">seen",
    ]);
    let (shown, rest) = compared
        .components
        .split_at(compared.components.len().min(ROWS));
    for one in shown {
        table.row(vec![
            one.name.clone(),
            core(one.planned),
            core(one.ran_on),
            percent(one.share.expected),
            percent(one.share.seen),
            percent(one.load.expected),
            percent(one.load.seen),
        ]);
    }
    if !rest.is_empty() {
        let sum =
            |of: fn(&super::compared::ComparedComponent) -> f64| percent(rest.iter().map(of).sum());
        table.row(vec![
            format!("{} more, together", rest.len()),
            String::new(),
            String::new(),
            sum(|one| one.share.expected),
            sum(|one| one.share.seen),
            sum(|one| one.load.expected),
            sum(|one| one.load.seen),
        ]);
    }
    table
}

fn talks(compared: &Compared) -> Table {
    let mut table = Table::new(&[
        "sender and receiver",
        ">a second expected",
        ">seen",
        ">ratio",
        ">bytes each expected",
        ">seen",
    ]);
    let (shown, rest) = compared.talks.split_at(compared.talks.len().min(ROWS));
    let bytes = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |b| format!("{b:.0}"));
    for talk in shown {
        table.row(vec![
            talk.name.clone(),
            rate(talk.messages.expected),
            rate(talk.messages.seen),
            ratio(talk.messages),
            bytes(talk.bytes.map(|pair| pair.expected)),
            bytes(talk.bytes.map(|pair| pair.seen)),
        ]);
    }
    if !rest.is_empty() {
        let pair = Pair {
            expected: rest.iter().map(|talk| talk.messages.expected).sum(),
            seen: rest.iter().map(|talk| talk.messages.seen).sum(),
        };
        table.row(vec![
            format!("{} more, together", rest.len()),
            rate(pair.expected),
            rate(pair.seen),
            ratio(pair),
            String::new(),
            String::new(),
        ]);
    }
    table
}

/// Sentences about observations without expectation, and the reverse.
fn limits(recording: &Recording, expected: &Expected, compared: &Compared) -> Vec<String> {
    let mut lines = Vec::new();
    if !expected.is_planned() {
        lines.push(format!(
            "Places: `{}` decides as components are made, and says nothing before. --place talk and \
             --place FILE have a plan.",
            expected.policy
        ));
    }
    if expected.policy.contains("`talk`") {
        lines.push(
            "The plan is the one before the first message. Later plans, from what was observed, are under Moves."
                .to_owned(),
        );
    }
    lines.push(
        "The plan's cost: it is a sum of the model, which no clock can measure. Its consequences are \
         compared: shares, loads and messages."
            .to_owned(),
    );
    lines.push(
        "Computing apart from messages: a run measures both together, so loads include both."
            .to_owned(),
    );
    if !compared.unforeseen.is_empty() {
        lines.push(format!(
            "Created in the run, but not found in the text: {}.",
            listed(&compared.unforeseen)
        ));
    }
    if !compared.missing.is_empty() {
        lines.push(format!(
            "Found in the text, but not created in the run: {}.",
            listed(&compared.missing)
        ));
    }
    lines.push(
        "The main sequence and the standard environment's components are never placed, and are left out."
            .to_owned(),
    );
    lines.extend(
        expected
            .program
            .notes
            .iter()
            .map(|note| format!("{}.", note.trim_end_matches('.'))),
    );
    if compared.busiest.is_none() {
        lines.push(
            "The number of messages that the machine can carry, and the load of its busiest core: they need a \
             place for each component. The expectation here assumes a core for each, near each other."
                .to_owned(),
        );
    }
    lines.push(
        "The program without a recording: recording takes some 100 ns each time that a component is resumed, \
         which the model does not include."
            .to_owned(),
    );
    if recording.ns < SHORT_NS {
        lines.push(format!(
            "The run took only {}: its start and end weigh more, so its rates are lower than those of a longer run.",
            time(recording.ns)
        ));
    }
    lines
}

fn listed(names: &[String]) -> String {
    let first = names
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
