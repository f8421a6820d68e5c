//! Control groups of both versions: their weights, quotas and CPUs.

use crate::lists::parse_list;
use crate::system::System;

/// Weight of a thread of usual niceness, and of a usual group.
pub const USUAL_WEIGHT: f64 = 1024.0;
/// Weight of a group or thread that gets only what is idle.
pub const IDLE_WEIGHT: f64 = 3.0;

/// A controller's tree of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    name: &'static str,
    is_first_version: bool,
    /// The folder where it is mounted, and the group that this folder is.
    mount: String,
    root: String,
}

/// Limits of a group's CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Beside other groups, relative to threads of usual niceness.
    pub weight: f64,
    /// In CPUs; infinite without a quota.
    pub quota: f64,
}

impl Tree {
    /// The tree of a controller, `cpu` or `cpuset`. None if groups have no such controller, or
    /// none that the process can see.
    pub fn find(system: &dyn System, name: &'static str) -> Option<Tree> {
        Tree::all(system, name).into_iter().next()
    }

    /// The mounted trees of a controller; where the mounts are not known, the usual places.
    fn all(system: &dyn System, name: &'static str) -> Vec<Tree> {
        let tree = |is_first_version, mount: &str, root: &str| Tree {
            name,
            is_first_version,
            mount: mount.to_owned(),
            root: root.to_owned(),
        };
        let Ok(mounts) = system.read("/proc/self/mountinfo") else {
            let first = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
            let second = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
            let first = first.map(|mount| tree(true, mount, "/"));
            return first
                .into_iter()
                .chain(second.map(|mount| tree(false, mount, "/")))
                .collect();
        };
        let found = mounts.lines().filter_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let mut place = place.split(' ').skip(3);
            let (root, mount) = (place.next()?, place.next()?);
            let mut kind = kind.split(' ');
            let (kind, options) = (kind.next()?, kind.nth(1)?);
            let is_first_version = kind == "cgroup" && options.split(',').any(|one| one == name);
            let has_it = || {
                let controllers = system.read(&format!("{mount}/cgroup.controllers"));
                controllers.is_ok_and(|all| all.split_whitespace().any(|one| one == name))
            };
            let is_one = is_first_version || kind == "cgroup2" && has_it();
            is_one.then(|| tree(is_first_version, mount, root))
        });
        found.collect()
    }

    /// The tree of the second version, with whichever controllers. None if it is not mounted.
    pub fn unified(system: &dyn System) -> Option<Tree> {
        let mounts = system.read("/proc/self/mountinfo").ok()?;
        mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let mut place = place.split(' ').skip(3);
            let (root, mount) = (place.next()?, place.next()?);
            kind.starts_with("cgroup2 ").then(|| Tree {
                name: "",
                is_first_version: false,
                mount: mount.to_owned(),
                root: root.to_owned(),
            })
        })
    }

    /// The group of a process, by its file `cgroup`: a path that begins with `/`, which stands for
    /// the highest visible group.
    pub fn group(&self, cgroup: &str) -> String {
        let mut lines = cgroup.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((fields.next()?, fields.next()?))
        });
        let is_ours = |(controllers, _): &(&str, &str)| match self.is_first_version {
            true => controllers.split(',').any(|one| one == self.name),
            false => controllers.is_empty(),
        };
        let path = lines.find(is_ours).map_or("/", |(_, path)| path);
        // Where a container sees another part of the tree than its processes' paths name.
        let below = match self.root.as_str() {
            "/" => Some(path),
            root => path.strip_prefix(root),
        };
        let below = below.filter(|path| !path.starts_with("/.."));
        format!("/{}", below.unwrap_or_default().trim_matches('/'))
    }

    /// A group's file.
    pub fn path(&self, group: &str, file: &str) -> String {
        format!("{}{}/{file}", self.mount, group.trim_end_matches('/'))
    }

    fn read(&self, system: &dyn System, group: &str, file: &str) -> Option<String> {
        let text = system.read(&self.path(group, file)).ok()?;
        Some(text.trim().to_owned())
    }

    /// A group's limits; the usual ones where the files do not say.
    pub fn limits(&self, system: &dyn System, group: &str) -> Limits {
        let number = |file: &str| self.read(system, group, file)?.parse::<f64>().ok();
        let weight = match self.is_first_version {
            _ if number("cpu.idle") == Some(1.0) => IDLE_WEIGHT,
            true => number("cpu.shares").unwrap_or(USUAL_WEIGHT),
            false => {
                number("cpu.weight").map_or(USUAL_WEIGHT, |weight| weight * USUAL_WEIGHT / 100.0)
            }
        };
        let quota = match self.is_first_version {
            // −1 is none.
            true => number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us")),
            false => self.read(system, group, "cpu.max").and_then(|text| {
                let (quota, period) = text.split_once(' ')?;
                // `max` is none.
                Some((quota.parse().ok()?, period.parse().ok()?))
            }),
        };
        let quota = quota.filter(|(quota, period)| *quota > 0.0 && *period > 0.0);
        Limits {
            weight: weight.max(1.0),
            quota: quota.map_or(f64::INFINITY, |(quota, period)| quota / period),
        }
    }

    /// The name of the file with a group's quota.
    pub fn quota_file(&self, group: &str) -> String {
        match self.is_first_version {
            true => self.path(group, "cpu.cfs_quota_us"),
            false => self.path(group, "cpu.max"),
        }
    }

    /// The CPUs of a group of the controller `cpuset`, with the file that says so.
    pub fn cpus(&self, system: &dyn System, group: &str) -> Option<(Vec<usize>, String)> {
        let files = match self.is_first_version {
            true => ["cpuset.effective_cpus", "cpuset.cpus"],
            false => ["cpuset.cpus.effective", "cpuset.cpus"],
        };
        files.into_iter().find_map(|file| {
            let cpus = parse_list(&self.read(system, group, file)?);
            (!cpus.is_empty()).then(|| (cpus, self.path(group, file)))
        })
    }
}

/// The least quota of the process's group and of those around it, in CPUs. None without a limit.
pub fn quota(system: &dyn System) -> Option<f64> {
    let own = system.read("/proc/self/cgroup").unwrap_or_default();
    let trees = Tree::all(system, "cpu");
    let quotas = trees.iter().flat_map(|tree| {
        let group = tree.group(&own);
        let limits: Vec<Limits> = chain(&group).map(|one| tree.limits(system, one)).collect();
        limits.into_iter().map(|limits| limits.quota)
    });
    quotas
        .min_by(f64::total_cmp)
        .filter(|quota| quota.is_finite())
}

/// A group and those around it, the highest first.
pub fn chain(group: &str) -> impl Iterator<Item = &str> {
    let ends = group.match_indices('/').map(|(at, _)| at).skip(1);
    let parts = ends.map(|at| &group[..at]);
    let whole = (group != "/").then_some(group);
    std::iter::once("/").chain(parts).chain(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Fake;

    fn first_version() -> Fake {
        Fake::with_cores(&[0, 1, 2, 3])
            .file(
                "/proc/self/mountinfo",
                "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
                 32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                 33 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            )
            .file("/sys/fs/cgroup/unified/cgroup.controllers", "")
            .file("/sys/fs/cgroup/cpu/a/cpu.shares", "512\n")
            .file("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000\n")
            .file("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n")
            .file("/sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "-1\n")
            .file("/sys/fs/cgroup/cpu/b/cpu.cfs_period_us", "100000\n")
    }

    #[test]
    fn groups_of_the_first_version_are_read() {
        let system = first_version();
        let tree = Tree::find(&system, "cpu").expect("a tree");
        assert_eq!(Tree::find(&system, "cpuset"), None);
        let own = "3:cpuset:/x\n2:cpu,cpuacct:/a/b\n0::/y\n";
        assert_eq!(tree.group(own), "/a/b");
        let unified = Tree::unified(&system).expect("it is mounted, too");
        let group = unified.group(own);
        let path = unified.path(&group, "cgroup.freeze");
        assert_eq!(path, "/sys/fs/cgroup/unified/y/cgroup.freeze");
        let limits = |group| {
            let Limits { weight, quota } = tree.limits(&system, group);
            (weight, quota)
        };
        assert_eq!(limits("/a"), (512.0, 1.5));
        assert_eq!(limits("/b"), (1024.0, f64::INFINITY));
        assert_eq!(
            tree.quota_file("/a"),
            "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us"
        );
    }

    #[test]
    fn groups_of_the_second_version_are_read() {
        let system = Fake::with_cores(&[0])
            .file(
                "/proc/self/mountinfo",
                "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
            )
            .file("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n")
            .file("/sys/fs/cgroup/cpu.max", "200000 100000\n")
            .file("/sys/fs/cgroup/a/cpu.weight", "200\n")
            .file("/sys/fs/cgroup/a/cpu.max", "max 100000\n")
            .file("/sys/fs/cgroup/a/cpuset.cpus.effective", "0-2,5\n")
            .file("/sys/fs/cgroup/i/cpu.idle", "1\n");
        let tree = Tree::find(&system, "cpu").expect("a tree");
        assert_eq!(tree.group("0::/a\n"), "/a");
        assert_eq!(tree.group("0::/\n"), "/");
        assert_eq!(tree.group("0::/../other\n"), "/");
        assert_eq!(tree.limits(&system, "/").quota, 2.0);
        assert_eq!(tree.limits(&system, "/a").weight, 2048.0);
        assert!(tree.limits(&system, "/a").quota.is_infinite());
        assert_eq!(tree.limits(&system, "/i").weight, IDLE_WEIGHT);
        let sets = Tree::find(&system, "cpuset").expect("a tree");
        let (cpus, file) = sets.cpus(&system, "/a").expect("CPUs");
        assert_eq!(cpus, [0, 1, 2, 5]);
        assert_eq!(file, "/sys/fs/cgroup/a/cpuset.cpus.effective");
    }

    /// A container that sees its own group as the highest.
    #[test]
    fn paths_begin_where_the_mount_does() {
        let system = Fake::with_cores(&[0]).file(
            "/proc/self/mountinfo",
            "30 23 0:26 /docker/12ab /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
        );
        let tree = Tree::find(&system, "cpu").expect("a tree");
        assert_eq!(tree.group("2:cpu:/docker/12ab/inner\n"), "/inner");
        assert_eq!(tree.group("2:cpu:/docker/12ab\n"), "/");
        assert_eq!(tree.group("2:cpu:/elsewhere\n"), "/");
    }

    #[test]
    fn the_least_quota_of_the_ancestors_counts() {
        let second = Fake::with_cores(&[0])
            .file("/proc/self/cgroup", "0::/a/b\n")
            .file("/sys/fs/cgroup/a/cpu.max", "150000 100000\n")
            .file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
        assert_eq!(quota(&second), Some(1.5));
        let first = Fake::with_cores(&[0])
            .file("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,cpuacct:/x\n")
            .file("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "50000\n")
            .file("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n")
            .file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
            .file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
        assert_eq!(quota(&first), Some(0.5));
        assert_eq!(quota(&Fake::with_cores(&[0])), None);
        let mounted = first_version().file("/proc/self/cgroup", "2:cpu:/a\n");
        assert_eq!(quota(&mounted), Some(1.5));
    }

    #[test]
    fn a_chain_goes_from_the_highest_down() {
        assert_eq!(chain("/").collect::<Vec<_>>(), ["/"]);
        assert_eq!(chain("/a/b").collect::<Vec<_>>(), ["/", "/a", "/a/b"]);
    }
}
