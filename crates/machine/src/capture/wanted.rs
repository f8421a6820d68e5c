//! The files that a capture holds.

use std::collections::BTreeMap;

/// The paths to collect. `#` stands for any decimal number.
pub const PATTERNS: &[&str] = &[
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/offline",
    "/sys/devices/system/cpu/present",
    "/sys/devices/system/cpu/possible",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/nohz_full",
    "/sys/devices/system/cpu/smt/active",
    "/sys/devices/system/cpu/smt/control",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/intel_pstate/status",
    "/sys/devices/system/cpu/cpu#/online",
    "/sys/devices/system/cpu/cpu#/cpu_capacity",
    "/sys/devices/system/cpu/cpu#/topology/physical_package_id",
    "/sys/devices/system/cpu/cpu#/topology/die_id",
    "/sys/devices/system/cpu/cpu#/topology/cluster_id",
    "/sys/devices/system/cpu/cpu#/topology/core_id",
    "/sys/devices/system/cpu/cpu#/topology/core_cpus_list",
    "/sys/devices/system/cpu/cpu#/topology/thread_siblings_list",
    "/sys/devices/system/cpu/cpu#/topology/cluster_cpus_list",
    "/sys/devices/system/cpu/cpu#/topology/die_cpus_list",
    "/sys/devices/system/cpu/cpu#/topology/package_cpus_list",
    "/sys/devices/system/cpu/cpu#/topology/core_siblings_list",
    "/sys/devices/system/cpu/cpu#/cache/index#/level",
    "/sys/devices/system/cpu/cpu#/cache/index#/type",
    "/sys/devices/system/cpu/cpu#/cache/index#/size",
    "/sys/devices/system/cpu/cpu#/cache/index#/coherency_line_size",
    "/sys/devices/system/cpu/cpu#/cache/index#/ways_of_associativity",
    "/sys/devices/system/cpu/cpu#/cache/index#/number_of_sets",
    "/sys/devices/system/cpu/cpu#/cache/index#/shared_cpu_list",
    "/sys/devices/system/cpu/cpu#/cache/index#/id",
    "/sys/devices/system/cpu/cpu#/cpufreq/scaling_driver",
    "/sys/devices/system/cpu/cpu#/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu#/cpufreq/cpuinfo_min_freq",
    "/sys/devices/system/cpu/cpu#/cpufreq/cpuinfo_max_freq",
    "/sys/devices/system/cpu/cpu#/cpufreq/base_frequency",
    "/sys/devices/system/node/online",
    "/sys/devices/system/node/possible",
    "/sys/devices/system/node/has_cpu",
    "/sys/devices/system/node/has_memory",
    "/sys/devices/system/node/node#/cpulist",
    "/sys/devices/system/node/node#/distance",
    "/sys/devices/system/node/node#/meminfo",
    "/sys/devices/system/node/node#/access0/initiators/read_latency",
    "/sys/devices/system/node/node#/access0/initiators/write_latency",
    "/sys/devices/system/node/node#/access0/initiators/read_bandwidth",
    "/sys/devices/system/node/node#/access0/initiators/write_bandwidth",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/hypervisor/type",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/board_name",
    "/sys/class/dmi/id/bios_version",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/version",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/numa_balancing",
    "/proc/self/status",
    "/proc/self/cgroup",
    "/etc/os-release",
];

/// Files with a control group's limits: of version 2, then of version 1.
const LIMITS: &[(&str, &[&str])] = &[
    (
        "",
        &["cpu.max", "cpuset.cpus.effective", "cpuset.mems.effective"],
    ),
    ("cpu", &["cpu.cfs_quota_us", "cpu.cfs_period_us"]),
    (
        "cpuset",
        &["cpuset.effective_cpus", "cpuset.effective_mems"],
    ),
];

/// Possible roots of version 2 if version 1 has the usual place.
const ROOTS_V2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Access to files, or to something like them. An implementation need not know what is read.
pub trait Source {
    /// The text of a file, or nothing if it cannot be read. Bytes that are not UTF-8 are replaced.
    fn read(&mut self, path: &str) -> Option<String>;
    /// The names in a folder; none if there is no such folder.
    fn list(&mut self, folder: &str) -> Vec<String>;
}

/// Two functions: one reads, one lists.
impl<R, L> Source for (R, L)
where
    R: FnMut(&str) -> Option<String>,
    L: FnMut(&str) -> Vec<String>,
{
    fn read(&mut self, path: &str) -> Option<String> {
        (self.0)(path)
    }

    fn list(&mut self, folder: &str) -> Vec<String> {
        (self.1)(folder)
    }
}

pub(super) fn gather(source: &mut dyn Source) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let mut files = BTreeMap::new();
    for pattern in PATTERNS {
        let mut paths = Vec::new();
        expand(source, &mut names, "", pattern, &mut paths);
        for path in paths {
            take(source, &mut files, path);
        }
    }
    let groups = files.get("/proc/self/cgroup").cloned().unwrap_or_default();
    for path in limits(&groups) {
        take(source, &mut files, path);
    }
    files
}

fn take(source: &mut dyn Source, files: &mut BTreeMap<String, String>, path: String) {
    if let Some(text) = source.read(&path) {
        files.insert(path, text);
    }
}

/// The paths below a folder that match a pattern.
fn expand(
    source: &mut dyn Source,
    names: &mut BTreeMap<String, Vec<String>>,
    folder: &str,
    rest: &str,
    paths: &mut Vec<String>,
) {
    let Some(mark) = rest.find('#') else {
        paths.push(format!("{folder}{rest}"));
        return;
    };
    let slash = rest[..mark].rfind('/').unwrap_or(0);
    let parent = format!("{folder}{}", &rest[..slash]);
    let before = &rest[slash + 1..mark];
    let after = &rest[mark + 1..];
    let (name_end, below) = after.split_at(after.find('/').unwrap_or(after.len()));
    let listed = names
        .entry(parent.clone())
        .or_insert_with(|| source.list(&parent))
        .clone();
    for name in listed {
        let number = name
            .strip_prefix(before)
            .and_then(|n| n.strip_suffix(name_end));
        if number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
            expand(source, names, &format!("{parent}/{name}"), below, paths);
        }
    }
}

/// The files that may limit the groups in `/proc/self/cgroup`, including each group's ancestors:
/// the tightest limit counts.
pub(super) fn limits(groups: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (controller, files) in LIMITS {
        let roots: Vec<String> = match *controller {
            "" => ROOTS_V2.map(str::to_owned).to_vec(),
            name => vec![format!("/sys/fs/cgroup/{name}")],
        };
        for folder in ancestors(group_of(groups, controller)) {
            for root in &roots {
                paths.extend(files.iter().map(|file| format!("{root}{folder}/{file}")));
            }
        }
    }
    paths
}

/// The group of a controller; the empty name stands for version 2. Lines are
/// `number:controllers:path`.
fn group_of<'a>(groups: &'a str, controller: &str) -> &'a str {
    let mut lines = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?))
    });
    let found = lines.find(|(names, _)| names.split(',').any(|name| name == controller));
    found.map_or("/", |(_, path)| path)
}

/// `/a/b` gives the empty text, `/a` and `/a/b`.
fn ancestors(path: &str) -> Vec<&str> {
    let path = path.trim_end_matches('/');
    let mut all: Vec<&str> = path.match_indices('/').map(|(at, _)| &path[..at]).collect();
    all.push(path);
    all.dedup();
    all
}
