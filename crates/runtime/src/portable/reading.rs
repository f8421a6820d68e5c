//! Reads values from bytes.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;

use super::codes::{label_count, type_of_code};
use super::writing::DEEPEST;
use crate::abi::{AnyBox, Array, Component, HEADER_BYTES, Kind, Object, Type, Value, fields};
use crate::exchange::values::object::is_reference;
use crate::exchange::{external, values::heap};

/// A value outside any component's heap.
#[derive(Debug, PartialEq)]
pub(crate) enum Portable {
    /// integer, unsigned, real or enum
    Word(u32),
    /// bool or byte
    Byte(u8),
    Text(Vec<u8>),
    Box(&'static Type, Box<Portable>),
    /// The fields of a struct.
    Struct(Vec<Portable>),
    Array(Vec<Portable>),
    /// An array of numbers, labels or bits: the bytes of its elements, as read. A value for each
    /// would take 32 times as much.
    Flat(Vec<u8>),
}

/// Reads one value and nothing more. None if these are not the bytes of such a value.
pub(crate) fn read(of: &Type, bytes: &[u8]) -> Option<Portable> {
    let mut reader = Reader {
        bytes,
        label_counts: HashMap::new(),
    };
    let value = reader.value(of, 0)?;
    reader.bytes.is_empty().then_some(value)
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// Label counts of the enums read so far. Counting reads the types' codes, which may be long,
    /// and values may be many.
    label_counts: HashMap<*const Type, u32>,
}

impl Reader<'_> {
    fn value(&mut self, of: &Type, depth: usize) -> Option<Portable> {
        if depth > DEEPEST {
            return None;
        }
        match of.kind {
            Kind::Integer | Kind::Unsigned | Kind::Real => self.word().map(Portable::Word),
            Kind::Enum => {
                let count = self.label_count(of);
                self.word()
                    .filter(|&label| label < count)
                    .map(Portable::Word)
            }
            Kind::Byte => self.byte().map(Portable::Byte),
            Kind::Bool => self.byte().filter(|&bit| bit < 2).map(Portable::Byte),
            Kind::String => self.text().map(Portable::Text),
            Kind::Any => {
                let code = String::from_utf8(self.text()?).ok()?;
                let inside = type_of_code(&code)?;
                Some(Portable::Box(
                    inside,
                    Box::new(self.value(inside, depth + 1)?),
                ))
            }
            Kind::Struct => {
                // SAFETY: a valid struct type.
                let fields = unsafe { fields(of) };
                // SAFETY: descriptors are static.
                let value =
                    |field: &crate::abi::Field| self.value(unsafe { &*field.r#type }, depth + 1);
                fields
                    .iter()
                    .map(value)
                    .collect::<Option<_>>()
                    .map(Portable::Struct)
            }
            Kind::Array => {
                // SAFETY: array types have an element type, which is static.
                let element = unsafe { &*of.element };
                let length = self.length()?;
                if !is_reference(element) {
                    return self.flat(element, length).map(Portable::Flat);
                }
                // Each element takes a byte at least: a length without elements gets no memory.
                if length > self.bytes.len() {
                    return None;
                }
                let elements = (0..length).map(|_| self.value(element, depth + 1));
                elements.collect::<Option<_>>().map(Portable::Array)
            }
            Kind::In | Kind::Out | Kind::Component | Kind::Procedure | Kind::Foreign => None,
        }
    }

    /// Reads this many elements without references.
    fn flat(&mut self, element: &Type, length: usize) -> Option<Vec<u8>> {
        let size = length.checked_mul(element.size as usize)?;
        let (elements, rest) = self.bytes.split_at_checked(size)?;
        self.bytes = rest;
        let are_values = match element.kind {
            Kind::Bool => elements.iter().all(|&bit| bit < 2),
            Kind::Enum => {
                let count = self.label_count(element);
                let (labels, _) = elements.as_chunks();
                labels
                    .iter()
                    .all(|&label| u32::from_le_bytes(label) < count)
            }
            _ => true,
        };
        are_values.then(|| elements.to_vec())
    }

    fn label_count(&mut self, of: &Type) -> u32 {
        let known = self.label_counts.entry(of);
        *known.or_insert_with(|| label_count(of))
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u32::from_le_bytes(*word))
    }

    fn length(&mut self) -> Option<usize> {
        let mut length = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            length |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(length).ok();
            }
        }
        None
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let length = self.length()?;
        let (text, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(text.to_vec())
    }
}

impl Portable {
    /// Makes the value in the heap of a component, counted once.
    ///
    /// # Safety
    /// It was read for this type. The component runs this or is parked for the caller.
    pub(crate) unsafe fn place(&self, of: &Type, to: *mut Component) -> Value {
        // SAFETY: as the caller promises, here and for every part.
        unsafe {
            match self {
                Portable::Word(word) => Value {
                    bits: u64::from(*word),
                },
                Portable::Byte(byte) => Value {
                    bits: u64::from(*byte),
                },
                Portable::Text(bytes) => external::text_in(to, bytes),
                Portable::Box(inside, value) => {
                    let value = value.place(inside, to);
                    let boxed = heap::alloc(to, size_of::<AnyBox>()).cast::<AnyBox>();
                    boxed.write(AnyBox {
                        object: COUNTED_ONCE,
                        r#type: *inside,
                        value,
                    });
                    Value::of_pointer(boxed)
                }
                Portable::Struct(parts) => {
                    let object = heap::alloc_zeroed(to, of.object_size);
                    object.cast::<Object>().write(COUNTED_ONCE);
                    for (field, part) in fields(of).iter().zip(parts) {
                        let value = part.place(&*field.r#type, to);
                        fill(&*field.r#type, object.byte_add(field.offset), value);
                    }
                    Value { pointer: object }
                }
                Portable::Array(parts) => {
                    let element = &*of.element;
                    let size = element.size as usize;
                    let array = heap::alloc(to, HEADER_BYTES + parts.len() * size);
                    array.cast::<Array>().write(Array {
                        object: COUNTED_ONCE,
                        length: parts.len(),
                    });
                    for (index, part) in parts.iter().enumerate() {
                        let value = part.place(element, to);
                        fill(element, array.byte_add(HEADER_BYTES + index * size), value);
                    }
                    Value { pointer: array }
                }
                Portable::Flat(bytes) => {
                    let size = (*of.element).size as usize;
                    let array = heap::alloc(to, HEADER_BYTES + bytes.len());
                    array.cast::<Array>().write(Array {
                        object: COUNTED_ONCE,
                        length: bytes.len() / size,
                    });
                    let first = array.byte_add(HEADER_BYTES);
                    if size == 1 {
                        let (from, place) = (bytes.as_ptr(), first.cast::<u8>());
                        ptr::copy_nonoverlapping(from, place, bytes.len());
                    } else {
                        let (words, _) = bytes.as_chunks();
                        for (index, &word) in words.iter().enumerate() {
                            let word = u32::from_le_bytes(word);
                            first.cast::<u32>().add(index).write(word);
                        }
                    }
                    Value { pointer: array }
                }
            }
        }
    }
}

const COUNTED_ONCE: Object = Object { refs: 1, spare: 0 };

/// Writes a value into a slot of this type.
///
/// # Safety
/// `place` is such a slot.
unsafe fn fill(of: &Type, place: *mut c_void, value: Value) {
    // SAFETY: as the caller promises.
    unsafe {
        match of.size {
            1 => place.cast::<u8>().write(value.byte),
            4 => place.cast::<u32>().write(value.unsigned),
            _ => place.cast::<*mut c_void>().write(value.pointer),
        }
    }
}
