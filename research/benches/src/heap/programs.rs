//! Starts programs under an allocator.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use hearth_testing::toolchain::Workshop;

use super::allocators::Allocator;
use crate::measure::run;
use crate::peers;

/// The executable of `research/benches/heap`, and a folder for the files that programs read and
/// write.
#[derive(Debug)]
pub struct Programs {
    heap: PathBuf,
    workshop: Workshop,
}

/// Result of a program's run.
#[derive(Clone, PartialEq, Debug)]
pub struct Ran {
    /// From the program's start to its end.
    pub seconds: f64,
    /// Peak resident memory.
    pub peak_mb: f64,
    pub stdout: String,
    pub disturbed: bool,
}

/// Last line of the output of `heap launch`.
const LAUNCHED: &str = "\nlaunched ";

impl Programs {
    /// Compiles the executable. The compiler must not know what malloc is, or it leaves out blocks
    /// that nobody reads.
    pub fn new() -> Result<Self, String> {
        let workshop = Workshop::new("heap")?;
        let heap = workshop.path().join("heap");
        let folder = peers::folder().join("heap");
        let files =
            std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut sources: Vec<PathBuf> = files
            .filter_map(|file| Some(file.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|kind| kind == "c"))
            .collect();
        sources.sort();
        let mut command = Command::new("cc");
        command
            .args(["-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread"])
            .args(["malloc", "free"].map(|name| format!("-fno-builtin-{name}")))
            .arg("-o")
            .arg(&heap)
            .args(sources)
            .arg("-lm");
        let output = command
            .output()
            .map_err(|error| format!("cannot start cc: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(Programs { heap, workshop })
    }

    /// The executable of the workloads itself.
    pub fn heap(&self) -> &Path {
        &self.heap
    }

    /// The path of a file in the folder that belongs to these programs.
    pub fn file(&self, name: &str) -> PathBuf {
        self.workshop.path().join(name)
    }

    /// Runs a program to its end under an allocator.
    pub fn run(&self, under: &Allocator, words: &[String]) -> Result<Ran, String> {
        let mut command = Command::new(&self.heap);
        command.arg("launch");
        match &under.library {
            Some(library) => command.arg(library),
            None => command.arg("-"),
        };
        command
            .args(words)
            .env_remove("LD_PRELOAD")
            // Python has an allocator of its own in front of the one under test.
            .env("PYTHONMALLOC", "malloc")
            .envs(under.environment.iter().map(|(name, value)| (name, value)));
        let told = |error: String| format!("{}: {error}", under.name);
        let ran = run(&mut command, "").map_err(told)?;
        let figures = launched(&ran.stderr)
            .ok_or_else(|| told(format!("{words:?} were launched, and {:?}", ran.stderr)))?;
        Ok(Ran {
            seconds: figures.0,
            peak_mb: figures.1 / 1024.0,
            stdout: ran.stdout,
            disturbed: ran.disturbed,
        })
    }

    /// Runs one of our own workloads: its figures by name, and the outcome of the program.
    pub fn workload(
        &self,
        under: &Allocator,
        words: &str,
    ) -> Result<(BTreeMap<String, f64>, Ran), String> {
        let mut all = vec![self.heap.display().to_string()];
        all.extend(words.split(' ').map(str::to_owned));
        let ran = self.run(under, &all)?;
        let figures = figures(&ran.stdout)
            .ok_or_else(|| format!("{}: '{words}' says {:?}", under.name, ran.stdout))?;
        Ok((figures, ran))
    }
}

/// Seconds and KiB.
fn launched(said: &str) -> Option<(f64, f64)> {
    let (_, figures) = said.rsplit_once(LAUNCHED)?;
    let (seconds, kib) = figures.trim_end().split_once(' ')?;
    Some((seconds.parse().ok()?, kib.parse().ok()?))
}

fn figures(said: &str) -> Option<BTreeMap<String, f64>> {
    said.lines()
        .map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_say_is_read() {
        let found = figures("seconds 0.5\nworst 2\n").expect("two figures");
        assert_eq!((found["seconds"], found["worst"]), (0.5, 2.0));
        assert_eq!(figures("seconds\n"), None);
        assert_eq!(
            launched("a warning\n\nlaunched 0.25 2048\n"),
            Some((0.25, 2048.0))
        );
        assert_eq!(launched("a warning\n"), None);
    }
}
