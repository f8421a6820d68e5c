//! A component's block of memory: its layout, and the counts that keep it alive.

use std::ffi::c_void;
use std::ptr;

#[cfg(not(loom))]
use super::carrier;
use super::channel::{self, Channel};
use super::values::heap;
use crate::abi::{self, Component, ComponentType};
use crate::ground::exits;
#[cfg(not(loom))]
use crate::ground::runtime::Runtime;
use crate::seats::seat::{Seat, seat_of};

/// The layout of a component's block of memory:
///
/// ```text
/// 0            48               48·n      48·n + 64
/// half-channel half-channel ... seat      component: header, fields
/// ```
///
/// Each finds the others without pointers: a half-channel knows its distance from the seat.
pub(super) struct Layout {
    /// The place of its seat in the block.
    pub(super) seat: usize,
    /// Bytes of the whole.
    pub(super) total: usize,
}

/// Most half-channels of a component: together with its references, which count as one, they are
/// counted in 16 bits.
const PORTS_MAX: u32 = u16::MAX as u32 - 1;

impl Layout {
    pub(super) fn of(of: &ComponentType) -> Layout {
        if of.port_count > PORTS_MAX {
            exits::unfit(&format!(
                "a component cannot have {} half-channels in its interface, {PORTS_MAX} are the most; \
                 split it into several components",
                of.port_count
            ));
        }
        let seat = of.port_count as usize * size_of::<Channel>();
        Layout {
            seat,
            total: seat + size_of::<Seat>() + of.size,
        }
    }

    pub(super) fn component(&self) -> usize {
        self.seat + size_of::<Seat>()
    }
}

/// The place of a port's half-channel in the struct.
///
/// # Safety
/// `offset` is that of a port.
pub(super) unsafe fn port_place(component: *mut Component, offset: usize) -> *mut *mut Channel {
    // SAFETY: as the caller promises.
    unsafe { component.byte_add(offset).cast() }
}

/// Releases a reference; the last one frees the component.
///
/// # Safety
/// The caller has a counted reference.
pub(crate) unsafe fn release(component: *mut Component) {
    // SAFETY: alive until the count is zero; then no other thread can reach it.
    unsafe {
        let seat = seat_of(component);
        if !seat.release() {
            return;
        }
        for port in abi::ports((*component).r#type) {
            channel::release(port_place(component, port.offset).read());
        }
        let_go(seat);
    }
}

/// Drops one owner of a component's memory: its references, or a half-channel of a port.
///
/// # Safety
/// The caller uses it no more.
pub(crate) unsafe fn let_go(seat: *const Seat) {
    // SAFETY: alive until the last holder is gone; then no other thread can reach it.
    unsafe {
        if (*seat).let_go() {
            let of = &*(*(*seat).component()).r#type;
            #[cfg(not(loom))]
            let runtime = ptr::from_ref(carrier::runtime_of((*seat).component()));
            heap::leave((*seat).component());
            ptr::drop_in_place(seat.cast_mut());
            let block = seat.cast::<u8>().sub(Layout::of(of).seat);
            heap::free_common(block.cast_mut().cast());
            // From `make`. Models make their components themselves.
            #[cfg(not(loom))]
            Runtime::release(runtime);
        }
    }
}

/// Adds a reference.
///
/// # Safety
/// `component` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_component_retain(component: *mut Component) -> *mut c_void {
    if !component.is_null() {
        // SAFETY: as the caller promises.
        unsafe { seat_of(component) }.retain();
    }
    component.cast()
}

/// Releases a reference.
///
/// # Safety
/// `component` is null or a counted reference of the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_component_release(component: *mut Component) {
    if !component.is_null() {
        // SAFETY: as the caller promises.
        unsafe { release(component) };
    }
}
