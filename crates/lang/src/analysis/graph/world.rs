//! The state of a walked program: objects, half-channels, instances and connections.

use super::known::Known;
use super::{ChannelId, InstanceId};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{ComponentId, Direction};
use crate::types::TypeId;
use std::collections::{BTreeMap, HashMap, HashSet};

/// An object that was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct ObjectId(pub(super) u32);

impl ObjectId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of half-channels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct PoolId(u32);

/// The initial elements of an array.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Fill {
    Value(Known),
    /// Each is a copy of its own.
    CopyOf(ObjectId),
}

/// An object as far as it is known.
#[derive(Clone, Debug)]
pub(super) enum Object {
    Array {
        /// `None` if unknown.
        length: Option<u32>,
        fill: Fill,
        /// Stored elements, by index.
        stored: BTreeMap<u32, Known>,
        /// A store at an unknown index, or of unknown contents.
        is_blurred: bool,
        element: TypeId,
        /// Number of arrays that this one stands for.
        copies: f64,
    },
    Struct {
        fields: Vec<Known>,
    },
    Box {
        ty: TypeId,
        content: Known,
    },
}

/// A variable, and where in an array.
pub(super) type Name = (Symbol, Option<u32>);

pub(super) struct HalfChannel {
    pub(super) owner: InstanceId,
    /// The port, variable or member that it was first known by.
    pub(super) name: Option<Name>,
    pub(super) direction: Direction,
    pub(super) payload: TypeId,
    pub(super) span: Span,
}

pub(super) struct Instance {
    /// None: the main sequence.
    pub(super) component: Option<ComponentId>,
    /// The variable that it was first stored in, and where in an array.
    pub(super) name: Option<Name>,
    pub(super) parent: InstanceId,
    pub(super) ports: Vec<Known>,
    pub(super) members: Vec<Known>,
    pub(super) core: Option<u32>,
    pub(super) span: Span,
}

/// A pair of peers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) from: ChannelId,
    pub(super) to: ChannelId,
    pub(super) span: Span,
}

#[derive(Default)]
pub(super) struct World {
    pub(super) objects: Vec<Object>,
    pub(super) channels: Vec<HalfChannel>,
    pub(super) instances: Vec<Instance>,
    /// In the order of connecting; those that were disconnected again are None.
    pub(super) links: Vec<Option<Link>>,
    linked: HashSet<(ChannelId, ChannelId)>,
    /// By channel: its links.
    links_of: HashMap<ChannelId, Vec<u32>>,
    /// The names of arrays of components and channels, as far as they were in a variable.
    pub(super) names: HashMap<ObjectId, Symbol>,
    pools: Vec<Vec<ChannelId>>,
    pool_numbers: HashMap<Vec<ChannelId>, PoolId>,
    /// By the component and the place in its behaviour: the channel that is created there, one for
    /// all passes.
    passing: HashMap<(InstanceId, Span), ChannelId>,
    /// The component behind a variable of the prelude.
    pub(super) globals: Vec<Known>,
}

/// Rows of an array are created one by one on demand; beyond this number, the fill stands for
/// all.
const ROWS_KEPT: usize = 4096;

impl World {
    pub(super) fn object(&mut self, object: Object) -> Known {
        self.objects.push(object);
        Known::Object(ObjectId(self.objects.len() as u32 - 1))
    }

    pub(super) fn channel(&mut self, channel: HalfChannel) -> Known {
        self.channels.push(channel);
        Known::Channel(ChannelId(self.channels.len() as u32 - 1))
    }

    pub(super) fn get(&self, id: ObjectId) -> &Object {
        &self.objects[id.index()]
    }

    /// A channel that a behaviour makes. Its passes make one each, of which never more than one or
    /// two are in use: they are taken for the same.
    pub(super) fn passing_channel(&mut self, channel: HalfChannel) -> Known {
        let key = (channel.owner, channel.span);
        if let Some(&id) = self.passing.get(&key) {
            return Known::Channel(id);
        }
        let made = self.channel(channel);
        if let Known::Channel(id) = made {
            self.passing.insert(key, id);
        }
        made
    }

    /// The two in the order of sending, if one is an `out` and the other an `in`.
    pub(super) fn in_order(&self, a: ChannelId, b: ChannelId) -> Option<(ChannelId, ChannelId)> {
        let direction = |id: ChannelId| self.channels[id.index()].direction;
        match (direction(a), direction(b)) {
            (Direction::Out, Direction::In) => Some((a, b)),
            (Direction::In, Direction::Out) => Some((b, a)),
            _ => None,
        }
    }

    /// The peers are these two from now on. Of two with one direction, which no correct program
    /// connects, nothing becomes.
    pub(super) fn connect(&mut self, a: ChannelId, b: ChannelId, span: Span) {
        if let Some((from, to)) = self.in_order(a, b)
            && self.linked.insert((from, to))
        {
            let number = self.links.len() as u32;
            self.links.push(Some(Link { from, to, span }));
            self.links_of.entry(from).or_default().push(number);
            self.links_of.entry(to).or_default().push(number);
        }
    }

    pub(super) fn disconnect(&mut self, channel: ChannelId) {
        for number in self.links_of.remove(&channel).unwrap_or_default() {
            if let Some(link) = self.links[number as usize].take() {
                self.linked.remove(&(link.from, link.to));
            }
        }
    }

    /// True if it stays connected.
    pub(super) fn is_connected(&self, channel: ChannelId) -> bool {
        let links = self.links_of.get(&channel);
        links.is_some_and(|links| links.iter().any(|&n| self.links[n as usize].is_some()))
    }

    /// The channels that a value may be; none if that is not known.
    pub(super) fn channels_of(&self, value: Known) -> Vec<ChannelId> {
        match value {
            Known::Channel(channel) => vec![channel],
            Known::OneOf(pool) => self.pools[pool.0 as usize].clone(),
            Known::Among(array) => {
                let elements = self.elements(array);
                let channels = elements.into_iter().map(|element| match element {
                    Known::Channel(channel) => Some(channel),
                    _ => None,
                });
                channels.collect::<Option<Vec<_>>>().unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// The knowledge about a value that is one of these.
    pub(super) fn join_all(&mut self, values: &[Known]) -> Known {
        let Some((&first, rest)) = values.split_first() else {
            return Known::Unknown;
        };
        if rest.iter().all(|value| *value == first) {
            return first;
        }
        let is_channel = |v: &Known| matches!(v, Known::Channel(_) | Known::OneOf(_));
        if values.iter().all(is_channel) {
            let mut all: Vec<ChannelId> = Vec::new();
            for &value in values {
                all.extend(self.channels_of(value));
            }
            return self.pool(all);
        }
        let numbers: Option<Vec<(f64, bool)>> = values.iter().map(|v| v.number()).collect();
        if let Some(numbers) = numbers {
            let sum: f64 = numbers.iter().map(|(number, _)| number).sum();
            return Known::About(sum / numbers.len() as f64);
        }
        let objects: Option<Vec<ObjectId>> = values
            .iter()
            .map(|value| match value {
                Known::Object(id) => Some(*id),
                _ => None,
            })
            .collect();
        objects.map_or(Known::Unknown, |objects| self.join_objects(&objects))
    }

    fn join_objects(&mut self, objects: &[ObjectId]) -> Known {
        match self.get(objects[0]).clone() {
            Object::Struct { fields } => {
                let mut joined = Vec::with_capacity(fields.len());
                for field in 0..fields.len() {
                    let value = |id: &ObjectId| match self.get(*id) {
                        Object::Struct { fields } => fields.get(field).copied(),
                        _ => None,
                    };
                    let values: Option<Vec<Known>> = objects.iter().map(value).collect();
                    let values = values.unwrap_or_default();
                    joined.push(self.join_all(&values));
                }
                self.object(Object::Struct { fields: joined })
            }
            Object::Array {
                element,
                copies,
                mut length,
                ..
            } => {
                for id in objects {
                    match self.get(*id) {
                        Object::Array { length: other, .. } if *other == length => {}
                        _ => length = None,
                    }
                }
                self.object(Object::Array {
                    length,
                    fill: Fill::Value(Known::Unknown),
                    stored: BTreeMap::new(),
                    is_blurred: true,
                    element,
                    copies,
                })
            }
            Object::Box { .. } => Known::Unknown,
        }
    }

    fn pool(&mut self, mut channels: Vec<ChannelId>) -> Known {
        channels.sort_unstable();
        channels.dedup();
        if let [only] = channels[..] {
            return Known::Channel(only);
        }
        if let Some(&pool) = self.pool_numbers.get(&channels) {
            return Known::OneOf(pool);
        }
        let pool = PoolId(self.pools.len() as u32);
        self.pools.push(channels.clone());
        self.pool_numbers.insert(channels, pool);
        Known::OneOf(pool)
    }

    /// The element at an index, or as far as that is known.
    pub(super) fn element(&mut self, array: ObjectId, index: Known) -> Known {
        let Object::Array {
            length,
            fill,
            stored,
            is_blurred,
            ..
        } = &self.objects[array.index()]
        else {
            return Known::Unknown;
        };
        let Known::Int(index) = index else {
            return self.some_element(array);
        };
        if index < 0 || length.is_some_and(|length| index >= i64::from(length)) {
            return Known::Unknown;
        }
        let index = index as u32;
        match (stored.get(&index), fill) {
            _ if *is_blurred => Known::Unknown,
            (Some(known), _) => *known,
            (None, Fill::Value(known)) => *known,
            (None, &Fill::CopyOf(template)) if stored.len() >= ROWS_KEPT => Known::Object(template),
            (None, &Fill::CopyOf(template)) => {
                let copy = self.copy(template);
                if let Object::Array { stored, .. } = &mut self.objects[array.index()] {
                    stored.insert(index, copy);
                }
                copy
            }
        }
    }

    /// Facts known about an element whose index is unknown.
    fn some_element(&self, array: ObjectId) -> Known {
        let Object::Array {
            fill,
            stored,
            is_blurred,
            ..
        } = self.get(array)
        else {
            return Known::Unknown;
        };
        let mut values = stored.values();
        let refers = |known: &Known| {
            matches!(
                known,
                Known::Channel(_) | Known::Component(_) | Known::Object(_)
            )
        };
        match fill {
            _ if *is_blurred => Known::Unknown,
            // Rows are alike as a rule; the one they were copied from stands for all.
            Fill::CopyOf(template) => Known::Object(*template),
            Fill::Value(known) if stored.is_empty() => *known,
            Fill::Value(known) if refers(known) || values.any(refers) => Known::Among(array),
            Fill::Value(_) => Known::Unknown,
        }
    }

    /// All elements that an array may have, as far as they are known, in order.
    pub(super) fn elements(&self, array: ObjectId) -> Vec<Known> {
        let Object::Array {
            length: Some(length),
            fill,
            stored,
            is_blurred: false,
            ..
        } = self.get(array)
        else {
            return Vec::new();
        };
        let other = match fill {
            Fill::Value(known) => *known,
            Fill::CopyOf(template) => Known::Object(*template),
        };
        (0..*length)
            .map(|index| stored.get(&index).copied().unwrap_or(other))
            .collect()
    }

    /// A deep copy.
    pub(super) fn copy(&mut self, id: ObjectId) -> Known {
        let mut object = self.objects[id.index()].clone();
        match &mut object {
            Object::Array { stored, .. } => {
                for value in stored.values_mut() {
                    *value = self.copied(*value);
                }
            }
            Object::Struct { fields } => {
                for value in fields {
                    *value = self.copied(*value);
                }
            }
            Object::Box { .. } => {}
        }
        self.object(object)
    }

    pub(super) fn copied(&mut self, value: Known) -> Known {
        match value {
            Known::Object(id) if !matches!(self.get(id), Object::Box { .. }) => self.copy(id),
            value => value,
        }
    }
}
