//! From the walk to the graph.

use super::tally::{Tally, Use};
use super::walk::Walk;
use super::world::{Link, Name, Object, World};
use super::{
    Amount, ChannelId, CommunicationGraph, Component, Connection, Direction, HalfChannel,
    InstanceId, Kind, Traffic, Unknown, alternation, bytes, choices, messages, rates,
};
use crate::core::ir::Module;
use crate::tree::{ComponentId, Program};
use crate::types::{Type, TypeId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// A cache line: what touching one element brings at least.
const LINE_BYTES: f64 = 64.0;

/// The graph of a program. `module` is its core IR before the passes over loops; `heaps` tells how
/// large the heap of each component can get, by number, and that of the main sequence last.
pub fn of(program: &Program, module: &Module, heaps: &[Option<u64>]) -> CommunicationGraph {
    let mut walk = Walk::start(program, module);
    let main = std::mem::take(&mut walk.tally);
    let mut tallies = messages::passes(&mut walk, main);
    choices::settle(&walk, &mut tallies);
    let mut builder = Builder {
        program,
        world: &walk.world,
        graph: CommunicationGraph::default(),
        types: HashMap::new(),
    };
    builder.components(&tallies, heaps);
    builder.starts(&walk.starts);
    builder.channels();
    builder.timers(&tallies);
    builder.connections(&tallies);
    builder.unknowns(&tallies, &walk.starts);
    let mut graph = builder.graph;
    rates::pairs(&mut graph);
    alternation::fill(&mut graph, &tallies);
    rates::fill(&mut graph);
    graph
}

struct Builder<'a> {
    program: &'a Program,
    world: &'a World,
    graph: CommunicationGraph,
    types: HashMap<TypeId, Arc<str>>,
}

impl Builder<'_> {
    fn components(&mut self, tallies: &[Tally], heaps: &[Option<u64>]) {
        let declared = self.program.components.iter();
        let names: Vec<Arc<str>> = declared
            .map(|component| self.program.names.name(component.name).into())
            .collect();
        let main: Arc<str> = "main".into();
        let mut seen = HashMap::new();
        for (instance, tally) in self.world.instances.iter().zip(tallies) {
            let (kind, type_name, heap) = match instance.component {
                None => (Kind::Main, &main, heaps.last()),
                Some(id) => {
                    let kind = match self.program.components[id.index()].service {
                        true => Kind::Service,
                        false => Kind::User,
                    };
                    (kind, &names[id.index()], heaps.get(id.index()))
                }
            };
            let name = match kind {
                Kind::Main => "main".to_owned(),
                _ => self.instance_name(instance.parent, instance.name, type_name, &mut seen),
            };
            self.graph.components.push(Component {
                name,
                declaration: instance.component.map(ComponentId::index),
                type_name: Arc::clone(type_name),
                kind,
                parent: instance.parent,
                core: instance.core,
                span: instance.span,
                work_ns: Amount {
                    value: tally.work_ns,
                    is_exact: !tally.is_work_estimate,
                },
                outside_ns: tally.outside_ns,
                passes_per_second: 0.0,
                traffic: traffic(tally),
                stops_after: tally.stops_after,
                start: Vec::new(),
                working_set_bytes: self.working_set(tally),
                heap_bytes: heap.copied().flatten(),
            });
        }
    }

    /// `parent.variable[index]`, with `#2` and so on where that is taken.
    fn instance_name(
        &self,
        parent: InstanceId,
        name: Option<Name>,
        type_name: &str,
        seen: &mut HashMap<String, u32>,
    ) -> String {
        let mut text = String::new();
        if parent != InstanceId::MAIN {
            text.push_str(&self.graph.component(parent).name);
            text.push('.');
        }
        match name {
            Some(name) => text.push_str(&self.variable(name)),
            None => text.push_str(type_name),
        }
        let count = seen.entry(text.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            text.push_str(&format!("#{count}"));
        }
        text
    }

    fn variable(&self, (symbol, index): Name) -> String {
        let name = self.program.names.name(symbol);
        match index {
            Some(index) => format!("{name}[{index}]"),
            None => name.to_owned(),
        }
    }

    /// The bytes that a pass touches: of each array as much as there are accesses, and not more
    /// than it has; of a row that stands for all, as much as all of them have.
    fn working_set(&self, tally: &Tally) -> u64 {
        let mut sum = 0.0;
        for (&object, &accesses) in &tally.touched {
            let Object::Array {
                length,
                element,
                copies,
                ..
            } = self.world.get(object)
            else {
                continue;
            };
            let each = bytes::of_slot(self.program, *element);
            let length = length.map_or(bytes::LENGTH_ASSUMED, f64::from);
            let whole = copies * (length * each + bytes::ARRAY);
            let touched = (accesses * each).max(accesses.min(1.0) * LINE_BYTES);
            sum += if accesses >= copies * length {
                whole
            } else {
                whole.min(touched)
            };
        }
        sum.round() as u64
    }

    fn starts(&mut self, starts: &[(InstanceId, Tally)]) {
        for (id, tally) in starts {
            self.graph.components[id.index()].start = traffic(tally);
        }
    }

    fn channels(&mut self) {
        let mut seen: HashMap<(InstanceId, String), u32> = HashMap::new();
        for channel in &self.world.channels {
            let mut name = channel
                .name
                .map_or(String::new(), |name| self.variable(name));
            let count = seen.entry((channel.owner, name.clone())).or_insert(0);
            *count += 1;
            if *count > 1 {
                name.push_str(&format!("#{count}"));
            }
            let payload = match self.types.get(&channel.payload) {
                Some(text) => Arc::clone(text),
                None => {
                    let text: Arc<str> = self.type_text(channel.payload).into();
                    self.types.insert(channel.payload, Arc::clone(&text));
                    text
                }
            };
            self.graph.channels.push(HalfChannel {
                owner: channel.owner,
                name,
                direction: channel.direction,
                payload,
                span: channel.span,
                users: Vec::new(),
                timer_seconds: None,
            });
        }
        for (index, component) in self.graph.components.iter().enumerate() {
            for used in component.traffic.iter().chain(&component.start) {
                let users = &mut self.graph.channels[used.channel.index()].users;
                let id = InstanceId(index as u32);
                if users.last() != Some(&id) {
                    users.push(id);
                }
            }
        }
    }

    /// Sets a timer; of several on a channel the quickest counts.
    fn timers(&mut self, tallies: &[Tally]) {
        for &(channel, seconds) in tallies.iter().flat_map(|tally| &tally.timers) {
            let known = &mut self.graph.channels[channel.index()].timer_seconds;
            *known = Some(known.map_or(seconds, |known| known.min(seconds)));
        }
    }

    fn type_text(&self, ty: TypeId) -> String {
        let named = self.program.type_names.iter().find(|(id, _)| *id == ty);
        if let Some((_, symbol)) = named {
            return self.program.names.name(*symbol).to_owned();
        }
        match self.program.types.get(ty) {
            Type::Integer => "integer".into(),
            Type::Unsigned => "unsigned".into(),
            Type::Real => "real".into(),
            Type::Bool => "bool".into(),
            Type::Byte => "byte".into(),
            Type::String => "string".into(),
            Type::Any => "any".into(),
            Type::Array(element) => format!("{}[]", self.type_text(*element)),
            Type::Channel(Direction::In, payload) => format!("in {}", self.type_text(*payload)),
            Type::Channel(Direction::Out, payload) => format!("out {}", self.type_text(*payload)),
            Type::Enum(_) => "enum".into(),
            Type::Struct(_) => "struct".into(),
            Type::Component(_) => "interface".into(),
            Type::Proc { .. } => "proc".into(),
            Type::Void | Type::Never | Type::Error => "void".into(),
        }
    }

    fn connections(&mut self, tallies: &[Tally]) {
        let sizes = self.sizes();
        let moved = self.moved();
        let lasting = self.world.links.iter().flatten();
        let mut links: Vec<(Link, bool)> = lasting.map(|link| (*link, false)).collect();
        let known = links.iter().map(|(link, _)| (link.from, link.to));
        let mut known: HashSet<(ChannelId, ChannelId)> = known.collect();
        for &(from, to, span) in tallies.iter().flat_map(|tally| &tally.temporary) {
            if known.insert((from, to)) {
                links.push((Link { from, to, span }, true));
            }
        }
        for (link, is_temporary) in links {
            let ends = [link.from, link.to];
            let owners = ends.map(|end| self.world.channels[end.index()].owner);
            let mut kinds = owners.iter().map(|id| self.graph.component(*id).kind);
            let is_to_service = kinds.any(|kind| kind == Kind::Service);
            let payload = self.world.channels[link.from.index()].payload;
            let unsent = Amount {
                value: bytes::of_slot(self.program, payload),
                is_exact: false,
            };
            self.graph.connections.push(Connection {
                from: link.from,
                to: link.to,
                span: link.span,
                bytes: sizes.get(&link.from).copied().unwrap_or(unsent),
                is_moved: moved.get(&link.from) == Some(&true),
                messages_per_second: 0.0,
                is_to_service,
                is_temporary,
                alternates: None,
            });
        }
    }

    /// Each place once, in the order of the text.
    fn unknowns(&mut self, tallies: &[Tally], starts: &[(InstanceId, Tally)]) {
        let passes = tallies.iter().enumerate();
        let passes = passes.map(|(index, tally)| (InstanceId(index as u32), tally));
        let starts = starts.iter().map(|(id, tally)| (*id, tally));
        let mut places: BTreeMap<_, Vec<InstanceId>> = BTreeMap::new();
        for (id, tally) in passes.chain(starts) {
            for &(kind, reason, span) in &tally.unknowns {
                places.entry((span, kind, reason)).or_default().push(id);
            }
        }
        for ((span, kind, reason), mut components) in places {
            components.sort_unstable();
            components.dedup();
            self.graph.unknowns.push(Unknown {
                kind,
                reason: reason.to_owned(),
                span,
                components,
            });
        }
    }

    /// By half-channel that is sent on: is all that is sent there handed over?
    fn moved(&self) -> BTreeMap<ChannelId, bool> {
        let mut moved = BTreeMap::new();
        for component in &self.graph.components {
            for used in component.traffic.iter().chain(&component.start) {
                if used.direction == Direction::Out {
                    *moved.entry(used.channel).or_insert(true) &= used.is_moved;
                }
            }
        }
        moved
    }

    /// The mean size of a message, by the half-channel that it is sent on.
    fn sizes(&self) -> BTreeMap<ChannelId, Amount> {
        let mut sums: BTreeMap<ChannelId, (f64, f64, bool)> = BTreeMap::new();
        for component in &self.graph.components {
            for used in component.traffic.iter().chain(&component.start) {
                if used.direction == Direction::In {
                    continue;
                }
                let sum = sums.entry(used.channel).or_insert((0.0, 0.0, true));
                // What is sent once in a while has a size, too.
                let weight = used.messages.value.max(1e-9);
                sum.0 += weight * used.bytes.value;
                sum.1 += weight;
                sum.2 &= used.bytes.is_exact;
            }
        }
        let mean = |(id, (bytes, weight, is_exact)): (ChannelId, (f64, f64, bool))| {
            let value = bytes / weight;
            (id, Amount { value, is_exact })
        };
        sums.into_iter().map(mean).collect()
    }
}

fn traffic(tally: &Tally) -> Vec<Traffic> {
    let entry = |direction| {
        move |(&channel, used): (&ChannelId, &Use)| Traffic {
            channel,
            direction,
            messages: Amount {
                value: used.messages,
                is_exact: used.is_exact,
            },
            bytes: used.mean_bytes(),
            is_moved: direction == Direction::Out && used.is_moved,
        }
    };
    let sends = tally.sends.iter().map(entry(Direction::Out));
    let receives = tally.receives.iter().map(entry(Direction::In));
    sends.chain(receives).collect()
}
