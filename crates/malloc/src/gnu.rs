//! What the GNU library exports to allocate beside C and POSIX: what may be asked and set, and inner names.

use core::ffi::{c_int, c_void};

use hearth_heap as heap;

/// Gives idle memory back to the system; `pad` bytes may stay. 1 if there was some.
#[unsafe(no_mangle)]
#[allow(unreachable_pub, reason = "exported by its name")]
pub extern "C" fn malloc_trim(pad: usize) -> c_int {
    c_int::from(heap::trim(pad) > 0)
}

/// There is nothing to set: what programs ask for with it is how another allocator does its work.
#[unsafe(no_mangle)]
#[allow(unreachable_pub, reason = "exported by its name")]
pub extern "C" fn mallopt(_option: c_int, _value: c_int) -> c_int {
    1
}

macro_rules! inner_names {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $function:path;)*) => { $(
        /// An inner name of the C library that some programs use. What it gives goes to `free`, too.
        ///
        /// # Safety
        /// As for the function that is called so.
        #[unsafe(no_mangle)]
        #[allow(unreachable_pub, reason = "exported by its name")]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            #[allow(unused_unsafe, reason = "some of them are safe")]
            // SAFETY: as the caller promises.
            unsafe { $function($($argument),*) }
        }
    )* };
}

inner_names! {
    __libc_malloc(size: usize) -> *mut c_void = crate::malloc;
    __libc_free(block: *mut c_void) = crate::free;
    __libc_cfree(block: *mut c_void) = crate::free;
    __libc_calloc(count: usize, size: usize) -> *mut c_void = crate::calloc;
    __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void = crate::realloc;
    __libc_memalign(align: usize, size: usize) -> *mut c_void = crate::memalign;
    __libc_valloc(size: usize) -> *mut c_void = crate::valloc;
    __libc_pvalloc(size: usize) -> *mut c_void = crate::pvalloc;
    __posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int
        = crate::posix_memalign;
}
