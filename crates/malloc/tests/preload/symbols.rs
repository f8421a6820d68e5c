//! Exports and imports of the shipped library.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::support::{Profile, library};

/// Names of C, POSIX, C23 and the GNU library, and internal names that others may use.
const C: &[&str] = &[
    "__libc_calloc",
    "__libc_cfree",
    "__libc_free",
    "__libc_malloc",
    "__libc_memalign",
    "__libc_pvalloc",
    "__libc_realloc",
    "__libc_valloc",
    "__posix_memalign",
    "aligned_alloc",
    "calloc",
    "cfree",
    "free",
    "free_aligned_sized",
    "free_sized",
    "mallinfo",
    "mallinfo2",
    "malloc",
    "malloc_info",
    "malloc_stats",
    "malloc_trim",
    "malloc_usable_size",
    "mallopt",
    "memalign",
    "posix_memalign",
    "pvalloc",
    "realloc",
    "reallocarray",
    "valloc",
];

/// Calls that show whether the process has threads: see `threads.rs`.
const THREADS: &[&str] = &["pthread_create", "setns", "unshare"];

/// All forms of `new` and `delete`: `n` and `d`, `w` or `l` for one and `a` for arrays.
const NEWS: &[&str] = &[
    "m",
    "mRKSt9nothrow_t",
    "mSt11align_val_t",
    "mSt11align_val_tRKSt9nothrow_t",
];
const DELETES: &[&str] = &[
    "Pv",
    "Pvm",
    "PvRKSt9nothrow_t",
    "PvSt11align_val_t",
    "PvmSt11align_val_t",
    "PvSt11align_val_tRKSt9nothrow_t",
];

/// Internal names of the C library that allocate nothing.
const NOT_TO_ALLOCATE: &[&str] = &["__libc_mallinfo", "__libc_mallopt"];

fn output(tool: &str, arguments: &[&str], path: &Path) -> String {
    let output = Command::new(tool)
        .args(arguments)
        .arg(path)
        .env("LC_ALL", "C")
        .output()
        .unwrap_or_else(|error| panic!("{tool}, of the binutils, cannot be started: {error}"));
    assert!(output.status.success(), "{tool} {}", path.display());
    String::from_utf8(output.stdout).expect("names are text")
}

/// Exported names, without versions.
fn exported(path: &Path) -> BTreeSet<String> {
    output("nm", &["--dynamic", "--defined-only"], path)
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .map(|name| name.split('@').next().unwrap_or(name).to_owned())
        .collect()
}

fn expected() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = C.iter().map(ToString::to_string).collect();
    for form in NEWS {
        names.extend(["w", "a"].map(|kind| format!("_Zn{kind}{form}")));
    }
    for form in DELETES {
        names.extend(["l", "a"].map(|kind| format!("_Zd{kind}{form}")));
    }
    names.extend(THREADS.iter().map(ToString::to_string));
    names
}

#[test]
fn all_of_malloc_is_exported_and_nothing_else() {
    assert_eq!(exported(library(Profile::Release)), expected());
}

#[test]
fn the_c_library_exports_nothing_more() {
    // This machine's may be newer than the list.
    let libraries = output("ldd", &[], library(Profile::Release));
    let path = libraries
        .lines()
        .find_map(|line| line.trim().strip_prefix("libc.so.6 => "))
        .and_then(|rest| rest.split(' ').next())
        .expect("it needs the C library");
    let text = output("nm", &["--dynamic", "--defined-only"], Path::new(path));
    let is_malloc = |name: &str| {
        let plain = name.trim_start_matches("__libc_");
        let families = [
            "malloc", "calloc", "realloc", "valloc", "pvalloc", "mallopt",
        ];
        let others = ["free", "cfree", "aligned_alloc"];
        families.iter().any(|family| plain.starts_with(family))
            || others.contains(&plain)
            || plain.starts_with("mallinfo")
            || plain.starts_with("free_") && plain.ends_with("sized")
            || plain.ends_with("memalign")
    };
    let ours = expected();
    let missing: Vec<_> = text
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .filter_map(|name| {
            let (name, version) = name.split_once('@')?;
            let is_wanted = is_malloc(name) && !version.contains("GLIBC_PRIVATE");
            let is_there = ours.contains(name) || NOT_TO_ALLOCATE.contains(&name);
            (is_wanted && !is_there).then_some(name)
        })
        .collect();
    assert!(missing.is_empty(), "the C library has {missing:?}, too");
}

#[test]
fn thread_local_storage_is_small_and_without_calls() {
    let library = library(Profile::Release);
    let relocations = output("readelf", &["--relocs", "--wide"], library);
    let thread_local: Vec<_> = relocations
        .lines()
        .filter(|line| line.contains("TPOFF") || line.contains("DTPMOD") || line.contains("TLS"))
        .collect();
    // The thread's heap, the same where there is one node, and the stand-in for its CPU.
    assert!((1..=3).contains(&thread_local.len()), "{thread_local:?}");
    for kind in thread_local {
        assert!(
            kind.contains("R_X86_64_TPOFF64") || kind.contains("R_AARCH64_TLS_TPREL"),
            "{kind}"
        );
    }
    let imported = output("nm", &["--dynamic", "--undefined-only"], library);
    assert!(!imported.contains("__tls_get_addr"), "{imported}");
    // Three words: a program that opens the library has few to spare.
    let segments = output("readelf", &["--segments", "--wide"], library);
    let segment = segments
        .lines()
        .find(|line| line.trim_start().starts_with("TLS"))
        .expect("there is a segment");
    let size = segment.split_whitespace().nth(5).unwrap_or_default();
    let is_small = ["0x000008", "0x000010", "0x000018"].contains(&size);
    assert!(is_small, "{segment}");
}

#[test]
fn only_the_c_library_is_needed() {
    let dynamic = output(
        "readelf",
        &["--dynamic", "--wide"],
        library(Profile::Release),
    );
    let needed: Vec<_> = dynamic
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .collect();
    let is_libc = |line: &&str| line.contains("[libc.so.6]") || line.contains("[ld-linux");
    assert!(needed.iter().all(is_libc), "{needed:?}");
}

/// Functions of the C library that the library calls, and the reason for each. System calls do not
/// go through the C library, which writes `errno` and has cancellation points.
const IMPORTED: &[&str] = &[
    // Set when an allocation is refused, and restored after the calls below.
    "__errno_location",
    // Threads and their ends; `errno` is restored. None is a cancellation point.
    "__register_atfork",
    "pthread_attr_destroy",
    "pthread_attr_init",
    "pthread_attr_setdetachstate",
    "pthread_attr_setinheritsched",
    "pthread_attr_setschedparam",
    "pthread_attr_setschedpolicy",
    "pthread_attr_setstacksize",
    "pthread_key_create",
    "pthread_key_delete",
    "pthread_setspecific",
    "pthread_sigmask",
    "sched_getcpu",
    "sigfillset",
    "syscall",
    // At the start, in real-time mode.
    "dl_iterate_phdr",
    // At the start: the environment, without `/proc`, and the user's rights.
    "environ",
    "getauxval",
    "strlen",
    // At the end; and the handler of faults.
    "abort",
    "raise",
    "sigaction",
    // The caller's memory.
    "memcpy",
    "memmove",
    "memset",
    // `malloc_stats`, `malloc_info`, C++'s handlers, and the message about a bug of our own:
    // outside of any turn of a heap.
    "dlsym",
    "fprintf",
    "snprintf",
    "write",
    // The linker's.
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
    "__cxa_finalize",
    "__gmon_start__",
    "__rseq_offset",
];

/// A new name here may write `errno` in the middle of a `free`, or be a cancellation point in the
/// middle of a heap operation: see `crates/heap/src/ground/syscall.rs`.
#[test]
fn only_listed_functions_are_imported() {
    let text = output(
        "nm",
        &["--dynamic", "--undefined-only"],
        library(Profile::Release),
    );
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    let others: Vec<_> = names
        .map(|name| name.split('@').next().unwrap_or(name))
        .filter(|name| !IMPORTED.contains(name))
        .collect();
    assert!(others.is_empty(), "{others:?}");
}
