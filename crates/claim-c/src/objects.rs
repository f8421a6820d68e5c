//! The loaded objects of the process: programs and libraries, their addresses, their symbols.

use std::ffi::{CStr, CString};
use std::ptr;

use libc::{c_char, c_int, c_void, size_t};

/// A loaded object. It is never unloaded after [`Object::stay`] or [`Object::symbol`].
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// Its addresses, from the first to behind the last.
    begin: usize,
    end: usize,
    /// Its file; empty for the program itself.
    path: CString,
}

/// All loaded objects.
///
/// The linker holds a lock while it lists them, under which nothing may be opened.
fn all() -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    // SAFETY: the function gets the list, which lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(note), ptr::from_mut(&mut objects).cast()) };
    objects
}

/// Adds an object to a list; called for each.
unsafe extern "C" fn note(
    object: *mut libc::dl_phdr_info,
    _size: size_t,
    objects: *mut c_void,
) -> c_int {
    // SAFETY: the caller passes the list of `all`, which nobody else uses meanwhile, and the
    // linker a description.
    let (object, objects) = unsafe { (&*object, &mut *objects.cast::<Vec<Object>>()) };
    let path: *const c_char = object.dlpi_name;
    let path = match path.is_null() {
        true => CString::default(),
        // SAFETY: the linker's names end with a null byte.
        false => unsafe { CStr::from_ptr(path) }.to_owned(),
    };
    let (mut begin, mut end) = (usize::MAX, 0);
    for at in 0..usize::from(object.dlpi_phnum) {
        // SAFETY: the linker gives so many headers, which stay while the object does.
        let header = unsafe { &*object.dlpi_phdr.add(at) };
        if header.p_type == libc::PT_LOAD {
            let from = (object.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            begin = begin.min(from);
            end = end.max(from.wrapping_add(header.p_memsz as usize));
        }
    }
    objects.push(Object { begin, end, path });
    0
}

impl Object {
    /// The object that an address lies in. None for code that no file contains.
    pub(crate) fn of(address: usize) -> Option<Object> {
        all().into_iter().find(|object| object.has(address))
    }

    /// The objects whose file's name, without its folder, contains a text.
    pub(crate) fn named(part: &str) -> Vec<Object> {
        let part = part.as_bytes();
        let is_named = |object: &Object| {
            let path = object.path.to_bytes();
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            name.windows(part.len()).any(|window| window == part)
        };
        all().into_iter().filter(is_named).collect()
    }

    pub(crate) fn has(&self, address: usize) -> bool {
        (self.begin..self.end).contains(&address)
    }

    /// Whether it is this library.
    fn is_own(&self) -> bool {
        self.has(Object::of as *const () as usize)
    }

    /// Keeps the object loaded for good.
    pub(crate) fn stay(&self) {
        let _ = self.open();
    }

    /// Address of a symbol of this object or of those that it needs; 0 if there is none, or if it
    /// is this library's. The object stays loaded from then on.
    pub(crate) fn symbol(&self, name: &CStr) -> usize {
        let handle = self.open();
        if handle.is_null() {
            return 0;
        }
        // SAFETY: the handle was just got and stays open; the name ends with a null byte.
        foreign(unsafe { libc::dlsym(handle, name.as_ptr()) }.addr())
    }

    /// A handle that is never closed; null if the object is gone.
    fn open(&self) -> *mut c_void {
        let path = match self.path.is_empty() {
            true => ptr::null(),
            false => self.path.as_ptr(),
        };
        // SAFETY: the path ends with a null byte, or is null, which means the program itself.
        unsafe { libc::dlopen(path, libc::RTLD_NOLOAD | libc::RTLD_LAZY) }
    }
}

/// Address of the symbol that the linker finds after this library among those that all objects see;
/// 0 if there is none.
pub(crate) fn next_symbol(name: &CStr) -> usize {
    // SAFETY: the name ends with a null byte.
    foreign(unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }.addr())
}

/// An address outside of this library; 0 for one within.
fn foreign(address: usize) -> usize {
    match Object::of(address) {
        Some(object) if !object.is_own() => address,
        _ => 0,
    }
}
