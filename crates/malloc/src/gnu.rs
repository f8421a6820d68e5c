//! The GNU library's own functions: statistics, settings, and internal names.

use core::ffi::{c_int, c_void};

use hearth_heap as heap;

/// Gives idle memory back to the system, except `pad` bytes. Returns 1 if there was some.
#[unsafe(no_mangle)]
#[allow(unreachable_pub, reason = "exported by its name")]
pub extern "C" fn malloc_trim(pad: usize) -> c_int {
    c_int::from(heap::trim(pad) > 0)
}

/// Accepts and ignores all settings: they tune the GNU library's allocator.
#[unsafe(no_mangle)]
#[allow(unreachable_pub, reason = "exported by its name")]
pub extern "C" fn mallopt(_option: c_int, _value: c_int) -> c_int {
    1
}

/// Statistics of the process. Free blocks inside of a heap count as used: nobody adds them up.
#[unsafe(no_mangle)]
#[allow(unreachable_pub, reason = "exported by its name")]
pub extern "C" fn mallinfo2() -> libc::mallinfo2 {
    let totals = heap::totals();
    libc::mallinfo2 {
        arena: totals.held + totals.idle,
        ordblks: 0,
        smblks: 0,
        hblks: totals.mappings,
        hblkhd: totals.mapped,
        usmblks: 0,
        fsmblks: 0,
        uordblks: totals.held,
        fordblks: totals.idle,
        keepcost: totals.idle,
    }
}

/// The older form, with numbers too short for much.
#[unsafe(no_mangle)]
#[allow(unreachable_pub, reason = "exported by its name")]
pub extern "C" fn mallinfo() -> libc::mallinfo {
    let short = |bytes: usize| c_int::try_from(bytes).unwrap_or(c_int::MAX);
    let info = mallinfo2();
    libc::mallinfo {
        arena: short(info.arena),
        ordblks: 0,
        smblks: 0,
        hblks: short(info.hblks),
        hblkhd: short(info.hblkhd),
        usmblks: 0,
        fsmblks: 0,
        uordblks: short(info.uordblks),
        fordblks: short(info.fordblks),
        keepcost: short(info.keepcost),
    }
}

/// Prints the statistics to standard error.
#[unsafe(no_mangle)]
#[allow(unreachable_pub, reason = "exported by its name")]
pub extern "C" fn malloc_stats() {
    let totals = heap::totals();
    let text = c"hearth: %zu bytes in heaps and large blocks, %zu idle, %zu in %zu mappings\n";
    let mut line = [0u8; 256];
    // SAFETY: the arguments match the format, and four numbers fit the line.
    unsafe {
        let length = libc::snprintf(
            line.as_mut_ptr().cast(),
            line.len(),
            text.as_ptr(),
            totals.held,
            totals.idle,
            totals.mapped,
            totals.mappings,
        );
        libc::write(2, line.as_ptr().cast(), length.max(0) as usize);
    }
}

/// Prints the statistics as XML, in the GNU library's words.
///
/// # Safety
/// The stream is open.
#[unsafe(no_mangle)]
#[allow(unreachable_pub, reason = "exported by its name")]
pub unsafe extern "C" fn malloc_info(options: c_int, stream: *mut libc::FILE) -> c_int {
    if options != 0 {
        return libc::EINVAL;
    }
    let totals = heap::totals();
    let text = c"<malloc version=\"1\">\n\
        <total type=\"rest\" count=\"0\" size=\"%zu\"/>\n\
        <total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n\
        <system type=\"current\" size=\"%zu\"/>\n\
        </malloc>\n";
    // SAFETY: the arguments match the format, and the stream is as the caller promises.
    let written = unsafe {
        libc::fprintf(
            stream,
            text.as_ptr(),
            totals.idle,
            totals.mappings,
            totals.mapped,
            totals.held + totals.idle,
        )
    };
    if written < 0 { -1 } else { 0 }
}

macro_rules! inner_names {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $function:path;)*) => { $(
        /// An internal name of the C library that some programs use; its blocks go to `free`, too.
        ///
        /// # Safety
        /// As for the function that it names.
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
