//! The running components and their names.

use std::collections::HashMap;
use std::ffi::c_char;
use std::ptr;
use std::sync::{Condvar, Mutex};

use hearth_sys::brief::Brief;

use super::seat::{Identity, Seat};
use crate::abi::{ComponentType, literal};
use crate::ground::options;
use crate::ground::runtime::Part;
use crate::ground::sync::lock_std as lock;

/// The main sequence's number: it is the first component made.
pub(crate) const MAIN: u64 = 1;

/// The running components, in creation order, linked by their `neighbours`.
struct Registry {
    next_id: u64,
    first: *const Seat,
    last: *const Seat,
    running: usize,
    /// Number of running components that [`enroll`] tells of.
    tells_from: usize,
    /// Number of components that keep the program alive.
    users: usize,
    /// Components made, by type.
    made: HashMap<usize, u32>,
    /// The latest type and its count, kept out of the map meanwhile.
    last_made: (usize, u32),
}

// SAFETY: a seat is listed from its start to its end, and alive all that time.
unsafe impl Send for Registry {}

static REGISTRY: Part<Brief<Registry>> = Part::new(|| {
    Brief::new(Registry {
        next_id: MAIN,
        first: ptr::null(),
        last: ptr::null(),
        running: 0,
        tells_from: usize::MAX,
        users: 0,
        made: HashMap::new(),
        last_made: (0, 0),
    })
});
/// Signalled, under its lock, when the last component has ended.
static EMPTY: Part<(Mutex<()>, Condvar)> = Part::new(Default::default);

fn with<R>(action: impl FnOnce(&mut Registry) -> R) -> R {
    action(&mut REGISTRY.lock())
}

impl Registry {
    /// Counts one more component of a type; returns the new count.
    fn make_one(&mut self, of: usize) -> u32 {
        if self.last_made.0 != of {
            let (before, count) = self.last_made;
            if before != 0 {
                self.made.insert(before, count);
            }
            self.last_made = (of, self.made.get(&of).copied().unwrap_or(0));
        }
        self.last_made.1 += 1;
        self.last_made.1
    }

    fn made(&self, of: usize) -> u32 {
        if self.last_made.0 == of {
            return self.last_made.1;
        }
        self.made.get(&of).copied().unwrap_or(1)
    }

    fn append(&mut self, seat: &Seat) {
        seat.neighbours[0].set(self.last);
        seat.neighbours[1].set(ptr::null());
        // SAFETY: listed seats are alive, and the list is locked.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.neighbours[1].set(seat),
            None => self.first = seat,
        }
        self.last = seat;
    }

    fn remove(&mut self, seat: &Seat) {
        let [before, behind] = [0, 1].map(|side| seat.neighbours[side].get());
        // SAFETY: as above.
        match unsafe { before.as_ref() } {
            Some(before) => before.neighbours[1].set(behind),
            None => self.first = behind,
        }
        // SAFETY: as above.
        match unsafe { behind.as_ref() } {
            Some(behind) => behind.neighbours[0].set(before),
            None => self.last = before,
        }
        // The mark of one that is not listed.
        seat.neighbours[0].set(seat);
    }
}

/// Assigns a new component its identity.
pub(crate) fn identify(of: *const ComponentType) -> Identity {
    // SAFETY: component types are static.
    let service = unsafe { (*of).service };
    with(|registry| {
        let id = registry.next_id;
        registry.next_id += 1;
        Identity {
            id,
            number: registry.make_one(of.addr()),
            service,
        }
    })
}

/// Whether it is the main sequence.
pub(crate) fn is_main(seat: &Seat) -> bool {
    is_mains(seat.id)
}

/// Whether this is the number of the main sequence. A program in Rust has none.
pub(crate) fn is_mains(id: u64) -> bool {
    id == MAIN && !options::get().is_embedded
}

/// Adds a component that starts to run. True, once, if so many run as [`tell_from`] says.
#[must_use]
pub(crate) fn enroll(seat: &Seat) -> bool {
    with(|registry| {
        registry.append(seat);
        registry.running += 1;
        registry.users += usize::from(!seat.identity().service);
        let tells = registry.running >= registry.tells_from;
        if tells {
            registry.tells_from = usize::MAX;
        }
        tells
    })
}

/// Has [`enroll`] tell when there are so many running components.
pub(crate) fn tell_from(running: usize) {
    with(|registry| registry.tells_from = running);
}

/// Removes a component that has ended. True when no other keeps the program alive.
#[must_use]
pub(crate) fn retire(seat: &Seat) -> bool {
    let (running, users) = with(|registry| {
        registry.remove(seat);
        registry.running -= 1;
        registry.users -= usize::from(!seat.identity().service);
        (registry.running, registry.users)
    });
    if running == 0 {
        let (mutex, changed) = &*EMPTY;
        let _looking = lock(mutex);
        changed.notify_all();
    }
    users == 0
}

/// Waits until no component runs.
pub(crate) fn wait_until_empty() {
    let (mutex, changed) = &*EMPTY;
    drop(changed.wait_while(lock(mutex), |()| running() > 0));
}

/// Number of running components.
pub(crate) fn running() -> usize {
    with(|registry| registry.running)
}

/// Number of running components that keep the program alive.
pub(crate) fn users() -> usize {
    with(|registry| registry.users)
}

/// Calls `action` for each running component, in creation order. It must not start or end any.
pub(crate) fn for_each(mut action: impl FnMut(&Seat)) {
    with(|registry| {
        let mut next = registry.first;
        // SAFETY: alive while registered, and the registry is locked.
        while let Some(seat) = unsafe { next.as_ref() } {
            next = seat.neighbours[1].get();
            action(seat);
        }
    });
}

/// A running component, with a reference to it.
pub(crate) struct Retained {
    pub(crate) seat: *const Seat,
    pub(crate) id: u64,
}

/// Adds the next running components to a list, at most `count`, each with a reference for the
/// caller. False if there are no more behind those that are listed, or none of the latest `count`
/// of these still runs.
pub(crate) fn retain_more(list: &mut Vec<Retained>, count: usize) -> bool {
    with(|registry| {
        let latest = &list[list.len().saturating_sub(count)..];
        // SAFETY: each has a reference of the caller's.
        let latest = latest.iter().rev().map(|one| unsafe { &*one.seat });
        let is_listed = |seat: &&Seat| !ptr::eq(seat.neighbours[0].get(), *seat);
        let mut next = match latest.clone().find(is_listed) {
            Some(seat) => seat.neighbours[1].get(),
            None if list.is_empty() => registry.first,
            None => return false,
        };
        let before = list.len();
        // SAFETY: alive while registered, and the registry is locked.
        while let Some(seat) = unsafe { next.as_ref() }.filter(|_| list.len() < before + count) {
            next = seat.neighbours[1].get();
            seat.retain();
            list.push(Retained { seat, id: seat.id });
        }
        list.len() > before
    })
}

/// `Ping`, or `Ping#2` if the type has several; the main sequence has no name.
pub(crate) fn name_of(seat: &Seat) -> String {
    if is_main(seat) {
        return "the main sequence".to_owned();
    }
    // SAFETY: a seat's component is alive.
    let of = unsafe { (*seat.component()).r#type };
    name(of, seat.identity().number)
}

/// `component Ping`, for the middle of a sentence.
pub(crate) fn described(seat: &Seat) -> String {
    let name = name_of(seat);
    if is_main(seat) {
        name
    } else {
        format!("component {name}")
    }
}

/// The port of a half-channel, for reports; free half-channels have none.
#[derive(Clone, Copy)]
pub(crate) struct Label {
    pub(crate) owner: u64,
    pub(crate) owner_type: *const ComponentType,
    pub(crate) owner_number: u32,
    pub(crate) port: *const c_char,
}

/// `Ping.ball`, or nothing for a half-channel outside any port.
pub(crate) fn port_name(label: &Label) -> Option<String> {
    if label.owner_type.is_null() {
        return None;
    }
    // SAFETY: names are literals.
    let port = unsafe { literal(label.port) };
    Some(format!(
        "{}.{port}",
        name(label.owner_type, label.owner_number)
    ))
}

pub(crate) fn name(of: *const ComponentType, number: u32) -> String {
    // SAFETY: component types are static.
    let name = unsafe { literal((*of).name) };
    let made = with(|registry| registry.made(of.addr()));
    if made > 1 {
        format!("{name}#{number}")
    } else {
        name.into_owned()
    }
}
