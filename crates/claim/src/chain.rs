//! A registry's states in a folder, each an immutable file with a number.
//!
//! A new state is published as the file of the next number, by renaming that fails if the number is
//! taken. So of all who start from the same state one succeeds, and the others start again from
//! what it published. Nobody holds a lock: a program that is stopped or killed anywhere stops
//! nobody. A program that was stopped for long may publish a number that is gone already; then the
//! state that it went on from is gone, too, and it takes its file back.
//!
//! That holds because old states are removed in the order of their numbers, whoever does it:
//!
//! ```text
//! N + 1 was removed  ⇒  N was removed before
//! ```
//!
//! So a state that is there, and whose next number is not, is the newest; and whoever publishes
//! N + 1 and then still finds the N that it read was the first to do so. Neither needs a listing.
//! A number is published only by who goes on from the one before, so states come in this order,
//! too, and a listing that began after number N came misses no number up to N but those that were
//! removed.
//!
//! A listing that takes long may miss all states: those that were there when it began were removed
//! meanwhile, and the others came after it began. It must not be taken for an empty registry's. So
//! an old state is removed by renaming it to number 1, over the one that has that number. Number 1
//! is taken from the first state on, and nobody begins anew beside others. It is the newest state
//! only if it stays the same during a listing that shows no other: had the newest of the listing's
//! beginning been removed meanwhile, number 1 would be another.
//!
//! If somebody else removes states, the order does not hold; then [`crate::registry`] relies on
//! members' files alone.

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
    let names = outside.names(STATE)?;
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
            if number == 1 && !is_alone(outside, &text)? {
                continue;
            }
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

/// Whether number 1 is the newest state; false if others were removed meanwhile.
fn is_alone(outside: &impl Outside, text: &str) -> io::Result<bool> {
    Ok(numbers(outside)? == [1] && outside.is_there(&name(1), text)?)
}

/// Whether a state that was the newest is so still.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn is_newest(outside: &impl Outside, known: &Newest) -> io::Result<bool> {
    if known.number == 0 || outside.exists(&name(known.number + 1))? {
        return Ok(false);
    }
    // Asked in this order: the next one may have come and gone.
    outside.is_there(&name(known.number), &known.text)
}

/// Publishes a state under the next number. `from` is what it was made from; somebody may have
/// removed that meanwhile. `removed` is the number of the last state that the caller removed.
///
/// # Errors
/// The folder cannot be written to.
pub(crate) fn publish(
    outside: &impl Outside,
    from: &Newest,
    text: &str,
    removed: &mut u64,
) -> io::Result<Published> {
    let number = from.number + 1;
    if !outside.publish(&name(number), text)? {
        return Ok(Published::TooLate);
    }
    let is_first = from.number == 0
        || outside.has(Fault::PublishesThePast)
        || outside.is_there(&name(from.number), &from.text)?;
    // The number was published and tidied up long ago; or states were removed.
    if !is_first {
        outside.remove(&name(number));
        return Ok(Published::Lost);
    }
    tidy_up(outside, number, removed)?;
    Ok(Published::Yes)
}

/// Removes states that are too old beside one that was published, in the order of their numbers.
/// The one before a state stays for as long as the state may still be checked.
fn tidy_up(outside: &impl Outside, published: u64, removed: &mut u64) -> io::Result<()> {
    let Some(oldest @ 2..) = published.checked_sub(outside.limits().kept + 2) else {
        return Ok(());
    };
    // Usually one is too old. Not all have been removed if somebody was stopped or killed before.
    let is_in_order = oldest == 2
        || outside.has(Fault::TidiesOutOfOrder)
        || *removed == oldest - 1
        || !outside.exists(&name(oldest - 1))?;
    *removed = oldest;
    if is_in_order {
        remove(outside, oldest);
        return Ok(());
    }
    let numbers = numbers(outside)?.into_iter();
    numbers
        .filter(|old| (2..=oldest).contains(old))
        .for_each(|old| remove(outside, old));
    Ok(())
}

/// Removes an old state.
fn remove(outside: &impl Outside, number: u64) {
    if outside.has(Fault::RemovesTheFirst) {
        if number == 2 {
            outside.remove(&name(1));
        }
        return outside.remove(&name(number));
    }
    outside.put_over(&name(number), &name(1));
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
        let mut removed = 0;
        let chain = Kernel::in_folder(folder.path());
        let nothing = newest(&chain).expect("it is read");
        assert_eq!(nothing, Newest::default());
        assert_eq!(
            publish(&chain, &nothing, "one", &mut removed).expect("it works"),
            Published::Yes
        );
        assert_eq!(
            publish(&chain, &nothing, "other", &mut removed).expect("it works"),
            Published::TooLate
        );
        let first = newest(&chain).expect("it is read");
        assert_eq!((first.number, first.text.as_str()), (1, "one"));
        assert_eq!(
            publish(&chain, &first, "two", &mut removed).expect("it works"),
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
        let mut removed = 0;
        let chain = Kernel::in_folder(folder.path());
        let mut seen = Vec::new();
        for nth in 0..20 {
            let latest = newest(&chain).expect("it is read");
            assert_eq!(latest.number, nth);
            let published =
                publish(&chain, &latest, &nth.to_string(), &mut removed).expect("it works");
            assert_eq!(published, Published::Yes);
            seen.push(latest);
        }
        let kept = USUAL.kept as usize + 3;
        assert_eq!(files(&folder), kept);
        // The next numbers of the first are gone; number 1 never is.
        for (late, published) in seen.iter().zip([Published::TooLate, Published::Lost]) {
            let late = publish(&chain, late, "late", &mut removed).expect("it works");
            assert_eq!((late, files(&folder)), (published, kept));
        }
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
    fn old_states_go_in_order() {
        let folder = Folder::new("order");
        let chain = Kernel::in_folder(folder.path());
        let publish_one = |removed: &mut u64| {
            let latest = newest(&chain).expect("it is read");
            let text = (latest.number + 1).to_string();
            publish(&chain, &latest, &text, removed).expect("it works");
        };
        (0..12).for_each(|_| publish_one(&mut 0));
        let oldest = || numbers(&chain).expect("it is read")[1];
        assert_eq!(oldest(), 3);
        // Somebody was killed before he removed it.
        fs::write(folder.path().join(name(2)), "2").expect("it is written");
        publish_one(&mut 0);
        assert_eq!((oldest(), files(&folder)), (4, USUAL.kept as usize + 3));
        let mut removed = 3;
        publish_one(&mut removed);
        assert_eq!((oldest(), removed), (5, 4));
    }

    #[test]
    fn removed_states_are_noticed() {
        let folder = Folder::new("removed");
        let mut removed = 0;
        let chain = Kernel::in_folder(folder.path());
        let nothing = newest(&chain).expect("it is read");
        publish(&chain, &nothing, "one", &mut removed).expect("it works");
        let first = newest(&chain).expect("it is read");
        fs::remove_file(folder.path().join(name(1))).expect("it is there");
        assert_eq!(
            publish(&chain, &first, "two", &mut removed).expect("it works"),
            Published::Lost
        );
        assert_eq!(files(&folder), 0);
        fs::write(folder.path().join(name(7)), [0xff, 0xfe]).expect("it is written");
        let damaged = newest(&chain).expect("it is read");
        assert_eq!((damaged.number, damaged.text.as_str()), (7, ""));
    }
}
