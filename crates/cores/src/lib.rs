//! CPUs that a program can really have, and why it cannot have the others.
//!
//! A machine's CPUs are not all a program's: its affinity, the CPUs of its control group, quotas,
//! the weights of groups, other programs and a hypervisor each take a part. [`Cores::limits`] reads
//! what is written down, in about a millisecond. [`Cores::measured`] also looks for a moment at who
//! uses CPU time, who waits for it, and whom the kernel would give how much.
//!
//! ```
//! use std::time::Duration;
//! use hearth_cores::Cores;
//!
//! let cores = Cores::measured(Duration::from_millis(50));
//! assert!(cores.threads >= 1 && cores.threads <= cores.allowed.len());
//! assert!(cores.obtainable <= cores.allowed.len() as f64);
//! ```
#![forbid(unsafe_code)]

pub mod calibrate;
mod fair;
mod load;
mod missing;
mod situation;

use std::thread;
use std::time::Duration;

use hearth_sys::{Linux, System};
use serde::Serialize;

pub use missing::{Missing, Reason};
use situation::Situation;

/// Share of its CPU time that another thread may lose without harm.
const HARMLESS: f64 = 0.05;

/// CPUs that the calling program can have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cores {
    /// The machine's CPUs, as far as they are online.
    pub online: Vec<usize>,
    /// Those on which the program may run.
    pub allowed: Vec<usize>,
    /// CPU time that a thread on each allowed CPU gets together, in CPUs.
    pub obtainable: f64,
    /// CPU time that nobody else wants, in CPUs.
    pub idle: f64,
    /// Most threads, one at least, that leave to others what they have without them. A program that
    /// runs so many harms nobody.
    pub threads: usize,
    /// Whether others were looked at.
    #[serde(rename = "measured")]
    pub is_measured: bool,
    /// From the machine's CPUs to the obtainable ones: each reason with what it takes.
    pub missing: Vec<Missing>,
}

impl Cores {
    /// CPUs by affinity, control groups and quotas alone: nobody else is looked at.
    #[must_use]
    pub fn limits() -> Cores {
        Cores::of(&Situation::limits(&Linux))
    }

    /// The same with what others use. It takes this long: 200 ms tell threads that always run from
    /// those that do now and then.
    #[must_use]
    pub fn measured(window: Duration) -> Cores {
        Cores::on(&Linux, &mut || thread::sleep(window))
    }

    /// The same on a described machine, for tests. `pass` lets time pass.
    #[doc(hidden)]
    #[must_use]
    pub fn on(system: &dyn System, pass: &mut dyn FnMut()) -> Cores {
        Cores::of(&Situation::measured(system, pass))
    }

    fn of(situation: &Situation) -> Cores {
        let most = situation.allowed.len().max(1);
        let alone = situation.share(0);
        let is_harmless = |threads: usize| {
            let with = situation.share(threads);
            alone.others.iter().all(|(place, before)| {
                let after = with.others.iter().find(|(other, _)| other == place);
                after.is_none_or(|(_, after)| *after >= before * (1.0 - HARMLESS))
            })
        };
        let room = situation.quota().ceil().clamp(1.0, most as f64) as usize;
        let threads = (2..=room)
            .take_while(|threads| is_harmless(*threads))
            .last();
        Cores {
            online: situation.online.clone(),
            allowed: situation.allowed.clone(),
            obtainable: situation.share(most).own,
            idle: situation.idle().min(situation.quota()),
            threads: threads.unwrap_or(1),
            is_measured: situation.is_measured,
            missing: missing::of(situation),
        }
    }
}
