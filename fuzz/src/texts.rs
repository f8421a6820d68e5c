//! The loop that feeds the targets: mutated texts from the corpus and from the generator.
//!
//! It runs in a child process, which stores each text in a file before trying it. So the parent
//! still has the text when the child overflows its stack, hangs or is killed.

use crate::targets::TARGETS;
use hearth_testing::generate::{self, Shape};
use hearth_testing::mutate::{mutate, shrink};
use hearth_testing::random::Random;
use hearth_testing::text;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hearth_sys::usage::{self, Whose};

/// Computing time after which a target counts as hanging. Elapsed time would include other programs
/// on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A text on which a target failed.
#[derive(Debug)]
pub struct Finding {
    pub target: &'static str,
    pub seed: u64,
    pub text: String,
    pub message: String,
}

/// Every `.isf` below the folders.
pub fn corpus(folders: &[PathBuf]) -> Vec<String> {
    let mut texts = Vec::new();
    let mut open: Vec<PathBuf> = folders.to_vec();
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        // The order of a folder is not guaranteed, and the seed must mean the same each time.
        paths.sort();
        for path in paths {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "isf") {
                texts.extend(fs::read_to_string(&path));
            }
        }
    }
    texts
}

/// The text of a seed.
pub fn text_of(seed: u64, corpus: &[String]) -> String {
    let mut random = Random::new(seed);
    if corpus.is_empty() || random.chance(10) {
        let shape = Shape {
            components: random.chance(50),
            size: 2 + random.below(8),
        };
        let program = generate::program(random.seed(), shape);
        let fresh = text::print(&program, random.seed());
        if random.chance(40) {
            return fresh;
        }
        return mutate(&fresh, &fresh, &mut random);
    }
    let base = random.pick(corpus);
    let other = random.pick(corpus);
    mutate(base, other, &mut random)
}

/// Tries one text with every target; returns the message of the first that fails.
pub fn try_text(text: &str, only: Option<&str>) -> Result<(), (&'static str, String)> {
    for (name, target) in TARGETS {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let before = usage::read(Whose::Thread);
        catch_unwind(|| target(text)).map_err(|panic| {
            let message = panic.downcast_ref::<String>().cloned();
            let message = message.or_else(|| panic.downcast_ref().map(|m: &&str| m.to_string()));
            (name, message.unwrap_or_else(|| "a panic".into()))
        })?;
        let used = usage::read(Whose::Thread).since(&before);
        let computed = Duration::from_micros(used.user_us + used.system_us);
        if computed > PATIENCE {
            return Err((name, format!("computed for {computed:?}")));
        }
    }
    Ok(())
}

/// Tries texts until the time is over or one fails. `in_flight` holds the current one.
pub fn search(
    seed: u64,
    time: Duration,
    corpus: &[String],
    only: Option<&str>,
    in_flight: &Path,
) -> Result<u64, Finding> {
    let start = Instant::now();
    let mut tried = 0;
    while start.elapsed() < time {
        let seed = seed + tried;
        let text = text_of(seed, corpus);
        // Without the file a crash only loses its text; the seed still leads to it.
        let _ = fs::write(in_flight, &text);
        try_text(&text, only).map_err(|(target, message)| Finding {
            target,
            seed,
            text: smaller(&text, target),
            message,
        })?;
        tried += 1;
    }
    Ok(tried)
}

/// Shrinks a text for which a target fails.
pub fn smaller(text: &str, target: &'static str) -> String {
    let limit = Instant::now() + Duration::from_secs(60);
    shrink(text, |text| {
        Instant::now() < limit && try_text(text, Some(target)).is_err()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_a_text() {
        let corpus = vec!["a = 1\n".to_string(), "printInt(2)\n".to_string()];
        assert_eq!(text_of(17, &corpus), text_of(17, &corpus));
    }

    #[test]
    fn the_alarm_rings() {
        // A canary: if this passed, a broken target would too.
        let outcome = catch_unwind(|| panic!("as expected"));
        assert!(outcome.is_err());
    }
}
