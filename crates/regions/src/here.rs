//! The region of a processor, as a call sees it.

use std::any::Any;
use std::sync::Arc;

use crate::handler::Handler;
use crate::object::Object;

/// A place of a region's objects.
#[derive(Default)]
enum Place {
    /// No object is there: not yet, or never, or it was collected.
    #[default]
    Empty,
    /// A call uses the object.
    Taken,
    /// An object, and the bytes that it said it takes.
    Held(Box<dyn Object>, usize),
}

/// The objects of a region, by slot.
#[derive(Default)]
pub(crate) struct Objects {
    places: Vec<Place>,
    /// Objects that are there or in use.
    count: usize,
    /// The bytes that they said they take.
    bytes: usize,
    /// Objects and bytes at which the region looks for garbage of its own.
    limit: (usize, usize),
}

/// Objects and bytes below which a region does not look for garbage of its own.
const OWN_LEAST: (usize, usize) = (1024, 1 << 20);

/// The reason why an object is not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    Empty,
    Taken,
}

impl Objects {
    fn place(&mut self, slot: u32) -> &mut Place {
        let slot = slot as usize;
        if slot >= self.places.len() {
            self.places.resize_with(slot + 1, Place::default);
        }
        &mut self.places[slot]
    }

    /// Objects with their slots, unless calls use them.
    pub(crate) fn held(&self) -> impl Iterator<Item = (u32, &dyn Object)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(slot, place)| match place {
            Place::Held(object, _) => Some((slot as u32, &**object)),
            _ => None,
        })
    }

    /// Removes an object; gives it and its bytes.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<(Box<dyn Object>, usize)> {
        match std::mem::take(self.place(slot)) {
            Place::Held(object, bytes) => {
                self.count -= 1;
                self.bytes -= bytes;
                Some((object, bytes))
            }
            _ => None,
        }
    }

    /// True if the region has grown enough to look for garbage of its own.
    pub(crate) fn is_due(&self) -> bool {
        self.count >= self.limit.0.max(OWN_LEAST.0) || self.bytes >= self.limit.1.max(OWN_LEAST.1)
    }

    /// Sets the next limit, twice what is left.
    pub(crate) fn follow(&mut self) {
        self.limit = (2 * self.count, 2 * self.bytes);
    }
}

/// The processor that applies the present call, and its region. Each call gets it.
///
/// Makes further objects here or on processors of their own, and leads from local references to
/// their objects.
pub struct Here {
    pub(crate) handler: Arc<Handler>,
    objects: Objects,
}

impl std::fmt::Debug for Here {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Here").finish_non_exhaustive()
    }
}

impl Here {
    pub(crate) fn new(handler: &Arc<Handler>) -> Here {
        Here {
            handler: Arc::clone(handler),
            objects: Objects::default(),
        }
    }

    pub(crate) fn enter(&mut self, objects: Objects) {
        self.objects = objects;
    }

    pub(crate) fn leave(&mut self) -> Objects {
        std::mem::take(&mut self.objects)
    }

    /// Puts a new object into a slot that was reserved for it.
    pub(crate) fn put(&mut self, slot: u32, object: Box<dyn Object>) {
        let bytes = object.bytes();
        *self.objects.place(slot) = Place::Held(object, bytes);
        self.objects.count += 1;
        self.objects.bytes += bytes;
        let common = &self.handler.common;
        if common.bytes.add(bytes) {
            common.ring();
        }
    }

    /// Takes an object for the time of a call.
    pub(crate) fn take(&mut self, slot: u32) -> Result<Taken<'_>, Absent> {
        let place = self.objects.place(slot);
        match std::mem::replace(place, Place::Taken) {
            Place::Held(object, bytes) => Ok(Taken {
                here: self,
                slot,
                object: Some((object, bytes)),
            }),
            Place::Taken => Err(Absent::Taken),
            Place::Empty => {
                *place = Place::Empty;
                Err(Absent::Empty)
            }
        }
    }
}

/// An object in use. It goes back when this is dropped, by a panic too.
pub(crate) struct Taken<'a> {
    here: &'a mut Here,
    slot: u32,
    object: Option<(Box<dyn Object>, usize)>,
}

impl Taken<'_> {
    /// The object, and the region without it.
    ///
    /// # Panics
    /// Panics if the slot has an object of another type, which references rule out.
    pub(crate) fn parts<T: Object>(&mut self) -> (&mut T, &mut Here) {
        let (object, _) = self.object.as_mut().expect("it is taken until the drop");
        let any: &mut dyn Any = &mut **object;
        let object = any.downcast_mut();
        (
            object.expect("a slot keeps one object for all of its references"),
            self.here,
        )
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some((object, bytes)) = self.object.take() {
            *self.here.objects.place(self.slot) = Place::Held(object, bytes);
        }
    }
}
