//! All that the study found.

use serde::{Deserialize, Serialize};

use super::EventPatterns;
use super::options::Experiment;
use super::plan::{APART, Case};
use crate::{results, study};

/// Clients that are on their cores for more of the time are what limits the rate.
const CLIENTS_FULL: f64 = 0.95;

/// A case's runs, figures as [`super::figures`] names them.
pub type Cell = results::Cell<Case>;
/// All that the study found.
pub type Results = study::Results<EventPatterns>;

impl Cell {
    /// Could the server have done more, had it been asked more often? Then its rate is the
    /// clients'.
    #[must_use]
    pub fn is_clients_limit(&self, server_cores: usize) -> bool {
        let is_full = self
            .median("client_busy")
            .is_some_and(|busy| busy > CLIENTS_FULL);
        let most = server_cores.min(self.case.threads) as f64;
        let is_idle = self
            .median("server_cores")
            .is_some_and(|cores| cores < CLIENTS_FULL * most);
        is_full && is_idle
    }
}

/// The cores that are used, by the system's numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The server's where it has its own.
    pub server_cores: Vec<usize>,
    /// The clients' there.
    pub client_cores: Vec<usize>,
}

impl Site {
    /// The first half of the cores is the server's.
    #[must_use]
    pub fn new(cores: &[usize]) -> Site {
        let (server, clients) = cores.split_at(cores.len() / 2);
        let server = if server.is_empty() { clients } else { server };
        Site {
            server_cores: server.to_vec(),
            client_cores: clients.to_vec(),
        }
    }
}

impl Results {
    /// Number of cores that the server may use in a layout.
    #[must_use]
    pub fn cores_of_server(&self, layout: &str) -> usize {
        let others = self.site.client_cores.iter();
        let others =
            others.filter(|core| layout != APART && !self.site.server_cores.contains(core));
        self.site.server_cores.len() + others.count()
    }

    /// The cells of one line of a chart, by threads.
    #[must_use]
    pub fn line(
        &self,
        experiment: Experiment,
        [pattern, mechanism, layout]: [&str; 3],
        work_us: u32,
    ) -> Vec<&Cell> {
        let cells = self.of(experiment).filter(|Cell { case, .. }| {
            case.pattern == pattern
                && case.mechanism == mechanism
                && case.layout == layout
                && case.work_us == work_us
                && case.is_timed
        });
        let mut cells: Vec<&Cell> = cells.filter(|cell| cell.count() > 0).collect();
        cells.sort_by_key(|cell| cell.case.threads);
        cells
    }

    /// The cell of such a line with the highest rate.
    #[must_use]
    pub fn peak(&self, experiment: Experiment, names: [&str; 3], work_us: u32) -> Option<&Cell> {
        let line = self.line(experiment, names, work_us).into_iter();
        let rated = line.filter_map(|cell| Some((cell, cell.median("rate")?)));
        let peak = rated.max_by(|a, b| a.1.total_cmp(&b.1));
        peak.map(|(cell, _)| cell)
    }
}
