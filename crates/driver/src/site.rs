//! The machine to place on: a profile, the model fitted to it, and the CPUs that may be used.

use hearth_machine::profile::Profile;
use hearth_machine::topology::{OsThread, Topology};
use hearth_model::fitted::{Model, Tuning};
use hearth_place::slots::Machine;
use hearth_terminal::Failure;

use crate::corrections::Corrections;
use crate::known_machine::KnownMachine;
use crate::plans::Plans;
use crate::profiles::{self, Basis, Chosen};

/// A machine to place on.
pub struct Site {
    pub profile: Profile,
    pub tuning: Tuning,
    pub machine: Machine,
    /// The source of the figures, in a line.
    pub origin: String,
    /// A line about figures that might mislead.
    pub warning: Option<String>,
    /// The machine has not been measured, and could be.
    pub is_assumed: bool,
}

impl Site {
    /// A chosen profile as it is corrected, with these CPUs.
    pub fn new(
        chosen: Chosen,
        cpus: &[OsThread],
        corrections: &Corrections,
    ) -> Result<Site, Failure> {
        let unfit = |error: String| Failure::input(error);
        let fitted = Model::fitted(&chosen.profile).map_err(|error| unfit(error.to_string()))?;
        let (profile, model) = corrections.apply(chosen.profile, fitted)?;
        let machine =
            Machine::new(&profile, &model, cpus).map_err(|error| unfit(error.to_string()))?;
        Ok(Site {
            profile,
            tuning: model.tuning().clone(),
            machine,
            origin: chosen.origin,
            warning: chosen.warning,
            is_assumed: chosen.is_assumed,
        })
    }

    /// This machine, with the CPUs that this process may use and the result of a check.
    pub fn here(profile: Profile, corrections: &Corrections) -> Result<Site, Failure> {
        let cpus = usable(&profile.topology);
        let chosen = Chosen {
            profile,
            origin: String::new(),
            warning: None,
            is_assumed: false,
        };
        Site::new(chosen, &cpus, corrections)
    }

    /// This machine as `hearth place` would know it, with the result of the last check before a
    /// run.
    pub fn known() -> Result<Site, Failure> {
        let chosen = profiles::choose(&Basis::default())?;
        let corrections = Corrections::known(&KnownMachine::find()?, &Plans::of_user());
        let cpus = usable(&chosen.profile.topology);
        let site = Site::new(chosen, &cpus, &corrections)?;
        Ok(Site {
            is_assumed: false,
            ..site
        })
    }

    /// A described machine with these CPUs, for tests; `None` if it is unfit.
    #[doc(hidden)]
    pub fn described(profile: Profile, cpus: &[OsThread]) -> Option<Site> {
        let chosen = Chosen {
            profile,
            origin: "a described machine".to_owned(),
            warning: None,
            is_assumed: false,
        };
        Site::new(chosen, cpus, &Corrections::default()).ok()
    }
}

/// The CPUs of this machine that this process may use.
pub fn usable(topology: &Topology) -> Vec<OsThread> {
    let ours = hearth_sys::affinity::allowed();
    topology
        .all_threads()
        .map(|thread| topology.os_thread(thread))
        .filter(|cpu| ours.contains(&(cpu.0 as usize)))
        .collect()
}
