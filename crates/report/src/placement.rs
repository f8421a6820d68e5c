//! A placement as text, as a picture and as JSON.

use std::fmt::Write as _;

use hearth_draw::placement as picture;
use hearth_driver::profiles;
use hearth_driver::program_graph::ProgramGraph;
use hearth_driver::site::Site;
use hearth_place::cost;
use hearth_place::graph::Round;
use hearth_place::patterns::recognise;
use hearth_place::plan::{PlacementPlan, Reason, UnderState};
use hearth_place::slots::Message;
use hearth_text::columns::{Columns, Side};
use hearth_text::counted;
use hearth_text::prose::{sentence, wrapped};
use serde_json::json;

/// The most reasons and patterns in a text.
const SHOWN: usize = 40;
/// The longest line, in letters.
const WIDTH: usize = 80;

fn line(text: &str) -> String {
    wrapped(text, WIDTH, "", "")
}

/// An indented line, and its continuations indented further.
fn item(text: &str) -> String {
    wrapped(text, WIDTH, "  ", "    ")
}

/// A plan as text; with `why`, its reasons and what other placements cost.
pub fn text(
    program: &ProgramGraph,
    plan: &PlacementPlan,
    site: &Site,
    options: &cost::CostOptions,
    why: bool,
) -> String {
    let mut picture = drawn(&title(program, plan, site), program, plan, site, options);
    let notes = plan.notes.iter().chain(&program.notes);
    picture.remarks.extend(notes.map(|note| sentence(note)));
    let modelled = profiles::modelled(&site.origin, site.is_assumed);
    if plan.places.is_empty() {
        let nothing = "There is nothing to place: the program creates no components, or only ones that \
                       are not known before it runs.";
        let remarks = picture.remarks.iter().map(|remark| line(remark));
        return remarks.chain([line(nothing)]).collect();
    }
    let mut text = picture.text(picture::TextLook::default());
    let verdict = sentence(&plan.verdict.to_string());
    let _ = write!(text, "\n{}", line(&verdict));
    text.push_str(&choices_by_state(plan));
    if why {
        text.push_str(&costs_by_state(plan));
        text.push_str(&reasons(program, plan));
        text.push_str(&others(plan));
    }
    text.push_str(&line(&modelled));
    text
}

/// The title of a plan.
pub fn title(program: &ProgramGraph, plan: &PlacementPlan, site: &Site) -> String {
    format!(
        "{} on {}, by `{}`",
        counted(program.graph.components.len(), "component"),
        counted(site.machine.slots().len(), "CPU"),
        plan.policy
    )
}

fn reasons(program: &ProgramGraph, plan: &PlacementPlan) -> String {
    let mut text = "\nWhy\n".to_owned();
    for place in plan.places.iter().take(SHOWN) {
        let why = reason(&place.reason, plan.cost.total_ns);
        let line = format!("{} on CPU {}: {why}", place.name, place.cpu.0);
        text.push_str(&item(&line));
    }
    if plan.places.len() > SHOWN {
        let _ = writeln!(
            text,
            "  and {} more; --json shows all",
            plan.places.len() - SHOWN
        );
    }
    let groups = recognise(&program.graph);
    text.push_str("\nCommunication\n");
    for group in groups.iter().take(SHOWN) {
        text.push_str(&item(&group.sentence(&program.graph)));
    }
    if groups.len() > SHOWN {
        let _ = writeln!(text, "  and {} more groups", groups.len() - SHOWN);
    }
    text
}

/// A reason as a sentence, with its saving as a share of the plan's cost.
fn reason(reason: &Reason, total_ns: f64) -> String {
    let more = |saves_ns: f64| {
        let percent = 100.0 * saves_ns / total_ns.max(f64::MIN_POSITIVE);
        match percent {
            percent if percent.is_nan() => String::new(),
            percent if percent < 0.05 => "; anywhere else costs little more".to_owned(),
            percent if percent < 10.0 => format!("; anywhere else costs {percent:.1} % more"),
            percent => format!("; anywhere else costs {percent:.0} % more"),
        }
    };
    match reason {
        Reason::With { peer, saves_ns } => {
            format!("with `{peer}`, which it talks to most{}", more(*saves_ns))
        }
        Reason::Near {
            peer,
            relation,
            saves_ns,
        } => format!(
            "beside `{peer}`, which it talks to most ({relation}){}",
            more(*saves_ns)
        ),
        Reason::Apart { saves_ns, .. } => {
            format!("runs where there is room{}", more(*saves_ns))
        }
        Reason::Pinned { .. } | Reason::Free | Reason::Policy { .. } => reason.to_string(),
    }
}

/// The states in which another placement is better.
fn choices_by_state(plan: &PlacementPlan) -> String {
    let better = plan.states.iter().filter(|state| state.better.is_some());
    better
        .map(|state| line(&sentence(&state.to_string())))
        .collect()
}

/// The plan's cost in each state, relative to that over time.
fn costs_by_state(plan: &PlacementPlan) -> String {
    if plan.states.is_empty() {
        return String::new();
    }
    let mut text = "\nBy state\n".to_owned();
    let more =
        |state: &UnderState| state.total_ns / plan.cost.total_ns.max(f64::MIN_POSITIVE) - 1.0;
    for state in &plan.states {
        let [a, b] = state.cpus;
        let (ns, share) = (state.one_way_ns, 100.0 * state.time_share);
        let cost = match 100.0 * more(state) {
            percent if percent.abs() < 0.5 => "costs as much".to_owned(),
            percent if percent < 0.0 => format!("costs {:.0} % less", -percent),
            percent => format!("costs {percent:.0} % more"),
        };
        text.push_str(&item(&format!(
            "{a} – {b} at {ns:.0} ns, {share:.0} % of the time: this plan {cost}"
        )));
    }
    text
}

/// Costs by state as JSON.
fn states_document(plan: &PlacementPlan) -> Vec<serde_json::Value> {
    let state = |state: &UnderState| {
        json!({
            "cpus": state.cpus.map(|cpu| cpu.0),
            "one_way_ns": state.one_way_ns,
            "time_share": state.time_share,
            "total_ns": state.total_ns,
            "better": state.better.as_ref().map(|better| json!({
                "total_ns": better.total_ns,
                "moves": better.moves.iter().map(|(name, cpu)| json!({
                    "name": name,
                    "cpu": cpu.0,
                })).collect::<Vec<_>>(),
            })),
        })
    };
    plan.states.iter().map(state).collect()
}

fn others(plan: &PlacementPlan) -> String {
    let mut text = "\nOther placements\n".to_owned();
    let mut columns = Columns::new(&[Side::Left, Side::Left]);
    columns.row([plan.policy.to_string(), "this plan".to_owned()]);
    for other in &plan.others {
        let ratio = other.total_ns / plan.cost.total_ns.max(f64::MIN_POSITIVE);
        let cost = match ratio {
            ratio if (ratio - 1.0).abs() < 0.0005 => "costs as much".to_owned(),
            ratio if ratio < 10.0 => format!("costs {ratio:.2} times as much"),
            ratio => format!("costs {ratio:.0} times as much"),
        };
        columns.row([other.name.clone(), cost]);
    }
    text.push_str(&columns.lines(2));
    if plan.proved {
        text.push_str("  Nothing costs less: all placements were tried.\n");
    }
    text.push('\n');
    text
}

/// A plan as a picture.
pub fn drawn<'a>(
    title: &str,
    program: &ProgramGraph,
    plan: &PlacementPlan,
    site: &'a Site,
    options: &cost::CostOptions,
) -> picture::Placement<'a> {
    let mut drawn = picture::Placement::new(title, &site.profile.topology);
    let pace = pace(program, plan);
    for (component, place) in program.graph.components.iter().zip(&plan.places) {
        let thread = site.machine.slots()[place.slot.index()].thread;
        let type_name = component.type_name.as_deref().unwrap_or("");
        drawn.components.push(picture::Component {
            load: (component.work_ns.value * pace / 1e9).clamp(0.0, 1.0),
            ..picture::Component::new(&component.name, type_name, Some(thread))
        });
    }
    for connection in &program.graph.connections {
        let (from, to) = (connection.from.index(), connection.to.index());
        let message = Message {
            bytes: connection.bytes.value,
            carrier: connection.carrier.unwrap_or(options.carrier),
            kind: connection.kind,
        };
        let (a, b) = (plan.places[from].slot, plan.places[to].slot);
        let costs = site.machine.messages();
        let share = costs.share_of(costs.class(a, b), &message, connection.is_shared);
        let messages = connection.messages.value * pace;
        drawn.connections.push(picture::Connection {
            from,
            to,
            messages_per_s: messages,
            bytes_per_s: messages * connection.bytes.value,
            cost_ns_per_s: messages * share.total_ns(),
        });
    }
    if has_loads_of_siblings(&drawn) {
        drawn.remarks.push(format!(
            "100 % is one hardware thread alone on a core; the threads of a core reach {:.0} % together.",
            100.0 * options.smt_yield
        ));
    }
    drawn
}

/// True if a core of several hardware threads has more load than one thread can bear.
fn has_loads_of_siblings(drawn: &picture::Placement) -> bool {
    drawn.machine.cores().iter().any(|core| {
        let is_here = |thread| core.threads.contains(&thread);
        let here = drawn.components.iter();
        let loads = here.filter(|one| one.thread.is_some_and(is_here));
        // A load that is shown as 100 % needs no word.
        core.threads.len() > 1 && loads.map(|one| one.load).sum::<f64>() > 1.005
    })
}

/// The share of the graph's rates that the plan allows: they assume a core for each component, and
/// the busiest CPU or the longest cycle limits them.
fn pace(program: &ProgramGraph, plan: &PlacementPlan) -> f64 {
    match program.graph.round {
        Round::Second => 1e9 / plan.cost.bottleneck_ns.max(1e9),
        _ => 1.0,
    }
}

/// A plan as JSON.
pub fn document(program: &ProgramGraph, plan: &PlacementPlan, site: &Site) -> serde_json::Value {
    let components = plan.places.iter().zip(&program.instances);
    let mut document = json!({
        "policy": plan.policy.to_string(),
        "modelled_from": site.origin,
        "warning": site.warning,
        "components": components.map(|(place, instance)| json!({
            "name": place.name,
            "type": instance.as_ref().map(|instance| &instance.type_name),
            "number": instance.as_ref().map(|instance| instance.number),
            "cpu": place.cpu.0,
            "why": place.reason.to_string(),
        })).collect::<Vec<_>>(),
        "cost": {
            "total_ns": plan.cost.total_ns,
            "bottleneck_ns": plan.cost.bottleneck_ns,
            "communication_ns": plan.cost.communication_ns,
            "sharing_ns": plan.cost.sharing_ns,
        },
        "proved": plan.proved,
        "others": plan.others.iter().map(|other| json!({
            "name": other.name,
            "total_ns": other.total_ns,
        })).collect::<Vec<_>>(),
        "matters": plan.verdict.matters(),
        "verdict": plan.verdict.to_string(),
        "patterns": recognise(&program.graph).iter()
            .map(|group| group.sentence(&program.graph)).collect::<Vec<_>>(),
        "notes": plan.notes.iter().chain(&program.notes).collect::<Vec<_>>(),
    });
    if !plan.states.is_empty() {
        document["states"] = states_document(plan).into();
    }
    document
}
