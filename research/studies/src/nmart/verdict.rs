//! The source's claims, judged by rules.
//!
//! The same rules judge our measurements and the source's figures, so that an answer
//! differs because machines and programs differ and for no other reason. They compare the source's
//! seven allocators as far as they are there; those of today are on the page, and in no claim.

use std::collections::BTreeMap;

use super::options::Experiment;
use super::published;
use super::results::{Results, published as published_figure};
use crate::judging::{Answer, JudgedClaim};

/// One figure of one workload with one allocator: mean and most over the runs.
type Figures = BTreeMap<(Experiment, String, &'static str), BTreeMap<&'static str, (f64, f64)>>;

/// Evidence that claims are judged from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Figures by experiment, workload and figure; then by allocator.
    figures: Figures,
}

/// Figures that claims are about.
const FIGURES: [&str; 10] = [
    "allocate_max",
    "free_max",
    "allocate_sum",
    "free_sum",
    "floor_allocate_max",
    "floor_free_max",
    "waste_percent",
    "payload_waste_percent",
    "peak_kb",
    "seconds",
];

impl Evidence {
    /// The published evidence.
    #[must_use]
    pub fn published() -> Evidence {
        let mut evidence = Evidence::default();
        for times in published::times() {
            let values = (times.mean, times.most);
            evidence.put(
                Experiment::Times,
                times.workload(),
                times.figure(),
                times.allocator,
                values,
            );
        }
        let mut names: Vec<(Experiment, String)> = Vec::new();
        for found in published::appendix() {
            for experiment in Experiment::ALL {
                let name = (experiment, found.name());
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        for row in published::synthetic() {
            let (experiment, model) = match row.model {
                "MEAN" => (Experiment::Mean, "mean"),
                _ => (Experiment::Cdf, "cdf"),
            };
            for side in ["local", "remote"] {
                names.push((experiment, format!("{model}/{}/{side}", row.threads)));
            }
        }
        for (experiment, workload) in names {
            for figure in ["waste_percent", "peak_kb", "seconds"] {
                for (_, id) in published::ALLOCATORS {
                    if let Some(value) = published_figure(experiment, &workload, id, figure) {
                        evidence.put(experiment, workload.clone(), figure, id, (value, value));
                    }
                }
            }
        }
        evidence
    }

    /// The measured evidence.
    #[must_use]
    pub fn measured(results: &Results) -> Evidence {
        let mut evidence = Evidence::default();
        for cell in &results.cells {
            let known = published::ALLOCATORS
                .iter()
                .find(|(_, id)| *id == cell.case.allocator);
            let Some((_, id)) = known else { continue };
            for figure in FIGURES {
                if let Some(summary) = cell.summary(figure) {
                    // It runs for a fixed time: what counts is the time of a million blocks.
                    let blocks = cell.summary("allocations").map(|blocks| blocks.mean / 1e6);
                    let by = match (cell.case.experiment, figure, blocks) {
                        (Experiment::Larson, "seconds", Some(millions)) => millions,
                        _ => 1.0,
                    };
                    let values = (summary.mean / by, summary.most / by);
                    evidence.put(
                        cell.case.experiment,
                        cell.case.workload.clone(),
                        figure,
                        id,
                        values,
                    );
                }
            }
        }
        evidence
    }

    fn put(
        &mut self,
        experiment: Experiment,
        workload: String,
        figure: &'static str,
        allocator: &'static str,
        values: (f64, f64),
    ) {
        let of = self
            .figures
            .entry((experiment, workload, figure))
            .or_default();
        of.insert(allocator, values);
    }

    /// The workloads of an experiment that have a figure of two allocators or more; of each
    /// allocator what `of` takes of mean and most.
    fn rows(
        &self,
        experiment: Experiment,
        figure: &str,
        of: fn((f64, f64)) -> f64,
    ) -> Vec<Row<'_>> {
        let wanted = self.figures.iter().filter(|((e, _, name), by_allocator)| {
            *e == experiment && *name == figure && by_allocator.len() > 1
        });
        wanted
            .map(|((_, workload, _), by_allocator)| Row {
                workload,
                values: by_allocator
                    .iter()
                    .map(|(id, values)| (*id, of(*values)))
                    .collect(),
            })
            .collect()
    }

    /// All claims.
    #[must_use]
    pub fn verdicts(&self) -> Vec<JudgedClaim> {
        vec![
            self.longest(
                "longest-malloc",
                "allocate_max",
                "nMART's longest malloc, of all runs, is the shortest of all allocators'",
                "in 10 of 12 cases",
            ),
            self.longest(
                "longest-free",
                "free_max",
                "nMART's longest free, of all runs, is the shortest",
                "in 11 of 12 cases",
            ),
            self.floors(),
            self.first_use(),
            self.totals(),
            self.cheapest_free(),
            self.half_wastes_most(),
            self.wastes_less_than_fits(),
            self.wastes_less_without_headers(),
            self.needs_less_than_caching(),
            self.shares_no_lines(),
            self.frees_of_others(),
            self.remote(),
            self.local(),
        ]
    }

    fn longest(
        &self,
        id: &'static str,
        figure: &str,
        claim: &'static str,
        published: &'static str,
    ) -> JudgedClaim {
        let rows = self.rows(Experiment::Times, figure, |(_, most)| most);
        judged(
            id,
            claim,
            Some(published),
            &rows,
            |row| row.least() == Some("nmart"),
            0.5,
        )
    }

    /// Judges the floors, a claim of ours: the source's runs do not have them.
    fn floors(&self) -> JudgedClaim {
        let rows = self.rows(Experiment::Times, "floor_allocate_max", |(mean, _)| mean);
        judged(
            "floors",
            "the same of floors, which a machine's interruptions are not in",
            None,
            &rows,
            |row| row.least() == Some("nmart"),
            0.5,
        )
    }

    fn first_use(&self) -> JudgedClaim {
        let rows = self.rows(Experiment::Times, "allocate_max", |(mean, _)| mean);
        judged(
            "first-use",
            "tcmalloc's longest malloc is the longest of all, as it prepares its classes",
            Some("in all 12 cases, 4.1 ms; Hoard second"),
            &rows,
            |row| row.most() == Some("tcmalloc"),
            0.8,
        )
    }

    fn totals(&self) -> JudgedClaim {
        let rows = self.rows(Experiment::Times, "allocate_sum", |(mean, _)| mean);
        let heavy: Vec<Row> = rows
            .into_iter()
            .filter(|row| row.workload.ends_with('3'))
            .collect();
        judged(
            "totals",
            "under heavy load Best-fit or Half-fit takes the most time in malloc",
            Some("in all 4 heavy cases"),
            &heavy,
            |row| matches!(row.most(), Some("best-fit" | "half-fit")),
            0.8,
        )
    }

    fn cheapest_free(&self) -> JudgedClaim {
        let rows = self.rows(Experiment::Times, "free_sum", |(mean, _)| mean);
        judged(
            "cheapest-free",
            "tcmalloc takes the least time in free",
            Some("in 11 of 12 cases"),
            &rows,
            |row| row.least() == Some("tcmalloc"),
            0.8,
        )
    }

    fn half_wastes_most(&self) -> JudgedClaim {
        let rows = self.rows(Experiment::Fragments, "waste_percent", |(mean, _)| mean);
        judged(
            "half-fit-wastes",
            "Half-fit wastes the most",
            Some("in all 12 cases"),
            &rows,
            |row| row.most() == Some("half-fit"),
            0.8,
        )
    }

    fn wastes_less_than_fits(&self) -> JudgedClaim {
        let rows = self.rows(Experiment::Fragments, "waste_percent", |(mean, _)| mean);
        judged(
            "wastes-less",
            "nMART wastes less than Best-fit, First-fit and Half-fit",
            Some("in all 12 cases"),
            &rows,
            |row| row.is_below("nmart", &["best-fit", "first-fit", "half-fit"]),
            0.8,
        )
    }

    /// Judges the waste without headers, a claim of ours: the source's figure is smaller than
    /// nMART's own headers are.
    fn wastes_less_without_headers(&self) -> JudgedClaim {
        let rows = self.rows(
            Experiment::Fragments,
            "payload_waste_percent",
            |(mean, _)| mean,
        );
        judged(
            "wastes-less-without-headers",
            "the same without the blocks' headers",
            None,
            &rows,
            |row| row.is_below("nmart", &["best-fit", "first-fit", "half-fit"]),
            0.8,
        )
    }

    fn needs_less_than_caching(&self) -> JudgedClaim {
        let rows = self.rows(Experiment::Memory, "peak_kb", |(mean, _)| mean);
        judged(
            "memory",
            "nMART's peak memory is below tcmalloc's and Hoard's",
            Some("in all 16 cases"),
            &rows,
            |row| row.is_below("nmart", &["tcmalloc", "hoard"]),
            0.8,
        )
    }

    fn shares_no_lines(&self) -> JudgedClaim {
        let rows = self.rows(Experiment::Sharing, "seconds", |(mean, _)| mean);
        judged(
            "sharing",
            "nMART is the fastest where an allocator can make threads share cache lines",
            Some("in both cases; tcmalloc five times slower"),
            &rows,
            |row| row.least() == Some("nmart"),
            0.8,
        )
    }

    fn frees_of_others(&self) -> JudgedClaim {
        let rows = self.rows(Experiment::Larson, "seconds", |(mean, _)| mean);
        judged(
            "larson",
            "where threads free each other's blocks nMART is not the fastest",
            Some("fourth of seven"),
            &rows,
            |row| row.least() != Some("nmart"),
            0.8,
        )
    }

    fn remote(&self) -> JudgedClaim {
        let mut rows = self.synthetic("remote");
        rows.retain(|row| row.values.contains_key("nmart"));
        judged(
            "remote",
            "with remote memory only nMART is the fastest",
            Some("in all 12 cases, by 8 to 30 %"),
            &rows,
            |row| row.least() == Some("nmart"),
            0.8,
        )
    }

    fn local(&self) -> JudgedClaim {
        judged(
            "local",
            "with local memory TLSF is the fastest",
            Some("in 11 of 12 cases, nMART second in 10"),
            &self.synthetic("local"),
            |row| row.least() == Some("tlsf"),
            0.8,
        )
    }

    fn synthetic(&self, side: &str) -> Vec<Row<'_>> {
        let models = [Experiment::Mean, Experiment::Cdf].into_iter();
        let rows = models.flat_map(|e| self.rows(e, "seconds", |(mean, _)| mean));
        rows.filter(|row| row.workload.ends_with(side)).collect()
    }
}

/// A workload's values by allocator.
struct Row<'a> {
    workload: &'a str,
    values: BTreeMap<&'static str, f64>,
}

impl Row<'_> {
    fn least(&self) -> Option<&'static str> {
        let least = self.values.iter().min_by(|a, b| a.1.total_cmp(b.1));
        least.map(|(id, _)| *id)
    }

    fn most(&self) -> Option<&'static str> {
        let most = self.values.iter().max_by(|a, b| a.1.total_cmp(b.1));
        most.map(|(id, _)| *id)
    }

    /// Below all of those that are there, of which there is one at least.
    fn is_below(&self, id: &str, others: &[&str]) -> bool {
        let Some(own) = self.values.get(id) else {
            return false;
        };
        let others: Vec<f64> = others
            .iter()
            .filter_map(|id| self.values.get(id).copied())
            .collect();
        !others.is_empty() && others.iter().all(|other| own < other)
    }
}

/// Counts the rows that agree: with a share above `enough` the answer is yes, with none no.
fn judged(
    id: &'static str,
    claim: &'static str,
    published: Option<&'static str>,
    rows: &[Row],
    agrees: impl Fn(&Row) -> bool,
    enough: f64,
) -> JudgedClaim {
    let agreeing: Vec<&str> = rows
        .iter()
        .filter(|row| agrees(row))
        .map(|row| row.workload)
        .collect();
    let share = agreeing.len() as f64 / rows.len().max(1) as f64;
    let answer = match rows.len() {
        0 => Answer::CannotTell,
        _ if share > enough => Answer::Yes,
        _ if share <= 1.0 - enough => Answer::No,
        _ => Answer::InPart,
    };
    let because = match rows.len() {
        0 => "it was not measured, or there is nothing to compare with".to_owned(),
        count if agreeing.is_empty() => format!("in none of {count} cases"),
        count if agreeing.len() == count => format!("in all {count} cases"),
        count => format!(
            "in {} of {count} cases: {}",
            agreeing.len(),
            agreeing.join(", ")
        ),
    };
    JudgedClaim {
        id,
        claim,
        published,
        answer,
        because,
        explained: Vec::new(),
    }
}
