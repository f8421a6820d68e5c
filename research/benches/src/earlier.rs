//! Compares Hearth with an earlier Hearth: the same programs built by two trees, run in turn.

use std::path::{Path, PathBuf};
use std::process::Command;

use hearth_stats::{Ratio, Summary, ratio};

use crate::measure::Kept;
use crate::peers;

/// Another checkout of Hearth, built with `cargo build --release`.
#[derive(Clone, Debug)]
pub struct Earlier(PathBuf);

impl Earlier {
    /// The checkout in this folder. An error says how to build what is missing.
    pub fn at(tree: &str) -> Result<Earlier, String> {
        let command = Path::new(tree).join("target/release/hearth");
        match std::fs::canonicalize(&command) {
            Ok(command) => Ok(Earlier(command)),
            Err(error) => Err(format!(
                "{}: {error}; check the earlier commit out there and run cargo build --release \
                 --package hearth-cli --package hearth-runtime in it",
                command.display()
            )),
        }
    }

    /// Builds `STEM.isf` below `benches` with the earlier command.
    pub fn build(&self, stem: &str, workshop: &Path) -> Result<PathBuf, String> {
        let built = workshop.join("earlier");
        let output = Command::new(&self.0)
            .arg("build")
            .arg(peers::folder().join(format!("{stem}.isf")))
            .arg("--output")
            .arg(&built)
            .output()
            .map_err(|error| format!("cannot start {}: {error}", self.0.display()))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(built)
    }
}

/// Values of now beside values of before.
#[derive(Clone, Debug)]
pub struct Compared {
    pub now: Summary,
    pub before: Summary,
    /// Now over before.
    pub ratio: Ratio,
    pub runs: usize,
    pub discarded: usize,
}

impl Compared {
    /// Compares the values of two sides, now's first.
    pub fn of(kept: &[Kept<f64>]) -> Result<Compared, String> {
        const NOTHING: &str = "no measurements";
        let [now, before] = kept else {
            return Err(NOTHING.into());
        };
        Ok(Compared {
            now: Summary::of(&now.values).ok_or(NOTHING)?,
            before: Summary::of(&before.values).ok_or(NOTHING)?,
            ratio: ratio(&now.values, &before.values).ok_or(NOTHING)?,
            runs: now.values.len(),
            discarded: now.discarded + before.discarded,
        })
    }
}
