//! A member's own file in the registry: what it has, and what it is about to take. Only its process
//! writes it. If states are lost, the registry is rebuilt from these.

use std::collections::BTreeMap;
use std::io;

use crate::constraints::Core;
use crate::outside::{Fault, Outside};
use crate::state::{ProcessId, checked, list, read_list, unchecked};

const FIRST_LINE: &str = "hearth-claim-member 1";
/// End of a member's file name.
const MEMBER: &str = ".member";

/// Content of a member's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Cores that it has for sure.
    pub(crate) cores: Vec<Core>,
    /// Cores that it has as well, if the state that it was about to publish was.
    pub(crate) wants: Vec<Core>,
}

impl Held {
    /// Whether the member has a core, or may have it.
    pub(crate) fn names(&self, core: Core) -> bool {
        self.cores.contains(&core) || self.wants.contains(&core)
    }

    fn text(&self) -> String {
        let (cores, wants) = (list(&self.cores), list(&self.wants));
        checked(format!("{FIRST_LINE}\ncores {cores}\nwants {wants}\n"))
    }

    fn of(text: &str) -> Option<Held> {
        let text = format!("{}\n", text.trim_end_matches('\n'));
        let mut lines = unchecked(&text)?.lines();
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let mut value = |key: &str| read_list(lines.next()?.strip_prefix(key)?.trim());
        Some(Held {
            cores: value("cores")?,
            wants: value("wants")?,
        })
    }
}

/// The calling process's file.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    name: String,
    /// Length of the longest text so far, bytes. A shorter one is followed by empty lines: a file
    /// that is written over and then shortened would be damaged in between, and its process may
    /// be stopped there.
    length: usize,
}

/// The file of a process.
pub(crate) fn name(process: ProcessId) -> String {
    format!("{}-{}{MEMBER}", process.number, process.began)
}

/// The process of a member's file.
pub(crate) fn process_of(name: &str) -> Option<ProcessId> {
    let (number, began) = name.strip_suffix(MEMBER)?.split_once('-')?;
    Some(ProcessId {
        number: number.parse().ok()?,
        began: began.parse().ok()?,
    })
}

impl Member {
    /// Makes the file, in place of that of the image that this process had before.
    pub(crate) fn join(outside: &mut impl Outside, process: ProcessId) -> io::Result<Member> {
        let mut member = Member {
            name: name(process),
            length: 0,
        };
        if outside.has(Fault::BeginsEmpty) {
            outside.make_own(&member.name, "")?;
        }
        member.write(outside, &Held::default())?;
        Ok(member)
    }

    /// Goes on with the file of a process that leaves it to this one, and with what that has. None
    /// if there is no such file.
    pub(crate) fn take_over(
        outside: &impl Outside,
        process: ProcessId,
    ) -> io::Result<Option<(Member, Held)>> {
        let name = name(process);
        let text = outside.read(&name)?.unwrap_or_default();
        let length = text.len();
        Ok(Held::of(&text).map(|held| (Member { name, length }, held)))
    }

    /// Writes what the member has.
    pub(crate) fn write(&mut self, outside: &mut impl Outside, held: &Held) -> io::Result<()> {
        let mut text = held.text();
        if !outside.has_own() {
            self.length = text.len();
            return outside.make_own(&self.name, &text);
        }
        if !outside.has(Fault::LeavesRests) {
            while text.len() < self.length {
                text.push('\n');
            }
        }
        self.length = text.len();
        outside.write_own(&text)
    }

    /// Removes the file, if it is still the one that this member wrote.
    pub(crate) fn leave(&self, outside: &impl Outside) {
        if outside.has_own() {
            outside.remove(&self.name);
        }
    }
}

/// Members, with what they have.
pub(crate) type Members = BTreeMap<ProcessId, Option<Held>>;

/// Members but one that have a file in the folder; nothing of one that is being written.
pub(crate) fn others<O: Outside>(outside: &O, own: ProcessId) -> io::Result<Members> {
    listed(outside, Some(own))
}

/// The same with that one.
pub(crate) fn all_listed<O: Outside>(outside: &O) -> io::Result<Members> {
    listed(outside, None)
}

fn listed<O: Outside>(outside: &O, except: Option<ProcessId>) -> io::Result<Members> {
    let mut members = BTreeMap::new();
    for name in outside.names(MEMBER)? {
        if let Some(process) = process_of(&name).filter(|process| Some(*process) != except) {
            let text = outside.read(&name).ok().flatten();
            members.insert(process, text.as_deref().and_then(Held::of));
        }
    }
    Ok(members)
}

/// All members, also those whose files somebody removed: they have them open, and are found by
/// that.
pub(crate) fn all<O: Outside>(outside: &O) -> io::Result<Members> {
    let mut members = all_listed(outside)?;
    for (name, text) in outside.removed() {
        if let Some(process) = process_of(&name) {
            members.entry(process).or_insert_with(|| Held::of(&text));
        }
    }
    Ok(members)
}

/// Removes the file of a process that has ended.
pub(crate) fn bury(outside: &impl Outside, process: ProcessId) {
    outside.remove(&name(process));
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kernel::Kernel;
    use crate::testing::Folder;

    #[test]
    fn a_member_tells_what_it_has() {
        let folder = Folder::new("member");
        let place = folder.path().canonicalize().expect("it is there");
        let mut outside = Kernel::in_folder(&place);
        let process = ProcessId {
            number: 7,
            began: 99,
        };
        let mut member = Member::join(&mut outside, process).expect("a file");
        let held = Held {
            cores: vec![Core(1), Core(2)],
            wants: vec![Core(9)],
        };
        member.write(&mut outside, &held).expect("it is written");
        let read = |outside: &Kernel| -> Vec<_> {
            let members = all(outside).expect("a folder");
            members.into_iter().collect()
        };
        assert_eq!(read(&outside), [(process, Some(held.clone()))]);
        let less = Held::default();
        member.write(&mut outside, &less).expect("it is written");
        assert_eq!(read(&outside), [(process, Some(less))]);
        // Somebody tidies up. The process of that number does not have it open; another does.
        bury(&outside, process);
        assert_eq!(read(&outside), []);
        let mut other = Kernel::in_folder(&place);
        let own = other.own().expect("it is here");
        let mut mine = Member::join(&mut other, own).expect("a file");
        mine.write(&mut other, &held).expect("it is written");
        bury(&other, own);
        assert_eq!(read(&outside), [(own, Some(held.clone()))]);
        drop(other);
        assert_eq!(read(&outside), []);
        member
            .write(&mut outside, &held)
            .expect("it is written again");
        assert_eq!(read(&outside), [(process, Some(held))]);
        fs::write(place.join("7-99.member"), "nonsense").expect("it is damaged");
        assert_eq!(read(&outside), [(process, None)]);
        member.leave(&outside);
        assert_eq!(read(&outside), []);
    }

    #[test]
    fn a_shorter_text_needs_no_second_step() {
        let long = Held {
            cores: (0..9).map(Core).collect(),
            wants: Vec::new(),
        };
        for text in [long.text(), format!("{}\n\n", long.text())] {
            assert_eq!(Held::of(&text), Some(long.clone()));
        }
        assert_eq!(Held::of(""), None);
        let short = Held::default().text();
        let rest = &long.text()[short.len()..];
        assert_eq!(Held::of(&format!("{short}{rest}")), None);
    }
}
