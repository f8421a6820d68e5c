//! A registry's states in a folder, each an immutable file with a number.
//!
//! A new state is published as the file of the next number, by renaming that fails if the number is
//! taken. So of all who start from the same state one succeeds, and the others start again from
//! what it published. Nobody holds a lock: a program that is stopped or killed anywhere stops
//! nobody. A program that was stopped for long may publish a number that is gone already; then a
//! much higher one is there, or its own beginning is not there any more, and it takes its file
//! back.

use std::io;

use crate::outside::{Fault, Outside};

/// End of a state's file name.
const STATE: &str = ".state";
/// Attempts to read what others replace meanwhile.
const ATTEMPTS: usize = 100;

/// The newest state's text, and that of the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Newest {
    /// Its number; 0 if there is none.
    pub(crate) number: u64,
    /// Its text; empty if there is none, or it is no text.
    pub(crate) text: String,
    /// The text of the state with the number before; empty as well.
    pub(crate) before: String,
}

/// Result of publishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// The state is the newest, or was.
    Yes,
    /// Another one came first.
    TooLate,
    /// It was published, and is not to be found any more; others may have gone on from it.
    Lost,
}

/// The file of a state.
pub(crate) fn name(number: u64) -> String {
    format!("{number:020}{STATE}")
}

/// The number of a state's file.
pub(crate) fn number(name: &str) -> Option<u64> {
    name.strip_suffix(STATE)?.parse().ok()
}

/// Numbers of the states that are there, ascending.
fn numbers(outside: &impl Outside) -> io::Result<Vec<u64>> {
    let names = outside.names()?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The newest state.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn newest(outside: &impl Outside) -> io::Result<Newest> {
    for _ in 0..ATTEMPTS {
        let Some(number) = numbers(outside)?.last().copied() else {
            return Ok(Newest::default());
        };
        // Others may publish and tidy up meanwhile.
        if let Some(text) = outside.read(&name(number))? {
            let before = outside.read(&name(number.saturating_sub(1)))?;
            return Ok(Newest {
                number,
                text,
                before: before.unwrap_or_default(),
            });
        }
    }
    Err(io::Error::new(
        io::ErrorKind::WouldBlock,
        "other programs change it all the time",
    ))
}

/// Publishes a state under the next number. `from` is what it was made from; somebody may have
/// removed that meanwhile.
///
/// # Errors
/// The folder cannot be written to.
pub(crate) fn publish(outside: &impl Outside, from: &Newest, text: &str) -> io::Result<Published> {
    let kept = outside.limits().kept;
    let number = from.number + 1;
    if !outside.publish(&name(number), text)? {
        return Ok(Published::TooLate);
    }
    let numbers = numbers(outside)?;
    let highest = numbers.last().copied().unwrap_or(number);
    let is_past = highest > number + kept && !outside.has(Fault::PublishesThePast);
    // The state that it was made from must be there after the listing, or a first one itself: a
    // listing that took long misses what came and went.
    let (witness, whole) = match from.number {
        0 => (number, text),
        from_number => (from_number, from.text.as_str()),
    };
    let is_there = || Ok::<_, io::Error>(outside.read(&name(witness))?.as_deref() == Some(whole));
    // The number was published and tidied up long ago; or states were removed.
    if is_past || !is_there()? {
        outside.remove(&name(number));
        return Ok(Published::Lost);
    }
    // The one before a state stays for as long as the state may still be checked.
    for old in numbers.into_iter().filter(|old| old + kept + 1 < highest) {
        outside.remove(&name(old));
    }
    Ok(Published::Yes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kernel::Kernel;
    use crate::outside::USUAL;
    use crate::testing::Folder;

    fn files(folder: &Folder) -> usize {
        fs::read_dir(folder.path()).expect("a folder").count()
    }

    #[test]
    fn one_of_those_who_go_on_from_a_state_succeeds() {
        let folder = Folder::new("chain");
        let chain = Kernel::in_folder(folder.path());
        let nothing = newest(&chain).expect("it is read");
        assert_eq!(nothing, Newest::default());
        assert_eq!(
            publish(&chain, &nothing, "one").expect("it works"),
            Published::Yes
        );
        assert_eq!(
            publish(&chain, &nothing, "other").expect("it works"),
            Published::TooLate
        );
        let first = newest(&chain).expect("it is read");
        assert_eq!((first.number, first.text.as_str()), (1, "one"));
        assert_eq!(
            publish(&chain, &first, "two").expect("it works"),
            Published::Yes
        );
        let second = newest(&chain).expect("it is read");
        assert_eq!(
            (second.text.as_str(), second.before.as_str()),
            ("two", "one")
        );
        assert_eq!(files(&folder), 2);
    }

    #[test]
    fn a_late_one_takes_its_file_back() {
        let folder = Folder::new("late");
        let chain = Kernel::in_folder(folder.path());
        let late = newest(&chain).expect("it is read");
        for nth in 0..20 {
            let latest = newest(&chain).expect("it is read");
            assert_eq!(latest.number, nth);
            let published = publish(&chain, &latest, &nth.to_string()).expect("it works");
            assert_eq!(published, Published::Yes);
        }
        assert_eq!(files(&folder), USUAL.kept as usize + 2);
        assert_eq!(
            publish(&chain, &late, "late").expect("it works"),
            Published::Lost
        );
        assert_eq!(files(&folder), USUAL.kept as usize + 2);
        assert_eq!(newest(&chain).expect("it is read").text, "19");
    }

    #[test]
    fn drafts_of_the_ended_go() {
        let folder = Folder::new("drafts");
        for name in ["7-00.draft", "8-00.draft", "x.draft"] {
            fs::write(folder.path().join(name), "").expect("it is written");
        }
        Kernel::in_folder(folder.path()).tidy_up(|process| process == 7);
        assert!(!folder.path().join("7-00.draft").exists());
        assert_eq!(files(&folder), 2);
    }

    #[test]
    fn removed_states_are_noticed() {
        let folder = Folder::new("removed");
        let chain = Kernel::in_folder(folder.path());
        let nothing = newest(&chain).expect("it is read");
        publish(&chain, &nothing, "one").expect("it works");
        let first = newest(&chain).expect("it is read");
        fs::remove_file(folder.path().join(name(1))).expect("it is there");
        assert_eq!(
            publish(&chain, &first, "two").expect("it works"),
            Published::Lost
        );
        assert_eq!(files(&folder), 0);
        fs::write(folder.path().join(name(7)), [0xff, 0xfe]).expect("it is written");
        let damaged = newest(&chain).expect("it is read");
        assert_eq!((damaged.number, damaged.text.as_str()), (7, ""));
    }
}
