//! What a program has made so far: objects, half-channels, instances, and who is connected.

use super::known::Known;
use super::{ChannelId, InstanceId};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{ComponentId, Direction};
use crate::types::TypeId;
use std::collections::{BTreeMap, HashSet};

/// An object that was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct ObjectId(pub(super) u32);

impl ObjectId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What the elements of an array are that nobody has stored.
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
        /// None if nobody knows.
        length: Option<u32>,
        fill: Fill,
        /// What was stored, by index.
        stored: BTreeMap<u32, Known>,
        /// Something was stored nobody knows where, or nobody knows what is in it.
        is_blurred: bool,
        element: TypeId,
        /// How many arrays there are of which this one stands for each.
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
    /// What a component stands for where a variable of the prelude is named.
    pub(super) globals: Vec<Known>,
}

/// Rows of an array are made one by one when somebody looks; of more than this, the fill stands for all.
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

    /// The peers are these two from now on. Of two with one direction, which no correct program
    /// connects, nothing becomes.
    pub(super) fn connect(&mut self, a: ChannelId, b: ChannelId, span: Span) {
        let (from, to) = match self.channels[a.index()].direction {
            Direction::Out => (a, b),
            Direction::In => (b, a),
        };
        if self.channels[from.index()].direction != self.channels[to.index()].direction
            && self.linked.insert((from, to))
        {
            self.links.push(Some(Link { from, to, span }));
        }
    }

    pub(super) fn disconnect(&mut self, channel: ChannelId) {
        for slot in &mut self.links {
            if let Some(link) = slot
                && (link.from == channel || link.to == channel)
            {
                self.linked.remove(&(link.from, link.to));
                *slot = None;
            }
        }
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

    /// What is known of an element without its index.
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
