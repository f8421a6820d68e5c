//! `hearth study run cache-impact`.

use std::path::{Path, PathBuf};

use hearth_machine::profile::Profile;
use hearth_studies::StudyError;
use hearth_studies::cache_impact::compare;
use hearth_studies::cache_impact::record::Sweep;
use hearth_studies::cache_impact::results::PAGE;
use hearth_studies::cache_impact::verdict::JudgedQuestion;
use hearth_studies::cache_impact::{
    CacheImpactOptions, Defect, Experiment, Folder, Outcome, Results, Sizes, Start, page,
};
use hearth_study_arguments::{self as arguments, RunStudy};
use hearth_sys::Linux;
use hearth_terminal::failure::Failure;
use hearth_terminal::interruption::Interruption;
use hearth_terminal::output;
use hearth_terminal::progress::Bar;

use crate::course::{failure, interrupted, profile};

pub(crate) fn run(arguments: &RunStudy, path: &Path) -> Result<(), Failure> {
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

fn options(asked: &RunStudy) -> Result<CacheImpactOptions, StudyError> {
    let experiments = asked.experiments.iter();
    let experiments: Result<_, _> = experiments.map(|text| Experiment::parse(text)).collect();
    let defects = asked.defects.iter();
    let defects: Result<_, _> = defects.map(|text| Defect::parse(text)).collect();
    Ok(CacheImpactOptions {
        quick: asked.quick,
        repeats: asked.repeats,
        sweeps: asked.sweeps.unwrap_or(1),
        sizes: match asked.sizes {
            None | Some(arguments::Sizes::Dense) => Sizes::Dense,
            Some(arguments::Sizes::Powers) => Sizes::Powers,
        },
        experiments: experiments?,
        defects: defects?,
        is_aligned: !asked.unaligned,
        start: match asked.start {
            None | Some(arguments::Start::Tick) => Start::Tick,
            Some(arguments::Start::Interrupt) => Start::Interrupt,
        },
        ..CacheImpactOptions::default()
    })
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

fn said(verdict: &JudgedQuestion) -> String {
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
