//! The three words behind `hearth study`: `list`, `run` and `tool`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use hearth_machine::profile::Profile;
use hearth_studies::cache_impact::compare;
use hearth_studies::cache_impact::record::Sweep;
use hearth_studies::cache_impact::results::PAGE;
use hearth_studies::cache_impact::verdict::Verdict;
use hearth_studies::cache_impact::{
    Defect, Experiment, Folder, Options, Outcome, Results, Sizes, Start, page,
};
use hearth_studies::{STUDIES, StudyError, nmart};
use hearth_sys::Linux;

use hearth_study_arguments::{self, Action, RunStudy};
use hearth_terminal::failure::Failure;
use hearth_terminal::interruption::Interruption;
use hearth_terminal::output;
use hearth_terminal::progress::Bar;
use hearth_text::cause;

use crate::course::{Shown, conduct, interrupted};
use crate::{events, memcached, message, multicore, tool};

pub(crate) fn study(action: &Action) -> Result<(), Failure> {
    match action {
        Action::List => list(),
        Action::Run(run_arguments) => run(run_arguments),
        Action::Tool(tool) => tool::tool(&tool.tool),
    }
}

fn list() -> Result<(), Failure> {
    let mut text = String::new();
    for study in STUDIES {
        text += &format!("{}: {}\n", study.name, study.title);
        let experiments = (study.experiments)();
        let names = experiments.iter().map(|(name, _)| name.len());
        let width = names.max().unwrap_or(0);
        for (name, title) in experiments {
            text += &format!("  {name:<width$}  {title}\n");
        }
    }
    output::write(text)
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

fn options(arguments: &RunStudy) -> Result<Options, StudyError> {
    let experiments = arguments.experiments.iter();
    let experiments: Result<_, _> = experiments.map(|text| Experiment::parse(text)).collect();
    let defects = arguments.defects.iter();
    let defects: Result<_, _> = defects.map(|text| Defect::parse(text)).collect();
    Ok(Options {
        quick: arguments.quick,
        repeats: arguments.repeats,
        sweeps: arguments.sweeps.unwrap_or(1),
        sizes: match arguments.sizes {
            None | Some(hearth_study_arguments::Sizes::Dense) => Sizes::Dense,
            Some(hearth_study_arguments::Sizes::Powers) => Sizes::Powers,
        },
        experiments: experiments?,
        defects: defects?,
        is_aligned: !arguments.unaligned,
        start: match arguments.start {
            None | Some(hearth_study_arguments::Start::Tick) => Start::Tick,
            Some(hearth_study_arguments::Start::Interrupt) => Start::Interrupt,
        },
        ..Options::default()
    })
}

fn run(arguments: &RunStudy) -> Result<(), Failure> {
    let study = hearth_studies::study(&arguments.name).map_err(failure)?;
    if let Some(option) = arguments.foreign(study.name) {
        let study = study.name;
        return Err(failure(StudyError::NotOfThisStudy { study, option }));
    }
    let path = arguments
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(study.name));
    match study.name {
        "nmart" => run_nmart(arguments, &path),
        "insense-multicore" => multicore::run(arguments, &path),
        "memcached" => memcached::run(arguments, &path),
        "event-patterns" => events::run(arguments, &path),
        "message-passing" => message::run(arguments, profile(arguments)?.as_ref(), &path),
        _ => run_cache_impact(arguments, &path),
    }
}

fn run_cache_impact(arguments: &RunStudy, path: &Path) -> Result<(), Failure> {
    let options = options(arguments).map_err(failure)?;
    // Before the work rather than after it.
    let profile = profile(arguments)?;
    let interruption = Interruption::watch();
    let mut bar = Bar::start();
    let found = hearth_studies::cache_impact::run(
        &Linux,
        &options,
        path,
        arguments.resume,
        &interruption.flag,
        &mut |progress| {
            let what = match progress.bytes {
                Some(bytes) => format!("{}, {bytes} bytes", progress.experiment.title()),
                None => progress.experiment.title().to_owned(),
            };
            bar.show(progress.fraction, &what);
        },
    );
    drop(bar);
    let (results, outcome) = found.map_err(failure)?;
    let page = draw(path, &results, profile.as_ref())?;
    if outcome == Outcome::Cancelled {
        return Err(interrupted(&interruption, path));
    }
    output::write(summary(&results, &page))
}

const NMART: Shown<nmart::Results> = Shown {
    page: (nmart::results::PAGE, nmart::page::page),
    charts: |_| Vec::new(),
    title: |results| {
        format!(
            "Allocators in bounded time on {}",
            results.about.machine.processor
        )
    },
    claims: |results| nmart::verdict::Evidence::measured(results).verdicts(),
};

fn run_nmart(arguments: &RunStudy, path: &Path) -> Result<(), Failure> {
    let experiments = arguments.experiments.iter();
    let experiments: Result<_, _> = experiments
        .map(|text| nmart::Experiment::parse(text))
        .collect();
    let options = nmart::Options {
        quick: arguments.quick,
        repeats: arguments.repeats,
        experiments: experiments.map_err(failure)?,
        allocators: arguments.allocators.clone(),
        workloads: arguments.workloads.clone(),
        objects: arguments.objects.clone(),
    };
    conduct(path, &NMART, |cancel, progress| {
        nmart::run(&Linux, &options, path, arguments.resume, cancel, progress)
    })
}

/// The profile that was named, or the kept one if there is one that can be read.
fn profile(arguments: &RunStudy) -> Result<Option<Profile>, Failure> {
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

fn draw(path: &Path, results: &Results, profile: Option<&Profile>) -> Result<PathBuf, Failure> {
    let html = page::page(results, profile);
    let folder = Folder::at(path);
    folder.replace(PAGE, html.as_bytes()).map_err(failure)
}

fn summary(results: &Results, page: &Path) -> String {
    let evidence = compare::evidence(results, Sweep::Exchange);
    let mut text = format!("Cache impact on {}\n", results.site.cpu);
    for verdict in evidence.verdicts() {
        text += &said(&verdict);
    }
    for note in &results.notes {
        text += &format!("note: {note}\n");
    }
    if let Some(share) = results.steal_share {
        text += &format!(
            "note: the hypervisor took {:.1} % of this machine's time\n",
            100.0 * share
        );
    }
    text += &format!("\nThe tables are beside the page, {}.\n", page.display());
    text
}

fn said(verdict: &Verdict) -> String {
    let mut text = format!(
        "\n{}  {}\n     published  {}\n     here       {}: {}\n",
        verdict.question,
        verdict.asks,
        verdict.published_words,
        verdict.answer.word(),
        verdict.because
    );
    for limit in &verdict.cannot_show {
        text += &format!("     not shown  {limit}\n");
    }
    text
}
