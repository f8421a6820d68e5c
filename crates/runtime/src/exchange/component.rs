//! A component's life: creation, start, stop, end, release.

use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::{self, Component, ComponentType, STOPPED, Step};
use crate::exchange::block::{Layout, port_place, release};
use crate::exchange::carrier::{self, waits};
use crate::exchange::channel::inflate::inflate;
use crate::exchange::channel::{self, Channel, Origin};
use crate::exchange::values::heap;
use crate::ground::choices::Choices;
use crate::ground::runtime;
use crate::ground::sync::{fence, lock_std as lock};
use crate::ground::{exits, options};
use crate::hooks::{self, By, Choice, simulation};
use crate::recording;
use crate::seats::registry;
use crate::seats::seat::attention::{PORT_REPLACED, STOP_REQUESTED};
use crate::seats::seat::{Seat, seat_of};

/// Held while a port is looked up or replaced from outside the component. Both are rare.
/// Process-wide: code that may connect anything may replace any port.
static PORTS: Mutex<Replaced> = Mutex::new(Replaced(Vec::new()));

/// Half-channels that were replaced from outside in another component's ports. Their owners may be
/// using them, borrowed, until the end of their pass.
struct Replaced(Vec<(*mut Component, *mut Channel)>);
// SAFETY: each channel is a counted reference, and components are only compared.
unsafe impl Send for Replaced {}

/// Makes a component with its half-channels, not yet running, counted once.
///
/// # Safety
/// `of` is a valid component type; `creator` runs the calling code or is null.
pub(crate) unsafe fn make(
    creator: *mut Component,
    of: *const ComponentType,
    core: i32,
) -> *mut Component {
    // SAFETY: a valid type tells its size and its ports; a zeroed component is a valid one.
    unsafe {
        carrier::rejoin(creator);
        let ports = abi::ports(of);
        let layout = Layout::of(&*of);
        let block = heap::common_zeroed(creator, layout.total).cast::<u8>();
        // The parts find each other by their addresses.
        let _ = block.expose_provenance();
        let component = block.add(layout.component()).cast::<Component>();
        let identity = registry::identify(of);
        let choices = match (options::get().seed, creator.is_null()) {
            (None, _) => Choices::default(),
            (seed, true) => Choices::root(seed),
            (_, false) => seat_of(creator).more.with_mut(|more| more.choices.child()),
        };
        let choice = if simulation::is_on() {
            simulation::place(core, of, &identity)
        } else {
            (hooks::get().choose)(core, of, &identity)
        };
        let core = choice.map(|choice| choice.core);
        let seat = block.add(layout.seat).cast::<Seat>();
        (*component).r#type = of;
        (*component).home = carrier::place(core).cast();
        seat.write(Seat::new(identity, choices, ports.len() as u16));
        match choice {
            Some(Choice { by: By::Name, .. }) => carrier::keep_named(&*seat),
            Some(Choice { by: By::Policy, .. }) => carrier::keep_placed(&*seat),
            Some(Choice { by: By::Plan, .. }) => carrier::keep_planned(&*seat),
            None => {}
        }
        if (*component).home.is_null() {
            let number = core.and_then(|core| u16::try_from(core + 1).ok());
            (*component).destination = number.unwrap_or(0);
            // No queue lists it.
            (*component).next = ptr::from_ref(runtime::current()).cast_mut().cast();
        }
        match options::get().passes {
            passes if simulation::is_on() => {
                let passes = passes.filter(|_| !identity.service);
                simulation::made(component, passes.unwrap_or(u64::MAX));
            }
            Some(passes) if !identity.service => allow_passes(component, passes),
            _ => (*component).passes_left = UNCOUNTED,
        }
        // Its memory keeps the runtime; `block::let_go` releases it.
        runtime::current().retain();
        for (index, port) in ports.iter().enumerate() {
            let channel = block.cast::<Channel>().add(index);
            let direction = channel::direction_of(port.direction);
            let origin = Origin::Port {
                before_seat: (ports.len() - index) as u16,
            };
            Channel::make_at(channel, direction, origin, carrier::home_of(component));
            port_place(component, port.offset).write(channel);
        }
        if recording::is_on() {
            recording::made(creator, component);
        }
        component
    }
}

/// Passes allowed at once to a component whose passes are unlimited.
const UNCOUNTED: u32 = u32::MAX;

/// Lets a component run this many passes, from 1 up.
///
/// # Safety
/// The component is the caller's.
unsafe fn allow_passes(component: *mut Component, passes: u64) {
    let now = u32::try_from(passes).unwrap_or(u32::MAX);
    // SAFETY: as the caller promises.
    unsafe {
        (*component).passes_left = now;
        let behind = passes - u64::from(now);
        let more = &seat_of(component).more;
        if behind > 0 || more.is_made() {
            more.with_mut(|more| more.passes_behind = behind);
        }
    }
}

/// Whether there are more passes after those allowed.
///
/// # Safety
/// The component runs the calling code.
unsafe fn goes_on(component: *mut Component) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        let seat = seat_of(component);
        if options::get().passes.is_none() || seat.identity().service {
            (*component).passes_left = UNCOUNTED;
            return true;
        }
        let behind = seat.more.with(|more| more.passes_behind);
        if behind > 0 {
            allow_passes(component, behind);
        }
        behind > 0
    }
}

/// Starts it.
///
/// # Safety
/// The component was just made, and its arguments are in place.
pub(crate) unsafe fn start(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe { start_with(component, Seat::retain) };
}

/// Starts a component; `add_reference` adds that of its run.
///
/// # Safety
/// As for [`start`], and `add_reference` may be called.
unsafe fn start_with(component: *mut Component, add_reference: impl FnOnce(&Seat)) {
    // SAFETY: alive, by the caller's reference.
    let seat = unsafe { seat_of(component) };
    // The running component's own; `end` releases it.
    add_reference(seat);
    if registry::enroll(seat) {
        (hooks::get().grown)();
    }
    if exits::is_ending() || runtime::current().is_stopping() {
        // A component born while all are being stopped.
        stop(seat);
    }
    // SAFETY: the run's reference was added above.
    unsafe { carrier::launch(component) };
}

/// Requests a component to stop, from any thread.
pub(crate) fn stop(seat: &Seat) {
    attend(seat, STOP_REQUESTED);
    request_stop(seat);
}

/// Requests a component to stop that has no light wait.
pub(crate) fn stop_offering(seat: &Seat) {
    attend(seat, STOP_REQUESTED);
    seat.stop.store(true, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    waits::interrupt_if_waiting(seat);
}

/// Requests a stop and interrupts the wait, if there is one.
pub(crate) fn request_stop(seat: &Seat) {
    seat.stop.store(true, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    inflate(seat.component());
    waits::interrupt_if_waiting(seat);
}

/// Makes the component check `attention` at the end of its pass.
fn attend(seat: &Seat, what: u8) {
    // SAFETY: the component is alive, and the field atomic.
    unsafe {
        (*seat.component())
            .attention
            .fetch_or(what, Ordering::Relaxed)
    };
}

/// Ends a component's life: releases its state and disconnects its ports.
///
/// # Safety
/// The component ended with `step`, not Blocked; its carrier calls and touches it no more.
pub(crate) unsafe fn end(component: *mut Component, step: Step) {
    // SAFETY: the running component's reference is released last.
    unsafe {
        let seat = seat_of(component);
        if step == Step::Raised && (*component).raised != STOPPED {
            (hooks::get().failed)(seat);
        }
        if recording::is_on() {
            recording::look_at_heap(seat.id, || heap::used(component));
        }
        let of = (*component).r#type;
        heap::wind_up(component);
        if let Some(destroy) = (*of).destroy {
            destroy(component);
        }
        for port in abi::ports(of) {
            let channel = &*port_place(component, port.offset).read();
            // A half-channel assigned to the port belongs to another owner.
            if channel.is_of(seat) {
                channel::disconnect(channel);
            }
        }
        if (*component).attention.load(Ordering::Relaxed) & PORT_REPLACED != 0 {
            drop_replaced(component);
        }
        heap::leave(component);
        (hooks::get().ended)(seat.id);
        let was_last = registry::retire(seat);
        release(component);
        if was_last {
            (hooks::get().all_stopped)();
        }
    }
}

/// Releases the half-channels that were replaced from outside in this component's ports.
fn drop_replaced(component: *mut Component) {
    let mut mine = Vec::new();
    lock(&PORTS).0.retain(|&(owner, channel)| {
        if owner == component {
            mine.push(channel);
        }
        owner != component
    });
    for channel in mine {
        // SAFETY: a counted reference; the owner does not use it any more.
        unsafe { channel::release(channel) };
    }
}

/// Adds a reference to each half-channel of a component's ports, and calls `tell` with them in
/// order. False, without that, if a port denotes a half-channel of another owner.
///
/// # Safety
/// The component is alive.
pub(crate) unsafe fn retain_ports(seat: &Seat, mut tell: impl FnMut(*mut Channel)) -> bool {
    let component = seat.component();
    // SAFETY: as the caller promises; the lock excludes replacement of the half-channels.
    unsafe {
        let _ports = lock(&PORTS);
        let ports = abi::ports((*component).r#type);
        let channels = ports
            .iter()
            .map(|port| AtomicPtr::from_ptr(port_place(component, port.offset)))
            .map(|place| place.load(Ordering::Acquire));
        let are_own = channels.clone().all(|channel| (*channel).is_of(seat));
        if are_own {
            channels.for_each(|channel| {
                (*channel).retain();
                tell(channel);
            });
        }
        are_own
    }
}

/// Finds a port by name.
///
/// # Safety
/// The component is alive.
unsafe fn find_port(component: *mut Component, name: *const c_char) -> *mut *mut Channel {
    // SAFETY: names are literals.
    unsafe {
        let wanted = CStr::from_ptr(name);
        let port = abi::ports((*component).r#type)
            .iter()
            .find(|port| ptr::eq(port.name, name) || CStr::from_ptr(port.name) == wanted);
        match port {
            Some(port) => port_place(component, port.offset),
            None => unreachable!("the compiler checked that there is a port {wanted:?}"),
        }
    }
}

/// Makes a component.
///
/// # Safety
/// As the header says: `creator` runs this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_component_new(
    creator: *mut Component,
    of: *const ComponentType,
    core: i32,
) -> *mut Component {
    // SAFETY: as the caller promises.
    unsafe { make(creator, of, core) }
}

/// Starts a component.
///
/// # Safety
/// As the header says: it was just made, and only the caller has a reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_component_start(component: *mut Component) {
    // SAFETY: as the caller promises.
    let start = || unsafe { start_with(component, Seat::retain_alone) };
    // SAFETY: compiled code runs, of some component, and holds no lock.
    unsafe { simulation::deed(carrier::running(), "", ptr::null(), start) };
}

/// Starts a component of which others may have, or be adding, references.
///
/// # Safety
/// It was just made, and the caller holds no lock.
pub(crate) unsafe fn start_shared(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe { simulation::deed(carrier::running(), "", ptr::null(), || start(component)) };
}

/// A counted reference to a port's half-channel.
///
/// # Safety
/// The component is alive and has such a port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_port_of(
    component: *mut Component,
    name: *const c_char,
) -> *mut Channel {
    // SAFETY: as the caller promises; the lock excludes replacement of the half-channel.
    unsafe {
        let place = find_port(component, name);
        let _ports = lock(&PORTS);
        let channel = place.read();
        (*channel).retain();
        channel
    }
}

/// Makes a port denote another half-channel.
///
/// # Safety
/// As the header says: the caller's reference to `channel` goes with it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_port_assign(
    this: *mut Component,
    component: *mut Component,
    name: *const c_char,
    channel: *mut Channel,
) {
    // SAFETY: as the caller promises. The owner reads its ports without the lock, as whole words;
    // it sees the half-channel as it was made (Release), since it reaches it through the pointer it
    // reads.
    unsafe {
        let place = find_port(component, name);
        let mut ports = lock(&PORTS);
        let replaced = AtomicPtr::from_ptr(place).swap(channel, Ordering::AcqRel);
        if this == component {
            drop(ports);
            channel::release(replaced);
        } else {
            // First: its owner may end, and looks at the list only where it is told to.
            attend(seat_of(component), PORT_REPLACED);
            ports.0.push((component, replaced));
        }
    }
}

/// Stops another component.
///
/// # Safety
/// As the header says: `self` runs this, `other` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_stop(this: *mut Component, other: *mut Component) {
    // SAFETY: as the caller promises.
    let seat = unsafe { seat_of(other) };
    let stop = || {
        if options::get().compat_original {
            // Seen only before the next pass.
            attend(seat, STOP_REQUESTED);
        } else {
            stop(seat);
        }
    };
    // SAFETY: as the caller promises; compiled code holds no lock.
    unsafe { simulation::deed(this, "stops another", ptr::null(), stop) };
}

/// Whether a component with attention bits set continues.
///
/// # Safety
/// `self` runs this, between two passes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_next_pass_slow(this: *mut Component) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        if simulation::is_on() {
            simulation::ends_pass(this);
        }
        let attention = (*this).attention.load(Ordering::Relaxed);
        if attention & STOP_REQUESTED != 0 || (*this).passes_left == 0 && !goes_on(this) {
            (*this).raised = STOPPED;
            return false;
        }
        if attention & PORT_REPLACED != 0 {
            (*this)
                .attention
                .fetch_and(!PORT_REPLACED, Ordering::Relaxed);
            drop_replaced(this);
        }
        // When set aside, it comes back here through the carrier, between the passes.
        !(simulation::is_on() && simulation::pauses_between_passes(this))
    }
}
