//! One engine for studies: what each of them has in common.
//!
//! A [`Study`] says which cases there are, how one is run once, and what claims come of the
//! figures. The engine does the rest. The runs of a round go round its cases, beginning with
//! another one each time, so that what slows the machine down for a while slows all of them. A run
//! that others disturbed is made again. Each run is kept when it is there, so that whatever stops a
//! study, it can be gone on with.

use std::fmt::Debug;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use hearth_sys::System;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::StudyError;
use crate::ending::{End, Outcome};
use crate::judging::JudgedClaim;
use crate::progress::{Progress, Watched};
use crate::results::{self, About, Cell, Figures, File, Folder, Found};
use crate::surroundings;

/// The figure that says how many cores others kept busy during a run, where a study measures it.
pub const OTHERS: &str = "others_cores";
/// A run in which others kept more of the cores busy is made again, as few cores leave no room for
/// others.
const DISTURBED: f64 = 0.1;
/// Tries of a run at most; then the least disturbed counts.
const TRIES: u32 = 3;
/// Interval at which measurements are written down.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// A study's experiments.
pub trait Experiment: Copy + Eq + Serialize + DeserializeOwned + Debug + 'static {
    /// All, in the order in which they run.
    fn all() -> Vec<Self>;
    /// The name on the command line and in file names.
    fn id(self) -> &'static str;
    /// Its purpose, in one line.
    fn title(self) -> &'static str;
}

/// The names and titles of a study's experiments, in the order in which they run.
#[must_use]
pub fn listed<E: Experiment>() -> Vec<(&'static str, &'static str)> {
    E::all().into_iter().map(|e| (e.id(), e.title())).collect()
}

/// The experiments of these names.
///
/// # Errors
/// [`StudyError::UnknownExperiment`] if there is none of a name.
pub fn experiments<E: Experiment>(names: &[String]) -> Result<Vec<E>, StudyError> {
    let named = |name: &String| {
        let found = E::all().into_iter().find(|e| e.id() == name);
        found.ok_or_else(|| StudyError::UnknownExperiment {
            given: name.clone(),
            known: E::all().into_iter().map(E::id).collect(),
        })
    };
    names.iter().map(named).collect()
}

/// Defines a study's experiments: names, and what each measures.
macro_rules! define_experiments {
    ($($name:ident = $id:literal: $title:literal,)*) => {
        /// An experiment of the study.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Experiment {
            $(#[doc = $title] $name,)*
        }

        impl Experiment {
            /// All, in the order in which they run.
            pub const ALL: [Experiment; [$($id),*].len()] = [$(Experiment::$name),*];

            /// The name on the command line and in file names.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Experiment::$name => $id,)*
                }
            }

            /// Its purpose, in one line.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Experiment::$name => $title,)*
                }
            }
        }

        impl $crate::study::Experiment for Experiment {
            fn all() -> Vec<Self> {
                Experiment::ALL.to_vec()
            }

            fn id(self) -> &'static str {
                Experiment::id(self)
            }

            fn title(self) -> &'static str {
                Experiment::title(self)
            }
        }
    };
}
pub(crate) use define_experiments;

/// One way of running something, of which figures are taken.
pub trait Case: Clone + PartialEq + Serialize + DeserializeOwned + Debug {
    /// A study's experiments.
    type Experiment: Experiment;

    /// The experiment that it belongs to.
    fn experiment(&self) -> Self::Experiment;

    /// Describes it in a few words, for people.
    fn words(&self) -> String;

    /// Its cells in a table, with commas between.
    fn row(&self) -> String;

    /// True if its runs belong together, as some figures come of all of them: then they are made
    /// again from the first on if one is missing.
    fn is_whole(&self) -> bool {
        false
    }
}

/// Cases whose runs take turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Round<C> {
    /// The cases.
    pub cases: Vec<C>,
    /// Runs of each.
    pub repeats: u32,
}

/// End of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// Well, with these figures.
    Well(Vec<(String, f64)>),
    /// The run failed; the reason, in words.
    Failed(String),
    /// It was stopped.
    Cancelled,
}

impl Ended {
    fn others(figures: &[(String, f64)]) -> f64 {
        let found = figures.iter().find(|(name, _)| name == OTHERS);
        found.map_or(0.0, |(_, cores)| *cores)
    }
}

/// Options of a study.
pub trait Choice: Clone + PartialEq + Serialize + DeserializeOwned + Debug {
    /// A look, not a result?
    fn is_quick(&self) -> bool;

    /// Checks the options.
    ///
    /// # Errors
    /// A count or a time that makes no sense.
    fn check(&self) -> Result<(), StudyError>;

    /// Names the difference that keeps results made with these options from being joined with
    /// results made with others.
    fn differs(&self, other: &Self) -> Option<&'static str>;
}

/// A study: its runs and its claims.
pub trait Study: Sized + 'static {
    /// The name on the command line, and of its page.
    const NAME: &'static str;
    /// The version of the form of `results.json`.
    const FORMAT: u32;
    /// Columns of tables before the figures, with commas between.
    const COLUMNS: &'static str;
    /// A run.
    type Case: Case;
    /// The study's options.
    type Options: Choice;
    /// Further facts to keep: the cores that are used, what their caches hold, versions of
    /// programs.
    type Site: Clone + PartialEq + Serialize + DeserializeOwned + Debug;

    /// Looks at the machine and the programs.
    ///
    /// # Errors
    /// The machine or the programs are unfit for the study.
    fn site(
        &mut self,
        system: &dyn System,
        options: &Self::Options,
    ) -> Result<Self::Site, StudyError>;

    /// Names the difference that keeps results of one site from being joined with those of another.
    fn differs(was: &Self::Site, is: &Self::Site) -> Option<&'static str>;

    /// Prepares for runs, and adds the notes on them to the results.
    ///
    /// # Errors
    /// Something that all runs need is not available.
    fn begin(
        &mut self,
        system: &dyn System,
        folder: &Path,
        results: &mut Results<Self>,
    ) -> Result<(), StudyError>;

    /// Lists the runs, in order.
    ///
    /// # Errors
    /// Something that all runs need is not available.
    fn rounds(&mut self, results: &mut Results<Self>)
    -> Result<Vec<Round<Self::Case>>, StudyError>;

    /// Prepares for those cases of a round of which runs are missing.
    fn open(&mut self, _cases: &[Self::Case], _results: &Results<Self>) {}

    /// Runs a case once: the run of that number, from 0.
    ///
    /// # Errors
    /// No run can be made.
    fn run(
        &mut self,
        system: &dyn System,
        case: &Self::Case,
        run: u32,
        results: &Results<Self>,
        cancel: &AtomicBool,
    ) -> Result<Ended, StudyError>;

    /// Adds to the results what a run found beside its figures.
    fn keep(&mut self, _results: &mut Results<Self>) {}

    /// Ends the preparations of a round.
    fn close(&mut self) {}

    /// Adds the notes after the runs to the results.
    fn end(&mut self, _results: &mut Results<Self>) {}

    /// A line that says which study this is and where it ran.
    fn title(results: &Results<Self>) -> String;

    /// Judges the claims.
    fn verdicts(results: &Results<Self>) -> Vec<JudgedClaim>;

    /// The tables: for each experiment figures over the runs, and every run.
    fn tables(results: &Results<Self>) -> Vec<File> {
        let mut files = Vec::new();
        for experiment in <Self::Case as Case>::Experiment::all() {
            let rows = results.rows(experiment);
            if !rows.is_empty() {
                files.extend(results::tables(experiment.id(), Self::COLUMNS, &rows));
            }
        }
        files
    }

    /// The page.
    fn page(&self, results: &Results<Self>) -> String;

    /// Pictures beside it, for a page that does not have them all.
    fn charts(_results: &Results<Self>) -> Vec<File> {
        Vec::new()
    }
}

/// All that a study found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Results<S: Study> {
    /// The run that they belong to.
    #[serde(flatten)]
    pub about: About,
    /// The site: cores, caches, versions of programs.
    #[serde(flatten)]
    pub site: S::Site,
    /// The options of the run.
    pub options: S::Options,
    /// Runs.
    pub cells: Vec<Cell<S::Case>>,
}

impl<S: Study> Results<S> {
    /// Creates results without runs.
    #[must_use]
    pub fn new(machine: results::Machine, site: S::Site, options: S::Options) -> Results<S> {
        Results {
            about: About::new(S::FORMAT, machine),
            site,
            options,
            cells: Vec::new(),
        }
    }

    /// An experiment's cells.
    pub fn of(
        &self,
        experiment: <S::Case as Case>::Experiment,
    ) -> impl Iterator<Item = &Cell<S::Case>> {
        let cells = self.cells.iter();
        cells.filter(move |cell| cell.case.experiment() == experiment)
    }

    /// An experiment's rows in tables.
    #[must_use]
    pub fn rows(&self, experiment: <S::Case as Case>::Experiment) -> Vec<(String, &Figures)> {
        let cells = self.of(experiment);
        cells.map(|cell| (cell.case.row(), &cell.figures)).collect()
    }

    /// The cell of a case.
    #[must_use]
    pub fn cell(&self, case: &S::Case) -> Option<&Cell<S::Case>> {
        self.cells.iter().find(|cell| cell.case == *case)
    }

    /// Returns the indices of the cells of `cases`, making cells if need be.
    fn places(&mut self, cases: &[S::Case]) -> Vec<usize> {
        let place = |case: &S::Case| {
            let found = self.cells.iter().position(|cell| cell.case == *case);
            found.unwrap_or_else(|| {
                self.cells.push(Cell::new(case.clone()));
                self.cells.len() - 1
            })
        };
        let mut places: Vec<usize> = Vec::new();
        for at in cases.iter().map(place) {
            if !places.contains(&at) {
                places.push(at);
            }
        }
        places
    }

    /// Drops the cells of a round whose runs belong together and are not all there.
    fn drop_parts(&mut self, round: &Round<S::Case>) {
        let is_part = |cell: &Cell<S::Case>| {
            cell.case.is_whole()
                && cell.lacks(round.repeats as usize)
                && round.cases.contains(&cell.case)
        };
        self.cells.retain(|cell| !is_part(cell));
    }
}

impl<S: Study> Found for Results<S> {
    const FORMAT: u32 = S::FORMAT;

    fn about(&self) -> &About {
        &self.about
    }

    fn about_mut(&mut self) -> &mut About {
        &mut self.about
    }

    fn differs(&self, empty: &Self) -> Option<&'static str> {
        S::differs(&self.site, &empty.site).or_else(|| self.options.differs(&empty.options))
    }

    fn adopt(&mut self, empty: Self) {
        self.options = empty.options;
    }

    fn tables(&self) -> Vec<File> {
        let mut files = S::tables(self);
        files.push(results::claims(&S::verdicts(self)));
        files
    }
}

/// Runs a study and keeps everything in `folder`.
///
/// `progress` is called before each run. When `cancel` becomes true the run under way is the last;
/// with `resume` the study continues with the missing runs. The calling thread may be kept to the
/// study's cores.
///
/// # Errors
/// Options that make no sense, a folder that is in use, a machine that does not say what it is,
/// something that the study needs and that is not there.
pub fn run<S: Study>(
    study: &mut S,
    system: &dyn System,
    options: &S::Options,
    folder: &Path,
    resume: bool,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Results<S>, Outcome), StudyError> {
    options.check()?;
    let site = study.site(system, options)?;
    let empty = Results::new(surroundings::machine(system)?, site, options.clone());
    let (folder, mut results) = Folder::open(folder, empty, resume)?;
    let about = &mut results.about;
    // Notes of an earlier part are dropped, if this continues it; disturbances of runs are in their
    // figures.
    about
        .notes
        .retain(|note| !OF_A_PART.iter().any(|begin| note.starts_with(begin)));
    let is_debug_build = about.is_debug_build;
    for note in surroundings::notes(system, &about.machine, options.is_quick(), is_debug_build) {
        about.note(note);
    }
    study.begin(system, folder.path(), &mut results)?;
    let mut session = Session {
        study,
        system,
        folder: &folder,
        // The system's times are too coarse for the short runs of a quick study.
        tries: if options.is_quick() { 1 } else { TRIES },
        watched: Watched::new(cancel, progress),
        saved: Instant::now(),
    };
    folder.fill(system, results, |results| {
        let ended = session.all(results);
        note_disturbed(&mut results.about, &results.cells);
        session.study.end(results);
        ended
    })
}

/// Begins of notes that are of the part in which they were made.
const OF_A_PART: [&str; 2] = ["the machine was not idle", "the hypervisor took"];
/// The end of a note that changes as a study continues.
const AMID: &str = "runs were made while others kept more than a tenth of a core busy, each time that they were tried";

fn note_disturbed<C>(about: &mut About, cells: &[Cell<C>]) {
    let runs = cells.iter().flat_map(|cell| cell.runs(OTHERS));
    let (all, disturbed) = runs.fold((0, 0), |(all, disturbed), others| {
        (all + 1, disturbed + usize::from(*others >= DISTURBED))
    });
    about.notes.retain(|note| !note.ends_with(AMID));
    if disturbed > 0 {
        about.note(format!("{disturbed} of {all} {AMID}"));
    }
}

struct Session<'a, S: Study> {
    study: &'a mut S,
    system: &'a dyn System,
    folder: &'a Folder<Results<S>>,
    tries: u32,
    watched: Watched<'a>,
    saved: Instant,
}

impl<S: Study> Session<'_, S> {
    fn all(&mut self, results: &mut Results<S>) -> Result<(), End> {
        let rounds = self.study.rounds(results)?;
        let runs = rounds.iter();
        let runs = runs.map(|round| round.repeats * round.cases.len() as u32);
        self.watched.plan(runs.sum());
        for round in rounds {
            results.drop_parts(&round);
            let ended = self.round(results, &round);
            results.drop_parts(&round);
            self.study.close();
            ended?;
            self.folder.save(results)?;
        }
        Ok(())
    }

    fn round(&mut self, results: &mut Results<S>, round: &Round<S::Case>) -> Result<(), End> {
        let planned = round.cases.len();
        let places = results.places(&round.cases);
        self.watched
            .skip(round.repeats * (planned - places.len()) as u32);
        let is_open = |place: &&usize| results.cells[**place].lacks(round.repeats as usize);
        let left: Vec<S::Case> = places
            .iter()
            .filter(is_open)
            .map(|place| results.cells[*place].case.clone())
            .collect();
        if !left.is_empty() {
            self.watched.go_on()?;
            self.study.open(&left, results);
        }
        for run in 0..round.repeats {
            for turn in 0..places.len() {
                let place = places[(turn + run as usize) % places.len()];
                self.one(results, place, run)?;
            }
        }
        Ok(())
    }

    /// A run of a cell, if it is not there yet.
    fn one(&mut self, results: &mut Results<S>, place: usize, run: u32) -> Result<(), End> {
        let cell = &results.cells[place];
        if !cell.lacks(run as usize + 1) {
            self.watched.skip(1);
            return Ok(());
        }
        let case = cell.case.clone();
        self.watched.tell(|| case.words())?;
        match self.undisturbed(&case, run, results)? {
            Ended::Well(figures) => {
                for (figure, value) in figures {
                    results.cells[place].push(&figure, value);
                }
                self.study.keep(results);
            }
            Ended::Failed(why) => {
                results.about.note(format!("{}: {why}", case.words()));
                results.cells[place].failed = Some(why);
            }
            Ended::Cancelled => return Err(End::Cancelled),
        }
        if self.saved.elapsed() > SAVE_EVERY {
            self.saved = Instant::now();
            self.folder.save(results)?;
        }
        Ok(())
    }

    /// The least disturbed of a few runs: the first in which others left the cores alone.
    fn undisturbed(
        &mut self,
        case: &S::Case,
        run: u32,
        results: &Results<S>,
    ) -> Result<Ended, StudyError> {
        let mut best: Option<Vec<(String, f64)>> = None;
        for _ in 0..self.tries {
            let ended = self
                .study
                .run(self.system, case, run, results, self.watched.cancel)?;
            let Ended::Well(figures) = ended else {
                return Ok(ended);
            };
            let others = Ended::others(&figures);
            if best
                .as_ref()
                .is_none_or(|best| others < Ended::others(best))
            {
                best = Some(figures);
            }
            if others < DISTURBED {
                break;
            }
        }
        Ok(best.map_or(Ended::Cancelled, Ended::Well))
    }
}
