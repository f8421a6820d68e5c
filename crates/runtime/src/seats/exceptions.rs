//! Raising exceptions, and reporting uncaught ones.

use std::ffi::c_char;
use std::ptr;

use super::registry;
use super::seat::{Seat, seat_of};
use crate::abi::{Component, Label, Site, literal};

/// The detail that a message adds to the exception's name.
#[derive(Clone, Copy, Default)]
pub(crate) enum Detail {
    #[default]
    None,
    /// A C literal.
    Text(*const c_char),
    Index {
        index: i64,
        length: usize,
    },
}

/// The labels' names, in order.
const NAMES: [&str; 9] = [
    "OperationFailedException",
    "ChannelBufferFullException",
    "DivisionByZeroException",
    "SendStatusUnknownException",
    "DuplicateLCNException",
    "NodesUnreachableException",
    "ChannelsUnknownException",
    "IncompatibleChannelsException",
    "BindStatusUnknownException",
];

/// Raises an exception in the component that runs the calling code.
///
/// # Safety
/// `component` is that component; `detail` is null or a literal.
pub(crate) unsafe fn raise(
    component: *mut Component,
    label: Label,
    site: *const Site,
    detail: *const c_char,
) {
    let detail = if detail.is_null() {
        Detail::None
    } else {
        Detail::Text(detail)
    };
    // SAFETY: as the caller promises.
    unsafe { set(component, 1 + label as u32, site, detail) };
}

unsafe fn set(component: *mut Component, raised: u32, site: *const Site, detail: Detail) {
    // SAFETY: the caller runs the component.
    unsafe {
        (*component).raised = raised;
        seat_of(component).more.with_mut(|more| {
            more.detail = detail;
            more.raised_at = site.as_ref();
        });
    }
}

/// An exception in flight, away from its component.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    raised: u32,
    detail: Detail,
    at: Option<&'static Site>,
}

/// Takes the exception in flight from a component, if there is one.
///
/// # Safety
/// The component runs the calling code.
pub(crate) unsafe fn take(component: *mut Component) -> Option<Kept> {
    // SAFETY: as the caller promises.
    unsafe {
        if component.is_null() || (*component).raised == 0 {
            return None;
        }
        let raised = std::mem::take(&mut (*component).raised);
        let more = &seat_of(component).more;
        Some(Kept {
            raised,
            detail: more.with(|more| more.detail),
            at: more.with(|more| more.raised_at),
        })
    }
}

/// Raises a kept exception, in the place of one that may be in flight.
///
/// # Safety
/// The component runs the calling code.
pub(crate) unsafe fn put(component: *mut Component, kept: Kept) {
    // SAFETY: as the caller promises.
    unsafe {
        (*component).raised = kept.raised;
        seat_of(component).more.with_mut(|more| {
            more.detail = kept.detail;
            more.raised_at = kept.at;
        });
    }
}

/// The message for an uncaught exception.
///
/// # Safety
/// The component has ended with an exception, and its carrier calls.
pub(crate) unsafe fn uncaught_message(seat: &Seat) -> String {
    // SAFETY: as the caller promises.
    let (raised, site, detail) = unsafe {
        (
            (*seat.component()).raised,
            seat.more
                .with(|more| more.raised_at)
                .map_or(ptr::null(), ptr::from_ref),
            seat.more.with(|more| more.detail),
        )
    };
    let name = NAMES
        .get(raised.wrapping_sub(1) as usize)
        .copied()
        .unwrap_or("unknown exception");
    let who = registry::described(seat);
    // SAFETY: sites are static.
    let place = unsafe { place_of(site) };
    let detail = match detail {
        Detail::None => String::new(),
        // SAFETY: a literal.
        Detail::Text(text) => format!(": {}", unsafe { literal(text) }),
        Detail::Index { index, length: 0 } => format!(": index {index} into an empty array"),
        Detail::Index { index, length } => {
            format!(": index {index} is outside 0..{}", length - 1)
        }
    };
    format!("{who} ended by an uncaught {name} at {place}{detail}")
}

/// The key of an uncaught exception, the same for each of its causes.
///
/// # Safety
/// As for `uncaught_message`.
pub(crate) unsafe fn uncaught_kind(seat: &Seat) -> String {
    // SAFETY: as the caller promises.
    let (raised, site) = unsafe {
        (
            (*seat.component()).raised,
            seat.more
                .with(|more| more.raised_at)
                .map_or(ptr::null(), ptr::from_ref),
        )
    };
    let name = NAMES.get(raised.wrapping_sub(1) as usize);
    // SAFETY: sites are static.
    let place = unsafe { place_of(site) };
    format!(
        "{} at {place}",
        name.copied().unwrap_or("unknown exception")
    )
}

/// `file:line:column`.
///
/// # Safety
/// `site` is null or valid.
pub(crate) unsafe fn place_of(site: *const Site) -> String {
    // SAFETY: as the caller promises; its texts are literals.
    unsafe {
        match site.as_ref() {
            None => "an unknown place".to_owned(),
            Some(site) => format!("{}:{}:{}", literal(site.file), site.line, site.column),
        }
    }
}

/// Raises an exception.
///
/// # Safety
/// As the header says: `self` runs this, `detail` is a literal or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_raise(
    this: *mut Component,
    label: u32,
    site: *const Site,
    detail: *const c_char,
) {
    let detail = if detail.is_null() {
        Detail::None
    } else {
        Detail::Text(detail)
    };
    // SAFETY: as the caller promises.
    unsafe { set(this, 1 + label, site, detail) };
}

/// Raises the exception for an index out of bounds.
///
/// # Safety
/// As the header says: `self` runs this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_raise_index(
    this: *mut Component,
    index: i64,
    length: usize,
    site: *const Site,
) {
    // SAFETY: as the caller promises.
    unsafe {
        set(
            this,
            1 + Label::OperationFailed as u32,
            site,
            Detail::Index { index, length },
        );
    }
}
