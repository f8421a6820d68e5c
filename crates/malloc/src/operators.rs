//! The C++ operators `new` and `delete`, by their names in the Itanium ABI.
//!
//! A `new` that gets no memory calls the program's new-handler, and again, until there is none; then it
//! must throw, which code that is not C++ cannot. That is left to the C++ library's own operator, which
//! asks this library's `malloc`, is refused once more, and throws.

use std::ffi::c_void;

use hearth_heap as heap;

/// Finds the function of this name in the libraries behind this one. For the way that ends in an
/// exception only.
fn next(name: &std::ffi::CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

#[cold]
fn new_refused(size: usize) -> *mut c_void {
    let operator = next(c"_Znwm");
    if operator.is_null() {
        std::process::abort();
    }
    // SAFETY: this is the signature of the operator.
    let operator: extern "C-unwind" fn(usize) -> *mut c_void =
        unsafe { std::mem::transmute(operator) };
    operator(size)
}

#[cold]
fn aligned_refused(size: usize, align: usize) -> *mut c_void {
    let operator = next(c"_ZnwmSt11align_val_t");
    if operator.is_null() {
        std::process::abort();
    }
    // SAFETY: as above.
    let operator: extern "C-unwind" fn(usize, usize) -> *mut c_void =
        unsafe { std::mem::transmute(operator) };
    operator(size, align)
}

#[inline]
fn new(size: usize) -> *mut c_void {
    let block = heap::allocate(size);
    if block.is_null() {
        return new_refused(size);
    }
    block.cast()
}

#[inline]
fn new_aligned(size: usize, align: usize) -> *mut c_void {
    let block = heap::allocate_aligned(size, align);
    if block.is_null() {
        return aligned_refused(size, align);
    }
    block.cast()
}

macro_rules! news {
    ($($name:ident),*) => { $(
        /// `operator new`.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the ABI's names")]
        #[allow(unreachable_pub, reason = "exported by its name")]
        pub extern "C-unwind" fn $name(size: usize) -> *mut c_void {
            new(size)
        }
    )* };
}

macro_rules! nothrow_news {
    ($($name:ident),*) => { $(
        /// `operator new` that returns null.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the ABI's names")]
        #[allow(unreachable_pub, reason = "exported by its name")]
        pub extern "C" fn $name(size: usize, _nothrow: *const c_void) -> *mut c_void {
            heap::allocate(size).cast()
        }
    )* };
}

macro_rules! aligned_news {
    ($($name:ident),*) => { $(
        /// `operator new` with an alignment.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the ABI's names")]
        #[allow(unreachable_pub, reason = "exported by its name")]
        pub extern "C-unwind" fn $name(size: usize, align: usize) -> *mut c_void {
            new_aligned(size, align)
        }
    )* };
}

macro_rules! nothrow_aligned_news {
    ($($name:ident),*) => { $(
        /// `operator new` with an alignment that returns null.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the ABI's names")]
        #[allow(unreachable_pub, reason = "exported by its name")]
        pub extern "C" fn $name(size: usize, align: usize, _nothrow: *const c_void) -> *mut c_void {
            heap::allocate_aligned(size, align).cast()
        }
    )* };
}

macro_rules! deletes {
    ($($name:ident($($argument:ident: $type:ty),*)),* $(,)?) => { $(
        /// `operator delete`.
        ///
        /// # Safety
        /// The block came from the operator `new` of the same form, or is null.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the ABI's names")]
        #[allow(unreachable_pub, reason = "exported by its name")]
        pub unsafe extern "C" fn $name(block: *mut c_void $(, $argument: $type)*) {
            $( let _ = $argument; )*
            // SAFETY: as the caller promises.
            unsafe { heap::free(block.cast()) };
        }
    )* };
}

news!(_Znwm, _Znam);
nothrow_news!(_ZnwmRKSt9nothrow_t, _ZnamRKSt9nothrow_t);
aligned_news!(_ZnwmSt11align_val_t, _ZnamSt11align_val_t);
nothrow_aligned_news!(
    _ZnwmSt11align_val_tRKSt9nothrow_t,
    _ZnamSt11align_val_tRKSt9nothrow_t
);
deletes!(
    _ZdlPv(),
    _ZdaPv(),
    _ZdlPvm(size: usize),
    _ZdaPvm(size: usize),
    _ZdlPvRKSt9nothrow_t(nothrow: *const c_void),
    _ZdaPvRKSt9nothrow_t(nothrow: *const c_void),
    _ZdlPvSt11align_val_t(align: usize),
    _ZdaPvSt11align_val_t(align: usize),
    _ZdlPvmSt11align_val_t(size: usize, align: usize),
    _ZdaPvmSt11align_val_t(size: usize, align: usize),
    _ZdlPvSt11align_val_tRKSt9nothrow_t(align: usize, nothrow: *const c_void),
    _ZdaPvSt11align_val_tRKSt9nothrow_t(align: usize, nothrow: *const c_void),
);
