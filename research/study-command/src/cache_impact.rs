//! `hearth study run cache-impact`.

use std::path::Path;

use hearth_studies::StudyError;
use hearth_studies::cache_impact::compare;
use hearth_studies::cache_impact::record::Sweep;
use hearth_studies::cache_impact::verdict::JudgedQuestion;
use hearth_studies::cache_impact::{CacheImpact, CacheImpactOptions, Defect, Sizes, Start};
use hearth_studies::study::experiments;
use hearth_study_arguments::{self as arguments, RunStudy};
use hearth_terminal::failure::Failure;

use crate::course::{conduct_saying, failure, profile};

pub(crate) fn run(arguments: &RunStudy, path: &Path) -> Result<(), Failure> {
    let options = options(arguments).map_err(failure)?;
    let study = CacheImpact::new(profile(arguments)?);
    conduct_saying(study, &options, path, arguments.resume, |results| {
        let evidence = compare::evidence(results, Sweep::Exchange);
        evidence.verdicts().iter().map(said).collect()
    })
}

fn options(asked: &RunStudy) -> Result<CacheImpactOptions, StudyError> {
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
        experiments: experiments(&asked.experiments)?,
        defects: defects?,
        is_aligned: !asked.unaligned,
        start: match asked.start {
            None | Some(arguments::Start::Tick) => Start::Tick,
            Some(arguments::Start::Interrupt) => Start::Interrupt,
        },
        ..CacheImpactOptions::default()
    })
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
