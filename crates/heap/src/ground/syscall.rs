//! System calls by the bare instruction; every call of this crate goes through here.
//!
//! The C library's wrappers write the thread's `errno`, which `free` must preserve and which must
//! be zero at `main`; and some of them are cancellation points, where a cancelled thread would end
//! in the middle of a heap operation. The instruction does neither, so callers need not think of
//! either.
//!
//! Tests refuse calls by a system call filter, which therefore sees all of them.

use core::arch::asm;

/// An error number of the kernel, one of the C library's `E…`.
pub(crate) type Refusal = i32;

/// Makes a system call and returns its result or its error.
///
/// # Safety
/// As for the call: the kernel reads and writes the memory that the arguments point to, and changes
/// the mappings that they name.
pub(crate) unsafe fn call<const N: usize>(
    number: libc::c_long,
    arguments: [usize; N],
) -> Result<usize, Refusal> {
    const { assert!(N <= 6) };
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    // SAFETY: as the caller promises.
    let result = unsafe { enter(number as usize, all) } as isize;
    // The kernel returns errors as the last page of numbers.
    if (-4095..0).contains(&result) {
        return Err(-result as Refusal);
    }
    Ok(result as usize)
}

/// # Safety
/// As for [`call`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn enter(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> usize {
    let result;
    // SAFETY: as the caller promises. The kernel changes these two registers and the result's, no
    // others.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// # Safety
/// As for [`call`].
#[cfg(all(target_arch = "aarch64", not(miri)))]
unsafe fn enter(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> usize {
    let result;
    // SAFETY: as the caller promises. The kernel changes no register but the result's.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            in("x5") f,
            options(nostack),
        );
    }
    result
}
