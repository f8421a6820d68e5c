//! The study as one page: the verdicts first, then every plot of the source for this machine and,
//! beside them, for the source's own two.

mod charts;
pub(crate) mod tables;

use hearth_draw::page::{Page, Section, Tone};
use hearth_machine::profile::Profile;
use hearth_published::source::Type;

use super::compare;
use super::record::Sweep;
use super::replay::headlines;
use super::results::Results;
use super::verdict::{Evidence, JudgedQuestion};

/// Draws the page. With a `profile` of this machine our own model's predictions stand beside the
/// source's.
#[must_use]
pub fn page(results: &Results, profile: Option<&Profile>) -> String {
    let site = &results.site.place;
    let here = compare::evidence(results, Sweep::Exchange);
    let ready = compare::evidence(results, Sweep::Ready);
    let mut page = Page::new("Cache impact on inter-thread communication");
    page.lead(&format!(
        "Measured on {}: {}, {}, {}{}.",
        site.cpu,
        tables::counted(site.packages, "chip"),
        tables::counted(site.cores, "core"),
        tables::counted(site.threads, "hardware thread"),
        site.hypervisor
            .as_ref()
            .map_or(String::new(), |name| format!(", virtual ({name})")),
    ));
    page.lead(
        "One thread writes a buffer, a second one reads it. What does it cost that the reader runs \
         elsewhere? The source asked this in 2014 on a Xeon 5130 and a Xeon E5-2695 v2; its figures \
         stand beside those of this machine.",
    );
    let notes = tables::notes(results);
    if !notes.is_empty() {
        page.callout(Tone::Note, "About this run", &notes);
    }
    page.add(verdicts(results, &here, &ready));
    page.add(placement(results, &here, &ready));
    page.add(prediction(results, profile, &here));
    page.add(latency(results));
    page.add(supporting(results));
    for machine in 0..2 {
        page.add(published(machine));
    }
    page.footer(&format!(
        "hearth {} study run cache-impact; the figures are in the folder of this page. Predicted \
         lines are models, all others measurements.",
        results.about.hearth_version
    ));
    page.html()
}

fn verdicts(results: &Results, here: &Evidence, ready: &Evidence) -> Section {
    let mut section = Section::new("The research questions").text(
        "The same rules judge this machine's times and the source's published ones. A difference \
         counts as lasting when it is above 5 % of the time on one core, beyond the spread of the \
         runs, at several sizes in a row.",
    );
    let published = [Evidence::published(0), Evidence::published(1)].map(|e| e.verdicts());
    for (at, verdict) in here.verdicts().iter().enumerate() {
        let others = published
            .iter()
            .map(|verdicts| verdicts[at].answer.word())
            .collect::<Vec<_>>();
        section = section.callout(
            tone(verdict),
            &format!("{}: {}", verdict.question, verdict.asks),
            &said(verdict, &others),
        );
    }
    if ready.kinds().len() > 1 {
        let verdicts = ready.verdicts();
        let lines = verdicts.iter().map(|verdict| {
            format!(
                "{}: {}. {}",
                verdict.question,
                verdict.answer.word(),
                tables::sentence(&verdict.because)
            )
        });
        section = section
            .heading("The same questions with threads that exist already")
            .text(
                "In the source's experiments the creation of two threads is timed with the rest, \
                 and is most of the time below a megabyte. Here both threads wait, pinned, before \
                 the clock starts. RQ3 judges the source's model, which holds the creation of the \
                 threads for a part of every exchange, against these times too.",
            )
            .list(&lines.collect::<Vec<_>>());
    }
    if !results.about.is_complete {
        section = section.text("The study is not complete: the answers rest on what there is.");
    }
    section
}

fn tone(verdict: &JudgedQuestion) -> Tone {
    match verdict.agrees() {
        Some(true) => Tone::Good,
        Some(false) => Tone::Bad,
        None => Tone::Note,
    }
}

fn said(verdict: &JudgedQuestion, others: &[&str]) -> Vec<String> {
    let agreement = match verdict.agrees() {
        Some(true) => "as published",
        Some(false) => "not as published",
        None => "no comparison",
    };
    let mut lines = vec![
        format!(
            "Here: {} ({agreement}). {}",
            verdict.answer.word(),
            tables::sentence(&verdict.because)
        ),
        format!("Published: {}.", verdict.published_words),
        format!(
            "By the same rules from the published tables: Xeon 5130 {}, Xeon E5-2695 v2 {}.",
            others[0], others[1]
        ),
    ];
    if !verdict.cannot_show.is_empty() {
        let limits = verdict.cannot_show.join("; ");
        lines.push(format!("What this machine cannot show: {limits}."));
    }
    lines
}

fn placement(results: &Results, here: &Evidence, ready: &Evidence) -> Section {
    let marks = &here.capacities;
    let mut section = Section::new("Placement")
        .text(
            "Experiments 2 to 4 as published: buffer, mutex and both threads are made within the \
             time. Dots are medians of the clean runs, or of all where none is clean; bands reach \
             from the first to the third quarter.",
        )
        .picture(
            &charts::throughput("Throughput of experiments 2 to 4, measured", here),
            "Bytes by the time of a whole exchange.",
        )
        .picture(
            &charts::times("Time of experiments 2 to 4, measured", here),
            "",
        )
        .picture(
            &charts::difference("What another placement adds", here),
            &format!(
                "Time less that of type 1, at each size, and the mean over {} neighbouring sizes.",
                compare::MOVING
            ),
        );
    let dirty = charts::clean_share(results, marks);
    section = section.picture(
        &dirty,
        "A run is clean if nothing interrupted any core, no fault read a disk, and no more minor \
         faults happened than the bookkeeping's own.",
    );
    if !ready.kinds().is_empty() {
        section = section
            .heading("Threads that exist already")
            .text("From the writer's first store to the reader's last load. Not of the source.")
            .picture(
                &charts::times("Time of an exchange, threads ready", ready),
                "",
            )
            .picture(&charts::throughput("Throughput, threads ready", ready), "")
            .picture(
                &charts::difference("What another placement adds, threads ready", ready),
                "",
            );
    }
    section
        .heading("At the capacities")
        .text(
            "Percentages of type 1's time and of the placement's own: the source's are the latter.",
        )
        .table(&tables::impacts(&[here, ready]))
        .table(&tables::zero(results))
        .folded_table("All sizes of experiments 2 to 4", &tables::times(here))
}

fn prediction(results: &Results, profile: Option<&Profile>, here: &Evidence) -> Section {
    let mut section = Section::new("Predicted beside measured");
    let Some(model) = &here.model else {
        return section.text(
            "The source's model needs the levels' latencies (experiment 1b) and exchanges of \
             nothing (experiment zero); not both were measured.",
        );
    };
    section = section
        .text(
            "The source's model in its intended form, with parameters measured here. It takes the \
             data to lie in the smallest level that holds all of it, and every line to cost that \
             level's latency.",
        )
        .table(&tables::parameters(model))
        .picture(
            &charts::predicted_throughput("Throughput as the source's model predicts it", here),
            "",
        )
        .picture(
            &charts::against("Predicted and measured time, the source's model", here),
            "Broken lines are predicted.",
        )
        .table(&tables::errors("the source's", here));
    let Some(profile) = profile else {
        return section.text(
            "There is no profile of this machine: run `hearth probe` to have our own model's \
             predictions here.",
        );
    };
    let mut failed = Vec::new();
    for (title, sweep) in [
        (
            "our model, experiments 2 to 4",
            Sweep::Exchange as fn(_) -> _,
        ),
        ("our model, threads ready", Sweep::Ready as fn(_) -> _),
    ] {
        let mut triples: [Vec<_>; 3] = Default::default();
        for (at, kind) in Type::ALL.into_iter().enumerate() {
            if results.site.place.places(kind).is_none() {
                continue;
            }
            match compare::ours(results, profile, kind, sweep(kind.into())) {
                Ok(found) => triples[at] = found,
                Err(why) => failed.push(tables::sentence(&why)),
            }
        }
        if triples.iter().any(|found| !found.is_empty()) {
            section = section
                .picture(
                    &charts::triples(
                        &format!("Predicted and measured time, {title}"),
                        &triples,
                        &here.capacities,
                    ),
                    "",
                )
                .table(&tables::errors_of(title, &triples, &here.capacities));
        }
    }
    failed.dedup();
    section.list(&failed)
}

fn latency(results: &Results) -> Section {
    let marks = compare::capacities(results);
    let mut section = Section::new("Latency");
    if !results.site.rings.is_empty() {
        section = section
            .text(
                "Experiment 1b: a ring of pointers, each load's address being the value of the one \
                 before. In the order of addresses lines are fetched ahead; in random order they \
                 cannot be.",
            )
            .picture(&charts::rings(results, true, &marks), "")
            .picture(&charts::rings(results, false, &marks), "")
            .table(&tables::levels(results));
    }
    if results.rows_of(Sweep::Latency).next().is_some() {
        section = section
            .heading("Experiment 1")
            .text(
                "One thread writes each word and reads it back. The source's own loop indexed with \
                 the count and touched one word only; its times are below what any processor needs. \
                 Here each index comes from the word read before.",
            )
            .picture(&charts::sweep(results, false, charts::Range::Full), "")
            .picture(&charts::sweep(results, true, charts::Range::Full), "")
            .picture(&charts::sweep(results, false, charts::Range::Zoom), "")
            .picture(&charts::sweep(results, true, charts::Range::Zoom), "")
            .picture(
                &charts::sweep_each(results, &marks),
                "The same by word: where this rises, a cache ends.",
            )
            .list(&tables::impossible(results));
    }
    section
}

fn supporting(results: &Results) -> Section {
    let mut section = Section::new("Supporting experiments");
    if results.site.timers.is_some() {
        section = section.heading("Timers").table(&tables::timers(results));
    }
    if results.site.register.is_some() || results.site.events.is_some() {
        section = section
            .heading("Registers, interrupts, faults")
            .text(
                "As published, the durations of events include reading and parsing files in /proc, \
                 and experiment 0 includes the timer. What is left without that stands beside them.",
            )
            .table(&tables::events(results));
    }
    if results.site.opening.is_some() {
        section = section
            .heading("Faults of opening files")
            .table(&tables::opening(results));
    }
    section
}

fn published(machine: usize) -> Section {
    let evidence = Evidence::published(machine);
    let name = evidence.machine.clone();
    let mut section = Section::new(&format!("Published: {name}"))
        .text("Drawn from the source's tables: means, unfiltered.")
        .picture(
            &charts::throughput(
                &format!("Throughput of experiments 2 to 4, {name}"),
                &evidence,
            ),
            "",
        )
        .picture(
            &charts::predicted_throughput(
                &format!("Throughput as the source's model predicts it, {name}"),
                &evidence,
            ),
            "",
        )
        .picture(
            &charts::difference(&format!("What another placement adds, {name}"), &evidence),
            "",
        )
        .picture(
            &charts::against(&format!("Predicted and measured time, {name}"), &evidence),
            "",
        )
        .picture(&charts::published_curve(machine), "")
        .table(&tables::errors("the source's", &evidence));
    let replayed: Vec<String> = headlines()
        .iter()
        .filter(|headline| headline.machine == machine)
        .map(tables::headline)
        .collect();
    section = section.list(&replayed);
    section
}
