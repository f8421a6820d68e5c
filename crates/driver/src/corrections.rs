//! Deviations of this machine from its stored profile: a quick check before components are placed,
//! and the corrections that follow from it.
//!
//! A run checks only if the last check was a while ago. Its result is kept beside plans, under all
//! that it depends on: this boot of the machine, the CPUs that may be used, and the profile.

use std::fmt::Write as _;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use hearth_machine::profile::Profile;
use hearth_machine::topology::OsThread;
use hearth_model::fitted::Model;
use hearth_probe::freshness::{self, Freshness};
use hearth_sys::{Linux, affinity};
use hearth_terminal::{Failure, output};

use crate::known_machine::KnownMachine;
use crate::plans::{Planned, Plans};
use crate::profiles;

/// The variable that switches the check off.
const VARIABLE: &str = "HEARTH_PROFILE_CHECK";
/// The time for which a check counts, in seconds. A hypervisor moves processors some times an hour.
const COUNTS_S: u64 = 600;
/// The same for a check without a result, so that not each run on a busy machine waits for one.
const COUNTS_UNKNOWN_S: u64 = 60;
/// Corrections are rounded to powers of this factor, so that a later check mostly finds the same
/// ones, and with them the kept plan.
const STEP: f64 = 1.25;

/// A transfer whose time differs from the profile's.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Correction {
    cpus: [u32; 2],
    profile_ns: f64,
    now_ns: f64,
}

impl Correction {
    fn steps(&self) -> i32 {
        let ratio = self.now_ns / self.profile_ns;
        (ratio.ln() / STEP.ln()).round() as i32
    }
}

/// The corrections; empty where the profile holds, or nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Corrections(Vec<Correction>);

/// The result of a check.
struct Checked {
    corrections: Corrections,
    /// False where the CPUs were too busy to tell.
    is_known: bool,
}

/// A kept result.
#[derive(Debug, PartialEq)]
struct Kept {
    corrections: Corrections,
    /// The time until which it counts, in seconds since 1970.
    until_s: u64,
}

impl Corrections {
    /// The corrections that a check finds now.
    pub fn found(profile: &Profile) -> Corrections {
        check(profile).map_or_else(Corrections::default, |checked| checked.corrections)
    }

    /// The corrections for a run: those of the last check or, if that was a while ago, of a new
    /// one, which is reported.
    pub fn for_run(machine: &KnownMachine, plans: &Plans) -> Result<Corrections, Failure> {
        if !is_on() {
            return Ok(Corrections::default());
        }
        let Some(record) = record(machine) else {
            return Ok(Corrections::default());
        };
        let now_s = unix_s();
        let kept = plans.find(&record).and_then(|found| read(&found.lines));
        let longest_s = now_s + COUNTS_S;
        if let Some(kept) = &kept
            && (now_s..=longest_s).contains(&kept.until_s)
        {
            return Ok(kept.corrections.clone());
        }
        let Some(checked) = check(&machine.profile()?) else {
            return Ok(Corrections::default());
        };
        let (corrections, counts_s) = match checked.is_known {
            true => (checked.corrections, COUNTS_S),
            false => {
                let before = kept.map(|kept| kept.corrections).unwrap_or_default();
                (before, COUNTS_UNKNOWN_S)
            }
        };
        let until_s = now_s + counts_s;
        let lines = written(&corrections, until_s);
        plans.keep(
            &record,
            &Planned {
                lines,
                ..Planned::default()
            },
        );
        if let (true, Some(warning)) = (checked.is_known, corrections.warning()) {
            output::tell(warning);
        }
        Ok(corrections)
    }

    /// The corrections that the last check before a run found, however long ago.
    pub fn known(machine: &KnownMachine, plans: &Plans) -> Corrections {
        let record = record(machine).filter(|_| is_on());
        let found = record.and_then(|record| plans.find(&record));
        let kept = found.and_then(|found| read(&found.lines));
        kept.map(|kept| kept.corrections).unwrap_or_default()
    }

    /// A text that differs between corrections.
    pub fn identity(&self) -> String {
        let mut text = String::new();
        for correction in &self.0 {
            let [a, b] = correction.cpus;
            let _ = write!(text, "{a}-{b} by {} ", correction.steps());
        }
        text
    }

    /// Corrects a profile and the model fitted to it: each transfer stands for its relation.
    pub fn apply(&self, mut profile: Profile, fitted: Model) -> Result<(Profile, Model), Failure> {
        if self.0.is_empty() {
            return Ok((profile, fitted));
        }
        for correction in &self.0 {
            let topology = &profile.topology;
            let [a, b] = correction.cpus.map(|cpu| topology.thread_of(OsThread(cpu)));
            if let (Some(a), Some(b)) = (a, b) {
                let relation = topology.relation(a, b);
                let factor = STEP.powi(correction.steps());
                profile = profile.with_transfers_times(relation, factor);
            }
        }
        let model = fitted.with_profile(&profile);
        let model = model.map_err(|error| Failure::input(error.to_string()))?;
        Ok((profile, model))
    }

    /// A line for the user, if there are any.
    pub fn warning(&self) -> Option<String> {
        let each = self.0.iter().map(|correction| {
            let [a, b] = correction.cpus;
            format!(
                "from CPU {a} to CPU {b} a line takes {:.0} ns now and {:.0} ns in the profile",
                correction.now_ns, correction.profile_ns
            )
        });
        let each: Vec<String> = each.collect();
        if each.is_empty() {
            return None;
        }
        let profile = profiles::kept().ok();
        let profile = profile.map_or_else(String::new, |path| format!(" {}", path.display()));
        Some(format!(
            "the profile{profile} is out of date: {}; this plan takes what was measured now, and `hearth \
             probe` would measure all of it again",
            each.join(", ")
        ))
    }
}

/// True unless the user has switched the check off.
fn is_on() -> bool {
    std::env::var_os(VARIABLE).is_none_or(|value| value != "off")
}

/// Checks the machine. `None` if there is nothing to compare, or the check is off.
fn check(profile: &Profile) -> Option<Checked> {
    let pairs = freshness::expected(profile, &affinity::allowed());
    if pairs.is_empty() || !is_on() {
        return None;
    }
    let verdicts = freshness::check(&Linux, &pairs);
    let off = pairs.iter().zip(&verdicts);
    let off = off.filter_map(|(pair, verdict)| match *verdict {
        Freshness::Off { one_way_ns } => Some(Correction {
            cpus: pair.cores.map(|core| core as u32),
            profile_ns: pair.nearest_ns(one_way_ns),
            now_ns: one_way_ns,
        }),
        Freshness::Holds | Freshness::Unknown => None,
    });
    Some(Checked {
        corrections: Corrections(off.collect()),
        is_known: !verdicts.contains(&Freshness::Unknown),
    })
}

/// All that the result of a check depends on. `None` without a profile: then nothing was measured.
fn record(machine: &KnownMachine) -> Option<Vec<u8>> {
    if let KnownMachine::Parts = machine {
        return None;
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let record = format!(
        "checked\nboot {}\ncpus {:?}\nmachine {}",
        boot.trim(),
        affinity::allowed(),
        machine.identity()?
    );
    Some(record.into_bytes())
}

fn unix_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Corrections as text: the time until which they count, and a line for each.
fn written(corrections: &Corrections, until_s: u64) -> String {
    let mut text = format!("{until_s}\n");
    for one in &corrections.0 {
        let [a, b] = one.cpus;
        let _ = writeln!(text, "{a} {b} {} {}", one.profile_ns, one.now_ns);
    }
    text
}

/// Reads what [`written`] wrote.
fn read(text: &str) -> Option<Kept> {
    let mut lines = text.lines();
    let until_s = lines.next()?.parse().ok()?;
    let corrections = lines.map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let [a, b, profile_ns, now_ns] = words[..] else {
            return None;
        };
        Some(Correction {
            cpus: [a.parse().ok()?, b.parse().ok()?],
            profile_ns: profile_ns.parse().ok()?,
            now_ns: now_ns.parse().ok()?,
        })
    });
    Some(Kept {
        corrections: Corrections(corrections.collect::<Option<_>>()?),
        until_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_machine::profile::{Carrier, Exchange, Figure, PairTransfer};
    use hearth_machine::synthetic;
    use hearth_machine::topology::Thread;

    fn corrections(now_ns: f64) -> Corrections {
        Corrections(vec![Correction {
            cpus: [0, 1],
            profile_ns: 28.0,
            now_ns,
        }])
    }

    /// Two packages of two cores, with measured pairs and an exchange.
    fn profile() -> Profile {
        let mut profile = Profile::assumed(synthetic::parse("2 packages, 2 cores").unwrap());
        for (a, b, ns) in [(0, 1, 56.0), (2, 3, 60.0), (0, 2, 300.0)] {
            let figure = Figure::measured(ns, ns, ns, 100, 0);
            let pair = PairTransfer::from_round_trip(Thread(a), Thread(b), figure);
            profile.pairs.push(pair);
        }
        profile.exchanges = [1, 2]
            .map(|receiver| Exchange {
                bytes: 64,
                sender: Thread(0),
                receiver: Thread(receiver),
                carrier: Carrier::Spin,
                stream_depth: None,
                fresh_buffer: false,
                exchange_ns: Figure::measured(70.0, 70.0, 70.0, 100, 0),
            })
            .into();
        profile
    }

    #[test]
    fn what_was_kept_is_read() {
        for corrections in [Corrections::default(), corrections(127.5)] {
            let text = written(&corrections, 1_800_000_000);
            let until_s = 1_800_000_000;
            assert_eq!(
                read(&text),
                Some(Kept {
                    corrections,
                    until_s
                })
            );
        }
        for text in ["", "soon\n", "1\n0 1 28\n", "1\n0 1 28 x\n"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_nearly_the_same_is_the_same() {
        assert_eq!(corrections(123.0).identity(), corrections(127.0).identity());
        assert_ne!(corrections(123.0).identity(), corrections(60.0).identity());
        assert_ne!(corrections(123.0).identity(), corrections(9.0).identity());
        assert_eq!(Corrections::default().identity(), "");
    }

    #[test]
    fn a_relation_is_corrected_and_no_other() {
        let before = profile();
        let fitted = Model::fitted(&before).unwrap();
        let (after, model) = corrections(28.0 * STEP.powi(6))
            .apply(before.clone(), fitted.clone())
            .unwrap();
        let factor = STEP.powi(6);
        let pair = |profile: &Profile, a, b| {
            let pair = profile.pair(Thread(a), Thread(b)).unwrap();
            pair.one_way_ns.value
        };
        for (a, b, by) in [(0, 1, factor), (2, 3, factor), (0, 2, 1.0)] {
            let (then, now) = (pair(&before, a, b), pair(&after, a, b));
            assert!((now / then - by).abs() < 1e-9, "{a} {b}: {then} {now}");
        }
        // Exchanges between two cores of one package, measured as a whole, no longer hold.
        let receivers: Vec<Thread> = after.exchanges.iter().map(|one| one.receiver).collect();
        assert_eq!(receivers, [Thread(2)]);
        assert_eq!(model.tuning(), fitted.tuning());
        let none = Corrections::default()
            .apply(before.clone(), fitted)
            .unwrap();
        assert_eq!(none.0, before);
    }

    #[test]
    fn plans_follow() {
        use hearth_place::graph::{Component, Connection, Graph};
        use hearth_place::policy::Policy;
        use hearth_place::slots::Machine;
        use hearth_place::{cost, talk::Effort};
        let mut graph = Graph::new();
        let one = graph.add(Component::new("one").work_ns(400.0));
        let other = graph.add(Component::new("other").work_ns(400.0));
        graph.connect(Connection::new(one, other).messages(1.0));
        let apart = |corrections: &Corrections| {
            let profile = profile();
            let fitted = Model::fitted(&profile).unwrap();
            let (profile, model) = corrections.apply(profile, fitted).unwrap();
            let machine = Machine::new(&profile, &model, &[OsThread(0), OsThread(1)]).unwrap();
            let options = cost::CostOptions::default();
            let effort = Effort::default();
            let placed = Policy::Talk
                .place(&graph, &machine, &options, effort)
                .unwrap();
            placed.placement.slots_used() == 2
        };
        assert!(apart(&Corrections::default()));
        assert!(!apart(&corrections(28.0 * 40.0)));
    }

    #[test]
    fn the_sentence_says_what_to_do() {
        assert_eq!(Corrections::default().warning(), None);
        let said = corrections(127.0).warning().unwrap();
        let part = "from CPU 0 to CPU 1 a line takes 127 ns now and 28 ns in the profile";
        assert!(
            said.contains(part) && said.contains("`hearth probe`"),
            "{said}"
        );
    }
}
