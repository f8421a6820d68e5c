//! Parts that the pages of all studies have in common: the machine measured on, notes on the run,
//! and claims.

use hearth_draw::page::{Page, Section, Tone};

use crate::cache_impact::page::tables::sentence;
use crate::judging::{Answer, JudgedClaim};
use crate::results::About;

/// A count with its noun, in the plural where needed.
pub(crate) fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// A page that says where it was measured, with what of it, and what the study is about.
pub(crate) fn begin(title: &str, about: &About, used: &str, lead: &str) -> Page {
    let mut page = Page::new(title);
    let hypervisor = about.machine.hypervisor.as_ref();
    let hypervisor = hypervisor.map_or(String::new(), |name| format!(", virtual ({name})"));
    page.lead(&format!(
        "Measured on {}: {used}{hypervisor}.",
        about.machine.processor
    ));
    page.lead(lead);
    let notes: Vec<String> = about.notes.iter().map(|note| sentence(note)).collect();
    if !notes.is_empty() {
        page.callout(Tone::Note, "About this run", &notes);
    }
    page
}

/// The page, with how it came to be.
pub(crate) fn end(mut page: Page, study: &str, about: &About) -> String {
    page.footer(&format!(
        "hearth {} study run {study}; the figures are in the folder of this page.",
        about.hearth_version
    ));
    page.html()
}

/// Claims, judged here and as published; `there` is empty where the source has too few figures.
pub(crate) fn claims(
    mut section: Section,
    here: &[JudgedClaim],
    there: &[JudgedClaim],
    about: &About,
) -> Section {
    for (at, verdict) in here.iter().enumerate() {
        section = section.callout(tone(verdict), verdict.claim, &said(verdict, there.get(at)));
    }
    if !about.is_complete {
        section = section.text("The study is not complete: the answers rest on what there is.");
    }
    section
}

fn tone(here: &JudgedClaim) -> Tone {
    match here.answer {
        Answer::CannotTell | Answer::InPart => Tone::Note,
        Answer::Yes => Tone::Good,
        Answer::No => Tone::Bad,
    }
}

fn said(here: &JudgedClaim, there: Option<&JudgedClaim>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(published) = here.published {
        lines.push(format!("Published: {published}."));
    }
    lines.push(format!("Here: {}; {}.", here.word(), here.because));
    lines.extend(here.explained.iter().cloned());
    let differs = |there: &&JudgedClaim| here.published.is_some() && there.answer != Answer::Yes;
    if let Some(there) = there.filter(differs) {
        lines.push(format!(
            "The source's own figures by this rule: {}; {}.",
            there.word(),
            there.because
        ));
    }
    lines
}
