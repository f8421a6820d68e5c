//! The common course of all studies: each runs with a progress bar and stops on Ctrl-C, is drawn as
//! a page, and is summarised in a few lines. Errors are reported alike, and the machine's profile
//! is read here.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::{fs, io};

use hearth_machine::profile::Profile;
use hearth_studies::judging::JudgedClaim;
use hearth_studies::results::Folder;
use hearth_studies::study::{Results, Study, run};
use hearth_studies::{Outcome, Progress, StudyError};
use hearth_study_arguments::RunStudy;
use hearth_sys::Linux;
use hearth_terminal::failure::Failure;
use hearth_terminal::interruption::Interruption;
use hearth_terminal::output;
use hearth_terminal::progress::Bar;
use hearth_text::cause;

/// Runs a study by the engine with a progress bar, stops it on Ctrl-C, and shows its results.
pub(crate) fn conduct<S: Study>(
    study: S,
    options: &S::Options,
    path: &Path,
    resume: bool,
) -> Result<(), Failure> {
    conduct_saying(study, options, path, resume, |results| {
        S::verdicts(results).iter().map(said).collect()
    })
}

/// Runs a study like [`conduct`], with words of its own for the answers.
pub(crate) fn conduct_saying<S: Study>(
    mut study: S,
    options: &S::Options,
    path: &Path,
    resume: bool,
    answers: impl FnOnce(&Results<S>) -> String,
) -> Result<(), Failure> {
    let interruption = Interruption::watch();
    let mut bar = Bar::start();
    let (cancel, mut progress) = (&interruption.flag, |progress: Progress| {
        bar.show(progress.fraction, progress.what.trim());
    });
    let found = run(
        &mut study,
        &Linux,
        options,
        path,
        resume,
        cancel,
        &mut progress,
    );
    drop(bar);
    let (results, outcome) = found.map_err(failure)?;
    let folder: Folder<Results<S>> = Folder::at(path);
    let html = study.page(&results);
    let page = folder
        .replace(&format!("{}.html", S::NAME), html.as_bytes())
        .map_err(failure)?;
    for (name, picture) in S::charts(&results) {
        folder.replace(&name, picture.as_bytes()).map_err(failure)?;
    }
    if outcome == Outcome::Cancelled {
        return Err(interrupted(&interruption, path));
    }
    let mut text = S::title(&results) + "\n";
    text += &answers(&results);
    text += "\n";
    for note in &results.about.notes {
        text += &format!("note: {note}\n");
    }
    text += &format!("\nThe tables are beside the page, {}.\n", page.display());
    output::write(text)
}

fn said(verdict: &JudgedClaim) -> String {
    let mut text = format!("\n{}\n", verdict.claim);
    if let Some(published) = verdict.published {
        text += &format!("     published  {published}\n");
    }
    text += &format!("     here       {}: {}\n", verdict.word(), verdict.because);
    for line in &verdict.explained {
        text += &format!("                {line}\n");
    }
    text
}

/// The running program, which starts itself as a tool.
pub(crate) fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::environment(format!("cannot find itself: {error}")))
}

/// The command `hearth`, which compiles programs: beside this one, or else on the PATH.
pub(crate) fn hearth() -> Result<PathBuf, Failure> {
    let beside = this_program()?.with_file_name("hearth");
    Ok(if beside.is_file() {
        beside
    } else {
        "hearth".into()
    })
}

fn interrupted(interruption: &Interruption, path: &Path) -> Failure {
    Failure::Interrupted(
        interruption.signal.load(Ordering::Relaxed),
        format!(
            "interrupted; what is measured is in {}, and --resume goes on from there",
            path.display()
        ),
    )
}

pub(crate) fn failure(error: StudyError) -> Failure {
    match error {
        StudyError::Thread { .. }
        | StudyError::Refused(_)
        | StudyError::Machine { .. }
        | StudyError::File { .. } => Failure::environment(error.to_string()),
        _ => Failure::input(error.to_string()),
    }
}

/// The profile that was named, or the kept one if there is one that can be read.
pub(crate) fn profile(arguments: &RunStudy) -> Result<Option<Profile>, Failure> {
    match &arguments.profile {
        Some(path) => read_profile(path).map(Some),
        None => Ok(hearth_sys::paths::profile_path().and_then(|path| read_profile(&path).ok())),
    }
}

/// Reads a profile; `-` is standard input.
pub(crate) fn read_profile(path: &Path) -> Result<Profile, Failure> {
    let shown = path.display();
    let text = match path.as_os_str() == "-" {
        true => io::read_to_string(io::stdin()),
        false => fs::read_to_string(path),
    };
    let text =
        text.map_err(|error| Failure::input(format!("cannot read {shown}: {}", cause(&error))))?;
    Profile::from_json(&text).map_err(|error| Failure::input(format!("{shown}: {error}")))
}
