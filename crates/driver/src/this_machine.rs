//! This machine as it describes itself.

use hearth_machine::capture::Reading;
use hearth_machine::profile::Profile;
use hearth_machine::topology::Topology;
use hearth_probe::description;
use hearth_sys::Linux;
use hearth_terminal::Failure;
use hearth_text::counted;

/// The machine as the system's files describe it.
pub fn reading() -> Result<Reading, Failure> {
    description::capture(&Linux).read().map_err(|error| {
        Failure::environment(format!("cannot read the parts of this machine: {error}"))
    })
}

/// Describes how another machine differs from this one, if it does.
pub fn difference(profile: &Profile, here: &Reading) -> Option<String> {
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
            return Some(format!("{} there, {here} here", counted(there, what)));
        }
    }
    (there.threads() != here.threads()).then(|| "its CPUs are numbered otherwise".to_owned())
}
