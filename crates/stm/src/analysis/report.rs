//! A history as text.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use super::conflicts::{Killer, Kills};
use super::history::{Attempt, End, History};

/// Sites listed.
const SITES: usize = 10;
/// Columns of the time line.
const COLUMNS: usize = 60;

/// A part of a report: lines of text of even width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its title.
    pub title: String,
    /// Its lines.
    pub text: String,
}

/// Tells commits and aborts by thread and by where transactions begin, who killed whom, wasted
/// time, sizes, retries, and a time line.
#[must_use]
pub fn report(history: &History) -> String {
    let parts = parts(history).into_iter();
    let texts: Vec<String> = parts
        .map(|part| format!("{}\n{}", part.title, part.text))
        .collect();
    texts.join("\n")
}

/// The parts of a report.
#[must_use]
pub fn parts(history: &History) -> Vec<Part> {
    let kills = Kills::of(history);
    let mut text = String::new();
    threads(history, &mut text);
    origins(history, &mut text);
    reasons(history, &mut text);
    sites(history, &kills, &mut text);
    matrix(history, &kills, &mut text);
    origin_pairs(history, &kills, &mut text);
    sizes(history, &mut text);
    retries(history, &mut text);
    time_line(history, &mut text);
    let split = |part: &str| {
        let (title, text) = part
            .trim_matches('\n')
            .split_once('\n')
            .unwrap_or((part, "none"));
        Part {
            title: title.trim_matches('\n').to_owned(),
            text: format!("{text}\n"),
        }
    };
    text.split("\n\n").map(split).collect()
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

fn length(attempts: &[Attempt], commits: bool) -> (usize, f64) {
    let wanted = attempts
        .iter()
        .filter(|it| (it.end == End::Commit) == commits);
    wanted.fold((0, 0.0), |(number, ns), it| {
        (number + 1, ns + it.end_ns - it.start_ns)
    })
}

fn threads(history: &History, text: &mut String) {
    let (first, last) = history.span_ns();
    let _ = writeln!(text, "Transactions over {:.3} ms", ms(last - first));
    let _ = writeln!(
        text,
        "{:<20} {:>10} {:>10} {:>12} {:>12} {:>7} {:>8}",
        "thread", "commits", "aborts", "useful ms", "wasted ms", "wasted", "lost"
    );
    for thread in &history.threads {
        let (commits, useful) = length(&thread.attempts, true);
        let (aborts, wasted) = length(&thread.attempts, false);
        let share = 100.0 * wasted / (useful + wasted).max(1.0);
        let _ = writeln!(
            text,
            "{:<20} {commits:>10} {aborts:>10} {:>12.3} {:>12.3} {share:>6.1}% {:>8}",
            thread.name,
            ms(useful),
            ms(wasted),
            thread.lost
        );
    }
}

/// Attempts with their threads.
fn all(history: &History) -> impl Iterator<Item = (usize, &Attempt)> {
    let threads = history.threads.iter().enumerate();
    threads.flat_map(|(number, thread)| thread.attempts.iter().map(move |it| (number, it)))
}

/// Commits and aborts by where transactions begin, those that wasted most first.
fn origins(history: &History, text: &mut String) {
    #[derive(Default)]
    struct Row {
        commits: usize,
        aborts: usize,
        useful: f64,
        wasted: f64,
    }
    if history.origins.is_empty() {
        return;
    }
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for (_, attempt) in all(history) {
        let row = rows.entry(history.origin(attempt)).or_default();
        let ns = attempt.end_ns - attempt.start_ns;
        if attempt.end == End::Commit {
            row.commits += 1;
            row.useful += ns;
        } else {
            row.aborts += 1;
            row.wasted += ns;
        }
    }
    let mut rows: Vec<(&str, Row)> = rows.into_iter().collect();
    rows.sort_by(|one, other| other.1.wasted.total_cmp(&one.1.wasted));
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let width = width.max(20);
    let _ = writeln!(
        text,
        "\nWhere transactions begin\n{:<width$} {:>10} {:>10} {:>8} {:>12} {:>12} {:>7}",
        "", "commits", "aborts", "aborted", "useful ms", "wasted ms", "wasted"
    );
    for (name, row) in rows {
        let share = |part: f64, rest: f64| 100.0 * part / (part + rest).max(1.0);
        let _ = writeln!(
            text,
            "{name:<width$} {:>10} {:>10} {:>7.1}% {:>12.3} {:>12.3} {:>6.1}%",
            row.commits,
            row.aborts,
            share(row.aborts as f64, row.commits as f64),
            ms(row.useful),
            ms(row.wasted),
            share(row.wasted, row.useful)
        );
    }
}

/// Killed and killers by where their transactions begin. A killer's transaction is the one that its
/// thread ran, or had committed last, when the victim ended.
fn origin_pairs(history: &History, kills: &Kills, text: &mut String) {
    if history.origins.is_empty() {
        return;
    }
    let mut pairs: BTreeMap<(&str, &str), (usize, f64)> = BTreeMap::new();
    for (victim, attempt) in all(history) {
        let Some(killer) = kills.killer(victim, attempt) else {
            continue;
        };
        let running = killer.thread().and_then(|thread| {
            let attempts = &history.threads[thread].attempts;
            let begun = attempts.partition_point(|it| it.start_ns <= attempt.end_ns);
            attempts.get(begun.checked_sub(1)?)
        });
        let by = running.map_or("unknown", |running| history.origin(running));
        let pair = pairs.entry((history.origin(attempt), by)).or_default();
        *pair = (pair.0 + 1, pair.1 + attempt.end_ns - attempt.start_ns);
    }
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_by_key(|&(pair, (number, _))| (std::cmp::Reverse(number), pair));
    let width = |of: fn(&(&str, &str)) -> usize| pairs.iter().map(|(pair, _)| of(pair)).max();
    let victims = width(|pair| pair.0.len()).unwrap_or(0).max(20);
    let killers = width(|pair| pair.1.len()).unwrap_or(0).max(20);
    let _ = writeln!(
        text,
        "\nVictims by killer, where their transactions begin\n{:<victims$} {:<killers$} {:>10} {:>12}",
        "victim", "killer", "aborts", "wasted ms"
    );
    for ((victim, killer), (number, ns)) in pairs.iter().take(SITES) {
        let _ = writeln!(
            text,
            "{victim:<victims$} {killer:<killers$} {number:>10} {:>12.3}",
            ms(*ns)
        );
    }
    if let Some(more) = pairs.len().checked_sub(SITES).filter(|&more| more > 0) {
        let _ = writeln!(text, "and {more} more");
    }
}

fn reasons(history: &History, text: &mut String) {
    let mut reasons: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for (_, attempt) in all(history) {
        if let End::Abort { reason, .. } = attempt.end {
            let name = reason.map_or("unknown", |reason| reason.name());
            let entry = reasons.entry(name).or_default();
            *entry = (entry.0 + 1, entry.1 + attempt.end_ns - attempt.start_ns);
        }
    }
    text.push_str("\nAborts by reason\n");
    for (name, (number, ns)) in reasons {
        let _ = writeln!(text, "{name:<20} {number:>10} {:>12.3} ms", ms(ns));
    }
}

fn sites(history: &History, kills: &Kills, text: &mut String) {
    let mut sites: HashMap<u64, (usize, f64)> = HashMap::new();
    for (_, attempt) in all(history) {
        if let End::Abort { site, .. } = attempt.end
            && site != 0
        {
            let entry = sites.entry(site).or_default();
            *entry = (entry.0 + 1, entry.1 + attempt.end_ns - attempt.start_ns);
        }
    }
    let mut sites: Vec<_> = sites.into_iter().collect();
    sites.sort_by_key(|&(site, (number, _))| (std::cmp::Reverse(number), site));
    text.push_str("\nPlaces of conflicts\n");
    for (site, (number, ns)) in sites.iter().take(SITES) {
        let _ = write!(
            text,
            "{site:#018x} {number:>10} aborts {:>10.3} ms",
            ms(*ns)
        );
        if history.has_accesses {
            let _ = write!(text, " {:>10} commits write there", kills.commits_at(*site));
        }
        text.push('\n');
    }
    if let Some(more) = sites.len().checked_sub(SITES).filter(|&more| more > 0) {
        let _ = writeln!(text, "and {more} more");
    }
}

fn matrix(history: &History, kills: &Kills, text: &mut String) {
    let threads = history.threads.len();
    // Columns: the threads, then ambiguous and unknown killers.
    let mut matrix = vec![vec![0_usize; threads + 2]; threads];
    let mut inferred = 0;
    for (victim, attempt) in all(history) {
        match kills.killer(victim, attempt) {
            None => {}
            Some(Killer::Ambiguous) => matrix[victim][threads] += 1,
            Some(Killer::Unknown) => matrix[victim][threads + 1] += 1,
            Some(Killer::Named(killer)) => matrix[victim][killer] += 1,
            Some(Killer::Inferred(killer)) => {
                matrix[victim][killer] += 1;
                inferred += 1;
            }
        }
    }
    text.push_str("\nVictims by killer\n");
    let _ = write!(text, "{:<20}", "");
    for thread in &history.threads {
        let _ = write!(text, " {:>16}", thread.name);
    }
    text.push_str("        ambiguous          unknown\n");
    for (thread, row) in history.threads.iter().zip(matrix) {
        let _ = write!(text, "{:<20}", thread.name);
        for number in row {
            let _ = write!(text, " {number:>16}");
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{inferred} of these follow from the last commit at the place; the others are named."
    );
}

/// Class of a number, in powers of two: 0, 1, 2-3, 4-7.
fn class(number: u64) -> u32 {
    64 - number.leading_zeros()
}

fn class_name(class: u32) -> String {
    match class {
        0 | 1 => class.to_string(),
        _ => format!("{}-{}", 1_u64 << (class - 1), (1_u128 << class) - 1),
    }
}

fn histogram(title: &str, numbers: impl Iterator<Item = u64>, text: &mut String) {
    let mut classes: BTreeMap<u32, usize> = BTreeMap::new();
    for number in numbers {
        *classes.entry(class(number)).or_default() += 1;
    }
    let most = classes.values().copied().max().unwrap_or(1);
    let _ = writeln!(text, "\n{title}");
    for (class, number) in classes {
        let bar = "#".repeat((number * 40).div_ceil(most));
        let _ = writeln!(text, "{:<12} {number:>10} {bar}", class_name(class));
    }
}

fn sizes(history: &History, text: &mut String) {
    if history.has_accesses {
        let sizes = || all(history).map(|(_, attempt)| attempt.sizes());
        histogram("Words read in an attempt", sizes().map(|it| it.0), text);
        histogram("Words written in an attempt", sizes().map(|it| it.1), text);
    }
}

fn retries(history: &History, text: &mut String) {
    let mut retries = Vec::new();
    for thread in &history.threads {
        let mut failed = 0;
        for attempt in &thread.attempts {
            if attempt.end == End::Commit {
                retries.push(std::mem::take(&mut failed));
            } else {
                failed += 1;
            }
        }
    }
    histogram("Attempts before a commit", retries.into_iter(), text);
}

fn time_line(history: &History, text: &mut String) {
    let (first, last) = history.span_ns();
    let width = (last - first).max(1.0) / COLUMNS as f64;
    let _ = writeln!(
        text,
        "\nTime line, {:.3} ms a column: . commits, + some aborts, # more than one in ten, \
         space nothing",
        ms(width)
    );
    for thread in &history.threads {
        let mut columns = [(0_u64, 0_u64); COLUMNS];
        for attempt in &thread.attempts {
            let at = ((attempt.end_ns - first) / width) as usize;
            let column = &mut columns[at.min(COLUMNS - 1)];
            match attempt.end {
                End::Commit => column.0 += 1,
                End::Abort { .. } => column.1 += 1,
            }
        }
        let line: String = columns
            .iter()
            .map(|&(commits, aborts)| match (commits, aborts) {
                (0, 0) => ' ',
                (_, 0) => '.',
                _ if aborts * 10 <= commits + aborts => '+',
                _ => '#',
            })
            .collect();
        let _ = writeln!(text, "{:<20} |{line}|", thread.name);
    }
}
