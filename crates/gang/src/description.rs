//! Descriptions of sets, as the registry keeps them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hearth_sys::procfs::parse_list;

use crate::plan::SetId;

/// First line of a set's file.
const HEAD: &str = "hearth gang 1";

/// Mechanism that holds a set's members while others have their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackEnd {
    /// Members wait at a gate in shared memory, where they come by.
    Gate,
    /// A control group of the second version is frozen.
    Freezer,
    /// Processes are sent SIGSTOP and SIGCONT.
    Stop,
}

impl BackEnd {
    /// All, those first that are chosen first for programs that do not know of gates.
    pub const ALL: [BackEnd; 3] = [BackEnd::Stop, BackEnd::Freezer, BackEnd::Gate];

    /// Its name in options and documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BackEnd::Gate => "gate",
            BackEnd::Freezer => "freezer",
            BackEnd::Stop => "stop",
        }
    }

    fn parse(name: &str) -> Option<BackEnd> {
        BackEnd::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// Description of a set, fixed when it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The set.
    pub id: SetId,
    /// Its name.
    pub name: String,
    /// Number of cores.
    pub cores: u32,
    /// Whether cores that it does not use serve others.
    pub fills: bool,
    /// The set around it.
    pub within: Option<SetId>,
    /// Mechanism that holds its members.
    pub back_end: BackEnd,
    /// Length of a turn that it wishes for.
    pub slice: Duration,
    /// CPUs that its members may use.
    pub cpus: Vec<usize>,
    /// The control group of its members, for the freezer.
    pub group: Option<PathBuf>,
    /// Whether its members are the threads of its process, instead of the process's descendants.
    pub is_inside: bool,
}

impl Description {
    pub(crate) fn text(&self) -> String {
        let list: Vec<String> = self.cpus.iter().map(usize::to_string).collect();
        let within = self
            .within
            .map_or("-".into(), |id| format!("{}-{}", id.process, id.nth));
        let group = self.group.as_ref();
        let group = group.map_or("-".into(), |path| path.display().to_string());
        // The name comes last: it may hold anything but a line's end.
        format!(
            "{HEAD}\nset {}-{}\ncores {}\nfills {}\nwithin {within}\nback_end {}\nslice_us {}\n\
             cpus {}\ngroup {group}\ninside {}\nname {}\n",
            self.id.process,
            self.id.nth,
            self.cores,
            self.fills,
            self.back_end.name(),
            self.slice.as_micros(),
            list.join(","),
            self.is_inside,
            self.name.replace('\n', " "),
        )
    }

    pub(crate) fn parse(text: &str) -> Option<Description> {
        let mut lines = text.lines();
        if lines.next()? != HEAD {
            return None;
        }
        let found: BTreeMap<&str, &str> = lines.filter_map(|line| line.split_once(' ')).collect();
        let at = |key: &str| found.get(key).copied();
        Some(Description {
            id: parse_id(at("set")?)?,
            name: at("name")?.to_owned(),
            cores: at("cores")?.parse().ok()?,
            fills: at("fills")?.parse().ok()?,
            within: parse_id(at("within")?),
            back_end: BackEnd::parse(at("back_end")?)?,
            slice: Duration::from_micros(at("slice_us")?.parse().ok()?),
            cpus: parse_list(at("cpus")?),
            group: at("group").filter(|path| *path != "-").map(PathBuf::from),
            is_inside: at("inside")?.parse().ok()?,
        })
    }
}

/// A set's number as its files' names have it.
pub(crate) fn parse_id(text: &str) -> Option<SetId> {
    let (process, nth) = text.split_once('-')?;
    Some(SetId {
        process: process.parse().ok()?,
        nth: nth.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read_back() {
        let description = Description {
            id: SetId { process: 7, nth: 1 },
            name: "a name of several words".to_owned(),
            cores: 3,
            fills: false,
            within: Some(SetId { process: 5, nth: 0 }),
            back_end: BackEnd::Freezer,
            slice: Duration::from_millis(20),
            cpus: vec![0, 1, 5],
            group: Some("/sys/fs/cgroup/a b".into()),
            is_inside: false,
        };
        assert_eq!(
            Description::parse(&description.text()),
            Some(description.clone())
        );
        let alone = Description {
            within: None,
            group: None,
            ..description
        };
        assert_eq!(Description::parse(&alone.text()), Some(alone));
        for wrong in ["", "hearth gang 2\n", "hearth gang 1\nset 7-x\n"] {
            assert_eq!(Description::parse(wrong), None, "{wrong}");
        }
    }
}
