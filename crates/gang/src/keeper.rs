//! Keepers: each command's set has a child process that lets the set's members go should the set's
//! process be killed.
//!
//! The keeper looks for nothing when that happens: it was handed all it needs before anybody could
//! hold a member. Its input has the set's description and ends with the set's process; its output
//! is the file of the set's words. So it works without the registry, too, when that is removed at
//! the same moment. An ordinary end is told by one more line, after which it has nothing to do.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use hearth_sys::signal;

use crate::description::Description;
use crate::error::GangError;
use crate::mend;
use crate::registry::Registry;
use crate::set::LOOK_EVERY;
use crate::table::{BYTES, Table};

/// The line that says that the set has ended in order.
const ENDED: &str = "ended\n";
/// Number of times that a keeper lets members go. A conductor that has not seen the end of the set
/// may hold them once more: it sees the end at its next turn.
const LOOKS: u32 = 10;
/// Signals by which a user ends, stops or tells a command something. The set's process passes them
/// on, and its keeper outlives them.
pub(crate) const OF_USERS: [i32; 7] = [
    signal::INTERRUPT,
    signal::TERMINATE,
    signal::HANG_UP,
    signal::QUIT,
    signal::USER_1,
    signal::USER_2,
    signal::SUSPEND,
];

/// A keeper as the set's process has it.
#[derive(Debug)]
pub(crate) struct Keeper(Child);

impl Keeper {
    /// Starts a keeper of a set. None if that is refused: the set then has none.
    pub(crate) fn start(
        mut command: Command,
        description: &Description,
        words: &File,
    ) -> Option<Keeper> {
        // A group of its own: keys at the terminal are not for it.
        command.process_group(0).stdin(Stdio::piped());
        command.stdout(words.try_clone().ok()?);
        command.stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        // Less than a pipe takes, so that this never waits. What is refused has ended already.
        let input = child.stdin.as_mut();
        let _ = input.map(|input| input.write_all(description.text().as_bytes()));
        Some(Keeper(child))
    }

    pub(crate) fn number(&self) -> u32 {
        self.0.id()
    }

    /// Ends it, as there is nobody left to be let go.
    pub(crate) fn end(mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            let _ = input.write_all(ENDED.as_bytes());
        }
        let _ = self.0.wait();
    }
}

/// Waits until the input ends, which the set's process holds open as long as it lives, and then
/// lets the members of the set go that the input describes and whose words are in the file; and
/// those of all sets, unless somebody divides the time again.
///
/// # Errors
/// The registry cannot be used.
pub fn keep(folder: &Path, mut input: impl Read, words: impl AsFd) -> Result<(), GangError> {
    for one in OF_USERS {
        signal::ignore(one);
    }
    let mut text = String::new();
    // Cut short or not, the input has ended.
    let _ = input.read_to_string(&mut text);
    if text.ends_with(ENDED) {
        return Ok(());
    }
    let set = handed_over(&text, words);
    if let Some((description, table)) = &set {
        mend::end(description, table);
    }
    let registry = Registry::in_folder(folder);
    let freed = free_all(&registry);
    if let Some((description, table)) = &set {
        for _ in 1..LOOKS {
            thread::sleep(LOOK_EVERY);
            mend::end(description, table);
        }
    }
    freed
}

/// The set that a keeper was handed.
fn handed_over(text: &str, words: impl AsFd) -> Option<(Description, Table)> {
    let description = Description::parse(text)?;
    let file = File::from(words.as_fd().try_clone_to_owned().ok()?);
    let is_whole = file.metadata().is_ok_and(|data| data.len() == BYTES);
    let table = is_whole.then(|| Table::of(&file).ok()).flatten()?;
    Some((description, table))
}

fn free_all(registry: &Registry) -> Result<(), GangError> {
    if let Some(_baton) = registry.take_baton()? {
        registry.release_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::description::BackEnd;
    use crate::plan::SetId;
    use crate::table::Held;

    /// The registry, the set's process and everybody who knew its group are gone.
    #[test]
    fn a_frozen_group_is_thawed_without_a_registry() {
        let name = format!("hearth-keeper-{}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let group = home.join("hearth-gang-7-0");
        fs::create_dir_all(&group).expect("it is new");
        fs::write(group.join("cgroup.freeze"), "1").expect("a file");
        let file = hearth_sys::shared::memory_file("a test", BYTES).expect("there is memory");
        let table = Table::of(&file).expect("it can be mapped");
        table.set_held(Held::Frozen);
        let description = Description {
            id: SetId { process: 7, nth: 0 },
            name: "frozen".to_owned(),
            cores: 1,
            fills: true,
            within: None,
            back_end: BackEnd::Freezer,
            slice: Duration::from_millis(20),
            cpus: vec![0],
            group: Some(group.clone()),
            is_inside: false,
        };
        let (found, words) = handed_over(&description.text(), &file).expect("a set");
        assert_eq!(found, description);
        mend::end(&found, &words);
        let state = fs::read_to_string(group.join("cgroup.freeze")).expect("the file");
        assert_eq!(state, "0");
        assert_eq!(table.held(), Held::No);
        assert!(free_all(&Registry::in_folder(&home.join("registry"))).is_err());
        fs::remove_dir_all(&home).expect("it is ours");
        // A terminal, or whatever else is in the words' place.
        let other = hearth_sys::shared::memory_file("a test", 8).expect("there is memory");
        assert!(handed_over(&description.text(), &other).is_none());
        assert!(handed_over("", &file).is_none());
    }

    #[test]
    fn an_ordinary_end_leaves_nothing_to_do() {
        let text = format!("hearth gang 1\n{ENDED}");
        assert!(text.ends_with(ENDED) && handed_over(&text, std::io::stderr()).is_none());
    }
}
