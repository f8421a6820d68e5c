//! A component's wait as recorded in its struct, for its carrier and for compiled code.

use std::sync::atomic::{AtomicU8, Ordering};

use super::seat::Seat;
use crate::abi::Component;

/// Nothing. These are the values of `waiting` in its struct, with the header's numbers.
pub(crate) const NOTHING: u8 = 0;
/// Sends the bits in `received`.
pub(crate) const SENDS: u8 = 1;
/// Sends a copy of the object in `received`.
pub(crate) const SENDS_COPY: u8 = 2;
/// Sends the object in `received`, and its reference with it.
pub(crate) const SENDS_MOVING: u8 = 3;
pub(crate) const RECEIVES: u8 = 4;
pub(crate) const SELECTS: u8 = 5;
/// A select was served, but still occupies the slots of its other arms.
pub(crate) const SELECTED: u8 = 6;
/// It has an offer: the general protocol.
pub(crate) const OFFERS: u8 = 7;

/// At a link between two workers.
pub(crate) const LINKED: u8 = 8;
/// It was detached, and asks for its worker back.
pub(crate) const RETURNS: u8 = 9;

/// Whether it waits, lightly or at a link. Stale at once, unless nothing runs.
///
/// # Safety
/// The component is alive.
pub(crate) unsafe fn seems_to_wait(component: *mut Component) -> bool {
    // SAFETY: as the caller promises; other threads may change it meanwhile.
    let waiting = unsafe { AtomicU8::from_ptr(&raw mut (*component).waiting) };
    let waiting = waiting.load(Ordering::Relaxed);
    (SENDS..=SELECTS).contains(&waiting) || waiting == LINKED
}

/// The component's wait, as seen by a holder of its worker's leave. The carrier may change it
/// meanwhile without leave, between values other than light waits; both sides therefore use atomic
/// accesses, which need no order.
///
/// # Safety
/// The component is alive.
pub(crate) unsafe fn waiting_at_leave(component: *mut Component) -> u8 {
    // SAFETY: as the caller promises.
    unsafe { AtomicU8::from_ptr(&raw mut (*component).waiting) }.load(Ordering::Relaxed)
}

/// The component's wait, read by its worker before it resumes the component.
///
/// # Safety
/// The component is alive.
pub(crate) unsafe fn waiting_of(component: *mut Component) -> u8 {
    // Acquire pairs with the Release of `served_at_link`: a component posted for its link may learn
    // from the thread that ends that link that it is served already. SAFETY: as the caller
    // promises; other threads change it by atomic stores or before it is posted.
    unsafe { AtomicU8::from_ptr(&raw mut (*component).waiting) }.load(Ordering::Acquire)
}

/// Marks a component as served at a link, before it is resumed for it.
///
/// # Safety
/// The component is the caller's to touch.
pub(crate) unsafe fn served_at_link(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe { AtomicU8::from_ptr(&raw mut (*component).waiting) }.store(NOTHING, Ordering::Release);
}

/// Marks the running component as waiting by an offer, which others may already see.
pub(crate) fn offers(seat: &Seat) {
    // SAFETY: the component runs the calling code.
    unsafe { note_waiting(seat.component(), OFFERS) };
}

/// Records a wait, or its end, without leave; neither the old nor the new value is a light wait.
///
/// # Safety
/// The component is alive, and the caller runs or carries it.
pub(crate) unsafe fn note_waiting(component: *mut Component, waiting: u8) {
    debug_assert!(matches!(waiting, NOTHING | OFFERS | RETURNS));
    // SAFETY: as the caller promises.
    unsafe { AtomicU8::from_ptr(&raw mut (*component).waiting) }.store(waiting, Ordering::Relaxed);
}
