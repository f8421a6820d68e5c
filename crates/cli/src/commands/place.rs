//! `hearth place`: where components would best run, and why.

use std::path::Path;

use hearth_driver::corrections::Corrections;
use hearth_driver::profiles::{self, Chosen};
use hearth_driver::program_graph::ProgramGraph;
use hearth_driver::site::{self, Site};
use hearth_driver::{input, program};
use hearth_lang::compile::CompileOptions;
use hearth_machine::profile::Profile;
use hearth_machine::topology::OsThread;
use hearth_place::cost;
use hearth_place::forms::{self, Measure, MemoryPolicy, Placed, Reading, Vertices, Ways};
use hearth_place::graph::Graph;
use hearth_place::plan::{self, PlacementPlan, StoredPlan};
use hearth_place::policy::Policy;
use hearth_place::slots::CpuSlot;
use hearth_place::talk::Effort;
use hearth_report::placement;
use hearth_terminal::{Failure, output};
use hearth_text::prose::sentence;

use crate::arguments::place::{Decides, Form, PlaceArguments};

pub(crate) fn place(arguments: &PlaceArguments) -> Result<(), Failure> {
    let site = site(arguments)?;
    let start = site.machine.os(CpuSlot(0));
    let program = read(&arguments.file, start)?;
    let options = cost::CostOptions {
        carrier: arguments.carrier.into(),
        ..cost::CostOptions::default()
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
        let mut picture = placement::drawn(
            // Ticks are for the terminal.
            &placement::title(&program, &plan, &site).replace('`', ""),
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
        return output::write_json(&placement::document(&program, &plan, &site));
    }
    // Assumed costs are mentioned below the plan.
    if let Some(warning) = site.warning.as_ref().filter(|_| !site.is_assumed) {
        output::tell(warning);
    }
    let text = placement::text(&program, &plan, &site, &options, arguments.why);
    output::write(text)
}

fn site(arguments: &PlaceArguments) -> Result<Site, Failure> {
    let named = arguments.basis.machine.as_deref();
    let is_file =
        |name: &&str| Path::new(name).exists() || name.ends_with(".json") || name.ends_with(".xml");
    let mut chosen = match named.filter(is_file) {
        Some(name) => {
            let found = super::machine::named(name)?;
            let origin = match found.profile {
                Some(_) => format!("the profile {name}"),
                None => format!("the parts in {name}; every cost is Hearth's stated default"),
            };
            let profile = found.profile;
            Chosen {
                profile: profile.unwrap_or_else(|| Profile::assumed(found.topology)),
                origin,
                warning: None,
                is_assumed: false,
            }
        }
        None => profiles::choose(&arguments.basis.clone().into())?,
    };
    let is_here = named.is_none() && arguments.basis.profile.is_none();
    let cpus = match &arguments.cpus {
        Some(cpus) => cpus.0.iter().copied().map(OsThread).collect(),
        None if is_here => site::usable(&chosen.profile.topology),
        None => Vec::new(),
    };
    // Another machine cannot be checked, and the warning says that it is another one.
    let corrections = match (is_here, &chosen.warning) {
        (true, None) => Corrections::found(&chosen.profile),
        _ => Corrections::default(),
    };
    chosen.warning = chosen.warning.or_else(|| corrections.warning());
    Site::new(chosen, &cpus, &corrections)
}

/// Reads the graph to place.
fn read(path: &Path, start: OsThread) -> Result<ProgramGraph, Failure> {
    let kind = path.extension().and_then(|extension| extension.to_str());
    let unfit = |error: String| Failure::input(format!("{}: {error}", path.display()));
    match kind {
        Some("json") => {
            let text = profiles::text(path)?;
            let graph = Graph::from_json(&text).map_err(|error| unfit(error.to_string()))?;
            if graph.components.is_empty() && StoredPlan::from_json(&text).is_ok() {
                return Err(unfit(format!(
                    "this is a plan, not a graph; `hearth run PROGRAM --place {}` follows it",
                    path.display()
                )));
            }
            Ok(ProgramGraph::foreign(graph))
        }
        Some("mat" | "txt" | "comm") => {
            let text = profiles::text(path)?;
            let read = forms::read_matrix(&text, Ways::Together, &Reading::default())
                .map_err(|error| unfit(error.to_string()))?;
            let mut program = ProgramGraph::foreign(read.graph);
            program.notes = read.notes;
            Ok(program)
        }
        _ => {
            let source = input::read_program(path)?;
            ProgramGraph::of_source(&source, start).or_else(|failure| {
                let found = program::check(&source, &CompileOptions::default());
                program::show(&source, &found).and(Err(failure))
            })
        }
    }
}

/// A plan in the form of another tool.
fn exported(
    form: Form,
    program: &ProgramGraph,
    plan: &PlacementPlan,
    site: &Site,
) -> Result<String, Failure> {
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
            let slots = forms::SlotNumbering::Threads(&site.profile.topology);
            forms::rankfile(&placed, "+n0", slots).map_err(|error| unfit(&error))?
        }
        Form::CpuList => set()?.cpu_list() + "\n",
        Form::Matrix => forms::write_matrix(&program.graph, Measure::default(), Ways::Together)
            .map_err(|error| unfit(&error))?,
        Form::Metis => forms::write_metis(&program.graph, Measure::default(), Vertices::default())
            .map_err(|error| unfit(&error))?,
    })
}
