//! The references that a parked component's values hold, for the collector.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;

use crate::abi::{self, Component, Held, IMMORTAL, Kind, Object, Procedure, Type, fields};
use crate::exchange::channel::Channel;
use crate::exchange::values::object;

/// A counted reference that was found.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    Component(*mut Component),
    HalfChannel(*mut Channel),
}

/// Collects the references of one component after another.
#[derive(Default)]
pub(crate) struct Tracer {
    found: Vec<Found>,
    /// Objects with several references, each of which is gone through once.
    known: HashSet<*mut c_void>,
    left: Vec<(&'static Type, *mut c_void)>,
    /// Whether objects of a type can refer to a component or a half-channel, by its address.
    can_refer: HashMap<usize, bool>,
}

impl Tracer {
    /// Calls `tell` with each reference that the component's members and frames hold.
    ///
    /// # Safety
    /// The component is parked, and neither runs nor is touched by others meanwhile.
    pub(crate) unsafe fn trace(&mut self, component: *mut Component) {
        // SAFETY: types are static.
        if let Some(trace) = unsafe { (*(*component).r#type).trace } {
            // SAFETY: as the caller promises.
            unsafe { trace(component, std::ptr::from_mut(self).cast()) };
        }
        self.known.clear();
    }

    /// Takes what was found since the last time.
    pub(crate) fn take(&mut self) -> std::vec::Drain<'_, Found> {
        self.found.drain(..)
    }

    /// Adds a counted reference, and all in the object behind it.
    ///
    /// # Safety
    /// The value is null or of this type, and as in [`Tracer::trace`].
    pub(crate) unsafe fn add(&mut self, of: &Type, value: *mut c_void) {
        // SAFETY: as the caller promises; types are static.
        unsafe {
            let mut next = Some((of, value));
            while let Some((of, value)) = next {
                self.one(of, value);
                next = self.left.pop();
            }
        }
    }

    unsafe fn one(&mut self, of: &Type, value: *mut c_void) {
        if value.is_null() || !self.can_refer(of) {
            return;
        }
        match of.kind {
            Kind::In | Kind::Out => return self.found.push(Found::HalfChannel(value.cast())),
            Kind::Component => return self.found.push(Found::Component(value.cast())),
            _ => {}
        }
        // SAFETY: as the caller promises: a valid object of this type.
        unsafe {
            match (*value.cast::<Object>()).refs {
                1 => {}
                // A literal, of which others may have the only copy, too.
                IMMORTAL if object::is_immutable(of) => return,
                _ if !self.known.insert(value) => return,
                _ => {}
            }
            if of.kind == Kind::Procedure {
                let owner = (*value.cast::<Procedure>()).owner;
                if !owner.is_null() {
                    self.found.push(Found::Component(owner));
                }
                return;
            }
            let left = &mut self.left;
            object::for_each_inside(of, value, |of, place| left.push((of, *place)));
        }
    }

    fn can_refer(&mut self, of: &Type) -> bool {
        match of.kind {
            Kind::Any | Kind::In | Kind::Out | Kind::Component | Kind::Procedure => return true,
            Kind::Array | Kind::Struct if !of.flat => {}
            _ => return false,
        }
        let key = std::ptr::from_ref(of).addr();
        if let Some(&known) = self.can_refer.get(&key) {
            return known;
        }
        // SAFETY: descriptors are static; parts come before wholes, so this ends.
        let can = unsafe {
            match of.kind {
                Kind::Array => self.can_refer(&*of.element),
                _ => fields(of)
                    .iter()
                    .any(|field| self.can_refer(&*field.r#type)),
            }
        };
        self.can_refer.insert(key, can);
        can
    }
}

/// Tells a tracer of a counted reference.
///
/// # Safety
/// As the header says: a component's `trace` calls this; the value is null or of this type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_trace(
    tracer: *mut abi::Tracer,
    of: *const Type,
    value: *mut c_void,
) {
    // SAFETY: as the caller promises: the tracer is from `Tracer::trace`, which waits for this.
    unsafe { (*tracer.cast::<Tracer>()).add(&*of, value) };
}

/// Tells a tracer of the sender that an acknowledge holds, if any.
///
/// # Safety
/// As for [`hearth_trace`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_trace_held(tracer: *mut abi::Tracer, held: *const Held) {
    // SAFETY: as the caller promises.
    unsafe {
        let sender = (*held).sender;
        if !sender.is_null() {
            let tracer = &mut *tracer.cast::<Tracer>();
            tracer.found.push(Found::Component(sender));
        }
    }
}
