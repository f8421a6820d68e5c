//! The system as the allocators see it: the data segment, mappings, the node of the running core,
//! one lock. Nothing here allocates.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};

use crate::heap::{ALIGN, Grow, round_up};
use crate::nmart::{NODES_MAX, Pages};

/// Writes to standard error.
pub fn say(text: &[u8]) {
    write_all(2, text);
}

/// Writes all of a text, as far as it can be written.
pub fn write_all(file: i32, text: &[u8]) {
    let mut left = text;
    while !left.is_empty() {
        // SAFETY: the text has as many bytes.
        let wrote = unsafe { libc::write(file, left.as_ptr().cast(), left.len()) };
        match usize::try_from(wrote) {
            Ok(wrote) if wrote > 0 => left = &left[wrote..],
            _ => return,
        }
    }
}

/// Writes a number to standard error.
pub fn say_number(number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut left = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    say(&digits[at..]);
}

/// The end of the data segment, moved up by exactly the request, as the source's heaps grow.
#[derive(Debug)]
pub struct DataSegment;

// SAFETY: `sbrk` gives each byte to one caller only.
unsafe impl Grow for DataSegment {
    fn grow(&mut self, bytes: usize) -> *mut u8 {
        let Ok(more) = libc::intptr_t::try_from(bytes) else {
            return ptr::null_mut();
        };
        // SAFETY: moves the end of the segment; what it returns is checked.
        let start = unsafe { libc::sbrk(more) }.cast::<u8>();
        if start.addr() == usize::MAX {
            return ptr::null_mut();
        }
        let skipped = round_up(start.addr(), ALIGN) - start.addr();
        if skipped == 0 {
            return start;
        }
        // The first time only: from here on the end is a multiple.
        // SAFETY: as above.
        let rest = unsafe { libc::sbrk(skipped as libc::intptr_t) };
        if rest.addr() != start.addr() + bytes {
            return ptr::null_mut();
        }
        start.wrapping_add(skipped)
    }
}

/// Maps fresh zero pages; null if the system refuses.
#[must_use]
pub fn map(bytes: usize) -> *mut u8 {
    // SAFETY: a new private mapping of no file.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    start.cast()
}

/// Gives a mapping back.
///
/// # Safety
/// It was mapped by [`map`], and nobody uses it.
pub unsafe fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(start.cast(), bytes) };
}

const CPUS_MAX: usize = 1024;
const UNREAD: u8 = 0;
const READING: u8 = 1;
const READ: u8 = 2;

/// Mappings, and the node of each processor as the system's files say.
#[derive(Debug)]
pub struct Machine {
    state: AtomicU8,
    node_of: [AtomicU16; CPUS_MAX],
}

impl Machine {
    /// Not looked at yet.
    #[must_use]
    pub const fn new() -> Machine {
        Machine {
            state: AtomicU8::new(UNREAD),
            node_of: [const { AtomicU16::new(0) }; CPUS_MAX],
        }
    }

    /// Reads which processors belong to which node; once, by the first thread to come. Others see
    /// node 0 meanwhile.
    #[cold]
    fn read(&self) {
        let first =
            self.state
                .compare_exchange(UNREAD, READING, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_err() {
            return;
        }
        let mut online = [0u8; 256];
        let read = read_file(b"/sys/devices/system/node/online\0", &mut online).unwrap_or(0);
        for_each_listed(&online[..read], |node| {
            if node >= NODES_MAX {
                return;
            }
            // As long as the longest, with its zero byte; a short one ends earlier.
            let mut path = *b"/sys/devices/system/node/node00/cpulist\0";
            const DIGITS: usize = 29;
            let mut at = DIGITS;
            if node >= 10 {
                path[at] = b'0' + (node / 10) as u8;
                at += 1;
            }
            path[at] = b'0' + (node % 10) as u8;
            path[at + 1..at + 10].copy_from_slice(b"/cpulist\0");
            let mut text = [0u8; 2048];
            let read = read_file(&path[..at + 10], &mut text).unwrap_or(0);
            for_each_listed(&text[..read], |cpu| {
                if let Some(kept) = self.node_of.get(cpu) {
                    kept.store(node as u16, Ordering::Relaxed);
                }
            });
        });
        // Release: pairs with the acquire in `node`.
        self.state.store(READ, Ordering::Release);
    }
}

impl Default for Machine {
    fn default() -> Self {
        Machine::new()
    }
}

/// Reads a file of a name that ends with a zero byte; nothing if it cannot be opened.
#[must_use]
pub fn read_file(name: &[u8], text: &mut [u8]) -> Option<usize> {
    debug_assert_eq!(name.last(), Some(&0));
    // SAFETY: the name ends with a zero byte.
    let file = unsafe { libc::open(name.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let mut had = 0;
    while had < text.len() {
        let rest = &mut text[had..];
        // SAFETY: the buffer takes as many bytes.
        let read = unsafe { libc::read(file, rest.as_mut_ptr().cast(), rest.len()) };
        match usize::try_from(read) {
            Ok(read) if read > 0 => had += read,
            _ => break,
        }
    }
    // SAFETY: it was opened here.
    unsafe { libc::close(file) };
    Some(had)
}

/// The numbers of a list as the system writes it: `0-3,8`.
pub fn for_each_listed(text: &[u8], mut what: impl FnMut(usize)) {
    let (mut first, mut number) = (None, None::<usize>);
    for &letter in text.iter().chain(b",") {
        match letter {
            b'0'..=b'9' => {
                let digit = usize::from(letter - b'0');
                number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit));
            }
            b'-' => first = number.take(),
            b',' | b'\n' => {
                if let Some(last) = number.take() {
                    let last = last.min(CPUS_MAX);
                    for listed in first.take().unwrap_or(last)..=last {
                        what(listed);
                    }
                }
            }
            _ => return,
        }
    }
}

// SAFETY: mappings are the caller's, and fresh ones zero.
unsafe impl Pages for Machine {
    fn map(&self, bytes: usize) -> *mut u8 {
        map(bytes)
    }

    unsafe fn unmap(&self, start: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { unmap(start, bytes) };
    }

    fn node(&self) -> usize {
        // Acquire: pairs with the release in `read`.
        if self.state.load(Ordering::Acquire) != READ {
            self.read();
        }
        // SAFETY: no arguments.
        let cpu = unsafe { libc::sched_getcpu() };
        let cpu = usize::try_from(cpu).unwrap_or(0);
        let node = self.node_of.get(cpu);
        node.map_or(0, |node| usize::from(node.load(Ordering::Relaxed)))
    }
}

/// One lock around a value, as the source's heaps of one list have it.
#[derive(Debug)]
pub struct Guarded<T> {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is touched with the mutex held only.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// Around a value.
    pub const fn new(value: T) -> Guarded<T> {
        Guarded {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock, as before a fork.
    pub fn lock(&self) {
        // SAFETY: the mutex is initialised and never moved while in use: it is in a static.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
    }

    /// Gives the lock back. Only the holder may.
    pub fn unlock(&self) {
        // SAFETY: as in `lock`.
        unsafe { libc::pthread_mutex_unlock(self.mutex.get()) };
    }

    /// Does something with the value, alone.
    #[inline]
    pub fn with<R>(&self, what: impl FnOnce(&mut T) -> R) -> R {
        self.lock();
        // SAFETY: the lock is held, and `what` cannot come here again: heaps call nobody.
        let done = what(unsafe { &mut *self.value.get() });
        self.unlock();
        done
    }
}

/// The calling thread's word, in the initial-exec model: no call, and nothing that could allocate.
#[derive(Debug)]
pub struct ThreadWord {
    /// A key's number plus 1, once it is made; for targets without such a word in assembly.
    #[cfg(not(target_arch = "x86_64"))]
    key: std::sync::atomic::AtomicU32,
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".section .tbss.hearth_allocators_word,\"awT\",@nobits",
    ".globl hearth_allocators_word",
    ".hidden hearth_allocators_word",
    ".type hearth_allocators_word, @object",
    ".size hearth_allocators_word, 8",
    ".p2align 3",
    "hearth_allocators_word:",
    ".zero 8",
    ".text",
);

impl ThreadWord {
    /// Null in every thread.
    #[must_use]
    pub const fn new() -> ThreadWord {
        ThreadWord {
            #[cfg(not(target_arch = "x86_64"))]
            key: std::sync::atomic::AtomicU32::new(0),
        }
    }

    /// The thread's word.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> *mut u8 {
        let value: *mut u8;
        // SAFETY: reads this thread's copy of the word above.
        unsafe {
            std::arch::asm!(
                "mov {v}, qword ptr [rip + hearth_allocators_word@GOTTPOFF]",
                "mov {v}, qword ptr fs:[{v}]",
                v = out(reg) value,
                options(nostack, preserves_flags, readonly),
            );
        }
        value
    }

    /// Sets it.
    #[cfg(target_arch = "x86_64")]
    pub fn set(&self, value: *mut u8) {
        // SAFETY: writes this thread's copy of the word above.
        unsafe {
            std::arch::asm!(
                "mov {t}, qword ptr [rip + hearth_allocators_word@GOTTPOFF]",
                "mov qword ptr fs:[{t}], {v}",
                t = out(reg) _,
                v = in(reg) value,
                options(nostack, preserves_flags),
            );
        }
    }

    /// The thread's word.
    #[cfg(not(target_arch = "x86_64"))]
    #[must_use]
    pub fn get(&self) -> *mut u8 {
        let key = self.key.load(Ordering::Acquire);
        if key == 0 {
            return ptr::null_mut();
        }
        // SAFETY: the key was made below.
        unsafe { libc::pthread_getspecific(key - 1).cast() }
    }

    /// Sets it.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn set(&self, value: *mut u8) {
        let mut key = self.key.load(Ordering::Acquire);
        if key == 0 {
            let Some(made) = make_key(None) else { return };
            key = made + 1;
            self.key.store(key, Ordering::Release);
        }
        // SAFETY: the key was made here; glibc keeps the first 32 without allocating.
        unsafe { libc::pthread_setspecific(key - 1, value.cast::<libc::c_void>()) };
    }
}

impl Default for ThreadWord {
    fn default() -> Self {
        ThreadWord::new()
    }
}

/// A key whose destructor runs at a thread's end.
pub fn make_key(
    at_end: Option<unsafe extern "C" fn(*mut libc::c_void)>,
) -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: fills in the key.
    let failed = unsafe { libc::pthread_key_create(&raw mut key, at_end) };
    (failed == 0).then_some(key)
}
