//! Surroundings of programs on the captured machine.

use serde::{Deserialize, Serialize};

use super::wanted::limits;
use super::{Capture, Note};
use crate::topology::{OsNode, OsThread, parse_list};

const CPU: &str = "/sys/devices/system/cpu";

/// Everything that changes measurements without being a part of the machine. A field is absent if
/// no file told it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The processor's maker and model, as it names itself.
    pub processor: Option<String>,
    /// Family, model and stepping, where the processor has them.
    pub family_model_stepping: Option<[u32; 3]>,
    /// The revision of its microcode.
    pub microcode: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The operating system.
    pub system: Option<String>,
    /// The maker and product names of the whole machine.
    pub product: Option<String>,
    /// The hypervisor: its kind if known, `unknown` if only its presence is.
    pub hypervisor: Option<String>,
    /// The clock source that the kernel uses.
    pub clock_source: Option<String>,
    /// The policy that sets the processor's frequency, of the first thread.
    pub governor: Option<String>,
    /// The driver that applies it.
    pub frequency_driver: Option<String>,
    /// Whether the processor may run above its base frequency.
    pub boost: Option<bool>,
    /// Whether the kernel says that more than one thread of a core is online.
    pub smt_active: Option<bool>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// Whether the kernel migrates pages to the nodes that use them.
    pub numa_balancing: Option<bool>,
    /// The threads that the recording process was allowed to run on.
    pub allowed_threads: Option<Vec<OsThread>>,
    /// The nodes that it was allowed to take memory from.
    pub allowed_nodes: Option<Vec<OsNode>>,
    /// Threads that the kernel keeps free of other work.
    pub isolated: Vec<OsThread>,
    /// Processor time of the control group, in processors.
    pub quota_cpus: Option<f64>,
}

impl Environment {
    pub(super) fn read(capture: &Capture, notes: &mut Vec<Note>) -> Environment {
        let file = |path: &str| capture.file(path).map(str::to_owned);
        let cpu = |name: &str| file(&format!("{CPU}/{name}"));
        let status = |key: &str| value_of(capture.file("/proc/self/status")?, key);
        let info = |key: &str| value_of(capture.file("/proc/cpuinfo")?, key);
        let number = |key: &str| info(key)?.parse().ok();
        let flag = |text: Option<String>, yes: &str| text.map(|text| text == yes);
        let first_frequency = |name: &str| {
            let mut files = capture.files.iter().filter(|(path, _)| {
                path.starts_with(CPU) && path.ends_with(&format!("/cpufreq/{name}"))
            });
            files.next().map(|(_, text)| text.trim().to_owned())
        };
        if !capture.files.contains_key("/proc/self/status") {
            notes.push(Note {
                path: "/proc/self/status".into(),
                text: "missing; it is not known which threads and nodes a process may use".into(),
            });
        }
        let boost = flag(cpu("cpufreq/boost"), "1");
        Environment {
            processor: info("model name").or_else(|| info("cpu model")),
            family_model_stepping: match (number("cpu family"), number("model"), number("stepping"))
            {
                (Some(family), Some(model), Some(stepping)) => Some([family, model, stepping]),
                _ => None,
            },
            microcode: info("microcode"),
            kernel: file("/proc/sys/kernel/osrelease").or_else(|| {
                let version = capture.file("/proc/version")?;
                version.split(' ').nth(2).map(str::to_owned)
            }),
            system: capture.file("/etc/os-release").and_then(|text| {
                let mut lines = text.lines();
                let name = lines.find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
                Some(name.trim_matches('"').to_owned())
            }),
            product: product(capture),
            hypervisor: hypervisor(capture, info("flags")),
            clock_source: file("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            governor: first_frequency("scaling_governor"),
            frequency_driver: first_frequency("scaling_driver"),
            boost: boost.or_else(|| flag(cpu("intel_pstate/no_turbo"), "0")),
            smt_active: flag(cpu("smt/active"), "1"),
            huge_pages: capture
                .file("/sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())),
            numa_balancing: file("/proc/sys/kernel/numa_balancing").map(|text| text != "0"),
            allowed_threads: status("Cpus_allowed_list")
                .and_then(|list| Some(parse_list(&list).ok()?.into_iter().map(OsThread).collect())),
            allowed_nodes: status("Mems_allowed_list")
                .and_then(|list| Some(parse_list(&list).ok()?.into_iter().map(OsNode).collect())),
            isolated: cpu("isolated")
                .and_then(|list| parse_list(&list).ok())
                .unwrap_or_default()
                .into_iter()
                .map(OsThread)
                .collect(),
            quota_cpus: quota(capture),
        }
    }
}

/// The first value of a key in lines of `key: value`.
fn value_of(text: &str, key: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.trim() == key)?;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

fn product(capture: &Capture) -> Option<String> {
    let part = |name: &str| capture.file(&format!("/sys/class/dmi/id/{name}"));
    let parts: Vec<&str> = [part("sys_vendor"), part("product_name")]
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Signs of a hypervisor, the surest first.
fn hypervisor(capture: &Capture, flags: Option<String>) -> Option<String> {
    const MAKERS: &[(&str, &str)] = &[
        ("QEMU", "qemu"),
        ("VMware", "vmware"),
        ("innotek", "virtualbox"),
        ("Xen", "xen"),
        ("Amazon EC2", "kvm"),
        ("Google", "kvm"),
        ("Parallels", "parallels"),
    ];
    if let Some(kind) = capture.file("/sys/hypervisor/type") {
        return Some(kind.to_owned());
    }
    let clock = capture
        .file("/sys/devices/system/clocksource/clocksource0/available_clocksource")
        .unwrap_or_default();
    let is_guest = flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    if clock.contains("kvm-clock") {
        return Some("kvm".into());
    }
    if clock.contains("hyperv") {
        return Some("hyper-v".into());
    }
    // Some of these makers also sell bare metal, so the processor's flag must agree.
    let product = product(capture).unwrap_or_default();
    let maker = MAKERS.iter().find(|(name, _)| product.contains(name));
    match (is_guest, maker) {
        (true, Some((_, kind))) => Some((*kind).to_owned()),
        (true, None) => Some("unknown".into()),
        (false, _) => None,
    }
}

/// The tightest limit of the control group and its ancestors.
fn quota(capture: &Capture) -> Option<f64> {
    let paths = limits(capture.file("/proc/self/cgroup").unwrap_or_default());
    let quotas = paths.iter().filter_map(|path| {
        let (quota, period) = if path.ends_with("/cpu.max") {
            capture.file(path)?.split_once(' ')?
        } else {
            let folder = path.strip_suffix("cpu.cfs_quota_us")?;
            let period = capture.file(&format!("{folder}cpu.cfs_period_us"))?;
            (capture.file(path)?, period)
        };
        // `max`, and −1 in version 1, mean no limit.
        let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    });
    quotas.min_by(f64::total_cmp)
}
