//! The C++ operators `new` and `delete`, by their names in the Itanium ABI.
//!
//! A `new` without memory calls the program's new-handler until there is none; then it must throw,
//! which code other than C++ cannot. So it leaves that to the C++ library's own operator, which
//! calls this library's `malloc`, fails once more, and throws; or catches the handler's exception
//! and returns null, where the program asked for that. No frame of this library may be on the stack
//! then: a foreign exception that passes one aborts the process where panics abort. So the part
//! that may throw is a few instructions that call for a block and, if there is none, jump on.

use core::arch::naked_asm;
use core::ffi::{CStr, c_void};

use hearth_heap as heap;

/// Finds the function of this name in the libraries behind this one; only on the way to an
/// exception.
fn next(name: &CStr) -> *const c_void {
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        // A program that calls `new` without a C++ library has nothing that could catch.
        // SAFETY: the call takes nothing and does not return.
        unsafe { libc::abort() };
    }
    found
}

extern "C" fn block(size: usize) -> *mut c_void {
    heap::allocate(size).cast()
}

extern "C" fn aligned_block(size: usize, align: usize) -> *mut c_void {
    heap::allocate_aligned(size, align).cast()
}

macro_rules! nexts {
    ($($name:ident = $symbol:literal;)*) => { $(
        #[cold]
        extern "C" fn $name() -> *const c_void {
            next($symbol)
        }
    )* };
}

nexts! {
    next_new = c"_Znwm";
    next_nothrow = c"_ZnwmRKSt9nothrow_t";
    next_aligned = c"_ZnwmSt11align_val_t";
    next_aligned_nothrow = c"_ZnwmSt11align_val_tRKSt9nothrow_t";
}

// Keeps the arguments on the stack, which is aligned to 16 at the calls, and describes the frame
// for unwinders and debuggers.
#[cfg(target_arch = "x86_64")]
macro_rules! call_or_jump {
    ($block:path, $next:path) => {
        naked_asm!(
            ".cfi_startproc",
            "sub rsp, 24",
            ".cfi_adjust_cfa_offset 24",
            "mov [rsp], rdi",
            "mov [rsp + 8], rsi",
            "mov [rsp + 16], rdx",
            "call {block}",
            "test rax, rax",
            "je 2f",
            "add rsp, 24",
            ".cfi_adjust_cfa_offset -24",
            "ret",
            "2:",
            ".cfi_adjust_cfa_offset 24",
            "call {next}",
            "mov rdi, [rsp]",
            "mov rsi, [rsp + 8]",
            "mov rdx, [rsp + 16]",
            "add rsp, 24",
            ".cfi_adjust_cfa_offset -24",
            "jmp rax",
            ".cfi_endproc",
            block = sym $block,
            next = sym $next,
        )
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! call_or_jump {
    ($block:path, $next:path) => {
        naked_asm!(
            ".cfi_startproc",
            "stp x29, x30, [sp, #-48]!",
            ".cfi_def_cfa_offset 48",
            ".cfi_offset w29, -48",
            ".cfi_offset w30, -40",
            "stp x0, x1, [sp, #16]",
            "str x2, [sp, #32]",
            "bl {block}",
            "cbnz x0, 2f",
            "bl {next}",
            "mov x16, x0",
            "ldp x0, x1, [sp, #16]",
            "ldr x2, [sp, #32]",
            "ldp x29, x30, [sp], #48",
            ".cfi_remember_state",
            ".cfi_restore w29",
            ".cfi_restore w30",
            ".cfi_def_cfa_offset 0",
            "br x16",
            "2:",
            ".cfi_restore_state",
            "ldp x29, x30, [sp], #48",
            ".cfi_restore w29",
            ".cfi_restore w30",
            ".cfi_def_cfa_offset 0",
            "ret",
            ".cfi_endproc",
            block = sym $block,
            next = sym $next,
        )
    };
}

macro_rules! news {
    ($($name:ident($($argument:ident: $type:ty),*) = $block:path, $next:path;)*) => { $(
        /// `operator new`.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[allow(non_snake_case, reason = "the ABI's names")]
        #[allow(unreachable_pub, reason = "exported by its name")]
        pub extern "C" fn $name(size: usize $(, $argument: $type)*) -> *mut c_void {
            call_or_jump!($block, $next)
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

news! {
    _Znwm() = block, next_new;
    _Znam() = block, next_new;
    _ZnwmRKSt9nothrow_t(nothrow: *const c_void) = block, next_nothrow;
    _ZnamRKSt9nothrow_t(nothrow: *const c_void) = block, next_nothrow;
    _ZnwmSt11align_val_t(align: usize) = aligned_block, next_aligned;
    _ZnamSt11align_val_t(align: usize) = aligned_block, next_aligned;
    _ZnwmSt11align_val_tRKSt9nothrow_t(align: usize, nothrow: *const c_void)
        = aligned_block, next_aligned_nothrow;
    _ZnamSt11align_val_tRKSt9nothrow_t(align: usize, nothrow: *const c_void)
        = aligned_block, next_aligned_nothrow;
}
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
