//! Parallel regions of OpenMP: each runs as many threads as the encountering thread has CPUs, but
//! no more than the program may know of.
//!
//! Programs size arrays by `omp_get_max_threads`, so a team never has more threads than that
//! told: the runtime's own setting stays as it is, and each region is given a number at its
//! beginning. GCC passes it as an argument. LLVM's runtime takes it by a call before; its tools
//! interface (OMPT) tells of a region when its size is settled, and could only change the
//! setting. A region whose program names a number of threads keeps that, and so do all regions of
//! a runtime that binds threads to places (`OMP_PROC_BIND`, `OMP_PLACES`): the encountering
//! thread then has one place, which says nothing of the claim.

use std::cell::Cell;
use std::ffi::CStr;

use libc::{c_int, c_uint, c_void};

use crate::counts::usable;
use crate::runtimes::{Address, Bound, Entry, Kind, Wanted};

/// Size of a team if the program names none. None: the runtime's own.
fn team(bound: &Bound, entry: &Entry) -> Option<c_int> {
    let is_bound = bound
        .ask(entry, Wanted::ProcBind)
        .is_some_and(|bind| bind != 0);
    let most = bound.ask(entry, Wanted::MaxThreads)?;
    (!is_bound).then(|| most.min(usable()).max(1))
}

const fn c_name(bytes: &'static [u8]) -> &'static CStr {
    match CStr::from_bytes_with_nul(bytes) {
        Ok(name) => name,
        Err(_) => panic!("a name ends with its only null byte"),
    }
}

/// Defines an entry of GCC's runtime for a kind of parallel region: the third argument is the
/// number of threads, 0 for the usual one.
macro_rules! region {
    ($number:literal $name:ident ( $($rest:ident),* )) => {
        /// A parallel region; GCC calls it.
        #[unsafe(no_mangle)]
        pub(crate) extern "C-unwind" fn $name(
            body: Address,
            data: Address,
            threads: c_uint,
            $($rest: Address),*
        ) -> c_uint {
            const NAME: &CStr = c_name(concat!(stringify!($name), "\0").as_bytes());
            static ENTRY: Entry = Entry::new($number, NAME, Kind::Gcc);
            type Real = extern "C-unwind" fn(
                Address, Address, c_uint, $(region!(@type $rest)),*
            ) -> c_uint;
            let bound = Bound::of(body);
            // SAFETY: the runtime's function of this name has these arguments, each in a register
            // or a word of the stack; where it returns nothing, what is in the register is passed
            // on.
            let real = unsafe { std::mem::transmute::<Address, Real>(bound.entry(&ENTRY)) };
            let threads = match threads {
                0 => team(bound, &ENTRY).map_or(0, c_int::unsigned_abs),
                named => named,
            };
            real(body, data, threads, $($rest),*)
        }
    };
    (@type $rest:ident) => { Address };
}

region!(0 GOMP_parallel(flags));
region!(1 GOMP_parallel_start());
region!(2 GOMP_parallel_reductions(flags));
region!(3 GOMP_parallel_sections(count, flags));
region!(4 GOMP_parallel_sections_start(count));
region!(5 GOMP_parallel_loop_static(start, end, step, chunk, flags));
region!(6 GOMP_parallel_loop_dynamic(start, end, step, chunk, flags));
region!(7 GOMP_parallel_loop_guided(start, end, step, chunk, flags));
region!(8 GOMP_parallel_loop_nonmonotonic_dynamic(
    start, end, step, chunk, flags
));
region!(9 GOMP_parallel_loop_nonmonotonic_guided(
    start, end, step, chunk, flags
));
region!(10 GOMP_parallel_loop_runtime(start, end, step, flags));
region!(11 GOMP_parallel_loop_nonmonotonic_runtime(
    start, end, step, flags
));
region!(12 GOMP_parallel_loop_maybe_nonmonotonic_runtime(
    start, end, step, flags
));
// GCC 4.8 and older.
region!(13 GOMP_parallel_loop_static_start(start, end, step, chunk));
region!(14 GOMP_parallel_loop_dynamic_start(start, end, step, chunk));
region!(15 GOMP_parallel_loop_guided_start(start, end, step, chunk));
region!(16 GOMP_parallel_loop_runtime_start(start, end, step));

static FORK: Entry = Entry::new(17, c"__kmpc_fork_call", Kind::Llvm);
static PUSH: Entry = Entry::new(18, c"__kmpc_push_num_threads", Kind::Llvm);
static SERIALIZED: Entry = Entry::new(19, c"__kmpc_serialized_parallel", Kind::Llvm);

thread_local! {
    /// Whether the program named the size of the next region.
    static IS_NAMED: Cell<bool> = const { Cell::new(false) };
}

/// Names the number of threads of the next region; LLVM calls it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __kmpc_push_num_threads(
    place: *mut c_void,
    thread: c_int,
    threads: c_int,
) {
    IS_NAMED.set(true);
    type Push = extern "C" fn(*mut c_void, c_int, c_int);
    let push = Bound::of(place.addr()).entry(&PUSH);
    // SAFETY: the runtime's function of this name has these arguments.
    let push = unsafe { std::mem::transmute::<Address, Push>(push) };
    push(place, thread, threads);
}

/// Begins a region of one thread, as its `if` clause was false; LLVM calls it. What was named for
/// it does not count for the next one.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __kmpc_serialized_parallel(place: *mut c_void, thread: c_int) {
    IS_NAMED.set(false);
    type Serialized = extern "C" fn(*mut c_void, c_int);
    let serialized = Bound::of(place.addr()).entry(&SERIALIZED);
    // SAFETY: the runtime's function of this name has these arguments.
    let serialized = unsafe { std::mem::transmute::<Address, Serialized>(serialized) };
    serialized(place, thread);
}

/// Names the size of a region that is about to begin, if the program did not. The address of the
/// runtime's function that begins it. `place` describes the region to the runtime.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
extern "C" fn before_region(place: *mut c_void, _arguments: c_int, body: Address) -> Address {
    let bound = Bound::of(body);
    if !IS_NAMED.replace(false)
        && let Some(threads) = team(bound, &FORK)
    {
        bound.push_num_threads(&FORK, place, threads);
    }
    bound.entry(&FORK)
}

/// A parallel region; LLVM calls it. It has any number of arguments, so it jumps to the runtime's.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) extern "C" fn __kmpc_fork_call() {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        // The number of vector registers with arguments.
        "push rax",
        "call {before}",
        "mov r11, rax",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp r11",
        before = sym before_region,
    )
}

/// A parallel region; LLVM calls it. It has any number of arguments, so it jumps to the runtime's.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) extern "C" fn __kmpc_fork_call() {
    core::arch::naked_asm!(
        "stp x29, x30, [sp, #-80]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "bl {before}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldp x29, x30, [sp], #80",
        "br x16",
        before = sym before_region,
    )
}
