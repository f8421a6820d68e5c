//! Places in Rust source, in the form of the runtime's reports.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CString;
use std::panic::Location;
use std::sync::Mutex;

use crate::abi::Site;
use crate::ground::sync::lock_std as lock;

struct Known(&'static Site);
// SAFETY: sites are never written.
unsafe impl Send for Known {}

/// Sites, keyed by the location's address and the type's name.
type Sites = HashMap<(usize, usize), Known>;

static SITES: Mutex<Option<Sites>> = Mutex::new(None);

/// Number of places that a thread remembers: a power of two.
const REMEMBERED: usize = 64;

thread_local! {
    static RECENT: RefCell<[(usize, usize, *const Site); REMEMBERED]> =
        const { RefCell::new([(0, 0, std::ptr::null()); REMEMBERED]) };
}

/// Returns the site of an operation on a half-channel of this kind.
pub(super) fn of(location: &'static Location<'static>, kind: &'static str) -> *const Site {
    let key = (std::ptr::from_ref(location).addr(), kind.as_ptr().addr());
    RECENT.with_borrow_mut(|recent| {
        let place = &mut recent[((key.0 ^ key.1) >> 3) % REMEMBERED];
        if (place.0, place.1) != key {
            *place = (key.0, key.1, made(key, location, kind));
        }
        place.2
    })
}

#[cold]
fn made(key: (usize, usize), location: &Location<'_>, kind: &str) -> *const Site {
    let mut sites = lock(&SITES);
    let site = sites
        .get_or_insert_default()
        .entry(key)
        .or_insert_with(|| Known(make(location, kind)));
    site.0
}

/// Makes a site. There are as many as the source has operations, so they stay.
fn make(location: &Location<'_>, kind: &str) -> &'static Site {
    let literal = |text: &str| {
        CString::new(text.replace('\0', ""))
            .unwrap_or_default()
            .into_raw()
            .cast_const()
    };
    Box::leak(Box::new(Site {
        file: literal(location.file()),
        line: location.line(),
        column: location.column(),
        text: literal(kind),
    }))
}
