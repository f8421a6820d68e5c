//! Who is running, and what they are called.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::{ComponentType, literal};
use crate::channel::Label;
use crate::seat::{Identity, Seat};
use crate::sync::lock_std as lock;

/// The main sequence is the first component made.
const MAIN: u64 = 1;

struct Running(*const Seat);
// SAFETY: a seat is here from its start to its end, during which it is alive.
unsafe impl Send for Running {}

struct Registry {
    running: BTreeMap<u64, Running>,
    /// Those that keep the program alive.
    users: usize,
    /// How many of each type were made.
    made: HashMap<usize, u32>,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);
static NEXT_ID: AtomicU64 = AtomicU64::new(MAIN);

fn with<R>(action: impl FnOnce(&mut Registry) -> R) -> R {
    let mut registry = lock(&REGISTRY);
    action(registry.get_or_insert_with(|| Registry {
        running: BTreeMap::new(),
        users: 0,
        made: HashMap::new(),
    }))
}

/// Names a new component.
pub(crate) fn identify(of: *const ComponentType) -> Identity {
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let number = with(|registry| {
        let made = registry.made.entry(of.addr()).or_insert(0);
        *made += 1;
        *made
    });
    // SAFETY: component types are static.
    let service = unsafe { (*of).service };
    Identity {
        id,
        number,
        service,
    }
}

/// Is it the main sequence?
pub(crate) fn is_main(seat: &Seat) -> bool {
    #[cfg(not(loom))]
    if crate::embed::is_on() {
        return false;
    }
    seat.identity.id == MAIN
}

/// A component starts to run.
pub(crate) fn enroll(seat: &Seat) {
    with(|registry| {
        registry.running.insert(seat.identity.id, Running(seat));
        registry.users += usize::from(!seat.identity.service);
    });
}

/// A component has ended. True when no other one keeps the program alive.
#[must_use]
pub(crate) fn retire(seat: &Seat) -> bool {
    with(|registry| {
        registry.running.remove(&seat.identity.id);
        registry.users -= usize::from(!seat.identity.service);
        registry.users == 0
    })
}

/// How many are running.
pub(crate) fn running() -> usize {
    with(|registry| registry.running.len())
}

/// How many run that keep the program alive.
pub(crate) fn users() -> usize {
    with(|registry| registry.users)
}

/// Calls `action` for each running component, in creation order. It must not start or end any.
pub(crate) fn for_each(mut action: impl FnMut(&Seat)) {
    with(|registry| {
        for running in registry.running.values() {
            // SAFETY: alive while it is in the registry, which is locked.
            action(unsafe { &*running.0 });
        }
    });
}

/// `Ping`, or `Ping#2` if there are several; the main sequence has no name.
pub(crate) fn name_of(seat: &Seat) -> String {
    if is_main(seat) {
        return "the main sequence".to_owned();
    }
    // SAFETY: a seat's component is alive.
    let of = unsafe { (*seat.component).r#type };
    name(of, seat.identity.number)
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

/// `Ping.ball`, or nothing for a half-channel that is no port.
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

fn name(of: *const ComponentType, number: u32) -> String {
    // SAFETY: component types are static.
    let name = unsafe { literal((*of).name) };
    let made = with(|registry| registry.made.get(&of.addr()).copied().unwrap_or(1));
    if made > 1 {
        format!("{name}#{number}")
    } else {
        name.into_owned()
    }
}
