//! The meter's own functions in place of the C library's. `examples/meter.rs` exports them.

use std::ffi::CStr;
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use super::format::{
    Call, FORMAT, FREED, HEAD_BYTES, MAGIC, MeterWord, Mode, VARIABLE, WORDS_BYTES,
};
use crate::heap::{ALIGN, round_up};
use crate::system;

type Malloc = unsafe extern "C" fn(usize) -> *mut u8;
type Free = unsafe extern "C" fn(*mut u8);
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut u8;
type Realloc = unsafe extern "C" fn(*mut u8, usize) -> *mut u8;
type Memalign = unsafe extern "C" fn(usize, usize) -> *mut u8;
type Usable = unsafe extern "C" fn(*mut u8) -> usize;
type Overhead = unsafe extern "C" fn() -> usize;

const FRESH: u8 = 0;
const PREPARING: u8 = 1;
const READY: u8 = 2;

/// The next allocator's functions, and the place of the figures.
struct Meter {
    state: AtomicU8,
    malloc: AtomicPtr<()>,
    free: AtomicPtr<()>,
    calloc: AtomicPtr<()>,
    realloc: AtomicPtr<()>,
    memalign: AtomicPtr<()>,
    usable: AtomicPtr<()>,
    /// The mapped file; null if nothing is measured.
    words: AtomicPtr<AtomicU64>,
    mode: AtomicU8,
}

static METER: Meter = Meter {
    state: AtomicU8::new(FRESH),
    malloc: AtomicPtr::new(ptr::null_mut()),
    free: AtomicPtr::new(ptr::null_mut()),
    calloc: AtomicPtr::new(ptr::null_mut()),
    realloc: AtomicPtr::new(ptr::null_mut()),
    memalign: AtomicPtr::new(ptr::null_mut()),
    usable: AtomicPtr::new(ptr::null_mut()),
    words: AtomicPtr::new(ptr::null_mut()),
    mode: AtomicU8::new(0),
};

/// Bytes for what the lookup of functions allocates before there is an allocator. Never taken back.
const FIRST_BYTES: usize = 64 << 10;
#[repr(align(16))]
struct First(std::cell::UnsafeCell<[u8; FIRST_BYTES]>);
// SAFETY: each byte is given to one caller only, by `FIRST_USED`.
unsafe impl Sync for First {}
static FIRST: First = First(std::cell::UnsafeCell::new([0; FIRST_BYTES]));
static FIRST_USED: AtomicUsize = AtomicUsize::new(0);

/// With its size in front. Zero bytes.
fn first(bytes: usize) -> *mut u8 {
    let size = round_up(bytes.min(FIRST_BYTES), ALIGN) + ALIGN;
    let at = FIRST_USED.fetch_add(size, Ordering::Relaxed);
    if at + size > FIRST_BYTES {
        return ptr::null_mut();
    }
    let start = FIRST.0.get().cast::<u8>().wrapping_add(at);
    // SAFETY: the bytes from `at` on are this caller's.
    unsafe { start.cast::<usize>().write(bytes) };
    start.wrapping_add(ALIGN)
}

fn is_first(block: *mut u8) -> bool {
    let start = FIRST.0.get().addr();
    (start..start + FIRST_BYTES).contains(&block.addr())
}

fn next(name: &CStr) -> *mut () {
    // SAFETY: the name ends with a zero byte.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }.cast()
}

impl Meter {
    /// Ready for calls; false while it is being made so, by this thread.
    #[inline(always)]
    fn is_ready(&self) -> bool {
        // Acquire: pairs with the release at the end of `prepare`.
        self.state.load(Ordering::Acquire) == READY || self.prepare()
    }

    /// The first call comes while the program is loaded, by the one thread there is.
    #[cold]
    fn prepare(&self) -> bool {
        let begun =
            self.state
                .compare_exchange(FRESH, PREPARING, Ordering::Relaxed, Ordering::Relaxed);
        if begun.is_err() {
            return self.state.load(Ordering::Acquire) == READY;
        }
        let functions = [
            (&self.malloc, c"malloc"),
            (&self.free, c"free"),
            (&self.calloc, c"calloc"),
            (&self.realloc, c"realloc"),
            (&self.memalign, c"memalign"),
            (&self.usable, c"malloc_usable_size"),
        ];
        for (place, name) in functions {
            place.store(next(name), Ordering::Relaxed);
        }
        self.open();
        self.state.store(READY, Ordering::Release);
        true
    }

    /// Maps the file, if there is one and no other process has it.
    fn open(&self) {
        let mut name = [0u8; 64];
        name[..VARIABLE.len()].copy_from_slice(VARIABLE.as_bytes());
        // SAFETY: the name ends with a zero byte; the C library is initialised before everything
        // that it loads.
        let path = unsafe { libc::getenv(name.as_ptr().cast()) };
        if path.is_null() {
            return;
        }
        // SAFETY: the environment's text; what is mapped is checked, and never unmapped.
        let (words, bytes) = unsafe {
            let file = libc::open(path, libc::O_RDWR | libc::O_CLOEXEC);
            if file < 0 {
                return;
            }
            let bytes = usize::try_from(libc::lseek(file, 0, libc::SEEK_END)).unwrap_or(0);
            let start = libc::mmap(
                ptr::null_mut(),
                bytes.max(1),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file,
                0,
            );
            libc::close(file);
            if start == libc::MAP_FAILED || bytes < HEAD_BYTES {
                return;
            }
            (start.cast::<AtomicU64>(), bytes)
        };
        let get = |slot: MeterWord| {
            // SAFETY: the words are mapped.
            unsafe { (*words.add(slot as usize)).load(Ordering::Relaxed) }
        };
        let Some(mode) = Mode::of(get(MeterWord::Mode)) else {
            return;
        };
        let needed = HEAD_BYTES + get(MeterWord::Capacity) as usize * mode.record_bytes();
        if get(MeterWord::Magic) != MAGIC || get(MeterWord::Format) != FORMAT || bytes < needed {
            return;
        }
        // SAFETY: no arguments; the word is mapped.
        let mine = unsafe {
            let process = libc::getpid().unsigned_abs().into();
            (*words.add(MeterWord::Process as usize)).compare_exchange(
                0,
                process,
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
        };
        if mine.is_err() {
            return;
        }
        self.mode.store(mode.number() as u8, Ordering::Relaxed);
        self.words.store(words, Ordering::Relaxed);
        if let Some(figures) = self.figures() {
            let overhead = next(c"hearth_block_overhead");
            if !overhead.is_null() {
                // SAFETY: the allocators of this package export it with this type.
                let overhead = unsafe { transmute::<*mut (), Overhead>(overhead)() };
                figures.set(MeterWord::Overhead, overhead as u64);
            }
            let empty = (0..1000).map(|_| {
                let begin = begin();
                end() - begin
            });
            figures.set(MeterWord::Empty, empty.min().unwrap_or(0));
            figures.set(MeterWord::Unit, UNIT);
            figures.set(MeterWord::Begin, begin());
        }
    }

    #[inline(always)]
    fn figures(&self) -> Option<Figures> {
        let words = self.words.load(Ordering::Relaxed);
        (!words.is_null()).then_some(Figures {
            words,
            mode: self.mode.load(Ordering::Relaxed),
        })
    }
}

/// The mapped file. Relaxed throughout: figures order nothing.
#[derive(Clone, Copy)]
struct Figures {
    words: *mut AtomicU64,
    mode: u8,
}

impl Figures {
    fn word(&self, slot: MeterWord) -> &AtomicU64 {
        // SAFETY: the words are mapped, and stay so.
        unsafe { &*self.words.add(slot as usize) }
    }

    fn set(&self, slot: MeterWord, value: u64) {
        self.word(slot).store(value, Ordering::Relaxed);
    }

    fn add(&self, slot: MeterWord, value: u64) {
        self.word(slot).fetch_add(value, Ordering::Relaxed);
    }

    fn max(&self, slot: MeterWord, value: u64) {
        // Compared first: most values are not a new maximum.
        if self.word(slot).load(Ordering::Relaxed) < value {
            self.word(slot).fetch_max(value, Ordering::Relaxed);
        }
    }

    fn is(&self, mode: Mode) -> bool {
        u64::from(self.mode) == mode.number()
    }

    /// The place of the next record; null when all are used.
    fn record(&self, mode: Mode) -> *mut u8 {
        let at = self
            .word(MeterWord::Records)
            .fetch_add(1, Ordering::Relaxed);
        if at >= self.word(MeterWord::Capacity).load(Ordering::Relaxed) {
            return ptr::null_mut();
        }
        let offset = HEAD_BYTES + at as usize * mode.record_bytes();
        self.words.cast::<u8>().wrapping_add(offset)
    }

    fn timed(&self, call: Call, time: u64) {
        let (max, sum) = match call {
            Call::Allocate => (MeterWord::AllocateMax, MeterWord::AllocateSum),
            Call::Free => (MeterWord::FreeMax, MeterWord::FreeSum),
            Call::Realloc => (MeterWord::ReallocMax, MeterWord::ReallocSum),
        };
        self.max(max, time);
        self.add(sum, time);
        let place = self.record(Mode::Time);
        if !place.is_null() {
            // SAFETY: the record is mapped, and this caller's.
            unsafe { place.cast::<u32>().write(call.record(time)) };
        }
    }

    fn traced(&self, stamp: u64, block: *mut u8, bytes: u64) {
        let place = self.record(Mode::Trace).cast::<[u64; 3]>();
        if !place.is_null() {
            // SAFETY: the record is mapped, and this caller's.
            unsafe { place.write([stamp, block.addr() as u64, bytes]) };
        }
    }

    /// Records a new block.
    fn got(&self, block: *mut u8, bytes: usize, stamp: u64) {
        if block.is_null() {
            return;
        }
        self.add(MeterWord::Requested, bytes as u64);
        self.max(MeterWord::Largest, bytes as u64);
        if self.is(Mode::Count) {
            let usable = METER.usable.load(Ordering::Relaxed);
            if !usable.is_null() {
                // SAFETY: C's function of this type; the block is handed out.
                let usable = unsafe { transmute::<*mut (), Usable>(usable)(block) };
                // tcmalloc says 0 of what the C++ library gets while it is loaded.
                self.add(MeterWord::Provided, usable.max(bytes) as u64);
            }
        } else if self.is(Mode::Trace) {
            self.traced(stamp, block, bytes as u64);
        }
    }
}

#[cfg(target_arch = "x86_64")]
const UNIT: u64 = 1;
#[cfg(not(target_arch = "x86_64"))]
const UNIT: u64 = 2;

/// A stamp before which everything earlier is done.
#[inline(always)]
fn begin() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has both.
    unsafe {
        std::arch::x86_64::_mm_lfence();
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    nanoseconds()
}

/// A stamp after everything earlier, before anything later.
#[inline(always)]
fn end() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor that Linux runs on today has both.
    unsafe {
        let mut core = 0;
        let stamp = std::arch::x86_64::__rdtscp(&raw mut core);
        std::arch::x86_64::_mm_lfence();
        stamp
    }
    #[cfg(not(target_arch = "x86_64"))]
    nanoseconds()
}

#[cfg(not(target_arch = "x86_64"))]
fn nanoseconds() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: fills in the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Calls the next function `$name` of type `$type`.
macro_rules! call {
    ($name:ident as $type:ty, $($argument:expr),*) => {{
        let function = METER.$name.load(Ordering::Relaxed);
        // SAFETY: C's function of this type, with the caller's arguments. An allocator that lacks
        // it cannot take the place of C's.
        unsafe { transmute::<*mut (), $type>(function)($($argument),*) }
    }};
}

/// An allocation of `bytes` bytes by `allocate`, counted in `slot`.
#[inline(always)]
fn allocated(slot: MeterWord, bytes: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
    let Some(figures) = METER.figures() else {
        return allocate();
    };
    let from = begin();
    let block = allocate();
    let to = end();
    figures.add(slot, 1);
    figures.got(block, bytes, from);
    if figures.is(Mode::Time) {
        figures.timed(Call::Allocate, to - from);
    }
    block
}

/// `malloc`.
#[inline]
pub fn malloc(bytes: usize) -> *mut u8 {
    if !METER.is_ready() {
        return first(bytes);
    }
    allocated(MeterWord::Mallocs, bytes, || call!(malloc as Malloc, bytes))
}

/// `calloc`.
pub fn calloc(count: usize, bytes: usize) -> *mut u8 {
    let all = count.saturating_mul(bytes);
    if !METER.is_ready() {
        return first(all);
    }
    allocated(MeterWord::Callocs, all, || {
        call!(calloc as Calloc, count, bytes)
    })
}

/// `memalign` and its kin.
pub fn memalign(align: usize, bytes: usize) -> *mut u8 {
    if !METER.is_ready() {
        return first(bytes);
    }
    allocated(MeterWord::Aligned, bytes, || {
        call!(memalign as Memalign, align, bytes)
    })
}

/// `free`.
///
/// # Safety
/// As C has it.
#[inline]
pub unsafe fn free(block: *mut u8) {
    if block.is_null() || is_first(block) || !METER.is_ready() {
        return;
    }
    let Some(figures) = METER.figures() else {
        return call!(free as Free, block);
    };
    if figures.is(Mode::Trace) {
        // Before: another thread may get the block as soon as it is free.
        figures.traced(begin(), block, FREED);
    }
    let from = begin();
    call!(free as Free, block);
    let to = end();
    figures.add(MeterWord::Frees, 1);
    if figures.is(Mode::Time) {
        figures.timed(Call::Free, to - from);
    }
}

/// `realloc`.
///
/// # Safety
/// As C has it.
pub unsafe fn realloc(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        return malloc(bytes);
    }
    if is_first(block) {
        let moved = malloc(bytes);
        if !moved.is_null() {
            // SAFETY: the size is in front of the block.
            unsafe {
                let had = block.sub(ALIGN).cast::<usize>().read();
                moved.copy_from_nonoverlapping(block, had.min(bytes));
            }
        }
        return moved;
    }
    if !METER.is_ready() {
        return ptr::null_mut();
    }
    let Some(figures) = METER.figures() else {
        return call!(realloc as Realloc, block, bytes);
    };
    let from = begin();
    let moved = call!(realloc as Realloc, block, bytes);
    let to = end();
    figures.add(MeterWord::Reallocs, 1);
    if moved.is_null() && bytes == 0 {
        figures.add(MeterWord::Frees, 1);
    }
    let is_gone = !ptr::eq(moved, block) && (!moved.is_null() || bytes == 0);
    if is_gone && figures.is(Mode::Trace) {
        figures.traced(from, block, FREED);
    }
    if is_gone && !moved.is_null() {
        figures.add(MeterWord::Moved, 1);
        figures.got(moved, bytes, from);
    }
    if figures.is(Mode::Time) {
        figures.timed(Call::Realloc, to - from);
    }
    moved
}

/// Keeps the program's status at its end.
pub fn at_end() {
    let Some(figures) = METER.figures() else {
        return;
    };
    figures.set(MeterWord::End, begin());
    let mut text = [0u8; WORDS_BYTES];
    let Some(read) = system::read_file(b"/proc/self/status\0", &mut text) else {
        return;
    };
    let place = figures.words.cast::<u8>().wrapping_add(WORDS_BYTES);
    // SAFETY: as many bytes are mapped behind the words.
    unsafe { place.copy_from_nonoverlapping(text.as_ptr(), read) };
    figures.set(MeterWord::Status, read as u64);
}

/// From now on, children pass through: registered before the program's `main`.
pub fn at_begin() {
    crate::preload::end_at_panics();
    // SAFETY: the handler is sound at any time.
    unsafe { libc::pthread_atfork(None, None, Some(pass_through)) };
}

unsafe extern "C" fn pass_through() {
    METER.words.store(ptr::null_mut(), Ordering::Relaxed);
}
