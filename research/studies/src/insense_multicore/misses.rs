//! Cache misses as the source counted them: simulated by Cachegrind.

use std::path::{Path, PathBuf};

/// The source's first and last level: i5-3470S, 32 KB of eight ways, 6 MB of twelve.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=6291456,12,64"];

/// Cachegrind's counts, each with its name here.
const COUNTS: [(&str, &str); 9] = [
    ("Ir", "instructions"),
    ("I1mr", "i1_misses"),
    ("Dr", "reads"),
    ("Dw", "writes"),
    ("D1mr", "d1_read_misses"),
    ("D1mw", "d1_write_misses"),
    ("DLmr", "ll_read_misses"),
    ("DLmw", "ll_write_misses"),
    ("ILmr", "ll_instruction_misses"),
];

/// Valgrind, if it is installed.
#[must_use]
pub fn valgrind() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&folders).map(|folder| folder.join("valgrind"));
    found.into_iter().find(|path| path.is_file())
}

/// The arguments that make Valgrind run a program and write its counts into a file.
#[must_use]
pub fn arguments(out: &Path, program: &Path) -> Vec<String> {
    let mut arguments = vec!["--tool=cachegrind".to_owned(), "--cache-sim=yes".to_owned()];
    arguments.extend(CACHES.map(str::to_owned));
    arguments.push(format!("--cachegrind-out-file={}", out.display()));
    arguments.push(program.display().to_string());
    arguments
}

/// The figures in what Cachegrind wrote: its own, by our names, and the sums for data. `None` for a
/// text that Cachegrind did not write.
#[must_use]
pub fn figures(text: &str) -> Option<Vec<(&'static str, f64)>> {
    let line = |name| text.lines().find_map(|line| line.strip_prefix(name));
    let names: Vec<&str> = line("events:")?.split_whitespace().collect();
    let counts: Vec<f64> = line("summary:")?
        .split_whitespace()
        .map(|count| count.parse().ok())
        .collect::<Option<_>>()?;
    let count = |event| {
        let at = names.iter().position(|name| *name == event)?;
        counts.get(at).copied()
    };
    let mut figures: Vec<(&'static str, f64)> = Vec::new();
    for (event, name) in COUNTS {
        figures.push((name, count(event)?));
    }
    figures.push(("d1_misses", count("D1mr")? + count("D1mw")?));
    figures.push(("ll_data_misses", count("DLmr")? + count("DLmw")?));
    Some(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_by_their_names() {
        let text = "desc: D1\ncmd: x\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\nfn=main\n0 1 2 3\n\
                    summary: 100 1 2 30 3 4 20 5 6\n";
        let figures = figures(text).unwrap();
        let of = |name| figures.iter().find(|(n, _)| *n == name).unwrap().1;
        assert_eq!(
            (of("instructions"), of("writes"), of("d1_misses")),
            (100.0, 20.0, 8.0)
        );
        assert_eq!(
            (of("ll_data_misses"), of("ll_instruction_misses")),
            (10.0, 2.0)
        );
        assert_eq!(super::figures("events: Ir\n"), None);
    }
}
