//! The allocators compared: the system's, the peers that are installed, and Hearth's.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::beside;

/// Name of Hearth's allocator in tables.
pub const HEARTH: &str = "Hearth";
/// The same in real-time mode, if the user adds it.
pub const HEARTH_REAL_TIME: &str = "Hearth-rt";
/// Name of the system's allocator, with which all are compared.
pub const SYSTEM: &str = "glibc";

/// Peers that `research/benches/install-peers heap` installs, under the names that it gives.
const PEERS: [&str; 8] = [
    "jemalloc-deb",
    "jemalloc",
    "gperftools",
    "mimalloc-deb",
    "mimalloc-2",
    "mimalloc-3",
    "snmalloc",
    "rpmalloc",
];

/// Peers whose speed is the aim: "the best of mimalloc, snmalloc, rpmalloc and tcmalloc".
pub const FAST_PEERS: &[&str] = &[
    "mimalloc-2",
    "mimalloc-3",
    "snmalloc",
    "rpmalloc",
    "gperftools",
];

/// Peers that no registry within the installer's reach has: the name, and the reason.
const NOT_TO_BE_HAD: [(&str, &str); 1] = [(
    "rpmalloc-2",
    "Debian has no rpmalloc, and the newest crate with its sources has 1.4; --with \
     rpmalloc-2=LIBRARY adds one",
)];

/// An allocator to measure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocator {
    pub name: String,
    /// The library to preload; None for the system's own.
    pub library: Option<PathBuf>,
    /// Exact version and origin.
    pub version: String,
    pub environment: Vec<(String, String)>,
}

impl Allocator {
    pub fn system() -> Self {
        Allocator {
            name: SYSTEM.to_owned(),
            library: None,
            version: system_version(),
            environment: Vec::new(),
        }
    }

    pub fn of_library(name: &str, library: &Path) -> Self {
        Allocator {
            name: name.to_owned(),
            library: Some(library.to_owned()),
            version: library.display().to_string(),
            environment: Vec::new(),
        }
    }

    /// `NAME=LIBRARY[,VARIABLE=VALUE…]`. A library of a name that is there already takes its place;
    /// no library is the system's own, with these variables.
    pub fn from_words(words: &str) -> Result<Self, String> {
        let wrong = || format!("'{words}' is not NAME=LIBRARY[,VARIABLE=VALUE…]");
        let mut parts = words.split(',');
        let (name, library) = parts
            .next()
            .and_then(|part| part.split_once('='))
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(wrong)?;
        let mut found = if library.is_empty() {
            Allocator {
                name: name.to_owned(),
                ..Allocator::system()
            }
        } else {
            // Programs are started in other folders.
            let path = std::fs::canonicalize(library)
                .map_err(|error| format!("{library}, the library of {name}: {error}"))?;
            Allocator::of_library(name, &path)
        };
        for part in parts {
            let (variable, value) = part.split_once('=').ok_or_else(wrong)?;
            found
                .environment
                .push((variable.to_owned(), value.to_owned()));
            found.version.push_str(&format!(", {part}"));
        }
        Ok(found)
    }

    pub fn is_hearth(&self) -> bool {
        is_hearth(&self.name)
    }
}

/// Is this name one of Hearth's? All others are peers.
pub fn is_hearth(name: &str) -> bool {
    name.starts_with(HEARTH)
}

/// All installed allocators, the system's first, and a line for each that is missing.
pub fn installed(with: &[Allocator]) -> (Vec<Allocator>, Vec<String>) {
    let mut all = vec![Allocator::system()];
    let mut missing = Vec::new();
    let mut add = |name: &str, found: Result<Allocator, String>| match found {
        _ if with.iter().any(|one| one.name == name) => {}
        Ok(found) => all.push(found),
        Err(error) => missing.push(format!("{name}: skipped: {error}")),
    };
    for name in PEERS {
        add(name, peer(name));
    }
    for (name, why) in NOT_TO_BE_HAD {
        add(name, Err(why.to_owned()));
    }
    let ours = beside("libhearth_malloc.so", "use benches/run, which builds it");
    add(
        HEARTH,
        ours.map(|library| Allocator::of_library(HEARTH, &library)),
    );
    all.extend(with.iter().cloned());
    (all, missing)
}

fn peer(name: &str) -> Result<Allocator, String> {
    let library = beside(
        &format!("../peers/lib/{name}.so"),
        "see what benches/install-peers heap says",
    )?;
    let library = std::fs::canonicalize(&library).map_err(|error| error.to_string())?;
    let mut found = Allocator::of_library(name, &library);
    if let Ok(version) = std::fs::read_to_string(library.with_extension("version")) {
        found.version = version.trim_end().to_owned();
    }
    Ok(found)
}

fn system_version() -> String {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    said.ok()
        .filter(|version| !version.is_empty())
        .unwrap_or("of the system".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_an_allocator() {
        let found = Allocator::from_words("glibc-top=,A=1,B=x=y").expect("three parts");
        assert_eq!(found.library, None);
        let expected = [("A", "1"), ("B", "x=y")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(found.environment, expected);
        assert!(Allocator::from_words("nothing").is_err());
        assert!(Allocator::from_words("name=/no/such/file.so").is_err());
        assert!(is_hearth("Hearth-rt") && !is_hearth("jemalloc"));
    }
}
