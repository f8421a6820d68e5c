//! Objects of a region, and the references that the collector finds in them.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// An object that a processor handles.
///
/// [`Object::trace`] shows the collector the references that the object holds. A reference that it
/// leaves out counts as held by somebody alive: then the collector keeps too much, never too
/// little.
///
/// ```
/// use hearth_regions::{Object, Separate, Tracer};
///
/// struct Node {
///     next: Option<Separate<Node>>,
/// }
///
/// impl Object for Node {
///     fn trace(&self, tracer: &mut Tracer) {
///         self.next.trace(tracer);
///     }
/// }
/// ```
pub trait Object: Any + Send {
    /// Traces each reference that the object itself owns: fields, and what lies in its collections.
    /// One that it shares with others, behind an `Arc`, must be left out.
    fn trace(&self, _tracer: &mut Tracer) {}

    /// Bytes that the object takes, for the threshold of automatic collections.
    fn bytes(&self) -> usize {
        size_of_val(self)
    }
}

/// A value that may go to another processor, in a call or as its answer.
///
/// Local references may not, nor may what contains them. They are marked by the only automatic
/// trait that is free for it, `Unpin`; nothing here has to do with pinning. The mark does not see
/// into a `Box`; a local reference that was carried off in one is refused where it is used
/// ([`LocalError::Elsewhere`](crate::LocalError::Elsewhere)).
///
/// ```compile_fail
/// use hearth_regions::{Local, Object, Separate};
///
/// struct Leaf(u64);
/// impl Object for Leaf {}
///
/// fn carry_off(leaf: Local<Leaf>, elsewhere: &Separate<Leaf>) {
///     let _ = elsewhere.command(move |_, here| {
///         let _ = here.with(&leaf, |leaf, _| leaf.0);
///     });
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` must not go to another processor",
    note = "it must be `Send` and `'static` and must hold no `Local`; `Local::separate` gives a reference that may travel"
)]
pub trait Mobile: Send + Unpin + 'static {}

impl<T: Send + Unpin + 'static> Mobile for T {}

/// A reference that was found: the place where it lies, and the object that it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    at: usize,
    pub(crate) processor: u32,
    pub(crate) slot: u32,
}

/// Takes note of the references of an object.
#[derive(Debug, Default)]
pub struct Tracer {
    found: Vec<Found>,
}

impl Tracer {
    pub(crate) fn note(&mut self, at: usize, processor: u32, slot: u32) {
        self.found.push(Found {
            at,
            processor,
            slot,
        });
    }

    /// Takes the references of one object. One that was shown twice counts once: counting it twice
    /// would let a live object look dead.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Found> + '_ {
        self.found.sort_unstable();
        self.found.dedup();
        self.found.drain(..)
    }

    pub(crate) fn clear(&mut self) {
        self.found.clear();
    }
}

macro_rules! without_references {
    ($($name:ty),*) => {
        $(impl Object for $name {})*
    };
}
without_references!(
    (),
    bool,
    char,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    f32,
    f64,
    String,
    &'static str
);

impl<T: Object> Object for Option<T> {
    fn trace(&self, tracer: &mut Tracer) {
        self.iter().for_each(|object| object.trace(tracer));
    }
}

impl<T: Object + ?Sized> Object for Box<T> {
    fn trace(&self, tracer: &mut Tracer) {
        T::trace(self, tracer);
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + T::bytes(self)
    }
}

macro_rules! sequence {
    ($($name:ident),*) => {
        $(impl<T: Object> Object for $name<T> {
            fn trace(&self, tracer: &mut Tracer) {
                self.iter().for_each(|object| object.trace(tracer));
            }

            fn bytes(&self) -> usize {
                size_of::<Self>() + self.iter().map(T::bytes).sum::<usize>()
            }
        })*
    };
}
sequence!(Vec, VecDeque);

macro_rules! map {
    ($name:ident where $($bound:tt)*) => {
        impl<K: Object + $($bound)*, V: Object> Object for $name<K, V> {
            fn trace(&self, tracer: &mut Tracer) {
                for (key, value) in self {
                    key.trace(tracer);
                    value.trace(tracer);
                }
            }

            fn bytes(&self) -> usize {
                let of = self.iter().map(|(key, value)| key.bytes() + value.bytes());
                size_of::<Self>() + of.sum::<usize>()
            }
        }
    };
}
map!(HashMap where Eq + std::hash::Hash);
map!(BTreeMap where Ord);

macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Object),*> Object for ($($name,)*) {
            fn trace(&self, tracer: &mut Tracer) {
                $(self.$index.trace(tracer);)*
            }
        }
    };
}
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
