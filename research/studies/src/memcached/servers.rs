//! The programs that are there, and the servers that run.

use std::path::{Path, PathBuf};

use cachet_load::memcaslap;
use cachet_load::server::Program;

use super::kinds::{Kind, MEMCACHED};
use super::measure::Bench;
use super::plan::{Case, MEMCASLAP};
use crate::StudyError;

/// The program that servers of ours are.
pub(super) const CACHET: &str = "cachet";

/// The study.
#[derive(Debug, Default)]
pub struct Memcached {
    pub(super) there: Option<There>,
    /// The servers of a round.
    pub(super) benches: Vec<(Case, Result<Bench, String>)>,
}

/// The programs that are there.
#[derive(Debug)]
pub(super) struct There {
    pub(super) cachet: Option<(PathBuf, String)>,
    pub(super) memcached: Option<String>,
    pub(super) memcaslap: Option<&'static str>,
}

impl There {
    pub(super) fn look(given: Option<&Path>) -> Result<There, StudyError> {
        let version = |path: &Path| Program::new(CACHET, path).version();
        let cachet = match given {
            Some(path) => {
                let version = version(path).ok_or_else(|| StudyError::Program {
                    program: path.to_owned(),
                    error: std::io::ErrorKind::NotFound.into(),
                })?;
                Some((path.to_owned(), version))
            }
            None => beside()
                .into_iter()
                .chain([PathBuf::from(CACHET)])
                .find_map(|path| version(&path).map(|version| (path, version))),
        };
        let memcached = Program::new(MEMCACHED, Path::new(MEMCACHED)).version();
        if cachet.is_none() && memcached.is_none() {
            return Err(StudyError::NotThere {
                what: "server",
                given: CACHET.to_owned(),
                known: vec![
                    "cachet (cargo build --release -p cachet, or --cachet FILE)".to_owned(),
                    "memcached".to_owned(),
                ],
            });
        }
        Ok(There {
            cachet,
            memcached,
            memcaslap: memcaslap::found(),
        })
    }

    fn has(&self, case: &Case) -> bool {
        let has_server = match Kind::named(&case.kind).is_some_and(Kind::is_memcached) {
            true => self.memcached.is_some(),
            false => self.cachet.is_some(),
        };
        has_server && (case.load != MEMCASLAP || self.memcaslap.is_some())
    }
}

/// The path at which Cargo and packages install it.
fn beside() -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    let found = this.parent()?.join(CACHET);
    found.is_file().then_some(found)
}

impl Memcached {
    pub(super) fn has(&self, case: &Case) -> bool {
        self.there.as_ref().is_some_and(|there| there.has(case))
    }
}
