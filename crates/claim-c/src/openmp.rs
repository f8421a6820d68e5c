//! Parallel regions of OpenMP: each runs as many threads as the encountering thread has CPUs, but
//! no more than the program may know of.
//!
//! Programs size arrays by `omp_get_max_threads`, so a team never has more threads than that
//! told: the runtime's own setting stays as it is, and each region is given a number at its
//! beginning. GCC passes it as an argument. LLVM's runtime takes it by a call before; its tools
//! interface (OMPT) tells of a region when its size is settled, and could only change the
//! setting. A region whose program names a number of threads keeps that.

use std::cell::Cell;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{c_char, c_int, c_uint, c_void};

use crate::counts::usable;

type Address = usize;

/// A function of the runtime, looked up once.
struct Function {
    name: &'static CStr,
    /// Parts of names of libraries that have it.
    library: &'static str,
    address: AtomicUsize,
}

impl Function {
    const fn new(name: &'static CStr, library: &'static str) -> Function {
        let address = AtomicUsize::new(0);
        Function {
            name,
            library,
            address,
        }
    }

    /// Its address. Without it there is no way to go on: the program calls it, and it is not there.
    fn find(&self) -> Address {
        let known = self.address.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let found = self.look_up();
        if found == 0 {
            let message = b"hearth: libhearth_claim.so finds no OpenMP runtime behind it\n";
            let _ = hearth_sys::descriptor::write_all(hearth_sys::descriptor::STDERR, message);
            std::process::abort();
        }
        self.address.store(found, Ordering::Relaxed);
        found
    }

    fn look_up(&self) -> Address {
        // SAFETY: the name ends with a null byte.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if !next.is_null() {
            return next.addr();
        }
        // A runtime that a plugin brought along is in no list that the linker searches from here.
        let mut search = Search {
            function: self,
            found: 0,
        };
        // SAFETY: the function gets the search, which lives until the call returns.
        unsafe { libc::dl_iterate_phdr(Some(look_into), ptr::from_mut(&mut search).cast()) };
        search.found
    }
}

struct Search<'a> {
    function: &'a Function,
    found: Address,
}

/// Looks for a function in a loaded library; called for each.
unsafe extern "C" fn look_into(
    library: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the caller passes the search of `look_up`, which nobody else uses meanwhile.
    let search = unsafe { &mut *search.cast::<Search<'_>>() };
    // SAFETY: the linker passes a description with a name that ends with a null byte.
    let name: *const c_char = unsafe { (*library).dlpi_name };
    if name.is_null() {
        return 0;
    }
    // SAFETY: as above.
    let text = unsafe { CStr::from_ptr(name) }.to_bytes();
    let part = search.function.library.as_bytes();
    if !text.windows(part.len()).any(|window| window == part) {
        return 0;
    }
    // SAFETY: the name is a library's that is loaded; its handle counts for as long as it stays.
    let handle = unsafe { libc::dlopen(name, libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if handle.is_null() {
        return 0;
    }
    // SAFETY: the handle was just got, and the name ends with a null byte.
    let found = unsafe { libc::dlsym(handle, search.function.name.as_ptr()) };
    search.found = found.addr();
    c_int::from(!found.is_null())
}

/// Size of a team if the program names none.
fn team(most: &Function) -> c_int {
    let most = most.find();
    // SAFETY: the runtime's function of this name takes nothing and returns a number.
    let most = unsafe { std::mem::transmute::<Address, extern "C" fn() -> c_int>(most) };
    most().min(usable()).max(1)
}

static GCC_MOST: Function = Function::new(c"omp_get_max_threads", "gomp");

/// Defines an entry of GCC's runtime for a kind of parallel region: the third argument is the
/// number of threads, 0 for the usual one.
macro_rules! region {
    ($name:ident ( $($rest:ident),* )) => {
        /// A parallel region; GCC calls it.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name(
            body: Address,
            data: Address,
            threads: c_uint,
            $($rest: Address),*
        ) -> c_uint {
            const NAME: &[u8] = concat!(stringify!($name), "\0").as_bytes();
            static REAL: Function = Function::new(
                match CStr::from_bytes_with_nul(NAME) {
                    Ok(name) => name,
                    Err(_) => c"",
                },
                "gomp",
            );
            type Real = extern "C" fn(Address, Address, c_uint, $(region!(@type $rest)),*) -> c_uint;
            // SAFETY: the runtime's function of this name has these arguments, each in a register
            // or a word of the stack; where it returns nothing, what is in the register is passed
            // on.
            let real = unsafe { std::mem::transmute::<Address, Real>(REAL.find()) };
            let threads = match threads {
                0 => team(&GCC_MOST).unsigned_abs(),
                named => named,
            };
            real(body, data, threads, $($rest),*)
        }
    };
    (@type $rest:ident) => { Address };
}

region!(GOMP_parallel(flags));
region!(GOMP_parallel_start());
region!(GOMP_parallel_reductions(flags));
region!(GOMP_parallel_sections(count, flags));
region!(GOMP_parallel_sections_start(count));
region!(GOMP_parallel_loop_static(start, end, step, chunk, flags));
region!(GOMP_parallel_loop_dynamic(start, end, step, chunk, flags));
region!(GOMP_parallel_loop_guided(start, end, step, chunk, flags));
region!(GOMP_parallel_loop_nonmonotonic_dynamic(
    start, end, step, chunk, flags
));
region!(GOMP_parallel_loop_nonmonotonic_guided(
    start, end, step, chunk, flags
));
region!(GOMP_parallel_loop_runtime(start, end, step, flags));
region!(GOMP_parallel_loop_nonmonotonic_runtime(
    start, end, step, flags
));
region!(GOMP_parallel_loop_maybe_nonmonotonic_runtime(
    start, end, step, flags
));

static LLVM_MOST: Function = Function::new(c"omp_get_max_threads", "omp");
static PUSH: Function = Function::new(c"__kmpc_push_num_threads", "omp");
static THREAD: Function = Function::new(c"__kmpc_global_thread_num", "omp");
static FORK: Function = Function::new(c"__kmpc_fork_call", "omp");

thread_local! {
    /// Whether the program named the size of the next region.
    static IS_NAMED: Cell<bool> = const { Cell::new(false) };
}

type Push = extern "C" fn(Address, c_int, c_int);

/// Names the number of threads of the next region; LLVM calls it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __kmpc_push_num_threads(place: Address, thread: c_int, threads: c_int) {
    IS_NAMED.set(true);
    // SAFETY: the runtime's function of this name has these arguments.
    let push = unsafe { std::mem::transmute::<Address, Push>(PUSH.find()) };
    push(place, thread, threads);
}

/// Names the size of a region that is about to begin, if the program did not. The address of the
/// runtime's function that begins it.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
extern "C" fn before_region(place: Address) -> Address {
    if !IS_NAMED.replace(false) {
        // SAFETY: the runtime's functions of these names have these arguments.
        let (thread, push) = unsafe {
            (
                std::mem::transmute::<Address, extern "C" fn(Address) -> c_int>(THREAD.find()),
                std::mem::transmute::<Address, Push>(PUSH.find()),
            )
        };
        push(place, thread(place), team(&LLVM_MOST));
    }
    FORK.find()
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
