//! `hearth rewrite`: rules applied to a graph until none matches.

use std::path::Path;

use hearth_driver::input::{self, Source};
use hearth_rewrite::forms::{Loaded, csv, dot, graphml, xmi};
use hearth_rewrite::{
    Options, Outcome, RewriteError, Rule, describe_plans, read_rules, rewrite as run,
};
use hearth_sys::affinity;
use hearth_terminal::{Failure, output};
use hearth_text::columns::{Columns, Side};
use hearth_text::counted;
use serde_json::{Value, json};

use crate::arguments::rewrite::{GraphForm, RewriteArguments};

pub(crate) fn rewrite(arguments: &RewriteArguments) -> Result<(), Failure> {
    let source = input::read(&arguments.rules)?;
    let read = read_rules(&source.text).map_err(|error| in_rules(&source, &error))?;
    if read.rules.is_empty() {
        let name = &source.name;
        return Err(Failure::input(format!(
            "{name} has no rules: write one, as in `--help`"
        )));
    }
    let Loaded {
        mut graph,
        names,
        notes,
    } = load(arguments, read.schema)?;
    notes.iter().for_each(output::tell);
    if arguments.plan {
        let plans = describe_plans(&mut graph, &read.rules);
        return output::write(plans.map_err(|error| in_rules(&source, &error))?);
    }
    let options = Options {
        threads: arguments
            .threads
            .map_or_else(|| affinity::allowed().len(), usize::from),
        rounds_max: arguments.rounds,
        applications_max: arguments.applications,
        ..Options::default()
    };
    let before = [graph.vertex_count(), graph.edge_count()];
    let outcome = run(&mut graph, &read.rules, &options).map_err(|error| match error {
        RewriteError::Rule(error) => in_rules(&source, &error),
        endless => Failure::input(format!("{}: {endless}", source.name)),
    })?;
    if let Some(path) = &arguments.out {
        output::replace(path, graphml::write(&graph, &names).as_bytes())?;
    }
    let after = [graph.vertex_count(), graph.edge_count()];
    if arguments.json {
        return output::write_json(&document(&read.rules, &outcome, before, after));
    }
    output::write(text(&read.rules, &outcome, before, after))
}

fn in_rules(source: &Source, error: &hearth_rewrite::RuleError) -> Failure {
    Failure::input(format!("{}: {error}", source.name))
}

fn load(
    arguments: &RewriteArguments,
    schema: hearth_rewrite::SchemaBuilder,
) -> Result<Loaded, Failure> {
    let form = arguments.form.map_or_else(|| form(&arguments.graph), Ok)?;
    if arguments.vertices.is_some() && form != GraphForm::Csv {
        return Err(Failure::input(
            "--vertices goes with a graph in CSV only: leave it out",
        ));
    }
    let source = input::read(&arguments.graph)?;
    let text = &source.text;
    let loose = match form {
        GraphForm::Graphml => graphml::read(text),
        GraphForm::Dot => dot::read(text),
        GraphForm::Csv => {
            let vertices = arguments.vertices.as_deref().map(input::read).transpose()?;
            csv::read(
                text,
                vertices.as_ref().map(|vertices| vertices.text.as_str()),
            )
        }
        GraphForm::Xmi => xmi::read(text),
    };
    let failure = |error| Failure::input(format!("{}: {error}", source.name));
    loose.and_then(|loose| loose.load(schema)).map_err(failure)
}

fn form(path: &Path) -> Result<GraphForm, Failure> {
    let ending = path
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    match ending.as_str() {
        "graphml" | "xml" => Ok(GraphForm::Graphml),
        "dot" | "gv" => Ok(GraphForm::Dot),
        "csv" => Ok(GraphForm::Csv),
        "xmi" | "amxmi" | "ecore" => Ok(GraphForm::Xmi),
        _ => Err(Failure::input(format!(
            "the ending of {} does not say its form: add --form graphml, dot, csv or xmi",
            path.display()
        ))),
    }
}

fn text(rules: &[Rule], outcome: &Outcome, before: [usize; 2], after: [usize; 2]) -> String {
    let mut rows = Columns::new(&[Side::Left, Side::Right]);
    rows.row(["rule", "applied"]);
    for (rule, applied) in rules.iter().zip(&outcome.applied) {
        rows.row([rule.name.text.clone(), applied.to_string()]);
    }
    let size = |[vertices, edges]: [usize; 2]| {
        let vertices = match vertices {
            1 => "1 vertex".to_owned(),
            count => format!("{count} vertices"),
        };
        format!("{vertices} and {}", counted(edges, "edge"))
    };
    format!(
        "{} in {}; {} before, {} after\n{}",
        counted(outcome.applications() as usize, "application"),
        counted(outcome.rounds as usize, "round"),
        size(before),
        size(after),
        rows.lines(2)
    )
}

fn document(rules: &[Rule], outcome: &Outcome, before: [usize; 2], after: [usize; 2]) -> Value {
    let both = rules.iter().zip(&outcome.applied);
    let rules: Vec<Value> = both
        .map(|(rule, applied)| json!({"rule": rule.name.text, "applied": applied}))
        .collect();
    let size = |[vertices, edges]: [usize; 2]| json!({"vertices": vertices, "edges": edges});
    json!({
        "rounds": outcome.rounds,
        "applications": outcome.applications(),
        "overlaps": outcome.overlaps,
        "rules": rules,
        "before": size(before),
        "after": size(after),
        "search_ns": outcome.times.search.as_nanos() as u64,
        "choice_ns": outcome.times.choice.as_nanos() as u64,
        "change_ns": outcome.times.change.as_nanos() as u64,
    })
}
