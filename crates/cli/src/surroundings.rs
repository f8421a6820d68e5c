//! This machine as it describes itself.

use hearth_machine::capture::Reading;
use hearth_machine::profile::Profile;
use hearth_machine::topology::Topology;
use hearth_probe::description;
use hearth_sys::Linux;

use crate::failure::Failure;

/// What its files say of it.
pub(crate) fn reading() -> Result<Reading, Failure> {
    description::capture(&Linux).read().map_err(|error| {
        Failure::environment(format!("cannot tell what this machine is made of: {error}"))
    })
}

/// How another machine differs from this one, if it does.
pub(crate) fn difference(profile: &Profile, here: &Reading) -> Option<String> {
    let model = &here.environment.processor;
    if let (Some(there), Some(here)) = (&profile.host.cpu_model, model)
        && there != here
    {
        return Some(format!("{there} there, {here} here"));
    }
    let (there, here) = (&profile.topology, &here.topology);
    let counts = |machine: &Topology| {
        [
            (machine.packages().len(), "package"),
            (machine.nodes().len(), "node"),
            (machine.cores().len(), "core"),
            (machine.threads().len(), "hardware thread"),
        ]
    };
    for ((there, what), (here, _)) in counts(there).into_iter().zip(counts(here)) {
        if there != here {
            return Some(format!("{} there, {here} here", count(there, what)));
        }
    }
    (there.threads() != here.threads()).then(|| "its CPUs are numbered otherwise".to_owned())
}

/// A number and what it counts, as people say it.
pub(crate) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}
