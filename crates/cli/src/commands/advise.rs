//! `hearth advise`: where a sender and a receiver run best.

use std::fmt::Write as _;

use hearth_draw::scale::Unit;
use hearth_driver::profiles;
use hearth_machine::topology::{Thread, Topology};
use hearth_model::fitted::{Advice, Between, InState, Model, OtherChoice, Ranked};
use hearth_terminal::{Failure, output};
use hearth_text::columns::{Columns, Side};
use hearth_text::prose::capitalised;
use serde_json::{Value, json};

use super::predict::{
    in_state, manner, passing_document, placement, range, states_document, thread,
};
use crate::arguments::machine::Advise;

/// On machines with more hardware threads one pair stands for all that are related alike.
const THREADS_IN_PAIRS: usize = 64;
/// The most pairs shown unless all are asked for.
const SHOWN: usize = 8;

pub(crate) fn advise(arguments: &Advise) -> Result<(), Failure> {
    let chosen = profiles::choose(&arguments.basis.clone().into())?;
    let model =
        Model::fitted(&chosen.profile).map_err(|error| Failure::input(error.to_string()))?;
    let (advice, by_relation) = rank(arguments, &model)?;
    let Some(advice) = advice else {
        return Err(Failure::input(
            "a receiver cannot spin on the sender's own hardware thread, and there is no other \
             choice; use --carrier threads or worker",
        ));
    };
    if let Some(warning) = chosen.warning_beside_text() {
        output::tell(warning);
    }
    let machine = model.topology();
    // Where one pair stands for many, so would one state.
    let others = match by_relation {
        true => Vec::new(),
        false => model.other_choices(&advice, |model| rank(arguments, model).ok()?.0),
    };
    if arguments.json {
        let mut document = json!({
            "modelled_from": chosen.origin,
            "warning": chosen.warning,
            "bytes": arguments.bytes.0,
            "passing": passing_document(&arguments.passing),
            "matters": advice.matters(),
            "spread": advice.spread,
            "uncertainty": advice.uncertainty,
            "stand_for_relations": by_relation,
            "ranked": advice.ranked.iter().map(|ranked| with_states(arguments, &model, ranked, json!({
                "sender": machine.os_thread(ranked.pair.0).0,
                "receiver": machine.os_thread(ranked.pair.1).0,
                "relation": ranked.relation.to_string(),
                "time_ns": ranked.prediction.ns,
                "low_ns": ranked.prediction.low_ns,
                "high_ns": ranked.prediction.high_ns,
                "share_of_time": arguments.rate.map(|rate| rate * ranked.prediction.ns / 1e9),
            }))).collect::<Vec<_>>(),
        });
        if !others.is_empty() {
            let others = others.iter().map(|other| other_document(machine, other));
            document["other_choices"] = others.collect::<Vec<_>>().into();
        }
        return output::write_json(&document);
    }
    let mut text = format!("{}, {}\n\n", arguments.bytes, manner(&arguments.passing));
    text.push_str(&table(arguments, &model, &advice, by_relation));
    let _ = writeln!(text, "\n{}", verdict(machine, &advice, by_relation));
    for other in &others {
        let _ = writeln!(text, "{}", told(machine, other));
    }
    let _ = writeln!(text, "{}", chosen.modelled());
    output::write(text)
}

/// The ranking, and whether each way stands for a relation.
fn rank(arguments: &Advise, model: &Model) -> Result<(Option<Advice>, bool), Failure> {
    let machine = model.topology();
    let named = |cpu| match cpu {
        Some(cpu) => thread(machine, cpu).map(Some),
        None => Ok(None),
    };
    let (sender, receiver) = (named(arguments.sender)?, named(arguments.receiver)?);
    let placement = placement(arguments.bytes, &arguments.passing);
    let all: Vec<Thread> = machine.all_threads().collect();
    let pairs: Vec<(Thread, Thread)> = match (sender, receiver) {
        (Some(sender), Some(receiver)) => vec![(sender, receiver)],
        (Some(sender), None) => all.iter().map(|&receiver| (sender, receiver)).collect(),
        (None, Some(receiver)) => all.iter().map(|&sender| (sender, receiver)).collect(),
        (None, None) if all.len() > THREADS_IN_PAIRS => return Ok((model.advise(placement), true)),
        // The model is the same in both directions: each pair once.
        (None, None) => {
            let pairs = all.iter().enumerate();
            pairs
                .flat_map(|(at, &a)| all[at..].iter().map(move |&b| (a, b)))
                .collect()
        }
    };
    let advice = model.advise_among(placement, pairs);
    let advice = advice.map_err(|error| Failure::input(error.to_string()))?;
    Ok((advice, false))
}

/// The time of a way in each state of its pair.
fn by_state(arguments: &Advise, model: &Model, ranked: &Ranked) -> Vec<InState> {
    let placement = placement(arguments.bytes, &arguments.passing);
    let question = placement.between(Between::Pair(ranked.pair.0, ranked.pair.1));
    // What was ranked was predicted.
    model.predict_by_state(&question).unwrap_or_default()
}

fn with_states(arguments: &Advise, model: &Model, ranked: &Ranked, mut document: Value) -> Value {
    let states = by_state(arguments, model, ranked);
    if !states.is_empty() {
        document["states"] = states_document(&states).into();
    }
    document
}

fn other_document(machine: &Topology, other: &OtherChoice) -> Value {
    let cpu = |thread: Thread| machine.os_thread(thread).0;
    let (a, b) = other.scenario.pair;
    json!({
        "cpus": [cpu(a), cpu(b)],
        "one_way_ns": other.scenario.state.one_way_ns,
        "time_share": other.scenario.state.time_share,
        "sender": cpu(other.best.pair.0),
        "receiver": cpu(other.best.pair.1),
        "time_ns": other.best.prediction.ns,
        "saves": other.saves,
    })
}

/// A choice that depends on a state, in a sentence.
fn told(machine: &Topology, other: &OtherChoice) -> String {
    let cpu = |thread: Thread| machine.os_thread(thread);
    let percent = |share: f64| Unit::Percent.show((100.0 * share).round());
    let ((a, b), (sender, receiver)) = (other.scenario.pair, other.best.pair);
    let state = &other.scenario.state;
    format!(
        "While a line takes {} between {} and {} ({} of the time), sender on {} and receiver on {} \
         would be {} cheaper.",
        Unit::Nanoseconds.show(state.one_way_ns),
        cpu(a),
        cpu(b),
        percent(state.time_share),
        cpu(sender),
        cpu(receiver),
        percent(other.saves)
    )
}

fn table(arguments: &Advise, model: &Model, advice: &Advice, by_relation: bool) -> String {
    let machine = model.topology();
    let mut columns = Columns::new(&[
        Side::Right,
        Side::Left,
        Side::Left,
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
    ]);
    let mut head = vec!["", "sender", "receiver", "", "time", "95 %"];
    head.extend(arguments.rate.map(|_| "of the time"));
    columns.row(head);
    let count = advice.ranked.len();
    let shown = if arguments.all { count } else { SHOWN };
    for (at, ranked) in advice.ranked.iter().enumerate() {
        let is_last = at + 1 == count;
        if at >= shown && !is_last {
            continue;
        }
        columns.row(row(arguments, machine, at, ranked));
        let states = match by_relation {
            true => Vec::new(),
            false => by_state(arguments, model, ranked),
        };
        for one in &states {
            let time = Unit::Nanoseconds.show(one.prediction.ns);
            let empty = String::new;
            let cells = [in_state(one), time, range(&one.prediction)];
            columns.row([empty(), empty(), empty()].into_iter().chain(cells));
        }
        if at + 1 == shown && count > shown + 1 {
            columns.row(["…"]);
        }
    }
    let mut text = columns.lines(0);
    if by_relation {
        text.push_str("Each pair stands for all that are related alike.\n");
    } else if count > shown + 1 {
        let left_out = count - shown - 1;
        let _ = writeln!(
            text,
            "{left_out} in between are not shown; --all shows them."
        );
    }
    text
}

fn row(arguments: &Advise, machine: &Topology, at: usize, ranked: &Ranked) -> Vec<String> {
    let time = |ns: f64| Unit::Nanoseconds.show(ns);
    let prediction = &ranked.prediction;
    let mut cells = vec![
        (at + 1).to_string(),
        machine.os_thread(ranked.pair.0).to_string(),
        machine.os_thread(ranked.pair.1).to_string(),
        ranked.relation.to_string(),
        time(prediction.ns),
        format!(
            "{} to {}",
            time(prediction.low_ns),
            time(prediction.high_ns)
        ),
    ];
    cells.extend(arguments.rate.map(|rate| {
        let share = 100.0 * rate * prediction.ns / 1e9;
        if share > 100.0 {
            "too slow".to_owned()
        } else {
            Unit::Percent.show(share)
        }
    }));
    cells
}

/// The answer in a sentence.
fn verdict(machine: &Topology, advice: &Advice, by_relation: bool) -> String {
    let percent = |share: f64| Unit::Percent.show((100.0 * share).round());
    let best = advice.best();
    let (sender, receiver) = best.pair;
    let (sender, receiver) = (machine.os_thread(sender), machine.os_thread(receiver));
    if advice.ranked.len() == 1 {
        return "There is only one choice.".to_owned();
    }
    if !advice.matters() {
        return format!(
            "Placement does not matter here: the best and the worst differ by {}, and the \
             prediction is uncertain by {}.",
            percent(advice.spread),
            percent(advice.uncertainty)
        );
    }
    // Beyond double, shares are hard to read.
    let worst = if advice.spread > 1.0 {
        let times = Unit::Number.show(1.0 + advice.spread);
        format!("the worst choice takes {times} times as long")
    } else {
        format!("the worst choice costs {} more", percent(advice.spread))
    };
    if by_relation {
        let relation = capitalised(&best.relation.to_string());
        return format!("{relation}, as {sender} and {receiver}, is best; {worst}.");
    }
    format!("Sender on {sender} and receiver on {receiver} is best; {worst}.")
}
