//! Contents of a registry at a moment: who holds which cores. Text, so that people can read it too.
//!
//! ```text
//! hearth-claims 1
//! state 5f2c77aa01b3d4e6 from 09d1c35e8a7b2210
//! holder 4711 88123456 17 min=2 max=4 back=0 cores=2,3 name=build
//! check 9a3c51f0
//! ```
//!
//! A state has a random number of its own, and names that of the state before, 0 for a first one.
//!
//! A holder is a process, by its number and the time when it began; then come the number of its
//! last operation, its wish, how many cores it is asked to give back, and its cores. A line
//! `disputed 4,5` names cores that nobody may get for now. The last line is the CRC-32 of
//! everything before.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::constraints::Core;

const FIRST_LINE: &str = "hearth-claims 1";
/// Longest name kept.
const NAME_MAX: usize = 64;

/// A process, which another of the same number is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// Its number.
    pub number: u32,
    /// Its beginning, in the kernel's ticks since the system's.
    pub began: u64,
}

/// A process's claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The number of its last operation: an operation that took effect is in the state.
    pub operation: u64,
    /// Fewest and most cores that it wishes for.
    pub wish: (u32, u32),
    /// Cores that others ask it to give back.
    pub asked_back: u32,
    /// Its cores, ascending.
    pub cores: Vec<Core>,
    /// The program, for people.
    pub name: String,
}

/// All claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// A random number.
    pub id: u64,
    /// That of the state before; 0 if there is none.
    pub from: u64,
    /// By process.
    pub holders: BTreeMap<ProcessId, Holder>,
    /// Cores that two may believe to have, since a state was lost.
    pub disputed: Vec<Core>,
}

impl State {
    /// Cores that belong to somebody, ascending.
    #[must_use]
    pub fn taken(&self) -> Vec<Core> {
        let held = self.holders.values().flat_map(|one| &one.cores);
        let mut taken: Vec<Core> = held.copied().collect();
        taken.sort();
        taken
    }

    /// Those of some cores that nobody has.
    #[must_use]
    pub fn free(&self, cores: &[Core]) -> Vec<Core> {
        let taken = self.taken();
        let is_free =
            |core: &&Core| taken.binary_search(core).is_err() && !self.disputed.contains(core);
        cores.iter().filter(is_free).copied().collect()
    }

    /// Whether no core belongs to two.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.taken().windows(2).all(|pair| pair[0] != pair[1])
    }

    /// The text of a file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "{FIRST_LINE}\nstate {:016x} from {:016x}\n",
            self.id, self.from
        );
        for (process, holder) in &self.holders {
            let _ = writeln!(
                text,
                "holder {} {} {} min={} max={} back={} cores={} name={}",
                process.number,
                process.began,
                holder.operation,
                holder.wish.0,
                holder.wish.1,
                holder.asked_back,
                list(&holder.cores),
                fit_name(&holder.name),
            );
        }
        if !self.disputed.is_empty() {
            let _ = writeln!(text, "disputed {}", list(&self.disputed));
        }
        checked(text)
    }

    /// Reads a file's text. None if it is damaged, or contradicts itself.
    #[must_use]
    pub fn of(text: &str) -> Option<State> {
        let body = unchecked(text)?;
        let mut lines = body.lines();
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let (id, from) = lines.next()?.strip_prefix("state ")?.split_once(" from ")?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let mut state = State {
            id: number(id)?,
            from: number(from)?,
            ..State::default()
        };
        for line in lines {
            match line.strip_prefix("disputed ") {
                Some(cores) => state.disputed = read_list(cores)?,
                None => {
                    let (process, holder) = read_holder(line)?;
                    state.holders.insert(process, holder);
                }
            }
        }
        state.is_sound().then_some(state)
    }
}

fn read_holder(line: &str) -> Option<(ProcessId, Holder)> {
    let (facts, name) = line.strip_prefix("holder ")?.split_once(" name=")?;
    let mut facts = facts.split(' ');
    let process = ProcessId {
        number: facts.next()?.parse().ok()?,
        began: facts.next()?.parse().ok()?,
    };
    let operation = facts.next()?.parse().ok()?;
    let mut value = |key: &str| facts.next()?.strip_prefix(key)?.strip_prefix('=');
    let wish = (value("min")?.parse().ok()?, value("max")?.parse().ok()?);
    let asked_back = value("back")?.parse().ok()?;
    let cores = read_list(value("cores")?)?;
    let holder = Holder {
        operation,
        wish,
        asked_back,
        cores,
        name: name.to_owned(),
    };
    Some((process, holder))
}

/// Cores with commas between them.
pub(crate) fn list(cores: &[Core]) -> String {
    let cores: Vec<String> = cores.iter().map(|core| core.0.to_string()).collect();
    cores.join(",")
}

/// Cores that [`list`] wrote.
pub(crate) fn read_list(text: &str) -> Option<Vec<Core>> {
    let cores = text.split(',').filter(|core| !core.is_empty());
    cores.map(|core| Some(Core(core.parse().ok()?))).collect()
}

/// A text of whole lines, with its check as the last one.
pub(crate) fn checked(mut text: String) -> String {
    let check = crc32fast::hash(text.as_bytes());
    let _ = writeln!(text, "check {check:08x}");
    text
}

/// The lines before the check, if it is right.
pub(crate) fn unchecked(text: &str) -> Option<&str> {
    let (body, check) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let body = &text[..=body.len()];
    let check = u32::from_str_radix(check.strip_prefix("check ")?, 16).ok()?;
    (crc32fast::hash(body.as_bytes()) == check).then_some(body)
}

/// A name of one line and not too long.
pub(crate) fn fit_name(name: &str) -> String {
    let name = name.chars().filter(|c| !c.is_control());
    name.take(NAME_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let mut state = State {
            id: 5,
            from: u64::MAX,
            ..State::default()
        };
        let holder = |cores: &[u32], name: &str| Holder {
            operation: 3,
            wish: (1, 4),
            asked_back: 1,
            cores: cores.iter().map(|core| Core(*core)).collect(),
            name: name.to_owned(),
        };
        let process = |number, began| ProcessId { number, began };
        state
            .holders
            .insert(process(7, 100), holder(&[0, 2], "a b name=x"));
        state.holders.insert(process(8, 100), holder(&[], ""));
        state.disputed = vec![Core(5), Core(6)];
        state
    }

    #[test]
    fn a_state_comes_back() {
        let state = state();
        assert_eq!(State::of(&state.text()), Some(state.clone()));
        assert_eq!(state.taken(), [Core(0), Core(2)]);
        let all: Vec<Core> = (0..6).map(Core).collect();
        assert_eq!(state.free(&all), [Core(1), Core(3), Core(4)]);
        assert_eq!(State::of(&State::default().text()), Some(State::default()));
    }

    #[test]
    fn names_stay_in_a_line() {
        let mut state = state();
        for holder in state.holders.values_mut() {
            holder.name = format!("one\nholder 9 9{}", "x".repeat(100));
        }
        let read = State::of(&state.text()).expect("it is whole");
        assert_eq!(read.holders.len(), 2);
        let names = read.holders.values().map(|holder| holder.name.len());
        assert!(names.max() <= Some(NAME_MAX));
    }

    #[test]
    fn damage_is_noticed() {
        let text = state().text();
        for at in 0..text.len() {
            assert_eq!(State::of(&text[..at]), None, "cut at {at}");
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            if let Ok(damaged) = String::from_utf8(bytes) {
                assert_eq!(State::of(&damaged), None, "damaged at {at}");
            }
        }
    }

    #[test]
    fn a_core_of_two_holders_is_damage() {
        let mut state = state();
        for holder in state.holders.values_mut() {
            holder.cores = vec![Core(1)];
        }
        assert!(!state.is_sound());
        assert_eq!(State::of(&state.text()), None);
    }
}
