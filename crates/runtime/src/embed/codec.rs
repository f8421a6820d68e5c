//! Passes values of Rust types: as bits, as objects that Insense knows too, or moved whole.

use std::any::TypeId;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::fmt::Write;
use std::ptr;
use std::sync::Mutex;

use super::slot;
use crate::abi::{
    Array, Component, Foreign, HEADER_BYTES, Kind, Object, Text, Type, Value, fields,
};
use crate::exchange::external::text_in;
use crate::exchange::values::object::text_of;
use crate::exchange::values::{heap, object};
use crate::ground::sync::lock_std as lock;
use crate::portable::type_of_code;

/// The way in which values of a type travel.
pub(super) struct Codec<T> {
    pub(super) manner: Manner,
    pub(super) of: fn() -> &'static Type,
    /// Makes a value in the heap of a component. A moved value has nothing there.
    pub(super) encode: unsafe fn(*mut Component, &T) -> Value,
    /// Reads the value; its parts are left as they are.
    pub(super) decode: unsafe fn(Value) -> Option<T>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Its bits fit a slot.
    Scalar,
    /// Copied from heap to heap.
    Object,
    /// From slot to slot.
    Moved,
}

/// The codec of a type that never meets Insense, or is a scalar.
pub(super) fn default_of<T: Send + 'static>() -> (bool, &'static Codec<T>) {
    let wanted = TypeId::of::<T>();
    macro_rules! scalar {
        ($($t:ty),*) => {
            $(if wanted == TypeId::of::<$t>() {
                let codec: *const Codec<$t> = portable::<$t>();
                // SAFETY: the types are the same.
                return (true, unsafe { &*codec.cast::<Codec<T>>() });
            })*
        };
    }
    scalar!(i32, u32, f32, bool, u8);
    (false, moved())
}

/// The codec of a type that Insense has too.
pub(super) fn portable<T: Portable>() -> &'static Codec<T> {
    const {
        &Codec {
            manner: if T::IS_SCALAR {
                Manner::Scalar
            } else {
                Manner::Object
            },
            of: type_of::<T>,
            encode: |component, value| T::encode(value, Heap(component)),
            // SAFETY: the caller's value is of this type.
            decode: |value| Some(unsafe { T::decode(value) }),
        }
    }
}

fn moved<T: Send + 'static>() -> &'static Codec<T> {
    const {
        &Codec {
            manner: Manner::Moved,
            of: foreign_type::<T>,
            encode: |_, _| Value::NOTHING,
            decode: |_| None,
        }
    }
}

/// The descriptor of a type of this program's only. Its code begins with a letter that no Insense
/// code begins with, and ends in a part that distinguishes types of the same name.
fn foreign_type<T: 'static>() -> &'static Type {
    static FOREIGN: Foreign = Foreign { pass: slot::pass };
    static KNOWN: Mutex<Option<HashMap<TypeId, &'static Type>>> = Mutex::new(None);
    let mut known = lock(&KNOWN);
    let known = known.get_or_insert_default();
    let number = known.len();
    known.entry(TypeId::of::<T>()).or_insert_with(|| {
        let mut code = String::from("R");
        let _ = write!(code, "{}#{number}", std::any::type_name::<T>());
        Box::leak(Box::new(Type {
            code: CString::new(code).unwrap_or_default().into_raw(),
            kind: Kind::Foreign,
            size: 8,
            flat: false,
            element: (&raw const FOREIGN).cast(),
            field_count: 0,
            fields: ptr::null(),
            object_size: 0,
        }))
    })
}

fn type_of<T: Portable>() -> &'static Type {
    let mut code = String::new();
    T::code(&mut code);
    match type_of_code(&code) {
        Some(of) => of,
        None => panic!("{code:?} is no type code: a record has a field, and few levels"),
    }
}

/// The sending component's heap.
#[derive(Clone, Copy)]
pub struct Heap(*mut Component);

/// A type that Insense has too: `i32` is `integer`, `u32` is `unsigned`, `f32` is `real`, `u8` is
/// `byte`; `bool` and `String` have the same name, vectors are arrays and [`Record`]s structs.
///
/// # Safety
/// `code` appends the code of an Insense type, the same each time. `encode` returns a value of that
/// type; if it is an object, in `heap` and with one reference, which belongs to the caller.
/// `decode` accepts every value of the type, and neither keeps nor releases a reference to it.
pub unsafe trait Portable: Sized + Send + 'static {
    #[doc(hidden)]
    const IS_SCALAR: bool;
    /// The Insense type's code.
    #[doc(hidden)]
    fn code(into: &mut String);
    #[doc(hidden)]
    fn encode(&self, heap: Heap) -> Value;
    /// # Safety
    /// `value` is of the type of [`Portable::code`], and its object, if it is one, is alive.
    #[doc(hidden)]
    unsafe fn decode(value: Value) -> Self;
}

macro_rules! scalars {
    ($($t:ty, $code:literal, $field:ident;)*) => {$(
        // SAFETY: the slot of such a type is this member.
        unsafe impl Portable for $t {
            const IS_SCALAR: bool = true;
            fn code(into: &mut String) {
                into.push($code);
            }
            fn encode(&self, _heap: Heap) -> Value {
                // The whole slot first, so that no bit of it is uninitialised.
                let mut value = Value::NOTHING;
                value.$field = *self;
                value
            }
            unsafe fn decode(value: Value) -> $t {
                // SAFETY: as the caller promises.
                unsafe { value.$field }
            }
        }
    )*};
}
scalars! {
    i32, 'i', integer;
    u32, 'u', unsigned;
    f32, 'r', real;
    bool, 'b', boolean;
    u8, '8', byte;
}

// SAFETY: text with its bytes. Invalid UTF-8 in an Insense string is replaced.
unsafe impl Portable for String {
    const IS_SCALAR: bool = false;
    fn code(into: &mut String) {
        into.push('s');
    }
    fn encode(&self, heap: Heap) -> Value {
        text_in(heap.0, self.as_bytes())
    }
    unsafe fn decode(value: Value) -> String {
        // SAFETY: as the caller promises.
        unsafe {
            let bytes = text_of(value.pointer.cast::<Text>());
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}

/// Bytes of a slot.
const fn size_of_slot<T: Portable>() -> usize {
    if T::IS_SCALAR { size_of::<T>() } else { 8 }
}

/// # Safety
/// There is room for a slot at `place`.
unsafe fn write_slot<T: Portable>(place: *mut u8, value: &T, heap: Heap) {
    let value = value.encode(heap);
    // SAFETY: as the caller promises; a slot's bytes come first in a value, on machines whose bytes
    // begin with the low one as much as in C.
    unsafe {
        match size_of_slot::<T>() {
            1 => place.write(value.byte),
            4 => place.cast::<u32>().write(value.unsigned),
            _ => place.cast::<*mut c_void>().write(value.pointer),
        }
    }
}

/// # Safety
/// There is a slot of this type at `place`.
unsafe fn read_slot<T: Portable>(place: *const u8) -> T {
    let mut value = Value::NOTHING;
    // SAFETY: as the caller promises.
    unsafe {
        match size_of_slot::<T>() {
            1 => value.byte = place.read(),
            4 => value.unsigned = place.cast::<u32>().read(),
            _ => value.pointer = place.cast::<*mut c_void>().read(),
        }
        T::decode(value)
    }
}

// SAFETY: an array of the elements' slots.
unsafe impl<T: Portable> Portable for Vec<T> {
    const IS_SCALAR: bool = false;
    fn code(into: &mut String) {
        into.push('A');
        T::code(into);
    }
    fn encode(&self, heap: Heap) -> Value {
        let step = size_of_slot::<T>();
        let block = heap::alloc(heap.0, HEADER_BYTES + self.len() * step);
        // SAFETY: a fresh block with room for the header and these slots.
        unsafe {
            block.cast::<Array>().write(Array {
                object: Object { refs: 1, spare: 0 },
                length: self.len(),
            });
            let first = block.byte_add(HEADER_BYTES).cast::<u8>();
            for (index, element) in self.iter().enumerate() {
                write_slot(first.add(index * step), element, heap);
            }
        }
        Value::of_pointer(block)
    }
    unsafe fn decode(value: Value) -> Vec<T> {
        // SAFETY: as the caller promises; an array that was never made is empty.
        unsafe {
            let array = value.pointer.cast::<Array>();
            if array.is_null() {
                return Vec::new();
            }
            let first = array.byte_add(HEADER_BYTES).cast::<u8>();
            (0..(*array).length)
                .map(|index| read_slot(first.add(index * size_of_slot::<T>())))
                .collect()
        }
    }
}

/// Rust structs that are Insense structs: the two are one type if they have the same field names
/// and types in the same order.
pub trait Record: Sized + Send + 'static {
    /// The fields' types, as a tuple.
    type Fields: Fields;
    /// The fields' names.
    const NAMES: &'static [&'static str];
    /// The fields' values.
    fn to_fields(&self) -> Self::Fields;
    /// A value of these fields.
    fn from_fields(fields: Self::Fields) -> Self;
}

/// Tuples of [`Portable`] types.
///
/// # Safety
/// `code` appends the code of the struct with these fields and `names`. `write` fills all fields of
/// an object of that struct, as [`Portable::encode`] makes values; `read` reads them as
/// [`Portable::decode`] does.
pub unsafe trait Fields: Sized {
    #[doc(hidden)]
    fn code(names: &[&str], into: &mut String);
    /// # Safety
    /// `of` is the struct's type, and `object` points to `of.object_size` writable bytes, aligned
    /// as an object.
    #[doc(hidden)]
    unsafe fn write(&self, of: &Type, object: *mut u8, heap: Heap);
    /// # Safety
    /// `of` is the struct's type, and `object` a live object of it.
    #[doc(hidden)]
    unsafe fn read(of: &Type, object: *const u8) -> Self;
}

macro_rules! fields {
    ($($t:ident $index:tt),+) => {
        // SAFETY: the descriptor's fields are these, in this order.
        unsafe impl<$($t: Portable),+> Fields for ($($t,)+) {
            fn code(names: &[&str], into: &mut String) {
                into.push('S');
                $(
                    $t::code(into);
                    // An underscore ends a name in a code.
                    into.push_str(&names[$index].replace('_', "$"));
                    into.push('_');
                )+
                into.push('_');
            }
            unsafe fn write(&self, of: &Type, object: *mut u8, heap: Heap) {
                // SAFETY: as the caller promises.
                unsafe {
                    let layout = fields(of);
                    $(write_slot(object.add(layout[$index].offset), &self.$index, heap);)+
                }
            }
            unsafe fn read(of: &Type, object: *const u8) -> Self {
                // SAFETY: as the caller promises.
                unsafe {
                    let layout = fields(of);
                    ($(read_slot::<$t>(object.add(layout[$index].offset)),)+)
                }
            }
        }
    };
}
fields!(A 0);
fields!(A 0, B 1);
fields!(A 0, B 1, C 2);
fields!(A 0, B 1, C 2, D 3);
fields!(A 0, B 1, C 2, D 3, E 4);
fields!(A 0, B 1, C 2, D 3, E 4, F 5);
fields!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
fields!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

// SAFETY: a struct with the fields where the descriptor has them.
unsafe impl<R: Record> Portable for R {
    const IS_SCALAR: bool = false;
    fn code(into: &mut String) {
        R::Fields::code(R::NAMES, into);
    }
    fn encode(&self, heap: Heap) -> Value {
        let of = type_of::<R>();
        // User code, which may panic.
        let fields = self.to_fields();
        let block = heap::alloc_zeroed(heap.0, of.object_size);
        // SAFETY: a fresh block of the struct's size.
        unsafe {
            block.cast::<Object>().write(Object { refs: 1, spare: 0 });
            fields.write(of, block.cast(), heap);
        }
        Value::of_pointer(block)
    }
    unsafe fn decode(value: Value) -> R {
        let of = type_of::<R>();
        // SAFETY: as the caller promises.
        R::from_fields(unsafe { R::Fields::read(of, value.pointer.cast()) })
    }
}

/// Releases a received object.
///
/// # Safety
/// The value is of this type, counted, and in the heap of the component that runs this.
pub(super) unsafe fn release(component: *mut Component, of: &Type, value: Value) {
    // SAFETY: as the caller promises.
    unsafe { object::release_value(component, of, value) };
}
