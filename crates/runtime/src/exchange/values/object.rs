//! Values on the heap, by their type descriptors: copying, releasing, making.
//!
//! Lists go through boxes and may be as long as memory allows, so nothing here recurses: pending
//! work is in a list.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;

use crate::abi::{
    AnyBox, Array, Component, HEADER_BYTES, IMMORTAL, Kind, Object, Procedure, Text, Type, Value,
    fields,
};
use crate::exchange::block;
use crate::exchange::channel::{self, Channel};
use crate::exchange::values::heap;
use crate::ground::options;

/// Whether a slot of this type holds a reference.
pub(crate) fn is_reference(of: &Type) -> bool {
    of.kind.is_reference()
}

/// Whether it holds an object of its component's heap.
fn is_object(of: &Type) -> bool {
    !matches!(
        of.kind,
        Kind::In | Kind::Out | Kind::Component | Kind::Foreign
    ) && is_reference(of)
}

/// Whether objects of this type are immutable. Components may share them then, if they are
/// literals; an array or struct is never a literal.
pub(super) fn is_immutable(of: &Type) -> bool {
    matches!(of.kind, Kind::String | Kind::Any | Kind::Procedure)
}

/// Bytes of an object. `object` is valid and not null.
unsafe fn object_size(of: &Type, object: *const c_void) -> usize {
    // SAFETY: as the caller promises; array types have element types.
    unsafe {
        match of.kind {
            Kind::String => HEADER_BYTES + (*object.cast::<Text>()).length + 1,
            Kind::Any => size_of::<AnyBox>(),
            Kind::Struct => of.object_size,
            Kind::Array => {
                HEADER_BYTES + (*object.cast::<Array>()).length * (*of.element).size as usize
            }
            Kind::Procedure => size_of::<Procedure>(),
            kind => unreachable!("{kind:?} is no object"),
        }
    }
}

/// Calls `visit` with the type and place of every reference directly inside an object.
///
/// # Safety
/// `object` is a valid object of this type.
pub(super) unsafe fn for_each_inside(
    of: &Type,
    object: *mut c_void,
    mut visit: impl FnMut(&'static Type, *mut *mut c_void),
) {
    // SAFETY: descriptors are static and tell where references are.
    unsafe {
        match of.kind {
            Kind::Any => {
                let boxed = object.cast::<AnyBox>();
                let inside: &'static Type = &*(*boxed).r#type;
                if is_reference(inside) {
                    visit(inside, &raw mut (*boxed).value.pointer);
                }
            }
            Kind::Struct if !of.flat => {
                for field in fields(of) {
                    let inside: &'static Type = &*field.r#type;
                    if is_reference(inside) {
                        visit(inside, object.byte_add(field.offset).cast());
                    }
                }
            }
            Kind::Array if !of.flat => {
                let element: &'static Type = &*of.element;
                if is_reference(element) {
                    let first = object.byte_add(HEADER_BYTES).cast::<*mut c_void>();
                    for index in 0..(*object.cast::<Array>()).length {
                        visit(element, first.add(index));
                    }
                }
            }
            _ => {}
        }
    }
}

/// The reach of a copy: how strings and boxes are copied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Within one component they are shared, being immutable.
    Within,
    /// Across components everything except literals is copied.
    Across,
}

/// Copies a value deeply into the heap of `to`. Sharing inside the value is kept inside the copy.
///
/// # Safety
/// `value` is of this type; `to` runs the calling code or is parked for it.
pub(crate) unsafe fn copy(to: *mut Component, of: &Type, value: Value) -> Value {
    // SAFETY: as the caller promises.
    unsafe { copy_with(to, of, value, Reach::Across) }
}

unsafe fn copy_with(to: *mut Component, of: &Type, value: Value, reach: Reach) -> Value {
    if !is_reference(of) {
        return value;
    }
    // SAFETY: as the caller promises.
    if unsafe { flat_size(of, value) }.is_some() {
        // SAFETY: as above.
        let pointer = unsafe { duplicate(to, of, value.pointer) };
        return Value { pointer };
    }
    let mut copying = Copying {
        to,
        reach,
        left: Vec::new(),
        known: HashMap::new(),
    };
    // SAFETY: as the caller promises.
    unsafe {
        let result = copying.one(of, value.pointer);
        while let Some((of, place)) = copying.left.pop() {
            *place = copying.one(of, *place);
        }
        Value { pointer: result }
    }
}

/// Bytes of an array or struct without references inside, which is copied as raw bytes; None for
/// anything else.
///
/// # Safety
/// `value` is of this type.
pub(crate) unsafe fn flat_size(of: &Type, value: Value) -> Option<usize> {
    // SAFETY: as the caller promises.
    unsafe {
        let is_flat = of.flat && matches!(of.kind, Kind::Array | Kind::Struct);
        (is_flat && !value.pointer.is_null()).then(|| object_size(of, value.pointer))
    }
}

/// Bytes of a value; if it has others inside, of the outermost part.
///
/// # Safety
/// The value is of this type, and the caller's.
pub(crate) unsafe fn outer_size(of: &Type, value: Value) -> usize {
    // SAFETY: as the caller promises; only references to objects are followed.
    unsafe {
        if is_object(of) && !value.pointer.is_null() {
            object_size(of, value.pointer)
        } else {
            of.size as usize
        }
    }
}

/// Copies one object, with the same inside and one reference.
unsafe fn duplicate(to: *mut Component, of: &Type, original: *mut c_void) -> *mut c_void {
    // SAFETY: the caller's object is valid.
    unsafe {
        let size = object_size(of, original);
        let copy = heap::alloc(to, size);
        ptr::copy_nonoverlapping(original.cast::<u8>(), copy.cast::<u8>(), size);
        copy.cast::<Object>().write(Object { refs: 1, spare: 0 });
        copy
    }
}

struct Copying {
    to: *mut Component,
    reach: Reach,
    /// Places in fresh copies that still hold references into the original.
    left: Vec<(&'static Type, *mut *mut c_void)>,
    /// Copies of objects with several references.
    known: HashMap<*mut c_void, *mut c_void>,
}

impl Copying {
    /// Copies one object, or adds a reference to its copy; the inside is left for later.
    unsafe fn one(&mut self, of: &Type, original: *mut c_void) -> *mut c_void {
        if original.is_null() {
            return original;
        }
        // SAFETY: the caller's value is valid.
        unsafe {
            match of.kind {
                Kind::In | Kind::Out => (*original.cast::<Channel>()).retain(),
                Kind::Component => {
                    block::hearth_component_retain(original.cast());
                }
                Kind::Foreign => {
                    let foreign = of.element.cast::<crate::abi::Foreign>();
                    return ((*foreign).pass)(self.to, original);
                }
                _ => return self.object(of, original),
            }
        }
        original
    }

    unsafe fn object(&mut self, of: &Type, original: *mut c_void) -> *mut c_void {
        // SAFETY: the caller's value is valid.
        unsafe {
            let header = original.cast::<Object>();
            if (*header).refs == IMMORTAL && is_immutable(of) {
                return original;
            }
            if self.reach == Reach::Within && is_immutable(of) {
                retain_times(header, 1);
                return original;
            }
            let is_shared = (*header).refs > 1;
            if is_shared && let Some(&known) = self.known.get(&original) {
                retain_times(known.cast(), 1);
                return known;
            }
            let copy = duplicate(self.to, of, original);
            if is_shared {
                self.known.insert(original, copy);
            }
            if of.kind == Kind::Procedure {
                block::hearth_component_retain((*copy.cast::<Procedure>()).owner);
            }
            for_each_inside(of, copy, |of, place| self.left.push((of, place)));
            copy
        }
    }
}

/// Adds references. A count that would overflow makes the object immortal.
unsafe fn retain_times(object: *mut Object, times: u32) {
    // SAFETY: the caller's object is valid, and its component's alone.
    unsafe { (*object).refs = (*object).refs.saturating_add(times) };
}

/// Whether all parts of this value have only this one user. Then the whole may change owner.
///
/// # Safety
/// `value` is of this type, and its component is parked or runs this.
pub(crate) unsafe fn is_unique(of: &Type, value: Value) -> bool {
    let mut left: Vec<(&'static Type, *mut c_void)> = Vec::new();
    let mut unique = true;
    // SAFETY: as the caller promises.
    unsafe {
        let mut next = Some((of, value.pointer));
        while let Some((of, object)) = next {
            if is_object(of) && !object.is_null() {
                match (*object.cast::<Object>()).refs {
                    1 => for_each_inside(of, object, |of, place| left.push((of, *place))),
                    // A literal. An array or struct is immortal only because its count has
                    // overflowed.
                    IMMORTAL => unique = is_immutable(of),
                    _ => unique = false,
                }
            }
            if !unique {
                return false;
            }
            next = left.pop();
        }
    }
    true
}

/// Releases the reference that a slot of this type holds.
///
/// # Safety
/// `value` is of this type and counted; it is in the heap of `component`, which runs this or is
/// parked for it.
pub(crate) unsafe fn release_value(component: *mut Component, of: &Type, value: Value) {
    if !is_reference(of) {
        return;
    }
    let mut left: Vec<(&'static Type, *mut c_void)> = Vec::new();
    // SAFETY: as the caller promises.
    unsafe {
        release_one(component, of, value.pointer, &mut left);
        while let Some((of, pointer)) = left.pop() {
            release_one(component, of, pointer, &mut left);
        }
    }
}

unsafe fn release_one(
    component: *mut Component,
    of: &Type,
    pointer: *mut c_void,
    left: &mut Vec<(&'static Type, *mut c_void)>,
) {
    if pointer.is_null() {
        return;
    }
    // SAFETY: the caller's reference is valid.
    unsafe {
        match of.kind {
            Kind::In | Kind::Out => channel::release(pointer.cast()),
            Kind::Component => block::release(pointer.cast()),
            Kind::Foreign => {}
            _ => {
                let header = pointer.cast::<Object>();
                if (*header).refs == IMMORTAL {
                    return;
                }
                (*header).refs -= 1;
                if (*header).refs == 0 {
                    free_one(component, of, pointer, left);
                }
            }
        }
    }
}

/// Frees an object; the references inside are left for later.
unsafe fn free_one(
    component: *mut Component,
    of: &Type,
    object: *mut c_void,
    left: &mut Vec<(&'static Type, *mut c_void)>,
) {
    // SAFETY: the caller had the last reference.
    unsafe {
        for_each_inside(of, object, |of, place| left.push((of, *place)));
        if of.kind == Kind::Procedure {
            block::hearth_component_release((*object.cast::<Procedure>()).owner);
        }
        heap::free(component, object);
    }
}

/// Frees an object whose last reference is gone, and releases its inside.
///
/// # Safety
/// As the header says: nothing refers to `object`, of this type, in the heap of `self`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_destroy(
    this: *mut Component,
    of: *const Type,
    object: *mut c_void,
) {
    // SAFETY: as the caller promises.
    unsafe {
        let of = &*of;
        let mut left = Vec::new();
        free_one(this, of, object, &mut left);
        while let Some((of, pointer)) = left.pop() {
            release_one(this, of, pointer, &mut left);
        }
    }
}

/// Copies a value.
///
/// # Safety
/// As the header says: `value` is of this type; `to` runs this or is parked or unstarted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_copy(to: *mut Component, of: *const Type, value: Value) -> Value {
    // SAFETY: as the caller promises.
    unsafe { copy(to, &*of, value) }
}

/// Makes a box.
///
/// # Safety
/// As the header says: `value` is of this type, in the heap of `self`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_box_new(
    this: *mut Component,
    of: *const Type,
    value: Value,
) -> *mut AnyBox {
    // SAFETY: as the caller promises.
    unsafe {
        let value = copy_with(this, &*of, value, Reach::Within);
        let boxed = heap::alloc(this, size_of::<AnyBox>()).cast::<AnyBox>();
        boxed.write(AnyBox {
            object: Object { refs: 1, spare: 0 },
            r#type: of,
            value,
        });
        boxed
    }
}

/// Whether two strings are equal.
///
/// # Safety
/// Both are null or valid strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_string_equal(a: *const Text, b: *const Text) -> bool {
    // SAFETY: as the caller promises.
    ptr::eq(a, b) || unsafe { text_of(a) == text_of(b) }
}

/// The bytes of a string; none of a null one.
///
/// # Safety
/// `text` is null or a valid string that is not freed while the result is used.
pub(crate) unsafe fn text_of<'a>(text: *const Text) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: a valid string has `length` bytes after its header.
    unsafe { std::slice::from_raw_parts(text.cast::<u8>().add(HEADER_BYTES), (*text).length) }
}

/// Makes an array of one or more dimensions.
///
/// # Safety
/// As the header says: `of` is the type of the whole, `lengths` has `dimensions` lengths, and
/// `init` is of the innermost element's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_array_new(
    this: *mut Component,
    of: *const Type,
    lengths: *const u32,
    dimensions: u32,
    init: Value,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe {
        let lengths = std::slice::from_raw_parts(lengths, dimensions as usize);
        array(this, &*of, lengths, init)
    }
}

/// Makes an array, one dimension at a time. Dimensions are few: the program's text spells them out.
unsafe fn array(this: *mut Component, of: &Type, lengths: &[u32], init: Value) -> *mut c_void {
    let [length, inner @ ..] = lengths else {
        unreachable!("an array has a dimension");
    };
    let length = *length as usize;
    // SAFETY: as the caller promises.
    unsafe {
        let element = &*of.element;
        let size = length
            .checked_mul(element.size as usize)
            .and_then(|bytes| bytes.checked_add(HEADER_BYTES))
            .unwrap_or_else(|| heap::refused(this, usize::MAX));
        let is_zero = inner.is_empty() && is_zero(element, init);
        let block = if is_zero {
            heap::alloc_zeroed(this, size)
        } else {
            heap::alloc(this, size)
        };
        block.cast::<Array>().write(Array {
            object: Object { refs: 1, spare: 0 },
            length,
        });
        let first = block.byte_add(HEADER_BYTES);
        if !inner.is_empty() {
            for index in 0..length {
                let row = array(this, element, inner, init);
                first.cast::<*mut c_void>().add(index).write(row);
            }
        } else if !is_zero {
            fill(this, element, first, length, init);
        }
        block
    }
}

/// Whether it is all zero bits.
unsafe fn is_zero(of: &Type, value: Value) -> bool {
    // SAFETY: the member that the size tells was written.
    unsafe {
        match of.size {
            1 => value.byte == 0,
            4 => value.unsigned == 0,
            _ => value.pointer.is_null(),
        }
    }
}

/// Fills fresh elements: copies of structs and arrays, references to everything else. Programs of
/// the original share structs and arrays too.
unsafe fn fill(this: *mut Component, of: &Type, first: *mut c_void, length: usize, init: Value) {
    // SAFETY: there is room for `length` elements of the type's size.
    unsafe {
        match of.size {
            1 => first.cast::<u8>().write_bytes(init.byte, length),
            4 => std::slice::from_raw_parts_mut(first.cast::<std::mem::MaybeUninit<u32>>(), length)
                .fill(std::mem::MaybeUninit::new(init.unsigned)),
            _ if options::get().compat_original
                && matches!(of.kind, Kind::Struct | Kind::Array) =>
            {
                retain_times(init.pointer.cast(), length as u32);
                for index in 0..length {
                    first.cast::<*mut c_void>().add(index).write(init.pointer);
                }
            }
            _ => {
                for index in 0..length {
                    let element = copy_with(this, of, init, Reach::Within);
                    first
                        .cast::<*mut c_void>()
                        .add(index)
                        .write(element.pointer);
                }
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::portable::type_of_code;

    /// Counts stop at the number that marks literals. An object shared that often stays in place.
    #[test]
    fn an_array_whose_count_has_run_over_is_copied() {
        let of = type_of_code("Ai").unwrap();
        let nobody = ptr::null_mut();
        // SAFETY: an array of this test's own, in the heap of no component.
        unsafe {
            let array = array(nobody, of, &[3], Value::of_integer(7));
            let value = Value { pointer: array };
            assert!(is_unique(of, value));
            retain_times(array.cast(), IMMORTAL - 1);
            assert_eq!((*array.cast::<Object>()).refs, IMMORTAL);
            assert!(!is_unique(of, value), "others refer to it");
            let copied = copy(nobody, of, value);
            assert_ne!(copied.pointer, array);
            release_value(nobody, of, copied);
            heap::free(nobody, array);
        }
    }
}
