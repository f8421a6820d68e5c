//! The crates of the workspace, as cargo tells them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::root;

pub(crate) struct Crate {
    pub(crate) name: String,
    /// Relative to the root of the repository.
    pub(crate) folder: PathBuf,
    /// Crates of the workspace that it depends on.
    pub(crate) uses: Vec<Use>,
}

pub(crate) struct Use {
    pub(crate) name: String,
    pub(crate) only_for_development: bool,
}

pub(crate) fn crates() -> Vec<Crate> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo can be started");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let manifest = text(&package["manifest_path"]);
            let folder = Path::new(&manifest)
                .parent()
                .expect("a manifest has a folder");
            let used = list(&package["dependencies"]);
            Crate {
                name: text(&package["name"]),
                folder: folder
                    .strip_prefix(root())
                    .expect("a crate is in the repository")
                    .to_owned(),
                uses: used
                    .iter()
                    .filter(|used| !used["path"].is_null())
                    .map(|used| Use {
                        name: text(&used["name"]),
                        only_for_development: used["kind"] == "dev",
                    })
                    .collect(),
            }
        })
        .collect()
}
