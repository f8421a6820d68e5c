//! Reasons for which CPUs cannot be had.

use std::collections::BTreeMap;

use hearth_machine::topology::format_list;
use hearth_sys::control_groups::chain;
use hearth_text::counted;
use serde::Serialize;

use crate::situation::Situation;

/// CPU time that does not count, in CPUs.
const NOTHING: f64 = 0.005;
/// Programs named as others.
const NAMED: usize = 3;

/// Kind of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The kernel keeps the CPU free of work that does not ask for it.
    Isolated,
    /// The control group has other CPUs.
    Cpuset,
    /// The process was started with other CPUs, or chose them.
    Affinity,
    /// The hypervisor runs other guests.
    Hypervisor,
    /// A control group has a quota.
    Quota,
    /// Other control groups weigh more.
    Weight,
    /// Other programs use them.
    Others,
}

/// A part of the machine that the program cannot have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Missing {
    /// The kind of reason.
    pub reason: Reason,
    /// The part, in CPUs.
    pub cpus: f64,
    /// The reason, in words.
    pub text: String,
}

/// All reasons, from the machine's CPUs to those that the program gets.
pub(crate) fn of(situation: &Situation) -> Vec<Missing> {
    let mut all = Vec::new();
    let mut add = |reason: Reason, cpus: f64, text: String| {
        if cpus >= NOTHING {
            all.push(Missing { reason, cpus, text });
        }
    };
    let list = |cpus: &[usize]| format_list(cpus.iter().map(|cpu| *cpu as u32));
    let (_, outside) = split(&situation.online, &situation.allowed);
    let (isolated, outside) = split(&outside, &situation.isolated);
    let text = format!("CPUs {} are isolated", list(&isolated));
    add(Reason::Isolated, isolated.len() as f64, text);
    let by_affinity = match &situation.set {
        Some((set, file)) => {
            let (by_affinity, by_set) = split(&outside, set);
            let text = format!("CPUs {} are not in {file}", list(&by_set));
            add(Reason::Cpuset, by_set.len() as f64, text);
            by_affinity
        }
        None => outside,
    };
    let text = format!(
        "CPUs {} are not in the process's affinity (taskset -p)",
        list(&by_affinity)
    );
    add(Reason::Affinity, by_affinity.len() as f64, text);
    let capacity = situation.capacity();
    let stolen = situation.allowed.len() as f64 - capacity;
    let text = "the hypervisor gives this time to other guests (steal)".to_owned();
    add(Reason::Hypervisor, stolen, text);
    let quota = situation.quota();
    let after_quota = capacity.min(quota);
    add(
        Reason::Quota,
        capacity - after_quota,
        quota_text(situation, quota),
    );
    let threads = situation.allowed.len().max(1);
    let (own, equal) = (
        situation.share(threads).own,
        situation.share_of_equals(threads).own,
    );
    let by_weight = (equal - own).max(0.0);
    add(Reason::Weight, by_weight, weight_text(situation));
    add(
        Reason::Others,
        after_quota - own - by_weight,
        others_text(situation),
    );
    all
}

/// Members of a list that are in another one, and those that are not.
fn split(cpus: &[usize], others: &[usize]) -> (Vec<usize>, Vec<usize>) {
    cpus.iter().partition(|cpu| others.contains(cpu))
}

fn quota_text(situation: &Situation, quota: f64) -> String {
    let is_least = |group: &&str| {
        let limits = situation.limits.get(*group);
        limits.is_some_and(|limits| limits.quota == quota)
    };
    let file = chain(&situation.group)
        .find(is_least)
        .zip(situation.tree.as_ref())
        .map(|(group, tree)| tree.quota_file(group));
    format!(
        "a control group has a quota of {quota:.2} CPUs ({})",
        file.unwrap_or_default()
    )
}

fn weight_text(situation: &Situation) -> String {
    format!(
        "other control groups weigh more than {}",
        match situation.group.as_str() {
            "/" => "the program's session",
            group => group,
        }
    )
}

fn others_text(situation: &Situation) -> String {
    let mut programs: BTreeMap<u32, (&str, f64)> = BTreeMap::new();
    for one in &situation.busy {
        let program = programs.entry(one.process).or_insert((&one.name, 0.0));
        program.1 += one.demand;
    }
    let mut programs: Vec<(u32, (&str, f64))> = programs.into_iter().collect();
    programs.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    let more = programs.len().saturating_sub(NAMED);
    let mut named: Vec<String> = programs
        .iter()
        .take(NAMED)
        .map(|(process, (name, cpus))| format!("{name} ({process}) {cpus:.2}"))
        .collect();
    if more > 0 {
        named.push(format!("{} more", counted(more, "program")));
    }
    if situation.unseen > 0.0 {
        named.push(format!(
            "programs that have ended or cannot be seen {:.2}",
            situation.unseen
        ));
    }
    format!("other programs want CPUs: {}", named.join(", "))
}
