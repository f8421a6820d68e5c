//! Summary of a file of records in one line of figures, and the most called functions.
//!
//! `cargo run --release -p hearth-monitor-c --example summary FILE [NUMBER]`

#![expect(clippy::print_stdout, reason = "a summary is printed")]

use std::collections::BTreeMap;
use std::path::Path;

use hearth_calls::{Recorded, Step};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a file");
    let number = arguments
        .next()
        .map_or(5, |text| text.parse().expect("a number"));
    let recorded = Recorded::open(Path::new(&path)).expect("records");
    let (mut calls, mut unknown, mut deepest) = (BTreeMap::new(), 0_u64, 0);
    let visited = recorded.visit(|step| {
        if let Step::Ends { call, .. } = step {
            *calls.entry(call.name).or_insert(0_u64) += 1;
            unknown += u64::from(call.length().is_none());
            deepest = deepest.max(call.depth + 1);
        }
    });
    visited.expect("it can be read");
    let sum =
        |of: fn(&hearth_calls::Account) -> u64| -> u64 { recorded.accounts().iter().map(of).sum() };
    let (emitted, stored, lost) = (
        sum(|one| one.emitted),
        sum(|one| one.stored),
        sum(|one| one.lost()),
    );
    assert_eq!(emitted, stored + lost);
    let bytes = std::fs::metadata(&path).map_or(0, |data| data.len());
    println!(
        "{emitted} records, {stored} stored, {lost} lost; {} threads, {} functions, {deepest} deep, \
         {unknown} calls of unknown length; {bytes} bytes, {:.2} a record; ended: {}",
        recorded.accounts().len(),
        calls.len(),
        bytes as f64 / stored.max(1) as f64,
        recorded.has_ended()
    );
    let mut most: Vec<(u64, Option<u32>)> = calls.iter().map(|(&name, &n)| (n, name)).collect();
    most.sort_unstable_by(|a, b| b.cmp(a));
    for (n, name) in most.into_iter().take(number) {
        println!("  {n:>10} {}", name.map_or("?", |name| recorded.name(name)));
    }
}
