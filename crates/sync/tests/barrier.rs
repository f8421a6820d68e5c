//! A seccomp filter installed late: the program aborts with the reason instead of sleeping forever.

use std::ffi::{c_int, c_ulong};
use std::process::Command;

use hearth_sync::{Mode, Owned, Wait};

/// Set in the process that installs the filter.
const CHILD: &str = "HEARTH_TEST_BARRIER";

/// One instruction of a filter, and a filter, in the kernel's layout.
#[repr(C)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

#[repr(C)]
struct Filter {
    length: u16,
    instructions: *const Instruction,
}

unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
}

#[cfg(target_arch = "x86_64")]
const MEMBARRIER: u32 = 324;
#[cfg(target_arch = "aarch64")]
const MEMBARRIER: u32 = 283;

/// Makes the kernel refuse membarrier to this thread and the threads it starts. False where there
/// are no filters.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn refuse_membarrier() -> bool {
    const NO_NEW_PRIVILEGES: c_int = 38;
    const SECCOMP: c_int = 22;
    const BY_FILTER: c_ulong = 2;
    const ALLOW: u32 = 0x7fff_0000;
    const NOT_PERMITTED: u32 = 0x0005_0000 | 1;
    let step = |code, if_true, if_false, value| Instruction {
        code,
        if_true,
        if_false,
        value,
    };
    let instructions = [
        // Load the call's number; if it is membarrier return the error, otherwise allow the call.
        step(0x20, 0, 0, 0),
        step(0x15, 0, 1, MEMBARRIER),
        step(0x06, 0, 0, NOT_PERMITTED),
        step(0x06, 0, 0, ALLOW),
    ];
    let filter = Filter {
        length: instructions.len() as u16,
        instructions: instructions.as_ptr(),
    };
    let (yes, no): (c_ulong, c_ulong) = (1, 0);
    // SAFETY: the call takes numbers only.
    if unsafe { prctl(NO_NEW_PRIVILEGES, yes, no, no, no) } != 0 {
        return false;
    }
    // SAFETY: the filter and its instructions live during the call, which copies them.
    unsafe { prctl(SECCOMP, BY_FILTER, &raw const filter) == 0 }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn refuse_membarrier() -> bool {
    let _ = prctl;
    false
}

/// Sleeps until the answer comes, so that the answering thread must issue a barrier.
fn sleeps() {
    let owned = Owned::builder()
        .mode(Mode::Message)
        .wait(Wait::park())
        .proprietor_wait(Wait::park())
        .build(0u32)
        .unwrap();
    assert_eq!(owned.call(|data| *data), 0);
}

#[test]
fn a_filter_that_comes_late_is_told() {
    if std::env::var_os(CHILD).is_some() {
        // The section registers for barriers here, and relies on them if the kernel has them.
        sleeps();
        if hearth_sys::membarrier::is_available() && refuse_membarrier() {
            sleeps();
            panic!("the barrier was not missed");
        }
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_filter_that_comes_late_is_told", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        assert!(text.contains("allow membarrier in the filter"), "{text}");
    }
}
