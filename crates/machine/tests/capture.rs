//! Files to topologies, whole and torn.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write;

use fastrand::Rng;
use hearth_machine::capture::{Capture, Fact, PATTERNS, Source};
use hearth_machine::synthetic::EXAMPLES;
use hearth_machine::topology::{Cache, CacheKind, OsThread, Thread, Topology, format_list};
use support::{MACHINES, machine};

/// The files that Linux would show of a machine.
fn files(machine: &Topology) -> BTreeMap<String, String> {
    const CPU: &str = "/sys/devices/system/cpu";
    const NODE: &str = "/sys/devices/system/node";
    let os = |threads: &[Thread]| format_list(threads.iter().map(|t| machine.os_thread(*t).0));
    let all: Vec<Thread> = machine.all_threads().collect();
    let offline = machine.offline().iter().map(|os| os.0);
    let online = machine.threads().iter().map(|thread| thread.os.0);
    let mut files = BTreeMap::new();
    let mut add = |path: String, text: String| _ = files.insert(path, format!("{text}\n"));
    add(format!("{CPU}/online"), os(&all));
    add(format!("{CPU}/present"), format_list(online.chain(offline)));
    for thread in machine.threads() {
        let folder = format!("{CPU}/cpu{}", thread.os.0);
        let core = &machine.cores()[thread.core.index()];
        let package = &machine.packages()[thread.package.index()];
        add(
            format!("{folder}/topology/physical_package_id"),
            package.os.0.to_string(),
        );
        add(
            format!("{folder}/topology/core_cpus_list"),
            os(&core.threads),
        );
        let number = machine.thread_of(thread.os).unwrap();
        let caches = machine
            .caches()
            .iter()
            .filter(|c| c.threads.contains(&number));
        for (index, cache) in caches.enumerate() {
            for (name, text) in cache_files(cache, &os(&cache.threads)) {
                add(format!("{folder}/cache/index{index}/{name}"), text);
            }
        }
    }
    let nodes = machine.nodes();
    add(
        format!("{NODE}/online"),
        format_list(nodes.iter().map(|node| node.os.0)),
    );
    for (at, node) in nodes.iter().enumerate() {
        let folder = format!("{NODE}/node{}", node.os.0);
        add(format!("{folder}/cpulist"), os(&node.threads));
        if let Some(memory) = node.memory {
            let number = node.os.0;
            let text = format!("Node {number} MemTotal:  {} kB", memory.0 / 1024);
            add(format!("{folder}/meminfo"), text);
        }
        if let Some(rows) = machine.distances() {
            let row: Vec<String> = rows[at].iter().map(u32::to_string).collect();
            add(format!("{folder}/distance"), row.join(" "));
        }
    }
    files
}

fn cache_files(cache: &Cache, threads: &str) -> Vec<(&'static str, String)> {
    let kind = match cache.kind {
        CacheKind::Data => "Data",
        CacheKind::Instruction => "Instruction",
        CacheKind::Unified => "Unified",
    };
    let mut files = vec![
        ("level", cache.level.to_string()),
        ("type", kind.to_owned()),
        ("size", format!("{}K", cache.size.0 / 1024)),
        ("shared_cpu_list", threads.to_owned()),
    ];
    files.extend(
        cache
            .line
            .map(|line| ("coherency_line_size", line.to_string())),
    );
    files.extend(
        cache
            .ways
            .map(|ways| ("ways_of_associativity", ways.to_string())),
    );
    files
}

/// A source over a map.
struct Map(BTreeMap<String, String>);

impl Source for Map {
    fn read(&mut self, path: &str) -> Option<String> {
        self.0.get(path).cloned()
    }

    fn list(&mut self, folder: &str) -> Vec<String> {
        let below = self
            .0
            .keys()
            .filter_map(|path| path.strip_prefix(&format!("{folder}/")));
        let names = below.map(|rest| rest.split('/').next().unwrap_or(rest).to_owned());
        names
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect()
    }
}

#[test]
fn every_machine_is_read_back_from_its_files() {
    let ours = MACHINES.iter().map(|(name, text, _)| (*name, *text));
    for (name, text) in ours.chain(EXAMPLES.iter().copied()) {
        let machine = machine(text);
        let capture = Capture::gather(&mut Map(files(&machine)));
        assert_eq!(
            capture.files,
            files(&machine),
            "{name}: all files are wanted"
        );
        let json = capture.to_json();
        let reading = Capture::from_json(&json).unwrap().read().unwrap();
        assert_eq!(reading.topology, machine, "{name}");
        let caches =
            |claim: &&hearth_machine::capture::Claim| matches!(claim.fact, Fact::Cache { .. });
        assert_eq!(
            reading.claims.iter().filter(caches).count(),
            machine.caches().len()
        );
    }
}

#[test]
fn missing_files_are_done_without_and_noted() {
    let full = files(&machine(
        "2 packages, 2 cores, 2 threads, memory 1G, l2 1M per core",
    ));
    let without = |part: &str| {
        let mut files = full.clone();
        files.retain(|path, _| !path.contains(part));
        Capture::new(files).read().unwrap()
    };
    let noted = |reading: &hearth_machine::capture::Reading, text: &str| {
        let found = reading
            .notes
            .iter()
            .any(|note| note.to_string().contains(text));
        assert!(found, "{text}: {:?}", reading.notes);
    };
    let reading = without("/topology/core_cpus_list");
    assert_eq!(reading.topology.cores().len(), 8);
    noted(&reading, "each is taken as a core of its own");
    let reading = without("physical_package_id");
    assert_eq!(reading.topology.packages().len(), 1);
    noted(&reading, "taken as in package 0");
    let reading = without("/node/");
    assert_eq!(reading.topology.nodes().len(), 1);
    noted(&reading, "all memory is taken as one node");
    let reading = without("/cache/");
    assert!(reading.topology.caches().is_empty());
    noted(&reading, "their caches are not known");
    let reading = without("meminfo");
    assert_eq!(reading.topology.nodes()[0].memory, None);
    noted(&reading, "the node's memory is not known");
    let reading = without("node1/cpulist");
    noted(
        &reading,
        "CPUs 4-7 are in no node; they are taken as in node 0",
    );
    // cpuinfo alone will do.
    let info = "processor\t: 0\nmodel name\t: Some Processor\n\nprocessor\t: 3\n";
    let files = BTreeMap::from([("/proc/cpuinfo".to_owned(), info.to_owned())]);
    let reading = Capture::new(files).read().unwrap();
    assert_eq!(reading.topology.os_thread(Thread(1)), OsThread(3));
    assert_eq!(
        reading.environment.processor.as_deref(),
        Some("Some Processor")
    );
    let error = Capture::new(BTreeMap::new())
        .read()
        .unwrap_err()
        .to_string();
    assert!(error.contains("names no hardware thread"), "{error}");
}

#[test]
fn contradictory_files_are_left_out_and_noted() {
    let mut lying = files(&machine("3 cores, l2 1M per core, l3 8M per package"));
    let list = "/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list";
    lying.insert(list.into(), "0-1\n".into());
    let list = "/sys/devices/system/cpu/cpu2/cache/index0/shared_cpu_list";
    lying.insert(list.into(), "1-2\n".into());
    let reading = Capture::new(lying).read().unwrap();
    let left_out = reading
        .notes
        .iter()
        .filter(|note| note.text.contains("is left out"));
    assert!(left_out.count() >= 1, "{:?}", reading.notes);
    assert!(
        reading
            .topology
            .caches()
            .iter()
            .any(|cache| cache.level == 3)
    );
}

#[test]
fn the_environment_is_told() {
    let machine = machine("2 cores");
    let mut text = files(&machine);
    let mut add = |path: &str, value: &str| _ = text.insert(path.into(), format!("{value}\n"));
    add(
        "/proc/cpuinfo",
        "processor : 0\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 85\n\
         model name : Xeon\nstepping : 7\nmicrocode : 0x5003\nflags : fpu hypervisor",
    );
    add(
        "/proc/self/status",
        "Name: x\nCpus_allowed_list:\t0-1\nMems_allowed_list:\t0",
    );
    add("/proc/self/cgroup", "4:cpu,cpuacct:/a/b\n0::/c");
    add("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000");
    add("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000");
    add("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1");
    add("/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000");
    add("/sys/fs/cgroup/c/cpu.max", "max 100000");
    add(
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never",
    );
    add(
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "performance",
    );
    add("/sys/devices/system/cpu/intel_pstate/no_turbo", "1");
    add("/sys/class/dmi/id/sys_vendor", "QEMU");
    add("/etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian 12\"");
    add("/proc/sys/kernel/osrelease", "6.1.0");
    let capture = Capture::gather(&mut Map(text.clone()));
    assert_eq!(
        capture.files, text,
        "the limits of control groups are found"
    );
    let environment = capture.read().unwrap().environment;
    assert_eq!(environment.family_model_stepping, Some([6, 85, 7]));
    assert_eq!(environment.hypervisor.as_deref(), Some("qemu"));
    assert_eq!(environment.quota_cpus, Some(1.5));
    assert_eq!(environment.huge_pages.as_deref(), Some("madvise"));
    assert_eq!(environment.governor.as_deref(), Some("performance"));
    assert_eq!(environment.boost, Some(false));
    assert_eq!(environment.system.as_deref(), Some("Debian 12"));
    assert_eq!(
        environment.allowed_threads.map(|threads| threads.len()),
        Some(2)
    );
}

#[test]
fn what_identifies_a_machine_can_be_left_out() {
    let mut text = files(&machine("2 packages, 2 cores, memory 1G"));
    let mut add = |path: &str, value: &str| _ = text.insert(path.into(), value.into());
    add(
        "/proc/cpuinfo",
        "processor\t: 0\nmodel name\t: X\nSerial\t\t: 00000000deadbeef\n",
    );
    add(
        "/proc/self/status",
        "Name:\tsecret-tool\nPid:\t31337\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0\n",
    );
    add(
        "/proc/version",
        "Linux version 6.1.0 (jane@workstation) (gcc) #1 SMP\n",
    );
    add(
        "/proc/self/cgroup",
        "9:cpuset:/\n4:cpu,cpuacct:/user.slice/jane\n1:name=x:/user.slice/jane/deep\n0::/c0ffee\n",
    );
    add(
        "/sys/fs/cgroup/cpu/user.slice/jane/cpu.cfs_quota_us",
        "150000\n",
    );
    add(
        "/sys/fs/cgroup/cpu/user.slice/jane/cpu.cfs_period_us",
        "100000\n",
    );
    add("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    add("/sys/fs/cgroup/c0ffee/cpu.max", "max 100000\n");
    let capture = Capture::new(text);
    let clean = capture.without_identity();
    let json = clean.to_json();
    for secret in [
        "jane",
        "secret",
        "31337",
        "deadbeef",
        "c0ffee",
        "workstation",
        "user.slice",
    ] {
        assert!(!json.contains(secret), "{secret}");
    }
    assert_eq!(
        clean.files["/proc/self/cgroup"],
        "9:cpuset:/\n4:cpu,cpuacct:/group1/group2\n1:name=x:/group1/group2/group3\n0::/group4\n"
    );
    assert_eq!(clean.files["/sys/fs/cgroup/group4/cpu.max"], "max 100000\n");
    let (before, after) = (capture.read().unwrap(), clean.read().unwrap());
    assert_eq!(before, after);
    assert_eq!(after.environment.quota_cpus, Some(1.5));
    assert_eq!(after.environment.kernel.as_deref(), Some("6.1.0"));
    // Once is enough.
    assert_eq!(clean.without_identity(), clean);
}

#[test]
fn torn_documents_are_refused() {
    let capture = Capture::new(files(&machine("2 cores")));
    let text = capture.to_json();
    for end in (0..text.len() - 2).step_by(7) {
        assert!(Capture::from_json(&text[..end]).is_err());
    }
    let later = text.replacen("\"hearth_capture\": 1", "\"hearth_capture\": 9", 1);
    let error = Capture::from_json(&later).unwrap_err().to_string();
    assert!(error.contains("use a newer Hearth"), "{error}");
    let more = text.replacen('{', "{\"more\": true,", 1);
    assert_eq!(Capture::from_json(&more).unwrap(), capture);
}

#[test]
fn whatever_the_files_say_nothing_panics() {
    let full = files(&machine(
        "2 packages, 2 cores, 2 threads, memory 1G, l2 1M per core, distances 10 20/20 10",
    ));
    let mut rng = Rng::with_seed(9);
    for _ in 0..400 {
        let mut torn = full.clone();
        for text in torn.values_mut() {
            match rng.u32(..12) {
                0 => *text = String::new(),
                1 => *text = "-1".into(),
                2 => *text = format!("{}-{}", rng.u32(..4), rng.u32(..9)),
                3 => _ = write!(text, ",{}", rng.u32(..9)),
                _ => {}
            }
        }
        _ = Capture::new(torn).read();
    }
    assert!(PATTERNS.iter().all(|pattern| pattern.starts_with('/')));
}
