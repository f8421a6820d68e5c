//! The few operating system services that a heap needs, without the standard library: an allocator
//! must not allocate, and the errors of `hearth-sys` do.
//!
//! System calls go [by the bare instruction](crate::ground::syscall), so none changes `errno` and
//! none is a cancellation point. Calls of the C library are wrapped in [`quietly`].
//!
//! Miri supports few of them. Under Miri all memory is accessible from the start, the address space
//! is small, no file can be read, and no helper can be started.

use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

#[cfg(not(miri))]
use crate::ground::syscall::call;

/// The smallest page size. Larger pages would only make advice coarser: ranges here are multiples
/// of 64 KiB, or rounded outwards.
pub(crate) const PAGE: usize = 4096;

/// Runs an operation of the C library and restores the thread's error number.
pub(crate) fn quietly<T>(operation: impl FnOnce() -> T) -> T {
    // SAFETY: the place of this thread's error number, which lives as long as the thread.
    unsafe {
        let place = libc::__errno_location();
        let before = *place;
        let result = operation();
        *place = before;
        result
    }
}

/// Reserves addresses without memory behind them; 0 if the system refuses.
pub(crate) fn reserve(bytes: usize) -> usize {
    map(bytes, libc::PROT_NONE)
}

/// Maps zeroed memory; 0 if the system refuses.
pub(crate) fn map_memory(bytes: usize) -> usize {
    map(bytes, libc::PROT_READ | libc::PROT_WRITE)
}

fn map(bytes: usize, protection: i32) -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new private mapping at an address of the system's choice disturbs nobody.
    let start = unsafe { map_at(0, bytes, protection, flags) };
    start.unwrap_or(0)
}

/// # Safety
/// As for `mmap` of anonymous memory.
unsafe fn map_at(start: usize, bytes: usize, protection: i32, flags: i32) -> Result<usize, i32> {
    const NO_FILE: usize = -1isize as usize;
    let arguments = [
        start,
        bytes,
        protection as usize,
        flags as usize,
        NO_FILE,
        0,
    ];
    // SAFETY: as the caller promises.
    unsafe { call(libc::SYS_mmap, arguments) }
}

/// The outcome of mapping at a fixed address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Done,
    /// Something is mapped there already.
    Already,
    Refused,
}

/// Maps zeroed memory at an address, unless something is mapped there.
pub(crate) fn take(start: usize, bytes: usize) -> Taken {
    if cfg!(miri) {
        return Taken::Refused;
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let flags = flags | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: it replaces nothing, so it disturbs nobody.
    match unsafe { map_at(start, bytes, libc::PROT_READ | libc::PROT_WRITE, flags) } {
        Ok(place) if place == start => Taken::Done,
        // Before Linux 4.17 the address is only a hint.
        Ok(place) => {
            // SAFETY: nobody has seen it.
            unsafe { unmap(place, bytes) };
            Taken::Refused
        }
        Err(libc::EEXIST) => Taken::Already,
        Err(_) => Taken::Refused,
    }
}

/// Unmaps a range. False if the system refuses, as it does when splitting a larger mapping would
/// exceed the limit on mappings: the pages then read as zero, unless they are locked.
///
/// # Safety
/// The range is a mapping of this crate, and nobody uses it any more.
pub(crate) unsafe fn unmap(start: usize, bytes: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        let is_gone = call(libc::SYS_munmap, [start, bytes]).is_ok();
        if !is_gone {
            forget(start, bytes);
        }
        is_gone
    }
}

/// Resizes a mapping, perhaps moving it; 0 if the system refuses.
///
/// # Safety
/// The range is a mapping of this crate; if it moves, nobody uses the old place any more.
pub(crate) unsafe fn remap(start: usize, bytes: usize, wanted: usize) -> usize {
    let arguments = [start, bytes, wanted, libc::MREMAP_MAYMOVE as usize];
    // SAFETY: as the caller promises.
    unsafe { call(libc::SYS_mremap, arguments).unwrap_or(0) }
}

/// The process's limit on address space, if there is one.
pub(crate) fn addresses_max() -> Option<usize> {
    if cfg!(miri) {
        // Under Miri: a space takes 128 MiB of this.
        return Some(384 << 20);
    }
    limit_of(libc::RLIMIT_AS as usize)
}

/// A limit of the process, by the kernel's number for it, if there is one.
pub(crate) fn limit_of(resource: usize) -> Option<usize> {
    if cfg!(miri) {
        return None;
    }
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let place = (&raw mut limit).expose_provenance();
    // SAFETY: the kernel writes this process's limit. A sandbox may allow only the older call.
    let told = unsafe {
        call(libc::SYS_prlimit64, [0, resource, 0, place])
            .or_else(|_| call(libc::SYS_getrlimit, [resource, place]))
    };
    (told.is_ok() && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
}

/// Access rights of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing.
    None,
    /// Reading. Nothing has been written there: it is all zero.
    Read,
    /// Reading and writing.
    Write,
}

/// Sets the access rights of all pages that a range touches. False if the system refuses.
///
/// # Safety
/// The range lies in a reservation of this crate.
pub(crate) unsafe fn allow(start: usize, bytes: usize, access: Access) -> bool {
    if cfg!(miri) {
        return true;
    }
    let first = start & !(PAGE - 1);
    let end = (start + bytes).next_multiple_of(PAGE);
    let protection = match access {
        Access::None => libc::PROT_NONE,
        Access::Read => libc::PROT_READ,
        Access::Write => libc::PROT_READ | libc::PROT_WRITE,
    };
    // SAFETY: as the caller promises.
    unsafe {
        call(
            libc::SYS_mprotect,
            [first, end - first, protection as usize],
        )
        .is_ok()
    }
}

/// Gives the memory behind whole pages back to the system; they read as zero afterwards. False if
/// the system refuses.
///
/// # Safety
/// The pages lie in a reservation of this crate, are writable, and hold nothing.
pub(crate) unsafe fn forget(start: usize, bytes: usize) -> bool {
    if cfg!(miri) {
        // SAFETY: as the caller promises.
        unsafe { ptr::with_exposed_provenance_mut::<u8>(start).write_bytes(0, bytes) };
        return true;
    }
    // SAFETY: as the caller promises. The kernel keeps locked memory.
    unsafe { advise(start, bytes, libc::MADV_DONTNEED) }
}

/// Asks for huge pages behind a range, or for none, where the system has a choice.
///
/// # Safety
/// The range lies in a reservation of this crate.
pub(crate) unsafe fn huge_pages(start: usize, bytes: usize, wanted: bool) {
    if cfg!(miri) {
        return;
    }
    let advice = if wanted {
        libc::MADV_HUGEPAGE
    } else {
        libc::MADV_NOHUGEPAGE
    };
    // SAFETY: as the caller promises; contents do not change. A system without huge pages refuses.
    unsafe { advise(start, bytes, advice) };
}

/// # Safety
/// As for `madvise`.
unsafe fn advise(start: usize, bytes: usize, advice: i32) -> bool {
    // SAFETY: as the caller promises.
    unsafe { call(libc::SYS_madvise, [start, bytes, advice as usize]).is_ok() }
}

/// Advice for [`fault_in`] and [`populate`]; Linux 5.14 or later.
const POPULATE_WRITE: i32 = 23;

/// Faults memory in behind a range, as far as the system can; contents do not change.
///
/// # Safety
/// The range lies in a reservation of this crate and is accessible.
pub(crate) unsafe fn fault_in(start: usize, bytes: usize) {
    if cfg!(miri) {
        return;
    }
    let first = start & !(PAGE - 1);
    let length = (start + bytes).next_multiple_of(PAGE) - first;
    // SAFETY: as the caller promises.
    unsafe { advise(first, length, POPULATE_WRITE) };
}

/// Faults memory in behind a range and locks it. Returns whether it is populated, and whether it is
/// locked.
///
/// # Safety
/// The range lies in a reservation of this crate and is writable.
pub(crate) unsafe fn populate(start: usize, bytes: usize) -> (bool, bool) {
    let first = start & !(PAGE - 1);
    let length = (start + bytes).next_multiple_of(PAGE) - first;
    // SAFETY: as the caller promises; neither changes contents.
    unsafe {
        let locked = call(libc::SYS_mlock, [first, length]).is_ok();
        // Locking populates, too.
        let populated = locked || advise(first, length, POPULATE_WRITE);
        (populated, locked)
    }
}

/// Faults in and locks the code and data of the program or library that this code is part of, as
/// far as the system allows.
pub(crate) fn lock_image() {
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        _: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: what the loader passes lives as long as the call.
        unsafe {
            let base = (*info).dlpi_addr as usize;
            let headers = core::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into());
            let range = |header: &libc::Elf64_Phdr| {
                let start = base + header.p_vaddr as usize;
                (start, start + header.p_memsz as usize)
            };
            let loaded = headers
                .iter()
                .filter(|header| header.p_type == libc::PT_LOAD)
                .map(range);
            let here = lock_image as *const () as usize;
            let is_this = |(start, end): (usize, usize)| (start..end).contains(&here);
            if !loaded.clone().any(is_this) {
                return 0;
            }
            for (start, end) in loaded {
                let first = start & !(PAGE - 1);
                // If the system refuses, pages come on first touch.
                let _ = call(libc::SYS_mlock, [first, end - first]);
            }
        }
        1
    }

    if !cfg!(miri) {
        // SAFETY: `look` uses only what the loader passes.
        quietly(|| unsafe { libc::dl_iterate_phdr(Some(look), ptr::null_mut()) });
    }
}

/// Names a mapping for `/proc/PID/maps`, on kernels that support names (an option of Linux 5.17).
/// The name ends with a zero.
///
/// # Safety
/// The range is a mapping of this crate.
pub(crate) unsafe fn name(start: usize, bytes: usize, name: &'static [u8]) {
    debug_assert!(name.ends_with(&[0]));
    if cfg!(miri) {
        return;
    }
    // SAFETY: as the caller promises; contents do not change, and the kernel copies the name. If it
    // refuses, the mapping has no name.
    let _ = unsafe {
        let what = [
            libc::PR_SET_VMA as usize,
            libc::PR_SET_VMA_ANON_NAME as usize,
        ];
        let name = name.as_ptr().expose_provenance();
        call(libc::SYS_prctl, [what[0], what[1], start, bytes, name])
    };
}

/// Writes a line to standard error.
#[cold]
pub(crate) fn say(parts: &[&[u8]]) {
    let (line, length) = coalesced(parts);
    let line = line.as_ptr().expose_provenance();
    // SAFETY: the buffer has this length. Where standard error is closed, the line is lost.
    let _ = unsafe { call(libc::SYS_write, [2, line, length]) };
}

fn coalesced(parts: &[&[u8]]) -> ([u8; 512], usize) {
    let mut line = [0u8; 512];
    let mut length = 0;
    for &byte in parts.iter().flat_map(|part| part.iter()) {
        if length < line.len() {
            line[length] = byte;
            length += 1;
        }
    }
    (line, length)
}

/// Handlers before a fork, and after it in the parent and in the child.
pub(crate) struct AroundForks {
    pub(crate) before: extern "C" fn(),
    pub(crate) parent: extern "C" fn(),
    pub(crate) child: extern "C" fn(),
}

/// The C library's `pthread_create`.
pub type CreateThread = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    unsafe extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
    *mut libc::c_void,
) -> libc::c_int;

unsafe extern "C" {
    /// Declared here with the type [`CreateThread`]: the crate `libc` accepts only safe start
    /// functions.
    pub(crate) fn pthread_create(
        thread: *mut libc::pthread_t,
        attributes: *const libc::pthread_attr_t,
        start: unsafe extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
        argument: *mut libc::c_void,
    ) -> libc::c_int;
}

/// Starts a detached thread with a small stack, ordinary scheduling and all signals blocked, and
/// registers the fork handlers. False if the system refuses.
pub(crate) fn start_thread(
    create: CreateThread,
    run: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
    forks: &AroundForks,
) -> bool {
    const STACK_BYTES: usize = 256 << 10;
    if cfg!(miri) {
        return false;
    }
    around_forks(forks);
    // SAFETY: all pointers live until the call returns; the signal mask is restored.
    quietly(|| unsafe {
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        if libc::pthread_attr_init(&mut attributes) != 0 {
            return false;
        }
        libc::pthread_attr_setstacksize(&mut attributes, STACK_BYTES);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        // The thread must not inherit a real-time priority of the program's thread that starts it.
        let ordinary: libc::sched_param = core::mem::zeroed();
        libc::pthread_attr_setinheritsched(&mut attributes, libc::PTHREAD_EXPLICIT_SCHED);
        libc::pthread_attr_setschedpolicy(&mut attributes, libc::SCHED_OTHER);
        libc::pthread_attr_setschedparam(&mut attributes, &ordinary);
        let mut all: libc::sigset_t = core::mem::zeroed();
        let mut before: libc::sigset_t = core::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let mut thread = core::mem::zeroed();
        let result = create(&mut thread, &attributes, run, ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        libc::pthread_attr_destroy(&mut attributes);
        result == 0
    })
}

/// Registers fork handlers, once. Not from a fork handler: the C library may hold a lock there that
/// this call takes.
pub(crate) fn around_forks(forks: &AroundForks) {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if cfg!(miri) || IS_TOLD.swap(true, Ordering::Relaxed) {
        return;
    }
    let [before, parent, child] =
        [forks.before, forks.parent, forks.child].map(|each| -> unsafe extern "C" fn() { each });
    // SAFETY: the functions live as long as this crate's code, and may be called at any time.
    quietly(|| unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) });
}

/// The kernel's id of this process.
pub(crate) fn this_process() -> i32 {
    // SAFETY: the call takes nothing.
    unsafe { call(libc::SYS_getpid, []) }.unwrap_or(0) as i32
}

/// The kernel's id of this thread.
pub(crate) fn this_thread() -> i32 {
    // SAFETY: the call takes nothing.
    unsafe { call(libc::SYS_gettid, []) }.unwrap_or(0) as i32
}

/// Waits until the kernel no longer lists a thread of this process that has finished its work.
pub(crate) fn await_thread_end(thread: i32) {
    /// It disappears a moment after its last instruction; a debugger may hold it back.
    const TRIES: usize = 10_000;
    let mut patience = Patience::new();
    for _ in 0..TRIES {
        if !has_thread(thread) {
            return;
        }
        patience.wait();
    }
}

/// Whether this process has a thread of this kernel id.
pub(crate) fn has_thread(thread: i32) -> bool {
    let arguments = [this_process() as usize, thread as usize, 0];
    // SAFETY: the call sends no signal; the kernel only looks the thread up.
    let told = unsafe { call(libc::SYS_tgkill, arguments) };
    // A sandbox that refuses the call says nothing about the thread.
    !matches!(told, Err(libc::ESRCH | libc::EINVAL))
}

/// Backs off while another thread finishes a short step: yields the core a few times, then sleeps
/// briefly each time. A thread of real-time priority that only yielded would keep the other from
/// its core for ever.
pub(crate) struct Patience {
    waits: u32,
}

impl Patience {
    const YIELDS: u32 = 16;
    /// 20 ms of sleeping.
    const OVER: u32 = Patience::YIELDS + 400;
    pub(crate) fn new() -> Patience {
        Patience { waits: 0 }
    }

    /// Whether a caller that can do without should give up.
    pub(crate) fn is_over(&self) -> bool {
        self.waits > Patience::OVER
    }

    pub(crate) fn wait(&mut self) {
        self.waits = self.waits.saturating_add(1);
        if self.waits <= Patience::YIELDS {
            // SAFETY: the call takes nothing.
            let _ = unsafe { call(libc::SYS_sched_yield, []) };
            return;
        }
        nap();
    }
}

/// Sleeps for a moment.
pub(crate) fn nap() {
    const NAP_NS: i64 = 50_000;
    let mut word = 0;
    wait(&raw mut word, 0, Some(NAP_NS));
}

/// Waits on a futex while the word has this value, under two seconds if `ns` is given; may wake
/// spuriously. False on timeout.
pub(crate) fn wait(word: *mut u32, value: u32, ns: Option<i64>) -> bool {
    const SECOND_NS: i64 = 1_000_000_000;
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let time = ns.map(|ns| libc::timespec {
        tv_sec: ns / SECOND_NS,
        tv_nsec: ns % SECOND_NS,
    });
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    let arguments = [
        word.expose_provenance(),
        operation as usize,
        value as usize,
        time.expose_provenance(),
    ];
    // SAFETY: the word and the time are alive, and the kernel only reads them.
    let woken = unsafe { call(libc::SYS_futex, arguments) };
    woken != Err(libc::ETIMEDOUT)
}

/// Wakes up to `threads` threads that wait on a word.
pub(crate) fn wake(word: *mut u32, threads: u32) {
    let operation = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    let arguments = [word.expose_provenance(), operation, threads as usize];
    // SAFETY: the kernel only uses the address.
    let _ = unsafe { call(libc::SYS_futex, arguments) };
}

/// The beginning of a file, as much as fits the buffer. The path ends with a zero. None if the file
/// cannot be read.
pub(crate) fn read_file<'a>(path: &[u8], buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let mut length = 0;
    let is_there = each_piece(path, |piece| {
        let taken = piece.len().min(buffer.len() - length);
        buffer[length..length + taken].copy_from_slice(&piece[..taken]);
        length += taken;
        taken == piece.len()
    });
    is_there.then_some(&buffer[..length])
}

/// Passes a file in pieces to `wants_more` until that returns false. The path ends with a zero.
/// False if the file cannot be opened.
pub(crate) fn each_piece(path: &[u8], mut wants_more: impl FnMut(&[u8]) -> bool) -> bool {
    debug_assert!(path.contains(&0));
    if cfg!(miri) {
        return false;
    }
    // Small: stack pages touched here stay resident in every process.
    let mut piece = [0u8; 1024];
    let path = path.as_ptr().expose_provenance();
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    // SAFETY: the path ends with a zero.
    let file = unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags]) };
    let Ok(file) = file else { return false };
    loop {
        let place = piece.as_mut_ptr().expose_provenance();
        // SAFETY: the piece has this length.
        let count = unsafe { call(libc::SYS_read, [file, place, piece.len()]) };
        match count {
            Ok(count) if count > 0 && wants_more(&piece[..count]) => {}
            Err(libc::EINTR) => {}
            _ => break,
        }
    }
    // SAFETY: this function owns the descriptor.
    let _ = unsafe { call(libc::SYS_close, [file]) };
    true
}

/// Whether the process has no memory policy of its own; true if the system has no policies.
pub(crate) fn is_policy_default() -> bool {
    if cfg!(miri) {
        return true;
    }
    let mut mode = 0i32;
    let place = (&raw mut mode).expose_provenance();
    // SAFETY: the kernel writes the mode, and nothing else.
    let result = unsafe { call(libc::SYS_get_mempolicy, [place, 0, 0, 0, 0]) };
    result.is_err() || mode == 0
}

/// The nodes that the process may use, one bit each; all if the system does not say.
pub(crate) fn allowed_nodes() -> [u64; 16] {
    const MEMS_ALLOWED: usize = 1 << 2;
    let mut nodes = [0u64; 16];
    let place = nodes.as_mut_ptr().expose_provenance();
    // SAFETY: the kernel writes no more bits than there are.
    let result = unsafe { call(libc::SYS_get_mempolicy, [0, place, 1024, 0, MEMS_ALLOWED]) };
    if result.is_err() {
        return [u64::MAX; 16];
    }
    nodes
}

/// Prefers a node for the pages of a range; the kernel takes others when it is full.
///
/// # Safety
/// The range lies in a reservation of this crate.
pub(crate) unsafe fn prefer_node(start: usize, bytes: usize, node: u32) {
    const PREFERRED: usize = 1;
    let first = start & !(PAGE - 1);
    let end = (start + bytes).next_multiple_of(PAGE);
    let mut nodes = [0u64; 16];
    nodes[node as usize / 64] |= 1 << (node % 64);
    // SAFETY: as the caller promises. If the kernel refuses, pages come from the node that touches
    // them first.
    let _ = unsafe {
        let nodes = nodes.as_ptr().expose_provenance();
        call(
            libc::SYS_mbind,
            [first, end - first, PREFERRED, nodes, 1024, 0],
        )
    };
}

const MEMBARRIER_REGISTER: u32 = 1 << 4;
const MEMBARRIER: u32 = 1 << 3;

fn membarrier(command: u32) -> bool {
    // SAFETY: the call takes numbers only.
    unsafe { call(libc::SYS_membarrier, [command as usize, 0, 0]) == Ok(0) }
}

/// Registers the process for barriers on all its threads; false if the kernel has none. Later calls
/// cost nothing.
pub(crate) fn has_barriers() -> bool {
    !cfg!(miri) && membarrier(MEMBARRIER_REGISTER)
}

/// Makes every thread of the process pass a full barrier before it returns true. The system may
/// refuse at any time, for example after the process has restricted its system calls: then no
/// thread has passed one.
#[must_use]
pub(crate) fn barrier_everywhere() -> bool {
    membarrier(MEMBARRIER)
}

/// A page's place after a request to move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PagePlace {
    /// On the requested node.
    There,
    /// It has no memory behind it.
    Nowhere,
    /// Its old place, or unknown.
    Unknown,
}

/// Moves pages to a node and reports where each is then. Contents stay; threads that touch a page
/// meanwhile wait. False if the system refuses, for lack of permission or memory; some pages may
/// have moved.
///
/// # Safety
/// The pages lie in a reservation of this crate.
pub(crate) unsafe fn move_pages(pages: &[usize], node: u32, places: &mut [PagePlace]) -> bool {
    /// Moves only pages that no other process maps.
    const MOVE: usize = 1 << 1;
    const MOST: usize = 64;
    let mut nodes = [node as i32; MOST];
    let mut status = [-libc::EBUSY; MOST];
    let count = pages.len().min(MOST);
    let asked = pages.as_ptr().expose_provenance();
    let answers = status.as_mut_ptr().expose_provenance();
    let call = |nodes: usize, flags: usize| {
        // SAFETY: the arrays have these lengths; the process is this one.
        unsafe {
            call(
                libc::SYS_move_pages,
                [0, count, asked, nodes, answers, flags],
            )
        }
    };
    let moved = call(nodes.as_mut_ptr().expose_provenance(), MOVE);
    // If some did not move, the kernel leaves the statuses unwritten: ask again, moving nothing.
    if moved != Ok(0) && call(0, 0) != Ok(0) {
        return false;
    }
    for (place, status) in places.iter_mut().zip(&status[..count]) {
        *place = match -*status {
            _ if *status == node as i32 => PagePlace::There,
            libc::ENOENT | libc::EFAULT => PagePlace::Nowhere,
            _ => PagePlace::Unknown,
        };
    }
    moved.is_ok() && places.iter().all(|place| *place != PagePlace::Unknown)
}

/// Writes a line to standard error and aborts the process.
#[cold]
pub(crate) fn die(parts: &[&[u8]]) -> ! {
    say(parts);
    // SAFETY: the call takes nothing.
    unsafe { libc::abort() };
}

/// A number in decimal: the digits, and where they begin.
pub(crate) fn decimal(number: usize) -> ([u8; 20], usize) {
    let (mut text, mut first, mut rest) = ([0; 20], 20, number);
    loop {
        first -= 1;
        text[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return (text, first);
        }
    }
}

/// A number in hexadecimal.
pub(crate) fn hexadecimal(number: usize) -> [u8; 18] {
    let mut text = *b"0x0000000000000000";
    for (i, digit) in text[2..].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[number >> (60 - 4 * i) & 15];
    }
    text
}

/// The system calls that Miri can make.
#[cfg(miri)]
unsafe fn call<const N: usize>(number: libc::c_long, arguments: [usize; N]) -> Result<usize, i32> {
    let at = |nth: usize| ptr::with_exposed_provenance_mut::<libc::c_void>(arguments[nth]);
    // SAFETY: as the caller promises.
    unsafe {
        match number {
            libc::SYS_mmap => {
                let flags = arguments[3] as i32 & !libc::MAP_NORESERVE;
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                let place = libc::mmap(ptr::null_mut(), arguments[1], protection, flags, -1, 0);
                if place == libc::MAP_FAILED {
                    return Err(libc::ENOMEM);
                }
                Ok(place.expose_provenance())
            }
            libc::SYS_munmap => Ok(libc::munmap(at(0), arguments[1]) as usize),
            libc::SYS_mremap => {
                let place = libc::mremap(at(0), arguments[1], arguments[2], arguments[3] as i32);
                if place == libc::MAP_FAILED {
                    return Err(libc::ENOMEM);
                }
                Ok(place.expose_provenance())
            }
            libc::SYS_sched_yield => Ok(libc::sched_yield() as usize),
            libc::SYS_write => Ok(libc::write(2, at(1), arguments[2]) as usize),
            _ => Err(libc::ENOSYS),
        }
    }
}
