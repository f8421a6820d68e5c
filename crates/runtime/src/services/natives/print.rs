//! `printString` and its kin. Each call's output is written whole.

use std::fmt::Display;
use std::io::Write;

use crate::abi::{AnyBox, Component, Kind, Text, literal};
use crate::exchange::values::object::text_of as bytes;
use crate::ground::output;
use crate::services::{framing, text};

/// Prints a value no longer than a number's digits, without allocation.
fn print_short(value: impl Display) {
    let mut buffer = [0; 24];
    let mut rest = &mut buffer[..];
    // Never refused: no integer has more than 20 digits.
    let _ = write!(rest, "{value}");
    let unused = rest.len();
    output::print(&buffer[..buffer.len() - unused]);
}

fn print_framed(text: &[u8]) {
    let source = crate::services::node::likely_address();
    output::print(&framing::frame_text(text, source as u16));
}

/// `printString`
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_print_string(_this: *mut Component, string: *const Text) {
    // SAFETY: a borrowed string.
    output::print(unsafe { bytes(string) });
}

/// `printInt`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_print_int(_this: *mut Component, value: i32) {
    print_short(value);
}

/// `printUnsignedInt`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_print_unsigned_int(_this: *mut Component, value: u32) {
    print_short(value);
}

/// `printByte`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_print_byte(_this: *mut Component, value: u8) {
    print_short(value);
}

/// `printReal`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_print_real(_this: *mut Component, value: f32) {
    output::print(text::format_real(value).as_bytes());
}

/// `printAny`
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_print_any(_this: *mut Component, boxed: *const AnyBox) {
    // SAFETY: a borrowed box, whose value is of the type it names.
    unsafe {
        let value = (*boxed).value;
        let kind = &*(*boxed).r#type;
        match kind.kind {
            Kind::Integer => print_short(value.integer),
            Kind::Unsigned => print_short(value.unsigned),
            Kind::Byte => print_short(value.byte),
            Kind::Bool => output::print(if value.boolean { b"true" } else { b"false" }),
            Kind::Real => output::print(text::format_real(value.real).as_bytes()),
            Kind::String => output::print(bytes(value.pointer.cast())),
            _ => output::print(complaint(&literal(kind.code)).as_bytes()),
        }
    }
}

/// Text that `printAny` prints for a value without text.
fn complaint(code: &str) -> String {
    format!("[printAny cannot print a value of type {code}]")
}

/// `printTCString`
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_print_tc_string(_this: *mut Component, string: *const Text) {
    // SAFETY: a borrowed string.
    print_framed(unsafe { bytes(string) });
}

/// `printTCInt`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_print_tc_int(_this: *mut Component, value: i32) {
    print_framed(value.to_string().as_bytes());
}

/// `printTCUnsignedInt`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_print_tc_unsigned_int(_this: *mut Component, value: u32) {
    print_framed(value.to_string().as_bytes());
}

/// `printTCByte`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_print_tc_byte(_this: *mut Component, value: u8) {
    print_framed(value.to_string().as_bytes());
}

/// `printTCReal`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_print_tc_real(_this: *mut Component, value: f32) {
    print_framed(text::format_real(value).as_bytes());
}

/// `printStackUsage`: components have no stacks of their own, so there is nothing to print.
#[unsafe(no_mangle)]
pub extern "C" fn hearth_print_stack_usage(_this: *mut Component) {}
