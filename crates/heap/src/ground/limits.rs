//! Limits of this process's memory, as they are when it begins.

use crate::ground::environment::decimal;
use crate::ground::os;

/// Limit of private memory that may be written to, whether it is used or not (`RLIMIT_DATA`).
pub(crate) fn data_max() -> Option<usize> {
    os::limit_of(libc::RLIMIT_DATA as usize)
}

/// Limit of memory in use that the process's control groups set: the least of its group's and of
/// those above. None if there is none, or the files that tell of it cannot be read.
pub(crate) fn resident_max() -> Option<usize> {
    let mut buffer = [0; 1024];
    let groups = os::read_file(b"/proc/self/cgroup\0", &mut buffer)?;
    groups
        .split(|byte| *byte == b'\n')
        .filter_map(group_of)
        .filter_map(|(hierarchy, group)| least_above(hierarchy, group))
        .min()
}

/// Files of one version of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hierarchy {
    root: &'static [u8],
    limit: &'static [u8],
}

const UNIFIED: Hierarchy = Hierarchy {
    root: b"/sys/fs/cgroup",
    limit: b"/memory.max",
};
const SEPARATE: Hierarchy = Hierarchy {
    root: b"/sys/fs/cgroup/memory",
    limit: b"/memory.limit_in_bytes",
};

/// The process's group, from a line such as `0::/service` or `4:memory:/service`. None for groups
/// that do not limit memory.
fn group_of(line: &[u8]) -> Option<(Hierarchy, &[u8])> {
    let mut parts = line.splitn(3, |byte| *byte == b':');
    let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
    let limits_memory = || {
        controllers
            .split(|byte| *byte == b',')
            .any(|it| it == b"memory")
    };
    match controllers {
        b"" => Some((UNIFIED, group)),
        _ => limits_memory().then_some((SEPARATE, group)),
    }
}

/// The least limit of a group and of those above it.
fn least_above(hierarchy: Hierarchy, group: &[u8]) -> Option<usize> {
    let mut group = group.strip_suffix(b"/").unwrap_or(group);
    let mut least = None;
    loop {
        let limit = limit_in(&[hierarchy.root, group, hierarchy.limit, b"\0"]);
        least = limit.into_iter().chain(least).min();
        let Some(parent) = group.iter().rposition(|byte| *byte == b'/') else {
            return least;
        };
        group = &group[..parent];
    }
}

/// The number in a file, given by the parts of its path. None if it says `max`.
fn limit_in(parts: &[&[u8]]) -> Option<usize> {
    let mut path = [0; 512];
    let mut length = 0;
    for part in parts {
        path.get_mut(length..length + part.len())?
            .copy_from_slice(part);
        length += part.len();
    }
    let mut buffer = [0; 32];
    let text = os::read_file(&path[..length], &mut buffer)?;
    decimal(text.trim_ascii_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read() {
        assert_eq!(group_of(b"0::/a/b"), Some((UNIFIED, &b"/a/b"[..])));
        let separate = group_of(b"4:cpu,memory:/a");
        assert_eq!(separate, Some((SEPARATE, &b"/a"[..])));
        assert_eq!(group_of(b"4:cpuset:/a"), None);
        assert_eq!(group_of(b""), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "there is no kernel")]
    fn numbers_are_read_by_the_parts_of_a_path() {
        let max = limit_in(&[b"/proc/sys/kernel", b"/pid_max", b"\0"]);
        assert!(max.is_some_and(|max| max > 0));
        assert_eq!(limit_in(&[b"/proc/self/nothing\0"]), None);
        assert_eq!(limit_in(&[&[b'x'; 600], b"\0"]), None, "too long");
    }
}
