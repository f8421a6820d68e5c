//! Comparing, indexing and reading strings.

use crate::abi::{Component, Text};
use crate::exchange::values::object::text_of as bytes;
use crate::services::text;

/// `stringEquals`: by content.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_string_equals(
    _this: *mut Component,
    a: *const Text,
    b: *const Text,
) -> bool {
    // SAFETY: borrowed strings.
    unsafe { bytes(a) == bytes(b) }
}

/// `stringStartsWith`: the second is the prefix.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_string_starts_with(
    _this: *mut Component,
    string: *const Text,
    prefix: *const Text,
) -> bool {
    // SAFETY: borrowed strings.
    unsafe { bytes(string).starts_with(bytes(prefix)) }
}

/// `charAt`: the code of the byte there, 0 outside.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_char_at(
    _this: *mut Component,
    string: *const Text,
    index: u32,
) -> u32 {
    // SAFETY: a borrowed string.
    let bytes = unsafe { bytes(string) };
    bytes.get(index as usize).map_or(0, |&byte| u32::from(byte))
}

/// `parseInt`
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_parse_int(_this: *mut Component, string: *const Text) -> i32 {
    // SAFETY: a borrowed string.
    text::parse_int(unsafe { bytes(string) })
}

/// `parseUnsignedInt`
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_parse_unsigned_int(
    _this: *mut Component,
    string: *const Text,
) -> u32 {
    // SAFETY: a borrowed string.
    text::parse_unsigned(unsafe { bytes(string) })
}

/// `parseReal`
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_parse_real(_this: *mut Component, string: *const Text) -> f32 {
    // SAFETY: a borrowed string.
    text::parse_real(unsafe { bytes(string) })
}
