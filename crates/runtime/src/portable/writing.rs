//! Writes values as bytes.

use std::ffi::c_void;

use crate::abi::{AnyBox, Array, HEADER_BYTES, Kind, Type, Value, fields, literal};
use crate::exchange::values::object::text_of;

/// A reason that a value cannot leave its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stays {
    Channel,
    Component,
    Procedure,
    /// Boxes nested deeper than any reader accepts.
    TooDeep,
}

impl std::fmt::Display for Stays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Stays::Channel => "a channel cannot leave its node",
            Stays::Component => "a component cannot leave its node",
            Stays::Procedure => "a procedure cannot leave its node",
            Stays::TooDeep => "boxes are nested too deeply",
        })
    }
}

/// Deepest nesting of boxes, structs and arrays. Each level takes some hundred bytes of stack here
/// and up to two thousand in the reader, in a build without optimisation: every thread that writes
/// or reads values has the stack of one that runs components (`carrier::STACK_BYTES`).
pub(super) const DEEPEST: usize = 1000;

/// Appends a value's bytes.
///
/// # Safety
/// `value` is of this type, and its component runs this or is parked for the caller.
pub(crate) unsafe fn write(of: &Type, value: Value, to: &mut Vec<u8>) -> Result<(), Stays> {
    // SAFETY: as the caller promises.
    unsafe { write_at(of, value, to, 0) }
}

unsafe fn write_at(of: &Type, value: Value, to: &mut Vec<u8>, depth: usize) -> Result<(), Stays> {
    if depth > DEEPEST {
        return Err(Stays::TooDeep);
    }
    // SAFETY: the value is of this type, so the member read is the one written, and references are
    // valid; descriptors are static.
    unsafe {
        match of.kind {
            Kind::Integer | Kind::Unsigned | Kind::Real | Kind::Enum => {
                to.extend(value.unsigned.to_le_bytes());
            }
            Kind::Bool | Kind::Byte => to.push(value.byte),
            Kind::String => write_bytes(text_of(value.pointer.cast()), to),
            Kind::Any => {
                let boxed = value.pointer.cast::<AnyBox>();
                let inside = &*(*boxed).r#type;
                write_bytes(literal(inside.code).as_bytes(), to);
                write_at(inside, (*boxed).value, to, depth + 1)?;
            }
            Kind::Struct => {
                for field in fields(of) {
                    let value = slot(&*field.r#type, value.pointer.byte_add(field.offset));
                    write_at(&*field.r#type, value, to, depth + 1)?;
                }
            }
            Kind::Array => {
                let element = &*of.element;
                let length = (*value.pointer.cast::<Array>()).length;
                let first = value.pointer.byte_add(HEADER_BYTES);
                write_length(length, to);
                for index in 0..length {
                    let value = slot(element, first.byte_add(index * element.size as usize));
                    write_at(element, value, to, depth + 1)?;
                }
            }
            Kind::In | Kind::Out => return Err(Stays::Channel),
            Kind::Component => return Err(Stays::Component),
            Kind::Procedure => return Err(Stays::Procedure),
            Kind::Foreign => unreachable!("only components of the embedding program have them"),
        }
    }
    Ok(())
}

/// Reads a slot of this type.
///
/// # Safety
/// `place` is such a slot.
unsafe fn slot(of: &Type, place: *mut c_void) -> Value {
    // SAFETY: as the caller promises.
    unsafe {
        match of.size {
            1 => Value {
                bits: u64::from(place.cast::<u8>().read()),
            },
            4 => Value {
                bits: u64::from(place.cast::<u32>().read()),
            },
            _ => Value {
                pointer: place.cast::<*mut c_void>().read(),
            },
        }
    }
}

pub(super) fn write_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    write_length(bytes.len(), to);
    to.extend(bytes);
}

pub(super) fn write_length(mut length: usize, to: &mut Vec<u8>) {
    while length >= 0x80 {
        to.push(length as u8 | 0x80);
        length >>= 7;
    }
    to.push(length as u8);
}
