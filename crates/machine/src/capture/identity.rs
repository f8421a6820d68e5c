//! Removal of everything that identifies one machine or person from a capture.

use std::collections::BTreeMap;

use super::Capture;

/// Folders of control groups, the longest first: a group's folder follows.
const GROUP_ROOTS: [&str; 4] = [
    "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/cpuset",
    "/sys/fs/cgroup/cpu",
    "/sys/fs/cgroup",
];

impl Capture {
    /// The same capture without anything that tells one machine or its users from others of its
    /// kind:
    ///
    /// - `/proc/self/status` keeps only the lists of allowed threads and nodes;
    /// - `/proc/version` keeps the kernel's release, not its builder or place;
    /// - `/proc/cpuinfo` loses serial numbers;
    /// - control groups, often named after users, services or containers, are numbered.
    ///
    /// [`Capture::read`] gives the same result, except for paths in claims and notes. No file of
    /// [`PATTERNS`](super::PATTERNS) holds the host's name or addresses. Remarks are kept.
    #[must_use]
    pub fn without_identity(&self) -> Capture {
        let groups = self.files.get("/proc/self/cgroup");
        let groups = numbered_groups(groups.map_or("", String::as_str));
        let files = self.files.iter().map(|(path, text)| {
            let lines = |keep: fn(&str) -> bool| -> String {
                text.split_inclusive('\n')
                    .filter(|line| keep(line))
                    .collect()
            };
            let text = match path.as_str() {
                "/proc/self/status" => lines(|line| line.contains("_allowed_list:")),
                "/proc/cpuinfo" => lines(|line| !line.to_lowercase().starts_with("serial")),
                "/proc/version" => text.split(' ').take(3).collect::<Vec<_>>().join(" "),
                "/proc/self/cgroup" => renamed_list(text, &groups),
                _ => text.clone(),
            };
            (renamed_path(path, &groups), text)
        });
        Capture {
            files: files.collect(),
            ..self.clone()
        }
    }
}

/// A new name for each control group in `/proc/self/cgroup` and its ancestors. Folder names are
/// numbered in the order in which they appear; the same name gets the same number.
fn numbered_groups(list: &str) -> BTreeMap<String, String> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut groups = BTreeMap::from([(String::new(), String::new())]);
    for path in list.lines().filter_map(|line| line.splitn(3, ':').nth(2)) {
        let (mut old, mut new) = (String::new(), String::new());
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let next = numbers.len() + 1;
            let number = numbers.entry(name).or_insert(next);
            old = format!("{old}/{name}");
            new = format!("{new}/group{number}");
            groups.insert(old.clone(), new.clone());
        }
    }
    groups
}

fn renamed_list(list: &str, groups: &BTreeMap<String, String>) -> String {
    let line = |line: &str| -> Option<String> {
        let mut parts = line.trim_end_matches('\n').splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let new = groups.get(path.trim_end_matches('/'))?;
        let new = if new.is_empty() { "/" } else { new };
        Some(format!("{number}:{controllers}:{new}\n"))
    };
    // A line that cannot be parsed could name anything.
    list.split_inclusive('\n').filter_map(line).collect()
}

fn renamed_path(path: &str, groups: &BTreeMap<String, String>) -> String {
    let renamed = GROUP_ROOTS.iter().find_map(|root| {
        let (folder, file) = path.strip_prefix(root)?.rsplit_once('/')?;
        Some(format!("{root}{}/{file}", groups.get(folder)?))
    });
    renamed.unwrap_or_else(|| path.to_owned())
}
