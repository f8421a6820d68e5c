//! This machine as it describes itself.

use std::collections::BTreeMap;

use hearth_machine::capture::{Capture, Reading, Source};
use hearth_machine::topology::Topology;
use hearth_sys::{Linux, System};

use crate::failure::Failure;

/// The system's files, for those who want to read them without touching the system.
struct Files;

impl Source for Files {
    fn read(&mut self, path: &str) -> Option<String> {
        Linux.read(path).ok()
    }

    fn list(&mut self, folder: &str) -> Vec<String> {
        Linux.list(folder).unwrap_or_default()
    }
}

/// All files that tell of the machine.
pub(crate) fn capture() -> Capture {
    Capture::gather(&mut Files)
}

/// What they say.
pub(crate) fn reading() -> Result<Reading, Failure> {
    capture().read().map_err(|error| {
        Failure::environment(format!("cannot tell what this machine is made of: {error}"))
    })
}

/// The same capture without what names the machine, its owner or a program's place: process
/// names, control groups, the host on which the kernel was built, serial numbers.
pub(crate) fn without_names(capture: Capture) -> Capture {
    let groups = capture.files.get("/proc/self/cgroup").cloned();
    let groups: Vec<String> = groups
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.splitn(3, ':').nth(2))
        .map(|group| group.trim_end_matches('/').to_owned())
        .filter(|group| !group.is_empty())
        .collect();
    let files: BTreeMap<String, String> = capture
        .files
        .into_iter()
        .map(|(path, text)| {
            let text = match path.as_str() {
                "/proc/self/status" => kept_lines(&text, |key| {
                    key.starts_with("Cpus_allowed") || key.starts_with("Mems_allowed")
                }),
                "/proc/cpuinfo" => kept_lines(&text, |key| key != "Serial"),
                "/proc/version" => text.split(" (").next().unwrap_or_default().to_owned() + "\n",
                "/proc/self/cgroup" => {
                    let lines = text.lines().map(|line| nameless(line, &groups) + "\n");
                    lines.collect()
                }
                _ => text,
            };
            (nameless(&path, &groups), text)
        })
        .collect();
    Capture { files, ..capture }
}

/// The lines of `key: value` whose key may stay, and those of another form.
fn kept_lines(text: &str, keep: impl Fn(&str) -> bool) -> String {
    let kept = text.lines().filter(|line| {
        let key = line.split_once(':').map(|(key, _)| key.trim());
        key.is_none_or(&keep)
    });
    kept.map(|line| format!("{line}\n")).collect()
}

/// The text with each folder of a control group called `group`, so that the depth stays.
fn nameless(text: &str, groups: &[String]) -> String {
    let anonymous = |group: &str| {
        let parts = group.split('/').skip(1).map(|_| "/group");
        parts.collect::<String>()
    };
    for group in groups {
        // Limits are read of every folder above, too.
        let mut ends: Vec<usize> = group.match_indices('/').map(|(at, _)| at).skip(1).collect();
        ends.push(group.len());
        for &end in ends.iter().rev() {
            let folder = &group[..end];
            if text.contains(&format!("{folder}/")) || text.ends_with(folder) {
                return text.replacen(folder, &anonymous(folder), 1);
            }
        }
    }
    text.to_owned()
}

/// How another machine differs from this one, if it does.
pub(crate) fn difference(
    profile: &hearth_machine::profile::Profile,
    here: &Reading,
) -> Option<String> {
    let model = &here.environment.processor;
    if let (Some(there), Some(here)) = (&profile.host.cpu_model, model)
        && there != here
    {
        return Some(format!("{there} there, {here} here"));
    }
    let (there, here) = (&profile.topology, &here.topology);
    let counts = |machine: &Topology| {
        [
            (machine.packages().len(), "package"),
            (machine.nodes().len(), "node"),
            (machine.cores().len(), "core"),
            (machine.threads().len(), "hardware thread"),
        ]
    };
    for ((there, what), (here, _)) in counts(there).into_iter().zip(counts(here)) {
        if there != here {
            return Some(format!("{} there, {here} here", count(there, what)));
        }
    }
    (there.threads() != here.threads()).then(|| "its CPUs are numbered otherwise".to_owned())
}

/// A number and what it counts, as people say it.
pub(crate) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_lose_their_names() {
        let files = [
            (
                "/proc/self/status",
                "Name:\tsecret\nUid:\t7\nCpus_allowed_list:\t0-1\n",
            ),
            ("/proc/self/cgroup", "0::/user.slice/secret.scope\n"),
            (
                "/sys/fs/cgroup/user.slice/secret.scope/cpu.max",
                "max 100000\n",
            ),
            ("/sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n"),
            ("/sys/fs/cgroup/cpu.max", "max 100000\n"),
            (
                "/proc/cpuinfo",
                "processor\t: 0\nSerial\t\t: 00secret\nmodel name\t: X\n",
            ),
            (
                "/proc/version",
                "Linux version 6.1.0 (secret@host) (gcc 12) #1\n",
            ),
            ("/sys/devices/system/cpu/online", "0-1\n"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let before = Capture::new(BTreeMap::from(files));
        let quota = before.read().unwrap().environment.quota_cpus;
        let after = without_names(before);
        let text = after.to_json();
        assert!(!text.contains("secret"), "{text}");
        assert!(!text.contains("user.slice"), "{text}");
        let read = after.read().unwrap();
        assert_eq!(read.environment.quota_cpus, quota);
        assert_eq!(quota, Some(0.5));
        assert_eq!(read.topology.threads().len(), 2);
    }
}
