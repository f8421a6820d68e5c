//! All that the study found.

use serde::{Deserialize, Serialize};

use super::options::{Experiment, Options};
use super::plan::{APART, Case};
use super::verdict::Evidence;
use crate::results::{self, About, File, Found, Machine};

/// The name of the page.
pub const PAGE: &str = "event-patterns.html";
/// Clients that are on their cores for more of the time are what limits the rate.
const CLIENTS_FULL: f64 = 0.95;

/// A case's runs, figures as [`super::figures`] names them.
pub type Cell = results::Cell<Case>;
/// The folder of the study.
pub type Folder = results::Folder<Results>;

impl Cell {
    /// Runs that are there.
    #[must_use]
    pub fn count(&self) -> usize {
        self.runs("rate").len()
    }

    /// Could the server have done more, had it been asked more often? Then its rate is the clients'.
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

/// All that the study found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Of which run.
    #[serde(flatten)]
    pub about: About,
    /// The server's cores where it has its own, by the system's numbers.
    pub server_cores: Vec<usize>,
    /// The clients' cores there.
    pub client_cores: Vec<usize>,
    /// How.
    pub options: Options,
    /// Runs.
    pub cells: Vec<Cell>,
}

impl Results {
    /// Nothing yet. The first half of the cores is the server's.
    #[must_use]
    pub fn new(machine: Machine, cores: &[usize], options: Options) -> Results {
        let (server, clients) = cores.split_at(cores.len() / 2);
        let server = if server.is_empty() { clients } else { server };
        Results {
            about: About::new(Results::FORMAT, machine),
            server_cores: server.to_vec(),
            client_cores: clients.to_vec(),
            options,
            cells: Vec::new(),
        }
    }

    /// How many cores the server may use in a layout.
    #[must_use]
    pub fn cores_of_server(&self, layout: &str) -> usize {
        let others = self.client_cores.iter();
        let others = others.filter(|core| layout != APART && !self.server_cores.contains(core));
        self.server_cores.len() + others.count()
    }

    /// An experiment's cells.
    pub fn of(&self, experiment: Experiment) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(move |cell| cell.case.experiment == experiment)
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

impl Found for Results {
    const FORMAT: u32 = 1;

    fn about(&self) -> &About {
        &self.about
    }

    fn about_mut(&mut self) -> &mut About {
        &mut self.about
    }

    fn differs(&self, empty: &Results) -> Option<&'static str> {
        if (&self.server_cores, &self.client_cores) != (&empty.server_cores, &empty.client_cores) {
            return Some("the machine");
        }
        self.options.differs(&empty.options)
    }

    fn adopt(&mut self, empty: Results) {
        self.options = empty.options;
    }

    fn tables(&self) -> Vec<File> {
        let of = |experiment: Experiment| {
            let cells = self.of(experiment);
            let rows = cells.map(|cell| (begin(&cell.case), &cell.figures));
            results::tables(experiment.id(), HEAD, &rows.collect::<Vec<_>>())
        };
        let run = Experiment::ALL.into_iter();
        let run = run.filter(|experiment| self.of(*experiment).next().is_some());
        let claims = results::claims(&Evidence::measured(self).verdicts());
        run.flat_map(of).chain([claims]).collect()
    }
}

const HEAD: &str = "pattern,mechanism,layout,threads,work_us,timed";

fn begin(case: &Case) -> String {
    let Case {
        pattern,
        mechanism,
        layout,
        threads,
        work_us,
        is_timed,
        ..
    } = case;
    format!("{pattern},{mechanism},{layout},{threads},{work_us},{is_timed}")
}
