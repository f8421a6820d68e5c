//! Help for tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use hearth_machine::profile::Profile;
use hearth_machine::synthetic;
use hearth_model::fitted::Model;
use hearth_place::slots::Machine;

use crate::constraints::Site;

/// A described machine.
pub(crate) fn site(description: &str) -> Site {
    let profile = Profile::assumed(synthetic::parse(description).expect("a machine"));
    let model = Model::new(&profile).expect("a model");
    let machine = Machine::new(&profile, &model, &[]).expect("a machine");
    Site::new(&profile, machine)
}

/// A folder that is removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("hearth-claim-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("it is new");
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
