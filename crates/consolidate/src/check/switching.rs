//! Plans of mode switches: complete, in order, and within their bounds.
//!
//! The durations come as certificates. That an old mode's busy period is at most L is confirmed by
//! one evaluation, Σ ⌈L / T⌉ · C ≤ L: a core that gets that much work is idle by then.

use super::{Check, Violation, core_name};
use crate::model::Protocol;
use crate::switch::{CoreSwitch, SwitchPlan};

impl Check<'_> {
    /// Checks the plans that are given, and that there is one for each switch with a bound.
    pub(super) fn switches(&self, plans: &[SwitchPlan], violations: &mut Vec<Violation>) {
        for plan in plans {
            if let Err(reason) = self.plan(plan) {
                violations.push(Violation::SwitchPlan {
                    from: self.mode(plan.from),
                    to: self.mode(plan.to),
                    reason,
                });
            }
        }
        for switch in &self.system.switches {
            let mut plans = plans.iter();
            let plan = plans.find(|plan| (plan.from, plan.to) == (switch.from, switch.to));
            let took = match plan {
                Some(plan) => plan.total_ns,
                None if switch.from == switch.to => Some(0),
                // Whoever gives no plans does not ask about switches.
                None => continue,
            };
            if took.is_none_or(|took| took > switch.within_ns) {
                violations.push(Violation::Switch {
                    from: self.mode(switch.from),
                    to: self.mode(switch.to),
                    took: took.map_or("longer than can be bounded".to_owned(), |ns| {
                        format!("{} µs", ns as f64 / 1e3)
                    }),
                    max_us: switch.within_ns as f64 / 1e3,
                });
            }
        }
    }

    fn plan(&self, plan: &SwitchPlan) -> Result<(), String> {
        let system = self.system;
        for (at, component) in system.components.iter().enumerate() {
            let (old, new) = (component.modes.has(plan.from), component.modes.has(plan.to));
            let wanted = [old && !new, !old && new, old && new];
            let lists = [&plan.stops, &plan.starts, &plan.goes_on];
            for (list, wanted) in lists.iter().zip(wanted) {
                let times = list.iter().filter(|other| **other == at).count();
                if times != usize::from(wanted) {
                    return Err(format!("`{}` is {times} times in a list", component.name));
                }
            }
        }
        let mut longest = Some(0);
        for core in &plan.cores {
            if let Some(delay) = core.delay_ns {
                self.certify(plan, core, delay)?;
            }
            longest = longest.zip(core.delay_ns).map(|(a, b)| a.max(b));
        }
        for component in plan.stops.iter().chain(&plan.starts) {
            let core = self.mapping.0[*component].core;
            if plan.cores.iter().all(|one| one.core != core) {
                return Err(format!("{} is left out", core_name(system, core)));
            }
        }
        let total = longest.map(|longest| longest + plan.signal_ns);
        if total != plan.total_ns {
            return Err("its duration is not that of its slowest core and the signal".to_owned());
        }
        Ok(())
    }

    /// Confirms that a core that is asked at any time is idle within `delay`.
    fn certify(&self, plan: &SwitchPlan, core: &CoreSwitch, delay: u64) -> Result<(), String> {
        let old = self.active(core.core, plan.from);
        let stops = |at: usize| !self.system.components[at].modes.has(plan.to);
        // Work released in the first `request` ns by all, and until `end` by those that go on.
        let work = |request: u128, end: u128| -> u128 {
            let loads = old.iter().map(|load| {
                let (time, period) = (u128::from(load.time_ns), u128::from(load.period_ns));
                let all = end.div_ceil(period);
                let until = (request / period + 1).min(all);
                time * if stops(load.component) { until } else { all }
            });
            loads.sum()
        };
        let is_idle = |request: u128, end: u128| work(request, end) <= end;
        let delay = u128::from(delay);
        let fault = || format!("{} may still be busy", core_name(self.system, core.core));
        match self.system.rules.protocol {
            Protocol::Idle => match is_idle(u128::MAX / 2, delay) {
                true => Ok(()),
                false => Err(fault()),
            },
            Protocol::Deferred => {
                if is_idle(u128::MAX / 2, delay) {
                    return Ok(());
                }
                // The request can only matter within a busy period; the work grows just when a
                // component that stops is released.
                let mut requests: Vec<u128> = vec![0];
                for load in old.iter().filter(|load| stops(load.component)) {
                    let period = u128::from(load.period_ns);
                    let within = u128::from(core.busy_ns.unwrap_or(0));
                    requests.extend((0..=within / period).map(|nth| nth * period));
                }
                let mut is_sound = true;
                for request in requests {
                    let mut end = request + 1;
                    while !is_idle(request, end) && end <= request + delay {
                        end = work(request, end);
                    }
                    is_sound &= end <= request + delay;
                }
                let busy = u128::from(core.busy_ns.unwrap_or(0));
                match is_sound && core.busy_ns.is_some() && is_idle(u128::MAX / 2, busy) {
                    true => Ok(()),
                    false => Err(fault()),
                }
            }
        }
    }
}
