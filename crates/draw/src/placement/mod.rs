//! Components on the parts of a machine with their communication: as a picture
//! ([`Placement::draw`]) and as text for a terminal ([`Placement::text`]).
//!
//! Anything that does not fit is counted: of many components of a type some are named, of many
//! connections the dearest are shown. Components without a place on the machine are listed below,
//! and their connections have no way.
//!
//! ```
//! use hearth_draw::placement::{Component, Connection, Placement, TextLook};
//! use hearth_machine::topology::Thread;
//!
//! let machine = hearth_machine::synthetic::parse("1 package, 2 cores")?;
//! let mut placement = Placement::new("Two that talk", &machine);
//! placement.components = vec![
//!     Component { load: 0.5, ..Component::new("a", "Asker", Some(Thread(0))) },
//!     Component::new("b", "Teller", Some(Thread(1))),
//! ];
//! placement.connections = vec![Connection {
//!     from: 0,
//!     to: 1,
//!     messages_per_s: 1e5,
//!     bytes_per_s: 8e5,
//!     cost_ns_per_s: 2e7,
//! }];
//! let text = placement.text(TextLook::default());
//! assert!(text.contains("Asker: a") && text.contains("one package"));
//! # Ok::<(), hearth_machine::synthetic::DescriptionError>(())
//! ```

mod picture;
mod slots;
mod text;

use std::collections::BTreeMap;

use hearth_machine::relation::{Closeness, Nodes};
use hearth_machine::topology::{Thread, Topology};

pub use text::TextLook;

use crate::scale::Unit;
use crate::style::Look;

/// A placement. Connections name components by their index.
#[derive(Clone, Debug)]
pub struct Placement<'a> {
    /// Its title.
    pub title: String,
    /// The machine.
    pub machine: &'a Topology,
    /// The components.
    pub components: Vec<Component>,
    /// The connections. Several from one component to another count as one; one that names a
    /// missing component is ignored.
    pub connections: Vec<Connection>,
    /// Sentences shown below.
    pub remarks: Vec<String>,
}

/// A component with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Its name in the program.
    pub name: String,
    /// Its type: the same colour, and counted together. May be empty.
    pub type_name: String,
    /// Its place. A thread outside the machine counts as none.
    pub thread: Option<Thread>,
    /// Share of a core that it keeps busy, from 0 to 1.
    pub load: f64,
}

/// A connection with its cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connection {
    /// The index of the sender.
    pub from: usize,
    /// The index of the receiver.
    pub to: usize,
    /// Messages a second.
    pub messages_per_s: f64,
    /// Bytes a second, of all messages together.
    pub bytes_per_s: f64,
    /// Cost of a second's messages, in nanoseconds: 10⁹ is all the time of a core.
    pub cost_ns_per_s: f64,
}

impl<'a> Placement<'a> {
    /// A placement without components.
    pub fn new(title: &str, machine: &'a Topology) -> Placement<'a> {
        Placement {
            title: title.to_owned(),
            machine,
            components: Vec::new(),
            connections: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// The types with a colour of their own in the picture, and the colour of all others: for other
    /// pictures of the same components.
    pub fn looks(&self) -> (Vec<(String, Look)>, Look) {
        let [named @ .., last] = slots::TYPE_LOOKS;
        let kinds = Survey::of(self).kinds(0..self.components.len());
        let named: &[&str] = if kinds.len() > slots::TYPE_LOOKS.len() {
            &named
        } else {
            &slots::TYPE_LOOKS
        };
        let own = kinds
            .iter()
            .zip(named)
            .map(|(kind, class)| (kind.type_name.to_owned(), Look::new(class)));
        (own.collect(), Look::new(last))
    }
}

impl Component {
    /// A component without load.
    pub fn new(name: &str, type_name: &str, thread: Option<Thread>) -> Component {
        Component {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            thread,
            load: 0.0,
        }
    }
}

/// The path between two components, nearest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Core,
    Cache,
    Package,
    Packages,
    Nodes,
}

impl Way {
    const ALL: [Way; 5] = [
        Way::Core,
        Way::Cache,
        Way::Package,
        Way::Packages,
        Way::Nodes,
    ];

    fn between(machine: &Topology, a: Thread, b: Thread) -> Way {
        let relation = machine.relation(a, b);
        match (relation.closeness, relation.nodes) {
            (Closeness::Same | Closeness::SmtSibling, _) => Way::Core,
            (_, Nodes::Other) => Way::Nodes,
            (Closeness::SharedCache(_), _) => Way::Cache,
            (Closeness::SamePackage, _) => Way::Package,
            (Closeness::OtherPackage, _) => Way::Packages,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Way::Core => "one core",
            Way::Cache => "one cache",
            Way::Package => "one package",
            Way::Packages => "between packages",
            Way::Nodes => "between nodes",
        }
    }
}

/// A placement reduced to what exists, sorted by place.
struct Survey<'a> {
    placement: &'a Placement<'a>,
    /// The components of each thread.
    on: Vec<Vec<usize>>,
    /// Components without a place.
    nowhere: Vec<usize>,
    /// Connections between existing components, the dearest first.
    connections: Vec<(Connection, Option<Way>)>,
    /// The cost of all of them, in nanoseconds a second.
    cost: f64,
}

/// Components of one type, and their names.
struct Kind<'a> {
    type_name: &'a str,
    names: Vec<&'a str>,
}

impl<'a> Survey<'a> {
    fn of(placement: &'a Placement<'a>) -> Survey<'a> {
        let machine = placement.machine;
        let mut on = vec![Vec::new(); machine.threads().len()];
        let mut nowhere = Vec::new();
        for (index, component) in placement.components.iter().enumerate() {
            let thread = component
                .thread
                .and_then(|thread| on.get_mut(thread.index()));
            thread.unwrap_or(&mut nowhere).push(index);
        }
        let place = |index: usize| {
            let thread = placement.components[index].thread;
            thread.filter(|thread| thread.index() < on.len())
        };
        let mut connections: Vec<_> = merged(placement)
            .into_iter()
            .map(|connection| {
                let ends = place(connection.from).zip(place(connection.to));
                (connection, ends.map(|(a, b)| Way::between(machine, a, b)))
            })
            .collect();
        connections.sort_by(|(a, _), (b, _)| {
            let by_cost = amount(b.cost_ns_per_s).total_cmp(&amount(a.cost_ns_per_s));
            let by_count = amount(b.messages_per_s).total_cmp(&amount(a.messages_per_s));
            by_cost.then(by_count)
        });
        let cost = connections.iter().map(|(one, _)| amount(one.cost_ns_per_s));
        let cost = cost.sum();
        Survey {
            placement,
            on,
            nowhere,
            connections,
            cost,
        }
    }

    fn component(&self, index: usize) -> &'a Component {
        &self.placement.components[index]
    }

    /// The components on some threads.
    fn on(&self, threads: &[Thread]) -> impl Iterator<Item = usize> + Clone {
        let lists = threads.iter().map(|thread| &self.on[thread.index()]);
        lists.flatten().copied()
    }

    /// Load of some threads, in cores.
    fn load(&self, threads: &[Thread]) -> f64 {
        let loads = self
            .on(threads)
            .map(|index| amount(self.component(index).load));
        loads.sum()
    }

    /// Components by type: the most numerous first, then by name; those without a type last.
    fn kinds(&self, components: impl Iterator<Item = usize>) -> Vec<Kind<'a>> {
        let mut by_type: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for index in components {
            let component = self.component(index);
            by_type
                .entry(&component.type_name)
                .or_default()
                .push(&component.name);
        }
        let kinds = by_type.into_iter();
        let mut kinds: Vec<Kind> = kinds
            .map(|(type_name, names)| Kind { type_name, names })
            .collect();
        kinds.sort_by_key(|kind| {
            let count = std::cmp::Reverse(kind.names.len());
            (kind.type_name.is_empty(), count)
        });
        kinds
    }
}

/// The connections between existing components; all from one to another as one.
fn merged(placement: &Placement) -> Vec<Connection> {
    let mut pairs: BTreeMap<(usize, usize), Connection> = BTreeMap::new();
    for one in &placement.connections {
        if one.from.max(one.to) >= placement.components.len() {
            continue;
        }
        let pair = pairs.entry((one.from, one.to)).or_insert(Connection {
            messages_per_s: 0.0,
            bytes_per_s: 0.0,
            cost_ns_per_s: 0.0,
            ..*one
        });
        pair.messages_per_s += amount(one.messages_per_s);
        pair.bytes_per_s += amount(one.bytes_per_s);
        pair.cost_ns_per_s += amount(one.cost_ns_per_s);
    }
    pairs.into_values().collect()
}

/// Largest amount, more than any machine has of anything in a second.
const AMOUNT_MAX: f64 = 1e15;

/// An amount: an invalid number counts as 0, and one beyond the largest as the largest.
fn amount(value: f64) -> f64 {
    if value.is_finite() {
        value.clamp(0.0, AMOUNT_MAX)
    } else {
        0.0
    }
}

/// A part of a whole, for people.
fn percent(part: f64, whole: f64) -> String {
    let share = if whole > 0.0 {
        part / whole * 100.0
    } else {
        0.0
    };
    if share > 0.0 && share < 0.5 {
        return "<1 %".to_owned();
    }
    if share > 9999.0 {
        return ">9999 %".to_owned();
    }
    format!("{share:.0} %")
}

/// Nanoseconds a second as a share of a core, or as a number of cores.
fn cores(ns_per_s: f64) -> String {
    if ns_per_s < 9.995e8 {
        return format!("{} of a core", percent(ns_per_s, 1e9));
    }
    format!("{} cores", Unit::Number.show(ns_per_s / 1e9))
}

/// A number a second, for people: `1.2 M`.
fn rate(value: f64) -> String {
    let value = amount(value);
    if value >= 999.5e9 {
        return ">999 G".to_owned();
    }
    let (factor, letter) = match value {
        value if value >= 999.5e6 => (1e9, " G"),
        value if value >= 999.5e3 => (1e6, " M"),
        value if value >= 9_999.5 => (1e3, " k"),
        _ => (1.0, ""),
    };
    let number = value / factor;
    let decimals = usize::from(number < 9.95 && number.fract() > 0.0);
    format!("{number:.decimals$}{letter}")
}
