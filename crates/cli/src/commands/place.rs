//! `hearth place`: where components would best run, and why.

use std::fmt::Write as _;
use std::path::Path;

use hearth_draw::placement as picture;
use hearth_lang::compile::{Options, Sources};
use hearth_machine::profile::{Carrier as Passed, Profile};
use hearth_machine::topology::{OsThread, Topology};
use hearth_model::fitted::{Model, Tuning};
use hearth_place::cost;
use hearth_place::forms::{self, Measure, MemoryPolicy, Placed, Reading, Vertices, Ways};
use hearth_place::graph::{Graph, Round};
use hearth_place::patterns::recognise;
use hearth_place::plan::{self, Plan, Reason, StoredPlan};
use hearth_place::policy::Policy;
use hearth_place::slots::{Machine, Message, Slot};
use hearth_place::talk::Effort;
use serde_json::json;

use super::predict::pretty;
use crate::arguments::Carrier;
use crate::arguments::machine::{Basis, Cpus};
use crate::arguments::place::{Decides, Form, Place};
use crate::columns::{Columns, Side};
use crate::corrections::Corrections;
use crate::failure::Failure;
use crate::machine_here::MachineHere;
use crate::placing::{self, Program};
use crate::plans::Plans;
use crate::report::Report;
use crate::{input, output, profiles, program};

/// So many reasons and patterns are told.
const TOLD: usize = 40;

pub(crate) fn place(arguments: &Place) -> Result<(), Failure> {
    let site = site(arguments)?;
    let start = site.machine.os(Slot(0));
    let program = read(&arguments.file, start)?;
    let options = cost::Options {
        carrier: carrier(arguments.carrier),
        ..cost::Options::default()
    };
    let policy = match arguments.policy {
        Decides::Talk => Policy::Talk,
        Decides::Spread => Policy::Spread,
        Decides::Single => Policy::Single,
        Decides::Random => Policy::Random {
            seed: arguments.seed,
        },
    };
    let effort = Effort {
        seed: arguments.seed,
        ..Effort::default()
    };
    let plan = plan::place(&program.graph, &site.machine, &policy, &options, effort)
        .map_err(|error| Failure::input(format!("{}: {error}", arguments.file.display())))?;
    if let Some(path) = &arguments.graph {
        output::replace(path, program.graph.to_json().as_bytes())?;
    }
    if let Some(path) = &arguments.plan {
        output::replace(path, StoredPlan::of(&plan).to_json().as_bytes())?;
    }
    if let Some(path) = &arguments.svg {
        let mut picture = drawn(
            // Ticks are for the terminal.
            &title(&program, &plan, &site).replace('`', ""),
            &program,
            &plan,
            &site,
            &options,
        );
        picture.remarks.extend([
            sentence(&plan.verdict.to_string()),
            format!("Modelled, not measured, from {}.", site.origin),
        ]);
        output::replace(path, picture.draw().file().as_bytes())?;
    }
    if let Some(form) = arguments.export {
        return output::write(exported(form, &program, &plan, &site)?);
    }
    if arguments.json {
        return output::write(pretty(&document(&program, &plan, &site)));
    }
    // That costs are assumed is said below the plan.
    if let Some(warning) = site.warning.as_ref().filter(|_| !site.is_assumed) {
        eprintln!("hearth: {warning}");
    }
    output::write(told(arguments, &program, &plan, &site, &options))
}

/// The machine to place on.
pub(crate) struct Site {
    pub(super) profile: Profile,
    pub(super) tuning: Tuning,
    pub(crate) machine: Machine,
    /// Where the figures come from, in a line.
    pub(crate) origin: String,
    warning: Option<String>,
    /// Nobody has measured this machine, and somebody could.
    is_assumed: bool,
}

impl Site {
    fn of(
        profile: Profile,
        origin: String,
        warning: Option<String>,
        cpus: &[OsThread],
        corrections: &Corrections,
    ) -> Result<Site, Failure> {
        let unfit = |error: String| Failure::input(error);
        let fitted = Model::fitted(&profile).map_err(|error| unfit(error.to_string()))?;
        let (profile, model) = corrections.apply(profile, fitted)?;
        let machine =
            Machine::new(&profile, &model, cpus).map_err(|error| unfit(error.to_string()))?;
        Ok(Site {
            profile,
            tuning: model.tuning().clone(),
            machine,
            origin,
            warning,
            is_assumed: false,
        })
    }

    /// This machine, with the CPUs that we may use, and what a check of its profile found.
    pub(super) fn here(profile: Profile, corrections: &Corrections) -> Result<Site, Failure> {
        let cpus = allowed(None, &profile.topology, true);
        Site::of(profile, String::new(), None, &cpus, corrections)
    }

    /// The same, as `hearth place` would know it, with what the last check before a run found.
    pub(crate) fn known() -> Result<Site, Failure> {
        let chosen = profiles::choose(&Basis {
            profile: None,
            machine: None,
        })?;
        let cpus = allowed(None, &chosen.profile.topology, true);
        let corrections = Corrections::known(&MachineHere::look()?, &Plans::of_user());
        Site::of(
            chosen.profile,
            chosen.origin,
            chosen.warning,
            &cpus,
            &corrections,
        )
    }
}

#[cfg(test)]
impl Site {
    /// A machine of which only these CPUs may be used.
    pub(crate) fn described(profile: Profile, cpus: &[OsThread]) -> Option<Site> {
        let model = Model::fitted(&profile).ok()?;
        Some(Site {
            machine: Machine::new(&profile, &model, cpus).ok()?,
            tuning: model.tuning().clone(),
            profile,
            origin: "a described machine".to_owned(),
            warning: None,
            is_assumed: false,
        })
    }
}

fn site(arguments: &Place) -> Result<Site, Failure> {
    let named = arguments.basis.machine.as_deref();
    let is_file =
        |name: &&str| Path::new(name).exists() || name.ends_with(".json") || name.ends_with(".xml");
    let (profile, origin, warning, is_assumed) = match named.filter(is_file) {
        Some(name) => {
            let found = super::machine::named(name)?;
            let is_measured = found.profile.is_some();
            let profile = found
                .profile
                .unwrap_or_else(|| Profile::assumed(found.topology));
            let origin = match is_measured {
                true => format!("the profile {name}"),
                false => format!("the parts in {name}; every cost is Hearth's stated default"),
            };
            (profile, origin, None, false)
        }
        None => {
            let chosen = profiles::choose(&arguments.basis)?;
            let is_assumed = chosen.is_assumed;
            (chosen.profile, chosen.origin, chosen.warning, is_assumed)
        }
    };
    let is_here = named.is_none() && arguments.basis.profile.is_none();
    let cpus = allowed(arguments.cpus.as_ref(), &profile.topology, is_here);
    // Of another machine nothing can be checked, and that it is another one is said.
    let corrections = match (is_here, &warning) {
        (true, None) => Corrections::found(&profile),
        _ => Corrections::default(),
    };
    let warning = warning.or_else(|| corrections.warning());
    let site = Site::of(profile, origin, warning, &cpus, &corrections)?;
    Ok(Site { is_assumed, ..site })
}

/// The CPUs that were named; on this machine otherwise those that we may use.
fn allowed(cpus: Option<&Cpus>, topology: &Topology, is_here: bool) -> Vec<OsThread> {
    if let Some(cpus) = cpus {
        return cpus.0.iter().copied().map(OsThread).collect();
    }
    if !is_here {
        return Vec::new();
    }
    let ours = hearth_sys::affinity::allowed();
    topology
        .all_threads()
        .map(|thread| topology.os_thread(thread))
        .filter(|cpu| ours.contains(&(cpu.0 as usize)))
        .collect()
}

pub(crate) fn carrier(chosen: Carrier) -> Passed {
    match chosen {
        Carrier::Workers => Passed::Worker,
        Carrier::Threads => Passed::Threads,
    }
}

/// What is to be placed.
fn read(path: &Path, start: OsThread) -> Result<Program, Failure> {
    let kind = path.extension().and_then(|extension| extension.to_str());
    let unfit = |error: String| Failure::input(format!("{}: {error}", path.display()));
    match kind {
        Some("json") => {
            let text = profiles::text(path)?;
            let graph = Graph::from_json(&text).map_err(|error| unfit(error.to_string()))?;
            if graph.components.is_empty() && StoredPlan::from_json(&text).is_ok() {
                return Err(unfit(format!(
                    "this is a plan and no graph; `hearth run PROGRAM --place {}` follows it",
                    path.display()
                )));
            }
            Ok(Program::foreign(graph))
        }
        Some("mat" | "txt" | "comm") => {
            let text = profiles::text(path)?;
            let read = forms::read_matrix(&text, Ways::Together, &Reading::default())
                .map_err(|error| unfit(error.to_string()))?;
            let mut program = Program::foreign(read.graph);
            program.notes = read.notes;
            Ok(program)
        }
        _ => {
            let source = input::read_program(path)?;
            placing::program(&source, start).or_else(|failure| {
                let found = program::check(&source, &Options::default());
                let mut report = Report::for_terminal();
                report.add(Sources::new(&source.name, &source.text), &found);
                report.finish().and(Err(failure))
            })
        }
    }
}

// ---- text -------------------------------------------------------------------------------------

fn told(
    arguments: &Place,
    program: &Program,
    plan: &Plan,
    site: &Site,
    options: &cost::Options,
) -> String {
    let mut picture = drawn(&title(program, plan, site), program, plan, site, options);
    let notes = plan.notes.iter().chain(&program.notes);
    picture.remarks.extend(notes.map(|note| sentence(note)));
    let mut modelled = format!("Modelled, not measured, from {}.", site.origin);
    if site.is_assumed {
        modelled.push_str(" `hearth probe` would measure them.");
    }
    if plan.places.is_empty() {
        let nobody = "There is nobody to place: the program makes no components, or only ones that are \
                      not known before it runs.";
        let told = picture.remarks.iter().map(|remark| filled(remark, 0));
        return told.chain([filled(nobody, 0)]).collect();
    }
    let mut text = picture.text(picture::TextLook::default());
    let verdict = sentence(&plan.verdict.to_string());
    let _ = write!(text, "\n{}", filled(&verdict, 0));
    if arguments.why {
        text.push_str(&reasons(program, plan));
        text.push_str(&others(plan));
    }
    text.push_str(&filled(&modelled, 0));
    text
}

/// No line is longer, in letters, unless a word is.
const WIDTH: usize = 80;

/// A sentence as lines that are indented by so much, and those behind the first by two more if that is
/// not nothing.
fn filled(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut line = " ".repeat(indent);
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let is_full = line.chars().count() + 1 + word.chars().count() > WIDTH;
        if is_full && !is_empty {
            lines.push_str(&line);
            lines.push('\n');
            line = " ".repeat(if indent > 0 { indent + 2 } else { 0 });
        } else if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines + &line + "\n"
}

fn title(program: &Program, plan: &Plan, site: &Site) -> String {
    format!(
        "{} on {}, by `{}`",
        count(program.graph.components.len(), "component"),
        count(site.machine.slots().len(), "CPU"),
        plan.policy
    )
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

/// With a capital and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    let text = first.unwrap_or_default() + letters.as_str();
    match text.ends_with('.') {
        true => text,
        false => text + ".",
    }
}

fn reasons(program: &Program, plan: &Plan) -> String {
    let mut text = "\nWhy\n".to_owned();
    for place in plan.places.iter().take(TOLD) {
        let why = reason(&place.reason, plan.cost.total_ns);
        let line = format!("{} on CPU {}: {why}", place.name, place.cpu.0);
        text.push_str(&filled(&line, 2));
    }
    if plan.places.len() > TOLD {
        let _ = writeln!(
            text,
            "  and {} more; --json tells all",
            plan.places.len() - TOLD
        );
    }
    let groups = recognise(&program.graph);
    text.push_str("\nWho communicates how\n");
    for group in groups.iter().take(TOLD) {
        text.push_str(&filled(&group.sentence(&program.graph), 2));
    }
    if groups.len() > TOLD {
        let _ = writeln!(text, "  and {} more groups", groups.len() - TOLD);
    }
    text
}

/// A reason as a sentence, what it saves as a share of what the plan costs.
fn reason(reason: &Reason, total_ns: f64) -> String {
    let more = |saves_ns: f64| {
        let percent = 100.0 * saves_ns / total_ns.max(f64::MIN_POSITIVE);
        match percent {
            percent if percent.is_nan() => String::new(),
            percent if percent < 0.05 => "; anywhere else costs hardly more".to_owned(),
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
            format!("computes where there is room{}", more(*saves_ns))
        }
        Reason::Pinned { .. } | Reason::Free | Reason::Policy { .. } => reason.to_string(),
    }
}

fn others(plan: &Plan) -> String {
    let mut text = "\nOther ways\n".to_owned();
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
        text.push_str("  Nothing costs less: all placements were looked at.\n");
    }
    text.push('\n');
    text
}

fn drawn<'a>(
    title: &str,
    program: &Program,
    plan: &Plan,
    site: &'a Site,
    options: &cost::Options,
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
            "100 % is what a core does for one hardware thread alone; its threads do up to {:.0} % together.",
            100.0 * options.smt_yield
        ));
    }
    drawn
}

/// Is a core of several threads told to do more than one thread can?
fn has_loads_of_siblings(drawn: &picture::Placement) -> bool {
    drawn.machine.cores().iter().any(|core| {
        let is_here = |thread| core.threads.contains(&thread);
        let here = drawn.components.iter();
        let loads = here.filter(|one| one.thread.is_some_and(is_here));
        // What is not told as more than 100 % needs no word.
        core.threads.len() > 1 && loads.map(|one| one.load).sum::<f64>() > 1.005
    })
}

/// The rates of a program's graph are those of components that each have a core. So much of them the
/// busiest of the plan's CPUs, or the longest cycle, allows.
fn pace(program: &Program, plan: &Plan) -> f64 {
    match program.graph.round {
        Round::Second => 1e9 / plan.cost.bottleneck_ns.max(1e9),
        _ => 1.0,
    }
}

fn document(program: &Program, plan: &Plan, site: &Site) -> serde_json::Value {
    let components = plan.places.iter().zip(&program.instances);
    json!({
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
    })
}

// ---- for other tools --------------------------------------------------------------------------

fn exported(form: Form, program: &Program, plan: &Plan, site: &Site) -> Result<String, Failure> {
    let placed: Vec<Placed> = plan
        .places
        .iter()
        .map(|place| {
            let node = site.machine.slots()[place.slot.index()].node;
            let node = site.machine.nodes()[node as usize].os;
            Placed::new(&place.name, place.cpu).on_node(node)
        })
        .collect();
    let unfit = |error: &dyn std::fmt::Display| Failure::input(error.to_string());
    let set = || forms::CpuSet::of(&placed).map_err(|error| unfit(&error));
    let command = ["PROGRAM"];
    Ok(match form {
        Form::Hearth => program.lines(plan),
        Form::Taskset => forms::taskset(&set()?, &command).map_err(|error| unfit(&error))? + "\n",
        Form::Numactl => {
            let memory = MemoryPolicy::Bind;
            forms::numactl(&set()?, memory, &command).map_err(|error| unfit(&error))? + "\n"
        }
        Form::Omp => forms::openmp(&placed)
            .map_err(|error| unfit(&error))?
            .exports(),
        Form::Rankfile => {
            let slots = forms::Slots::Threads(&site.profile.topology);
            forms::rankfile(&placed, "+n0", slots).map_err(|error| unfit(&error))?
        }
        Form::CpuList => set()?.cpu_list() + "\n",
        Form::Matrix => forms::write_matrix(&program.graph, Measure::default(), Ways::Together)
            .map_err(|error| unfit(&error))?,
        Form::Metis => forms::write_metis(&program.graph, Measure::default(), Vertices::default())
            .map_err(|error| unfit(&error))?,
    })
}
