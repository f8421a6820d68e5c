//! Recorded calls for the terminal, and as JSON.

use std::fmt::Write as _;

use hearth_text::columns::{Columns, Side};
use serde_json::{Value, json};

use super::{Calls, grouped, ns};

/// Rows of a table, unless all are asked for.
const ROWS: usize = 20;
const NAME_WIDTH: usize = 36;

/// The figures as text. Tables are cut to twenty rows unless all are asked for.
#[must_use]
pub fn text(calls: &Calls, is_long: bool) -> String {
    let rows = if is_long { usize::MAX } else { ROWS };
    let (program, account) = calls.headline();
    let mut text = format!("{program}\n{account}\n");
    for remark in calls.remarks() {
        let _ = writeln!(text, "{remark}");
    }
    if calls.account().2 > 0 {
        text.push_str("\nLost, by thread\n");
        text.push_str(&threads(calls, rows));
    }
    text.push_str("\nCalls, by time of their own\n");
    text.push_str(&probes(calls, rows));
    if !calls.are_added_up() {
        text.push_str("\nCalls, by the calls around them\n");
        text.push_str(&tree(calls, rows));
    }
    text
}

fn threads(calls: &Calls, rows: usize) -> String {
    let mut columns = Columns::new(&[
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
    ]);
    columns.row(["thread", "emitted", "dropped", "overwritten", "refused"]);
    let mut accounts: Vec<_> = calls.recorded.accounts().iter().collect();
    accounts.sort_by_key(|account| std::cmp::Reverse(account.lost()));
    for account in accounts
        .into_iter()
        .filter(|account| account.lost() > 0)
        .take(rows)
    {
        columns.row([
            format!("{} {}", account.name, account.id),
            grouped(account.emitted),
            grouped(account.dropped),
            grouped(account.overwritten),
            grouped(account.refused),
        ]);
    }
    columns.lines(2)
}

fn probes(calls: &Calls, most: usize) -> String {
    let right = [Side::Right; 7];
    let mut columns = Columns::new(&[&[Side::Left], right.as_slice()].concat());
    columns.row([
        "probe", "calls", "total", "own", "median", "99 %", "99.9 %", "longest",
    ]);
    let rows = calls.rows();
    for row in rows.iter().take(most) {
        let [half, _, hundredth, thousandth, longest] = row.quantiles.map(ns);
        columns.row([
            cut(&row.name),
            grouped(row.calls),
            ns(row.total),
            ns(row.own),
            half,
            hundredth,
            thousandth,
            longest,
        ]);
    }
    columns.lines(2) + &further(rows.len(), most)
}

fn tree(calls: &Calls, most: usize) -> String {
    let mut columns = Columns::new(&[Side::Left, Side::Right, Side::Right, Side::Right]);
    columns.row(["call", "calls", "total", "own"]);
    let mut seen = 0;
    calls.tree.walk(|node, depth| {
        seen += 1;
        if seen <= most {
            let name = node.name.map_or("?", |name| calls.recorded.name(name));
            let indent = "  ".repeat(depth.min(12));
            columns.row([
                cut(&format!("{indent}{name}")),
                grouped(node.calls),
                ns(node.total),
                ns(node.own),
            ]);
        }
    });
    columns.lines(2) + &further(seen, most)
}

fn further(rows: usize, most: usize) -> String {
    match rows.saturating_sub(most) {
        0 => String::new(),
        more => format!("  and {more} more; --long shows all\n"),
    }
}

fn cut(name: &str) -> String {
    match name.chars().count() > NAME_WIDTH {
        true => name.chars().take(NAME_WIDTH - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// The figures as one JSON object.
#[must_use]
pub fn document(calls: &Calls) -> Value {
    let recorded = &calls.recorded;
    let (emitted, stored, lost) = calls.account();
    let threads: Vec<Value> = recorded
        .accounts()
        .iter()
        .map(|account| {
            json!({
                "thread": account.id,
                "name": account.name,
                "emitted": account.emitted,
                "stored": account.stored,
                "dropped": account.dropped,
                "overwritten": account.overwritten,
                "refused": account.refused,
            })
        })
        .collect();
    let probes: Vec<Value> = calls
        .rows()
        .into_iter()
        .map(|row| {
            let [half, tenth, hundredth, thousandth, longest] = row.quantiles;
            json!({
                "name": row.name,
                "calls": row.calls,
                "unknown": row.unknown,
                "total_ns": row.total,
                "own_ns": row.own,
                "median_ns": half,
                "p90_ns": tenth,
                "p99_ns": hundredth,
                "p999_ns": thousandth,
                "longest_ns": longest,
            })
        })
        .collect();
    json!({
        "program": recorded.program(),
        "process": recorded.process(),
        "law": recorded.law().name(),
        "ended": recorded.has_ended(),
        "added_up": calls.are_added_up(),
        "emitted": emitted,
        "stored": stored,
        "lost": lost,
        "gaps": calls.tree.gaps.0,
        "remarks": calls.remarks(),
        "threads": threads,
        "probes": probes,
    })
}
