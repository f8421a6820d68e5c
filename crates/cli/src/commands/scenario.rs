//! `hearth scenario`: the scenario in which a set of tasks fails.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hearth_driver::input;
use hearth_report::scenarios;
use hearth_scenario::forms::{Read, amalthea, harness, rt_app, trace};
use hearth_scenario::model::Model;
use hearth_scenario::scenario::Scenario;
use hearth_scenario::search::{Bounded, Method, Objective, Options, Outcome, bounded, search};
use hearth_scenario::sim::{Run, simulate};
use hearth_terminal::progress::Bar;
use hearth_terminal::{Failure, Interruption, output};
use hearth_text::prose::{capitalised, sentence};
use serde_json::{Value, json};

use crate::arguments::scenario::{Harm, ScenarioArguments, Way};

/// Length of a search that nothing else ends.
const SECONDS: u64 = 10;
/// Time from one look of the progress bar to the next.
const BEAT: Duration = Duration::from_millis(100);

pub(crate) fn scenario(arguments: &ScenarioArguments) -> Result<(), Failure> {
    let read = read(&arguments.file)?;
    if let Some(folder) = &arguments.out {
        fs::create_dir_all(folder).map_err(|error| output::cannot_write(folder, &error))?;
    }
    match &arguments.replay {
        Some(path) => replay(arguments, &read, path),
        None => find(arguments, &read),
    }
}

/// A model by the form that its file's name says. Models of Insense programs come here once they
/// are extracted: a form more, and nothing else.
fn read(path: &Path) -> Result<Read, Failure> {
    let source = input::read(path)?;
    let wrong = |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", source.name));
    let ending = path.extension().and_then(|ending| ending.to_str());
    match ending.unwrap_or_default() {
        "toml" => Model::from_toml(&source.text)
            .map(|model| Read {
                model,
                notes: Vec::new(),
            })
            .map_err(|error| wrong(&error)),
        "json" => rt_app::read(&source.text).map_err(|error| wrong(&error)),
        "amxmi" => amalthea::read(&source.text).map_err(|error| wrong(&error)),
        _ => Err(wrong(
            &"its form is not known: name a model *.toml, a workload of rt-app *.json, or a model of AMALTHEA *.amxmi",
        )),
    }
}

fn objective(harm: Harm) -> Objective {
    match harm {
        Harm::Lateness => Objective::Lateness,
        Harm::Starvation => Objective::Starvation,
        Harm::CpuPeak => Objective::CpuPeak,
        Harm::Overflow => Objective::Overflow,
        Harm::Deadlock => Objective::Deadlock,
    }
}

fn find(arguments: &ScenarioArguments, read: &Read) -> Result<(), Failure> {
    let model = &read.model;
    let objective = objective(arguments.objective);
    let options = Options {
        objective,
        method: match arguments.search {
            Way::Genetic => Method::Genetic,
            Way::Random => Method::Random,
            Way::Exact => Method::Exact,
        },
        seed: arguments.seed,
        evaluations: arguments.evaluations,
    };
    let seconds = match (arguments.seconds, arguments.evaluations) {
        (Some(seconds), _) => Some(seconds),
        (None, Some(_)) => None,
        // A proof is worth waiting for, and Ctrl-C ends it.
        (None, None) if arguments.search == Way::Exact => None,
        (None, None) => Some(SECONDS),
    };
    let interruption = Interruption::watch();
    let begin = Instant::now();
    let mut bar = Bar::start();
    let mut shown = begin;
    let outcome = search(model, &options, &mut |progress| {
        let now = Instant::now();
        if now - shown >= BEAT {
            shown = now;
            let by_time = seconds.map(|limit| (now - begin).as_secs_f64() / limit as f64);
            let by_runs =
                (arguments.evaluations).map(|limit| progress.evaluations as f64 / limit as f64);
            let part = by_time.unwrap_or(0.0).max(by_runs.unwrap_or(0.0));
            let worst = progress
                .worst
                .map(|score| scenarios::score(model, objective, score));
            bar.show(part, &worst.unwrap_or_default());
        }
        let is_over = seconds.is_some_and(|limit| now - begin >= Duration::from_secs(limit));
        !is_over && !interruption.flag.load(Ordering::SeqCst)
    });
    drop(bar);
    let outcome = outcome
        .map_err(|error| Failure::input(format!("{}: {error}", arguments.file.display())))?;
    let run = simulate(model, &outcome.scenario);
    if let Some(folder) = &arguments.out {
        write_all(
            folder,
            read,
            &outcome.scenario,
            &run,
            objective,
            outcome.score,
        )?;
    }
    if arguments.json {
        output::write_json(&document(
            read,
            objective,
            Some(&outcome),
            &outcome.scenario,
            &run,
        ))?;
    } else {
        output::write(text(read, objective, &outcome, &run))?;
        said(arguments, read, &outcome.scenario);
    }
    match interruption.signal.load(Ordering::SeqCst) {
        0 => ends(objective, outcome.score),
        signal => Err(Failure::Interrupted(
            signal,
            "ended early: the worst scenario so far is shown".into(),
        )),
    }
}

/// Harm is a negative answer. Of starvation and peaks the reader decides.
fn ends(objective: Objective, score: i64) -> Result<(), Failure> {
    let decides = !matches!(objective, Objective::Starvation | Objective::CpuPeak);
    match decides && objective.is_harm(score) {
        true => Err(Failure::Negative),
        false => Ok(()),
    }
}

fn replay(arguments: &ScenarioArguments, read: &Read, path: &Path) -> Result<(), Failure> {
    let model = &read.model;
    let source = input::read(path)?;
    let scenario = Scenario::from_json(&source.text, model)
        .map_err(|error| Failure::input(format!("{}: {error}", source.name)))?;
    let run = simulate(model, &scenario);
    let late = Objective::Lateness.score(model, &run);
    if let Some(folder) = &arguments.out {
        write_all(folder, read, &scenario, &run, Objective::Lateness, late)?;
    }
    if arguments.json {
        output::write_json(&document(read, Objective::Lateness, None, &scenario, &run))?;
    } else {
        output::write(scenarios::text(model, &run))?;
        said(arguments, read, &scenario);
    }
    let harm = [
        Objective::Lateness,
        Objective::Overflow,
        Objective::Deadlock,
    ];
    let ends = harm.map(|objective| ends(objective, objective.score(model, &run)));
    ends.into_iter().collect()
}

fn text(read: &Read, objective: Objective, outcome: &Outcome, run: &Run) -> String {
    let model = &read.model;
    let score = scenarios::score(model, objective, outcome.score);
    let verdict = scenarios::verdict(model, objective, outcome.verdict);
    let mode = match outcome.scenario.mode.as_str() {
        "" => String::new(),
        mode => format!(" In mode {mode}."),
    };
    format!(
        "{}: {score}.{mode}\n{}.\n{} runs; the worst was number {}.\n\n{}",
        scenarios::name(objective),
        capitalised(&verdict),
        outcome.evaluations,
        outcome.found_after,
        scenarios::text(model, run)
    )
}

/// Notes that the reader should have beside the answer.
fn said(arguments: &ScenarioArguments, read: &Read, scenario: &Scenario) {
    for note in &read.notes {
        output::tell(format!("note: {note}"));
    }
    if let Some(folder) = &arguments.out {
        let left_out = [
            ("rt-app.json", rt_app::write(&read.model, scenario).left_out),
            (
                "harness.rs",
                harness::harness(&read.model, scenario).left_out,
            ),
        ];
        for (file, sentences) in left_out {
            for sentence in sentences {
                output::tell(format!("note: {}: {sentence}", folder.join(file).display()));
            }
        }
    }
}

fn document(
    read: &Read,
    objective: Objective,
    outcome: Option<&Outcome>,
    scenario: &Scenario,
    run: &Run,
) -> Value {
    let model = &read.model;
    let mut document = scenarios::document(model, run);
    let scenario = serde_json::to_value(scenario).unwrap_or(Value::Null);
    document["scenario"] = scenario;
    document["notes"] = json!(read.notes);
    if let Some(outcome) = outcome {
        let number = |score: i64| match score {
            Objective::DEADLOCKED => Value::Null,
            score => json!(score),
        };
        document["objective"] = json!(objective.name());
        document["verdict"] = json!(outcome.verdict.word());
        document["score"] = number(outcome.score);
        document["bound"] = match bounded(model, objective) {
            Bounded::By(bound) => number(bound),
            Bounded::Never => json!(0),
            Bounded::Not => Value::Null,
        };
        document["evaluations"] = json!(outcome.evaluations);
        document["found_after"] = json!(outcome.found_after);
    }
    document
}

fn write_all(
    folder: &Path,
    read: &Read,
    scenario: &Scenario,
    run: &Run,
    objective: Objective,
    score: i64,
) -> Result<(), Failure> {
    let model = &read.model;
    let title = match score {
        i64::MIN => "A run".to_owned(),
        score => sentence(&scenarios::score(model, objective, score)),
    };
    let files = [
        ("scenario.json", scenario.to_json()),
        ("model.toml", model.to_toml()),
        ("trace.btf", trace::btf(model, run)),
        ("trace.json", trace::perfetto(model, run)),
        ("run.svg", scenarios::picture(model, run, &title).file()),
        ("rt-app.json", rt_app::write(model, scenario).text),
        ("harness.rs", harness::harness(model, scenario).text),
    ];
    for (name, contents) in files {
        output::replace(&folder.join(name), contents.as_bytes())?;
    }
    Ok(())
}
