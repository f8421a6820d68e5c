//! The channels of a run, as a table.

use hearth_draw::page::{Section, Table};
use hearth_draw::scale::Unit;
use hearth_watch::Recording;
use hearth_watch::figures::{self, Channel, ValueBytes};

use super::{ROWS, time};

pub(super) fn section(recording: &Recording) -> Section {
    let all = figures::channels(recording);
    let section = Section::new("Channels");
    if all.is_empty() {
        return section.text("No ports were connected.");
    }
    let mut table = Table::new(&[
        "from",
        "to",
        ">messages",
        ">bytes each",
        ">bytes",
        ">sender waited",
        ">receiver waited",
    ]);
    let (shown, rest) = all.split_at(all.len().min(ROWS));
    for channel in shown {
        table.row(vec![
            figures::end_name(recording, channel.ends[0]),
            figures::end_name(recording, channel.ends[1]),
            messages(channel),
            each(channel.value),
            bytes(channel.bytes()),
            time(channel.waited[0]),
            time(channel.waited[1]),
        ]);
    }
    if !rest.is_empty() {
        let sum = |of: fn(&Channel) -> f64| rest.iter().map(of).sum::<f64>();
        table.row(vec![
            format!("{} more, together", rest.len()),
            String::new(),
            (sum(|channel| channel.messages() as f64) as u64).to_string(),
            String::new(),
            bytes(Some(sum(|channel| channel.bytes().unwrap_or(0.0)))),
            time(sum(|channel| channel.waited[0] as f64) as u64),
            time(sum(|channel| channel.waited[1] as f64) as u64),
        ]);
    }
    section.table(&table).explained(
            "The side of a message that comes first waits, so messages are counted by the waits at both ends. \
             Messages of a select that waited are estimated from samples, and marked with ≈. Bytes are an estimate: messages times the size of a value, without the objects it refers to. The \
             size is known for numbers; for strings, arrays and structures it is the mean of samples, \
             marked with ≈. An end that was connected to several is shown with the first.",
        )
}

fn messages(channel: &Channel) -> String {
    let sign = if channel.selected > 0 { "≈ " } else { "" };
    format!("{sign}{}", channel.messages())
}

fn each(value: ValueBytes) -> String {
    match value {
        ValueBytes::Unknown => "not seen".to_owned(),
        ValueBytes::Each(bytes) => bytes.to_string(),
        ValueBytes::Mean(bytes, _) => format!("≈ {bytes:.0}"),
    }
}

fn bytes(all: Option<f64>) -> String {
    match all {
        Some(bytes) => format!("≈ {}", Unit::Bytes.show(bytes)),
        None => "–".to_owned(),
    }
}
