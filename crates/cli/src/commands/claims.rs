//! `hearth claims`: who has which cores, as a table and in the machine's picture.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::iter;
use std::os::fd::AsFd;

use hearth_claim::State;
use hearth_driver::this_machine;
use hearth_machine::topology::{Core, Topology, format_list};
use hearth_sys::terminal::Keys;
use hearth_terminal::{Failure, Interruption, output};
use hearth_text::columns::{Columns, Side};
use serde_json::{Value, json};

use super::claim::failure;
use super::heap_top::{self, End};
use crate::arguments::claim::ClaimsArguments;

/// Letter of a core that nobody has.
const FREE: char = '·';
/// The most letters in a line of the picture.
const WIDTH: usize = 64;

pub(crate) fn claims(arguments: &ClaimsArguments) -> Result<(), Failure> {
    if arguments.json {
        let found = hearth_claim::look().map_err(failure)?;
        let folder = found
            .as_ref()
            .map(|(folder, _)| folder.display().to_string());
        let state = found.map(|(_, state)| state).unwrap_or_default();
        return output::write_json(&json!({ "folder": folder, "holders": document(&state) }));
    }
    let topology = this_machine::reading()?.topology;
    let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
    let keys = match stdout.is_terminal() && !arguments.once {
        true => Keys::of(stdin.as_fd()).ok(),
        false => None,
    };
    match keys {
        Some(keys) => screens(&topology, &keys),
        None => output::write(now(&topology)?),
    }
}

fn screens(topology: &Topology, keys: &Keys<'_>) -> Result<(), Failure> {
    let interruption = Interruption::watch();
    let end = heap_top::on_screen(keys, u64::MAX, &interruption, |_| {
        let text = now(topology)?;
        let mut lines = vec!["hearth claims; q leaves".to_owned(), String::new()];
        lines.extend(text.lines().map(str::to_owned));
        Ok(Some(lines))
    })?;
    match end {
        End::Done | End::Left | End::Gone => Ok(()),
        End::Signal(signal) => Err(Failure::Interrupted(signal, "left off".into())),
    }
}

fn now(topology: &Topology) -> Result<String, Failure> {
    let found = hearth_claim::look().map_err(failure)?;
    let state = found.map(|(_, state)| state).unwrap_or_default();
    if state.holders.is_empty() {
        return Ok("No program has claimed cores.\n".to_owned());
    }
    Ok(format!("{}\n{}", table(&state), picture(topology, &state)))
}

/// Letter of the holder that is `nth` by its process's number.
fn letter(nth: usize) -> char {
    let letters = ('A'..='Z').chain('a'..='z');
    letters.into_iter().nth(nth).unwrap_or('+')
}

/// The holders, a line for each.
pub(super) fn table(state: &State) -> String {
    let mut columns = Columns::new(&[Side::Left, Side::Right, Side::Left, Side::Left, Side::Left]);
    columns.row(["", "process", "program", "cores", ""]);
    for (nth, (process, holder)) in state.holders.iter().enumerate() {
        let cores = match holder.cores.as_slice() {
            [] => "none".to_owned(),
            cores => format_list(cores.iter().map(|core| core.0)),
        };
        let wish = match (holder.wish, holder.asked_back) {
            ((_, 0), 0) => String::new(),
            ((least, most), 0) => format!("wants {least} to {most}"),
            ((least, most), back) => format!("wants {least} to {most}; {back} asked back"),
        };
        columns.row([
            letter(nth).to_string(),
            process.number.to_string(),
            holder.name.clone(),
            cores,
            wish,
        ]);
    }
    columns.lines(0)
}

/// A letter for each core, by nodes, with a blank between cores that share no cache.
fn picture(topology: &Topology, state: &State) -> String {
    let holders = state.holders.values().enumerate();
    let owners: BTreeMap<u32, char> = holders
        .flat_map(|(nth, holder)| holder.cores.iter().map(move |core| (core.0, letter(nth))))
        .collect();
    let mut columns = Columns::new(&[Side::Left, Side::Left]);
    for node in topology.nodes() {
        let mut cores: Vec<Core> = node
            .threads
            .iter()
            .map(|one| topology.thread(*one).core)
            .collect();
        cores.sort_unstable();
        cores.dedup();
        let mut letters = String::new();
        for (nth, core) in cores.iter().enumerate() {
            if nth > 0 && nth % WIDTH == 0 {
                letters.push('\n');
            } else if nth > 0 && last_cache(topology, cores[nth - 1]) != last_cache(topology, *core)
            {
                letters.push(' ');
            }
            // A claim names a core by the lowest number of its CPUs.
            let cpus = topology.cores()[core.index()].threads.iter();
            let number = cpus.map(|one| topology.os_thread(*one).0).min();
            let owner = number.and_then(|number| owners.get(&number));
            letters.push(*owner.unwrap_or(&FREE));
        }
        let node = format!("node {}", node.os.0);
        let names = iter::once(node).chain(iter::repeat(String::new()));
        for (name, line) in names.zip(letters.lines()) {
            columns.row([name, line.to_owned()]);
        }
    }
    let mut text = columns.lines(0);
    let _ = writeln!(text, "\nA letter is a core, {FREE} one that is free.");
    text
}

/// The largest cache of a core, by its place among the machine's.
fn last_cache(topology: &Topology, core: Core) -> Option<usize> {
    let first = topology.cores()[core.index()].threads[0];
    let caches = topology.caches().iter().enumerate();
    let own = caches.filter(|(_, cache)| cache.holds_data() && cache.threads.contains(&first));
    own.max_by_key(|(_, cache)| cache.level).map(|(nth, _)| nth)
}

fn document(state: &State) -> Vec<Value> {
    let holders = state.holders.iter().map(|(process, holder)| {
        let cores: Vec<u32> = holder.cores.iter().map(|core| core.0).collect();
        json!({
            "process": process.number,
            "name": holder.name,
            "cores": cores,
            "least": holder.wish.0,
            "most": holder.wish.1,
            "asked_back": holder.asked_back,
        })
    });
    holders.collect()
}

#[cfg(test)]
mod tests {
    use hearth_claim::{Core, Holder, ProcessId};
    use hearth_machine::synthetic;

    use super::*;

    fn state(cores_of_each: &[&[u32]]) -> State {
        let holders = cores_of_each.iter().enumerate().map(|(nth, cores)| {
            let process = ProcessId {
                number: 10 + nth as u32,
                began: 0,
            };
            let holder = Holder {
                cores: cores.iter().map(|core| Core(*core)).collect(),
                wish: (1, 2),
                name: "make".to_owned(),
                ..Holder::default()
            };
            (process, holder)
        });
        State {
            holders: holders.collect(),
            ..State::default()
        }
    }

    #[test]
    fn the_picture_has_nodes_and_shared_caches() {
        let text = "2 packages, 4 cores, 2 threads, l2 1M per core, l3 16M per package, 2 nodes";
        let topology = synthetic::parse(text).expect("a machine");
        let picture = picture(&topology, &state(&[&[0, 2], &[8]]));
        assert_eq!(
            picture,
            "node 0  AA··\nnode 1  B···\n\nA letter is a core, · one that is free.\n"
        );
    }

    #[test]
    fn the_picture_of_a_large_machine_has_short_lines() {
        let topology = synthetic::parse("1 package, 100 cores, l3 16M per 4 cores");
        let topology = topology.expect("a machine");
        let picture = picture(&topology, &state(&[&[5], &[99]]));
        let lines: Vec<&str> = picture.lines().collect();
        assert!(lines[0].starts_with("node 0  ···· ·A·· ····"), "{picture}");
        assert!(lines[1].ends_with("···B"), "{picture}");
        assert!(
            lines.iter().all(|line| line.chars().count() < 90),
            "{picture}"
        );
    }

    #[test]
    fn holders_beyond_the_letters_share_a_sign() {
        assert_eq!([0, 25, 26, 51, 52].map(letter), ['A', 'Z', 'a', 'z', '+']);
    }
}
