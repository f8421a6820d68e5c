//! The machine on which tests claim cores.

use hearth_claim::Site;
use hearth_machine::profile::Profile;
use hearth_machine::synthetic;
use hearth_model::fitted::Model;
use hearth_place::slots::Machine;

/// Eight cores in two packages.
pub(crate) fn site() -> Site {
    let description = "2 packages, 4 cores, l1d 32K per core, l2 8M per package";
    let profile = Profile::assumed(synthetic::parse(description).expect("a machine"));
    let model = Model::new(&profile).expect("a model");
    let machine = Machine::new(&profile, &model, &[]).expect("a machine");
    Site::new(&profile, machine)
}
