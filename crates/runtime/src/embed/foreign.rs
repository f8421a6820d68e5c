//! Components and programs compiled from Insense.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::error::{ConnectError, NoSuchComponent, NoSuchPort, UncaughtException};
use super::life::Handle;
use super::{Runtime, observe, visit};
use crate::abi::{self, ABI, Component, ComponentType, Type, literal};
use crate::c;
use crate::exchange::carrier::runtime_of;
use crate::exchange::channel::{Channel, Direction};
use crate::exchange::component::start_shared;
use crate::ground::runtime::{Runtime as Inner, current, enter};
use crate::ground::sync::lock_std as lock;
use crate::outside::idle::Visit;
use crate::seats::registry;
use crate::seats::seat::seat_of;

/// A half-channel of a compiled component, whose type is known at run time.
#[derive(Debug)]
pub struct Port {
    channel: *mut Channel,
}

// SAFETY: half-channels are shared by design.
unsafe impl Send for Port {}
// SAFETY: as above.
unsafe impl Sync for Port {}

impl Port {
    /// A port without an owner, for tests without compiled components.
    #[cfg(test)]
    pub(super) fn unowned<T: super::Portable>(is_out: bool) -> Port {
        let of = super::codec::portable::<T>().of;
        // SAFETY: no component runs this, and descriptors are static.
        let channel = unsafe { c::hearth_channel_new(ptr::null_mut(), of(), u32::from(is_out)) };
        Port { channel }
    }

    #[cfg(test)]
    pub(super) fn references(&self) -> u32 {
        // SAFETY: counted.
        unsafe { (*self.channel).references() }
    }

    pub(super) fn channel(&self) -> *mut Channel {
        self.channel
    }

    pub(super) fn payload(&self) -> *const Type {
        // SAFETY: counted.
        unsafe { (*self.channel).payload() }
    }

    /// The runtime of its component, which lives as long as its half-channel.
    pub(super) fn runtime(&self) -> &Inner {
        // SAFETY: counted.
        match unsafe { (*self.channel).owner() } {
            Some(owner) => runtime_of(owner.component()),
            // The program replaced the port by a half-channel that is not a port.
            None => current(),
        }
    }

    pub(super) fn visit(&self) -> Visit {
        Visit::begin_in(self.runtime())
    }

    /// Tells whether it is an out.
    pub fn is_out(&self) -> bool {
        // SAFETY: counted.
        unsafe { (*self.channel).direction == Direction::Out }
    }

    /// Returns the code of its values' type.
    pub fn code(&self) -> String {
        // SAFETY: descriptors are static.
        unsafe { literal((*self.payload()).code) }.into_owned()
    }

    /// Connects two ports of compiled components.
    pub fn connect(&self, other: &Port) -> Result<(), ConnectError> {
        if self.code() != other.code() {
            return Err(ConnectError::Types {
                ours: self.code(),
                theirs: other.code(),
            });
        }
        if self.is_out() == other.is_out() {
            return Err(ConnectError::Direction);
        }
        let _visit = self.visit();
        // SAFETY: both are counted, of opposite directions and equal payload.
        unsafe { c::hearth_connect(ptr::null_mut(), self.channel, other.channel, ptr::null()) };
        Ok(())
    }
}

impl Clone for Port {
    fn clone(&self) -> Port {
        // SAFETY: counted.
        let channel = unsafe { c::hearth_channel_retain(self.channel) };
        Port { channel }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _visit = self.visit();
        // SAFETY: counted.
        unsafe { c::hearth_channel_release(self.channel) };
    }
}

/// A component compiled from Insense.
#[derive(Debug)]
pub struct Foreign {
    handle: Handle,
    /// Made here, and not started yet.
    is_new: AtomicBool,
}

impl Foreign {
    /// Returns the port of this name.
    pub fn port(&self, name: &str) -> Result<Port, NoSuchPort> {
        let component = self.handle.component();
        // SAFETY: counted; descriptors are static.
        unsafe {
            let of = (*component).r#type;
            let ports = abi::ports(of);
            let Some(port) = ports.iter().find(|port| literal(port.name) == name) else {
                return Err(NoSuchPort {
                    component: literal((*of).name).into_owned(),
                    wanted: name.to_owned(),
                    ports: ports
                        .iter()
                        .map(|port| literal(port.name).into_owned())
                        .collect(),
                });
            };
            let channel = c::hearth_port_of(component, port.name);
            Ok(Port { channel })
        }
    }

    /// Asks it to stop.
    pub fn stop(&self) {
        self.handle.stop();
    }
}

/// Finds the running component of this name, as reports call it: `Ping`, or `Ping#2` if there are
/// several.
pub fn find(runtime: &Runtime, name: &str) -> Result<Foreign, NoSuchComponent> {
    let _inside = enter(runtime.inner());
    let mut found = None;
    let mut running: Vec<*mut Component> = Vec::new();
    registry::for_each(|seat| {
        seat.retain();
        running.push(seat.component());
    });
    for component in running {
        // SAFETY: counted above.
        unsafe {
            if found.is_none() && registry::name_of(seat_of(component)) == name {
                found = Some(Foreign {
                    handle: Handle::from_counted(component),
                    is_new: AtomicBool::new(false),
                });
            } else {
                c::hearth_component_release(component);
            }
        }
    }
    found.ok_or_else(|| NoSuchComponent {
        wanted: name.to_owned(),
    })
}

/// A component type compiled from Insense.
#[derive(Clone, Copy, Debug)]
pub struct ForeignType(*const ComponentType);

// SAFETY: descriptors are never written.
unsafe impl Send for ForeignType {}
// SAFETY: as above.
unsafe impl Sync for ForeignType {}

impl ForeignType {
    /// Wraps a component type that Hearth's compiler described.
    ///
    /// # Safety
    /// - `of` points to a `hearth_component_type` that is valid, and never written, until the
    ///   process ends: its texts end with NUL, `ports` has `port_count` entries, and its functions
    ///   keep the contract of `hearth.h`. Descriptors in C that Hearth's compiler wrote do. A
    ///   descriptor has no version number, so the caller makes sure that it was compiled against
    ///   this version of the header, for example by [`Program::from_raw`] of the same C file.
    /// - The first constructor of the component takes no arguments: [`ForeignType::make`] leaves
    ///   the component's memory zeroed, and the component begins with that constructor.
    /// - If the component's code names services of the prelude, it is started only after the
    ///   program's main sequence has created them, and in the same runtime. Before, the pointers to
    ///   them are null.
    pub unsafe fn from_raw(of: *const ComponentType) -> ForeignType {
        ForeignType(of)
    }

    /// Makes a component of this type without starting it, so that it can be connected first.
    pub fn make(self, runtime: &Runtime) -> Foreign {
        let _visit = Visit::begin_in(runtime.inner());
        // SAFETY: a valid type, as the maker of `self` promised.
        unsafe {
            let component = c::hearth_component_new(ptr::null_mut(), self.0, -1);
            Foreign {
                handle: Handle::from_counted(component),
                is_new: AtomicBool::new(true),
            }
        }
    }
}

impl Foreign {
    /// Starts a component that [`ForeignType::make`] made. `at_end` receives how it ended: with its
    /// message if by an uncaught exception.
    ///
    /// # Panics
    /// If it runs already, or has run.
    pub fn start(&self, at_end: Box<dyn FnOnce(Result<(), UncaughtException>) + Send>) {
        // Relaxed: only the answer matters.
        let is_new = self.is_new.swap(false, Ordering::Relaxed);
        assert!(is_new, "a component is started once");
        let component = self.handle.component();
        let _visit = visit(component);
        // SAFETY: counted, and not started yet.
        unsafe {
            observe(seat_of(component).id, at_end);
            start_shared(component);
        }
    }
}

/// A program compiled from Insense.
#[derive(Clone, Copy, Debug)]
pub struct Program(*const abi::Program);

// SAFETY: descriptors are never written.
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}

impl Program {
    /// Wraps a program that Hearth's compiler described; None if it was compiled against another
    /// version of `hearth.h`.
    ///
    /// # Safety
    /// `program` points to a `hearth_program` that is valid, and never written, until the process
    /// ends, of a version of the header whose programs have `abi` as their second field, as in all
    /// versions so far. If that is this version's `HEARTH_ABI`, its `main` is a component type as
    /// [`ForeignType::from_raw`] requires.
    pub unsafe fn from_raw(program: *const abi::Program) -> Option<Program> {
        // SAFETY: as the caller promises.
        (unsafe { (*program).abi } == ABI).then_some(Program(program))
    }

    /// Starts its main sequence. `at_end` receives how it ended.
    ///
    /// # Panics
    /// On the second call: a program's globals exist once.
    pub fn start(
        self,
        runtime: &Runtime,
        at_end: impl FnOnce(Result<(), UncaughtException>) + Send + 'static,
    ) -> Foreign {
        let key = self.0.addr();
        let start = Start {
            runtime: Arc::downgrade(runtime.shared()),
            has_ended: false,
        };
        let is_first = match lock(&STARTS).entry(key) {
            Entry::Vacant(place) => {
                place.insert(start);
                true
            }
            Entry::Occupied(_) => false,
        };
        assert!(is_first, "a program is started once");
        // SAFETY: a valid program, as the maker of `self` promised, has a main sequence.
        let main = unsafe { ForeignType((*self.0).main).make(runtime) };
        main.start(Box::new(move |result| {
            if let Some(start) = lock(&STARTS).get_mut(&key) {
                start.has_ended = true;
            }
            at_end(result);
        }));
        main
    }

    /// True if its main sequence ran in this runtime and has ended. What that wrote to the
    /// program's globals is visible to the caller.
    pub fn has_ended_in(self, runtime: &Runtime) -> bool {
        let starts = lock(&STARTS);
        let here = runtime.shared();
        starts.get(&self.0.addr()).is_some_and(|start| {
            start.has_ended && ptr::eq(start.runtime.as_ptr(), &raw const **here)
        })
    }
}

/// The start of a program.
struct Start {
    /// Keeps the address of the runtime from being used again.
    runtime: Weak<Inner>,
    has_ended: bool,
}

/// The starts of all programs, by the addresses of these: globals in C exist once in the process.
static STARTS: Mutex<BTreeMap<usize, Start>> = Mutex::new(BTreeMap::new());
