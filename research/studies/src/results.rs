//! Results that all studies keep: the run they are of, figures by run, and a folder with
//! `results.json`, replaced whole, and tables for each experiment. If a study is stopped for any
//! reason, the results so far are good.

use std::collections::BTreeMap;
use std::fs;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hearth_stats::Summary;
use hearth_sys::System;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ending::{self, End, Outcome};
use crate::judging::JudgedClaim;
use crate::surroundings::Stolen;
use crate::{StudyError, kept};

/// The name of the file with everything.
pub const RESULTS: &str = "results.json";

/// The machine that results come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// The kernel's release.
    pub kernel: String,
    /// The hypervisor, if this is a virtual machine.
    pub hypervisor: Option<String>,
    /// Hardware threads that may be used.
    pub threads: usize,
    /// Nodes with memory that may be used.
    pub nodes: Vec<usize>,
}

/// The run that results belong to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The format of the file.
    pub format: u32,
    /// The version of the Hearth that measured.
    pub hearth_version: String,
    /// Built without optimisation.
    pub is_debug_build: bool,
    /// The machine.
    pub machine: Machine,
    /// Time taken so far, in seconds.
    pub seconds: f64,
    /// All that was asked for is there.
    pub is_complete: bool,
    /// Notes on what was left out or went differently, in sentences without a full stop.
    pub notes: Vec<String>,
}

impl About {
    /// Describes a run that begins, by this Hearth.
    #[must_use]
    pub fn new(format: u32, machine: Machine) -> About {
        About {
            format,
            hearth_version: env!("CARGO_PKG_VERSION").to_owned(),
            is_debug_build: cfg!(debug_assertions),
            machine,
            seconds: 0.0,
            is_complete: false,
            notes: Vec::new(),
        }
    }

    /// Says something once.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

/// Figures by name, one a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<String, Vec<f64>>);

impl Figures {
    /// Notes a run's figure.
    pub fn push(&mut self, figure: &str, value: f64) {
        self.0.entry(figure.to_owned()).or_default().push(value);
    }

    /// Replaces whatever there was.
    pub fn set(&mut self, figure: &str, values: Vec<f64>) {
        self.0.insert(figure.to_owned(), values);
    }

    /// A figure of all runs.
    #[must_use]
    pub fn runs(&self, figure: &str) -> &[f64] {
        self.0.get(figure).map_or(&[], Vec::as_slice)
    }

    /// A figure over the runs.
    #[must_use]
    pub fn summary(&self, figure: &str) -> Option<Summary> {
        Summary::of(self.runs(figure))
    }

    /// All figures, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[f64])> {
        self.0
            .iter()
            .map(|(name, values)| (name.as_str(), values.as_slice()))
    }
}

/// A case's runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell<C> {
    /// The case that was run.
    pub case: C,
    /// The measured figures.
    pub figures: Figures,
    /// The reason why it could not be run, if so.
    pub failed: Option<String>,
}

impl<C> Cell<C> {
    /// Creates a cell without runs.
    #[must_use]
    pub fn new(case: C) -> Cell<C> {
        Cell {
            case,
            figures: Figures::default(),
            failed: None,
        }
    }

    /// Notes a run's figure.
    pub fn push(&mut self, figure: &str, value: f64) {
        self.figures.push(figure, value);
    }

    /// Runs that are there: those of the figure that was taken most often.
    #[must_use]
    pub fn count(&self) -> usize {
        let counts = self.figures.iter().map(|(_, values)| values.len());
        counts.max().unwrap_or(0)
    }

    /// True if any of `runs` runs is missing and can be made.
    pub(crate) fn lacks(&self, runs: usize) -> bool {
        self.failed.is_none() && self.count() < runs
    }

    /// A figure of all runs.
    #[must_use]
    pub fn runs(&self, figure: &str) -> &[f64] {
        self.figures.runs(figure)
    }

    /// A figure over the runs.
    #[must_use]
    pub fn summary(&self, figure: &str) -> Option<Summary> {
        self.figures.summary(figure)
    }

    /// The median of a figure.
    #[must_use]
    pub fn median(&self, figure: &str) -> Option<f64> {
        self.summary(figure).map(|summary| summary.median)
    }
}

/// A file's name and what it holds.
pub type File = (String, String);

/// The two tables of an experiment: figures over the runs, and every run. A row begins with what
/// the head names.
#[must_use]
pub fn tables(experiment: &str, head: &str, rows: &[(String, &Figures)]) -> [File; 2] {
    let mut summaries = format!("{head},figure,runs,median,least,most,mean,deviation\n");
    for (begin, figures) in rows {
        for (figure, values) in figures.iter() {
            if let Some(of) = Summary::of(values) {
                let (count, median, least) = (values.len(), of.median, of.least);
                let (most, mean, deviation) = (of.most, of.mean, of.deviation);
                summaries += &format!(
                    "{begin},{figure},{count},{median},{least},{most},{mean},{deviation}\n"
                );
            }
        }
    }
    [
        (format!("{experiment}.csv"), summaries),
        (format!("{experiment}.runs.csv"), runs(head, rows)),
    ]
}

/// The table of every run.
#[must_use]
pub fn runs(head: &str, rows: &[(String, &Figures)]) -> String {
    let mut text = format!("{head},figure,run,value\n");
    for (begin, figures) in rows {
        for (figure, values) in figures.iter() {
            for (run, value) in values.iter().enumerate() {
                text += &format!("{begin},{figure},{},{value}\n", run + 1);
            }
        }
    }
    text
}

/// The table of claims: what each is called, the answer, and why.
#[must_use]
pub fn claims(verdicts: &[JudgedClaim]) -> File {
    let mut text = String::from("claim,answer,because\n");
    for verdict in verdicts {
        let because = verdict.because.replace('"', "'");
        text += &format!("{},{},\"{because}\"\n", verdict.id, verdict.word());
    }
    ("claims.csv".to_owned(), text)
}

/// All that a study finds.
pub trait Found: Serialize + DeserializeOwned {
    /// The version of the form of `results.json`.
    const FORMAT: u32;

    /// The run that they belong to.
    fn about(&self) -> &About;

    /// The same, for changes.
    fn about_mut(&mut self) -> &mut About;

    /// Names the difference, beside the machine and the build, that keeps these results from being
    /// continued with the options of `empty`; `None` if there is none.
    fn differs(&self, empty: &Self) -> Option<&'static str>;

    /// Takes over what `empty` asks for.
    fn adopt(&mut self, empty: Self);

    /// The tables that lie beside it.
    fn tables(&self) -> Vec<File>;
}

/// The folder of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder<R> {
    path: PathBuf,
    _found: PhantomData<fn() -> R>,
}

impl<R: Found> Folder<R> {
    /// The folder at a path, whatever is in it.
    #[must_use]
    pub fn at(path: &Path) -> Folder<R> {
        Folder {
            path: path.to_owned(),
            _found: PhantomData,
        }
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens or makes the folder, and reads its contents if the run is to be continued.
    ///
    /// # Errors
    /// It holds results and `resume` is false; they were made on another machine or with other
    /// options; a file cannot be read, written or understood.
    pub fn open(path: &Path, empty: R, resume: bool) -> Result<(Folder<R>, R), StudyError> {
        let folder = Folder::at(path);
        fs::create_dir_all(path).map_err(|error| kept::file("make the folder", path, error))?;
        let Some(mut earlier) = folder.results()? else {
            return Ok((folder, empty));
        };
        let (was, is) = (earlier.about(), empty.about());
        let differs = if was.machine != is.machine {
            Some("the machine")
        } else if was.is_debug_build != is.is_debug_build {
            Some("how Hearth was built")
        } else {
            earlier.differs(&empty)
        };
        kept::go_on(path, resume, differs)?;
        earlier.adopt(empty);
        earlier.about_mut().is_complete = false;
        Ok((folder, earlier))
    }

    /// Reads the folder's results; `None` if there are none.
    ///
    /// # Errors
    /// The file cannot be read or understood.
    pub fn results(&self) -> Result<Option<R>, StudyError> {
        kept::read(&self.path.join(RESULTS), R::FORMAT)
    }

    /// Replaces `results.json` and the tables.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn save(&self, results: &R) -> Result<(), StudyError> {
        let text = serde_json::to_string(results).unwrap_or_default();
        self.replace(RESULTS, text.as_bytes())?;
        for (name, text) in results.tables() {
            self.replace(&name, text.as_bytes())?;
        }
        Ok(())
    }

    /// Gives a file new contents by one rename.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn replace(&self, name: &str, contents: &[u8]) -> Result<PathBuf, StudyError> {
        kept::replace(&self.path, name, contents)
    }

    /// Measures, and notes how long that took, what the hypervisor took meanwhile, and whether all
    /// is there. What was measured before an error is kept, too.
    pub(crate) fn fill(
        &self,
        system: &dyn System,
        mut results: R,
        measure: impl FnOnce(&mut R) -> Result<(), End>,
    ) -> Result<(R, Outcome), StudyError> {
        let begin = Instant::now();
        let stolen = Stolen::now(system);
        let outcome = ending::outcome(measure(&mut results));
        let about = results.about_mut();
        about.seconds += begin.elapsed().as_secs_f64();
        if let Some(note) = stolen.note(system) {
            about.note(note);
        }
        about.is_complete = matches!(outcome, Ok(Outcome::Complete));
        self.save(&results)?;
        Ok((results, outcome?))
    }
}
