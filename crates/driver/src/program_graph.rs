//! A program's communication graph, found by the compiler, as placement takes it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hearth_lang::analysis::graph::{ChannelId, CommunicationGraph, InstanceId, Kind};
use hearth_lang::compile::{self, CompileOptions};
use hearth_machine::topology::OsThread;
use hearth_place::graph::{Component, ComponentId, Connection, Graph, Number, Round, Turn};
use hearth_place::plan::PlacementPlan;
use hearth_terminal::Failure;

use crate::input::Source;

/// A component as the runtime knows it: by its type and its number among those of that type, in the
/// order of creation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    pub type_name: String,
    /// From 1.
    pub number: u32,
}

/// A graph to be placed, and the identities of its components.
pub struct ProgramGraph {
    pub graph: Graph,
    /// For each component of the graph; `None` for the main sequence and the standard
    /// environment's, which are never placed.
    pub instances: Vec<Option<Instance>>,
    /// Sentences for the user.
    pub notes: Vec<String>,
}

/// The most notes about what is not constant.
const UNKNOWNS: usize = 5;

impl ProgramGraph {
    /// The graph of a program's text; its main sequence starts on the CPU `start`.
    pub fn of_source(source: &Source, start: OsThread) -> Result<ProgramGraph, Failure> {
        let Some(found) = compile::graph(&source.text, &source.name, &CompileOptions::default())
        else {
            return Err(Failure::input(format!(
                "{} has errors; `hearth check` shows them",
                source.name
            )));
        };
        Ok(ProgramGraph::of(&found, start))
    }

    /// The graph that the compiler found. The main sequence and the standard environment's
    /// components stay where the program starts.
    pub fn of(found: &CommunicationGraph, start: OsThread) -> ProgramGraph {
        let talks = talkers(found);
        let mut program = ProgramGraph {
            graph: Graph {
                round: Round::Second,
                ..Graph::default()
            },
            instances: Vec::new(),
            notes: notes(found),
        };
        let mut ids: BTreeMap<InstanceId, ComponentId> = BTreeMap::new();
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for (index, component) in found.components.iter().enumerate() {
            let id = InstanceId(index as u32);
            let number = numbers.entry(&component.type_name).or_default();
            *number += 1;
            let is_placed = component.kind == Kind::User;
            if !is_placed && !talks[index] {
                continue;
            }
            ids.insert(id, program.graph.add(self::component(component, start)));
            program.instances.push(is_placed.then(|| Instance {
                type_name: component.type_name.to_string(),
                number: *number,
            }));
        }
        let turns = turns(found);
        let shared = shared(found);
        for flow in &found.flows {
            if flow.from == flow.to {
                continue;
            }
            let (Some(&from), Some(&to)) = (ids.get(&flow.from), ids.get(&flow.to)) else {
                continue;
            };
            let bytes = found.connections[flow.connection].bytes.value;
            program.graph.connect(Connection {
                turn: turns[flow.connection],
                is_shared: shared[flow.connection],
                ..Connection::new(from, to)
                    .messages(Number::predicted(flow.messages_per_second))
                    .bytes(Number::predicted(bytes))
            });
        }
        program
    }

    /// A graph of a program that is not Hearth's.
    pub fn foreign(graph: Graph) -> ProgramGraph {
        ProgramGraph {
            instances: vec![None; graph.components.len()],
            graph,
            notes: Vec::new(),
        }
    }

    /// A line for each placed component: type, number and CPU with tabs between them, as the
    /// runtime takes them.
    pub fn lines(&self, plan: &PlacementPlan) -> String {
        let cpus = plan.places.iter().map(|place| Some(place.cpu));
        self.lines_of(cpus)
    }

    /// The same lines from a CPU for each component of the graph; those without are left out.
    pub fn lines_of(&self, cpus: impl Iterator<Item = Option<OsThread>>) -> String {
        let mut text = String::new();
        for (instance, cpu) in self.instances.iter().zip(cpus) {
            if let (Some(instance), Some(cpu)) = (instance, cpu) {
                let _ = writeln!(
                    text,
                    "{}\t{}\t{}",
                    instance.type_name, instance.number, cpu.0
                );
            }
        }
        text
    }
}

/// Notes about what is not constant in a program.
fn notes(found: &CommunicationGraph) -> Vec<String> {
    let mut notes: Vec<String> = found
        .unknowns
        .iter()
        .take(UNKNOWNS)
        .map(|unknown| format!("Not in the plan: {}", unknown.reason))
        .collect();
    if found.unknowns.len() > UNKNOWNS {
        let more = found.unknowns.len() - UNKNOWNS;
        notes.push(format!("Nor are {more} more places in the text"));
    }
    notes
}

/// The largest overlap at which request and reply still count as strict alternation: work of the
/// asking side meanwhile, as a share of the answering side's.
const MEANWHILE_MAX: f64 = 0.25;

/// The smallest share of a server's work that is done for its clients. Neighbours that compute and
/// then exchange results also wait for answers, and still compute at the same time.
const SERVING_MIN: f64 = 0.5;

/// Work beside a message that counts as part of the message, in ns.
const NOTHING_NS: f64 = 20.0;

/// For each connection, whether its two sides take turns.
fn turns(found: &CommunicationGraph) -> Vec<Turn> {
    let mut turns = vec![Turn::Free; found.connections.len()];
    let serves = servers(found);
    for (index, connection) in found.connections.iter().enumerate() {
        if let Some(turn) = connection.alternates
            && turn.meanwhile_ns <= MEANWHILE_MAX * turn.serving_ns
            && found.channels[connection.to.index()]
                .users
                .iter()
                .all(|user| serves[user.index()])
        {
            turns[index] = Turn::Request;
            turns[turn.answer] = Turn::Answer;
        }
    }
    turns
}

/// For each component, whether it does most of its work for its clients.
fn servers(found: &CommunicationGraph) -> Vec<bool> {
    let mut serving_ns = vec![0.0; found.components.len()];
    let mut messages = vec![0.0; found.components.len()];
    for flow in &found.flows {
        let (to, rate) = (flow.to.index(), flow.messages_per_second);
        messages[to] += rate;
        if let Some(turn) = found.connections[flow.connection].alternates {
            serving_ns[to] += rate * turn.serving_ns;
        }
    }
    let components = found.components.iter().enumerate();
    components
        .map(|(index, component)| {
            let work_ns = component.work_ns.value * component.passes_per_second;
            let beside_ns = work_ns - serving_ns[index] - NOTHING_NS * messages[index];
            beside_ns <= (1.0 - SERVING_MIN) * work_ns
        })
        .collect()
}

/// For each connection, whether more than one sender and one receiver use its half-channels.
fn shared(found: &CommunicationGraph) -> Vec<bool> {
    let mut ends = vec![0_usize; found.channels.len()];
    for connection in &found.connections {
        ends[connection.from.index()] += 1;
        ends[connection.to.index()] += 1;
    }
    let has_more =
        |end: ChannelId| ends[end.index()] > 1 || found.channels[end.index()].users.len() > 1;
    let connections = found.connections.iter();
    connections
        .map(|connection| has_more(connection.from) || has_more(connection.to))
        .collect()
}

/// For each component, whether it exchanges messages.
fn talkers(found: &CommunicationGraph) -> Vec<bool> {
    let mut talks = vec![false; found.components.len()];
    for flow in found
        .flows
        .iter()
        .filter(|flow| flow.messages_per_second > 0.0)
    {
        for id in [flow.from, flow.to] {
            talks[id.index()] = true;
        }
    }
    talks
}

fn component(found: &hearth_lang::analysis::graph::Component, start: OsThread) -> Component {
    // A component of unknown rate counts as doing one pass.
    let passes = match found.passes_per_second > 0.0 {
        true => Number::predicted(found.passes_per_second),
        false => Number::assumed(1.0),
    };
    let mut component = Component::new(&found.name)
        .passes(passes)
        .work_ns(Number::new(
            found.work_ns.value * passes.value,
            passes.basis,
        ))
        .working_set_bytes(Number::predicted(found.working_set_bytes as f64))
        .heap_bytes(match found.heap_bytes {
            Some(bytes) => Number::predicted(bytes as f64),
            None => Number::assumed(found.working_set_bytes as f64),
        });
    if !found.type_name.is_empty() {
        component = component.of_type(&*found.type_name);
    }
    match (found.kind, found.core) {
        (Kind::User, None) => component,
        (Kind::User, Some(core)) => component.pinned(OsThread(core)),
        (Kind::Main | Kind::Service, _) => component.pinned(start),
    }
}
